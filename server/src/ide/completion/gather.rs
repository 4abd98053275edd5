//! The candidates for a name without a package prefix: from the texts, from the current package,
//! and exported by other packages.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::matching::Pattern;
use super::position::ExpectedName;
use super::rank::{self, CandidateFacts, Source};
use super::words::Used;
use crate::ide::name_index::{EXTERNAL, NameIndex, Package, Symbol};
use crate::ide::partial_name::Local;
use crate::text::definitions::kind_of;
use crate::text::names::as_written;

/// The maximum number of candidates from packages that the current one does not use.
const MAX_FROM_OTHER_PACKAGES: usize = 40;

/// The number subtracted from the score of a name of another package if the pattern has several
/// words. A name at hand that fits word by word, such as `create-scanner` for `c-s`, thus comes
/// before one of another package that begins with the pattern.
const ELSEWHERE_BY_PARTS: f32 = 210.0;

/// A candidate for the name.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    /// The name as written in the text, or in lower case as a symbol is written.
    pub(super) label: String,
    /// The score of [`rank::score`].
    pub(super) score: f32,
    /// The symbol of the image and the package through which it is seen.
    pub(super) symbol: Option<(&'a Symbol, &'a Package)>,
    /// For a name of a text: its kind or defining operator, and true if it is an operator.
    pub(super) local: Option<(String, bool)>,
    /// True if the name needs a package prefix or an import.
    pub(super) elsewhere: bool,
}

/// The sources of names.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    /// The index of the image's names.
    pub(super) index: &'a NameIndex,
    /// The current package; `None` if it is unknown, or if there is no image.
    pub(super) package: Option<&'a Package>,
    /// True if the image has the current package.
    pub(super) loaded: bool,
    /// The local bindings, innermost first.
    pub(super) bindings: Vec<Local>,
    /// The definitions of this text.
    pub(super) defined: Vec<Local>,
    /// The definitions of other open texts of the same package.
    pub(super) defined_elsewhere: Vec<Local>,
    /// The matching definitions of the workspace's other files.
    pub(super) workspace: Vec<Local>,
    /// The names written near the place, by their lower-case spelling.
    pub(super) words: HashMap<String, Used>,
}

/// A candidate while it is merged from its sources.
struct MergedCandidate<'a> {
    label: Option<&'a str>,
    fit: f32,
    source: Source,
    operator: Option<bool>,
    class: bool,
    detail: Option<&'a str>,
    symbol: Option<(&'a Symbol, &'a Package)>,
}

/// Returns the candidates, unordered: the best `most`, those with the same score as the last of
/// these, and up to [`MAX_FROM_OTHER_PACKAGES`] from other packages.
pub(super) fn candidates<'a>(
    sources: &'a Sources<'a>,
    pattern: &Pattern,
    wanted: &ExpectedName,
    most: usize,
) -> Vec<Candidate<'a>> {
    let mut texts = of_texts(sources, pattern, wanted);
    let mut found = of_package(sources, pattern);
    let mut all: Vec<(MergedCandidate<'a>, f32)> = Vec::with_capacity(found.len() + texts.len());
    let mut finish = |lower: &str, mut one: MergedCandidate<'a>| {
        one.symbol = one.symbol.map(|(symbol, package)| (at_home(sources.index, symbol), package));
        let known = CandidateFacts {
            fit: one.fit,
            source: one.source,
            operator: one.operator,
            class: one.class,
            symbol: one.symbol.map(|(symbol, _)| symbol),
            used: sources.words.get(lower),
            system: false,
            loaded: sources.loaded,
        };
        let score = rank::score(&known, wanted);
        all.push((one, score));
    };
    for (lower, mut one) in texts.drain() {
        if matches!(one.source, Source::Local(_)) {
            // Where an operator is wanted, the global function is meant, not a local variable of
            // the same name. Where a value is wanted, the global variable is meant, not a local
            // function.
            let global = found.get(&*lower).is_some_and(|known| is_other(&one, known, wanted));
            if !global {
                found.remove(&*lower);
                finish(&lower, one);
            }
            continue;
        }
        // Adds the image's facts about a name of the texts.
        if let Some(known) = found.remove(&*lower) {
            if one.source < known.source {
                one.source = known.source;
            }
            // The image's facts take precedence over those of a text that may not be loaded.
            if one.source == Source::Workspace {
                (one.operator, one.class, one.detail) = (None, false, None);
            }
            one.symbol = known.symbol;
        }
        finish(&lower, one);
    }
    for (lower, one) in found {
        finish(lower, one);
    }
    rank::keep_best(&mut all, most);
    let mut candidates: Vec<Candidate<'a>> = all
        .into_iter()
        .map(|(one, score)| Candidate {
            label: one.label.map_or_else(
                || one.symbol.map_or_else(String::new, |(symbol, _)| as_written(symbol.name())),
                str::to_owned,
            ),
            score,
            symbol: one.symbol,
            local: one.detail.map(|detail| (detail.to_owned(), one.operator == Some(true))),
            elsewhere: false,
        })
        .collect();
    if pattern.typed.len() > 1
        && sources.package.is_some_and(|package| !package.symbols.is_empty() || !package.uses.is_empty())
    {
        candidates.extend(elsewhere(sources, pattern, wanted));
    }
    candidates
}

