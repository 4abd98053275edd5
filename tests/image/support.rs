//! An image of a test's own.

use std::path::PathBuf;
use std::time::Duration;

use consort::checker::Checker;
use consort::config::{Copies, InitFile, LispConfig};
use consort::image::Image;
use consort::image::api::EvalParams;
use consort::model::evaluation::{EvalOutcome, EvalStatus};
use consort::model::image::{ImageError, ImageEvent, ImageState};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

/// No step of a test takes longer, not even the build of a core beside other tests; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(300);

/// An image, its directories, and the processes that were seen.
pub(crate) struct House {
    pub(crate) image: Image,
    pub(crate) checker: Checker,
    pub(crate) events: UnboundedReceiver<ImageEvent>,
    pub(crate) workspace: TempDir,
    pub(crate) private: TempDir,
    pub(crate) pids: Vec<u32>,
}

/// The cache that the tests share, so that the core is built once.
pub(crate) fn cache() -> PathBuf {
    consort_tests::place::cores()
}

/// A plain `sbcl` without an init file.
pub(crate) fn config() -> LispConfig {
    LispConfig { command: vec!["sbcl".into()], heap: 1 << 30, init_file: InitFile::None, copies: Copies::Fork }
}

pub(crate) fn params(session: &str, code: &str, timeout: f64) -> EvalParams {
    EvalParams {
        session: session.into(),
        code: code.into(),
        package: None,
        capture_time: false,
        timeout,
        origin: None,
        stream: false,
    }
}

/// Wait for something that must happen.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it took too long")
}

/// Wait for what nothing tells of.
pub(crate) async fn found<T>(look: impl Fn() -> Option<T>) -> T {
    soon(async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

/// The same, where nothing is to be had of it.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    found(|| is_so().then_some(())).await;
}

/// Whether a process of that number is there.
pub(crate) fn lives(pid: u32) -> bool {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::test_kill_process(pid).is_ok()
}

pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

impl House {
    pub(crate) fn new() -> House {
        House::with(config(), cache())
    }

    pub(crate) fn with(config: LispConfig, cache: PathBuf) -> House {
        let (workspace, private) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (image, events) = Image::start_with_cache(config, workspace.path(), private.path().to_owned(), cache);
        House { checker: Checker::new(&image), image, events, workspace, private, pids: Vec::new() }
    }

    /// Wait until it is ready; its process.
    pub(crate) async fn ready(&mut self) -> u32 {
        let mut watch = self.image.watch();
        let settled =
            |state: &ImageState| matches!(state, ImageState::Ready { .. } | ImageState::Dead { is_final: true, .. });
        let state = soon(watch.wait_for(settled)).await.unwrap().clone();
        match state {
            ImageState::Ready { pid, .. } => {
                if !self.pids.contains(&pid) {
                    self.pids.push(pid);
                }
                pid
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn eval(&self, code: &str) -> EvalOutcome {
        self.try_eval(code, 30.0).await.unwrap()
    }

    pub(crate) async fn try_eval(&self, code: &str, timeout: f64) -> Result<EvalOutcome, ImageError> {
        soon(self.image.eval(params("test", code, timeout), None)).await
    }

    /// Evaluate what must work; its values.
    pub(crate) async fn values(&self, code: &str) -> Vec<String> {
        let outcome = self.eval(code).await;
        assert_eq!(outcome.status, EvalStatus::Ok, "{code}: {outcome:?}");
        outcome.values.into_iter().map(|value| value.text).collect()
    }

    /// The next event that `pick` wants.
    pub(crate) async fn event<T>(&mut self, mut pick: impl FnMut(ImageEvent) -> Option<T>) -> T {
        soon(async {
            loop {
                let event = self.events.recv().await.expect("the image volunteers nothing more");
                if let ImageEvent::State(ImageState::Ready { pid, .. }) = &event
                    && !self.pids.contains(pid)
                {
                    self.pids.push(*pid);
                }
                if let Some(picked) = pick(event) {
                    return picked;
                }
            }
        })
        .await
    }

    /// End it: no process, no file.
    pub(crate) async fn close(mut self) {
        while let Ok(event) = self.events.try_recv() {
            if let ImageEvent::State(ImageState::Ready { pid, .. }) = event {
                self.pids.push(pid);
            }
        }
        soon(self.image.shutdown()).await;
        assert!(!self.pids.is_empty());
        for pid in self.pids {
            assert!(!lives(pid), "process {pid} is left");
        }
        let left: Vec<_> =
            std::fs::read_dir(self.private.path()).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl House {
    /// Only its start was wanted.
    pub(crate) async fn close_when_ready(mut self) {
        self.ready().await;
        self.close().await;
    }
}
