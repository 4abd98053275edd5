//! The contents of tree views and resources: packages, their symbols, a symbol's meanings, threads.

use serde::Serialize;
use serde_json::{Value, json};

use super::context::Backend;
use crate::image::api::browse;
pub use crate::image::api::browse::{InterruptThread, KillThread};
use crate::image::api::contents::{PackageContents, SymbolFacts};
use crate::model::image::ImageError;

/// Lists all packages.
///
/// # Errors
/// See [`Backend::query`].
pub async fn packages<B: Backend>(backend: &B) -> Result<Value, ImageError> {
    backend.query(browse::Packages {}).await.map(data)
}

/// Lists the symbols whose home package is `name`.
///
/// # Errors
/// See [`Backend::query`].
pub async fn package_symbols<B: Backend>(backend: &B, name: String) -> Result<Value, ImageError> {
    backend.query(browse::PackageSymbols { name }).await.map(data)
}

/// Describes a package and its exports.
///
/// # Errors
/// See [`Backend::query`].
pub async fn package_contents<B: Backend>(backend: &B, name: String) -> Result<Value, ImageError> {
    backend.query(PackageContents { name }).await.map(data)
}

/// Describes every symbol that a name may denote, each with its home package (`package`) and
/// name (`name`).
///
/// # Errors
/// See [`Backend::query`].
pub async fn symbol_facts<B: Backend>(backend: &B, name: String) -> Result<Vec<Value>, ImageError> {
    backend.query(SymbolFacts { name }).await.map(|answer| answer.symbols.into_iter().map(data).collect())
}

/// Lists all threads.
///
/// # Errors
/// See [`Backend::query`].
pub async fn threads<B: Backend>(backend: &B) -> Result<Value, ImageError> {
    backend.query(browse::Threads {}).await.map(data)
}

/// Converts an answer of the image to JSON. Such answers have only string keys.
fn data(answer: impl Serialize) -> Value {
    json!(answer)
}
