//! The bindings of `loop`, by `for`, `as`, `with`, `using` and `into`. A `loop` keyword is
//! recognised by its place, because a variable may be called `count`.

use std::sync::Arc;

use super::super::Span;
use super::super::datum::{Form, Kind, Node, Prefix};
use super::super::loop_keywords::{ACCUMULATIONS, CONDITIONALS, SEQUENCES, STATEMENTS, TESTS, is_in};
use super::{BindingKind, Walk};

/// Type names that may follow a variable without `of-type`.
const TYPES: &str = "fixnum float t nil";

/// A part of a `loop` form.
enum Part<'a> {
    /// An expression. If it is evaluated before the variables of a group are bound, the index of
    /// that group.
    Code(&'a Node, Option<usize>),
    /// A variable of a group.
    Variable(&'a Node, usize),
    /// A variable that `into` names.
    Into(&'a Node, usize),
    /// The name of the loop.
    Named(&'a Node),
}

/// The clauses of a `loop`.
struct Clauses<'a> {
    form: &'a Form,
    rest: &'a [Node],
    at: usize,
    parts: Vec<Part<'a>>,
    /// The ends of the groups of variables that are bound at once.
    ends: Vec<usize>,
}

/// Walks the clauses `rest` of `(loop ...)`.
pub(super) fn walk(walk: &mut Walk<'_>, node: &Node, rest: &[Node]) {
    let Some(first) = rest.first().filter(|first| first.kind != Kind::List) else {
        return walk.body(rest); // a simple loop
    };
    let mut clauses = Clauses { form: walk.form, rest, at: 0, parts: Vec::new(), ends: vec![first.span.start] };
    clauses.read();
    let Clauses { parts, ends, .. } = clauses;
    // All variables are visible in these expressions, even in clauses before the variables' own.
    let inner = parts.iter().filter_map(|part| match part {
        Part::Code(code, None) => Some(code.span),
        _ => None,
    });
    let inner: Arc<[Span]> = inner.collect();
    let whole = Span { start: first.span.start, end: node.span.end };
    let behind = |group: &usize| vec![Span { start: ends[*group], end: node.span.end }];
    for part in &parts {
        match part {
            Part::Code(code, _) => walk.expression(code),
            Part::Variable(name, group) => variables(walk, name, &behind(group), &inner),
            Part::Into(name, group) => walk.bind_once(name, whole, behind(group), &inner),
            Part::Named(name) => walk.bind(name, BindingKind::Block, "loop", vec![whole]),
        }
    }
}

impl<'a> Clauses<'a> {
    fn node(&self) -> Option<&'a Node> {
        self.rest.get(self.at)
    }

    /// Returns the word at the current place, or `None` for an expression that is no word.
    fn word(&self) -> Option<String> {
        let node = self.node().filter(|node| node.kind == Kind::Atom && node.prefix == Prefix::None)?;
        self.form.name(node).map(|word| word.trim_start_matches(':').to_owned())
    }

    fn is(&self, words: &str) -> bool {
        self.word().is_some_and(|word| is_in(&word, words))
    }

    /// Records the expression at the current place, and moves to the place after it.
    fn code(&mut self, group: Option<usize>) {
        if let Some(node) = self.node() {
            self.parts.push(Part::Code(node, group));
            self.at += 1;
        }
    }

    /// Returns the index of the group that is bound last.
    fn last(&self) -> usize {
        self.ends.len() - 1
    }

    fn read(&mut self) {
        // True after `with`, false after `for` or `as`. An `and` continues with the same kind.
        let mut binding: Option<bool> = None;
        // True after a condition. The next clause can name its value `it`.
        let mut conditional = false;
        while self.node().is_some() {
            let Some(word) = self.word() else {
                self.code(None);
                continue;
            };
            self.at += 1;
            let joined = word == "and" && binding.is_some();
            match word.as_str() {
                "for" | "as" | "with" | "and" if word != "and" || joined => {
                    let with = if joined { binding == Some(true) } else { word == "with" };
                    binding = Some(with);
                    if !joined {
                        self.ends.push(0);
                    }
                    self.variable(with);
                    if let (Some(end), Some(last)) =
                        (self.ends.last_mut(), self.rest.get(self.at - 1).or(self.rest.last()))
                    {
                        *end = last.span.end;
                    }
                    continue;
                }
                "repeat" => {
                    // `repeat` counts in a variable of its own, which forms a group.
                    let group = self.last() + 1;
                    self.code(Some(group));
                    self.ends.push(self.rest.get(self.at - 1).map_or(0, |last| last.span.end));
                }
                "named" => {
                    self.parts.extend(self.node().map(Part::Named));
                    self.at += 1;
                }
                "return" if conditional && self.is("it") => self.at += 1,
                "return" => self.code(None),
                "else" | "end" | "and" => {}
                _ if is_in(&word, TESTS) || is_in(&word, CONDITIONALS) => self.code(None),
                _ if is_in(&word, ACCUMULATIONS) => self.collecting(conditional),
                _ if is_in(&word, STATEMENTS) => {}
                // The word is not one of `loop`, so it is an expression.
                _ => {
                    self.at -= 1;
                    self.code(None);
                }
            }
            binding = None;
            conditional = is_in(&word, CONDITIONALS) || matches!(word.as_str(), "and" | "else");
        }
    }

    /// Records the variable after `for` or `with`, and its values.
    fn variable(&mut self, with: bool) {
        let group = self.last();
        let Some(name) = self.node() else { return };
        self.parts.push(Part::Variable(name, group));
        self.at += 1;
        if self.is("of-type") {
            self.at += 2;
        } else if self.is(TYPES) {
            self.at += 1;
        }
        if with {
            if self.is("=") {
                self.at += 1;
                self.code(Some(group));
            }
            return;
        }
        loop {
            // The expressions after these words are evaluated before the variable is bound.
            if self.is(SEQUENCES) || self.is("of") {
                self.at += 1;
                self.code(Some(group));
            } else if self.is("= then") {
                self.at += 1;
                self.code(None);
            } else if self.is("being") {
                // `being the hash-keys`
                self.at += 1;
                self.at += usize::from(self.is("the each"));
                self.at += 1;
            } else if self.is("using") {
                self.at += 1;
                let name = self.node().and_then(|list| list.children.get(1));
                self.parts.extend(name.map(|name| Part::Variable(name, group)));
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn collecting(&mut self, conditional: bool) {
        if conditional && self.is("it") {
            self.at += 1;
        } else {
            self.code(None);
        }
        if self.is("into") {
            self.at += 1;
            let group = self.last();
            self.parts.extend(self.node().map(|name| Part::Into(name, group)));
            self.at += 1;
        }
        if self.is("of-type") {
            self.at += 2;
        } else if self.is(TYPES) {
            self.at += 1;
        }
    }
}

fn variables(walk: &mut Walk<'_>, name: &Node, scopes: &[Span], inner: &Arc<[Span]>) {
    match name.kind {
        Kind::Atom => {
            walk.shared = Some(inner.clone());
            walk.bind(name, BindingKind::Variable, "loop", scopes.to_vec());
            walk.shared = None;
        }
        Kind::List => name.children.iter().for_each(|child| variables(walk, child, scopes, inner)),
        _ => {}
    }
}

impl Walk<'_> {
    /// Binds a variable that `into` names. If the same `loop` has bound the variable already, the
    /// name is a use of it.
    fn bind_once(&mut self, name: &Node, whole: Span, scopes: Vec<Span>, inner: &Arc<[Span]>) {
        let known = self.form.name(name).is_some_and(|written| !self.into.insert((written, whole)));
        if known {
            self.used(name, super::Namespace::Variable);
        } else {
            variables(self, name, &scopes, inner);
        }
    }
}
