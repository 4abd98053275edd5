//! `make bench`: Consort against plain `compile-file` in a warm image and against Swank, measured in turns in one run on one machine.
//!
//! Ratios are what to look at; the milliseconds belong to this machine at this hour.

#![allow(clippy::print_stdout)] // it is here to print

mod lisp;
mod names;
mod report;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use consort_tests::clients::{Agent, Editor, uri};
use consort_tests::place::Place;
use lisp::{Lisp, Swank};
use report::{Report, median};
use serde_json::json;

/// Rounds of what takes tens or hundreds of milliseconds.
const ROUNDS: usize = 15;
/// Rounds of what takes less than one.
const MANY: usize = 1000;

fn main() -> Result<()> {
    let workspace = tempfile::Builder::new().prefix("consort-bench").tempdir()?;
    let root = workspace.path().canonicalize()?;
    copy_lisp(Path::new("/usr/share/common-lisp/source/cl-ppcre"), &root.join("cl-ppcre"))
        .context("no sources of cl-ppcre (Debian's package cl-ppcre)")?;
    copy_lisp(Path::new("examples/telegraph"), &root.join("telegraph")).context("run me through `make bench`")?;
    // The pause after a keystroke is a setting and no work.
    std::fs::write(root.join("consort.toml"), "[check]\ndebounce_ms = 0\n")?;

    let report = Report::begin();
    let place = Place::new(root)?;
    let measured = measure(&report, &place);
    let cleared = place.clear();
    measured?;
    cleared
}

fn measure(report: &Report, place: &Place) -> Result<()> {
    start(report, place)?;
    let mut editor = Editor::open(&mut place.command(&["lsp"]), place.workspace())?;
    editor.eval("1", "CL-USER")?;
    memory(report, place, "memory of the host, idle")?;
    checks(report, place, &mut editor)?;
    evaluations(report, place, &mut editor)?;
    names::names(report, place, &mut editor)?;
    expansions(report, place)?;
    outline(report, place, &mut editor)?;
    large_file(report, place, &mut editor)?;
    profiles(report, &mut editor)?;
    memory(report, place, "memory of the host, after all this")?;
    editor.close()
}

/// From the start of `consort mcp`, with no host running and the core cached, to the first answer of Lisp.
fn start(report: &Report, place: &Place) -> Result<()> {
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let begun = Instant::now();
        let mut agent = Agent::open(&mut place.command(&["mcp"]))?;
        let answer = agent.evaluate("(+ 1 2)")?;
        let time = milliseconds(begun);
        ensure!(answer.contains("=> 3"), "{answer}");
        agent.close()?;
        place.clear()?;
        // The first may have built the core.
        if round > 0 {
            times.push(time);
        }
    }
    report.time(
        "start to first answer, core cached",
        median(&mut times),
        "150 ms or less; Swank 4.3 s with fasls to load, Alive 0.5 s warm",
    );
    Ok(())
}

/// Whole-file checks against plain `compile-file`, in turns.
fn checks(report: &Report, place: &Place, editor: &mut Editor) -> Result<()> {
    let root = place.workspace();
    let mut plain = Lisp::compiler(root, &["cl-ppcre", "telegraph"])?;
    for system in ["cl-ppcre", "telegraph"] {
        let loaded = editor.command("consort.loadSystem", json!({"system": system}))?;
        ensure!(loaded["loaded"] == json!(true), "{system} did not load: {loaded}");
    }
    for (name, file, edit) in [
        ("cl-ppcre/api.lisp", root.join("cl-ppcre/api.lisp"), "(defun regex-replace-all"),
        ("telegraph/code.lisp", root.join("telegraph/code.lisp"), "(defun decode"),
    ] {
        let text = std::fs::read_to_string(&file)?;
        let edited = text.replacen(edit, &format!("(progn 1)\n{edit}"), 1);
        ensure!(edited != text, "{name} has no {edit}");
        editor.open_document(&file, &text)?;
        editor.diagnostics(&file)?;
        let (mut whole, mut one_form, mut compile) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            compile.push(plain.ask(&file.to_string_lossy())?.parse::<f64>()?);
            // A text that was not checked before, so that nothing can have been remembered.
            let fresh = format!("{text}\n;; {round}\n");
            editor.change_document(&file, json!([{"text": fresh}]))?;
            whole.push(timed(|| editor.diagnostics(&file))?);
            let line = line_of(&fresh, edit);
            let at = json!({"line": line, "character": 0});
            editor.change_document(
                &file,
                json!([{"range": {"start": at, "end": at}, "text": format!("(progn {round})\n")}]),
            )?;
            one_form.push(timed(|| editor.diagnostics(&file))?);
        }
        let base = median(&mut compile);
        report.time(&format!("{name}: plain compile-file, warm image"), base, "");
        report.ratio(
            &format!("{name}: whole-file check"),
            median(&mut whole),
            base,
            "1.15 or less; SLIME 1.6, Alive 5.4",
        );
        report.ratio(&format!("{name}: check after a one-form edit"), median(&mut one_form), base, "");
        editor.close_document(&file)?;
    }
    Ok(())
}

