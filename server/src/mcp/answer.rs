//! The shortening of a tool's answer to the size limits. The full text is kept under a number, by
//! which the agent can read it. Long strings are not in both the text and the data.

use std::sync::Mutex;

use serde_json::{Map, Value};

use super::partial_answers::Kept;
use crate::locked::lock;

/// The maximum number of bytes of text in an answer.
pub(crate) const MAX_TEXT_BYTES: usize = 4_000;
/// The maximum number of bytes of data beside the text, unless a tool sets another.
pub(crate) const MAX_DATA_BYTES: usize = 4_000;
/// The maximum number of bytes of a string in the data that is also in the text. If it is longer,
/// only its two ends are kept.
const MAX_STRING_BYTES: usize = 400;
/// The maximum numbers of items of each list in oversized data, in the order in which they are
/// tried.
const ITEM_LIMITS: [usize; 5] = [100, 50, 20, 10, 5];

/// The size limits of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The maximum number of bytes of text.
    pub(crate) text: usize,
    /// The maximum number of bytes of data.
    pub(crate) data: usize,
    /// The maximum number of bytes of a string in the data that is also in the text.
    pub(crate) string: usize,
}

impl Limits {
    /// The limits for a tool whose output an agent need not read in full.
    pub(crate) const DEFAULT: Limits = Limits { text: MAX_TEXT_BYTES, data: MAX_DATA_BYTES, string: MAX_STRING_BYTES };
    /// The limits for a tool whose caller sets the size.
    pub(crate) const NONE: Limits = Limits { text: usize::MAX, data: usize::MAX, string: MAX_STRING_BYTES };
}

/// Shortens the text and the data of an answer to the limits. `full` is the text before parts of it
/// were removed. It is kept so that it can be read later.
pub(crate) fn shorten(
    text: &str,
    full: Option<String>,
    mut facts: Value,
    limits: Limits,
    kept: &Mutex<Kept>,
) -> (String, Value) {
    let long = limits.data < usize::MAX && facts.to_string().len() > limits.data;
    let said_full = full.is_some();
    let mut store = full.unwrap_or_else(|| text.to_owned());
    let before = facts.clone();
    let whole = if text.len() <= limits.text { text } else { "" };
    let strings = cut_strings(&mut facts, text, &[&store, whole], limits.string);
    let cut_lists = long && cut_lists(&mut facts, limits.data);
    if !said_full && !strings.cut && !cut_lists && text.len() <= limits.text {
        return (text.to_owned(), facts);
    }
    if cut_lists || strings.missing {
        store.push_str("\n\n[data]\n");
        store.push_str(&serde_json::to_string_pretty(&before).unwrap_or_default());
    }
    let number = lock(kept).keep(store);
    let shown = if text.len() > limits.text {
        ends(text, limits.text, &|left| {
            format!("[... {left} bytes left out: full-output {{\"handle\": {number}}} ...]")
        })
    } else if said_full {
        format!("{text}\n[full-output {{\"handle\": {number}}} has the compiler's output]")
    } else {
        text.to_owned()
    };
    if let Value::Object(facts) = &mut facts {
        facts.insert("full_output".into(), number.into());
    }
    (shown, facts)
}

/// Returns the head and the tail of a text, cut at nearby line ends. `between` returns the line
/// between them, given the number of bytes left out.
pub(crate) fn ends(text: &str, limit: usize, between: &dyn Fn(usize) -> String) -> String {
    let mut head = limit / 2;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - limit / 2;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let near = limit / 8;
    if let Some(end) = text[..head].rfind('\n').filter(|end| head - end < near) {
        head = end;
    }
    if let Some(start) = text[tail..].find('\n').filter(|start| *start < near) {
        tail += start + 1;
    }
    format!("{}\n{}\n{}", &text[..head], between(tail - head), &text[tail..])
}

/// The long strings of the data that were shortened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CutStrings {
    /// True if there were any.
    cut: bool,
    /// True if neither the kept text nor the text as shown has all of one.
    missing: bool,
}

