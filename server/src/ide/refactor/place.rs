//! The way in which a form is evaluated by the forms around it, as far as it follows from the
//! standard's operators and the known macros.

use super::site::{Operator, Site};
use crate::text::datum::{Kind, Node, Prefix};
use crate::text::loop_keywords::{ACCUMULATIONS, CONDITIONALS, SEQUENCES, STATEMENTS, TESTS, is_in};
use crate::text::scopes::BindingKind;

/// The place of a form in the surrounding form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Evaluated once, after the arguments before it.
    Argument,
    /// Evaluated once, before all other forms.
    First,
    /// A statement of a body.
    Body,
    /// Evaluated conditionally, repeatedly or at another time.
    Branch,
    /// The place of an assignment.
    Assigned,
    /// The value of a binding that is in the scope of the bindings before it.
    Serial,
}

/// A step from a form to a form that it evaluates.
pub(super) struct Step<'a> {
    /// The outer form.
    pub(super) list: &'a Node,
    /// The inner form.
    pub(super) child: &'a Node,
    /// The binding, if the place is a serial binding. Otherwise `child`.
    pub(super) holder: &'a Node,
    pub(super) place: Place,
    /// The forms within `list` that are evaluated before `child`.
    pub(super) before: Vec<&'a Node>,
}

/// Returns the steps from the top-level form to `node`.
///
/// # Errors
/// The reason why `node` is not known to be evaluated.
pub(super) fn steps<'a>(site: &Site<'a>, parents: &[&'a Node], node: &'a Node) -> Result<Vec<Step<'a>>, String> {
    if parents.first().is_some_and(|first| first.prefix == Prefix::Comma) {
        return Err("it is data there, and not code".into());
    }
    steps_within(site, parents, node)
}

/// Does the same as [`steps`] for code that is known to be evaluated. The first of `parents` may
/// follow a comma.
///
/// # Errors
/// The reason why `node` is not known to be evaluated.
pub(super) fn steps_within<'a>(site: &Site<'a>, parents: &[&'a Node], node: &'a Node) -> Result<Vec<Step<'a>>, String> {
    let path: Vec<&Node> = parents.iter().copied().chain([node]).collect();
    if path.iter().any(|node| node.guarded) {
        return Err("a part of it is read only with some features (#+, #-)".into());
    }
    let mut steps = Vec::new();
    let mut at = 0;
    while at + 1 < path.len() {
        let list = path[at];
        let is_function = list.prefix == Prefix::Function && site.form.operator(list).as_deref() == Some("lambda");
        let is_code = list.prefix == Prefix::None || is_function || at == 0 && list.prefix == Prefix::Comma;
        if list.kind != Kind::List || !is_code {
            return Err("it is data there, and not code".into());
        }
        let unknown = || {
            let operator = list.children.first().map(|head| site.form.text(head)).unwrap_or_default();
            site.macros.reason(operator)
        };
        let (levels, place, before) = step(site, &path[at..]).ok_or_else(unknown)?;
        let child = *path.get(at + levels).ok_or_else(unknown)?;
        let holder = if place == Place::Serial { path[at + levels - 1] } else { child };
        if place == Place::Body && site.form.operator(child).as_deref() == Some("declare") {
            return Err("it is a declaration".into());
        }
        if std::ptr::eq(child, node) && site.form.operator(list).as_deref() == Some("defgeneric") {
            return Err("it is an option of a definition, and no form".into());
        }
        steps.push(Step { list, child, holder, place, before });
        at += levels;
    }
    Ok(steps)
}

/// Returns true if the outer form may use more than the first value of the inner form.
pub(super) fn takes_all_values(site: &Site, step: &Step) -> bool {
    const ALL: [&str; 7] = ["return", "return-from", "the", "truly-the", "throw", "nth-value", ""];
    let operator = site.form.operator(step.list).unwrap_or_default();
    let of_values = || step.list.children.iter().any(|place| site.form.operator(place).as_deref() == Some("values"));
    let all =
        ALL.contains(&operator.as_str()) || operator.starts_with("multiple-value") || operator == "setf" && of_values();
    all || match step.place {
        Place::Argument | Place::First | Place::Serial => false,
        Place::Branch => !takes_one_value(site, step, &operator),
        Place::Body | Place::Assigned => true,
    }
}

