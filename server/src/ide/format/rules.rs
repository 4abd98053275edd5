//! The indentation of operators' arguments.

use std::collections::{HashMap, HashSet};

use super::specs::{self, Method};
use crate::text::tree::{Kind, ROOT, Tree};

/// The number of arguments before an operator's body, or `None` for an operator without a body,
/// which is indented like a function.
pub type Body = Option<usize>;

/// The indentation data of operators, by their names in lower case without package. In order of
/// precedence: the person's rules, the standard's (also for a macro of the text with a standard
/// name), those of the text's own macros, the live image's, and a guess by the name.
#[derive(Debug, Clone, Default)]
pub struct Bodies {
    user_rules: HashMap<String, usize>,
    own: HashMap<String, Body>,
    live: HashMap<String, Body>,
}

/// The standard's operators with a body, and well-known others, sorted by name, with the number of
/// arguments before the body.
const STANDARD: [(&str, usize); 78] = [
    ("block", 1),
    ("case", 1),
    ("catch", 1),
    ("ccase", 1),
    ("compiler-let", 1),
    ("ctypecase", 1),
    ("defclass", 2),
    ("defconst", 1),
    ("defconstant", 1),
    ("defcustom", 1),
    ("defgeneric", 2),
    ("define-compiler-macro", 2),
    ("define-condition", 2),
    ("define-method-combination", 1),
    ("define-modify-macro", 1),
    ("define-setf-expander", 2),
    ("define-symbol-macro", 1),
    ("defmacro", 2),
    ("defpackage", 1),
    ("defparameter", 1),
    ("defsetf", 2),
    ("defstruct", 1),
    ("defsubst", 2),
    ("defsystem", 1),
    ("deftype", 2),
    ("defun", 2),
    ("defvar", 1),
    ("destructuring-bind", 2),
    ("do", 2),
    ("do*", 2),
    ("do-all-symbols", 1),
    ("do-external-symbols", 1),
    ("do-symbols", 1),
    ("dolist", 1),
    ("dotimes", 1),
    ("ecase", 1),
    ("etypecase", 1),
    ("eval-when", 1),
    ("flet", 1),
    ("handler-bind", 1),
    ("handler-case", 1),
    ("in-package", 1),
    ("labels", 1),
    ("lambda", 1),
    ("let", 1),
    ("let*", 1),
    ("locally", 1),
    ("macrolet", 1),
    ("multiple-value-bind", 2),
    ("multiple-value-call", 1),
    ("multiple-value-prog1", 1),
    ("multiple-value-setq", 1),
    ("named-lambda", 2),
    ("pprint-logical-block", 1),
    ("print-unreadable-object", 1),
    ("prog1", 1),
    ("prog2", 2),
    ("progn", 0),
    ("progv", 2),
    ("restart-bind", 1),
    ("restart-case", 1),
    ("return", 0),
    ("return-from", 1),
    ("symbol-macrolet", 1),
    ("throw", 1),
    ("typecase", 1),
    ("unless", 1),
    ("unwind-protect", 1),
    ("when", 1),
    ("with-accessors", 2),
    ("with-compilation-unit", 1),
    ("with-condition-restarts", 2),
    ("with-open-file", 1),
    ("with-open-stream", 1),
    ("with-output-to-string", 1),
    ("with-simple-restart", 1),
    ("with-slots", 2),
    ("with-standard-io-syntax", 0),
];

impl Bodies {
    /// Collects the rules of the text's own macros, from the position of `&body` in their lambda
    /// lists.
    pub fn of(tree: &Tree) -> Bodies {
        let mut own = HashMap::new();
        for definition in super::super::outline::definitions(tree) {
            if definition.operator != "defmacro" {
                continue;
            }
            let list = tree.datum(definition.node);
            if let Some(lambda_list) = tree.elements(list).nth(2).filter(|id| tree.node(*id).kind == Kind::List) {
                let words: Vec<String> = tree.elements(lambda_list).map(|id| tree.text_of(id).to_lowercase()).collect();
                own.insert(definition.name, before_body(&words));
            }
        }
        Bodies { own, ..Bodies::default() }
    }

    /// Returns the macros of the text, with the number of arguments before their bodies.
    pub fn own(&self) -> impl Iterator<Item = (&str, Body)> {
        self.own.iter().map(|(name, body)| (name.as_str(), *body))
    }