/// `(+ 1 2)`, there and back, through each door and through Swank's.
fn evaluations(report: &Report, place: &Place, editor: &mut Editor) -> Result<()> {
    let mut swank = Swank::start(place.workspace())?;
    let mut agent = Agent::open(&mut place.command(&["mcp"]))?;
    let (mut theirs, mut lsp, mut mcp) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..MANY + 50 {
        let times = [
            timed(|| swank.eval("(+ 1 2)"))?,
            timed(|| editor.eval("(+ 1 2)", "CL-USER"))?,
            timed(|| agent.evaluate("(+ 1 2)"))?,
        ];
        if round >= 50 {
            theirs.push(times[0]);
            lsp.push(times[1]);
            mcp.push(times[2]);
        }
    }
    agent.close()?;
    let base = median(&mut theirs);
    report.time("eval (+ 1 2), p50: Swank", base, "");
    report.ratio("eval (+ 1 2), p50: through LSP", median(&mut lsp), base, "1.0 or less");
    report.ratio("eval (+ 1 2), p50: through MCP", median(&mut mcp), base, "1.2 or less");
    Ok(())
}

/// `macroexpand-form`, of a macro of the standard and of one of the user's.
fn expansions(report: &Report, place: &Place) -> Result<()> {
    let mut agent = Agent::open(&mut place.command(&["mcp"]))?;
    agent.evaluate("(defmacro bench-twice (form) `(progn ,form ,form))")?;
    for (what, form, rounds, aim) in [
        ("of a LOOP", "(loop for i from 1 to 10 collect (* i i))", MANY, "peers, in the image, 0.2-1.2 ms"),
        ("of a user's macro, in a copy", "(bench-twice (f))", 10 * ROUNDS, ""),
    ] {
        let mut times = Vec::new();
        for round in 0..rounds + 10 {
            let begun = Instant::now();
            let answer = agent.call("macroexpand-form", json!({"form": form}))?;
            ensure!(answer["structuredContent"]["expanded"] == json!(true), "no expansion: {answer}");
            if round >= 10 {
                times.push(milliseconds(begun));
            }
        }
        report.time(&format!("macroexpand-form {what}, p50"), median(&mut times), aim);
    }
    agent.close()
}

/// The outline of a file, as an editor asks for it after every pause.
fn outline(report: &Report, place: &Place, editor: &mut Editor) -> Result<()> {
    let file = place.workspace().join("cl-ppcre/api.lisp");
    let text = std::fs::read_to_string(&file)?;
    editor.open_document(&file, &text)?;
    let params = json!({"textDocument": {"uri": uri(&file)}});
    let mut times = Vec::new();
    for round in 0..220 {
        let time = timed(|| {
            let symbols = editor.client.request("textDocument/documentSymbol", params.clone())?;
            ensure!(symbols.as_array().is_some_and(|symbols| symbols.len() > 10), "{symbols}");
            Ok(())
        })?;
        if round >= 20 {
            times.push(time);
        }
    }
    report.time("cl-ppcre/api.lisp: documentSymbol, p50", median(&mut times), "Alive 67 ms");
    editor.close_document(&file)
}

