//! The capabilities that a client declares (LSP 3.17, `initialize`), as the server uses them.

use lsp_types::*;

use crate::config::Source;
use crate::text::position::PositionEncoding;

/// The capabilities agreed with a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Negotiated {
    /// The unit of columns.
    pub(super) encoding: PositionEncoding,
    /// True if the client pulls diagnostics, false if the server publishes them. Never both,
    /// because editors then show diagnostics twice.
    pub(super) pull: bool,
    /// True if the client supports `workspace/diagnostic/refresh`.
    pub(super) refresh: bool,
    /// True if diagnostics may have related locations.
    pub(super) related: bool,
    /// True if diagnostics may have the address of a page about their code.
    pub(super) code_pages: bool,
    /// True if diagnostics may have the tag `Unnecessary`.
    pub(super) unnecessary: bool,
    /// True if diagnostics may have the tag `Deprecated`.
    pub(super) deprecated: bool,
    /// True if the server may create progress bars.
    pub(super) progress: bool,
    /// True if the client answers `workspace/configuration` for the section `consort`.
    pub(super) configuration: bool,
    /// True if the client reports changed settings after dynamic registration.
    pub(super) register_configuration: bool,
    /// True if the client watches files after dynamic registration.
    pub(super) register_watch: bool,
    /// True if the client supports `CodeAction`s, not only `Command`s.
    pub(super) code_actions: bool,
    /// True if the client resolves the edit of a code action when the action is chosen.
    pub(super) resolves_edits: bool,
    /// True if the client shows code actions that cannot be taken, with the reason.
    pub(super) disabled_actions: bool,
    /// True if the client supports `workspace/applyEdit`.
    pub(super) apply_edit: bool,
    /// True if edits may name the document version they apply to.
    pub(super) document_changes: bool,
    /// True if edits may have annotations, some of which need a person's confirmation.
    pub(super) annotations: bool,
    /// True if the client accepts snippets as completions.
    pub(super) snippets: bool,
    /// The source of the client's settings.
    pub(super) settings: Source,
    /// True if the client supports `consort/approve`.
    pub(super) approve: bool,
    /// True if the client supports `consort/input`.
    pub(super) input: bool,
    /// True if the client shows stopped evaluations (`consort/stopped`).
    pub(super) stops: bool,
    /// True if the client has the commands that code actions run in it ([`super::actions`]).
    pub(super) commands: bool,
}

/// Reads a client's capabilities.
pub(super) fn negotiate(params: &InitializeParams) -> Negotiated {
    let capabilities = &params.capabilities;
    let text = capabilities.text_document.as_ref();
    let workspace = capabilities.workspace.as_ref();
    let publish = text.and_then(|text| text.publish_diagnostics.as_ref());
    let tags = publish
        .and_then(|publish| publish.tag_support.as_ref())
        .map(|tags| tags.value_set.as_slice())
        .unwrap_or_default();
    let pulls = text.is_some_and(|text| text.diagnostic.is_some());
    let option = params.initialization_options.as_ref().and_then(|options| options["diagnostics"].as_str());
    Negotiated {
        encoding: encoding(capabilities),
        pull: match option {
            Some("pull") => true,
            Some(_) => false,
            None => publish.is_none() && pulls,
        },
        refresh: workspace.and_then(|w| w.diagnostic.as_ref()).and_then(|d| d.refresh_support) == Some(true),
        related: publish.and_then(|publish| publish.related_information) == Some(true),
        code_pages: publish.and_then(|publish| publish.code_description_support) == Some(true),
        unnecessary: tags.contains(&DiagnosticTag::UNNECESSARY),
        deprecated: tags.contains(&DiagnosticTag::DEPRECATED),
        progress: capabilities.window.as_ref().and_then(|window| window.work_done_progress) == Some(true),
        configuration: workspace.and_then(|w| w.configuration) == Some(true),
        register_configuration: workspace.and_then(|w| w.did_change_configuration?.dynamic_registration) == Some(true),
        register_watch: workspace.and_then(|w| w.did_change_watched_files?.dynamic_registration) == Some(true),
        code_actions: text.and_then(|text| text.code_action.as_ref()?.code_action_literal_support.as_ref()).is_some(),
        resolves_edits: text
            .and_then(|text| text.code_action.as_ref()?.resolve_support.as_ref())
            .is_some_and(|support| support.properties.iter().any(|property| property == "edit")),
        disabled_actions: text.and_then(|text| text.code_action.as_ref()?.disabled_support) == Some(true),
        apply_edit: workspace.and_then(|w| w.apply_edit) == Some(true),
        settings: if is_own(params) { Source::OwnClient } else { Source::Client },
        approve: declares(params, "approve"),
        input: declares(params, "input"),
        stops: declares(params, "stops"),
        commands: declares(params, "commands"),
        annotations: workspace.and_then(|w| w.workspace_edit.as_ref()?.change_annotation_support.as_ref()).is_some(),
        snippets: text
            .and_then(|text| text.completion.as_ref()?.completion_item.as_ref()?.snippet_support)
            .unwrap_or_default(),
        document_changes: workspace.and_then(|w| w.workspace_edit.as_ref()?.document_changes) == Some(true),
    }
}

