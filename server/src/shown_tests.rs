//! Test that all output to a terminal is escaped by [`crate::shown`], except for the lines listed
//! here.

use crate::source_tests::{Allowed, assert_only_allowed};

/// The calls that write to a terminal without escaping.
const WRITERS: &[&str] =
    &["println!(", "print!(", "io::stdout()", "io::stderr()", "print_as_it_is(", "print_error_as_it_is("];

/// The lines that may contain such a call, each given by its file and a part of the line, with the
/// reason.
const ALLOWED: &Allowed = &[
    ("cli/check.rs", "terminal.render(", "the renderer escapes, and colours"),
    ("cli/check.rs", "colour(", "a question about the stream"),
    ("cli/doctor.rs", "{sign} {text}", "a coloured sign before an escaped text"),
    ("cli/doctor.rs", "colour(", "a question about the stream"),
    ("cli/eval.rs", "io::stdout().is_terminal()", "a question about the stream"),
    ("cli/eval.rs", "if stderr {", "the program's own output"),
    ("cli/eval.rs", "print_error_as_it_is(&shown)", "the renderer escapes, and colours"),
    ("cli/eval.rs", "colour(", "a question about the stream"),
    ("cli/logging.rs", "colour(", "a question about the stream"),
    ("cli/logging.rs", "flush()", "nothing is written"),
    ("cli/output.rs", "", "the functions themselves"),
    ("cli/repl/evaluation.rs", "print_error_as_it_is(rendered)", "the renderer escapes, and colours"),
    ("cli/repl/plain.rs", "entry(", "the prompt that the program chose"),
    ("cli/repl/read.rs", "is_terminal()", "a question about the stream"),
    ("cli/repl/read.rs", "colour(", "a question about the stream"),
    ("cli/repl/screen.rs", "", "escaped there, when it is a terminal"),
    ("cli/logging.rs", "shown::record(", "escaped in the line before, but for the log's own colours"),
    ("cli/serve.rs", "io::stdout().lock()", "one of Consort's own words, for the client that started it"),
    ("host/bridge/mod.rs", "as_fd()", "the descriptor"),
    ("host/bridge/protocol.rs", "eprintln!(", "sentences of Consort's own; the reason in one is escaped"),
];

#[test]
fn nothing_is_printed_that_is_not_escaped() {
    let writes = |_: &str, line: &str| {
        let other = line.starts_with("use ") || line.contains("shown::terminal(");
        !other && WRITERS.iter().any(|writer| line.contains(writer))
    };
    assert_only_allowed(writes, 1, ALLOWED, "use cli/output.rs or shown::terminal");
}
