//! The session as the backend of the features: a snapshot of the texts for each request, and the
//! image.

use std::path::PathBuf;

use super::{ClientId, Provenance, Session};
use crate::ide::context::{Backend, Context, Made};
use crate::ide::texts::OpenText;
use crate::image::api::Operation;
use crate::model::image::ImageError;

impl Backend for Session {
    async fn query<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        self.inner.image.query(&operation).await
    }

    fn made(&self, package: &str, name: &str) -> Vec<Made> {
        let made =
            |one: Provenance| Made { sentence: one.sentence(), kind: one.kind, text: one.text, digest: one.digest };
        self.provenance(package, name).into_iter().map(made).collect()
    }

    fn workspace(&self) -> Option<PathBuf> {
        let workspace = Session::workspace(self);
        Some(workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned()))
    }
}

impl Session {
    /// Returns the snapshot for one request of a client: of open files the editor's text
    /// (`client`'s own if several editors have the file open), of others the text on disk.
    pub fn context(&self, client: ClientId) -> impl Future<Output = Context<Session>> + Send + use<> {
        let (backend, open) = (self.clone(), self.open_documents());
        async move {
            let mut open = open.await;
            // The last one takes precedence: the client's own, else one with unsaved work.
            open.sort_by_key(|one| (one.client == client, one.unsaved));
            let text = |one: super::OpenDocument| OpenText {
                uri: one.uri,
                own: one.client == client,
                path: one.path,
                document: one.document,
            };
            Context::new(backend, open.into_iter().map(text).collect())
        }
    }
}
