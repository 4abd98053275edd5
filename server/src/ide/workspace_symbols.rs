//! Symbols by a part of their names: the definitions in open texts and in the image.

use super::context::{Backend, Context};
use super::partial_name::fits;
use super::places::{self, Defined};
use crate::image::api::symbols::{Apropos, Known};
use crate::text::definitions;

/// The maximum number of symbols in an answer.
const LIMIT: usize = 200;

/// Returns the definitions of names that match `query`. An empty query returns the definitions in
/// open texts.
pub async fn symbols<B: Backend>(context: &Context<B>, query: &str) -> Vec<Defined> {
    let query = query.trim().to_lowercase();
    let mut texts = context.texts().await;
    let mut found: Vec<Defined> = Vec::new();
    for text in texts.known() {
        for one in definitions::all(&text.document) {
            let name = one.key.trim_start_matches("(setf ").trim_end_matches(')');
            if name.contains(&query) || fits(&query, name) {
                found.push(Defined {
                    kind: definitions::kind_of(&one.operator).to_owned(),
                    name: one.written.clone(),
                    text: Some(text.clone()),
                    file: text.path.clone(),
                    place: Some(definitions::Place { form: one.span, name: one.name }),
                });
            }
        }
    }
    if !query.is_empty() {
        let question =
            Apropos { pattern: query, package: None, external: false, system: false, limit: LIMIT, definitions: true };
        if let Ok(answer) = context.query(question).await {
            for symbol in answer.symbols.into_iter().filter(|symbol| symbol.package != "COMMON-LISP") {
                let known =
                    Known { definitions: symbol.definitions, features: answer.features.clone(), ..Known::default() };
                for mut one in places::defined(&known, &mut texts).await {
                    one.name = one.name.rsplit(':').next().unwrap_or(&one.name).to_owned();
                    found.push(one);
                }
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|one| seen.insert((one.file.clone(), one.place.map(|place| place.name))));
    found.truncate(LIMIT);
    found
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
        let shown: String = found.iter().map(|one| format!("{} ({})\n", one.name, one.kind)).collect();
        expected.assert_eq(&shown);
    }

    #[test]
    fn names_match_by_a_part_or_by_words() {
        let found = json!({
            "name": "app:scan-far", "package": "APP", "symbol": "SCAN-FAR", "kind": "function", "lambda_list": null,
            "summary": null, "definitions": [definition("function", "app:scan-far", "gone.lisp", 0)],
        });
        let image = FakeImage::empty().answer("apropos", "scan", json!({"total": 1, "symbols": [found]}));
        check(
            image,
            "Scan",
            expect![[r#"
            scan-all (function)
            *scanner* (variable)
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
