//! The context of each person's editor, as the editor reports it: the document, the selection and
//! the visible lines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::{ClientId, Session};
use crate::locked::lock;
use crate::text::position::LineColumn;

/// The context of a person's editor. Lines and columns are 1-based. Columns are in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorContext {
    /// The URI of the current document, as the editor names it.
    pub uri: String,
    /// The document's file, if any.
    pub file: Option<PathBuf>,
    /// The start and the (exclusive) end of the selection. Both are equal if there is only a
    /// cursor.
    pub selection: Option<(LineColumn, LineColumn)>,
    /// The selected text, clipped.
    pub text: String,
    /// The first and the last visible line.
    pub visible: Option<(usize, usize)>,
}

/// The contexts of all editors. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Contexts(Arc<Mutex<BTreeMap<ClientId, EditorContext>>>);

impl Contexts {
    pub(super) fn set(&self, client: ClientId, context: Option<EditorContext>) {
        let mut contexts = lock(&self.0);
        match context {
            Some(context) => contexts.insert(client, context),
            None => contexts.remove(&client),
        };
    }
}

impl Session {
    /// Sets an editor's context. `None` if no document of this session is current.
    pub fn set_editor_context(&self, editor: ClientId, context: Option<EditorContext>) {
        self.inner.contexts.set(editor, context);
    }

    /// Returns the contexts of all editors that report one.
    pub fn editor_contexts(&self) -> Vec<(ClientId, EditorContext)> {
        let contexts = lock(&self.inner.contexts.0);
        contexts.iter().map(|(client, context)| (*client, context.clone())).collect()
    }

    /// Returns a client's name, as reported by the client.
    pub fn name_of(&self, client: ClientId) -> String {
        self.inner.log.client_info(client).name
    }
}
