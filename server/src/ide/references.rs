//! The references to a name, with their kinds. They are those that the compiler recorded, located
//! in the current texts, and the mentions in the workspace's texts, whether loaded or not.

mod kinds;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::context::{Backend, Context, Cursor};
use super::index::{Packages, Snapshot};
use super::named_symbols;
use super::places::{self, Defined, Target};
use super::texts::{Text, Texts};
use crate::image::api::name_operations::{Named, ReferenceCount};
use crate::image::api::symbols::{Reference, SymbolAnswer, SymbolPart};
use crate::model::image::ImageError;
use crate::text::Span;
use crate::text::cancellation;
use crate::text::datum::Form;
use crate::text::definitions::{self, Hint};
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::names;
use crate::text::position::line_column;
use crate::text::scopes::Scopes;
pub use kinds::{Kind, Use, calls};

/// The number of references after which no further text is searched.
const MAX_REFERENCES: usize = 10_000;

/// The number of references between two reports of progress. At each report, the search yields to
/// the scheduler, so that it can be cancelled.
const PROGRESS_INTERVAL: usize = 16;

/// A function that reports the number of finished steps and the number of all steps.
pub type Step<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// A place that refers to a name.
#[derive(Debug, Clone)]
pub struct Referred {
    /// The kind, by the position of the name in the text. If a macro wrote the reference, the kind
    /// that the compiler recorded.
    pub kind: Kind,
    /// True if the name is that of a function or macro at this place.
    pub called: bool,
    /// The text.
    pub text: Arc<Text>,
    /// The span of the name. If a macro wrote the reference, the span of the referring definition's
    /// name.
    pub span: Span,
}

impl Referred {
    /// Returns the place as a target for the client.
    pub fn target(&self) -> Target {
        Target { uri: self.text.uri.clone(), text: Some(self.text.document.text().clone()), span: self.span }
    }
}

/// The references to a global name, and its definitions.
#[derive(Debug, Default)]
pub struct Found {
    /// The references. Those that the compiler recorded come first.
    pub references: Vec<Referred>,
    /// The definitions.
    pub definitions: Vec<Target>,
    /// The reason why references may be missing, as a clause for a person: the index of the
    /// workspace's texts is incomplete.
    pub incomplete: Option<String>,
    /// The number of calls in files outside of the workspace that the compiler recorded and that
    /// were not located.
    pub more: usize,
}

/// The places of a name.
#[derive(Debug, Default)]
pub struct Occurrences {
    /// The places.
    pub targets: Vec<Target>,
    /// The reason why places may be missing ([`Found::incomplete`]).
    pub incomplete: Option<String>,
}

/// Returns the references to the name at the cursor: calls, macro expansions, bindings, settings,
/// reads and specializers. For a local name, returns its occurrences. Returns `None` if there is no
/// name.
pub async fn at<B: Backend>(cursor: &Cursor<B>, with_declaration: bool) -> Option<Occurrences> {
    let here = cursor.symbol_here()?;
    let local = !here.designated && !is_special(&here.written);
    if let Some(form) = Form::at(&cursor.document, cursor.offset).filter(|_| local) {
        let scopes = Scopes::of(&form);
        if let Some(index) = scopes.resolve(cursor.offset) {
            let own = scopes.bindings[index].span;
            let spans = scopes.occurrences(index).into_iter().filter(|span| with_declaration || *span != own);
            let targets = spans.map(|span| cursor.target(span)).collect();
            return Some(Occurrences { targets, incomplete: None });
        }
    }
    let mut texts = cursor.context.texts();
    let found = of_name(&cursor.context, &here.written, here.package.as_deref(), &mut texts).await;
    let references = found.references.iter().filter(|one| with_declaration || one.kind != Kind::Defines);
    // A set, because a text may have as many definitions of the name as references to it.
    let defined: HashSet<(&str, Span)> = found.definitions.iter().map(|one| (one.uri.as_str(), one.span)).collect();
    let used = references.map(Referred::target).filter(|one| !defined.contains(&(one.uri.as_str(), one.span)));
    let declarations = found.definitions.iter().filter(|_| with_declaration).cloned();
    Some(Occurrences { targets: places::distinct(declarations.chain(used)), incomplete: found.incomplete })
}

/// Returns the references to a global name and its definitions. `written` is the name as written in
/// `package`.
pub async fn of_name<B: Backend>(
    context: &Context<B>,
    written: &str,
    package: Option<&str>,
    texts: &mut Texts,
) -> Found {
    of_name_in_steps(context, written, package, texts, usize::MAX, &|_, _| {}).await
}

