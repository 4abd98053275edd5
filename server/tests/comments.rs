//! Comments of all languages in the repository: their width, and how few of their lines begin with
//! a bare pronoun or a relative clause, which a reader understands only after reading on.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and says its figures")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The limit of a line that is a comment, in columns.
const WIDTH: usize = 100;
/// The limit of lines that begin with one of [`BARE`], in percent of a language's comment lines.
const PERCENT: f64 = 1.0;
const BARE: [&str; 15] = [
    "How", "It", "Its", "Of", "That", "Their", "Them", "They", "Those", "What", "Whether", "Which", "Who", "Whom",
    "Whose",
];
/// Directories that are not read: other people's code, and inputs of tests, whose places count.
const OTHERS: [&str; 7] = ["node_modules", "out", "dist", "target", "fixtures", "seeds", "programs"];

/// The language of a file, and the characters that begin its comments.
fn language(path: &Path, text: &str) -> Option<(&'static str, &'static [&'static str])> {
    let of_extension = match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => return Some(("Rust", &["///", "//!", "//"])),
        Some("lisp") => return Some(("Lisp", &[";"])),
        Some("ts" | "mjs" | "js") => return Some(("TypeScript", &["//", "/**", "*/", "*"])),
        Some("lua") => return Some(("Lua", &["---", "--"])),
        Some("py") => "Python",
        Some("sh") => "Shell",
        Some(_) => return None,
        None => "",
    };
    let first = text.lines().next().filter(|line| line.starts_with("#!")).unwrap_or_default();
    match of_extension {
        "" if first.contains("python") => Some(("Python", &["#"])),
        "" if first.is_empty() => None,
        "" => Some(("Shell", &["#"])),
        language => Some((language, &["#"])),
    }
}

/// The text of a line that is a comment and nothing else.
fn comment<'a>(line: &'a str, starts: &[&str]) -> Option<&'a str> {
    let line = line.trim_start();
    let rest = starts.iter().find_map(|start| line.strip_prefix(start))?;
    let text = rest.trim_start_matches(';').trim();
    // `#!` is no comment.
    (!text.is_empty() && !text.starts_with('!')).then_some(text)
}

fn is_bare(text: &str) -> bool {
    let word: String = text.chars().take_while(|char| char.is_alphabetic()).collect();
    BARE.contains(&word.as_str())
}

fn files(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() && !OTHERS.contains(&name.as_str()) && !name.starts_with('.') {
            files(&path, found);
        } else if kind.is_file() {
            found.push(path);
        }
    }
}

#[test]
fn comments_are_narrow_and_begin_with_their_subject() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for directory in ["server", "lisp", "editors", "tests", "scripts", "fuzz"] {
        files(&root.join(directory), &mut found);
    }
    // In each language: the number of comment lines, and those that begin with a bare word.
    let mut counted: BTreeMap<&str, (usize, Vec<String>)> = BTreeMap::new();
    let mut wide = Vec::new();
    for path in found {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Some((language, starts)) = language(&path, &text) else { continue };
        let (lines, bare) = counted.entry(language).or_default();
        for (number, line) in text.lines().enumerate() {
            let Some(comment) = comment(line, starts) else { continue };
            *lines += 1;
            let place = || format!("{}:{}: {comment}", path.strip_prefix(root).unwrap().display(), number + 1);
            if line.chars().count() > WIDTH {
                wide.push(place());
            }
            if is_bare(comment) {
                bare.push(place());
            }
        }
    }
    assert!(wide.is_empty(), "comments wider than {WIDTH} columns:\n{}", wide.join("\n"));
    assert_eq!(counted.len(), 6, "{:?}", counted.keys());
    for (language, (lines, bare)) in counted {
        #[allow(clippy::cast_precision_loss, reason = "the numbers are small")]
        let percent = 100.0 * bare.len() as f64 / lines as f64;
        assert!(lines > 50, "{language}: only {lines} comment lines were found");
        assert!(percent < PERCENT, "{language}: {percent:.1} % of the comment lines:\n{}", bare.join("\n"));
    }
}

/// The numbers of the lines of prose that are wider than [`WIDTH`] in a text of Markdown: not those
/// of code, tables, headings and quotations.
fn wide_prose(text: &str) -> Vec<usize> {
    let (mut fenced, mut indented, mut blank) = (false, false, true);
    let mut wide = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") {
            fenced = !fenced;
        }
        indented = line.starts_with("    ") && (indented || blank);
        blank = start.is_empty();
        let other = fenced || indented || start.starts_with(['|', '#', '>', '<']);
        if !other && line.chars().count() > WIDTH {
            wide.push(number + 1);
        }
    }
    wide
}

#[test]
fn prose_is_narrow() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found: Vec<PathBuf> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.is_file());
    for directory in ["docs", "editors"] {
        files(&root.join(directory), &mut found);
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    assert!(found.len() > 20, "{found:?}");
    let wide: Vec<String> = found
        .iter()
        .flat_map(|path| {
            let lines = wide_prose(&std::fs::read_to_string(path).unwrap());
            lines.into_iter().map(move |line| format!("{}:{line}", path.strip_prefix(root).unwrap().display()))
        })
        .collect();
    assert!(wide.is_empty(), "prose wider than {WIDTH} columns:\n{}", wide.join("\n"));
}

#[test]
fn wide_prose_is_seen() {
    let long = "word ".repeat(30);
    let text = format!("{long}\n\n- {long}\n\n    {long}\n\n```\n{long}\n```\n| {long}\n# {long}\n> {long}\n{long}\n");
    assert_eq!(wide_prose(&text), [1, 3, 13]);
}

#[test]
fn a_bare_beginning_is_seen() {
    let starts = language(Path::new("x.lisp"), "").unwrap().1;
    assert_eq!(comment("  ;; What it does.", starts), Some("What it does."));
    assert_eq!(comment("(f) ; What it does.", starts), None);
    assert!(is_bare("What it does.") && is_bare("Its name") && !is_bare("Whatever") && !is_bare("The name"));
    assert_eq!(language(Path::new("scripts/test"), "#!/usr/bin/env bash\n").unwrap().0, "Shell");
    assert_eq!(comment("#!/bin/sh", &["#"]), None);
}
