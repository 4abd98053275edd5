//! Fixes for a variable that is never used: to declare it ignored, or to remove it.

use super::{Change, Fix};
use crate::model::diagnostic::Diagnostic;
use crate::text::datum::{Form, Kind, Node};
use crate::text::document::Document;
use crate::text::forms::toplevel_form;

/// The binding of a variable.
struct Binder<'a> {
    /// The list in whose body the variable is in scope.
    list: &'a Node,
    /// The index of the element of `list` where the body begins.
    body: usize,
    /// True if the body may begin with a docstring.
    documented: bool,
    /// The identifier of the declaration to add: `ignore` or `ignorable`.
    declaration: &'static str,
    /// The list of bindings and the binding in it, if the binding can be removed.
    binding: Option<(&'a Node, &'a Node)>,
}

pub(super) fn fixes(document: &Document, item: &Diagnostic) -> Vec<Fix> {
    let form = toplevel_form(document, item.span.start).map(|span| Form::of(document, span));
    let Some(form) = form.filter(|form| form.balanced) else { return Vec::new() };
    let chain = form.around(item.span);
    let Some(variable) = chain.last().filter(|node| node.kind == Kind::Atom && node.is_plain()) else {
        return Vec::new();
    };
    let name = form.written(variable);
    let Some(binder) = binder(&form, &chain) else { return Vec::new() };
    let mut fixes = Vec::new();
    fixes.extend(declare(&form, &binder, name));
    fixes.extend(remove(&form, &binder, name));
    fixes
}

fn binder<'a>(form: &Form, chain: &[&'a Node]) -> Option<Binder<'a>> {
    for (depth, list) in chain.iter().enumerate().rev().filter(|(_, node)| node.is_list()) {
        let Some(inner) = chain.get(depth + 1) else { continue };
        let at = list.elements().iter().position(|element| element == *inner)?;
        let next = |further: usize| chain.get(depth + 1 + further).copied();
        let variable = chain.last()?;
        let plain =
            |body: usize, documented: bool| Binder { list, body, documented, declaration: "ignore", binding: None };
        let found = match form.operator(list).as_deref().unwrap_or_default() {
            "let" | "let*" if at == 1 => {
                let binding = next(1)?;
                let bound = binding == *variable || binding.elements().first() == Some(variable);
                bound.then(|| Binder { binding: Some((inner, binding)), ..plain(2, false) })
            }
            "defun" | "defmacro" | "deftype" | "define-compiler-macro" if at == 2 => Some(plain(3, true)),
            "defmethod" => {
                let parameters = list.elements().iter().skip(2).position(Node::is_list)? + 2;
                (at == parameters).then(|| plain(at + 1, true))
            }
            "lambda" if at == 1 => Some(plain(2, true)),
            "named-lambda" if at == 2 => Some(plain(3, true)),
            "multiple-value-bind" | "destructuring-bind" if at == 1 => Some(plain(3, false)),
            "dolist" if at == 1 && inner.elements().first() == Some(variable) => {
                Some(Binder { declaration: "ignorable", ..plain(2, false) })
            }
            "flet" | "labels" | "macrolet" if at == 1 => {
                let definition = next(1)?;
                let bound = definition.is_list() && definition.elements().get(1) == next(2);
                bound.then(|| Binder { list: definition, ..plain(2, true) })
            }
            "handler-case" if at >= 2 && inner.elements().get(1) == next(1) && next(2) == Some(variable) => {
                let clause = Binder { list: inner, ..plain(2, false) };
                Some(Binder { binding: next(1).map(|list| (list, *variable)), ..clause })
            }
            _ => None,
        };
        if let Some(binder) = found {
            let unclear = binder.list.elements().iter().take(binder.body).any(|node| node.guarded);
            return (!unclear && binder.list.elements().len() >= binder.body).then_some(binder);
        }
    }
    None
}

impl Binder<'_> {
    /// Returns the number of elements at the start of the body that are a docstring or
    /// declarations.
    fn preamble(&self, form: &Form) -> usize {
        let body = self.list.elements().get(self.body..).unwrap_or_default();
        let mut documented = self.documented;
        let mut count = 0;
        for (index, element) in body.iter().enumerate() {
            let documents = documented && element.kind == Kind::String && element.is_plain() && index + 1 < body.len();
            documented &= !documents;
            let declares = element.is_list() && form.operator(element).as_deref() == Some("declare");
            if !documents && !declares {
                break;
            }
            count += 1;
        }
        count
    }
}

