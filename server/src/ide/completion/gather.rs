//! The candidates for a name without a package prefix: of the text, of the package in force, and
//! exported by other packages.

use std::collections::{HashMap, HashSet};

use super::matching::Pattern;
use super::position::Wanted;
use super::rank::{self, Known, Source};
use super::words::Used;
use crate::ide::name_index::{NameIndex, Package, Symbol};
use crate::ide::partial_name::Local;

/// The maximum number of names of other packages.
const ELSEWHERE: usize = 40;

/// A candidate and where it was found.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    /// The name as written in the text, or in lower case as a symbol is written.
    pub(super) label: String,
    /// The score of [`rank::score`].
    pub(super) score: f32,
    /// The symbol of the image and the package through which it is seen.
    pub(super) symbol: Option<(&'a Symbol, &'a Package)>,
    /// A name of a text: what it is, and whether it is called.
    pub(super) local: Option<(String, bool)>,
    /// It needs a package prefix or an import.
    pub(super) elsewhere: bool,
}

/// The sources of names.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    /// The index of the image's names.
    pub(super) index: &'a NameIndex,
    /// The package in force; `None`: it is unknown, or there is no image.
    pub(super) package: Option<&'a Package>,
    /// The local bindings, innermost first.
    pub(super) bindings: Vec<Local>,
    /// The definitions of this text, and of other open texts of its package.
    pub(super) defined: Vec<Local>,
    /// See `defined`.
    pub(super) defined_elsewhere: Vec<Local>,
    /// The names around the place.
    pub(super) words: HashMap<String, Used>,
}

/// A candidate while its sources are looked through.
struct Found<'a> {
    label: Option<String>,
    fit: f32,
    source: Source,
    operator: Option<bool>,
    detail: Option<String>,
    symbol: Option<(&'a Symbol, &'a Package)>,
}

/// Returns the candidates, unordered.
pub(super) fn candidates<'a>(sources: &'a Sources<'a>, pattern: &Pattern, wanted: &Wanted) -> Vec<Candidate<'a>> {
    let mut found: HashMap<&str, Found<'a>> = HashMap::new();
    let mut lowers: Vec<(String, Found<'a>)> = Vec::new();
    let of_text = |local: &Local, source: Source| -> Option<(String, Found<'a>)> {
        let lower = local.label.to_lowercase();
        let fit = pattern.score(&lower)?;
        let found = Found {
            label: Some(local.label.clone()),
            fit,
            source,
            operator: Some(local.operator),
            detail: Some(local.detail.clone()),
            symbol: None,
        };
        Some((lower, found))
    };
    let bindings = sources.bindings.iter().enumerate();
    lowers.extend(bindings.filter_map(|(index, one)| of_text(one, Source::Local(index))));
    lowers.extend(sources.defined.iter().filter_map(|one| of_text(one, Source::File)));
    lowers.extend(sources.defined_elsewhere.iter().filter_map(|one| of_text(one, Source::OpenText)));
    for (word, used) in &sources.words {
        if word.starts_with([':', '#', '&']) {
            continue;
        }
        let name = crate::text::names::prefix_length(word);
        let Some(fit) =
            pattern.score(word).or_else(|| pattern.score(&word[name..]).filter(|_| name > 0).map(|fit| fit - 80.0))
        else {
            continue;
        };
        let one = Found {
            label: Some(used.written.clone()),
            fit,
            source: Source::Word,
            operator: None,
            detail: None,
            symbol: None,
        };
        lowers.push((word.clone(), one));
    }
    let mut texts: HashMap<String, Found<'a>> = HashMap::new();
    for (lower, one) in lowers {
        // The first of a name is the best source.
        texts.entry(lower).or_insert(one);
    }
    if let Some(package) = sources.package {
        let mut take = |package: &'a Package, external: bool, source: Source| {
            for (symbol, letters) in package.symbols.iter().zip(&package.letters) {
                if external && !symbol.external || !pattern.may_fit(*letters) {
                    continue;
                }
                let Some(fit) = pattern.score(&symbol.lower) else { continue };
                let one =
                    Found { label: None, fit, source, operator: None, detail: None, symbol: Some((symbol, package)) };
                found.entry(&symbol.lower).or_insert(one);
            }
        };
        take(package, false, Source::Own);
        for used in package.uses.iter().filter_map(|used| sources.index.package(used, None)) {
            let standard = used.name == "COMMON-LISP";
            take(used, true, if standard { Source::Standard } else { Source::Used });
        }
    }
    let mut all: Vec<Candidate<'a>> = Vec::with_capacity(found.len() + texts.len());
    let mut finish = |lower: &str, one: Found<'a>| {
        let symbol = one.symbol.map(|(symbol, package)| (at_home(sources.index, symbol), package));
        let used = sources.words.get(lower);
        let known = Known {
            fit: one.fit,
            source: one.source,
            operator: one.operator,
            symbol: symbol.map(|(symbol, _)| symbol),
            used,
            system: false,
        };
        let score = rank::score(&known, wanted);
        let label = one.label.unwrap_or_else(|| written(symbol.map_or(lower, |(symbol, _)| &*symbol.name)));
        let local = one.detail.map(|detail| (detail, one.operator == Some(true)));
        all.push(Candidate { label, score, symbol, local, elsewhere: false });
    };
    for (lower, mut one) in texts {
        // What the image knows of the name comes along, unless a local binding hides it.
        if let Some(known) = found.remove(lower.as_str()) {
            if one.source < known.source {
                one.source = known.source;
            }
            one.symbol = known.symbol;
        }
        finish(&lower, one);
    }
    for (lower, one) in found {
        finish(lower, one);
    }
    if pattern.typed.len() > 1
        && sources.package.is_some_and(|package| !package.symbols.is_empty() || !package.uses.is_empty())
    {
        all.extend(elsewhere(sources, pattern, wanted));
    }
    all
}

