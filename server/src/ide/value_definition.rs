//! The definitions of a shown value: those of a function, a package or a symbol itself, or those of
//! the class of an instance.

use super::context::{Backend, Context};
use super::places;
pub use super::places::Defined;
use crate::image::api::inspector::InspectDefinition;
use crate::model::image::ImageError;

/// Returns the definitions, in files that can be read, of the value with a reference number.
///
/// # Errors
/// The value no longer exists, or the image does not answer.
pub async fn of<B: Backend>(context: &Context<B>, reference: u64) -> Result<Vec<Defined>, ImageError> {
    let answer = context.query(InspectDefinition { reference }).await?;
    let mut texts = context.texts();
    let mut found: Vec<Defined> = Vec::new();
    for definition in &answer.definitions {
        let Some(one) = places::locate(definition, &answer.features, &mut texts).await else { continue };
        let known = |other: &Defined| other.file == one.file && other.place == one.place;
        if one.text.is_some() && !found.iter().any(known) {
            found.push(one);
        }
    }
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, context, definition, run, shown};

    #[test]
    fn each_definition_in_a_file_that_can_be_read_is_found_once() {
        let text = "(defgeneric area (shape))\n(defmethod area ((shape circle)) 1)";
        let method = json!({
            "kind": "method", "name": "area (circle)", "specializers": ["circle"], "qualifiers": [],
            "file": "/no/a.lisp", "form": 1,
        });
        let generic = definition("generic function", "area", "a.lisp", 0);
        let gone = definition("function", "lost", "gone.lisp", 0);
        let known = json!({"definitions": [generic, generic, method, gone], "features": []});
        let image = FakeImage::empty().answer("inspect-definition", "", known);
        let found = run(of(&context(image, &[("a.lisp", text)]), 7)).unwrap();
        expect![[r#"
            a.lisp:1
            (defgeneric area (shape))
                        ^^^^
            a.lisp:2
            (defmethod area ((shape circle)) 1)
                       ^^^^
        "#]]
        .assert_eq(&shown(&found.iter().map(Defined::target).collect::<Vec<_>>()));
    }
}
