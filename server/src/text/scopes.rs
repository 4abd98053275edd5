//! The local bindings of a top-level form, their scopes, and the binding of each occurrence of a
//! name, found from the form's text alone.
//!
//! Supports the standard's binding forms and common conventions: `(with-... (var ...) body)` and
//! `(do-... (var ...) body)` bind. An unknown macro is treated as a function. Quoted data have no
//! bindings, except for unquoted parts.

mod lambda_list;
mod loop_form;
mod walk;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use self::walk::Walk;
use super::Span;
use super::datum::{Form, Node};

/// The kind of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindingKind {
    /// By `let` and the like.
    Variable,
    /// In a function's or macro's lambda list.
    Parameter,
    /// By `flet` or `labels`.
    Function,
    /// By `macrolet`.
    Macro,
    /// By `symbol-macrolet`, `with-slots`, `with-accessors`.
    SymbolMacro,
    /// By `block`, `loop named`, or as the block of a local function.
    Block,
    /// A tag of `tagbody`, or of a form whose body is one.
    Tag,
}

/// A name space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Namespace {
    /// Variables and symbol macros.
    Variable,
    /// Functions and macros.
    Function,
    /// Blocks.
    Block,
    /// Tags.
    Tag,
}

/// The notation of a binding's name that also stands for a keyword or a slot. A new name of the
/// binding must not change the keyword or the slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Shorthand {
    /// The name stands for the binding alone.
    #[default]
    None,
    /// `x` after `&key`: the name stands for the keyword, too.
    Key,
    /// `(x default)` after `&key`.
    KeyInList,
    /// `((:x var) default)` after `&key`.
    KeyPair {
        /// The keyword as written.
        keyword: String,
        /// The span of `(:x var)`, or of the list around it if that has nothing else.
        around: Span,
        /// True if the list around the pair has nothing else.
        alone: bool,
    },
    /// `x` in `with-slots`: the name stands for the slot, too.
    Slot,
    /// `(var x)` in `with-slots`.
    SlotPair {
        /// The slot as written.
        slot: String,
        /// The span of the pair.
        around: Span,
    },
}

impl BindingKind {
    /// Returns the kind in words for a person.
    pub fn words(self) -> &'static str {
        match self {
            BindingKind::Variable => "local variable",
            BindingKind::Parameter => "parameter",
            BindingKind::Function => "local function",
            BindingKind::Macro => "local macro",
            BindingKind::SymbolMacro => "local symbol macro",
            BindingKind::Block => "block",
            BindingKind::Tag => "tag",
        }
    }

    /// Returns true if the binding is called, not read.
    pub fn is_operator(self) -> bool {
        self.namespace() == Namespace::Function
    }

    /// Returns the name space of the binding.
    pub fn namespace(self) -> Namespace {
        match self {
            BindingKind::Variable | BindingKind::Parameter | BindingKind::SymbolMacro => Namespace::Variable,
            BindingKind::Function | BindingKind::Macro => Namespace::Function,
            BindingKind::Block => Namespace::Block,
            BindingKind::Tag => Namespace::Tag,
        }
    }
}

/// A local binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The name, lower-case unless escaped. A package prefix is kept unless it is that of a package
    /// of the standard: `foo:x` is not `x`.
    pub name: String,
    /// The span of the name at its binding.
    pub span: Span,
    /// The kind of the binding.
    pub kind: BindingKind,
    /// The operator of the form that makes the binding: `let`, `defun`, ...
    pub by: String,
    /// The spans in which the binding is in force.
    pub scopes: Vec<Span>,
    /// Further spans in which the binding is in force, in order and disjoint. They are shared with
    /// the other bindings of the form.
    pub shared: Option<Arc<[Span]>>,
    /// The lambda list of a local function or macro.
    pub parameters: Option<Span>,
    /// The keyword or slot that the name also stands for, if any.
    pub shorthand: Shorthand,
}

/// An occurrence of a name where it is evaluated or called.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Use {
    name: String,
    span: Span,
    namespace: Namespace,
}

