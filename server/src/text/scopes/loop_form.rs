//! `loop`: `for`, `as`, `with`, `using` and `into` bind.

use super::super::Span;
use super::super::datum::{Kind, Node, Prefix};
use super::{BindingKind, Space, Walk};

/// Words of `loop` that are no variables.
const WORDS: &str = " for as with and in on across being the each of hash-key hash-keys hash-value hash-values symbol symbols \
present-symbol present-symbols external-symbol external-symbols using from upfrom downfrom to upto downto below above by then = \
do doing collect collecting append appending nconc nconcing sum summing count counting maximize maximizing minimize minimizing into \
while until always never thereis when if unless else end finally initially return repeat named it of-type fixnum float t nil ";

fn is_word(name: &str) -> bool {
    let name = name.trim_start_matches(':');
    WORDS.contains(&format!(" {name} "))
}

/// Walks the clauses `rest` of `(loop ...)`.
pub(super) fn walk(walk: &mut Walk<'_>, node: &Node, rest: &[Node]) {
    if rest.first().is_none_or(|first| first.kind == Kind::List) {
        return walk.body(rest); // the simple loop
    }
    let whole = Span { start: rest.first().map_or(node.span.start, |first| first.span.start), end: node.span.end };
    let mut binding = false;
    let mut with = false;
    let mut at = 0;
    while let Some(part) = rest.get(at) {
        at += 1;
        let word = walk.form.name(part).filter(|_| part.kind == Kind::Atom && part.prefix == Prefix::None);
        let Some(word) = word.map(|word| word.trim_start_matches(':').to_owned()) else {
            walk.expression(part);
            continue;
        };
        match word.as_str() {
            "for" | "as" | "with" => (binding, with) = (true, word == "with"),
            "and" => {}
            "using" => {
                if let Some(list) = rest.get(at) {
                    if let Some(name) = list.children.get(1) {
                        walk.bind(name, BindingKind::Variable, "loop", vec![whole]);
                    }
                    at += 1;
                }
                continue;
            }
            "into" | "named" => {
                match rest.get(at) {
                    Some(name) if word == "into" => walk.bind_once(name, whole),
                    Some(name) => walk.bind(name, BindingKind::Block, "loop", vec![whole]),
                    None => {}
                }
                at += 1;
                continue;
            }
            "of-type" => {
                at += 1;
                continue;
            }
            _ => {
                if is_word(&word) {
                    if matches!(
                        word.as_str(),
                        "do" | "doing" | "while" | "until" | "when" | "if" | "unless" | "collect" | "return"
                    ) {
                        binding = false;
                    }
                } else {
                    walk.used(part, Space::Variable);
                }
                continue;
            }
        }
        if let Some(name) = rest.get(at).filter(|_| binding) {
            at += 1;
            let start = outer_end(walk, with, &rest[at..]).unwrap_or(name.span.end);
            let scope = vec![Span { start, end: node.span.end }];
            variables(walk, name, &scope);
        }
    }
}

/// The end of the first expression in the clause `rest` of a variable, when it is evaluated before
/// the variable is bound. That of `for x = ...` is evaluated afterwards.
fn outer_end(walk: &Walk<'_>, with: bool, rest: &[Node]) -> Option<usize> {
    let word = |node: &Node| walk.form.name(node).map(|name| name.trim_start_matches(':').to_owned());
    let first = rest.first()?;
    let rest = match word(first).as_deref() {
        Some("of-type") => rest.get(2..)?,
        Some("fixnum" | "float" | "t" | "nil") => &rest[1..],
        _ => rest,
    };
    let [introduced, expression, ..] = rest else { return None };
    let outer = match word(introduced)?.as_str() {
        "=" => with,
        "in" | "on" | "across" | "from" | "upfrom" | "downfrom" | "to" | "upto" | "downto" | "below" | "above" => !with,
        _ => false,
    };
    outer.then_some(expression.span.end)
}

fn variables(walk: &mut Walk<'_>, name: &Node, scopes: &[Span]) {
    match name.kind {
        Kind::Atom => walk.bind(name, BindingKind::Variable, "loop", scopes.to_vec()),
        Kind::List => name.children.iter().for_each(|child| variables(walk, child, scopes)),
        _ => {}
    }
}

impl Walk<'_> {
    /// `into` names the same variable more than once.
    fn bind_once(&mut self, name: &Node, scope: Span) {
        let known = self.form.name(name).is_some_and(|written| !self.into.insert((written, scope)));
        if known {
            self.used(name, Space::Variable);
        } else {
            self.bind(name, BindingKind::Variable, "loop", vec![scope]);
        }
    }
}
