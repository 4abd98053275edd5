//! Output of the inspector for an agent, as text and as data: a page of the parts of a value, a
//! value as a table, a comparison of two values, and the definitions of a value.

use std::path::Path;

use serde::Serialize;
use serde_json::json;

use super::value_definition::Defined;
use crate::model::inspection::{Comparison, Inspected, LispValue, MatchingParts, Part, Table};
use crate::shown::{line, long_line};

/// The maximum number of bytes of a page, both of its text and of its data. Longer answers would be
/// cut.
const PAGE: usize = 3_000;

/// Returns true if the code is the name of a variable, whose value can be read without evaluation.
/// A name with bars counts as other code. So does a name that begins with a digit, as numbers do.
pub fn is_variable(code: &str) -> bool {
    let code = code.trim();
    let number = code.trim_start_matches(['+', '-', '.']).starts_with(|char: char| char.is_ascii_digit());
    let name = |char: char| char.is_alphanumeric() || "*+-/<>=!?%&$_.~^@:".contains(char);
    !code.is_empty() && !number && code.chars().all(name)
}

/// A page of the parts of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartsPage {
    /// The value.
    #[serde(flatten)]
    pub value: ValueFacts,
    /// The name of the value's class.
    #[serde(rename = "type")]
    pub class: Option<String>,
    /// The kind of the value: `list`, `vector`, `hash table`, ...
    pub kind: String,
    /// The number of parts.
    pub total: usize,
    /// A remark, such as that the list is circular.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The number of the first part of the page. `None` if it is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
    /// The number with which the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    /// The parts.
    pub parts: Vec<PartFacts>,
}

/// A page of the parts of a value that contain a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MatchesPage {
    /// The value.
    #[serde(flatten)]
    pub value: ValueFacts,
    /// The number of parts.
    pub total: usize,
    /// The number of parts that were searched.
    pub searched: usize,
    /// The number of parts that contain the text.
    pub matches: usize,
    /// The match with which the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    /// The matching parts on the page.
    pub parts: Vec<PartFacts>,
}

/// A value that has no parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlainValue {
    /// The text.
    pub text: String,
    /// The name of the value's class.
    #[serde(rename = "type")]
    pub class: Option<String>,
    /// The number of parts, 0.
    pub total: usize,
}

/// A value: its text, and its number if it can be inspected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueFacts {
    /// The text.
    pub text: String,
    /// The number by which the value can be inspected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
}

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartFacts {
    /// The part's number. `None` if it follows from the position on the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// The key, if the value is a hash table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The number by which the key can be inspected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_value: Option<u64>,
    /// The label. `None` if it is the part's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// True if the part has no value.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
    /// The value, or the reason why the part has none.
    #[serde(flatten)]
    pub value: ValueFacts,
}

/// A page of a value as a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TablePage {
    /// The number of rows of the whole table.
    pub total: usize,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The row with which the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    /// The rows. Each consists of its label and a cell for each column, `None` where the row has
    /// none.
    pub rows: Vec<Vec<Option<String>>>,
}

/// The differences of two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparisonFacts {
    /// The number of differences, including those that are not shown.
    pub total: usize,
    /// True if the values were too large to be compared completely.
    pub partial: bool,
    /// The differences, in the order of the parts.
    pub differences: Vec<DifferenceFacts>,
}

/// A part that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DifferenceFacts {
    /// The labels of the parts that lead to this part, outermost first.
    pub path: Vec<String>,
    /// The text of the first value's part.
    pub one: String,
    /// The text of the second value's part.
    pub other: String,
}

/// The definitions of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DefinitionsFacts {
    /// The definitions, the value's own first.
    pub definitions: Vec<DefinitionFacts>,
}

/// A definition of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DefinitionFacts {
    /// The kind: `function`, `method`, ...
    pub kind: String,
    /// The name.
    pub name: String,
    /// The file, relative to the workspace if it lies below the workspace.
    pub file: String,
    /// The line, 1-based, if it is known.
    pub line: Option<usize>,
}

impl ValueFacts {
    fn of(value: &LispValue, numbered: bool) -> ValueFacts {
        ValueFacts { text: value.text.clone(), value: number_of(value, numbered) }
    }
}

