//! `describe-symbol`: a symbol's description, definitions, callers and callees, as data and as
//! text.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::compile_form::Refusal;
use super::context::{Backend, Context};
use super::definition_in_index::Named;
use super::indexed_definitions::{self, Present};
use super::manuals::Manuals;
use super::references::{self, Kind, Referred};
use super::{described, enclosing, places, source_location};
use crate::image::api::symbols::{ClassDetails, Documentation, Symbol, SymbolAnswer, SymbolPart};
use crate::model::image::ImageError;
use crate::text::position::line_column;

/// The maximum number of callers and of callees in an answer.
const MAX_SHOWN: usize = 40;

/// The known facts about a symbol.
#[derive(Debug, Default, Serialize)]
pub struct Description {
    /// The symbol as written in the package of the call.
    symbol: String,
    kinds: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lambda_list: Option<String>,
    documentation: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    definitions: Vec<Map<String, Value>>,
    /// The number of methods that are left out of the definitions.
    #[serde(skip_serializing_if = "is_zero")]
    more_methods: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<ClassDetails>,
    /// The callers, present on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    callers: Option<Vec<String>>,
    /// A sentence that names the files in which callers may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    callers_missing: Option<String>,
    callees: Vec<String>,
    /// Sentences about the definitions that were made through Consort.
    #[serde(skip_serializing_if = "Option::is_none")]
    made_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Description {
    /// Creates the description of a symbol that could not be looked up.
    pub fn failed(why: Refusal) -> Description {
        Description { error: Some(why), ..Description::default() }
    }
}

/// Describes a symbol as written in `package`. `callers` selects the references in the answer: none
/// if it is `None`, those that the compiler recorded if it is empty, and otherwise those of the
/// given kinds, including references in code that is not loaded. Returns the data and the text.
/// Files below `workspace` are named relative to it.
///
/// # Errors
/// See [`Backend::query`].
pub async fn symbol<B: Backend>(
    context: &Context<B>,
    symbol: String,
    package: Option<String>,
    callers: Option<&[Kind]>,
    workspace: &Path,
) -> Result<(Description, String), ImageError> {
    let mut want =
        vec![SymbolPart::Facts, SymbolPart::Definitions, SymbolPart::Callees, SymbolPart::Class, SymbolPart::Elsewhere];
    if callers.is_some_and(<[Kind]>::is_empty) {
        want.push(SymbolPart::References);
    }
    // The places of more methods are not shown, and each would require that its file is read.
    let query = Symbol { name: symbol.clone(), package: package.clone(), strict: true, want, methods: Some(MAX_SHOWN) };
    let known = context.query(query).await?;
    let mut texts = context.texts();
    let named = Named { name: symbol.clone(), package: package.clone() };
    let defined = places::defined(&known, &mut texts).await;
    let Present { defined, .. } = indexed_definitions::present(context, &named, defined, &mut texts).await;
    let mut facts = Description { made_by: context.made_by(&known), ..describe(&symbol, &known, &defined) };
    if let Some(references) = &known.references {
        let features = known.features.as_deref().unwrap_or_default();
        let lines = references::lines(&facts.symbol, references, features, &mut texts).await;
        let mut callers: Vec<String> = Vec::new();
        for (one, line) in references.iter().zip(lines) {
            let mut text = format!("{} {} {}", one.by_kind, one.by, one.kind);
            if let Some((file, line)) = line {
                text += &format!("  ({}:{line})", file.strip_prefix(workspace).unwrap_or(&file).display());
            }
            if !callers.contains(&text) {
                callers.push(text);
            }
        }
        facts.callers = Some(callers);
    }
    if let Some(kinds) = callers.filter(|kinds| !kinds.is_empty()) {
        let name = known.printed.as_deref().unwrap_or(&symbol);
        let (callers, incomplete) = of_kinds(context, name, package.as_deref(), kinds, workspace).await;
        facts.callers = Some(callers);
        facts.callers_missing = incomplete.map(|why| format!("Not all uses may be listed, because {why}."));
    }
    let text = render(&facts, &known);
    Ok((facts, text))
}

/// Returns the references of some kinds, each on a line, and the reason why some may be missing.
async fn of_kinds<B: Backend>(
    context: &Context<B>,
    name: &str,
    package: Option<&str>,
    kinds: &[Kind],
    workspace: &Path,
) -> (Vec<String>, Option<String>) {
    let references::Found { references, incomplete, .. } = references::of_kinds(context, name, package, kinds).await;
    let mut around = enclosing::Finder::default();
    let one = |one: &Referred| {
        let by = around.at(&one.text.document, one.span.start).map(|by| by.name).unwrap_or_default();
        let file = one.text.path.strip_prefix(workspace).unwrap_or(&one.text.path);
        let line = line_column(one.text.document.text(), one.span.start).line;
        format!("{by} {}  ({}:{line})", one.kind.word(), file.display())
    };
    (references.iter().map(one).collect(), incomplete)
}

fn describe(asked: &str, known: &SymbolAnswer, defined: &[places::Defined]) -> Description {
    let facts = known.facts.as_ref();
    let symbol = known.printed.clone().unwrap_or_else(|| asked.to_owned());
    let entry = |one: &Documentation| {
        Map::from_iter([("kind".into(), one.kind.clone().into()), ("text".into(), one.text.clone().into())])
    };
    let mut kinds = facts.map(|facts| facts.kinds.clone()).unwrap_or_default();
    if known.package.is_some() {
        kinds.push("package".into());
    }
    let note = kinds.is_empty().then(|| match known.elsewhere.as_slice() {
        [] => format!("{asked} names nothing in the image. Is its system loaded? The tool apropos finds names."),
        others => format!("{asked} names nothing there. Did you mean {}?", others.join(", ")),
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
        more_methods: known.more_methods,
        class: known.class.clone(),
        callers: None,
        callers_missing: None,
        callees: known.callees.clone().unwrap_or_default(),
        made_by: None,
        note,
        error: None,
        symbol,
        kinds,
    }
}

fn render(description: &Description, known: &SymbolAnswer) -> String {
    if let Some(note) = &description.note {
        return note.clone();
    }
    let what = known.facts.as_ref().filter(|facts| !facts.kinds.is_empty()).map(described::kinds_and_package);
    let mut out = format!("{}: {}", description.symbol, what.unwrap_or_else(|| "package".into()).replace('`', ""));
    let facts = known.facts.as_ref();
    let page = facts.and_then(|facts| Manuals::default().page_of_symbol(facts.package.as_deref()?, &facts.name));
    if let Some(page) = page {
        out.push_str(&format!("\n{}: {}", page.manual, page.url));
    }
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
        if description.more_methods > 0 {
            out.push_str(&format!("\n  ... and {} more methods", description.more_methods));
        }
    }
    if let Some(class) = &description.class {
        out.push_str(&class_text(class));
    }
    let callers = description.callers.clone().unwrap_or_default();
    if description.callers.as_ref().is_some_and(Vec::is_empty) {
        out.push_str("\n\nUsed by nothing that is loaded.");
    }
    for (heading, names) in [("Used by", &callers), ("Uses", &description.callees)] {
        if !names.is_empty() {
            out.push_str(&format!("\n\n{heading}:"));
            names.iter().take(MAX_SHOWN).for_each(|name| out.push_str(&format!("\n  {name}")));
            if names.len() > MAX_SHOWN {
                out.push_str(&format!("\n  ... and {} more", names.len() - MAX_SHOWN));
            }
        }
    }
    if let Some(missing) = &description.callers_missing {
        out.push_str(&format!("\n\n{missing}"));
    }
    if let Some(made_by) = &description.made_by {
        out.push_str(&format!("\n\n{made_by}"));
    }
    out
}

fn class_text(class: &ClassDetails) -> String {
    let mut out = format!("\n\nClass ({}):", class.metaclass);
    for (heading, names) in
        [("Superclasses", &class.supers), ("Subclasses", &class.subclasses), ("Initargs", &class.initargs)]
    {
        if !names.is_empty() {
            out.push_str(&format!("\n  {heading}: {}", names.join(" ")));
        }
    }
    for slot in &class.slots {
        out.push_str(&format!("\n  Slot {}", slot.name));
        let accessors = (!slot.accessors.is_empty()).then(|| format!(" accessors {}", slot.accessors.join(" ")));
        let initargs = (!slot.initargs.is_empty()).then(|| format!(" initargs {}", slot.initargs.join(" ")));
        let kind = slot.kind.as_ref().map(|kind| format!(" type {kind}"));
        let initform = slot.initform.as_ref().map(|form| format!(" initform {form}"));
        for part in [initargs, accessors, kind, initform].into_iter().flatten() {
            out.push_str(&part);
        }
        out.push_str(&format!(" (of {})", slot.from));
    }
    for method in &class.methods {
        out.push_str(&format!("\n  Method {method}"));
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, context, definition, run};

    fn check(image: FakeImage, name: &str, expected: Expect) {
        let files = [("b.lisp", "(defun user (y)\n  (far y))\n(defun far (x) x)")];
        let context = context(image, &files);
        let text = match run(symbol(&context, name.into(), None, Some(&[]), Path::new("/no"))) {
            Ok((_, text)) => text,
            Err(error) => format!("{}: {error}", error.kind()),
        };
        expected.assert_eq(&format!("{text}\n"));
    }

    #[test]
    fn callers_that_may_be_missing_are_said_with_the_files() {
        let image = FakeImage::empty().function("far", &["x"], "").incomplete("/no/c.lisp is large");
        let context = context(image, &[("b.lisp", "(far 1)")]);
        let described = run(symbol(&context, "far".into(), None, Some(&[Kind::Calls]), Path::new("/no")));
        let (facts, text) = described.expect("an answer");
        let why = "Not all uses may be listed, because /no/c.lisp is large.";
        assert!(text.ends_with(why) && facts.callers_missing.as_deref() == Some(why), "{text}");
    }

    #[test]
    fn a_symbol_is_described_with_its_definitions_and_callers() {
        let facts = json!({
            "name": "FAR", "package": "APP", "external": true, "printed": "far", "kinds": ["function"],
            "lambda_list": ["x"], "documentation": [{"kind": "function", "text": "Goes far."}],
        });
        let by = json!({"kind": "calls", "by": "user", "by_kind": "function", "file": "/no/b.lisp", "form": 0});
        let definitions = [definition("function", "far", "b.lisp", 1)];
        let answer = json!({
            "found": true, "printed": "app:far", "facts": facts, "definitions": definitions, "references": [by],
            "callees": ["near"],
        });
        // The image gets a single query, which asks for callers only if they are requested.
        for callers in [false, true] {
            let context = context(FakeImage::empty().symbol("far", answer.clone()), &[]);
            let wanted: Option<&[Kind]> = callers.then_some(&[]);
            let (described, _) = run(symbol(&context, "far".into(), None, wanted, Path::new("/no"))).unwrap();
            assert_eq!(described.callers.is_some(), callers);
            let want = if callers { r#","references"]"# } else { "]" };
            let asked = format!(
                r#"symbol {{"name":"far","strict":true,"want":["facts","definitions","callees","class","elsewhere"{want},"methods":40}}"#
            );
            assert_eq!(*context.backend().queries(), [asked]);
        }
        check(
            FakeImage::empty().symbol("far", answer).definitions_on_record("function", "Defined by an agent."),
            "far",
            expect![[r#"
            app:far: function · APP (exported)
            Lambda list: (app:far x)

            Documentation (function):
            Goes far.

            Defined:
              function far at /no/b.lisp:3:1

            Used by:
              function user calls  (b.lisp:2)

            Uses:
              near

            Defined by an agent.
        "#]],
        );
    }

    #[test]
    fn references_of_some_kinds_are_those_of_the_texts_too() {
        let files = [("b.lisp", "(defun user (y)\n  (far y))\n(defun far (x) x)\n(setf (far 1) 2)\n(test t1 (far 3))")];
        let facts = json!({"name": "FAR", "package": "APP", "external": true, "printed": "far", "kinds": ["function"],
            "documentation": []});
        let context = context(FakeImage::empty().symbol("far", json!({"found": true, "facts": facts})), &files);
        let of = |kind| {
            let (found, _) = run(symbol(&context, "far".into(), None, Some(&[kind]), Path::new("/no"))).unwrap();
            found.callers.unwrap().join(", ")
        };
        assert_eq!(of(Kind::Calls), "user calls  (b.lisp:2), test t1 calls  (b.lisp:5)");
        assert_eq!(of(Kind::Sets), "setf sets  (b.lisp:4)");
        assert_eq!(of(Kind::Binds), "");
    }

    #[test]
    fn of_many_methods_the_first_are_shown() {
        let facts = json!({
            "name": "FAR", "package": "APP", "external": true, "printed": "far", "kinds": ["generic function"], "documentation": [],
        });
        let definitions = [definition("generic function", "far", "b.lisp", 1)];
        let answer = json!({"found": true, "printed": "app:far", "facts": facts, "definitions": definitions, "more_methods": 148});
        check(
            FakeImage::empty().symbol("far", answer),
            "far",
            expect![[r#"
            app:far: generic function · APP (exported)

            Defined:
              generic function far at /no/b.lisp:3:1
              ... and 148 more methods
        "#]],
        );
    }

    #[test]
    fn an_unknown_symbol_is_answered_with_the_next_step() {
        check(
            FakeImage::empty(),
            "nowhere",
            expect![[r#"
            nowhere names nothing in the image. Is its system loaded? The tool apropos finds names.
        "#]],
        );
        let elsewhere = json!({"found": false, "elsewhere": ["lib:scan"]});
        check(
            FakeImage::empty().symbol("scan", elsewhere),
            "scan",
            expect![[r#"
            scan names nothing there. Did you mean lib:scan?
        "#]],
        );
        check(
            FakeImage::absent(),
            "far",
            expect![[r#"
            image-unavailable: There is no image.
        "#]],
        );
    }
}