/// The description of a symbol is where it is at home.
fn at_home<'a>(index: &'a NameIndex, symbol: &'a Symbol) -> &'a Symbol {
    let home = symbol.home.as_deref().and_then(|home| index.package(home, None));
    home.and_then(|home| home.symbol(&symbol.name)).unwrap_or(symbol)
}

/// The best exported symbols of packages that the package in force does not use.
fn elsewhere<'a>(sources: &'a Sources<'a>, pattern: &Pattern, wanted: &Wanted) -> Vec<Candidate<'a>> {
    let Some(current) = sources.package else { return Vec::new() };
    let mut all = Vec::new();
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    // A symbol that several packages export is offered from its home, if that exports it.
    let mut fitting: Vec<(bool, &Package, &Symbol, f32)> = Vec::new();
    for package in sources.index.packages() {
        if package.name == current.name || current.uses.contains(&package.name) || package.name == "KEYWORD" {
            continue;
        }
        for (symbol, letters) in package.symbols.iter().zip(&package.letters) {
            if !symbol.external || !pattern.may_fit(*letters) {
                continue;
            }
            if let Some(fit) = pattern.score(&symbol.lower) {
                fitting.push((symbol.home.is_some(), package, symbol, fit));
            }
        }
    }
    fitting.sort_by_key(|(imported, ..)| *imported);
    for (_, package, symbol, fit) in fitting {
        let home = symbol.home.as_deref().unwrap_or(&package.name);
        let described = at_home(sources.index, symbol);
        if described.kind() == "symbol" || !seen.insert((home, &symbol.name)) {
            continue;
        }
        let here = sources.index.accessible(current, &symbol.name);
        let same = |here: &Symbol| here.home.as_deref() == Some(home) || home == current.name;
        let inherited = current.uses.iter().any(|used| used == home) && here.is_some();
        if inherited || here.is_some_and(same) {
            continue;
        }
        let used = sources.words.get(&*symbol.lower);
        let system = package.system;
        let known = Known { fit, source: Source::Elsewhere, operator: None, symbol: Some(described), used, system };
        let score = rank::score(&known, wanted);
        all.push(Candidate {
            label: written(&symbol.name),
            score,
            symbol: Some((described, package)),
            local: None,
            elsewhere: true,
        });
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score));
    all.truncate(ELSEWHERE);
    all
}

/// How a symbol's name is written: in lower case, or between bars.
pub(super) fn written(name: &str) -> String {
    let plain = |char: char| match char {
        '(' | ')' | ':' | '|' | '\\' | '"' | '\'' | ';' | ',' | '`' | '#' => false,
        _ => !char.is_whitespace() && !char.is_lowercase(),
    };
    if !name.is_empty() && name.chars().all(plain) {
        name.to_lowercase()
    } else {
        format!("|{}|", name.replace('\\', "\\\\").replace('|', "\\|"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_they_are_read() {
        for (name, expected) in [("CAR", "car"), ("Mixed", "|Mixed|"), ("A|B", "|A\\|B|"), ("1+", "1+"), ("", "||")] {
            assert_eq!(written(name), expected);
        }
    }
}
