//! Indentation rules of the user, from Consort's settings and from Emacs's `.dir-locals.el`, which
//! is read as data.

use crate::text::names;
use crate::text::tree::{Kind, NodeId, Tree};

/// An operator, with the number of arguments before its body.
pub type Rule = (String, usize);

/// Returns the rules in a `.dir-locals.el`, which has forms like
/// `(put 'NAME 'common-lisp-indent-function RULE)`. RULE is a number, a list with `&body` or
/// `&rest`, or `defun`. Nothing is evaluated.
pub fn of_dir_locals(text: &str) -> Vec<Rule> {
    let tree = Tree::parse(text);
    let mut rules = Vec::new();
    for id in tree.ids().skip(1).filter(|id| tree.node(*id).kind == Kind::List) {
        let elements = tree.element_list(id);
        let Some(at) = elements.iter().position(|id| tree.text_of(*id) == "put") else { continue };
        let [name, property, rule, ..] = &elements[at + 1..] else { continue };
        let quoted = |id: NodeId| tree.text_of(id).strip_prefix('\'');
        if !matches!(quoted(*property), Some("common-lisp-indent-function" | "lisp-indent-function")) {
            continue;
        }
        let name = quoted(*name).and_then(names::symbol).map(|symbol| symbol.name.to_lowercase());
        if let (Some(name), Some(body)) = (name, body(&tree, *rule)) {
            rules.push((name, body));
        }
    }
    rules
}

/// Returns the number of arguments before the body according to an indentation specification.
/// Returns `None` for an unknown kind of specification.
fn body(tree: &Tree, rule: NodeId) -> Option<usize> {
    let written = tree.text_of(rule);
    if let Ok(count) = written.parse() {
        return Some(count);
    }
    if written == "'defun" {
        return Some(2);
    }
    let list = tree.datum(rule);
    if tree.node(list).kind != Kind::List {
        return None;
    }
    let words: Vec<&str> = tree.elements(list).map(|id| tree.text_of(id)).collect();
    words.iter().position(|word| matches!(*word, "&body" | "&rest"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_for_emacs_are_read_as_data() {
        let text = r#"
((lisp-mode . ((indent-tabs-mode . nil)
               (eval . (put 'with-it 'common-lisp-indent-function 1))
               (eval put 'define-it 'common-lisp-indent-function '(4 &lambda &body))
               (eval . (put 'deffoo 'lisp-indent-function 'defun))
               (eval . (put 'other 'safe-local-variable 'integerp))
               (eval . (put 'strange 'common-lisp-indent-function (lambda () (delete-file "x")))))))
"#;
        let rules: Vec<(String, usize)> =
            [("with-it", 1), ("define-it", 2), ("deffoo", 2)].map(|(name, body)| (name.to_owned(), body)).into();
        assert_eq!(of_dir_locals(text), rules);
        assert_eq!(of_dir_locals("((("), []);
    }
}