/// Does the same as [`of_name`], and calls `step` to report the progress. Leaves out calls in files
/// outside of the workspace if the compiler recorded more than `most` calls.
pub async fn of_name_in_steps<B: Backend>(
    context: &Context<B>,
    written: &str,
    package: Option<&str>,
    texts: &mut Texts,
    most: usize,
    step: Step<'_>,
) -> Found {
    let want = [SymbolPart::References, SymbolPart::Definitions, SymbolPart::Facts];
    let mut known = context.symbol(written, package, &want).await.unwrap_or_default();
    let index = context.texts_index().await;
    let more = known.references.as_mut().map_or(0, |recorded| keep_first(recorded, &index, most));
    let references = all(context, written, package, (&known, &index), texts, step).await;
    let own = places::defined_anywhere(Some(&known), written, package, texts).await;
    let definitions = own.iter().map(Defined::target).collect();
    Found { references, definitions, incomplete: index.incomplete, more }
}

/// Keeps `most` of the calls that the compiler recorded, and all those in the index's files, which
/// the search of the texts finds anyway. Keeps all other references. Returns the number of the
/// calls that are left out.
fn keep_first(recorded: &mut Vec<Reference>, index: &Snapshot, most: usize) -> usize {
    // A call in code without a file is never located.
    let is_call = |one: &Reference| Kind::of(&one.kind).is_call() && one.place.file.is_some();
    let calls = recorded.iter().filter(|one| is_call(one)).count();
    if calls <= most {
        return 0;
    }
    let files: HashSet<&Path> = index.files.iter().map(|file| file.path.as_path()).collect();
    let is_outside =
        |one: &Reference| is_call(one) && one.place.file.as_deref().is_some_and(|file| !files.contains(file));
    let outside = recorded.iter().filter(|one| is_outside(one)).count();
    let mut kept = most.saturating_sub(calls - outside);
    let before = recorded.len();
    recorded.retain(|one| {
        if !is_outside(one) {
            return true;
        }
        let keeps = kept > 0;
        kept = kept.saturating_sub(1);
        keeps
    });
    before - recorded.len()
}

/// Returns the references to a global name that are of the given kinds, in the order of the files.
/// If no kind is given, returns those of all kinds.
pub async fn of_kinds<B: Backend>(context: &Context<B>, written: &str, package: Option<&str>, kinds: &[Kind]) -> Found {
    let mut found = of_name(context, written, package, &mut context.texts()).await;
    found.references.retain(|one| one.kind != Kind::Defines && (kinds.is_empty() || kinds.contains(&one.kind)));
    found.references.sort_by(|one, other| (&one.text.path, one.span).cmp(&(&other.text.path, other.span)));
    found
}

/// Returns the kinds that words name.
///
/// # Errors
/// A sentence about the first word that names no kind.
pub fn kinds(words: &[String]) -> Result<Vec<Kind>, String> {
    let one = |word: &String| {
        let found = Kind::CHOICES.iter().find(|(_, known)| known == word).map(|(kind, _)| *kind);
        found.ok_or_else(|| {
            let known: Vec<&str> = Kind::CHOICES.iter().map(|(_, word)| *word).collect();
            format!("{word:?} is no kind of reference. The kinds are {}.", known.join(", "))
        })
    };
    words.iter().map(one).collect()
}

/// Returns true if a name, by its asterisks, is that of a special variable. Special variables have
/// no local bindings.
fn is_special(written: &str) -> bool {
    let name = definitions::key(written);
    name.len() > 2 && name.starts_with('*') && name.ends_with('*')
}

/// Returns the number of places in loaded code that refer to a name.
///
/// # Errors
/// The image does not answer.
pub async fn count<B: Backend>(backend: &B, name: String, package: Option<String>) -> Result<u64, ImageError> {
    let named = Named { name: Some(name), package, session: String::new() };
    Ok(backend.query(ReferenceCount(named)).await?.count)
}

/// Returns the file and the 1-based line of each reference that the image reports. The line is that
/// of the first mention of `written` in the referring definition, or else of that definition. It is
/// `None` if the text does not contain the definition.
pub async fn lines(
    written: &str,
    known: &[Reference],
    features: &[String],
    texts: &mut Texts,
) -> Vec<Option<(std::path::PathBuf, usize)>> {
    let key = definitions::key(written);
    let mut found = Vec::new();
    for reference in known {
        found.push(line_of_reference(&key, reference, features, texts).await);
    }
    found
}

async fn line_of_reference(
    key: &str,
    reference: &Reference,
    features: &[String],
    texts: &mut Texts,
) -> Option<(std::path::PathBuf, usize)> {
    let file = reference.place.file.as_ref()?;
    let text = texts.get(file).await?;
    let form_at = |span| Arc::new(Form::of(&text.document, span));
    let (place, top) = referrer(reference, &text.document, features, form_at)?;
    let uses = kinds::named(&Form::of(&text.document, top), key, true);
    let at = uses.iter().find(|one| one.kind != Kind::Defines).map_or(place.name.start, |one| one.span.start);
    Some((file.clone(), line_column(text.document.text(), at).line))
}

