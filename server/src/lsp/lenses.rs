//! `textDocument/codeLens`: "Run test" above tests, and the number of references above definitions,
//! if the settings enable them.

use lsp_types::{CodeLens, CodeLensParams, Command as Lens, Url};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::commands::{Command as _, RunTestAtPoint};
use super::connection::Connection;
use super::to_proto;
use crate::ide::references;
use crate::ide::testing::definition;
use crate::text::Span;
use crate::text::forms::package_at;

/// The data of a lens until it is resolved.
#[derive(Debug, Serialize, Deserialize)]
struct Counted {
    uri: Url,
    name: String,
    package: Option<String>,
}

/// The maximum number of lenses of a document.
const MAX_LENSES: usize = 5_000;

/// Returns the lenses of a document. The numbers of references are added when lenses are resolved.
pub(super) async fn of_document(connection: &Connection, params: CodeLensParams) -> Vec<CodeLens> {
    let uri = params.text_document.uri;
    // Both requests are sent before either is awaited.
    let (document, settings) =
        (connection.session.document(connection.client, uri.as_str()), connection.session.settings(connection.client));
    let (document, settings) = (document.await, settings.await);
    let Some(document) = document else { return Vec::new() };
    let encoding = connection.negotiated().encoding;
    let mut lenses = Vec::new();
    for form in document.scan().forms() {
        if lenses.len() >= MAX_LENSES {
            break;
        }
        let Some(definition) = definition(&document, form.span) else { continue };
        let at = Span { start: form.span.start, end: form.span.start + 1 };
        let range = to_proto::range(document.text(), at, encoding);
        if definition.test && settings.lens_tests {
            let command = Lens {
                title: "Run test".into(),
                command: RunTestAtPoint::NAME.into(),
                arguments: Some(vec![json!({"uri": uri, "position": range.start, "show": true})]),
            };
            lenses.push(CodeLens { range, command: Some(command), data: None });
        } else if !definition.test && settings.lens_references {
            let package = package_at(&document, form.span.start);
            let data = Counted { uri: uri.clone(), name: definition.name, package };
            lenses.push(CodeLens { range, command: None, data: serde_json::to_value(data).ok() });
        }
    }
    lenses
}

/// Adds the number of references to a lens. The title is empty if the image gives no number.
pub(super) async fn resolve(connection: &Connection, mut lens: CodeLens) -> CodeLens {
    let data = lens.data.clone().and_then(|data| serde_json::from_value::<Counted>(data).ok());
    if let Some(Counted { name, package, .. }) = data {
        let title = match references::count(&connection.session, name, package).await {
            Ok(1) => "1 reference".to_owned(),
            Ok(count) => format!("{count} references"),
            Err(_) => String::new(),
        };
        lens.command = Some(Lens { title, command: String::new(), arguments: None });
    }
    lens
}
