//! The definition of the type of the name at a position: the class, structure, condition or type
//! of a variable, or of a function's value.

use super::context::{Backend, Context, Cursor};
use super::named_symbols::SymbolHere;
use super::places::{self, Defined, Target};
use super::texts::Texts;
use super::types::{self, TypeOf};
use crate::image::api::symbols::SymbolPart;

/// Returns the definitions of the type of the name at the cursor. The type of a local variable
/// comes from the text, that of other names from the image.
pub async fn type_definitions<B: Backend>(cursor: &Cursor<B>) -> Vec<Target> {
    let Some(SymbolHere { written, package, .. }) = cursor.symbol_here() else { return Vec::new() };
    let context = &cursor.context;
    let mut texts = context.texts();
    let (names, want) = match types::of_local(&cursor.document, cursor.offset) {
        Some(TypeOf::Unknown) => return Vec::new(),
        Some(TypeOf::Named(names)) => (names, SymbolPart::Definitions),
        Some(TypeOf::Returned(name)) => (vec![name], SymbolPart::Types),
        None => (vec![written], SymbolPart::Types),
    };
    let mut found = Vec::new();
    for name in names {
        found.extend(definitions(context, &mut texts, &name, package.as_deref(), want).await);
    }
    places::distinct(found.iter().map(Defined::target))
}

/// Returns the definitions of types: those of the type `name` or, with [`SymbolPart::Types`], those
/// of the type of the value of `name`. Open texts are used for names unknown to the image.
async fn definitions<B: Backend>(
    context: &Context<B>,
    texts: &mut Texts,
    name: &str,
    package: Option<&str>,
    want: SymbolPart,
) -> Vec<Defined> {
    let known = context.symbol(name, package, &[want]).await.ok();
    let mut found = places::defined_anywhere(known.as_ref(), name, package, texts).await;
    found.retain(|one| matches!(one.kind.as_str(), "class" | "structure" | "condition" | "type"));
    found
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, cursor, definition, run, shown};

    fn check(text: &str, expected: Expect) {
        let at = json!({"found": true, "definitions": [definition("class", "circle", "b.lisp", 0)]});
        let image = FakeImage::empty().symbol("circle", at.clone()).symbol("*unit*", at);
        let cursor = cursor(image, &[("a.lisp", text), ("b.lisp", "(defclass circle () (radius))")]);
        expected.assert_eq(&shown(&run(type_definitions(&cursor))));
    }

    #[test]
    fn a_variable_goes_to_its_type() {
        check(
            "(defmethod area ((c circle))\n  (f c‸))",
            expect![[r#"
            b.lisp:1
            (defclass circle () (radius))
                      ^^^^^^
        "#]],
        );
        check(
            "(let ((c (make-instance 'circle)))\n  (f c‸))",
            expect![[r#"
            b.lisp:1
            (defclass circle () (radius))
                      ^^^^^^
        "#]],
        );
        check(
            "(f *uni‸t*)",
            expect![[r#"
            b.lisp:1
            (defclass circle () (radius))
                      ^^^^^^
        "#]],
        );
        check(
            "(let ((c 1))\n  (f c‸))",
            expect![[r#"
            nothing
        "#]],
        );
    }
}
