//! The chains of the documents. Edits are sent to them, and their answers to the clients, until the
//! findings of a whole check of the same text replace the answers.

use std::time::Instant;

use super::Actor;
use crate::config::Chains as Wanted;
use crate::model::diagnostic::Diagnostic;
use crate::session::Frontend;
use crate::session::chains::{ChainReport, Difference, Effect};
use crate::session::documents::{Key, Open};
use crate::session::requests::in_place;
use crate::text::Span;

/// The maximum number of characters of an edit that are logged.
const LOGGED: usize = 2000;

impl Actor {
    /// Handles an event of a chain.
    pub(super) fn chain_reported(&mut self, report: ChainReport) {
        let (key, now) = (report.key.clone(), Instant::now());
        let memory = self.config(key.0).check.chain_memory;
        let Some(open) = self.documents.get_mut(&key) else { return };
        match self.chains.handle(report, memory, now) {
            Some(Effect::ShowFindings { diagnostics }) => {
                in_place(open.document.text().len_bytes(), || open.findings.answered(&open.document, diagnostics));
                open.answered();
            }
            Some(Effect::CheckWhole) => open.restore_due_time(),
            Some(Effect::SendText) => {
                self.chains.send(&key, &open.document, || open.structure().withheld);
            }
            None => {}
        }
        let difference = self.chains.compare(&key);
        self.log_difference(&key, difference);
    }

    /// Handles the findings of a whole check of a document's current text. Compares them with those
    /// of the chain. Makes a new chain if [`Chains::wants`](crate::session::chains::Chains::wants)
    /// returns true.
    pub(super) fn chain_judged(&mut self, key: &Key, findings: &[Diagnostic], complete: bool) {
        let wanted = self.config(key.0).check.chain;
        let editor = self.clients.get(&key.0).is_some_and(|client| client.info.frontend == Frontend::Lsp);
        let current = self.documents.get(key).is_some_and(|open| open.due.is_none() && !open.is_asd());
        if wanted == Wanted::Off || !editor || !current || !complete {
            return;
        }
        let difference = self.chains.whole_check_done(key, findings);
        self.log_difference(key, difference);
        let has_forms = self.documents.get(key).is_some_and(Open::has_forms);
        if !has_forms || !self.can_check() || !self.chains.wants(key, Instant::now()) {
            return;
        }
        let Some(prepared) = self.prepared_check(key) else { return };
        let checker = self.checker.clone();
        let cursor = self.documents.get(key).map_or(0, |open| open.edited_at);
        self.chains.make(key, cursor, async move { checker.chain(prepared()).await });
    }

    fn log_difference(&self, key: &Key, difference: Option<Difference>) {
        let Some(Difference { chain, whole, edit }) = difference else { return };
        if self.config(key.0).check.chain != Wanted::Log {
            return;
        }
        let Some(open) = self.documents.get(key) else { return };
        let cut = |span: Span| {
            let text = open.document.text().slice(span.start..span.end);
            text.chars().take(LOGGED).collect::<String>()
        };
        let form = open.document.scan().form_at(edit.new.start).map(|form| cut(form.span)).unwrap_or_default();
        let lines = |findings: &[Diagnostic]| -> Vec<String> {
            findings.iter().map(|one| format!("{:?} {}: {}", one.span, one.code, one.message)).collect()
        };
        tracing::warn!(
            document = key.1,
            replaced = ?edit.old,
            by = cut(edit.new),
            form,
            chain_alone = ?lines(&chain),
            whole_check_alone = ?lines(&whole),
            "a chain's answer differed from the whole check's, which is shown"
        );
    }
}
