mod back;
mod exported;
mod guarded;
mod packages;
mod places;
mod slots;
mod structures;

use expect_test::{Expect, expect};

use super::*;
use crate::ide::context::Context;
use crate::ide::fake::{FakeImage, cursor, run};
use crate::ide::texts::OpenText;
use crate::image::api::expand::Variant;

/// An expander that returns these comparisons for the first variants. `None` stands for a missing
/// image.
struct FixedExpander(Option<Vec<Variant>>);

impl Expander for FixedExpander {
    async fn compare(&self, comparison: CompareExpansions) -> Result<Compared, ImageError> {
        match &self.0 {
            None => Err(ImageError::Unavailable("There is no image.".into())),
            Some(variants) => {
                let mut variants = variants.clone();
                variants.resize(comparison.variants.len(), Variant::default());
                Ok(Compared { variants, ..Compared::default() })
            }
        }
    }
}

fn same(data: bool) -> Variant {
    Variant { same: true, data, why: None }
}

fn applied(renaming: &Renaming) -> String {
    let mut out = String::new();
    for file in &renaming.files {
        let mut text = file.document.text().clone();
        for change in file.changes.iter().rev() {
            text.remove(change.span.start..change.span.end);
            let mark = if change.unsure.is_some() { "?" } else { "" };
            text.insert(change.span.start, &format!("{mark}{}", change.by));
        }
        out.push_str(&text.to_string());
        out.push('\n');
    }
    out
}

fn renamed(text: &str, new: &str, expander: &FixedExpander) -> String {
    let cursor = cursor(FakeImage::absent(), &[("a.lisp", text)]);
    match run(rename(&cursor, new, expander, Options::default())) {
        Ok(renaming) => format!("{}: {}", renaming.kind, applied(&renaming)),
        Err(refusal) => format!("refused: {refusal}\n"),
    }
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&renamed(text, "new", &FixedExpander(None)));
}

