//! Completion of keywords: arguments of the call, initialization arguments, options of the
//! definition, and keywords of the texts and the image.

use std::collections::{HashMap, HashSet};

use super::matching::Pattern;
use super::words::Used;
use super::{Item, constructors, vocabulary};
use crate::ide::context::{Backend, Cursor};
use crate::ide::definition_in_index::{Named, TextSymbol, indexed};
use crate::ide::index::Indexed;
use crate::ide::initargs::{self, ClassNames};
use crate::ide::name_index::{NameIndex, Package, Symbol};
use crate::ide::signature::{self, CallSite};
use crate::text::datum::Form;
use crate::text::definitions;
use crate::text::document::Document;
use crate::text::names;
use crate::text::scopes::Scopes;

/// Returns the keywords that complete the typed text, with their scores.
pub(super) fn keywords<B: Backend>(
    cursor: &Cursor<B>,
    typed: &str,
    (index, package): (&NameIndex, Option<&Package>),
    words: &HashMap<String, Used>,
) -> Vec<(Item, f32)> {
    let pattern = Pattern::new(typed);
    let mut found: Vec<(String, String, f32)> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    let mut add = |name: String, detail: &str, more: f32| {
        let lower = name.to_lowercase();
        let Some(fit) = pattern.score(&lower) else { return };
        if !seen.insert(lower.clone()) {
            return;
        }
        // Keywords that are used nearby are likely to be used again.
        let near = words
            .get(&lower)
            .map_or(0.0, |used| 7.0 * (1.0 + used.other as f32).ln() + 20.0 * (-(used.distance as f32) / 1500.0).exp());
        found.push((name, detail.to_owned(), fit + more + near));
    };
    let sites = signature::call_sites(&cursor.document, cursor.offset);
    if let Some(site) = sites.first() {
        if let Some((class, given)) = initargs::class(site) {
            let detail = format!("initialization argument of {class}");
            let left = inherited_initargs(cursor, (index, package), &class);
            let left = left.into_iter().filter(|one| !given.iter().any(|given| given.eq_ignore_ascii_case(one)));
            left.for_each(|name| add(name, &detail, 100.0));
        }
        let given = site.arguments.split_last().map(|(_, given)| given).unwrap_or_default();
        let mut accepted = of_call(cursor, (index, package), site);
        if site.operator.to_lowercase().ends_with("with-open-file") {
            accepted.extend(index.written("cl:open", None).into_iter().flat_map(|open| open.keywords()));
        }
        let left = accepted.into_iter().filter(|name| !given.iter().any(|one| one.eq_ignore_ascii_case(name)));
        left.for_each(|name| add(name, "keyword argument", 80.0));
    }
    if !typed.is_empty() {
        for operator in operators_around(cursor) {
            let options = vocabulary::options(&operator).split_whitespace();
            options.for_each(|word| add(word.to_owned(), &format!("option of {operator}"), 40.0));
        }
        for word in words.iter().filter(|(word, _)| word.starts_with(':')).map(|(_, used)| used) {
            add(word.written.clone(), "keyword", 0.0);
        }
        for file in &cursor.context.last_texts_index().files {
            file.keywords.iter().for_each(|word| add(word.to_string(), "keyword", -25.0));
        }
        let all = index.package("KEYWORD", None).into_iter().flat_map(|all| all.symbols.iter().zip(&all.letters));
        let bare = Pattern::new(typed.trim_start_matches(':'));
        if typed.len() > 1 {
            for (symbol, _) in all.filter(|(_, letters)| bare.may_fit(**letters)) {
                if bare.score(symbol.lower()).is_some() {
                    add(format!(":{}", names::as_written(symbol.name())), "keyword", -40.0);
                }
            }
        }
    }
    let item = |(label, detail, score): (String, String, f32)| {
        let kind = if detail == "keyword" { "keyword" } else { "argument" };
        (Item { label, kind: kind.into(), detail, ..Item::default() }, score)
    };
    found.into_iter().map(item).collect()
}

/// Returns the operators of the lists around the place, innermost first.
fn operators_around<B: Backend>(cursor: &Cursor<B>) -> Vec<String> {
    let Some(form) = Form::at(&cursor.document, cursor.offset) else { return Vec::new() };
    let mut all: Vec<String> = form.path(cursor.offset).iter().filter_map(|node| form.operator(node)).collect();
    all.reverse();
    all
}

