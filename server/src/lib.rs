//! Consort: one live Common Lisp image, shared by a person's editor (LSP) and that person's coding agent (MCP).
//!
//! Data flows one way: door (`lsp`, `mcp`, `host::control`) -> `session` -> `ide` -> `image`, and back as the answer.
//! Nothing lower calls upward; what the image volunteers enters the session as an event. See docs/architecture.md.

pub mod bounded_file;
pub mod config;
pub mod host;
pub mod ide;
pub mod image;
pub mod lsp;
pub mod mcp;
pub mod remove_tree;
pub mod session;
pub mod shown;
pub mod text;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    const MAP: &str = include_str!("../../docs/architecture.md");

    /// The words of `text` that stand in backquotes.
    fn quoted(text: &str) -> impl Iterator<Item = &str> {
        text.split('`').skip(1).step_by(2)
    }

    /// The files that the part of the map between two headings names: each as it may be meant, relative to the part's directory.
    fn named(from: &str, to: &str) -> Vec<Vec<PathBuf>> {
        let part = MAP.split_once(from).unwrap().1.split_once(to).unwrap().0;
        let mut named = Vec::new();
        for room in part.split("\n### ").skip(1) {
            let rooms: Vec<&str> = quoted(room.lines().next().unwrap()).filter(|word| word.ends_with('/')).collect();
            for word in quoted(room).filter(|word| word.ends_with(".rs") || word.ends_with(".lisp")) {
                named.push(
                    [""].iter().chain(&rooms).map(|room| Path::new(room).join(word).components().collect()).collect(),
                );
            }
        }
        named
    }

    /// The sources below `root`, relative to it, without tests and without `mod.rs`, which is its room's.
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
