//! Fuzzy search in the names of the index.

use std::sync::Arc;

use super::Snapshot;
use super::entry::{FileEntry, Indexed};
use crate::ide::partial_name::fits;

/// The limits of a search.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of results.
    pub most: usize,
}

/// A definition that was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The file.
    pub file: Arc<FileEntry>,
    /// The index of the definition in the file.
    pub index: usize,
}

impl Found {
    /// Returns the definition.
    pub fn definition(&self) -> &Indexed {
        &self.file.definitions[self.index]
    }
}

/// Returns the definitions whose names match, best first. Matches are ranked in this order: an
/// equal name, a prefix, prefixes of words, a substring, a subsequence. Among equal ranks, shorter
/// names come first. An empty query matches all definitions of open files.
pub fn search(snapshot: &Snapshot, query: &str, limits: Limits) -> Vec<Found> {
    let query = query.trim().to_lowercase();
    let mut ranked: Vec<(u8, usize, usize, usize)> = Vec::new();
    for (file_index, file) in snapshot.files.iter().enumerate() {
        for (index, one) in file.definitions.iter().enumerate() {
            let rank = if query.is_empty() {
                file.open.is_some().then_some(0)
            } else {
                rank(&query, one.key.trim_start_matches("(setf ").trim_end_matches(')'))
            };
            if let Some(rank) = rank {
                let length = if query.is_empty() { 0 } else { one.key.len() };
                ranked.push((rank, length, file_index, index));
            }
        }
    }
    if ranked.len() > limits.most {
        ranked.select_nth_unstable(limits.most);
        ranked.truncate(limits.most);
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, _, file, index)| Found { file: snapshot.files[file].clone(), index }).collect()
}

fn rank(query: &str, name: &str) -> Option<u8> {
    if name.len() < query.len() {
        return None;
    }
    if name == query {
        return Some(0);
    }
    if name.starts_with(query) {
        return Some(1);
    }
    let mut rest = name.chars();
    if !query.chars().all(|wanted| rest.any(|char| char == wanted)) {
        return None;
    }
    if fits(query, name) {
        return Some(2);
    }
    Some(if name.contains(query) { 3 } else { 4 })
}
