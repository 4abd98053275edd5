//! `make completion-table`: how often the name that was meant is among the first completions, on
//! names of real code cut off behind three characters; Swank's two kinds of completion on the same
//! samples.

#![allow(clippy::print_stderr, reason = "a table in a terminal")]

mod misses;
mod samples;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use consort::text::document::Document;
use consort::text::forms::package_at;
use consort::text::position::{PositionEncoding, to_position};
use consort_tests::clients::{Editor, uri};
use consort_tests::place::Place;
use serde_json::{Value, json};

use self::misses::Misses;
use crate::in_milliseconds;
use crate::lisp::Swank;
use crate::report::median;

/// The characters of a name that are typed.
const TYPED: usize = 3;
/// The directory of Debian's systems.
const SOURCES: &str = "/usr/share/common-lisp/source";
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
/// Systems that the ranking was not made with, for `others`.
const OTHERS: [(&str, &str); 8] = [
    ("fiveam", "fiveam"),
    ("kmrcl", "kmrcl"),
    ("babel", "babel"),
    ("bordeaux-threads", "bordeaux-threads"),
    ("cl-cffi", "cffi"),
    ("cl-fad", "cl-fad"),
    ("md5", "md5"),
    ("cl-split-sequence", "split-sequence"),
];

/// The knowledge that completion has besides the texts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Image {
    /// The systems are loaded.
    Loaded,
    /// An image runs, with none of the systems; their files are in the workspace.
    Unloaded,
    /// There is no image; their files are in the workspace.
    None,
}

/// The options of a measurement, from the words of a command line.
pub(crate) struct Options {
    image: Image,
    systems: &'static [(&'static str, &'static str)],
    samples: usize,
    seed: u64,
    swank: bool,
    verbose: bool,
    /// The text behind the top-level form is not written yet.
    growing: bool,
}

impl Options {
    /// Reads the options: `others`, `unloaded`, `no-image`, `growing`, `misses`, `alone` (without
    /// Swank), `samples=N`, `seed=N`.
    pub(crate) fn of(words: impl Iterator<Item = String>) -> Result<Options> {
        let mut options = Options {
            image: Image::Loaded,
            systems: &SYSTEMS,
            samples: 2000,
            seed: 0,
            swank: true,
            verbose: false,
            growing: false,
        };
        for word in words {
            match (word.as_str(), word.split_once('=')) {
                ("others", _) => options.systems = &OTHERS,
                ("unloaded", _) => options.image = Image::Unloaded,
                ("no-image", _) => options.image = Image::None,
                ("growing", _) => options.growing = true,
                ("misses", _) => options.verbose = true,
                ("alone", _) => options.swank = false,
                (_, Some(("samples", number))) => options.samples = number.parse()?,
                (_, Some(("seed", number))) => options.seed = number.parse()?,
                _ => anyhow::bail!(
                    "{word:?} is no option: others, unloaded, no-image, growing, misses, alone, samples=N, seed=N"
                ),
            }
        }
        options.swank &= options.image == Image::Loaded;
        Ok(options)
    }
}

/// Counts of the samples whose name was first, in the first five and in the first twenty.
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

