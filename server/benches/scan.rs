//! How fast the scanner is: `cargo bench -p consort --bench scan -- [directory of Lisp files ...]`.
//!
//! Prints MB/s for each directory, and the time of one edit, structural diagnostics included, in a
//! document of 10,000 lines.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use consort::ide::structure;
use consort::text::document::{Document, Edit};
use consort::text::position::{Position, PositionEncoding};
use consort::text::toplevel::Scan;

const DIRECTORIES: [&str; 2] = ["/usr/share/common-lisp/source/ironclad", "/usr/share/sbcl-source"];
const LINES: usize = 10_000;
const TRIES: usize = 50;

fn main() {
    let given: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let directories = if given.is_empty() { DIRECTORIES.map(str::to_owned).to_vec() } else { given };
    let mut texts = Vec::new();
    for directory in &directories {
        texts = lisp_texts(Path::new(directory));
        throughput(directory, &texts);
    }
    let mut document = String::new();
    for text in texts.iter().filter(|text| (200..1500).contains(&text.lines().count())) {
        document.push_str(text);
        document.push('\n');
        if document.lines().count() >= LINES {
            return edits(&document);
        }
    }
    println!("no {LINES} lines in the last directory: edits were not measured");
}

fn throughput(name: &str, texts: &[String]) {
    let bytes: usize = texts.iter().map(String::len).sum();
    // The best of each file by itself: least disturbed by whatever else the machine does.
    let best = |text: &String| (0..TRIES).map(|_| timed(|| Scan::of(text))).min().unwrap_or_default();
    let speed = bytes as f64 / texts.iter().map(best).sum::<Duration>().as_secs_f64() / 1e6;
    println!("{name}: {} files, {:.1} MB, {speed:.0} MB/s", texts.len(), bytes as f64 / 1e6);
}

fn edits(text: &str) {
    println!("a document of {} lines, {:.0} kB", text.lines().count(), text.len() as f64 / 1e3);
    let second = text.match_indices("\n(def").nth(1).map_or(0, |(byte, _)| text[..=byte].lines().count());
    let last = text.lines().count() - 50;
    for (name, line) in [("near the top", second), ("near the end", last)] {
        for typed in ["x", "(", ")", "\"", "|", "#|", ";"] {
            let mut document = Document::new(text, 0);
            let (mut typing, mut undoing) = (Vec::new(), Vec::new());
            for _ in 0..TRIES {
                typing.push(timed(|| edit(&mut document, line, 0, typed)));
                undoing.push(timed(|| edit(&mut document, line, typed.len(), "")));
            }
            println!("  {typed:3} {name}: typed {}, taken back {}", median(typing), median(undoing));
        }
    }
    for open in ["(", "\"", "|", "#|"] {
        let mut document = Document::new(text, 0);
        edit(&mut document, second, 0, open);
        for (name, line) in [("beside it", second), ("near the end", last)] {
            let times = (0..TRIES).map(|i| timed(|| edit(&mut document, line, i % 2, ["x", ""][i % 2])));
            println!("  {open:3} open near the top, a letter {name}: {}", median(times.collect()));
        }
    }
}

/// Replace the first `replaced` characters behind the first one of a line, and find what is wrong.
fn edit(document: &mut Document, line: usize, replaced: usize, by: &str) -> usize {
    let at = |column: usize| Position { line: line as u32, column: 1 + column as u32 };
    let edit = Edit { range: Some((at(0), at(replaced))), text: by.to_owned() };
    let applied = document.apply(document.version() + 1, PositionEncoding::Utf16, &[edit]);
    usize::from(applied.is_ok()) + structure::check(document).diagnostics.len()
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> String {
    times.sort();
    let worst = times.last().copied().unwrap_or_default();
    format!("{:.0} us (worst {:.0})", times[times.len() / 2].as_secs_f64() * 1e6, worst.as_secs_f64() * 1e6)
}

fn lisp_texts(directory: &Path) -> Vec<String> {
    let mut files = Vec::new();
    lisp_files(directory, &mut files);
    files.sort();
    files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

fn lisp_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => lisp_files(&path, files),
            Ok(_) if path.extension().is_some_and(|extension| extension == "lisp") => files.push(path),
            _ => {}
        }
    }
}
