//! `full-output`: the rest of an answer that was shown in part.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::compile_form::Refusal;
use crate::locked::lock;
use crate::mcp::answer::Limits;
use crate::mcp::partial_answers::{MAX_ANSWERS, RETENTION};
use crate::model::error_kind::ErrorKind;

/// The default size of a page in bytes.
const PAGE: usize = 4_000;
/// The maximum size of a page in bytes.
const MAX_PAGE: usize = 50_000;
/// The maximum number of lines in a search result.
const MAX_FOUND_LINES: usize = 50;
/// The maximum number of characters of a line in a search result.
const MAX_LINE_CHARS: usize = 300;
/// The number of characters after which a line is split.
const MAX_ROW_CHARS: usize = 1_000;

/// The tool `full-output`.
pub(crate) struct FullOutput;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The number the answer named
    handle: u64,
    /// First line, from 1
    #[serde(default)]
    #[schemars(range(min = 1))]
    line: Option<usize>,
    /// Bytes of the page
    #[serde(default)]
    #[schemars(range(min = 100, max = 50_000))]
    limit: Option<usize>,
    /// Lines with this
    #[serde(default)]
    search: Option<String>,
}

/// The data of the answer. The page is in the text.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Output {
    /// The total number of lines.
    lines: usize,
    /// The line to continue with.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<usize>,
    /// The number of lines found.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

impl FromFailure for Output {
    fn from_failure(failure: Failure) -> Self {
        Output { error: Some(failure.into()), ..Output::default() }
    }
}

impl Tool for FullOutput {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "full-output";
    const RUNS_CODE: bool = false;
    const DESCRIPTION: &'static str = "The rest of an answer, by its handle: a page, or the lines with a text.";
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    const LIMITS: Limits = Limits::NONE;

    async fn call(call: Call, input: Input) -> Reply<Output> {
        let mut kept = lock(&call.partial_answers);
        let numbers = kept.numbers();
        let Some(text) = kept.text(input.handle) else {
            let there = match (numbers.first(), numbers.last()) {
                (Some(first), Some(last)) => format!("Kept are {first} to {last}."),
                _ => "None is kept.".into(),
            };
            let message = format!(
                "No output {} is kept any more ({MAX_ANSWERS}, for {} minutes). {there} Call the tool again.",
                input.handle,
                RETENTION.as_secs() / 60
            );
            return Failure { kind: ErrorKind::NOT_FOUND, message }.into();
        };
        let limit = input.limit.unwrap_or(PAGE).min(MAX_PAGE);
        match input.search {
            Some(wanted) => search(text, &wanted, input.line.unwrap_or(1), limit),
            None => page(text, input.line.unwrap_or(1), limit),
        }
    }
}

/// Returns the lines of a text. A very long one is split into several.
fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut rest = Some(line);
        std::iter::from_fn(move || {
            let line = rest.take()?;
            match line.char_indices().nth(MAX_ROW_CHARS) {
                Some((end, _)) => {
                    rest = Some(&line[end..]);
                    Some(&line[..end])
                }
                None => Some(line),
            }
        })
    })
}

/// Returns words for a heading about a part of a text that was left out when the text was written
/// or kept. The line is numbered as in pages.
fn gap(text: &str) -> String {
    let marks = |line: &&str| {
        let line = line.trim_matches('.');
        line.len() < 80 && line.starts_with('[') && line.ends_with(']') && line.contains(" left out")
    };
    let gap = rows(text).enumerate().find(|(_, line)| marks(line));
    gap.map(|(index, line)| format!(", not all is kept: line {} is {line}", index + 1)).unwrap_or_default()
}

