//! The keywords of the constructors of structures in the workspace's texts.

use crate::ide::index::Snapshot;
use crate::text::definitions;

/// The maximum number of structures in a chain of `:include`.
const MAX_DEPTH: usize = 32;

/// Returns the keywords, with colons, of the structure constructor with the name `key`
/// ([`definitions::key`]). Returns none if no structure of the texts has such a constructor.
pub(super) fn keywords(texts: &Snapshot, key: &str) -> Vec<String> {
    let structures = || texts.files.iter().flat_map(|file| &file.definitions).filter(|one| one.naming.is_some());
    let made = structures().find_map(|one| {
        let mut constructors = one.naming.iter().flat_map(|naming| &naming.constructors);
        constructors.find(|constructor| definitions::key(&constructor.written) == key).map(|found| (one, found))
    });
    let Some((structure, constructor)) = made else { return Vec::new() };
    if let Some(keys) = &constructor.keys {
        return keys.iter().map(|name| format!(":{}", name.to_lowercase())).collect();
    }
    let (mut found, mut at) = (Vec::new(), Some(structure));
    for _ in 0..MAX_DEPTH {
        let Some(one) = at else { break };
        found.extend(one.slots.iter().map(|slot| format!(":{}", definitions::key(slot))));
        let included = one.supers.first().map(|included| definitions::key(included));
        at = included.and_then(|included| structures().find(|other| other.key == included));
    }
    found
}
