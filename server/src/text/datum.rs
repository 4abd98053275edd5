//! The data of a top-level form as the reader returns them, without comments, prefixes and guards.
//! They are converted from the form's [`Tree`], which never fails. An unclosed datum ends at the
//! end of the form.

use super::Span;
use super::cancellation;
use super::document::Document;
use super::tree::{self, NodeId, ROOT, Tree};

/// The maximum depth of lists. Deeper lists are left out. No real code is so deep, and the
/// traversal of a tree is recursive.
const MAX_DEPTH: usize = 200;

/// The maximum size of a form in bytes. A larger form is not parsed. No real code is so large, and
/// the parsed form takes many times the memory of its text.
const MAX_FORM_BYTES: usize = 4 << 20;

/// The kind of a datum.
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
    /// No prefix.
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

/// A datum and its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The span without prefixes, in characters of the document.
    pub span: Span,
    /// The kind of the datum.
    pub kind: Kind,
    /// The prefix nearest to the datum, such as the backquote in ``'`x``.
    pub prefix: Prefix,
    /// True if `#+` or `#-` precedes. The reader may then skip the datum.
    pub guarded: bool,
    /// The children of a list or vector.
    pub children: Vec<Node>,
    /// True if a list has its closing parenthesis.
    closed: bool,
    /// The span without prefixes, in bytes of the form's text.
    bytes: (usize, usize),
    /// The first byte of the prefixes and guards in the form's text; equal to the start of `bytes`
    /// if there are none.
    outer: usize,
}

impl Node {
    /// Returns true if the datum has neither prefix nor guard.
    pub fn is_plain(&self) -> bool {
        self.prefix == Prefix::None && !self.guarded
    }

    /// Returns true if the datum is a list without prefix or guard.
    pub fn is_list(&self) -> bool {
        self.kind == Kind::List && self.is_plain()
    }

    /// Returns true if the datum is quoted and nothing in it is evaluated. A quoted datum in a
    /// template may contain commas.
    pub fn is_data(&self) -> bool {
        fn has_comma(node: &Node) -> bool {
            node.prefix == Prefix::Comma || node.children.iter().any(has_comma)
        }
        self.prefix == Prefix::Quote && !self.children.iter().any(has_comma)
    }

    /// Returns the children, or none if the datum is guarded, because edits do not change guarded
    /// data.
    pub fn elements(&self) -> &[Node] {
        if self.guarded { &[] } else { &self.children }
    }

    /// Returns the first byte in the form's text, including prefixes and guards.
    pub fn start(&self) -> usize {
        self.outer
    }

    /// Returns the end in the form's text, one past the last byte.
    pub fn end(&self) -> usize {
        self.bytes.1
    }
}

/// A top-level form.
#[derive(Debug, Clone)]
pub struct Form {
    /// The text as written.
    pub source: String,
    /// The data in the form: exactly one, unless the form is broken.
    pub nodes: Vec<Node>,
    /// The span in the document, in characters.
    pub span: Span,
    /// True if no parenthesis is missing or superfluous.
    pub balanced: bool,
}

impl Form {
    /// Returns the top-level form that contains or touches `offset`.
    pub fn at(document: &Document, offset: usize) -> Option<Form> {
        document.scan().form_at(offset).map(|form| Form::of(document, form.span))
    }

    /// Returns the form at `span` of the document.
    pub fn of(document: &Document, span: Span) -> Form {
        let source = document.text().slice(span.start..span.end).to_string();
        if source.len() > MAX_FORM_BYTES {
            return Form { nodes: Vec::new(), span, balanced: false, source };
        }
        let tree = Tree::of_form(&source);
        let balanced = tree.ids().all(|id| match tree.node(id).kind {
            tree::Kind::Stray => false,
            tree::Kind::List => tree.node(id).whole,
            _ => true,
        });
        let mut seen = View { chars: Counter { text: &source, byte: 0, char: span.start }, tree };
        let nodes = seen.elements(ROOT, 0);
        Form { nodes, span, balanced, source }
    }

