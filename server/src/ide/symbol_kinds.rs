//! The image's data about all symbols of a text, for the text's indentation and semantic tokens.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::context::Backend;
use crate::image::api::symbol_kinds::{SymbolKind, SymbolKindsParams};
use crate::model::image::ImageError;
use crate::text::cancellation;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::names;
use crate::text::tree::{Kind, ROOT, Tree};

/// The time limit for the image's answer. After it, the text alone is used.
pub const IMAGE_TIMEOUT: Duration = Duration::from_millis(500);
/// The maximum number of names in one query to the image.
const MAX_NAMES: usize = 20_000;
/// The maximum length in bytes of a name in a query to the image.
const MAX_NAME_BYTES: usize = 1_000;

/// Symbols as written, by the package in which they are read.
pub type SymbolsByPackage = BTreeMap<Option<String>, Vec<String>>;

/// Returns the wanted symbols of a text, without duplicates in each package, up to the limit.
pub fn by_package(document: &Document, tree: &Tree, wanted: impl Fn(&str) -> bool) -> SymbolsByPackage {
    let mut asked: BTreeMap<Option<String>, HashSet<&str>> = BTreeMap::new();
    let mut package = None;
    let mut count = 0;
    for id in tree.ids().skip(1) {
        if count >= MAX_NAMES || cancellation::should_stop() {
            break;
        }
        let node = tree.node(id);
        if node.parent == ROOT
            && node.start < node.end
            && tree.operator(tree.unguarded(id)).as_deref() == Some("in-package")
        {
            package = package_at(document, document.text().byte_to_char(node.end));
        }
        let written = tree.text_of(id);
        if node.kind == Kind::Atom && written.len() <= MAX_NAME_BYTES && wanted(written) {
            if !asked.contains_key(&package) {
                asked.insert(package.clone(), HashSet::new());
            }
            count += usize::from(asked.get_mut(&package).is_some_and(|names| names.insert(written)));
        }
    }
    let sorted = |names: HashSet<&str>| {
        let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    asked.into_iter().map(|(package, names)| (package, sorted(names))).collect()
}

/// Returns the image's data about symbols as written, or nothing if the image does not answer
/// within [`IMAGE_TIMEOUT`].
pub async fn kinds<B: Backend>(backend: &B, asked: SymbolsByPackage) -> Vec<(String, SymbolKind)> {
    match kinds_within(backend, asked, IMAGE_TIMEOUT).await {
        Ok(kinds) => kinds,
        Err(error) => {
            tracing::debug!("symbol-kinds: {error}");
            Vec::new()
        }
    }
}

/// Returns the image's data about symbols as written. Without an image, there are none.
///
/// # Errors
/// There is an image, or one is being started, and it does not answer within the time limit.
pub async fn kinds_within<B: Backend>(
    backend: &B,
    asked: SymbolsByPackage,
    limit: Duration,
) -> Result<Vec<(String, SymbolKind)>, ImageError> {
    let query = async {
        let mut known = Vec::new();
        for (package, written) in asked {
            let read = written.into_iter().filter_map(|written| {
                let symbol = names::symbol(&written).filter(|symbol| symbol.package.as_deref() != Some(""))?;
                Some((written, (symbol.package, symbol.name)))
            });
            let (written, symbols): (Vec<String>, Vec<_>) = read.unzip();
            if symbols.is_empty() {
                continue;
            }
            match backend.query(SymbolKindsParams { package, symbols }).await {
                Ok(answer) => known
                    .extend(written.into_iter().zip(answer.kinds).filter_map(|(written, kind)| Some((written, kind?)))),
                Err(error) if error.is_unanswered() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(known)
    };
    let late = || Err(ImageError::Busy(format!("The Lisp image did not answer within {} s.", limit.as_secs_f64())));
    tokio::time::timeout(limit, query).await.unwrap_or_else(|_| late())
}
