//! Patterns of lists, as data: `(when (not ?x) ?*body)`. `?x` stands for one form, the same one at
//! each of its places. `?*body` stands for the rest of a list, and `?_` for any form. A template
//! describes the text that replaces a matched list.

use super::Span;
use super::datum::{Form, Kind, Node};
use super::document::Document;
use super::names;

/// The maximum length of a pattern, in bytes.
const MAX_BYTES: usize = 2_000;
/// The maximum number of forms of a pattern.
const MAX_FORMS: usize = 200;
/// The maximum number of levels of a pattern.
const MAX_LEVELS: usize = 40;

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    list: Element,
    variables: Vec<Variable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    /// True for `?*name`.
    rest: bool,
    /// True if the variable has a prefix in the pattern (`'?x`). Its value is then without the
    /// prefix.
    inner: bool,
}

/// A form of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Element {
    /// The prefixes, without white space, such as `'` or `#'`.
    prefixes: String,
    part: Part,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Any,
    Variable(usize),
    Symbol(names::Symbol),
    /// A number or a character in lower case, or a string.
    Literal(String),
    List {
        vector: bool,
        elements: Vec<Element>,
        /// The variable for the rest of the list; `Some(None)` for any rest.
        rest: Option<Option<usize>>,
    },
}

/// The forms that the variables of a pattern stand for.
#[derive(Debug)]
pub struct Bound<'n> {
    ones: Vec<Option<&'n Node>>,
    rests: Vec<&'n [Node]>,
}

/// A function that returns true if a pattern's symbol with a package prefix and a text's symbol are
/// the same symbol.
pub type SameSymbol<'a> = &'a dyn Fn(&names::Symbol, &names::Symbol) -> bool;

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// The fault, as the rest of a sentence about the pattern.
    pub fn read(text: &str) -> Result<Pattern, String> {
        let form = only_form(text)?;
        let [list] = form.nodes.as_slice() else { return Err("is no single form".into()) };
        if list.kind != Kind::List || !list.is_plain() {
            return Err("is no list: a rule tells of lists".into());
        }
        let mut reading = Reading { form: &form, variables: Vec::new(), count: 0, named: false };
        let list = reading.element(list, 0)?;
        if !reading.named {
            return Err("names nothing, and would match every list".into());
        }
        Ok(Pattern { list, variables: reading.variables })
    }

    /// Returns the values of the variables, if `list` matches. Symbols with a package prefix are
    /// compared by `same`.
    pub fn matched<'n>(&self, form: &Form, list: &'n Node, same: SameSymbol) -> Option<Bound<'n>> {
        let count = self.variables.len();
        let mut bound = Bound { ones: vec![None; count], rests: vec![&[]; count] };
        matches(&self.list, form, list, same, &mut bound).then_some(bound)
    }
}

/// Returns the only form of a text. The text must be balanced, and at most [`MAX_BYTES`] long.
fn only_form(text: &str) -> Result<Form, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("has {} bytes, and may have {MAX_BYTES}", text.len()));
    }
    let document = Document::new(text, 0);
    let form = Form::of(&document, Span { start: 0, end: text.chars().count() });
    if !form.balanced || document.scan().forms().iter().any(|top| top.fault.is_some()) {
        return Err("does not balance".into());
    }
    if form.nodes.len() != 1 {
        return Err(format!("has {} forms, and must be one", form.nodes.len()));
    }
    Ok(form)
}

/// Returns the name of a variable from its written form, `?x` or `?*x`, and true for the latter.
fn variable(written: &str) -> Option<(&str, bool)> {
    let name = written.strip_prefix('?')?;
    Some(name.strip_prefix('*').map_or((name, false), |rest| (rest, true)))
}

struct Reading<'a> {
    form: &'a Form,
    variables: Vec<Variable>,
    count: usize,
    /// True once a symbol or a literal was read.
    named: bool,
}

