//! The crate can be packaged (`cargo package`), with everything that it is built of. The package is
//! not compiled here: its sources are those that the other tests compile.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::process::Command;

/// Runs `cargo package` without a network; returns what it printed.
fn package(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["package", "--allow-dirty", "--offline", "--locked", "--no-verify"])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo package failed:\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_package_is_made() {
    let target = tempfile::tempdir().unwrap();
    package(&["--target-dir", target.path().to_str().unwrap()]);
    let made = format!("package/consort-{}.crate", env!("CARGO_PKG_VERSION"));
    assert!(target.path().join(made).is_file());
}

#[test]
fn the_package_has_all_that_the_crate_is_built_of() {
    let listed = package(&["--list"]);
    let listed: Vec<&str> = listed.lines().collect();
    let order = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("lisp/sources.sexp")).unwrap();
    let lines = order.lines().filter(|line| !line.starts_with(';'));
    let lisp: Vec<String> =
        lines.flat_map(|line| line.split('"').skip(1).step_by(2)).map(|name| format!("lisp/src/{name}.lisp")).collect();
    assert!(lisp.len() > 50, "{lisp:?}");
    let others = ["build.rs", "lisp/boot.lisp", "lisp/sources.sexp", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];
    for file in lisp.iter().map(String::as_str).chain(others).chain(["src/lib.rs", "src/main.rs"]) {
        assert!(listed.contains(&file), "the package lacks {file}");
    }
    let tests = listed.iter().find(|file| file.starts_with("lisp/tests/"));
    assert_eq!(tests, None, "the package needs no Lisp tests");
}

/// The files that the source `text` at `path` has the compiler include; tests are left out.
fn included(path: &str, text: &str) -> Vec<String> {
    let main = text.split_once("mod tests {").map_or(text, |(main, _)| main);
    let calls =
        ["include_str!", "include_bytes!", "include_dir!"].into_iter().flat_map(|call| main.split(call).skip(1));
    let named =
        calls.map(|rest| rest.trim_start_matches(['(', '\n', ' ']).strip_prefix('"').unwrap().split('"').next());
    named.map(|name| resolved(path, name.unwrap())).collect()
}

/// A path of the package, from the package's directory; one that leaves it begins with `..`.
fn resolved(path: &str, name: &str) -> String {
    if let Some(name) = name.strip_prefix("$CARGO_MANIFEST_DIR/") {
        return name.to_owned();
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn what_is_included_is_in_the_package() {
    let text = "const A: &str = include_str!(\n    \"a.txt\"\n);\nstatic B: Dir = include_dir!(\"$CARGO_MANIFEST_DIR/lisp\");\n\
                const C: &[u8] = include_bytes!(\"../../../docs/c.md\");\nmod tests { include_str!(\"no\") }";
    let mut found = included("src/ide/x.rs", text);
    found.sort_unstable();
    assert_eq!(found, ["../docs/c.md", "lisp", "src/ide/a.txt"]);

    let listed = package(&["--list"]);
    let listed: Vec<&str> = listed.lines().collect();
    let is_test = |path: &str| path.contains("tests.rs") || path.contains("/tests/");
    let mut all = Vec::new();
    for path in listed.iter().filter(|path| path.starts_with("src/") && path.ends_with(".rs") && !is_test(path)) {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        all.extend(included(path, &text));
    }
    assert!(all.len() >= 3, "{all:?}");
    let has = |name: &String| listed.iter().any(|file| *file == name || file.starts_with(&format!("{name}/")));
    let lacking: Vec<&String> = all.iter().filter(|name| !has(name)).collect();
    assert!(lacking.is_empty(), "the package lacks what its sources include: {lacking:?}");
}