/// Returns the definition that contains a reference, and the span of its top-level form.
fn referrer(
    reference: &Reference,
    document: &Document,
    features: &[String],
    form_at: impl FnOnce(Span) -> Arc<Form>,
) -> Option<(definitions::Place, Span)> {
    let by = reference.by.split(" (").next().unwrap_or_default();
    let hint = Hint {
        kind: "",
        key: definitions::key(by),
        offset: reference.place.offset,
        form: reference.place.form,
        features,
        ..Hint::default()
    };
    let place = definitions::locate_in(document, &hint, form_at)?;
    let top = document.scan().form_at(place.form.start).map_or(place.form, |form| form.span);
    Some((place, top))
}

/// Returns the places of the references that the image reports, and of those in the texts of the
/// workspace. `written` is read in `package`.
async fn all<B: Backend>(
    context: &Context<B>,
    written: &str,
    package: Option<&str>,
    (known, index): (&SymbolAnswer, &Snapshot),
    texts: &mut Texts,
    step: Step<'_>,
) -> Vec<Referred> {
    let key = definitions::key(written);
    let kinds = known.facts.as_ref().map(|facts| facts.kinds.as_slice()).unwrap_or_default();
    let special = is_special(written) || kinds.iter().any(|kind| kind == "variable");
    let packages = index.packages();
    let name = names::symbol(written).map(|symbol| symbol.name).unwrap_or_default();
    let own = home(&packages, written, package);
    let is_macro = kinds.iter().any(|kind| kind == "macro")
        || kinds.is_empty() && {
            let mut all = index.mentioning(&name).flat_map(|file| &file.definitions);
            all.any(|one| one.key == key && one.kind() == "macro")
        };
    let kind_of = |one: &kinds::Use| if is_macro && one.kind == Kind::Calls { Kind::Macroexpands } else { one.kind };
    let mut seen: HashSet<(std::path::PathBuf, Span)> = HashSet::new();
    let mut found = recorded(known, &key, special, kind_of, texts, step).await;
    found.retain(|one| seen.insert((one.text.path.clone(), one.span)));
    // The compiler does not record all mentions, and some of the files are not loaded. Therefore
    // the texts are searched. Symbols of COMMON-LISP and of SBCL are searched for in open files
    // only.
    let mut same = SamePackages { context, key: &key, package, known, answers: HashMap::new() };
    let owner = known.facts.as_ref().and_then(|facts| facts.package.as_deref());
    let everybody = owner.is_some_and(|owner| owner == "COMMON-LISP" || owner.starts_with("SB-"));
    for file in index.mentioning(&name) {
        if found.len() >= MAX_REFERENCES || everybody && file.open.is_none() {
            continue;
        }
        let Some(text) = texts.get(&file.path).await else { continue };
        for top in text.document.scan().forms() {
            let raw = text.document.text().slice(top.span.start..top.span.end).to_string();
            // A name with escapes can be written in several ways.
            if !raw.to_lowercase().contains(&key) && !raw.contains(['|', '\\']) {
                continue;
            }
            let here = package_at(&text.document, top.span.start);
            let form = Form::of(&text.document, top.span);
            let designated = named_symbols::all(&form);
            let reader = here_or_user(here.as_deref());
            for one in designated.iter().filter(|one| one.name == name && one.home(&packages, &reader) == own) {
                if seen.insert((text.path.clone(), one.whole)) {
                    found.push(Referred { kind: Kind::Mentions, called: false, text: text.clone(), span: one.span });
                }
            }
            let designators: HashSet<Span> = designated.iter().map(|one| one.whole).collect();
            let elsewhere = |one: &kinds::Use| !designators.contains(&one.span);
            for one in kinds::named(&form, &key, special).into_iter().filter(elsewhere) {
                cancellation::unwind_if_cancelled();
                let prefix = names::symbol(&one.written).and_then(|symbol| symbol.package);
                let meant = match &prefix {
                    Some(prefix) => packages.package_name(prefix, &reader),
                    None => reader.clone(),
                };
                let certain = packages.get(&meant).is_some() && packages.home(&meant, &name) == own;
                let prefixed = prefix.is_some() && (packages.get(&meant).is_none() || certain);
                if (prefixed || certain || prefix.is_none() && same.has(here.as_deref()).await)
                    && seen.insert((text.path.clone(), one.span))
                {
                    let (kind, called) = (kind_of(&one), one.called);
                    found.push(Referred { kind, called, text: text.clone(), span: one.span });
                }
            }
        }
    }
    found
}

