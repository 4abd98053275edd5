//! Semantic tokens: the kind of each word of a text, determined by the text and the image's data
//! about its symbols. Offsets are bytes.

use std::collections::HashMap;
use std::ops::Range;

use super::format::roles::{Role, Roles};
use super::format::rules::Bodies;
use super::format_directives;
use crate::image::api::symbol_kinds::SymbolKind;
use crate::text::cancellation;
use crate::text::definitions::is_definer;
use crate::text::features;
use crate::text::names;
use crate::text::tree::{Kind as Node, NodeId, Tree};

/// The kind of a word, in the order of [`LEGEND`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A comment, or code that is disabled by `#+nil` and the like.
    Comment,
    /// A string or a character.
    String,
    /// A number.
    Number,
    /// A special operator, `&key`, ...
    Keyword,
    /// A macro.
    Macro,
    /// A function.
    Function,
    /// A special variable or a constant.
    Variable,
    /// A parameter in a lambda list.
    Parameter,
    /// A class.
    Class,
    /// A package prefix, or the name of a package.
    Namespace,
    /// `:keyword`.
    Constant,
    /// A directive in a format control string.
    Directive,
}

/// The names of each [`Kind`] in LSP's `SemanticTokenTypes`.
pub const LEGEND: [&str; 12] = [
    "comment",
    "string",
    "number",
    "keyword",
    "macro",
    "function",
    "variable",
    "parameter",
    "class",
    "namespace",
    "enumMember",
    "regexp",
];
/// LSP's `SemanticTokenModifiers`, by bit.
pub const MODIFIERS: [&str; 2] = ["definition", "readonly"];
/// The bit of a definition.
pub const DEFINITION: u32 = 1;
/// The bit of a constant.
pub const READONLY: u32 = 2;

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The range of bytes.
    pub range: Range<usize>,
    /// The kind of the word.
    pub kind: Kind,
    /// The modifiers: [`DEFINITION`], [`READONLY`].
    pub modifiers: u32,
}

/// The special operators (CLHS 3.1.2.1.2.1), used without an image.
const SPECIAL: [&str; 25] = [
    "block",
    "catch",
    "eval-when",
    "flet",
    "function",
    "go",
    "if",
    "labels",
    "let",
    "let*",
    "load-time-value",
    "locally",
    "macrolet",
    "multiple-value-call",
    "multiple-value-prog1",
    "progn",
    "progv",
    "quote",
    "return-from",
    "setq",
    "symbol-macrolet",
    "tagbody",
    "the",
    "throw",
    "unwind-protect",
];
/// Standard macros without a body, used without an image.
const MACROS: [&str; 26] = [
    "and",
    "assert",
    "check-type",
    "cond",
    "decf",
    "declaim",
    "defmethod",
    "formatter",
    "incf",
    "loop",
    "multiple-value-list",
    "multiple-value-setq",
    "nth-value",
    "or",
    "pop",
    "prog",
    "prog*",
    "psetf",
    "psetq",
    "push",
    "pushnew",
    "remf",
    "return",
    "rotatef",
    "setf",
    "shiftf",
];

/// The maximum number of words reported for a text. Later words are omitted.
pub const MAX_TOKENS: usize = 400_000;

/// Returns all words of a text, in order. `known` is the image's data about symbols, by their
/// spelling in the text.
pub fn tokens(tree: &Tree, bodies: &Bodies, known: &HashMap<String, SymbolKind>) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut left_out = 0;
    let roles = Roles::of(tree, bodies);
    for id in tree.ids().skip(1) {
        if tokens.len() >= MAX_TOKENS || cancellation::should_stop() {
            break;
        }
        let node = tree.node(id);
        let range = node.start..node.end;
        if node.start < left_out {
            continue;
        }
        let mut add = |range: Range<usize>, kind, modifiers| tokens.push(Token { range, kind, modifiers });
        match node.kind {
            Node::Guarded if is_disabled(tree, id) => {
                left_out = node.end;
                add(range, Kind::Comment, 0);
            }
            Node::LineComment | Node::BlockComment => add(range, Kind::Comment, 0),
            Node::String => {
                let operator = roles.operator(node.parent).unwrap_or_default();
                let mut from = range.start;
                if format_directives::is_control(operator, tree.place(id)) {
                    for directive in format_directives::directives(&tree.text[range.clone()]) {
                        let directive = range.start + directive.start..range.start + directive.end;
                        if from < directive.start {
                            add(from..directive.start, Kind::String, 0);
                        }
                        from = directive.end;
                        add(directive, Kind::Directive, 0);
                    }
                }
                if from < range.end {
                    add(from..range.end, Kind::String, 0);
                }
            }
            Node::Atom => {
                let text = tree.text_of(id);
                if text.starts_with("#\\") {
                    add(range, Kind::String, 0);
                } else if names::is_number(text) || is_based(tree, node.parent) {
                    add(range, Kind::Number, 0);
                } else if let Some((kind, modifiers)) = word(tree, &roles, id, bodies, known) {
                    let prefix = names::prefix_length(text);
                    let name = if prefix > 0 && kind != Kind::Constant { range.start + prefix } else { range.start };
                    if name > range.start {
                        add(range.start..name, Kind::Namespace, 0);
                    }
                    if name < range.end {
                        add(name..range.end, kind, modifiers);
                    }
                }
            }
            _ => {}
        }
    }
    tokens
}

