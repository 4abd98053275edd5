//! Inlay hints (LSP 3.17): the names of parameters beside literal arguments, for calls with several
//! of these.

use std::collections::HashMap;

use super::context::Backend;
use super::signature;
use crate::image::api::symbols::SymbolPart;
use crate::text::Span;
use crate::text::cancellation;
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::scopes::Scopes;

/// The minimum number of literal arguments of a call that gets hints.
const MIN_LITERALS: usize = 2;

/// The maximum number of functions queried for one answer. Hints further down are computed when
/// they become visible.
const MAX_FUNCTIONS: usize = 100;
/// The maximum number of calls with hints in one answer.
const MAX_CALLS: usize = 5_000;

/// A call with literal arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The operator as written.
    pub operator: String,
    /// The parameters, if the operator is a local function.
    pub parameters: Option<Vec<String>>,
    /// The offset of each argument's first character, and true for a literal.
    pub arguments: Vec<(usize, bool)>,
}

/// Returns the hints in `range`, each with the offset before which it is shown. `calls` are the
/// calls in `range`, as [`calls`] returns them.
pub async fn in_range<B: Backend>(
    backend: &B,
    document: &Document,
    calls: Vec<Call>,
    range: Span,
) -> Vec<(usize, String)> {
    let mut known: HashMap<(String, Option<String>), Vec<String>> = HashMap::new();
    let mut shown = Vec::new();
    for call in calls.into_iter().take(MAX_CALLS) {
        let parameters = match &call.parameters {
            Some(parameters) => parameters.clone(),
            None => {
                let at = call.arguments.first().map_or(range.start, |(at, _)| *at);
                let name = (call.operator.clone(), package_at(document, at));
                if !known.contains_key(&name) {
                    if known.len() == MAX_FUNCTIONS {
                        break;
                    }
                    let parameters = parameters(backend, &name.0, name.1.as_deref()).await;
                    known.insert(name.clone(), parameters);
                }
                known.get(&name).cloned().unwrap_or_default()
            }
        };
        shown.extend(hints(&call, &parameters).into_iter().filter(|(at, _)| range.start <= *at && *at <= range.end));
    }
    shown
}

/// Returns the parameters of a function, or none if the name is unknown or not a function's.
async fn parameters<B: Backend>(backend: &B, name: &str, package: Option<&str>) -> Vec<String> {
    let known = backend.symbol(name, package, &[SymbolPart::Facts]).await;
    let facts = known.ok().and_then(|known| known.facts);
    let function =
        facts.filter(|facts| facts.kinds.iter().any(|kind| kind == "function" || kind == "generic function"));
    function.and_then(|facts| facts.lambda_list).unwrap_or_default()
}

/// Returns the calls that may have hints, in the forms that touch `range`.
pub fn calls(document: &Document, range: Span) -> Vec<Call> {
    let mut found = Vec::new();
    for top in document.scan().forms() {
        if top.span.end < range.start || range.end < top.span.start {
            continue;
        }
        let form = Form::of(document, top.span);
        let scopes = Scopes::of(&form);
        // The parameters of local functions, by the indices of their bindings.
        let mut known: HashMap<usize, Vec<String>> = HashMap::new();
        let mut lists: Vec<&Node> = form.nodes.iter().collect();
        while let Some(list) = lists.pop().filter(|_| !cancellation::should_stop()) {
            lists.extend(&list.children);
            let Some(head) = list.children.first().filter(|_| list.kind == Kind::List) else { continue };
            let arguments: Vec<(usize, bool)> =
                list.children[1..].iter().map(|one| (one.span.start, is_literal(&form, one))).collect();
            let many = arguments.iter().filter(|(_, literal)| *literal).count() >= MIN_LITERALS;
            if !many || !scopes.is_called(head.span) {
                continue;
            }
            let parameters = scopes.resolve(head.span.start).map(|index| {
                let read = || {
                    let list = scopes.bindings[index].parameters;
                    let list = list.map(|span| document.text().slice(span.start..span.end).to_string());
                    list.map(|list| signature::parts(&list)).unwrap_or_default()
                };
                let all = known.entry(index).or_insert_with(read);
                // One more than the number of arguments, because `&optional` may be among the
                // elements.
                all.iter().take(arguments.len() + 1).cloned().collect()
            });
            found.push(Call { operator: form.text(head).to_owned(), parameters, arguments });
        }
    }
    found.sort_by_key(|call| call.arguments.first().map(|(at, _)| *at));
    found
}