/// Returns the places of the references that the image reports: each mention in the referring
/// definition, or the definition's name if there is no mention.
async fn recorded(
    known: &SymbolAnswer,
    key: &str,
    special: bool,
    kind_of: impl Fn(&kinds::Use) -> Kind,
    texts: &mut Texts,
    step: Step<'_>,
) -> Vec<Referred> {
    /// A definition that contains references: its text, the span of its name, the span of its
    /// top-level form, and the recorded kinds of the references.
    type Referrer = (Arc<Text>, Span, Span, Vec<Kind>);
    let features = known.features.as_deref().unwrap_or_default();
    let mut referrers: Vec<Referrer> = Vec::new();
    let mut places: HashMap<(std::path::PathBuf, Span), usize> = HashMap::new();
    let references = known.references.as_deref().unwrap_or_default();
    // Several references may be in one form. Each form is read once.
    let mut forms: HashMap<(usize, Span), Arc<Form>> = HashMap::new();
    let mut form_of = |text: &Arc<Text>, span: Span| {
        forms
            .entry((Arc::as_ptr(text) as usize, span))
            .or_insert_with(|| Arc::new(Form::of(&text.document, span)))
            .clone()
    };
    for (done, reference) in references.iter().enumerate() {
        if done % PROGRESS_INTERVAL == 0 {
            step(done, 2 * references.len());
            tokio::task::yield_now().await;
        }
        let Some(file) = &reference.place.file else { continue };
        let Some(text) = texts.get(file).await else { continue };
        let found = referrer(reference, &text.document, features, |span| form_of(&text, span));
        let Some((place, top)) = found else { continue };
        let at = *places.entry((text.path.clone(), place.name)).or_insert_with(|| {
            referrers.push((text.clone(), place.name, top, Vec::new()));
            referrers.len() - 1
        });
        referrers[at].3.push(Kind::of(&reference.kind));
    }
    let mut found = Vec::new();
    let count = referrers.len();
    for (done, (text, name, top, recorded)) in referrers.into_iter().enumerate() {
        if done % PROGRESS_INTERVAL == 0 {
            step(references.len() + done * references.len() / count, 2 * references.len());
            tokio::task::yield_now().await;
        }
        let first = recorded.first().copied().unwrap_or(Kind::Mentions);
        let uses = kinds::named(&form_of(&text, top), key, special);
        // True if a use in the text accounts for a recorded reference. Mentions then remain
        // mentions.
        let certain = uses.iter().any(|one| one.called || recorded.contains(&kind_of(one)));
        for one in &uses {
            // A macro may use a name in another way than its position suggests. The recorded kind
            // then counts.
            let by_text = kind_of(one);
            let sure = one.called || matches!(by_text, Kind::Defines | Kind::Sets | Kind::Binds);
            let mentioned = (certain || one.skipped) && by_text == Kind::Mentions;
            let kind = if sure || mentioned || recorded.contains(&by_text) { by_text } else { first };
            let called = one.called || kind.is_call();
            found.push(Referred { kind, called, text: text.clone(), span: one.span });
        }
        if uses.iter().all(|one| one.kind == Kind::Defines) {
            found.push(Referred { kind: first, called: first.is_call(), text, span: name });
        }
    }
    found
}

fn here_or_user(here: Option<&str>) -> String {
    here.unwrap_or("COMMON-LISP-USER").to_owned()
}

/// Returns the home package of a symbol as far as the texts declare it. `written` is the name as
/// written in `package`.
pub fn home(packages: &Packages<'_>, written: &str, package: Option<&str>) -> String {
    let symbol = names::symbol(written);
    let here = here_or_user(package);
    let prefix = symbol.as_ref().and_then(|symbol| symbol.package.as_deref()).filter(|prefix| !prefix.is_empty());
    let meant = prefix.map_or_else(|| here.clone(), |prefix| packages.package_name(prefix, &here));
    packages.home(&meant, &symbol.map(|symbol| symbol.name).unwrap_or_default())
}

/// The packages in which a name without a prefix is the wanted symbol: the symbol's own package,
/// and those that use that package or import the symbol. The image tells which packages these are;
/// `answers` has its answers so far.
struct SamePackages<'a, B> {
    context: &'a Context<B>,
    key: &'a str,
    package: Option<&'a str>,
    known: &'a SymbolAnswer,
    answers: HashMap<String, bool>,
}

impl<B: Backend> SamePackages<'_, B> {
    async fn has(&mut self, here: Option<&str>) -> bool {
        if here == self.package {
            return true;
        }
        let (Some(here), Some(wanted)) = (here, &self.known.facts) else { return false };
        if let Some(answer) = self.answers.get(here) {
            return *answer;
        }
        let there = self.context.symbol(self.key, Some(here), &[SymbolPart::Facts]).await.unwrap_or_default();
        let same = there.facts.is_some_and(|facts| facts.name == wanted.name && facts.package == wanted.package);
        self.answers.insert(here.to_owned(), same);
        same
    }
}

#[cfg(test)]
mod tests;
