//! Stopped programs, for front ends.

use tokio::sync::{broadcast, watch};

use super::Session;
use crate::image::StopEvent;
use crate::image::api::Operation;
use crate::model::image::{ImageError, ImageState};

impl Session {
    /// Returns the events of stops from now on, of all clients.
    pub fn stop_events(&self) -> broadcast::Receiver<StopEvent> {
        self.inner.image.stop_events()
    }

    /// Returns the evaluations that run, as the image tells them; none while there is no image.
    ///
    /// # Errors
    /// Fails when the image does not answer.
    pub async fn running_evaluations(&self) -> Result<Vec<serde_json::Value>, ImageError> {
        if !matches!(self.image_state(), ImageState::Ready { .. }) {
            return Ok(Vec::new());
        }
        Ok(self.inner.image.facts().await?.running)
    }

    /// Returns the image's state, to wait on.
    pub fn watch_image(&self) -> watch::Receiver<ImageState> {
        self.inner.image.watch()
    }

    /// Runs an operation that sets breakpoints: it takes as long as the user's macros take.
    pub async fn set_breakpoints<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        self.inner.image.at_stop(&operation).await
    }

    /// Runs an operation that a stopped thread serves; the image limits its time. Dropping the
    /// future interrupts code that runs in a frame.
    pub async fn at_stop<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        self.inner.image.at_stop(&operation).await
    }
}
