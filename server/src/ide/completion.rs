//! Completion of the name at a position, from the text and from the index of the image's names.
//! Waits for the image only to complete the names of systems and features.

mod constructors;
mod files;
mod gather;
mod gone;
mod keywords;
pub(in crate::ide) mod loops;
mod matching;
mod package_clause;
pub(in crate::ide) mod position;
mod prefixed;
mod rank;
mod reader;
mod slots;
pub(in crate::ide) mod vocabulary;
mod words;
mod workspace;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use self::gather::{Candidate, Sources};
use self::matching::Pattern;
use self::position::ExpectedName;
use self::words::Used;
use super::context::{Backend, Cursor};
use super::described::{self, Described};
use super::fixes::packages::{Clause, Definition, add};
use super::name_index::{NameIndex, Package, Symbol};
use super::partial_name::{self, PartialName};
use super::standard_names;
use crate::image::api::package_contents::SystemNames;
use crate::image::api::symbols::{Complete, Completions, SymbolPart};
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::definitions;
use crate::text::loop_keywords;
use crate::text::names;

/// The maximum number of completions in one answer. The client sends another request as the user
/// types.
const LIMIT: usize = 100;
/// The maximum number of completions of a name outside a document.
const LIMIT_OUTSIDE: usize = 200;
/// The maximum number of other open texts whose definitions are offered.
const MAX_OPEN_TEXTS: usize = 20;

/// The completions of a partial name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// The part typed so far.
    pub typed: String,
    /// The span that a completion replaces.
    pub replace: Span,
    /// The completions, best first.
    pub items: Vec<Item>,
    /// True if the list may change with the next character typed.
    pub incomplete: bool,
    /// The reason why names of the workspace may be missing, as a clause for a person.
    pub left_out: Option<String>,
}

/// A completion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Item {
    /// The text to insert.
    pub label: String,
    /// `argument` for a keyword argument or initarg, else what the name means: `function`,
    /// `macro`, `variable`, `class`, `package`, `file`, ...
    pub kind: String,
    /// A description in a few words.
    pub detail: String,
    /// The package of a symbol of the image.
    pub package: Option<String>,
    /// A symbol of the image with its package, escaped, for [`describe`].
    pub symbol: Option<String>,
    /// The parameters of an operator, as far as they are known.
    pub parameters: String,
    /// The required parameters of an operator that is called here.
    pub required: Vec<String>,
    /// An edit elsewhere in the document that the completion needs: an import.
    pub import: Option<(Span, String)>,
}

/// Returns the completions at the cursor. Returns `None` in comments, in strings other than names
/// of files, and where the reader allows no name. Systems are looked for in `workspace`.
pub async fn complete<B: Backend>(cursor: &Cursor<B>, workspace: &Path) -> Option<Completed> {
    let (document, offset) = (&cursor.document, cursor.offset);
    if let Some((system, typed, replace)) = files::system_of_version(document, offset) {
        let workspace = workspace.to_owned();
        let found = tokio::task::spawn_blocking(move || files::versions(&system, &workspace)).await.ok()?;
        let pattern = Pattern::new(&typed);
        let scored = |item: Item| pattern.score(&item.label).map(|fit| (item, fit));
        return Some(best(typed, replace, found.into_iter().filter_map(scored).collect()));
    }
    if files::is_system(document, offset)
        && let Some(found) = systems(cursor, workspace).await
    {
        return Some(found);
    }
    if let Some(syntax) = reader::syntax_at(document, offset) {
        return reader::completions(cursor, syntax).await;
    }
    let Some(name) = partial_name::context(document, offset) else { return file_names(cursor).await };
    let (mut index, current) = cursor.context.names();
    if index.package("COMMON-LISP", None).is_none() {
        index = standard_names::index();
    }
    let known = name.package.as_deref().and_then(|name| index.package(name, None)).cloned();
    let loaded = known.is_some();
    let package = known.or_else(|| of_texts(cursor, &name, &index));
    // A name in an unknown package is completed as in CL-USER, which has at least the standard's
    // names.
    let package = package.or_else(|| index.package("COMMON-LISP-USER", None).cloned());
    let scope = (&*index, package.as_deref());
    let words = words::near(document, name.replace.start, offset);
    let mut found = of_name(cursor, &name, scope, loaded, words);
    let order = |(a, x): &(Item, f32), (b, y): &(Item, f32)| {
        y.total_cmp(x).then_with(|| a.label.len().cmp(&b.label.len())).then_with(|| a.label.cmp(&b.label))
    };
    found.sort_by(order);
    if gone::lower(cursor, &mut found).await {
        found.sort_by(order);
    }
    let upper_case = name.typed.chars().any(char::is_uppercase) && !name.typed.chars().any(char::is_lowercase);
    let mut seen = HashSet::new();
    let mut items: Vec<Item> = found
        .into_iter()
        .map(|(item, _)| item)
        .filter(|one| seen.insert((one.label.to_lowercase(), one.import.is_some())))
        .collect();
    let more = items.len() > LIMIT;
    items.truncate(LIMIT);
    if upper_case {
        items.iter_mut().filter(|one| !one.label.contains('|')).for_each(|one| one.label = one.label.to_uppercase());
    }
    // Order and selection are valid only for the text typed so far.
    let incomplete = more || !current || !name.typed.is_empty();
    let left_out = cursor.context.last_texts_index().incomplete.clone();
    Some(Completed { typed: name.typed, replace: name.replace, items, incomplete, left_out })
}

