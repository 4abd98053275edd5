//! The first form of a text that changes how the text after it is read.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::text::datum::{Form, Kind, Node, symbol_name};
use crate::text::definitions::EXPANDER_DEFINERS;
use crate::text::document::Document;
use crate::text::toplevel::TopForm;

/// Operators and variables that change how later text is read.
const READERS: [&str; 7] = [
    "in-readtable",
    "readtable-case",
    "set-macro-character",
    "set-dispatch-macro-character",
    "set-syntax-from-char",
    "make-dispatch-macro-character",
    VARIABLE,
];
const VARIABLE: &str = "*readtable*";
/// Operators that only read the variable.
const LOOKING: [&str; 5] = ["get-macro-character", "get-dispatch-macro-character", "readtablep", "eq", "eql"];

/// Returns the start of the first form up to `until` that may change how later text is read, and
/// the operator or variable with which it does so. A definition of a function changes nothing until
/// the function is called. A macro may do so when it is expanded.
pub(in crate::ide) fn first_reader(document: &Document, until: usize) -> Option<(usize, &'static str)> {
    let before = || document.scan().forms().iter().take_while(|top| top.span.start <= until);
    let mentions = |top: &TopForm| {
        let raw = document.text().slice(top.span.start..top.span.end).to_string().to_lowercase();
        READERS.iter().any(|reader| raw.contains(reader))
    };
    if !before().any(mentions) {
        return None;
    }
    let forms: Vec<Form> = before().map(|top| Form::of(document, top.span)).collect();
    let known = ReaderChanges::of(&forms);
    forms.iter().find_map(|form| {
        let reader = form.nodes.iter().find_map(|node| known.evaluated(form, node))?;
        Some((form.span.start, reader))
    })
}

/// A definition of a function or macro.
struct Definition {
    name: Option<String>,
    is_macro: bool,
    /// The names in the definition.
    mentioned: HashSet<String>,
    /// The operator or variable in the definition that changes how text is read.
    reader: Option<&'static str>,
}

impl Definition {
    fn of(form: &Form, node: &Node, is_macro: bool) -> Definition {
        fn visit(form: &Form, node: &Node, found: &mut HashSet<String>) {
            if node.kind == Kind::Atom {
                found.extend(symbol_name(form.text(node)));
            }
            node.children.iter().for_each(|child| visit(form, child, found));
        }
        let mut mentioned = HashSet::new();
        visit(form, node, &mut mentioned);
        let reader = ReaderChanges::default().mentioned(form, &mut vec![node], true);
        Definition { name: defined(form, node), is_macro, mentioned, reader }
    }

    /// Adds the definitions in a top-level form.
    fn add_all(form: &Form, node: &Node, found: &mut Vec<Definition>) {
        let operator = form.operator(node).unwrap_or_default();
        match operator.as_str() {
            "progn" | "locally" | "eval-when" => {
                node.children.iter().skip(1).for_each(|child| Definition::add_all(form, child, found));
            }
            "defun" | "defmethod" => found.push(Definition::of(form, node, false)),
            _ if EXPANDER_DEFINERS.contains(&operator.as_str()) => found.push(Definition::of(form, node, true)),
            _ => {}
        }
    }
}

/// The definitions of a text that change how text is read when they are called, directly or through
/// one another. Each has the operator or variable by which it does so.
#[derive(Default)]
struct ReaderChanges {
    functions: HashMap<String, &'static str>,
    macros: HashMap<String, &'static str>,
}

impl ReaderChanges {
    fn of(forms: &[Form]) -> ReaderChanges {
        let mut definitions = Vec::new();
        for form in forms {
            form.nodes.iter().for_each(|node| Definition::add_all(form, node, &mut definitions));
        }
        let mut users: HashMap<&str, Vec<&Definition>> = HashMap::new();
        for definition in &definitions {
            for name in &definition.mentioned {
                users.entry(name).or_default().push(definition);
            }
        }
        let direct = definitions.iter().filter_map(|definition| Some((definition, definition.reader?)));
        let mut changing: VecDeque<(&Definition, &'static str)> = direct.collect();
        let mut known = ReaderChanges::default();
        while let Some((definition, reader)) = changing.pop_front() {
            let Some(name) = &definition.name else { continue };
            let same = if definition.is_macro { &mut known.macros } else { &mut known.functions };
            if same.contains_key(name) {
                continue;
            }
            same.insert(name.clone(), reader);
            // The users of a name are removed, so that a second definition of it adds none.
            let users = users.remove(name.as_str()).unwrap_or_default();
            changing.extend(users.into_iter().map(|user| (user, reader)));
        }
        known
    }

    /// Returns the operator by which the evaluation of a top-level form may change how text is
    /// read.
    fn evaluated(&self, form: &Form, node: &Node) -> Option<&'static str> {
        let operator = form.operator(node).unwrap_or_default();
        let all = |from: usize| node.children.iter().skip(from).find_map(|child| self.evaluated(form, child));
        match operator.as_str() {
            "progn" | "locally" => all(1),
            "eval-when" => all(2),
            "defun" | "defmethod" => self.mentioned(form, &mut vec![node], false),
            operator if EXPANDER_DEFINERS.contains(&operator) => None,
            _ => self.mentioned(form, &mut vec![node], true),
        }
    }

