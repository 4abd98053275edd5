//! The signature of the call around a place, and the parameter that the current argument is for.

use super::context::{Backend, Cursor};
use super::definition_in_index::Named;
use super::indexed_definitions;
use crate::image::api::symbols::SymbolPart;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::definitions;
use crate::text::document::Document;
use crate::text::scopes::Scopes;

/// A call around a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSite {
    /// The operator as written.
    pub operator: String,
    /// The span of the call.
    pub span: Span,
    /// The arguments up to the place, as written. Of the prefixes, only a quote is kept. The last
    /// is the current argument, which is empty if none has begun there.
    pub arguments: Vec<String>,
    /// If the place is in a list that is the last of `arguments`: the elements of that list up to
    /// the place. Further entries are for the lists within that list, from outside to inside.
    pub inner: Vec<Vec<String>>,
}

/// A signature to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The text, such as `(scan regex target-string &key start end)`.
    pub label: String,
    /// Each parameter's place in the label, in characters. Lambda list keywords are left out.
    pub parameters: Vec<Span>,
    /// The parameter of the current argument: an index of `parameters`.
    pub active: Option<usize>,
}

/// A signature to show, with the documentation of the operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Help {
    /// The signature.
    pub signature: Signature,
    /// The operator's documentation.
    pub documentation: Option<String>,
}

/// The maximum depth to which lists within an argument are followed.
const MAX_DEPTH: usize = 8;
/// The maximum number of characters of an argument that are kept.
const MAX_CHARS: usize = 400;

/// Returns the signature of the innermost call around the cursor whose parameters are known. If the
/// cursor is in an argument that the lambda list of a surrounding macro destructures, returns the
/// macro's.
pub async fn help<B: Backend>(cursor: &Cursor<B>) -> Option<Help> {
    let package = cursor.package();
    let mut found: Option<(CallSite, Parameters)> = None;
    for (depth, site) in call_sites(&cursor.document, cursor.offset).into_iter().enumerate() {
        let Some(known) = parameters(cursor, &site, package.as_deref()).await else { continue };
        // A surrounding call counts only if it is of a macro that destructures the current
        // argument.
        if depth > 0 && !destructures(&known.names, &site) {
            found = found.or(Some((site, known)));
            continue;
        }
        found = Some((site, known));
        if depth > 0 {
            break;
        }
    }
    let (site, known) = found?;
    Some(Help { signature: signature(&site.operator, &known.names, &site), documentation: known.documentation })
}

/// The parameters of an operator.
#[derive(Debug)]
pub(super) struct Parameters {
    /// The parameters as written, with the lambda list keywords.
    pub(super) names: Vec<String>,
    /// The operator's documentation.
    documentation: Option<String>,
}

/// Returns the parameters of a call's operator: from a local function, from the image, from an open
/// text, or from another file of the workspace.
pub(super) async fn parameters<B: Backend>(
    cursor: &Cursor<B>,
    site: &CallSite,
    package: Option<&str>,
) -> Option<Parameters> {
    let written = |document: &Document, list: Span| {
        let names = parts(&document.text().slice(list.start..list.end).to_string());
        Some(Parameters { names, documentation: None })
    };
    if let Some(form) = Form::at(&cursor.document, site.span.start) {
        let scopes = Scopes::of(&form);
        let local = scopes.resolve(site.span.start).and_then(|index| scopes.bindings[index].parameters);
        if let Some(list) = local {
            return written(&cursor.document, list);
        }
    }
    let known = cursor.context.symbol(&site.operator, package, &[SymbolPart::Facts]).await;
    if let Some(facts) = known.ok().and_then(|known| known.facts)
        && let Some(names) = facts.lambda_list
    {
        let documentation = facts.documentation.into_iter().next().map(|one| one.text);
        return Some(Parameters { names, documentation });
    }
    let key = definitions::key(&site.operator);
    let open = cursor.context.open().find_map(|document| {
        let list = definitions::named(document, &key).into_iter().find_map(|one| one.lambda_list)?;
        written(document, list)
    });
    if open.is_some() {
        return open;
    }
    let named = Named { name: site.operator.clone(), package: package.map(str::to_owned) };
    let mut texts = cursor.context.texts();
    let found = indexed_definitions::find(&cursor.context, &named, &mut texts).await;
    let list = found.into_iter().find_map(|one| one.lambda_list)?;
    Some(Parameters { names: parts(&list), documentation: None })
}

