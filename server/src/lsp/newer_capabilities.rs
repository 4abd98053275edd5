//! Capabilities of LSP 3.17 that lsp-types does not know.

use serde_json::Value;

/// Adds the capabilities to the result of `initialize`.
pub(super) fn add(result: &mut Value) {
    if let Some(capabilities) = result.get_mut("capabilities").and_then(Value::as_object_mut) {
        capabilities.insert("typeHierarchyProvider".into(), true.into());
    }
}
