//! Completion, hover, definition: through LSP, and what SLIME asks Swank for the same, in turns.

use anyhow::{Context, Result, ensure};
use consort_tests::clients::{Editor, uri};
use consort_tests::place::Place;
use serde_json::{Value, json};

use crate::lisp::Swank;
use crate::report::{Report, median};
use crate::timed;

/// Rounds of each.
const ROUNDS: usize = 300;

/// Needs cl-ppcre loaded in the image.
pub(crate) fn names(report: &Report, place: &Place, editor: &mut Editor) -> Result<()> {
    let mut swank = Swank::start(place.workspace())?;
    swank.eval("(asdf:load-system \"cl-ppcre\")")?;
    let file = place.workspace().join("names.lisp");
    editor.open_document(&file, "(in-package :cl-ppcre)\n(scan-t)\n(scan 1 2)\n(c-s)\n")?;
    let at = |line: u32, character: u32| {
        json!({"textDocument": {"uri": uri(&file)}, "position": {"line": line, "character": character},
               "context": {"includeDeclaration": true}})
    };
    let completion = |character: u32, line: u32| {
        let mut params = at(line, character);
        params["context"] = json!({"triggerKind": 1, "isRetrigger": false});
        params
    };
    let rows: [(&str, &str, Value, &str, &str); 6] = [
        (
            "completion, prefix",
            "textDocument/completion",
            completion(7, 1),
            "(swank:simple-completions \"scan-t\" \"CL-PPCRE\")",
            "Swank 0.4 ms, Alive 77",
        ),
        (
            "completion, words",
            "textDocument/completion",
            completion(4, 3),
            "(swank:simple-completions \"c-s\" \"CL-PPCRE\")",
            "",
        ),
        (
            "hover",
            "textDocument/hover",
            at(2, 3),
            "(swank:describe-symbol \"CL-PPCRE:SCAN\")",
            "Swank 0.3 ms, Alive 115",
        ),
        (
            "signature help",
            "textDocument/signatureHelp",
            completion(6, 2),
            "(swank:operator-arglist \"CL-PPCRE:SCAN\" \"CL-PPCRE\")",
            "",
        ),
        (
            "definition",
            "textDocument/definition",
            at(2, 3),
            "(swank:find-definitions-for-emacs \"CL-PPCRE:SCAN\")",
            "Swank 3.8 ms",
        ),
        ("references", "textDocument/references", at(2, 3), "(swank:xref :calls \"CL-PPCRE:SCAN\")", ""),
    ];
    for (what, method, params, form, aim) in rows {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let rounds = if what == "references" { ROUNDS / 10 } else { ROUNDS };
        for round in 0..rounds + 10 {
            let asked = timed(|| swank.ask(form))?;
            let answered = timed(|| {
                let answer = editor.client.request(method, params.clone())?;
                ensure!(!answer.is_null(), "{method} answered nothing");
                Ok(())
            })?;
            if round >= 10 {
                theirs.push(asked);
                ours.push(answered);
            }
        }
        let base = median(&mut theirs);
        report.time(&format!("{what}, p50: Swank"), base, "");
        report.ratio(&format!("{what}, p50: through LSP"), median(&mut ours), base, aim);
    }
    editor.close_document(&file).context("names.lisp")
}
