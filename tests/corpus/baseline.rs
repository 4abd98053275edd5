//! Plain SBCL and ASDF on a system, in a fresh process (`baseline.lisp`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::corpus::Corpus;

/// A line of `baseline.lisp`, which has some of these.
#[derive(Deserialize)]
struct Line {
    file: Option<PathBuf>,
    form: Option<usize>,
    severity: Option<String>,
    message: Option<String>,
    #[serde(default)]
    package: String,
    forms: Option<Vec<usize>>,
    seconds: Option<f64>,
    #[serde(default)]
    processor: f64,
    failed: Option<String>,
}

/// A condition that the compiler signals.
pub(crate) struct Condition {
    pub(crate) file: PathBuf,
    /// The number of the top-level form in its file.
    pub(crate) form: usize,
    /// `error`, `warning` or `style-warning`.
    pub(crate) severity: String,
    pub(crate) message: String,
    /// The current package then.
    pub(crate) package: String,
}

/// All that plain SBCL says of a system.
pub(crate) struct Plain {
    /// The files that were compiled, each with the bytes at which its top-level forms begin, or the
    /// blank before them.
    pub(crate) files: BTreeMap<PathBuf, Vec<usize>>,
    pub(crate) conditions: Vec<Condition>,
    /// How long `asdf:compile-system` took, with the systems it depends on loaded.
    pub(crate) seconds: f64,
    /// The processor's time for it, in seconds.
    pub(crate) processor: f64,
}

/// Compiles a system, with those it depends on loaded.
///
/// # Errors
/// SBCL cannot be run, or the system cannot be compiled.
pub(crate) fn compile(corpus: &Corpus, system: &str) -> Result<Plain> {
    let output = tempfile::NamedTempFile::new()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/baseline.lisp");
    let mut sbcl = Command::new("sbcl");
    sbcl.args([
        "--noinform",
        "--dynamic-space-size",
        "4096",
        "--no-sysinit",
        "--no-userinit",
        "--non-interactive",
        "--load",
    ])
    .arg(script)
    .env("CORPUS_SYSTEM", system)
    .env("CORPUS_OUTPUT", output.path())
    .stdin(Stdio::null());
    corpus.environment(&mut sbcl);
    let ended = sbcl.output().context("cannot run sbcl")?;
    ensure!(ended.status.success(), "sbcl: {}: {}", ended.status, first_lines(&ended.stderr));
    read(&std::fs::read_to_string(output.path())?)
}

fn first_lines(stderr: &[u8]) -> String {
    String::from_utf8_lossy(stderr).lines().take(5).collect::<Vec<_>>().join("\n")
}

fn read(lines: &str) -> Result<Plain> {
    let mut plain = Plain { files: BTreeMap::new(), conditions: Vec::new(), seconds: 0.0, processor: 0.0 };
    let mut done = false;
    for line in lines.lines() {
        let line: Line = serde_json::from_str(line).with_context(|| line.to_owned())?;
        match line {
            Line { failed: Some(failed), .. } => bail!("plain SBCL does not compile it: {failed}"),
            Line { seconds: Some(seconds), processor, .. } => {
                plain.seconds = seconds;
                plain.processor = processor;
                done = true;
            }
            Line { file: Some(file), forms: Some(forms), .. } => {
                ensure!(plain.files.insert(file.clone(), forms).is_none(), "{} was compiled twice", file.display());
            }
            Line { file: Some(file), severity: Some(severity), message: Some(message), form, package, .. } => {
                plain.conditions.push(Condition { file, form: form.unwrap_or(0), severity, message, package })
            }
            _ => bail!("a line of another kind"),
        }
    }
    ensure!(done, "sbcl ended early");
    ensure!(!plain.files.is_empty(), "the system has no files of its own");
    Ok(plain)
}
