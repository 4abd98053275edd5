//! Completion behind a package prefix, and of packages.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::gather::written;
use super::matching::Pattern;
use super::position::ExpectedName;
use super::rank::{self, Known, Source};
use super::words::Used;
use super::{Item, symbol_item};
use crate::ide::name_index::{EXTERNAL, NameIndex, Package, Symbol};
use crate::text::names;

/// Returns the completions of `pkg:name` or `pkg::name` with their scores: at least the best
/// `most`, if there are as many.
pub(super) fn symbols(
    typed: &str,
    (index, package): (&NameIndex, Option<&Package>),
    words: &HashMap<String, Used>,
    wanted: &ExpectedName,
    most: usize,
) -> Vec<(Item, f32)> {
    let at = names::prefix_length(typed);
    let (prefix, name) = typed.split_at(at);
    let pattern = Pattern::new(name);
    let mut scored = Vec::new();
    let mut labels = HashSet::new();
    let target = names::symbol(&format!("{prefix}x"))
        .and_then(|symbol| symbol.package)
        .and_then(|name| index.package(&name, package));
    if let Some(target) = target {
        let internal = prefix.ends_with("::");
        for (symbol, letters) in target.symbols.iter().zip(&target.letters) {
            // Behind two colons only what is at home there: what it uses has names of its own.
            let seen = if internal { symbol.home().is_none() } else { letters & EXTERNAL != 0 };
            if !seen || !pattern.may_fit(*letters) {
                continue;
            }
            let Some(fit) = pattern.score(symbol.lower()) else { continue };
            let label = format!("{prefix}{}", written(symbol.name()));
            let lower = label.to_lowercase();
            let used = words.get(&lower);
            let home = symbol.home().and_then(|home| index.package(home, None));
            let described = home.and_then(|home| home.symbol(symbol.name())).unwrap_or(symbol);
            let source = if target.name == "COMMON-LISP" { Source::Standard } else { Source::Own };
            let known = Known { symbol: Some(described), used, ..Known::of(fit, source) };
            scored.push(((label, described, home.unwrap_or(target)), rank::score(&known, wanted)));
            labels.insert(lower);
        }
    }
    rank::keep_best(&mut scored, most);
    let item = |((label, symbol, home), score): ((String, &Symbol, &Arc<Package>), f32)| {
        (symbol_item(label, symbol, &home.name), score)
    };
    let mut found: Vec<(Item, f32)> = scored.into_iter().map(item).collect();
    // Without an image the text says what is there.
    let typed = Pattern::new(typed);
    for (word, used) in words.iter().filter(|(word, _)| word.starts_with(&prefix.to_lowercase())) {
        if let Some(fit) = typed.score(word).filter(|_| !labels.contains(word.as_str())) {
            let known = Known { used: Some(used), ..Known::of(fit, Source::Word) };
            found.push((
                Item { label: used.written.clone(), kind: "symbol".into(), ..Item::default() },
                rank::score(&known, wanted),
            ));
        }
    }
    found
}

/// Returns the packages that complete what was typed, `:` and `#:` before it kept.
pub(super) fn packages(
    typed: &str,
    (index, current): (&NameIndex, Option<&Package>),
    words: &HashMap<String, Used>,
) -> Vec<(Item, f32)> {
    let bare = typed.trim_start_matches(['#', ':']);
    let prefix = &typed[..typed.len() - bare.len()];
    let pattern = Pattern::new(bare);
    let mut found: Vec<(Item, f32)> = Vec::new();
    let mut add = |name: &str, meant: &str, more: f32| {
        let Some(fit) = pattern.score(&name.to_lowercase()) else { return };
        let label = format!("{prefix}{}", written(name));
        let near = words.get(&label.to_lowercase()).map_or(0.0, |used| 20.0 + 10.0 * (1.0 + used.other as f32).ln());
        if found.iter().any(|(item, _)| item.label == label) {
            return;
        }
        let detail = format!("package {meant}");
        found.push((Item { label, kind: "package".into(), detail, ..Item::default() }, fit + more + near));
    };
    for (nickname, meant) in current.iter().flat_map(|current| &current.local) {
        add(nickname, meant, 30.0);
    }
    for package in index.packages() {
        let more = if package.system { -30.0 } else { 0.0 };
        add(&package.name, &package.name, more);
        package.nicknames.iter().for_each(|nickname| add(nickname, &package.name, more - 5.0));
    }
    found
}
