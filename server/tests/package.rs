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