    /// Returns the operators, as written, for which only the image may have indentation data. They
    /// are sorted.
    pub fn unknown(&self, tree: &Tree) -> Vec<String> {
        let is_known = |name: &str| {
            self.own.contains_key(name)
                || STANDARD.binary_search_by(|(known, _)| (*known).cmp(name)).is_ok()
                || special(name)
        };
        let mut heads: HashSet<&str> = HashSet::new();
        for id in tree.ids().filter(|id| *id != ROOT && tree.node(*id).kind == Kind::List) {
            if let Some(head) = tree.elements(id).next().map(|head| tree.text_of(head))
                && !head.starts_with([':', '&'])
                && !heads.contains(head)
                && tree.operator(id).is_some_and(|name| !is_known(&name))
            {
                heads.insert(head);
            }
        }
        let mut names: Vec<String> = heads.into_iter().map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    /// Adds a rule of the user's settings.
    pub fn add_user_rule(&mut self, name: &str, body: usize) {
        self.user_rules.insert(name.to_lowercase(), body);
    }

    /// Records the image's answer about a macro. A macro without `&body` is indented by its name if
    /// the name suggests a body.
    pub fn learn_macro(&mut self, written: &str, body: Body) {
        let name = crate::text::names::symbol(written).map(|symbol| symbol.name.to_lowercase());
        if body.is_some() || !name.is_some_and(|name| takes_body(&name)) {
            self.learn(written, body);
        }
    }

    /// Records the image's answer about the operator `written`.
    pub fn learn(&mut self, written: &str, body: Body) {
        if let Some(symbol) = crate::text::names::symbol(written) {
            self.live.insert(symbol.name.to_lowercase(), body);
        }
    }

    /// Returns the number of arguments before an operator's body, or `None` if it has no body. A
    /// body of the text's own macro takes precedence over the standard's here.
    pub fn get(&self, name: &str) -> Body {
        if let Some(wanted) = self.user_rules.get(name) {
            return Some(*wanted);
        }
        if let Some(Some(own)) = self.own.get(name) {
            return Some(*own);
        }
        if let Ok(at) = STANDARD.binary_search_by(|(known, _)| (*known).cmp(name)) {
            return Some(STANDARD[at].1);
        }
        match self.own.get(name).or_else(|| self.live.get(name)) {
            // A definer without `&body` is indented by its name, like other definers.
            Some(None) if !is_definer(name) && !self.is_named_like_body(name) => None,
            Some(Some(body)) => Some(*body),
            _ => by_name(name),
        }
    }

    /// Returns the indentation of an operator's arguments. `keyword` is true if the operator is
    /// written as a keyword.
    pub(super) fn method(&self, name: &str, keyword: bool) -> Option<Method> {
        let known = |bodies: &HashMap<String, Body>| bodies.get(name).copied().flatten().map(Method::Number);
        let wanted = self.user_rules.get(name).copied().map(Method::Number);
        let guessed = || (!self.is_plain(name) && names_binding_conditional(name)).then_some(Method::Number(1));
        wanted
            .or_else(|| specs::of(name, keyword))
            .or_else(|| known(&self.own))
            .or_else(|| known(&self.live))
            .or_else(guessed)
    }

    /// Returns true if an operator is known to have no body.
    pub(super) fn is_plain(&self, name: &str) -> bool {
        self.own.get(name).or_else(|| self.live.get(name)) == Some(&None) && !self.is_named_like_body(name)
    }

    /// Returns true for a macro of the text without `&body` whose name suggests a body. Such a
    /// macro may take its body by `&rest`.
    fn is_named_like_body(&self, name: &str) -> bool {
        takes_body(name) && self.own.get(name) == Some(&None)
    }
}

/// Returns true if the operator is indented by code of its own.
pub fn special(name: &str) -> bool {
    matches!(
        name,
        "loop"
            | "defmethod"
            | "cond"
            | "if"
            | "if*"
            | "setf"
            | "setq"
            | "tagbody"
            | "prog"
            | "prog*"
            | "and"
            | "or"
            | "not"
    )
}

/// Returns the number of parameters before `&body`, or `None` if the lambda list has none.
fn before_body(lambda_list: &[String]) -> Body {
    let mut count = 0;
    let mut words = lambda_list.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "&body" => return Some(count),
            "&whole" | "&environment" => drop(words.next()),
            "&optional" => {}
            "&rest" | "&key" | "&aux" => return None,
            _ => count += 1,
        }
    }
    None
}

/// Returns true if SLIME's indentation treats a name as that of a definer.
pub(super) fn is_definer(name: &str) -> bool {
    name.starts_with("def") && !["default", "definition", "definer"].iter().any(|other| name.starts_with(other))
}

/// Returns true if an operator of this name is taken to have a body after one argument.
pub(super) fn takes_body(name: &str) -> bool {
    ["with-", "without-", "do-"].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns true for the names of conditionals that bind variables: `when-let`, `if-let`.
fn names_binding_conditional(name: &str) -> bool {
    name.starts_with("when-") || name.starts_with("if-let")
}

fn by_name(name: &str) -> Body {
    if is_definer(name) || name.starts_with("with-") || name.starts_with("do-") || names_binding_conditional(name) {
        Some(1)
    } else if name.starts_with("without-") {
        Some(0)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_s_operators_are_in_order() {
        assert!(STANDARD.is_sorted_by_key(|(name, _)| *name));
    }

    #[test]
    fn the_text_s_own_macros_tell_their_bodies() {
        let text = "(defmacro m (a (b c) &body body) 1)\n(defmacro n (&whole w a &rest r) 1)\n(defmacro when (&environment e &optional a &body b) 1)";
        let bodies = Bodies::of(&Tree::parse(text));
        for (name, body) in
            [("m", Some(2)), ("n", None), ("when", Some(1)), ("let", Some(1)), ("with-foo", Some(1)), ("list", None)]
        {
            assert_eq!(bodies.get(name), body, "{name}");
        }
    }
}
