//! The inspector for an agent, as text and as data: a page of the parts of a value, a value as a
//! table, two values compared, and where a value is defined.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::value_definition::Defined;
use crate::image::api::debug::{Inspected, Part, Value as Shown};
use crate::image::api::inspector::{Comparison, Found, Table};
use crate::shown::{line, long_line};

/// The maximum number of bytes of a page, as text and as data, so that an answer is not cut within.
const PAGE: usize = 3_000;

/// Returns true if code is the name of a variable, whose value can be read without evaluating it. A
/// name with bars, or one that begins with a digit as numbers do, counts as code.
pub fn is_variable(code: &str) -> bool {
    let code = code.trim();
    let number = code.trim_start_matches(['+', '-', '.']).starts_with(|char: char| char.is_ascii_digit());
    let name = |char: char| char.is_alphanumeric() || "*+-/<>=!?%&$_.~^@:".contains(char);
    !code.is_empty() && !number && code.chars().all(name)
}

/// Items that are shown until the page is full: their lines, their data, and how many there are.
fn fill(items: impl Iterator<Item = (String, Value)>) -> (String, Vec<Value>) {
    let (mut text, mut facts, mut bytes) = (String::new(), Vec::new(), 0);
    for (shown, fact) in items {
        bytes += fact.to_string().len() + 1;
        if !facts.is_empty() && (text.len() + shown.len() > PAGE || bytes > PAGE) {
            break;
        }
        text.push('\n');
        text.push_str(&shown);
        facts.push(fact);
    }
    (text, facts)
}

/// Adds where the next page begins, if there is one, to text and data.
fn next_page(text: &mut String, facts: &mut Value, what: &str, start: usize, shown: usize, total: usize) {
    let next = start + shown;
    if next < total && shown > 0 {
        text.push_str(&format!("\n; {shown} of {total} {what}; the next: `offset` {next}"));
        facts["next"] = next.into();
    }
}

/// Adds a value to data: its text, and its number if there is something to see in it.
fn add_value(fact: &mut Map<String, Value>, name: &str, value: &Shown, numbered: bool) {
    fact.insert(name.into(), value.text.clone().into());
    if numbered && value.reference > 0 {
        let key = if name == "text" { "value".into() } else { format!("{name}_value") };
        fact.insert(key, value.reference.into());
    }
}

/// Returns the part of a number in a line: its key or its name, where it has one, and its value.
pub fn part_line(number: usize, part: &Part) -> String {
    let (label, value) = (line(&part.label), long_line(&part.value.text));
    match &part.key {
        Some(key) => format!("{} => {value}", long_line(&key.text)),
        None if label == number.to_string() => value,
        None => format!("{label} {} {value}", if part.missing { "is" } else { "=" }),
    }
}

/// A part as a line and as data. The data has the label where that is not the part's number.
fn part(number: usize, part: &Part, numbered: bool) -> (String, Value) {
    let mut fact = Map::new();
    if let Some(key) = &part.key {
        add_value(&mut fact, "key", key, numbered);
    } else if line(&part.label) != number.to_string() {
        fact.insert("label".into(), part.label.clone().into());
    }
    if part.missing {
        fact.insert("missing".into(), true.into());
    }
    add_value(&mut fact, "text", &part.value, numbered);
    (format!("{number}: {}", part_line(number, part)), fact.into())
}

/// Returns a page of the parts of a value, from `start`. `numbered`: the values have numbers by
/// which they can be inspected, as those in a frozen failure have not.
pub fn page(inspected: &Inspected, start: usize, numbered: bool) -> (String, Value) {
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
    let (shown, facts) = fill(lines);
    text += &shown;
    let mut head = Map::new();
    add_value(&mut head, "text", value, numbered);
    let mut all = Value::Object(head);
    all["type"] = json!(value.kind);
    all["kind"] = json!(kind);
    all["total"] = json!(total);
    if let Some(note) = note {
        all["note"] = json!(note);
    }
    if start > 0 {
        all["offset"] = start.into();
    }
    next_page(&mut text, &mut all, "parts", start, facts.len(), *total);
    all["parts"] = facts.into();
    (text, all)
}

