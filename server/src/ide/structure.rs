//! Checks of the structure of a text without Lisp: parentheses, strings, comments and `|` that do
//! not balance.

mod unclosed;

use ropey::Rope;
use serde_json::{Value, json};

use crate::model::diagnostic::{Diagnostic, Related, Severity};
use crate::model::diagnostic_codes;
use crate::text::Span;
use crate::text::document::Document;
use crate::text::position::{line_column, line_content, line_of};
use crate::text::scanner::{Scanner, Token, TokenKind, Unterminated};
use crate::text::toplevel::{TopForm, Unreadable};

/// The codes of the diagnostics of [`check`], which no other diagnostics have. The `data` of a
/// fixable diagnostic is `{"insert": {"at": offset, "text": ")"}}` or `{"delete": [start, end]}`,
/// in characters.
pub const CODES: [&str; 7] = [
    "unbalanced-list",
    "unbalanced-close",
    "unbalanced-string",
    "unbalanced-symbol",
    "unbalanced-comment",
    "unfinished-escape",
    "unfinished-prefix",
];

/// The maximum number of broken places that are reported in a text, counted from its start.
const MAX_FAULTS: usize = 1_000;

/// The structure of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Structure {
    /// The structural errors, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The top-level forms that cannot be read, in order and disjoint. The compiler treats them as
    /// white space.
    pub withheld: Vec<Span>,
}

/// Checks a document's structure. The time grows with the number of forms and the size of the
/// broken ones. A text that is not an open document is checked by `check(&Document::new(text, 0))`.
pub fn check(document: &Document) -> Structure {
    let forms = document.scan().forms();
    let mut structure = Structure::default();
    let mut next = 0;
    while let Some(form) = forms.get(next) {
        let index = next;
        next += 1;
        let Some(fault) = form.fault else { continue };
        structure.withheld.push(form.span);
        if structure.diagnostics.len() >= MAX_FAULTS {
            continue;
        }
        if fault == Unreadable::ExtraClose {
            let run = forms[next..].iter().take_while(|form| form.fault == Some(Unreadable::ExtraClose)).count();
            structure.withheld.extend(forms[next..next + run].iter().map(|form| form.span));
            next += run;
            structure.diagnostics.push(extra_close(document.text(), forms, index, next));
            continue;
        }
        let broken = Broken::new(document.text(), form, forms.get(next));
        match fault {
            Unreadable::UnclosedList => structure.diagnostics.extend(unclosed::diagnose(&broken)),
            _ => structure.diagnostics.extend(broken.diagnose(fault)),
        }
    }
    structure
}

/// A form that cannot be read, with the data needed to explain it. The offsets of its tokens are
/// bytes of `source`.
struct Broken<'a> {
    text: &'a Rope,
    source: String,
    span: Span,
    /// The span of the form after the broken one.
    next: Option<Span>,
}

impl<'a> Broken<'a> {
    fn new(text: &'a Rope, form: &TopForm, next: Option<&TopForm>) -> Self {
        let source = text.slice(form.span.start..form.span.end).to_string();
        Broken { text, source, span: form.span, next: next.map(|form| form.span) }
    }

    fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        Scanner::inside(&self.source)
    }

    /// Returns the offset in the text of a byte of the source.
    fn offset(&self, byte: usize) -> usize {
        self.span.start + self.source.get(..byte).map_or(0, |head| head.chars().count())
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span { start: self.offset(start), end: self.offset(end) }
    }

    fn diagnostic(&self, code: &str, span: Span, message: String, related: Vec<Related>, data: Value) -> Diagnostic {
        debug_assert!(diagnostic_codes::is_known(code), "{code}");
        Diagnostic {
            form: Some(abbreviated(&self.source)),
            toplevel: Some(self.span),
            related,
            data,
            ..Diagnostic::new(span, Severity::Error, code, message)
        }
    }

    fn diagnose(&self, fault: Unreadable) -> Option<Diagnostic> {
        match fault {
            Unreadable::UnterminatedString => {
                let opening = self
                    .tokens()
                    .find(|token| token.unterminated == Unterminated::String || self.constituent_follows(token))?
                    .start;
                let message = "This string never ends: a `\"` is missing.".to_owned();
                Some(self.unterminated("unbalanced-string", opening, message, "string"))
            }
            Unreadable::UnterminatedBar => {
                let opening = self.unterminated_at()?;
                let message = "This `|` is never closed: a second `|` is missing.".to_owned();
                Some(self.unterminated("unbalanced-symbol", opening, message, "symbol"))
            }
            Unreadable::UnterminatedComment => {
                let start = self.tokens().find(|token| token.unterminated == Unterminated::BlockComment)?.start;
                let message =
                    "This comment never ends: a `|#` is missing. Everything after it is commented out.".to_owned();
                Some(self.diagnostic(
                    "unbalanced-comment",
                    self.span(start, start + 2),
                    message,
                    Vec::new(),
                    Value::Null,
                ))
            }
            Unreadable::DanglingEscape => {
                let start = self.unterminated_at()?;
                let message = "The text ends after this `\\`, which needs a character after it.".to_owned();
                Some(self.diagnostic(
                    "unfinished-escape",
                    self.span(start, start + 1),
                    message,
                    Vec::new(),
                    Value::Null,
                ))
            }
            Unreadable::DanglingPrefix => {
                let token = self.dangling()?;
                let written = self.source.get(token.start..token.end).unwrap_or_default();
                let message = match token.kind {
                    TokenKind::FeatureConditional => {
                        format!("This `{written}` guards nothing: a feature and a form must follow it.")
                    }
                    _ => format!("This `{written}` has nothing after it: a form must follow it."),
                };
                let span = self.span(token.start, token.end);
                Some(self.diagnostic("unfinished-prefix", span, message, Vec::new(), Value::Null))
            }
            Unreadable::UnclosedList | Unreadable::ExtraClose => None,
        }
    }

    /// Returns true if text follows directly after a string, as in `"a "b"`. The quotation mark at
    /// its end is then taken for the start of another string.
    fn constituent_follows(&self, token: &Token) -> bool {
        let next = self.source.get(token.end..).and_then(|rest| rest.chars().next());
        token.kind == TokenKind::String && next.is_some_and(|next| next.is_alphanumeric() || "~.-:?!*+/".contains(next))
    }

    /// Returns the diagnostic of a string or symbol that includes the text after it, marked from
    /// its opening to the end of its line.
    fn unterminated(&self, code: &str, opening: usize, message: String, what: &str) -> Diagnostic {
        let start = self.offset(opening);
        let line = line_of(self.text, start);
        let end = self.text.line_to_char(line) + line_content(self.text, line).len_chars();
        let span = Span { start, end: end.clamp(start + 1, self.span.end.max(start + 1)) };
        let related =
            self.next.map(|next| related(next, format!("The next definition begins here, inside the {what}.")));
        self.diagnostic(code, span, message, related.into_iter().collect(), Value::Null)
    }

    /// Returns the byte offset of the `|` or `\` of the token in which the text ends.
    fn unterminated_at(&self) -> Option<usize> {
        let mut scanner = Scanner::inside(&self.source);
        scanner.by_ref().find(|token| matches!(token.unterminated, Unterminated::Bar | Unterminated::Escape))?;
        Some(scanner.unterminated_at())
    }

    /// Returns the first prefix or guard without its form.
    fn dangling(&self) -> Option<Token> {
        // The tokens that wait for a datum, each with the number of data. A list is entered as its
        // `(` with 0.
        let mut waiting: Vec<(Token, u8)> = Vec::new();
        for token in self.tokens() {
            match token.kind {
                TokenKind::LineComment | TokenKind::BlockComment => continue,
                TokenKind::Prefix | TokenKind::Unknown => waiting.push((token, 1)),
                TokenKind::FeatureConditional => waiting.push((token, 2)),
                TokenKind::Open => waiting.push((token, 0)),
                TokenKind::Close => {
                    while let Some((prefix, _)) = waiting.pop_if(|(_, takes)| *takes > 0) {
                        if prefix.kind != TokenKind::Unknown {
                            return Some(prefix);
                        }
                    }
                    waiting.pop();
                }
                TokenKind::Atom | TokenKind::String => {}
            }
            if matches!(token.kind, TokenKind::Close | TokenKind::Atom | TokenKind::String) {
                while waiting.pop_if(|(_, takes)| *takes == 1).is_some() {}
                if let Some((_, takes)) = waiting.last_mut().filter(|(_, takes)| *takes > 1) {
                    *takes -= 1;
                }
            }
        }
        waiting
            .into_iter()
            .rev()
            .map(|(token, _)| token)
            .find(|token| matches!(token.kind, TokenKind::Prefix | TokenKind::FeatureConditional))
    }
}

/// Returns the diagnostic of the `)` of `forms[first..end]`, which close nothing.
fn extra_close(text: &Rope, forms: &[TopForm], first: usize, end: usize) -> Diagnostic {
    let span = Span { start: forms[first].span.start, end: forms[end - 1].span.end };
    let message = match end - first {
        1 => "This `)` closes nothing: there is one too many.".to_owned(),
        count => format!("These {count} `)` close nothing: there are {count} too many."),
    };
    Diagnostic {
        form: Some(abbreviated(&text.slice(span.start..span.end).to_string())),
        toplevel: Some(span),
        related: ended_early(text, &forms[..first]).into_iter().collect(),
        data: json!({ "delete": span }),
        ..Diagnostic::new(span, Severity::Error, "unbalanced-close", message)
    }
}

/// Returns a note on the end of the last definition before an extra `)`. If indented forms are
/// between them, the definition was closed too early.
fn ended_early(text: &Rope, before: &[TopForm]) -> Option<Related> {
    const MAX_FORMS_BEFORE: usize = 50;
    let before = &before[before.len().saturating_sub(MAX_FORMS_BEFORE)..];
    let column = |form: &TopForm| line_column(text, form.span.start).column;
    let definition = before.iter().rposition(|form| column(form) == 1)?;
    let form = before.get(definition).filter(|form| form.fault.is_none())?;
    let span = Span { start: form.span.end - 1, end: form.span.end };
    let line = line_column(text, form.span.start).line;
    let message = if definition + 1 < before.len() {
        format!("The form on line {line} ends here already, but what follows is indented as part of it.")
    } else {
        format!("The form on line {line} ends here.")
    };
    Some(related(span, message))
}

fn related(span: Span, message: String) -> Related {
    Related { file: None, span, message }
}

/// Returns a form on one line, upper-case, with single spaces, cut at 70 characters.
fn abbreviated(source: &str) -> String {
    const MAX_CHARS: usize = 70;
    let mut words = source.split_whitespace();
    let mut line = words.next().unwrap_or_default().to_uppercase();
    for word in words {
        if line.chars().count() > MAX_CHARS {
            break;
        }
        line.push(' ');
        line.push_str(&word.to_uppercase());
    }
    if line.chars().count() > MAX_CHARS {
        line = line.chars().take(MAX_CHARS - 3).chain("...".chars()).collect();
    }
    line
}

#[cfg(test)]
mod tests;
