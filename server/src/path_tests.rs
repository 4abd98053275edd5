//! The paths that a source of the crate names, for the tests of layers and circles.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;

/// A path that a source names, from the crate's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) path: String,
    /// True if the path is written from `super`.
    pub(crate) upwards: bool,
    /// True if the source re-exports what the path leads to.
    pub(crate) public: bool,
}

/// Returns the code of a source without comments and tests, and the code of its tests.
pub(crate) fn parts(text: &str) -> (String, String) {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    match code.split_once("mod tests {") {
        Some((main, tests)) => (main.to_owned(), tests.to_owned()),
        None => (code, String::new()),
    }
}

/// Returns all paths that the code of `module` names: in `use` declarations, inline, and by another
/// name of a module (`use crate as c;`).
pub(crate) fn named(module: &str, code: &str) -> Vec<Named> {
    let imported: Vec<(bool, String, Option<String>)> = imports(code)
        .into_iter()
        .flat_map(|(public, tree)| leaves(tree).into_iter().map(move |(path, other)| (public, path, other)))
        .collect();
    let mut others = BTreeMap::new();
    for (_, path, other) in &imported {
        if let Some(other) = other {
            others.insert(other.clone(), resolved(module, path, &others));
        }
    }
    let named = |public, path: &str| Named {
        path: resolved(module, path, &others),
        upwards: path.starts_with("super"),
        public,
    };
    let aliased = |path: &str| {
        let mut lines = code.lines().filter(|line| line.trim_start().starts_with("pub") && line.contains(" type "));
        lines.any(|line| line.contains(path))
    };
    let inline = code
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
        .map(|word| word.trim_end_matches(':'))
        .filter(|word| word.contains("::"))
        .filter(|word| {
            let first = word.split("::").next().unwrap_or_default();
            ["crate", "super", "self"].contains(&first) || others.contains_key(first)
        });
    imported
        .iter()
        .map(|(public, path, _)| named(*public, path))
        .chain(inline.map(|path| named(aliased(path), path)))
        .collect()
}

/// Returns a path in `module` as a path from the crate's root. `others` are other names of modules.
fn resolved(module: &str, path: &str, others: &BTreeMap<String, String>) -> String {
    let (first, rest) = path.split_once("::").unwrap_or((path, ""));
    match others.get(first) {
        Some(base) if base.is_empty() => rest.to_owned(),
        Some(base) if rest.is_empty() => base.clone(),
        Some(base) => format!("{base}::{rest}"),
        None => absolute(module, path),
    }
}

/// Returns a path in `module` as a path from the crate's root.
pub(crate) fn absolute(module: &str, path: &str) -> String {
    let mut base: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
    let mut rest = path.split("::").peekable();
    while let Some(part) = rest.next_if(|part| ["crate", "self", "super"].contains(part)) {
        match part {
            "crate" => base.clear(),
            "super" => _ = base.pop(),
            _ => {}
        }
    }
    base.into_iter().chain(rest).collect::<Vec<_>>().join("::")
}

/// Returns the trees of all `use` declarations, each with true if it is public.
pub(crate) fn imports(code: &str) -> Vec<(bool, &str)> {
    let starts = code.match_indices("use ").filter(|(at, _)| {
        let before = code[..*at].rsplit(['\n', ';', '{']).next().unwrap_or_default().trim();
        before.is_empty() || before.starts_with("pub")
    });
    let tree = |at: usize| code[at + 4..].split(';').next().unwrap_or_default();
    starts.map(|(at, _)| (code[..at].ends_with("pub ") || code[..at].ends_with(") "), tree(at))).collect()
}

/// Returns the paths of a `use` tree: `a::b` and `a::c::d` for `a::{b, c::d}`.
pub(crate) fn paths(tree: &str) -> Vec<String> {
    leaves(tree).into_iter().map(|(path, _)| path).collect()
}

/// Returns the paths of a `use` tree, each with its other name: `a::b`, named `c`, and `a` for
/// `a::{b as c, self}`.
fn leaves(tree: &str) -> Vec<(String, Option<String>)> {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        let (path, other) = tree.split_once(" as ").unwrap_or((tree, ""));
        let path = path.strip_suffix("::self").unwrap_or(path).trim().to_owned();
        return vec![(path, Some(other.trim().to_owned()).filter(|other| !other.is_empty()))];
    };
    let body = rest.rsplit_once('}').map_or(rest, |(body, _)| body);
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for char in body.chars() {
        match char {
            ',' if depth == 0 => parts.push(String::new()),
            _ => parts.last_mut().unwrap().push(char),
        }
        depth += i32::from(char == '{') - i32::from(char == '}');
    }
    let joined = |(path, other): (String, Option<String>)| {
        let path = if path == "self" { head.trim_end_matches(':').to_owned() } else { format!("{head}{path}") };
        (path, other)
    };
    parts.iter().filter(|part| !part.trim().is_empty()).flat_map(|part| leaves(part)).map(joined).collect()
}

#[test]
fn each_form_of_a_path_is_resolved() {
    for (code, path) in [
        ("use crate::image::Image;", "image::Image"),
        ("use super::super::image::Image;", "image::Image"),
        ("use super::{super::image::Image};", "image::Image"),
        ("use super::{\n    other::{self, Thing},\n    super::image,\n};", "image"),
        ("use crate::{session, image::api};", "image::api"),
        ("use crate as c;\nfn f() -> c::image::Image {}", "image::Image"),
        ("use crate as c;\nuse c::image::Image;", "image::Image"),
        ("use crate::{self as c};\nfn f(x: &c::image::Image) {}", "image::Image"),
        ("use super::super as up;\nfn f() { up::image::start() }", "image::start"),
        ("fn f() -> Vec<crate::image::Image> {}", "image::Image"),
        ("fn f() { use super::super::image::Image; }", "image::Image"),
        ("fn f() { self::super::super::image::start() }", "image::start"),
        ("pub use crate::image::Image;", "image::Image"),
        ("use super::other::Thing;", "lsp::other::Thing"),
        ("use super::super::*;", "*"),
    ] {
        let found = named("lsp::hover", code);
        assert!(found.iter().any(|one| one.path == path), "{code}: {found:?}");
    }
    let public = |code: &str| named("ide::profile", code).iter().any(|one| one.public);
    assert!(public("pub use crate::image::Image;") && public("pub(crate) use crate::image::Image;"));
    assert!(public("pub type Whole = crate::image::Image;") && !public("use crate::image::Image;"));
}
