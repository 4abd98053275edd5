//! The outcome of an evaluation: values, output, warnings, and the error that ended it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::frozen::Frozen;
use super::stack_frame::StackFrame;

/// Text clipped to a limit: its head, its tail, and the number of characters left out between them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clipped {
    /// The text; a line in it marks the place where characters were left out.
    pub text: String,
    /// The number of characters left out; 0 when the text is whole.
    #[serde(default)]
    pub omitted: usize,
}

/// A warning that was signalled and muffled during an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalWarning {
    /// The type, printed as seen from CL-USER: `WARNING`, `STYLE-WARNING`, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// The warning's text.
    pub message: String,
}

/// An unhandled serious condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalError {
    /// The type, printed as seen from CL-USER: `DIVISION-BY-ZERO`, `SB-INT:SIMPLE-PROGRAM-ERROR`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The condition's text.
    pub message: String,
    /// The name of a function whose call failed and left no frame of its own: `/`.
    #[serde(default)]
    pub operation: Option<String>,
    /// Up to 20 relevant frames, innermost first.
    #[serde(default)]
    pub backtrace: Vec<StackFrame>,
    /// The offset in characters at which the code becomes unreadable.
    #[serde(default, skip_serializing)]
    pub unread: Option<usize>,
}

impl EvalError {
    /// Creates an error without a backtrace, for an error that the user's code has not signalled.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> EvalError {
        EvalError { kind: kind.into(), message: message.into(), operation: None, backtrace: Vec::new(), unread: None }
    }
}

impl EvalError {
    /// Returns the message of a reader error without the line and the stream that SBCL adds at its
    /// end. They refer to a stream of Consort's own.
    pub fn message_without_stream(&self) -> &str {
        without_stream(&self.message)
    }
}

/// Returns a message without the line and the stream that an error of the reader
/// (`SB-INT:STREAM-READER-ERROR`) adds at its end, if the reader has read a string. Any other
/// message is returned as it is.
pub fn without_stream(message: &str) -> &str {
    let Some((before, stream)) = message.trim_end().rsplit_once("Stream: #<") else { return message };
    let is_whole = stream.find('>') == Some(stream.len() - 1);
    if !is_whole || !stream.contains("STRING-INPUT-STREAM") || !before.ends_with(char::is_whitespace) {
        return message;
    }
    let before = before.trim_end();
    match before.rsplit_once("Line: ") {
        Some((text, position)) if text.ends_with(char::is_whitespace) && is_position(position) => text.trim_end(),
        _ => before,
    }
}

/// Returns true for the text `1, Column: 5, File-Position: 5`.
fn is_position(text: &str) -> bool {
    let mut numbers = text.split(',').zip(["", "Column: ", "File-Position: "]).map(|(part, name)| {
        let number = part.trim().strip_prefix(name).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    numbers.all(|is_number| is_number) && text.matches(',').count() == 2
}

/// Time and allocation of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Wall-clock time, milliseconds.
    pub real_ms: f64,
    /// CPU time, milliseconds.
    pub run_ms: f64,
    /// Time in the garbage collector, milliseconds.
    pub gc_ms: f64,
    /// Bytes allocated.
    pub bytes: u64,
}

/// The end of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvalStatus {
    /// The evaluation returned values.
    Ok,
    /// An unhandled condition, `ABORT` or a refused exit, as given in `error`.
    Error,
    /// The deadline passed.
    Timeout,
    /// Interrupted by `interrupt` or a cancel.
    Interrupted,
    /// The image was lost with the evaluation. Reported by the host only.
    Lost,
    /// Nothing was evaluated. Reported by the host only.
    Refused,
    /// The evaluation waits at an agent's breakpoint. Reported by the host only.
    Stopped,
}

/// The answer to `eval`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalOutcome {
    /// The end of the evaluation.
    pub status: EvalStatus,
    /// The values of the last form, printed.
    #[serde(default)]
    pub values: Vec<Clipped>,
    /// The references by which the values can be inspected; 0 for a value with nothing to inspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<u64>,
    /// `*standard-output*`, and the output of foreign code and child processes on descriptor 1.
    #[serde(default)]
    pub stdout: Clipped,
    /// `*error-output*` and `*trace-output*`, and descriptor 2.
    #[serde(default)]
    pub stderr: Clipped,
    /// The warnings, in order.
    #[serde(default)]
    pub warnings: Vec<EvalWarning>,
    /// The error; present unless the status is `Ok`.
    #[serde(default)]
    pub error: Option<EvalError>,
    /// Time and allocation, when requested.
    #[serde(default)]
    pub timing: Option<Timing>,
    /// The session's current package afterwards.
    pub package: String,
    /// The frozen failure of an evaluation that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Frozen>,
    /// Descriptions of code that was compiled with a definition that the evaluation has replaced:
    /// `function SHOP::RUN expanded SHOP::WITH-TASK`.
    #[serde(default, skip_serializing)]
    pub stale: Vec<String>,
}

