//! Resources: data that an agent can read besides its tools, with notifications of changes.
//!
//! The resources are `consort://diagnostics`, `consort://log`, and by template
//! `consort://package/NAME` and `consort://symbol/NAME`. All are JSON.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{Resource, ResourceTemplate};
use serde_json::{Value, json};

use crate::ide::{browse, fixes};
use crate::model::image::ImageError;
use crate::session::Session;
use crate::text::position::line_column;

/// The maximum number of log entries in one answer.
const MAX_ENTRIES: usize = 200;
/// The time for which changes are collected before a subscriber is notified.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// The kinds of resources.
#[derive(Debug, Clone, PartialEq, Eq)]
enum KnownResource {
    Diagnostics,
    Log,
    Package(String),
    Symbol(String),
}

impl KnownResource {
    fn of(uri: &str) -> Option<KnownResource> {
        let rest = uri.strip_prefix("consort://")?;
        match rest.split_once('/') {
            None if rest == "diagnostics" => Some(KnownResource::Diagnostics),
            None if rest == "log" => Some(KnownResource::Log),
            Some(("package", name)) => decoded(name).map(KnownResource::Package),
            Some(("symbol", name)) => decoded(name).map(KnownResource::Symbol),
            _ => None,
        }
    }
}

/// Decodes percent-encoding (RFC 3986). Returns `None` if the encoding is invalid or the result is
/// empty.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
}

/// Returns the resources without parameters.
pub(crate) fn list() -> Vec<Resource> {
    let one = |uri: &str, title: &str, about: &str| {
        let name = uri.trim_start_matches("consort://");
        Resource::new(uri, name).with_title(title).with_description(about).with_mime_type("application/json")
    };
    vec![
        one(
            "consort://diagnostics",
            "Diagnostics",
            "Errors and warnings of the documents open in editors, of unsaved text too.",
        ),
        one(
            "consort://log",
            "Session log",
            "What ran in the image, for whom, with what outcome: by editors and by agents.",
        ),
    ]
}

/// Returns the resource templates, which take a name.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let one = |uri: &str, name: &str, title: &str, about: &str| {
        ResourceTemplate::new(uri, name).with_title(title).with_description(about).with_mime_type("application/json")
    };
    vec![
        one(
            "consort://package/{name}",
            "package",
            "Package",
            "What a package exports, with kinds and first lines of documentation.",
        ),
        one(
            "consort://symbol/{name}",
            "symbol",
            "Symbol",
            "What a symbol names: kinds, lambda list, documentation, home package, who defined it.",
        ),
    ]
}

/// Returns true if the URI names a resource, whatever its contents.
pub(crate) fn exists(uri: &str) -> bool {
    KnownResource::of(uri).is_some()
}

/// Returns the contents of a resource, as JSON.
///
/// # Errors
/// No resource has this URI or name, or the image does not answer.
pub(crate) async fn read(session: &Session, uri: &str) -> Result<String, ErrorData> {
    let unknown = || {
        let message = format!(
            "There is no resource {uri}. There are consort://diagnostics, consort://log, consort://package/NAME and consort://symbol/NAME."
        );
        ErrorData::resource_not_found(message, Some(json!({"uri": uri})))
    };
    let failed = |error: ImageError| match error {
        ImageError::Refused { message, .. } => ErrorData::resource_not_found(message, Some(json!({"uri": uri}))),
        other => ErrorData::internal_error(other.to_string(), None),
    };
    if let Some(KnownResource::Package(_) | KnownResource::Symbol(_)) = KnownResource::of(uri) {
        session.image_started().await;
    }
    let contents = match KnownResource::of(uri).ok_or_else(unknown)? {
        KnownResource::Diagnostics => diagnostics(session).await,
        KnownResource::Log => json!({"entries": session.log().entries(0, MAX_ENTRIES)}),
        KnownResource::Package(name) => json!(browse::package_contents(session, name).await.map_err(failed)?),
        KnownResource::Symbol(name) => {
            let symbols = browse::symbol_facts(session, name.clone()).await.map_err(failed)?;
            if symbols.is_empty() {
                let message = format!("The image knows no symbol {name}");
                return Err(ErrorData::resource_not_found(message, Some(json!({"uri": uri}))));
            }
            let with_provenance = symbols.into_iter().map(|symbol| {
                let made = symbol.package.as_ref().map(|package| session.provenance(package, &symbol.name));
                let mut facts = json!(symbol);
                facts["provenance"] = json!(made.unwrap_or_default());
                facts
            });
            json!({"symbols": with_provenance.collect::<Vec<Value>>()})
        }
    };
    serde_json::to_string_pretty(&contents).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn diagnostics(session: &Session) -> Value {
    let mut documents = Vec::new();
    for open in session.compared_documents().await {
        let Some(snapshot) = session.snapshot(open.client, &open.uri, false).await else { continue };
        let items: Vec<Value> = snapshot
            .items
            .iter()
            .map(|item| {
                let at = line_column(&snapshot.text, item.span.start.min(snapshot.text.len_chars()));
                json!({"line": at.line, "column": at.column, "severity": item.severity, "code": item.code,
                       "message": item.message, "fix": fixes::title(item)})
            })
            .collect();
        documents.push(json!({"uri": open.uri, "unsaved": open.unsaved, "diagnostics": items}));
    }
    json!({"documents": documents})
}

/// Waits until a resource differs from `last`, and stores the new contents in `last`.
pub(crate) async fn changed(session: &Session, uri: &str, last: &mut Option<String>) {
    let (mut entries, mut finding_changes) = (session.log().last(), session.log().finding_changes());
    let is_log = KnownResource::of(uri) == Some(KnownResource::Log);
    loop {
        let now = read(session, uri).await.ok();
        // A failed read, as while the image starts, is no change. A resource that appears is a
        // change.
        match (&last, now) {
            (None, now) => *last = Some(now.unwrap_or_default()),
            (Some(before), Some(now)) if *before != now => {
                *last = Some(now);
                return;
            }
            _ => {}
        }
        let change = if is_log { entries.changed().await } else { finding_changes.changed().await };
        if change.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(DEBOUNCE).await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(KnownResource::of("consort://log"), Some(KnownResource::Log));
        assert_eq!(KnownResource::of("consort://package/CL-USER"), Some(KnownResource::Package("CL-USER".into())));
        assert_eq!(KnownResource::of("consort://symbol/cl%3A%2F"), Some(KnownResource::Symbol("cl:/".into())));
        assert_eq!(KnownResource::of("consort://symbol/cl:car"), Some(KnownResource::Symbol("cl:car".into())));
        for none in [
            "consort://",
            "consort://package",
            "consort://package/",
            "consort://symbol/%",
            "consort://symbol/%zz",
            "file:///etc/passwd",
            "consort://log/x",
        ] {
            assert_eq!(KnownResource::of(none), None, "{none}");
        }
        assert!(list().iter().all(|one| exists(&one.uri)) && templates().len() == 2);
    }
}
