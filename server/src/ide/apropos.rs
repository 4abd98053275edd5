//! The tool `apropos`: symbols by a part of their names, as data and as text.

use serde::Serialize;
use serde_json::{Map, Value};

use super::compile_form::Refusal;
use super::context::Backend;
use super::described;
use crate::image::api::symbols::Apropos;
use crate::model::image::ImageError;

/// The default maximum number of symbols.
const LIMIT: usize = 50;

/// A search for symbols by their names.
#[derive(Debug, Clone, Default)]
pub struct AproposQuery {
    /// A part of the name, in any case.
    pub pattern: String,
    /// The package to which the search is limited.
    pub package: Option<String>,
    /// True to find only exported symbols.
    pub external: bool,
    /// The maximum number of symbols.
    pub limit: Option<usize>,
}

/// The symbols found.
#[derive(Debug, Default, Serialize)]
pub struct AproposResult {
    total: usize,
    /// The symbols, with the fields `name`, `kind`, `lambda_list` and `summary`.
    symbols: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

impl AproposResult {
    /// Creates the result of a search that could not be made.
    pub fn failed(why: Refusal) -> AproposResult {
        AproposResult { error: Some(why), ..AproposResult::default() }
    }
}

/// Returns the symbols whose names match, as data and as text.
///
/// # Errors
/// See [`Backend::query`].
pub async fn find<B: Backend>(backend: &B, wanted: AproposQuery) -> Result<(AproposResult, String), ImageError> {
    let AproposQuery { pattern, package, external, limit } = wanted;
    let limit = limit.unwrap_or(LIMIT);
    let question = Apropos { pattern: pattern.clone(), package, external, system: false, limit, definitions: false };
    let answer = backend.query(question).await?;
    let mut text = match answer.total {
        0 => format!("No symbol that names something has {pattern:?} in its name."),
        n if n > answer.symbols.len() => format!("{} of {n} symbols:", answer.symbols.len()),
        n => format!("{n} symbol{}:", if n == 1 { "" } else { "s" }),
    };
    let mut facts = AproposResult { total: answer.total, ..AproposResult::default() };
    for one in answer.symbols {
        let list = one.lambda_list.as_ref().map(|list| described::signature(&one.name, list));
        text.push_str(&format!("\n{} [{}]", list.as_ref().unwrap_or(&one.name), one.kind));
        let mut fields = Map::new();
        fields.insert("name".into(), one.name.into());
        fields.insert("kind".into(), one.kind.into());
        if let Some(list) = list {
            fields.insert("lambda_list".into(), list.into());
        }
        if let Some(summary) = one.summary {
            text.push_str(&format!(" {summary}"));
            fields.insert("summary".into(), summary.into());
        }
        facts.symbols.push(fields);
    }
    Ok((facts, text))
}
