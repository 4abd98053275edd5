//! `try-code`: candidates compared in copies of the live image, and one of them applied.

use consort_tests::installation::Installation;
use consort_tests::patience::AMPLE;
use serde_json::{Value, json};

const FILE: &str = "(defpackage :shop (:use :cl) (:export :total :price))\n(in-package :shop)\n\n(defun price (item)\n  (cdr item))\n\n(defun total (items)\n  0)\n";

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap_or_default()
}

fn replacing(label: &str, form: &str) -> Value {
    let edit = json!({"form_type": "defun", "form_name": "total", "content": form});
    json!({"label": label, "path": "shop.lisp", "edits": [edit]})
}

#[test]
fn three_candidates_are_tried_and_the_right_one_is_applied_by_one_approval() {
    let world = Installation::new();
    world.configure("[approval]\nedit-file = \"allow\"\nmodify-running-code = \"allow\"\n");
    let path = world.write("shop.lisp", FILE);
    let mut agent = world.mcp();
    let mut call =
        |name: &str, arguments: Value| agent.request("tools/call", json!({"name": name, "arguments": arguments}));
    call("evaluate-lisp", json!({"code": format!("(load {:?})", path.display().to_string())}));
    let candidates = json!([
        replacing("broken", "(defun total (items)\n  (reduce #'+ items :key #'prise))"),
        replacing("wrong", "(defun total (items)\n  (length items))"),
        replacing("right", "(defun total (items)\n  (reduce #'+ items :key #'price))"),
    ]);
    let check = "(assert (= 7 (shop:total '((:a . 3) (:b . 4))))) (shop:total '())";
    let tried = call("try-code", json!({"candidates": candidates, "code": check, "timeout": AMPLE}));
    assert_eq!(tried["isError"], false, "{tried}");
    let results = tried["structuredContent"]["candidates"].as_array().expect("a list");
    let passed: Vec<Value> = results.iter().map(|one| json!([one["label"], one["passed"]])).collect();
    assert_eq!(json!(passed), json!([["broken", false], ["wrong", false], ["right", true]]), "{tried}");
    let shown: Vec<&str> = text(&tried).split("\n\n").collect();
    assert!(
        shown[0].starts_with("broken: failed") && shown[0].contains("undefined function: SHOP::PRISE"),
        "{shown:?}"
    );
    assert!(shown[0].contains("[ERROR] UNDEFINED-FUNCTION"), "{shown:?}");
    assert!(shown[1].contains("[ERROR] SIMPLE-ERROR") && shown[1].contains("Called: total once"), "{shown:?}");
    assert!(shown[2].starts_with("right: passed (") && shown[2].contains("=> 0"), "{shown:?}");
    assert!(shown[2].ends_with("Called: total 2 times\n  Forms that ran: total 1 of 1"), "{shown:?}");
    // Neither the image nor the file has changed.
    let now = |answer: &Value| text(answer).lines().next().unwrap_or_default().to_owned();
    assert_eq!(now(&call("evaluate-lisp", json!({"code": "(shop:total '((:a . 3)))"}))), "=> 0");
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), FILE);

    let applied = call("try-code", json!({"candidates": candidates, "apply": "right"}));
    assert_eq!(
        (&applied["isError"], &applied["structuredContent"]["status"]),
        (&json!(false), &json!("applied")),
        "{applied}"
    );
    assert_eq!(now(&call("evaluate-lisp", json!({"code": "(shop:total '((:a . 3)))"}))), "=> 3");
    let written = std::fs::read_to_string(&path).expect("the file");
    assert_eq!(written, FILE.replace("  0)", "  (reduce #'+ items :key #'price))"));
    drop(agent);
    world.finish();
}

/// Functions, methods and macros; with a branch that is not taken, a default that is not needed,
/// and a definition that is not used.
#[test]
fn the_forms_that_did_not_run_are_named() {
    let world = Installation::new();
    let mut agent = world.mcp();
    let mut call = |arguments: Value| agent.request("tools/call", json!({"name": "try-code", "arguments": arguments}));
    let code = "(in-package :cl-user)\n(defun sign (x &optional (unit (list 1)))\n  (cond ((plusp x) (first unit))\n        ((minusp x)\n         (- (first unit)))\n        (t (error \"zero\"))))\n\n(defmethod area ((side number))\n  (if (zerop side) (error \"none\") (* side side)))\n\n(defun unused () (list 1))";
    let tried = call(
        json!({"candidates": [{"label": "a", "code": code}], "code": "(list (sign 1) (sign -1 '(2)) (area 2))", "timeout": AMPLE}),
    );
    assert_eq!(tried["structuredContent"]["candidates"][0]["passed"], true, "{tried}");
    let shown: Vec<&str> = text(&tried).lines().filter(|line| line.contains("not run:")).map(str::trim).collect();
    assert_eq!(
        shown,
        ["not run: sign, line 6: (error \"zero\")", "not run: area, line 9: (error \"none\")"],
        "{tried}"
    );
    let coverage = &tried["structuredContent"]["candidates"][0]["coverage"];
    assert_eq!((&coverage[2]["name"], &coverage[2]["ran"]), (&json!("unused"), &json!(0)), "{coverage}");
    let again = call(
        json!({"candidates": [{"label": "a", "code": code}], "code": "(ignore-errors (sign 0)) (sign 1) (sign -1) (area 2)", "timeout": AMPLE}),
    );
    assert!(!text(&again).contains("not run: sign"), "{again}");
    drop(agent);
    world.finish();
}

#[test]
fn candidates_cannot_reach_out_and_unusable_ones_are_named() {
    let world = Installation::new();
    let victim = world.write("victim.txt", "precious");
    let mut agent = world.mcp();
    let mut call = |arguments: Value| agent.request("tools/call", json!({"name": "try-code", "arguments": arguments}));
    let reaching = format!("(defun reach () (delete-file {:?}))", victim.display().to_string());
    let tried = call(json!({
        "candidates": [
            {"label": "reaching", "code": reaching},
            {"label": "endless", "code": "(defun reach () (loop))"},
            {"label": "unreadable", "code": "(defun reach ("},
            {"label": "nowhere", "path": "none.lisp", "edits": [{"form_type": "defun", "form_name": "x", "content": "(x)"}]},
        ],
        "code": "(reach)",
        "timeout": 2,
    }));
    let shown: Vec<&str> = text(&tried).split("\n\n").collect();
    assert!(
        shown[0].starts_with("reaching: failed") && shown[0].contains("is confined: it cannot write files"),
        "{shown:?}"
    );
    assert!(shown[1].contains("[ERROR] TIMEOUT"), "{shown:?}");
    assert!(shown[2].contains("[ERROR] in the definitions") && shown[2].contains("end of file"), "{shown:?}");
    assert!(shown[3].contains("none.lisp"), "{shown:?}");
    assert_eq!(std::fs::read_to_string(&victim).expect("the file"), "precious");
    for (arguments, words) in [
        (json!({"candidates": []}), "between 1 and 8"),
        (
            json!({"candidates": [{"label": "a", "code": "1"}, {"label": "a", "code": "2"}]}),
            "two candidates have the label a",
        ),
        (json!({"candidates": [{"label": "a"}]}), "either `code`, or `path` and `edits`"),
        (json!({"candidates": [{"label": "a", "code": "1"}], "apply": "b"}), "no candidate's label"),
        (json!({"candidates": [{"label": "a", "code": "1"}], "apply": "a"}), "code_compile_string"),
    ] {
        let refused = call(arguments);
        assert!(refused["isError"] == true && text(&refused).contains(words), "{words}: {refused}");
    }
    drop(agent);
    world.finish();
}
