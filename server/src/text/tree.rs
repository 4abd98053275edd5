//! The syntax tree of a text: lists, their contents, and the comments between them. Offsets are
//! byte offsets in the text.
//!
//! Each top-level form that [`Scan`] found is parsed separately, so that a broken form affects no
//! other form.

mod builder;

use self::builder::Builder;
use super::toplevel::{Scan, TopForm};

/// The index of a node in its tree. Nodes are numbered in the order of the text, each before its
/// contents.
pub type NodeId = u32;

/// The root.
pub const ROOT: NodeId = 0;

/// The kind of a node.
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
    /// `'x`, `#'x`, `,@x`, ... The datum is the last child that is no comment.
    Prefixed,
    /// `#+feature datum`. The feature and the datum are the first two children that are no
    /// comments.
    Guarded,
    /// `; ...` without its line break.
    LineComment,
    /// `#| ... |#`.
    BlockComment,
    /// A `)` that closes nothing.
    Stray,
}

/// A node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The kind of the node.
    pub kind: Kind,
    /// The offset of the first byte.
    pub start: usize,
    /// The offset one past the last byte.
    pub end: usize,
    /// The end of the opening token, such as `(`, `#'` or `#+`. Equal to `end` if there is none.
    pub inner: usize,
    /// True if no part of the node is missing.
    pub whole: bool,
    /// The node that contains this node.
    pub parent: NodeId,
}

/// The stored form of a node. It is small, because a tree may have millions of nodes.
#[derive(Debug, Clone, Copy)]
struct Packed {
    start: u32,
    end: u32,
    inner: u32,
    parent: NodeId,
    /// The index among the elements of the parent. For a comment, the number of elements before it.
    place: u32,
    kind: Kind,
    whole: bool,
}

/// The nodes within each node, in one array.
#[derive(Debug, Clone, Default)]
struct Within {
    nodes: Vec<NodeId>,
    /// The index in `nodes` at which the nodes within each node begin, and the end of the last
    /// ones.
    from: Vec<u32>,
}

impl Within {
    fn of(&self, id: NodeId) -> &[NodeId] {
        let at = id as usize;
        match (self.from.get(at), self.from.get(at + 1)) {
            (Some(from), Some(to)) => &self.nodes[*from as usize..*to as usize],
            _ => &[],
        }
    }

    fn new(nodes: &[Packed], counted: impl Fn(&Packed) -> bool) -> Within {
        let mut from = vec![0u32; nodes.len() + 1];
        for node in nodes.iter().skip(1).filter(|node| counted(node)) {
            from[node.parent as usize + 1] += 1;
        }
        for at in 1..from.len() {
            from[at] += from[at - 1];
        }
        let mut within = vec![ROOT; from.last().map_or(0, |last| *last as usize)];
        for (id, node) in nodes.iter().enumerate().skip(1).filter(|(_, node)| counted(node)) {
            let next = &mut from[node.parent as usize];
            within[*next as usize] = number(id);
            *next += 1;
        }
        // Each entry is now the end of a node's range. The start of a range is the end of the
        // previous one.
        from.rotate_right(1);
        if let Some(first) = from.first_mut() {
            *first = 0;
        }
        Within { nodes: within, from }
    }
}

/// Converts an offset or an index to 32 bits. Texts are far shorter than 4 GiB, because messages
/// and files have limits.
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The tree of a text.
#[derive(Debug, Clone)]
pub struct Tree<'a> {
    /// The text.
    pub text: &'a str,
    nodes: Vec<Packed>,
    children: Within,
    /// The children that are no comments. `None` if the text has no comments.
    elements: Option<Within>,
}

