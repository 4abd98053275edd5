//! The syntax tree of a text: lists, what is in them, and the comments between. Offsets are bytes of the text.
//!
//! Each top-level form is parsed by itself, as [`Scan`] found it, so that a broken form spoils nothing outside of it.

use super::scanner::{Cut, Scanner, TokenKind};
use super::toplevel::Scan;

/// A node's place in its tree.
pub type NodeId = usize;

/// The root.
pub const ROOT: NodeId = 0;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The whole text.
    Root,
    /// `(...)`, `#(...)`.
    List,
    /// A symbol, a number, a character, ...
    Atom,
    /// `"..."`.
    String,
    /// `'x`, `#'x`, `,@x`, ...: its datum is its last child that is no comment.
    Prefixed,
    /// `#+feature datum`: its first two children that are no comments.
    Guarded,
    /// `; ...` without its line break.
    LineComment,
    /// `#| ... |#`.
    BlockComment,
    /// A `)` that closes nothing.
    Stray,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Its first byte.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// One past its opening token: `(`, `#'`, `#+`; its `end` if it has none.
    pub inner: usize,
    /// Nothing of it is missing.
    pub whole: bool,
    /// What it is in.
    pub parent: NodeId,
    /// What is in it, comments too, in order.
    pub children: Vec<NodeId>,
}

/// The tree of a text.
#[derive(Debug, Clone)]
pub struct Tree<'a> {
    /// The text.
    pub text: &'a str,
    nodes: Vec<Node>,
}

struct Builder<'a> {
    tree: Tree<'a>,
    /// Open nodes, and how many datums each has.
    open: Vec<(NodeId, usize)>,
}