/// Returns true if the form around uses only the first value of a form that it evaluates
/// conditionally, repeatedly or at another time.
fn takes_one_value(site: &Site, step: &Step, operator: &str) -> bool {
    let children = &step.list.children;
    match operator {
        "and" | "or" => children.last().is_some_and(|last| !std::ptr::eq(last, step.child)),
        // Tests, and the values that are given to variables and places.
        "cond" | "do" | "do*" | "setq" | "setf" | "defvar" | "defparameter" | "defglobal" => true,
        "loop" => {
            let at = index_of(step.list, step.child).unwrap_or(0);
            let word = children[..at].iter().rev().find_map(|node| site.form.name(node)).unwrap_or_default();
            let word = word.strip_prefix(':').unwrap_or(&word);
            [ACCUMULATIONS, CONDITIONALS, SEQUENCES].iter().any(|group| is_in(word, group))
                || matches!(word, "while" | "until")
        }
        _ => operator.starts_with("with-") || operator == "print-unreadable-object",
    }
}

/// Returns the number of levels of the next step, the place to which the step leads, and the forms
/// that are evaluated before. Returns `None` if it is not known how the form is evaluated.
fn step<'a>(site: &Site<'a>, path: &[&'a Node]) -> Option<(usize, Place, Vec<&'a Node>)> {
    use Place::{Argument, Assigned, Body, Branch, First, Serial};
    let (list, child) = (path[0], path[1]);
    let index = index_of(list, child)?;
    // Returns the index of the next node of the path within the node at a level.
    let deeper = |level: usize| index_of(path.get(level)?, path.get(level + 1)?);
    let children = |from: usize| list.children.get(from..index).unwrap_or_default().iter().collect::<Vec<&Node>>();
    let only = |place| Some((1, place, Vec::new()));
    let body = |from: usize| if index >= from { only(Body) } else { None };
    let first = |at: usize, from: usize| if index == at { only(First) } else { body(from) };
    let argument = |from: usize| if index >= from { Some((1, Argument, children(from))) } else { None };
    let operator = site.form.operator(list).unwrap_or_default();
    match operator.as_str() {
        // `((lambda ...) ...)`; any other such list is a clause of a macro.
        "" => if index == 0 { only(First) } else { argument(1) }
            .filter(|_| site.form.operator(&list.children[0]).as_deref() == Some("lambda")),
        "progn" | "locally" | "ignore-errors" | "tagbody" | "with-standard-io-syntax" => body(1),
        "when" | "unless" | "catch" | "prog1" | "multiple-value-prog1" => first(1, 2),
        "if" | "and" | "or" if index == 1 => only(First),
        "if" | "and" | "or" => only(Branch),
        "cond" => match deeper(1)? {
            0 if index == 1 => Some((2, First, Vec::new())),
            0 => Some((2, Branch, Vec::new())),
            _ => Some((2, Body, Vec::new())),
        },
        "case" | "ecase" | "typecase" | "etypecase" if index == 1 => only(First),
        "case" | "ecase" | "ccase" | "typecase" | "etypecase" | "ctypecase" if index > 1 => {
            (deeper(1)? > 0).then_some((2, Body, Vec::new()))
        }
        "let" | "prog" | "let*" | "prog*" if index == 1 => {
            let at = deeper(1)?;
            if deeper(2)? != 1 {
                return None;
            }
            if operator.ends_with('*') {
                return Some((3, Serial, Vec::new()));
            }
            let values = child.children[..at].iter().filter_map(|binding| binding.children.get(1)).collect();
            Some((3, Argument, values))
        }
        "let" | "let*" | "prog" | "prog*" => body(2).filter(|_| !operator.starts_with("prog") || child.is_list()),
        "dolist" | "dotimes" if index == 1 => (deeper(1)? == 1).then_some((2, First, Vec::new())),
        "dolist" | "dotimes" => body(2),
        "do-symbols" | "do-external-symbols" | "do-all-symbols" => body(2),
        // The initial values and step forms of the variables.
        "do" | "do*" if index == 1 => {
            let at = deeper(1)?;
            let values = child.children[..at].iter().filter_map(|binding| binding.children.get(1)).collect();
            match deeper(2)? {
                1 if operator == "do*" => Some((3, Serial, Vec::new())),
                1 => Some((3, Argument, values)),
                2 => Some((3, Branch, Vec::new())),
                _ => None,
            }
        }
        "do" | "do*" if index == 2 => match deeper(1)? {
            0 => Some((2, Branch, Vec::new())),
            _ => Some((2, Body, Vec::new())),
        },
        "do" | "do*" => body(3),
        "flet" | "labels" if index == 1 => (deeper(2)? >= 2).then_some((3, Body, Vec::new())),
        "flet"
        | "labels"
        | "macrolet"
        | "symbol-macrolet"
        | "block"
        | "handler-bind"
        | "restart-bind"
        | "eval-when"
        | "lambda"
        | "with-compilation-unit" => body(2),
        "return" => first(1, usize::MAX),
        "return-from" | "the" | "truly-the" | "multiple-value-setq" => first(2, usize::MAX),
        "multiple-value-bind" | "destructuring-bind" | "with-slots" | "with-accessors" => first(2, 3),
        "setq" if index == 2 => only(First),
        // The arguments of the assigned place are evaluated before the value.
        "setf" if index == 2 => Some((1, Argument, list.children[1].children.iter().skip(1).collect())),
        // A place within the place, such as `x` in `(getf x :a)`, is both read and assigned.
        _ if is_nested_place(site, path, index, &operator) => None,
        "setq" | "setf" if index % 2 == 0 => only(Branch),
        "setf" if index == 1 => only(Assigned),
        "incf" | "decf" | "pop" if index == 1 => only(Assigned),
        "incf" | "decf" if index == 2 => Some((1, Argument, list.children[1].children.iter().skip(1).collect())),
        "push" | "pushnew" if index == 1 => only(First),
        "unwind-protect" | "time" if index == 1 => only(Branch),
        "unwind-protect" => body(2),
        "handler-case" | "restart-case" if index == 1 => only(Branch),
        "handler-case" | "restart-case" => (deeper(1)? >= 2).then_some((2, Body, Vec::new())),
        "progv" => {
            if index < 3 {
                argument(1)
            } else {
                body(3)
            }
        }
        "named-lambda" | "defun" => body(3),
        "defmethod" | ":method" => {
            let from = usize::from(operator == "defmethod") + 1;
            let at = list.children.iter().skip(from).position(|child| child.kind == Kind::List)? + from;
            body(at + 1)
        }
        "defgeneric" => (site.form.operator(child).as_deref() == Some(":method")).then_some((1, Body, Vec::new())),
        "defvar" | "defparameter" | "defglobal" if index == 2 => only(Branch),
        "with-open-file"
        | "with-open-stream"
        | "with-output-to-string"
        | "with-input-from-string"
        | "print-unreadable-object"
        | "with-simple-restart" => {
            if index > 1 {
                body(2)
            } else {
                (deeper(1)? > 0).then_some((2, Branch, Vec::new()))
            }
        }
        "with-condition-restarts" => body(3),
        "pprint-logical-block" => body(2),
        "loop" => in_loop(site, list, index).map(|place| (1, place, Vec::new())),
        "multiple-value-call" | "nth-value" | "throw" | "multiple-value-list" => argument(1),
        _ if STANDARD_MACROS.contains(&operator.as_str()) || operator.starts_with(':') => None,
        _ => {
            let head = list.children[0].span.start;
            match site.scopes.resolve(head).map(|index| site.scopes.bindings[index].kind) {
                Some(BindingKind::Function) => return argument(1),
                Some(_) => return None,
                None => {}
            }
            match site.macros.operator(&operator) {
                Operator::Function => argument(1),
                Operator::Body(before) => body(before + 1),
                Operator::Unknown => None,
            }
        }
    }
}

