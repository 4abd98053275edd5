//! Consort: one live Common Lisp image, shared by a person's editor (LSP) and that person's
//! coding agent (MCP).
//!
//! Data flows in one direction: front end (`lsp`, `mcp`, `dap`) -> `ide` -> `session` (as `Backend`
//! and `Compiler`) -> {`checker`, `image`}, and back as the answer. Front ends call the session
//! directly for documents, jobs and approval, and `host::control`, which serves the command line,
//! calls nothing else. Lower layers never call upward; events of the image are sent to the session.
//! See docs/architecture.md.

mod blocking;
pub mod bounded_file;
pub mod checker;
pub mod config;
pub mod dap;
mod fault;
mod file_stamp;
pub mod file_uri;
mod foreign_owned;
mod framing;
pub mod host;
pub mod ide;
pub mod image;
pub mod limits;
mod locked;
pub mod lsp;
pub mod mcp;
pub mod model;
mod private_file;
pub mod remove_tree;
mod search_paths;
pub mod session;
pub mod shown;
mod steady;
pub mod text;

#[cfg(test)]
#[path = "../../tests/support/patience.rs"]
#[allow(unreachable_pub)]
mod patience;

#[cfg(test)]
mod bounded_file_tests;
#[cfg(test)]
mod circle_tests;
#[cfg(test)]
mod layer_tests;
#[cfg(test)]
mod path_tests;
#[cfg(test)]
mod shown_tests;
#[cfg(test)]
mod source_tests;
#[cfg(test)]
mod waiting_tests;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    const MAP: &str = include_str!("../../docs/architecture.md");

    /// Returns the words of `text` in backquotes.
    fn quoted(text: &str) -> impl Iterator<Item = &str> {
        text.split('`').skip(1).step_by(2)
    }

    fn is_source(name: &str) -> bool {
        [".rs", ".lisp", ".ts", ".lua"].iter().any(|end| name.ends_with(end)) && !name.ends_with(".d.ts")
    }

    /// Returns the files named by the part of the map between two headings, each with its possible
    /// paths relative to the part's directory.
    fn named(from: &str, to: &str) -> Vec<Vec<PathBuf>> {
        let part = MAP.split_once(from).unwrap().1.split_once(to).unwrap().0;
        let mut named = Vec::new();
        for section in part.split("\n### ").skip(1) {
            let directories: Vec<&str> =
                quoted(section.lines().next().unwrap()).filter(|word| word.ends_with('/')).collect();
            for word in quoted(section).filter(|word| is_source(word)) {
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

    /// Collects the source files below `root`, relative to it, without tests and without `mod.rs`,
    /// which belongs to its directory. The tests of a file `x.rs` are in `x_tests.rs`.
    pub(super) fn sources(root: &Path, below: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in std::fs::read_dir(root.join(below)).unwrap() {
            let path = below.join(entry.unwrap().file_name());
            let name = path.file_name().unwrap().to_str().unwrap();
            let tested = name.strip_suffix("_tests.rs").map(|of| root.join(path.with_file_name(format!("{of}.rs"))));
            if root.join(&path).is_dir() {
                sources(root, &path, found);
            } else if is_source(name)
                && !(name == "mod.rs" || name == "tests.rs" || tested.is_some_and(|tested| tested.is_file()))
            {
                found.insert(path);
            }
        }
    }

    #[test]
    fn the_map_has_every_file() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let (vscode, neovim) = ("\n### `vscode/src/`", "\n### `neovim/lua/consort/`");
        for (from, to, root) in [
            ("\n## Rust", "\n## Lisp", "server/src"),
            ("\n## Lisp", "\n## Editors", "lisp/src"),
            ("\n## Editors", neovim, "editors/vscode/src"),
            (vscode, "\n## Tests", "editors/neovim/lua/consort"),
        ] {
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

    /// Checks that the files that the walks of "How to add to it" change exist. For a file that a
    /// walk creates (`documentation` or `X`), only the directory must exist.
    #[test]
    fn the_walks_name_files_that_are_there() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let walks = MAP.split_once("\n## How to add to it").unwrap().1.split_once("\n## ").unwrap().0;
        let cells = walks.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let named: Vec<&str> =
            cells.flat_map(|cell| cell.split('`').step_by(2)).filter(|path| !path.is_empty()).collect();
        assert!(named.len() > 20, "{named:?}");
        for path in named {
            let made = path.contains("/documentation.") || path.contains("/X.");
            let there = if made { Path::new(path).parent().unwrap() } else { Path::new(path) };
            assert!(workspace.join(there).exists(), "docs/architecture.md has {path} in a walk, which is not there");
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
