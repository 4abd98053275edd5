//! Diagnostics for a terminal: the source line, carets under the marked span, and the related
//! places.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use ropey::Rope;

use crate::model::diagnostic::{Diagnostic, Related, Severity};
use crate::shown;
use crate::text::Span;
use crate::text::position::{LineColumn, line_column};

/// The maximum length in bytes of the lines that are shown for one place.
const MAX_LINES_BYTES: usize = 1 << 16;

/// A file or another source of code, as it is shown.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// The display name of the source.
    pub name: &'a str,
    /// The text for which the diagnostics are valid.
    pub text: &'a Rope,
    /// The number of lines of the source before the text.
    pub lines_before: usize,
}

/// Renders diagnostics one by one.
pub struct Terminal<'a> {
    renderer: Renderer,
    read: &'a dyn Fn(&Path) -> Option<Rope>,
}

impl fmt::Debug for Terminal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("renderer", &self.renderer).finish_non_exhaustive()
    }
}

impl<'a> Terminal<'a> {
    /// Creates a renderer. If `colour` is true, the output has ANSI escapes. `read` returns the
    /// text of another file to which a diagnostic refers.
    pub fn new(colour: bool, width: Option<usize>, read: &'a dyn Fn(&Path) -> Option<Rope>) -> Terminal<'a> {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(width.unwrap_or(140));
        Terminal { renderer, read }
    }

    /// Renders one diagnostic as several lines, without a line break at the end. `help` is a
    /// sentence about the possible remedy.
    pub fn render(&self, source: &Source<'_>, diagnostic: &Diagnostic, help: Option<&str>) -> String {
        let elsewhere: Vec<Option<(String, Rope)>> = diagnostic
            .related
            .iter()
            .map(|related| {
                let file = related.file.as_ref()?;
                Some((shown::line(&file.to_string_lossy()), (self.read)(file)?))
            })
            .collect();
        let message = shown::terminal(&diagnostic.message);
        let (title, detail) = headline(&message);
        let (name, code) = (shown::line(source.name), shown::line(&diagnostic.code));
        let labels: Vec<String> = diagnostic.related.iter().map(|related| shown::terminal(&related.message)).collect();
        let help = help.map(shown::terminal);
        let own = Lines { name: &name, text: source.text, before: source.lines_before };
        let marked = snippet(own, diagnostic.span, AnnotationKind::Primary, None);
        let mut group: Group<'_> = level(diagnostic.severity).primary_title(title).id(code.as_str()).element(marked);
        for ((related, elsewhere), label) in diagnostic.related.iter().zip(&elsewhere).zip(&labels) {
            group = match (&related.file, elsewhere) {
                (None, _) => group.element(context(own, related, label)),
                (Some(_), Some((name, text))) => {
                    group.element(context(Lines { name, text, before: 0 }, related, label))
                }
                (Some(file), None) => {
                    let file = shown::line(&file.to_string_lossy());
                    group.element(Level::NOTE.message(format!("{label} ({file})")))
                }
            };
        }
        if !detail.is_empty() {
            group = group.element(Level::NOTE.message(detail));
        }
        if let Some(help) = &help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        self.renderer.render(&[group])
    }
}

/// Splits a message into its first line, the headline, and the other lines, which explain it.
fn headline(message: &str) -> (&str, &str) {
    match message.split_once('\n') {
        Some((first, rest)) => (first.trim_end(), rest.trim()),
        None => (message, ""),
    }
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::StyleWarning => Level::WARNING.with_name("style warning"),
        Severity::Note => Level::NOTE,
        Severity::Information => Level::INFO,
    }
}

/// A text some lines of which are shown.
#[derive(Clone, Copy)]
struct Lines<'a, 't> {
    name: &'a str,
    text: &'t Rope,
    /// The number of lines before the text.
    before: usize,
}

fn context<'a>(lines: Lines<'a, '_>, related: &Related, label: &'a str) -> Element<'a> {
    snippet(lines, related.span, AnnotationKind::Context, Some(label))
}

/// Returns the lines that a span covers, with the span marked, or only the place if the lines are
/// too long. The rest of the text is not passed on, so that the cost does not grow with the file.
fn snippet<'a>(of: Lines<'a, '_>, span: Span, kind: AnnotationKind, label: Option<&'a str>) -> Element<'a> {
    let Lines { name, text, before } = of;
    let Some((lines, first_line, bytes)) = lines_of_span(text, span) else {
        let LineColumn { line, column } = line_column(text, span.start.min(text.len_chars()));
        return Origin::path(name).line(before + line).char_column(column).into();
    };
    let mut annotation = kind.span(bytes);
    if let Some(label) = label {
        annotation = annotation.label(label);
    }
    Snippet::source(lines).path(name).line_start(before + first_line).annotation(annotation).into()
}

/// Returns the text of a span's lines, the number of the first line (1-based), and the span in
/// bytes of that text. Returns `None` if the lines are longer than [`MAX_LINES_BYTES`].
fn lines_of_span(text: &Rope, span: Span) -> Option<(String, usize, Range<usize>)> {
    let start = span.start.min(text.len_chars());
    let end = span.end.clamp(start, text.len_chars());
    let first = text.char_to_line(start);
    let last = text.char_to_line(if end > start { end - 1 } else { end });
    let offset = text.line_to_byte(first);
    let lines = text.slice(text.line_to_char(first)..text.line_to_char((last + 1).min(text.len_lines())));
    let marked = text.char_to_byte(start) - offset..text.char_to_byte(end) - offset;
    (lines.len_bytes() <= MAX_LINES_BYTES).then(|| (shown::source(&lines.to_string()), first + 1, marked))
}