/// Returns the number by which a value can be inspected, if it can be inspected and the values are
/// `numbered`.
fn number_of(value: &LispValue, numbered: bool) -> Option<u64> {
    (numbered && value.reference > 0).then_some(value.reference)
}

/// Takes items until the page is full. Returns their lines, each after a line break, and their
/// data.
fn fill<T: Serialize>(items: impl Iterator<Item = (String, T)>) -> (String, Vec<T>) {
    let (mut text, mut facts, mut bytes) = (String::new(), Vec::new(), 0);
    for (shown, fact) in items {
        bytes += json!(fact).to_string().len() + 1;
        if !facts.is_empty() && (text.len() + shown.len() > PAGE || bytes > PAGE) {
            break;
        }
        text.push('\n');
        text.push_str(&shown);
        facts.push(fact);
    }
    (text, facts)
}

/// Returns the number with which the next page begins, if there is one, and adds it to the text.
fn next_page(text: &mut String, what: &str, start: usize, shown: usize, total: usize) -> Option<usize> {
    let next = start + shown;
    if next >= total || shown == 0 {
        return None;
    }
    text.push_str(&format!("\n; {shown} of {total} {what}; the next: `offset` {next}"));
    Some(next)
}

/// Returns a part as one line: its key, or its label unless that is `number`, and its value.
pub fn part_line(number: usize, part: &Part) -> String {
    let (label, value) = (line(&part.label), long_line(&part.value.text));
    match &part.key {
        Some(key) => format!("{} => {value}", long_line(&key.text)),
        None if label == number.to_string() => value,
        None => format!("{label} {} {value}", if part.missing { "is" } else { "=" }),
    }
}

/// Returns a part as a line and as data.
fn part(number: usize, part: &Part, numbered: bool) -> (String, PartFacts) {
    let has_own_label = part.key.is_none() && line(&part.label) != number.to_string();
    let facts = PartFacts {
        number: None,
        key: part.key.as_ref().map(|key| key.text.clone()),
        key_value: part.key.as_ref().and_then(|key| number_of(key, numbered)),
        label: has_own_label.then(|| part.label.clone()),
        missing: part.missing,
        value: ValueFacts::of(&part.value, numbered),
    };
    (format!("{number}: {}", part_line(number, part)), facts)
}

/// Returns a page of the parts of a value, from the part `start`. `numbered` is true if the values
/// have numbers by which they can be inspected. Values in a frozen failure have none.
pub fn page(inspected: &Inspected, start: usize, numbered: bool) -> (String, PartsPage) {
    let Inspected { value, kind, note, total, parts, .. } = inspected;
    let name = if numbered && value.reference > 0 { format!("Value {}", value.reference) } else { "Value".into() };
    let mut text = format!("{name}: {}", long_line(&value.text));
    if let Some(kind) = &value.kind {
        text += &format!(" ({})", line(kind));
    }
    text += &format!("\n{kind}, {total} part{}", if *total == 1 { "" } else { "s" });
    if let Some(note) = note {
        text += &format!("; {}", line(note));
    }
    let lines = parts.iter().enumerate().map(|(index, one)| part(start + index, one, numbered));
    let (shown, parts) = fill(lines);
    text += &shown;
    let next = next_page(&mut text, "parts", start, parts.len(), *total);
    let page = PartsPage {
        value: ValueFacts::of(value, numbered),
        class: value.kind.clone(),
        kind: kind.clone(),
        total: *total,
        note: note.clone(),
        offset: (start > 0).then_some(start),
        next,
        parts,
    };
    (text, page)
}

/// Returns a page of the parts of a value that contain a text, from the match `start`.
pub fn matching_parts(found: &MatchingParts, start: usize) -> (String, MatchesPage) {
    let MatchingParts { value, total, searched, matches, parts, .. } = found;
    let name = if value.reference > 0 { format!("Value {}", value.reference) } else { "Value".into() };
    let mut text = format!("{name}: {}\n{matches} of {searched} parts contain it", long_line(&value.text));
    if searched < total {
        text += &format!("; it has {total}, and the others were not searched");
    }
    let (shown, parts) = fill(parts.iter().map(|found| {
        let (line, facts) = part(found.number, &found.part, true);
        (line, PartFacts { number: Some(found.number), ..facts })
    }));
    text += &shown;
    let next = next_page(&mut text, "matches", start, parts.len(), *matches);
    let value = ValueFacts::of(value, true);
    (text, MatchesPage { value, total: *total, searched: *searched, matches: *matches, next, parts })
}