/// Returns the package in force as a text defines it, for a package that does not exist in the
/// image. The result has no symbols, but the used packages and the local nicknames.
fn of_texts<B: Backend>(cursor: &Cursor<B>, name: &PartialName, index: &NameIndex) -> Option<Arc<Package>> {
    let wanted = name.package.as_deref()?;
    let workspace = cursor.context.last_texts_index();
    let mut defined = workspace.files.iter().flat_map(|file| &file.packages);
    let defined = defined.find(|one| one.name == wanted || one.nicknames.iter().any(|nickname| nickname == wanted))?;
    let real = |name: &String| index.package(name, None).map(|package| package.name.clone());
    let uses = defined.uses.iter().filter_map(real).collect();
    let local = defined.local.iter().filter_map(|(local, of)| Some((local.clone(), real(of)?))).collect();
    Some(Arc::new(Package::defined(defined.name.clone(), uses, local)))
}

/// Returns the completions of a name with their scores, in any order. `loaded` is true if the
/// package in force exists in the image.
fn of_name<B: Backend>(
    cursor: &Cursor<B>,
    name: &PartialName,
    scope: (&NameIndex, Option<&Package>),
    loaded: bool,
    words: HashMap<String, Used>,
) -> Vec<(Item, f32)> {
    let (document, offset) = (&cursor.document, cursor.offset);
    let typed = name.typed.as_str();
    let workspace = cursor.context.last_texts_index();
    if name.packages {
        return prefixed::packages(typed, scope, (&words, &workspace));
    }
    let form = Form::at(document, offset);
    if let Some(clause) = form.as_ref().and_then(|form| package_clause::at(form, name.replace.start)) {
        let mut found = package_clause::names(&clause, typed, (scope.0, &workspace), &words);
        if typed.starts_with(':') {
            let others = keywords::keywords(cursor, typed, scope, &words).into_iter();
            found.extend(others.map(|(item, score)| (item, score - 60.0)));
        }
        return found;
    }
    if typed.starts_with(':') {
        return keywords::keywords(cursor, typed, scope, &words);
    }
    let wanted = form
        .as_ref()
        .map_or(ExpectedName::Value, |form| position::expected_name(form, name.replace.start, !typed.is_empty()));
    if names::prefix_length(typed) > 0 {
        return prefixed::symbols(typed, scope, (&words, &workspace), &wanted, 2 * LIMIT);
    }
    let pattern = Pattern::new(typed.trim_start_matches("#:"));
    if typed.starts_with('&') {
        return fixed(vocabulary::LAMBDA_LIST, &pattern, "lambda list keyword", &words, 0.0);
    }
    let mut found = match wanted {
        ExpectedName::Loop(ref fitting) => {
            let mut found = fixed(&fitting.join(" "), &pattern, "loop keyword", &words, 200.0);
            found.extend(fixed(loop_keywords::ALL, &pattern, "loop keyword", &words, 20.0));
            found
        }
        ExpectedName::Declaration => fixed(vocabulary::DECLARATIONS, &pattern, "declaration", &words, 80.0),
        ExpectedName::Slot(ref instance) => slots::slots(cursor, form.as_ref(), scope, instance.as_deref(), &pattern),
        _ => Vec::new(),
    };
    if typed.is_empty() {
        found.extend(keywords::keywords(cursor, typed, scope, &words));
    }
    let bindings = form.as_ref().map(|form| partial_name::bindings(document, form, offset)).unwrap_or_default();
    let others = cursor.context.open().filter(|other| !other.text().is_instance(document.text())).take(MAX_OPEN_TEXTS);
    let others = others.filter(|other| crate::text::forms::package_at(other, other.text().len_chars()) == name.package);
    let sources = Sources {
        index: scope.0,
        package: scope.1,
        loaded,
        bindings,
        defined: partial_name::toplevel_names(document, Some(name.replace.start)),
        defined_elsewhere: others.flat_map(|other| partial_name::toplevel_names(other, None)).collect(),
        workspace: workspace::names(
            &workspace,
            &cursor.uri,
            name.package.as_deref().unwrap_or("COMMON-LISP-USER"),
            &pattern,
        ),
        words,
    };
    let importing = name.package.as_deref().and_then(|package| Definition::find(document, package));
    for candidate in gather::candidates(&sources, &pattern, &wanted, 2 * LIMIT) {
        let score = candidate.score;
        if candidate.elsewhere {
            found.extend(elsewhere(candidate, scope, importing.as_ref()));
        } else {
            found.push((item(candidate, &wanted), score));
        }
    }
    found
}