/// The local bindings of a top-level form, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes {
    /// All bindings.
    pub bindings: Vec<Binding>,
    uses: Vec<Use>,
    /// The binding of each use: an index of `bindings`.
    resolved: Vec<Option<usize>>,
    /// The indices of the bindings, ordered by the places of their names.
    bindings_by_place: Vec<usize>,
    /// The indices of the uses, ordered by their places.
    uses_by_place: Vec<usize>,
}

impl Scopes {
    /// Finds the bindings of a form.
    pub fn of(form: &Form) -> Scopes {
        Scopes::without(form, &[])
    }

    /// Finds the bindings of a form. Operators with the names in `plain` are taken to bind nothing.
    pub fn without(form: &Form, plain: &[String]) -> Scopes {
        let mut walk = Walk { form, plain, scopes: Scopes::default(), into: HashSet::new(), shared: None };
        walk.body(&form.nodes);
        walk.scopes.ordered()
    }

    /// Finds the bindings in those quoted data of a form that `is_code` accepts.
    pub fn of_expansions(form: &Form, is_code: &dyn Fn(&Node) -> bool) -> Scopes {
        fn visit(walk: &mut Walk<'_>, nodes: &[Node], is_code: &dyn Fn(&Node) -> bool) {
            for node in nodes {
                if is_code(node) { walk.code(node) } else { visit(walk, &node.children, is_code) }
            }
        }
        let mut walk = Walk { form, plain: &[], scopes: Scopes::default(), into: HashSet::new(), shared: None };
        visit(&mut walk, &form.nodes, is_code);
        walk.scopes.ordered()
    }

    /// Returns the scopes with their lookup tables and the binding of each use.
    fn ordered(self) -> Scopes {
        let mut scopes = self;
        scopes.bindings_by_place = by_place(&scopes.bindings, |binding| binding.span);
        scopes.uses_by_place = by_place(&scopes.uses, |one| one.span);
        scopes.resolved = scopes.resolve_uses();
        scopes
    }

    /// Returns the index of the binding that the name at `offset` makes or refers to.
    pub fn resolve(&self, offset: usize) -> Option<usize> {
        let made = touching(&self.bindings_by_place, offset, |index| self.bindings[index].span);
        made.or_else(|| self.resolved[touching(&self.uses_by_place, offset, |index| self.uses[index].span)?])
    }

    /// Returns the place of a binding's own name and of all names that refer to it, in order.
    pub fn occurrences(&self, binding: usize) -> Vec<Span> {
        let own = self.bindings.get(binding).map(|binding| binding.span);
        // A local function and its block are bound at one place.
        let same = |index: usize| self.bindings.get(index).map(|binding| binding.span) == own;
        let uses = self.uses.iter().zip(&self.resolved).filter(|(_, resolved)| resolved.is_some_and(same));
        let mut all: Vec<Span> = own.into_iter().chain(uses.map(|(one, _)| one.span)).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Returns the bindings outside of `span` to which names inside of it refer, as indices of
    /// `bindings`. Each is given once, in the order of their first use.
    pub fn from_outside(&self, span: Span) -> Vec<usize> {
        let mut found = Vec::new();
        let from = self.uses_by_place.partition_point(|index| self.uses[*index].span.start < span.start);
        for index in &self.uses_by_place[from..] {
            if self.uses[*index].span.start >= span.end {
                break;
            }
            let Some(resolved) = self.resolved[*index] else { continue };
            let bound = self.bindings[resolved].span;
            let outside = bound.start < span.start || span.end < bound.end;
            if outside && !found.contains(&resolved) {
                found.push(resolved);
            }
        }
        found
    }

    /// Returns the names of the variables that are used inside of `span` and refer to no local
    /// binding.
    pub fn unbound_in(&self, span: Span) -> Vec<&str> {
        let from = self.uses_by_place.partition_point(|index| self.uses[*index].span.start < span.start);
        let within = self.uses_by_place[from..].iter().take_while(|index| self.uses[**index].span.start < span.end);
        let free = within
            .filter(|index| self.resolved[**index].is_none() && self.uses[**index].namespace == Namespace::Variable);
        free.map(|index| self.uses[*index].name.as_str()).collect()
    }

    /// Returns the places, in order, where the variable `name` (without package, lower-case unless
    /// escaped) is evaluated and refers to no local binding.
    pub fn free_uses<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Span> + 'a {
        let free = move |index: &&usize| {
            let one = &self.uses[**index];
            one.name == name && one.namespace == Namespace::Variable && self.resolved[**index].is_none()
        };
        self.uses_by_place.iter().filter(free).map(|index| self.uses[*index].span)
    }

