//! The tool `diagnostics`: findings in files or in the workspace, with the texts that open editors
//! have.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use ropey::Rope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::bounded_file;
use crate::ide::compile_form::Refusal;
use crate::ide::diagnostics::{NOT_CHECKED, SYSTEM_NOT_LOADED};
use crate::ide::differences::{self, Difference};
use crate::ide::{files, fixes};
use crate::model::check::CheckMode;
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageError;
use crate::session::bound_file::BoundFile;
use crate::session::outside;
use crate::session::{CheckRequest, ClientId, OpenDocument, Session};
use crate::text::decode;
use crate::text::position::line_column;

/// The maximum number of files in one call.
const FILES: usize = 200;

/// The maximum number of forms listed for a file that were edited and not loaded.
const NOT_LOADED: usize = 20;

/// The codes of calls whose arguments do not fit the callee's lambda list.
const CALLS: [&str; 3] = ["wrong-argument-count", "unknown-keyword", "odd-keyword-arguments"];

/// The tool `diagnostics`.
pub(crate) struct Diagnostics;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Files, directories; default: the workspace
    #[serde(default)]
    path: Option<Vec<String>>,
    /// Lowest severity. Default: warning
    #[serde(default)]
    severity: Option<MinSeverity>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "kebab-case")]
enum MinSeverity {
    Error,
    Warning,
    StyleWarning,
    Note,
}

impl MinSeverity {
    /// Returns true if a diagnostic is to be shown. An unloaded system is always shown, because it
    /// explains why other findings are missing. A call that does not fit is shown unless only
    /// errors are wanted. For such a call, SBCL gives a warning if caller and function are in one
    /// file, and only a style warning if they are in different files.
    fn includes(self, item: &Diagnostic) -> bool {
        let least = match self {
            MinSeverity::Error => Severity::Error,
            MinSeverity::Warning => Severity::Warning,
            // `StyleWarning` and `Information` have the same number in LSP.
            MinSeverity::StyleWarning => Severity::Information,
            MinSeverity::Note => Severity::Note,
        };
        let is_bad_call = CALLS.contains(&item.code.as_str()) && !matches!(self, MinSeverity::Error);
        item.severity <= least || is_bad_call || item.code == SYSTEM_NOT_LOADED
    }
}

/// The answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct DiagnosticsAnswer {
    errors: usize,
    warnings: usize,
    style_warnings: usize,
    /// Files with findings, and files that could not be checked.
    files: Vec<FileFindings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

/// The findings of one file.
#[derive(Debug, Default, Serialize)]
struct FileFindings {
    file: String,
    unsaved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    diagnostics: Vec<Finding>,
    /// The first [`NOT_LOADED`] forms that the image has with another text, or not at all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_loaded: Vec<NotLoaded>,
    /// The number of further such forms.
    #[serde(skip_serializing_if = "is_zero")]
    more_not_loaded: usize,
}

/// A top-level form that was edited and not loaded since.
#[derive(Debug, Serialize)]
struct NotLoaded {
    line: usize,
    names: Vec<String>,
    state: differences::State,
}

