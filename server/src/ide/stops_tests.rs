#![allow(clippy::unwrap_used, reason = "a test may fail")]

use serde_json::{Value, json};

use super::*;
use crate::ide::fake::{FakeImage, context, run};

fn stop(number: u64, parent: Option<u64>) -> Value {
    json!({
        "stop": number, "id": 7, "session": "cli-2", "thread": "worker", "level": 1, "parent": parent, "reason": "error",
        "state": "waiting", "condition": {"type": "SIMPLE-ERROR", "message": "boom\nDeny: \u{202e}no"},
        "restarts": [
            {"name": "USE-OTHER", "report": "Use\nanother.", "arguments": true},
            {"name": "ABORT", "report": "Abort.", "arguments": false},
        ],
        "holds": ["the compiler's lock"], "frames": 2, "more_frames": false,
    })
}

fn image(stops: &[Value]) -> FakeImage {
    let frame = json!({"number": 1, "name": "OUTER", "system": false, "unwindable": true, "place": null});
    FakeImage::empty().answer("debug-stops", "", json!({"stops": stops})).answer(
        "debug-frames",
        "",
        json!({"total": 2, "frames": [frame]}),
    )
}

fn described(action: &StopAction, number: u64, stops: &[Value]) -> Result<String, (String, String)> {
    match run(action.at(&image(stops), number)) {
        Ok((stop, described)) => {
            assert_eq!(stop.number, number);
            Ok(described)
        }
        Err(error) => Err((error.kind().to_string(), error.to_string())),
    }
}

