//! `make bench`: Consort against plain `compile-file` in a warm image and against Swank, measured
//! in turns in one run on one machine.
//!
//! Ratios are to be compared; the milliseconds depend on the machine and its load. The figures of
//! other programs were measured on another machine of two cores with the same SBCL. `consort-bench
//! PART ...` measures only these parts: start, check, eval, stages, names, text, agent, profile,
//! debugging, keystrokes. The part `scale` is measured only when it is named.
//! `CONSORT_BENCH_PICTURE` names the file to which the distribution of the keystrokes' times is
//! drawn.

#![allow(clippy::print_stdout)] // it is here to print

mod agent;
mod completion;
mod debugging;
mod distribution;
mod keystrokes;
mod lisp;
mod names;
mod report;
mod scale;
mod stages;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use consort_tests::clients::{Agent, Editor, uri};
use consort_tests::place::Place;
use lisp::{Lisp, Swank};
use report::{Aim, Report, median};
use serde_json::json;

/// Rounds of operations that take tens or hundreds of milliseconds.
const ROUNDS: usize = 15;
/// Rounds of operations that take less than one.
const MANY: usize = 1000;
/// Rounds before those that count.
const WARM: usize = 50;

fn main() -> Result<()> {
    let workspace = tempfile::Builder::new().prefix("consort-bench").tempdir()?;
    let root = workspace.path().canonicalize()?;
    copy_lisp(Path::new("/usr/share/common-lisp/source/cl-ppcre"), &root.join("cl-ppcre"))
        .context("no sources of cl-ppcre (Debian's package cl-ppcre)")?;
    copy_lisp(Path::new("examples/telegraph"), &root.join("telegraph")).context("run me through `make bench`")?;
    // The pause after a keystroke is a setting, and would be measured as work.
    std::fs::write(root.join("consort.toml"), "[check]\ndebounce_ms = 0\n")?;

    let place = Place::new(root)?;
    if std::env::args().nth(1).as_deref() == Some("completion") {
        // Nothing is checked beside it.
        std::fs::write(place.workspace().join("consort.toml"), "[check]\ndebounce_ms = 60000\n")?;
        let measured =
            completion::Options::of(std::env::args().skip(2)).and_then(|options| completion::table(&place, &options));
        place.clear()?;
        return measured;
    }
    let report = Report::begin();
    let measured = measure(&report, &place);
    let cleared = place.clear();
    measured?;
    report.end();
    cleared
}

fn measure(report: &Report, place: &Place) -> Result<()> {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|one| one == part);
    if wanted("start") {
        start(report, place)?;
    }
    let mut editor = Editor::open(&mut place.command(&["lsp"]), place.workspace())?;
    editor.eval("1", "CL-USER")?;
    memory(report, place, "memory of the host, idle")?;
    for system in ["cl-ppcre", "telegraph"] {
        let loaded = editor.command("consort.loadSystem", json!({"system": system}))?;
        ensure!(loaded["loaded"] == json!(true), "{system} did not load: {loaded}");
    }
    if wanted("check") {
        checks(report, place, &mut editor)?;
    }
    let mut swank = Swank::start(place.workspace())?;
    swank.eval("(asdf:load-system \"cl-ppcre\")")?;
    if wanted("eval") {
        evaluations(report, place, &mut editor, &mut swank)?;
    }
    if wanted("stages") {
        stages::stages(report, place, &mut editor)?;
    }
    if wanted("names") {
        names::names(report, place, &mut editor, &mut swank)?;
    }
    if wanted("text") {
        outline(report, place, &mut editor)?;
        large_file(report, place, &mut editor)?;
    }
    if wanted("agent") {
        agent::calls(report, place, &mut swank)?;
    }
    if wanted("profile") {
        profiles(report, &mut editor)?;
    }
    if wanted("debugging") {
        debugging::debugging(report, place, &mut editor)?;
    }
    memory(report, place, "memory of the host, after all this")?;
    editor.close()?;
    if wanted("keystrokes") {
        let picture = std::env::var_os("CONSORT_BENCH_PICTURE").map(PathBuf::from);
        keystrokes::keystrokes(report, picture.as_deref())?;
    }
    if parts.iter().any(|part| part == "scale") {
        scale::scale(report)?;
    }
    Ok(())
}

/// From the start of `consort mcp`, with no host running and the core cached, to the first answer
/// of Lisp.
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
        // The first start may have built the core.
        if round > 0 {
            times.push(time);
        }
    }
    let others = "Swank 4.3 s with fasls to load; Alive 0.5 s warm";
    report.time("start to first answer, core cached", &times, None, Aim::Time(150.0), others);
    Ok(())
}