impl<'a> Tree<'a> {
    /// The tree of a text that was not scanned yet.
    pub fn parse(text: &'a str) -> Tree<'a> {
        Tree::of(text, &Scan::of(text))
    }

    /// The tree of one top-level form, or of what else is parsed by itself.
    pub fn of_form(text: &'a str) -> Tree<'a> {
        let mut builder = Builder::new(text);
        builder.tokens(0, text.len(), Some(b'\n'));
        builder.tree
    }

    /// The tree of a text, by its scan.
    pub fn of(text: &'a str, scan: &Scan) -> Tree<'a> {
        let mut builder = Builder::new(text);
        let mut at = 0;
        for form in scan.forms() {
            builder.part(at, form.bytes.start);
            builder.part(form.bytes.start, form.bytes.end);
            at = form.bytes.end;
        }
        builder.part(at, text.len());
        builder.tree
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    /// All nodes, each before what is in it.
    pub fn ids(&self) -> std::ops::Range<NodeId> {
        0..self.nodes.len()
    }

    /// A node's text.
    pub fn text_of(&self, id: NodeId) -> &'a str {
        let node = &self.nodes[id];
        &self.text[node.start..node.end]
    }

    /// Whether it is a comment.
    pub fn is_comment(&self, id: NodeId) -> bool {
        matches!(self.nodes[id].kind, Kind::LineComment | Kind::BlockComment)
    }

    /// What is in a node, without comments.
    pub fn elements(&self, id: NodeId) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        self.nodes[id].children.iter().copied().filter(|child| !self.is_comment(*child))
    }

    /// A node without its guards and prefixes.
    pub fn datum(&self, id: NodeId) -> NodeId {
        let mut id = id;
        while matches!(self.nodes[id].kind, Kind::Prefixed | Kind::Guarded) {
            let last = match self.nodes[id].kind {
                Kind::Guarded => self.elements(id).nth(1),
                _ => self.elements(id).next_back(),
            };
            let Some(last) = last else { return id };
            id = last;
        }
        id
    }

    /// A node without its guards.
    pub fn unguarded(&self, id: NodeId) -> NodeId {
        let mut id = id;
        while let (Kind::Guarded, Some(datum)) = (self.nodes[id].kind, self.elements(id).nth(1)) {
            id = datum;
        }
        id
    }

    /// The name of the symbol that heads a list, in lower case, without its package.
    pub fn operator(&self, id: NodeId) -> Option<String> {
        if self.nodes[id].kind != Kind::List || !self.text_of(id).starts_with('(') {
            return None;
        }
        let head = self.elements(id).next()?;
        self.symbol(head).map(|symbol| symbol.name.to_lowercase())
    }

    /// The symbol that an atom is.
    pub fn symbol(&self, id: NodeId) -> Option<super::names::Symbol> {
        if self.nodes[id].kind == Kind::Atom { super::names::symbol(self.text_of(id)) } else { None }
    }

    /// The nodes that `at` is strictly inside of, or whose edge it is at when `touching`; outermost first, the root first of all.
    pub fn path(&self, at: usize, touching: bool) -> Vec<NodeId> {
        let mut path = vec![ROOT];
        let mut id = ROOT;
        loop {
            let children = &self.nodes[id].children;
            let after = children.partition_point(|child| {
                let start = self.nodes[*child].start;
                if touching { start <= at } else { start < at }
            });
            let within = |child: &NodeId| {
                let end = self.nodes[*child].end;
                if touching { at <= end } else { at < end || self.goes_on(*child, at) }
            };
            match children[..after].last().copied().filter(within) {
                Some(child) => {
                    path.push(child);
                    id = child;
                }
                None => return path,
            }
        }
    }

    /// A comment goes on to the end of its line, and what is not closed as far as nothing else begins.
    fn goes_on(&self, id: NodeId, at: usize) -> bool {
        let node = &self.nodes[id];
        match node.kind {
            Kind::LineComment => at == node.end,
            Kind::Stray => false,
            _ => !node.whole,
        }
    }
}

impl<'a> Builder<'a> {
    fn new(text: &'a str) -> Builder<'a> {
        let root = Node {
            kind: Kind::Root,
            start: 0,
            end: text.len(),
            inner: 0,
            whole: true,
            parent: ROOT,
            children: Vec::new(),
        };
        Builder { tree: Tree { text, nodes: vec![root] }, open: vec![(ROOT, 0)] }
    }

    fn part(&mut self, start: usize, end: usize) {
        let before = start.checked_sub(1).map(|at| self.tree.text.as_bytes()[at]);
        self.tokens(start, end, before);
    }

    fn tokens(&mut self, start: usize, end: usize, before: Option<u8>) {
        let text = self.tree.text;
        let mut last = start;
        for token in Scanner::within(&text[start..end], before) {
            let (from, mut to) = (token.start + start, token.end + start);
            let whole = token.cut == Cut::None;
            match token.kind {
                TokenKind::LineComment => {
                    // CRLF: the line break is both.
                    to -= usize::from(text[from..to].ends_with('\r'));
                    self.leaf(Kind::LineComment, from, to, whole);
                }
                TokenKind::BlockComment => self.leaf(Kind::BlockComment, from, to, whole),
                TokenKind::Open => self.begin(Kind::List, from, to),
                TokenKind::Prefix => self.begin(Kind::Prefixed, from, to),
                TokenKind::Unknown => {
                    // What an unknown macro character takes is what stands right behind it.
                    let next = text[to..end].chars().next();
                    if next.is_none_or(|next| next == ')' || next.is_ascii_whitespace()) {
                        self.leaf(Kind::Atom, from, to, whole);
                        self.datum();
                    } else {
                        self.begin(Kind::Prefixed, from, to);
                    }
                }
                TokenKind::Guard => self.begin(Kind::Guarded, from, to),
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
        let id = self.tree.nodes.len();
        let parent = self.open.last().map_or(ROOT, |open| open.0);
        self.tree.nodes.push(Node { kind, start, end, inner, whole, parent, children: Vec::new() });
        self.tree.nodes[parent].children.push(id);
        id
    }

    fn leaf(&mut self, kind: Kind, start: usize, end: usize, whole: bool) {
        self.add(kind, start, end, end, whole);
    }

    fn begin(&mut self, kind: Kind, start: usize, inner: usize) {
        let id = self.add(kind, start, inner, inner, false);
        self.open.push((id, 0));
    }

    /// What was begun last is left without all it needs.
    fn abandon(&mut self, end: usize) {
        if let Some((id, _)) = self.open.pop() {
            self.tree.nodes[id].end = end;
        }
    }

    fn close(&mut self, start: usize, end: usize, last: usize) {
        while self.open.last().is_some_and(|(id, _)| !matches!(self.tree.nodes[*id].kind, Kind::List | Kind::Root)) {
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
        if let Some((id, _)) = self.open.pop() {
            let node = &mut self.tree.nodes[id];
            node.end = end;
            node.whole = true;
        }
    }

    /// A datum is complete: so is what needed just that.
    fn datum(&mut self) {
        while let Some((id, count)) = self.open.last_mut() {
            *count += 1;
            let node = &self.tree.nodes[*id];
            let needed = match node.kind {
                Kind::Prefixed => 1,
                Kind::Guarded => 2,
                _ => return,
            };
            if *count < needed {
                return;
            }
            let end = node.children.last().map_or(node.inner, |child| self.tree.nodes[*child].end);
            self.finish(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tree: &Tree, id: NodeId) -> String {
        let node = tree.node(id);
        let inner: Vec<String> = node.children.iter().map(|child| shown(tree, *child)).collect();
        match node.kind {
            Kind::Root => inner.join(" "),
            Kind::List => format!("({}{}", inner.join(" "), if node.whole { ")" } else { "" }),
            Kind::Prefixed => format!("{}<{}>", &tree.text[node.start..node.inner], inner.join(" ")),
            Kind::Guarded => format!("#<{}>", inner.join(" ")),
            _ => tree.text_of(id).to_owned(),
        }
    }

    #[test]
    fn prefixes_and_guards_take_their_datums() {
        for (text, expected) in [
            ("(a 'b `(c ,@d))", "(a '<b> `<(c ,@<d>)>)"),
            ("#+x (a) b", "#<x (a)> b"),
            ("(#+x #-y a b c)", "(#<x #<y a>> b c)"),
            ("(a ; c\n b) #|d|#", "(a ; c b) #|d|#"),
            ("(a (b\n(c d)", "(a (b (c d)"),
            ("a) b", "a ) b"),
            ("(a ')", "(a '<>)"),
            ("#?x (#?\"a\" #?)", "#?<x> (#?<\"a\"> #?)"),
            ("#(1 #\\)) '; x\r\n y", "(1 #\\)) '<; x y>"),
        ] {
            assert_eq!(shown(&Tree::parse(text), ROOT), expected, "{text}");
        }
    }

    #[test]
    fn the_path_leads_to_what_a_place_is_in() {
        let tree = Tree::parse("(a (b \"x\") c)");
        let texts = |at, touching| -> Vec<&str> {
            tree.path(at, touching).into_iter().skip(1).map(|id| tree.text_of(id)).collect()
        };
        assert_eq!(texts(4, true), ["(a (b \"x\") c)", "(b \"x\")", "b"]);
        assert_eq!(texts(4, false), ["(a (b \"x\") c)", "(b \"x\")"]);
        assert_eq!(texts(3, false), ["(a (b \"x\") c)"]);
        assert_eq!(texts(7, false), ["(a (b \"x\") c)", "(b \"x\")", "\"x\""]);
    }
}