/// A finding; lines and columns count from 1.
#[derive(Debug, Serialize)]
struct Finding {
    line: usize,
    column: usize,
    severity: &'static str,
    code: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Tool for Diagnostics {
    type Input = Input;
    type Output = DiagnosticsAnswer;

    const NAME: &'static str = "diagnostics";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str =
        "Errors and warnings of Lisp files, with fixes, as they are now in files and editors. Use after editing.";
    const ALIASES: &'static [(&'static str, &'static str)] = &[("paths", "path"), ("file_path", "path")];
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    const NEEDS_IMAGE: bool = false;

    async fn call(call: Call, input: Input) -> Reply<DiagnosticsAnswer> {
        let wanted = match requested_files(&call.session, input.path.as_deref()).await {
            Ok(wanted) => wanted,
            Err(message) => return Failure { kind: ErrorKind::BAD_ARGUMENTS, message }.into(),
        };
        let least = input.severity.unwrap_or(MinSeverity::Warning);
        let work = check(&call.session, call.client, wanted, least);
        match call.progress.report_during(work, None).await {
            Ok(found) => Reply { text: render(&found), facts: found, failed: false, full: None },
            Err(error) => Failure::of(error, None).into(),
        }
    }
}

impl FromFailure for DiagnosticsAnswer {
    fn from_failure(failure: Failure) -> Self {
        DiagnosticsAnswer { error: Some(failure.into()), ..DiagnosticsAnswer::default() }
    }
}

/// Returns the files of the call, links resolved, without duplicates. All are in the workspace or
/// open in an editor.
async fn requested_files(session: &Session, paths: Option<&[String]>) -> Result<Vec<PathBuf>, String> {
    let workspace = session.workspace().to_owned();
    let named: Vec<PathBuf> = match paths {
        Some(paths) if !paths.is_empty() => paths.iter().map(|path| workspace.join(path)).collect(),
        _ => vec![workspace.clone()],
    };
    let open = session.open_documents().await.into_iter().filter_map(|open| open.path).collect();
    let looked = tokio::task::spawn_blocking(move || resolved(&workspace, named, open));
    looked.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Returns the files that are in `named` or in the directories there. Blocks.
fn resolved(workspace: &Path, named: Vec<PathBuf>, open: Vec<PathBuf>) -> Result<Vec<PathBuf>, String> {
    let open: Vec<PathBuf> = open.into_iter().map(real).collect();
    let mut wanted = Vec::new();
    for path in named {
        let file = BoundFile::of(workspace, &path)?;
        let real = file.path().to_owned();
        if !file.is_within(workspace) && !open.contains(&real) {
            return Err(outside(&path, &real, workspace));
        }
        if real.is_dir() {
            wanted.extend(files::below(&real).0);
            wanted.extend(open.iter().filter(|open| open.starts_with(&real)).cloned());
        } else if real.is_file() || open.contains(&real) {
            wanted.push(real);
        } else {
            return Err(format!("{}: there is no such file", path.display()));
        }
    }
    wanted.sort();
    wanted.dedup();
    if wanted.len() > FILES {
        return Err(format!(
            "{} files are meant; at most {FILES} are checked at once: name a directory in `path`",
            wanted.len()
        ));
    }
    Ok(wanted)
}

/// Returns the path with links resolved, if it exists, or the path itself. Blocks.
fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

/// Returns the paths with links resolved.
async fn all_real(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let resolved = tokio::task::spawn_blocking(|| paths.into_iter().map(real).collect());
    resolved.await.unwrap_or_default() // fails only when the host leaves
}

async fn check(
    session: &Session,
    client: ClientId,
    wanted: Vec<PathBuf>,
    least: MinSeverity,
) -> Result<DiagnosticsAnswer, ImageError> {
    // If several editors have a file open, an unsaved text takes precedence.
    let mut open = BTreeMap::new();
    let mut documents = session.compared_documents().await;
    documents.retain(|document| document.path.is_some());
    let paths = all_real(documents.iter().filter_map(|document| document.path.clone()).collect()).await;
    for (path, document) in paths.into_iter().zip(documents) {
        if document.unsaved || !open.contains_key(&path) {
            open.insert(path, document);
        }
    }
    let texts: HashMap<PathBuf, String> = open
        .iter()
        .filter(|(_, document)| document.unsaved)
        .map(|(path, document)| (path.clone(), document.document.text().to_string()))
        .collect();
    // Files that changed since they were loaded are checked together. Alone, each would be compared
    // with the old definitions of the others in the image.
    let mut together = HashMap::new();
    for request in session.joint_checks(&wanted, &texts).await.unwrap_or_default() {
        match session.check_system(client, request, None).await {
            Ok(checked) => {
                let (paths, reports): (Vec<_>, Vec<_>) = checked.files.into_iter().unzip();
                let items = reports.into_iter().map(|report| report.diagnostics);
                together.extend(all_real(paths).await.into_iter().zip(items));
            }
            Err(error) if error.kind() == ErrorKind::INTERRUPTED => return Err(error),
            // Each file is then checked separately.
            Err(error) => tracing::debug!(%error, "changed files could not be checked together"),
        }
    }
    let mut found = DiagnosticsAnswer::default();
    let workspace = session.workspace();
    let workspace = tokio::fs::canonicalize(workspace).await.unwrap_or_else(|_| workspace.to_owned());
    for path in wanted {
        let mut file = FileFindings { file: shown(&workspace, &path), unsaved: false, ..FileFindings::default() };
        let (text, items) =
            findings(session, client, &path, open.get(&path), together.remove(&path), &mut file).await?;
        found.errors += items.iter().filter(|item| item.severity == Severity::Error).count();
        found.warnings += items.iter().filter(|item| item.severity == Severity::Warning).count();
        found.style_warnings += items.iter().filter(|item| item.severity == Severity::StyleWarning).count();
        let enough = items.iter().filter(|item| least.includes(item));
        file.diagnostics = enough.map(|item| finding(&text, item)).collect();
        let differing = match differences::of(session, text.clone(), Some(path)).await {
            Ok(differing) => differing,
            Err(error) => {
                let why = || format!("it is not known which of its forms are loaded. {error}");
                file.problem.get_or_insert_with(why);
                Vec::new()
            }
        };
        file.more_not_loaded = differing.len().saturating_sub(NOT_LOADED);
        file.not_loaded = differing.into_iter().take(NOT_LOADED).map(|form| not_loaded(&text, form)).collect();
        if !file.diagnostics.is_empty() || !file.not_loaded.is_empty() || file.problem.is_some() {
            found.files.push(file);
        }
    }
    Ok(found)
}

/// Returns the text of a file, and its diagnostics. `open` is the file's document, if an editor has
/// it open. `together` are the diagnostics of a check with other files. Notes in `file` whether the
/// text is unsaved, and why it could not be checked.
async fn findings(
    session: &Session,
    client: ClientId,
    path: &Path,
    open: Option<&OpenDocument>,
    together: Option<Vec<Diagnostic>>,
    file: &mut FileFindings,
) -> Result<(Rope, Vec<Diagnostic>), ImageError> {
    match (open, together) {
        (Some(document), Some(items)) => {
            file.unsaved = document.unsaved;
            return Ok((document.document.text().clone(), items));
        }
        (Some(document), None) => {
            if let Some(snapshot) = session.snapshot(document.client, &document.uri, true).await {
                file.unsaved = document.unsaved;
                let outdated = snapshot.items.iter().find(|item| item.code == NOT_CHECKED);
                file.problem = outdated.map(|item| item.message.clone());
                return Ok((snapshot.text, snapshot.items));
            }
            // The document was closed meanwhile, so the file counts.
        }
        (None, Some(items)) => match source(path).await {
            Ok(text) => return Ok((Rope::from_str(&text), items)),
            Err(error) => {
                file.problem = Some(error.to_string());
                return Ok(Default::default());
            }
        },
        (None, None) => {}
    }
    let problem = match source(path).await {
        Ok(text) => match check_text(session, client, path, text.clone()).await {
            Ok(items) => return Ok((Rope::from_str(&text), items)),
            Err(error @ (ImageError::Unavailable(_) | ImageError::Lost { .. })) => return Err(error),
            Err(error) if error.kind() == ErrorKind::INTERRUPTED => return Err(error),
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    file.problem = Some(problem);
    Ok(Default::default())
}

fn not_loaded(text: &Rope, form: Difference) -> NotLoaded {
    NotLoaded { line: line_column(text, form.form.start).line, names: form.names, state: form.state }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Returns the text of a file as it is now.
async fn source(path: &Path) -> std::io::Result<String> {
    bounded_file::read_blocking(path.to_owned(), bounded_file::SOURCE_LIMIT).await.map(decode)
}

async fn check_text(
    session: &Session,
    client: ClientId,
    path: &Path,
    text: String,
) -> Result<Vec<Diagnostic>, ImageError> {
    let request =
        CheckRequest { text, path: Some(path.to_owned()), mode: CheckMode::File, package: None, timeout: None };
    Ok(session.check(client, request).await?.diagnostics)
}

fn shown(workspace: &Path, path: &Path) -> String {
    path.strip_prefix(workspace).unwrap_or(path).display().to_string()
}

fn finding(text: &Rope, item: &Diagnostic) -> Finding {
    let at = line_column(text, item.span.start.min(text.len_chars()));
    let severity = item.severity.name();
    let (code, message) = (item.code.clone(), item.message.clone());
    Finding { line: at.line, column: at.column, severity, code, message, fix: fixes::title(item) }
}

fn render(found: &DiagnosticsAnswer) -> String {
    let mut text = format!("Errors: {}\nWarnings: {}\n", found.errors, found.warnings);
    if found.style_warnings > 0 {
        text.push_str(&format!("Style warnings: {}\n", found.style_warnings));
    }
    for file in &found.files {
        let name = crate::shown::path(Path::new(&file.file));
        text.push_str(&format!("\n{name}{}\n", if file.unsaved { " (unsaved text)" } else { "" }));
        if let Some(problem) = &file.problem {
            text.push_str(&format!("  could not be checked: {problem}\n"));
        }
        for item in &file.diagnostics {
            let message = item.message.replace('\n', "\n    ");
            text.push_str(&format!("  {}:{}: {} [{}] {message}\n", item.line, item.column, item.severity, item.code));
            if let Some(fix) = &item.fix {
                text.push_str(&format!("    fix: {fix}\n"));
            }
        }
        render_not_loaded(file, &mut text);
    }
    text.trim_end().to_owned()
}

/// Appends the forms of a file that were edited and not loaded.
fn render_not_loaded(file: &FileFindings, text: &mut String) {
    if file.not_loaded.is_empty() {
        return;
    }
    let forms: Vec<String> = file
        .not_loaded
        .iter()
        .map(|form| format!("{} {} ({})", form.line, form.names.join(" "), form.state.name()))
        .collect();
    let more = match file.more_not_loaded {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    text.push_str(&format!("  edited and not loaded, by line: {}{more}\n", forms.join(", ")));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::session::{ClientInfo, Frontend};

    #[tokio::test]
    async fn a_document_that_is_closed_meanwhile_is_answered_as_a_file() {
        let place = tempfile::tempdir().unwrap();
        let session = Session::without_image(place.path());
        let (client, _) = session.attach(ClientInfo { frontend: Frontend::Lsp, name: "an editor".into() });
        let path = place.path().join("gone.lisp");
        let uri = crate::session::uri_of_path(&path);
        session.open(client, uri.clone(), 1, "(f)".into());
        let open = session.open_documents().await;
        session.close(client, &uri);
        let mut file = FileFindings::default();
        let found = findings(&session, client, &path, open.first(), None, &mut file).await.unwrap();
        assert_eq!((open.len(), found.1.len()), (1, 0));
        assert!(file.problem.is_some_and(|why| why.contains("No such file")));
    }

    #[test]
    fn the_name_of_a_file_is_one_line_whatever_is_in_it() {
        let named = |name: &str| FileFindings { file: name.into(), problem: Some("no".into()), ..Default::default() };
        let file = named("a.lisp\n\nErrors: 0\u{1b}[2J");
        let text = render(&DiagnosticsAnswer { files: vec![file], ..DiagnosticsAnswer::default() });
        assert!(text.contains("\n\na.lisp\\u{a}\\u{a}Errors: 0\\u{1b}[2J\n  could not be checked: no"), "{text}");
    }

    #[test]
    fn a_note_is_shown_only_on_request() {
        let of = |severity, code: &str| Diagnostic::new((0, 1).into(), severity, code, "");
        use Severity::*;
        for (least, shown) in [
            (MinSeverity::Error, &[Error][..]),
            (MinSeverity::Warning, &[Error, Warning]),
            (MinSeverity::StyleWarning, &[Error, Warning, StyleWarning, Information]),
            (MinSeverity::Note, &[Error, Warning, StyleWarning, Information, Note]),
        ] {
            let all = [Error, Warning, StyleWarning, Information, Note];
            let included: Vec<Severity> = all.into_iter().filter(|one| least.includes(&of(*one, "style"))).collect();
            assert_eq!(included, shown, "{least:?}");
            assert!(least.includes(&of(Information, SYSTEM_NOT_LOADED)));
            assert_eq!(
                least.includes(&of(StyleWarning, "unknown-keyword")),
                !matches!(least, MinSeverity::Error),
                "{least:?}"
            );
        }
    }
}
