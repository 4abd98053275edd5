//! The contents of tree views and resources: packages, their symbols, the meanings of a symbol, and
//! threads.

use super::context::Backend;
use crate::image::api::browse::{AllPackages, AllThreads, HomeSymbols, PackageSymbols, Packages, Threads};
use crate::image::api::package_contents::{PackageContents, PackageFacts, SymbolFact, SymbolFacts};
use crate::model::image::ImageError;

/// Lists all packages.
///
/// # Errors
/// See [`Backend::query`].
pub async fn packages<B: Backend>(backend: &B) -> Result<AllPackages, ImageError> {
    backend.query(Packages {}).await
}

/// Lists the symbols whose home package is `name`.
///
/// # Errors
/// See [`Backend::query`].
pub async fn package_symbols<B: Backend>(backend: &B, name: String) -> Result<HomeSymbols, ImageError> {
    backend.query(PackageSymbols { name }).await
}

/// Describes a package and its exports.
///
/// # Errors
/// See [`Backend::query`].
pub async fn package_contents<B: Backend>(backend: &B, name: String) -> Result<PackageFacts, ImageError> {
    backend.query(PackageContents { name }).await
}

/// Describes every symbol that a name may denote.
///
/// # Errors
/// See [`Backend::query`].
pub async fn symbol_facts<B: Backend>(backend: &B, name: String) -> Result<Vec<SymbolFact>, ImageError> {
    Ok(backend.query(SymbolFacts { name }).await?.symbols)
}

/// Lists all threads.
///
/// # Errors
/// See [`Backend::query`].
pub async fn threads<B: Backend>(backend: &B) -> Result<AllThreads, ImageError> {
    backend.query(Threads {}).await
}
