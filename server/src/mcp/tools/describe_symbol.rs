//! `describe-symbol`: what a symbol is, where it is defined, who calls it and what it calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::{described, places, source_location};
use crate::image::api::symbols::{Documentation, Known, Symbol, Want};

/// The tool.
pub(crate) struct DescribeSymbol;

/// Callers and callees that are shown.
const SHOWN: usize = 40;

/// Its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Its name: pkg:name or name
    #[schemars(length(min = 1))]
    symbol: String,
    /// Package the name is read in
    #[serde(default)]
    package: Option<String>,
}

/// What is known.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Description {
    /// As written in the package asked from.
    symbol: String,
    kinds: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lambda_list: Option<String>,
    documentation: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    definitions: Vec<Map<String, Value>>,
    callers: Vec<String>,
    callees: Vec<String>,
    /// Who made it through Consort.
    #[serde(skip_serializing_if = "Option::is_none")]
    made_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Tool for DescribeSymbol {
    type Input = Input;
    type Output = Description;

    const NAME: &'static str = "describe-symbol";
    const TITLE: &'static str = "Describe a symbol";
    const DESCRIPTION: &'static str = "What a symbol is in the live image: kinds, lambda list, documentation, value, where it is \
defined, who calls it and what it calls. Use it before calling or changing something you do not know; to find a name, apropos.";
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

    async fn call(call: Call, input: Input) -> Reply<Description> {
        let Input { symbol, package } = input;
        let texts = call.session.texts(call.client);
        let want = vec![Want::Facts, Want::Definitions, Want::References, Want::Callees, Want::Elsewhere];
        let question = Symbol { name: symbol.clone(), package: package.clone(), strict: true, want };
        let known = match call.session.look(question).await {
            Ok(known) => known,
            Err(error) => return Failure::of(error, package.as_deref()).into(),
        };
        let mut texts = texts.await;
        let defined = places::defined(&known, &mut texts).await;
        let facts = Description { made_by: call.session.made_by(&known), ..describe(&symbol, &known, &defined) };
        Reply { text: render(&facts, &known), facts, failed: false, full: None }
    }
}

fn describe(asked: &str, known: &Known, defined: &[places::Defined]) -> Description {
    let facts = known.facts.as_ref();
    let symbol = known.printed.clone().unwrap_or_else(|| asked.to_owned());
    let entry = |one: &Documentation| {
        Map::from_iter([("kind".into(), one.kind.clone().into()), ("text".into(), one.text.clone().into())])
    };
    let mut callers: Vec<String> = Vec::new();
    for one in known.references.iter().flatten() {
        let line = format!("{} {} {}", one.by_kind, one.by, one.kind);
        if !callers.contains(&line) {
            callers.push(line);
        }
    }
    let mut kinds = facts.map(|facts| facts.kinds.clone()).unwrap_or_default();
    if known.package.is_some() {
        kinds.push("package".into());
    }
    let note = kinds.is_empty().then(|| match known.elsewhere.as_slice() {
        [] => format!("{asked} means nothing in the image. Is its system loaded? apropos finds names."),
        others => format!("{asked} means nothing there. Did you mean {}?", others.join(", ")),
    });
    Description {
        lambda_list: facts.and_then(|facts| facts.lambda_list.as_ref()).map(|list| described::signature(&symbol, list)),
        documentation: facts.map(|facts| facts.documentation.iter().map(entry).collect()).unwrap_or_default(),
        value: facts.and_then(|facts| facts.value.clone()),
        definitions: defined
            .iter()
            .map(|one| {
                let mut fields = source_location::fields(one);
                fields.remove("snippet");
                fields
            })
            .collect(),
        callers,
        callees: known.callees.clone().unwrap_or_default(),
        made_by: None,
        note,
        symbol,
        kinds,
    }
}

fn render(description: &Description, known: &Known) -> String {
    if let Some(note) = &description.note {
        return note.clone();
    }
    let what = known.facts.as_ref().filter(|facts| !facts.kinds.is_empty()).map(described::what);
    let mut out = format!("{}: {}", description.symbol, what.unwrap_or_else(|| "package".into()).replace('`', ""));
    if let Some(list) = &description.lambda_list {
        out.push_str(&format!("\nLambda list: {list}"));
    }
    if let Some(value) = &description.value {
        out.push_str(&format!("\nValue: {value}"));
    }
    if let Some(package) = &known.package {
        out.push_str(&format!(
            "\nThe package exports {} symbols and uses {}.",
            package.external,
            package.uses.join(", ")
        ));
    }
    let text = |one: &Map<String, Value>, key: &str| match one.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "?".into(),
    };
    for one in &description.documentation {
        out.push_str(&format!("\n\nDocumentation ({}):\n{}", text(one, "kind"), text(one, "text")));
    }
    if !description.definitions.is_empty() {
        out.push_str("\n\nDefined:");
        for one in &description.definitions {
            let place = format!("{}:{}:{}", text(one, "file"), text(one, "line"), text(one, "column"));
            out.push_str(&format!("\n  {} {} at {place}", text(one, "kind"), text(one, "name")));
        }
    }
    for (heading, names) in [("Used by", &description.callers), ("Uses", &description.callees)] {
        if !names.is_empty() {
            out.push_str(&format!("\n\n{heading}:"));
            names.iter().take(SHOWN).for_each(|name| out.push_str(&format!("\n  {name}")));
            if names.len() > SHOWN {
                out.push_str(&format!("\n  ... and {} more", names.len() - SHOWN));
            }
        }
    }
    if let Some(made_by) = &description.made_by {
        out.push_str(&format!("\n\n{made_by}"));
    }
    out
}

impl FromFailure for Description {
    fn from_failure(failure: Failure) -> Self {
        Description { note: Some(failure.message), ..Description::default() }
    }
}
