//! Condition by condition: what both sides say, in the same words.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::baseline::Plain;
use crate::ours::{Finding, forms_of};

/// The findings of a file. Undefined names count once a file: the compiler reports some of their
/// uses, Consort each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) file: PathBuf,
    pub(crate) form: Option<usize>,
    pub(crate) severity: String,
    pub(crate) message: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.file_name().unwrap_or_default().to_string_lossy();
        let form = self.form.map(|form| format!(" form {form}")).unwrap_or_default();
        write!(f, "{file}{form} {}: {}", self.severity, self.message)
    }
}

/// The severity of the compiler's notes.
pub(crate) const NOTE: &str = "note";

/// The findings that only one side has.
#[derive(Default)]
pub(crate) struct Difference {
    pub(crate) false_ones: Vec<Key>,
    pub(crate) missed: Vec<Key>,
}

/// The conditions of plain SBCL.
pub(crate) fn plain(plain: &Plain) -> BTreeSet<Key> {
    plain
        .conditions
        .iter()
        .map(|condition| {
            key(&condition.file, condition.form, &condition.severity, &condition.message, &condition.package)
        })
        .collect()
}

/// The findings of Consort.
pub(crate) fn ours(findings: &[Finding], files: &BTreeMap<PathBuf, Vec<usize>>) -> BTreeSet<Key> {
    forms_of(findings, files)
        .map(|(finding, form)| key(&finding.file, form, finding.severity(), &finding.message, ""))
        .collect()
}

/// Both compared.
pub(crate) fn compare(plain: &BTreeSet<Key>, ours: &BTreeSet<Key>) -> Difference {
    // Notes are told where code asks for speed, and not everywhere.
    let missed = plain.difference(ours).filter(|key| key.severity != NOTE).cloned().collect();
    Difference { false_ones: ours.difference(plain).cloned().collect(), missed }
}

fn key(file: &Path, form: usize, severity: &str, message: &str, package: &str) -> Key {
    let message = normal(message, package);
    let of_name = message.starts_with("Undefined ");
    Key { file: file.to_path_buf(), form: (!of_name).then_some(form), severity: severity.to_owned(), message }
}

/// A message without line breaks, addresses, stream names and the packages of symbols.
pub(crate) fn normal(message: &str, package: &str) -> String {
    let mut words = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if !package.is_empty() {
        words = words.replace(&format!("{package}::"), "");
    }
    if let Some(stream) = words.find(" Stream: #<") {
        words.truncate(stream);
    }
    words = words.replace(" Use *BREAK-ON-SIGNALS* to intercept.", "");
    without_addresses(&words).split(' ').map(without_package).collect::<Vec<_>>().join(" ")
}

/// `text` without the ` {1001A2B3C3}` of unreadable objects.
fn without_addresses(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some((before, after)) = rest.split_once(" {") {
        out.push_str(before);
        match after.split_once("}>") {
            Some((digits, behind)) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                out.push('>');
                rest = behind;
            }
            _ => {
                out.push_str(" {");
                rest = after;
            }
        }
    }
    out + rest
}

/// A word without the package of the symbol that it is or ends with.
fn without_package(word: &str) -> String {
    match word.rfind(':') {
        Some(colon) if colon + 1 < word.len() => {
            let before = &word[..colon];
            let start = before.trim_end_matches(':').rfind(['(', '\'', '`', '"', '#', ',']).map_or(0, |at| at + 1);
            // A keyword stays one.
            if before[start..].trim_end_matches(':').is_empty() {
                word.to_owned()
            } else {
                format!("{}{}", &word[..start], &word[colon + 1..])
            }
        }
        _ => word.to_owned(),
    }
}
