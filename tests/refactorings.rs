//! Refactorings at places drawn in real systems: each result balances, keeps its comments, is
//! undone to the same bytes, and compiles without conditions that were not there before.
//!
//! `REFACTORINGS=50` draws so many of each and hunchentoot's too (some minutes); without it there
//! are a few of each. `REFACTORINGS_SEED` draws others.

#![allow(clippy::print_stdout, reason = "the figures are for a person")]

#[path = "refactorings/imports.rs"]
mod imports;
#[path = "rename/packages.rs"]
mod packages;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, ensure};
use consort::ide::context::{Backend, Context, Cursor, RecordedDefinition};
use consort::ide::format::rules::Bodies;
use consort::ide::index::Snapshot;
use consort::ide::name_index::NameIndex;
use consort::ide::refactor::verification::Compiler;
use consort::ide::refactor::{apply, offers};
use consort::ide::texts::OpenText;
use consort::image::api::Operation;
use consort::model::check::CheckReport;
use consort::model::diagnostic::Diagnostic;
use consort::model::image::ImageError;
use consort::text::document::Document;
use consort::text::forms::package_at;
use consort::text::toplevel::Scan;
use consort::text::tree::{Kind, Tree};
use consort::text::{Span, decode};
use consort_tests::real_files;
use consort_tests::registry::{LIBRARIES, libraries};
use serde_json::json;

/// The macros of the systems, as the image would know them: the arguments before their bodies.
#[derive(Debug, Default, Clone)]
struct Macros(Arc<HashMap<String, Option<usize>>>);

impl Backend for Macros {
    async fn query<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        let params = serde_json::to_value(&operation).unwrap_or_default();
        let names = params["symbols"].as_array().cloned().unwrap_or_default();
        let kind = |name: &serde_json::Value| {
            let body = self.0.get(&name[1].as_str().unwrap_or_default().to_lowercase())?;
            Some(json!({"operator": "macro", "body": body}))
        };
        let kinds: Vec<_> = names.iter().map(kind).collect();
        serde_json::from_value(json!({"kinds": kinds})).map_err(|error| ImageError::Unavailable(error.to_string()))
    }

    fn names(&self) -> (Arc<NameIndex>, bool) {
        (Arc::default(), true)
    }

    fn definitions_on_record(&self, _: &str, _: &str) -> Vec<RecordedDefinition> {
        Vec::new()
    }

    async fn index(&self, open: Vec<OpenText>) -> Snapshot {
        Snapshot::of_texts(&open)
    }

    fn last_index(&self, open: &[OpenText]) -> Arc<Snapshot> {
        Arc::new(Snapshot::of_texts(open))
    }
}

/// The results are compiled later, all in one process.
struct Later;

impl Compiler for Later {
    async fn findings(&self, _: &str, _: &Document) -> Option<Vec<Diagnostic>> {
        None
    }

    async fn compile(&self, _: Option<PathBuf>, _: String) -> Result<CheckReport, ImageError> {
        Err(ImageError::Unavailable("later".into()))
    }
}

/// A result, to be compiled.
struct Job {
    /// The refactoring and its place.
    what: String,
    /// The input of the process.
    lisp: String,
}

/// A string as Lisp reads it.
fn string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn applied(document: &Document, changes: &[(Span, String)]) -> String {
    let mut text = document.text().clone();
    for (span, by) in changes.iter().rev() {
        text.remove(span.start..span.end);
        text.insert(span.start, by);
    }
    text.to_string()
}

/// The changes that take the changes back.
fn inverse(document: &Document, changes: &[(Span, String)]) -> Vec<(Span, String)> {
    let mut moved = 0isize;
    let mut all = Vec::new();
    for (span, by) in changes {
        let start = span.start.saturating_add_signed(moved);
        let count = by.chars().count();
        all.push((Span { start, end: start + count }, document.text().slice(span.start..span.end).to_string()));
        moved += count as isize - (span.end - span.start) as isize;
    }
    all
}

