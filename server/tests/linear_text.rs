//! Every feature of a text takes time by the length of the text: of each hostile shape, n against
//! 4n.
//!
//! The only test that measures time: the processor's time of this thread, so that a busy machine
//! does not matter, the least of several runs, and one against the other.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use consort::ide::diagnostics::Findings;
use consort::ide::edit_form::Operation;
use consort::ide::edit_forms::FormEdit;
use consort::ide::format::rules::Bodies;
use consort::ide::format::{self, IndentRange, Options};
use consort::ide::index::Snapshot;
use consort::ide::initargs;
use consort::ide::places::Target;
use consort::ide::texts::{OpenText, Texts};
use consort::ide::{
    edit_forms, enclosing, evaluate_part, fixes, hints, hyperspec, linked_names, lint, outline, partial_name, places,
    ranges, read_file, references, semantic, signature, structural, structure, symbols, testing, types,
};
use consort::model::diagnostic::{Diagnostic, Severity};
use consort::model::lint_rule::LintRule;
use consort::text::datum::Form;
use consort::text::definitions::{self, Hint};
use consort::text::document::{Document, Edit};
use consort::text::pattern::{Pattern, Template};
use consort::text::position::{Position, PositionEncoding, Walk, to_offset, to_position};
use consort::text::scopes::Scopes;
use consort::text::toplevel::Scan;
use consort::text::tree::Tree;
use consort::text::{Span, forms, recorded_definitions};
use rustix::time::{ClockId, clock_gettime};

/// The sizes that are compared, in elements of the shape.
const SIZES: [usize; 3] = [500, 2_000, 8_000];
/// The time below which a feature of a shape of `SIZES[1]` elements is not quadratic: that would be
/// millions of steps.
const QUICK: Duration = Duration::from_millis(15);
/// The limit of the ratio of four times the text to the text. Linear is 4, quadratic 16.
const MAX_RATIO: f64 = 7.0;

fn repeated(n: usize, one: impl Fn(usize) -> String) -> String {
    (0..n).map(one).collect()
}

