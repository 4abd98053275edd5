//! Source text with carets under ranges, for snapshots that a person can check by eye. Also
//! included by unit tests of `server`.

use std::fmt::Write as _;

/// A range to mark: `start..end` in characters (an empty one gets one caret), and its label.
#[derive(Debug, Clone)]
pub struct Mark {
    /// The first character.
    pub start: usize,
    /// The position behind the last character.
    pub end: usize,
    /// The text behind the carets.
    pub label: String,
}

/// Renders `text` with each mark under its line. All lines of a mark are underlined; the label is
/// under the first. Tabs are shown as `→` up to the next multiple of 4; carets are two wide under
/// wide characters; other control characters show as `·`.
pub fn render(text: &str, marks: &[Mark]) -> String {
    let mut out = String::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let length = line.chars().count();
        let last = !line.ends_with('\n');
        let content = line.trim_end_matches(['\n', '\r']);
        let cells = cells(content);
        let shown: String = cells.iter().map(|cell| cell.as_str()).collect();
        let _ = writeln!(out, "{}", format!("| {shown}").trim_end());
        for mark in marks {
            let here = mark.start >= start && (mark.start < start + length || last && mark.start == start + length);
            let goes_on = mark.start < start && mark.end > start;
            if here || goes_on {
                underline(&mut out, &cells, mark, start, here);
            }
        }
        start += length;
    }
    if text.is_empty() || text.ends_with('\n') {
        for mark in marks.iter().filter(|mark| mark.start >= start) {
            let _ = writeln!(out, "|\n  ^ {}", mark.label);
        }
    }
    out
}

fn underline(out: &mut String, cells: &[String], mark: &Mark, start: usize, labelled: bool) {
    let from = mark.start.saturating_sub(start);
    let to = mark.end.saturating_sub(start).min(cells.len());
    let width = |cells: &[String]| cells.iter().map(|cell| shown_width(cell)).sum::<usize>();
    let blank = width(&cells[..from.min(cells.len())]);
    let carets = if from < to { width(&cells[from..to]) } else { 1 };
    let label = if labelled { mark.label.as_str() } else { "" };
    let line = format!("  {}{} {label}", " ".repeat(blank), "^".repeat(carets.max(1)));
    let _ = writeln!(out, "{}", line.trim_end());
}

/// Returns the shown form of each character of a line.
fn cells(line: &str) -> Vec<String> {
    let mut column = 0;
    line.chars()
        .map(|char| {
            let cell = match char {
                '\t' => format!("→{}", " ".repeat(3 - column % 4)),
                char if char.is_control() => "·".to_owned(),
                char => char.to_string(),
            };
            column += shown_width(&cell);
            cell
        })
        .collect()
}

fn shown_width(cell: &str) -> usize {
    cell.chars().map(|char| if is_wide(char) { 2 } else { 1 }).sum()
}

/// The main blocks of wide characters: enough for tests.
fn is_wide(char: char) -> bool {
    matches!(char as u32, 0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F | 0xFF00..=0xFF60 | 0x1F300..=0x1FAFF)
}
