//! The sources of the crate, for tests of the names and calls that code may contain.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::path::Path;

/// The lines that may contain a call, each given by its file and a part of the call, with the
/// reason.
pub(crate) type Allowed = [(&'static str, &'static str, &'static str)];

/// Returns the files of the crate, relative to `src/`, with their code without tests.
pub(crate) fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    add(&root, &root, &mut found);
    assert!(found.len() > 300, "{}", found.len());
    found
}

fn add(root: &Path, below: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        if path.is_dir() {
            add(root, &path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            // Tests come last in a file.
            let code = text.split_once("\nmod tests {\n").map_or(&text[..], |(code, _)| code);
            found.push((name.to_owned(), code.to_owned()));
        }
    }
}

/// Fails when `is_call` accepts a file and a line of it that are not in `allowed`, and when an
/// entry of `allowed` matches no line. `lines` is the number of lines over which a call may extend.
/// `advice` is the alternative to the call, for the message.
pub(crate) fn assert_only_allowed(is_call: impl Fn(&str, &str) -> bool, lines: usize, allowed: &Allowed, advice: &str) {
    let (mut used, mut wrong) = (BTreeSet::new(), Vec::new());
    for (name, code) in sources() {
        let all: Vec<&str> = code.lines().collect();
        for (number, line) in all.iter().enumerate() {
            if line.trim_start().starts_with("//") || !is_call(&name, line) {
                continue;
            }
            let call = all[number..].iter().take(lines).copied().collect::<String>();
            match allowed.iter().position(|(file, part, _)| *file == name && call.contains(part)) {
                Some(entry) => drop(used.insert(entry)),
                None => wrong.push(format!("{name}:{}: {}", number + 1, line.trim())),
            }
        }
    }
    assert!(wrong.is_empty(), "{advice}, or say here why not:\n{}", wrong.join("\n"));
    let unused: Vec<_> = allowed.iter().enumerate().filter(|(index, _)| !used.contains(index)).collect();
    assert!(unused.is_empty(), "allowed and not there: {unused:?}");
}
