//! Where each person is: the document, the selection and what is in view, as their editor told it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::{ClientId, Session};
use crate::text::position::LineColumn;

/// Where one person is. Lines and columns are 1-based, in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorContext {
    /// The document they are in, as their editor names it.
    pub uri: String,
    /// Its file, when it has one.
    pub file: Option<PathBuf>,
    /// What is selected, from and to (exclusive); the same twice is where the cursor is.
    pub selection: Option<(LineColumn, LineColumn)>,
    /// The text selected, clipped.
    pub text: String,
    /// The first and the last line in view.
    pub visible: Option<(usize, usize)>,
}

/// Everybody's. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Contexts(Arc<Mutex<BTreeMap<ClientId, EditorContext>>>);

impl Contexts {
    pub(super) fn set(&self, client: ClientId, context: Option<EditorContext>) {
        let mut contexts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match context {
            Some(context) => contexts.insert(client, context),
            None => contexts.remove(&client),
        };
    }
}

impl Session {
    /// An editor told where its person is; `None`: in none of our documents.
    pub fn set_editor_context(&self, editor: ClientId, context: Option<EditorContext>) {
        self.inner.contexts.set(editor, context);
    }

    /// Where everybody is whose editor tells.
    pub fn editor_contexts(&self) -> Vec<(ClientId, EditorContext)> {
        let contexts = self.inner.contexts.0.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.iter().map(|(client, context)| (*client, context.clone())).collect()
    }

    /// A client's name, as it gave it.
    pub fn name_of(&self, client: ClientId) -> String {
        self.inner.log.who(client).name
    }
}
