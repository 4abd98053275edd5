//! Requests of a client to interrupt or end a thread of the image.

use super::{ClientId, Session};
use crate::image::api::browse::{InterruptThread, KillThread, StoppedThread};
use crate::model::image::ImageError;

impl Session {
    /// Interrupts a thread, as Ctrl-C does in a terminal.
    pub fn interrupt_thread(
        &self,
        client: ClientId,
        number: u64,
    ) -> impl Future<Output = Result<StoppedThread, ImageError>> + Send + use<> {
        self.run(client, format!("interrupting thread {number}"), move |_| InterruptThread { number }, None, None)
    }

    /// Ends a thread after it has run its clean-up forms.
    pub fn kill_thread(
        &self,
        client: ClientId,
        number: u64,
    ) -> impl Future<Output = Result<StoppedThread, ImageError>> + Send + use<> {
        self.run(client, format!("ending thread {number}"), move |_| KillThread { number }, None, None)
    }
}
