//! The kind of name that is expected at a place, according to the surrounding form.

use super::loops::{self, Next};
use crate::text::datum::{Form, Kind, Node, Prefix};

/// The kind of an expected name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::ide) enum ExpectedName {
    /// An operator of a form, or a function after `#'`.
    Operator,
    /// A value, for which variables come first.
    Value,
    /// A type or class.
    Type,
    /// A slot. The form that yields the instance is as written, if there is one.
    Slot(Option<String>),
    /// A declaration identifier or type.
    Declaration,
    /// A loop keyword, with the keywords that fit the place best.
    Loop(Vec<&'static str>),
    /// Any name: in a quoted list, or where a form binds a new name.
    Any,
}

/// Returns the kind of name that is expected at `start`, the offset of the partial name. `typed` is
/// false if the partial name is empty.
pub(in crate::ide) fn expected_name(form: &Form, start: usize, typed: bool) -> ExpectedName {
    let path = form.path(if typed { start + 1 } else { start });
    let current = path.last().filter(|node| node.kind == Kind::Atom && node.span.start == start).copied();
    let lists: Vec<&Node> =
        path.iter().copied().filter(|node| node.kind == Kind::List && node.span.start < start).collect();
    let prefix = current.map_or_else(|| before(form, start), |node| node.prefix);
    if prefix == Prefix::Function {
        return ExpectedName::Operator;
    }
    let Some(list) = lists.last().copied() else { return ExpectedName::Value };
    let at = index(list, start);
    let head = list.children.first().and_then(|head| form.name(head)).unwrap_or_default();
    let above = |up: usize| lists.len().checked_sub(up + 1).map(|index| lists[index]);
    let head_above = |up: usize| above(up).and_then(|list| list.children.first()).and_then(|node| form.name(node));
    let parent = head_above(1).unwrap_or_default();
    let grandparent = head_above(2).unwrap_or_default();
    let place = above(1).map(|outer| index(outer, list.span.start));

    if prefix == Prefix::Quote {
        return match head.as_str() {
            "make-instance" | "find-class" | "make-condition" | "error" | "signal" | "warn" | "allocate-instance"
                if at == 1 =>
            {
                ExpectedName::Type
            }
            "typep" | "coerce" | "change-class" | "subtypep" | "concatenate" | "map" | "make-sequence" | "cerror"
                if at <= 2 =>
            {
                ExpectedName::Type
            }
            "slot-value" | "slot-boundp" | "slot-makunbound" | "slot-exists-p" if at == 2 => {
                ExpectedName::Slot(list.children.get(1).map(|one| form.text(one).to_owned()))
            }
            "funcall" | "apply" | "mapcar" | "mapc" | "mapcan" | "reduce" | "sort" if at == 1 => ExpectedName::Operator,
            _ if at > 1 && written_before(form, list, at).is_some_and(is_function_keyword) => ExpectedName::Operator,
            _ if at > 1
                && written_before(form, list, at).is_some_and(|word| word.eq_ignore_ascii_case(":element-type")) =>
            {
                ExpectedName::Type
            }
            _ => ExpectedName::Any,
        };
    }
    if in_declaration(form, &lists) {
        let declares = |head: &str| matches!(head, "declare" | "declaim" | "proclaim");
        return match (head.as_str(), at) {
            (head, _) if declares(head) => ExpectedName::Declaration,
            // A quality of `optimize`, or a part of a type.
            _ if parent == "optimize" => ExpectedName::Declaration,
            _ if !declares(&parent) => ExpectedName::Type,
            (_, 0) => ExpectedName::Declaration,
            ("type", 1) => ExpectedName::Type,
            ("ftype", 1) => ExpectedName::Type,
            ("optimize", _) => ExpectedName::Declaration,
            _ => ExpectedName::Value,
        };
    }
    if written_before(form, list, at).is_some_and(|word| word.eq_ignore_ascii_case(":type")) {
        return ExpectedName::Type;
    }
    match (head.as_str(), at) {
        ("the" | "truly-the", 1) | ("check-type", 2) => return ExpectedName::Type,
        ("loop", 1..) if !list.children.get(1).is_some_and(|one| one.kind == Kind::List) => {
            return match loops::next(form, list, at) {
                Next::Form => ExpectedName::Value,
                Next::Name => ExpectedName::Any,
                keyword @ Next::Keyword(..) => ExpectedName::Loop(keyword.words()),
            };
        }
        _ => {}
    }
    // The list may not be a form but, for example, a list of bindings. Its position in the
    // surrounding form decides.
    if let Some(place) = place {
        match (parent.as_str(), place) {
            ("defmethod", 2..) if is_lambda_list(above(1), list) => return ExpectedName::Value,
            ("defclass" | "define-condition", 2) => return ExpectedName::Type,
            ("with-slots", 1) => {
                return ExpectedName::Slot(
                    above(1).and_then(|outer| outer.children.get(2)).map(|one| form.text(one).to_owned()),
                );
            }
            ("with-accessors" | "multiple-value-bind" | "destructuring-bind", 1) => return ExpectedName::Any,
            ("defun" | "defmacro" | "defgeneric" | "deftype", 2) | ("lambda", 1) => return ExpectedName::Value,
            ("handler-case" | "restart-case", 2..) | ("typecase" | "etypecase" | "ctypecase", 2..) if at == 0 => {
                return ExpectedName::Type;
            }
            ("let" | "let*" | "do" | "do*" | "prog" | "prog*" | "symbol-macrolet", 1) => return ExpectedName::Value,
            _ => {}
        }
        match (grandparent.as_str(), above(2).map(|outer| index(outer, above(1).map_or(0, |one| one.span.start)))) {
            ("defmethod", Some(2..)) if at == 1 && above(1).is_some_and(|outer| is_lambda_list(above(2), outer)) => {
                return ExpectedName::Type;
            }
            ("handler-bind", Some(1)) if at == 0 => return ExpectedName::Type,
            ("let" | "let*" | "do" | "do*" | "prog" | "prog*" | "symbol-macrolet" | "dolist" | "dotimes", Some(1))
                if at == 0 =>
            {
                return ExpectedName::Any;
            }
            ("case" | "ecase" | "ccase", _) => {}
            _ => {}
        }
        if matches!(parent.as_str(), "case" | "ecase" | "ccase") && place >= 2 && at == 0 {
            return ExpectedName::Any;
        }
        if matches!(parent.as_str(), "cond") && place >= 1 && at == 0 {
            return ExpectedName::Value;
        }
    }
    if list.prefix == Prefix::Quote || lists.iter().any(|one| one.prefix == Prefix::Quote) {
        return ExpectedName::Any;
    }
    if at == 0 && prefix == Prefix::None { ExpectedName::Operator } else { ExpectedName::Value }
}

