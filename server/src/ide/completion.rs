//! Completion of the name at a position: keyword arguments and initargs of the call, names of the
//! text, names of the image.

use std::collections::HashSet;

use super::context::{Backend, Cursor};
use super::described::{self, Described};
use super::partial_name::{self, Local, PartialName};
use super::texts::Texts;
use super::{initargs, signature};
use crate::image::api::symbols::{Complete, Completion, Completions, Want};
use crate::text::Span;

/// The maximum number of completions from the image in one answer; the client asks again as the
/// user types.
const LIMIT: usize = 100;
/// The maximum number of completions of a name outside a document.
const LIMIT_OUTSIDE: usize = 200;

/// The completions of a partial name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// The part typed so far.
    pub typed: String,
    /// The span that a completion replaces.
    pub replace: Span,
    /// The completions, best first.
    pub items: Vec<Item>,
    /// True if the list may change with the next character typed.
    pub incomplete: bool,
}

/// A completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The text to insert.
    pub label: String,
    /// `argument` for a keyword argument or initarg, else what the name means: `function`,
    /// `macro`, `variable`, `class`, `package`, ...
    pub kind: String,
    /// A description in a few words.
    pub detail: String,
    /// The package of a symbol of the image.
    pub package: Option<String>,
    /// A symbol of the image with its package, escaped, for [`describe`].
    pub symbol: Option<String>,
}

/// Returns the completions of the name at the cursor; `None` in strings and comments.
pub async fn complete<B: Backend>(cursor: &Cursor<B>) -> Option<Completed> {
    let name = partial_name::context(&cursor.document, cursor.offset)?;
    let (known, keywords) = tokio::join!(of_image(&cursor.context, &name), keywords(cursor, &name));
    let mut items: Vec<Item> = keywords;
    if !name.packages {
        items.extend(partial_name::locals(&cursor.document, cursor.offset, &name).into_iter().map(local));
    }
    items.extend(known.items.into_iter().map(|one| item(one, &name)));
    let mut seen = HashSet::new();
    items.retain(|one| seen.insert(one.label.to_lowercase()));
    // Order and selection are valid only for the text typed so far.
    let incomplete = known.incomplete || !name.typed.is_empty();
    Some(Completed { typed: name.typed, replace: name.replace, items, incomplete })
}

/// Returns the completions of a name that is not in a document.
///
/// # Errors
/// The image does not answer.
pub async fn outside<B: Backend>(
    backend: &B,
    text: String,
    package: Option<String>,
    operator: bool,
) -> Result<Completions, crate::model::image::ImageError> {
    backend.query(Complete { text, package, limit: LIMIT_OUTSIDE, operator, packages: false }).await
}

/// The completions of the image; empty without an image.
async fn of_image<B: Backend>(backend: &B, name: &PartialName) -> Completions {
    let text = name.typed.trim_start_matches("#:");
    let text = if name.packages { text.trim_start_matches(':') } else { text };
    let question = Complete {
        text: text.to_owned(),
        package: name.package.clone(),
        limit: LIMIT,
        operator: name.operator,
        packages: name.packages,
    };
    backend.query(question).await.unwrap_or_default()
}

/// The keyword arguments and initargs that the enclosing call still accepts and that start with
/// the typed text.
async fn keywords<B: Backend>(cursor: &Cursor<B>, name: &PartialName) -> Vec<Item> {
    let wanted = (name.typed.starts_with(':') || name.typed.is_empty()) && !name.packages;
    let sites = signature::call_sites(&cursor.document, cursor.offset);
    let Some(site) = sites.into_iter().next().filter(|_| wanted) else { return Vec::new() };
    let texts = cursor.context.texts().await;
    let package = name.package.as_deref();
    let mut names = Vec::new();
    if let Some((class, given)) = initargs::class(&site) {
        let detail = format!("initialization argument of {class}");
        let all = initargs_of(&cursor.context, &texts, class, package).await;
        let left = all.into_iter().filter(|one| !given.iter().any(|given| given.eq_ignore_ascii_case(one)));
        names.extend(left.map(|name| (name, detail.clone())));
    }
    if let Some(known) = signature::parameters(cursor, &texts, &site, package).await {
        let given = site.arguments.split_last().map(|(_, given)| given).unwrap_or_default();
        let left = signature::keywords(&known.names, given);
        names.extend(left.into_iter().map(|name| (name, "keyword argument".into())));
    }
    names.retain(|(label, _)| partial_name::fits(&name.typed, label));
    let item = |(label, detail)| Item { label, kind: "argument".into(), detail, package: None, symbol: None };
    names.into_iter().map(item).collect()
}

/// The initargs of a class: from the open texts first, including superclasses defined there, then
/// from the image.
async fn initargs_of<B: Backend>(backend: &B, texts: &Texts, class: String, package: Option<&str>) -> Vec<String> {
    /// The maximum number of classes visited: the definitions in a text may be circular.
    const MOST: usize = 20;
    let mut found: Vec<String> = Vec::new();
    let mut classes = vec![class];
    let mut at = 0;
    while let Some(class) = classes.get(at).cloned().filter(|_| at < MOST) {
        at += 1;
        let of_text = initargs::in_texts(&class, texts);
        let of_image = backend.symbol(&class, package, &[Want::Initargs]).await.ok().and_then(|known| known.initargs);
        let (own, supers) = of_text.unwrap_or_default();
        for name in own.into_iter().chain(of_image.unwrap_or_default()) {
            if !found.iter().any(|one| one.eq_ignore_ascii_case(&name)) {
                found.push(name);
            }
        }
        let new: Vec<String> = supers.into_iter().filter(|one| !classes.contains(one)).collect();
        classes.extend(new);
    }
    found
}

