//! The kind of each reference to a name in a form, determined by the place of the name.

use crate::text::datum::{Form, Kind as Shape, Node, Prefix};
use crate::text::definitions::is_definer;
use crate::text::features;
use crate::text::scopes::{Namespace, Scopes};
use crate::text::{Span, cancellation};

/// The kind of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The function is called, or named by `#'`.
    Calls,
    /// The macro is called.
    Macroexpands,
    /// The variable, or the place named by the function, is assigned.
    Sets,
    /// The special variable is bound.
    Binds,
    /// The variable is read.
    Reads,
    /// A method is specialized on the class.
    Specializes,
    /// Any other mention: in quoted data, declarations, exports.
    Mentions,
    /// The name of a definition, which is not a reference.
    Defines,
}

impl Kind {
    /// The kinds that a person can choose, with the image's words for them.
    pub const CHOICES: [(Kind, &'static str); 7] = [
        (Kind::Calls, "calls"),
        (Kind::Macroexpands, "macroexpands"),
        (Kind::Sets, "sets"),
        (Kind::Binds, "binds"),
        (Kind::Reads, "references"),
        (Kind::Specializes, "specializes"),
        (Kind::Mentions, "mentions"),
    ];

    /// Returns true for the kinds of the calls of functions and macros.
    pub fn is_call(self) -> bool {
        matches!(self, Kind::Calls | Kind::Macroexpands)
    }

    /// Returns the image's word for the kind.
    pub fn word(self) -> &'static str {
        Kind::CHOICES.iter().find(|(kind, _)| *kind == self).map_or("defines", |(_, word)| word)
    }

    /// Returns the kind for a word of the image, or [`Kind::Mentions`] for an unknown word.
    pub fn of(word: &str) -> Kind {
        Kind::CHOICES.iter().find(|(_, known)| *known == word).map_or(Kind::Mentions, |(kind, _)| *kind)
    }
}

/// A place where a form refers to a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The name as written.
    pub written: String,
    /// The span of the reference.
    pub span: Span,
    /// The kind of the reference.
    pub kind: Kind,
    /// True if the name is that of a function or macro at this place.
    pub called: bool,
    /// True if the reader skips this place.
    pub skipped: bool,
}

/// Returns the references in a form to the global name with this key (`text::definitions::key`).
/// `special` is true for a special variable, which `let` and parameters bind.
pub(super) fn named(form: &Form, key: &str, special: bool) -> Vec<Use> {
    let mut found = Vec::new();
    if holds(form, &form.nodes, key) {
        each(form, special, |node| is_named(form, node, key), |one| found.push(one));
    }
    found
}

/// Returns the functions and macros that a form calls, except its local ones.
pub fn calls(form: &Form) -> Vec<Use> {
    let mut found = Vec::new();
    each(
        form,
        false,
        |node| form.name(node).is_some(),
        |one| {
            if one.called {
                found.push(one);
            }
        },
    );
    found
}

/// Returns true if the name is in the form, be it global or local.
fn holds(form: &Form, nodes: &[Node], key: &str) -> bool {
    nodes.iter().any(|node| match node.kind {
        Shape::Atom => is_named(form, node, key),
        _ => holds(form, &node.children, key),
    })
}

/// Returns true if an atom has the name. Atoms whose last characters differ from the key are
/// excluded first, without parsing them as symbols.
fn is_named(form: &Form, node: &Node, key: &str) -> bool {
    let (written, key_bytes) = (form.text(node), key.as_bytes());
    let is_plain = written.is_ascii() && !written.contains(['|', '\\']);
    let end = written.len().checked_sub(key.len()).map(|start| &written.as_bytes()[start..]);
    let may_be = !is_plain || end.is_some_and(|end| end.eq_ignore_ascii_case(key_bytes));
    may_be && form.name(node).is_some_and(|name| name == key)
}

fn each(form: &Form, special: bool, wanted: impl Fn(&Node) -> bool, mut found: impl FnMut(Use)) {
    let scopes = Scopes::of(form);
    let mut walk = Walk { form, scopes: &scopes, special, around: Vec::new() };
    for node in &form.nodes {
        walk.node(node, Reading::Code, &wanted, &mut found);
    }
}

/// The meaning with which a datum is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Evaluated code.
    Code,
    /// A part of a backquoted form.
    Template,
    /// Quoted data.
    Data,
    /// Code that the reader always skips, independently of the features.
    Skipped,
}

/// Returns true if `written` begins with `#+nil`, `#+(or)` or `#-(and)`, which disable code.
fn is_skipped(written: &str) -> bool {
    let mut rest = written.split_whitespace();
    let guard: String = rest.by_ref().take(2).collect::<String>().to_lowercase();
    let bare = |guard: &str, name: &str| {
        guard
            .strip_prefix(name)
            .is_some_and(|rest| !rest.starts_with(|char: char| char.is_alphanumeric() || char == '-'))
    };
    features::ALWAYS_FALSE_CONDITIONALS.iter().any(|name| bare(&guard, name))
}

