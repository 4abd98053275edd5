//! The arguments of `inspect`, and their combined meaning.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::Failure;
use crate::ide::inspect;
use crate::ide::stops::Stack;
use crate::model::error_kind::ErrorKind;

/// The default number of parts of a page.
const PAGE: usize = 50;
/// The default deadline of code that is run on a value, in seconds.
const DEADLINE: f64 = 30.0;

/// What is shown of the value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Show {
    #[default]
    Parts,
    Table,
    Describe,
    Definition,
}

/// The tool's arguments.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Default: `*`
    #[serde(default)]
    pub(super) code: Option<String>,
    /// A number from an answer; `*` in code
    #[serde(default)]
    pub(super) value: Option<u64>,
    /// Part numbers, outer to inner
    #[serde(default)]
    pub(super) path: Option<Vec<usize>>,
    /// Default: parts
    #[serde(default)]
    pub(super) show: Option<Show>,
    /// Parts with this text
    #[serde(default)]
    pub(super) find: Option<String>,
    /// Code: sets the part
    #[serde(default)]
    pub(super) new: Option<String>,
    /// Value to compare with
    #[serde(default)]
    pub(super) other: Option<u64>,
    #[serde(default)]
    pub(super) stop: Option<u64>,
    /// Instead of stop
    #[serde(default)]
    pub(super) failure: Option<u64>,
    /// Default: 0
    #[serde(default)]
    pub(super) frame: Option<usize>,
    /// Default 50
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: Option<usize>,
    #[serde(default)]
    pub(super) offset: Option<usize>,
    #[serde(default)]
    pub(super) package: Option<String>,
    /// Seconds. Default 30.
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 86400))]
    pub(super) timeout: Option<f64>,
}

/// The source of the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A value that was shown.
    Number(u64),
    /// A variable of the image or of the agent's session.
    Variable(String),
    /// Code that is evaluated in the session.
    Code(String),
    /// Code that is run on a value that was shown.
    On(u64, String),
    /// A local variable or code in a frame.
    Frame(Stack, usize, String),
}

/// The action on the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueAction {
    Show(Show),
    Set(String),
    Compare(u64),
    Find(String),
}

impl Input {
    /// Returns the source of the value, and the action on it.
    ///
    /// # Errors
    /// The arguments contradict each other, or name no value.
    pub(super) fn parse(&self) -> Result<(Source, ValueAction), Failure> {
        let bad = |why: &str| {
            Err(Failure { kind: ErrorKind::BAD_ARGUMENTS, message: format!("Bad arguments for inspect: {why}.") })
        };
        let code = self.code.clone();
        let source = match (self.stop, self.failure, self.value, code) {
            (Some(_), Some(_), ..) => return bad("give `stop` or `failure`, not both"),
            (Some(_), _, Some(_), _) | (_, Some(_), Some(_), _) => {
                return bad("give `value` or a `stop` or `failure`, not both");
            }
            (Some(_), _, _, None) | (_, Some(_), _, None) => {
                return bad("`code` is missing: it must be a variable of the frame, or other code");
            }
            (Some(stop), None, None, Some(code)) => Source::Frame(Stack::Stop(stop), self.frame.unwrap_or(0), code),
            (None, Some(number), None, Some(code)) => {
                Source::Frame(Stack::Failure(number), self.frame.unwrap_or(0), code)
            }
            (None, None, _, _) if self.frame.is_some() => return bad("`frame` needs a `stop` or a `failure`"),
            (None, None, Some(value), None) => Source::Number(value),
            (None, None, Some(value), Some(code)) => Source::On(value, code),
            (None, None, None, None) => Source::Variable("*".into()),
            (None, None, None, Some(code)) if inspect::is_variable(&code) => Source::Variable(code.trim().into()),
            (None, None, None, Some(code)) => Source::Code(code),
        };
        if self.package.is_some() && !matches!(source, Source::Variable(_) | Source::Code(_)) {
            return bad("`package` is for code in the session alone");
        }
        let doing = match (&self.new, self.other, &self.find, self.show) {
            (None, None, None, show) => ValueAction::Show(show.unwrap_or_default()),
            (Some(new), None, None, None) => ValueAction::Set(new.clone()),
            (None, Some(other), None, None) => ValueAction::Compare(other),
            (None, None, Some(text), None | Some(Show::Parts)) => ValueAction::Find(text.clone()),
            _ => return bad("give one of `show`, `find`, `new` and `other`"),
        };
        if matches!(&doing, ValueAction::Set(_)) && self.path.as_deref().unwrap_or_default().is_empty() {
            return bad("`path` is missing: it must lead to the part that is set to the value of `new`");
        }
        let fits = matches!(
            (&source, &doing),
            (Source::Number(_), _)
                | (_, ValueAction::Show(Show::Parts))
                | (
                    Source::Variable(_),
                    ValueAction::Compare(_) | ValueAction::Find(_) | ValueAction::Show(Show::Table | Show::Definition)
                )
        );
        if !fits {
            return bad("first inspect the value, then give its number as `value`, without `code`");
        }
        Ok((source, doing))
    }

    /// Returns the start and the length of the page.
    pub(super) fn page(&self) -> (usize, usize) {
        (self.offset.unwrap_or(0), self.limit.unwrap_or(PAGE))
    }

    pub(super) fn deadline(&self) -> Duration {
        Duration::from_secs_f64(self.timeout.unwrap_or(DEADLINE))
    }

    /// Returns the deadline in the form that the image's operations take.
    pub(super) fn at_most(&self) -> Option<f64> {
        Some(self.deadline().as_secs_f64())
    }
}
