//! Consort: one live Common Lisp image, shared by a person's editor (LSP) and that person's
//! coding agent (MCP).
//!
//! Data flows in one direction: front end (`lsp`, `mcp`, `host::control`) -> `session` -> `ide`
//! -> {`checker`, `image`}, and back as the answer. Lower layers never call upward; events of the
//! image are sent to the session. See docs/architecture.md.

pub mod bounded_file;
pub mod checker;
pub mod config;
pub mod host;
pub mod ide;
pub mod image;
pub mod lsp;
pub mod mcp;
pub mod model;
pub mod remove_tree;
pub mod session;
pub mod shown;
pub mod text;

#[cfg(test)]
#[path = "../../tests/support/patience.rs"]
#[allow(unreachable_pub)]
mod patience;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    const MAP: &str = include_str!("../../docs/architecture.md");

    /// The words of `text` in backquotes.
    fn quoted(text: &str) -> impl Iterator<Item = &str> {
        text.split('`').skip(1).step_by(2)
    }

    /// The files named by the part of the map between two headings, each with its possible paths
    /// relative to the part's directory.
    fn named(from: &str, to: &str) -> Vec<Vec<PathBuf>> {
        let part = MAP.split_once(from).unwrap().1.split_once(to).unwrap().0;
        let mut named = Vec::new();
        for section in part.split("\n### ").skip(1) {
            let directories: Vec<&str> =
                quoted(section.lines().next().unwrap()).filter(|word| word.ends_with('/')).collect();
            for word in quoted(section).filter(|word| word.ends_with(".rs") || word.ends_with(".lisp")) {
                named.push(
                    [""].iter()
                        .chain(&directories)
                        .map(|dir| Path::new(dir).join(word).components().collect())
                        .collect(),
                );
            }
        }
        named
    }

    /// The source files below `root`, relative to it, without tests and without `mod.rs`, which
    /// belongs to its directory.
    fn sources(root: &Path, below: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in std::fs::read_dir(root.join(below)).unwrap() {
            let path = below.join(entry.unwrap().file_name());
            let name = path.file_name().unwrap().to_str().unwrap();
            if root.join(&path).is_dir() {
                sources(root, &path, found);
            } else if (name.ends_with(".rs") || name.ends_with(".lisp"))
                && !(name == "mod.rs" || name == "tests.rs" || name.ends_with("_tests.rs"))
            {
                found.insert(path);
            }
        }
    }

    /// The layers of the crate, with the layers that each may import. `main.rs` and `lib.rs` are
    /// above all layers.
    const LAYERS: &[(&str, &[&str])] = &[
        ("bounded_file", &[]),
        ("remove_tree", &[]),
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
        ("host", &["config", "image", "lsp", "mcp", "model", "session", "text"]),
    ];

    /// Files of front ends that still implement a feature by calling the image directly. The list
    /// may only get shorter.
    const FEATURES_IN_FRONT_ENDS: &[&str] = &[
        "lsp/actions/expand.rs",
        "lsp/commands/browse.rs",
        "lsp/commands/macroexpand.rs",
        "lsp/commands/names.rs",
        "lsp/commands/profile.rs",
        "lsp/commands/source_location.rs",
        "lsp/completion.rs",
        "lsp/definition.rs",
        "lsp/formatting.rs",
        "lsp/hover.rs",
        "lsp/inlay_hints.rs",
        "lsp/lenses.rs",
        "lsp/references.rs",
        "lsp/signature.rs",
        "lsp/type_definition.rs",
        "lsp/workspace_symbols.rs",
        "mcp/resources.rs",
        "mcp/tools/apropos.rs",
        "mcp/tools/describe_symbol.rs",
        "mcp/tools/lisp_edit_form.rs",
        "mcp/tools/macroexpand_form.rs",
        "mcp/tools/profile_code.rs",
        "mcp/tools/source_location.rs",
        "mcp/tools/threads.rs",
    ];

    /// Helpers without product-specific code, which every layer may import.
    const HELPERS: &[&str] = &["bounded_file", "remove_tree", "shown"];

    /// Crates that a layer below the front ends must not name.
    const PROTOCOLS: &[&str] = &["lsp_types", "tower_lsp", "rmcp"];

    #[test]
    fn each_layer_imports_only_the_layers_below_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = BTreeSet::new();
        sources(&root, Path::new(""), &mut found);
        let mut wrong = Vec::new();
        for path in found {
            let first = path.iter().next().unwrap().to_str().unwrap();
            let layer = first.strip_suffix(".rs").unwrap_or(first);
            let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else { continue };
            let text = std::fs::read_to_string(root.join(&path)).unwrap();
            let name = path.to_str().unwrap().to_owned();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let mut named = BTreeSet::new();
            for line in code {
                for part in line.split("crate::").skip(1) {
                    let module: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    if LAYERS.iter().any(|(known, _)| *known == module) && module != layer {
                        named.insert(module);
                    }
                }
                if !["lsp", "mcp", "host"].contains(&layer) {
                    named.extend(PROTOCOLS.iter().filter(|p| line.contains(**p)).map(|p| (*p).to_owned()));
                }
            }
            let excepted = FEATURES_IN_FRONT_ENDS.contains(&name.as_str());
            assert!(!excepted || named.contains("image"), "{name} names the image no more: take it off the list");
            for module in named {
                let free = HELPERS.contains(&module.as_str()) || allowed.contains(&module.as_str());
                if !(free || excepted && module == "image") {
                    wrong.push(format!("{name} names {module}, which {layer} may not"));
                }
            }
        }
        assert!(wrong.is_empty(), "imports against the layers (docs/architecture.md):\n{}", wrong.join("\n"));
    }

    #[test]
    fn the_map_has_every_file() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for (from, to, root) in [("\n## Rust", "\n## Lisp", "server/src"), ("\n## Lisp", "\n## Tests", "lisp/src")] {
            let root = workspace.join(root);
            let mut found = BTreeSet::new();
            sources(&root, Path::new(""), &mut found);
            let named = named(from, to);
            let listed: BTreeSet<&PathBuf> = named.iter().flatten().collect();
            for path in &found {
                assert!(listed.contains(path), "docs/architecture.md does not name {}", root.join(path).display());
            }
            for meant in &named {
                let there = meant.iter().any(|path| root.join(path).is_file());
                assert!(there, "docs/architecture.md names a file that is not there: {meant:?}");
            }
        }
    }

    #[test]
    fn the_wire_has_every_operation() {
        let page = include_str!("../../docs/wire.md");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lisp/src");
        let mut found = BTreeSet::new();
        sources(&root, Path::new(""), &mut found);
        for path in found {
            let text = std::fs::read_to_string(root.join(&path)).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("(define-operation \"")) {
                let name = line.split('"').next().unwrap();
                assert!(
                    page.contains(&format!("`{name}`")),
                    "docs/wire.md does not have the operation {name} of {}",
                    path.display()
                );
            }
        }
    }
}
