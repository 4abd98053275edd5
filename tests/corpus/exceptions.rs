//! The differences that are known and argued.

use std::cell::Cell;

use anyhow::{Context, Result};

use crate::compare::Key;

/// `SYSTEM HOW KIND FILE WORDS | REASON`, a line each.
const EXCEPTIONS: &str = include_str!("exceptions");

struct Exception {
    /// A system's name, or `*`.
    system: &'static str,
    /// `whole`, `file` or `*`.
    how: &'static str,
    /// `false` or `missed`.
    kind: &'static str,
    /// A file's name, or `*`.
    file: &'static str,
    /// The beginning of the message, in the words of [`crate::compare::normal`].
    words: &'static str,
    reason: &'static str,
    used: Cell<u32>,
}

/// The list.
pub(crate) struct Exceptions(Vec<Exception>);

impl Exceptions {
    /// # Errors
    /// A line is not well formed.
    pub(crate) fn read() -> Result<Exceptions> {
        EXCEPTIONS
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| {
                let (what, reason) = line.split_once(" | ").with_context(|| format!("no reason: {line}"))?;
                let mut parts = what.splitn(5, ' ');
                let mut part = || parts.next().with_context(|| format!("too few words: {line}"));
                Ok(Exception {
                    system: part()?,
                    how: part()?,
                    kind: part()?,
                    file: part()?,
                    words: part()?,
                    reason,
                    used: Cell::new(0),
                })
            })
            .collect::<Result<_>>()
            .map(Exceptions)
    }

    /// Returns true if an exception explains this difference.
    pub(crate) fn argue(&self, system: &str, how: &str, kind: &str, key: &Key) -> bool {
        let name = key.file.file_name().unwrap_or_default().to_string_lossy();
        let is = |pattern: &str, value: &str| pattern == "*" || pattern == value;
        let found = self.0.iter().find(|one| {
            is(one.system, system)
                && is(one.how, how)
                && one.kind == kind
                && is(one.file, &name)
                && key.message.starts_with(one.words)
        });
        if let Some(one) = found {
            one.used.set(one.used.get() + 1);
        }
        found.is_some()
    }

    /// The exceptions that argued something: how often, what, why.
    pub(crate) fn used(&self) -> impl Iterator<Item = (u32, String, &str)> {
        self.0.iter().filter(|one| one.used.get() > 0).map(|one| {
            let what = format!("{} {} {} {}: {}", one.system, one.how, one.kind, one.file, one.words);
            (one.used.get(), what, one.reason)
        })
    }
}