fn declare(form: &Form, binder: &Binder, name: &str) -> Option<Fix> {
    let elements = binder.list.elements();
    let preamble = binder.preamble(form);
    let before = &elements[..binder.body + preamble];
    let title = match binder.declaration {
        "ignore" => format!("Declare {name} ignored"),
        other => format!("Declare {name} {other}"),
    };
    let at = |byte: usize, text: String| {
        Fix::new(title.clone(), vec![Change { span: form.span_of(byte, byte), text }]).with_preference()
    };
    // A declaration of the same kind for other variables gets the name added.
    let mut specifiers = before[binder.body..].iter().flat_map(Node::elements);
    if let Some(same) =
        specifiers.find(|list| list.is_list() && form.operator(list).as_deref() == Some(binder.declaration))
    {
        let last = same.elements().last().filter(|last| !last.guarded)?;
        return Some(at(last.end(), format!(" {name}")));
    }
    let declaration = format!("(declare ({} {name}))", binder.declaration);
    let previous = before.last()?;
    let Some(next) = elements.get(binder.body + preamble) else {
        return Some(at(previous.end(), format!(" {declaration}")));
    };
    let between = &form.source[previous.end()..next.start()];
    let Some(line_end) = between.find('\n') else {
        return Some(at(next.start(), format!("{declaration} ")));
    };
    let indentation = &form.source[previous.end()..next.start()][between.rfind('\n').map_or(0, |at| at + 1)..];
    let line = &between[..line_end];
    if !indentation.trim().is_empty() {
        // Other text, such as a block comment, precedes the next element on its line.
        return Some(at(next.start(), format!("{declaration} ")));
    }
    let newline = if line.ends_with('\r') { "\r\n" } else { "\n" };
    let rest = line.trim_start();
    if rest.is_empty() || rest.starts_with(';') {
        // The declaration gets its own line, before the comments that belong to the next element.
        return Some(at(previous.end() + line_end + 1, format!("{indentation}{declaration}{newline}")));
    }
    Some(at(next.start(), format!("{declaration}{newline}{indentation}")))
}

fn remove(form: &Form, binder: &Binder, name: &str) -> Option<Fix> {
    let (list, binding) = binder.binding?;
    let preamble = binder.preamble(form);
    let declared = &binder.list.elements()[binder.body..binder.body + preamble];
    let inert = binding.elements().iter().skip(1).all(|value| is_inert(form, value));
    if !inert || declared.iter().any(|node| mentions(form, node, name)) {
        return None;
    }
    let change = without(form, list, binding)?;
    Some(Fix::new(format!("Remove the variable {name}"), vec![change]))
}

/// Removes an element from a list, together with the white space that belongs to it.
pub(super) fn without(form: &Form, list: &Node, element: &Node) -> Option<Change> {
    let siblings = list.elements();
    let index = siblings.iter().position(|sibling| sibling == element)?;
    let blank = |from: usize, to: usize| form.source[from..to].chars().all(char::is_whitespace);
    let (mut start, mut end) = (element.start(), element.end());
    if let Some(next) = siblings.get(index + 1).filter(|next| blank(element.end(), next.start())) {
        end = next.start();
    } else if let Some(previous) = index.checked_sub(1).and_then(|before| siblings.get(before))
        && blank(previous.end(), element.start())
    {
        start = previous.end();
    }
    Some(Change { span: form.span_of(start, end), text: String::new() })
}

/// Returns true if a form is a constant, a name or a quoted datum. The evaluation of such a form
/// has no effect.
pub(super) fn is_inert(form: &Form, node: &Node) -> bool {
    let written = form.written(node);
    match node.kind {
        _ if node.guarded => false,
        Kind::Atom | Kind::String => !written.starts_with("#."),
        Kind::List => written.starts_with('\'') || written.starts_with("#'"),
        Kind::Vector => false,
    }
}

