//! The texts that a feature looks into: as they are in the editors, and on disk.

use super::{ClientId, Session, uri_of_path};
use crate::ide::texts::Texts;

impl Session {
    /// The texts of files as they are now: what is open as it is there (of what several have open, as `client` has it), others from disk.
    pub fn texts(&self, client: ClientId) -> impl Future<Output = Texts> + Send + use<> {
        let open = self.open_documents();
        async move {
            let mut open = open.await;
            // The last one counts: the client's own, else one with unsaved work.
            open.sort_by_key(|one| (one.client == client, one.unsaved));
            Texts::new(open.into_iter().filter_map(|one| Some((one.uri, one.path?, one.document))), uri_of_path)
        }
    }
}
