//! The layers of the crate: who may import whom, held by a test.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The layers, with the layers that each may import. `main.rs` and `lib.rs` are above all layers.
const LAYERS: &[(&str, &[&str])] = &[
    ("bounded_file", &[]),
    ("fault", &[]),
    ("steady", &[]),
    ("file_uri", &[]),
    ("framing", &[]),
    ("planted", &[]),
    ("remove_tree", &[]),
    ("search_paths", &[]),
    ("shown", &[]),
    ("model", &["text"]),
    ("text", &[]),
    ("config", &[]),
    ("image", &["config", "model", "text"]),
    ("checker", &["config", "image", "model", "text"]),
    ("ide", &["image", "model", "text"]),
    ("session", &["checker", "config", "ide", "image", "model", "text"]),
    ("lsp", &["config", "ide", "model", "session", "text"]),
    ("mcp", &["config", "ide", "model", "session", "text"]),
    ("dap", &["ide", "model", "session", "text"]),
    ("host", &["config", "dap", "image", "lsp", "mcp", "model", "session", "text"]),
];

/// Helpers without product-specific code, which every layer may import.
const HELPERS: &[&str] =
    &["bounded_file", "fault", "file_uri", "framing", "planted", "remove_tree", "search_paths", "shown", "steady"];

/// Crates of protocols, and the layers that may name them.
const PROTOCOLS: &[&str] = &["lsp_types", "tower_lsp", "rmcp"];
const MAY_NAME_PROTOCOLS: &[&str] = &["host", "lsp", "mcp"];

/// Layers above all others, which may import everything.
const TOP: &[&str] = &["circle_tests", "cli", "lib", "layer_tests", "main", "waiting_tests"];

/// The imports in the file `path` (relative to `src/`) with the source `text` that its layer may
/// not have.
fn violations(path: &Path, text: &str) -> Vec<String> {
    let first = path.iter().next().unwrap().to_str().unwrap();
    let layer = first.strip_suffix(".rs").unwrap_or(first);
    if TOP.contains(&layer) {
        return Vec::new();
    }
    let name = path.display();
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
        return vec![format!("{name} belongs to no layer of LAYERS")];
    };
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut wrong = Vec::new();
    // The number of `super::` that lead from this file to the crate itself; one more in its tests.
    let depth = path.iter().count() - usize::from(path.ends_with("mod.rs"));
    let (main, tests) = code.split_once("mod tests {").unwrap_or((&code, ""));
    if main.contains(&"super::".repeat(depth)) || tests.contains(&"super::".repeat(depth + 1)) {
        wrong.push(format!("{name} leaves its layer by `super::`; use `crate::`"));
    }
    let mut named = BTreeSet::new();
    for part in code.split("crate::").skip(1) {
        if part.starts_with('{') {
            wrong.push(format!("{name} imports several layers in one `use`, which this test cannot read"));
        }
        named.insert(part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>());
    }
    let known = named.iter().filter(|module| LAYERS.iter().any(|(known, _)| known == module) && *module != layer);
    let free = |module: &str| HELPERS.contains(&module) || allowed.contains(&module);
    let against =
        known.filter(|module| !free(module)).map(|module| format!("{name} names {module}, which {layer} may not"));
    wrong.extend(against);
    if !MAY_NAME_PROTOCOLS.contains(&layer) {
        let protocols = PROTOCOLS.iter().filter(|protocol| code.contains(**protocol));
        wrong.extend(protocols.map(|protocol| format!("{name} names {protocol}, which is for front ends")));
    }
    wrong
}

/// All Rust files below `root`, tests and `mod.rs` included, relative to it.
fn files(root: &Path, below: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(root.join(below)).unwrap() {
        let path = below.join(entry.unwrap().file_name());
        if root.join(&path).is_dir() {
            files(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(path);
        }
    }
}

#[test]
fn each_layer_imports_only_the_layers_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeSet::new();
    files(&root, Path::new(""), &mut found);
    assert!(found.len() > 100, "{found:?}");
    let violations = |path: &PathBuf| violations(path, &std::fs::read_to_string(root.join(path)).unwrap());
    let wrong: Vec<String> = found.iter().flat_map(violations).collect();
    assert!(wrong.is_empty(), "imports against the layers (docs/architecture.md):\n{}", wrong.join("\n"));
}

#[test]
fn an_import_against_the_layers_is_found() {
    for (path, code) in [
        ("lsp/hover.rs", "use crate::image::Image;"),
        ("lsp/commands/mod.rs", "use crate::image::api::Operation;"),
        ("mcp/tools/run_tests.rs", "fn f() { crate::image::api::x() }"),
        ("lsp.rs", "use crate::checker::Checker;"),
        ("image/link.rs", "use crate::ide::texts::Texts;"),
        ("checker/copy_tests.rs", "use crate::ide::texts::Texts;"),
        ("ide/hover.rs", "use lsp_types::Hover;"),
        ("ide/fixes/names.rs", "use rmcp::model::Tool;"),
        ("session/actor.rs", "let error: tower_lsp::jsonrpc::Error;"),
        ("text/forms.rs", "use crate::model::diagnostic::Severity;"),
        ("lsp/hover.rs", "use super::super::image::Image;"),
        ("lsp/hover.rs", "use crate::{image, session};"),
        ("new_layer/x.rs", ""),
    ] {
        assert_eq!(violations(Path::new(path), code).len(), 1, "{path}: {code}");
    }
    for (path, code) in [
        ("lsp/hover.rs", "use crate::ide::hover;\nuse super::connection::Connection;\n// crate::image is not named"),
        ("ide/hover.rs", "use crate::image::api::symbols::Want;\nuse crate::shown;"),
        ("lsp/commands/eval.rs", "use super::super::to_proto;"),
        ("host/serve.rs", "use crate::image::Image;\nuse tower_lsp::LspService;"),
    ] {
        assert_eq!(violations(Path::new(path), code), Vec::<String>::new(), "{path}: {code}");
    }
}