type Shape = (&'static str, fn(usize) -> String);

const SHAPES: &[Shape] = &[
    ("a list", |n| format!("({})", "a ".repeat(n))),
    ("a list of numbers on lines", |n| format!("(list{})", "\n 1".repeat(n))),
    ("data on lines", |n| format!("'(a{})", "\n b".repeat(n))),
    ("nested lists", |n| "(".repeat(n) + &")".repeat(n)),
    ("nested lists on lines", |n| "(a\n".repeat(n) + &")".repeat(n)),
    ("nested lists without operators on lines", |n| "(\n".repeat(n)),
    ("nested backquotes and commas on lines", |n| "`(,(\n".repeat(n)),
    ("nested calls", |n| "(f x ".repeat(n) + &")".repeat(n)),
    ("definitions", |n| repeated(n, |i| format!("(defun f{i} (x) x)\n"))),
    ("definitions on one line", |n| repeated(n, |i| format!("(defun f{i} (x) x) "))),
    ("definitions in a progn", |n| format!("(progn {})", repeated(n, |i| format!("(defun f{i} (x) (f{i} 1 2))\n")))),
    ("duplicates", |n| "(defun f (x) x)\n".repeat(n)),
    ("methods", |n| repeated(n, |i| format!("(defmethod m ((x c{i})) x)\n"))),
    ("calls", |n| "(f 1 2)\n".repeat(n)),
    ("comments", |n| "; c\n".repeat(n)),
    ("headings", |n| "(a)\n;;;; b\n".repeat(n)),
    ("comments in a list", |n| format!("(a{}\n b)", "\n ; c".repeat(n))),
    ("comments before an operator", |n| format!("({}f{})", ";c\n".repeat(n), " 1".repeat(n))),
    ("comments behind code", |n| format!("(a\n{})", " b ; c\n".repeat(n))),
    ("strings", |n| format!("(f{})", " \"s\"".repeat(n))),
    ("a string", |n| format!("(f \"{}\")", "x(\n".repeat(n))),
    ("a symbol", |n| format!("(f {})", "x".repeat(n))),
    ("a long operator of a long list", |n| format!("({}{})", "f".repeat(n), " 1".repeat(n))),
    ("conditionals", |n| "#+a b\n".repeat(n)),
    ("nested conditionals", |n| "#+(a) ".repeat(n) + "(b)"),
    ("a nested feature", |n| format!("#+{}{} x", "(or ".repeat(n), ")".repeat(n))),
    ("nested block comments", |n| "#|".repeat(n) + &"|#".repeat(n)),
    ("block comments", |n| "#| a |# ".repeat(n)),
    ("quotes", |n| "'".repeat(n) + "x"),
    ("backquotes and commas", |n| "`,".repeat(n) + "(x)"),
    ("packages", |n| repeated(n, |i| format!("(in-package :p{i})\n(f x)\n"))),
    ("bindings", |n| {
        let (bound, used) = (repeated(n, |i| format!("(x{i} 1)")), repeated(n, |i| format!("x{i} ")));
        format!("(defun f () (let ({bound}) {used}))")
    }),
    ("bindings of one name", |n| format!("(defun f () {})", "(let ((x 1)) (g x)) ".repeat(n))),
    ("serial bindings", |n| format!("(defun f () (let* ({}) x))", "(x (g x)) ".repeat(n))),
    ("variables of do", |n| format!("(do* ({}) ((g x1)) x1)", repeated(n, |i| format!("(x{i} 0 (+ x{i} x1)) ")))),
    ("local functions", |n| {
        let (bound, used) = (repeated(n, |i| format!("(f{i} (a b) a)")), repeated(n, |i| format!("(f{i} 1 2)")));
        format!("(flet ({bound}) {used})")
    }),
    ("calls of a function of many parameters", |n| {
        format!("(flet ((f ({}) x0)) {})", repeated(n, |i| format!("x{i} ")), "(f 1 2) ".repeat(n))
    }),
    ("clauses of loop", |n| format!("(loop{})", repeated(n, |i| format!("\n for x{i} in y collect x{i} into z{i}")))),
    ("clauses of loop on one line", |n| format!("(loop for a in b {}\n{})", "do (f) ".repeat(n), "end\n".repeat(n))),
    ("clauses of case", |n| format!("(case x\n{})", "(a 1)\n".repeat(n))),
    ("parameters", |n| format!("(defun f (a &key{}) 1)", repeated(n, |i| format!("\n (b{i} 1)")))),
    ("qualifiers", |n| format!("(defmethod m{} ((x c)) 1)", "\n :a".repeat(n))),
    ("slots", |n| format!("(defclass c () ({}))", repeated(n, |i| format!("(s{i} :initarg :s{i} :initform x)\n")))),
    ("carriage returns", |n| "(a)\r".repeat(n)),
    ("unclosed lists", |n| "(a ".repeat(n)),
    ("unclosed definitions", |n| "(defun f (\n".repeat(n)),
    ("parentheses too many", |n| "(a))\n".repeat(n)),
    ("parentheses too many in a row", |n| ")".repeat(n)),
    ("unclosed strings", |n| "(a \"\n(defun f ()\n".repeat(n)),
    ("unclosed bars", |n| "(a |\n(defun f ()\n".repeat(n)),
    ("prefixes of nothing", |n| "(') ".repeat(n)),
    ("dots", |n| format!("(a{} b)", " .".repeat(n))),
    ("beyond the first plane", |n| "(𝄞 \"𝄞\") ".repeat(n)),
    ("tabs", |n| format!("(f{} (g{}))", "\ta".repeat(n), "\n1".repeat(n))),
    ("lists that end below one line", |n| format!("(f {}{}", "(g ".repeat(n), "\n a)".repeat(n))),
    ("blank lines", |n| format!("(a{})", "\n".repeat(n))),
    ("broken rules on one line", |n| "(when (not x) (f (if x t nil))) ".repeat(n)),
    ("package definitions", |n| repeated(n, |i| format!("(defpackage p{i} (:use p{}) (:export f{i}))\n", i / 2))),
];

fn place(text: &Document) -> usize {
    text.text().len_chars() * 2 / 3
}

fn spread(text: &Document, every: usize) -> impl Iterator<Item = usize> {
    (0..text.text().len_chars()).step_by(every)
}

fn finding(start: usize) -> Diagnostic {
    let message = format!("Undefined function: F{start}");
    Diagnostic::new(Span { start, end: start + 1 }, Severity::Warning, "undefined-function", message)
}

fn insertions(document: &Document, every: usize) -> Vec<Edit> {
    let at = |offset| to_position(document.text(), offset, PositionEncoding::Utf16);
    spread(document, every).map(|offset| Edit { range: Some((at(offset), at(offset))), text: "x".into() }).collect()
}

fn texts(document: &Document) -> Texts {
    let (uri, path) = ("file:///no/a.lisp".into(), Some(PathBuf::from("/no/a.lisp")));
    Texts::of(vec![OpenText { uri, own: true, path, document: document.clone() }])
}

fn form_edit(name: &str, operation: Operation, content: &str) -> FormEdit {
    let (form_type, form_name) = ("defun".into(), name.into());
    FormEdit { form_type, form_name, operation: Some(operation), content: Some(content.into()), ..FormEdit::default() }
}

type Feature = (&'static str, fn(&Document, &str));

/// Each measured function is given the document that a client opened, and its text.
const FEATURES: &[Feature] = &[
    ("scanning", |_, text| drop(Scan::of(text))),
    ("the tree", |_, text| drop(Tree::parse(text))),
    ("outline", |_, text| drop(symbols::symbols(text))),
    ("colours", |document, text| {
        let tree = Tree::of(text, document.scan());
        let mut walk = Walk::new(text, PositionEncoding::Utf16);
        for token in semantic::tokens(&tree, &Bodies::of(&tree), &HashMap::new()) {
            walk.go_to(token.range.start);
        }
    }),
    ("indentation", |_, text| {
        let tree = Tree::parse(text);
        let wanted = IndentRange { lines: 0..usize::MAX, typing: false };
        let bodies = Bodies::of(&tree);
        bodies.unknown(&tree);
        format::format(&tree, &wanted, &bodies, Options { tab_size: 8, tabs: false });
    }),
    ("folding", |_, text| drop(ranges::folds(&Tree::parse(text)))),
    ("selections at many places", |document, text| {
        let tree = Tree::parse(text);
        let bytes: Vec<usize> = spread(document, 5).map(|at| document.text().char_to_byte(at)).collect();
        ranges::all_selections(&tree, &bytes);
    }),
    ("occurrences", |document, text| {
        let tree = Tree::parse(text);
        for at in [2, 8, text.len() / 2] {
            let package = |byte| forms::package_at(document, document.text().byte_to_char(byte));
            ranges::occurrences(&tree, at, package);
        }
    }),
    ("reading a file", |_, text| drop(read_file::collapsed(text, Some("f1|x"), 0, usize::MAX))),
    ("looking for a name", |_, text| assert!(!read_file::names_any(text, "no*such$"))),
    ("editing a form", |_, text| {
        for name in ["f", "f7", "nothing"] {
            let _ = edit_forms::edit_all(text, &[form_edit(name, Operation::InsertBefore, "(defun g () 1)")]);
        }
        let _ = edit_forms::edit_all("(defun f () 1)", &[form_edit("f", Operation::Replace, text)]);
    }),
    ("editing all definitions", |_, text| {
        let tree = Tree::parse(text);
        let all = outline::definitions(&tree);
        let selectors = outline::selectors(&all, &tree);
        let edits: Vec<FormEdit> = all
            .iter()
            .zip(selectors)
            // The texts of nested definitions together are quadratic themselves.
            .filter(|(one, _)| one.depth == 0)
            .map(|(one, form_name)| FormEdit {
                form_type: one.operator.clone(),
                form_name,
                content: Some(tree.text_of(one.node).to_owned()),
                ..FormEdit::default()
            })
            .collect();
        let _ = edit_forms::edit_all(text, &edits);
        let patches: Vec<FormEdit> = edits
            .into_iter()
            .map(|one| {
                // Once in a form: another text would be refused at the first edit.
                let old = format!("({}", one.form_type);
                FormEdit { content: None, new: Some(format!("{old} ")), old: Some(old), ..one }
            })
            .collect();
        let _ = edit_forms::edit_all(text, &patches);
    }),
    ("selectors", |_, text| {
        let tree = Tree::parse(text);
        outline::selectors(&outline::definitions(&tree), &tree);
    }),
    ("structural editing", |document, text| {
        let at = document.text().char_to_byte(place(document));
        for action in structural::Action::ALL {
            structural::act(text, at..at, action);
        }
    }),
    ("the form to evaluate", |document, text| {
        let tree = Tree::of(text, document.scan());
        let found = evaluate_part::form(&tree, document.text().char_to_byte(place(document)));
        found.map(|form| evaluate_part::comment(text, &form, &["1".into()]));
    }),
    ("what is at a place", |document, _| {
        let at = place(document);
        forms::toplevel_form(document, at);
        forms::symbol_at(document, at);
        forms::operator_at(document, at);
    }),
    ("packages of many places", |document, _| {
        for at in spread(document, 7) {
            forms::package_at(document, at);
        }
    }),
    ("completion", |document, _| {
        let at = place(document);
        if let Some(context) = partial_name::context(document, at) {
            partial_name::locals(document, at, &context);
        }
        let wide = partial_name::PartialName {
            typed: String::new(),
            replace: Span { start: at, end: at },
            package: None,
            operator: true,
            packages: false,
        };
        partial_name::locals(document, at, &wide);
    }),
    ("signatures", |document, _| {
        for site in signature::call_sites(document, place(document)) {
            signature::signature(&site.operator, &site.arguments, &site);
        }
    }),
    ("hints", |document, _| {
        for call in hints::calls(document, Span { start: 0, end: document.text().len_chars() }) {
            hints::hints(&call, call.parameters.as_deref().unwrap_or_default());
        }
    }),
    ("local bindings", |document, _| {
        for form in document.scan().forms() {
            let scopes = Scopes::of(&Form::of(document, form.span));
            for at in (form.span.start..form.span.end).step_by(5) {
                scopes.resolve(at);
            }
            scopes.visible(form.span.end - 1);
            scopes.occurrences(0);
        }
    }),
    ("types of variables", |document, _| drop(types::of_local(document, place(document)))),
    ("definitions", |document, text| {
        definitions::all(document);
        for name in ["f", "x1", "m"] {
            definitions::named(document, name);
            let hint = Hint { kind: "function", key: name.into(), form: Some(3), offset: Some(9), ..Hint::default() };
            definitions::locate(document, &hint);
        }
        let features = ["SBCL".to_owned()];
        let hint =
            Hint { kind: "method", key: "m".into(), form: Some(usize::MAX), features: &features, ..Hint::default() };
        definitions::locate(document, &hint);
        recorded_definitions::definitions(text);
    }),
    ("places of definitions", |document, _| {
        let mut texts = texts(document);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for name in ["f", "m", "c"] {
            runtime.block_on(places::defined_in_texts(name, Some("P1"), &mut texts));
            initargs::in_document(name, document);
            initargs::slots_in_document(name, document);
        }
    }),
    ("mentions", |document, _| {
        for form in document.scan().forms() {
            definitions::mentions(document, form.span, "x");
        }
    }),
    ("calls and references by kind", |document, _| {
        let mut around = enclosing::Finder::default();
        for form in document.scan().forms() {
            for call in references::calls(&Form::of(document, form.span)) {
                around.at(document, call.span.start);
            }
        }
        linked_names::places(document, place(document));
        hyperspec::reader_macro_at(document, place(document));
        evaluate_part::top_level(document, place(document));
        evaluate_part::up_to(document, place(document));
    }),
    ("tests and lenses", |document, _| {
        for form in document.scan().forms() {
            testing::definition(document, form.span);
            forms::package_at(document, form.span.start);
        }
    }),
    ("structure", |document, _| drop(structure::check(document))),
    ("positions", |document, _| {
        for at in spread(document, 3) {
            let position = to_position(document.text(), at, PositionEncoding::Utf16);
            to_offset(document.text(), position, PositionEncoding::Utf16);
        }
    }),
    ("one change", |document, _| {
        let mut document = document.clone();
        let edits = insertions(&document, place(&document).max(1));
        document.apply(1, PositionEncoding::Utf16, &edits).unwrap();
    }),
    ("many changes at once", |document, _| {
        let mut findings = Findings::default();
        findings.check_begins(document);
        let found = spread(document, 11).map(finding).collect();
        let mut document = document.clone();
        let edits = insertions(&document, 9);
        let applied = document.apply(1, PositionEncoding::Utf16, &edits).unwrap();
        findings.change(&applied);
        findings.check_ends(found);
        findings.merged(&document);
    }),
    ("distinct places", |document, _| {
        let target = |at| Target { uri: "file:///a.lisp".into(), text: None, span: Span { start: at, end: at + 1 } };
        places::distinct(spread(document, 3).chain(spread(document, 2)).map(target));
    }),
    ("rules beside the compiler", |document, _| {
        let pattern = Pattern::read("(f ?x ?*rest)").unwrap();
        let rewrite = Template::read("(g ?x ?*rest)", &pattern).unwrap();
        let own = LintRule { name: "own".into(), pattern, message: "No.".into(), rewrite: Some(rewrite) };
        let wanted = lint::EnabledRules { names: vec!["all".into()], own: vec![own] };
        let (uri, path) = ("file:///no/a.lisp".into(), PathBuf::from("/no/a.lisp"));
        let open = OpenText { uri, own: true, path: Some(path.clone()), document: document.clone() };
        let found = lint::check(document, Some(&path), &wanted, &Snapshot::of_texts(&[open]));
        found.iter().take(10).for_each(|one| drop(fixes::of_text(document, one)));
    }),
    ("many findings", |document, _| {
        let mut findings = Findings::default();
        findings.check_begins(document);
        findings.check_ends(spread(document, 3).map(finding).collect());
        let edit = Edit { range: Some((Position::default(), Position::default())), text: "\n".into() };
        let mut document = document.clone();
        findings.change(&document.apply(1, PositionEncoding::Utf16, &[edit]).unwrap());
        findings.merged(&document);
    }),
];

fn spent(work: impl FnOnce()) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
    };
    let before = now();
    work();
    now() - before
}