/// Returns true if an argument of the assigned place may itself be a place.
fn is_nested_place(site: &Site, path: &[&Node], index: usize, operator: &str) -> bool {
    let assigned = match operator {
        "setf" | "psetf" => index % 2 == 1,
        "incf" | "decf" | "pop" | "remf" => index == 1,
        "push" | "pushnew" => index == 2,
        _ => false,
    };
    let accessor = |node: &&Node| {
        let name = site.form.operator(node).unwrap_or_default();
        site.scopes.resolve(node.children.first().map_or(0, |head| head.span.start)).is_none()
            && (SIMPLE_PLACES.contains(&name.as_str())
                || crate::ide::hyperspec::page_of_symbol(&name).is_none()
                    && site.macros.operator(&name) == Operator::Function
                    && !site.names.is_expander(&name))
    };
    assigned && path.len() > 2 && !accessor(&path[1])
}

/// The standard's accessors whose arguments are all evaluated like those of a function.
const SIMPLE_PLACES: [&str; 38] = [
    "car",
    "cdr",
    "caar",
    "cadr",
    "cdar",
    "cddr",
    "caddr",
    "cdddr",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "rest",
    "nth",
    "elt",
    "aref",
    "row-major-aref",
    "svref",
    "bit",
    "sbit",
    "char",
    "schar",
    "fill-pointer",
    "subseq",
    "gethash",
    "get",
    "slot-value",
    "symbol-value",
    "symbol-function",
    "symbol-plist",
    "fdefinition",
    "macro-function",
    "find-class",
    "documentation",
    "readtable-case",
    "logical-pathname-translations",
    "compiler-macro-function",
];