    /// Returns a datum as written, with its prefixes and guards.
    pub fn written(&self, node: &Node) -> &str {
        self.source.get(node.outer..node.bytes.1).unwrap_or_default()
    }

    /// Returns the text of a span of the document.
    pub fn part(&self, span: Span) -> &str {
        let byte = |offset: usize| {
            let chars = offset.saturating_sub(self.span.start);
            self.source.char_indices().nth(chars).map_or(self.source.len(), |(byte, _)| byte)
        };
        self.source.get(byte(span.start)..byte(span.end)).unwrap_or_default()
    }

    /// Converts a range of bytes of the form's text to a span of the document.
    pub fn span_of(&self, start: usize, end: usize) -> Span {
        let chars = |byte: usize| self.source.get(..byte).map_or(0, |head| head.chars().count());
        Span { start: self.span.start + chars(start), end: self.span.start + chars(end) }
    }

    /// Returns the node whose span in the document is `span`.
    pub fn node_at(&self, span: Span) -> Option<&Node> {
        fn find(nodes: &[Node], span: Span) -> Option<&Node> {
            nodes.iter().find_map(|node| if node.span == span { Some(node) } else { find(&node.children, span) })
        }
        find(&self.nodes, span)
    }

    /// Returns the data around and at a place of the document, outermost first. The contents of
    /// guarded data are excluded.
    pub fn around(&self, at: Span) -> Vec<&Node> {
        let byte = |offset: usize| {
            let chars = offset.saturating_sub(self.span.start);
            self.source.char_indices().nth(chars).map_or(self.source.len(), |(byte, _)| byte)
        };
        let (start, end) = (byte(at.start), byte(at.end));
        let mut chain = Vec::new();
        let mut nodes = self.nodes.as_slice();
        while let Some(node) = nodes.iter().find(|node| node.start() <= start && end <= node.end()) {
            chain.push(node);
            nodes = node.elements();
        }
        chain
    }

    /// Returns a datum as written, without its prefixes.
    pub fn text(&self, node: &Node) -> &str {
        self.source.get(node.bytes.0..node.bytes.1).unwrap_or_default()
    }

    /// Returns the prefixes and guards of a node as written, with the white space around them.
    pub fn prefixes(&self, node: &Node) -> &str {
        self.source.get(node.outer..node.bytes.0).unwrap_or_default()
    }

    /// Returns the name of a symbol for comparison, without its package, and in lower case unless
    /// it is escaped. Returns `None` if the node is no symbol.
    pub fn name(&self, node: &Node) -> Option<String> {
        if node.kind != Kind::Atom { None } else { symbol_name(self.text(node)) }
    }

    /// Returns the name of the operator of a list.
    pub fn operator(&self, node: &Node) -> Option<String> {
        if node.kind != Kind::List {
            return None;
        }
        node.children.first().filter(|head| head.prefix == Prefix::None).and_then(|head| self.name(head))
    }