/// Returns the calls around `offset`, innermost first, at most three.
pub fn call_sites(document: &Document, offset: usize) -> Vec<CallSite> {
    let Some(form) = Form::at(document, offset) else { return Vec::new() };
    let lists: Vec<&Node> = form.path(offset).into_iter().filter(|node| node.kind == Kind::List).collect();
    let mut sites = Vec::new();
    for (index, list) in lists.iter().enumerate().rev() {
        let Some(head) = list.children.first().filter(|head| head.kind == Kind::Atom && head.span.end < offset) else {
            continue;
        };
        if form.name(head).is_none() {
            continue;
        }
        let inner =
            lists[index + 1..].iter().take(MAX_DEPTH).map(|inner| elements(&form, &inner.children, offset)).collect();
        sites.push(CallSite {
            operator: form.text(head).to_owned(),
            span: head.span,
            arguments: elements(&form, &list.children[1..], offset),
            inner,
        });
        if sites.len() == 3 {
            break;
        }
    }
    sites
}

/// Returns the elements up to `offset`, as written. The last is the current element, which is empty
/// if none has begun there.
fn elements(form: &Form, nodes: &[Node], offset: usize) -> Vec<String> {
    let written = |node: &Node| {
        let text: String = form.text(node).chars().take(MAX_CHARS).collect();
        if node.prefix == Prefix::Quote { format!("'{text}") } else { text }
    };
    let mut all: Vec<String> = nodes.iter().take_while(|node| node.span.start < offset).map(written).collect();
    let begun = nodes.iter().any(|node| node.span.start < offset && offset <= node.span.end);
    if !begun {
        all.push(String::new());
    }
    all
}

/// Returns the signature of `operator` with these parameters, one of which is marked as active.
pub fn signature(operator: &str, parameters: &[String], site: &CallSite) -> Signature {
    let mut label = Label::default();
    label.add("(");
    label.add(operator);
    let mut spans = Vec::new();
    render(parameters, site.arguments.as_slice(), &site.inner, &mut label, &mut spans);
    label.add(")");
    let active = spans.iter().position(|(_, active)| *active);
    Signature { label: label.text, parameters: spans.into_iter().map(|(span, _)| span).collect(), active }
}

/// Returns true if the current argument is for a parameter that is itself a list, such as a macro's
/// `(var list)`.
pub fn destructures(parameters: &[String], site: &CallSite) -> bool {
    !site.inner.is_empty() && active(parameters, &site.arguments).is_some_and(|index| is_nested(parameters, index))
}

fn is_nested(parameters: &[String], index: usize) -> bool {
    // After `&optional` and the like, a list is a parameter with a default.
    let plain = !parameters[..index].iter().any(|one| one.starts_with('&') && one != "&whole" && one != "&environment");
    plain && parameters[index].starts_with('(')
}

/// A label, with its length in characters.
#[derive(Default)]
struct Label {
    text: String,
    chars: usize,
}

impl Label {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.chars += text.chars().count();
    }
}

fn render(
    parameters: &[String],
    arguments: &[String],
    inner: &[Vec<String>],
    label: &mut Label,
    spans: &mut Vec<(Span, bool)>,
) {
    let at = active(parameters, arguments);
    for (index, parameter) in parameters.iter().enumerate() {
        if !label.text.ends_with('(') {
            label.add(" ");
        }
        let start = label.chars;
        let here = at == Some(index);
        if here && !inner.is_empty() && is_nested(parameters, index) {
            label.add("(");
            render(&parts(parameter), &inner[0], &inner[1..], label, spans);
            label.add(")");
            continue;
        }
        label.add(parameter);
        if !parameter.starts_with('&') {
            spans.push((Span { start, end: label.chars }, here));
        }
    }
}

