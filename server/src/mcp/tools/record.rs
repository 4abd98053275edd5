//! The tool `record`. It runs code or a test once in a confined copy of the image, which records
//! the run and answers questions. It can also record the next call of a function in the image.

use schemars::JsonSchema;
use serde::Deserialize;

use super::facts::Facts;
use super::in_copy::{self, EvalPlace};
use super::{Call, Failure, Hints, Reply, Tool};
use crate::ide::recording::{Question, QuestionKind, answered, recorded};
use crate::model::error_kind::ErrorKind;
use crate::session::approval::{Class, Subject};
use crate::session::recordings::{NextCall, RecordRequest};
use crate::shown::line;

/// The default deadline of a call, in seconds.
const DEADLINE: f64 = 30.0;

/// The tool `record`.
pub(crate) struct Record;

/// The tool's arguments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    test: Option<String>,
    /// A function's next call
    #[serde(default)]
    next: Option<String>,
    #[serde(default)]
    package: Option<String>,
    /// Default: those called
    #[serde(default)]
    functions: Option<Vec<String>>,
    /// Default: 30
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 86400))]
    timeout: Option<f64>,
    /// Number of the recording to query
    #[serde(default)]
    recording: Option<u64>,
    /// Default: tree
    #[serde(default)]
    query: Option<QuestionKind>,
    /// Expression, FILE:LINE:COLUMN, variable, condition, event
    #[serde(default)]
    of: Option<String>,
    #[serde(default)]
    start: Option<u64>,
}

/// A call with its arguments checked.
#[derive(Debug)]
enum ParsedCall {
    Run(RecordRequest),
    Next(NextCall),
    Ask(u64, Question),
    Cancel(u64),
}

impl Input {
    fn parse(self) -> Result<ParsedCall, Failure> {
        let bad = |why: &str| {
            Err(Failure { kind: ErrorKind::BAD_ARGUMENTS, message: format!("Bad arguments for record: {why}.") })
        };
        let Input { code, test, next, package, functions, timeout, recording, query, of, start } = self;
        let functions = functions.unwrap_or_default();
        if let Some(number) = recording {
            if code.is_some() || test.is_some() || next.is_some() {
                return bad("give `recording` for a query, or `code`, `test` or `next` for a new recording, not both");
            }
            let query = query.unwrap_or_default();
            if query == QuestionKind::Cancel {
                return Ok(ParsedCall::Cancel(number));
            }
            let function = functions.into_iter().next();
            return Ok(ParsedCall::Ask(number, Question { query, of, function, event: None, start }));
        }
        if query.is_some() || of.is_some() || start.is_some() {
            return bad("a query needs `recording`, the number that a new recording gave");
        }
        let timeout = Some(timeout.unwrap_or(DEADLINE));
        let (code, test) = match (code, test, next) {
            (Some(code), None, None) => (code, None),
            (None, Some(test), None) => (String::new(), Some(test)),
            (None, None, Some(function)) => {
                return Ok(ParsedCall::Next(NextCall { function, package, functions, timeout }));
            }
            (None, None, None) => return bad("give `code`, `test` or `next` to record, or `recording` for a query"),
            _ => return bad("give one of `code`, `test` and `next`"),
        };
        Ok(ParsedCall::Run(RecordRequest { code, test, package, functions, place: None, timeout }))
    }
}

impl Tool for Record {
    type Input = Input;
    type Output = Facts;

