//! The messages of the Debug Adapter Protocol, as far as they are used.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::shown_fields::clean;
use crate::framing::content_length;
use crate::shown;

/// A request of the client.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Request {
    pub(super) seq: u64,
    pub(super) command: String,
    #[serde(default)]
    pub(super) arguments: Value,
}

/// Reads the arguments of a request. Clients in Lua and PHP may send an empty object as an array.
pub(super) fn arguments<T: DeserializeOwned>(request: &Request) -> Result<T, String> {
    let is_none = request.arguments.is_null() || request.arguments.as_array().is_some_and(Vec::is_empty);
    let given = if is_none { json!({}) } else { request.arguments.clone() };
    serde_json::from_value(given).map_err(|error| format!("The arguments of `{}`: {error}", request.command))
}

/// The requests that a debugger sends by itself, such as after each step. A stop may be left
/// meanwhile, so their failures are not shown to the person.
const UNASKED: [&str; 8] =
    ["threads", "stackTrace", "scopes", "variables", "exceptionInfo", "source", "completions", "consort/restarts"];

/// An outgoing message without its `seq`.
#[derive(Debug)]
pub(super) struct Message(Value);

impl Message {
    pub(super) fn response(request: u64, command: &str, result: Result<Value, String>) -> Message {
        Message(match result {
            Ok(mut body) => {
                clean(&mut body);
                json!({"type": "response", "request_seq": request, "success": true, "command": command, "body": body})
            }
            Err(text) => {
                let text = shown::safe(&text);
                json!({
                    "type": "response", "request_seq": request, "success": false, "command": command, "message": text,
                    "body": {"error": {
                        "id": 1, "format": "{text}", "variables": {"text": text}, "showUser": !UNASKED.contains(&command),
                    }},
                })
            }
        })
    }

    pub(super) fn event(name: &str, mut body: Value) -> Message {
        clean(&mut body);
        Message(json!({"type": "event", "event": name, "body": body}))
    }

    /// Returns the message as JSON without its closing brace, since the number of the message is
    /// known only when it is written.
    pub(super) fn into_body(self) -> Vec<u8> {
        let mut text = self.0.to_string().into_bytes();
        text.pop();
        text
    }

    /// Returns the frame of a body with its header.
    pub(super) fn framed(body: &[u8], seq: u64) -> Vec<u8> {
        let mut message = body.to_vec();
        message.extend_from_slice(format!(",\"seq\":{seq}}}").as_bytes());
        content_length::framed(&message)
    }
}

/// The arguments of `attach` and `launch`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Begin {
    /// The code to evaluate when the configuration is done.
    pub(super) code: Option<String>,
    /// The package in which the code or the test's name is read.
    pub(super) package: Option<String>,
    /// The name of the test to run in place of the code.
    pub(super) test: Option<String>,
    /// The framework of the test.
    pub(super) framework: Option<String>,
    /// The file of the test, if the test is not named.
    pub(super) file: Option<PathBuf>,
    /// The line, 1-based, on which the test's form is.
    pub(super) line: Option<usize>,
    /// The number of the recording to step through instead of the image.
    pub(super) recording: Option<u64>,
}

/// The arguments of `initialize` that are used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialize {
    /// True if the client answers `consort/input`.
    #[serde(default)]
    pub(super) supports_consort_input: bool,
    pub(super) client_name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cancel {
    pub(super) request_id: Option<u64>,
}

/// The arguments of `consort/evaluate`.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    pub(super) code: String,
    pub(super) package: Option<String>,
    /// True if errors stop the evaluation.
    #[serde(default)]
    pub(super) stops: bool,
}

