//! One top-level form as a tree of data, for what must know its shape. Never fails; what is not closed ends where the form does.

use super::Span;
use super::document::Document;
use super::scanner::{Cut, Scanner, TokenKind};

/// How deep lists are told apart; what is deeper is left out. Nobody writes this, and a tree is walked by recursion.
const DEPTH: usize = 200;

/// What a datum is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `(...)`.
    List,
    /// `#(...)`.
    Vector,
    /// A symbol, number, character.
    Atom,
    /// `"..."`.
    String,
}

/// The prefix nearest to a datum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// None.
    None,
    /// `'`.
    Quote,
    /// `` ` ``.
    Backquote,
    /// `,` `,@` `,.`.
    Comma,
    /// `#'`.
    Function,
    /// Any other: `#.`, `#p`, `#1=`.
    Other,
}

/// A datum and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Without its prefixes, in characters of the document.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
    /// The prefix nearest to it. Of ``'`x`` that is the backquote.
    pub prefix: Prefix,
    /// Of a list or vector.
    pub children: Vec<Node>,
    /// As written, without prefixes, in bytes of the form's text.
    bytes: (usize, usize),
}

/// A top-level form.
#[derive(Debug, Clone)]
pub struct Form {
    text: String,
    /// What is in it: one datum, unless it is broken.
    pub nodes: Vec<Node>,
    /// Where it is in the document, in characters.
    pub span: Span,
}

impl Form {
    /// The top-level form that `offset` is in or touches.
    pub fn at(document: &Document, offset: usize) -> Option<Form> {
        document.scan().form_at(offset).map(|form| Form::of(document, form.span))
    }

    /// The form at `span` of the document.
    pub fn of(document: &Document, span: Span) -> Form {
        let text = document.text().slice(span.start..span.end).to_string();
        let nodes = parse(&text, span.start);
        Form { text, nodes, span }
    }

    /// A datum as written, without its prefixes.
    pub fn text(&self, node: &Node) -> &str {
        self.text.get(node.bytes.0..node.bytes.1).unwrap_or_default()
    }

    /// The name of a symbol for comparing: without package, lower-case unless escaped. `None` for what is no symbol.
    pub fn name(&self, node: &Node) -> Option<String> {
        if node.kind != Kind::Atom { None } else { symbol_name(self.text(node)) }
    }

    /// The name of the operator that heads a list.
    pub fn operator(&self, node: &Node) -> Option<String> {
        if node.kind != Kind::List {
            return None;
        }
        node.children.first().filter(|head| head.prefix == Prefix::None).and_then(|head| self.name(head))
    }

    /// The lists around `offset`, outermost first, and then the atom or string that it is in or touches.
    pub fn path(&self, offset: usize) -> Vec<&Node> {
        let mut path = Vec::new();
        let mut nodes = &self.nodes;
        loop {
            let inside = |node: &&Node| match node.kind {
                Kind::List | Kind::Vector => node.span.start < offset && (offset < node.span.end || !self.closed(node)),
                _ => node.span.start <= offset && offset <= node.span.end,
            };
            match nodes.iter().rev().find(inside) {
                Some(node) => {
                    path.push(node);
                    nodes = &node.children;
                }
                None => return path,
            }
        }
    }

    /// Whether a list has its closing parenthesis.
    pub fn closed(&self, node: &Node) -> bool {
        self.text(node).ends_with(')') && node.children.last().is_none_or(|last| last.bytes.1 < node.bytes.1)
    }
}

/// The name of a symbol as written, for comparing: without package, lower-case unless escaped.
pub fn symbol_name(written: &str) -> Option<String> {
    let first = written.chars().next()?;
    if written.starts_with("#\\") || written.starts_with("#*") || (first == '#' && !written.starts_with("#:")) {
        return None;
    }
    let bare = written.strip_prefix("#:").unwrap_or(written);
    if bare.contains(['|', '\\']) {
        return Some(bare.to_owned());
    }
    if let Some(keyword) = bare.strip_prefix(':') {
        return Some(format!(":{}", keyword.to_lowercase()));
    }
    let name = bare.rsplit(':').next().unwrap_or(bare);
    let number = name.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit())
        && name.ends_with(|c: char| c.is_ascii_digit() || c == '.')
        && name.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | '/' | 'e' | 'd' | 'E' | 'D'));
    (!number && !name.is_empty() && name != ".").then(|| name.to_lowercase())
}

struct Open {
    node: Node,
    guards: usize,
}