    /// Returns the name space in which the name at `span` is evaluated or called, or `None` if it
    /// is neither.
    pub fn namespace_at(&self, span: Span) -> Option<Namespace> {
        let from = self.uses_by_place.partition_point(|index| self.uses[*index].span < span);
        self.uses_by_place
            .get(from)
            .map(|index| &self.uses[*index])
            .filter(|one| one.span == span)
            .map(|one| one.namespace)
    }

    /// Returns the name of the first use that refers to another binding in `other`, the scopes of
    /// the same form with other names. Returns `something` if the numbers of uses or bindings
    /// differ.
    pub fn first_difference<'a>(&'a self, other: &'a Scopes) -> Option<&'a str> {
        let uses = self.uses.iter().zip(&self.resolved).zip(other.uses.iter().zip(&other.resolved));
        let place = |scopes: &Scopes, resolved: &Option<usize>| {
            resolved.map(|index| {
                scopes.bindings_by_place.partition_point(|at| scopes.bindings[*at].span < scopes.bindings[index].span)
            })
        };
        let differs = uses.into_iter().find(|((_, one), (_, other_one))| place(self, one) != place(other, other_one));
        let shapes = self.uses.len() != other.uses.len() || self.bindings.len() != other.bindings.len();
        differs.map(|((one, _), _)| one.name.as_str()).or(shapes.then_some("something"))
    }

    /// Returns true if evaluated code uses the name at `span` as that of a function or macro. Names
    /// of the standard's operators that bind names or do not evaluate all of their arguments do not
    /// count.
    pub fn is_called(&self, span: Span) -> bool {
        let from = self.uses_by_place.partition_point(|index| self.uses[*index].span < span);
        let here = self.uses_by_place[from..].iter().map(|index| &self.uses[*index]).take_while(|one| one.span == span);
        here.into_iter().any(|one| one.namespace == Namespace::Function)
    }

    /// Returns the variables and operators bound at `offset`, innermost first. Bindings that are
    /// shadowed there, and one whose own name is there, are left out.
    pub fn visible(&self, offset: usize) -> Vec<&Binding> {
        let mut found: Vec<((usize, usize), usize)> = Vec::new();
        for (index, binding) in self.bindings.iter().enumerate() {
            if !matches!(binding.kind.namespace(), Namespace::Block | Namespace::Tag)
                && let Some(extent) = binding.extent(offset)
                && !(binding.span.start <= offset && offset <= binding.span.end)
            {
                found.push((extent, usize::MAX - index));
            }
        }
        found.sort_unstable();
        let mut names: HashSet<(&str, bool)> = HashSet::new();
        let bindings = found.into_iter().map(|(_, index)| &self.bindings[usize::MAX - index]);
        bindings.filter(|binding| names.insert((&binding.name, binding.kind.is_operator()))).collect()
    }

    /// Finds the binding of each use. Among the bindings of the name in force there, it is the one
    /// whose scope ends first. Among those that end together, it is the one whose scope begins
    /// last. Makes one pass along the text for each name, and one for the scopes that bindings
    /// share.
    fn resolve_uses(&self) -> Vec<Option<usize>> {
        let mut named: HashMap<(&str, Namespace), Named> = HashMap::new();
        for (index, binding) in self.bindings.iter().enumerate() {
            let (scopes, _) = named.entry((&binding.name, binding.kind.namespace())).or_default();
            scopes.extend(binding.scopes.iter().map(|scope| (*scope, index)));
        }
        for index in &self.uses_by_place {
            let one = &self.uses[*index];
            if let Some((_, uses)) = named.get_mut(&(one.name.as_str(), one.namespace)) {
                uses.push(*index);
            }
        }
        let mut best: Vec<Option<Extent>> = vec![None; self.uses.len()];
        for (mut scopes, uses) in named.into_values() {
            scopes.sort_unstable();
            let mut begun: BTreeSet<Extent> = BTreeSet::new();
            let mut next = scopes.iter().peekable();
            for index in uses {
                let at = self.uses[index].span;
                while let Some((scope, binding)) = next.next_if(|(scope, _)| scope.start <= at.start) {
                    begun.insert(extent_of(*scope, *binding));
                }
                best[index] = begun.range((at.end, 0, 0)..).next().copied();
            }
        }
        self.look_into_shared(&mut best);
        best.into_iter().map(|best| best.map(|(_, _, index)| usize::MAX - index)).collect()
    }

