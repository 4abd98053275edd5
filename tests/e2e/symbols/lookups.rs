//! The features over a small system that is loaded.

use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

use super::{ask, labels, name_is_known, places};

const ASD: &str =
    "(defsystem \"zoo\" :serial t :components ((:file \"package\") (:file \"animals\") (:file \"keepers\")))\n";
const PACKAGE: &str = "(defpackage :zoo (:use :cl) (:export #:feed #:animal #:with-cage #:*cages*))\n";
const ANIMALS: &str = "(in-package :zoo)

(defvar *cages* 3 \"How many there are.\")

(defclass animal () ((name :initarg :name :accessor animal-name)))

#+nonsense (defclass ghost () ())

(defgeneric feed (animal food &key amount) (:documentation \"Feed it.\"))

(defmethod feed ((animal animal) food &key (amount 1))
  (list animal food amount))

(defmethod feed :around ((animal animal) (food (eql :meat)) &key amount)
  (declare (ignore amount))
  (call-next-method))

(defmacro with-cage ((cage &optional size) &body body)
  `(let ((,cage (make-list (or ,size *cages*)))) ,@body))

(defstruct keeper badge)

(defun (setf loudness) (new animal) (list new animal))
";
const KEEPERS: &str = "(in-package :zoo)

(defun feed-all (animals)
  (with-cage (c 2)
    (dolist (animal animals c)
      (feed animal :meat :amount *cages*)))
  (setf *cages* 4)
  (mapcar #'feed animals animals))

(defun badge-of (keeper) (keeper-badge keeper))
";

async fn zoo() -> (World, Editor) {
    let files = [("zoo.asd", ASD), ("package.lisp", PACKAGE), ("animals.lisp", ANIMALS), ("keepers.lisp", KEEPERS)];
    let world = World::ready(&files).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    // The system is loaded, because the tests are about lookups.
    let loaded = editor.command("consort.loadSystem", json!({"system": "zoo"})).await.unwrap();
    assert_eq!(loaded["loaded"], true, "{loaded}");
    (world, editor)
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_of_every_kind() {
    let (world, mut editor) = zoo().await;
    let uri = world.uri("use.lisp");
    for (source, expected) in [
        // The generic function and its methods.
        ("(in-package :zoo) (fe‸ed 1 2)", vec!["animals.lisp:8:12", "animals.lisp:10:11", "animals.lisp:13:11"]),
        ("(print zoo:*cag‸es*)", vec!["animals.lisp:2:8"]),
        ("(make-instance 'zoo:ani‸mal)", vec!["animals.lisp:4:10"]),
        ("(zoo::animal-na‸me x)", vec!["animals.lisp:4:52"]),
        ("(zoo:with-ca‸ge (c) 1)", vec!["animals.lisp:17:10"]),
        ("(zoo::keeper-bad‸ge k)", vec!["animals.lisp:20:11"]),
        ("(setf (zoo::loudn‸ess x) 1)", vec!["animals.lisp:22:7"]),
        ("(in-package :zo‸o)", vec!["package.lisp:0:12", "zoo.asd:0:11"]),
        ("(asdf:load-system \"zo‸o\")", vec!["package.lisp:0:12", "zoo.asd:0:11"]),
        ("(defun f (feed) (list fe‸ed))", vec!["use.lisp:0:10"]),
        ("(f zoo::nothing-of-the-ki‸nd)", vec![]),
        ("(no-such-package::fe‸ed)", vec![]),
    ] {
        let mut found = places(&ask(&mut editor, &uri, source, "textDocument/definition").await);
        found.sort();
        let mut expected = expected;
        expected.sort();
        assert_eq!(found, expected, "{source}");
    }
    let methods = ask(&mut editor, &uri, "(zoo:fe‸ed 1 2)", "textDocument/implementation").await;
    assert_eq!(places(&methods).len(), 2, "{methods}");

    // Files that have changed since: on disk, and in the editor.
    std::fs::write(world.path("animals.lisp"), format!(";; one\n;; two\n\n(defun new () 1)\n{ANIMALS}")).unwrap();
    let found = places(&ask(&mut editor, &uri, "(print zoo:*cag‸es*)", "textDocument/definition").await);
    assert_eq!(found, ["animals.lisp:6:8"]);
    let open = world.uri("animals.lisp");
    editor.open(&open, &format!("\n{ANIMALS}")).await;
    let found = places(&ask(&mut editor, &uri, "(print zoo:*cag‸es*)", "textDocument/definition").await);
    assert_eq!(found, ["animals.lisp:3:8"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_of_types() {
    let (world, mut editor) = zoo().await;
    let uri = world.uri("use.lisp");
    editor.eval("(defvar zoo::*keeper* (zoo::make-keeper))").await;
    for (source, expected) in [
        ("(in-package :zoo) (print *keep‸er*)", vec!["animals.lisp:20:11"]),
        ("(in-package :zoo) (let ((one (make-keeper))) (f on‸e))", vec!["animals.lisp:20:11"]),
        ("(in-package :zoo) (let ((one (make-instance 'animal))) (f on‸e))", vec!["animals.lisp:4:10"]),
        ("(in-package :zoo) (defmethod feed ((one animal) food) (f on‸e))", vec!["animals.lisp:4:10"]),
        ("(in-package :zoo) (defun f (one) (declare (type (or null keeper) one)) on‸e)", vec!["animals.lisp:20:11"]),
        ("(in-package :zoo) (defclass new () ())\n(let ((one (make-instance 'new))) on‸e)", vec!["use.lisp:0:28"]),
        ("(zoo:ani‸mal)", vec!["animals.lisp:4:10"]),
        ("zoo:*cag‸es*", vec![]),
        ("(defun f (one) on‸e)", vec![]),
        ("(f zoo::nothing-of-the-ki‸nd)", vec![]),
    ] {
        let found = places(&ask(&mut editor, &uri, source, "textDocument/typeDefinition").await);
        assert_eq!(found, expected, "{source}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_named_where_that_is_set() {
    let (world, mut editor) = zoo().await;
    let uri = world.uri("use.lisp");
    editor
        .open(
            &uri,
            "(in-package :zoo)\n(subseq \"abc\" 0 2)\n(feed 1 2 :amount 3)\n(with-cage (1 2) 3 4)\n(no-such 1 2)\n",
        )
        .await;
    let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
    let params = json!({"textDocument": {"uri": uri}, "range": all});
    assert_eq!(editor.request("textDocument/inlayHint", params.clone()).await.unwrap(), Value::Null);
    let settings = json!({"settings": {"consort": {"hints": {"parameters": true}}}});
    editor.notify("workspace/didChangeConfiguration", settings).await;
    let hints = editor.request("textDocument/inlayHint", params).await.unwrap();
    let one = |hint: &Value| {
        let at = &hint["position"];
        format!("{}:{} {}", at["line"], at["character"], hint["label"].as_str().unwrap_or_default())
    };
    let shown: Vec<String> = hints.as_array().unwrap().iter().map(one).collect();
    assert_eq!(shown, ["1:8 sequence:", "1:14 start:", "1:16 end:", "2:6 animal:", "2:8 food:"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn references_are_the_names_themselves() {
    let (world, mut editor) = zoo().await;
    let uri = world.uri("use.lisp");
    for (source, expected) in [
        ("zoo:fe‸ed", vec!["keepers.lisp:5:7", "keepers.lisp:7:12"]),
        ("zoo:*cag‸es*", vec!["keepers.lisp:5:33", "keepers.lisp:6:8"]),
        ("zoo:with-ca‸ge", vec!["keepers.lisp:3:3"]),
        ("zoo:ani‸mal", vec!["animals.lisp:10:25", "animals.lisp:13:33"]),
        ("zoo::keeper-bad‸ge", vec!["keepers.lisp:9:26"]),
    ] {
        let found = places(&ask(&mut editor, &uri, source, "textDocument/references").await);
        for place in expected {
            assert!(found.contains(&place.to_string()), "{source}: {place} is not among {found:?}");
        }
    }
    // A local name has only its own occurrences.
    let found = ask(&mut editor, &uri, "(defun f (x)\n  (let ((y x)) (list y x‸)))", "textDocument/references").await;
    assert_eq!(places(&found), ["use.lisp:0:10", "use.lisp:1:11", "use.lisp:1:23"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn completions() {
    let (world, mut editor) = zoo().await;
    let uri = world.uri("use.lisp");
    editor.eval("(sb-ext:add-package-local-nickname :z :zoo :cl-user)").await;
    name_is_known(&mut editor, &uri, "(z:with-c‸)", "z:with-cage").await;
    for (source, first) in [
        ("(m-v-b‸)", "multiple-value-bind"),
        ("(MULTIPLE-VALUE-B‸)", "MULTIPLE-VALUE-BIND"),
        ("(zoo:fe‸)", "zoo:feed"),
        ("(z:with-c‸)", "z:with-cage"),
        ("(zoo::keeper-b‸)", "zoo::keeper-badge"),
        ("(in-package :zo‸)", ":zoo"),
        ("(defpackage :x (:use #:zo‸))", "#:zoo"),
        ("(defun f (hamster) (list hams‸))", "hamster"),
        ("(flet ((hamster (x) x)) (hams‸))", "hamster"),
        ("(zoo:feed 1 2 :am‸)", ":amount"),
        ("(open \"f\" :if-does‸)", ":if-does-not-exist"),
        ("(gthash‸)", "gethash"),
        ("(make-instance 'zoo:animal :‸)", ":name"),
        ("(make-instance 'zoo:animal ‸)", ":name"),
        ("(in-package :zoo) (defclass cat (animal) ((fur :initarg :fur)))\n(make-instance 'cat :n‸)", ":name"),
        ("(in-package :zoo) (defclass cat (animal) ((fur :initarg :fur)))\n(make-instance 'cat :name 1 :‸)", ":fur"),
        ("(flet ((walk (dog &key leash) (list dog leash))) (walk 1 :l‸))", ":leash"),
        ("(defun walk (dog &key leash) (list dog leash))\n(walk 1 :l‸)", ":leash"),
    ] {
        let answer = ask(&mut editor, &uri, source, "textDocument/completion").await;
        assert_eq!(labels(&answer).first().map(String::as_str), Some(first), "{source}: {:?}", labels(&answer));
    }
    for none in ["(print \"mult‸\")", "; mult‸", "(no-such-package:fe‸)"] {
        let answer = ask(&mut editor, &uri, none, "textDocument/completion").await;
        assert!(labels(&answer).is_empty(), "{none}: {answer}");
    }
    let answer = ask(&mut editor, &uri, "(zoo:fee‸)", "textDocument/completion").await;
    let resolved = editor.request("completionItem/resolve", answer["items"][0].clone()).await.unwrap();
    assert_eq!(resolved["detail"], "(feed animal food &key amount)");
    assert!(resolved["documentation"]["value"].as_str().unwrap().contains("Feed it."), "{resolved}");

    // Requests about a name do not intern it.
    let count = "(let ((n 0)) (do-all-symbols (s) (when (search \"FROBNICATE\" (symbol-name s)) (incf n))) n)";
    // The form itself is read, which is no symbol of that name.
    assert_eq!(editor.eval(count).await, ["0"]);
    for method in
        ["textDocument/completion", "textDocument/hover", "textDocument/definition", "textDocument/references"]
    {
        ask(&mut editor, &uri, "(frobnicate-me zoo::frobnicat‸e)", method).await;
    }
    editor.command("consort.sourceLocation", json!({"symbol": "zoo::frobnicate"})).await.unwrap();
    assert_eq!(editor.eval(count).await, ["0"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hover_and_signatures() {
    let (world, mut editor) = zoo().await;
    let uri = world.uri("use.lisp");
    for (source, parts) in [
        (
            "(zoo:fe‸ed 1)",
            vec![
                "(zoo:feed animal food &key amount)",
                "generic function",
                "`ZOO` (exported)",
                "Feed it.",
                "animals.lisp:9",
            ],
        ),
        ("zoo:*cag‸es*", vec!["zoo:*cages* => 3", "variable", "How many there are."]),
        ("(zoo::ani‸mal)", vec!["class", "Slots: `name`"]),
        ("(in-package :zo‸o)", vec!["package `ZOO`", "4 exported symbols"]),
        ("(let ((x 1))\n x‸)", vec!["local variable, bound by `let` on line 1"]),
        ("(flet ((g (a b) a)) (g‸ 1))", vec!["(g a b)", "local function"]),
    ] {
        let answer = ask(&mut editor, &uri, source, "textDocument/hover").await;
        let text = answer["contents"]["value"].as_str().unwrap_or_default();
        for part in parts {
            assert!(text.contains(part), "{source}: no {part:?} in {text}");
        }
    }
    assert_eq!(ask(&mut editor, &uri, "(print \"zo‸o\")", "textDocument/hover").await, Value::Null);
    // No code of the user runs when a value is shown.
    editor.eval("(defclass loud () ())").await;
    editor.eval("(defmethod print-object ((x loud) s) (declare (ignore s)) (error \"printed\"))").await;
    editor.eval("(defvar *loud* (list 1 (make-instance 'loud) \"s\"))").await;
    let answer = ask(&mut editor, &uri, "*lou‸d*", "textDocument/hover").await;
    assert!(answer["contents"]["value"].as_str().unwrap().contains("(1 #<LOUD> \"s\")"), "{answer}");

    for (source, label, active) in [
        ("(zoo:feed 1 ‸)", "(zoo:feed animal food &key amount)", Some("food")),
        ("(zoo:feed 1 2 :amount ‸)", "(zoo:feed animal food &key amount)", Some("amount")),
        ("(zoo:feed 1 2 ‸)", "(zoo:feed animal food &key amount)", None),
        ("(mapcar #'f ‸)", "(mapcar function list &rest more-lists)", Some("list")),
        ("(mapcar #'f a b c ‸)", "(mapcar function list &rest more-lists)", Some("more-lists")),
        ("(zoo:with-cage (c ‸))", "(zoo:with-cage (cage &optional size) &body body)", Some("size")),
        ("(labels ((go-on (now &optional then) now)) (go-on 1 ‸))", "(go-on now &optional then)", Some("then")),
        ("(defun mine (one two) one)\n(mine 1 ‸)", "(mine one two)", Some("two")),
        ("(zoo:feed (no-such-function ‸))", "(zoo:feed animal food &key amount)", Some("animal")),
    ] {
        let answer = ask(&mut editor, &uri, source, "textDocument/signatureHelp").await;
        let signature = &answer["signatures"][0];
        assert_eq!(signature["label"], label, "{source}");
        let index = answer["activeParameter"].as_u64().unwrap();
        let range = &signature["parameters"][usize::try_from(index).unwrap()]["label"];
        let at = |n: usize| range[n].as_u64().and_then(|n| usize::try_from(n).ok());
        let shown = at(0).zip(at(1)).map(|(start, end)| &label[start..end]);
        assert_eq!(shown, active, "{source}: {answer}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workspace_symbols_and_source_locations() {
    let (world, mut editor) = zoo().await;
    editor.open(&world.uri("new.lisp"), "(in-package :zoo)\n(defun feed-nobody () 1)\n").await;
    let answer = editor.request("workspace/symbol", json!({"query": "feed"})).await.unwrap();
    let names: Vec<&str> = answer.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    for name in ["feed-nobody", "feed", "feed-all"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let all = editor.command("consort.sourceLocation", json!({"symbol": "feed", "package": "zoo"})).await.unwrap();
    let lines: Vec<(String, u64, u64)> = all["definitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (one["kind"].as_str().unwrap().into(), one["line"].as_u64().unwrap(), one["column"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(lines.len(), 3, "{all}");
    for expected in [("generic function", 9), ("method", 11), ("method", 14)] {
        assert!(lines.contains(&(expected.0.into(), expected.1, 1)), "{lines:?}");
    }
    let methods =
        editor.command("consort.sourceLocation", json!({"symbol": "zoo:feed", "kind": "method"})).await.unwrap();
    assert_eq!(methods["definitions"].as_array().unwrap().len(), 2);
    assert!(methods["definitions"][0]["snippet"].as_str().unwrap().starts_with("(defmethod feed"));
    let error =
        editor.command("consort.sourceLocation", json!({"symbol": "x", "package": "NO-SUCH"})).await.unwrap_err();
    assert_eq!((error["code"].as_i64(), error["data"]["type"].as_str()), (Some(-32000), Some("PACKAGE_NOT_FOUND")));
    assert_eq!(error["message"], "Package NO-SUCH not found");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_leaves_the_markdown_of_a_hover() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let nasty: Vec<String> = serde_json::from_str(include_str!("../../fixtures/nasty.json")).expect("strings");
    for (index, text) in nasty.iter().enumerate() {
        let codes = text.chars().map(|char| (char as u32).to_string()).collect::<Vec<_>>().join(" ");
        let text_form = format!("(map 'string #'code-char '({codes}))");
        let code = format!(
            "(let ((package (make-package {text_form} :use '(:cl))) (symbol (intern \"NASTY-{index}\" :cl-user)))
               (setf (fdefinition symbol) (lambda (x) x)
                     (documentation symbol 'function) {text_form}
                     (documentation package t) {text_form})
               nil)"
        );
        editor.eval(&code).await;
        let uri = world.uri("hover.lisp");
        let hover = ask(&mut editor, &uri, &format!("(nasty‸-{index} 1)"), "textDocument/hover").await;
        let value = hover["contents"]["value"].as_str().unwrap_or_else(|| panic!("{text:?}: {hover}"));
        assert!(value.contains(&consort::shown::fenced("text", text)), "{value}");
        let acts = |char: char| char.is_control() && char != '\n' && char != '\t';
        assert!(!value.chars().any(acts), "{value:?}");
    }
    world.end().await;
}
