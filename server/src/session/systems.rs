//! The check of a whole system. A copy of the image compiles the files. This process reads the
//! files too, to find their structure.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use super::lint_rules::{Rules, RulesOfTexts};
use super::reportable_files::ReportableFiles;
use super::requests::compute_all;
use super::{CheckSystemRequest, SystemReport};
use crate::bounded_file::SOURCE_LIMIT;
use crate::checker::Checker;
use crate::config::Config;
use crate::ide::asd::AsdFiles;
use crate::ide::diagnostics::{head_of, merge};
use crate::ide::structure::{self, Structure};
use crate::ide::{files, undefined_variables};
use crate::image::api::CheckSystemParams;
use crate::locked::lock;
use crate::model::check::{CheckEnd, CheckReport, FileFacts};
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::model::image::{ImageError, Progress};
use crate::text::Span;
use crate::text::document::Document;
use crate::text::expected::Expected;

/// The default time limit in seconds for the check of a system with its dependencies.
const DEADLINE: f64 = 600.0;
/// The code of errors of the system. Such an error has no position in a file, and is reported at
/// the head of the file.
const SYSTEM_FAILED: &str = "system-failed";
/// The code of errors in loading a file after its check. Such an error is reported at the head of
/// the file, too.
const LOAD_FAILED: &str = "load-failed";

/// The structure of a file, from its text when the copy of the image reached the file.
struct FileStructure {
    structure: Structure,
    head: Span,
}

/// The texts, structures and limits of the files of one check.
#[derive(Default)]
struct Files {
    seen: Mutex<HashMap<PathBuf, FileStructure>>,
    /// The texts from the request, which replace those on disk.
    texts: HashMap<PathBuf, String>,
    reportable: ReportableFiles,
}

impl Files {
    fn document(&self, path: &Path) -> Option<Document> {
        let on_disk = || files::source(path, SOURCE_LIMIT).filter(|_| self.reportable.has(path));
        let text = self.texts.get(path).cloned().or_else(on_disk)?;
        Some(Document::new(&text, 0))
    }

    fn facts_of(&self, path: &Path) -> Option<FileFacts> {
        let document = self.document(path)?;
        let structure = structure::check(&document);
        let (length, expected) = (document.text().len_chars(), Expected::of(&document));
        let facts = FileFacts { length, withheld: structure.withheld.clone(), expected };
        self.lock().insert(path.to_owned(), FileStructure { structure, head: head_of(&document) });
        Some(facts)
    }

    fn merge(&self, path: &Path, report: &mut CheckReport, rules: &RulesOfTexts) {
        let Some(FileStructure { structure, head }) = self.lock().remove(path) else { return };
        let mut found = std::mem::take(&mut report.diagnostics);
        let around = |diagnostic: &Diagnostic| [SYSTEM_FAILED, LOAD_FAILED].contains(&&*diagnostic.code);
        if found.iter().any(|diagnostic| diagnostic.severity == Severity::Error && !around(diagnostic)) {
            // A form that cannot be compiled also fails when it is loaded.
            found.retain(|diagnostic| diagnostic.code != LOAD_FAILED);
        }
        for diagnostic in found.iter_mut().filter(|diagnostic| around(diagnostic)) {
            diagnostic.span = head;
        }
        if (undefined_variables::are_among(&found) || !rules.is_empty())
            && let Some(document) = self.document(path)
        {
            undefined_variables::mark_uses(&document, &mut found);
            found.extend(rules.check(&document, Some(path)));
        }
        report.diagnostics = merge(structure, found);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, FileStructure>> {
        // A panic of another thread leaves the map consistent, as `lock` requires.
        lock(&self.seen)
    }
}

/// Returns the report that replaces a report on `path`, a file that is not one of the check's. Does
/// not read the file.
fn not_of_this_check(path: &Path) -> CheckReport {
    let reason = format!("it reported on {}, which is none of the files of this check.", path.display());
    let message = format!("The findings of the copy of the image were discarded: {reason}");
    let diagnostic = Diagnostic::new(Span { start: 0, end: 0 }, Severity::Error, "check-stopped", message);
    CheckReport { diagnostics: vec![diagnostic], forms: 0, unloaded_system: None, end: CheckEnd::Stopped { reason } }
}

/// Performs [`super::Session::check_system`]. Searches directories for the `.asd` files.
pub(super) async fn check(
    checker: Checker,
    workspace: PathBuf,
    config: Config,
    asd: Arc<AsdFiles>,
    (request, rules): (CheckSystemRequest, Rules),
    progress: Option<mpsc::UnboundedSender<Progress>>,
) -> Result<SystemReport, ImageError> {
    let near = request.only.first().or(request.asd.as_ref()).cloned();
    let listed = tokio::task::spawn_blocking(move || near.map_or_else(|| asd.all(), |path| asd.nearest(&path)));
    let params = CheckSystemParams {
        asd_files: listed.await.unwrap_or_default(),
        asd: request.asd,
        system: request.system,
        only: request.only,
        changed: request.changed,
        texts: request.texts.clone(),
        notes: config.check.notes,
        unreachable: config.check.unreachable,
        confine: config.check.confine,
        deadline: request.timeout.unwrap_or(DEADLINE),
        memory: config.check.memory,
    };
    let about = params.only.first().or(params.asd.as_ref()).unwrap_or(&workspace).clone();
    let mut named: Vec<PathBuf> = params.asd_files.clone();
    named.extend(params.asd.iter().chain(&params.only).cloned());
    named.extend(params.texts.iter().map(|file| file.path.clone()));
    let mut places = config.lisp.read.clone();
    places.extend(checker.source_directories().await?);
    let reportable = ReportableFiles::new(&workspace, &named, &places);
    let texts = request.texts.into_iter().map(|file| (file.path, file.text)).collect();
    let files = Arc::new(Files { texts, reportable, ..Files::default() });
    let reader = files.clone();
    let mut reports = checker.check_system(params, Arc::new(move |path| reader.facts_of(path)), progress).await?;
    let merged = move || {
        let rules = rules.of_texts();
        for (path, report) in &mut reports {
            files.merge(path, report, &rules);
            // Reports on files that do not exist are kept, because a system definition may name
            // such files.
            if !files.texts.contains_key(path) && !files.reportable.has(path) && path.exists() {
                *report = not_of_this_check(path);
                path.clone_from(&about);
            }
        }
        reports
    };
    Ok(SystemReport { files: compute_all(merged).await })
}
