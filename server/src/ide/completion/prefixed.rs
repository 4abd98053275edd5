//! Completion after a package prefix, and of package names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::matching::Pattern;
use super::position::ExpectedName;
use super::rank::{self, CandidateFacts, Source};
use super::words::Used;
use super::{Item, symbol_item, workspace};
use crate::ide::index::Snapshot;
use crate::ide::name_index::{EXTERNAL, NameIndex, Package, Symbol};
use crate::text::names;

/// Returns the completions of `pkg:name` or `pkg::name` with their scores. These are the best
/// `most` of the image's symbols, those with the same score as the last of them, and all matching
/// names of texts.
pub(super) fn symbols(
    typed: &str,
    (index, package): (&NameIndex, Option<&Package>),
    (words, workspace): (&HashMap<String, Used>, &Snapshot),
    wanted: &ExpectedName,
    most: usize,
) -> Vec<(Item, f32)> {
    let at = names::prefix_length(typed);
    let (prefix, name) = typed.split_at(at);
    let pattern = Pattern::new(name);
    let mut scored = Vec::new();
    let mut labels = HashSet::new();
    let named = names::symbol(&format!("{prefix}x")).and_then(|symbol| symbol.package);
    let target = named.as_deref().and_then(|name| index.package(name, package));
    let internal = prefix.ends_with("::");
    if let Some(target) = target {
        for (symbol, letters) in target.symbols.iter().zip(&target.letters) {
            // After two colons, only the package's own symbols are offered, whose `home` is `None`.
            let seen = if internal { symbol.home().is_none() } else { letters & EXTERNAL != 0 };
            if !seen || !pattern.may_fit(*letters) {
                continue;
            }
            let Some(fit) = pattern.score(symbol.lower()) else { continue };
            let label = format!("{prefix}{}", names::as_written(symbol.name()));
            let lower = label.to_lowercase();
            let used = words.get(&lower);
            let home = symbol.home().and_then(|home| index.package(home, None));
            let described = home.and_then(|home| home.symbol(symbol.name())).unwrap_or(symbol);
            let source = if target.name == "COMMON-LISP" { Source::Standard } else { Source::Own };
            let known = CandidateFacts { symbol: Some(described), used, ..CandidateFacts::of(fit, source) };
            let score = rank::score(&known, wanted) + of_prefix(used);
            scored.push(((label, described, home.unwrap_or(target)), score));
            labels.insert(lower);
        }
    }
    rank::keep_best(&mut scored, most);
    let item = |((label, symbol, home), score): ((String, &Symbol, &Arc<Package>), f32)| {
        (symbol_item(label, symbol, &home.name), score)
    };
    let mut found: Vec<(Item, f32)> = scored.into_iter().map(item).collect();
    // The texts have the names of a package that the image does not have, and the exports of a
    // changed DEFPACKAGE.
    let named = target.map_or(named, |target| (!internal).then(|| target.name.clone()));
    if let Some(named) = named {
        for name in workspace::of_package(workspace, &named, !internal) {
            let Some(fit) = pattern.score(&name) else { continue };
            let label = format!("{prefix}{name}");
            if labels.contains(&label.to_lowercase()) {
                continue;
            }
            let used = words.get(&label.to_lowercase());
            let known = CandidateFacts { used, ..CandidateFacts::of(fit, Source::Workspace) };
            let score = rank::score(&known, wanted) + of_prefix(used);
            labels.insert(label.to_lowercase());
            let detail = format!("symbol of {named}");
            found.push((Item { label, kind: "symbol".into(), detail, ..Item::default() }, score));
        }
    }
    // The index has all exports of a loaded package. Another word of the text would be a mistake.
    if let Some(target) = target.filter(|_| !internal) {
        if found.is_empty() && !name.is_empty() {
            found = internals(target, prefix, &pattern, words, wanted);
            rank::keep_best(&mut found, most);
        }
        return found;
    }
    let typed = Pattern::new(typed);
    for (word, used) in words.iter().filter(|(word, _)| word.starts_with(&prefix.to_lowercase())) {
        if let Some(fit) = typed.score(word).filter(|_| !labels.contains(word.as_str())) {
            let known = CandidateFacts { used: Some(used), ..CandidateFacts::of(fit, Source::Word) };
            found.push((
                Item { label: used.written.clone(), kind: "symbol".into(), ..Item::default() },
                rank::score(&known, wanted) + of_prefix(Some(used)),
            ));
        }
    }
    found
}

/// Returns the matching symbols of a package that it does not export, each with the second colon
/// that it needs. They are offered only where no exported symbol matches.
fn internals(
    target: &Package,
    prefix: &str,
    pattern: &Pattern,
    words: &HashMap<String, Used>,
    wanted: &ExpectedName,
) -> Vec<(Item, f32)> {
    let mut found = Vec::new();
    for (symbol, letters) in target.symbols.iter().zip(&target.letters) {
        let seen = symbol.home().is_none() && letters & EXTERNAL == 0 && symbol.kind() != "symbol";
        if !seen || !pattern.may_fit(*letters) {
            continue;
        }
        let Some(fit) = pattern.score(symbol.lower()) else { continue };
        let label = format!("{prefix}:{}", names::as_written(symbol.name()));
        let used = words.get(&label.to_lowercase());
        let known = CandidateFacts { symbol: Some(symbol), used, ..CandidateFacts::of(fit, Source::Own) };
        let score = rank::score(&known, wanted) + of_prefix(used);
        let mut item = symbol_item(label, symbol, &target.name);
        item.detail = format!("{}, not exported", item.detail);
        found.push((item, score));
    }
    found
}

/// Returns the additional score of a name that occurs nearby with the same prefix, because a text
/// uses few names of a package.
fn of_prefix(used: Option<&Used>) -> f32 {
    if used.is_some() { 40.0 } else { 0.0 }
}

/// Returns the packages that complete `typed`, which may begin with `:` or `#:`, and their scores.
pub(super) fn packages(
    typed: &str,
    (index, current): (&NameIndex, Option<&Package>),
    (words, workspace): (&HashMap<String, Used>, &Snapshot),
) -> Vec<(Item, f32)> {
    let bare = typed.trim_start_matches(['#', ':']);
    let prefix = &typed[..typed.len() - bare.len()];
    let pattern = Pattern::new(bare);
    let mut found: Vec<(Item, f32)> = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |name: &str, meant: &str, more: f32| {
        let Some(fit) = pattern.score(&name.to_lowercase()) else { return };
        let label = format!("{prefix}{}", names::as_written(name));
        let near = words.get(&label.to_lowercase()).map_or(0.0, |used| 20.0 + 10.0 * (1.0 + used.other as f32).ln());
        if !seen.insert(label.clone()) {
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
    for package in workspace.files.iter().flat_map(|file| &file.packages) {
        add(&package.name, &package.name, 0.0);
        package.nicknames.iter().for_each(|nickname| add(nickname, &package.name, -5.0));
    }
    found
}