/// Returns the number of elements of a list before a place.
fn index(list: &Node, start: usize) -> usize {
    list.children.iter().take_while(|child| child.span.start < start).count()
}

/// Returns the prefix written directly before a place at which no datum has begun.
fn before(form: &Form, start: usize) -> Prefix {
    let written: String = form.source.chars().take(start.saturating_sub(form.span.start)).collect();
    if written.ends_with("#'") {
        Prefix::Function
    } else if written.ends_with('\'') {
        Prefix::Quote
    } else if written.ends_with(',') || written.ends_with(",@") {
        Prefix::Comma
    } else {
        Prefix::None
    }
}

/// Returns the element before the one at `at`, as written.
fn written_before<'a>(form: &'a Form, list: &Node, at: usize) -> Option<&'a str> {
    at.checked_sub(1).and_then(|at| list.children.get(at)).map(|node| form.text(node))
}

fn is_function_keyword(word: &str) -> bool {
    [":test", ":key", ":test-not", ":hash-function"].iter().any(|one| one.eq_ignore_ascii_case(word))
}

fn in_declaration(form: &Form, lists: &[&Node]) -> bool {
    lists.iter().any(|list| matches!(form.operator(list).as_deref(), Some("declare" | "declaim" | "proclaim")))
}

/// Returns true if `list` is the lambda list of a `defmethod`, the first list after the name.
fn is_lambda_list(method: Option<&Node>, list: &Node) -> bool {
    let Some(method) = method else { return false };
    let named = method.children.get(1).map_or(0, |name| name.span.start);
    let first = method.children.iter().find(|child| child.kind == Kind::List && child.span.start > named);
    first.is_some_and(|first| first.span.start == list.span.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::document::Document;

    #[test]
    fn the_kind_of_name_by_its_place() {
        let slot = |class: &str| ExpectedName::Slot(Some(class.into()));
        for (source, expected) in [
            ("(‸fo x)", ExpectedName::Operator),
            ("(f ‸fo)", ExpectedName::Value),
            ("(f #'‸fo)", ExpectedName::Operator),
            ("(let ((x ‸fo)) x)", ExpectedName::Value),
            ("(let ((‸fo 1)) x)", ExpectedName::Any),
            ("(let ((x 1)) (‸fo))", ExpectedName::Operator),
            ("(cond (‸fo 1))", ExpectedName::Value),
            ("(cond ((‸fo) 1))", ExpectedName::Operator),
            ("(case x (‸fo 1))", ExpectedName::Any),
            ("(defmethod f :after ((x ‸fo)) 1)", ExpectedName::Type),
            ("(defmethod f ((x ‸fo) y) 1)", ExpectedName::Type),
            ("(defmethod f ((x y)) (‸fo 1))", ExpectedName::Operator),
            ("(defclass a (‸fo) ())", ExpectedName::Type),
            ("(defclass a () ((x :type ‸fo)))", ExpectedName::Type),
            ("(make-instance '‸fo)", ExpectedName::Type),
            ("(typep x '‸fo)", ExpectedName::Type),
            ("(declare (‸fo x))", ExpectedName::Declaration),
            ("(declare (type ‸fo x))", ExpectedName::Type),
            ("(declare (optimize (‸fo 3)))", ExpectedName::Declaration),
            ("(declare (type (simple-array (‸fo 8) (*)) x))", ExpectedName::Type),
            ("(declare (type (or null ‸fo) x))", ExpectedName::Type),
            ("(declare (ignore ‸fo))", ExpectedName::Value),
            ("(handler-case (f) (‸fo () 1))", ExpectedName::Type),
            ("(with-slots (a ‸fo) x 1)", slot("x")),
            ("(slot-value x '‸fo)", slot("x")),
            ("(slot-value (f) '‸)", slot("(f)")),
            ("(loop for x in ‸fo)", ExpectedName::Value),
            ("(loop for ‸fo in x)", ExpectedName::Any),
            (
                "(loop for x ‸fo)",
                ExpectedName::Loop(
                    Next::Keyword(
                        "in on across from downfrom upfrom to downto upto below above by = being of-type and",
                        false,
                    )
                    .words(),
                ),
            ),
            ("(loop (‸fo))", ExpectedName::Operator),
            ("(sort x #'< :key '‸fo)", ExpectedName::Operator),
            ("'(a ‸fo)", ExpectedName::Any),
            ("(f x ‸)", ExpectedName::Value),
            ("(‸)", ExpectedName::Operator),
            ("(f #'‸)", ExpectedName::Operator),
        ] {
            let at = source.chars().position(|char| char == '‸').expect("a caret");
            let document = Document::new(&source.replace('‸', ""), 0);
            let form = Form::at(&document, at).expect("a form");
            assert_eq!(expected_name(&form, at, source.contains("‸fo")), expected, "{source}");
        }
    }
}