impl Reading<'_> {
    fn element(&mut self, node: &Node, level: usize) -> Result<Element, String> {
        self.count += 1;
        if self.count > MAX_FORMS || level > MAX_LEVELS {
            return Err(format!("has more than {MAX_FORMS} forms or {MAX_LEVELS} levels"));
        }
        if node.guarded {
            return Err("has #+ or #-, which a pattern cannot have".into());
        }
        let written = self.form.text(node);
        let prefixes: String = self.form.prefixes(node).split_whitespace().collect();
        if prefixes.contains([';', '|', '=']) {
            return Err(format!("has {prefixes} before {written}, which a pattern cannot have"));
        }
        let part = match node.kind {
            Kind::List | Kind::Vector => self.list(node, level)?,
            Kind::String => self.literal(written.to_owned()),
            Kind::Atom => match variable(written) {
                Some((name, true)) => return Err(format!("has ?*{name} before other forms: it is the rest of a list")),
                Some(("" | "_", false)) => Part::Any,
                Some((name, false)) => Part::Variable(self.variable(name, false, !prefixes.is_empty())?),
                None => match names::symbol(written) {
                    Some(symbol) => {
                        self.named = true;
                        Part::Symbol(symbol)
                    }
                    None => self.literal(written.to_lowercase()),
                },
            },
        };
        Ok(Element { prefixes, part })
    }

    fn literal(&mut self, written: String) -> Part {
        self.named = true;
        Part::Literal(written)
    }

    fn list(&mut self, node: &Node, level: usize) -> Result<Part, String> {
        let mut children = node.children.as_slice();
        let mut rest = None;
        if let Some((last, before)) = children.split_last()
            && last.kind == Kind::Atom
            && let Some((name, true)) = variable(self.form.text(last))
        {
            if !last.is_plain() {
                return Err(format!("has a prefix before ?*{name}, which is the rest of a list"));
            }
            children = before;
            rest = Some(name.to_owned());
        }
        let elements: Result<Vec<Element>, String> =
            children.iter().map(|child| self.element(child, level + 1)).collect();
        let elements = elements?;
        let rest = match rest.as_deref() {
            None => None,
            Some("" | "_") => Some(None),
            Some(name) => Some(Some(self.variable(name, true, false)?)),
        };
        Ok(Part::List { vector: node.kind == Kind::Vector, elements, rest })
    }

    fn variable(&mut self, name: &str, rest: bool, inner: bool) -> Result<usize, String> {
        let name = name.to_lowercase();
        let one = Variable { name, rest, inner };
        let Some(at) = self.variables.iter().position(|other| other.name == one.name) else {
            self.variables.push(one);
            return Ok(self.variables.len() - 1);
        };
        let name = &one.name;
        if rest || self.variables[at].rest {
            return Err(format!("has ?*{name}, the rest of a list, and another {name}"));
        }
        if self.variables[at].inner != inner {
            return Err(format!("has ?{name} with a prefix and without one"));
        }
        Ok(at)
    }
}

fn matches<'n>(element: &Element, form: &Form, node: &'n Node, same: SameSymbol, bound: &mut Bound<'n>) -> bool {
    let is_open = matches!(element.part, Part::Any | Part::Variable(_)) && element.prefixes.is_empty();
    if node.guarded || !is_open && !has_prefixes(form, node, &element.prefixes) {
        return false;
    }
    match &element.part {
        Part::Any => true,
        Part::Variable(at) => match bound.ones[*at] {
            None => {
                bound.ones[*at] = Some(node);
                true
            }
            Some(before) => is_same(form, before, node),
        },
        Part::Symbol(wanted) => {
            let written = form.text(node);
            let symbol = names::symbol(written).filter(|_| node.kind == Kind::Atom && !written.starts_with('#'));
            symbol.is_some_and(|symbol| is_symbol(wanted, &symbol, same))
        }
        Part::Literal(wanted) => match node.kind {
            Kind::String => form.text(node) == wanted,
            Kind::Atom => form.text(node).eq_ignore_ascii_case(wanted),
            _ => false,
        },
        Part::List { vector, elements, rest } => {
            let kind = if *vector { Kind::Vector } else { Kind::List };
            let children = node.children.as_slice();
            let long = if rest.is_some() { children.len() >= elements.len() } else { children.len() == elements.len() };
            if node.kind != kind || !long || children.iter().any(|child| child.guarded) {
                return false;
            }
            let (own, behind) = children.split_at(elements.len());
            if let Some(Some(at)) = rest {
                bound.rests[*at] = behind;
            }
            elements.iter().zip(own).all(|(element, child)| matches(element, form, child, same, bound))
        }
    }
}

fn has_prefixes(form: &Form, node: &Node, wanted: &str) -> bool {
    form.prefixes(node).chars().filter(|char| !char.is_whitespace()).eq(wanted.chars())
}