/// Returns true for a datum behind `#+nil`, `#+(or)` or `#-(and)`.
fn is_disabled(tree: &Tree, guarded: NodeId) -> bool {
    let Some(feature) = tree.elements(guarded).next() else { return false };
    const MAX_BYTES: usize = 20;
    let written = tree.text_of(feature);
    if written.len() > MAX_BYTES {
        return false;
    }
    let sign = if tree.text_of(guarded).starts_with("#+") { "#+" } else { "#-" };
    features::ALWAYS_FALSE_CONDITIONALS
        .contains(&(sign.to_owned() + &super::outline::single_spaced_lowercase(written)).as_str())
}

/// Returns true for the digits behind `#x`, `#b`, `#o` or `#36r`.
fn is_based(tree: &Tree, parent: NodeId) -> bool {
    let node = tree.node(parent);
    node.kind == Node::Prefixed && {
        let prefix = &tree.text[node.start..node.inner];
        prefix.starts_with('#') && prefix.ends_with(['x', 'X', 'b', 'B', 'o', 'O', 'r', 'R'])
    }
}

fn word(
    tree: &Tree,
    roles: &Roles,
    id: NodeId,
    bodies: &Bodies,
    known: &HashMap<String, SymbolKind>,
) -> Option<(Kind, u32)> {
    let symbol = tree.symbol(id)?;
    let text = tree.text_of(id);
    if symbol.package.as_deref() == Some("") {
        return Some((Kind::Constant, 0));
    }
    if text.starts_with('&') {
        return Some((Kind::Keyword, 0));
    }
    let name = symbol.name.to_lowercase();
    let image = known.get(text);
    let parent = tree.node(id).parent;
    let around = tree.node(parent);
    if around.kind == Node::Prefixed && &tree.text[around.start..around.inner] == "#'" {
        return Some((Kind::Function, 0));
    }
    if around.kind == Node::List {
        let place = tree.place(id);
        if let Some(operator) =
            roles.operator(parent).filter(|operator| place == 1 && is_definer(operator) && !roles.quoted(parent))
        {
            return Some((defined(operator), DEFINITION));
        }
        if let Some(kind) = in_lambda_list(tree, roles, parent, place) {
            return Some((kind, if kind == Kind::Parameter { DEFINITION } else { 0 }));
        }
        if place == 0 && is_call(tree, roles, parent) {
            return Some((operator_kind(&name, image, bodies), 0));
        }
        if place == 0 && roles.role(parent) == Role::Function {
            return Some((Kind::Function, DEFINITION));
        }
        if place == 1 && roles.operator(parent) == Some("in-package") {
            return Some((Kind::Namespace, 0));
        }
    }
    match image.and_then(|image| image.variable.as_deref()) {
        Some("constant") => return Some((Kind::Variable, READONLY)),
        Some(_) => return Some((Kind::Variable, 0)),
        None => {}
    }
    let wrapped = |with: char| name.len() > 2 && name.starts_with(with) && name.ends_with(with);
    match name.as_str() {
        "t" | "nil" => Some((Kind::Variable, READONLY)),
        _ if wrapped('*') => Some((Kind::Variable, 0)),
        _ if wrapped('+') => Some((Kind::Variable, READONLY)),
        _ => None,
    }
}

fn defined(operator: &str) -> Kind {
    match operator {
        "defmacro" | "define-compiler-macro" | "define-modify-macro" => Kind::Macro,
        "defvar" | "defparameter" | "defconstant" | "define-symbol-macro" => Kind::Variable,
        "defclass" | "defstruct" | "define-condition" | "deftype" => Kind::Class,
        "defpackage" | "define-package" | "defsystem" => Kind::Namespace,
        _ => Kind::Function,
    }
}

fn operator_kind(name: &str, image: Option<&SymbolKind>, bodies: &Bodies) -> Kind {
    match image.and_then(|image| image.operator.as_deref()) {
        Some("special-operator") => Kind::Keyword,
        Some("macro") => Kind::Macro,
        Some(_) => Kind::Function,
        None if SPECIAL.binary_search(&name).is_ok() => Kind::Keyword,
        None if MACROS.binary_search(&name).is_ok() || bodies.get(name).is_some() => Kind::Macro,
        None => Kind::Function,
    }
}

