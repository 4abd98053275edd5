//! After an edit of forms: whether the image has the definitions that the file has now.

use super::context::Backend;
use super::edit_forms::Edits;
use crate::image::api::symbols::Want;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::made;

/// The package in force at a line of a text.
pub fn package_of(text: &str, line: usize) -> String {
    let document = Document::new(text, 0);
    let at = document.text().line_to_char((line - 1).min(document.text().len_lines().saturating_sub(1)));
    package_at(&document, at).unwrap_or_else(|| "COMMON-LISP-USER".into())
}

/// A sentence that says if the image has the file's current definitions; empty if unknown.
pub async fn image_has<B: Backend>(backend: &B, edits: &Edits) -> String {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut old, mut same, mut none) = (Vec::new(), Vec::new(), Vec::new());
    for (edit, content) in edits.each.iter().zip(&edits.contents) {
        let package = package_of(&edit.text, edit.lines.0);
        let Some(made) = made::definitions(content).into_iter().next() else { continue };
        let Ok(known) = backend.symbol(&made.name, Some(&package), &[Want::Facts]).await else { continue };
        let Some(facts) = known.facts.filter(|facts| !facts.kinds.is_empty()) else {
            none.push(made.name);
            continue;
        };
        let through_consort =
            facts.package.as_deref().map(|package| backend.made(package, &facts.name)).unwrap_or_default();
        let latest = through_consort.iter().find(|one| one.kind == made.kind);
        if latest.is_some_and(|latest| squeezed(&latest.text) == squeezed(&made.text)) {
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
