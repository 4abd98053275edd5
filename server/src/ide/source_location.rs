//! `source_location` (docs/agents.md): every definition of a name, with its file, line, column and
//! a snippet.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::context::{Backend, Context};
use super::definition_in_index::Named;
use super::indexed_definitions::{self, Present};
use super::places::{self, Defined};
use crate::image::api::symbols::{Symbol, SymbolAnswer, SymbolPart};
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageError;

/// The maximum number of lines of a definition in a snippet.
const SNIPPET: usize = 8;

/// The valid kinds in a request, each with the kinds that it includes.
const KINDS: [(&str, &[&str]); 11] = [
    ("function", &["function", "generic function", "setf function"]),
    ("method", &["method"]),
    ("macro", &["macro"]),
    ("variable", &["variable", "constant", "symbol macro"]),
    ("class", &["class", "structure", "condition"]),
    ("structure", &["structure"]),
    ("condition", &["condition"]),
    ("package", &["package"]),
    ("compiler-macro", &["compiler macro"]),
    ("setf", &["setf function", "setf expander"]),
    ("type", &["type", "class", "structure", "condition"]),
];

/// The answer of `source_location`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Locations {
    /// The name as written in CL-USER, or in the package of the request.
    pub symbol: String,
    /// The definitions, with the fields `kind`, `name`, `file`, `line`, `column` and `snippet`.
    pub definitions: Vec<Map<String, Value>>,
    /// The reason for an empty result, or a remark on further definitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The contract's error object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Map<String, Value>>,
}

/// Returns the kinds of definition that a requested kind includes.
///
/// # Errors
/// The message lists the valid kinds.
pub fn kinds(asked: Option<&str>) -> Result<Option<&'static [&'static str]>, String> {
    let Some(asked) = asked else { return Ok(None) };
    let plain = asked.trim_start_matches(':').to_lowercase().replace([' ', '_'], "-");
    match KINDS.iter().find(|(kind, _)| *kind == plain) {
        Some((_, all)) => Ok(Some(all)),
        None => {
            let known: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
            Err(format!("There is no kind {asked}. There are {}.", known.join(", ")))
        }
    }
}

/// Returns every definition of a name, and the answer of the contract. `kinds` is a result of
/// [`kinds`].
///
/// # Errors
/// The image refuses the name or its package. There is no image, and no open text defines the name.
pub async fn find<B: Backend>(
    context: &Context<B>,
    symbol: &str,
    package: Option<&str>,
    kinds: Option<&[&str]>,
) -> Result<(Locations, Vec<Defined>), ImageError> {
    let question = Symbol {
        name: symbol.to_owned(),
        package: package.map(str::to_owned),
        strict: true,
        want: vec![SymbolPart::Facts, SymbolPart::Definitions, SymbolPart::Elsewhere],
        methods: None,
    };
    let known = context.query(question).await;
    if let Err(error @ ImageError::Refused { .. }) = known {
        return Err(error);
    }
    let mut texts = context.texts();
    let defined = places::defined_anywhere(known.as_ref().ok(), symbol, package, &mut texts).await;
    let named = Named { name: symbol.to_owned(), package: package.map(str::to_owned) };
    let Present { mut defined, gone } = indexed_definitions::present(context, &named, defined, &mut texts).await;
    let (known, absent) = match known {
        Ok(known) => (Some(known), None),
        Err(error) if defined.is_empty() => return Err(error),
        Err(error) => (None, Some(error)),
    };
    let mut locations = Locations::new(symbol, known.as_ref(), &defined, kinds);
    if let Some(one) = gone {
        locations.note = Some(format!(
            "{} is not in {} any more: it was renamed, moved or removed. The image still has it.",
            one.name,
            one.file.display()
        ));
    }
    if let Some(error) = absent {
        locations.note = Some(format!("Only the open documents were searched: {error}"));
    }
    defined.retain(|one| kinds.is_none_or(|kinds| kinds.contains(&one.kind.as_str())));
    Ok((locations, defined))
}

impl Locations {
    /// Builds the result from the definitions found. `asked` is the name in the request.
    pub fn new(asked: &str, known: Option<&SymbolAnswer>, defined: &[Defined], kinds: Option<&[&str]>) -> Locations {
        let symbol = known.and_then(|known| known.printed.clone()).unwrap_or_else(|| asked.to_owned());
        let wanted = |one: &&Defined| kinds.is_none_or(|kinds| kinds.contains(&one.kind.as_str()));
        let definitions: Vec<Map<String, Value>> = defined.iter().filter(wanted).map(fields).collect();
        let note = if definitions.is_empty() { Some(why_nothing_is_found(asked, known, defined)) } else { None };
        Locations { symbol, definitions, note, error: None }
    }

