//! The builder of a text's tree from its tokens.

use super::super::scanner::{Scanner, TokenKind, Unterminated};
use super::{Kind, NodeId, Packed, ROOT, Tree, Within, is_comment, number};

/// A node that was begun and has not ended.
struct Open {
    id: NodeId,
    /// The number of complete datums in it.
    datums: usize,
    /// The number of its children, comments not counted.
    elements: u32,
    /// The last child that was begun.
    last: Option<NodeId>,
}

/// A tree that is being built.
pub(super) struct Builder<'a> {
    tree: Tree<'a>,
    open: Vec<Open>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(text: &'a str) -> Builder<'a> {
        let end = number(text.len());
        let root = Packed { kind: Kind::Root, start: 0, end, inner: 0, whole: true, parent: ROOT, place: 0 };
        let tree = Tree { text, nodes: vec![root], children: Within::default(), elements: None };
        Builder { tree, open: vec![Open { id: ROOT, datums: 0, elements: 0, last: None }] }
    }

    pub(super) fn built(self) -> Tree<'a> {
        let mut tree = self.tree;
        tree.nodes.shrink_to_fit();
        tree.children = Within::new(&tree.nodes, |_| true);
        if tree.nodes.iter().any(|node| is_comment(node.kind)) {
            tree.elements = Some(Within::new(&tree.nodes, |node| !is_comment(node.kind)));
        }
        tree
    }

    pub(super) fn part(&mut self, start: usize, end: usize) {
        let before = start.checked_sub(1).map(|at| self.tree.text.as_bytes()[at]);
        self.tokens(start, end, before);
    }

    pub(super) fn tokens(&mut self, start: usize, end: usize, before: Option<u8>) {
        let text = self.tree.text;
        let mut last = start;
        for token in Scanner::with_preceding(&text[start..end], before) {
            let (from, mut to) = (token.start + start, token.end + start);
            let whole = token.unterminated == Unterminated::No;
            match token.kind {
                TokenKind::LineComment => {
                    // With CRLF, the carriage return belongs to the line break.
                    to -= usize::from(text[from..to].ends_with('\r'));
                    self.leaf(Kind::LineComment, from, to, whole);
                }
                TokenKind::BlockComment => self.leaf(Kind::BlockComment, from, to, whole),
                TokenKind::Open => self.begin(Kind::List, from, to),
                TokenKind::Prefix => self.begin(Kind::Prefixed, from, to),
                TokenKind::Unknown => {
                    // An unknown macro character takes only a datum that follows directly.
                    let next = text[to..end].chars().next();
                    if next.is_none_or(|next| next == ')' || next.is_ascii_whitespace()) {
                        self.leaf(Kind::Atom, from, to, whole);
                        self.datum();
                    } else {
                        self.begin(Kind::Prefixed, from, to);
                    }
                }
                TokenKind::FeatureConditional => self.begin(Kind::Guarded, from, to),
                TokenKind::Atom => {
                    self.leaf(Kind::Atom, from, to, whole);
                    self.datum();
                }
                TokenKind::String => {
                    self.leaf(Kind::String, from, to, whole);
                    self.datum();
                }
                TokenKind::Close => self.close(from, to, last),
            }
            last = to;
        }
        while self.open.len() > 1 {
            self.abandon(last);
        }
    }

    fn add(&mut self, kind: Kind, start: usize, end: usize, inner: usize, whole: bool) -> NodeId {
        let id = number(self.tree.nodes.len());
        let (mut parent, mut place) = (ROOT, 0);
        if let Some(open) = self.open.last_mut() {
            (parent, place) = (open.id, open.elements);
            open.last = Some(id);
            open.elements += u32::from(!is_comment(kind));
        }
        let (start, end, inner) = (number(start), number(end), number(inner));
        self.tree.nodes.push(Packed { kind, start, end, inner, whole, parent, place });
        id
    }

    fn leaf(&mut self, kind: Kind, start: usize, end: usize, whole: bool) {
        self.add(kind, start, end, end, whole);
    }

    fn begin(&mut self, kind: Kind, start: usize, inner: usize) {
        let id = self.add(kind, start, inner, inner, false);
        self.open.push(Open { id, datums: 0, elements: 0, last: None });
    }

    /// Ends the innermost open node, and leaves it incomplete.
    fn abandon(&mut self, end: usize) {
        if let Some(Open { id, .. }) = self.open.pop() {
            self.tree.nodes[id as usize].end = number(end);
        }
    }

    fn close(&mut self, start: usize, end: usize, last: usize) {
        while self.open.last().is_some_and(|open| !matches!(self.tree.packed(open.id).kind, Kind::List | Kind::Root)) {
            self.abandon(last);
        }
        if self.open.len() > 1 {
            self.finish(end);
            self.datum();
        } else {
            self.leaf(Kind::Stray, start, end, false);
        }
    }

    fn finish(&mut self, end: usize) {
        if let Some(Open { id, .. }) = self.open.pop() {
            let node = &mut self.tree.nodes[id as usize];
            node.end = number(end);
            node.whole = true;
        }
    }

    /// Notes that a datum is complete. Ends the open nodes that needed only this datum.
    fn datum(&mut self) {
        while let Some(open) = self.open.last_mut() {
            open.datums += 1;
            let node = &self.tree.nodes[open.id as usize];
            let needed = match node.kind {
                Kind::Prefixed => 1,
                Kind::Guarded => 2,
                _ => return,
            };
            if open.datums < needed {
                return;
            }
            let end = open.last.map_or(node.inner, |child| self.tree.packed(child).end) as usize;
            self.finish(end);
        }
    }
}
