//! `record`: code or a test runs once in a confined copy of the image, which records it and answers
//! questions.

use schemars::JsonSchema;
use serde::Deserialize;

use super::facts::Facts;
use super::in_copy::{self, Where};
use super::{Call, Failure, Hints, Reply, Tool};
use crate::ide::recording::{Kind, Question, answered, recorded};
use crate::model::error_kind::ErrorKind;
use crate::session::approval::{Class, Subject};
use crate::session::recordings::RecordRequest;

/// The default deadline of a call, in seconds.
const DEADLINE: f64 = 30.0;

/// The tool `record`.
pub(crate) struct Record;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Code
    #[serde(default)]
    code: Option<String>,
    /// Or test
    #[serde(default)]
    test: Option<String>,
    /// Of code
    #[serde(default)]
    package: Option<String>,
    /// Default: those called
    #[serde(default)]
    functions: Option<Vec<String>>,
    /// Default: 30
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 86400))]
    timeout: Option<f64>,
    /// To query
    #[serde(default)]
    recording: Option<u64>,
    /// Default: tree
    #[serde(default)]
    query: Option<Kind>,
    /// Expression or FILE:LINE:COLUMN; variable; condition; event
    #[serde(default)]
    of: Option<String>,
    /// First row
    #[serde(default)]
    start: Option<u64>,
}

/// The meaning of a call.
#[derive(Debug)]
enum Meaning {
    Run(RecordRequest),
    Ask(u64, Question),
}

impl Input {
    fn meaning(self) -> Result<Meaning, Failure> {
        let bad = |why: &str| {
            Err(Failure { kind: ErrorKind::BAD_ARGUMENTS, message: format!("Bad arguments for record: {why}.") })
        };
        let Input { code, test, package, functions, timeout, recording, query, of, start } = self;
        let functions = functions.unwrap_or_default();
        if let Some(number) = recording {
            if code.is_some() || test.is_some() {
                return bad("give `recording` for a query, or `code` or `test` for a new recording, not both");
            }
            let query = query.unwrap_or_default();
            let function = functions.into_iter().next();
            return Ok(Meaning::Ask(number, Question { query, of, function, event: None, start }));
        }
        if query.is_some() || of.is_some() || start.is_some() {
            return bad("a query needs `recording`, the number that a new recording gave");
        }
        let request = |code: String, test| RecordRequest {
            code,
            test,
            package,
            functions,
            place: None,
            timeout: Some(timeout.unwrap_or(DEADLINE)),
        };
        match (code, test) {
            (Some(code), None) => Ok(Meaning::Run(request(code, None))),
            (None, Some(test)) => Ok(Meaning::Run(request(String::new(), Some(test)))),
            (None, None) => bad("give `code` or `test` to record, or `recording` for a query"),
            (Some(_), Some(_)) => bad("give `code` or `test`, not both"),
        }
    }
}

impl Tool for Record {
    type Input = Input;
    type Output = Facts;

    const NAME: &'static str = "record";
    const DESCRIPTION: &'static str = "Record calls and values of code or a test in a copy; then query.";
    const HINTS: Hints = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };

    async fn asks_of(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        let code = match (&input.code, &input.test, input.query) {
            (Some(code), ..) => Some(code.clone()),
            (None, Some(_), _) => None,
            (None, None, Some(Kind::When)) => input.of.clone(),
            _ => return Ok(None),
        };
        let what = match &input.test {
            Some(test) => format!("Run the test {test} and record it"),
            None => "Run code and record it".into(),
        };
        Ok(in_copy::asks(call, Some(Where::Copy), (Class::Eval, Subject { what, code, ..Subject::default() })))
    }

    async fn call(call: Call, input: Input) -> Reply<Facts> {
        let session = &call.session;
        match input.meaning() {
            Err(failure) => failure.into(),
            Ok(Meaning::Run(request)) => {
                let package = request.package.clone();
                match call.progress.during(session.record(call.client, request), None).await {
                    Ok((recording, look)) => {
                        let (text, facts, failed) = recorded(recording, &look, session.workspace());
                        Reply::new(text, Facts::new(facts), failed)
                    }
                    Err(error) => Failure::of(error, package.as_deref()).into(),
                }
            }
            Ok(Meaning::Ask(number, question)) => {
                let asked = async { session.ask_recording(number, &session.recording_query(&question)?).await };
                match asked.await {
                    Ok(answer) => {
                        let text = answered(&answer, session.workspace());
                        Reply::new(text, Facts::new(serde_json::json!(answer)), false)
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

    fn meaning(arguments: Value) -> Result<Meaning, Failure> {
        serde_json::from_value::<Input>(arguments).unwrap().meaning()
    }

    #[test]
    fn a_call_records_or_asks() {
        assert!(matches!(meaning(json!({"code": "(f)"})).unwrap(), Meaning::Run(_)));
        assert!(matches!(meaning(json!({"test": "t"})).unwrap(), Meaning::Run(_)));
        assert!(matches!(meaning(json!({"recording": 2})).unwrap(), Meaning::Ask(2, _)));
        for (arguments, why) in [
            (json!({}), "give `code` or `test`"),
            (json!({"code": "1", "test": "t"}), "not both"),
            (json!({"code": "1", "recording": 1}), "not both"),
            (json!({"query": "tree"}), "needs `recording`"),
        ] {
            let failure = meaning(arguments.clone()).unwrap_err();
            assert!(failure.message.contains(why), "{arguments}: {failure:?}");
        }
    }
}