#[test]
fn a_stop_is_told_with_its_restarts_a_line_each() {
    let stops = run(all(&image(&[stop(3, None)]))).unwrap();
    insta::assert_snapshot!(listed(&stops), @r"
    Stop 3: SIMPLE-ERROR: boom Deny: \u{202e}no
      error of cli-2, waiting, 2 frames
      holds the compiler's lock: others may wait for it
      restart 0: [USE-OTHER] Use another. (takes an argument)
      restart 1: [ABORT] Abort.
    ");
    assert_eq!(listed(&[]), "Nothing is stopped.");
}

#[test]
fn a_stop_that_was_left_is_told_as_stale() {
    let (kind, message) = described(&StopAction::Abort, 4, &[stop(3, None)]).unwrap_err();
    assert_eq!(kind, "stale");
    assert!(message.starts_with("There is no stop 4 (any more)."), "{message}");
}

#[test]
fn a_stop_with_another_on_its_stack_is_told_as_busy() {
    let stops = [stop(3, None), stop(4, Some(3))];
    let (kind, message) = described(&StopAction::Continue, 3, &stops).unwrap_err();
    assert_eq!(kind, "busy");
    assert!(message.starts_with("Stop 4 is on the stack of stop 3"), "{message}");
    assert!(described(&StopAction::Continue, 4, &stops).is_ok());
}

#[test]
fn what_a_person_is_asked_names_stop_condition_and_restart_in_a_line() {
    let at = "at stop 3 of cli-2 (SIMPLE-ERROR: boom Deny: \\u{202e}no)";
    for (action, words) in [
        (StopAction::Restart { restart: 0, code: None }, "Invoke the restart 0, [USE-OTHER] Use another., "),
        (StopAction::Eval { frame: 1, code: "y".into() }, "Evaluate code in frame 1, OUTER, "),
        (StopAction::Return { frame: 1, code: "y".into() }, "Return the values of code from frame 1, OUTER, "),
        (StopAction::Continue, "Continue the program "),
        (StopAction::Abort, "Abort the evaluation "),
    ] {
        assert_eq!(described(&action, 3, &[stop(3, None)]).unwrap(), format!("{words}{at}"));
    }
    let (kind, message) = described(&StopAction::Restart { restart: 2, code: None }, 3, &[stop(3, None)]).unwrap_err();
    assert_eq!((kind.as_str(), message.as_str()), ("stale", "The stop 3 has no restart 2."));
}

#[test]
fn a_stop_of_a_thread_is_told_with_its_name_and_who_started_it() {
    let mut stop = stop(3, None);
    stop["session"] = Value::Null;
    stop["started_by"] = "lsp-1".into();
    stop["thread"] = "work\u{202e}er".into();
    let text = listed(&run(all(&image(&[stop.clone()]))).unwrap());
    assert!(text.contains("\n  error of the thread work\\u{202e}er, started by lsp-1, waiting, 2 frames"), "{text}");
    let at = "at stop 3 of the thread work\\u{202e}er, started by lsp-1 (SIMPLE-ERROR: boom Deny: \\u{202e}no)";
    assert_eq!(described(&StopAction::Abort, 3, &[stop]).unwrap(), format!("End the thread {at}"));
}

#[test]
fn frames_have_the_lines_of_files_that_did_not_change() {
    let frame = |number: usize, place: Value| json!({"number": number, "name": format!("F{number}"), "system": number == 3, "unwindable": true, "place": place});
    let frames = json!({"total": 4, "frames": [
        frame(0, json!({"file": "/no/a.lisp", "span": [14, 19], "form": "(g x)"})),
        frame(1, json!({"file": "/no/a.lisp", "offset": 0, "changed": true})),
        frame(2, json!({"evaluation": 7, "span": [0, 3], "form": "(h)"})),
        frame(3, Value::Null),
    ]});
    let image = FakeImage::empty().answer("debug-frames", "", frames);
    let context = context(image, &[("a.lisp", "(defun f ()\n  (g x))\n")]);
    let (text, facts) = run(super::frames(&context, Stack::Stop(3), Path::new("/no"))).unwrap();
    insta::assert_snapshot!(text, @r"
    Stop 3, 4 frames:
    0: F0  in (g x)  (a.lisp:2)
    1: F1  (a.lisp, changed since it was loaded)
    2: F2  in (h)
    3: F3 (system)
    ");
    let facts = json!(facts);
    assert_eq!((&facts["frames"][0]["line"], &facts["frames"][1]["line"]), (&json!(2), &Value::Null));
    assert_eq!((&facts["stop"], &facts["frames"][1]["changed"]), (&json!(3), &json!(true)));
}

#[test]
fn a_value_that_the_compiler_did_not_keep_is_told_as_such() {
    let locals = json!({"total": 2, "known": true, "locals": [
        {"name": "K", "value": {"text": "(1\n2)", "type": "CONS", "reference": 5}, "missing": null},
        {"name": "X", "value": null, "missing": "not kept"},
    ]});
    let image = FakeImage::empty().answer("debug-locals", "", locals);
    let (text, facts) = run(super::locals(&image, Stack::Stop(3), 1)).unwrap();
    assert_eq!(text, "Stop 3, frame 1, 2 variables\nK = (1 2)\nX = (not kept)");
    let facts = json!(facts);
    assert_eq!((&facts["stop"], &facts["locals"][0]["value"]["type"]), (&json!(3), &json!("CONS")));
}

#[test]
fn the_outcome_of_an_action_is_text_and_data() {
    let done = |done: Value| {
        let (text, facts, failed) = outcome(&serde_json::from_value(done).unwrap(), "stop");
        (text, json!(facts), failed)
    };
    let (text, _, failed) = done(json!({"status": "ok", "values": [{"text": "14"}, {"text": "15"}]}));
    assert_eq!((text.as_str(), failed), ("=> 14\n=> 15", false));
    let (text, facts, failed) = done(json!({"status": "error", "error": {"type": "TYPE-ERROR", "message": "no"}}));
    assert!(text.starts_with("[ERROR] TYPE-ERROR\nno") && failed && facts["error"]["type"] == "TYPE-ERROR", "{text}");
    assert!(done(json!({"status": "timeout"})).2);
    let (text, facts, failed) = done(json!({"status": "sent"}));
    assert!(text.starts_with("Sent") && !failed && facts["status"] == "sent", "{text}");
}

#[test]
fn a_stop_whose_data_are_missing_still_waits() {
    let (text, facts) = run(describe_for_agent(&FakeImage::busy(), 3));
    assert!(text.starts_with("It stopped in the stop 3, whose data is missing: The Lisp image did not"), "{text}");
    assert!(text.contains("The evaluation waits") && facts.stops.is_empty(), "{text}");
    let (text, _) = run(describe_for_agent(&image(&[]), 3));
    assert_eq!(text, "It stopped, and somebody has left the stop 3 already.");
}

#[test]
fn a_list_that_is_cut_says_so_and_a_variable_is_found_behind_it() {
    let page = |name: &str| {
        let value = json!({"text": "1", "type": "FIXNUM", "reference": 0});
        json!({"total": 2, "known": true, "locals": [{"name": name, "value": value, "missing": null}]})
    };
    let frame = json!({"number": 0, "name": "F", "system": false, "unwindable": true, "place": null});
    let image = FakeImage::empty().answer("debug-locals", "", page("K")).answer("debug-locals", "1", page("X")).answer(
        "debug-frames",
        "",
        json!({"total": 5000, "frames": [frame]}),
    );
    let (text, _) = run(super::locals(&image, Stack::Stop(3), 1)).unwrap();
    assert!(text.starts_with("Stop 3, frame 1, 2 variables, the first 1 of which are listed\nK"), "{text}");
    assert_eq!(run(local(&image, 3, 1, "x")).unwrap().map(|found| found.name).as_deref(), Some("X"));
    let (text, _) = run(super::frames(&context(image, &[]), Stack::Stop(3), Path::new("/no"))).unwrap();
    assert!(text.starts_with("Stop 3, 5000 frames, the innermost 1 of which are listed:\n0: F"), "{text}");
}