/// Returns the words of a fixed list that match, with their scores. `more` is added to each score.
fn fixed(list: &str, pattern: &Pattern, detail: &str, words: &HashMap<String, Used>, more: f32) -> Vec<(Item, f32)> {
    let scored = list.split_whitespace().filter_map(|word| Some((word, pattern.score(word)?)));
    let item = |(word, fit): (&str, f32)| {
        let near = words.get(word).map_or(0.0, |used| 8.0 * (1.0 + used.other as f32).ln());
        (
            Item { label: word.into(), kind: "keyword".into(), detail: detail.into(), ..Item::default() },
            fit + more + near,
        )
    };
    scored.map(item).collect()
}

fn item(candidate: Candidate, wanted: &ExpectedName) -> Item {
    let Candidate { label, symbol, local, .. } = candidate;
    let (package, described) = match symbol {
        Some((symbol, package)) => (Some(symbol.home().unwrap_or(&package.name).to_owned()), Some(symbol)),
        None => (None, None),
    };
    if let Some((detail, operator)) = local {
        let kind = match definitions::kind_of(&detail) {
            kind @ ("macro" | "class" | "structure" | "condition" | "type" | "constant") => kind.to_owned(),
            _ if operator => "function".to_owned(),
            _ => "variable".to_owned(),
        };
        return Item { label, kind, detail, ..Item::default() };
    }
    let Some(symbol) = described else {
        return Item { label, kind: "symbol".into(), detail: "in this text".into(), ..Item::default() };
    };
    let mut item = symbol_item(label, symbol, package.as_deref().unwrap_or_default());
    if *wanted == ExpectedName::Operator {
        item.required = symbol.required().map(str::to_owned).collect();
    }
    item
}

/// Returns the completion of a symbol of the image.
fn symbol_item(label: String, symbol: &Symbol, package: &str) -> Item {
    let bars = |name: &str| format!("|{}|", name.replace('\\', "\\\\").replace('|', "\\|"));
    Item {
        label,
        kind: symbol.kind().into(),
        detail: symbol.kind().into(),
        package: Some(package.to_owned()),
        parameters: symbol.parameters().to_owned(),
        symbol: Some(format!("{}::{}", bars(package), bars(symbol.name()))),
        ..Item::default()
    }
}

