//! The definitions of a global name in the files of the workspace, loaded or not, open or not, each
//! in the current text of its file.

use super::context::{Backend, Context};
use super::definition_in_index::{Named, TextSymbol, indexed};
use super::places::Defined;
use super::texts::Texts;
use crate::text::definitions::{self, Place};

/// A definition, with its lambda list as written, if it has one.
#[derive(Debug)]
pub(super) struct Found {
    /// The definition and its place.
    pub(super) defined: Defined,
    /// The lambda list.
    pub(super) lambda_list: Option<String>,
}

/// Returns the definitions of the symbol that a name denotes, in the order of the files.
pub(super) async fn find<B: Backend>(context: &Context<B>, named: &Named, texts: &mut Texts) -> Vec<Found> {
    let index = context.texts_index().await;
    let meant = TextSymbol::of(&index, named);
    let mut found = Vec::new();
    for (file, one) in indexed(&index, &meant, |_| true) {
        let Some(text) = texts.get(&file.path).await else { continue };
        // The file may have changed since it was indexed.
        let all = definitions::named(&text.document, &one.key);
        let Some(here) = all.into_iter().find(|here| here.span == one.form) else { continue };
        let list = here.lambda_list.map(|list| text.document.text().slice(list.start..list.end).to_string());
        found.push(Found {
            defined: Defined {
                kind: one.kind().to_owned(),
                name: one.written.clone(),
                file: file.path.clone(),
                text: Some(text),
                place: Some(Place { form: here.span, name: here.name }),
            },
            lambda_list: list,
        });
    }
    found
}
