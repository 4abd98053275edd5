//! A fake backend for the tests of features: an image that answers from a table, in the format of
//! docs/wire.md, and texts with a cursor.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use super::context::{Backend, Context, Cursor, RecordedDefinition};
use super::index::{FileEntry, Snapshot};
use super::name_index::NameIndex;
use super::places::Target;
use super::texts::OpenText;
use crate::image::api::Operation;
use crate::model::image::ImageError;
use crate::text::document::Document;
use crate::text::position::line_column;

/// The mark of the cursor in a text.
const CURSOR: char = '‸';

/// A fake image with the answers that a test gives it.
#[derive(Debug, Default)]
pub(crate) struct FakeImage {
    /// The answers by operation and name.
    answers: HashMap<(&'static str, String), Value>,
    made: Vec<RecordedDefinition>,
    names: Arc<NameIndex>,
    /// The error of each query, if the image does not answer.
    error: Option<ImageError>,
    files: Vec<OpenText>,
    closed: Vec<Arc<FileEntry>>,
    asked: Mutex<Vec<String>>,
    incomplete: Option<String>,
}

impl FakeImage {
    /// Creates an image without answers.
    pub(crate) fn empty() -> FakeImage {
        FakeImage::default()
    }

    /// Creates a backend without an image.
    pub(crate) fn absent() -> FakeImage {
        FakeImage { error: Some(ImageError::Unavailable("There is no image.".into())), ..FakeImage::default() }
    }

    /// Creates an image that does not answer.
    pub(crate) fn busy() -> FakeImage {
        FakeImage { error: Some(ImageError::Busy("The Lisp image did not answer.".into())), ..FakeImage::default() }
    }

    /// Creates an image that is being started.
    pub(crate) fn starting() -> FakeImage {
        let error = ImageError::Starting("The Lisp image is starting (restarting).".into());
        FakeImage { error: Some(error), ..FakeImage::default() }
    }

    /// Makes the index of the workspace's texts incomplete.
    pub(crate) fn incomplete(self, why: &str) -> FakeImage {
        FakeImage { incomplete: Some(why.into()), ..self }
    }

    /// Makes a symbol known. `answer` is the answer to `symbol`, with all parts that a query may
    /// want. A name with `PACKAGE::` before it is known in that package only.
    pub(crate) fn symbol(self, name: &str, answer: Value) -> FakeImage {
        self.answer("symbol", name, answer)
    }

    /// Makes a function known by its name, its lambda list and its documentation.
    pub(crate) fn function(self, name: &str, parameters: &[&str], documentation: &str) -> FakeImage {
        let facts = json!({
            "name": name.to_uppercase(), "package": "APP", "external": false, "printed": name,
            "kinds": ["function"], "lambda_list": parameters, "type": null, "value": null, "class": null,
            "documentation": [{"kind": "function", "text": documentation}],
        });
        self.symbol(name, json!({"found": true, "printed": name, "facts": facts}))
    }

    /// Sets the answer to an operation about a name, in the shape of docs/wire.md.
    pub(crate) fn answer(mut self, operation: &'static str, name: &str, answer: Value) -> FakeImage {
        self.answers.insert((operation, name.to_lowercase()), answer);
        self
    }

    /// Sets the index of names, by the packages of an answer to `name-index`.
    pub(crate) fn index(mut self, packages: Value) -> FakeImage {
        let indexed = serde_json::from_value(json!({"packages": packages})).unwrap();
        self.names = Arc::new(NameIndex::default().updated(indexed));
        self
    }

    /// Adds a file of the workspace that is not open.
    pub(crate) fn file(mut self, name: &str, text: &str) -> FakeImage {
        self.files.push(OpenText {
            uri: format!("file:///no/{name}"),
            own: false,
            path: Some(PathBuf::from(format!("/no/{name}"))),
            document: Document::new(text, 1),
        });
        self
    }

    /// Adds a file of the workspace that is on the disk and not open.
    pub(crate) fn closed_file(mut self, path: &Path, text: &str) -> FakeImage {
        let document = Document::new(text, 0);
        let uri = crate::file_uri::uri_of_path(path);
        self.closed.push(Arc::new(FileEntry::of(path.to_owned(), uri, &document, false)));
        self
    }

    /// Returns the queries so far, each as its operation and its parameters.
    pub(crate) fn queries(&self) -> MutexGuard<'_, Vec<String>> {
        self.asked.lock().unwrap()
    }

    /// Adds a definition made through Consort, of any symbol.
    pub(crate) fn definitions_on_record(mut self, kind: &str, sentence: &str) -> FakeImage {
        self.made.push(RecordedDefinition {
            kind: kind.into(),
            method: None,
            file: None,
            text: String::new(),
            digest: 0,
            line: None,
            sentence: sentence.into(),
            maker: "in the editor (nvim), today 13:50".into(),
        });
        self
    }

    /// Sets the source of the definition that was added last.
    pub(crate) fn made_at_line(mut self, file: &str, line: usize) -> FakeImage {
        let last = self.made.last_mut().expect("a definition");
        (last.file, last.line) = (Some(file.into()), Some(line));
        self
    }

