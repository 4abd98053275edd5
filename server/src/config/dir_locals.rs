//! Emacs's file of settings for a directory, of which the indentation rules are used.

use std::path::Path;

/// The name of the file.
pub const NAME: &str = ".dir-locals.el";
/// The largest file that is read, in bytes.
pub const LIMIT: u64 = 256 << 10;

/// Returns the reason, for a person, why the file in `directory` is not used, or `None` if it is
/// used or does not exist.
pub(super) fn fault(directory: &Path) -> Option<String> {
    let facts = std::fs::metadata(directory.join(NAME)).ok()?;
    if !facts.is_file() {
        return Some("is no regular file; its rules of indentation are not used".into());
    }
    (facts.len() > LIMIT).then(|| {
        let (size, limit) = (facts.len(), LIMIT);
        format!(
            "has {size} bytes, and at most {limit} are read; its rules of indentation are not used: shorten it, or put \
             them into format.indent of consort.toml"
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::trust::TrustStore;

    #[test]
    fn a_file_that_is_too_long_is_a_problem() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().canonicalize().unwrap();
        let problems = || {
            let store = TrustStore::within(workspace.join("trust"));
            let config = Config::load_from(None, &workspace, &store);
            config.problems.iter().map(ToString::to_string).collect::<Vec<String>>()
        };
        assert_eq!(problems(), Vec::<String>::new());
        let file = workspace.join(NAME);
        std::fs::write(&file, "((nil))").unwrap();
        assert_eq!(problems(), Vec::<String>::new());
        std::fs::write(&file, " ".repeat(LIMIT as usize + 1)).unwrap();
        let said = problems();
        assert!(said.len() == 1 && said[0].contains("262145 bytes, and at most 262144 are read"), "{said:?}");
    }
}
