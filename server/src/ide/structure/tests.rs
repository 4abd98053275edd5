//! Tests of unbalanced texts: the marked spans, and the text that the compiler still gets.

use insta::assert_snapshot;

use super::*;

#[path = "../../../../tests/support/carets.rs"]
#[allow(unreachable_pub)]
mod carets;

/// Returns the source with the findings under it, followed by the withheld forms and the fixes.
fn shown(source: &str) -> String {
    let document = Document::new(source, 0);
    let structure = check(&document);
    let mut marks = Vec::new();
    for diagnostic in &structure.diagnostics {
        let Span { start, end } = diagnostic.span;
        marks.push(carets::Mark { start, end, label: format!("{}: {}", diagnostic.code, diagnostic.message) });
        for related in &diagnostic.related {
            let Span { start, .. } = related.span;
            marks.push(carets::Mark { start, end: start + 1, label: format!("related: {}", related.message) });
        }
    }
    let mut out = carets::render(source, &marks);
    for span in &structure.withheld {
        let text = document.text().slice(span.start..span.end).to_string();
        out.push_str(&format!("withheld: {text:?}\n"));
    }
    for diagnostic in structure.diagnostics.iter().filter(|diagnostic| !diagnostic.data.is_null()) {
        out.push_str(&format!("fix: {}\n", diagnostic.data));
    }
    out
}

