//! Completion of the names that a package definition exports and imports.

use std::collections::{HashMap, HashSet};

use super::matching::Pattern;
use super::words::Used;
use super::{Item, workspace};
use crate::ide::index::{Snapshot, designated};
use crate::ide::name_index::{EXTERNAL, NameIndex};
use crate::text::datum::{Form, Kind, Node};
use crate::text::names;

/// The clause of a package definition at a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NameClause {
    /// The package to which the names in the clause belong.
    package: String,
    /// True if only names that the package exports may follow.
    exported: bool,
    /// The names that are already in the clause, lower-case.
    given: HashSet<String>,
}

/// Returns the `:export` or `:import-from` clause in which a name begins at `start`.
pub(super) fn at(form: &Form, start: usize) -> Option<NameClause> {
    let path = form.path(start);
    let lists: Vec<&Node> =
        path.into_iter().filter(|node| node.kind == Kind::List && node.span.start < start).collect();
    let [.., definition, clause] = lists.as_slice() else { return None };
    if !matches!(form.operator(definition).as_deref(), Some("defpackage" | "define-package")) {
        return None;
    }
    let names = clause.children.iter().filter(|child| child.span.start < start).count();
    let (package, exported, skipped) = match form.name(clause.children.first()?)?.as_str() {
        ":export" if names > 0 => (definition.children.get(1)?, false, 1),
        ":import-from" | ":shadowing-import-from" if names > 1 => (clause.children.get(1)?, true, 2),
        _ => return None,
    };
    let others = clause.children.iter().skip(skipped).filter(|child| child.span.start != start);
    Some(NameClause {
        package: designated(form, package)?,
        exported,
        given: others.filter_map(|child| designated(form, child)).map(|name| name.to_lowercase()).collect(),
    })
}

/// Returns the names that complete `typed` (with its `:` or `#:`), and their scores.
pub(super) fn names(
    clause: &NameClause,
    typed: &str,
    (index, workspace): (&NameIndex, &Snapshot),
    words: &HashMap<String, Used>,
) -> Vec<(Item, f32)> {
    let bare = typed.trim_start_matches(['#', ':']);
    let prefix = &typed[..typed.len() - bare.len()];
    let pattern = Pattern::new(bare);
    let mut found: HashMap<String, String> = HashMap::new();
    if let Some(package) = index.package(&clause.package, None) {
        for (symbol, letters) in package.symbols.iter().zip(&package.letters) {
            let seen = if clause.exported { letters & EXTERNAL != 0 } else { symbol.home().is_none() };
            if seen && pattern.may_fit(*letters) {
                found.insert(symbol.lower().to_owned(), names::as_written(symbol.name()));
            }
        }
    }
    for name in workspace::of_package(workspace, &clause.package, clause.exported) {
        found.entry(name.clone()).or_insert(name);
    }
    let scored = found.into_iter().filter(|(lower, _)| !clause.given.contains(lower)).filter_map(|(lower, name)| {
        let fit = pattern.score(&lower)?;
        let near = words.get(&lower).map_or(0.0, |used| 7.0 * (1.0 + used.other as f32).ln());
        let detail = match clause.exported {
            true => format!("exported by {}", clause.package),
            false => format!("symbol of {}", clause.package),
        };
        Some((Item { label: format!("{prefix}{name}"), kind: "symbol".into(), detail, ..Item::default() }, fit + near))
    });
    scored.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::document::Document;

    #[test]
    fn the_clause_at_a_place() {
        for (source, expected) in [
            ("(defpackage :a (:use :cl) (:export #:b #:‸c))", Some("A false b")),
            ("(uiop:define-package a (:import-from :d :‸e :f))", Some("D true f")),
            ("(defpackage :a (:import-from :‸d :e))", None),
            ("(defpackage :a (:use :‸cl))", None),
            ("(defpackage :a (:‸export :b))", None),
            ("(f :a (:export :‸b))", None),
        ] {
            let start = source.chars().take_while(|char| *char != '‸').count();
            let start = source[..start].rfind([' ', '(']).map_or(0, |at| at + 1);
            let form = Form::at(&Document::new(&source.replace('‸', ""), 0), start).expect("a form");
            let found = at(&form, start).map(|clause| {
                let given: Vec<&str> = clause.given.iter().map(String::as_str).collect();
                format!("{} {} {}", clause.package, clause.exported, given.join(" "))
            });
            assert_eq!(found.as_deref(), expected, "{source}");
        }
    }
}