/// Returns the keywords of a call of a local function, of a function of the image, or of a
/// definition in the text.
fn of_call<B: Backend>(
    cursor: &Cursor<B>,
    (index, package): (&NameIndex, Option<&Package>),
    site: &CallSite,
) -> Vec<String> {
    let document = &cursor.document;
    let written = |document: &Document, list: crate::text::Span| {
        let names = signature::parts(&document.text().slice(list.start..list.end).to_string());
        signature::keywords(&names, &[])
    };
    if let Some(form) = Form::at(document, site.span.start) {
        let scopes = Scopes::of(&form);
        if let Some(list) = scopes.resolve(site.span.start).and_then(|at| scopes.bindings[at].parameters) {
            return written(document, list);
        }
    }
    if let Some(symbol) = index.written(&site.operator, package).filter(|symbol| symbol.function != b'-') {
        return symbol.keywords().collect();
    }
    let key = definitions::key(&site.operator);
    let named = definitions::named(document, &key);
    match named.into_iter().find_map(|one| one.lambda_list) {
        Some(list) => written(document, list),
        None => constructors::keywords(&cursor.context.last_texts_index(), &key),
    }
}

/// The maximum number of classes visited. The superclasses in texts may be circular.
const MAX_CLASSES: usize = 20;

/// Returns the initialization arguments of a class and of its superclasses in texts: from the open
/// texts first, then from the index of the image's names, then from the other files of the
/// workspace.
fn inherited_initargs<B: Backend>(
    cursor: &Cursor<B>,
    scope: (&NameIndex, Option<&Package>),
    class: &str,
) -> Vec<String> {
    let of_image = |symbol: &Symbol| symbol.initargs().map(str::to_owned).collect();
    inherited_names(cursor, scope, class, initargs::in_document, of_image, |one| &one.initargs)
}

/// Returns the slots of a class as written, from the same sources as [`inherited_initargs`].
pub(super) fn slots<B: Backend>(cursor: &Cursor<B>, scope: (&NameIndex, Option<&Package>), class: &str) -> Vec<String> {
    let of_image = |symbol: &Symbol| symbol.slots().map(str::to_owned).collect();
    let class = class.trim_start_matches('\'');
    inherited_names(cursor, scope, class, initargs::slots_in_document, of_image, |one| &one.slots)
}

/// Returns the names that a class has by its definition, with those of the superclasses that the
/// texts define. `of_text` returns the names of a class in a document, with the superclasses.
/// `of_image` returns those of a class in the image, and `of_file` those of a class in another
/// file.
fn inherited_names<B: Backend>(
    cursor: &Cursor<B>,
    (index, package): (&NameIndex, Option<&Package>),
    class: &str,
    of_text: fn(&str, &Document) -> Option<ClassNames>,
    of_image: fn(&Symbol) -> Vec<String>,
    of_file: fn(&Indexed) -> &Vec<String>,
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut classes = vec![Named { name: class.to_owned(), package: cursor.package() }];
    let mut at = 0;
    while let Some(class) = classes.get(at).cloned().filter(|_| at < MAX_CLASSES) {
        at += 1;
        let mut own = cursor.context.open().find_map(|document| of_text(&class.name, document));
        let of_image: Vec<String> = index.written(&class.name, package).into_iter().flat_map(of_image).collect();
        let mut home = class.package.clone();
        if own.is_none() && of_image.is_empty() {
            let files = cursor.context.last_texts_index();
            let meant = TextSymbol::of(&files, &class);
            let is_class = |kind: &str| matches!(kind, "class" | "condition");
            if let Some((_, one)) = indexed(&files, &meant, is_class).first() {
                own = Some((of_file(one).clone(), one.supers.clone()));
                home.clone_from(&one.package);
            }
        }
        let (own, supers) = own.unwrap_or_default();
        for name in own.into_iter().chain(of_image) {
            if !found.iter().any(|one| one.eq_ignore_ascii_case(&name)) {
                found.push(name);
            }
        }
        let new = supers.into_iter().map(|name| Named { name, package: home.clone() });
        let new: Vec<Named> = new.filter(|one| !classes.contains(one)).collect();
        classes.extend(new);
    }
    found
}
