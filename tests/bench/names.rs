//! Completion, hover and definition through LSP, and SLIME's requests to Swank for the same, in
//! turns.

use anyhow::{Context, Result, ensure};
use consort_tests::clients::{Editor, uri};
use consort_tests::place::Place;
use serde_json::{Value, json};

use crate::lisp::Swank;
use crate::report::{Aim, Report};
use crate::{in_milliseconds, timed};

/// Rounds of each.
const ROUNDS: usize = 300;

/// Needs cl-ppcre loaded in both images.
pub(crate) fn names(report: &Report, place: &Place, editor: &mut Editor, swank: &mut Swank) -> Result<()> {
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
            "Swank 0.4 ms; Alive 77 ms",
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
            "Swank 0.3 ms; Alive 115 ms",
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
    for (what, method, params, form, others) in rows {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let rounds = if what == "references" { ROUNDS / 10 } else { ROUNDS };
        for round in 0..rounds + 10 {
            let asked = timed(|| swank.ask(form))?;
            let (answer, answered) = editor.client.timed_request(method, params.clone())?;
            ensure!(!answer.is_null(), "{method} answered nothing");
            if round >= 10 {
                theirs.push(asked);
                ours.push(in_milliseconds(answered));
            }
        }
        report.time(&format!("{what}, through LSP"), &ours, Some(("Swank", &theirs)), Aim::Ratio(1.0), others);
    }
    editor.close_document(&file).context("names.lisp")
}
