//! The input of a feature: a snapshot of the open texts, and a way to query the image.
//!
//! A front end makes one [`Context`] for a request, calls the feature's function, and converts the
//! result. A feature that needs no text takes any [`Backend`]. Tests pass a fake one
//! (`ide/fake.rs`).

use std::path::PathBuf;
use std::sync::Arc;

use ropey::Rope;

use super::index::{FileEntry, Snapshot};
use super::name_index::NameIndex;
use super::places::Target;
use super::texts::{OpenText, Texts};
use crate::image::api::Operation;
use crate::image::api::symbols::{Symbol, SymbolAnswer, SymbolPart};
use crate::model::image::ImageError;
use crate::text::Span;
use crate::text::document::Document;
use crate::text::forms::package_at;

/// The source of all facts that are not in the texts. The session implements it. Tests use a fake.
pub trait Backend: Send + Sync {
    /// Runs a query in the image. A query runs none of the user's code and changes nothing.
    ///
    /// # Errors
    /// There is no image, the image does not answer, or it refuses the query.
    fn query<O: Operation>(&self, operation: O) -> impl Future<Output = Result<O::Answer, ImageError>> + Send;

    /// Returns the index of the image's names as the host has it now, and true if it includes all
    /// changes that the host knows. Never waits for the image.
    fn names(&self) -> (Arc<NameIndex>, bool);

    /// Returns the definitions of a symbol that were made through Consort, by its home package and
    /// name, the latest first.
    fn definitions_on_record(&self, package: &str, name: &str) -> Vec<RecordedDefinition>;

    /// Returns the source files of these definitions without symbolic links, the latest first, and
    /// `None` for those without a file. Is cheaper than [`Backend::definitions_on_record`].
    fn files_on_record(&self, package: &str, name: &str) -> Vec<Option<PathBuf>> {
        self.definitions_on_record(package, name).into_iter().map(|one| one.file).collect()
    }

    /// Returns the index of the workspace's texts, updated first, with the current open texts.
    fn index(&self, open: Vec<OpenText>) -> impl Future<Output = Snapshot> + Send;

    /// Returns the index of the workspace's texts as it was made last, which may be old or empty.
    /// Never waits. An old index is updated meanwhile.
    fn last_index(&self, open: &[OpenText]) -> Arc<Snapshot>;

    /// Queries the image about a name as written in `package`.
    ///
    /// # Errors
    /// See [`Backend::query`].
    fn symbol(
        &self,
        name: &str,
        package: Option<&str>,
        want: &[SymbolPart],
    ) -> impl Future<Output = Result<SymbolAnswer, ImageError>> + Send {
        self.query(Symbol::at(name.to_owned(), package.map(str::to_owned), want))
    }

    /// Queries the image as [`Backend::symbol`] does. Without an image, nothing is known of the
    /// name.
    ///
    /// # Errors
    /// There is an image, or one is being started, and it does not answer
    /// ([`ImageError::is_unanswered`]).
    fn symbol_if_any(
        &self,
        name: &str,
        package: Option<&str>,
        want: &[SymbolPart],
    ) -> impl Future<Output = Result<SymbolAnswer, ImageError>> + Send {
        let asked = self.symbol(name, package, want);
        async {
            match asked.await {
                Err(error) if !error.is_unanswered() => Ok(SymbolAnswer::default()),
                answer => answer,
            }
        }
    }

    /// Returns the latest definition of each kind of a known symbol that was made through Consort.
    fn latest_made(&self, known: &SymbolAnswer) -> Vec<RecordedDefinition> {
        let home = known.facts.as_ref().and_then(|facts| Some((facts.package.as_deref()?, &facts.name)));
        let Some((package, name)) = home else { return Vec::new() };
        let mut made = self.definitions_on_record(package, name);
        // The latest of each kind comes first.
        let mut kinds = std::collections::HashSet::new();
        made.retain(|one| kinds.insert(one.kind.clone()));
        made
    }

    /// Returns the provenance of a known symbol for an agent: a line for its latest definition of
    /// each kind. Returns `None` if no definition was made through Consort.
    fn made_by(&self, known: &SymbolAnswer) -> Option<String> {
        let lines: Vec<String> = self.latest_made(known).into_iter().map(|one| one.sentence).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// A definition that was made through Consort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDefinition {
    /// `function`, `setf function`, `macro`, `variable`, ...
    pub kind: String,
    /// The text that tells a method from the others of its generic function, if known
    /// ([`crate::text::recorded_definitions::Definition::method_in`]).
    pub method: Option<String>,
    /// The source file without symbolic links; `None` if there was none.
    pub file: Option<PathBuf>,
    /// The form, clipped.
    pub text: String,
    /// The digest of the top-level form that made the definition, or 0 if it is not known.
    pub digest: u64,
    /// The line in the file, 1-based, if known.
    pub line: Option<usize>,
    /// A sentence for an agent: who, when, and with which operation.
    pub sentence: String,
    /// The maker and the time for a person, such as `in the editor (nvim), today 13:50`.
    pub maker: String,
}

/// The open texts at the time of one request, and the backend for its queries.
#[derive(Debug)]
pub struct Context<B> {
    backend: B,
    open: Vec<OpenText>,
}

impl<B: Backend> Context<B> {
    /// Creates a context with the open texts `open`. If two of them belong to the same file, the
    /// last one counts.
    pub fn new(backend: B, open: Vec<OpenText>) -> Context<B> {
        Context { backend, open }
    }