    /// Updates `best` with the shared scopes. Each scope is visited once, not once for each
    /// binding.
    fn look_into_shared(&self, best: &mut [Option<Extent>]) {
        let mut groups: HashMap<*const Span, usize> = HashMap::new();
        let mut scopes: Vec<(Span, usize)> = Vec::new();
        let mut bound: HashMap<(usize, &str, Namespace), usize> = HashMap::new();
        for (index, binding) in self.bindings.iter().enumerate() {
            let Some(shared) = binding.shared.as_ref() else { continue };
            let next = groups.len();
            let group = *groups.entry(shared.as_ptr()).or_insert_with(|| {
                scopes.extend(shared.iter().map(|scope| (*scope, next)));
                next
            });
            bound.insert((group, &binding.name, binding.kind.namespace()), index);
        }
        scopes.sort_by_key(|(scope, _)| (scope.start, std::cmp::Reverse(scope.end)));
        let mut around: Vec<(Span, usize)> = Vec::new();
        let mut next = scopes.into_iter().peekable();
        for index in &self.uses_by_place {
            let one = &self.uses[*index];
            while let Some(scope) = next.next_if(|(scope, _)| scope.start <= one.span.start) {
                around.push(scope);
                // Scopes that ended before cannot contain any later use.
                around.retain(|(scope, _)| one.span.start <= scope.end);
            }
            for (scope, group) in around.iter().filter(|(scope, _)| one.span.end <= scope.end) {
                if let Some(binding) = bound.get(&(*group, one.name.as_str(), one.namespace)) {
                    let extent = extent_of(*scope, *binding);
                    if best[*index].is_none_or(|best| extent < best) {
                        best[*index] = Some(extent);
                    }
                }
            }
        }
    }
}

/// A span in which a binding is in force, and the index of the binding.
type Scope = (Span, usize);
/// The scopes of a name, and its uses.
type Named = (Vec<Scope>, Vec<usize>);

/// The end of a scope, its beginning and the number of its binding, each encoded so that the
/// lesser value is the inner scope or the later binding.
type Extent = (usize, usize, usize);

fn extent_of(scope: Span, binding: usize) -> Extent {
    (scope.end, usize::MAX - scope.start, usize::MAX - binding)
}

/// Returns the indices of the items in the order of their places in the text. Items at one place
/// keep their order.
fn by_place<T>(all: &[T], span: impl Fn(&T) -> Span) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| span(&all[*index]));
    order
}

/// Returns the index of the first item that touches `offset`. Names do not overlap.
fn touching(by_place: &[usize], offset: usize, span: impl Fn(usize) -> Span) -> Option<usize> {
    let after = by_place.partition_point(|index| span(*index).start <= offset);
    by_place[..after].iter().rev().copied().take_while(|index| offset <= span(*index).end).min()
}

impl Binding {
    /// Returns the extent of the innermost scope around `offset`. The innermost scope ends first,
    /// and among those that end together begins last.
    fn extent(&self, offset: usize) -> Option<(usize, usize)> {
        let around = self.scopes.iter().filter(|scope| scope.start <= offset && offset <= scope.end);
        let shared = self.shared.as_deref().and_then(|shared| {
            let after = shared.partition_point(|scope| scope.start <= offset);
            shared[..after].last().filter(|scope| offset <= scope.end)
        });
        around.chain(shared).map(|scope| (scope.end, usize::MAX - scope.start)).min()
    }
}

#[cfg(test)]
#[path = "scopes/tests.rs"]
mod tests;
