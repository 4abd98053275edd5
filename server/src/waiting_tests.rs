//! Links of paths are resolved where a wait for the disk holds no request up, held by a test.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::{Path, PathBuf};

/// The layers whose code runs on the threads of requests.
const LAYERS: [&str; 5] = ["dap", "ide", "lsp", "mcp", "session"];

/// The files of these layers that resolve paths at once: how often, and the reason.
const KNOWN: &[(&str, usize, &str)] = &[
    ("ide/files.rs", 1, "the walk of a directory, on a thread of its own"),
    ("ide/index/store.rs", 3, "the index, on a thread of its own"),
    ("ide/texts.rs", 2, "`of_blocking`, and `spawn_blocking`"),
    ("mcp/tools/diagnostics.rs", 1, "`real`, of `spawn_blocking`"),
    ("session/bound_file.rs", 3, "`BoundFile` says that it blocks"),
    ("session/changed_files.rs", 1, "`spawn_blocking`"),
    ("session/outside_workspace.rs", 1, "for requests that are refused"),
    ("session/plan.rs", 2, "once for a check of a system"),
    ("session/provenance.rs", 1, "`compute_all`"),
    ("session/source_files.rs", 5, "`real_path` and the readers, of `spawn_blocking`"),
    ("session/sources.rs", 2, "`Sources` says that it blocks"),
];

/// The number of times that the source `text` resolves a path on the thread that it runs on.
fn resolved_at_once(text: &str) -> usize {
    let main = text.split_once("mod tests {").map_or(text, |(main, _)| main);
    main.matches("canonicalize(").count() - main.matches("tokio::fs::canonicalize(").count()
}

fn add_all(root: &Path, below: &Path, found: &mut Vec<(PathBuf, usize)>) {
    for entry in std::fs::read_dir(root.join(below)).unwrap() {
        let path = below.join(entry.unwrap().file_name());
        let name = path.to_str().unwrap();
        if root.join(&path).is_dir() {
            add_all(root, &path, found);
        } else if name.ends_with(".rs") && !name.contains("tests.rs") {
            let count = resolved_at_once(&std::fs::read_to_string(root.join(&path)).unwrap());
            found.extend((count > 0).then_some((path, count)));
        }
    }
}

#[test]
fn paths_are_resolved_beside_the_threads_of_requests() {
    let text =
        "a.canonicalize(); std::fs::canonicalize(b); tokio::fs::canonicalize(c).await; mod tests { canonicalize() }";
    assert_eq!(resolved_at_once(text), 2);

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    LAYERS.iter().for_each(|layer| add_all(&root, Path::new(layer), &mut found));
    assert!(found.len() > 5, "{found:?}");
    let known =
        |path: &Path| KNOWN.iter().find(|(known, ..)| path == Path::new(known)).map_or(0, |(_, count, _)| *count);
    found.retain(|(path, count)| *count > known(path));
    assert!(found.is_empty(), "paths are resolved on a thread of requests; use `tokio::fs`: {found:?}");
}
