//! Sessions of typing with chains, as they are by default: whatever was typed, what is shown in the
//! end is what a whole check of the text finds.

use consort_tests::lsp::{Editor, lines};
use consort_tests::world::World;
use serde_json::{Value, json};

use crate::chains::until_chains;

const TEXT: &str = r#"(defpackage :shop (:use :cl))
(in-package :shop)

(defmacro with-tax ((var rate) &body body)
  `(let ((,var (* ,rate 2))) ,@body))

(defstruct item name (price 0 :type integer))

(declaim (ftype (function (integer) integer) twice))
(defun twice (x) (* 2 x))

(defun total (items)
  (let ((unused 1))
    (reduce #'+ items :key #'item-price)))

(defun report (item)
  (with-tax (tax 3)
    (list tax (twice (item-price item)) (no-such item))))

(defgeneric show (thing))
(defmethod show ((thing item)) (report thing))
(defmethod show ((thing string)) (twice "a"))

(defconstant +limit+ 10)
(defun restrict (n) (when (> n +limit+) (error "many")) (twice n))
"#;

const MACRO: &str = "(defmacro with-tax ((var rate) &body body)\n  `(let ((,var (* ,rate 2))) ,@body))\n";

/// A person who types in a text.
struct Typist<'w> {
    world: &'w World,
    editor: Editor,
    uri: String,
    text: String,
    version: i32,
    /// What was read of what was shown, last.
    shown: (i64, Vec<String>),
}

/// The position of an offset in a text of ASCII characters.
fn position(text: &str, offset: usize) -> [u32; 2] {
    let before = &text[..offset];
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    [before.matches('\n').count(), offset - line].map(|number| u32::try_from(number).unwrap())
}