/// Returns the elements of a list as written.
pub fn parts(list: &str) -> Vec<String> {
    let document = Document::new(list, 0);
    let Some(form) = Form::at(&document, 0) else { return Vec::new() };
    let children = form.nodes.first().map(|node| node.children.as_slice()).unwrap_or_default();
    children.iter().map(|child| form.text(child).to_owned()).collect()
}

/// Returns the index in `parameters` of the parameter for the last of `arguments`.
pub fn active(parameters: &[String], arguments: &[String]) -> Option<usize> {
    let last = arguments.len().checked_sub(1)?;
    let mut position = 0;
    let mut index = 0;
    while let Some(parameter) = parameters.get(index) {
        match parameter.to_ascii_lowercase().as_str() {
            "&optional" => {}
            "&whole" | "&environment" => index += 1,
            "&rest" | "&body" | "&more" => {
                let keys = parameters[index..].iter().position(|one| one.eq_ignore_ascii_case("&key"));
                match keys {
                    Some(keys) => return keyword(parameters, index + keys, &arguments[position..]),
                    None => return (index + 1 < parameters.len()).then_some(index + 1),
                }
            }
            "&key" => return keyword(parameters, index, &arguments[position..]),
            "&aux" => return None,
            _ if position == last => return Some(index),
            _ => position += 1,
        }
        index += 1;
    }
    None
}

/// Returns the index of the keyword parameter that the last argument names, or to which it gives
/// the value. `keys` is the index of `&key`.
fn keyword(parameters: &[String], keys: usize, arguments: &[String]) -> Option<usize> {
    let last = arguments.len().checked_sub(1)?;
    let named = if last % 2 == 0 { &arguments[last] } else { &arguments[last - 1] };
    let named = named.strip_prefix(':')?;
    parameters
        .iter()
        .enumerate()
        .skip(keys + 1)
        .find(|(_, one)| keyword_name(one).is_some_and(|name| name.eq_ignore_ascii_case(named)))
        .map(|(i, _)| i)
}

/// Returns the keyword of a parameter after `&key`, without its colon: from `start`, `(end 5)`,
/// `((:key variable) default)`.
pub fn keyword_name(parameter: &str) -> Option<String> {
    if parameter.starts_with('&') {
        return None;
    }
    let first = if parameter.starts_with('(') { parts(parameter).into_iter().next()? } else { parameter.to_owned() };
    let first = if first.starts_with('(') { parts(&first).into_iter().next()? } else { first };
    Some(first.rsplit(':').next().unwrap_or(&first).to_lowercase())
}