/// Keystrokes in a file of 10,000 lines.
fn large_file(report: &Report, place: &Place, editor: &mut Editor) -> Result<()> {
    let file: PathBuf = place.workspace().join("large.lisp");
    let mut text = String::from("(in-package :cl-user)\n\n");
    for n in 0..1250 {
        text.push_str(&format!(
            "(defun large-{n} (a b)\n  \"One of many.\"\n  (let ((c (+ a b))\n        (d (- a b)))\n    (when (> c d)\n      (incf c {n}))\n    (list c d)))\n\n"
        ));
    }
    ensure!(text.lines().count() == 10_002, "{} lines", text.lines().count());
    editor.open_document(&file, &text)?;
    // Handled in order: what a request takes behind a change, less what it takes alone, is what the change took.
    let (mut alone, mut behind) = (Vec::new(), Vec::new());
    for round in 0..MANY {
        alone.push(timed(|| editor.command("consort.interrupt", json!({})))?);
        let at = json!({"line": 5000 + round % 8, "character": 0});
        behind.push(timed(|| {
            editor.change_document(&file, json!([{"range": {"start": at, "end": at}, "text": " "}]))?;
            editor.command("consort.interrupt", json!({}))
        })?);
    }
    let change = (median(&mut behind) - median(&mut alone)).max(0.0);
    report.time("a change in 10,000 lines", change, "1 ms or less");

    let mut told = Vec::new();
    for round in 0..ROUNDS {
        let at = |character: u32| json!({"line": 2, "character": character});
        let open = round % 2 == 0;
        let begun = Instant::now();
        if open {
            editor.change_document(&file, json!([{"range": {"start": at(0), "end": at(0)}, "text": "("}]))?;
        } else {
            editor.change_document(&file, json!([{"range": {"start": at(0), "end": at(1)}, "text": ""}]))?;
        }
        let wanted = |params: &serde_json::Value| {
            let broken = params["diagnostics"]
                .as_array()
                .is_some_and(|items| items.iter().any(|item| item["severity"] == json!(1)));
            broken == open
        };
        editor.client.wait_for("textDocument/publishDiagnostics", wanted)?;
        if open {
            told.push(milliseconds(begun));
        }
    }
    report.time("a parenthesis too many in 10,000 lines: until the editor is told", median(&mut told), "50 ms or less");
    editor.close_document(&file)
}

/// What profiling costs: processor time that the same work takes with and without it, in turns.
fn profiles(report: &Report, editor: &mut Editor) -> Result<()> {
    let define = "(defun bench-work () (let ((all '())) (dotimes (i 60) (push (sort (loop for n below 20000 collect (random n-max)) #'<) all) (setf all (last all))) all)) \
                  (defun bench-time () (let ((start (get-internal-run-time))) (bench-work) (- (get-internal-run-time) start)))";
    editor.eval(&define.replace("n-max", "1000000"), "CL-USER")?;
    let units = |value: &serde_json::Value| -> Result<f64> {
        let text = value["values"][0].as_str().context("no time was told")?;
        Ok(text.parse::<f64>()? / 1000.0)
    };
    let modes = ["cpu", "time", "alloc"];
    let (mut plain, mut profiled) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for _ in 0..ROUNDS {
        plain.push(units(&editor.command("consort.eval", json!({"code": "(bench-time)"}))?)?);
        for (mode, times) in modes.iter().zip(&mut profiled) {
            let answer = editor.command("consort.profileForm", json!({"code": "(bench-time)", "mode": mode}))?;
            times.push(units(&answer["profile"])?);
        }
    }
    let base = median(&mut plain);
    report.time("sorting, processor time without a profile", base, "");
    for ((mode, mut times), aim) in modes.iter().zip(profiled).zip(["1.05 to 1.10", "1.05 to 1.10", "1.10 to 1.20"]) {
        report.ratio(
            &format!("the same, profiled in mode {mode}"),
            median(&mut times),
            base,
            &format!("{aim} or less"),
        );
    }
    Ok(())
}

fn memory(report: &Report, place: &Place, what: &str) -> Result<()> {
    let status = place.status()?.context("no host runs")?;
    let bytes = status["host_memory"].as_f64().context("consort status --json does not tell the host's memory")?;
    report.size(what, bytes, "25 MB or less");
    Ok(())
}

fn line_of(text: &str, what: &str) -> usize {
    text.lines().position(|line| line.starts_with(what)).unwrap_or_default()
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<f64> {
    let begun = Instant::now();
    work()?;
    Ok(milliseconds(begun))
}

fn milliseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}

/// The Lisp files of a directory, without its subdirectories.
fn copy_lisp(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "lisp" || extension == "asd") {
            std::fs::copy(&path, to.join(path.file_name().context("a file without a name")?))?;
        }
    }
    Ok(())
}
