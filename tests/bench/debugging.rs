//! Stopped programs, frozen failures, probes and recordings: what they take, and what they cost the
//! program.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use consort_tests::clients::{Agent, Editor};
use consort_tests::debugger::Debugger;
use consort_tests::place::Place;
use serde_json::{Value, json};

use crate::report::{Aim, Report, median};
use crate::{MANY, ROUNDS, copy_lisp, milliseconds};

/// Stops of which the time is taken.
const STOPS: usize = 50;
/// Failures of each kind.
const FAILURES: usize = 40;
/// The files of cl-ppcre whose code runs while a text is matched.
const MATCHING: [&str; 3] = ["closures.lisp", "repetition-closures.lisp", "scanner.lisp"];
/// Live data of the image, in megabytes, with the aim for the cost of a frozen failure.
const HEAPS: [(usize, f64); 2] = [(0, 5.0), (275, 12.0)];
/// Runs of a form whose recording has more events than are kept.
const RECORDED: usize = 300_000;

/// Needs cl-ppcre loaded.
pub(crate) fn debugging(report: &Report, place: &Place, editor: &mut Editor) -> Result<()> {
    stops(report, place, editor)?;
    probes(report, place, editor)?;
    recording(report, editor)?;
    for (megabytes, aim) in HEAPS {
        frozen(report, megabytes, aim)?;
    }
    Ok(())
}

/// From the request of an evaluation that fails to the frames of its stop, and code in a frame.
fn stops(report: &Report, place: &Place, editor: &mut Editor) -> Result<()> {
    let define = "(progn (defun bench-fails (x) (restart-case (error \"boom ~A\" x) (use-other (v) v))) \
                  (defun bench-outer (n) (let ((k (* 2 n))) (list (bench-fails k) k))))";
    editor.eval(define, "CL-USER")?;
    let mut debugger = Debugger::start(place.command(&["dap", "--workspace", &place.workspace().to_string_lossy()]));
    let (mut shown, mut evaluated) = (Vec::new(), Vec::new());
    for round in 0..STOPS + 5 {
        let begun = Instant::now();
        let request = debugger.begin("evaluate", json!({"expression": "(cl-user::bench-outer 21)", "context": "repl"}));
        let thread = debugger.event("stopped", |_| true)["threadId"].clone();
        let frames = debugger.ask("stackTrace", json!({"threadId": thread, "startFrame": 0, "levels": 20}));
        if round >= 5 {
            shown.push(milliseconds(begun));
        }
        let frame = frames["stackFrames"][1]["id"].clone();
        ensure!(frames["stackFrames"][1]["name"] == "BENCH-OUTER", "{frames}");
        if round == STOPS + 4 {
            for _ in 0..MANY {
                let begun = Instant::now();
                let answer =
                    debugger.ask("evaluate", json!({"expression": "(+ n 1)", "frameId": frame, "context": "watch"}));
                evaluated.push(milliseconds(begun));
                ensure!(answer["result"] == "22", "{answer}");
            }
        }
        debugger.ask("terminateThreads", json!({"threadIds": [thread]}));
        let _ = debugger.wait(request);
    }
    debugger.leave();
    report.time("an error, until its frames are shown, through DAP", &shown, None, Aim::Time(30.0), "");
    report.time("code in a frame, through DAP", &evaluated[MANY / 10..], None, Aim::Time(1.0), "");
    Ok(())
}

/// The processor time of matching with cl-ppcre, all of whose matching code has idle probes, beside
/// the plain code.
fn probes(report: &Report, place: &Place, editor: &mut Editor) -> Result<()> {
    let define = "(defun bench-scans () (let ((scanner (cl-ppcre:create-scanner \"(a|b)*c[def]+(?:g{2,3}|h)\")) \
                    (text (format nil \"~{~A~}\" (loop repeat 400 collect \"xxabababcdefggyyz\")))) \
                    (let ((start (get-internal-run-time))) \
                      (loop repeat 20 do (cl-ppcre:do-matches (from to scanner text))) \
                      (- (get-internal-run-time) start))))";
    editor.eval(define, "CL-USER")?;
    let taken = |editor: &mut Editor| -> Result<f64> {
        let answer = editor.command("consort.eval", json!({"code": "(bench-scans)", "package": "CL-USER"}))?;
        Ok(answer["values"][0].as_str().context("no time was told")?.parse::<f64>()? / 1000.0)
    };
    let (mut plain, mut probed) = (Vec::new(), Vec::new());
    let mut debugger = Debugger::start(place.command(&["dap", "--workspace", &place.workspace().to_string_lossy()]));
    for _ in 0..ROUNDS {
        plain.push(taken(editor)?);
    }
    let mut verified = 0;
    let sets = |debugger: &mut Debugger, name: &str, lines: Vec<usize>| {
        let file = place.workspace().join("cl-ppcre").join(name);
        let lines: Vec<Value> = lines.iter().map(|line| json!({"line": line})).collect();
        debugger.ask("setBreakpoints", json!({"source": {"path": file}, "breakpoints": lines}))
    };
    for name in MATCHING {
        let text = std::fs::read_to_string(place.workspace().join("cl-ppcre").join(name))?;
        let definers = ["(defun ", "(defmethod "];
        let starts = text.lines().enumerate().filter(|(_, line)| definers.iter().any(|one| line.starts_with(one)));
        let answer = sets(&mut debugger, name, starts.map(|(line, _)| line + 1).collect());
        let all = answer["breakpoints"].as_array().context("no breakpoints were told")?;
        verified += all.iter().filter(|one| one["verified"] == true).count();
    }
    ensure!(verified > 20, "only {verified} definitions have probes");
    for _ in 0..ROUNDS {
        probed.push(taken(editor)?);
    }
    for name in MATCHING {
        sets(&mut debugger, name, Vec::new());
    }
    debugger.leave();
    let what = format!("processor time of matching, {verified} definitions probed");
    report.time(&what, &probed, Some(("plain", &plain)), Aim::Ratio(2.0), "");
    let after: Vec<f64> = (0..ROUNDS).map(|_| taken(editor)).collect::<Result<_>>()?;
    report.time("the same, after the last breakpoint was removed", &after, Some(("plain", &plain)), Aim::None, "");
    Ok(())
}

