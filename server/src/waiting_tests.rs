//! A test that no thread of requests waits for the disk to resolve the links of a path.

use crate::source_tests::sources;

/// The layers whose code runs on the threads of requests.
const LAYERS: [&str; 5] = ["dap", "ide", "lsp", "mcp", "session"];

/// The files of these layers that resolve paths on the current thread: the file, the number of
/// calls, and the reason.
const KNOWN: &[(&str, usize, &str)] = &[
    ("ide/asd.rs", 2, "the list of definitions, whose callers read directories on a thread of their own"),
    ("ide/files.rs", 1, "the walk of a directory, on a thread of its own"),
    ("ide/index/store.rs", 3, "the index, on a thread of its own"),
    ("ide/texts.rs", 2, "`resolve` and `get`, of `spawn_blocking`"),
    ("mcp/tools/diagnostics.rs", 1, "`real`, of `spawn_blocking`"),
    ("session/bound_file.rs", 3, "`BoundFile` says that it blocks"),
    ("session/changed_files.rs", 1, "`spawn_blocking`"),
    ("session/outside_workspace.rs", 1, "for requests that are refused"),
    ("session/reportable_files.rs", 2, "once for a check of a system"),
    ("session/file_identity.rs", 2, "`real_path`, of `spawn_blocking`"),
    ("session/source_files.rs", 3, "the readers, of `spawn_blocking`"),
    ("session/sources.rs", 2, "`Sources` says that it blocks"),
    ("session/workspace_checks/pass.rs", 1, "`real` says that it blocks"),
];

/// Returns the number of times that the source `text` resolves a path on the current thread.
fn resolved_at_once(text: &str) -> usize {
    let main = text.split_once("mod tests {").map_or(text, |(main, _)| main);
    main.matches("canonicalize(").count() - main.matches("tokio::fs::canonicalize(").count()
}

#[test]
fn paths_are_resolved_beside_the_threads_of_requests() {
    let text =
        "a.canonicalize(); std::fs::canonicalize(b); tokio::fs::canonicalize(c).await; mod tests { canonicalize() }";
    assert_eq!(resolved_at_once(text), 2);

    let of_requests = |name: &str| name.split('/').next().is_some_and(|layer| LAYERS.contains(&layer));
    let mut found: Vec<(String, usize)> = sources()
        .into_iter()
        .filter(|(name, _)| of_requests(name))
        .map(|(name, code)| (name, resolved_at_once(&code)))
        .filter(|(_, count)| *count > 0)
        .collect();
    assert!(found.len() > 5, "{found:?}");
    let known = |name: &str| KNOWN.iter().find(|(known, ..)| name == *known).map_or(0, |(_, count, _)| *count);
    found.retain(|(name, count)| *count > known(name));
    assert!(found.is_empty(), "paths are resolved on a thread of requests; use `tokio::fs`: {found:?}");
}
