//! The setting `format.indent`: a table of operators with the numbers of arguments before their
//! bodies.

use serde_json::Value;

use super::Config;

/// The maximum number of arguments before a body.
const MAX_ARGUMENTS: u64 = 20;
/// The maximum number of entries that a message names.
const MAX_SHOWN: usize = 10;

/// Stores the valid entries of a table.
///
/// # Errors
/// A sentence about the invalid entries.
pub(super) fn set(config: &mut Config, value: &Value) -> Result<(), String> {
    const EXPECTED: &str = "format.indent must be a table of operators with the number of arguments before their \
                            bodies, from 0 to 20, such as {with-foo = 1}";
    let Some(table) = value.as_object() else {
        return Err(format!("{EXPECTED}, not {value}; it is ignored"));
    };
    let mut wrong = Vec::new();
    for (name, value) in table {
        match value.as_u64().filter(|count| *count <= MAX_ARGUMENTS).map(usize::try_from) {
            Some(Ok(count)) => drop(config.format_indent.insert(name.to_lowercase(), count)),
            _ => wrong.push(format!("{name} = {value}")),
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let others = if wrong.len() < table.len() { "; the other entries are used" } else { "" };
    let more = wrong.len().saturating_sub(MAX_SHOWN);
    wrong.truncate(MAX_SHOWN);
    let shown: String = wrong.join(", ").chars().take(500).collect();
    let shown = if more > 0 { format!("{shown} and {more} more") } else { shown };
    Err(format!("{EXPECTED}; ignored: {shown}{others}"))
}