/// The standard's macros and special operators whose other arguments [`step`] does not know.
const STANDARD_MACROS: [&str; 54] = [
    "quote",
    "function",
    "declare",
    "declaim",
    "case",
    "ecase",
    "ccase",
    "typecase",
    "etypecase",
    "ctypecase",
    "setq",
    "setf",
    "psetq",
    "psetf",
    "incf",
    "decf",
    "push",
    "pushnew",
    "pop",
    "shiftf",
    "rotatef",
    "remf",
    "assert",
    "check-type",
    "defclass",
    "defstruct",
    "define-condition",
    "defpackage",
    "in-package",
    "deftype",
    "defmacro",
    "define-compiler-macro",
    "define-setf-expander",
    "define-modify-macro",
    "define-symbol-macro",
    "define-method-combination",
    "defsetf",
    "defconstant",
    "defvar",
    "defparameter",
    "go",
    "load-time-value",
    "formatter",
    "step",
    "trace",
    "untrace",
    "with-hash-table-iterator",
    "with-package-iterator",
    "pprint-exit-if-list-exhausted",
    "loop-finish",
    "call-method",
    "time",
    "prog2",
    "defsystem",
];

/// Returns the place of an element of `loop`. It is a statement after `do` and similar words and in
/// a simple loop. Otherwise, it is evaluated conditionally, repeatedly or at another time.
fn in_loop(site: &Site, list: &Node, index: usize) -> Option<Place> {
    let elements = &list.children;
    let word = |at: usize| elements.get(at).and_then(|node| site.form.name(node));
    if elements[1..].iter().all(|node| node.kind == Kind::List) {
        return Some(Place::Body);
    }
    if elements[index].kind != Kind::List {
        return None;
    }
    let keyword = (1..index).rev().find(|at| elements[*at].kind == Kind::Atom)?;
    let name = word(keyword)?;
    let name = name.strip_prefix(':').unwrap_or(&name);
    match name {
        _ if is_in(name, STATEMENTS) => Some(Place::Body),
        _ if keyword + 1 != index => None,
        "=" | "then" | "return" => Some(Place::Branch),
        _ => [SEQUENCES, ACCUMULATIONS, CONDITIONALS, TESTS]
            .iter()
            .any(|group| is_in(name, group))
            .then_some(Place::Branch),
    }
}

fn index_of(list: &Node, child: &Node) -> Option<usize> {
    list.children.iter().position(|one| std::ptr::eq(one, child))
}
