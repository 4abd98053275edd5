//! Tests of the user's own rules in the settings.

use super::*;
use crate::text::pattern::{Pattern, Template};

fn rule(name: &str, pattern: &str, rewrite: Option<&str>) -> LintRule {
    let pattern = Pattern::read(pattern).unwrap();
    let rewrite = rewrite.map(|rewrite| Template::read(rewrite, &pattern).unwrap());
    LintRule { name: name.into(), pattern, message: "No.".into(), rewrite }
}

#[test]
fn lists_that_match_are_told_and_rewritten() {
    let text = "(in-package :a)
(defun f (x)
  (first x) '(first x) (first x) ; consort: ignore no-first

  (first (first x))
  (b:get-it x) (get-it x)
  (let ((first (first 1))) `(first ,(first 2)))
  #+a (first 3) (list #'(lambda () (first #+b 4))))
(define-it (first 5))
(b::get-it 6)
";
    let files = [
        ("/no/a.lisp", text),
        ("/no/p.lisp", "(defpackage :a (:use :cl))\n(defpackage :b (:use :cl) (:export #:get-it))"),
    ];
    let own = vec![rule("no-first", "(first ?x)", Some("(car ?x)")), rule("own", "(b:get-it ?*)", None)];
    let rules = EnabledRules { names: Vec::new(), own };
    assert_eq!(
        among(&files, &rules),
        ["5 lint-own first", "5 lint-own first", "6 lint-own b:get-it", "7 lint-own first", "10 lint-own b::get-it"]
    );
    let off = EnabledRules { names: vec!["-no-first".into()], ..rules.clone() };
    assert_eq!(among(&files, &off).len(), 2);
    let document = Document::new(text, 0);
    let all = check(&document, None, &rules, &snapshot(&files));
    let texts: Vec<&str> = all.iter().filter_map(|one| one.data["rewrite"]["text"].as_str()).collect();
    assert_eq!(texts, ["(car (first x))", "(car x)", "(car 1)"]);
    let changes = crate::ide::fixes::of_text(&document, &all[0]).remove(0).changes;
    let inner = all[0].span.start;
    assert_eq!((changes[0].span.start, changes[0].text.as_str()), (inner - 1, "(car (first x))"));
}

#[test]
fn a_rule_that_is_everywhere_ends() {
    let text = format!("(defun f ()\n{})", "(g 1)\n".repeat(3_000));
    let rules = EnabledRules { names: Vec::new(), own: vec![rule("own", "(g ?x)", Some("(h ?x)"))] };
    assert_eq!(among(&[("/no/a.lisp", &text)], &rules).len(), super::super::own::MAX_FINDINGS);
}