/// Returns the kind of an element of a lambda list, or of a `(parameter ...)` in one.
fn in_lambda_list(tree: &Tree, roles: &Roles, list: NodeId, place: usize) -> Option<Kind> {
    if is_lambda_list(tree, roles, list) {
        return Some(Kind::Parameter);
    }
    let outer = tree.node(list).parent;
    if tree.node(outer).kind != Node::List || !is_lambda_list(tree, roles, outer) {
        return None;
    }
    let method = roles.operator(tree.node(outer).parent) == Some("defmethod");
    match place {
        0 => Some(Kind::Parameter),
        1 if method => Some(Kind::Class),
        _ => None,
    }
}

fn is_lambda_list(tree: &Tree, roles: &Roles, list: NodeId) -> bool {
    let around = tree.node(list).parent;
    if tree.node(around).kind != Node::List || roles.quoted(list) {
        return false;
    }
    let place = tree.place(list);
    match roles.operator(around) {
        Some("defun" | "defmacro" | "defgeneric" | "deftype" | "define-compiler-macro" | "named-lambda") => place == 2,
        Some("lambda" | "destructuring-bind" | "multiple-value-bind") => place == 1,
        Some("defmethod") => place >= 2 && roles.role(list) == Role::Data,
        _ => place == 1 && roles.role(around) == Role::Function,
    }
}

/// Returns true if a list is a call, as far as the text shows.
fn is_call(tree: &Tree, roles: &Roles, list: NodeId) -> bool {
    if roles.role(list) != Role::Code {
        return false;
    }
    let around = tree.node(list).parent;
    if tree.node(around).kind != Node::List {
        return true;
    }
    if roles.role(around) == Role::Data {
        return false;
    }
    let place = tree.place(list);
    match roles.operator(around) {
        Some("cond") => place == 0,
        Some("dolist" | "dotimes" | "defstruct") => place != 1,
        Some(operator) if operator.starts_with("with-") || operator.starts_with("do-") => place != 1,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, known: &HashMap<String, SymbolKind>) -> Vec<String> {
        let tree = Tree::parse(text);
        let shown = |token: Token| {
            let definition = if token.modifiers & DEFINITION != 0 { "!" } else { "" };
            format!("{} {:?}{definition}", &text[token.range], token.kind)
        };
        tokens(&tree, &Bodies::of(&tree), known).into_iter().map(shown).collect()
    }

    #[test]
    fn words_are_told_from_the_text_alone() {
        assert!(SPECIAL.is_sorted() && MACROS.is_sorted());
        let text = "(defun f (x &key y) (if x (cl:car #x1F) '(g 1.5)) #+nil (h) #\\a :k *z* \"s\") ; c";
        assert_eq!(
            shown(text, &HashMap::new()),
            [
                "defun Macro",
                "f Function!",
                "x Parameter!",
                "&key Keyword",
                "y Parameter!",
                "if Keyword",
                "cl: Namespace",
                "car Function",
                "1F Number",
                "1.5 Number",
                "#+nil (h) Comment",
                "#\\a String",
                ":k Constant",
                "*z* Variable",
                "\"s\" String",
                "; c Comment",
            ]
        );
        assert_eq!(
            shown("(defmethod m ((s shape) o) (let ((a 1)) (dolist (i a) #'b)))", &HashMap::new()),
            [
                "defmethod Macro",
                "m Function!",
                "s Parameter!",
                "shape Class",
                "o Parameter!",
                "let Keyword",
                "1 Number",
                "dolist Macro",
                "b Function",
            ]
        );
    }

    #[test]
    fn directives_stand_out_in_control_strings() {
        assert_eq!(
            shown("(format nil \"a~%~2Db\" (g \"~a\"))", &HashMap::new()),
            [
                "format Function",
                "nil Variable",
                "\"a String",
                "~% Directive",
                "~2D Directive",
                "b\" String",
                "g Function",
                "\"~a\" String"
            ]
        );
    }

    #[test]
    fn the_image_knows_better() {
        let kind = |operator: Option<&str>, variable: Option<&str>| SymbolKind {
            operator: operator.map(str::to_owned),
            body: None,
            variable: variable.map(str::to_owned),
            class: false,
        };
        let known = HashMap::from([
            ("foo".to_owned(), kind(Some("macro"), None)),
            ("pi".to_owned(), kind(None, Some("constant"))),
        ]);
        assert_eq!(shown("(foo pi bar)", &known), ["foo Macro", "pi Variable"]);
    }
}