/// Returns the page for a value that has no parts: a number, a character, NIL or T.
pub fn plain(value: &LispValue) -> (String, PlainValue) {
    let text = format!("=> {}\n; The value has no parts.", long_line(&value.text));
    (text, PlainValue { text: value.text.clone(), class: value.kind.clone(), total: 0 })
}

/// Returns a page of a value as a table, from the row `start`.
pub fn table(table: &Table, start: usize) -> (String, TablePage) {
    let columns: Vec<String> = table.columns.iter().map(|column| line(column)).collect();
    let mut text = format!("{} rows\n | {}", table.total, columns.join(" | "));
    let (shown, rows) = fill(table.rows.iter().map(|row| {
        let cells = row.cells.iter().map(|cell| cell.as_ref().map(|cell| cell.text.as_str()));
        let text: Vec<String> = cells.clone().map(|cell| cell.map_or_else(String::new, long_line)).collect();
        let cells = std::iter::once(Some(row.label.clone())).chain(cells.map(|cell| cell.map(str::to_owned)));
        (format!("{} | {}", line(&row.label), text.join(" | ")), cells.collect::<Vec<_>>())
    }));
    text += &shown;
    let next = next_page(&mut text, "rows", start, rows.len(), table.total);
    (text, TablePage { total: table.total, columns: table.columns.clone(), next, rows })
}

/// Returns the differences between two values.
pub fn comparison(comparison: &Comparison) -> (String, ComparisonFacts) {
    let mut text = match comparison.differences.len() {
        0 => "They are the same".to_owned(),
        1 => "1 difference".to_owned(),
        count => format!("{count} differences"),
    };
    text += if comparison.partial { " in the part that was compared; they are too large.\n" } else { ".\n" };
    text.truncate(text.trim_end().len());
    let (shown, differences) = fill(comparison.differences.iter().map(|one| {
        let labels = &one.path;
        let path: Vec<String> = labels.iter().map(|label| line(label)).collect();
        let path = if path.is_empty() { "the values".into() } else { path.join(" > ") };
        let text = format!("{path}: {} / {}", long_line(&one.one.text), long_line(&one.other.text));
        let (one, other) = (&one.one.text, &one.other.text);
        (text, DifferenceFacts { path: labels.clone(), one: one.clone(), other: other.clone() })
    }));
    text += &shown;
    let total = comparison.differences.len();
    let left = total - differences.len();
    if left > 0 {
        text += &format!("\n; {left} more are not shown");
    }
    (text, ComparisonFacts { total, partial: comparison.partial, differences })
}