#[test]
fn a_missing_parenthesis_at_the_end_of_a_definition() {
    assert_snapshot!(shown("(defun a (x)\n  (list x)\n\n(defun b (y)\n  (list y))\n"), @r##"
    | (defun a (x)
      ^ unbalanced-list: This list is never closed; one `)` is missing at the end of line 2.
    |   (list x)
    |
    | (defun b (y)
      ^ related: The next definition begins here, inside this form.
    |   (list y))
    withheld: "(defun a (x)\n  (list x)"
    fix: {"insert":{"at":23,"text":")"}}
    "##);
}

#[test]
fn a_missing_parenthesis_in_the_middle_is_told_by_the_indentation() {
    assert_snapshot!(shown("(defun a (x)\n  (let ((y 1)\n    (list x y)))\n\n(defun b ())\n"), @r##"
    | (defun a (x)
      ^ related: The top-level form that is left open begins here.
    |   (let ((y 1)
             ^ unbalanced-list: This list is never closed; one `)` is missing here.
    |     (list x y)))
    |
    | (defun b ())
      ^ related: The next definition begins here, inside this form.
    withheld: "(defun a (x)\n  (let ((y 1)\n    (list x y)))"
    fix: {"insert":{"at":26,"text":")"}}
    "##);
}

#[test]
fn a_call_left_open_before_its_body() {
    assert_snapshot!(shown("(defun a (x)\n  (when (plusp x\n    (print x)\n    (a (1- x))))\n"), @r##"
    | (defun a (x)
      ^ related: The top-level form that is left open begins here.
    |   (when (plusp x
              ^ unbalanced-list: This list is never closed; one `)` is missing here.
    |     (print x)
    |     (a (1- x))))
    withheld: "(defun a (x)\n  (when (plusp x\n    (print x)\n    (a (1- x))))\n"
    fix: {"insert":{"at":29,"text":")"}}
    "##);
}

#[test]
fn two_missing_at_one_place() {
    assert_snapshot!(shown("(defun a (x)\n  (when (and (plusp x) (evenp x\n    (print x)))\n"), @r##"
    | (defun a (x)
      ^ related: The top-level form that is left open begins here.
    |   (when (and (plusp x) (evenp x
                             ^ unbalanced-list: This list is never closed; 2 `)` are missing here.
    |     (print x)))
    withheld: "(defun a (x)\n  (when (and (plusp x) (evenp x\n    (print x)))\n"
    fix: {"insert":{"at":44,"text":"))"}}
    "##);
}

#[test]
fn missing_in_two_places() {
    assert_snapshot!(shown("(defun a (x)\n  (let ((y (car x))\n    (when (plusp y\n      (print y))))\n\n(b)\n"), @r##"
    | (defun a (x)
      ^ related: The top-level form that is left open begins here.
      ^ related: The top-level form that is left open begins here.
    |   (let ((y (car x))
             ^ unbalanced-list: This list is never closed; one `)` is missing here.
    |     (when (plusp y
                ^ unbalanced-list: This list is never closed; one `)` is missing here.
    |       (print y))))
    |
    | (b)
      ^ related: The next definition begins here, inside this form.
      ^ related: The next definition begins here, inside this form.
    withheld: "(defun a (x)\n  (let ((y (car x))\n    (when (plusp y\n      (print y))))"
    fix: {"insert":{"at":32,"text":")"}}
    fix: {"insert":{"at":51,"text":")"}}
    "##);
}

#[test]
fn typing_at_the_end_of_the_file() {
    assert_snapshot!(shown("(defun a ())\n\n(defun b (x)\n  (let ((y "), @r##"
    | (defun a ())
    |
    | (defun b (x)
      ^ related: The top-level form that is left open begins here.
    |   (let ((y
              ^ unbalanced-list: This list is never closed; 4 `)` are missing here.
    withheld: "(defun b (x)\n  (let ((y "
    fix: {"insert":{"at":37,"text":"))))"}}
    "##);
}

#[test]
fn two_definitions_broken_each_by_itself() {
    assert_snapshot!(shown("(defun a ()\n  (f)\n\n(defun b ()\n  (g))\n\n(defun c ()\n  (h)\n"), @r##"
    | (defun a ()
      ^ unbalanced-list: This list is never closed; one `)` is missing at the end of line 2.
    |   (f)
    |
    | (defun b ()
      ^ related: The next definition begins here, inside this form.
    |   (g))
    |
    | (defun c ()
      ^ unbalanced-list: This list is never closed; one `)` is missing at the end of line 8.
    |   (h)
    withheld: "(defun a ()\n  (f)"
    withheld: "(defun c ()\n  (h)\n"
    fix: {"insert":{"at":17,"text":")"}}
    fix: {"insert":{"at":56,"text":")"}}
    "##);
}

#[test]
fn one_closing_too_many() {
    assert_snapshot!(shown("(defun a ()\n  (f)))\n\n(defun b ())\n"), @r##"
    | (defun a ()
    |   (f)))
            ^ unbalanced-close: This `)` closes nothing: there is one too many.
           ^ related: The form on line 1 ends here.
    |
    | (defun b ())
    withheld: ")"
    fix: {"delete":[18,19]}
    "##);
}

#[test]
fn several_closing_too_many() {
    assert_snapshot!(shown("(defun a ()\n  (f)))))\n"), @r##"
    | (defun a ()
    |   (f)))))
            ^^^ unbalanced-close: These 3 `)` close nothing: there are 3 too many.
           ^ related: The form on line 1 ends here.
    withheld: ")"
    withheld: ")"
    withheld: ")"
    fix: {"delete":[18,21]}
    "##);
}

#[test]
fn a_definition_closed_too_early() {
    assert_snapshot!(shown("(defun a (x)\n  (when x))\n    (print x))\n\n(defun b ())\n"), @r##"
    | (defun a (x)
    |   (when x))
                ^ related: The form on line 1 ends here already, but what follows is indented as part of it.
    |     (print x))
                   ^ unbalanced-close: This `)` closes nothing: there is one too many.
    |
    | (defun b ())
    withheld: ")"
    fix: {"delete":[38,39]}
    "##);
}

#[test]
fn a_string_without_end_takes_the_next_definition() {
    assert_snapshot!(shown("(defun a ()\n  \"What a does.\n  (f))\n\n(defun b ()\n  \"What b does.\"\n  (g))\n"), @r##"
    | (defun a ()
    |   "What a does.
        ^^^^^^^^^^^^^ unbalanced-string: This string never ends: a `"` is missing.
    |   (f))
    |
    | (defun b ()
      ^ related: The next definition begins here, inside the string.
    |   "What b does."
    |   (g))
    withheld: "(defun a ()\n  \"What a does.\n  (f))"
    "##);
}

#[test]
fn a_quote_missing_in_a_line_with_other_strings() {
    assert_snapshot!(shown("(defun a (x)\n  (format t \"a: ~a x \"b\" \"c\"))\n\n(defun b ()\n  (print \"b\"))\n"), @r##"
    | (defun a (x)
    |   (format t "a: ~a x "b" "c"))
                  ^^^^^^^^^^^^^^^^^^ unbalanced-string: This string never ends: a `"` is missing.
    |
    | (defun b ()
      ^ related: The next definition begins here, inside the string.
    |   (print "b"))
    withheld: "(defun a (x)\n  (format t \"a: ~a x \"b\" \"c\"))"
    "##);
}

#[test]
fn a_string_without_end_at_the_end() {
    assert_snapshot!(shown("(defun a ())\n(print \"abc)\n"), @r##"
    | (defun a ())
    | (print "abc)
             ^^^^^ unbalanced-string: This string never ends: a `"` is missing.
    withheld: "(print \"abc)\n"
    "##);
}

#[test]
fn a_legitimate_string_with_a_definition_in_it() {
    assert_snapshot!(shown("(defvar *text* \"\n(defun x ()\n\")\n\n(defun a ()\n  (f)\n"), @r##"
    | (defvar *text* "
    | (defun x ()
    | ")
    |
    | (defun a ()
      ^ unbalanced-list: This list is never closed; one `)` is missing at the end of line 6.
    |   (f)
    withheld: "(defun a ()\n  (f)\n"
    fix: {"insert":{"at":50,"text":")"}}
    "##);
}

#[test]
fn a_block_comment_without_end() {
    assert_snapshot!(shown("(defun a ())\n#| outer #| inner |#\n(defun b ())\n"), @r##"
    | (defun a ())
    | #| outer #| inner |#
      ^^ unbalanced-comment: This comment never ends: a `|#` is missing. Everything after it is commented out.
    | (defun b ())
    withheld: "#| outer #| inner |#\n(defun b ())\n"
    "##);
}

#[test]
fn a_bar_without_end() {
    assert_snapshot!(shown("(defun a ()\n  (f |x y))\n\n(defun b ()\n  (g))\n"), @r##"
    | (defun a ()
    |   (f |x y))
           ^^^^^^ unbalanced-symbol: This `|` is never closed: a second `|` is missing.
    |
    | (defun b ()
      ^ related: The next definition begins here, inside the symbol.
    |   (g))
    withheld: "(defun a ()\n  (f |x y))"
    "##);
}

#[test]
fn a_backslash_at_the_end() {
    assert_snapshot!(shown("(defun a ())\n(f a\\"), @r##"
    | (defun a ())
    | (f a\
          ^ unfinished-escape: The text ends after this `\`, which needs a character after it.
    withheld: "(f a\\"
    "##);
}

#[test]
fn a_character_cut_off_at_the_end() {
    assert_snapshot!(shown("(defun a ())\n(char= c #\\"), @r##"
    | (defun a ())
    | (char= c #\
                ^ unfinished-escape: The text ends after this `\`, which needs a character after it.
    withheld: "(char= c #\\"
    "##);
}

#[test]
fn a_quote_with_nothing_after_it() {
    assert_snapshot!(shown("(defun a ()\n  (list 'x '))\n\n(defun b ())\n"), @r##"
    | (defun a ()
    |   (list 'x '))
                 ^ unfinished-prefix: This `'` has nothing after it: a form must follow it.
    |
    | (defun b ())
    withheld: "(defun a ()\n  (list 'x '))"
    "##);
}

#[test]
fn a_guard_with_nothing_after_it_in_a_list() {
    assert_snapshot!(shown("(list 1 #+sbcl)\n(b)\n"), @r##"
    | (list 1 #+sbcl)
              ^^ unfinished-prefix: This `#+` guards nothing: a feature and a form must follow it.
    | (b)
    withheld: "(list 1 #+sbcl)"
    "##);
}

#[test]
fn a_guard_with_nothing_after_it_at_the_end() {
    assert_snapshot!(shown("(b)\n#+(or sbcl ccl)\n"), @r##"
    | (b)
    | #+(or sbcl ccl)
      ^^ unfinished-prefix: This `#+` guards nothing: a feature and a form must follow it.
    withheld: "#+(or sbcl ccl)"
    "##);
}

#[test]
fn a_quote_at_the_end() {
    assert_snapshot!(shown("(b)\n#'"), @r##"
    | (b)
    | #'
      ^^ unfinished-prefix: This `#'` has nothing after it: a form must follow it.
    withheld: "#'"
    "##);
}

#[test]
fn a_guarded_definition_after_a_broken_one() {
    assert_snapshot!(shown("(defun a ()\n  (f)\n\n#+sbcl\n(defun b ())\n\n#-sbcl (defun b ())\n"), @r##"
    | (defun a ()
      ^ unbalanced-list: This list is never closed; one `)` is missing at the end of line 2.
    |   (f)
    |
    | #+sbcl
      ^ related: The next definition begins here, inside this form.
    | (defun b ())
    |
    | #-sbcl (defun b ())
    withheld: "(defun a ()\n  (f)"
    fix: {"insert":{"at":17,"text":")"}}
    "##);
}

#[test]
fn tabs_and_wide_characters() {
    assert_snapshot!(shown("(defun a ()\n\t(foo \"漢字\" (bar é)\n\t(baz))\n"), @r##"
    | (defun a ()
      ^ related: The top-level form that is left open begins here.
    | →   (foo "漢字" (bar é)
          ^ unbalanced-list: This list is never closed; one `)` is missing here.
    | →   (baz))
    withheld: "(defun a ()\n\t(foo \"漢字\" (bar é)\n\t(baz))\n"
    fix: {"insert":{"at":30,"text":")"}}
    "##);
}

#[test]
fn parentheses_that_are_no_parentheses() {
    assert_snapshot!(shown("(defun a ()\n  ; (((\n  #| ((( |#\n  (list #\\( \"(((\" '|(((| '\\())\n"), @r##"
    | (defun a ()
    |   ; (((
    |   #| ((( |#
    |   (list #\( "(((" '|(((| '\())
    "##);
}

#[test]
fn balanced_text_may_have_parentheses_at_the_line_start() {
    assert_snapshot!(shown("(progn\n(defun a ())\n(defun b ()))\n(in-package :x)\n"), @r##"
    | (progn
    | (defun a ())
    | (defun b ()))
    | (in-package :x)
    "##);
}

#[test]
fn column_zero_forms_inside_a_form_that_is_closed_stay_inside() {
    assert_snapshot!(shown("(progn\n(defun a ())\n)\n(defun b ()\n  (f)\n"), @r##"
    | (progn
    | (defun a ())
    | )
    | (defun b ()
      ^ unbalanced-list: This list is never closed; one `)` is missing at the end of line 5.
    |   (f)
    withheld: "(defun b ()\n  (f)\n"
    fix: {"insert":{"at":39,"text":")"}}
    "##);
}

#[test]
fn nothing_at_all() {
    assert_snapshot!(shown(""), @"");
}