impl CutStrings {
    fn and(self, other: CutStrings) -> CutStrings {
        CutStrings { cut: self.cut | other.cut, missing: self.missing | other.missing }
    }
}

/// Shortens long strings that are also in the text. `readable` are the texts that an agent can read
/// in full.
fn cut_strings(value: &mut Value, text: &str, readable: &[&str], most: usize) -> CutStrings {
    let all = |cut: CutStrings, value: &mut Value| cut.and(cut_strings(value, text, readable, most));
    match value {
        Value::String(string) if string.len() > most => {
            let mut start = 80;
            while !string.is_char_boundary(start) {
                start -= 1;
            }
            // A single line of the string is enough to find its beginning, because the text may
            // indent the others.
            let probe = string[..start].lines().map(str::trim).max_by_key(|line| line.len()).unwrap_or_default();
            if probe.is_empty() || !text.contains(probe) {
                return CutStrings::default();
            }
            let missing = !readable.iter().any(|text| has_lines(text, string));
            *string = ends(string, MAX_STRING_BYTES / 2, &|left| {
                format!("[... {left} bytes: see the text or full-output ...]")
            });
            CutStrings { cut: true, missing }
        }
        Value::Array(items) => items.iter_mut().fold(CutStrings::default(), all),
        Value::Object(fields) => fields.values_mut().fold(CutStrings::default(), all),
        _ => CutStrings::default(),
    }
}

/// Returns true if a text has all lines of a string, in their order. Indentation is ignored.
fn has_lines(text: &str, string: &str) -> bool {
    let mut rest = text;
    string.lines().map(str::trim).filter(|line| !line.is_empty()).all(|line| match rest.find(line) {
        Some(at) => {
            rest = &rest[at + line.len()..];
            true
        }
        None => false,
    })
}

/// Shortens all lists to fewer and fewer items, and at last long strings, until the data is within
/// the limit. Returns true if anything was left out.
fn cut_lists(facts: &mut Value, limit: usize) -> bool {
    let mut cut = false;
    for most in ITEM_LIMITS {
        if facts.to_string().len() <= limit {
            return cut;
        }
        cut |= cut_to(facts, most);
    }
    if facts.to_string().len() > limit
        && let Value::Object(fields) = facts
    {
        // Long strings that are still whole, mostly because the text does not contain them, are cut
        // to both ends.
        for field in fields.values_mut() {
            cut |= cut_long(field, limit / 8);
        }
    }
    cut
}

fn cut_to(value: &mut Value, most: usize) -> bool {
    match value {
        Value::Array(items) => {
            let cut = items.len() > most;
            items.truncate(most);
            items.iter_mut().fold(cut, |cut, item| cut_to(item, most) | cut)
        }
        Value::Object(fields) => fields.values_mut().fold(false, |cut, field| cut_to(field, most) | cut),
        _ => false,
    }
}

fn cut_long(value: &mut Value, most: usize) -> bool {
    match value {
        Value::String(string) if string.len() > most => {
            *string = ends(string, most, &|left| format!("[... {left} bytes: see full-output ...]"));
            true
        }
        Value::Array(items) => items.iter_mut().fold(false, |cut, item| cut_long(item, most) | cut),
        Value::Object(fields) => fields.values_mut().fold(false, |cut, field| cut_long(field, most) | cut),
        _ => false,
    }
}