/// Returns the processor time of one run of the feature.
fn once((_, feature): Feature, document: &Document, text: &str) -> Duration {
    spent(|| feature(&document.clone(), text))
}

/// Returns the least of this time and those of two further runs.
fn least(first: Duration, feature: Feature, document: &Document, text: &str) -> Duration {
    first.min(once(feature, document, text)).min(once(feature, document, text))
}

fn of_size(feature: Feature, (_, shape): Shape, size: usize) -> Duration {
    let text = shape(size);
    let document = Document::new(&text, 0);
    least(once(feature, &document, &text), feature, &document, &text)
}

/// Returns the ratio of four times the text to the text, `None` when all is too quick to tell.
///
/// The longer text is the dear one: it is run again only where its first run takes too long.
fn ratio(feature: Feature, shape: Shape, (document, text): (&Document, &str)) -> Option<f64> {
    let first = once(feature, document, text);
    if first < QUICK {
        return None;
    }
    let quarter = of_size(feature, shape, SIZES[0]).as_secs_f64();
    if first.as_secs_f64() / quarter < MAX_RATIO {
        return Some(first.as_secs_f64() / quarter);
    }
    let slow = least(first, feature, document, text);
    if slow < QUICK {
        return None;
    }
    let found = slow.as_secs_f64() / quarter;
    if found < MAX_RATIO {
        return Some(found);
    }
    // A text that no longer fits into a cache is slower at one step; a quadratic feature is slower
    // at every step.
    let slower = of_size(feature, shape, SIZES[2]).as_secs_f64();
    Some(found.min(slower / slow.as_secs_f64()))
}