#[test]
fn shadowed_names_are_others() {
    check(
        "(defun f (x‸) (let ((x (g x)) (y x)) (h x y)) x)",
        expect![[r#"
            parameter: (defun f (new) (let ((x (g new)) (y new)) (h x y)) new)
        "#]],
    );
    check(
        "(defun f (x) (let* ((x‸ (g x)) (y x)) (declare (type fixnum x)) '(x) (h :x \"x\" X |X| |x| #'x (x y)) `(x ,x)))",
        expect![[r#"
            local variable: (defun f (x) (let* ((new (g x)) (y new)) (declare (type fixnum new)) '(x) (h :x "x" NEW |NEW| |x| #'x (x y)) `(x ,new)))
        "#]],
    );
}

#[test]
fn functions_have_their_block_with_them() {
    check(
        "(flet ((f‸ (x) (return-from f (f x)))) (declare (inline f)) (f (mapcar #'f f)))",
        expect![[r#"
            local function: (flet ((new (x) (return-from new (f x)))) (declare (inline new)) (new (mapcar #'new f)))
        "#]],
    );
    check(
        "(block out‸ (block in (return-from out (return-from in))))",
        expect![[r#"
            block: (block new (block in (return-from new (return-from in))))
        "#]],
    );
    check(
        "(dotimes (i 3) again (when (p) (go aga‸in)))",
        expect![[r#"
            tag: (dotimes (i 3) new (when (p) (go new)))
        "#]],
    );
}

#[test]
fn keywords_and_slots_stay_and_come_back() {
    for (text, new) in [
        ("(defun f (&key x‸) x)", "(defun f (&key ((:x new))) new)"),
        ("(defun f (&key (x‸ 1 p)) x)", "(defun f (&key ((:x new) 1 p)) new)"),
        ("(with-slots (x‸ y) o (list x y))", "(with-slots ((new x) y) o (list new y))"),
        ("(with-accessors ((x‸ o-x)) o x)", "(with-accessors ((new o-x)) o new)"),
    ] {
        let there = renamed(text, "new", &FixedExpander(None));
        assert!(there.ends_with(&format!(": {new}\n")), "{there}");
        let back = new.replacen("new", "new‸", 1);
        assert!(
            renamed(&back, "x", &FixedExpander(None)).ends_with(&format!(": {}\n", text.replace('‸', ""))),
            "{back}"
        );
    }
}

#[test]
fn a_name_that_would_be_captured_is_refused() {
    check(
        "(defun f (x‸) (let ((new 1)) (+ x new)))",
        expect![[r#"
            refused: x cannot be called new here: x would then mean another binding.
        "#]],
    );
    check(
        "(defun f (x‸) (+ x new))",
        expect![[r#"
            refused: x cannot be called new here: new would then mean another binding.
        "#]],
    );
    check(
        "(defun f (:x‸) 1)",
        expect![[r#"
            refused: :x is a keyword: the text does not tell who else uses it.
        "#]],
    );
}

#[test]
fn the_image_decides_when_it_can() {
    let text = "(defun f (l) (with-each ((x‸ l) (y l)) (print x)))";
    // The scopes alone have no binding here.
    assert_eq!(
        renamed(text, "new", &FixedExpander(Some(vec![same(false)]))),
        "local name: (defun f (l) (with-each ((new l) (y l)) (print new)))\n"
    );
    let text = "(defun f (x‸) (logged x))";
    let no = FixedExpander(Some(vec![Variant { why: Some("*x* is special".into()), ..Variant::default() }]));
    assert_eq!(renamed(text, "new", &no), "refused: x cannot be called new here: *x* is special.\n");
    assert_eq!(
        renamed(text, "new", &FixedExpander(Some(vec![same(true)]))),
        "parameter: (defun f (?new) (logged ?new))\n"
    );
}

/// An expander that considers a variant the same if this text contains it.
struct TextExpander(&'static str);

impl Expander for TextExpander {
    async fn compare(&self, comparison: CompareExpansions) -> Result<Compared, ImageError> {
        let variants = comparison
            .variants
            .iter()
            .map(|text| Variant { same: self.0.contains(text.as_str()), ..Variant::default() });
        Ok(Compared { variants: variants.collect(), ..Compared::default() })
    }
}

#[test]
fn no_other_binding_is_renamed_along() {
    let all = "(defun f (new) (my-let (new (1+ new)) (list new)))";
    let inner = "(defun f (x) (my-let (new (1+ x)) (list new)))";
    let outer = "(defun f (new) (my-let (x (1+ new)) (list x)))";
    let macros = "(defmacro my-let ((v e) &body b) `(let ((,v ,e)) ,@b))\n";
    for (text, expected) in [
        ("(defun f (x) (my-let (x‸ (1+ x)) (list x)))", inner),
        ("(defun f (x) (my-let (x (1+ x)) (list x‸)))", inner),
        ("(defun f (x‸) (my-let (x (1+ x)) (list x)))", outer),
        ("(defun f (x) (my-let (x (1+ x‸)) (list x)))", outer),
    ] {
        let cursor = cursor(FakeImage::absent(), &[("a.lisp", &format!("{macros}{text}"))]);
        let expander = TextExpander(Box::leak(format!("{all}\n{inner}\n{outer}").into_boxed_str()));
        let renaming = run(rename(&cursor, "new", &expander, Options::default())).unwrap();
        assert_eq!(applied(&renaming), format!("{macros}{expected}\n"), "{text}");
    }
    // The image decides what a local macro means.
    let text = "(defun f (x‸) (macrolet ((mm () '(list x))) (mm)))";
    let cursor = cursor(FakeImage::absent(), &[("a.lisp", text)]);
    let expander = TextExpander("(defun f (new) (macrolet ((mm () '(list new))) (mm)))");
    assert_eq!(
        applied(&run(rename(&cursor, "new", &expander, Options::default())).unwrap()),
        format!("{}\n", expander.0)
    );
    check(
        text,
        expect![[r#"
        refused: x is not renamed: macrolet may mean it too, and the text does not tell.
    "#]],
    );
}

#[test]
fn without_an_image_a_macro_of_the_user_is_a_reason() {
    check(
        "(defun f (x‸) (with-thing (y x) (g x)))",
        expect![[r#"
            refused: x stands in with-thing, whose expansion is needed to rename it, and the image could not expand the form: There is no image.
        "#]],
    );
    // A macro around the form that binds the name contains all occurrences.
    check(
        "(deftest some-test (let ((x‸ 1)) (g x)))",
        expect![[r#"
            local variable: (deftest some-test (let ((new 1)) (g new)))
        "#]],
    );
    // A slot has the same name.
    let slot = "(defmacro my-let ((v e) &body b) `(let ((,v ,e)) ,@b))\n(defclass pt () ((x)))\n";
    for form in [
        "(defun f (x) (my-let (x‸ (1+ x)) (list x)))",
        "(defun f (x) (my-let (x (1+ x‸)) (list x)))",
        "(defun f () (my-let (x 1) (list x‸)))",
        "(defcommand f (x‸) (list x))",
    ] {
        let found = renamed(&format!("{slot}{form}"), "new", &FixedExpander(None));
        assert!(found.contains("whose expansion is needed"), "{form}\n{found}");
    }
    for form in ["(defcommand pt (slots) (pt x‸))", "(with-thing (y z) (slot-value y 'x‸))"] {
        let found = renamed(&format!("{slot}{form}"), "new", &FixedExpander(None));
        assert!(found.starts_with("slot: "), "{form}\n{found}");
    }
    check(
        "(defmacro twice (x) x)\n(defun f (x‸) (twice x))",
        expect![[r#"
            refused: x stands in twice, whose expansion is needed to rename it, and the image could not expand the form: There is no image.
        "#]],
    );
}

fn global(files: &[(&str, &str)], new: &str, options: Options, expected: Expect) {
    let cursor = cursor(FakeImage::absent(), files);
    let shown = match run(rename(&cursor, new, &FixedExpander(None), options)) {
        Ok(renaming) => format!("{}\n{}", renaming.kind, applied(&renaming)),
        Err(refusal) => format!("refused: {refusal}\n"),
    };
    expected.assert_eq(&shown);
}

const PACKAGES: &str = "(defpackage :lib (:use :cl) (:export #:far \"FAR\" :near))
(defpackage :user (:use :cl :lib) (:import-from :other #:far2))
(defpackage :alone (:use :cl) (:import-from #:lib #:far) (:shadow #:near))
(defpackage :stranger (:use :cl) (:export #:far))";

#[test]
fn a_function_is_renamed_in_all_packages_that_see_it() {
    global(
        &[
            (
                "a.lisp",
                "(in-package :lib)\n(declaim (inline far))\n(defun fa‸r (x) (if x (far 1) #'far))\n(defun (setf far) (v) v)\n(let ((far 1)) (mapcar 'far far))",
            ),
            ("b.lisp", "(in-package :user)\n(print (far 1)) ; far\n(defun g (far) (far far))"),
            ("c.lisp", "(in-package :stranger)\n(far (LIB:FAR 2) (lib::near 3) :far)"),
            ("p.lisp", PACKAGES),
        ],
        "away",
        Options::default(),
        expect![[r#"
            function
            (in-package :lib)
            (declaim (inline away))
            (defun away (x) (if x (away 1) #'away))
            (defun (setf away) (v) v)
            (let ((far 1)) (mapcar 'away far))
            (in-package :user)
            (print (away 1)) ; far
            (defun g (far) (away far))
            (in-package :stranger)
            (far (LIB:AWAY 2) (lib::near 3) :far)
            (defpackage :lib (:use :cl) (:export #:away "AWAY" :near))
            (defpackage :user (:use :cl :lib) (:import-from :other #:far2))
            (defpackage :alone (:use :cl) (:import-from #:lib #:away) (:shadow #:near))
            (defpackage :stranger (:use :cl) (:export #:far))
        "#]],
    );
}

#[test]
fn a_symbol_is_renamed_where_a_package_definition_names_it() {
    for clause in ["(:export #:fa‸r)", "(:export :far‸)", "(:export far‸)"] {
        let package = format!("(defpackage :lib (:use :cl) {clause})");
        let found =
            renamed(&format!("{package}\n(in-package :lib)\n(defun far (x) (far x))"), "away", &FixedExpander(None));
        let package = package.replace('‸', "").replace("far", "away");
        assert_eq!(found, format!("function: {package}\n(in-package :lib)\n(defun away (x) (away x))\n"), "{clause}");
    }
    let user = "(defpackage :user (:use :cl) (:import-from :lib #:f‸ar))\n(defpackage :lib (:export #:far))\n";
    let found = renamed(&format!("{user}(in-package :lib)\n(defun far (x) x)"), "away", &FixedExpander(None));
    assert!(found.contains("(:import-from :lib #:away))\n(defpackage :lib (:export #:away))"), "{found}");
    check(
        "(list #:fa‸r)",
        expect![[r#"
        refused: #:far is a symbol of no package, which only this place has.
    "#]],
    );
}

#[test]
fn what_a_macro_of_the_workspace_defines_is_renamed_as_what_it_is() {
    let uses = "(defun g () (f 1) (mapcar #'f l))";
    let shown = |operator: &str, image: FakeImage| {
        let text = format!("({operator} f‸ (x) x)\n{uses}");
        let renaming =
            run(rename(&cursor(image, &[("a.lisp", &text)]), "new", &FixedExpander(None), Options::default()));
        applied(&renaming.unwrap())
    };
    let expected = |operator| format!("({operator} new (x) x)\n(defun g () (new 1) (mapcar #'new l))\n");
    assert_eq!(shown("defun/inline", FakeImage::absent()), expected("defun/inline"));
    let facts = serde_json::json!({"name": "F", "package": "COMMON-LISP-USER", "external": false, "printed": "F",
        "kinds": ["function"], "documentation": []});
    let image = FakeImage::empty().symbol("f", serde_json::json!({"found": true, "facts": facts}));
    assert_eq!(shown("define-thing", image), expected("define-thing"));
}

#[test]
fn variables_slots_classes_and_structures() {
    global(
        &[(
            "a.lisp",
            "(defvar *x‸* 1)\n(defun f (*y*) (let ((*x* 2)) (declare (special *x*)) (list *x* '*x* \"*x*\")))",
        )],
        "*new*",
        Options { texts: true },
        expect![[r#"
            variable
            (defvar *new* 1)
            (defun f (*y*) (let ((*new* 2)) (declare (special *new*)) (list *new* '?*new* "?*new*")))
        "#]],
    );
    global(
        &[(
            "a.lisp",
            "(defclass shape () ((width :initarg :width :accessor width‸-of)))\n(defmethod width-of :around ((s shape)) (setf (width-of s) 1) (slot-value s 'width))",
        )],
        "breadth",
        Options::default(),
        expect![[r#"
            method
            (defclass shape () ((width :initarg :width :accessor breadth)))
            (defmethod breadth :around ((s shape)) (setf (breadth s) 1) (slot-value s 'width))
        "#]],
    );
    global(
        &[(
            "a.lisp",
            "(defclass shape () ((wi‸dth :initarg :width)))\n(defmethod f ((s shape)) (with-slots (width) s (list width (slot-value s 'width) '(width))))",
        )],
        "breadth",
        Options::default(),
        expect![[r#"
            slot
            (defclass shape () ((breadth :initarg :width)))
            (defmethod f ((s shape)) (with-slots ((width breadth)) s (list width (slot-value s 'breadth) '(?breadth))))
        "#]],
    );
    global(
        &[(
            "a.lisp",
            "(defstruct po‸int x (y 1))\n(defun f (point) (declare (type point point)) (if (point-p point) (point-x (copy-point point)) (make-point :x 1)))\n(typep 1 'point)",
        )],
        "dot",
        Options::default(),
        expect![[r#"
            structure
            (defstruct dot x (y 1))
            (defun f (point) (declare (type dot point)) (if (dot-p point) (dot-x (copy-dot point)) (make-dot :x 1)))
            (typep 1 'dot)
        "#]],
    );
    global(
        &[("a.lisp", "(define-thing fo‸o (a))\n(make-foo 1)\n(foo 2)")],
        "bar",
        Options::default(),
        expect![[r#"
            define-thing
            (define-thing bar (a))
            (?make-bar 1)
            (?bar 2)
        "#]],
    );
}

#[test]
fn clashes_are_refused() {
    global(
        &[("a.lisp", "(defun f‸ () 1)\n(defun g () 2)")],
        "g",
        Options::default(),
        expect![[r#"
        refused: g is already defined in the package COMMON-LISP-USER: /no/a.lisp, line 2.
    "#]],
    );
    global(
        &[
            ("a.lisp", "(in-package :lib)\n(defun fa‸r () 1)"),
            ("b.lisp", "(in-package :user)\n(defun away () 1)"),
            ("p.lisp", PACKAGES),
        ],
        "away",
        Options::default(),
        expect![[r#"
            refused: far cannot be called away: the package USER, which uses it, has another symbol of that name.
        "#]],
    );
    global(
        &[("a.lisp", "(defun f‸ () 1)\n(flet ((g () 1)) (f))")],
        "g",
        Options::default(),
        expect![[r#"
        refused: The new name would be caught by a local binding in /no/a.lisp, line 2: f would then mean another binding.
    "#]],
    );
    global(
        &[("a.lisp", "(ca‸r 1)")],
        "g",
        Options::default(),
        expect![[r#"
        refused: car is neither a local name nor defined in a Lisp file of the workspace, so it cannot be renamed.
    "#]],
    );
}

#[test]
fn names_of_the_standard_are_taken() {
    let package = "(defpackage :lib (:use :cl) (:shadow #:search))\n(in-package :lib)\n";
    for (text, new, expected) in [
        ("(defun far‸ (x) (list x))", "list", "list is in the package LIB already: it is a symbol of COMMON-LISP"),
        ("(defstruct far‸ x)", "list", "list is in the package LIB already"),
        ("(flet ((far‸ (x) x)) (far 1))", "list", "list is a symbol of COMMON-LISP, which is locked"),
        ("(defun far‸ (x) (list x))", "search", "function: "),
        ("(flet ((far‸ (x) x)) (far 1))", "search", "local function: "),
        ("(let ((far‸ 1)) far)", "list", "local variable: "),
    ] {
        let marked = format!("{package}{text}");
        let found = renamed(&marked, new, &FixedExpander(None));
        assert!(found.contains(expected), "{text}\n{found}");
    }
}

#[test]
fn a_local_name_is_not_renamed_where_its_meaning_would_change() {
    let refused = |text: &str, new: &str, reason: &str| {
        let found = renamed(text, new, &FixedExpander(None));
        assert!(found.contains("refused: ") && found.contains(reason), "{text}\n{found}");
    };
    // The new name is special or constant.
    refused("(let ((x‸ 1)) x)", "pi", "pi is a special variable or a constant");
    refused("(let ((x‸ 1)) x)", "*print-base*", "*print-base* is a special variable");
    refused("(let ((x‸ 1)) x)\n(defvar y 1)", "y", "y is a special variable or a constant");
    // Hidden mentions may mean the local name, too.
    refused("(let ((x‸ 1)) (macrolet ((m () 'x)) (list x (m))))", "new", "macrolet may mean it too");
    refused("(let ((x‸ 1)) (foo:let ((x 2)) x) x)", "new", "let may mean it too");
    refused("(let ((x‸ 1)) (g x app::x))", "new", "app::x may mean it too");
    // A special variable is renamed everywhere.
    let found = renamed("(let ((*x*‸ 1)) *x*)\n(defvar *x* 2)\n(defun f () *x*)", "*new*", &FixedExpander(None));
    assert!(found.starts_with("variable: (let ((*new* 1)) *new*)\n(defvar *new* 2)\n(defun f () *new*)"), "{found}");
    check(
        "(defun f (x‸) (multiple-value-setq (x y) (g)) (assert x (x)) (print-unreadable-object (x s) x))",
        expect![[r#"
            parameter: (defun f (new) (multiple-value-setq (new y) (g)) (assert new (new)) (print-unreadable-object (new s) new))
        "#]],
    );
}

#[test]
fn an_image_that_does_not_answer_is_a_refusal() {
    let refused = |text: &str| {
        let cursor = cursor(FakeImage::busy(), &[("a.lisp", text)]);
        run(rename(&cursor, "new", &FixedExpander(None), Options::default())).unwrap_err().0
    };
    for text in [
        "(defun f (x‸) x)",
        "(in-package :app)\n(defun f‸ () 1)",
        "(defpackage :app (:use :cl))\n(in-package :app)\n(defclass c‸ () ())",
    ] {
        let why = refused(text);
        assert!(why.contains("The Lisp image did not answer. Nothing was changed"), "{text}: {why}");
    }
    // No variable is meant.
    let cursor = cursor(FakeImage::busy(), &[("a.lisp", "(block a‸ (return-from a))")]);
    assert!(run(rename(&cursor, "new", &FixedExpander(None), Options::default())).is_ok());
}

#[test]
fn a_document_has_the_version_of_the_client_that_asks_or_none() {
    let open = |name: &str, own: bool, text: &str| OpenText {
        uri: format!("file:///no/{name}"),
        own,
        path: Some(format!("/no/{name}").into()),
        document: Document::new(text, if own { 1 } else { 7 }),
    };
    let texts = vec![
        open("a.lisp", false, "; of another editor"),
        open("b.lisp", false, "(in-package :app)\n(f)"),
        open("a.lisp", true, "(in-package :app)\n(defun f () 1)"),
    ];
    let context = Context::new(FakeImage::absent(), texts);
    let cursor = Cursor::new(context, "file:///no/a.lisp", |_| 25).unwrap();
    let files = run(rename(&cursor, "new", &FixedExpander(None), Options::default())).unwrap().files;
    let version = |file: &FileChanges| (file.open.then(|| file.document.version()), file.changes.len());
    assert_eq!(files.iter().map(version).collect::<Vec<_>>(), [(Some(1), 1), (None, 1)]);
}

#[test]
fn while_an_image_starts_the_text_answers_for_local_names_only() {
    let of = |text: &str| {
        let cursor = cursor(FakeImage::starting(), &[("a.lisp", text)]);
        run(rename(&cursor, "new", &FixedExpander(None), Options::default()))
    };
    for text in ["(in-package :app)\n(defun f‸ () 1)", "(defpackage :ap‸p (:use :cl))\n(in-package :app)"] {
        let why = of(text).unwrap_err().0;
        assert!(why.ends_with("The Lisp image is starting (restarting). Nothing was changed; try again."), "{why}");
    }
    assert_eq!(applied(&of("(defun f (x‸) x)").unwrap()), "(defun f (new) new)\n");
}

#[test]
fn an_incomplete_index_makes_a_renaming_unsure_or_refused() {
    let of = |text: &str| {
        let cursor = cursor(FakeImage::absent().incomplete("/no/b.lisp cannot be read"), &[("a.lisp", text)]);
        run(rename(&cursor, "new", &FixedExpander(None), Options::default()))
    };
    assert_eq!(applied(&of("(defun f (*x*‸) *x*)").unwrap()), "(defun f (?new) ?new)\n");
    assert_eq!(applied(&of("(defun f (x‸) x)").unwrap()), "(defun f (new) new)\n");
    assert_eq!(applied(&of("(block a‸ (return-from a))").unwrap()), "(block new (return-from new))\n");
    for text in ["(in-package :app)\n(defun f‸ () 1)", "(defpackage :a‸ (:use :cl))"] {
        let why = of(text).unwrap_err().0;
        assert_eq!(why, "Not all mentions can be found, because /no/b.lisp cannot be read.");
    }
}
