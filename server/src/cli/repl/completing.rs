//! The choice of the completions that are offered for a name.

use consort::shown;
use serde_json::Value;

/// The names that can replace the one before the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Completed {
    /// The byte offset of the name that is replaced.
    pub(super) start: usize,
    /// The names, best first.
    pub(super) names: Vec<String>,
}

/// Reads the answer to the request `completions` for `line`, with the cursor at byte `at`. If some
/// of the names begin with the typed text, only those are offered, so that Tab completes their
/// common prefix.
pub(super) fn completed(line: &str, at: usize, answer: &Value) -> Completed {
    let targets = answer["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
    let unit = targets.first().and_then(|target| target["start"].as_u64()).unwrap_or(u64::MAX);
    let start = byte_of(line, usize::try_from(unit.saturating_sub(1)).unwrap_or(usize::MAX)).min(at);
    let typed = line[start..at].to_lowercase();
    let mut names: Vec<String> = Vec::new();
    for name in targets.iter().filter_map(|target| target["text"].as_str()) {
        // A name that a terminal would not show literally is not offered.
        if shown::safe(name) == name && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    if names.iter().any(|name| name.to_lowercase().starts_with(&typed)) {
        names.retain(|name| name.to_lowercase().starts_with(&typed));
    }
    Completed { start, names }
}

/// Returns the byte offset after the first `units` UTF-16 code units of a line.
fn byte_of(line: &str, units: usize) -> usize {
    let mut before = 0;
    for (byte, char) in line.char_indices() {
        if before >= units {
            return byte;
        }
        before += char.len_utf16();
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(line: &str, start: usize, names: &[&str]) -> Completed {
        let targets: Vec<Value> = names.iter().map(|name| json!({"text": name, "start": start})).collect();
        completed(line, line.len(), &json!({ "targets": targets }))
    }

    #[test]
    fn names_that_begin_with_what_is_typed_are_offered_alone() {
        let found = of("(MULTIPLE", 2, &["multiple-value-bind", "my-multiple", "multiple-value-call"]);
        assert_eq!(
            found,
            Completed { start: 1, names: vec!["multiple-value-bind".into(), "multiple-value-call".into()] }
        );
        assert_eq!(of("(m-v-b", 2, &["multiple-value-bind"]).names, ["multiple-value-bind"]);
        assert_eq!(of("(x", 2, &[]), Completed { start: 2, names: Vec::new() });
    }

    #[test]
    fn places_are_counted_in_utf16() {
        assert_eq!(of("(f \"😀\" ca", 9, &["car"]).start, 10);
        assert_eq!(of("(ca", 99, &["car"]).start, 3);
    }

    #[test]
    fn a_name_that_a_terminal_would_interpret_is_not_offered() {
        assert_eq!(of("(c", 2, &["car", "c\u{1b}[2J", "c\u{202e}"]).names, ["car"]);
    }
}