/// Returns true if a node contains the symbol. A guarded node (`#+`, `#-`) counts as containing it.
pub(super) fn mentions(form: &Form, node: &Node, name: &str) -> bool {
    match node.kind {
        _ if node.guarded => true,
        Kind::List | Kind::Vector => node.children.iter().any(|element| mentions(form, element, name)),
        Kind::Atom => form.written(node).eq_ignore_ascii_case(name),
        Kind::String => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{applied, marked};
    use super::*;

    /// Returns the text after the first fix with this title prefix. If there is none, returns the
    /// titles of all fixes.
    fn after(source: &str, title: &str) -> String {
        let (document, item) = marked(source, "unused-variable");
        let all = fixes(&document, &item);
        match all.iter().find(|fix| fix.title.starts_with(title)) {
            Some(fix) => applied(&document, fix),
            None => format!("only {:?}", all.iter().map(|fix| fix.title.as_str()).collect::<Vec<_>>()),
        }
    }

    #[test]
    fn a_variable_is_declared_ignored_behind_documentation_and_before_the_body() {
        for (before, expected) in [
            ("(defun f («x») 1)", "(defun f (x) (declare (ignore x)) 1)"),
            ("(defun f («x»))", "(defun f (x) (declare (ignore x)))"),
            ("(defun f («x»)\n  \"Doc.\"\n  1)", "(defun f (x)\n  \"Doc.\"\n  (declare (ignore x))\n  1)"),
            // A string alone in the body is the value.
            ("(defun f («x») \"value\")", "(defun f (x) (declare (ignore x)) \"value\")"),
            (
                "(defun f (a «x») ; why\n  ;; about g\n  (g a))",
                "(defun f (a x) ; why\n  (declare (ignore x))\n  ;; about g\n  (g a))",
            ),
            ("(defun f («x») #| two\n lines |#\n  1)", "(defun f (x) #| two\n lines |#\n  (declare (ignore x))\n  1)"),
            (
                "(defun f (a «x»)\n  (declare (fixnum a))\n  a)",
                "(defun f (a x)\n  (declare (fixnum a))\n  (declare (ignore x))\n  a)",
            ),
            (
                "(defun f (y «x»)\n  (declare (ignore y) (optimize speed))\n  1)",
                "(defun f (y x)\n  (declare (ignore y x) (optimize speed))\n  1)",
            ),
            ("(defun f («x»)\r\n  1)", "(defun f (x)\r\n  (declare (ignore x))\r\n  1)"),
            (
                "(defmethod f :around ((a b) «x»)\n  (g))",
                "(defmethod f :around ((a b) x)\n  (declare (ignore x))\n  (g))",
            ),
            ("(mapcar (lambda («x») 1) y)", "(mapcar (lambda (x) (declare (ignore x)) 1) y)"),
            (
                "(flet ((g (a &optional («x» 1))\n         a))\n  (g 1))",
                "(flet ((g (a &optional (x 1))\n         (declare (ignore x))\n         a))\n  (g 1))",
            ),
            (
                "(defmacro m ((a («x»)) &body body)\n  `(,a ,@body))",
                "(defmacro m ((a (x)) &body body)\n  (declare (ignore x))\n  `(,a ,@body))",
            ),
            ("(destructuring-bind (a «x») list\n  a)", "(destructuring-bind (a x) list\n  (declare (ignore x))\n  a)"),
            (
                "(multiple-value-bind (q «r») (floor 1 2) q)",
                "(multiple-value-bind (q r) (floor 1 2) (declare (ignore r)) q)",
            ),
            ("(let* ((y 1) («x» (g)))\n  y)", "(let* ((y 1) (x (g)))\n  (declare (ignore x))\n  y)"),
            (
                "(handler-case (g)\n  (error («e»)\n    \"no\"))",
                "(handler-case (g)\n  (error (e)\n    (declare (ignore e))\n    \"no\"))",
            ),
            ("(cl:let ((«x» (g))) #+sbcl (h) 1)", "(cl:let ((x (g))) (declare (ignore x)) #+sbcl (h) 1)"),
            ("(dolist («x» list)\n  (g))", "(dolist (x list)\n  (declare (ignorable x))\n  (g))"),
        ] {
            assert_eq!(after(before, "Declare"), expected, "{before}");
        }
    }

    #[test]
    fn a_binding_whose_value_does_nothing_can_be_removed() {
        for (before, expected) in [
            ("(let ((«x» 1)) 2)", "(let () 2)"),
            ("(let ((a 1)\n      («x» '(g))\n      (b 2))\n  (+ a b))", "(let ((a 1)\n      (b 2))\n  (+ a b))"),
            ("(let ((a 1)\n      («x» \"s\"))\n  a)", "(let ((a 1))\n  a)"),
            ("(let ((a 1) ; one\n      («x» nil)) ; two\n  a)", "(let ((a 1) ; one\n      ) ; two\n  a)"),
            ("(let* («x» (a 1)) a)", "(let* ((a 1)) a)"),
            ("(handler-case (g) (error («e») 1))", "(handler-case (g) (error () 1))"),
        ] {
            assert_eq!(after(before, "Remove"), expected, "{before}");
        }
        for kept in [
            "(let ((«x» (read))) 1)",
            "(let ((«x» #.(read))) 1)",
            "(let ((«x» 1)) (declare (fixnum x)) 1)",
            "(defun f («x») 1)",
        ] {
            assert!(after(kept, "Remove").starts_with("only ["), "{kept}");
        }
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        for source in [
            "(my-let ((«x» 1)) 2)",
            "(loop for «x» in list collect 1)",
            "(defun f #+sbcl («x») #-sbcl (y) 1)",
            "(let (#+sbcl («x» 1)) 2)",
            "(let ((y «x»)) y)",
            "(defun f (a &aux (b (g «x»))) 1 2",
        ] {
            assert_eq!(after(source, "Declare"), "only []", "{source}");
        }
    }
}