/// Returns the data of an answer as it is if it is an object, and an empty object otherwise.
pub(crate) fn object(facts: Value) -> Value {
    if facts.is_object() { facts } else { Value::Object(Map::new()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shortened(text: &str, full: Option<String>, facts: Value) -> (String, Value, Kept) {
        let kept = Mutex::default();
        let (text, facts) = shorten(text, full, facts, Limits::DEFAULT, &kept);
        (text, facts, kept.into_inner().unwrap())
    }

    #[test]
    fn a_short_answer_is_as_it_was() {
        let facts = json!({"stdout": "before\n", "values": ["1", "2"]});
        let (text, same, kept) = shortened("before\n\n=> 1", None, facts.clone());
        assert_eq!((text.as_str(), same, kept.numbers().len()), ("before\n\n=> 1", facts, 0));
    }

    #[test]
    fn long_output_keeps_both_ends_and_is_in_the_answer_once() {
        let printed: String = (0..2_000).map(|line| format!("line {line} of ä loop\n")).collect();
        let text = format!("[stdout]\n{printed}\n=> :DONE");
        let (shown, facts, mut kept) = shortened(&text, None, json!({"stdout": printed, "values": [":DONE"]}));
        assert!(
            shown.starts_with("[stdout]\nline 0 of ä loop\n") && shown.ends_with("line 1999 of ä loop\n\n=> :DONE")
        );
        assert!(
            shown.len() < MAX_TEXT_BYTES + 200 && shown.contains("bytes left out: full-output {\"handle\": 1}"),
            "{shown}"
        );
        assert!(facts.to_string().len() < 600 && facts["full_output"] == 1, "{facts}");
        assert_eq!(facts["values"][0], ":DONE");
        assert_eq!(kept.text(1), Some(text.as_str()));
    }

    #[test]
    fn text_of_some_length_is_in_the_text_alone() {
        let printed = "0123456789\n".repeat(100);
        let (shown, facts, kept) = shortened(&format!("[stdout]\n{printed}"), None, json!({"stdout": printed}));
        assert_eq!(shown.matches("0123456789").count(), 100);
        assert!(facts["stdout"].as_str().unwrap().len() < 300, "{facts}");
        assert_eq!(kept.numbers(), [1]);
        // Data missing from the text stays.
        let (_, facts, _) = shortened("a", None, json!({"tree": "b".repeat(1000)}));
        assert_eq!(facts["tree"].as_str().unwrap().len(), 1000);
    }

    #[test]
    fn a_string_whose_middle_the_text_lacks_is_kept() {
        let lines: Vec<String> = (0..600).map(|line| format!("line {line}")).collect();
        let printed = lines.join("\n");
        let text = format!("{}\n[...]\n{}", lines[..50].join("\n"), lines[550..].join("\n"));
        let (_, facts, mut kept) = shortened(&text, None, json!({"stdout": printed}));
        assert!(!facts.to_string().contains("line 150"), "{facts}");
        assert!(kept.text(1).unwrap().contains("line 150"), "{facts}");
        // The complete text may lack what the text has.
        let full = Some("[the compiler's output]".into());
        let (_, _, mut kept) = shortened(&printed, full, json!({"stdout": printed}));
        assert!(kept.text(1).unwrap().contains("line 150"));
        // Indentation is no difference.
        let indented = format!("  {}", lines.join("\n  "));
        let (_, _, mut kept) = shortened(&indented, None, json!({"stdout": printed}));
        assert_eq!(kept.text(1), Some(indented.as_str()));
    }

    #[test]
    fn long_lists_are_shortened_and_kept() {
        let names: Vec<String> = (0..1000).map(|number| format!("function SHOP::F{number}")).collect();
        let (_, facts, mut kept) = shortened("Reloaded", None, json!({"report": {"redefined": names}}));
        assert!(facts.to_string().len() < MAX_DATA_BYTES, "{facts}");
        assert!(kept.text(1).unwrap().contains("SHOP::F999"));
        let (_, facts, _) = shortened("x", None, json!({"a": "long ".repeat(10_000), "b": 1}));
        assert!(facts.to_string().len() < MAX_DATA_BYTES && facts["b"] == 1, "{facts}");
    }

    #[test]
    fn ends_are_whole_characters_and_lines() {
        let text = "ä".repeat(50);
        for limit in 2..60 {
            assert!(ends(&text, limit, &|_| "-".into()).contains("\n-\n"));
        }
    }
}