/// Returns the definitions of a value. Files below `workspace` are named relative to it.
pub fn definitions(found: &[Defined], workspace: &Path) -> (String, DefinitionsFacts) {
    let mut definitions = Vec::new();
    let mut lines = Vec::new();
    for one in found {
        let file = one.file.strip_prefix(workspace).unwrap_or(&one.file).display().to_string();
        let at = one.start().map(|start| start.line);
        let place = at.map_or(String::new(), |at| format!(":{at}"));
        lines.push(format!("{} {}  {}{place}", line(&one.kind), line(&one.name), line(&file)));
        definitions.push(DefinitionFacts { kind: one.kind.clone(), name: one.name.clone(), file, line: at });
    }
    let text = if lines.is_empty() { "No file is known to define it.".into() } else { lines.join("\n") };
    (text, DefinitionsFacts { definitions })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn inspected(value: Value) -> Inspected {
        serde_json::from_value(value).unwrap()
    }

    fn value(text: &str, reference: u64) -> Value {
        json!({"text": text, "type": "T", "reference": reference})
    }

    #[test]
    fn names_of_variables_are_read_and_other_code_is_not() {
        for name in ["*", " ** ", "/", "+", "-", "*cart*", "shop::*cart*", "X", "x1", "%y", "x+1"] {
            assert!(is_variable(name), "{name}");
        }
        for code in ["", "(f)", "'x", "#.x", "17", "1+x", "-1", "+.5", "\"s\"", "a b", "`x", "|x|", "a\\b", "x;", "#'f"]
        {
            assert!(!is_variable(code), "{code}");
        }
    }

    #[test]
    fn parts_have_their_numbers_and_what_more_there_is() {
        let list = inspected(json!({
            "value": value("(1 (2) ...)", 7), "kind": "list", "note": "It is circular.", "total": 9, "stop": null,
            "parts": [
                {"label": "3", "value": value("1", 0), "missing": false},
                {"label": "4", "value": value("(2\u{202e})", 8), "missing": false},
            ],
        }));
        let (text, facts) = page(&list, 3, true);
        let facts = json!(facts);
        insta::assert_snapshot!(text, @r"
        Value 7: (1 (2) ...) (T)
        list, 9 parts; It is circular.
        3: 1
        4: (2\u{202e})
        ; 2 of 9 parts; the next: `offset` 5
        ");
        assert_eq!(facts["parts"], json!([{"text": "1"}, {"text": "(2\u{202e})", "value": 8}]));
        assert_eq!((&facts["value"], &facts["next"], &facts["offset"]), (&json!(7), &json!(5), &json!(3)));
        // Values in a frozen failure have no numbers.
        let (text, facts) = page(&list, 3, false);
        let facts = json!(facts);
        assert!(text.starts_with("Value: (1 (2)") && facts.get("value").is_none(), "{text} {facts}");
        assert_eq!(facts["parts"][1], json!({"text": "(2\u{202e})"}));
    }

    #[test]
    fn keys_and_slots_are_told() {
        let parts = json!([
            {"label": "0", "key": value("#<K>", 9), "value": value("1", 0), "missing": false},
            {"label": "NAME", "value": {"text": "unbound", "type": null, "reference": 0}, "missing": true},
            {"label": "PRICE", "value": value("3", 0), "missing": false},
        ]);
        let (text, facts) = page(
            &inspected(json!({"value": value("#<X>", 1), "kind": "x", "note": null, "total": 3, "parts": parts})),
            0,
            true,
        );
        let facts = json!(facts);
        assert!(text.ends_with("\n0: #<K> => 1\n1: NAME is unbound\n2: PRICE = 3"), "{text}");
        let expected = json!([
            {"key": "#<K>", "key_value": 9, "text": "1"}, {"label": "NAME", "missing": true, "text": "unbound"},
            {"label": "PRICE", "text": "3"},
        ]);
        assert_eq!(facts["parts"], expected);
    }

    #[test]
    fn a_page_ends_where_an_answer_would_be_cut() {
        let parts: Vec<Value> = (0..50)
            .map(|n| json!({"label": n.to_string(), "value": value(&"x".repeat(200), n + 1), "missing": false}))
            .collect();
        let (text, facts) = page(
            &inspected(json!({"value": value("(x)", 1), "kind": "list", "note": null, "total": 50, "parts": parts})),
            0,
            true,
        );
        let facts = json!(facts);
        let shown = facts["parts"].as_array().unwrap().len();
        assert!(shown > 5 && shown < 20, "{shown}");
        assert!(text.ends_with(&format!("; {shown} of 50 parts; the next: `offset` {shown}")), "{text}");
        assert!(text.len() < 4_000 && facts.to_string().len() < 4_000);
    }

    #[test]
    fn tables_and_differences_are_lines() {
        let rows = json!([{"label": "0", "cells": [value("1", 0), null]}]);
        let (text, facts) =
            table(&serde_json::from_value(json!({"total": 2, "columns": ["A", "B"], "rows": rows})).unwrap(), 0);
        let facts = json!(facts);
        assert_eq!(text, "2 rows\n | A | B\n0 | 1 | \n; 1 of 2 rows; the next: `offset` 1");
        assert_eq!(facts["rows"], json!([["0", "1", null]]));
        let one = json!({"path": ["2", "NAME"], "one": value("1", 0), "other": value("2", 0)});
        let told = |differences: Value, partial: bool| {
            comparison(&serde_json::from_value(json!({"differences": differences, "partial": partial})).unwrap()).0
        };
        assert_eq!(told(json!([one]), false), "1 difference.\n2 > NAME: 1 / 2");
        assert_eq!(told(json!([]), false), "They are the same.");
        assert!(told(json!([]), true).contains("too large"));
    }
}