    /// Returns the backend, for tests.
    #[cfg(test)]
    pub(crate) fn backend(&self) -> &B {
        &self.backend
    }

    /// Returns a document that the client has open.
    pub fn document(&self, uri: &str) -> Option<&Document> {
        self.open.iter().find(|open| open.own && open.uri == uri).map(|open| &open.document)
    }

    /// Returns the index of the workspace's texts, with the current open texts.
    pub async fn texts_index(&self) -> Snapshot {
        self.backend.index(self.open.clone()).await
    }

    /// Returns the index of the workspace's texts as it was made last. Never waits.
    pub fn last_texts_index(&self) -> Arc<Snapshot> {
        self.backend.last_index(&self.open)
    }

    /// Returns the open texts.
    pub fn open(&self) -> impl Iterator<Item = &Document> {
        self.open.iter().map(|open| &open.document)
    }

    /// Returns true if an editor has a file of the index open now.
    pub fn is_open(&self, file: &FileEntry) -> bool {
        self.open.iter().any(|open| open.path.as_ref() == Some(&file.path) || open.uri == file.uri)
    }

    /// Returns the open texts that an index does not have as they are now.
    pub fn open_since<'a>(&'a self, index: &'a Snapshot) -> impl Iterator<Item = &'a Document> {
        let is_indexed = move |open: &OpenText| {
            let indexed = open.path.as_deref().and_then(|path| index.file(path)?.open.as_ref());
            indexed.is_some_and(|indexed| indexed.revision() == open.document.revision())
        };
        self.open.iter().filter(move |open| !is_indexed(open)).map(|open| &open.document)
    }

    /// Returns the documents other than `uri` that the client has open, each with its URI.
    pub fn other_documents(&self, uri: &str) -> Vec<(String, Document)> {
        let others = self.open.iter().filter(|open| open.own && open.uri != uri);
        others.map(|open| (open.uri.clone(), open.document.clone())).collect()
    }

    /// Returns the texts of files as they are now: open ones from the snapshot, others from the
    /// disk.
    pub fn texts(&self) -> Texts {
        Texts::of(self.open.clone())
    }
}

impl<B: Backend> Backend for Context<B> {
    async fn query<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        self.backend.query(operation).await
    }

    fn names(&self) -> (Arc<NameIndex>, bool) {
        self.backend.names()
    }

    fn definitions_on_record(&self, package: &str, name: &str) -> Vec<RecordedDefinition> {
        self.backend.definitions_on_record(package, name)
    }

    fn files_on_record(&self, package: &str, name: &str) -> Vec<Option<PathBuf>> {
        self.backend.files_on_record(package, name)
    }

    async fn index(&self, open: Vec<OpenText>) -> Snapshot {
        self.backend.index(open).await
    }

    fn last_index(&self, open: &[OpenText]) -> Arc<Snapshot> {
        self.backend.last_index(open)
    }
}

/// A position in an open document, with the context of the request.
#[derive(Debug)]
pub struct Cursor<B> {
    /// The texts and the image.
    pub context: Context<B>,
    /// The document's URI, as the client named it.
    pub uri: String,
    /// The document.
    pub document: Document,
    /// The position, in characters.
    pub offset: usize,
}

impl<B: Backend> Cursor<B> {
    /// Returns the position in a document that the client has open, or `None` if it is not open.
    /// `offset` finds the position in the document's text.
    pub fn new(context: Context<B>, uri: &str, offset: impl FnOnce(&Rope) -> usize) -> Option<Cursor<B>> {
        let document = context.document(uri)?.clone();
        Some(Cursor { offset: offset(document.text()), uri: uri.to_owned(), document, context })
    }

    /// Returns a span of the document.
    pub fn target(&self, span: Span) -> Target {
        Target { uri: self.uri.clone(), text: Some(self.document.text().clone()), span }
    }

    /// Returns the package in force at the position, if the document specifies one.
    pub fn package(&self) -> Option<String> {
        package_at(&self.document, self.offset)
    }
}