    const NAME: &'static str = "record";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Record calls, values of code or test in a copy, or of a call; then query.";
    const HINTS: Hints = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };

    async fn required_approval_async(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        // A person is not asked about a call that fails anyway.
        input.clone().parse()?;
        if let (Some(function), None) = (&input.next, input.recording) {
            let what = format!(
                "Record the next call of {}, whoever makes it: it and the functions that it calls are compiled with probes, until it was made",
                line(function)
            );
            return Ok(Some((Class::ModifyRunningCode, Subject { what, ..Subject::default() })));
        }
        let code = match (&input.code, &input.test, input.query) {
            (Some(code), ..) => Some(code.clone()),
            (None, Some(_), _) => None,
            (None, None, Some(QuestionKind::When)) => input.of.clone(),
            _ => return Ok(None),
        };
        let what = match &input.test {
            Some(test) => format!("Run the test {test} and record it"),
            None => "Run code and record it".into(),
        };
        Ok(in_copy::required_approval(
            call,
            Some(EvalPlace::Copy),
            (Class::Eval, Subject { what, code, ..Subject::default() }),
        ))
    }

    async fn call(call: Call, input: Input) -> Reply<Facts> {
        let session = &call.session;
        match input.parse() {
            Err(failure) => failure.into(),
            Ok(ParsedCall::Run(request)) => {
                let package = request.package.clone();
                match call.progress.report_during(session.record(call.client, request), None).await {
                    Ok((recording, answer)) => {
                        let (text, facts, failed) = recorded(recording, answer, session.workspace());
                        Reply::new(text, Facts::new(facts), failed)
                    }
                    Err(error) => Failure::of(error, package.as_deref()).into(),
                }
            }
            Ok(ParsedCall::Next(next)) => {
                let (function, package) = (line(&next.function), next.package.clone());
                let begun = session.record_next_later(call.client, next);
                match call.progress.report_during(begun, None).await {
                    Ok(number) => {
                        let text = format!(
                            "Recording {number} waits for the next call of {function}, for ten minutes. When it was made, query the recording; the query `cancel` ends the wait."
                        );
                        let facts = serde_json::json!({"recording": number, "waiting": true});
                        Reply::new(text, Facts::new(facts), false)
                    }
                    Err(error) => Failure::of(error, package.as_deref()).into(),
                }
            }
            Ok(ParsedCall::Cancel(number)) => match session.end_recording(number) {
                Ok(()) => {
                    let facts = serde_json::json!({"recording": number, "ended": true});
                    Reply::new(format!("Recording {number} was ended."), Facts::new(facts), false)
                }
                Err(error) => Failure::of(error, None).into(),
            },
            Ok(ParsedCall::Ask(number, question)) => {
                let asked = async { session.ask_recording(number, &session.recording_query(&question)?).await };
                match asked.await {
                    Ok(answer) => {
                        let text = answered(&answer, session.workspace());
                        Reply::new(text, Facts::new(answer), false)
                    }
                    Err(error) => Failure::of(error, None).into(),
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(arguments: Value) -> Result<ParsedCall, Failure> {
        serde_json::from_value::<Input>(arguments).unwrap().parse()
    }

    #[test]
    fn a_call_records_or_asks() {
        assert!(matches!(parse(json!({"code": "(f)"})).unwrap(), ParsedCall::Run(_)));
        assert!(matches!(parse(json!({"test": "t"})).unwrap(), ParsedCall::Run(_)));
        assert!(matches!(parse(json!({"recording": 2})).unwrap(), ParsedCall::Ask(2, _)));
        assert!(matches!(parse(json!({"next": "f"})).unwrap(), ParsedCall::Next(_)));
        assert!(matches!(parse(json!({"recording": 2, "query": "cancel"})).unwrap(), ParsedCall::Cancel(2)));
        for (arguments, why) in [
            (json!({}), "give `code`, `test` or `next`"),
            (json!({"code": "1", "test": "t"}), "give one of"),
            (json!({"code": "1", "next": "f"}), "give one of"),
            (json!({"next": "f", "recording": 1}), "not both"),
            (json!({"code": "1", "recording": 1}), "not both"),
            (json!({"query": "tree"}), "needs `recording`"),
        ] {
            let failure = parse(arguments.clone()).unwrap_err();
            assert!(failure.message.contains(why), "{arguments}: {failure:?}");
        }
    }
}
