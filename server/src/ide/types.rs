//! The type of a local variable, as far as its text shows it: by a declaration, a method's
//! specializer, the condition of a handler's clause, or the form of its value.

use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::document::Document;
use crate::text::scopes::{Binding, Scopes};

/// The source of a name's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeOf {
    /// The types of these names, as written.
    Named(Vec<String>),
    /// The return type of a call of this name, as written.
    Returned(String),
    /// A local name whose type the text does not show.
    Unknown,
}

/// Heads of declaration specifiers that name no type.
const NO_TYPES: [&str; 12] = [
    "ignore",
    "ignorable",
    "dynamic-extent",
    "special",
    "inline",
    "notinline",
    "optimize",
    "ftype",
    "declaration",
    "truly-dynamic-extent",
    "muffle-conditions",
    "unmuffle-conditions",
];

/// Returns the type of the local variable at `offset`, or `None` if the name there is not local.
pub fn of_local(document: &Document, offset: usize) -> Option<TypeOf> {
    let form = Form::at(document, offset)?;
    let scopes = Scopes::of(&form);
    let index = scopes.resolve(offset)?;
    let binding = &scopes.bindings[index];
    let found = declared(&form, &scopes, index).or_else(|| bound(&form, binding));
    Some(found.unwrap_or(TypeOf::Unknown))
}

/// Returns the type that `(declare (type T x))` or `(declare (T x))` declares.
fn declared(form: &Form, scopes: &Scopes, index: usize) -> Option<TypeOf> {
    let mut lists: Vec<&Node> = form.nodes.iter().collect();
    while let Some(list) = lists.pop() {
        lists.extend(&list.children);
        if form.operator(list).as_deref() != Some("declare") {
            continue;
        }
        for specifier in list.children.iter().skip(1).filter(|one| one.kind == Kind::List) {
            let (at, names) = match form.operator(specifier).as_deref() {
                Some("type") => (1, 2),
                Some(head) if NO_TYPES.contains(&head) => continue,
                _ => (0, 1),
            };
            let (Some(named), names) = (specifier.children.get(at), specifier.children.iter().skip(names)) else {
                continue;
            };
            if names.into_iter().any(|name| scopes.resolve(name.span.start) == Some(index)) {
                return Some(TypeOf::Named(names_in(form, named)));
            }
        }
    }
    None
}

/// Returns the names in a type specifier.
fn names_in(form: &Form, node: &Node) -> Vec<String> {
    match node.kind {
        Kind::Atom => form.name(node).map(|_| form.text(node).to_owned()).into_iter().collect(),
        _ => node.children.iter().flat_map(|child| names_in(form, child)).collect(),
    }
}

/// Returns the type that the form that binds the variable shows.
fn bound(form: &Form, binding: &Binding) -> Option<TypeOf> {
    let path = form.path(binding.span.start);
    let (name, around) = path.split_last()?;
    let parent = *around.last()?;
    match binding.by.as_str() {
        "defmethod" | ":method" => {
            let list = around.len().checked_sub(2).map(|index| around[index])?;
            let required = list.children.iter().take_while(|one| !form.text(one).starts_with('&'));
            let typed = parent.children.first() == Some(*name) && required.into_iter().any(|one| one == parent);
            let class = parent.children.get(1).filter(|class| typed && class.kind == Kind::Atom)?;
            Some(TypeOf::Named(vec![form.text(class).to_owned()]))
        }
        "handler-case" => {
            let clause = around.len().checked_sub(2).map(|index| around[index])?;
            let condition = clause.children.first().filter(|_| clause.children.get(1) == Some(parent))?;
            Some(TypeOf::Named(names_in(form, condition)))
        }
        "let" | "let*" | "prog" | "prog*" | "do" | "do*" | "when-let" | "when-let*" | "if-let" => {
            type_of_value(form, parent.children.get(1).filter(|_| parent.children.first() == Some(*name))?)
        }
        _ => None,
    }
}

/// Returns the type of the value of a form.
fn type_of_value(form: &Form, value: &Node) -> Option<TypeOf> {
    let operator = form.operator(value).filter(|_| value.prefix == Prefix::None)?;
    let first = value.children.get(1);
    match operator.as_str() {
        "make-instance" | "make-condition" | "allocate-instance" | "change-class" => {
            let class = value.children.iter().skip(1).find(|one| one.prefix == Prefix::Quote)?;
            Some(TypeOf::Named(vec![form.text(class).to_owned()]))
        }
        "the" | "truly-the" => Some(TypeOf::Named(names_in(form, first?))),
        _ => Some(TypeOf::Returned(form.text(&value.children[0]).to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(source: &str) -> String {
        let caret = source.chars().position(|char| char == '‸').expect("a caret");
        match of_local(&Document::new(&source.replace('‸', ""), 0), caret) {
            None => "no local".into(),
            Some(TypeOf::Unknown) => "unknown".into(),
            Some(TypeOf::Named(names)) => names.join(" "),
            Some(TypeOf::Returned(name)) => format!("({name})"),
        }
    }

    #[test]
    fn what_the_text_tells_of_a_variables_type() {
        for (source, expected) in [
            ("(defmethod f ((a zoo:animal) b) (g a‸))", "zoo:animal"),
            ("(defmethod f ((a zoo:animal) b) (g b‸))", "unknown"),
            ("(defmethod f ((a (eql :x))) (g a‸))", "unknown"),
            ("(defmethod f (x &optional (a default)) (g a‸))", "unknown"),
            ("(defun f (a b) (declare (type (or null part) b) (ignore c)) (g b‸))", "or null part"),
            ("(defun f (a b) (declare (part a b)) (g b‸))", "part"),
            ("(defun f (a) (declare (ignorable a)) (g a‸))", "unknown"),
            ("(defun f (a) (let ((a 1)) (declare (part a)) (h)) (g a‸))", "unknown"),
            ("(let ((a (make-instance 'part :x 1))) (g a‸))", "part"),
            ("(let ((a (the part (h)))) (g a‸))", "part"),
            ("(let ((a‸ (zoo:make-part))) (g a))", "(zoo:make-part)"),
            ("(let* ((a 1)) (g a‸))", "unknown"),
            ("(handler-case (g) (zoo:oops (e) (h e‸)))", "zoo:oops"),
            ("(restart-case (g) (oops (e) (h e‸)))", "unknown"),
            ("(g a‸)", "no local"),
        ] {
            assert_eq!(described(source), expected, "{source}");
        }
    }
}