/// A single cell of this many is checked in a usual run: a debug build is slow, and all of them
/// take many minutes.
const SAMPLE: usize = 8;

/// Checks the shapes with the features: a sample of the cells, or all cells of the features whose
/// name contains the value of the environment variable `LINEAR` (`LINEAR=` for all features).
fn holds(shapes: &[Shape]) {
    let wanted = std::env::var("LINEAR").ok();
    let chosen = |(at, (name, _)): (usize, &Feature), row: usize| match &wanted {
        Some(wanted) => name.contains(wanted.as_str()),
        None => (at + 3 * row).is_multiple_of(SAMPLE),
    };
    let mut wrong = Vec::new();
    for (row, shape) in shapes.iter().enumerate() {
        let text = shape.1(SIZES[1]);
        let document = Document::new(&text, 0);
        for (_, feature) in FEATURES.iter().enumerate().filter(|cell| chosen(*cell, row)) {
            let found = ratio(*feature, *shape, (&document, &text));
            if let Some(ratio) = found.filter(|ratio| *ratio >= MAX_RATIO) {
                wrong.push(format!("{} of {}: {ratio:.1}", feature.0, shape.0));
            }
        }
    }
    assert!(wrong.is_empty(), "four times the text takes more than {MAX_RATIO} times as long:\n{}", wrong.join("\n"));
}