/// The numbers of checked files and of diagnostics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of files that were checked.
    pub files: usize,
    /// The number of diagnostics of [`Severity::Error`].
    pub errors: usize,
    /// The number of diagnostics of [`Severity::Warning`].
    pub warnings: usize,
    /// The number of diagnostics of [`Severity::StyleWarning`].
    pub style_warnings: usize,
    /// The number of all other diagnostics.
    pub notes: usize,
}

impl Summary {
    /// Counts a diagnostic.
    pub fn count(&mut self, diagnostic: &Diagnostic) {
        match diagnostic.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::StyleWarning => self.style_warnings += 1,
            Severity::Information | Severity::Note => self.notes += 1,
        }
    }

    /// Returns true if there was neither an error nor a warning.
    pub fn is_clean(&self) -> bool {
        self.errors == 0 && self.warnings == 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (count, name) in [
            (self.errors, "error"),
            (self.warnings, "warning"),
            (self.style_warnings, "style warning"),
            (self.notes, "note"),
        ] {
            if count > 0 {
                parts.push(plural(count, name));
            }
        }
        let found = if parts.is_empty() { "no problems".to_string() } else { parts.join(", ") };
        write!(f, "{found} in {}", plural(self.files, "file"))
    }
}

fn plural(count: usize, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(text: &str, marked: &str, severity: Severity, message: &str) -> Diagnostic {
        let start = text.find(marked).map_or(0, |byte| text[..byte].chars().count());
        let span = Span { start, end: start + marked.chars().count() };
        Diagnostic::new(span, severity, "undefined-function", message)
    }

    fn render(text: &str, diagnostic: &Diagnostic) -> String {
        let rope = Rope::from_str(text);
        Terminal::new(false, None, &|_| Some(Rope::from_str("(in-package :x)\n(defun f ())\n"))).render(
            &Source { name: "a.lisp", text: &rope, lines_before: 0 },
            diagnostic,
            None,
        )
    }

    #[test]
    fn carets_stand_under_what_is_meant() {
        let text = "(in-package :cl-user)\n\u{c}\n(defun f (x)\r\n  (list \"𝄞λ\" (frob x)))\r\n";
        let shown = render(text, &diagnostic(text, "frob", Severity::Warning, "undefined function: FROB"));
        insta::assert_snapshot!(shown, @r#"
        warning[undefined-function]: undefined function: FROB
         --> a.lisp:4:15
          |
        4 |   (list "𝄞λ" (frob x)))
          |               ^^^^
        "#);
    }

    #[test]
    fn related_places_are_shown_where_they_are() {
        let text = "(defun f (x) x)\n\n\n\n\n\n\n\n(f 1 2)\n";
        let mut diagnostic =
            diagnostic(text, "f 1 2", Severity::Error, "called with two arguments\nbut wants exactly one");
        diagnostic.related.push(Related { file: None, span: (7, 8).into(), message: "defined here".into() });
        diagnostic.related.push(Related {
            file: Some("b.lisp".into()),
            span: (23, 24).into(),
            message: "and here".into(),
        });
        insta::assert_snapshot!(render(text, &diagnostic), @r"
        error[undefined-function]: called with two arguments
         --> a.lisp:9:2
          |
        9 | (f 1 2)
          |  ^^^^^
          |
         ::: a.lisp:1:8
          |
        1 | (defun f (x) x)
          |        - defined here
          |
         ::: b.lisp:2:8
          |
        2 | (defun f ())
          |        - and here
          |
          = note: but wants exactly one
        ");
    }

    #[test]
    fn lines_before_the_text_count_and_help_comes_last() {
        let (rope, mut diagnostic) = (Rope::from_str("a\n(lenght 1)"), diagnostic("", "", Severity::Warning, "x\ny"));
        diagnostic.span = (3, 9).into();
        diagnostic.related.push(Related { file: None, span: (0, 1).into(), message: "here".into() });
        let source = Source { name: "standard input", text: &rope, lines_before: 9 };
        let shown = Terminal::new(false, None, &|_| None).render(&source, &diagnostic, Some("did you mean length?"));
        insta::assert_snapshot!(shown, @r"
        warning[undefined-function]: x
          --> standard input:11:2
           |
        11 | (lenght 1)
           |  ^^^^^^
           |
          ::: standard input:10:1
           |
        10 | a
           | - here
           |
           = note: y
           = help: did you mean length?
        ");
    }

    #[test]
    fn a_span_outside_the_text_is_no_panic() {
        for (text, span) in [("", (0, 0)), ("", (5, 9)), ("abc", (3, 3)), ("abc\n", (4, 4)), ("a\nb", (2, 1))] {
            let mut wrong = diagnostic(text, "", Severity::Error, "x");
            wrong.span = span.into();
            assert!(render(text, &wrong).starts_with("error[undefined-function]: x"));
        }
    }

    #[test]
    fn the_summary_counts() {
        let mut summary = Summary { files: 4, ..Summary::default() };
        assert_eq!(summary.to_string(), "no problems in 4 files");
        let (one, two) = (Severity::Warning, Severity::Error);
        for severity in [two, two, one, Severity::StyleWarning, Severity::Note, Severity::Information] {
            summary.count(&diagnostic("", "", severity, ""));
        }
        assert_eq!(summary.to_string(), "2 errors, 1 warning, 1 style warning, 2 notes in 4 files");
    }
}
