//! `lisp-read-file` on a text. Returns its top-level forms, or its lines unchanged. Each form is on
//! one line, or complete if its name matches a pattern.

use serde::Serialize;

use super::outline::{Definition, definitions, selectors};
use crate::text::position::Lines;
use crate::text::tree::{Kind, NodeId, Tree};

/// A form of the collapsed view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Form {
    /// The operator, as for `form_type` of lisp-edit-form.
    pub form_type: String,
    /// The name, as for `form_name` of lisp-edit-form.
    pub form_name: String,
    /// The first line, 1-based.
    pub line: usize,
    /// The last line, 1-based.
    pub end_line: usize,
    /// The whole form if the pattern matches its name, otherwise its beginning on one line.
    pub text: String,
}

/// Returns the forms without the first `offset`, at most `limit`, and the number of all forms.
pub fn collapsed(text: &str, pattern: Option<&str>, offset: usize, limit: usize) -> (Vec<Form>, usize) {
    let tree = Tree::parse(text);
    let all = definitions(&tree);
    let names = selectors(&all, &tree);
    let pattern = pattern.map(Pattern::new);
    let accepted =
        |pattern: &Pattern, (one, name): &(&Definition, String)| pattern.accepts(name) || pattern.accepts(&one.name);
    let shown: Vec<(&Definition, String)> = all
        .iter()
        .zip(names)
        .filter(|one| one.0.depth == 0 || pattern.as_ref().is_some_and(|pattern| accepted(pattern, one)))
        .collect();
    let count = shown.len();
    let lines = Lines::of(text);
    let form = |one: (&Definition, String)| {
        let (from, to) = {
            let node = tree.node(one.0.outer);
            (lines.line(node.start), lines.line(node.end))
        };
        let whole = pattern.as_ref().is_some_and(|pattern| accepted(pattern, &one));
        let (definition, form_name) = one;
        let text =
            if whole { tree.text_of(definition.outer).replace("\r\n", "\n") } else { head(&tree, definition.outer) };
        Form { form_type: definition.operator.clone(), form_name, line: from, end_line: to, text }
    };
    (shown.into_iter().skip(offset).take(limit).map(form).collect(), count)
}

/// Returns true if the pattern matches the name of any form of the text.
pub fn names_any(text: &str, pattern: &str) -> bool {
    let tree = Tree::parse(text);
    let all = definitions(&tree);
    let pattern = Pattern::new(pattern);
    all.iter().zip(selectors(&all, &tree)).any(|(form, name)| pattern.accepts(&name) || pattern.accepts(&form.name))
}

/// Returns the beginning of a form on one line, which identifies the form, and `...` for the rest.
fn head(tree: &Tree, outer: NodeId) -> String {
    const WIDE: usize = 100;
    let node = tree.node(tree.unguarded(outer));
    let whole = tree.text_of(outer);
    if !whole.contains('\n') && whole.chars().count() <= WIDE {
        return whole.to_owned();
    }
    let guard = &tree.text[tree.node(outer).start..node.start];
    let mut shown = guard.split_whitespace().collect::<Vec<_>>().join(" ");
    if !shown.is_empty() {
        shown.push(' ');
    }
    if node.kind != Kind::List {
        return shown + &whole.lines().next().unwrap_or_default().chars().take(WIDE).collect::<String>() + " ...";
    }
    shown.push('(');
    let operator = tree.operator(tree.unguarded(outer)).unwrap_or_default();
    // The shown part ends with the lambda list. For other forms, it contains the elements that fit.
    let most = if operator == "defmethod" { 6 } else { 3 };
    for (index, id) in tree.elements(tree.unguarded(outer)).enumerate() {
        let text = tree.text_of(id).split_whitespace().collect::<Vec<_>>().join(" ");
        if index >= most
            || shown.chars().count() + text.chars().count() > WIDE
            || (index > 1 && tree.node(id).kind == Kind::String)
        {
            break;
        }
        if index > 0 {
            shown.push(' ');
        }
        shown += &text;
        if operator == "defmethod" && index > 1 && tree.node(id).kind == Kind::List {
            break;
        }
    }
    shown + " ...)"
}

/// Returns the lines without the first `offset`, at most `limit`, with their number and the number
/// of all lines.
pub fn lines(text: &str, offset: usize, limit: usize) -> (String, usize, usize) {
    let all: Vec<&str> = text.lines().collect();
    let shown: Vec<&str> = all.iter().skip(offset).take(limit).copied().collect();
    (shown.join("\n"), shown.len(), all.len())
}

/// A pattern for names that ignores case. `*` and `.*` match anything, `^` and `$` match the ends,
/// and `|` separates alternatives.
struct Pattern {
    alternatives: Vec<(bool, bool, Vec<String>)>,
}

impl Pattern {
    fn new(written: &str) -> Pattern {
        let alternative = |text: &str| {
            let text = text.trim().to_lowercase();
            let (from, text) = text.strip_prefix('^').map_or((false, text.as_str()), |rest| (true, rest));
            let (to, text) = text.strip_suffix('$').map_or((false, text), |rest| (true, rest));
            (from, to, text.replace(".*", "*").split('*').map(str::to_owned).collect())
        };
        Pattern { alternatives: written.split('|').map(alternative).collect() }
    }

    fn accepts(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.alternatives.iter().any(|(from, to, parts)| {
            let mut rest = name.as_str();
            for (index, part) in parts.iter().enumerate() {
                let last = index + 1 == parts.len();
                if index == 0 && *from && !rest.starts_with(part.as_str()) {
                    return false;
                }
                if last && *to {
                    return rest.ends_with(part.as_str()) && !(index == 0 && *from && rest != part);
                }
                match rest.find(part.as_str()) {
                    Some(at) => rest = &rest[at + part.len()..],
                    None => return false,
                }
            }
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_is_a_line() {
        assert_eq!(lines("\na", 0, 1), (String::new(), 1, 2));
        assert_eq!(lines("\na", 2, 1), (String::new(), 0, 2));
    }

    #[test]
    fn forms_collapse_to_what_says_what_they_are() {
        let text = "(in-package :a)\n(defun f (x\n          y)\n  \"Doc.\"\n  x)\n#+sbcl\n(defmethod m :after ((x a) y)\n  1)\n(defvar *x*\n  1)\n";
        let (forms, count) = collapsed(text, None, 0, 100);
        let shown: Vec<_> = forms.iter().map(|form| (form.line, form.end_line, form.text.as_str())).collect();
        assert_eq!(
            shown,
            [
                (1, 1, "(in-package :a)"),
                (2, 5, "(defun f (x y) ...)"),
                (6, 8, "#+sbcl (defmethod m :after ((x a) y) ...)"),
                (9, 10, "(defvar *x* 1 ...)"),
            ]
        );
        assert_eq!(count, 4);
        let (forms, _) = collapsed(text, Some("^F$"), 1, 1);
        assert_eq!(forms[0].text, "(defun f (x\n          y)\n  \"Doc.\"\n  x)");
    }

    #[test]
    fn patterns_find_names() {
        for (pattern, name, expected) in [
            ("sc", "scan", true),
            ("^can", "scan", false),
            ("^sc*n$", "scan", true),
            ("sc.*z", "scan", false),
            ("x|scan", "SCAN", true),
            ("^scan$", "scanner", false),
            ("can$", "scan", true),
        ] {
            assert_eq!(Pattern::new(pattern).accepts(name), expected, "{pattern} {name}");
        }
    }
}