fn local(one: Local) -> Item {
    let kind = if one.operator { "function" } else { "variable" };
    Item { label: one.label, kind: kind.into(), detail: one.detail, package: None, symbol: None }
}

fn item(one: Completion, name: &PartialName) -> Item {
    if name.packages {
        // A prefix typed before the name, `:` or `#:`, stays.
        let typed = name.typed.trim_start_matches(['#', ':']);
        let prefix = &name.typed[..name.typed.len() - typed.len()];
        let (label, detail) = (format!("{prefix}{}", one.label), format!("package {}", one.package));
        return Item { label, kind: one.kind, detail, package: None, symbol: None };
    }
    let bars = |name: &str| format!("|{}|", name.replace('\\', "\\\\").replace('|', "\\|"));
    let symbol = Some(format!("{}::{}", bars(&one.package), bars(&one.name)));
    Item { label: one.label, detail: one.kind.clone(), kind: one.kind, package: Some(one.package), symbol }
}

/// The description of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The call with its parameters, or the kinds of the name.
    pub detail: Option<String>,
    /// The documentation, Markdown.
    pub documentation: Option<String>,
}

/// Describes a completion of the image: see [`Item::symbol`]. `None`: the image does not answer.
pub async fn describe<B: Backend>(backend: &B, label: &str, symbol: &str) -> Option<Description> {
    let known = backend.symbol(symbol, None, &[Want::Facts]).await.ok()?;
    let detail = known.facts.as_ref().map(|facts| match &facts.lambda_list {
        Some(parameters) => described::signature(label.rsplit(':').next().unwrap_or(label), parameters),
        None => facts.kinds.join(", "),
    });
    let documentation = described::markdown(&Described { known: Some(&known), ..Described::default() });
    Some(Description { detail, documentation })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, cursor, run};

    fn check(image: FakeImage, text: &str, expected: Expect) {
        let cursor = cursor(image, &[("a.lisp", text)]);
        let line = |item: &Item| {
            let package = item.package.as_ref().map_or(String::new(), |package| format!(", {package}"));
            format!("{} ({}{package})\n", item.label, item.detail)
        };
        let shown = match run(complete(&cursor)) {
            Some(completed) => completed.items.iter().map(line).collect(),
            None => "no completion\n".to_owned(),
        };
        expected.assert_eq(&shown);
    }

    fn image() -> FakeImage {
        let item = |label: &str, package: &str, kind: &str| {
            let name = label.to_uppercase();
            json!({"label": label, "name": name, "package": package, "kind": kind})
        };
        let answer = |items: &[serde_json::Value]| json!({"items": items, "incomplete": false});
        let names = [item("help", "APP", "function"), item("height", "APP", "variable")];
        FakeImage::empty()
            .answer("complete", "he", answer(&names))
            .answer("complete", "al", answer(&[item("alexandria", "ALEXANDRIA", "package")]))
            .function("scan", &["regex", "target", "&key", "start", "(end 5)"], "")
            .symbol("animal", json!({"found": true, "initargs": [":name", ":age"]}))
    }

    #[test]
    fn names_of_the_text_come_before_those_of_the_image() {
        check(
            image(),
            "(defun helper (x) x)\n(defun f (height) (g he‸))",
            expect![[r#"
            height (parameter (defun))
            helper (defun)
            help (function, APP)
        "#]],
        );
        check(
            FakeImage::absent(),
            "(defun helper (x) x)\n(he‸)",
            expect![[r#"
            helper (defun)
        "#]],
        );
        check(
            image(),
            "(f \"he‸\")",
            expect![[r#"
            no completion
        "#]],
        );
    }

    #[test]
    fn a_prefix_of_a_package_stays() {
        check(
            image(),
            "(use-package :al‸)",
            expect![[r#"
            :alexandria (package ALEXANDRIA)
        "#]],
        );
        check(
            image(),
            "(use-package #:al‸)",
            expect![[r#"
            #:alexandria (package ALEXANDRIA)
        "#]],
        );
    }

    #[test]
    fn keywords_are_those_that_the_call_still_accepts() {
        check(
            image(),
            "(scan x y :‸)",
            expect![[r#"
            :start (keyword argument)
            :end (keyword argument)
        "#]],
        );
        check(
            image(),
            "(scan x y :end 1 :‸)",
            expect![[r#"
            :start (keyword argument)
        "#]],
        );
        check(
            image(),
            "(make-instance 'animal :name 1 :‸)",
            expect![[r#"
            :age (initialization argument of animal)
        "#]],
        );
        let text = "(defclass dog (animal) ((tail :initarg :tail)))\n(make-instance 'dog :‸)";
        check(
            image(),
            text,
            expect![[r#"
            :tail (initialization argument of dog)
            :name (initialization argument of dog)
            :age (initialization argument of dog)
        "#]],
        );
    }

    #[test]
    fn a_completion_is_described_by_the_image() {
        let image = FakeImage::empty().function("|APP|::|HELP|", &["topic"], "Tells of `topic`.");
        expect![[r#"
            Some(
                Description {
                    detail: Some(
                        "(help topic)",
                    ),
                    documentation: Some(
                        "```lisp\n(|APP|::|HELP| topic)\n```\n\nfunction · `APP` (internal)\n\n```text\nTells of `topic`.\n```",
                    ),
                },
            )
        "#]].assert_debug_eq(&run(describe(&image, "app:help", "|APP|::|HELP|")));
        expect![[r#"
            None
        "#]]
        .assert_debug_eq(&run(describe(&FakeImage::absent(), "help", "|APP|::|HELP|")));
    }
}
