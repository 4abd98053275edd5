//! Rules beside the compiler (`lint.rules`), about code that compiles and is hardly meant. A rule
//! tells only of forms that are known to be evaluated, never of data.
//!
//! A comment `consort: ignore` on the line of a finding, or on the line above, silences all rules
//! there; with names of rules behind it, only those.

mod cases;

use super::index::Snapshot;
use super::refactor::names::{first_other, read_otherwise};
use super::refactor::{Evaluated, OwnMacros};
use crate::model::diagnostic::{Diagnostic, Severity, Tag};
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::names::is_number;

/// The prefix of the codes of these findings.
const CODE: &str = "lint-";
/// The maximum size in bytes of a form that is looked into.
const LARGEST_FORM: usize = 256 << 10;

/// A rule.
struct Rule {
    /// The name in the settings.
    name: &'static str,
    /// The code of its findings.
    code: &'static str,
    /// The places at which a list breaks it, with messages.
    judge: fn(&Form, &Node) -> Vec<(Span, String)>,
}

const RULES: [Rule; 7] = [
    Rule { name: "eq-literal", code: "lint-eq-literal", judge: eq_literal },
    Rule { name: "unused-string", code: "lint-unused-string", judge: unused_string },
    Rule { name: "boolean-if", code: "lint-boolean-if", judge: boolean_if },
    Rule { name: "negated-when", code: "lint-negated-when", judge: negated_when },
    Rule { name: "quoted-key", code: "lint-quoted-key", judge: cases::quoted_key },
    Rule { name: "nil-key", code: "lint-nil-key", judge: cases::nil_key },
    Rule { name: "missing-otherwise", code: "lint-missing-otherwise", judge: cases::missing_otherwise },
];

/// Returns true if a rule has this name, or it is `all`; a `-` before it takes it away.
pub fn is_rule(name: &str) -> bool {
    let name = name.strip_prefix('-').unwrap_or(name);
    name == "all" || RULES.iter().any(|rule| rule.name == name)
}

/// Returns true if a finding is of a rule, and not of the compiler.
pub fn is_finding(diagnostic: &Diagnostic) -> bool {
    diagnostic.code.starts_with(CODE)
}

/// The findings of the rules that the settings name, in the order of the text.
/// `index`: the workspace's texts, which define packages and macros.
pub fn check(document: &Document, wanted: &[String], index: &Snapshot) -> Vec<Diagnostic> {
    let mut rules: Vec<&Rule> = Vec::new();
    for name in wanted {
        let (bare, off) = name.strip_prefix('-').map_or((name.as_str(), false), |bare| (bare, true));
        rules.retain(|rule| !(bare == "all" || rule.name == bare));
        rules.extend(RULES.iter().filter(|rule| !off && (bare == "all" || rule.name == bare)));
    }
    let mut found = Vec::new();
    if rules.is_empty() {
        return found;
    }
    let mut macros: Option<OwnMacros> = None;
    for top in document.scan().forms().iter().filter(|top| top.fault.is_none()) {
        if top.bytes.end - top.bytes.start > LARGEST_FORM || crate::text::stop::now() {
            continue;
        }
        let form = Form::of(document, top.span);
        let mut suspects: Vec<(&Rule, Vec<&Node>, Span, String)> = Vec::new();
        for node in &form.nodes {
            suspect(&form, node, &mut Vec::new(), &rules, &mut suspects);
        }
        if suspects.is_empty() {
            continue;
        }
        let macros = macros.get_or_insert_with(|| OwnMacros::among(document, index));
        let evaluated = Evaluated::new(document, &form, macros);
        if read_otherwise(document, &form) {
            continue;
        }
        let package = package_at(document, top.span.start);
        // The operators around it, and the names of which the rules tell, are the standard's.
        let is_standard = |path: &[&Node]| {
            let inner = path.last().into_iter().flat_map(|list| list.children.iter());
            first_other(index, &form, path.iter().copied().chain(inner), package.as_deref()).is_none()
        };
        for (rule, path, span, message) in suspects {
            if is_standard(&path) && evaluated.holds(&path) && !is_silenced(document, span, rule.name) {
                found.push(Diagnostic {
                    toplevel: Some(top.span),
                    tags: if rule.name == "unused-string" { vec![Tag::Unnecessary] } else { Vec::new() },
                    ..Diagnostic::new(span, Severity::StyleWarning, rule.code, message)
                });
            }
        }
    }
    found.sort_by_key(|one| one.span);
    found
}

