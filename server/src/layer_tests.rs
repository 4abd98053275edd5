//! Test that each layer of the crate imports only the layers that it may import.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::path_tests::{named, parts};

/// The layers, with the layers that each may import. `main.rs` and `lib.rs` are above all layers.
const LAYERS: &[(&str, &[&str])] = &[
    ("blocking", &[]),
    ("bounded_file", &[]),
    ("fault", &[]),
    ("file_stamp", &[]),
    ("steady", &[]),
    ("file_uri", &[]),
    ("framing", &[]),
    ("limits", &[]),
    ("locked", &[]),
    ("foreign_owned", &[]),
    ("private_file", &[]),
    ("remove_tree", &[]),
    ("search_paths", &[]),
    ("shown", &[]),
    ("model", &["text"]),
    ("text", &[]),
    // The patterns of `lint.rule` are read with the settings.
    ("config", &["model", "text"]),
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
const HELPERS: &[&str] = &[
    "blocking",
    "bounded_file",
    "fault",
    "file_stamp",
    "file_uri",
    "foreign_owned",
    "framing",
    "limits",
    "locked",
    "private_file",
    "remove_tree",
    "search_paths",
    "shown",
    "steady",
];

/// Crates of protocols, and the layers that may name them.
const PROTOCOLS: &[&str] = &["lsp_types", "tower_lsp", "rmcp"];
const MAY_NAME_PROTOCOLS: &[&str] = &["host", "lsp", "mcp"];

/// The types of the image that a layer re-exports for front ends: the file that re-exports them,
/// their module, and the reason. Plain data is in `model/` instead.
const REEXPORTS: &[(&str, &str, &str)] = &[
    ("session/debug.rs", "image::api", "the trait of the operations below, to name the type of an answer"),
    ("session/debug.rs", "image::api::breakpoints", OPERATIONS),
    ("session/debug.rs", "image::api::debug", OPERATIONS),
    ("session/debug.rs", "image::api::inspector", OPERATIONS),
    ("session/recordings.rs", "image::api::replay", OPERATIONS),
];

/// A debugger's requests are those of the image, one to one. A front end builds them, and the
/// session sends them to a stop, to a frozen failure or to a recording: a method of the session for
/// each request and each of the three would only repeat its parameters.
const OPERATIONS: &str = "requests of a debugger, which the session carries out at a stop, a failure or a recording";

/// Layers above all others, which may import everything.
const TOP: &[&str] = &[
    "bounded_file_tests",
    "circle_tests",
    "cli",
    "lib",
    "layer_tests",
    "main",
    "path_tests",
    "shown_tests",
    "source_tests",
    "waiting_tests",
];

/// Returns the imports in the file `path` (relative to `src/`) with the source `text` that its
/// layer may not have.
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
    let module = path.with_extension("").to_str().unwrap().replace('/', "::");
    let module = module.strip_suffix("::mod").unwrap_or(&module);
    let (main, tests) = parts(text);
    let own = named(module, &main);
    let of_tests = named(&format!("{module}::tests"), &tests);
    let mut wrong = BTreeSet::new();
    for one in own.iter().chain(&of_tests) {
        let named = one.path.split("::").next().unwrap_or_default();
        if named == "*" {
            wrong.insert(format!("{name} imports the crate's root whole"));
        }
        if named == layer || !LAYERS.iter().any(|(known, _)| *known == named) {
            continue;
        }
        if one.upwards {
            wrong.insert(format!("{name} leaves its layer by `super::`; use `crate::`"));
        } else if !HELPERS.contains(&named) && !allowed.contains(&named) {
            wrong.insert(format!("{name} names {named}, which {layer} may not"));
        }
    }
    let reexported = own.iter().filter(|one| one.public && ["ide", "session"].contains(&layer));
    for one in reexported.filter(|one| one.path.starts_with("image::") || one.path.starts_with("checker::")) {
        let within = one.path.rsplit_once("::").map_or("", |(within, _)| within);
        if !REEXPORTS.iter().any(|(file, known, _)| path == Path::new(file) && *known == within) {
            wrong.insert(format!("{name} hands {} on to the front ends, which REEXPORTS does not list", one.path));
        }
    }
    let code = main + &tests;
    if !MAY_NAME_PROTOCOLS.contains(&layer) {
        let protocols = PROTOCOLS.iter().filter(|protocol| code.contains(**protocol));
        wrong.extend(protocols.map(|protocol| format!("{name} names {protocol}, which is for front ends")));
    }
    wrong.into_iter().collect()
}

/// Collects all Rust files below `root`, relative to it, including tests and `mod.rs`.
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
fn each_entry_of_the_table_is_needed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (file, module, _) in REEXPORTS {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let own = named(&file.replace('/', "::").replace(".rs", ""), &parts(&text).0);
        let is = |path: &str| path.rsplit_once("::").is_some_and(|(within, _)| within == *module);
        assert!(own.iter().any(|one| one.public && is(&one.path)), "{file} hands nothing of {module} on");
    }
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
        ("lsp/hover.rs", "use super::{super::image::Image};"),
        ("lsp/hover.rs", "use crate as c;\nfn f() -> c::image::Image {}"),
        ("lsp/hover.rs", "mod tests {\n    use super::super::super::image::Image;"),
        ("lsp/hover.rs", "use super::super::*;"),
        ("ide/hover.rs", "pub use crate::image::api::symbols::Want;"),
        ("session/jobs.rs", "pub type Handle = crate::image::Image;"),
        ("new_layer/x.rs", ""),
    ] {
        assert_eq!(violations(Path::new(path), code).len(), 1, "{path}: {code}");
    }
    for (path, code) in [
        ("lsp/hover.rs", "use crate::ide::hover;\nuse super::connection::Connection;\n// crate::image is not named"),
        ("ide/hover.rs", "use crate::image::api::symbols::Want;\nuse crate::shown;"),
        ("lsp/commands/eval.rs", "use super::super::to_proto;"),
        ("session/debug.rs", "pub use crate::image::api::debug::DebugStops;"),
        ("host/serve.rs", "use crate::image::Image;\nuse tower_lsp::LspService;"),
    ] {
        assert_eq!(violations(Path::new(path), code), Vec::<String>::new(), "{path}: {code}");
    }
}
