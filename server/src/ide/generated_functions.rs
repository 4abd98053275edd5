//! Functions without a definition form of their own, in texts that are not loaded: the accessors of
//! classes, and the functions of structures.

use super::context::{Backend, Context};
use super::definition_in_index::{Named, TextSymbol, generators};
use super::places::Defined;
use super::texts::Texts;
use crate::text::definitions::{self, Place};

/// Returns the places that define the function with this name. The name is as written in a package.
pub(super) async fn find<B: Backend>(context: &Context<B>, named: &Named, texts: &mut Texts) -> Vec<Defined> {
    let index = context.texts_index().await;
    let meant = TextSymbol::of(&index, named);
    let key = definitions::key(&named.name);
    let mut found = Vec::new();
    for (file, one) in generators(&index, &meant) {
        let Some(text) = texts.get(&file.path).await else { continue };
        let (kind, name) = match one.operator.as_str() {
            "defstruct" => ("function", one.name),
            // The name is in an option of the slot, after the slot's own name.
            _ => {
                let mentions = definitions::mentions(&text.document, one.form, &key);
                ("generic function", mentions.last().copied().unwrap_or(one.name))
            }
        };
        found.push(Defined {
            kind: kind.into(),
            name: named.name.clone(),
            file: file.path.clone(),
            text: Some(text),
            place: Some(Place { form: one.form, name }),
        });
    }
    found
}
