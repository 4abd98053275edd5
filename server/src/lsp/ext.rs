//! What is Consort's own in the protocol: the commands' names and arguments, and the notifications of our own. docs/protocol.md says the same;
//! a test holds the two together.

use lsp_types::{Position, Range, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower_lsp::jsonrpc::{Error, Result};

/// Evaluate code: [`Eval`].
pub(super) const EVAL: &str = "consort.eval";
/// Load a system: [`LoadSystem`].
pub(super) const LOAD_SYSTEM: &str = "consort.loadSystem";
/// End the image and start a new one.
pub(super) const RESTART_IMAGE: &str = "consort.restartImage";
/// Interrupt: [`Interrupt`].
pub(super) const INTERRUPT: &str = "consort.interrupt";
/// What `consort status` shows.
pub(super) const STATUS: &str = "consort.status";

/// All commands.
pub const COMMANDS: [&str; 5] = [EVAL, LOAD_SYSTEM, RESTART_IMAGE, INTERRUPT, STATUS];

/// Notification: the image's state, on arrival and whenever it changes.
pub(super) const IMAGE_STATE: &str = "consort/imageState";
/// Notification: output of an evaluation that runs.
pub(super) const OUTPUT: &str = "consort/output";

/// All notifications of our own.
pub const NOTIFICATIONS: [&str; 2] = [IMAGE_STATE, OUTPUT];

/// The argument of `consort.eval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Eval {
    pub(super) code: String,
    pub(super) package: Option<String>,
    /// The document the code stands in.
    pub(super) uri: Option<Url>,
    /// Where the code begins in it.
    pub(super) position: Option<Position>,
    /// The same, as a range.
    pub(super) range: Option<Range>,
    /// Seconds.
    pub(super) timeout: Option<f64>,
    #[serde(default)]
    pub(super) capture_time: bool,
    /// Send output as `consort/output` with this token while it runs.
    pub(super) output_token: Option<Value>,
}

/// The argument of `consort.loadSystem`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LoadSystem {
    pub(super) system: String,
    #[serde(default)]
    pub(super) force: bool,
}

/// The argument of `consort.interrupt`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Interrupt {
    /// Everybody's work, not only this editor's.
    #[serde(default)]
    pub(super) everything: bool,
}

/// The argument of a command that takes none.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// What a command expects, for the message to one who got it wrong.
fn expected(command: &str) -> &'static str {
    match command {
        EVAL => {
            r#"[{"code": "...", "package"?: "...", "uri"?: "file:///...", "position"?: {"line", "character"}, "range"?: {...}, "timeout"?: seconds, "captureTime"?: bool, "outputToken"?: token}]"#
        }
        LOAD_SYSTEM => r#"[{"system": "...", "force"?: bool}]"#,
        INTERRUPT => r#"[] or [{"everything": bool}]"#,
        _ => "[] or [{}]",
    }
}

/// The one argument of a command.
pub(super) fn argument<T: DeserializeOwned>(command: &str, arguments: Vec<Value>) -> Result<T> {
    let wrong =
        |why: String| Error::invalid_params(format!("{command}: {why}. Its `arguments` are {}.", expected(command)));
    let argument = match <[Value; 1]>::try_from(arguments) {
        Ok([argument]) => argument,
        // A command that needs nothing may be called with nothing.
        Err(none) if none.is_empty() => Value::Object(Default::default()),
        Err(many) => {
            return Err(wrong(format!("it takes one object as its argument and was given {} arguments", many.len())));
        }
    };
    if !argument.is_object() {
        return Err(wrong(format!("its argument is not an object: {argument}")));
    }
    serde_json::from_value(argument).map_err(|error| wrong(error.to_string()))
}

/// A number of seconds that can be waited for.
pub(super) fn seconds(command: &str, timeout: Option<f64>) -> Result<Option<f64>> {
    match timeout {
        Some(seconds) if !(seconds > 0.0 && seconds <= 1e9) => {
            let message = format!("{command}: `timeout` is a number of seconds greater than 0, not {seconds}.");
            Err(Error::invalid_params(message))
        }
        timeout => Ok(timeout),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wrong_argument_is_answered_with_what_is_expected() {
        for (arguments, why) in [
            (json!([]), "missing field `code`"),
            (json!([{"code": 1}]), "expected a string"),
            (json!([{"code": "1", "pakage": "x"}]), "unknown field `pakage`"),
            (json!(["(+ 1 2)"]), "not an object"),
            (json!([{"code": "1"}, {"code": "2"}]), "2 arguments"),
        ] {
            let arguments: Vec<Value> = serde_json::from_value(arguments).unwrap();
            let error = argument::<Eval>(EVAL, arguments).unwrap_err();
            assert_eq!(error.code.code(), -32602);
            assert!(error.message.contains(why) && error.message.contains(r#""code": "...""#), "{}", error.message);
        }
    }

    #[test]
    fn a_command_without_arguments_needs_none() {
        assert!(argument::<Nothing>(STATUS, vec![]).is_ok());
        assert!(argument::<Nothing>(STATUS, vec![json!({})]).is_ok());
        assert!(!argument::<Interrupt>(INTERRUPT, vec![]).unwrap().everything);
    }

    #[test]
    fn a_timeout_is_a_positive_number_of_seconds() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(seconds(EVAL, Some(bad)).is_err());
        }
        assert_eq!(seconds(EVAL, Some(0.5)), Ok(Some(0.5)));
    }

    #[test]
    fn everything_of_our_own_is_documented() {
        let page = include_str!("../../../docs/protocol.md");
        for name in COMMANDS.iter().chain(&NOTIFICATIONS) {
            assert!(page.contains(&format!("`{name}`")), "docs/protocol.md does not document {name}");
        }
    }
}
