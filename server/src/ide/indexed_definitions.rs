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

/// The definitions of a name that the image knows, as far as their files still have them.
pub(super) struct Present {
    /// The definitions. If all that the image knows are gone from their files, those in the current
    /// texts of the workspace, as after a move to another file.
    pub(super) defined: Vec<Defined>,
    /// A definition that is gone from its file, if no file of the workspace defines the name.
    pub(super) gone: Option<Defined>,
}

/// Replaces definitions whose place is that of another definition now ([`Defined::is_gone`]).
pub(super) async fn present<B: Backend>(
    context: &Context<B>,
    named: &Named,
    mut defined: Vec<Defined>,
    texts: &mut Texts,
) -> Present {
    let mut gone: Vec<Defined> = defined.extract_if(.., |one| one.is_gone()).collect();
    if defined.is_empty() && !gone.is_empty() {
        defined.extend(find(context, named, texts).await.into_iter().map(|one| one.defined));
    }
    let gone = if defined.is_empty() { gone.drain(..).next() } else { None };
    Present { defined, gone }
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