/// Returns a page of the parts of a value that contain a text, from the match `start`.
pub fn found(found: &Found, start: usize) -> (String, Value) {
    let Found { value, total, searched, matches, parts, .. } = found;
    let name = if value.reference > 0 { format!("Value {}", value.reference) } else { "Value".into() };
    let mut text = format!("{name}: {}\n{matches} of {searched} parts contain it", long_line(&value.text));
    if searched < total {
        text += &format!("; it has {total}, and the others were not searched");
    }
    let (shown, facts) = fill(parts.iter().map(|found| {
        let (line, mut fact) = part(found.number, &found.part, true);
        fact["number"] = found.number.into();
        (line, fact)
    }));
    text += &shown;
    let mut head = Map::new();
    add_value(&mut head, "text", value, true);
    let mut all = Value::Object(head);
    all["total"] = json!(total);
    all["searched"] = json!(searched);
    all["matches"] = json!(matches);
    next_page(&mut text, &mut all, "matches", start, facts.len(), *matches);
    all["parts"] = facts.into();
    (text, all)
}

/// Returns a value that has no parts: a number, a character, NIL or T.
pub fn plain(value: &Shown) -> (String, Value) {
    let text = format!("=> {}\n; There is nothing to look into.", long_line(&value.text));
    (text, json!({"text": value.text, "type": value.kind, "total": 0}))
}

/// Returns a page of a value as a table, from the row `start`.
pub fn table(table: &Table, start: usize) -> (String, Value) {
    let columns: Vec<String> = table.columns.iter().map(|column| line(column)).collect();
    let mut text = format!("{} rows\n | {}", table.total, columns.join(" | "));
    let (shown, rows) = fill(table.rows.iter().map(|row| {
        let cells = row.cells.iter().map(|cell| cell.as_ref().map(|cell| cell.text.as_str()));
        let text: Vec<String> = cells.clone().map(|cell| cell.map_or_else(String::new, long_line)).collect();
        let fact: Vec<Value> = std::iter::once(json!(row.label)).chain(cells.map(|cell| json!(cell))).collect();
        (format!("{} | {}", line(&row.label), text.join(" | ")), Value::Array(fact))
    }));
    text += &shown;
    let mut facts = json!({"total": table.total, "columns": table.columns});
    next_page(&mut text, &mut facts, "rows", start, rows.len(), table.total);
    facts["rows"] = rows.into();
    (text, facts)
}

/// Returns the differences of two values.
pub fn comparison(comparison: &Comparison) -> (String, Value) {
    let mut text = match comparison.differences.len() {
        0 => "They are the same".to_owned(),
        1 => "1 difference".to_owned(),
        count => format!("{count} differences"),
    };
    text += if comparison.partial { " in the part that was compared; they are too large.\n" } else { ".\n" };
    text.truncate(text.trim_end().len());
    let (shown, facts) = fill(comparison.differences.iter().map(|one| {
        let path: Vec<String> = one.path.iter().map(|label| line(label)).collect();
        let path = if path.is_empty() { "the values".into() } else { path.join(" > ") };
        let text = format!("{path}: {} / {}", long_line(&one.one.text), long_line(&one.other.text));
        (text, json!({"path": one.path, "one": one.one.text, "other": one.other.text}))
    }));
    text += &shown;
    let left = comparison.differences.len() - facts.len();
    if left > 0 {
        text += &format!("\n; {left} more are not shown");
    }
    let total = comparison.differences.len();
    (text, json!({"total": total, "partial": comparison.partial, "differences": facts}))
}

/// Returns where a value is defined; files below `workspace` are named relative to it.
pub fn definitions(found: &[Defined], workspace: &Path) -> (String, Value) {
    let mut facts = Vec::new();
    let mut lines = Vec::new();
    for one in found {
        let file = one.file.strip_prefix(workspace).unwrap_or(&one.file).display().to_string();
        let at = one.start().map(|start| start.line);
        let place = at.map_or(String::new(), |at| format!(":{at}"));
        lines.push(format!("{} {}  {}{place}", line(&one.kind), line(&one.name), line(&file)));
        facts.push(json!({"kind": one.kind, "name": one.name, "file": file, "line": at}));
    }
    let text = if lines.is_empty() { "No file is known to define it.".into() } else { lines.join("\n") };
    (text, json!({"definitions": facts}))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

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
        insta::assert_snapshot!(text, @r"
        Value 7: (1 (2) ...) (T)
        list, 9 parts; It is circular.
        3: 1
        4: (2\u{202e})
        ; 2 of 9 parts; the next: `offset` 5
        ");
        assert_eq!(facts["parts"], json!([{"text": "1"}, {"text": "(2\u{202e})", "value": 8}]));
        assert_eq!((&facts["value"], &facts["next"], &facts["offset"]), (&json!(7), &json!(5), &json!(3)));
        // Nothing keeps the numbers of a frozen failure.
        let (text, facts) = page(&list, 3, false);
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
