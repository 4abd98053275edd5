//! The items of hierarchies: definitions with their forms and names. They come from the image and
//! from the index of the texts.

use std::sync::Arc;

use super::context::{Backend, Context};
pub use super::definition_in_index::Named;
use super::definition_in_index::{TextSymbol, indexed};
use super::enclosing::{self, Enclosing};
use super::index::Snapshot;
use super::places::{self, Target};
use super::texts::{Text, Texts};
use crate::image::api::symbols::{SymbolAnswer, SymbolPart};
use crate::text::Span;

/// A definition in a hierarchy.
#[derive(Debug, Clone)]
pub struct Item {
    /// The name as shown to the user.
    pub name: String,
    /// The kind in the image's terms.
    pub kind: String,
    /// The text that contains the form.
    pub text: Arc<Text>,
    /// The span of the form.
    pub form: Span,
    /// The span of the name in the form.
    pub selection: Span,
    /// The symbol that is defined. A form that defines nothing has none.
    pub symbol: Option<Named>,
}

impl Item {
    /// Creates the item of a definition in a text.
    pub fn of(text: Arc<Text>, one: Enclosing) -> Item {
        let Enclosing { name, defined, kind, package, form, selection } = one;
        Item { name, kind, text, form, selection, symbol: defined.map(|name| Named { name, package }) }
    }

    /// Returns the place of the name.
    pub fn target(&self) -> Target {
        Target { uri: self.text.uri.clone(), text: Some(self.text.document.text().clone()), span: self.selection }
    }

    fn is_at(&self, other: &Item) -> bool {
        Arc::ptr_eq(&self.text, &other.text) && self.form == other.form && self.selection == other.selection
    }
}

/// Adds the items that are not present yet.
pub(super) fn add(all: &mut Vec<Item>, more: impl IntoIterator<Item = Item>) {
    for one in more {
        if !all.iter().any(|other| other.is_at(&one)) {
            all.push(one);
        }
    }
}

/// The sources in which the features of one request search.
pub(super) struct Lookup<'a, B> {
    pub(super) context: &'a Context<B>,
    pub(super) index: &'a Snapshot,
    pub(super) texts: Texts,
    /// True after the image has failed to answer. No further query is then sent.
    pub(super) unavailable: bool,
}

impl<'a, B: Backend> Lookup<'a, B> {
    pub(super) async fn new(context: &'a Context<B>, index: &'a Snapshot) -> Lookup<'a, B> {
        Lookup { context, index, texts: context.texts(), unavailable: false }
    }

    /// Returns what the image knows about a symbol, or nothing if the image does not answer.
    pub(super) async fn known(&mut self, named: &Named, want: &[SymbolPart]) -> SymbolAnswer {
        if self.unavailable {
            return SymbolAnswer::default();
        }
        match self.context.symbol(&named.name, named.package.as_deref(), want).await {
            Ok(known) => known,
            Err(_) => {
                self.unavailable = true;
                SymbolAnswer::default()
            }
        }
    }

    /// Returns the definitions of a symbol whose kind is `wanted`: those that the image knows, and
    /// those in texts that are not loaded.
    pub(super) async fn defined(&mut self, known: &SymbolAnswer, named: &Named, wanted: fn(&str) -> bool) -> Vec<Item> {
        let mut found = Vec::new();
        for one in places::defined(known, &mut self.texts).await {
            let (Some(text), Some(place)) = (one.text, one.place) else { continue };
            if wanted(&one.kind) {
                let symbol = Some(named.clone());
                let here = enclosing::at(&text.document, place.name.start);
                let item = match here.filter(|here| here.selection == place.name && here.defined.is_some()) {
                    Some(here) => Item { kind: one.kind, ..Item::of(text, here) },
                    // The accessor of a slot, or the definition of another macro.
                    None => {
                        Item { name: one.name, kind: one.kind, text, form: place.form, selection: place.name, symbol }
                    }
                };
                add(&mut found, [item]);
            }
        }
        let in_texts = indexed(self.index, &TextSymbol::of(self.index, named), wanted);
        for (file, one) in in_texts {
            if let Some(text) = self.texts.get(&file.path).await
                && let Some(here) = enclosing::at(&text.document, one.name.start)
                && here.selection == one.name
            {
                add(&mut found, [Item::of(text, here)]);
            }
        }
        found
    }

    /// Queries the image for the symbol, and returns its definitions as [`Lookup::defined`] does.
    pub(super) async fn definitions(&mut self, named: &Named, wanted: fn(&str) -> bool) -> Vec<Item> {
        let known = self.known(named, &[SymbolPart::Definitions]).await;
        self.defined(&known, named, wanted).await
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::text::position::line_column;

    /// Formats an item as `kind name file:line`.
    pub(crate) fn shown(item: &Item) -> String {
        let line = line_column(item.text.document.text(), item.selection.start).line;
        let file = item.text.uri.rsplit('/').next().unwrap_or_default();
        format!("{} {} {file}:{line}", item.kind, item.name)
    }
}
