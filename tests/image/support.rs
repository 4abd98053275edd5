//! An image that one test has for itself.

use std::collections::VecDeque;
use std::panic::Location;
use std::path::PathBuf;

use consort::checker::Checker;
use consort::config::{Config, InitFile, LispConfig};
use consort::image::Image;
use consort::image::api::EvalParams;
use consort::model::evaluation::{EvalOutcome, EvalStatus};
use consort::model::image::{ImageError, ImageEvent, ImageState};
use consort_tests::lone_image::evaluation;
pub(crate) use consort_tests::patience::soon;
use consort_tests::patience::{AMPLE, PATIENCE, alone, comes};
pub(crate) use rustix::process::Signal;
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

/// An image, its directories, and the processes that were seen.
pub(crate) struct Fixture {
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
    LispConfig { heap: 1 << 30, init_file: InitFile::None, ..Config::default().lisp }
}

pub(crate) fn params(session: &str, code: &str, timeout: f64) -> EvalParams {
    EvalParams { timeout, ..evaluation(session, code) }
}

/// Waits until a condition holds that no event announces.
#[track_caller]
pub(crate) fn found<T>(look: impl Fn() -> Option<T>) -> impl Future<Output = T> {
    let place = Location::caller();
    async move { comes(&format!("what {place} looks for"), async || look()).await }
}

/// The same, without a result.
#[track_caller]
pub(crate) fn until(is_so: impl Fn() -> bool) -> impl Future<Output = ()> {
    found(move || is_so().then_some(()))
}

/// Returns true if a process of that number exists.
pub(crate) fn lives(pid: u32) -> bool {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::test_kill_process(pid).is_ok()
}

pub(crate) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        Fixture::with(config(), cache())
    }

    pub(crate) fn with(config: LispConfig, cache: PathBuf) -> Fixture {
        let (workspace, private) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (image, events) = Image::start_with_cache(config, workspace.path(), private.path().to_owned(), cache);
        Fixture { checker: Checker::new(&image), image, events, workspace, private, pids: Vec::new() }
    }

    /// Waits until the image is ready; returns its process.
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
        self.try_eval(code, AMPLE).await.unwrap()
    }

    /// Waits until so many evaluations run.
    pub(crate) async fn runs(&self, number: usize) {
        comes(&format!("{number} running evaluations"), async || {
            (soon(self.image.facts()).await.unwrap().running.len() == number).then_some(())
        })
        .await;
    }

    pub(crate) async fn try_eval(&self, code: &str, timeout: f64) -> Result<EvalOutcome, ImageError> {
        soon(self.image.eval(params("test", code, timeout), None)).await
    }

    /// Evaluates code that must not fail; returns its values.
    pub(crate) async fn values(&self, code: &str) -> Vec<String> {
        let outcome = self.eval(code).await;
        assert_eq!(outcome.status, EvalStatus::Ok, "{code}: {outcome:?}");
        outcome.values.into_iter().map(|value| value.text).collect()
    }

    /// The next event that `pick` wants; those before are dropped.
    pub(crate) async fn event<T>(&mut self, mut pick: impl FnMut(ImageEvent) -> Option<T>) -> T {
        let until = tokio::time::Instant::now() + PATIENCE;
        let mut before = VecDeque::new();
        loop {
            let Ok(Some(event)) = tokio::time::timeout_at(until, self.events.recv()).await else {
                panic!("waited in vain for an event of the image; before it came {before:#?}\n{}", alone());
            };
            if let ImageEvent::State(ImageState::Ready { pid, .. }) = &event
                && !self.pids.contains(pid)
            {
                self.pids.push(*pid);
            }
            before.push_back(format!("{:.300}", format!("{event:?}")));
            before.drain(..before.len().saturating_sub(20));
            if let Some(picked) = pick(event) {
                return picked;
            }
        }
    }

    /// Ends the image, and checks that no process and no file is left.
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
        // Tasks that the end of the image ends remove the last directories.
        comes("the image's directory to be empty", async || {
            let left = std::fs::read_dir(self.private.path()).unwrap().count();
            (left == 0).then_some(())
        })
        .await;
    }
}

impl Fixture {
    /// The image was wanted only to be started.
    pub(crate) async fn close_when_ready(mut self) {
        self.ready().await;
        self.close().await;
    }
}
