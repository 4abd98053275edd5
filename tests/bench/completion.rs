//! `make completion-table`: how often the name that was meant is among the first completions, on
//! names of real code cut off behind three characters; Swank's two kinds of completion on the same
//! samples.

#![allow(clippy::print_stderr, reason = "a table in a terminal")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use consort::text::Span;
use consort::text::datum::Form;
use consort::text::definitions;
use consort::text::document::Document;
use consort::text::forms::package_at;
use consort::text::position::{PositionEncoding, to_position};
use consort::text::scanner::{Scanner, TokenKind};
use consort::text::scopes::Scopes;
use consort_tests::clients::{Editor, uri};
use consort_tests::place::Place;
use serde_json::{Value, json};

use crate::in_milliseconds;
use crate::lisp::Swank;
use crate::report::median;

/// The samples.
const SAMPLES: usize = 2000;
/// The characters of a name that are typed.
const TYPED: usize = 3;
/// Debian's systems that are measured. The table of usual names
/// (server/src/ide/completion/usual.txt) comes from others.
const SYSTEMS: [(&str, &str); 8] = [
    ("cl-ppcre", "cl-ppcre"),
    ("alexandria", "alexandria"),
    ("hunchentoot", "hunchentoot"),
    ("ironclad", "ironclad"),
    ("cl-flexi-streams", "flexi-streams"),
    ("chunga", "chunga"),
    ("usocket", "usocket"),
    ("cl-base64", "cl-base64"),
];

/// A name that somebody wrote.
struct Sample {
    file: usize,
    span: Span,
    name: String,
    kind: &'static str,
}

/// How often the name was first, in the first five and in the first twenty.
#[derive(Default, Clone, Copy)]
struct Found([usize; 3]);

impl Found {
    fn add(&mut self, at: Option<usize>) {
        for (count, most) in self.0.iter_mut().zip([1, 5, 20]) {
            *count += usize::from(at.is_some_and(|at| at < most));
        }
    }

    fn cells(self, of: usize) -> String {
        let percent = |count: usize| format!("{:.1}", 100.0 * count as f64 / of.max(1) as f64);
        self.0.map(percent).join(" | ")
    }
}

