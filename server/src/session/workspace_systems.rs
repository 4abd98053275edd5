//! Registration of the workspace's systems in the image, so that plain `asdf:load-system` finds
//! them. It happens when the image is ready, and before code that may load a system.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::ide::asd::AsdFiles;
use crate::image::Image;
use crate::image::api::package_contents::WorkspaceSystems;
use crate::locked::lock;
use crate::model::image::ImageState;

/// The longest wait for an image that is starting.
const STARTING: Duration = Duration::from_secs(120);

/// The files registered in an image.
#[derive(Debug, Clone)]
pub(super) struct RegisteredSystems {
    asd: Arc<AsdFiles>,
    root: PathBuf,
    registered: Arc<Mutex<Registered>>,
}

#[derive(Debug, Default)]
struct Registered {
    /// The image's own id.
    image: String,
    files: Option<Vec<PathBuf>>,
}

impl Registered {
    /// Notes that an image was told of the files. `before` and `after` are the image's states at
    /// the query and after it. If the image was replaced meanwhile, the new one may not know the
    /// files.
    fn note(&mut self, before: &ImageState, after: &ImageState, files: Vec<PathBuf>) {
        if let Some(id) = before.image().filter(|id| after.image() == Some(id)) {
            (self.image, self.files) = (id.to_owned(), Some(files));
        }
    }
}

impl RegisteredSystems {
    pub(super) fn new(asd: Arc<AsdFiles>, root: PathBuf) -> RegisteredSystems {
        RegisteredSystems { asd, root, registered: Arc::default() }
    }

    /// Registers the workspace's files in the image, unless they are known there. Starts an image
    /// that nothing has needed yet, and waits up to [`STARTING`] for it. Does nothing if there is
    /// no image then. `code` is the code that is evaluated next. If it may load a system, the files
    /// are listed anew.
    pub(super) async fn register(&self, image: &Image, code: &str) {
        let again = loads(code);
        if self.knows(image) && !again {
            return;
        }
        let asd = self.asd.clone();
        let listed = tokio::task::spawn_blocking(move || {
            if again {
                asd.forget();
            }
            asd.all()
        });
        let Ok(asd_files) = listed.await else { return };
        if again && self.knows(image) && self.lock().files.as_ref() == Some(&asd_files) {
            return;
        }
        // The evaluation that follows waits for the image as well.
        image.start_if_idle();
        let mut state = image.watch();
        let settled = state.wait_for(|state| !matches!(state, ImageState::Starting { .. }));
        let _ = crate::steady::timeout(STARTING, settled).await;
        let told = WorkspaceSystems { asd_files: asd_files.clone(), root: self.root.clone() };
        let asked = image.state();
        match image.query(&told).await {
            Ok(_) => self.lock().note(&asked, &image.state(), asd_files),
            Err(error) => tracing::debug!(%error, "the image was not told of the workspace's systems"),
        }
    }

    fn knows(&self, image: &Image) -> bool {
        let registered = self.lock();
        image.state().image() == Some(registered.image.as_str()) && registered.files.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        lock(&self.registered)
    }
}

/// Returns true for code that may load a system, as judged by the names in it.
fn loads(code: &str) -> bool {
    let code = code.to_ascii_lowercase();
    ["load", "asdf", "require", "system"].iter().any(|word| code.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_began_during_the_query_was_not_told() {
        let image = |id: &str| ImageState::Ready { pid: 1, image: id.into(), lisp: String::new() };
        let mut registered = Registered::default();
        registered.note(&image("a"), &image("b"), Vec::new());
        registered.note(&ImageState::Idle, &image("b"), Vec::new());
        assert_eq!((registered.image.as_str(), &registered.files), ("", &None));
        registered.note(&image("b"), &image("b"), Vec::new());
        assert_eq!((registered.image.as_str(), registered.files), ("b", Some(Vec::new())));
    }
}