    /// Returns the first operator in the last node of a path that changes how text is read. If
    /// `all` is false, only macros of the text are considered, which are expanded when the form is
    /// compiled.
    fn mentioned(&self, form: &Form, path: &mut Vec<&Node>, all: bool) -> Option<&'static str> {
        let node = *path.last()?;
        if node.kind == Kind::Atom {
            let name = symbol_name(form.text(node))?;
            let of_standard = || READERS.iter().copied().find(|reader| *reader == name);
            let reader = match self.macros.get(&name) {
                Some(reader) => Some(*reader),
                None if all => self.functions.get(&name).copied().or_else(of_standard),
                None => None,
            };
            return reader.filter(|_| name != VARIABLE || !only_looks(form, path));
        }
        node.children.iter().find_map(|child| {
            path.push(child);
            let found = self.mentioned(form, path, all);
            path.pop();
            found
        })
    }
}

/// Returns the name that a definition defines.
fn defined(form: &Form, definition: &Node) -> Option<String> {
    let name = definition.children.get(1)?;
    form.name(name).or_else(|| name.children.get(1).and_then(|name| form.name(name)))
}

/// Returns true if the variable at the end of a path is neither assigned nor given to a function
/// that may change its value. A binding of the variable does not count, because it ends with its
/// form, and the reader has read the whole form before.
fn only_looks(form: &Form, path: &[&Node]) -> bool {
    let [before @ .., around, variable] = path else { return false };
    let place = around.children.iter().position(|child| std::ptr::eq(child, *variable)).unwrap_or_default();
    let operator = form.operator(around).unwrap_or_default();
    let is_binding = || {
        let [.., binder, bindings] = before else { return false };
        let operator = form.operator(binder).unwrap_or_default();
        matches!(operator.as_str(), "let" | "let*")
            && binder.children.get(1).is_some_and(|first| std::ptr::eq(first, *bindings))
    };
    match operator.as_str() {
        "setf" | "setq" => place > 0 && place % 2 == 0,
        "defvar" | "defparameter" => place > 1,
        // `copy-readtable` changes its second argument.
        "copy-readtable" => place == 1,
        operator if LOOKING.contains(&operator) => true,
        _ => place == 0 && is_binding(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(usize, &'static str)> {
        let document = Document::new(text, 0);
        first_reader(&document, document.text().len_chars())
    }

    #[test]
    fn a_definition_changes_how_text_is_read_when_it_is_called() {
        let definition = "(defun enable () (set-macro-character #\\! #'f))\n";
        assert_eq!(found(definition), None);
        for (text, changing) in [
            ("(defun other () (enable))", None),
            ("(eval-when (:compile-toplevel)\n  (enable))", Some("set-macro-character")),
            ("(mapc #'enable '(1))", Some("set-macro-character")),
            ("(defun other () (enable)) (other)", Some("set-macro-character")),
            ("(defmacro m () (enable))", None),
        ] {
            let text = format!("{definition}{text}");
            assert_eq!(found(&text).map(|(_, reader)| reader), changing, "{text}");
        }
        let later = "(defun enable () (%enable))\n(defun %enable () (set-macro-character #\\! #'f))\n";
        assert_eq!(found(later), None);
        let called = format!("{later}(eval-when (:compile-toplevel)\n  (enable))");
        assert_eq!(found(&called), Some((later.len(), "set-macro-character")));
        let expanded = "(defmacro m () (enable-it) `(setf *readtable* x))\n(defun f () (m))";
        assert_eq!(found(expanded), expanded.find("(defun").map(|start| (start, VARIABLE)));
        assert_eq!(found("(eval-when (:execute)\n  (defun f () (setf *readtable* x))\n  (f))"), Some((0, VARIABLE)));
    }

    #[test]
    fn the_value_of_the_variable_is_read_without_a_change() {
        for text in [
            "(setf (named-readtable :runes) *readtable*)",
            "(defvar *old* (copy-readtable *readtable*))",
            "(defparameter *old* *readtable*)",
            "(let ((*readtable* (copy-readtable nil))) (read-it))",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        for text in [
            "(setf *readtable* x)",
            "(setq a 1 *readtable* x)",
            "(enable *readtable*)",
            "(let ((table *readtable*)) (change table))",
            "(copy-readtable nil *readtable*)",
        ] {
            assert_eq!(found(text), Some((0, VARIABLE)), "{text}");
        }
    }
}