    /// Adds a definition with this form, from `/no/a.lisp` and made through Consort, of any symbol.
    pub(crate) fn made_of(mut self, kind: &str, text: &str) -> FakeImage {
        let one = crate::text::recorded_definitions::definitions(text).into_iter().next();
        let (method, digest) = one.map_or((None, 0), |one| (one.method_in("APP"), one.digest));
        let (kind, text, sentence, maker) = (kind.into(), text.into(), String::new(), String::new());
        let (file, line) = (Some("/no/a.lisp".into()), None);
        self.made.push(RecordedDefinition { kind, method, file, text, digest, line, sentence, maker });
        self
    }
}

impl Backend for FakeImage {
    async fn query<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let params = serde_json::to_value(&operation).unwrap();
        self.queries().push(format!("{} {}", O::NAME, serde_json::to_string(&operation).unwrap()));
        let name = ["name", "text", "pattern"].iter().find_map(|key| params[key].as_str()).unwrap_or_default();
        let within = |package: &str| self.answers.get(&(O::NAME, format!("{package}::{name}").to_lowercase()));
        let known = params["package"].as_str().and_then(within);
        // A page after the first one may have an answer of its own.
        let page = || params["start"].as_u64().and_then(|start| self.answers.get(&(O::NAME, start.to_string())));
        let known = known.or_else(page).or_else(|| self.answers.get(&(O::NAME, name.to_lowercase()))).cloned();
        let mut answer = known.unwrap_or_else(|| match O::NAME {
            "symbol" => json!({}),
            "complete" => json!({"items": [], "incomplete": false}),
            "apropos" => json!({"total": 0, "symbols": []}),
            other => panic!("the fake image was not told of {other} {name:?}"),
        });
        if let (Some(want), Some(parts)) = (params["want"].as_array(), answer.as_object_mut()) {
            // As in the image, a part that was not requested is left out.
            let wanted = |part: &str| want.iter().any(|one| one == part || one == "types" && part == "definitions");
            parts.retain(|part, _| {
                matches!(part.as_str(), "found" | "printed" | "features" | "package" | "more_methods") || wanted(part)
            });
        }
        Ok(serde_json::from_value(answer).unwrap())
    }

    fn names(&self) -> (Arc<NameIndex>, bool) {
        (self.names.clone(), true)
    }

    fn definitions_on_record(&self, _: &str, _: &str) -> Vec<RecordedDefinition> {
        self.made.clone()
    }

    async fn index(&self, open: Vec<OpenText>) -> Snapshot {
        let mut index = Snapshot::of_texts(&open);
        index.files.extend(self.closed.iter().cloned());
        index.incomplete.clone_from(&self.incomplete);
        index
    }

    fn last_index(&self, _: &[OpenText]) -> Arc<Snapshot> {
        let mut index = Snapshot::of_texts(&self.files);
        index.files.extend(self.closed.iter().cloned());
        index.files.sort_by(|one, other| one.path.cmp(&other.path));
        // All files on the disk are newer than this index.
        let begun = Some(std::time::SystemTime::UNIX_EPOCH);
        Arc::new(Snapshot { incomplete: self.incomplete.clone(), begun, ..index })
    }
}

/// Returns a definition as the image reports it, in the top-level form number `form` of a file.
pub(crate) fn definition(kind: &str, name: &str, file: &str, form: usize) -> Value {
    json!({"kind": kind, "name": name, "file": format!("/no/{file}"), "form": form})
}

/// Creates the context of a request with these open files, each given by name and text.
pub(crate) fn context(image: FakeImage, files: &[(&str, &str)]) -> Context<FakeImage> {
    let open = files.iter().map(|(name, text)| OpenText {
        uri: format!("file:///no/{name}"),
        own: true,
        path: Some(PathBuf::from(format!("/no/{name}"))),
        document: Document::new(&text.replace(CURSOR, ""), 1),
    });
    Context::new(image, open.collect())
}

/// Returns the cursor in the first of these open files, where the mark `‸` is.
pub(crate) fn cursor(image: FakeImage, files: &[(&str, &str)]) -> Cursor<FakeImage> {
    let (name, text) = files[0];
    let offset = text.chars().position(|char| char == CURSOR).expect("a cursor");
    Cursor::new(context(image, files), &format!("file:///no/{name}"), |_| offset).expect("an open file")
}

/// Runs a feature.
pub(crate) fn run<T>(feature: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(feature)
}

/// Shows the targets, each as its line with carets below the span.
pub(crate) fn shown(targets: &[Target]) -> String {
    if targets.is_empty() {
        return "nothing\n".into();
    }
    let one = |target: &Target| {
        let file = target.uri.rsplit('/').next().unwrap();
        let Some(text) = &target.text else { return format!("{file}, which cannot be read\n") };
        let start = line_column(text, target.span.start);
        let line = text.line(start.line - 1).to_string();
        let (before, under) = (" ".repeat(start.column - 1), "^".repeat(target.span.end - target.span.start));
        format!("{file}:{}\n{}\n{before}{under}\n", start.line, line.trim_end_matches('\n'))
    };
    targets.iter().map(one).collect()
}