struct Walk<'a> {
    form: &'a Form,
    scopes: &'a Scopes,
    special: bool,
    /// The surrounding lists, outermost first, with the index of the child in each.
    around: Vec<(&'a Node, usize)>,
}

impl<'a> Walk<'a> {
    fn node(&mut self, node: &'a Node, reading: Reading, wanted: &impl Fn(&Node) -> bool, found: &mut impl FnMut(Use)) {
        cancellation::unwind_if_cancelled();
        let reading = match node.prefix {
            _ if reading == Reading::Skipped || node.guarded && is_skipped(self.form.written(node)) => Reading::Skipped,
            Prefix::Quote => Reading::Data,
            Prefix::Backquote => Reading::Template,
            Prefix::Comma => Reading::Code,
            Prefix::None | Prefix::Function | Prefix::Other => reading,
        };
        if node.kind != Shape::Atom {
            for (index, child) in node.children.iter().enumerate() {
                self.around.push((node, index));
                self.node(child, reading, wanted, found);
                self.around.pop();
            }
            return;
        }
        if wanted(node)
            && let Some((kind, called)) = self.kind(node, reading)
        {
            let skipped = reading == Reading::Skipped;
            found(Use { written: self.form.text(node).to_owned(), span: node.span, kind, called, skipped });
        }
    }

    /// Returns the list `up` levels above the current datum, and the index of the child.
    fn above(&self, up: usize) -> Option<(&'a Node, usize)> {
        self.around.len().checked_sub(up + 1).map(|at| self.around[at])
    }

    fn operator(&self, node: &Node) -> String {
        self.form.operator(node).unwrap_or_default()
    }

    /// Returns the kind of the reference that an atom is, and true if it is called. Returns `None`
    /// for a local name.
    fn kind(&self, node: &Node, reading: Reading) -> Option<(Kind, bool)> {
        if reading == Reading::Skipped {
            return Some((Kind::Mentions, false));
        }
        if reading == Reading::Data {
            let called = self.is_designator(node);
            return Some((if called { Kind::Calls } else { Kind::Mentions }, called));
        }
        if self.is_defined_name() {
            return Some((Kind::Defines, false));
        }
        if reading == Reading::Template {
            let called = node.prefix == Prefix::Function || self.heads_a_form(node);
            return Some((if called { Kind::Calls } else { Kind::Mentions }, called));
        }
        if let Some(binding) = self.scopes.resolve(node.span.start).map(|index| &self.scopes.bindings[index]) {
            if !(self.special && binding.kind.namespace() == Namespace::Variable) {
                return None;
            }
            if binding.span == node.span {
                return Some((Kind::Binds, false));
            }
        }
        if self.is_specializer() {
            return Some((Kind::Specializes, false));
        }
        match self.scopes.namespace_at(node.span) {
            Some(Namespace::Function) if self.is_place(1) => Some((Kind::Sets, true)),
            Some(Namespace::Function) => Some((Kind::Calls, true)),
            Some(Namespace::Variable) if self.is_place(0) => Some((Kind::Sets, false)),
            Some(Namespace::Variable) => Some((Kind::Reads, false)),
            // A standard operator, to which the scopes assign no namespace.
            None if self.heads_a_form(node) && self.is_standard(node) => Some((Kind::Calls, true)),
            // `#.name`, which the reader evaluates wherever it is.
            _ if self.form.written(node).starts_with("#.") => Some((Kind::Reads, false)),
            _ => Some((Kind::Mentions, false)),
        }
    }

    fn is_standard(&self, node: &Node) -> bool {
        self.form.name(node).is_some_and(|name| crate::ide::hyperspec::page_of_symbol(&name).is_some())
    }

    /// Returns true if the atom names a function to call, as `f` in `(funcall 'f ...)`.
    fn is_designator(&self, node: &Node) -> bool {
        const FIRST: [&str; 19] = [
            "funcall",
            "apply",
            "mapcar",
            "mapc",
            "mapcan",
            "mapl",
            "maplist",
            "mapcon",
            "maphash",
            "reduce",
            "multiple-value-call",
            "every",
            "some",
            "notany",
            "notevery",
            "find-if",
            "position-if",
            "count-if",
            "remove-if",
        ];
        const SECOND: [&str; 3] = ["map", "map-into", "sort"];
        let Some((list, index)) = self.above(0).filter(|_| node.prefix == Prefix::Quote) else { return false };
        let operator = self.operator(list);
        let operator = operator.strip_suffix("-not").unwrap_or(&operator);
        index == 1 && FIRST.contains(&operator) || index == 2 && SECOND.contains(&operator)
    }

    /// Returns true if the datum is the name of a definition, as in `(defun name`,
    /// `(defstruct (name` and `(defun (setf name)`.
    fn is_defined_name(&self) -> bool {
        let definer =
            |up: usize| self.above(up).is_some_and(|(list, index)| index == 1 && is_definer(&self.operator(list)));
        let Some((list, index)) = self.above(0) else { return false };
        definer(0) || definer(1) && (index == 0 || index == 1 && self.operator(list) == "setf")
    }

