//! The index of the image's names, kept up to date in the background. Nobody waits for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::ide::name_index::NameIndex;
use crate::image::Image;
use crate::image::api::name_index;
use crate::model::image::{ImageError, ImageState};

/// The pause after a change of the image before the index is updated: changes come in bursts.
const PAUSE: Duration = Duration::from_millis(300);
/// The age at which an index that is used is updated whatever is known of changes.
const OLD: Duration = Duration::from_secs(30);

/// The keeper of the index. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Names {
    image: Image,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    index: Arc<NameIndex>,
    /// The index has been used: before, nothing is kept.
    wanted: bool,
    /// The number of changes of the image so far.
    changes: u64,
    /// The number of changes that the index has.
    has: Option<u64>,
    updated: Option<Instant>,
    running: bool,
}

impl Names {
    pub(super) fn new(image: Image) -> Names {
        Names { image, state: Arc::default() }
    }

    /// Returns the index as it is, and true if it has all changes known of; starts an update
    /// otherwise.
    pub(super) fn now(&self) -> (Arc<NameIndex>, bool) {
        let mut state = self.lock();
        state.wanted = true;
        let current = state.has == Some(state.changes);
        let index = state.index.clone();
        if !current || state.updated.is_none_or(|at| at.elapsed() > OLD) {
            self.update(&mut state, Duration::ZERO);
        }
        (index, current)
    }

    /// Reports that the image may have changed, or is another one.
    pub(super) fn changed(&self) {
        let mut state = self.lock();
        state.changes += 1;
        if state.wanted {
            self.update(&mut state, PAUSE);
        }
    }

    fn update(&self, state: &mut State, pause: Duration) {
        if std::mem::replace(&mut state.running, true) {
            return;
        }
        let names = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            while names.update_once().await {
                tokio::time::sleep(PAUSE).await;
            }
        });
    }

    /// Asks the image; true if it has changed meanwhile.
    async fn update_once(&self) -> bool {
        let (changes, have) = {
            let state = self.lock();
            (state.changes, state.index.digests())
        };
        let told = match self.image.state() {
            // Otherwise the query would start an image that nobody else needs.
            ImageState::Ready { .. } => self.image.query(&name_index::NameIndex { have }).await,
            _ => Err(ImageError::Unavailable("There is no image now.".into())),
        };
        // The old index is a tree of thousands of names: it is dropped here, and not under the
        // lock.
        let (index, answered) = match told {
            Ok(told) => {
                let old = self.lock().index.clone();
                let updated = tokio::task::spawn_blocking(move || old.updated(told)).await;
                (updated.ok().map(Arc::new), true)
            }
            Err(_) => (None, false),
        };
        let mut state = self.lock();
        if let Some(index) = index {
            state.index = index;
            state.has = Some(changes);
        }
        state.updated = Some(Instant::now());
        let again = answered && state.changes != changes;
        state.running = again;
        again
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No field is left half changed between two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
