//! Registration of the workspace's systems in the image before code is evaluated there, so that
//! plain `asdf:load-system` finds them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ide::asd::AsdFiles;
use crate::image::Image;
use crate::image::api::contents::{ForeignSystem, WorkspaceSystems};
use crate::model::evaluation::EvalWarning;
use crate::model::image::ImageState;

/// The longest wait for a starting image.
const STARTING: Duration = Duration::from_secs(120);

/// The files registered in an image, and the systems already reported.
#[derive(Debug, Clone)]
pub(super) struct RegisteredSystems {
    asd: Arc<AsdFiles>,
    registered: Arc<Mutex<Registered>>,
}

#[derive(Debug, Default)]
struct Registered {
    /// The image's own id.
    image: String,
    files: Option<Vec<PathBuf>>,
    /// Systems that were reported as loaded from elsewhere.
    named: HashSet<String>,
}

impl RegisteredSystems {
    pub(super) fn new(asd: Arc<AsdFiles>) -> RegisteredSystems {
        RegisteredSystems { asd, registered: Arc::default() }
    }

    /// Registers the workspace's files in the image, unless they are known there. Does nothing
    /// without an image.
    pub(super) async fn tell(&self, image: &Image, code: &str) {
        if self.knows(image) && !loads(code) {
            return;
        }
        self.ask(image, loads(code)).await;
    }

    /// Returns the warnings after `code`: one for each loaded system with the name of one in the
    /// workspace that was loaded from elsewhere.
    pub(super) async fn foreign(&self, image: &Image, code: &str) -> Vec<EvalWarning> {
        if !loads(code) {
            return Vec::new();
        }
        let foreign = self.ask(image, false).await;
        let mut registered = self.lock();
        let new = foreign.into_iter().filter(|system| registered.named.insert(system.system.clone()));
        new.map(|system| EvalWarning { kind: "WARNING".into(), message: message(&system) }).collect()
    }

    fn knows(&self, image: &Image) -> bool {
        let ImageState::Ready { image, .. } = image.state() else { return false };
        let registered = self.lock();
        registered.image == image && registered.files.is_some()
    }

    /// Registers the files in the image, which may still be starting. `again`: files may have been
    /// created; nothing is done if none was.
    async fn ask(&self, image: &Image, again: bool) -> Vec<ForeignSystem> {
        let asd = self.asd.clone();
        let listed = tokio::task::spawn_blocking(move || {
            if again {
                asd.forget();
            }
            asd.all()
        });
        let Ok(asd_files) = listed.await else { return Vec::new() };
        if again && self.knows(image) && self.lock().files.as_ref() == Some(&asd_files) {
            return Vec::new();
        }
        // The evaluation that follows waits for the image as well.
        image.need();
        let mut state = image.watch();
        let settled = state.wait_for(|state| !matches!(state, ImageState::Starting { .. }));
        let _ = crate::steady::timeout(STARTING, settled).await;
        match image.query(&WorkspaceSystems { asd_files: asd_files.clone() }).await {
            Ok(answer) => {
                if let ImageState::Ready { image: id, .. } = image.state() {
                    let mut registered = self.lock();
                    if registered.image != id {
                        registered.named.clear();
                    }
                    (registered.image, registered.files) = (id, Some(asd_files));
                }
                answer.foreign
            }
            Err(error) => {
                tracing::debug!(%error, "the image was not told of the workspace's systems");
                Vec::new()
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true for code that may load a system, by the names in it.
fn loads(code: &str) -> bool {
    let code = code.to_ascii_lowercase();
    ["load", "asdf", "require", "system"].iter().any(|word| code.contains(word))
}

fn message(system: &ForeignSystem) -> String {
    format!(
        "The loaded system {} is {}, not the workspace's {}. To load that one: (asdf:load-asd {:?}), then (asdf:load-system {:?} :force t).",
        system.system, system.file, system.workspace, system.workspace, system.system
    )
}