/// Returns true if `symbol` matches `wanted`, a symbol of the pattern. If `wanted` has no package
/// prefix, it matches a symbol of any package, but no keyword.
fn is_symbol(wanted: &names::Symbol, symbol: &names::Symbol, same: SameSymbol) -> bool {
    let keyword = |symbol: &names::Symbol| symbol.package.as_deref() == Some("");
    wanted.name == symbol.name
        && keyword(wanted) == keyword(symbol)
        && (keyword(wanted) || wanted.package.is_none() || same(wanted, symbol))
}

/// Returns true if two forms differ only in white space, comments and the case of symbols.
fn is_same(form: &Form, one: &Node, other: &Node) -> bool {
    one.kind == other.kind
        && !one.guarded
        && !other.guarded
        && has_prefixes(form, one, &form.prefixes(other).split_whitespace().collect::<String>())
        && one.children.len() == other.children.len()
        && match one.kind {
            Kind::List | Kind::Vector => {
                one.children.iter().zip(&other.children).all(|(one, other)| is_same(form, one, other))
            }
            Kind::String => form.text(one) == form.text(other),
            Kind::Atom => match (names::symbol(form.text(one)), names::symbol(form.text(other))) {
                (Some(one), Some(other)) => one == other,
                _ => form.text(one) == form.text(other),
            },
        }
}

/// The text that replaces a matched list, with the places of the variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    One {
        at: usize,
        inner: bool,
    },
    /// The rest of a list. `before` is the white space before it, which is left out if there are no
    /// forms.
    Rest {
        at: usize,
        before: String,
    },
}