fn page(text: &str, from: usize, limit: usize) -> Reply<Output> {
    let lines: Vec<&str> = rows(text).collect();
    if from > lines.len() {
        let told = format!("[there are {} lines{}]", lines.len(), gap(text));
        return Reply::new(told, Output { lines: lines.len(), ..Output::default() }, false);
    }
    let mut shown = String::new();
    let mut next = from;
    for line in lines.iter().skip(from - 1) {
        if !shown.is_empty() && shown.len() + line.len() > limit {
            break;
        }
        shown.push_str(line);
        shown.push('\n');
        next += 1;
    }
    let next_line = (next <= lines.len()).then_some(next);
    let last = next.saturating_sub(1).max(from);
    let rest = next_line.map(|line| format!(", go on with line={line}")).unwrap_or_default();
    let text = format!("[lines {from}-{last} of {}{rest}{}]\n{}", lines.len(), gap(text), shown.trim_end());
    Reply::new(text, Output { lines: lines.len(), next_line, ..Output::default() }, false)
}

fn search(text: &str, wanted: &str, from: usize, limit: usize) -> Reply<Output> {
    let lower = wanted.to_lowercase();
    let mut shown = String::new();
    let (mut lines, mut found, mut more, mut next_line) = (0, 0, 0, None);
    for (index, line) in rows(text).enumerate() {
        lines += 1;
        if index + 1 < from || !line.to_lowercase().contains(&lower) {
            continue;
        }
        found += 1;
        if found > MAX_FOUND_LINES || shown.len() > limit {
            more += 1;
            next_line = next_line.or(Some(index + 1));
            continue;
        }
        let line = crate::ide::clip::clip(line, MAX_LINE_CHARS).text.replace('\n', " ");
        shown.push_str(&format!("{}: {line}\n", index + 1));
    }
    let rest = if more > 0 { format!(", {more} more from line={}", next_line.unwrap_or(from)) } else { String::new() };
    let text = format!("[{found} of {lines} lines{rest}{}]\n{}", gap(text), shown.trim_end());
    Reply::new(text, Output { lines, next_line, found: Some(found), error: None }, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_and_end() {
        let text: String = (1..=300).map(|line| format!("this is line {line}\n")).collect();
        let (mut seen, mut line) = (String::new(), Some(1));
        while let Some(from) = line {
            let reply = page(&text, from, 1000);
            let (_, body) = reply.text.split_once('\n').expect("a heading");
            assert!(body.len() <= 1000);
            seen += body;
            seen.push('\n');
            line = reply.facts.next_line;
        }
        assert_eq!(seen, text);
        assert_eq!(page(&text, 1000, 1000).facts.next_line, None);
        let wide = page(&"x".repeat(10_000), 2, 1500);
        assert_eq!((wide.facts.lines, wide.facts.next_line), (10, Some(3)));
    }

    #[test]
    fn a_gap_in_the_text_is_told() {
        let text = "line 1\n...[39 characters left out]...\nline 9\n";
        let gap = "not all is kept: line 2 is ...[39 characters left out]...";
        assert_eq!(search(text, "line 5", 1, 4000).text, format!("[0 of 3 lines, {gap}]\n"));
        assert!(page(text, 1, 4000).text.starts_with(&format!("[lines 1-3 of 3, {gap}]\nline 1\n")));
        assert_eq!(page("a\nb\n", 9, 4000).text, "[there are 2 lines]");
        let after_long_line = format!("{}\n{text}", "x".repeat(2 * MAX_ROW_CHARS + 1));
        assert!(page(&after_long_line, 9, 4000).text.contains("line 5 is ...["), "three rows and line 1 are before it");
    }

    #[test]
    fn a_search_names_lines() {
        let text: String = (1..=300).map(|line| format!("Line {line}\n")).collect();
        let reply = search(&text, "line 29", 1, 4000);
        assert!(reply.text.starts_with("[11 of 300 lines]\n29: Line 29\n290: Line 290\n"), "{}", reply.text);
        let many = search(&text, "line", 1, 4000);
        assert_eq!((many.facts.found, many.facts.next_line), (Some(300), Some(51)));
    }
}