#[tokio::test]
async fn refactorings_of_real_code_compile_as_it_did() -> Result<()> {
    let most: Option<usize> = std::env::var("REFACTORINGS").ok().and_then(|count| count.parse().ok());
    let seed = std::env::var("REFACTORINGS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let wanted = most.unwrap_or(4);
    let mut systems = vec!["alexandria", "cl-ppcre"];
    systems.extend(most.map(|_| "hunchentoot"));
    let mut files = Vec::new();
    for system in &systems {
        let own = real_files::below(&Path::new(LIBRARIES).join(system), &["lisp"]);
        ensure!(!own.is_empty(), "no sources of {system} below {LIBRARIES}: install Debian's package");
        // Other systems' files: tests, and what is for other Lisps.
        files.extend(own.into_iter().filter(|file| {
            let path = file.to_string_lossy();
            !["test", "unicode", "doc", "lispworks", "www"].iter().any(|part| path.contains(part))
        }));
    }
    let mut known = HashMap::new();
    // Lists to be selected, conditionals and bindings, names of variables, heads of lists, and
    // names of classes and methods.
    let mut places: [Vec<(usize, Span)>; 5] = Default::default();
    let mut documents = Vec::new();
    for file in &files {
        let text = decode(std::fs::read(file)?);
        let tree = Tree::parse(&text);
        known.extend(Bodies::of(&tree).own().map(|(name, body)| (name.to_owned(), body)));
        let document = Document::new(&text, 1);
        for id in tree.ids().skip(1).filter(|id| tree.node(*id).kind == Kind::List) {
            let node = tree.node(id);
            let at = |byte: usize| document.text().byte_to_char(byte);
            let number = documents.len();
            places[0].push((number, Span { start: at(node.start), end: at(node.end) }));
            let cursor = |byte: usize| (number, Span { start: at(byte), end: at(byte) });
            places[3].push(cursor(node.inner));
            match tree.operator(id).as_deref() {
                Some("if" | "when" | "unless" | "cond") => places[1].push(cursor(node.start + 1)),
                Some("let" | "let*") => {
                    places[1].push(cursor(node.start + 1));
                    let bindings = tree.elements(id).nth(1).map(|list| tree.element_list(list)).unwrap_or_default();
                    let lists = bindings.iter().filter(|one| tree.node(**one).kind == Kind::List);
                    places[2].extend(lists.map(|one| cursor(tree.node(*one).start + 1)));
                }
                Some("defclass" | "defstruct" | "defmethod") => places[4].push(cursor(node.start + 1)),
                _ => {}
            }
        }
        documents.push((file.clone(), document));
    }
    let backend = Macros(Arc::new(known));
    let mut drawn_places = Vec::new();
    for kind in &mut places {
        random.shuffle(kind);
        drawn_places.extend(kind.iter().copied().take(wanted * 40));
    }
    let mut drawn: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
    let mut jobs = Vec::new();
    for (number, selection) in drawn_places {
        let (file, document) = &documents[number];
        let uri = consort::file_uri::uri_of_path(file);
        let open = OpenText { uri: uri.clone(), own: true, path: Some(file.clone()), document: document.clone() };
        let cursor = Cursor::new(Context::new(backend.clone(), vec![open]), &uri, |_| selection.start);
        let Some(cursor) = cursor else { continue };
        let Some(package) = package_at(document, selection.start) else { continue };
        for offer in offers(&cursor, selection).await {
            let (made, refused) = drawn.entry(offer.id).or_default();
            if offer.refused.is_some() {
                *refused += 1;
                continue;
            }
            if *made >= wanted {
                continue;
            }
            let done = match apply(&cursor, selection, offer.id, &Later).await {
                Ok(done) => done,
                Err(_) => {
                    *refused += 1;
                    continue;
                }
            };
            *made += 1;
            let what =
                format!("{} at {}:{}", offer.id, file.display(), document.text().char_to_line(selection.start) + 1);
            let changes: Vec<(Span, String)> =
                done.files[0].changes.iter().map(|change| (change.span, change.by.clone())).collect();
            let new = applied(document, &changes);
            let scan = Scan::of(&new);
            ensure!(scan.broken().next().is_none(), "{what}: broken\n{new}");
            let back = inverse(document, &changes);
            let after = Document::new(&new, 1);
            ensure!(*document.text() == applied(&after, &back).as_str(), "{what}: not undone to the same bytes");
            let form = document.scan().form_at(selection.start).map(|form| form.span);
            let Some(form) = form else { continue };
            // The text before and behind the form is as it was.
            let all = document.text().len_chars();
            let first = changes.iter().map(|(span, _)| span.start).min().unwrap_or(0).min(form.start);
            let behind = all - changes.iter().map(|(span, _)| span.end).max().unwrap_or(0).max(form.end);
            let text: Vec<char> = new.chars().collect();
            let (old, new): (String, String) = (
                document.text().slice(form.start..form.end).to_string(),
                text[first..text.len() - behind].iter().collect(),
            );
            let names: Vec<String> = new
                .lines()
                .filter(|_| matches!(offer.id, "extract-function" | "local-to-definition"))
                .take(1)
                .filter_map(|line| line.split_whitespace().nth(1).map(string))
                .collect();
            let lisp = format!("({} {} {} ({}))", string(&package), string(&old), string(&new), names.join(" "));
            jobs.push(Job { what, lisp });
        }
    }
    let directories: Vec<String> = libraries().iter().map(|path| string(&format!("{}/", path.display()))).collect();
    let named: Vec<String> = systems.iter().map(|system| string(system)).collect();
    let mut input = format!("({})\n({})\n", directories.join(" "), named.join(" "));
    jobs.iter().for_each(|job| input += &format!("{}\n", job.lisp));
    let answers = real_files::ask_sbcl("compile-pairs.lisp", input)?;
    ensure!(answers.len() == jobs.len(), "SBCL answered {} of {} times", answers.len(), jobs.len());
    for (id, (made, refused)) in &drawn {
        println!("{id}: {made} made, {refused} refused");
    }
    let wrong: Vec<String> = jobs
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| *answer != "same")
        .map(|(job, answer)| format!("{}: {answer}\n{}", job.what, if most.is_some() { "" } else { &job.lisp }))
        .collect();
    ensure!(wrong.is_empty(), "{} of {} results:\n{}", wrong.len(), jobs.len(), wrong.join("\n"));
    for id in
        ["extract-variable", "extract-function", "inline-variable", "if-to-cond", "when-to-if", "let-to-let-serial"]
    {
        ensure!(drawn.get(id).is_some_and(|(made, _)| *made > 0), "no {id} was made: {drawn:?}");
    }
    Ok(())
}
