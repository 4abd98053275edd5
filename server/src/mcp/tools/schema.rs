//! JSON schemas of inputs and outputs, without what a generator adds and no reader needs.

use rmcp::handler::server::common::{schema_for_output, schema_for_type};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde_json::Value;

/// What a tool accepts.
pub(crate) fn input<T: JsonSchema + 'static>() -> JsonObject {
    let mut schema = tidied(&schema_for_type::<T>());
    // Clients want it also where there are none.
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    schema
}

/// What is listed of what a tool accepts: what an agent needs to call it. Limits and unknown names are checked all the same, and told when they matter.
pub(crate) fn listed(accepted: &JsonObject) -> JsonObject {
    let mut schema = accepted.clone();
    each(&mut schema, &mut |schema| {
        for name in ["additionalProperties", "minimum", "maximum", "minLength"] {
            schema.remove(name);
        }
    });
    schema
}

/// What a tool answers: an object, with the fields that tell how it went. No more: a whole list of tools has to fit an
/// agent's context, and an agent reads answers, not their schema.
pub(crate) fn output<T: JsonSchema + 'static>() -> JsonObject {
    let schema = tidied(&schema_for_output::<T>());
    let mut flat = JsonObject::new();
    flat.insert("type".into(), "object".into());
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let telling: JsonObject = fields
        .filter(|(name, _)| TELLING.contains(&name.as_str()))
        .map(|(name, _)| {
            (name.clone(), serde_json::json!({"type": if name == "status" { "string" } else { "boolean" }}))
        })
        .collect();
    if !telling.is_empty() {
        flat.insert("properties".into(), Value::Object(telling));
    }
    flat
}

/// Fields that tell how a call went.
const TELLING: [&str; 5] = ["status", "success", "loaded", "changed", "expanded"];

fn tidied(schema: &JsonObject) -> JsonObject {
    let mut schema = schema.clone();
    each(&mut schema, &mut tidy);
    for name in ["$schema", "title", "description"] {
        schema.remove(name);
    }
    schema
}

/// Optional is told by `required`, so no `null` beside a type; no `format` that only repeats Rust's own types.
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
            schema.extend(only);
        }
    }
}

/// Do something to a schema and to every schema in it.
fn each(schema: &mut JsonObject, act: &mut impl FnMut(&mut JsonObject)) {
    act(schema);
    for (key, value) in schema.iter_mut() {
        match value {
            // A property may be called `type` or `default`: its schema is meant, not the map of names.
            Value::Object(named) if key == "properties" || key == "$defs" => {
                for (_, one) in named.iter_mut() {
                    if let Value::Object(one) = one {
                        each(one, act);
                    }
                }
            }
            Value::Object(inner) if key == "items" || key == "additionalProperties" => each(inner, act),
            _ => {}
        }
    }
}
