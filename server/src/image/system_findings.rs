//! What a copy streams back of a whole system: the findings of each file, taken as untrusted.

use std::path::{Path, PathBuf};

use super::api::SystemReport;
use super::findings::{Findings, Limit, Line, TOTAL_LIMIT};
use super::task::Gather;

/// Files of one system.
const FILES: usize = 10_000;
/// A longer file has no diagnostics of ours.
const FILE_LIMIT: u64 = 64 << 20;

/// What is known so far.
#[derive(Debug)]
pub(super) struct SystemFindings {
    /// The system's definition, for what no file is to blame for.
    asd: PathBuf,
    /// The token was right.
    trusted: bool,
    bytes: usize,
    files: Vec<(PathBuf, Findings)>,
    /// The index of the file that it is at.
    at: Option<usize>,
    done: bool,
}

impl SystemFindings {
    /// None yet, of the system that `asd` defines.
    pub(super) fn new(asd: PathBuf) -> SystemFindings {
        SystemFindings { asd, trusted: false, bytes: 0, files: Vec::new(), at: None, done: false }
    }

    /// The index of a file, new or known; `None` when there are too many.
    fn index(&mut self, path: PathBuf) -> Option<usize> {
        if let Some(index) = self.files.iter().rposition(|(known, _)| *known == path) {
            return Some(index);
        }
        if self.files.len() >= FILES {
            return None;
        }
        let findings = Findings::new(length(&path));
        self.files.push((path, findings));
        Some(self.files.len() - 1)
    }

    fn report(self, last: Option<usize>, end: Option<(Limit, String)>) -> SystemReport {
        let reports = self.files.into_iter().enumerate().map(|(index, (path, findings))| {
            let report = match &end {
                Some((limit, reason)) if last == Some(index) => findings.stopped(*limit, reason.clone()),
                _ => findings.complete(),
            };
            (path, report)
        });
        SystemReport { files: reports.collect() }
    }
}

impl Gather for SystemFindings {
    type Report = SystemReport;

    fn take(&mut self, line: &[u8], token: &str) -> Result<(), String> {
        self.bytes += line.len() + 1;
        if self.bytes > TOTAL_LIMIT {
            return Err(format!("it reported more than {} MB", TOTAL_LIMIT >> 20));
        }
        let parsed = serde_json::from_slice::<Line>(line);
        if !self.trusted {
            self.trusted = matches!(&parsed, Ok(Line { token: Some(said), .. }) if said == token);
            return if self.trusted { Ok(()) } else { Err("it did not say the token it was given".into()) };
        }
        match parsed {
            Ok(Line { file: Some(file), diagnostic: Some(diagnostic), .. }) => {
                if let Some(index) = self.index(file) {
                    self.files[index].1.add(*diagnostic);
                }
            }
            Ok(Line { file: Some(file), .. }) => self.at = self.index(file),
            Ok(Line { at: Some(span), .. }) => {
                if let Some(index) = self.at {
                    self.files[index].1.at(span);
                }
            }
            Ok(Line { done: Some(_), .. }) => self.done = true,
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "a check's copy sent a line that cannot be used"),
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn complete(self) -> SystemReport {
        self.report(None, None)
    }

    fn stopped(mut self, limit: Limit, reason: String) -> SystemReport {
        let last = match self.at {
            Some(at) => Some(at),
            None => self.index(self.asd.clone()),
        };
        self.report(last, Some((limit, reason)))
    }
}

/// Characters of a file, read as the copy reads it (docs/wire.md): as UTF-8, or as Latin-1 when it is none.
fn length(path: &Path) -> usize {
    let readable = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_LIMIT);
    let bytes = if readable { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    std::str::from_utf8(&bytes).map_or(bytes.len(), |text| text.chars().count())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::image::api::CheckEnd;

    fn told(dir: &Path, lines: &[String]) -> SystemFindings {
        let mut findings = SystemFindings::new(dir.join("s.asd"));
        findings.take(br#"{"token":"t","pid":1}"#, "t").unwrap();
        for line in lines {
            findings.take(line.as_bytes(), "t").unwrap();
        }
        findings
    }

    fn diagnostic(file: &Path, span: [usize; 2]) -> String {
        let diagnostic = serde_json::json!({"span": span, "severity": "error", "code": "x", "message": "m"});
        serde_json::json!({"file": file, "diagnostic": diagnostic}).to_string()
    }

    #[test]
    fn each_file_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a.lisp"), dir.path().join("b.lisp"));
        std::fs::write(&a, "(λ)").unwrap();
        std::fs::write(&b, b"\xe9\xe9").unwrap();
        let file = |path: &Path| serde_json::json!({ "file": path }).to_string();
        let lines = [file(&a), r#"{"at":[0,3]}"#.into(), file(&b), diagnostic(&a, [0, 99]), diagnostic(&b, [1, 99])];
        let findings = told(dir.path(), &[&lines[..], &[r#"{"done":{"forms":2}}"#.into()]].concat());
        assert!(findings.is_done());
        let report = findings.complete();
        assert!(report.files.iter().all(|(_, report)| report.end == CheckEnd::Complete));
        let ends: Vec<_> = report.files.iter().map(|(path, report)| (path, report.diagnostics[0].span.end)).collect();
        assert_eq!(ends, [(&a, 3), (&b, 2)]);

        let stopped = told(dir.path(), &lines).stopped(Limit::Time, "it took long.".into());
        assert_eq!(stopped.files[0].1.end, CheckEnd::Complete);
        assert_eq!(stopped.files[1].1.end, CheckEnd::Stopped { reason: "it took long.".into() });
    }

    #[test]
    fn a_system_that_never_began_is_told_at_its_definition() {
        let dir = tempfile::tempdir().unwrap();
        let report = told(dir.path(), &[]).stopped(Limit::Other, "it was killed.".into());
        assert_eq!(report.files.len(), 1);
        assert_eq!(report.files[0].0, dir.path().join("s.asd"));
        assert_eq!(report.files[0].1.end, CheckEnd::Stopped { reason: "it was killed.".into() });
    }

    #[test]
    fn a_stranger_is_refused() {
        assert!(SystemFindings::new("s.asd".into()).take(br#"{"token":"x"}"#, "t").is_err());
    }
}
