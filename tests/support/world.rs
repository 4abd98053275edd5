//! A workspace, an image and a session for one test.

use std::path::PathBuf;
use std::time::Duration;

use consort::config::Config;
use consort::image::Image;
use consort::model::image::ImageState;
use consort::session::Session;

use crate::patience::{AMPLE, soon};
use crate::place::cores;

/// A workspace in a temporary directory, with an image and a session over it.
pub struct World {
    /// The session.
    pub session: Session,
    /// The session's image.
    pub image: Image,
    directory: tempfile::TempDir,
}

impl World {
    /// Creates a world with these files in it.
    pub async fn with(files: &[(&str, &str)]) -> World {
        World::configured(files, Config::default()).await
    }

    /// [`World::with`] with settings. The user's init file is not loaded: a test's image is the
    /// same everywhere. Evaluations and checks have the time that they need on a slow machine.
    pub async fn configured(files: &[(&str, &str)], mut config: Config) -> World {
        config.lisp.init_file = consort::config::InitFile::None;
        config.eval_timeout = Duration::from_secs_f64(AMPLE);
        config.check.deadline = Duration::from_secs_f64(AMPLE);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let workspace = directory.path().join("workspace");
        let private = directory.path().join("private");
        std::fs::create_dir_all(&workspace).expect("a workspace");
        std::fs::create_dir(&private).expect("a private directory");
        for (name, text) in files {
            let path = workspace.join(name);
            std::fs::create_dir_all(path.parent().expect("it is below the workspace")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        }
        let (image, events) = Image::start_with_cache(config.lisp.clone(), &workspace, private, cores());
        let session = Session::start(config, workspace, image.clone(), events);
        World { session, image, directory }
    }

    /// [`World::with`] once its image is ready.
    pub async fn ready(files: &[(&str, &str)]) -> World {
        let world = World::with(files).await;
        world.is_ready().await;
        world
    }

    /// Waits until the image is ready; returns its process id.
    pub async fn is_ready(&self) -> u32 {
        let mut watch = self.image.watch();
        let ready =
            watch.wait_for(|state| matches!(state, ImageState::Ready { .. } | ImageState::Dead { is_final: true, .. }));
        match soon(ready).await.expect("it is supervised").clone() {
            ImageState::Ready { pid, .. } => pid,
            other => panic!("not ready: {other:?}"),
        }
    }

    /// Waits until the image is ready, and kills it.
    pub async fn kill_image(&self) {
        let pid = rustix::process::Pid::from_raw(self.is_ready().await.cast_signed()).expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("the image runs");
    }

    /// A file's path in the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("workspace").join(name)
    }

    /// The directories of copies of the image that run, or have not been removed.
    pub fn scratch_directories(&self) -> Vec<PathBuf> {
        let private = std::fs::read_dir(self.directory.path().join("private")).expect("the private directory");
        let is_scratch = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("c-"));
        private.flatten().map(|entry| entry.path()).filter(is_scratch).collect()
    }

    /// The document's URI.
    pub fn uri(&self, name: &str) -> String {
        consort::session::uri_of_path(&self.path(name))
    }

    /// Ends the image, and checks that its process is gone.
    pub async fn end(self) {
        let pid = match self.image.state() {
            ImageState::Ready { pid, .. } => Some(pid),
            _ => None,
        };
        soon(self.image.shutdown()).await;
        if let Some(pid) = pid.and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed())) {
            assert!(rustix::process::test_kill_process(pid).is_err(), "the image's process is still there");
        }
    }
}
