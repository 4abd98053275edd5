//! An agent's calls through MCP: one tool after another, beside Swank where SLIME has the same
//! request, and a mix as in a session.

use std::time::Duration;

use anyhow::{Result, ensure};
use consort_tests::clients::Agent;
use consort_tests::place::Place;
use serde_json::{Value, json};

use crate::lisp::{Lisp, Swank};
use crate::report::{Aim, Report};
use crate::{ROUNDS, in_milliseconds, timed};

/// A definition of about twenty lines.
const TWENTY_LINES: &str = "(defun bench-tally (words &key (test #'equal) (limit 10))
  \"The LIMIT words that are there most often, with how often.\"
  (let ((table (make-hash-table :test test))
        (pairs '()))
    (dolist (word words)
      (incf (gethash word table 0)))
    (maphash (lambda (word count)
               (push (cons word count) pairs))
             table)
    (setf pairs (sort pairs #'> :key #'cdr))
    (loop for (word . count) in pairs
          for index from 0
          while (< index limit)
          collect (list word count) into best
          sum count into total
          finally (return
                    (values best
                            total
                            (if (plusp total)
                                (/ (length best) total)
                                0))))))
";

/// The label; the tool, its arguments and the number of calls; the same request to Swank; the aim;
/// the figures of other programs.
type Row = (&'static str, &'static str, Value, usize, Option<&'static str>, Aim, &'static str);

/// Needs cl-ppcre loaded in both images.
pub(crate) fn calls(report: &Report, place: &Place, swank: &mut Swank) -> Result<()> {
    let mut agent = Agent::open(&mut place.command(&["mcp"]))?;
    agent.evaluate("(defmacro bench-twice (form) `(progn ,form ,form))")?;
    let a_loop = json!({"form": "(loop for i from 1 to 10 collect (* i i))"});
    let rows: [Row; 6] = [
        (
            "macroexpand-form of a loop",
            "macroexpand-form",
            a_loop,
            500,
            Some("(swank:swank-macroexpand-1 \"(loop for i from 1 to 10 collect (* i i))\")"),
            Aim::Time(1.2),
            "others 0.2-1.2 ms",
        ),
        (
            "macroexpand-form of a user's macro, in a copy",
            "macroexpand-form",
            json!({"form": "(bench-twice (f))"}),
            100,
            None,
            Aim::None,
            "",
        ),
        (
            "source_location",
            "source_location",
            json!({"symbol": "cl-ppcre:scan"}),
            500,
            Some("(swank:find-definitions-for-emacs \"CL-PPCRE:SCAN\")"),
            Aim::Ratio(1.0),
            "Swank 3.8 ms",
        ),
        (
            "describe-symbol, without callers",
            "describe-symbol",
            json!({"symbol": "cl-ppcre:scan"}),
            500,
            Some("(swank:describe-symbol \"CL-PPCRE:SCAN\")"),
            Aim::Time(1.0),
            "others 0.08 ms",
        ),
        (
            "describe-symbol of print-object, without callers",
            "describe-symbol",
            json!({"symbol": "print-object"}),
            100,
            Some("(swank:describe-symbol \"COMMON-LISP:PRINT-OBJECT\")"),
            Aim::None,
            "",
        ),
        (
            "describe-symbol, with callers",
            "describe-symbol",
            json!({"symbol": "cl-ppcre:scan", "callers": true}),
            30,
            Some("(swank:xref :calls \"CL-PPCRE:SCAN\")"),
            Aim::None,
            "",
        ),
    ];
    for (what, tool, arguments, rounds, form, aim, others) in rows {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..rounds + 10 {
            let asked = form.map(|form| timed(|| swank.ask(form))).transpose()?;
            let took = call(&mut agent, tool, &arguments)?;
            if round >= 10 {
                theirs.extend(asked);
                ours.push(took);
            }
        }
        let beside = form.map(|_| ("Swank", theirs.as_slice()));
        report.time(what, &ours, beside, aim, others);
    }
    compile_form(report, place, &mut agent)?;
    mix(report, &mut agent)?;
    agent.close()
}

/// Twenty lines, beside a plain `compile-file` of them in a warm image.
fn compile_form(report: &Report, place: &Place, agent: &mut Agent) -> Result<()> {
    let mut plain = Lisp::compiler(place.workspace(), &[])?;
    let file = place.workspace().join("twenty-lines.lisp");
    std::fs::write(&file, TWENTY_LINES)?;
    let form = json!({"code": TWENTY_LINES});
    let (mut compile, mut paused, mut at_once) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        compile.push(plain.ask(&file.to_string_lossy())?.parse::<f64>()?);
        // A pause shorter than an agent needs between two calls.
        std::thread::sleep(Duration::from_millis(200));
        paused.push(call(agent, "compile-form", &form)?);
        at_once.push(call(agent, "compile-form", &form)?);
    }
    let beside = Some(("compile-file", compile.as_slice()));
    let others = "others, in the image, 10-12.5 ms";
    report.time("compile-form of 20 lines, in a copy", &paused, beside, Aim::Ratio(1.15), others);
    report.time("compile-form of 20 lines, right after another", &at_once, beside, Aim::None, "");
    Ok(())
}

/// A hundred calls as an agent makes them.
fn mix(report: &Report, agent: &mut Agent) -> Result<()> {
    let evaluate = ("evaluate-lisp", json!({"code": "(cl-ppcre:scan-to-strings \"[0-9]+\" \"abc 123\")"}));
    let ten = [
        evaluate.clone(),
        ("source_location", json!({"symbol": "cl-ppcre:scan"})),
        ("describe-symbol", json!({"symbol": "cl-ppcre:regex-replace-all"})),
        evaluate.clone(),
        ("apropos", json!({"pattern": "scan"})),
        ("compile-form", json!({"code": TWENTY_LINES})),
        evaluate.clone(),
        ("macroexpand-form", json!({"form": "(loop for i below 3 collect i)"})),
        ("lisp-read-file", json!({"path": "cl-ppcre/api.lisp"})),
        evaluate,
    ];
    let mut times = Vec::new();
    for _ in 0..5 {
        times.push(timed(|| {
            for (tool, arguments) in std::iter::repeat_n(&ten, 10).flatten() {
                call(agent, tool, arguments)?;
            }
            Ok(())
        })?);
    }
    report.time("a mix of 100 calls, all of them", &times, None, Aim::None, "");
    Ok(())
}

/// Milliseconds until the answer, which must not be a failure, was there.
fn call(agent: &mut Agent, tool: &str, arguments: &Value) -> Result<f64> {
    let params = json!({"name": tool, "arguments": arguments});
    let (answer, took) = agent.client.timed_request("tools/call", params)?;
    ensure!(answer["isError"] != json!(true), "{tool} failed: {answer}");
    Ok(in_milliseconds(took))
}
