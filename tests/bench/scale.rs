//! The growth of the times with the size of the image, of a file, and of the number of open files.
//! It takes some minutes, and is measured only on request: `consort-bench scale`.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use consort_tests::clients::Editor;
use consort_tests::place::Place;
use serde_json::json;

use crate::keystrokes::{generated, keys, middle_form};
use crate::report::{Aim, Report};
use crate::{copy_lisp, milliseconds};

/// Live data of the image, in megabytes, beside those of Consort and cl-ppcre.
const IMAGES: [usize; 4] = [0, 300, 1_000, 3_000];
/// The lines of the files.
const FILES: [usize; 5] = [100, 1_000, 6_158, 10_000, 50_000];
/// The number of files that are open at a time.
const OPEN: [usize; 3] = [1, 50, 200];
/// Edits of each kind.
const EDITS: usize = 40;
/// The place of the edits in cl-ppcre/api.lisp.
const EDITED: &str = "(defun replace-aux";

pub(crate) fn scale(report: &Report) -> Result<()> {
    for megabytes in IMAGES {
        with_editor(|place, editor| {
            if megabytes > 0 {
                let ballast = format!(
                    "(progn (defvar *ballast* (loop repeat {megabytes} collect (make-array 131072 :initial-element 0)))
                            (sb-ext:gc :full t) (length *ballast*))"
                );
                editor.eval(&ballast, "CL-USER")?;
            }
            let name = format!("image with {megabytes} MB more");
            let small = place.workspace().join("small.lisp");
            let mut times = Vec::new();
            editor.open_document(&small, "(in-package :cl-user)\n")?;
            editor.diagnostics(&small)?;
            for round in 0..EDITS {
                let text = format!("(in-package :cl-user)\n(defun small () {round})\n");
                editor.change_document(&small, json!([{"text": text}]))?;
                let begun = Instant::now();
                editor.diagnostics(&small)?;
                times.push(milliseconds(begun));
            }
            report.time(&format!("{name}: check of one form"), &times, None, Aim::None, "");
            editor.close_document(&small)?;
            let file = place.workspace().join("cl-ppcre/api.lisp");
            let text = std::fs::read_to_string(&file)?;
            measured(report, &name, place, editor, (&file, &text, EDITED))
        })?;
    }
    for lines in FILES {
        with_editor(|place, editor| {
            let file = place.workspace().join("generated.lisp");
            let text = generated(lines);
            std::fs::write(&file, &text)?;
            measured(report, &format!("file of {lines} lines"), place, editor, (&file, &text, &middle_form(lines)))
        })?;
    }
    for open in OPEN {
        with_editor(|place, editor| {
            for number in 1..open {
                let file = place.workspace().join(format!("open-{number}.lisp"));
                let text = generated(200).replace("large-", &format!("open-{number}-"));
                std::fs::write(&file, &text)?;
                editor.open_document(&file, &text)?;
            }
            let file = place.workspace().join("cl-ppcre/api.lisp");
            let text = std::fs::read_to_string(&file)?;
            measured(report, &format!("{open} open files"), place, editor, (&file, &text, EDITED))
        })?;
    }
    Ok(())
}

/// Measures keys in a file, and the memory of the chains after them.
fn measured(
    report: &Report,
    name: &str,
    place: &Place,
    editor: &mut Editor,
    (file, text, form): (&Path, &str, &str),
) -> Result<()> {
    let times = keys(place, editor, (file, text, form), EDITS, || Ok(()))?;
    report.time(&format!("{name}: a key, until its findings, p50"), &times, None, Aim::None, "");
    report.time(
        &format!("{name}: a key, until its findings, p99"),
        &[crate::report::percentile(&times, 0.99)],
        None,
        Aim::None,
        "",
    );
    let chains = place.status()?.context("no host runs")?["chains"].clone();
    let standing = chains["standing"].as_u64().unwrap_or_default();
    let bytes = chains["memory"].as_u64().unwrap_or_default();
    report.size(&format!("{name}: memory of {standing} chains"), bytes as f64, Aim::None);
    Ok(())
}

/// Calls `measure` with an editor of its own host, in whose image cl-ppcre is loaded.
fn with_editor(measure: impl FnOnce(&Place, &mut Editor) -> Result<()>) -> Result<()> {
    let directory = tempfile::Builder::new().prefix("consort-bench-scale").tempdir()?;
    let workspace = directory.path().canonicalize()?.join("workspace");
    copy_lisp(Path::new("/usr/share/common-lisp/source/cl-ppcre"), &workspace.join("cl-ppcre"))?;
    std::fs::write(workspace.join("consort.toml"), "[lisp]\nheap = \"6GB\"\n[check]\ndebounce_ms = 0\n")?;
    let place = Place::new(workspace)?;
    let trusted = place.command(&["trust", "--yes"]).output()?;
    ensure!(trusted.status.success(), "consort trust failed: {}", String::from_utf8_lossy(&trusted.stderr));
    let mut editor = Editor::open(&mut place.command(&["lsp"]), place.workspace())?;
    let loaded = editor.command("consort.loadSystem", json!({"system": "cl-ppcre"}))?;
    ensure!(loaded["loaded"] == json!(true), "cl-ppcre did not load: {loaded}");
    let result = measure(&place, &mut editor);
    let closed = editor.close();
    place.clear()?;
    result.and(closed)
}
