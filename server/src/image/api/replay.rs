//! Stepping through a recording: the questions that a debugger's view asks about it.

use serde::Serialize;

use super::record::RecordingQuestion;
use crate::model::recording::{
    RecordedCalls, RecordedMoment, RecordedPlaces, RecordedText, RecordedValue, RecordedValues, RecordingBreakpoint,
};

/// The maximum number of values or frames in an answer.
const PAGE: u64 = 200;

/// A question of a debugger's view, with the names of the wire (docs/wire.md, `record`).
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
    /// The question for the moment at which a person begins: the error that nothing handled, or the
    /// first event.
    ReplayBegin {} RecordedMoment, |_| Query::Begin);

question!(
    /// The question for the moment at which a step, or a run to a breakpoint, ends.
    ReplayStep {
        /// The event.
        event: u64,
        /// The step: `next`, `back`, `into`, `out`, `continue` or `reverse`.
        how: &'static str,
        /// The breakpoints.
        points: Vec<RecordingBreakpoint>
    } RecordedMoment,
    |step| Query::Step { event: step.event, how: step.how, points: &step.points });

question!(
    /// The question for the calls around an event.
    ReplayFrames {
        /// The event.
        event: u64,
        /// The index of the first call.
        start: u64,
        /// The number of calls.
        count: u64
    } RecordedCalls,
    |frames| Query::Frames { event: frames.event, start: frames.start, count: frames.count.min(PAGE) });

question!(
/// The question for the values of a scope, or the parts of a value.
ReplayValues {
    /// The event.
    event: u64,
    /// The frame.
    frame: u64,
    /// The scope: `variables` or `values`.
    scope: &'static str,
    /// The index of a value in the scope, and then of a part in each value; empty for the scope.
    path: Vec<u64>,
    /// The index of the first value.
    start: u64,
    /// The number of values.
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
        /// The variable or the expression.
        code: String,
        /// True to read only variables.
        hover: bool
    } RecordedValue,
    |asked| Query::Evaluate { event: asked.event, frame: asked.frame, code: &asked.code, hover: asked.hover });

question!(
    /// The question for the places of breakpoints.
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