/// Returns false if an operator is wanted and the name is a variable, or a variable is wanted and
/// the name is an operator.
fn is_meant(operator: Option<bool>, wanted: &ExpectedName) -> bool {
    match wanted {
        ExpectedName::Operator => operator != Some(false),
        ExpectedName::Value => operator != Some(true),
        _ => true,
    }
}

/// Returns true if a local name does not fit the place, and the image's symbol does.
fn is_other(local: &MergedCandidate<'_>, known: &MergedCandidate<'_>, wanted: &ExpectedName) -> bool {
    let wanted_of = |symbol: &Symbol| match wanted {
        ExpectedName::Operator => symbol.function != b'-',
        _ => symbol.variable != b'-',
    };
    !is_meant(local.operator, wanted) && known.symbol.is_some_and(|(symbol, _)| wanted_of(symbol))
}

/// Returns the matching names of the texts by their lower-case spelling. Each name is taken from
/// its best source.
fn of_texts<'a>(
    sources: &'a Sources<'a>,
    pattern: &Pattern,
    wanted: &ExpectedName,
) -> HashMap<Cow<'a, str>, MergedCandidate<'a>> {
    let mut texts: HashMap<Cow<'a, str>, MergedCandidate<'a>> = HashMap::new();
    let mut add = |local: &'a Local, source: Source| {
        let lower = local.label.to_lowercase();
        let Some(fit) = pattern.score(&lower) else { return };
        let one = MergedCandidate {
            label: Some(&local.label),
            fit,
            source,
            operator: Some(local.operator),
            class: matches!(kind_of(&local.detail), "class" | "structure" | "condition" | "type"),
            detail: Some(&local.detail),
            symbol: None,
        };
        match texts.entry(lower.into()) {
            Entry::Vacant(entry) => drop(entry.insert(one)),
            // A variable does not hide a function, nor a function a variable.
            Entry::Occupied(mut entry) => {
                if !is_meant(entry.get().operator, wanted) && is_meant(one.operator, wanted) {
                    entry.insert(one);
                }
            }
        }
    };
    sources.bindings.iter().enumerate().for_each(|(index, one)| add(one, Source::Local(index)));
    sources.defined.iter().for_each(|one| add(one, Source::File));
    sources.defined_elsewhere.iter().for_each(|one| add(one, Source::OpenText));
    sources.workspace.iter().for_each(|one| add(one, Source::Workspace));
    for (word, used) in &sources.words {
        if word.starts_with([':', '#', '&']) {
            continue;
        }
        let name = crate::text::names::prefix_length(word);
        let fit =
            pattern.score(word).or_else(|| pattern.score(&word[name..]).filter(|_| name > 0).map(|fit| fit - 80.0));
        let Some(fit) = fit else { continue };
        texts.entry(Cow::Borrowed(word)).or_insert(MergedCandidate {
            label: Some(&used.written),
            fit,
            source: Source::Word,
            operator: None,
            class: false,
            detail: None,
            symbol: None,
        });
    }
    texts
}

