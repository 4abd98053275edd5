//! A search for symbols by a part of their names, among the definitions in the workspace's texts,
//! loaded or not, and in the image.

use super::context::{Backend, Context};
use super::index::{Found, Limits, search};
use super::places::{self, Defined};
use crate::image::api::symbols::{Apropos, SymbolAnswer};

/// The maximum number of symbols in an answer.
const LIMIT: usize = 200;

/// A definition, and its place for a client.
#[derive(Debug, Clone)]
pub enum Symbol {
    /// A definition in the index of the workspace's texts.
    Indexed(Found),
    /// A definition elsewhere, as the image reports it.
    Loaded(Box<Defined>),
}

/// Returns the definitions of names that match `query`, best first. The definitions in the
/// workspace's texts are returned or, if there are none, those in the image. An empty query returns
/// the definitions in open texts.
pub async fn symbols<B: Backend>(context: &Context<B>, query: &str) -> Vec<Symbol> {
    let query = query.trim().to_lowercase();
    let index = context.texts_index().await;
    let found: Vec<Symbol> = search(&index, &query, Limits { most: LIMIT }).into_iter().map(Symbol::Indexed).collect();
    if !found.is_empty() || query.is_empty() {
        return found;
    }
    let question =
        Apropos { pattern: query, package: None, external: false, system: false, limit: LIMIT, definitions: true };
    let Ok(answer) = context.query(question).await else { return Vec::new() };
    let mut texts = context.texts();
    let mut loaded: Vec<Defined> = Vec::new();
    for symbol in answer.symbols.into_iter().filter(|symbol| symbol.package != "COMMON-LISP") {
        let known = SymbolAnswer {
            definitions: symbol.definitions,
            features: answer.features.clone(),
            ..SymbolAnswer::default()
        };
        for mut one in places::defined(&known, &mut texts).await {
            one.name = one.name.rsplit(':').next().unwrap_or(&one.name).to_owned();
            loaded.push(one);
        }
    }
    let mut seen = std::collections::HashSet::new();
    loaded.retain(|one| seen.insert((one.file.clone(), one.place.map(|place| place.name))));
    loaded.truncate(LIMIT);
    loaded.into_iter().map(|one| Symbol::Loaded(Box::new(one))).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, context, definition, run};

    fn check(image: FakeImage, query: &str, expected: Expect) {
        let text = "(defun scan-all (x) x)\n(defvar *scanner* 1)\n(defun (setf limit) (new) new)";
        let found = run(symbols(&context(image, &[("a.lisp", text)]), query));
        let one = |one: &Symbol| match one {
            Symbol::Indexed(found) => format!("{} ({})\n", found.definition().written, found.definition().kind()),
            Symbol::Loaded(one) => format!("{} ({})\n", one.name, one.kind),
        };
        let shown: String = found.iter().map(one).collect();
        expected.assert_eq(&shown);
    }

    #[test]
    fn names_match_by_a_part_or_by_words() {
        let found = json!({
            "name": "app:scan-far", "package": "APP", "symbol": "SCAN-FAR", "kind": "function", "lambda_list": null,
            "summary": null, "definitions": [definition("function", "app:scan-far", "gone.lisp", 0)],
        });
        check(
            FakeImage::empty(),
            "Scan",
            expect![[r#"
            scan-all (function)
            *scanner* (variable)
        "#]],
        );
        let image = FakeImage::empty().answer("apropos", "scan-f", json!({"total": 1, "symbols": [found]}));
        check(
            image,
            "Scan-f",
            expect![[r#"
            scan-far (function)
        "#]],
        );
        check(
            FakeImage::absent(),
            "s-a",
            expect![[r#"
            scan-all (function)
        "#]],
        );
        check(
            FakeImage::absent(),
            "limit",
            expect![[r#"
            (setf limit) (function)
        "#]],
        );
        check(
            FakeImage::empty(),
            "",
            expect![[r#"
            scan-all (function)
            *scanner* (variable)
            (setf limit) (function)
        "#]],
        );
    }
}
