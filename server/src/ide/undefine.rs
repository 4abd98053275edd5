//! The definitions of a name, to be removed from the image.

use super::context::Backend;
use crate::image::api::undefine::{Removable, RemovableParts, Undefine};
use crate::model::image::ImageError;
use crate::model::written_method::WrittenMethod;

/// Returns those definitions of a name, as written in a package, that can be removed.
///
/// # Errors
/// The symbol does not exist, its package is locked, or the image does not answer.
pub async fn removable<B: Backend>(
    backend: &B,
    name: String,
    package: Option<String>,
    method: Option<WrittenMethod>,
) -> Result<RemovableParts, ImageError> {
    backend.query(Removable { name, package, method }).await
}

/// Returns the operation that removes parts of a name, by their keys.
pub fn removal(name: String, package: Option<String>, method: Option<WrittenMethod>, parts: Vec<String>) -> Undefine {
    Undefine { of: Removable { name, package, method }, parts }
}
