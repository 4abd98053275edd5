//! A top-level form as a tree of what is written in it: for edits that must know what a list's elements are, and keep all else as it stands.

use ropey::Rope;

use super::Span;
use super::scanner::{Scanner, TokenKind};

/// What a [`Node`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// A list, with its elements.
    List(Vec<Node>),
    /// A symbol, a number, a character.
    Atom,
    /// A string.
    String,
    /// `#+` or `#-`, its condition and what it guards: the reader may see one element here, or none.
    Guarded,
}

/// One datum as written. Offsets are bytes of its tree's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its first byte, that of a prefix (`'`, `#'`) if it has one.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// It has a prefix.
    pub prefixed: bool,
}

impl Node {
    /// Its elements; none unless it is a list.
    pub fn elements(&self) -> &[Node] {
        match &self.kind {
            NodeKind::List(elements) => elements,
            _ => &[],
        }
    }

    /// A list without a prefix.
    pub fn is_list(&self) -> bool {
        !self.prefixed && matches!(self.kind, NodeKind::List(_))
    }

    /// The reader may pass over it.
    pub fn is_guarded(&self) -> bool {
        self.kind == NodeKind::Guarded
    }

    /// A constant or a name: making or leaving out its value does nothing.
    pub fn is_inert(&self, text: &str) -> bool {
        match self.kind {
            NodeKind::Atom | NodeKind::String => !self.prefixed || !text[self.start..self.end].starts_with("#."),
            NodeKind::List(_) => self.prefixed && ["'", "#'"].iter().any(|p| text[self.start..self.end].starts_with(p)),
            NodeKind::Guarded => false,
        }
    }
}

/// A part of a text, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The part.
    pub text: String,
    /// What stands in it.
    pub nodes: Vec<Node>,
    base: usize,
}

impl Tree {
    /// Read `span` of `text`; `None` when it does not balance.
    pub fn read(text: &Rope, span: Span) -> Option<Tree> {
        let part = text.slice(span.start..span.end.min(text.len_chars())).to_string();
        let nodes = read(&part)?;
        Some(Tree { text: part, nodes, base: span.start })
    }

    /// Bytes of this tree as a span of the whole text.
    pub fn span(&self, start: usize, end: usize) -> Span {
        let chars = |byte: usize| self.text.get(..byte).map_or(0, |head| head.chars().count());
        Span { start: self.base + chars(start), end: self.base + chars(end) }
    }

    /// The byte of this tree at an offset of the whole text.
    pub fn byte(&self, offset: usize) -> usize {
        let chars = offset.saturating_sub(self.base);
        self.text.char_indices().nth(chars).map_or(self.text.len(), |(byte, _)| byte)
    }

    /// What a node says.
    pub fn written(&self, node: &Node) -> &str {
        &self.text[node.start..node.end]
    }

    /// The operator of a list, without its package, lower-case; empty when there is none.
    pub fn operator(&self, list: &Node) -> String {
        match list.elements().first() {
            Some(head) if head.kind == NodeKind::Atom && !head.prefixed => {
                let name = self.written(head);
                name.rsplit(':').next().unwrap_or(name).to_lowercase()
            }
            _ => String::new(),
        }
    }

    /// The nodes around and at the offset `at` of the whole text, the outermost first.
    pub fn around(&self, at: Span) -> Vec<&Node> {
        let (start, end) = (self.byte(at.start), self.byte(at.end));
        let mut chain = Vec::new();
        let mut nodes = self.nodes.as_slice();
        while let Some(node) = nodes.iter().find(|node| node.start <= start && end <= node.end) {
            chain.push(node);
            nodes = node.elements();
        }
        chain
    }
}

fn read(text: &str) -> Option<Vec<Node>> {
    struct Open {
        start: usize,
        prefixed: bool,
        elements: Vec<Node>,
        /// Guards that wait: where each begins, and how many data it still takes.
        guards: Vec<(usize, usize)>,
    }
    let mut open = vec![Open { start: 0, prefixed: false, elements: Vec::new(), guards: Vec::new() }];
    let mut prefix: Option<usize> = None;
    for token in Scanner::new(text) {
        let mut node = match token.kind {
            TokenKind::LineComment | TokenKind::BlockComment => continue,
            TokenKind::Prefix | TokenKind::Unknown => {
                prefix.get_or_insert(token.start);
                continue;
            }
            TokenKind::Guard => {
                // A prefix before a guard stands before what it guards, if that is there.
                let from = prefix.take().unwrap_or(token.start);
                open.last_mut()?.guards.push((from, 2));
                continue;
            }
            TokenKind::Open => {
                let from = prefix.take();
                let vector = text[token.start..].starts_with('#');
                let start = from.unwrap_or(token.start);
                open.push(Open { start, prefixed: from.is_some() || vector, elements: Vec::new(), guards: Vec::new() });
                continue;
            }
            TokenKind::Close => {
                let done = open.pop().filter(|_| !open.is_empty())?;
                let kind = NodeKind::List(done.elements);
                Node { kind, start: done.start, end: token.end, prefixed: done.prefixed }
            }
            TokenKind::String | TokenKind::Atom => {
                let kind = if token.kind == TokenKind::Atom { NodeKind::Atom } else { NodeKind::String };
                let from = prefix.take();
                Node { kind, start: from.unwrap_or(token.start), end: token.end, prefixed: from.is_some() }
            }
        };
        let level = open.last_mut()?;
        loop {
            match level.guards.last_mut() {
                Some((_, left)) if *left > 1 => {
                    *left -= 1;
                    break;
                }
                Some((from, _)) => {
                    node = Node { kind: NodeKind::Guarded, start: *from, end: node.end, prefixed: false };
                    level.guards.pop();
                }
                None => {
                    level.elements.push(node);
                    break;
                }
            }
        }
    }
    let top = open.pop().filter(|_| open.is_empty())?;
    Some(top.elements)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shape(tree: &Tree, nodes: &[Node]) -> String {
        let one = |node: &Node| match &node.kind {
            NodeKind::List(elements) => {
                format!("{}[{}]", if node.prefixed { "'" } else { "" }, shape(tree, elements))
            }
            NodeKind::Guarded => format!("?<{}>", tree.written(node)),
            NodeKind::Atom | NodeKind::String => tree.written(node).to_owned(),
        };
        nodes.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_tree_is_what_is_written() {
        for (text, expected) in [
            ("(a (b \")\" #\\() ; )\n #| ( |# c)", "[a [b \")\" #\\(] c]"),
            ("(a '(b c) #'d #(1 2))", "[a '[b c] #'d '[1 2]]"),
            ("(a #+sbcl (b) #-(or x y) c d)", "[a ?<#+sbcl (b)> ?<#-(or x y) c> d]"),
            ("(a #+x #+y b c)", "[a ?<#+x #+y b> c]"),
            ("(é 'ü)", "[é 'ü]"),
        ] {
            let tree = Tree::read(&Rope::from_str(text), Span { start: 0, end: text.chars().count() }).unwrap();
            assert_eq!(shape(&tree, &tree.nodes), expected, "{text}");
        }
        assert_eq!(Tree::read(&Rope::from_str("(a"), Span { start: 0, end: 2 }), None);
    }
}
