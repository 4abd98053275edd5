//! Separation of the compiler's own output from printed text. An agent needs only the compiler's
//! warnings, errors and counts.

use std::fmt::Write as _;

/// The maximum number of messages that are kept.
const MAX_MESSAGES: usize = 20;
/// The maximum length of a message, in characters.
const MAX_MESSAGE_CHARS: usize = 600;

/// The conditions that a compiler reported in its output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompilerReport {
    /// The number of compiled files.
    pub files: usize,
    /// The number of conditions of the type WARNING.
    pub warnings: usize,
    /// The number of conditions of the type STYLE-WARNING.
    pub style_warnings: usize,
    /// The number of conditions of all other types, such as ERROR and READ-ERROR.
    pub errors: usize,
    /// The number of notes.
    pub notes: usize,
    /// The texts of the first warnings and errors.
    pub messages: Vec<String>,
}

impl CompilerReport {
    /// Returns true if the text contained no output of the compiler.
    pub fn is_empty(&self) -> bool {
        *self == CompilerReport::default()
    }

    /// Adds the counts and messages of another text.
    pub fn add(&mut self, other: CompilerReport) {
        self.files += other.files;
        self.warnings += other.warnings;
        self.style_warnings += other.style_warnings;
        self.errors += other.errors;
        self.notes += other.notes;
        self.messages.extend(other.messages);
        self.messages.truncate(MAX_MESSAGES);
    }

    /// Returns the counts in one line, and then each warning and error. Returns an empty text if
    /// there were none.
    pub fn summary(&self) -> String {
        let counts = [
            (self.files, "file compiled", "files compiled"),
            (self.errors, "error", "errors"),
            (self.warnings, "warning", "warnings"),
            (self.style_warnings, "style warning", "style warnings"),
            (self.notes, "note", "notes"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, plural)| format!("{count} {}", if *count == 1 { one } else { plural }))
            .collect();
        if counts.is_empty() {
            return String::new();
        }
        let mut text = format!("Compiler: {}.", counts.join(", "));
        for message in &self.messages {
            let _ = write!(text, "\n  {}", message.replace('\n', "\n    "));
        }
        let omitted = (self.warnings + self.errors).saturating_sub(self.messages.len());
        if omitted > 0 {
            let _ = write!(text, "\n  ... and {omitted} more");
        }
        text
    }
}

/// The kind of a line of SBCL's output.
enum Line<'a> {
    /// The beginning of a file.
    File,
    /// The beginning of a condition, with its kind.
    Caught(&'a str),
    Note,
    /// The form in which the next conditions occur.
    Form(&'a str),
    /// A summary, or another line without information of its own.
    Other,
}

/// A line with the lines before and after it, without white space at their ends. A program may
/// print lines like SBCL's. The lines around them show that they are not SBCL's.
struct Place<'a> {
    line: &'a str,
    before: &'a str,
    after: &'a str,
    /// True after the beginning of a file.
    in_file: bool,
    /// True after a line of the compiler.
    inside: bool,
}

/// Returns the kind of a line, or `None` if the line does not begin a part of SBCL's output.
fn kind<'a>(place: &Place<'a>) -> Option<Line<'a>> {
    let rest = place.line.strip_prefix("; ")?;
    if rest.starts_with("compiling file \"") && rest.ends_with("):") {
        return Some(Line::File);
    }
    // SBCL prints an empty comment before each condition.
    let is_condition = place.before == ";";
    if let Some(kind) = rest.strip_prefix("caught ").and_then(|rest| rest.strip_suffix(':')).filter(|_| is_condition) {
        return Some(Line::Caught(kind));
    }
    if rest.starts_with("note: ") && is_condition {
        return Some(Line::Note);
    }
    // The form itself follows its name.
    if let Some(form) = rest.strip_prefix("in: ").filter(|_| place.after.starts_with(";     ")) {
        return Some(Line::Form(form));
    }
    let of_file = [
        "wrote /",
        "compilation finished in ",
        "compilation aborted after ",
        "compiling (",
        "processing (",
        "recompiling ",
    ];
    let of_form = ["==>", "--> "];
    let begins_with = |all: &[&str]| all.iter().any(|start| rest.starts_with(start));
    let other = rest.starts_with("file: /") && place.after.starts_with("; in: ")
        || rest.starts_with("compilation unit ") && (place.inside || place.after.starts_with(";  "))
        || place.in_file && begins_with(&of_file)
        || place.inside && place.before.starts_with(';') && begins_with(&of_form);
    other.then_some(Line::Other)
}

