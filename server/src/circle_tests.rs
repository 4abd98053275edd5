//! No circle of files within a layer, held by a test: a file that needs another is not needed by
//! it. A submodule may name its parent, but for the layers of STRICT.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::path_tests::{absolute, imports, named, paths};

/// The layers without circles.
const LAYERS: [&str; 13] =
    ["checker", "cli", "config", "dap", "framing", "host", "ide", "image", "lsp", "mcp", "model", "session", "text"];

/// The layers in which a submodule that names its parent is part of a circle, too.
const STRICT: &[&str] = &["checker", "dap", "framing", "model"];

/// The modules of the crate, by their path (`session::approval`), with the modules that each names.
#[derive(Default)]
struct Modules {
    code: BTreeMap<String, String>,
    /// Re-exported names, with the path behind each.
    exports: BTreeMap<String, String>,
}

impl Modules {
    fn add(&mut self, path: &str, text: &str) {
        let module = path.strip_suffix(".rs").unwrap().replace('/', "::");
        let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
        let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.join("\n");
        let code = code.split_once("mod tests {").map_or(code.as_str(), |(main, _)| main).to_owned();
        self.code.insert(module, without_visibility(code));
    }

    fn find_exports(&mut self) {
        for (module, code) in &self.code {
            for (public, tree) in imports(code) {
                for path in paths(tree).into_iter().filter(|_| public) {
                    let name = path.rsplit("::").next().unwrap_or_default();
                    self.exports.insert(format!("{module}::{name}"), absolute(module, &path));
                }
            }
        }
    }

    /// The module that a path of the crate leads to.
    fn resolve(&self, path: &str) -> Option<&str> {
        let mut path = path.to_owned();
        let mut seen = BTreeSet::new();
        'next: while seen.insert(path.clone()) {
            let parts: Vec<&str> = path.split("::").collect();
            for length in (1..=parts.len()).rev() {
                let head = parts[..length].join("::");
                if let Some((module, _)) = self.code.get_key_value(&head) {
                    return Some(module);
                }
                if let Some(behind) = self.exports.get(&head) {
                    path = [&[behind.as_str()], &parts[length..]].concat().join("::");
                    continue 'next;
                }
            }
            return None;
        }
        None
    }

    /// The modules of the same layer that a module names, but for its own parents.
    fn named(&self, module: &str) -> BTreeSet<&str> {
        let code = &self.code[module];
        let layer = |path: &str| path.split("::").next().unwrap_or_default().to_owned();
        let resolved = named(module, code).into_iter().filter_map(|one| self.resolve(&one.path));
        let beside = relative(code).filter_map(|path| self.resolve(&absolute(module, path)));
        let resolved = resolved.chain(beside);
        let parent =
            |other: &str| !STRICT.contains(&layer(module).as_str()) && module.starts_with(&format!("{other}::"));
        resolved.filter(|other| *other != module && layer(other) == layer(module) && !parent(other)).collect()
    }

    /// A circle of modules that begins and ends with the same one.
    fn circle(&self) -> Option<Vec<&str>> {
        let mut done = BTreeSet::new();
        for module in self.code.keys().filter(|module| LAYERS.contains(&module.split("::").next().unwrap_or_default()))
        {
            let mut way = Vec::new();
            if let Some(circle) = self.walk(module, &mut way, &mut done) {
                return Some(circle);
            }
        }
        None
    }

    fn walk<'a>(
        &'a self,
        module: &'a str,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<&'a str>> {
        if let Some(start) = way.iter().position(|one| *one == module) {
            return Some([&way[start..], &[module]].concat());
        }
        if !done.insert(module) {
            return None;
        }
        way.push(module);
        let circle = self.named(module).into_iter().find_map(|other| self.walk(other, way, done));
        way.pop();
        circle
    }
}

/// The code without the modules to which its items are visible: an item does not need these.
fn without_visibility(mut code: String) -> String {
    while let Some(start) = code.find("pub(in ") {
        let length = code[start..].find(')').unwrap() + 1;
        code.replace_range(start..start + length, "pub");
    }
    code
}

/// The paths in `code` that begin with the name of a module beside it or below it.
fn relative(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let words = words.map(|word| word.trim_end_matches(':')).filter(|word| word.contains("::"));
    words.filter(|word| word.starts_with(|first: char| first.is_lowercase()))
}

fn add_all(modules: &mut Modules, root: &Path, below: &str) {
    for entry in std::fs::read_dir(root.join(below)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if root.join(&path).is_dir() {
            add_all(modules, root, &path);
        } else if name.ends_with(".rs") && !name.contains("tests.rs") && !["lib.rs", "main.rs"].contains(&name.as_str())
        {
            modules.add(&path, &std::fs::read_to_string(root.join(&path)).unwrap());
        }
    }
}

#[test]
fn no_files_of_a_layer_need_each_other() {
    let mut modules = Modules::default();
    add_all(&mut modules, &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "");
    modules.find_exports();
    assert!(modules.named("session::actor").len() > 5, "{:?}", modules.named("session::actor"));
    let circle = modules.circle().map(|circle| circle.join(" -> "));
    assert_eq!(circle, None, "a circle of files; move what both need to a file of its own");
}

#[test]
fn a_circle_of_a_child_and_its_parent_is_found_in_some_layers() {
    let check = |files: &[(&str, &str)]| {
        let mut modules = Modules::default();
        files.iter().for_each(|(path, text)| modules.add(path, text));
        modules.find_exports();
        modules.circle().map(|circle| circle.join(" "))
    };
    let inline = "struct Shared {\n    warm: Mutex<Option<warm::Claims>>,\n}";
    let child = "use super::Shared;";
    assert_eq!(check(&[("dap.rs", inline), ("dap/warm.rs", child)]).as_deref(), Some("dap dap::warm dap"));
    assert_eq!(check(&[("dap.rs", inline), ("dap/warm.rs", "use crate::text::Span;")]), None);
    assert_eq!(check(&[("dap.rs", inline), ("dap/warm.rs", "pub(in crate::dap) fn f() {}")]), None);
    assert_eq!(check(&[("lsp.rs", inline), ("lsp/warm.rs", child)]), None);
}

#[test]
fn a_circle_is_found_through_re_exports() {
    let check = |files: &[(&str, &str)]| {
        let mut modules = Modules::default();
        files.iter().for_each(|(path, text)| modules.add(path, text));
        modules.find_exports();
        modules.circle().map(|circle| circle.join(" "))
    };
    let session = ("session.rs", "pub use types::{Client, Level as L};\nuse event::Event;");
    let event = ("session/event.rs", "use super::{Client, jobs::Jobs};");
    let types = ("session/types.rs", "fn f() -> super::jobs::Jobs {}");
    assert_eq!(check(&[session, event, types, ("session/jobs.rs", "use crate::image::Image;")]), None);
    let jobs = ("session/jobs.rs", "use super::{\n    Client,\n};");
    let circle = "session::jobs session::types session::jobs";
    assert_eq!(check(&[session, event, types, jobs]).as_deref(), Some(circle));
    let parent = ("session/jobs.rs", "use super::Session;");
    assert_eq!(check(&[session, event, types, parent]), None);
}
