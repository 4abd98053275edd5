//! JSON schemas of inputs and outputs, without members that the generator adds and no reader needs.

use rmcp::handler::server::common::schema_for_type;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde_json::Value;

/// Returns the schema of a tool's arguments.
pub(crate) fn input<T: JsonSchema + 'static>() -> JsonObject {
    let mut schema = tidied(&schema_for_type::<T>());
    // Clients require `properties` even if there are none.
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    schema
}

/// Descriptions that are not listed. They tell an agent no more than the argument's name, or only a
/// default that a call does not depend on. They are in docs/agents.md.
const LEFT_OUT: &[&str] = &[
    "ASDF's name of the system",
    "Also who uses it; slower",
    "Bytes of the page",
    "Code",
    "Code to profile",
    "Common Lisp code to compile",
    "Default 50",
    "Default: 0",
    "Default: 1000",
    "Default: 120",
    "Default: 30",
    "Default: CL-USER",
    "Default: flat",
    "Default: list",
    "Default: parts",
    "Default: replace",
    "Default: stops",
    "Default: those called",
    "Default: tree",
    "File in the workspace",
    "First line, from 1",
    "First row",
    "Function symbol to replace",
    "How many to skip",
    "Instead of stop",
    "Its name: pkg:name or name",
    "Line number for source tracking",
    "Lisp code to compile",
    "Name of the test framework",
    "New function definition",
    "Number of the recording to query",
    "Number of the restart",
    "Number of the stop",
    "Of code",
    "One or more forms",
    "Only exported ones",
    "Only show what would change",
    "Only symbols of this package",
    "Or test",
    "Package in which the code is read",
    "Package in which the name is read",
    "Package name to reload",
    "Package of `code`",
    "Part of the name, in any case",
    "Path of the FASL file, inside the workspace",
    "Run after each",
    "Seconds for each. Default 30",
    "Seconds. Default 20.",
    "Seconds. Default 30.",
    "Source filename for location tracking",
    "Suite",
    "Test",
    "Tests of this package",
    "The form",
    "The new form",
    "The number the answer named",
    "Unchanged files too",
    "What takes its place",
    "Where to run: the image (default) or a copy of it",
];

/// Returns the part of a tool's input schema that is listed: the members that an agent needs for a
/// call. Limits and unknown names are still checked, and reported if a call violates them.
pub(crate) fn listed(accepted: &JsonObject) -> JsonObject {
    let mut schema = accepted.clone();
    for_each_schema(&mut schema, &mut |schema| {
        for name in ["additionalProperties", "default", "minimum", "maximum", "minLength"] {
            schema.remove(name);
        }
        let description = schema.get("description").and_then(Value::as_str);
        if description.is_some_and(|text| LEFT_OUT.contains(&text)) {
            schema.remove("description");
        }
    });
    schema
}

/// Returns the schema of every tool's output. It is minimal, because a whole list of tools must fit
/// into an agent's context, and an agent reads answers, not their schemas.
pub(crate) fn output() -> JsonObject {
    JsonObject::from_iter([("type".to_owned(), "object".into())])
}

fn tidied(schema: &JsonObject) -> JsonObject {
    let mut schema = schema.clone();
    for_each_schema(&mut schema, &mut tidy);
    for name in ["$schema", "title", "description"] {
        schema.remove(name);
    }
    schema
}

/// Removes redundant members: `null` next to a type, because `required` marks optional fields, and
/// a `format` that only repeats a type of Rust.
fn tidy(schema: &mut JsonObject) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| {
        format.starts_with("uint") || format.starts_with("int") || matches!(format, "double" | "float")
    }) {
        schema.remove("format");
    }
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            for (name, value) in only {
                // A field's own description is more specific than that of its type.
                schema.entry(name).or_insert(value);
            }
        }
    }
    constants(schema);
}

/// Converts a list of names with descriptions (`oneOf` of `const`) to a list of names.
fn constants(schema: &mut JsonObject) {
    let Some(Value::Array(choices)) = schema.get("oneOf") else { return };
    let names: Option<Vec<Value>> = choices.iter().map(|choice| choice.get("const").cloned()).collect();
    if let Some(names) = names.filter(|names| names.iter().all(Value::is_string)) {
        schema.remove("oneOf");
        schema.insert("enum".into(), Value::Array(names));
        schema.insert("type".into(), "string".into());
    }
}

/// Applies a function to a schema and to every schema in it.
fn for_each_schema(schema: &mut JsonObject, act: &mut impl FnMut(&mut JsonObject)) {
    act(schema);
    for (key, value) in schema.iter_mut() {
        match value {
            // A property may be named `type` or `default`. Therefore the schemas of the properties
            // are visited, not the map of names.
            Value::Object(named) if key == "properties" || key == "$defs" => {
                for (_, one) in named.iter_mut() {
                    if let Value::Object(one) = one {
                        for_each_schema(one, act);
                    }
                }
            }
            Value::Object(inner) if key == "items" || key == "additionalProperties" => for_each_schema(inner, act),
            _ => {}
        }
    }
}
