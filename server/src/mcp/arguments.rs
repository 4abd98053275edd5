//! The check of a tool call's arguments against the tool's input schema, with errors that an
//! agent can act on.

use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns the arguments in the tool's type.
///
/// # Errors
/// A message that names every wrong argument and the expected value.
pub(crate) fn parse<T: DeserializeOwned>(tool: &str, schema: &JsonObject, mut given: JsonObject) -> Result<T, String> {
    let empty = JsonObject::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    // An optional argument that is null or an empty string counts as absent, since some clients
    // fill in every field.
    let is_nothing = |value: &Value| value.is_null() || value.as_str() == Some("");
    given.retain(|name, value| !(is_nothing(value) && known.contains_key(name) && !required.contains(&name.as_str())));

    // A single value where a list is expected becomes a list.
    for (name, value) in &mut given {
        if value.is_string() && known.get(name).is_some_and(|property| property["type"] == "array") {
            *value = Value::Array(vec![value.take()]);
        }
    }
    let mut wrong = Vec::new();
    for name in &required {
        if !given.contains_key(*name) {
            wrong.push(format!("`{name}` is missing: it must be {}.", expected(known.get(*name))));
        }
    }
    for (name, value) in &given {
        match known.get(name) {
            None => wrong.push(format!("`{name}` is not an argument of this tool.")),
            Some(property) => {
                if let Some(problem) = mismatch(property, value) {
                    wrong.push(format!("`{name}` must be {}, not {problem}.", expected(Some(property))));
                }
            }
        }
    }
    if wrong.is_empty() {
        match serde_json::from_value(Value::Object(given)) {
            Ok(input) => return Ok(input),
            Err(error) => wrong.push(format!("{error}.")),
        }
    }
    Err(format!("Bad arguments for {tool}:\n  {}\nIt takes: {}", wrong.join("\n  "), signature(known, &required)))
}

/// Describes the expected value: `a string`, `a number from 0.1 to 3600`.
fn expected(property: Option<&Value>) -> String {
    let Some(property) = property else { return "present".into() };
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return format!("one of {}", choices.join(", "));
    }
    let kind = match property.get("type").and_then(Value::as_str) {
        Some("string") if property.get("minLength").is_some() => "a string that is not empty",
        Some("string") => "a string",
        Some("boolean") => "true or false",
        Some("number") => "a number",
        Some("integer") => "a whole number",
        Some("array") if property["items"]["type"] == "string" => "a list of strings",
        Some("array") => "a list",
        Some("object") => "an object",
        _ => "a value as the tool's inputSchema says",
    };
    match (property.get("minimum"), property.get("maximum")) {
        (Some(low), Some(high)) => format!("{kind} from {low} to {high}"),
        (Some(low), None) => format!("{kind} of at least {low}"),
        (None, Some(high)) => format!("{kind} of at most {high}"),
        (None, None) => kind.into(),
    }
}

/// Returns a description of the value if it does not match the property.
fn mismatch(property: &Value, value: &Value) -> Option<String> {
    let fits = match property.get("type").and_then(Value::as_str) {
        Some("string") => value.as_str().is_some_and(|text| !text.is_empty() || property.get("minLength").is_none()),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("array") => match (value.as_array(), property.get("items")) {
            (Some(items), Some(item)) => match items.iter().find_map(|value| mismatch(item, value)) {
                Some(problem) => return Some(format!("a list with {problem}")),
                None => true,
            },
            (items, _) => items.is_some(),
        },
        Some("object") => value.is_object(),
        _ => true,
    };
    let allowed = property.get("enum").and_then(Value::as_array).is_none_or(|choices| choices.contains(value));
    let bound = |name: &str| property.get(name).and_then(Value::as_f64);
    let in_range = value.as_f64().is_none_or(|number| {
        bound("minimum").is_none_or(|low| number >= low) && bound("maximum").is_none_or(|high| number <= high)
    });
    if fits && allowed && in_range { None } else { Some(shown(value)) }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
        Value::String(text) if text.chars().count() > 40 => "a string".into(),
        Value::String(_) => format!("the string {value}"),
        _ => value.to_string(),
    }
}

/// Returns the list of the arguments: `code (string, required), package (string)`.
fn signature(known: &JsonObject, required: &[&str]) -> String {
    if known.is_empty() {
        return "no arguments".into();
    }
    let one = |(name, property): (&String, &Value)| {
        let kind = property.get("type").and_then(Value::as_str).unwrap_or("value");
        let must = if required.contains(&name.as_str()) { ", required" } else { "" };
        format!("{name} ({kind}{must})")
    };
    let (first, rest): (Vec<_>, Vec<_>) = known.iter().partition(|(name, _)| required.contains(&name.as_str()));
    first.into_iter().chain(rest).map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(given: Value) -> Result<Value, String> {
        let schema = json!({"type": "object", "required": ["code"], "properties": {
            "code": {"type": "string"}, "timeout": {"type": "number", "minimum": 0.1, "maximum": 3600}, "capture-time": {"type": "boolean"}
        }});
        let (Value::Object(schema), Value::Object(given)) = (schema, given) else { panic!("objects") };
        parse("evaluate-lisp", &schema, given)
    }

    #[test]
    fn good_arguments_pass_and_null_is_not_given() {
        assert_eq!(parsed(json!({"code": "1", "timeout": null})), Ok(json!({"code": "1"})));
        assert_eq!(parsed(json!({"code": "", "timeout": 2})), Ok(json!({"code": "", "timeout": 2})));
        assert_eq!(parsed(json!({"code": "1", "capture-time": ""})), Ok(json!({"code": "1"})));
    }

    #[test]
    fn empty_names_and_items_are_checked() {
        let schema = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string", "minLength": 1}, "paths": {"type": "array", "items": {"type": "string"}}
        }});
        let parsed = |given: Value| {
            let (Value::Object(schema), Value::Object(given)) = (schema.clone(), given) else { panic!("objects") };
            parse::<Value>("t", &schema, given)
        };
        assert!(parsed(json!({"path": "a", "paths": ["b"]})).is_ok());
        let told = parsed(json!({"path": "", "paths": ["b", 7]})).unwrap_err();
        assert!(told.contains("`path` must be a string that is not empty, not the string \"\"."), "{told}");
        assert!(told.contains("`paths` must be a list of strings, not a list with 7."), "{told}");
    }

    #[test]
    fn every_wrong_argument_is_named() {
        insta::assert_snapshot!(parsed(json!({"kode": "1", "timeout": "soon", "capture-time": 1})).unwrap_err(), @r#"
        Bad arguments for evaluate-lisp:
          `code` is missing: it must be a string.
          `capture-time` must be true or false, not 1.
          `kode` is not an argument of this tool.
          `timeout` must be a number from 0.1 to 3600, not the string "soon".
        It takes: code (string, required), capture-time (boolean), timeout (number)
        "#);
        assert!(parsed(json!({"code": 5})).unwrap_err().contains("`code` must be a string, not 5."));
        assert!(parsed(json!({"code": "1", "timeout": -1})).unwrap_err().contains("from 0.1 to 3600, not -1."));
    }
}
