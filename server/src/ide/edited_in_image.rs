//! A comparison, after an edit of forms, of the image's definitions with those in the file.

use super::context::Backend;
use super::edit_forms::Edits;
use crate::image::api::symbols::SymbolPart;
use crate::text::recorded_definitions;

/// Returns sentences about whether the image has the file's current definitions, each after a
/// space. Definitions for which this is not known are left out.
pub async fn describe_image_state<B: Backend>(backend: &B, edits: &Edits) -> String {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut old, mut same, mut none) = (Vec::new(), Vec::new(), Vec::new());
    let mut wanted: Vec<(String, recorded_definitions::Definition)> = Vec::new();
    for (edit, content) in edits.each.iter().zip(&edits.contents) {
        let package = edit.package.clone();
        let Some(made) = recorded_definitions::definitions(content).into_iter().next() else { continue };
        // If two edits are of the same form, the last one counts.
        wanted.retain(|(_, other)| (&other.kind, &other.name, &other.method) != (&made.kind, &made.name, &made.method));
        wanted.push((package, made));
    }
    for (package, made) in wanted {
        let Ok(known) = backend.symbol(&made.name, Some(&package), &[SymbolPart::Facts]).await else { continue };
        let Some(facts) = known.facts.filter(|facts| !facts.kinds.is_empty()) else {
            none.push(made.name);
            continue;
        };
        let through_consort = facts
            .package
            .as_deref()
            .map(|package| backend.definitions_on_record(package, &facts.name))
            .unwrap_or_default();
        let latest = through_consort.iter().find(|one| one.kind == made.kind && one.method == made.method_in(&package));
        // The recorded text of a long form is clipped and cannot be compared.
        let is_whole = |text: &str| text.chars().count() < recorded_definitions::MAX_TEXT_CHARS;
        if latest.is_some_and(|latest| {
            latest.digest == made.digest || is_whole(&made.text) && squeezed(&latest.text) == squeezed(&made.text)
        }) {
            same.push(made.name);
        } else {
            old.push(made.name);
        }
    }
    let mut text = String::new();
    if !same.is_empty() {
        text += &format!(" The image has {} as it is in the file now.", same.join(", "));
    }
    if !old.is_empty() {
        let names = old.join(", ");
        text += &format!(
            " The image still has the old definition of {names} until it is loaded (`load`, or code_reload_system)."
        );
    }
    if !none.is_empty() {
        text += &format!(" The image has no {} until it is loaded.", none.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::ide::edit_forms::{FormEdit, edit_all};
    use crate::ide::fake::{FakeImage, run};

    fn check(image: &FakeImage, expected: Expect) {
        check_edits(image, &["(defun f (x) (1+ x))"], expected);
    }

    fn check_edits(image: &FakeImage, contents: &[&str], expected: Expect) {
        let edit = |content: &&str| FormEdit {
            form_type: "defun".into(),
            form_name: "f".into(),
            operation: None,
            content: Some((*content).into()),
            old: None,
            new: None,
        };
        let edits: Vec<FormEdit> = contents.iter().map(edit).collect();
        let edits = edit_all("(in-package :app)\n(defun f (x) x)", &edits).expect("an edit");
        let sentences = run(describe_image_state(image, &edits));
        expected.assert_eq(if sentences.is_empty() { "nothing" } else { sentences.trim() });
    }

    #[test]
    fn a_long_form_is_compared_to_its_end() {
        let form = |end: &str| format!("(defun f (x) {} {end})", "(list x) ".repeat(100));
        let image = || FakeImage::empty().function("f", &["x"], "").made_of("function", &form("1"));
        check_edits(&image(), &[&form("1")], expect!["The image has F as it is in the file now."]);
        check_edits(
            &image(),
            &[&form("1"), &form("2")],
            expect!["The image still has the old definition of F until it is loaded (`load`, or code_reload_system)."],
        );
    }

    #[test]
    fn an_edit_is_in_the_image_only_when_it_was_loaded() {
        let image = || FakeImage::empty().function("f", &["x"], "");
        check(
            &image(),
            expect!["The image still has the old definition of F until it is loaded (`load`, or code_reload_system)."],
        );
        check(
            &image().made_of("function", "(defun f (x)\n  (1+ x))"),
            expect!["The image has F as it is in the file now."],
        );
        let meaningless = serde_json::json!({"found": true, "facts": {
            "name": "F", "package": "APP", "external": false, "printed": "f", "kinds": [], "documentation": [],
        }});
        check(&FakeImage::empty().symbol("f", meaningless), expect!["The image has no F until it is loaded."]);
        check(&FakeImage::absent(), expect!["nothing"]);
    }
}