/// Returns the text without the compiler's own lines, and the conditions that these lines reported.
pub fn split_compiler_output(text: &str) -> (String, CompilerReport) {
    let mut report = CompilerReport::default();
    if !text.contains("; ") {
        return (text.to_owned(), report);
    }
    let mut kept = String::with_capacity(text.len().min(4096));
    // True after a line of the compiler. Empty lines and lines of the form `;` or `;  ...` then
    // belong to its message.
    let mut inside = false;
    let mut form = "";
    let mut message: Option<String> = None;
    let finish_message = |message: &mut Option<String>, report: &mut CompilerReport| {
        if let Some(message) = message.take()
            && report.messages.len() < MAX_MESSAGES
        {
            report.messages.push(super::clip::clip(message.trim_end(), MAX_MESSAGE_CHARS).text);
        }
    };
    let mut before = "";
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let bare = line.trim_end();
        let after = lines.peek().map_or("", |after| after.trim_end());
        let place = Place { line: bare, before, after, in_file: report.files > 0, inside };
        before = bare;
        if let Some(kind) = kind(&place) {
            finish_message(&mut message, &mut report);
            inside = true;
            match kind {
                Line::File => report.files += 1,
                Line::Note => report.notes += 1,
                Line::Form(name) => form = name,
                Line::Caught("STYLE-WARNING") => report.style_warnings += 1,
                Line::Caught(kind) => {
                    if kind == "WARNING" {
                        report.warnings += 1;
                    } else {
                        report.errors += 1;
                    }
                    message = Some(format!("{kind} in {form}: "));
                }
                Line::Other => {}
            }
        } else if inside && (bare == ";" || bare.starts_with(";  ")) {
            if let Some(message) = &mut message {
                let words = bare.trim_start_matches([';', ' ']);
                if !message.ends_with(": ") && !words.is_empty() {
                    message.push('\n');
                }
                message.push_str(words);
            }
        } else if inside && bare.is_empty() {
            finish_message(&mut message, &mut report);
        } else {
            finish_message(&mut message, &mut report);
            inside = false;
            kept.push_str(line);
        }
    }
    finish_message(&mut message, &mut report);
    (kept, report)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPILED: &str = "mine first\n; compiling file \"/w/shop.lisp\" (written 01 JAN 2026 10:00:00 AM):\n\n; file: /w/shop.lisp\n\
; in: DEFUN PRICE\n;     (+ 1 \"two\")\n;\n; caught WARNING:\n;   Constant \"two\" conflicts with its asserted type NUMBER.\n;   See also:\n\
;     The SBCL Manual\n\n; in: DEFUN OTHER\n;     (LET ((X 1)) 2)\n;\n; caught STYLE-WARNING:\n;   The variable X is defined but never used.\n\
;\n; note: deleting unreachable code\n\n; compilation unit finished\n;   caught 1 WARNING condition\n;   caught 1 STYLE-WARNING condition\n\
\n; wrote /w/shop.fasl\n; compilation finished in 0:00:00.004\n; mine, a comment\nmine last\n";

    #[test]
    fn warnings_and_counts_stay_and_the_rest_goes() {
        let (kept, report) = split_compiler_output(COMPILED);
        assert_eq!(kept, "mine first\n; mine, a comment\nmine last\n");
        insta::assert_snapshot!(report.summary(), @r#"
        Compiler: 1 file compiled, 1 warning, 1 style warning, 1 note.
          WARNING in DEFUN PRICE: Constant "two" conflicts with its asserted type NUMBER.
            See also:
            The SBCL Manual
        "#);
    }

    #[test]
    fn an_aborted_compilation_leaves_nothing() {
        let text = "; compiling file \"/w/b.lisp\" (written 01 JAN 2026 10:00:00 AM):\n; \n; caught ERROR:\n\
            ;   READ error during COMPILE-FILE:\n;   \n;     Package FOO does not exist.\n; \n\
            ; compilation unit aborted\n;   caught 1 fatal ERROR condition\n\n\
            ; compilation aborted after 0:00:00.000\nmine\n";
        let (kept, report) = split_compiler_output(text);
        assert_eq!((kept.as_str(), report.files, report.errors), ("mine\n", 1, 1));
    }

    #[test]
    fn what_a_program_prints_is_not_the_compilers() {
        for text in [
            "",
            "; hello\n",
            ";   indented\n\n;\n",
            "a; compiling file \"x\"\n",
            "; compiling file \"x\" now\n",
            "one\n\n\ntwo",
            "; note: do not forget\n;  that\n\n",
            "; caught FISH:\n;   three\n",
            "; in: the sea\n; wrote /tmp/log\n",
            "; ==> 3\n;  4\n",
            "; file: /etc/passwd\n;   line\n",
            "; compilation unit 3\n",
        ] {
            assert_eq!(split_compiler_output(text), (text.to_owned(), CompilerReport::default()), "{text:?}");
        }
    }

    #[test]
    fn very_many_warnings_are_counted_and_the_first_are_told() {
        let many = ";\n; caught WARNING:\n;   no\n\n".repeat(100);
        let (kept, report) = split_compiler_output(&format!("; in: DEFUN F\n;     (G)\n{many}"));
        assert_eq!((kept.as_str(), report.warnings, report.messages.len()), ("", 100, MAX_MESSAGES));
        assert!(report.summary().ends_with("... and 80 more"));
    }
}