/// The time of an event that is recorded.
fn recording(report: &Report, editor: &mut Editor) -> Result<()> {
    let code = |runs: usize| format!("(let ((sum 0)) (dotimes (i {runs}) (setf sum (+ sum i))) sum)");
    let mut times = Vec::new();
    for _ in 0..5 {
        let mut took = |runs| -> Result<(f64, f64)> {
            let begun = Instant::now();
            let answer = editor.command("consort.record", json!({"code": code(runs), "package": "CL-USER"}))?;
            let (first, events) = (&answer["recording"]["first"], &answer["recording"]["events"]);
            let events = first.as_f64().zip(events.as_f64()).with_context(|| format!("no events: {answer}"))?;
            Ok((milliseconds(begun), events.0 + events.1))
        };
        let ((short, few), (long, many)) = (took(1)?, took(RECORDED)?);
        times.push((long - short) / (many - few));
    }
    report.time("an event that is recorded, 1,000 times", &[1000.0 * median(&times)], None, Aim::Time(0.2), "");
    Ok(())
}

/// What a frozen failure costs the failing evaluation of an agent, and the memory that it takes.
fn frozen(report: &Report, megabytes: usize, aim: f64) -> Result<()> {
    let mut times = [Vec::new(), Vec::new()];
    let mut held = 0.0;
    for (kept, times) in [0, 4].iter().zip(&mut times) {
        let directory = tempfile::Builder::new().prefix("consort-bench-frozen").tempdir()?;
        let workspace = directory.path().canonicalize()?.join("workspace");
        copy_lisp(Path::new("/usr/share/common-lisp/source/cl-ppcre"), &workspace.join("cl-ppcre"))?;
        std::fs::write(workspace.join("consort.toml"), format!("[debug]\nfrozen = {kept}\n"))?;
        let place = Place::new(workspace)?;
        let mut agent = Agent::open(&mut place.command(&["mcp"]))?;
        agent.evaluate(&format!(
            "(progn (defvar *ballast* (loop repeat {megabytes} collect (make-array 131072 :initial-element 0)))
                    (sb-ext:gc :full t) (length *ballast*))"
        ))?;
        agent.evaluate("(defun bench-fails (x) (error \"boom ~A\" x))")?;
        let failing = json!({"name": "evaluate-lisp", "arguments": {"code": "(list (bench-fails 1))"}});
        for round in 0..FAILURES + 5 {
            let begun = Instant::now();
            let answer = agent.client.request("tools/call", failing.clone())?;
            if round >= 5 {
                times.push(milliseconds(begun));
            }
            ensure!(answer["isError"] == true, "{answer}");
        }
        if *kept > 0 {
            held = memory_of_failures(&place)?;
        }
        agent.close()?;
        place.clear()?;
    }
    let [without, with] = times;
    let cost = median(&with) - median(&without);
    let what = format!("a frozen failure, {megabytes} MB more in the image");
    report.time(&what, &[cost], Some(("the failure alone", &without)), Aim::Time(aim), "");
    report.size(&format!("memory of 4 failures, {megabytes} MB more in the image"), held, Aim::None);
    Ok(())
}

/// The proportional share of the memory, in bytes, of the processes of frozen failures.
fn memory_of_failures(place: &Place) -> Result<f64> {
    let status = place.status()?.context("no host runs")?;
    let failures = status["failures"].as_array().context("consort status --json does not tell of failures")?;
    ensure!(!failures.is_empty(), "no failure is kept");
    let mut bytes = 0.0;
    for failure in failures {
        let pid = failure["pid"].as_u64().with_context(|| format!("a failure without a process: {failure}"))?;
        let facts = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        let line = facts.lines().find(|line| line.starts_with("Pss:")).context("no Pss")?;
        let kilobytes = line.split_whitespace().nth(1).context("no Pss")?.parse::<f64>()?;
        bytes += kilobytes * 1024.0;
    }
    Ok(bytes)
}