    /// Creates the result of a failed call.
    pub fn failed(symbol: &str, kind: impl Into<ErrorKind>, message: String) -> Locations {
        let error = match json!({"code": -32000, "message": message, "data": {"type": kind.into().of_contract()}}) {
            Value::Object(error) => Some(error),
            _ => None,
        };
        Locations { symbol: symbol.to_owned(), definitions: Vec::new(), note: None, error }
    }

    /// Returns the answer as text.
    pub fn render(&self) -> String {
        let mut out = match self.definitions.len() {
            0 => self.note.clone().unwrap_or_default(),
            1 => format!("{} is defined in one place:", self.symbol),
            n => format!("{} is defined in {n} places:", self.symbol),
        };
        let text =
            |one: &Map<String, Value>, key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        for one in &self.definitions {
            let place = match (one.get("line"), one.get("column")) {
                (Some(line), Some(column)) => format!("{}:{line}:{column}", text(one, "file")),
                _ => format!("{} (the file cannot be read)", text(one, "file")),
            };
            out.push_str(&format!("\n\n{} {}\n  at {place}", text(one, "kind"), text(one, "name")));
            for line in text(one, "snippet").lines() {
                out.push_str(&format!("\n  | {line}"));
            }
        }
        if let Some(note) = self.note.as_ref().filter(|_| !self.definitions.is_empty()) {
            out.push_str(&format!("\n\n{note}"));
        }
        out
    }
}

/// Returns the fields of a definition.
pub fn fields(one: &Defined) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("kind".into(), one.kind.clone().into());
    fields.insert("name".into(), one.name.clone().into());
    fields.insert("file".into(), one.file.to_string_lossy().into_owned().into());
    if let Some(at) = one.start() {
        fields.insert("line".into(), at.line.into());
        fields.insert("column".into(), at.column.into());
    }
    if let Some(snippet) = one.snippet(SNIPPET) {
        fields.insert("snippet".into(), snippet.into());
    }
    fields
}

fn why_nothing_is_found(asked: &str, known: Option<&SymbolAnswer>, defined: &[Defined]) -> String {
    let kinds = known.and_then(|known| known.facts.as_ref()).map(|facts| facts.kinds.join(", ")).unwrap_or_default();
    if !defined.is_empty() {
        let mut there: Vec<&str> = defined.iter().map(|one| one.kind.as_str()).collect();
        there.dedup();
        return format!("{asked} has no definition of that kind. It is defined as {}.", there.join(", "));
    }
    match known {
        None => format!("No open document defines {asked}."),
        Some(known) if !known.elsewhere.is_empty() => {
            format!("{asked} is not defined there. Did you mean {}?", known.elsewhere.join(", "))
        }
        Some(_) if !kinds.is_empty() => {
            format!("{asked} is in the image ({kinds}), but it was made without a source file, as by evaluate-lisp.")
        }
        Some(known) if known.found => format!("{asked} is a symbol that names nothing. Is its system loaded?"),
        Some(_) => format!("There is no symbol {asked}. Give its package, or load the system that defines it."),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ide::fake::{FakeImage, context, definition, run};

    #[test]
    fn an_answer_from_the_open_documents_alone_says_so() {
        let context = context(FakeImage::absent(), &[("a.lisp", "(in-package :app)\n(defun f () 1)")]);
        let (locations, _) = run(find(&context, "f", Some("APP"), None)).unwrap();
        let text = locations.render();
        assert!(text.contains("is defined in one place"), "{text}");
        assert!(text.ends_with("\n\nOnly the open documents were searched: There is no image."), "{text}");
    }

    #[test]
    fn a_form_that_took_the_place_of_a_definition_is_not_that_definition() {
        let image = |name: &str| FakeImage::empty().symbol(name, known(name));
        let files = [("a.lisp", "(in-package :app)\n(f 1)"), ("b.lisp", "(in-package :app)\n(defun f (x) x)")];
        let moved = context(image("f"), &files);
        let (locations, _) = run(find(&moved, "f", Some("APP"), None)).unwrap();
        let text = locations.render();
        assert!(text.contains("b.lisp:2:1") && !text.contains("a.lisp"), "{text}");
        let removed = context(image("f"), &files[..1]);
        let (locations, _) = run(find(&removed, "f", Some("APP"), None)).unwrap();
        assert!(locations.render().starts_with("f is not in /no/a.lisp any more"), "{}", locations.render());
    }

    /// The image's answer about a function whose definition was at the second form of `a.lisp`.
    fn known(name: &str) -> Value {
        let facts = json!({
            "name": name.to_uppercase(), "package": "APP", "external": false, "printed": name,
            "kinds": ["function"], "lambda_list": ["x"], "documentation": [],
        });
        json!({"found": true, "facts": facts, "definitions": [definition("function", name, "a.lisp", 1)]})
    }
}
