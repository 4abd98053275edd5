//! Renaming. The renaming of a local name is proven by a comparison of the form's macro expansions
//! before and after. Global names and packages are renamed in the files of the workspace. The
//! result is the changes, or the reason why there are none.

mod derived;
mod files;
pub mod global;
mod keywords;
mod leftover;
pub mod local;
mod mentions;
mod package;
mod places;
mod skipped_forms;
mod slots;
pub mod spelling;
mod structures;
mod symbols;
mod target;

use std::path::PathBuf;

pub(in crate::ide) use self::files::writable;
use super::context::{Backend, Cursor};
use super::named_symbols;
use crate::image::api::expand::{CompareExpansions, Compared};
use crate::model::image::ImageError;
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::document::Document;
use crate::text::forms::symbol_at;
use crate::text::names;
use crate::text::scopes::Scopes;

/// The part of a session that compares expansions of forms, in a copy of the image.
pub trait Expander: Send + Sync {
    /// Compares the expansions.
    ///
    /// # Errors
    /// There is no image, or it cannot be copied.
    fn compare(&self, comparison: CompareExpansions) -> impl Future<Output = Result<Compared, ImageError>> + Send;
}

/// The reason why nothing is renamed, for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl Refusal {
    fn of<T>(reason: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal(reason.into()))
    }
}

/// The refusal of a renaming that depends on an answer that the image did not give.
impl From<ImageError> for Refusal {
    fn from(error: ImageError) -> Refusal {
        let error = error.to_string();
        let end = if error.ends_with('.') { "" } else { "." };
        Refusal(format!(
            "Only the image knows whether other definitions have the name, and it does not say: {error}{end} Nothing \
             was changed; try again."
        ))
    }
}

/// A change of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The replaced span, in characters.
    pub span: Span,
    /// The new text.
    pub by: String,
    /// The reason why a person must decide. `None` if the change is known to be right.
    pub unsure: Option<String>,
}

/// The changes of a file.
#[derive(Debug, Clone)]
pub struct FileChanges {
    /// The URI, as the client named it if the file is open.
    pub uri: String,
    /// The path.
    pub path: Option<PathBuf>,
    /// The text that is changed.
    pub document: Document,
    /// True if the client that sent the request has the file open. The document then has that
    /// client's version. Another client's version means nothing to it.
    pub open: bool,
    /// The changes, in the order of the text, disjoint.
    pub changes: Vec<Change>,
}

/// The extent of a renaming.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// True to include words in comments and strings, as changes that a person must decide.
    pub texts: bool,
}

/// A renaming.
#[derive(Debug, Clone)]
pub struct Renaming {
    /// The old name, without package.
    pub old: String,
    /// The new name.
    pub new: String,
    /// The kind of the name, for a person: `local variable`, `function`, `package`, ...
    pub kind: String,
    /// The files, in order of their paths.
    pub files: Vec<FileChanges>,
}

/// The name at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The span of the name, without package prefix.
    pub span: Span,
    /// The name as written, with its prefix.
    pub written: String,
    /// The name as written, without its prefix.
    pub name: String,
}

/// Returns the symbol or package at a place that could be renamed, for a client that asks for the
/// new name.
///
/// # Errors
/// The reason why there is none.
pub fn named(document: &Document, offset: usize) -> Result<Named, Refusal> {
    match package::named(document, offset) {
        Some(package) => Ok(package),
        None => of_symbol(document, offset),
    }
}

/// Returns true if a binding that is known without the image has the name at a place.
pub fn is_local(document: &Document, offset: usize) -> bool {
    Form::at(document, offset).is_some_and(|form| Scopes::of(&form).resolve(offset).is_some())
}

/// Returns the symbol at a place that is not the name of a package.
fn of_symbol(document: &Document, offset: usize) -> Result<Named, Refusal> {
    if let Some(one) = named_symbols::at(document, offset) {
        let written = one.as_symbol();
        return Ok(Named { span: one.span, name: written.clone(), written });
    }
    let Some((span, written)) = symbol_at(document, offset) else {
        return Refusal::of("There is no name here. Put the cursor on the name of a variable, function, class, ...");
    };
    let Some(symbol) = names::symbol(&written) else { return Refusal::of(format!("{written} is no name.")) };
    if written.starts_with("#:") {
        return Refusal::of(format!("{written} is a symbol of no package, which only this place has."));
    }
    if symbol.package.as_deref() == Some("") {
        return Refusal::of(format!("{written} is a keyword: the text does not tell who else uses it."));
    }
    let prefix = written[..names::prefix_length(&written)].chars().count();
    let name = written[names::prefix_length(&written)..].to_owned();
    Ok(Named { span: Span { start: span.start + prefix, end: span.end }, name, written })
}

/// Renames the name at the cursor.
///
/// # Errors
/// The reason why it is not renamed.
pub async fn rename<B: Backend>(
    cursor: &Cursor<B>,
    new: &str,
    expander: &impl Expander,
    options: Options,
) -> Result<Renaming, Refusal> {
    let new = spelling::checked(new)?;
    if let Some(renaming) = package::rename(cursor, new, options).await? {
        return Ok(renaming);
    }
    let named = of_symbol(&cursor.document, cursor.offset)?;
    if named_symbols::at(&cursor.document, cursor.offset).is_none()
        && let Some(renaming) = local::rename(cursor, &named, new, expander).await?
    {
        return Ok(renaming);
    }
    global::rename(cursor, &named, new, options).await
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
