//! What a copy can be asked to do, as [`super::copies`] sees it: one text checked, or a whole system.

use serde::Serialize;

use super::api::{CheckParams, CheckSystemParams};
use super::findings::{Findings, Limit};
use super::system_findings::SystemFindings;

/// What a copy is asked to do; serialised, its parameters.
pub(super) trait Task: Serialize + Send + Sync {
    /// What its lines are gathered in.
    type Gathered: Gather + Send;
    /// The operation's name (docs/wire.md).
    const OP: &'static str;
    /// Nothing yet.
    fn gather(&self) -> Self::Gathered;
    /// Seconds of wall clock.
    fn deadline(&self) -> f64;
    /// Bytes of private memory.
    fn memory(&self) -> u64;
}

/// The lines of a copy, taken as untrusted.
pub(super) trait Gather: Sized {
    /// What they come to.
    type Report: Send;
    /// Take a line. `Err`: the copy is not the one we made, or it floods us; for a person.
    fn take(&mut self, line: &[u8], token: &str) -> Result<(), String>;
    /// The copy said that it was done.
    fn is_done(&self) -> bool;
    /// The report, when it was done.
    fn complete(self) -> Self::Report;
    /// The report, when it was not: with a diagnostic on what it was at.
    fn stopped(self, limit: Limit, reason: String) -> Self::Report;
}

impl Task for CheckParams {
    type Gathered = Findings;
    const OP: &'static str = "check";

    fn gather(&self) -> Findings {
        Findings::new(self.text.chars().count())
    }

    fn deadline(&self) -> f64 {
        self.deadline
    }

    fn memory(&self) -> u64 {
        self.memory
    }
}

impl Task for CheckSystemParams {
    type Gathered = SystemFindings;
    const OP: &'static str = "check-system";

    fn gather(&self) -> SystemFindings {
        SystemFindings::new(self.asd.clone())
    }

    fn deadline(&self) -> f64 {
        self.deadline
    }

    fn memory(&self) -> u64 {
        self.memory
    }
}