/// Returns the keywords that a call with these parameters accepts, with their colons, without those
/// already given.
pub fn keywords(parameters: &[String], given: &[String]) -> Vec<String> {
    let Some(keys) = parameters.iter().position(|one| one.eq_ignore_ascii_case("&key")) else { return Vec::new() };
    let all = parameters.iter().skip(keys + 1).take_while(|one| !one.eq_ignore_ascii_case("&aux"));
    let names = all.filter_map(|one| keyword_name(one)).map(|name| format!(":{name}"));
    names.filter(|name| !given.iter().any(|one| one.eq_ignore_ascii_case(name))).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::ide::fake::{FakeImage, cursor, run};

    fn shown(source: &str, parameters: &str) -> String {
        let caret = source.chars().position(|char| char == '‸').expect("a caret");
        let document = Document::new(&source.replace('‸', ""), 0);
        let parameters = parts(parameters);
        let sites = call_sites(&document, caret);
        let Some(site) = sites.iter().find(|site| site.operator == "f") else { return "no call".into() };
        let signature = signature("f", &parameters, site);
        let active = signature.active.map(|index| signature.parameters[index]);
        let mark = |(at, char): (usize, char)| match active {
            Some(span) if at == span.start => format!("[{char}"),
            Some(span) if at == span.end => format!("]{char}"),
            _ => char.to_string(),
        };
        signature.label.chars().enumerate().map(mark).collect()
    }

    #[test]
    fn the_active_parameter() {
        for (source, parameters, expected) in [
            ("(f ‸", "(a b)", "(f [a] b)"),
            ("(f x ‸)", "(a b)", "(f a [b])"),
            ("(f x y ‸)", "(a b)", "(f a b)"),
            ("(f (g x) y‸)", "(a &optional (b 1) c)", "(f a &optional [(b 1)] c)"),
            ("(f 1 2 3 ‸)", "(a &rest more)", "(f a &rest [more])"),
            ("(f 1 :end ‸)", "(a &key start (end 5))", "(f a &key start [(end 5)])"),
            ("(f 1 :start 2 :end‸)", "(a &key start (end 5))", "(f a &key start [(end 5)])"),
            ("(f 1 ‸)", "(a &key start)", "(f a &key start)"),
            ("(f 1 :k ‸)", "(a &key ((:k v) 1))", "(f a &key [((:k v) 1)])"),
            ("(f (x ‸) 1)", "((var list &optional result) &body body)", "(f (var [list] &optional result) &body body)"),
            ("(f (x y) ‸)", "((var list &optional result) &body body)", "(f (var list &optional result) &body [body])"),
        ] {
            assert_eq!(shown(source, parameters), expected, "{source} {parameters}");
        }
    }

    #[test]
    fn keywords_that_are_left() {
        let parameters = parts("(a &key start (end 5) ((:k v)) &allow-other-keys)");
        assert_eq!(keywords(&parameters, &[":END".into()]), [":start", ":k"]);
    }

    /// Compares the signature at the cursor, with the active parameter between `[` and `]`.
    fn check(image: FakeImage, text: &str, expected: Expect) {
        let Some(Help { signature, documentation }) = run(help(&cursor(image, &[("a.lisp", text)]))) else {
            return expected.assert_eq("nothing\n");
        };
        let active = signature.active.map(|index| signature.parameters[index]);
        let marked = signature.label.chars().enumerate().map(|(at, char)| match active {
            Some(span) if at == span.start => format!("[{char}"),
            Some(span) if at == span.end => format!("]{char}"),
            _ => char.to_string(),
        });
        let label: String = marked.collect();
        expected.assert_eq(&format!("{label}\n{}\n", documentation.unwrap_or_default()));
    }

    #[test]
    fn the_signature_comes_from_the_text_or_the_image() {
        let image = || {
            FakeImage::empty().function("scan", &["regex", "target", "&key", "start"], "Searches.").function(
                "do-lines",
                &["(line stream)", "&body", "body"],
                "",
            )
        };
        check(
            image(),
            "(flet ((scan (x) x))\n  (scan ‸))",
            expect![[r#"
            (scan [x])

        "#]],
        );
        check(
            image(),
            "(scan x ‸)",
            expect![[r#"
            (scan regex [target] &key start)
            Searches.
        "#]],
        );
        check(
            image(),
            "(scan x (1+ ‸))",
            expect![[r#"
            (scan regex [target] &key start)
            Searches.
        "#]],
        );
        check(
            image(),
            "(do-lines (l ‸) (f))",
            expect![[r#"
            (do-lines (line [stream]) &body body)

        "#]],
        );
        check(
            FakeImage::absent(),
            "(defun twice (n) (* 2 n))\n(twice ‸)",
            expect![[r#"
            (twice [n])

        "#]],
        );
        check(
            image(),
            "(nowhere ‸)",
            expect![[r#"
            nothing
        "#]],
        );
    }
}
