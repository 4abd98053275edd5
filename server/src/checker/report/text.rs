//! The findings about one text, within limits.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::checker::coverage::Coverage;
use crate::model::check::{CheckEnd, CheckReport};
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::model::diagnostic_codes;
use crate::text::Span;

/// The maximum number of diagnostics of one text.
pub(super) const DIAGNOSTICS_LIMIT: usize = 5000;
/// The maximum number of characters of one message.
pub(super) const MESSAGE_LIMIT: usize = 10_000;
/// The maximum number of characters of a code.
const CODE_LIMIT: usize = 80;
/// The maximum number of other files that the diagnostics of one text refer to. Each of them is
/// read.
const FILES_LIMIT: usize = 50;
/// The maximum number of bytes of one diagnostic, as the copy sent it.
const DIAGNOSTIC_LIMIT: usize = 128 << 10;
/// The maximum number of bytes of all diagnostics that are kept of one text, as sent. An editor
/// receives all of them at once.
pub(super) const TEXT_LIMIT: usize = 1 << 20;
/// The number of bytes by which a diagnostic counts besides the bytes that were sent.
pub(super) const DIAGNOSTIC_OVERHEAD_BYTES: usize = 200;

/// The findings about one text.
#[derive(Debug)]
pub(super) struct Text {
    /// The path; empty for the only text of a check.
    pub(super) path: PathBuf,
    /// The length in characters.
    pub(super) length: usize,
    pub(super) coverage: Coverage,
    pub(super) silent: bool,
    /// True if the copy reached the text.
    pub(super) begun: bool,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The number of bytes of the text's diagnostics.
    pub(super) bytes: usize,
    pub(super) dropped: usize,
    /// The other files that diagnostics refer to.
    pub(super) others: BTreeSet<PathBuf>,
    pub(super) at: Option<Span>,
    /// The start of each form that the copy reported. The set counts a form once, although it is
    /// reported when it is read and when it is compiled.
    pub(super) seen: BTreeSet<usize>,
}

impl Text {
    pub(super) fn new(path: PathBuf, length: usize, silent: bool) -> Text {
        Text {
            path,
            length,
            coverage: Coverage::default(),
            silent,
            begun: false,
            diagnostics: Vec::new(),
            bytes: 0,
            dropped: 0,
            others: BTreeSet::new(),
            at: None,
            seen: BTreeSet::new(),
        }
    }

    pub(super) fn clamp(&self, span: Span) -> Span {
        let start = span.start.min(self.length);
        Span { start, end: span.end.clamp(start, self.length) }
    }

    /// Returns true if there is an error, which may explain why the copy did not reach some forms.
    pub(super) fn has_error(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Keeps a diagnostic that was sent in `sent` bytes.
    pub(super) fn add(&mut self, mut diagnostic: Diagnostic, sent: usize) {
        let bytes = sent.min(DIAGNOSTIC_LIMIT) + DIAGNOSTIC_OVERHEAD_BYTES;
        if self.diagnostics.len() >= DIAGNOSTICS_LIMIT || sent > DIAGNOSTIC_LIMIT || self.bytes + bytes > TEXT_LIMIT {
            self.dropped += 1;
            return;
        }
        self.bytes += bytes;
        diagnostic.span = self.clamp(diagnostic.span);
        diagnostic.toplevel = diagnostic.toplevel.map(|span| self.clamp(span));
        diagnostic.related.truncate(20);
        let others = &mut self.others;
        diagnostic.related.retain(|related| {
            let Some(file) = &related.file else { return true };
            if others.len() < FILES_LIMIT {
                others.insert(file.clone());
            }
            others.contains(file)
        });
        for related in &mut diagnostic.related {
            if related.file.is_none() {
                related.span = self.clamp(related.span);
            }
        }
        if let Some((cut, _)) = diagnostic.code.char_indices().nth(CODE_LIMIT) {
            diagnostic.code.truncate(cut);
        }
        if let Some((cut, _)) = diagnostic.message.char_indices().nth(MESSAGE_LIMIT) {
            diagnostic.message.truncate(cut);
            diagnostic.message.push('…');
        }
        self.diagnostics.push(diagnostic);
    }

    /// Returns the report. `forms` is the number of compiled forms that the copy reported, if that
    /// is the number for this text alone.
    pub(super) fn report(
        mut self,
        forms: Option<usize>,
        unloaded_system: Option<String>,
        end: CheckEnd,
    ) -> (PathBuf, CheckReport) {
        if self.dropped > 0 {
            tracing::warn!(dropped = self.dropped, "more diagnostics than are shown");
            let message = format!("{} more diagnostics of this text are not shown.", self.dropped);
            let end = Span { start: self.length, end: self.length };
            self.diagnostics.push(finding(end, Severity::Information, "too-many-diagnostics", message));
        }
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span);
        let forms = forms.map_or(self.seen.len(), |forms| forms.min(self.seen.len()));
        (self.path, CheckReport { diagnostics: self.diagnostics, forms, unloaded_system, end })
    }
}

/// Returns a finding of the host about the form at `span`.
pub(super) fn finding(span: Span, severity: Severity, code: &str, message: String) -> Diagnostic {
    debug_assert!(diagnostic_codes::is_known(code), "{code}");
    Diagnostic { toplevel: Some(span), ..Diagnostic::new(span, severity, code, message) }
}