impl EvalOutcome {
    /// Creates an outcome without values and output, in CL-USER.
    pub fn empty(status: EvalStatus, error: Option<EvalError>) -> EvalOutcome {
        EvalOutcome {
            status,
            values: Vec::new(),
            references: Vec::new(),
            stdout: Clipped::default(),
            stderr: Clipped::default(),
            warnings: Vec::new(),
            error,
            timing: None,
            package: "COMMON-LISP-USER".into(),
            frozen: None,
            stale: Vec::new(),
        }
    }

    /// Returns the outcome as clients get it: with plain texts instead of clipped ones, and the
    /// number of all characters that were left out.
    pub fn facts(&self) -> EvalFacts<'_> {
        let clipped = [&self.stdout, &self.stderr];
        let has_references = self.references.iter().any(|reference| *reference != 0);
        EvalFacts {
            status: self.status,
            values: self.values.iter().map(|value| value.text.as_str()).collect(),
            stdout: &self.stdout.text,
            stderr: &self.stderr.text,
            omitted: self.values.iter().chain(clipped).map(|text| text.omitted).sum(),
            warnings: &self.warnings,
            error: self.error.as_ref(),
            timing: self.timing.as_ref(),
            package: &self.package,
            references: has_references.then_some(&self.references),
        }
    }

    /// Returns a line about the output that was not streamed because there was too much of it.
    pub fn missing_output(&self) -> Option<String> {
        let omitted = self.stdout.omitted.saturating_add(self.stderr.omitted);
        (omitted > 0).then(|| format!("; the output was too long: about {omitted} characters are not shown\n"))
    }
}

/// The outcome of an evaluation, as clients get it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvalFacts<'a> {
    /// The end of the evaluation.
    pub status: EvalStatus,
    /// The values of the last form, printed.
    pub values: Vec<&'a str>,
    /// The standard output.
    pub stdout: &'a str,
    /// The error output.
    pub stderr: &'a str,
    /// The number of characters left out of values and output.
    pub omitted: usize,
    /// The warnings, in order.
    pub warnings: &'a [EvalWarning],
    /// The error; present unless the status is `Ok`.
    pub error: Option<&'a EvalError>,
    /// Time and allocation, when requested.
    pub timing: Option<&'a Timing>,
    /// The session's current package afterwards.
    pub package: &'a str,
    /// The references to the values, if at least one value can be inspected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub references: Option<&'a Vec<u64>>,
}

/// An evaluation whose request was sent to the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentEvaluation {
    /// The number of the request.
    pub number: u64,
    /// The session that it runs in.
    pub session: String,
}

/// The answer to `load-system`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSystemOutcome {
    /// True if the system is loaded now.
    pub loaded: bool,
    /// The facts of the evaluation: output, warnings, the error if it failed.
    #[serde(flatten)]
    pub outcome: EvalOutcome,
    /// The source files that were loaded, if the image reports them. Unchanged files of a loaded
    /// system are not among them.
    #[serde(default, skip_serializing)]
    pub files: Option<Vec<PathBuf>>,
}

/// An evaluation in a copy of the image, and what it would have changed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TriedEvaluation {
    /// The outcome in the copy.
    #[serde(flatten)]
    pub outcome: EvalOutcome,
    /// True if the state of the copy was compared before and after; false if it reported no
    /// comparison.
    #[serde(default)]
    pub compared: bool,
    /// The parts of the image that would have changed: `functions`, `variables`, ...
    #[serde(default)]
    pub changed: Vec<String>,
    /// The messages of the first refusals of the confinement.
    #[serde(default)]
    pub refusals: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_readers_line_and_stream_are_left_out() {
        let stream = "Stream: #<SB-IMPL::STRING-INPUT-STREAM {100140B343}>";
        for position in ["Line: 1, Column: 5, File-Position: 5", "Line: 1, Column: 5,\n    File-Position: 5"] {
            let read = format!("unmatched close parenthesis\n\n    {position}\n\n    {stream}");
            assert_eq!(without_stream(&read), "unmatched close parenthesis");
        }
        assert_eq!(without_stream("illegal character Stream: #<STRING-INPUT-STREAM>"), "illegal character");
        let kept = format!("Bad record at Line: x. {stream}");
        assert_eq!(without_stream(&kept), "Bad record at Line: x.");
        for other in [
            "Bad record. Line: 3, field 2. Stream: closed",
            "Bad record. Line: 3, Column: 4, field 2 is no number",
            "Bad record. Line: 3, Column: 4, File-Position: 9",
            "Nothing came. Stream: #<FD-STREAM for \"a socket\"> Host: a",
            "No end. Line: 3, Column: 4, File-Position: 9 Stream: #<SB-SYS:FD-STREAM for \"file a\" {1}>",
        ] {
            assert_eq!(without_stream(other), other);
        }
    }
}