/// Returns the matching symbols of the current package and of those that it uses, by their
/// lower-case spelling.
fn of_package<'a>(sources: &'a Sources<'a>, pattern: &Pattern) -> HashMap<&'a str, MergedCandidate<'a>> {
    let mut found: HashMap<&str, MergedCandidate<'a>> = HashMap::new();
    let Some(package) = sources.package else { return found };
    let mut take = |package: &'a Package, needed: u64, source: Source| {
        for (symbol, letters) in package.symbols.iter().zip(&package.letters) {
            if letters & needed != needed || !pattern.may_fit(*letters) {
                continue;
            }
            let Some(fit) = pattern.score(symbol.lower()) else { continue };
            let one = MergedCandidate {
                label: None,
                fit,
                source,
                operator: None,
                class: false,
                detail: None,
                symbol: Some((symbol, package)),
            };
            found.entry(symbol.lower()).or_insert(one);
        }
    };
    take(package, 0, Source::Own);
    for used in package.uses.iter().filter_map(|used| sources.index.package(used, None)) {
        let standard = used.name == "COMMON-LISP";
        take(used, EXTERNAL, if standard { Source::Standard } else { Source::Used });
    }
    found
}

/// Returns the entry of a symbol in its home package, because only this entry describes the symbol.
fn at_home<'a>(index: &'a NameIndex, symbol: &'a Symbol) -> &'a Symbol {
    let home = symbol.home().and_then(|home| index.package(home, None));
    home.and_then(|home| home.symbol(symbol.name())).unwrap_or(symbol)
}

/// Returns the best exported symbols of packages that the current package does not use.
fn elsewhere<'a>(sources: &'a Sources<'a>, pattern: &Pattern, wanted: &ExpectedName) -> Vec<Candidate<'a>> {
    let Some(current) = sources.package else { return Vec::new() };
    let mut fitting: Vec<(f32, &Package, &Symbol)> = Vec::new();
    for package in sources.index.packages() {
        if package.name == current.name || current.uses.contains(&package.name) || package.name == "KEYWORD" {
            continue;
        }
        for (symbol, letters) in package.symbols.iter().zip(&package.letters) {
            if letters & EXTERNAL == 0 || !pattern.may_fit(*letters) || symbol.kind() == "symbol" {
                continue;
            }
            if let Some(fit) = pattern.score(symbol.lower()) {
                let fit = if pattern.parts { fit - ELSEWHERE_BY_PARTS } else { fit };
                let used = sources.words.get(symbol.lower());
                let home = symbol.home().and_then(|home| sources.index.package(home, None));
                let system = home.map_or(package.system, |home| home.system);
                let known =
                    CandidateFacts { symbol: Some(symbol), used, system, ..CandidateFacts::of(fit, Source::Elsewhere) };
                fitting.push((rank::score(&known, wanted), package, symbol));
            }
        }
    }
    // A symbol that several packages export is offered only once, from its home package if that one
    // exports it.
    fitting.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.2.home().is_some().cmp(&b.2.home().is_some())));
    let mut all = Vec::new();
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for (score, package, symbol) in fitting {
        if all.len() == MAX_FROM_OTHER_PACKAGES {
            break;
        }
        let home = symbol.home().unwrap_or(&package.name);
        if !seen.insert((home, symbol.name())) {
            continue;
        }
        let here = sources.index.accessible(current, symbol.name());
        let same = |here: &Symbol| here.home() == Some(home) || home == current.name;
        let inherited = current.uses.iter().any(|used| used == home) && here.is_some();
        if inherited || here.is_some_and(same) {
            continue;
        }
        all.push(Candidate {
            label: as_written(symbol.name()),
            score,
            symbol: Some((at_home(sources.index, symbol), package)),
            local: None,
            elsewhere: true,
        });
    }
    all
}
