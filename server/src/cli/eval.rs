//! `consort eval`.

use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use clap::builder::NonEmptyStringValueParser;
use consort::host::control::{InputLine, Reply, Request, ask};
use consort::host::election::Place;
use consort::host::hello::{self, Hello, Protocol};
use consort::ide::render::{Source, Terminal};
use consort::ide::structure;
use consort::model::diagnostic::{Diagnostic, Severity};
use consort::model::evaluation::{EvalError, EvalOutcome, EvalStatus};
use consort::shown;
use consort::text::Span;
use consort::text::document::Document;
use ropey::Rope;

use super::output::{self, Failure, ProgressLine, colour, print_as_it_is, print_error, print_error_as_it_is, width};
use super::packages::PromptKind;
use super::{WorkspaceArg, packages, trust};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The code, any number of forms; `-` reads it from standard input
    #[arg(allow_hyphen_values = true)]
    code: String,
    /// The package to read and evaluate in [default: CL-USER]
    #[arg(long, short, value_parser = NonEmptyStringValueParser::new())]
    package: Option<String>,
    /// Seconds after which it is interrupted [default: eval.timeout_s, 30]
    #[arg(long, short, value_name = "S", value_parser = seconds)]
    timeout: Option<f64>,
    /// Print only the values, unabridged, each on its line; strings without quotes
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    workspace: WorkspaceArg,
}

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        _ => Err("expected a number of seconds, more than 0 and at most 86400".into()),
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (name, code) = match args.code.as_str() {
        "-" => {
            let mut code = String::new();
            io::stdin()
                .read_to_string(&mut code)
                .map_err(|error| Failure::cannot(format!("standard input: {error}")))?;
            (STANDARD_INPUT, code)
        }
        code => (TYPED_CODE, code.into()),
    };
    let workspace = args.workspace.find()?;
    trust::say_if_untrusted(&workspace)?;
    let place = Place::of(&workspace)?;
    let connected = place.connect_or_start(&Hello::new(Protocol::Control))?;
    let request = Request::Eval {
        code: code.clone(),
        package: args.package.clone(),
        timeout: args.timeout,
        input: true,
        whole: args.raw,
    };
    let mut terminal = OutputState::default();
    let mut failed = None;
    let line = ProgressLine::new();
    let answer = ask(connected, &request, |reply, connection| {
        line.clear()?;
        match reply {
            Reply::Progress { message, .. } if !terminal.is_used() => line.show(&message),
            Reply::Output { text, stderr } => terminal.write(&text, stderr).map_err(|error| {
                // A failure of the terminal is kept apart from a failure of the connection.
                failed = Some(error);
                io::ErrorKind::Other.into()
            }),
            Reply::Input { question } => {
                terminal.on_input_question();
                connection.try_clone().map(|connection| answer_input(question, connection))
            }
            Reply::Waiting { why } => {
                // A file or a pipe gets the program's output alone.
                let ended = if io::stdout().is_terminal() { terminal.fresh_line() } else { Ok(()) };
                ended.map_err(|error| {
                    failed = Some(error);
                    io::Error::from(io::ErrorKind::Other)
                })?;
                output::say_wait_once(&line, "eval", &why)
            }
            _ => Ok(()),
        }
    });
    line.clear()?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let answer = match (answer, &args.package) {
        (Ok(answer), _) => answer,
        (Err(error), Some(package)) => {
            let near = packages::similar_names_hint(&place, package, PromptKind::InShell).unwrap_or_default();
            return Err(Failure::cannot(format!("{error}{near}")));
        }
        (Err(error), None) => return Err(Failure::cannot(error.to_string())),
    };
    let outcome: EvalOutcome =
        serde_json::from_value(answer).map_err(|error| Failure::cannot(format!("the host's answer: {error}")))?;
    // The output, unless it was streamed already.
    if !terminal.stdout.used {
        terminal.write(&outcome.stdout.text, false)?;
    }
    if !terminal.stderr.used {
        terminal.write(&outcome.stderr.text, true)?;
    }
    terminal.fresh_line()?;
    if let Some(missing) = outcome.missing_output().filter(|_| terminal.is_used()) {
        print_error(&missing)?;
    }
    for warning in &outcome.warnings {
        print_error(&format!("{}: {}\n", warning.kind, warning.message))?;
    }
    if outcome.status == EvalStatus::Ok {
        let values = if args.raw { raw_values(&outcome) } else { values(&outcome) };
        if let Some(missing) = missing_values(&outcome).filter(|_| args.raw) {
            print_error(&missing)?;
        }
        let abridged = !args.raw
            && outcome.values.iter().any(|value| value.omitted > 0 || super::abridged::is_abridged(&value.text));
        // The output to a program is not escaped.
        print_as_it_is(&if io::stdout().is_terminal() { shown::terminal(&values) } else { values })?;
        if abridged {
            print_error("; abridged; `--raw` prints all of it\n")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    // Errors in code that could not be read are rendered as `consort check` renders them.
    let code = Code { name, text: &code, lines_before: 0 };
    let near = |package: &str| packages::similar_names_hint(&place, package, PromptKind::InShell);
    match outcome.error.as_ref().and_then(|error| reading_errors(&code, error, near)) {
        Some(shown) => print_error_as_it_is(&shown)?,
        None => print_error(&failure_message(&outcome))?,
    }
    Ok(ExitCode::FAILURE)
}

/// Answers a question of the evaluation with the next line of standard input, on a thread of its
/// own: the evaluation may end, interrupted by another client, while a person thinks.
fn answer_input(question: u64, mut connection: UnixStream) {
    std::thread::spawn(move || {
        let mut line = String::new();
        // Input that is no text, or cannot be read, counts as end of file.
        let read = io::stdin().read_line(&mut line).unwrap_or(0);
        let end = line.trim_end_matches(['\n', '\r']).len();
        line.truncate(end);
        let answer = InputLine { question, text: (read > 0).then_some(line) };
        // A broken connection is reported where the answer to the request is awaited.
        let _ = hello::line(&answer).and_then(|line| connection.write_all(&line));
    });
}

/// The state of the output streams after the output so far.
#[derive(Default)]
struct OutputState {
    stdout: Stream,
    stderr: Stream,
}

/// An output stream. The order between pieces of different streams is unspecified.
#[derive(Default)]
struct Stream {
    used: bool,
    /// True if the last line has no line break yet.
    open: bool,
}

impl OutputState {
    fn write(&mut self, text: &str, stderr: bool) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let stream = if stderr { &mut self.stderr } else { &mut self.stdout };
        *stream = Stream { used: true, open: !text.ends_with('\n') };
        if stderr { print_error_as_it_is(text) } else { print_as_it_is(text) }
    }

    fn is_used(&self) -> bool {
        self.stdout.used || self.stderr.used
    }

    /// Notes that a line of input is read. All output before it was streamed, so the output of the
    /// outcome, which also has the typed line, is not printed. A person's Enter ends the last line.
    fn on_input_question(&mut self) {
        self.stdout.used = true;
        self.stdout.open &= !io::stdin().is_terminal();
    }

    /// Ends unfinished lines, so that the next output starts on a line of its own.
    fn fresh_line(&mut self) -> io::Result<()> {
        for (open, stderr) in [(self.stdout.open, false), (self.stderr.open, true)] {
            if open {
                self.write("\n", stderr)?;
            }
        }
        Ok(())
    }
}

