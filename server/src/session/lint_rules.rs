//! The findings of the lint rules, which need no image, in the report of a check.

use std::path::{Path, PathBuf};

use super::requests::compute_all;
use crate::config::Config;
use crate::ide::index::{Snapshot, Store};
use crate::ide::lint;
use crate::ide::texts::OpenText;
use crate::model::check::CheckReport;
use crate::model::diagnostic::Diagnostic;
use crate::text::document::Document;

/// The lint rules of a check, and the workspace's texts, which they need.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) enabled: lint::EnabledRules,
    pub(super) index: Store,
    pub(super) workspace: PathBuf,
    pub(super) open: Vec<OpenText>,
}

/// The rules of several texts of one check, with the index of the workspace as it is now.
pub(super) struct RulesOfTexts {
    enabled: lint::EnabledRules,
    index: Option<Snapshot>,
}

impl Rules {
    /// Reads the workspace's texts, unless there are no rules.
    pub(super) fn of_texts(self) -> RulesOfTexts {
        let index = (!self.enabled.is_empty()).then(|| self.index.refreshed(&self.workspace, self.open));
        RulesOfTexts { enabled: self.enabled, index }
    }
}

impl RulesOfTexts {
    /// Returns true if there is nothing to check.
    pub(super) fn is_empty(&self) -> bool {
        self.index.is_none()
    }

    /// Returns the findings in a text. `path` is the text's file, as the index has it.
    pub(super) fn check(&self, document: &Document, path: Option<&Path>) -> Vec<Diagnostic> {
        self.index.as_ref().map_or_else(Vec::new, |index| lint::check(document, path, &self.enabled, index))
    }
}

/// Returns the rules that the settings name.
pub(super) fn wanted_rules(config: &Config) -> lint::EnabledRules {
    lint::EnabledRules { names: config.lint_rules.clone(), own: config.lint_own.clone() }
}

/// Returns the report with the findings of the lint rules added.
pub(super) async fn with_rules(
    document: Document,
    path: Option<PathBuf>,
    mut report: CheckReport,
    rules: Rules,
) -> CheckReport {
    if rules.enabled.is_empty() {
        return report;
    }
    // The index has paths with links resolved.
    let path = match path {
        Some(path) => Some(tokio::fs::canonicalize(&path).await.unwrap_or(path)),
        None => None,
    };
    compute_all(move || {
        report.diagnostics.extend(rules.of_texts().check(&document, path.as_deref()));
        report
    })
    .await
}