    /// Returns true if the datum is a specializer, as `class` in
    /// `(defmethod name ((parameter class)) ...)`.
    fn is_specializer(&self) -> bool {
        let (Some((_, 1)), Some((list, at)), Some((method, index))) = (self.above(0), self.above(1), self.above(2))
        else {
            return false;
        };
        // No method has so many required parameters or qualifiers. The limit bounds the time,
        // because each element is looked at again.
        const MAX_ELEMENTS: usize = 100;
        if at > MAX_ELEMENTS {
            return false;
        }
        let few = method.children.iter().take(MAX_ELEMENTS).skip(2);
        let first = few.into_iter().position(|child| child.kind == Shape::List).map(|at| at + 2);
        let required = || !list.children[..at].iter().any(|one| self.form.text(one).starts_with('&'));
        self.operator(method) == "defmethod" && first == Some(index) && required()
    }

    /// Returns true if the datum, or with an `up` of 1 the list around it, is a place that is
    /// assigned.
    fn is_place(&self, up: usize) -> bool {
        if up == 1 && self.above(0).is_none_or(|(_, index)| index != 0) {
            return false;
        }
        let Some((list, index)) = self.above(up) else { return false };
        let variables = |(list, index): (&Node, usize)| index == 1 && self.operator(list) == "multiple-value-setq";
        if up == 0 && self.above(1).is_some_and(variables) {
            return true;
        }
        match self.operator(list).as_str() {
            "setf" | "setq" | "psetf" | "psetq" => index % 2 == 1,
            "incf" | "decf" | "pop" | "remf" => index == 1,
            "push" | "pushnew" => index == 2,
            "rotatef" | "shiftf" => index > 0,
            _ => false,
        }
    }

    /// Returns true if the datum is the head of a list that looks like a form.
    fn heads_a_form(&self, node: &Node) -> bool {
        const BINDERS: [&str; 9] =
            ["let", "let*", "do", "do*", "prog", "prog*", "symbol-macrolet", "when-let", "with-slots"];
        let head = self.above(0).is_some_and(|(list, index)| index == 0 && list.kind == Shape::List);
        let binding =
            self.above(2).is_some_and(|(list, index)| index == 1 && BINDERS.contains(&self.operator(list).as_str()));
        head && !binding && node.prefix == Prefix::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::document::Document;

    /// Returns a line with a mark at each reference to `f`: the kind's first letter, upper case if
    /// called.
    fn marked(source: &str, special: bool) -> String {
        let document = Document::new(source, 0);
        let mut line = vec![' '; source.chars().count()];
        for top in document.scan().forms() {
            for one in named(&Form::of(&document, top.span), "f", special) {
                let letter = one.kind.word().chars().next().unwrap_or(' ');
                line[one.span.start] = if one.called { letter.to_ascii_uppercase() } else { letter };
            }
        }
        line.into_iter().collect::<String>().trim_end().to_owned()
    }

    #[test]
    fn a_reference_has_its_kind_by_where_it_stands() {
        for (source, expected) in [
            ("(f 1)", " C"),
            ("(g #'f 'f)", "     C  m"),
            ("(funcall 'f (mapcar 'f x))", "          C          C"),
            ("(setf (f x) (f y) f (f z))", "       S     C    s  C"),
            ("(incf f) (push x f) (pop (f x))", "      s          s        S"),
            ("(multiple-value-setq (f) (g))", "                      s"),
            ("(multiple-value-setq (a f) (g f))", "                        s     r"),
            ("(map 'list 'f x) (remove-if-not 'f x)", "            C                    C"),
            ("(list f)", "      r"),
            ("(defun g () (declare #.f))", "                       r"),
            ("(defun f (x) (f x))", "       d      C"),
            ("(defun (setf f) (v) v)", "             d"),
            ("(defstruct (f (:conc-name f)) f)", "            d             m   m"),
            ("(defmethod g ((x f) &key (y f)) y)", "                 s          r"),
            ("(flet ((f () 1)) (f))", ""),
            ("(let ((f 1)) (f f))", "              C"),
            ("`(f ,(f x) '(f) ,f (let ((f 1)) f))", "  C   C      m   r        m     m"),
            ("(with-f (f 1) x)", ""),
            ("(defpackage :p (:export #:f))", "                        m"),
            ("(list #+nil (f 1) #+(or) (f 2) '(f 3) #+sbcl (f 4))", "             m            m      m            C"),
        ] {
            assert_eq!(marked(source, false), expected, "{source}");
        }
        assert_eq!(marked("(let ((f 1)) f (setf f 2))", true), "       b     r       s");
        assert_eq!(marked("(defun g (f) f)", true), "          b  r");
    }

    #[test]
    fn macros_by_name_alone_are_calls_too() {
        let document = Document::new("(with-it (x y) (do-it (z) (let ((w 1)) (g w))))", 0);
        let found = calls(&Form::of(&document, document.scan().forms()[0].span));
        let names: Vec<&str> = found.iter().map(|one| one.written.as_str()).collect();
        assert_eq!(names, ["with-it", "do-it", "let", "g"]);
    }
}
