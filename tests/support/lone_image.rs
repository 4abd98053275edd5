//! An image without host or front ends, for tests of what happens inside it.

use std::path::{Path, PathBuf};

use consort::checker::Checker;
use consort::config::{Config, Copies, InitFile, LispConfig};
use consort::image::Image;
use consort::image::api::{CheckParams, EvalParams};
use consort::model::check::{CheckMode, CheckReport};
use consort::model::evaluation::EvalOutcome;
use consort::model::image::{ImageEvent, ImageState};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::patience::{AMPLE, soon};
use crate::place::cores;

/// The parameters of an evaluation of `code` in the session `session`, with ample time.
pub fn evaluation(session: &str, code: &str) -> EvalParams {
    EvalParams {
        session: session.into(),
        code: code.into(),
        package: None,
        requires: None,
        capture_time: false,
        timeout: AMPLE,
        origin: None,
        stream: false,
        debug: false,
        threads: false,
        breakpoints: false,
        refer: false,
        whole: false,
        test: None,
        freeze: None,
        redefines: Vec::new(),
        sent: None,
    }
}

/// An image in directories of its own. End it with [`LoneImage::finish`].
pub struct LoneImage {
    /// The handle.
    pub image: Image,
    /// The checker of its copies.
    pub checker: Checker,
    /// The image's unsolicited events.
    pub events: UnboundedReceiver<ImageEvent>,
    dir: TempDir,
}

impl LoneImage {
    /// Starts an image from the user's `sbcl`, without an init file, and waits until it is ready.
    pub async fn start() -> LoneImage {
        LoneImage::with(Copies::Fork).await
    }

    /// Starts an image whose checks work as `copies` says, and waits until it is ready.
    pub async fn with(copies: Copies) -> LoneImage {
        let dir = tempfile::Builder::new().prefix("c-").tempdir().expect("a temporary directory");
        for name in ["private", "work"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory in the test's own");
        }
        let config = LispConfig { init_file: InitFile::None, copies, ..Config::default().lisp };
        let (image, events) =
            Image::start_with_cache(config, &dir.path().join("work"), dir.path().join("private"), cores());
        // A call waits for the image for a limited time, which a busy machine may use up.
        image.start_if_idle();
        let settled = |state: &ImageState| matches!(state, ImageState::Ready { .. } | ImageState::Dead { .. });
        soon(image.watch().wait_for(settled)).await.expect("a state of the image");
        LoneImage { checker: Checker::new(&image), image, events, dir }
    }

    /// The workspace.
    pub fn workspace(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Returns the parameters of a check of a text as a file.
    pub fn params(&self, text: &str, path: Option<&Path>) -> CheckParams {
        let check = Config::default().check;
        CheckParams {
            text: text.into(),
            path: path.map(Path::to_owned),
            mode: CheckMode::File,
            package: None,
            withheld: Vec::new(),
            expected: Default::default(),
            asd_files: Vec::new(),
            notes: false,
            unreachable: false,
            confine: true,
            deadline: AMPLE,
            memory: check.memory,
        }
    }

    /// Checks a text as a file of the workspace.
    pub async fn check(&self, text: &str) -> CheckReport {
        let path = self.workspace().join("checked.lisp");
        self.checker.check(self.params(text, Some(&path))).await.expect("a check answers")
    }

    /// Evaluates.
    pub async fn eval(&self, code: &str) -> EvalOutcome {
        self.image.eval(evaluation("test", code), None).await.expect("an evaluation answers")
    }

    /// Ends the image; fails if it left a file.
    pub async fn finish(self) {
        self.image.shutdown().await;
        let left: Vec<_> = std::fs::read_dir(self.dir.path().join("private"))
            .expect("the directory is there")
            .flatten()
            .map(|entry| entry.path())
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}