impl<'w> Typist<'w> {
    /// Opens the text, and edits it so that it gets a chain.
    async fn new(world: &'w World) -> Typist<'w> {
        let input = json!({"experimental": {"consort": {"input": true}}});
        let mut editor = Editor::start(&world.session, input).await;
        let uri = world.uri("typed.lisp");
        editor.open(&uri, TEXT).await;
        let mut typist = Typist { world, editor, uri, text: TEXT.into(), version: 1, shown: (0, Vec::new()) };
        typist.find("only opened").await;
        assert_eq!(world.session.status().await.chains, None, "a text that is only opened has no chain");
        typist.replace("items :key", "items  :key").await;
        typist.has_chain().await;
        typist
    }

    async fn has_chain(&mut self) {
        until_chains(self.world, &mut self.editor, &self.uri, |counts| counts.standing == 1).await;
    }

    /// Replaces the first `old` by `new` without waiting for anything.
    async fn replace(&mut self, old: &str, new: &str) {
        let start = self.text.find(old).unwrap_or_else(|| panic!("{old} is not in {}", self.text));
        let ([line, column], [to_line, to_column]) =
            (position(&self.text, start), position(&self.text, start + old.len()));
        self.version += 1;
        self.editor.change(&self.uri, self.version, [line, column, to_line, to_column], new).await;
        self.text.replace_range(start..start + old.len(), new);
    }

    /// Types `new` behind the first `old`, and waits after each key until something is shown.
    async fn type_behind(&mut self, old: &str, new: &str) {
        for end in 0..new.len() {
            let (typed, key) = (format!("{old}{}", &new[..end]), &new[end..=end]);
            self.replace(&typed, &format!("{typed}{key}")).await;
            let last = i64::from(self.version);
            self.shown = self.editor.diagnostics(&self.uri, |version, _| version == last).await;
        }
    }

    async fn pull(&mut self, uri: &str) -> Vec<String> {
        let params = json!({"textDocument": {"uri": uri}});
        let report: Value = self.editor.request("textDocument/diagnostic", params).await.unwrap();
        lines(&report["items"])
    }

    /// Waits until what a whole check finds is shown, and nothing after it.
    async fn find(&mut self, what: &str) {
        std::fs::write(self.world.path("whole.lisp"), &self.text).unwrap();
        let expected = self.pull(&self.world.uri("whole.lisp")).await;
        let settled = self.pull(&self.uri.clone()).await;
        assert_eq!(settled, expected, "{what}");
        let last = (i64::from(self.version), expected);
        while self.shown != last || self.has_unread() {
            self.shown = self.editor.diagnostics(&self.uri, |_, _| true).await;
        }
    }

    fn has_unread(&self) -> bool {
        self.editor.has("textDocument/publishDiagnostics", |params| params["uri"] == self.uri)
    }

    /// Ends the session; no answer differed from a whole check, and no chain failed.
    async fn leave(self) {
        let counts = self.world.session.status().await.chains.unwrap();
        assert_eq!((counts.differed, counts.failed), (0, 0), "{counts:?}");
        self.editor.leave().await;
    }
}

/// Makes the edits one after the other; `find` after each.
async fn session(edits: &[(&str, &str)]) {
    let world = World::ready(&[]).await;
    let mut typist = Typist::new(&world).await;
    for (old, new) in edits {
        typist.replace(old, new).await;
        typist.find(&format!("{old} -> {new}")).await;
    }
    typist.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_and_pasted() {
    session(&[
        (MACRO, ""),
        ("(defgeneric", &format!("{MACRO}(defgeneric")),
        (MACRO, ""),
        ("(defstruct", &format!("{MACRO}(defstruct")),
        ("(* ,rate 2)", "(* ,rate unknown)"),
        ("(declaim (ftype (function (integer) integer) twice))\n", ""),
        ("(defun twice (x)", "(defun twice (x y)"),
        ("(defgeneric", "(defun twice (y) y)\n(defgeneric"),
        ("(defpackage :shop (:use :cl))\n(in-package :shop)\n", ""),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_other_forms_depend_on() {
    session(&[
        ("item name", "item name count"),
        ("price 0 :type integer", "price 0 :type string"),
        ("(defstruct item", "(defstruct thing"),
        ("(thing))", "(thing more))"),
        ("+limit+ 10", "+limit+ \"x\""),
        ("(in-package :shop)", "(in-package :cl-user)"),
        ("(in-package :cl-user)", "(in-package :shop)"),
        ("(:use :cl)", "(:use :cl :sb-mop)"),
        ("(in-package :shop)", "(in-package :shop) (declaim (optimize (safety 3)))"),
        ("(error \"many\")", "#.(no-reader) foo:bar (error \"many\")"),
        ("\n(defun restrict", "\n(eval-when (:compile-toplevel) (error \"boom\"))\n(defun restrict"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_one_after_the_other() {
    let world = World::ready(&[]).await;
    let mut typist = Typist::new(&world).await;
    typist.type_behind("(in-package :shop", "ping").await;
    typist.find("a package that is not there").await;
    typist.replace("shopping", "shop").await;
    typist.type_behind("(let ((unused 1))\n    ", "(print (car 1 2").await;
    typist.find("a list that is not closed").await;
    typist.replace("(defun restrict (n)", "(defun restrict (n m)").await;
    typist.find("another form while a list is not closed").await;
    typist.type_behind("(print (car 1 2", ")) ").await;
    typist.find("the list is closed").await;
    typist.replace("(twice \"a\")", "(twice \"a)").await;
    typist.find("a string that is not closed").await;
    typist.replace("(twice \"a)", "(twice \"a\")").await;
    typist.replace("(defun report", "#| (defun report").await;
    typist.find("a comment that is not closed").await;
    typist.replace("#| ", "").await;
    // Many edits before the first answer.
    for _ in 0..20 {
        typist.replace("used 1", "uused 1").await;
        typist.replace("(twice n)", "(twice n )").await;
        typist.replace("(twice n )", "(twice n)").await;
    }
    typist.find("a burst").await;
    typist.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_evaluations_and_another_image() {
    let world = World::ready(&[]).await;
    let mut typist = Typist::new(&world).await;
    typist.editor.ignore(&["window/showMessage"]);
    // Edits while code runs, which then defines what the text lacks.
    let code =
        "(progn (read-line) (defpackage :shop (:use :cl)) (eval (read-from-string \"(defun shop::no-such (x) x)\")))";
    let id = typist.editor.ask_command("consort.eval", json!({"code": code})).await;
    let wanted = typist.editor.input_wanted().await;
    typist.type_behind("(twice n", " n").await;
    typist.editor.reply(&wanted, json!({"text": "go"})).await;
    typist.editor.answer(id).await.unwrap();
    typist.find("a name that was defined meanwhile").await;
    typist.has_chain().await;
    // The end of the image is no failure of the chain, and the next image has one.
    typist.editor.command("consort.restartImage", json!({})).await.unwrap();
    typist.replace("(twice n n)", "(twice)").await;
    typist.find("in another image").await;
    typist.has_chain().await;
    typist.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_two_editors() {
    let world = World::ready(&[]).await;
    let mut one = Typist::new(&world).await;
    let mut other = Editor::start(&world.session, json!({})).await;
    other.open(&one.uri, "(defun f (x) 1)\n").await;
    other.change(&one.uri, 2, [0, 10, 0, 11], "y").await;
    one.replace("(twice n)", "(twice n n)").await;
    one.find("one").await;
    let (_, found) = other.diagnostics(&one.uri, |version, lines| version == 2 && !lines.is_empty()).await;
    assert_eq!(found, ["0:10-0:11 unused-variable"]);
    // Closed before its check is over, and opened again.
    other.change(&one.uri, 3, [0, 10, 0, 11], "z w").await;
    other.notify("textDocument/didClose", json!({"textDocument": {"uri": one.uri}})).await;
    other.open(&one.uri, "(defun g (x) 1)\n").await;
    other.diagnostics(&one.uri, |version, lines| version == 1 && lines == ["0:10-0:11 unused-variable"]).await;
    other.leave().await;
    one.replace("(twice n n)", "(twice)").await;
    one.find("the other left").await;
    one.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_new_file() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("typed.lisp");
    editor.open(&uri, "").await;
    let mut typist = Typist { world: &world, editor, uri, text: String::new(), version: 1, shown: (0, Vec::new()) };
    // A text that cannot have a chain, which is no failure.
    typist.type_behind("", "(defun f (x)").await;
    typist.find("a list that is not closed").await;
    typist.type_behind("(defun f (x)", " (g))\n").await;
    typist.find("a function").await;
    typist.has_chain().await;
    typist.type_behind("(defun f (x) (g))\n", "(f)").await;
    typist.find("a call").await;
    typist.leave().await;
    world.end().await;
}