fn values(outcome: &EvalOutcome) -> String {
    if outcome.values.is_empty() {
        return "; no values\n".into();
    }
    outcome.values.iter().map(|value| format!("=> {}\n", value.text)).collect()
}

/// Returns a line about values that are too long to be printed whole.
fn missing_values(outcome: &EvalOutcome) -> Option<String> {
    let omitted: usize = outcome.values.iter().map(|value| value.omitted).sum();
    (omitted > 0).then(|| format!("; the values were too long: {omitted} characters are not shown\n"))
}

/// Returns the values for a program, each on lines of its own.
fn raw_values(outcome: &EvalOutcome) -> String {
    outcome.values.iter().map(|value| format!("{}\n", unquoted(&value.text))).collect()
}

/// Returns the contents of a printed string, or any other printed value as it is.
fn unquoted(printed: &str) -> String {
    let Some(inside) = printed.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return printed.to_owned();
    };
    let mut text = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        text.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    text
}

/// The name of code that a person typed.
pub(super) const TYPED_CODE: &str = "the code";
/// The name of code from standard input.
pub(super) const STANDARD_INPUT: &str = "standard input";

/// Code that is evaluated, with its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code<'a> {
    /// The name of the source of the code.
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    /// The number of lines before the code in that source.
    pub(super) lines_before: usize,
}

/// Returns the errors in code that could not be read, rendered as `consort check` renders them.
/// `near` returns a hint with the names of packages that are similar to one that does not exist.
/// Returns `None` for an error of the evaluation.
pub(super) fn reading_errors(
    code: &Code<'_>,
    error: &EvalError,
    near: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    structural_errors(code, &error.kind).or_else(|| reader_error(code, error, near))
}

/// Returns the structural errors in code that could not be read, rendered as `consort check`
/// renders them. `kind` is the type of the evaluation's error.
pub(super) fn structural_errors(code: &Code<'_>, kind: &str) -> Option<String> {
    let reader = kind.contains("END-OF-FILE") || kind.contains("READER");
    let structure = structure::check(&Document::new(code.text, 0));
    if !reader || structure.diagnostics.is_empty() {
        return None;
    }
    Some(rendered(code, &structure.diagnostics))
}