impl<'a> Tree<'a> {
    /// Parses a text that was not scanned yet.
    pub fn parse(text: &'a str) -> Tree<'a> {
        Tree::of(text, &Scan::of(text))
    }

    /// Parses one top-level form, or another part, separately.
    pub fn of_form(text: &'a str) -> Tree<'a> {
        let mut builder = Builder::new(text);
        builder.tokens(0, text.len(), Some(b'\n'));
        builder.built()
    }

    /// Parses a text by its scan.
    pub fn of(text: &'a str, scan: &Scan) -> Tree<'a> {
        let mut builder = Builder::new(text);
        let mut at = 0;
        for form in scan.forms() {
            builder.part(at, form.bytes.start);
            builder.part(form.bytes.start, form.bytes.end);
            at = form.bytes.end;
        }
        builder.part(at, text.len());
        builder.built()
    }

    /// Parses some of a text's top-level forms, with the comments between them. Offsets are those
    /// in the whole text.
    pub fn of_forms(text: &'a str, forms: &[TopForm]) -> Tree<'a> {
        let mut builder = Builder::new(text);
        let mut at = forms.first().map_or(0, |first| first.bytes.start);
        for form in forms {
            builder.part(at, form.bytes.start);
            builder.part(form.bytes.start, form.bytes.end);
            at = form.bytes.end;
        }
        builder.built()
    }

    fn packed(&self, id: NodeId) -> &Packed {
        &self.nodes[id as usize]
    }

    /// Returns a node.
    pub fn node(&self, id: NodeId) -> Node {
        let Packed { start, end, inner, parent, kind, whole, .. } = *self.packed(id);
        Node { kind, start: start as usize, end: end as usize, inner: inner as usize, whole, parent }
    }

    /// Returns the children of a node, including comments, in order.
    pub fn children(&self, id: NodeId) -> &[NodeId] {
        self.children.of(id)
    }

    /// Returns the children of a node, without comments, in order.
    pub fn element_list(&self, id: NodeId) -> &[NodeId] {
        self.elements.as_ref().unwrap_or(&self.children).of(id)
    }

    /// Returns the index of a node among the elements of its parent. For a comment, returns the
    /// number of elements before it.
    pub fn place(&self, id: NodeId) -> usize {
        self.packed(id).place as usize
    }

    /// Returns the number of nodes, including the root.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if the root is the only node.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() <= 1
    }

    /// Returns the ids of all nodes, each before its contents.
    pub fn ids(&self) -> std::ops::Range<NodeId> {
        0..number(self.nodes.len())
    }

    /// Returns the last node that begins before `at`, or the root if none does.
    pub fn last_before(&self, at: usize) -> NodeId {
        number(self.nodes.partition_point(|node| (node.start as usize) < at).saturating_sub(1))
    }

    /// Returns a node's text.
    pub fn text_of(&self, id: NodeId) -> &'a str {
        let node = self.packed(id);
        &self.text[node.start as usize..node.end as usize]
    }

    /// Returns true if the node is a comment.
    pub fn is_comment(&self, id: NodeId) -> bool {
        is_comment(self.packed(id).kind)
    }

    /// Iterates over the children of a node, without comments, in order.
    pub fn elements(&self, id: NodeId) -> std::iter::Copied<std::slice::Iter<'_, NodeId>> {
        self.element_list(id).iter().copied()
    }

    /// Returns a node without its guards and prefixes.
    pub fn datum(&self, id: NodeId) -> NodeId {
        let mut id = id;
        while matches!(self.packed(id).kind, Kind::Prefixed | Kind::Guarded) {
            let last = match self.packed(id).kind {
                Kind::Guarded => self.elements(id).nth(1),
                _ => self.elements(id).next_back(),
            };
            let Some(last) = last else { return id };
            id = last;
        }
        id
    }

    /// Returns a node without its guards.
    pub fn unguarded(&self, id: NodeId) -> NodeId {
        let mut id = id;
        while let (Kind::Guarded, Some(datum)) = (self.packed(id).kind, self.elements(id).nth(1)) {
            id = datum;
        }
        id
    }

    /// Returns the name of the symbol at the head of a list, in lower case, without its package.
    pub fn operator(&self, id: NodeId) -> Option<String> {
        if self.packed(id).kind != Kind::List || !self.text_of(id).starts_with('(') {
            return None;
        }
        let head = self.elements(id).next()?;
        self.symbol(head).map(|symbol| symbol.name.to_lowercase())
    }

    /// Returns the symbol that an atom denotes.
    pub fn symbol(&self, id: NodeId) -> Option<super::names::Symbol> {
        if self.packed(id).kind == Kind::Atom { super::names::symbol(self.text_of(id)) } else { None }
    }

    /// Returns the nodes strictly around `at`, outermost first, beginning with the root. If
    /// `touching`, nodes with an edge at `at` are included.
    pub fn path(&self, at: usize, touching: bool) -> Vec<NodeId> {
        let mut path = Path::default();
        path.go_to(self, at, touching);
        path.nodes
    }

    /// Returns the child of a node that is on the path to `at`.
    fn child_at(&self, id: NodeId, at: usize, touching: bool) -> Option<NodeId> {
        let children = self.children(id);
        let after = children.partition_point(|child| {
            let start = self.packed(*child).start as usize;
            if touching { start <= at } else { start < at }
        });
        let child = *children[..after].last()?;
        let end = self.packed(child).end as usize;
        let within = if touching { at <= end } else { at < end || self.goes_on(child, at) };
        within.then_some(child)
    }

    /// Returns true if the node extends to `at`. A comment extends to the end of its line. An
    /// unclosed node extends to the next node.
    fn goes_on(&self, id: NodeId, at: usize) -> bool {
        let node = self.node(id);
        match node.kind {
            Kind::LineComment => at == node.end,
            Kind::Stray => false,
            _ => !node.whole,
        }
    }
}

/// The path from the root to a place. The time of a move to another place is proportional to the
/// length of the text between the two.
#[derive(Debug, Clone)]
pub struct Path {
    /// The nodes, outermost first.
    pub nodes: Vec<NodeId>,
}

impl Default for Path {
    fn default() -> Path {
        Path { nodes: vec![ROOT] }
    }
}

impl Path {
    /// Sets the path to the result of [`Tree::path`] for the place `at`.
    pub fn go_to(&mut self, tree: &Tree<'_>, at: usize, touching: bool) {
        let inside = |id: NodeId| {
            let node = tree.node(id);
            id == ROOT || node.start < at && at < node.end
        };
        while self.nodes.last().is_some_and(|id| !inside(*id)) {
            self.nodes.pop();
        }
        while let Some(child) = tree.child_at(*self.nodes.last().unwrap_or(&ROOT), at, touching) {
            self.nodes.push(child);
        }
    }
}

fn is_comment(kind: Kind) -> bool {
    matches!(kind, Kind::LineComment | Kind::BlockComment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tree: &Tree, id: NodeId) -> String {
        let node = tree.node(id);
        let inner: Vec<String> = tree.children(id).iter().map(|child| shown(tree, *child)).collect();
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