/// Returns the completions of a symbol of another package: with its prefix and, if the text defines
/// the package in force, with an import.
fn elsewhere(
    candidate: Candidate,
    (_, current): (&NameIndex, Option<&Package>),
    importing: Option<&Definition>,
) -> Vec<(Item, f32)> {
    let Some((symbol, package)) = candidate.symbol else { return Vec::new() };
    let local = current.and_then(|current| current.local.iter().find(|(_, meant)| *meant == package.name));
    let prefix = names::as_written(local.map_or(&package.name, |(nickname, _)| nickname));
    let label = format!("{prefix}:{}", candidate.label);
    let mut found = vec![(symbol_item(label, symbol, &package.name), candidate.score)];
    let clause = Clause::ImportFrom(&prefix, &candidate.label);
    if let Some(change) = importing.and_then(|definition| add(definition, &clause)) {
        let mut item = symbol_item(candidate.label.clone(), symbol, &package.name);
        item.detail = format!("{}, imported from {prefix}", item.detail);
        item.import = Some((change.span, change.text));
        found.push((item, candidate.score - 0.5));
    }
    found
}

/// Returns the completions of the file name in the string at the cursor.
async fn file_names<B: Backend>(cursor: &Cursor<B>) -> Option<Completed> {
    let partial = files::partial(&cursor.document, cursor.offset)?;
    let file = crate::file_uri::path_of_uri(&cursor.uri)?;
    let wanted = partial.clone();
    let found = tokio::task::spawn_blocking(move || files::files(&wanted, &file)).await.ok()?;
    Some(best(partial.typed, partial.replace, found))
}

/// Returns the completions of the name of a system at the cursor: a symbol, a keyword or a string.
async fn systems<B: Backend>(cursor: &Cursor<B>, workspace: &Path) -> Option<Completed> {
    let (document, offset) = (&cursor.document, cursor.offset);
    let text = document.text();
    let delimiter = |char: char| char.is_whitespace() || matches!(char, '(' | ')' | '"' | '\'');
    let mut start = offset;
    while start > 0 && !delimiter(text.char(start - 1)) {
        start -= 1;
    }
    let typed = text.slice(start..offset).to_string();
    let bare = typed.trim_start_matches(['#', ':', '"']).to_owned();
    // Without an image, the names come only from the files.
    let known = cursor.context.query(SystemNames { text: bare }).await.map(|known| known.systems).unwrap_or_default();
    let (wanted, workspace) = (typed.clone(), workspace.to_owned());
    let found = tokio::task::spawn_blocking(move || files::systems(&wanted, &workspace, &known)).await.ok()?;
    let found = best(typed, Span { start, end: offset }, found);
    (!found.items.is_empty()).then_some(found)
}

fn best(typed: String, replace: Span, mut found: Vec<(Item, f32)>) -> Completed {
    found.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.label.cmp(&b.label)));
    let incomplete = found.len() > LIMIT || !typed.is_empty();
    let items = found.into_iter().take(LIMIT).map(|(item, _)| item).collect();
    Completed { typed, replace, items, incomplete, left_out: None }
}

/// Returns the completions of a name that is not in a document.
///
/// # Errors
/// The image does not answer.
pub async fn outside<B: Backend>(
    backend: &B,
    text: String,
    package: Option<String>,
    operator: bool,
) -> Result<Completions, crate::model::image::ImageError> {
    backend.query(Complete { text, package, limit: LIMIT_OUTSIDE, operator, packages: false }).await
}

/// The description of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The call with its parameters, or the kinds of the name.
    pub detail: Option<String>,
    /// The documentation, Markdown.
    pub documentation: Option<String>,
}

/// Describes a completion of the image by [`Item::symbol`]. Returns `None` if the image does not
/// answer.
pub async fn describe<B: Backend>(backend: &B, label: &str, symbol: &str) -> Option<Description> {
    let known = backend.symbol(symbol, None, &[SymbolPart::Facts]).await.ok()?;
    let detail = known.facts.as_ref().map(|facts| match &facts.lambda_list {
        Some(parameters) => described::signature(label.rsplit(':').next().unwrap_or(label), parameters),
        None => facts.kinds.join(", "),
    });
    let documentation = described::markdown(&Described { known: Some(&known), ..Described::default() });
    Some(Description { detail, documentation })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