/// Prints the table. With `verbose`, the samples that were not in the first five too.
pub(crate) fn table(place: &Place, verbose: bool) -> Result<()> {
    let mut editor = Editor::open(&mut place.command(&["lsp"]), place.workspace())?;
    let mut swank =
        Swank::start(place.workspace()).inspect_err(|error| eprintln!("Swank's figures are left out: {error:#}")).ok();
    if let Some(swank) = &mut swank {
        swank.eval("(swank:swank-require :swank-fuzzy)")?;
    }
    let (mut files, mut seen) = (Vec::new(), Vec::new());
    for (directory, system) in SYSTEMS {
        let root = Path::new("/usr/share/common-lisp/source").join(directory);
        if !root.is_dir() {
            eprintln!("{system} is not installed: left out");
            continue;
        }
        let loaded = editor.command("consort.loadSystem", json!({"system": system}))?;
        ensure!(loaded["loaded"] == json!(true), "{system} did not load: {loaded}");
        if let Some(swank) = &mut swank {
            swank.eval(&format!("(asdf:load-system {system:?})"))?;
        }
        files.extend(lisp_files(&root));
        seen.push(system);
    }
    let texts: Vec<Document> = files
        .iter()
        .map(|file| Ok(Document::new(&consort::text::decode(std::fs::read(file)?), 0)))
        .collect::<Result<_>>()?;
    let mut samples = Vec::new();
    for (index, document) in texts.iter().enumerate() {
        samples.extend(uses(index, document));
    }
    let all = samples.len();
    let samples = drawn(samples);
    println!(
        "{} names of {all} in {} files of {}; {TYPED} characters typed.\n",
        samples.len(),
        files.len(),
        seen.join(", ")
    );
    let mut ours: BTreeMap<&str, (usize, Found)> = BTreeMap::new();
    let (mut simple, mut fuzzy) = (ours_empty(), ours_empty());
    let mut times = Vec::new();
    let mut open: Option<usize> = None;
    for sample in &samples {
        let (file, document) = (&files[sample.file], &texts[sample.file]);
        if open != Some(sample.file) {
            if let Some(before) = open {
                editor.close_document(&files[before])?;
            }
            editor.open_document(file, &document.text().to_string())?;
            warm(&mut editor, file)?;
            open = Some(sample.file);
        }
        let at = |offset: usize| {
            let position = to_position(document.text(), offset, PositionEncoding::Utf16);
            json!({"line": position.line, "character": position.column})
        };
        let cut = sample.span.start + TYPED;
        let tail = document.text().slice(cut..sample.span.end).to_string();
        editor.change_document(file, json!([{"range": {"start": at(cut), "end": at(sample.span.end)}, "text": ""}]))?;
        let params = json!({"textDocument": {"uri": uri(file)}, "position": at(cut)});
        let (answer, took) = editor.client.timed_request("textDocument/completion", params)?;
        times.push(in_milliseconds(took));
        editor.change_document(file, json!([{"range": {"start": at(cut), "end": at(cut)}, "text": tail}]))?;
        let labels: Vec<String> = answer["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|item| Some(item["textEdit"]["newText"].as_str()?.to_lowercase()))
            .collect();
        let wanted = sample.name.to_lowercase();
        let place = labels.iter().position(|label| *label == wanted);
        if verbose && place.is_none_or(|place| place > 4) {
            let line = document.text().char_to_line(cut) + 1;
            println!("{place:?} {wanted} {}:{line} {:?}", file.display(), &labels[..labels.len().min(6)]);
        }
        let row = ours.entry(sample.kind).or_default();
        row.0 += 1;
        row.1.add(place);
        if let Some(swank) = &mut swank {
            let typed: String = sample.name.chars().take(TYPED).collect();
            let package = package_at(document, sample.span.start).unwrap_or_else(|| "COMMON-LISP-USER".into());
            for (row, call) in [
                (&mut simple, format!("(cl:first (swank:simple-completions {typed:?} {package:?}))")),
                (
                    &mut fuzzy,
                    format!(
                        "(cl:mapcar 'cl:first (cl:first (swank:fuzzy-completions {typed:?} {package:?} :limit 20 :time-limit-in-msec 1000)))"
                    ),
                ),
            ] {
                let answer = swank.ask(&format!("(cl:format cl:nil \"~{{~A~^ ~}}\" {call})"))?;
                let list = answer.split('"').nth(1).unwrap_or_default().to_lowercase();
                row.entry(sample.kind).or_default().add(list.split(' ').position(|label| label == wanted));
            }
        }
    }
    println!(
        "| kind | samples | first | first 5 | first 20 | Swank simple: first | 5 | 20 | Swank fuzzy: first | 5 | 20 |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let (mut total, mut totals) = (0, [Found::default(); 3]);
    for (kind, (count, found)) in &ours {
        let rows =
            [*found, simple.get(kind).copied().unwrap_or_default(), fuzzy.get(kind).copied().unwrap_or_default()];
        println!("| {kind} | {count} | {} |", rows.map(|row| row.cells(*count)).join(" | "));
        total += count;
        for (sum, row) in totals.iter_mut().zip(rows) {
            sum.0.iter_mut().zip(row.0).for_each(|(sum, one)| *sum += one);
        }
    }
    println!("| all | {total} | {} |", totals.map(|row| row.cells(total)).join(" | "));
    let mut sorted = times.clone();
    sorted.sort_by(f64::total_cmp);
    let high = sorted.get(sorted.len() * 95 / 100).copied().unwrap_or_default();
    println!("\nAn answer through LSP: median {:.2} ms, 95% within {high:.2} ms.", median(&times));
    editor.close()
}

fn ours_empty() -> BTreeMap<&'static str, Found> {
    BTreeMap::new()
}

/// Asks until the index has what was loaded: its answers say so.
fn warm(editor: &mut Editor, file: &Path) -> Result<()> {
    for _ in 0..600 {
        let params = json!({"textDocument": {"uri": uri(file)}, "position": {"line": 0, "character": 0}});
        let answer: Value = editor.client.request("textDocument/completion", params)?;
        let known = answer["items"].as_array().is_some_and(|items| items.len() > 50);
        if known || answer.is_null() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    anyhow::bail!("the index of names was not filled")
}

fn lisp_files(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            // Tests and examples are in no system that is loaded.
            let name = entry.file_name().to_string_lossy().to_lowercase();
            if name.contains("test") || name.contains("example") {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|kind| kind == "lisp") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The names of a text of at least five characters, but for those that it defines or binds.
fn uses(file: usize, document: &Document) -> Vec<Sample> {
    let mut made: Vec<Span> = definitions::all(document).into_iter().map(|one| one.name).collect();
    let mut found = Vec::new();
    for top in document.scan().forms() {
        let form = Form::of(document, top.span);
        made.extend(Scopes::of(&form).bindings.into_iter().map(|one| one.span));
    }
    let made: std::collections::HashSet<Span> = made.into_iter().collect();
    let text = document.text().to_string();
    let (mut byte, mut at, mut called) = (0, 0, false);
    for token in Scanner::new(&text) {
        let open =
            token.kind == TokenKind::Open || token.kind == TokenKind::Prefix && &text[token.start..token.end] == "#'";
        let operator = std::mem::replace(&mut called, open);
        if token.kind != TokenKind::Atom {
            continue;
        }
        at += text[byte..token.start].chars().count();
        byte = token.start;
        let name = &text[token.start..token.end];
        let span = Span { start: at, end: at + name.chars().count() };
        let first = name.chars().next().unwrap_or('#');
        if name.chars().count() < 5
            || first == '#'
            || first.is_ascii_digit()
            || name.contains('|')
            || made.contains(&span)
        {
            continue;
        }
        // Ironclad has numbers with another base than ten.
        let hexadecimal = name.contains(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_ascii_hexdigit());
        if hexadecimal || consort::text::names::symbol(name).is_none() {
            continue;
        }
        let kind = match name.find(':') {
            Some(0) => "keyword",
            Some(_) => "with a prefix",
            None if operator => "operator",
            None => "other",
        };
        found.push(Sample { file, span, name: name.to_owned(), kind });
    }
    found
}

/// Some of the samples, the same in each run, in the order of the files.
fn drawn(all: Vec<Sample>) -> Vec<Sample> {
    let mut numbered: Vec<(u64, usize)> = (0..all.len())
        .map(|index| {
            let mut x = index as u64 + 0x9E37_79B9_7F4A_7C15;
            x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (x ^ (x >> 31), index)
        })
        .collect();
    numbered.sort_unstable();
    let chosen: std::collections::HashSet<usize> = numbered.into_iter().take(SAMPLES).map(|(_, index)| index).collect();
    all.into_iter().enumerate().filter(|(index, _)| chosen.contains(index)).map(|(_, sample)| sample).collect()
}