/// Whole-file checks against plain `compile-file`, in turns.
fn checks(report: &Report, place: &Place, editor: &mut Editor) -> Result<()> {
    let root = place.workspace();
    // The default delay after a keystroke, by whose end the next copy is ready.
    let pause = consort::config::Config::default().check.debounce;
    let mut plain = Lisp::compiler(root, &["cl-ppcre", "telegraph"])?;
    for (name, file, edit) in [
        ("cl-ppcre/api.lisp", root.join("cl-ppcre/api.lisp"), "(defun regex-replace-all"),
        ("telegraph/code.lisp", root.join("telegraph/code.lisp"), "(defun decode"),
    ] {
        let text = std::fs::read_to_string(&file)?;
        let edited = text.replacen(edit, &format!("(progn 1)\n{edit}"), 1);
        ensure!(edited != text, "{name} has no {edit}");
        editor.open_document(&file, &text)?;
        editor.diagnostics(&file)?;
        let (mut whole, mut at_once, mut one_form, mut compile) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            compile.push(plain.ask(&file.to_string_lossy())?.parse::<f64>()?);
            // A text that was not checked before, so that no answer can have been kept.
            let fresh = format!("{text}\n;; {round}\n");
            editor.change_document(&file, json!([{"text": format!("{fresh};")}]))?;
            at_once.push(timed(|| editor.diagnostics(&file))?);
            std::thread::sleep(pause);
            editor.change_document(&file, json!([{"text": fresh}]))?;
            whole.push(timed(|| editor.diagnostics(&file))?);
            std::thread::sleep(pause);
            let line = line_of(&fresh, edit);
            let at = json!({"line": line, "character": 0});
            editor.change_document(
                &file,
                json!([{"range": {"start": at, "end": at}, "text": format!("(progn {round})\n")}]),
            )?;
            one_form.push(timed(|| editor.diagnostics(&file))?);
        }
        let beside = Some(("compile-file", compile.as_slice()));
        let others = "ratios: Swank 1.6, Alive 5.4";
        report.time(&format!("{name}: check"), &whole, beside, Aim::Ratio(1.15), others);
        report.time(&format!("{name}: check, right after another"), &at_once, beside, Aim::None, "");
        report.time(&format!("{name}: check after an edit of one form"), &one_form, beside, Aim::None, "");
        editor.close_document(&file)?;
    }
    Ok(())
}

/// The round trip of `(+ 1 2)`, through each front end and through Swank.
fn evaluations(report: &Report, place: &Place, editor: &mut Editor, swank: &mut Swank) -> Result<()> {
    let mut agent = Agent::open(&mut place.command(&["mcp"]))?;
    let (mut theirs, mut lsp, mut mcp) = (Vec::new(), Vec::new(), Vec::new());
    let ours = json!({"command": "consort.eval", "arguments": [{"code": "(+ 1 2)", "package": "CL-USER"}]});
    let agents = json!({"name": "evaluate-lisp", "arguments": {"code": "(+ 1 2)"}});
    for round in 0..MANY + WARM {
        let swank_took = timed(|| swank.eval("(+ 1 2)"))?;
        let (answer, lsp_took) = editor.client.timed_request("workspace/executeCommand", ours.clone())?;
        ensure!(answer["values"] == json!(["3"]), "{answer}");
        let (answer, mcp_took) = agent.client.timed_request("tools/call", agents.clone())?;
        ensure!(answer["structuredContent"]["values"] == json!(["3"]), "{answer}");
        if round >= WARM {
            theirs.push(swank_took);
            lsp.push(in_milliseconds(lsp_took));
            mcp.push(in_milliseconds(mcp_took));
        }
    }
    agent.close()?;
    let beside = Some(("Swank", theirs.as_slice()));
    report.time("eval (+ 1 2), through LSP", &lsp, beside, Aim::Ratio(1.0), "Alive 4.2 ms");
    report.time(
        "eval (+ 1 2), through MCP",
        &mcp,
        beside,
        Aim::Ratio(1.2),
        "MCP servers that are the image 0.11-0.14 ms",
    );
    Ok(())
}

/// The outline of a file, as an editor asks for it after every pause.
fn outline(report: &Report, place: &Place, editor: &mut Editor) -> Result<()> {
    let file = place.workspace().join("cl-ppcre/api.lisp");
    let text = std::fs::read_to_string(&file)?;
    editor.open_document(&file, &text)?;
    editor.diagnostics(&file)?;
    let params = json!({"textDocument": {"uri": uri(&file)}});
    let mut times = Vec::new();
    for round in 0..200 + WARM {
        let (symbols, took) = editor.client.timed_request("textDocument/documentSymbol", params.clone())?;
        ensure!(symbols.as_array().is_some_and(|symbols| symbols.len() > 10), "{symbols}");
        if round >= WARM {
            times.push(in_milliseconds(took));
        }
    }
    report.time("cl-ppcre/api.lisp, 1,297 lines: outline", &times, None, Aim::None, "Alive 67 ms");
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
    editor.diagnostics(&file)?;
    // Requests and changes are handled in order, so the time of a change is that of a request
    // behind it, less that of the request alone.
    let nothing = json!({"command": "consort.interrupt", "arguments": [{}]});
    let (mut alone, mut behind) = (Vec::new(), Vec::new());
    for round in 0..MANY {
        let answered = |editor: &mut Editor| editor.client.request("workspace/executeCommand", nothing.clone());
        alone.push(timed(|| answered(editor))?);
        let at = json!({"line": 5000 + round % 8, "character": 0});
        let change = json!([{"range": {"start": at, "end": at}, "text": " "}]);
        behind.push(timed(|| {
            editor.change_document(&file, change)?;
            answered(editor)
        })?);
    }
    let change = (median(&behind) - median(&alone)).max(0.0);
    report.time("a change in 10,000 lines", &[change], None, Aim::Time(1.0), "");

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
    report.time("10,000 lines: until a parenthesis too many is told", &told, None, Aim::Time(50.0), "");
    editor.close_document(&file)
}

/// The cost of profiling: processor time of the same work with and without it, in turns.
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
    for ((mode, times), aim) in modes.iter().zip(&profiled).zip([1.10, 1.10, 1.20]) {
        let beside = Some(("unprofiled", plain.as_slice()));
        report.time(&format!("processor time of sorting, profiled: {mode}"), times, beside, Aim::Ratio(aim), "");
    }
    Ok(())
}

fn memory(report: &Report, place: &Place, what: &str) -> Result<()> {
    let status = place.status()?.context("no host runs")?;
    let bytes = status["host_memory"].as_f64().context("consort status --json does not tell the host's memory")?;
    report.size(what, bytes, Aim::Size(25.0));
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
    in_milliseconds(begun.elapsed())
}

fn in_milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
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
