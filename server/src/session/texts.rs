//! The texts that a feature reads: as they are in the editors, and on disk.

use super::{ClientId, Session, uri_of_path};
use crate::ide::texts::Texts;

impl Session {
    /// Returns the current texts of files: of open files the editor's text (`client`'s own if
    /// several editors have the file open), of others the text on disk.
    pub fn texts(&self, client: ClientId) -> impl Future<Output = Texts> + Send + use<> {
        let open = self.open_documents();
        async move {
            let mut open = open.await;
            // The last one takes precedence: the client's own, else one with unsaved work.
            open.sort_by_key(|one| (one.client == client, one.unsaved));
            Texts::new(open.into_iter().filter_map(|one| Some((one.uri, one.path?, one.document))), uri_of_path)
        }
    }
}
