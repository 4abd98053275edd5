//! `consort check` on the same systems.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use consort_tests::place::Place;
use serde::Deserialize;

use crate::corpus::Corpus;

/// Clock ticks a second in `/proc`.
const TICKS: f64 = 100.0;
/// Seconds for which the end of a copy is waited for.
const PATIENCE_FOR_END: f64 = 5.0;

/// A line of `consort check --json`, as far as it is used.
#[derive(Deserialize)]
pub(crate) struct Finding {
    pub(crate) file: PathBuf,
    range: Range,
    severity: u8,
    pub(crate) message: String,
    code: String,
}

#[derive(Deserialize)]
struct Range {
    start: Position,
}

#[derive(Deserialize)]
struct Position {
    line: usize,
    character: usize,
}

impl Finding {
    /// In the words of `baseline.lisp`.
    pub(crate) fn severity(&self) -> &'static str {
        match self.severity {
            1 => "error",
            2 => "warning",
            4 => "note",
            _ if self.is_information() => "information",
            _ => "style-warning",
        }
    }

    fn is_information(&self) -> bool {
        matches!(self.code.as_str(), "not-for-this-lisp" | "no-system" | "system-not-loaded" | "not-checked")
    }

    /// The byte at which it begins in `text`, its file's.
    fn offset(&self, text: &str) -> usize {
        let start = &self.range.start;
        let line_start: usize = text.split_inclusive('\n').take(start.line).map(str::len).sum();
        let mut units = 0;
        let within = text[line_start..].chars().take_while(|c| {
            units += c.len_utf16();
            units <= start.character
        });
        line_start + within.map(char::len_utf8).sum::<usize>()
    }
}

/// A check, and how long it took.
pub(crate) struct Check {
    pub(crate) findings: Vec<Finding>,
    pub(crate) seconds: f64,
    /// The processor's time of the copies of the image that it took, in seconds.
    pub(crate) processor: f64,
}

/// A host for the definition's directory.
pub(crate) struct Host<'a> {
    corpus: &'a Corpus,
    place: Place,
}

impl Host<'_> {
    /// # Errors
    /// There is no binary.
    pub(crate) fn new<'a>(corpus: &'a Corpus, definition: &Path) -> Result<Host<'a>> {
        let directory = definition.parent().context("a definition without a directory")?;
        Ok(Host { corpus, place: Place::new(directory.to_path_buf())? })
    }

    fn run(&self, args: &[&str]) -> Result<std::process::Output> {
        let mut command = self.place.command(args);
        self.corpus.environment(&mut command);
        command.output().context("cannot run consort")
    }

    /// Evaluates `code` in the image.
    ///
    /// # Errors
    /// The check fails.
    pub(crate) fn evaluate(&self, code: &str) -> Result<()> {
        let output = self.run(&["eval", "--timeout", "900", code])?;
        ensure!(
            output.status.success(),
            "{code}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// Checks these files or this system.
    ///
    /// # Errors
    /// The check cannot be made.
    pub(crate) fn check(&self, paths: &[&Path]) -> Result<Check> {
        let mut args = vec!["check", "--json", "--timeout", "900"];
        for path in paths {
            args.push(path.to_str().context("a path that is not UTF-8")?);
        }
        let before = self.processor_of_copies()?;
        let begun = Instant::now();
        let output = self.run(&args)?;
        let seconds = begun.elapsed().as_secs_f64();
        // A copy counts when the image has noticed its end.
        let mut processor = self.processor_of_copies()? - before;
        while processor <= 0.0 && begun.elapsed().as_secs_f64() < seconds + PATIENCE_FOR_END {
            std::thread::sleep(Duration::from_millis(5));
            processor = self.processor_of_copies()? - before;
        }
        ensure!(
            matches!(output.status.code(), Some(0 | 1)),
            "consort check: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let findings = String::from_utf8(output.stdout)?
            .lines()
            .map(|line| {
                let mut finding: Finding = serde_json::from_str(line)?;
                finding.file = self.place.workspace().join(&finding.file);
                Ok(finding)
            })
            .collect::<Result<Vec<Finding>>>()?;
        Ok(Check { findings, seconds, processor })
    }

    /// The processor's time, in seconds, of the copies of the image that have ended.
    fn processor_of_copies(&self) -> Result<f64> {
        let status = self.place.status()?.context("no host runs")?;
        let pid = status["image"]["pid"].as_u64().context("no image runs")?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // Behind the name, which may have spaces; then the 16th and 17th fields are ticks of
        // children.
        let fields: Vec<&str> = stat.rsplit_once(')').context("no name")?.1.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
        let (user, system) = (ticks(13).context("no times")?, ticks(14).context("no times")?);
        Ok((user + system) / TICKS)
    }

    /// Ends the host.
    ///
    /// # Errors
    /// The check does not end.
    pub(crate) fn clear(&self) -> Result<()> {
        self.place.clear()
    }
}

/// The top-level form that each finding is in: its number among `forms`, its file's.
pub(crate) fn forms_of<'a>(
    findings: &'a [Finding],
    files: &BTreeMap<PathBuf, Vec<usize>>,
) -> impl Iterator<Item = (&'a Finding, usize)> {
    let texts: BTreeMap<PathBuf, String> = files
        .keys()
        .map(|file| {
            let bytes = std::fs::read(file).unwrap_or_default();
            let text = String::from_utf8(bytes)
                .unwrap_or_else(|error| error.into_bytes().iter().map(|&b| b as char).collect());
            (file.clone(), text)
        })
        .collect();
    let files = files.clone();
    findings.iter().map(move |finding| {
        let form = match (texts.get(&finding.file), files.get(&finding.file)) {
            (Some(text), Some(forms)) => {
                let offset = finding.offset(text);
                forms.iter().take_while(|&&start| start <= offset).count().saturating_sub(1)
            }
            _ => 0,
        };
        (finding, form)
    })
}