    /// Returns the lists around `offset`, outermost first, and then the atom or string around
    /// `offset` or next to it.
    pub fn path(&self, offset: usize) -> Vec<&Node> {
        let mut path = Vec::new();
        let mut nodes = &self.nodes;
        loop {
            let inside = |node: &&Node| match node.kind {
                Kind::List | Kind::Vector => node.span.start < offset && (offset < node.span.end || !node.closed),
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
}

/// Returns the name of a symbol as written, for comparison, without its package, and in lower case
/// unless it is escaped. Returns `None` if the text is no symbol.
pub fn symbol_name(written: &str) -> Option<String> {
    let first = written.chars().next()?;
    if written.starts_with("#\\") || written.starts_with("#*") || (first == '#' && !written.starts_with("#:")) {
        return None;
    }
    let bare = written.strip_prefix("#:").unwrap_or(written);
    if bare.contains(['|', '\\']) {
        let symbol = super::names::symbol(bare)?;
        let name = if symbol.name.chars().any(char::is_lowercase) || symbol.name.contains(char::is_whitespace) {
            format!("|{}|", symbol.name)
        } else {
            symbol.name.to_lowercase()
        };
        return Some(if symbol.package.as_deref() == Some("") { format!(":{name}") } else { name });
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

/// Converts the tree of a form to the data that the reader returns.
struct View<'a> {
    tree: Tree<'a>,
    chars: Counter<'a>,
}

impl View<'_> {
    fn elements(&mut self, id: NodeId, depth: usize) -> Vec<Node> {
        let elements: Vec<NodeId> = self.tree.elements(id).collect();
        elements.into_iter().filter_map(|element| self.datum(element, depth)).collect()
    }

    /// Returns a datum without its prefixes and guards, which are recorded in its fields. Returns
    /// `None` for a node that is no datum, or that is too deep.
    fn datum(&mut self, outer: NodeId, depth: usize) -> Option<Node> {
        cancellation::unwind_if_cancelled();
        let (mut prefix, mut guarded, mut id) = (Prefix::None, false, outer);
        loop {
            let node = self.tree.node(id);
            id = match node.kind {
                tree::Kind::Guarded => self.tree.elements(id).nth(1).inspect(|_| guarded = true)?,
                tree::Kind::Prefixed => {
                    prefix = prefix_of(&self.tree.text[node.start..node.inner]);
                    self.tree.elements(id).next_back()?
                }
                _ => break,
            };
        }
        let written = self.tree.text_of(id);
        let node = self.tree.node(id);
        let kind = match node.kind {
            tree::Kind::List if depth >= MAX_DEPTH => return None,
            tree::Kind::List if written.starts_with('#') => Kind::Vector,
            tree::Kind::List => Kind::List,
            tree::Kind::String => Kind::String,
            tree::Kind::Atom => Kind::Atom,
            _ => return None,
        };
        let closed = node.kind != tree::Kind::List || node.whole;
        let bytes = (node.start, if closed { node.end } else { self.tree.text.len() });
        let start = self.chars.at(bytes.0);
        let children = self.elements(id, depth + 1);
        let span = Span { start, end: self.chars.at(bytes.1) };
        Some(Node { span, kind, prefix, guarded, children, closed, bytes, outer: self.tree.node(outer).start })
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
    fn what_is_guarded_is_known_and_left_whole() {
        let form = |source| Form::of(&Document::new(source, 0), Span { start: 0, end: source.chars().count() });
        for (source, expected) in [
            ("(a (b \")\" #\\() ; )\n #| ( |# c)", "a (b \")\" #\\() c"),
            ("(a '(b c) #'d #(1 2))", "a '(b c) #'d #(1 2)"),
            ("(a #+sbcl (b) #-(or x y) c d)", "a ?#+sbcl (b) ?#-(or x y) c d"),
            ("(a #+x #+y b c)", "a ?#+x #+y b c"),
            ("(é 'ü)", "é 'ü"),
        ] {
            let form = form(source);
            let one = |node: &Node| format!("{}{}", if node.guarded { "?" } else { "" }, form.written(node));
            let elements: Vec<String> = form.nodes[0].elements().iter().map(one).collect();
            assert_eq!(elements.join(" "), expected, "{source}");
            assert!(form.balanced, "{source}");
        }
        assert!(!form("(a").balanced && !form("a)").balanced);
        assert_eq!(form("(#+x (b))").around(Span { start: 6, end: 7 }).len(), 2);
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
            ("|FOO|", Some("foo")),
            ("\\foo", Some("|fOO|")),
            ("p::|a|", Some("|a|")),
            ("12", None),
            ("-1.5", None),
            ("1+", Some("1+")),
            ("#\\a", None),
        ] {
            assert_eq!(symbol_name(written).as_deref(), name, "{written}");
        }
    }
}
