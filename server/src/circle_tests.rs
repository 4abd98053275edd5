//! Test that the files of a layer do not need each other in a circle. A submodule may name its
//! parent, except in the layers of STRICT.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::path_tests::{absolute, imports, named, paths};

/// The layers without circles.
const LAYERS: [&str; 13] =
    ["checker", "cli", "config", "dap", "framing", "host", "ide", "image", "lsp", "mcp", "model", "session", "text"];

/// The layers in which a submodule that names its parent counts as part of a circle.
const STRICT: &[&str] = &["checker", "dap", "framing", "model"];

/// The modules of the crate, by their path (`session::approval`), with the modules that each names.
#[derive(Default)]
struct Modules {
    code: BTreeMap<String, String>,
    /// The re-exported names, each with the path of the item.
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

    /// Returns the module to which a path of the crate leads.
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

    /// Returns the modules of the same layer that a module names, except its own parents.
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

    /// Returns a circle of modules, which begins and ends with the same module.
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

/// Removes the modules to which items are visible (`pub(in ...)`), because an item does not need
/// these.
fn without_visibility(mut code: String) -> String {
    while let Some(start) = code.find("pub(in ") {
        let length = code[start..].find(')').unwrap() + 1;
        code.replace_range(start..start + length, "pub");
    }
    code
}

/// Returns the paths in `code` that may begin with the name of a module beside or below it.
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
