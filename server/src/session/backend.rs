//! The session as the backend of the features, with a snapshot of the texts for each request, and
//! the image.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{CheckRequest, ClientId, Provenance, Session};
use crate::ide::context::{Backend, Context, RecordedDefinition};
use crate::ide::index::Snapshot;
use crate::ide::name_index::NameIndex;
use crate::ide::refactor::verification::Compiler;
use crate::ide::rename::Expander;
use crate::ide::texts::OpenText;
use crate::image::api::Operation;
use crate::image::api::expand::{CompareExpansions, Compared};
use crate::model::check::{CheckMode, CheckReport};
use crate::model::diagnostic::Diagnostic;
use crate::model::image::{ImageError, ImageState};
use crate::text::document::Document;

impl Backend for Session {
    async fn query<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        self.inner.image.query(&operation).await
    }

    fn names(&self) -> (Arc<NameIndex>, bool) {
        self.inner.names.now()
    }

    fn definitions_on_record(&self, package: &str, name: &str) -> Vec<RecordedDefinition> {
        let now = std::time::SystemTime::now();
        let made = |one: Provenance| RecordedDefinition {
            sentence: one.sentence(),
            maker: one.maker(now),
            line: one.line,
            kind: one.kind,
            method: one.method,
            file: one.real,
            text: one.text,
            digest: one.digest,
        };
        self.provenance(package, name).into_iter().map(made).collect()
    }

    fn files_on_record(&self, package: &str, name: &str) -> Vec<Option<PathBuf>> {
        self.inner.provenance.files_of(package, name)
    }

    async fn index(&self, open: Vec<OpenText>) -> Snapshot {
        let (store, root) = (self.inner.index.clone(), self.inner.workspace.clone());
        super::requests::compute_all(move || store.refreshed(&root, open)).await
    }

    fn last_index(&self, open: &[OpenText]) -> Arc<Snapshot> {
        let (last, due) = self.inner.index.last();
        if due {
            let (session, open) = (self.clone(), open.to_vec());
            // The task belongs to no request, since the refresh outlives the request that found the
            // index old.
            tokio::spawn(async move { session.index(open).await });
        }
        last
    }
}

impl Session {
    /// Runs a query as [`Backend::query`] does, but waits for an image that is being started.
    pub(super) async fn query_when_ready<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        self.inner.image.query_when_ready(&operation).await
    }

    /// Waits for an image that is being started, for [`EDIT_START_TIMEOUT`] at most, before an edit
    /// for which the image must answer.
    pub async fn wait_for_edit(&self) {
        // An edit that still needs an answer is refused with the reason.
        let _ = crate::steady::timeout(EDIT_START_TIMEOUT, self.image_started()).await;
    }

    /// Starts to keep the index of names up to date. Called when a text is opened.
    pub fn keep_names(&self) {
        let _ = self.inner.names.now();
    }

    /// Returns the snapshot for one request of a client. An open file has the editor's text
    /// (`client`'s own if several editors have the file open), any other file its text on disk.
    pub fn context(&self, client: ClientId) -> impl Future<Output = Context<Session>> + Send + use<> {
        self.context_with(client, self.clone())
    }

    /// Returns a snapshot as [`Session::context`] does, with another backend than the session.
    pub(super) fn context_with<B: Backend>(
        &self,
        client: ClientId,
        backend: B,
    ) -> impl Future<Output = Context<B>> + Send + use<B> {
        let open = self.open_documents();
        async move {
            let mut open = open.await;
            // The last text of a file takes precedence: the client's own, else one with unsaved
            // changes.
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

/// The time for which an edit waits for an image that is being started.
const EDIT_START_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit, in seconds, for expanding the forms of a renaming.
const COMPARE_TIMEOUT_S: f64 = 20.0;

/// The session with the settings of a client, for comparing expansions and compiling texts in
/// copies.
#[derive(Debug, Clone)]
pub struct InCopy {
    /// The session.
    pub session: Session,
    /// The client whose settings apply.
    pub client: ClientId,
}

impl Expander for InCopy {
    async fn compare(&self, comparison: CompareExpansions) -> Result<Compared, ImageError> {
        let operation = |session, timeout| CompareExpansions { session, timeout, ..comparison };
        self.session.run_in_copy(self.client, "renaming", COMPARE_TIMEOUT_S, operation).await
    }
}

impl Compiler for InCopy {
    async fn findings(&self, uri: &str, text: &Document) -> Option<Vec<Diagnostic>> {
        // Without an image nothing is checked, and the published findings may be outdated.
        if !matches!(self.session.image_state(), ImageState::Ready { .. }) {
            return None;
        }
        let snapshot = self.session.snapshot(self.client, uri, true).await?;
        (snapshot.text == *text.text()).then_some(snapshot.items)
    }

    async fn compile(&self, path: Option<PathBuf>, text: String) -> Result<CheckReport, ImageError> {
        let request = CheckRequest { text, path, mode: CheckMode::File, package: None, timeout: None };
        self.session.check(self.client, request).await
    }
}