#[test]
fn a_quadratic_feature_is_seen() {
    let quadratic: Feature = ("quadratic", |_, text| {
        let found = text.bytes().map(|byte| text.bytes().filter(|other| *other == byte).count()).max();
        std::hint::black_box(found);
    });
    let shape: Shape = ("commas", |n| ",".repeat(n));
    let text = shape.1(SIZES[1]);
    let found = ratio(quadratic, shape, (&Document::new(&text, 0), &text));
    assert!(found.is_some_and(|ratio| ratio >= MAX_RATIO), "{found:?}");
}

#[test]
fn every_feature_is_linear_on_the_first_half_of_the_shapes() {
    holds(&SHAPES[..SHAPES.len() / 2]);
}

#[test]
fn every_feature_is_linear_on_the_second_half_of_the_shapes() {
    holds(&SHAPES[SHAPES.len() / 2..]);
}

#[test]
fn a_depth_that_nobody_writes_needs_no_deep_stack() {
    const DEEP: usize = 20_000;
    for text in ["(".repeat(DEEP), "(".repeat(DEEP) + &")".repeat(DEEP), "'".repeat(DEEP) + "x", "#+(a) ".repeat(DEEP)]
    {
        let document = Document::new(&text, 0);
        for (_, feature) in FEATURES {
            feature(&document, &text);
        }
    }
}
