//! The questions with which a debugger steps through a recording.

use serde::Serialize;

use super::record::RecordingQuestion;
use crate::model::recording::{
    RecordedCalls, RecordedMoment, RecordedPlaces, RecordedText, RecordedValue, RecordedValues, RecordingBreakpoint,
};

/// The maximum number of values or frames that one question asks for.
const PAGE: u64 = 200;

/// A question as it is serialized, with the field names of docs/wire.md, `record`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "query", rename_all = "lowercase")]
enum Query<'a> {
    Begin,
    Step { event: u64, how: &'a str, points: &'a [RecordingBreakpoint] },
    Frames { event: u64, start: u64, count: u64 },
    Parts { event: u64, frame: u64, scope: &'a str, path: &'a [u64], start: u64, count: u64 },
    Evaluate { event: u64, frame: u64, code: &'a str, hover: bool },
    Breakpoints { points: &'a [RecordingBreakpoint] },
    Text { unit: u64 },
}

macro_rules! question {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty),* } $answer:ty, $query:expr) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type),* }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let query: fn(&$name) -> Query<'_> = $query;
                query(self).serialize(serializer)
            }
        }

        impl RecordingQuestion for $name {
            type Answer = $answer;
        }
    };
}

question!(
    /// The question for the event that is shown first: the error that nothing handled, otherwise
    /// the origin of a value that a test's check found wrong, otherwise the first event.
    ReplayBegin {} RecordedMoment, |_| Query::Begin);

question!(
    /// The question for the event at which a step, or a run to a breakpoint, ends.
    ReplayStep {
        /// The number of the event at which the step begins.
        event: u64,
        /// The step: `next`, `back`, `into`, `out`, `continue` or `reverse`.
        how: &'static str,
        /// The breakpoints at which `continue` and `reverse` end.
        points: Vec<RecordingBreakpoint>
    } RecordedMoment,
    |step| Query::Step { event: step.event, how: step.how, points: &step.points });

question!(
    /// The question for the calls that were in progress at an event.
    ReplayFrames {
        /// The number of the event.
        event: u64,
        /// The index of the first call to return.
        start: u64,
        /// The maximum number of calls to return; at most 200 are.
        count: u64
    } RecordedCalls,
    |frames| Query::Frames { event: frames.event, start: frames.start, count: frames.count.min(PAGE) });

question!(
/// The question for the values of a scope, or the parts of one of them.
ReplayValues {
    /// The number of the event.
    event: u64,
    /// The frame.
    frame: u64,
    /// The scope: `variables` or `values`.
    scope: &'static str,
    /// The path to a value: its index in the scope, then the index of a part of that value, and so
    /// on. An empty path stands for the scope itself.
    path: Vec<u64>,
    /// The index of the first value or part to return.
    start: u64,
    /// The maximum number of values to return; at most 200 are.
    count: u64
} RecordedValues,
|values| Query::Parts {
    event: values.event, frame: values.frame, scope: values.scope, path: &values.path, start: values.start,
    count: values.count.min(PAGE),
});

question!(
    /// The question for the value of a variable, or of an expression over copies of the variables'
    /// values.
    ReplayEvaluate {
        /// The event.
        event: u64,
        /// The frame.
        frame: u64,
        /// The name of the variable, or the expression.
        code: String,
        /// True if `code` may only be a variable, so that no expression is evaluated.
        hover: bool
    } RecordedValue,
    |asked| Query::Evaluate { event: asked.event, frame: asked.frame, code: &asked.code, hover: asked.hover });

question!(
    /// The question for the places in recorded definitions at which breakpoints stop.
    ReplayBreakpoints {
        /// The breakpoints.
        points: Vec<RecordingBreakpoint>
    } RecordedPlaces,
    |asked| Query::Breakpoints { points: &asked.points });

question!(
    /// The question for the text of a recorded definition.
    ReplayText {
        /// The number of the definition.
        unit: u64
    } RecordedText,
    |asked| Query::Text { unit: asked.unit });

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn questions_have_the_names_of_the_wire() {
        let point = RecordingBreakpoint { id: 1, file: "/a.lisp".into(), line: 3, column: None };
        let step = ReplayStep { event: 7, how: "back", points: vec![point] };
        let expected = json!({
            "query": "step", "event": 7, "how": "back", "points": [{"id": 1, "file": "/a.lisp", "line": 3}],
        });
        assert_eq!(serde_json::to_value(step).ok(), Some(expected));
        assert_eq!(serde_json::to_value(ReplayBegin {}).ok(), Some(json!({"query": "begin"})));
    }
}