/// Prints the table, and, with the option `misses`, the names that were not in the first five.
pub(crate) fn table(place: &Place, options: &Options) -> Result<()> {
    let configuration = place.workspace().join(".configuration");
    if options.image == Image::None {
        std::fs::create_dir_all(configuration.join("consort"))?;
        let none = "[lisp]\ncommand = [\"/no/such/lisp\"]\n";
        std::fs::write(configuration.join("consort/config.toml"), none)?;
    }
    let mut command = place.command(&["lsp"]);
    if options.image == Image::None {
        command.env("XDG_CONFIG_HOME", &configuration);
    }
    let mut editor = Editor::open(&mut command, place.workspace())?;
    let mut swank = match options.swank {
        true => Swank::start(place.workspace())
            .inspect_err(|error| eprintln!("Swank's figures are left out: {error:#}"))
            .ok(),
        false => None,
    };
    if let Some(swank) = &mut swank {
        swank.eval("(swank:swank-require :swank-fuzzy)")?;
    }
    let (mut files, mut seen) = (Vec::new(), Vec::new());
    for (directory, system) in options.systems {
        let root = Path::new(SOURCES).join(directory);
        if !root.is_dir() {
            eprintln!("{system} is not installed: left out");
            continue;
        }
        seen.push(*system);
        if options.image != Image::Loaded {
            files.extend(copied(&root, &place.workspace().join(directory))?);
            continue;
        }
        let loaded = editor.command("consort.loadSystem", json!({"system": system}))?;
        ensure!(loaded["loaded"] == json!(true), "{system} did not load: {loaded}");
        if let Some(swank) = &mut swank {
            swank.eval(&format!("(asdf:load-system {system:?})"))?;
        }
        files.extend(lisp_files(&root));
    }
    let texts: Vec<Document> = files
        .iter()
        .map(|file| Ok(Document::new(&consort::text::decode(std::fs::read(file)?), 0)))
        .collect::<Result<_>>()?;
    let mut samples = Vec::new();
    for (index, document) in texts.iter().enumerate() {
        samples.extend(samples::uses(index, document));
    }
    let all = samples.len();
    let samples = samples::drawn(samples, options.samples, options.seed);
    println!(
        "{} names of {all} in {} files of {}; {TYPED} characters typed.\n",
        samples.len(),
        files.len(),
        seen.join(", ")
    );
    let mut ours: BTreeMap<&str, (usize, Found)> = BTreeMap::new();
    let (mut simple, mut fuzzy) = (ours_empty(), ours_empty());
    let mut times = Vec::new();
    let mut misses = Misses::of(&texts);
    let mut open: Option<usize> = None;
    for sample in &samples {
        let (file, document) = (&files[sample.file], &texts[sample.file]);
        if open != Some(sample.file) {
            if let Some(before) = open {
                editor.close_document(&files[before])?;
            }
            editor.open_document(file, &document.text().to_string())?;
            if options.image != Image::None {
                warm(&mut editor, file)?;
            }
            open = Some(sample.file);
        }
        let at = |offset: usize| {
            let position = to_position(document.text(), offset, PositionEncoding::Utf16);
            json!({"line": position.line, "character": position.column})
        };
        let cut = sample.span.start + TYPED;
        // Text that a person has not typed yet is left out: the tail of the name, or all behind it
        // up to the end of the form.
        let end = match options.growing {
            true => samples::end_of_form(document, sample.span.start).max(sample.span.end),
            false => sample.span.end,
        };
        let mut replace = |start: usize, end: usize, text: &str| {
            editor.change_document(file, json!([{"range": {"start": at(start), "end": at(end)}, "text": text}]))
        };
        let tail = document.text().slice(cut..sample.span.end).to_string();
        let behind = document.text().slice(end..).to_string();
        if options.growing {
            replace(end, document.text().len_chars(), "")?;
        }
        replace(cut, sample.span.end, "")?;
        let params = json!({"textDocument": {"uri": uri(file)}, "position": at(cut)});
        let (answer, took) = editor.client.timed_request("textDocument/completion", params)?;
        times.push(in_milliseconds(took));
        let mut replace = |start: usize, end: usize, text: &str| {
            editor.change_document(file, json!([{"range": {"start": at(start), "end": at(end)}, "text": text}]))
        };
        replace(cut, cut, &tail)?;
        if options.growing {
            replace(end, end, &behind)?;
        }
        let labels: Vec<String> = answer["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|item| Some(item["textEdit"]["newText"].as_str()?.to_lowercase()))
            .collect();
        let wanted = sample.name.to_lowercase();
        let place = labels.iter().position(|label| *label == wanted);
        misses.add(sample, place);
        if options.verbose && place.is_none_or(|place| place > 4) {
            let line = document.text().char_to_line(cut) + 1;
            println!(
                "{place:?} {wanted} ({}) {}:{line} {:?}",
                misses.class(sample),
                file.display(),
                &labels[..labels.len().min(6)]
            );
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
    misses.print();
    println!("\nAn answer through LSP: median {:.2} ms, 95% within {high:.2} ms.", median(&times));
    editor.close()
}

fn ours_empty() -> BTreeMap<&'static str, Found> {
    BTreeMap::new()
}

/// Asks until the answers show that the index has the systems that were loaded.
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

/// Copies the Lisp files of a system into the workspace; returns the copies.
fn copied(root: &Path, to: &Path) -> Result<Vec<PathBuf>> {
    lisp_files(root)
        .into_iter()
        .map(|file| {
            let copy = to.join(file.strip_prefix(root)?);
            copy.parent().map(std::fs::create_dir_all).transpose()?;
            std::fs::copy(&file, &copy)?;
            Ok(copy)
        })
        .collect()
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