impl Template {
    /// Reads the text that replaces lists that match a pattern.
    ///
    /// # Errors
    /// The fault, as the rest of a sentence about the template.
    pub fn read(text: &str, pattern: &Pattern) -> Result<Template, String> {
        fn atoms<'a>(form: &'a Form, nodes: &'a [Node], found: &mut Vec<&'a Node>) -> Result<(), String> {
            for node in nodes {
                if node.guarded {
                    return Err("has #+ or #-, which it cannot have".into());
                }
                if node.kind == Kind::Atom && variable(form.text(node)).is_some() {
                    found.push(node);
                }
                atoms(form, &node.children, found)?;
            }
            Ok(())
        }
        let form = only_form(text.trim())?;
        let mut found = Vec::new();
        atoms(&form, &form.nodes, &mut found)?;
        let mut pieces = Vec::new();
        let mut done = 0;
        for node in found {
            let written = form.text(node);
            let (name, rest) = variable(written).unwrap_or_default();
            let name = name.to_lowercase();
            let known = pattern.variables.iter().position(|one| one.name == name && one.rest == rest);
            let Some(at) = known else { return Err(format!("has {written}, which the pattern does not have")) };
            let start = node.end() - written.len();
            let before = form.source.get(done..start).unwrap_or_default();
            let (text, space) = before.split_at(if rest { before.trim_end().len() } else { before.len() });
            pieces.push(Piece::Text(text.to_owned()));
            pieces.push(match rest {
                true => Piece::Rest { at, before: space.to_owned() },
                false => Piece::One { at, inner: pattern.variables[at].inner },
            });
            done = node.end();
        }
        pieces.push(Piece::Text(form.source.get(done..).unwrap_or_default().to_owned()));
        Ok(Template(pieces))
    }

    /// Returns the text that replaces a list, or `None` if it would lose a comment.
    pub fn fill(&self, form: &Form, list: &Node, bound: &Bound) -> Option<String> {
        let mut text = String::new();
        let mut kept = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(written) => text.push_str(written),
                Piece::One { at, inner } => {
                    let node = bound.ones.get(*at).copied().flatten()?;
                    text.push_str(if *inner { form.text(node) } else { form.written(node) });
                    kept.push((node.start(), node.end()));
                }
                Piece::Rest { at, before } => {
                    let nodes = bound.rests.get(*at).copied().unwrap_or_default();
                    if let (Some(first), Some(last)) = (nodes.first(), nodes.last()) {
                        text.push_str(before);
                        text.push_str(form.source.get(first.start()..last.end())?);
                        kept.push((first.start(), last.end()));
                    }
                }
            }
        }
        kept.sort_unstable();
        let mut done = list.start();
        for (start, end) in kept.into_iter().chain([(list.end(), list.end())]) {
            if form.source.get(done..start).is_some_and(|lost| lost.contains([';', '|'])) {
                return None;
            }
            done = done.max(end);
        }
        Some(text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn rewritten(pattern: &str, rewrite: &str, text: &str) -> Option<String> {
        let pattern = Pattern::read(pattern).unwrap();
        let template = Template::read(rewrite, &pattern).unwrap();
        let form = Form::of(&Document::new(text, 0), Span { start: 0, end: text.chars().count() });
        let same = |wanted: &names::Symbol, symbol: &names::Symbol| wanted.package == symbol.package;
        let bound = pattern.matched(&form, &form.nodes[0], &same)?;
        Some(template.fill(&form, &form.nodes[0], &bound).unwrap_or_else(|| "a comment".into()))
    }

    #[test]
    fn variables_stand_for_forms() {
        for (pattern, rewrite, text, expected) in [
            (
                "(when (not ?x) ?*body)",
                "(unless ?x ?*body)",
                "(WHEN (not 'a) b\n ; c\n c)",
                Some("(unless 'a b\n ; c\n c)"),
            ),
            ("(when (not ?x) ?*body)", "(unless ?x ?*body)", "(when (not a))", Some("(unless a)")),
            ("(when (not ?x) ?*body)", "(unless ?x ?*body)", "(when (not a b) c)", None),
            ("(setq ?x ?x)", "?x", "(setq (a b) (A  b))", Some("(a b)")),
            ("(setq ?x ?x)", "?x", "(setq (a b) (a c))", None),
            ("(f ?_ ?_)", "nil", "(f 1 2)", Some("nil")),
            ("(f '?x #'?y)", "(g ?x ?y)", "(f 'a #'(lambda () 1))", Some("(g a (lambda () 1))")),
            ("(f '?x)", "(g ?x)", "(f a)", None),
            ("(f \"S\" 1.0e0 #\\a :key)", "(g)", "(f \"S\" 1.0E0 #\\A :KEY)", Some("(g)")),
            ("(f \"S\")", "(g)", "(f \"s\")", None),
            ("(f :key)", "(g)", "(f key)", None),
            ("(f key)", "(g)", "(f :key)", None),
            ("(f)", "(g)", "(p:f)", Some("(g)")),
            ("(p:f)", "(g)", "(p::f)", Some("(g)")),
            ("(p:f)", "(g)", "(q:f)", None),
            ("(f ?*)", "(g)", "(f #+a b)", None),
            ("(f #(1 ?x))", "(?x)", "(f #(1 2))", Some("(2)")),
            ("(f ?x)", "(g ?x)", "(f ; why\n x)", Some("a comment")),
            ("(f ?*xs)", "(?*xs)", "(f a b)", Some("(a b)")),
            ("(?f (?f 1))", "(?f 1)", "(g (g 1))", Some("(g 1)")),
        ] {
            assert_eq!(rewritten(pattern, rewrite, text).as_deref(), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_wrong_pattern_says_why() {
        let deep = format!("{}x{}", "(".repeat(60), ")".repeat(60));
        let long = format!("(f {})", "x".repeat(MAX_BYTES));
        let many = format!("(f {})", "x ".repeat(MAX_FORMS));
        for (pattern, why) in [
            ("", "0 forms"),
            ("(a", "balance"),
            ("(a))", "balance"),
            ("(a) (b)", "2 forms"),
            ("a", "no list"),
            ("'(a)", "no list"),
            ("?x", "no list"),
            ("(?x ?y)", "every list"),
            ("(?*x)", "every list"),
            ("(f ?*x y)", "before other forms"),
            ("(f ?x (g ?*x))", "another x"),
            ("(f ?*x (g ?*x))", "before other forms"),
            ("(f (g ?*x) ?*x)", "another x"),
            ("(f '?x ?x)", "without one"),
            ("(f '?*x)", "prefix"),
            ("(f #+a b)", "#+"),
            ("(f #1=a)", "#1="),
            (deep.as_str(), "levels"),
            (long.as_str(), "bytes"),
            (many.as_str(), "forms"),
        ] {
            let message = Pattern::read(pattern).unwrap_err();
            assert!(message.contains(why), "{pattern}: {message}");
        }
        let pattern = Pattern::read("(f ?x ?*y)").unwrap();
        for (rewrite, why) in [
            ("(g", "balance"),
            ("(g ?z)", "?z"),
            ("(g ?y)", "?y"),
            ("(g #+a ?x)", "#+"),
            ("", "0 forms"),
            ("?x ?x", "2 forms"),
        ] {
            let message = Template::read(rewrite, &pattern).unwrap_err();
            assert!(message.contains(why), "{rewrite}: {message}");
        }
    }
}