/// The arguments of `consort/answerInput`.
#[derive(Debug, Deserialize)]
pub(super) struct InputAnswered {
    pub(super) id: u64,
    pub(super) text: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Completions {
    pub(super) text: String,
    pub(super) column: usize,
    pub(super) line: Option<usize>,
    pub(super) frame_id: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InThread {
    pub(super) thread_id: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InFrame {
    pub(super) frame_id: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StackTrace {
    pub(super) thread_id: u64,
    #[serde(default)]
    pub(super) start_frame: usize,
    #[serde(default)]
    pub(super) levels: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Variables {
    pub(super) variables_reference: u64,
    #[serde(default)]
    pub(super) start: usize,
    #[serde(default)]
    pub(super) count: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Evaluate {
    pub(super) expression: String,
    pub(super) frame_id: Option<u64>,
    #[serde(default)]
    pub(super) context: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SourceOf {
    pub(super) source_reference: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InvokeRestart {
    pub(super) thread_id: u64,
    /// The stop whose restarts the client was shown. If absent, the current stop of the thread,
    /// which may be another one.
    pub(super) stop: Option<u64>,
    pub(super) index: usize,
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) arguments: Vec<String>,
    pub(super) input: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReturnFrom {
    pub(super) frame_id: u64,
    pub(super) code: String,
}

/// The arguments of `disconnect`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Disconnect {
    /// True to end the code of the client's evaluations at once.
    #[serde(default)]
    pub(super) terminate_debuggee: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Threads {
    #[serde(default)]
    pub(super) thread_ids: Vec<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetVariable {
    pub(super) variables_reference: u64,
    pub(super) name: String,
    pub(super) value: String,
}

/// The file of a request.
#[derive(Debug, Deserialize)]
pub(super) struct Source {
    pub(super) path: Option<PathBuf>,
}

/// A breakpoint of `setBreakpoints` or `setFunctionBreakpoints`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SourceBreakpoint {
    pub(super) line: Option<usize>,
    pub(super) column: Option<usize>,
    pub(super) name: Option<String>,
    pub(super) condition: Option<String>,
    pub(super) hit_condition: Option<String>,
    pub(super) log_message: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SetBreakpoints {
    pub(super) source: Option<Source>,
    #[serde(default)]
    pub(super) breakpoints: Vec<SourceBreakpoint>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BreakpointLocations {
    pub(super) source: Source,
    pub(super) line: usize,
    pub(super) end_line: Option<usize>,
}

/// Returns the exception filters: the kinds of conditions at which programs stop if a client
/// enables them.
fn exception_filters() -> Value {
    json!([
        {
            "filter": "error", "label": "All errors", "default": false,
            "description": "Stop where an error is signalled, also when it is handled. Unhandled errors stop anyway.",
        },
        {"filter": "warning", "label": "Warnings", "default": false, "description": "Stop where a warning is signalled."},
        {
            "filter": "condition", "label": "Conditions of a type", "default": false, "supportsCondition": true,
            "description": "Stop where a condition of a type is signalled.",
            "conditionDescription": "A type, such as shop::sold-out or (or file-error stream-error); without a type, all conditions",
        },
    ])
}

/// Returns the answer to `initialize`.
pub(super) fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsEvaluateForHovers": true,
        "supportsExceptionInfoRequest": true,
        "supportsRestartFrame": true,
        "supportsTerminateRequest": true,
        "supportTerminateDebuggee": true,
        "supportsSetVariable": true,
        "supportsTerminateThreadsRequest": true,
        "supportsDelayedStackTraceLoading": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsLogPoints": true,
        "supportsFunctionBreakpoints": true,
        "supportsBreakpointLocationsRequest": true,
        "supportsExceptionFilterOptions": true,
        "exceptionBreakpointFilters": exception_filters(),
        "supportsCancelRequest": true,
        "supportsCompletionsRequest": true,
        "completionTriggerCharacters": [":", "-", "*"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: Message) -> String {
        String::from_utf8_lossy(&Message::framed(&message.into_body(), 3)).into_owned()
    }

    #[test]
    fn messages_are_framed() {
        let event = text(Message::event("stopped", json!({"threadId": 7, "reason": "exception"})));
        assert_eq!(
            event,
            "Content-Length: 90\r\n\r\n{\"body\":{\"reason\":\"exception\",\"threadId\":7},\"event\":\"stopped\",\"type\":\"event\",\"seq\":3}"
                .replace("90", &event.split("\r\n\r\n").last().unwrap_or_default().len().to_string())
        );
        let refused = text(Message::response(5, "continue", Err("é".into())));
        let (header, body) = refused.split_once("\r\n\r\n").unwrap_or_default();
        assert_eq!(header, format!("Content-Length: {}", body.len()));
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        assert_eq!((&body["success"], &body["message"], &body["request_seq"]), (&json!(false), &json!("é"), &json!(5)));
        assert_eq!(body["body"]["error"]["showUser"], true);
    }

    #[test]
    fn failures_of_what_a_debugger_asks_by_itself_are_no_notifications() {
        for command in UNASKED {
            let Message(refused) = Message::response(5, command, Err("That stop was left.".into()));
            assert_eq!(refused["body"]["error"]["showUser"], false, "{command}");
        }
    }

    #[test]
    fn arguments_of_real_clients_are_read() {
        // VS Code 1.106 and nvim-dap.
        let vscode = json!({"threadId": 7, "startFrame": 0, "levels": 20});
        let read: StackTrace =
            serde_json::from_value(vscode).unwrap_or(StackTrace { thread_id: 0, start_frame: 9, levels: 9 });
        assert_eq!((read.thread_id, read.start_frame, read.levels), (7, 0, 20));
        let nvim = json!({"expression": "(+ a b)", "context": "repl", "frameId": 3});
        let read: Option<Evaluate> = serde_json::from_value(nvim).ok();
        assert_eq!(read.and_then(|read| read.frame_id), Some(3));
        let nothing: Option<Begin> =
            serde_json::from_value(json!({"type": "consort", "request": "attach", "name": "x"})).ok();
        assert!(nothing.is_some_and(|begin| begin.code.is_none()));
        let request = json!({"seq": 1, "type": "request", "command": "attach", "arguments": []});
        let request = serde_json::from_value::<Request>(request).ok();
        assert!(request.is_some_and(|request| arguments::<Begin>(&request).is_ok_and(|begin| begin.code.is_none())));
    }
}
