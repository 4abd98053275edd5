//! The Lisp sources that Debian packages, and SBCL's reader over them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Returns the files below `directory` that have one of these extensions, sorted. Links are not
/// followed, so that each file comes once and there are no cycles.
pub fn below(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(directory, extensions, &mut files);
    files.sort();
    files
}

fn collect(directory: &Path, extensions: &[&str], files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let wanted = || path.extension().is_some_and(|own| extensions.iter().any(|one| own == *one));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, extensions, files),
            Ok(kind) if kind.is_file() && wanted() => files.push(path),
            _ => {}
        }
    }
}

/// Returns the output of the script `tests/scanner/NAME` for these lines, in lines.
pub fn ask_sbcl(script: &str, mut lines: String) -> Result<Vec<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scanner").join(script);
    let mut sbcl = Command::new("sbcl")
        .args(["--noinform", "--no-sysinit", "--no-userinit", "--script"])
        .arg(script)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("this test needs `sbcl` on PATH (`make test` installs it)")?;
    let mut stdin = sbcl.stdin.take().context("no pipe to sbcl")?;
    if !lines.ends_with('\n') {
        lines.push('\n');
    }
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = sbcl.wait_with_output()?;
    if let Err(error) = writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))? {
        bail!("sbcl stopped reading: {error}");
    }
    ensure!(output.status.success(), "sbcl failed: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}
