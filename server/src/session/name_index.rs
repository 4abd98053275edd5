//! The index of the image's names, which is updated in the background. No caller waits for it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::ide::name_index::NameIndex;
use crate::image::Image;
use crate::image::api::name_index;
use crate::locked::lock;
use crate::model::image::{ImageError, ImageState};

/// The pause after a change of the image before the index is updated, since changes come in bursts.
const UPDATE_DELAY: Duration = Duration::from_millis(300);
/// The longest time for which an update waits for the end of a burst.
const MAX_BURST_WAIT: Duration = Duration::from_secs(3);
/// The minimum pause between two updates, up to [`MAX_BURST_WAIT`], as a multiple of the last
/// update's duration. It limits the share of the image's time that the index takes during endless
/// changes.
const PAUSE_FACTOR: u32 = 50;
/// The age at which an index is updated when it is used, even without a known change.
const MAX_INDEX_AGE: Duration = Duration::from_secs(30);

/// The owner of the index. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Names {
    image: Image,
    state: Arc<Mutex<State>>,
    /// Notified when an outdated index is used. An update that waits for the end of a burst then
    /// begins at once.
    asked: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    index: Arc<NameIndex>,
    /// True if the index has been used. Changes start no update before that.
    wanted: bool,
    /// The number of changes of the image so far.
    changes: u64,
    /// The value of `changes` at the state of the image that the index includes.
    has: Option<u64>,
    /// The time of the last known change.
    changed: Option<Instant>,
    updated: Option<Instant>,
    /// The duration of the last update.
    took: Duration,
    running: bool,
}

impl Names {
    pub(super) fn new(image: Image) -> Names {
        Names { image, state: Arc::default(), asked: Arc::default() }
    }

    /// Returns the current index, and true if it includes all known changes. Starts an update if it
    /// does not, or is older than [`MAX_INDEX_AGE`].
    pub(super) fn now(&self) -> (Arc<NameIndex>, bool) {
        let mut state = self.lock();
        state.wanted = true;
        let current = state.has == Some(state.changes);
        let index = state.index.clone();
        if !current {
            self.asked.notify_waiters();
        }
        if !current || state.updated.is_none_or(|at| at.elapsed() > MAX_INDEX_AGE) {
            self.update(&mut state, false);
        }
        (index, current)
    }

    /// Reports that the image may have changed, or is another one.
    pub(super) fn changed(&self) {
        let mut state = self.lock();
        state.changes += 1;
        state.changed = Some(Instant::now());
        if state.wanted {
            self.update(&mut state, true);
        }
    }

    /// Starts an update unless one is running. If `settled` is true, the update waits until the
    /// image has not changed for a while.
    fn update(&self, state: &mut State, settled: bool) {
        if std::mem::replace(&mut state.running, true) {
            return;
        }
        let names = self.clone();
        tokio::spawn(async move {
            if settled {
                names.settled_or_asked().await;
            }
            while names.update_once().await {
                names.settled_or_asked().await;
            }
        });
    }

    async fn settled_or_asked(&self) {
        tokio::select! {
            () = self.wait_until_settled() => {}
            () = self.asked.notified() => {}
        }
    }

    /// Waits until the image has not changed for a while, or for as long as a burst may last.
    async fn wait_until_settled(&self) {
        let (took, began) = (self.lock().took, Instant::now());
        tokio::time::sleep(UPDATE_DELAY.max((took * PAUSE_FACTOR).min(MAX_BURST_WAIT))).await;
        while began.elapsed() < MAX_BURST_WAIT {
            let quiet = self.lock().changed.map_or(UPDATE_DELAY, |changed| changed.elapsed());
            if quiet >= UPDATE_DELAY {
                return;
            }
            tokio::time::sleep(UPDATE_DELAY - quiet).await;
        }
    }

    /// Updates the index from the image. Returns true if the image has changed meanwhile.
    async fn update_once(&self) -> bool {
        let began = Instant::now();
        let (changes, have) = {
            let state = self.lock();
            (state.changes, state.index.digests())
        };
        let indexed = match self.image.state() {
            // Without an image, the query would start one that nobody else needs.
            ImageState::Ready { .. } => self.image.query(&name_index::NameIndex { have }).await,
            _ => Err(ImageError::Unavailable("There is no image now.".into())),
        };
        // The old index is a tree of thousands of names, so it is dropped here and not while the
        // lock is held.
        let (index, answered) = match indexed {
            Ok(indexed) => {
                let old = self.lock().index.clone();
                let updated = tokio::task::spawn_blocking(move || old.updated(indexed)).await;
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
        state.took = began.elapsed();
        let again = answered && state.changes != changes;
        state.running = again;
        again
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic leaves no field half changed.
        lock(&self.state)
    }
}
