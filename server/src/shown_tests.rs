//! Output to a terminal: all of it goes through the escaping of [`crate::shown`], but for what is
//! listed here.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The calls that write to a terminal without escaping.
const WRITERS: &[&str] =
    &["println!(", "print!(", "io::stdout()", "io::stderr()", "print_as_it_is(", "print_error_as_it_is("];

/// The lines that may have one, each by its file and a part of the line, with the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("cli/check.rs", "print_as_it_is(&lines)", "JSON"),
    ("cli/check.rs", "terminal.render(", "the renderer escapes, and colours"),
    ("cli/check.rs", "colour(", "a question about the stream"),
    ("cli/doctor.rs", "{sign} {text}", "a coloured sign before an escaped text"),
    ("cli/doctor.rs", "colour(", "a question about the stream"),
    ("cli/eval.rs", "if stderr {", "the program's own output"),
    ("cli/eval.rs", "print_error_as_it_is(&shown)", "the renderer escapes, and colours"),
    ("cli/eval.rs", "colour(", "a question about the stream"),
    ("cli/logging.rs", "colour(", "a question about the stream"),
    ("cli/logging.rs", "write_all(text.as_bytes())", "escaped there"),
    ("cli/logging.rs", "flush()", "nothing is written"),
    ("cli/output.rs", "", "the functions themselves"),
    ("cli/repl/plain.rs", "entry(", "the prompt that the program chose"),
    ("cli/repl/read.rs", "is_terminal()", "a question about the stream"),
    ("cli/repl/read.rs", "colour(", "a question about the stream"),
    ("cli/repl/screen.rs", "", "escaped there, when it is a terminal"),
    ("cli/repl/talk.rs", "print_error_as_it_is(&shown)", "the renderer escapes, and colours"),
    ("cli/serve.rs", "io::stdout().lock()", "one of Consort's own words, for the client that started it"),
    ("cli/status.rs", "print_as_it_is(&format!(\"{status}", "JSON"),
    ("cli/status.rs", "json!(", "JSON"),
    ("host/bridge/mod.rs", "as_fd()", "the descriptor"),
    ("host/bridge/mod.rs", "eprintln!(", "a sentence of Consort's own"),
];

fn sources(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.to_str().is_some_and(|name| name.ends_with(".rs") && !name.ends_with("tests.rs")) {
            found.push(path);
        }
    }
}

#[test]
fn nothing_is_printed_that_is_not_escaped() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut files, mut used, mut wrong) = (Vec::new(), BTreeSet::new(), Vec::new());
    sources(&root, &mut files);
    assert!(files.len() > 300, "{}", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        // Tests come last in a file.
        let code = text.split_once("\nmod tests {\n").map_or(&text[..], |(code, _)| code);
        for (number, line) in code.lines().enumerate() {
            let is_use = line.trim_start().starts_with("//") || line.starts_with("use ");
            if is_use || !WRITERS.iter().any(|writer| line.contains(writer)) || line.contains("shown::terminal(") {
                continue;
            }
            match ALLOWED.iter().position(|(file, part, _)| *file == name && line.contains(part)) {
                Some(entry) => drop(used.insert(entry)),
                None => wrong.push(format!("{name}:{}: {}", number + 1, line.trim())),
            }
        }
    }
    assert!(wrong.is_empty(), "use cli/output.rs or shown::terminal, or say here why not:\n{}", wrong.join("\n"));
    let unused: Vec<_> = ALLOWED.iter().enumerate().filter(|(index, _)| !used.contains(index)).collect();
    assert!(unused.is_empty(), "allowed and not there: {unused:?}");
}