fn is_literal(form: &Form, node: &Node) -> bool {
    match (node.kind, node.prefix) {
        (Kind::String, Prefix::None) => true,
        (Kind::Atom, Prefix::None) => match form.name(node) {
            Some(name) => name.starts_with(':') || name == "t" || name == "nil",
            None => !form.text(node).starts_with("#."),
        },
        _ => false,
    }
}

/// Returns the hints of a call for literals of required and optional parameters, each as its offset
/// and its text.
pub fn hints(call: &Call, parameters: &[String]) -> Vec<(usize, String)> {
    let positional = parameters.iter().take_while(|one| !one.starts_with('&') || one.eq_ignore_ascii_case("&optional"));
    let names = positional.filter(|one| !one.starts_with('&')).filter_map(|one| signature::keyword_name(one));
    let hints: Vec<(usize, String)> = names
        .zip(&call.arguments)
        .filter(|(_, (_, literal))| *literal)
        .map(|(name, (at, _))| (*at, format!("{name}:")))
        .collect();
    if hints.len() < MIN_LITERALS { Vec::new() } else { hints }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ide::fake::{FakeImage, run};

    /// Returns the text with the hints that calls of `f` have.
    fn shown(source: &str, parameters: &str) -> String {
        let document = Document::new(source, 0);
        let mut text: Vec<char> = source.chars().collect();
        let mut all = Vec::new();
        for call in calls(&document, Span { start: 0, end: text.len() }) {
            let outer = (call.operator == "f").then(|| signature::parts(parameters));
            all.extend(hints(&call, &call.parameters.clone().or(outer).unwrap_or_default()));
        }
        all.sort();
        for (at, name) in all.into_iter().rev() {
            text.splice(at..at, name.chars().map(|char| if char == ':' { '=' } else { char }));
        }
        text.into_iter().collect()
    }

    #[test]
    fn literals_of_positional_parameters_are_named() {
        for (source, parameters, expected) in [
            ("(f 1 \"x\" y nil)", "(a b c d)", "(f a=1 b=\"x\" y d=nil)"),
            ("(f 1 2 3)", "(a &optional (b 1) &rest more)", "(f a=1 b=2 3)"),
            ("(f 1 :end 2)", "(a &key end)", "(f 1 :end 2)"),
            ("(f 1 x)", "(a b)", "(f 1 x)"),
            ("(f #\\a (f 1 2))", "(a b)", "(f #\\a (f a=1 b=2))"),
            ("'(f 1 2)", "(a b)", "'(f 1 2)"),
            ("(let ((f 1 2)) (g))", "(a b)", "(let ((f 1 2)) (g))"),
            ("(case x (f 1 2))", "(a b)", "(case x (f 1 2))"),
            ("(flet ((f (from to) from)) (f 1 2))", "(a b)", "(flet ((f (from to) from)) (f from=1 to=2))"),
            ("(f 'a #.(g) 1)", "(a b c)", "(f 'a #.(g) 1)"),
        ] {
            assert_eq!(shown(source, parameters), expected, "{source}");
        }
    }

    #[test]
    fn parameters_are_those_of_the_image_and_only_of_functions() {
        let image = FakeImage::empty().function("f", &["from", "to", "&key", "by"], "");
        let document = Document::new("(f 1 2 :by 3)\n(g 1 2)\n(f 4 5)", 0);
        let range = Span { start: 0, end: 20 };
        let shown = |image: &FakeImage| run(in_range(image, &document, calls(&document, range), range));
        assert_eq!(shown(&image), [(3, "from:".to_owned()), (5, "to:".to_owned())]);
        assert_eq!(shown(&FakeImage::absent()), []);
    }
}