/// Collects the lists that rules tell of, each with the lists around it.
fn suspect<'a, 'r>(
    form: &Form,
    node: &'a Node,
    around: &mut Vec<&'a Node>,
    rules: &[&'r Rule],
    found: &mut Vec<(&'r Rule, Vec<&'a Node>, Span, String)>,
) {
    if node.kind != Kind::List || !node.is_plain() && node.prefix != crate::text::datum::Prefix::Function {
        return;
    }
    around.push(node);
    if node.is_list() && node.children.iter().all(|child| !child.guarded) {
        for rule in rules {
            for (span, message) in (rule.judge)(form, node) {
                found.push((rule, around.clone(), span, message));
            }
        }
    }
    for child in &node.children {
        suspect(form, child, around, rules, found);
    }
    around.pop();
}

/// Returns true if a comment silences a rule there.
fn is_silenced(document: &Document, span: Span, rule: &str) -> bool {
    let text = document.text();
    let line = text.char_to_line(span.start);
    let silences = |line: usize| {
        let line = text.line(line).to_string();
        let Some((_, names)) = line.split_once(';').and_then(|(_, comment)| comment.split_once("consort: ignore"))
        else {
            return false;
        };
        let mut names = names.split([' ', ',', '\t', '\r', '\n']).filter(|name| is_rule(name)).peekable();
        names.peek().is_none() || names.any(|name| name == rule || name == "all")
    };
    silences(line) || line > 0 && silences(line - 1)
}

fn is_literal(form: &Form, node: &Node) -> bool {
    let written = form.written(node);
    node.is_plain()
        && match node.kind {
            Kind::Atom => written.starts_with("#\\") || is_number(written),
            Kind::String => true,
            _ => false,
        }
}

/// `(eq x 1)`: whether two equal numbers, characters or strings are the same is not told.
fn eq_literal(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let [head, one, other] = list.children.as_slice() else { return Vec::new() };
    if form.operator(list).as_deref() != Some("eq") {
        return Vec::new();
    }
    let Some(literal) = [one, other].into_iter().find(|node| is_literal(form, node)) else { return Vec::new() };
    let (kind, instead) = match literal.kind {
        Kind::String => ("strings", "STRING= or EQUAL"),
        _ if form.written(literal).starts_with('#') => ("characters", "EQL or CHAR="),
        _ => ("numbers", "EQL or ="),
    };
    vec![(head.span, format!("EQ need not find equal {kind} the same; use {instead}."))]
}

/// A string in a body whose value is thrown away.
fn unused_string(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let operator = form.operator(list).unwrap_or_default();
    let (body, documented) = match operator.as_str() {
        "defun" => (3, true),
        "lambda" => (2, true),
        "progn" => (1, false),
        "let" | "let*" | "when" | "unless" | "dolist" | "dotimes" => (2, false),
        "multiple-value-bind" | "destructuring-bind" => (3, false),
        _ => return Vec::new(),
    };
    let forms = list.children.get(body..).unwrap_or_default();
    let Some((_, forms)) = forms.split_last() else { return Vec::new() };
    let mut documented = documented;
    let mut found = Vec::new();
    for one in forms {
        if one.kind == Kind::String && one.is_plain() {
            if !documented {
                let why = if operator == "defun" { ": a docstring stands before the code" } else { "" };
                found.push((one.span, format!("The value of this string is thrown away{why}.")));
            }
            documented = false;
        } else if form.operator(one).as_deref() != Some("declare") {
            documented = false;
        }
    }
    found
}

/// `(if x t nil)`, `(if x nil t)`.
fn boolean_if(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let [head, _, yes, no] = list.children.as_slice() else { return Vec::new() };
    let is = |node: &Node, word: &str| node.is_plain() && form.text(node).eq_ignore_ascii_case(word);
    if form.operator(list).as_deref() != Some("if") {
        return Vec::new();
    }
    if is(yes, "nil") && is(no, "t") {
        vec![(head.span, "This is NOT of the condition.".into())]
    } else if is(yes, "t") && is(no, "nil") {
        vec![(head.span, "The condition says the same, or (AND condition T) where T itself is needed.".into())]
    } else {
        Vec::new()
    }
}

/// `(when (not x) ...)`, `(unless (not x) ...)`.
fn negated_when(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let [head, condition, _, ..] = list.children.as_slice() else { return Vec::new() };
    let other = match form.operator(list).as_deref() {
        Some("when") => "UNLESS",
        Some("unless") => "WHEN",
        _ => return Vec::new(),
    };
    let negated = condition.is_list()
        && condition.children.len() == 2
        && !condition.children[1].guarded
        && form.operator(condition).as_deref() == Some("not");
    if negated { vec![(head.span, format!("{other} says it without NOT."))] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each finding as its line, rule and marked text.
    fn found(text: &str, rules: &[&str]) -> Vec<String> {
        let document = Document::new(text, 0);
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let shown = |one: Diagnostic| {
            let line = document.text().char_to_line(one.span.start) + 1;
            format!("{line} {} {}", one.code, document.text().slice(one.span.start..one.span.end))
        };
        check(&document, &rules, &snapshot(&[("/no/a.lisp", text)])).into_iter().map(shown).collect()
    }

    #[test]
    fn each_rule_tells_of_what_it_is_about_and_of_nothing_else() {
        let text = r#"(defun f (x)
  "Documented."
  (when (eq x 1) (eq #\a x) (eq x "s") (eq x 'a) (eq x y) (eql x 1))
  "lost"
  (if x t nil) (if x nil t) (if x t) (if x t 1)
  (when (not x) (g)) (unless (not x) (g)) (when (null x) (g))
  "value")
(defun g (x) (declare (ignore x)) "Documented." 1)
'(eq x 1)
(defmacro m () (list (eq x 1)))
(define-it (eq x 1))
(flet ((eq (a b) a b)) (eq x 1))
(case x ((eq y 1) 2))
(lambda () "value")
(let () "lost" (list #'(lambda (x) (eq x 2.0))))
"#;
        assert_eq!(
            found(text, &["all"]),
            [
                "3 lint-eq-literal eq",
                "3 lint-eq-literal eq",
                "3 lint-eq-literal eq",
                "4 lint-unused-string \"lost\"",
                "5 lint-boolean-if if",
                "5 lint-boolean-if if",
                "6 lint-negated-when when",
                "6 lint-negated-when unless",
                "13 lint-missing-otherwise case",
                "15 lint-unused-string \"lost\"",
                "15 lint-eq-literal eq",
            ]
        );
        assert_eq!(found(text, &[]), Vec::<String>::new());
        assert_eq!(
            found(text, &["all", "-eq-literal", "-unused-string", "-negated-when", "-missing-otherwise"]).len(),
            2
        );
    }

    fn snapshot(files: &[(&str, &str)]) -> Snapshot {
        let open = files.iter().map(|(path, text)| crate::ide::texts::OpenText {
            uri: format!("file://{path}"),
            own: true,
            path: Some((*path).into()),
            document: Document::new(text, 0),
        });
        Snapshot::of_texts(&open.collect::<Vec<_>>())
    }

    #[test]
    fn names_that_a_package_shadows_are_not_the_standards() {
        let text = "(in-package :a)\n(defun f (x) (if x t nil) (eq x 1) (when (not x) (g)))";
        let rules = vec!["all".to_owned()];
        let codes = |package: &str, text: &str| -> Vec<String> {
            let index = snapshot(&[("/no/package.lisp", package), ("/no/a.lisp", text)]);
            check(&Document::new(text, 0), &rules, &index).into_iter().map(|one| one.code).collect()
        };
        let all = ["lint-boolean-if", "lint-eq-literal", "lint-negated-when"];
        assert_eq!(codes("(defpackage :a (:use :cl))", text), all);
        assert_eq!(codes("(defpackage :a (:use :cl) (:shadow #:if))", text), all[1..]);
        assert_eq!(codes("(defpackage :a (:use :cl) (:shadow #:not))", text), all[..2]);
        assert_eq!(codes("(defpackage :a (:use :cl) (:shadowing-import-from :b #:eq #:when))", text), all[..1]);
        assert_eq!(codes("(defpackage :a (:use :cl) (:import-from :cl #:if))", text), all);
        assert_eq!(codes("(defpackage :a (:use :b))", text).len(), 0);
        assert_eq!(codes("(defpackage :a (:use :cl) (:shadow #:defun))", text).len(), 0);
        // A macro of another file, a prefix, a readtable, data.
        let quotes = "(defpackage :a (:use :cl))\n(in-package :a)\n(defmacro data (x) `',x)";
        for text in [
            "(in-package :a)\n(data (if x t nil))",
            "(in-package :a)\n(b:if x t nil)",
            "(in-package :a)\n(in-readtable :b)\n(if x t nil)",
            "(in-package :a)\n(if #1=x t nil)",
            "(in-package :a)\n`(if ,x t nil)",
            "(in-package :a)\n(when (not #+a x) 1)",
        ] {
            assert_eq!(codes(quotes, text).len(), 0, "{text}");
        }
    }

    #[test]
    fn clauses_of_case_are_looked_into() {
        let text = r#"(defun f (x)
  (case x ('a 1) ('(b c) 2) ((d) 3) (t 4))
  (ecase x (nil 1) ((nil) 2) ('a 3))
  (case x (a 1))
  (typecase x (nil 1) (symbol 2))
  (etypecase x (symbol 2))
  (case x (a 1) (otherwise 2))
  (case x)
  (case x (a 1) #+sbcl (t 2))
  '(case x ('a 1))
  (case x (T 1)))
"#;
        assert_eq!(
            found(text, &["quoted-key", "nil-key", "missing-otherwise"]),
            [
                "2 lint-quoted-key 'a",
                "2 lint-quoted-key '(b c)",
                "3 lint-nil-key nil",
                "3 lint-quoted-key 'a",
                "4 lint-missing-otherwise case",
                "5 lint-missing-otherwise typecase",
            ]
        );
    }

    #[test]
    fn comments_silence_rules() {
        let text = "(defun f (x)\n  (eq x 1) ; consort: ignore\n  ;; consort: ignore boolean-if\n  (eq x 2)\n\n  (eq x 3) ; consort: ignore eq-literal, boolean-if\n  x)";
        assert_eq!(found(text, &["all"]), ["4 lint-eq-literal eq"]);
    }
}