fn parse(text: &str, start: usize) -> Vec<Node> {
    let mut chars = Counter { text, byte: 0, char: start };
    let mut done: Vec<Node> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut prefix = Prefix::None;
    // After `#+`, the feature expression is passed over.
    let mut skip = 0usize;
    let mut deep = 0usize;
    for token in Scanner::new(text).filter(|token| token.start < token.end || token.cut != Cut::None) {
        let span = Span { start: chars.at(token.start), end: 0 };
        match token.kind {
            TokenKind::LineComment | TokenKind::BlockComment | TokenKind::Unknown => continue,
            TokenKind::Guard => skip += 1,
            TokenKind::Prefix => prefix = prefix_of(text.get(token.start..token.end).unwrap_or_default()),
            TokenKind::Open if open.len() >= DEPTH => deep += 1,
            TokenKind::Open => {
                let vector = text.as_bytes().get(token.start) == Some(&b'#');
                let node = Node {
                    span,
                    kind: if vector { Kind::Vector } else { Kind::List },
                    prefix: std::mem::replace(&mut prefix, Prefix::None),
                    children: Vec::new(),
                    bytes: (token.start, text.len()),
                };
                open.push(Open { node, guards: std::mem::take(&mut skip) });
            }
            TokenKind::Close if deep > 0 => deep -= 1,
            TokenKind::Close => {
                if let Some(mut closed) = open.pop() {
                    closed.node.bytes.1 = token.end;
                    closed.node.span.end = chars.at(token.end);
                    skip = closed.guards;
                    put(closed.node, &mut skip, &mut open, &mut done);
                }
                prefix = Prefix::None;
            }
            TokenKind::Atom | TokenKind::String if deep > 0 => {}
            TokenKind::Atom | TokenKind::String => {
                let node = Node {
                    span: Span { start: span.start, end: chars.at(token.end) },
                    kind: if token.kind == TokenKind::Atom { Kind::Atom } else { Kind::String },
                    prefix: std::mem::replace(&mut prefix, Prefix::None),
                    children: Vec::new(),
                    bytes: (token.start, token.end),
                };
                put(node, &mut skip, &mut open, &mut done);
            }
        }
    }
    let end = chars.at(text.len());
    while let Some(mut left) = open.pop() {
        left.node.span.end = end;
        let mut none = 0;
        put(left.node, &mut none, &mut open, &mut done);
    }
    done
}

/// Put a datum where it belongs, unless it is the feature expression of a guard.
fn put(node: Node, skip: &mut usize, open: &mut [Open], done: &mut Vec<Node>) {
    if *skip > 0 {
        *skip -= 1;
        return;
    }
    match open.last_mut() {
        Some(list) => list.node.children.push(node),
        None => done.push(node),
    }
}

fn prefix_of(written: &str) -> Prefix {
    match written {
        "'" => Prefix::Quote,
        "`" => Prefix::Backquote,
        "#'" => Prefix::Function,
        _ if written.starts_with(',') => Prefix::Comma,
        _ => Prefix::Other,
    }
}

/// Counts characters along a text.
struct Counter<'a> {
    text: &'a str,
    byte: usize,
    char: usize,
}

impl Counter<'_> {
    fn at(&mut self, byte: usize) -> usize {
        if byte >= self.byte {
            self.char += self.text.get(self.byte..byte).map_or(0, |part| part.chars().count());
            self.byte = byte;
        }
        self.char
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(source: &str) -> String {
        fn one(form: &Form, node: &Node, out: &mut String) {
            match node.prefix {
                Prefix::None => {}
                other => out.push_str(&format!("{other:?}:")),
            }
            if matches!(node.kind, Kind::List | Kind::Vector) {
                out.push('[');
                for (index, child) in node.children.iter().enumerate() {
                    if index > 0 {
                        out.push(' ');
                    }
                    one(form, child, out);
                }
                out.push(']');
            } else {
                out.push_str(form.text(node));
            }
        }
        let document = Document::new(source, 0);
        let mut out = String::new();
        if let Some(form) = Form::at(&document, source.chars().count() / 2) {
            for node in &form.nodes {
                one(&form, node, &mut out);
            }
        }
        out
    }

    #[test]
    fn a_form_is_read_as_a_tree() {
        for (source, expected) in [
            ("(a 'b #'c `(d ,e ,@f) \"g\" #(h))", "[a Quote:b Function:c Backquote:[d Comma:e Comma:f] \"g\" [h]]"),
            ("(a #+(or x y) b #-z c ; d\n #| e |# f)", "[a b c f]"),
            ("(a (b c", "[a [b c]]"),
            ("(é (|b c| #\\())", "[é [|b c| #\\(]]"),
        ] {
            assert_eq!(shape(source), expected, "{source}");
        }
    }

    #[test]
    fn spans_count_characters_of_the_document() {
        let document = Document::new("é\n(é (ü))", 0);
        let form = Form::at(&document, 3).expect("a form");
        let path: Vec<(usize, usize)> = form.path(6).iter().map(|node| (node.span.start, node.span.end)).collect();
        assert_eq!(path, [(2, 9), (5, 8), (6, 7)]);
    }

    #[test]
    fn great_depth_is_survived() {
        let text = format!("{}x{}", "(".repeat(50_000), ")".repeat(50_000));
        assert!(Form::at(&Document::new(&text, 0), 5).is_some());
    }

    #[test]
    fn names_are_compared_without_package_and_case() {
        for (written, name) in [
            ("FOO", Some("foo")),
            ("cl:Car", Some("car")),
            ("a::b", Some("b")),
            (":Key", Some(":key")),
            ("#:g", Some("g")),
            ("|A b|", Some("|A b|")),
            ("12", None),
            ("-1.5", None),
            ("1+", Some("1+")),
            ("#\\a", None),
        ] {
            assert_eq!(symbol_name(written).as_deref(), name, "{written}");
        }
    }
}