/// Returns true if a client declares that it supports one of the methods that Consort adds.
fn declares(params: &InitializeParams, name: &str) -> bool {
    params.capabilities.experimental.as_ref().is_some_and(|own| own["consort"][name] == true)
        || params.initialization_options.as_ref().is_some_and(|options| options[name] == true)
}

/// Returns true if a client declares that approval and limits in its settings are the user's own.
/// `initializationOptions` do not count, since many editors read them from the workspace.
fn is_own(params: &InitializeParams) -> bool {
    params.capabilities.experimental.as_ref().is_some_and(|own| own["consort"]["ownSettings"] == true)
}

/// Returns the first of the client's encodings that is UTF-8, UTF-16 or UTF-32, or UTF-16 if the
/// client names none of them.
fn encoding(capabilities: &ClientCapabilities) -> PositionEncoding {
    let offered =
        capabilities.general.as_ref().and_then(|general| general.position_encodings.as_deref()).unwrap_or_default();
    let known = offered.iter().find_map(|kind| match kind.as_str() {
        "utf-8" => Some(PositionEncoding::Utf8),
        "utf-16" => Some(PositionEncoding::Utf16),
        "utf-32" => Some(PositionEncoding::Utf32),
        _ => None,
    });
    known.unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn negotiated(params: Value) -> Negotiated {
        negotiate(&serde_json::from_value(params).unwrap())
    }

    #[test]
    fn the_client_s_order_of_encodings_decides_and_utf_16_is_the_default() {
        for (offered, expected) in [
            (json!(null), PositionEncoding::Utf16),
            (json!([]), PositionEncoding::Utf16),
            (json!(["utf-8", "utf-16"]), PositionEncoding::Utf8),
            (json!(["utf-32", "utf-8"]), PositionEncoding::Utf32),
            (json!(["utf-7", "utf-32"]), PositionEncoding::Utf32),
            (json!(["utf-7"]), PositionEncoding::Utf16),
        ] {
            let params = json!({"capabilities": {"general": {"positionEncodings": offered}}});
            assert_eq!(negotiated(params).encoding, expected, "{offered}");
        }
    }

    #[test]
    fn diagnostics_come_one_way() {
        let both = json!({"textDocument": {"publishDiagnostics": {}, "diagnostic": {}}});
        let only_pull = json!({"textDocument": {"diagnostic": {}}});
        for (params, pull) in [
            (json!({"capabilities": {}}), false),
            (json!({"capabilities": both}), false),
            (json!({"capabilities": only_pull}), true),
            (json!({"capabilities": both, "initializationOptions": {"diagnostics": "pull"}}), true),
            (json!({"capabilities": only_pull, "initializationOptions": {"diagnostics": "push"}}), false),
        ] {
            assert_eq!(negotiated(params.clone()).pull, pull, "{params}");
        }
    }
}