fn rendered(code: &Code<'_>, diagnostics: &[Diagnostic]) -> String {
    let terminal = Terminal::new(colour(&io::stderr()), width(), &|_| None);
    let source = Source { name: code.name, text: &Rope::from_str(code.text), lines_before: code.lines_before };
    diagnostics.iter().map(|one| format!("{}\n", terminal.render(&source, one, None))).collect()
}

/// Returns the reader's error in code, rendered as `consort check` renders it. `near` returns a
/// hint with the names of packages that are similar to one that does not exist. Returns `None` for
/// any other error.
fn reader_error(source: &Code<'_>, error: &EvalError, near: impl Fn(&str) -> Option<String>) -> Option<String> {
    let span = token(&Rope::from_str(source.text), error.unread?);
    let message = error.message_without_stream();
    let package = message.strip_prefix("Package ").and_then(|rest| rest.strip_suffix(" does not exist."));
    let (code, message) = match package {
        Some(package) => {
            let near = near(package).unwrap_or_default();
            let end = if near.ends_with('?') { "" } else { "." };
            ("unknown-package", format!("{}{near}{end}", message.trim_end_matches('.')))
        }
        None if error.kind.contains("PACKAGE") => ("unknown-symbol", message.to_owned()),
        None => ("reader-error", message.to_owned()),
    };
    Some(rendered(source, &[Diagnostic::new(span, Severity::Error, code, message)]))
}

/// Returns the span of the token that the reader had read, or begun to read, at character `at`.
fn token(text: &Rope, at: usize) -> Span {
    let ends = |at: usize| text.get_char(at).is_none_or(|char| char.is_whitespace() || "()\"';`,".contains(char));
    let before = (0..at.min(text.len_chars())).rev();
    let last = before.into_iter().find(|at| !ends(*at)).unwrap_or(0);
    let start = (0..last).rev().take_while(|at| !ends(*at)).last().unwrap_or(last);
    let end = (last..text.len_chars()).find(|at| ends(*at)).unwrap_or(text.len_chars());
    Span { start, end: end.max(start) }
}

fn failure_message(outcome: &EvalOutcome) -> String {
    let Some(error) = &outcome.error else {
        return match outcome.status {
            EvalStatus::Timeout => {
                "stopped: the code took longer than its timeout (use --timeout S for a longer one)\n".into()
            }
            _ => "interrupted\n".into(),
        };
    };
    let frames: String = error.backtrace.iter().map(|frame| format!("  {frame}\n")).collect();
    let more = if outcome.status == EvalStatus::Timeout { " Use --timeout S for a longer timeout." } else { "" };
    format!("{}: {}{more}\n{frames}", error.kind, error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_string_has_no_quotes() {
        for (printed, raw) in
            [(r#""a \"b\" \\ c""#, r#"a "b" \ c"#), ("42", "42"), ("\"", "\""), (r#"("a")"#, r#"("a")"#), (r#""""#, "")]
        {
            assert_eq!(unquoted(printed), raw);
        }
    }

    #[test]
    fn code_that_cannot_be_read_is_shown_with_what_was_meant() {
        let error = |kind: &str, message: &str, at| EvalError { unread: Some(at), ..EvalError::new(kind, message) };
        let missing = error(
            "SB-INT:SIMPLE-READER-PACKAGE-ERROR",
            "Package SHPO does not exist. Line: 1, Column: 14, File-Position: 14 Stream: #<STRING-INPUT-STREAM>",
            14,
        );
        let given = |text| Code { name: TYPED_CODE, text, lines_before: 0 };
        let shown = reader_error(&given("(list (shpo:f 1) 2)"), &missing, |package| {
            assert_eq!(package, "SHPO");
            Some("; did you mean shop?".into())
        });
        insta::assert_snapshot!(shown.unwrap_or_default(), @r#"
        error[unknown-package]: Package SHPO does not exist; did you mean shop?
         --> the code:1:8
          |
        1 | (list (shpo:f 1) 2)
          |        ^^^^^^
        "#);
        let symbol =
            error("SB-INT:SIMPLE-READER-PACKAGE-ERROR", "Symbol \"FOO\" not found in the COMMON-LISP package.", 6);
        insta::assert_snapshot!(reader_error(&given("cl:foo"), &symbol, |_| None).unwrap_or_default(), @r#"
        error[unknown-symbol]: Symbol "FOO" not found in the COMMON-LISP package.
         --> the code:1:1
          |
        1 | cl:foo
          | ^^^^^^
        "#);
        let other = error("READER-ERROR", "illegal sharp macro character: #\\<", 2);
        insta::assert_snapshot!(reader_error(&given("#<a>"), &other, |_| None).unwrap_or_default(), @r#"
        error[reader-error]: illegal sharp macro character: #\<
         --> the code:1:1
          |
        1 | #<a>
          | ^^^^
        "#);
        assert_eq!(
            reader_error(&given("(f)"), &EvalError::new("TYPE-ERROR", "Package X does not exist."), |_| None),
            None
        );
    }
}
