//! Keystrokes in texts that have a chain: from the change to the findings of the changed text, as
//! an editor gets them, beside `compile-file` of the same file.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use consort_tests::clients::Editor;
use consort_tests::place::Place;
use serde_json::json;

use crate::lisp::Lisp;
use crate::report::Report;
use crate::{copy_lisp, distribution, line_of, milliseconds};

/// Edits of each file.
const EDITS: usize = 100;
/// The time limit of the wait for a chain.
const STANDS: Duration = Duration::from_secs(120);

/// The aims for the first answer: the median and the 99th of 100, in milliseconds.
const AIMS: (f64, f64) = (20.0, 45.0);

pub(crate) fn keystrokes(report: &Report, picture: Option<&Path>) -> Result<()> {
    let directory = tempfile::Builder::new().prefix("consort-bench-keys").tempdir()?;
    let root = directory.path().canonicalize()?;
    let workspace = root.join("workspace");
    copy_lisp(Path::new("/usr/share/common-lisp/source/cl-ppcre"), &workspace.join("cl-ppcre"))?;
    let api = std::fs::read_to_string(workspace.join("cl-ppcre/api.lisp"))?;
    // Copies of the same definitions, each with its own name.
    for lines in [1_000, 6_158, 10_000] {
        std::fs::write(workspace.join(format!("{lines}.lisp")), generated(lines))?;
    }
    let place = Place::new(workspace)?;
    let mut command = place.command(&["lsp"]);
    let mut editor = Editor::open(&mut command, place.workspace())?;
    let loaded = editor.command("consort.loadSystem", json!({"system": "cl-ppcre"}))?;
    ensure!(loaded["loaded"] == json!(true), "cl-ppcre did not load: {loaded}");
    let mut plain = Lisp::compiler(place.workspace(), &["cl-ppcre"])?;
    let measured = (|| {
        let mut series = Vec::new();
        let mut measure = |name: &str, text: &str, form: &str| -> Result<()> {
            let times = edits(report, &place, (&mut editor, &mut plain), (name, text, form))?;
            series.push((format!("{name}, {} lines", text.lines().count()), times));
            Ok(())
        };
        measure("cl-ppcre/api.lisp", &api, "(defun replace-aux")?;
        for lines in [1_000, 6_158, 10_000] {
            measure(&format!("{lines}.lisp"), &generated(lines), &middle_form(lines))?;
        }
        picture.map_or(Ok(()), |file| distribution::draw(file, &series))
    })();
    let closed = editor.close();
    place.clear()?;
    measured.and(closed)
}

/// A text of so many lines.
pub(crate) fn generated(lines: usize) -> String {
    let mut text = String::from("(in-package :cl-user)\n\n");
    for n in 0..lines / 8 {
        text.push_str(&format!(
            "(defun large-{n} (a b)\n  \"One of many.\"\n  (let ((c (+ a b))\n        (d (- a b)))\n    (when (> c d)\n      (incf c {n}))\n    (list c d)))\n\n"
        ));
    }
    text
}

/// The beginning of the form in the middle of a generated text of so many lines.
pub(crate) fn middle_form(lines: usize) -> String {
    format!("(defun large-{} ", lines / 16)
}

/// Measures the edits of a file beside `compile-file`; returns their times in milliseconds.
fn edits(
    report: &Report,
    place: &Place,
    (editor, plain): (&mut Editor, &mut Lisp),
    (name, text, form): (&str, &str, &str),
) -> Result<Vec<f64>> {
    let file = place.workspace().join(name);
    let mut compile = Vec::new();
    let times = keys(place, editor, (&file, text, form), EDITS, || {
        compile.push(plain.ask(&file.to_string_lossy())?.parse::<f64>()?);
        Ok(())
    })?;
    let counts = place.status()?.context("no host runs")?["chains"].clone();
    report.spread(&format!("{name}: a key, until its findings"), &times, Some(("compile-file", &compile)), AIMS);
    println!("    {counts}");
    editor.close_document(&file)?;
    Ok(times)
}

/// Opens a file and waits for its chain; puts calls of unknown functions into a form and takes them
/// out again. Returns the milliseconds from each change to the finding of the new name.
/// `between` is called before every tenth edit.
pub(crate) fn keys(
    place: &Place,
    editor: &mut Editor,
    (file, text, form): (&Path, &str, &str),
    edits: usize,
    mut between: impl FnMut() -> Result<()>,
) -> Result<Vec<f64>> {
    editor.open_document(file, text)?;
    editor.diagnostics(file)?;
    // The last line of the form, where its body is.
    let at = {
        let first = line_of(text, form);
        let length = text.lines().skip(first).take_while(|line| !line.is_empty()).count();
        first + length - 1
    };
    let start = json!({"line": at, "character": 0});
    let put = |editor: &mut Editor, old: usize, new: &str| {
        let end = json!({"line": at, "character": old});
        editor.change_document(file, json!([{"range": {"start": start, "end": end}, "text": new}]))
    };
    let standing =
        || -> Result<u64> { Ok(place.status()?.context("no host runs")?["chains"]["standing"].as_u64().unwrap_or(0)) };
    put(editor, 0, " ")?;
    let begun = Instant::now();
    while standing()? == 0 {
        ensure!(begun.elapsed() < STANDS, "{} got no chain", file.display());
        editor.diagnostics(file)?;
    }
    let (mut times, mut old) = (Vec::new(), 1);
    for round in 0..edits {
        if round % 10 == 0 {
            between()?;
        }
        let unknown = format!("bench-unknown-{round}");
        let call = format!("({unknown}) ");
        let begun = Instant::now();
        put(editor, old, &call)?;
        let message = unknown.to_uppercase();
        editor.published(file, |items| {
            items.iter().any(|item| item["message"].as_str().is_some_and(|text| text.contains(&message)))
        })?;
        times.push(milliseconds(begun));
        old = call.len();
    }
    Ok(times)
}
