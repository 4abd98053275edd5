//! The registry of the codes of diagnostics. docs/diagnostics.md describes each; a test holds the
//! page, the image's Lisp sources and the host's sources to this list.

/// All codes, in alphabetical order.
pub const CODES: &[&str] = &[
    "cannot-confine",
    "check-stopped",
    "compile-time-error",
    "compiler",
    "confined",
    "constant-folding",
    "constant-modified",
    "deprecated",
    "duplicate-case-key",
    "duplicate-definition",
    "duplicate-variable",
    "end-of-file",
    "exhausted",
    "format-arguments",
    "ignore-unknown",
    "ignored-variable-used",
    "illegal-call",
    "lint-boolean-if",
    "lint-eq-literal",
    "lint-negated-when",
    "lint-unused-string",
    "load-failed",
    "macro-expansion",
    "malformed-binding",
    "malformed-form",
    "malformed-lambda-list",
    "no-system",
    "not-checked",
    "not-for-this-lisp",
    "note",
    "odd-keyword-arguments",
    "optional-and-key",
    "out-of-memory",
    "out-of-time",
    "read-eval",
    "reader-error",
    "redefinition",
    "set-constant",
    "style",
    "system-failed",
    "system-not-loaded",
    "too-many-diagnostics",
    "type-conflict",
    "unbalanced-close",
    "unbalanced-comment",
    "unbalanced-list",
    "unbalanced-string",
    "unbalanced-symbol",
    "undefined-function",
    "undefined-type",
    "undefined-variable",
    "unfinished-escape",
    "unfinished-prefix",
    "unknown-block",
    "unknown-class",
    "unknown-keyword",
    "unknown-package",
    "unknown-symbol",
    "unknown-tag",
    "unreachable-code",
    "unread-variable",
    "unused-function",
    "unused-variable",
    "wrong-argument-count",
];

/// Returns true if `code` is in the registry.
pub fn is_known(code: &str) -> bool {
    CODES.binary_search(&code).is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Words of the Lisp sources that look like codes and are none.
    const NO_CODES: &[&str] = &["ill-formed", "package-inferred"];

    /// The strings in the source `text`.
    fn strings(text: &str) -> impl Iterator<Item = &str> {
        text.lines().flat_map(|line| line.split('"').skip(1).step_by(2))
    }

    /// The text of the sources below `directory`, without this file.
    fn sources(directory: &Path) -> String {
        let mut all = String::new();
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                all += &sources(&path);
            } else if path.extension().is_some_and(|ext| ext == "rs" || ext == "lisp")
                && !path.ends_with("diagnostic_codes.rs")
            {
                all += &std::fs::read_to_string(path).unwrap();
            }
        }
        all
    }

    fn lisp() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../lisp/src")
    }

    #[test]
    fn the_page_describes_each_code_once() {
        assert!(CODES.is_sorted());
        let page = include_str!("../../../docs/diagnostics.md");
        let tables = page.split_once("\n## Codes\n").unwrap().1;
        let cells = tables.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let mut described: Vec<&str> =
            cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`')).collect();
        described.sort_unstable();
        assert_eq!(described, CODES);
    }

    #[test]
    fn the_image_gives_no_other_code() {
        let text = sources(&lisp().join("check"));
        let is_word = |word: &&str| word.contains('-') && word.chars().all(|c| c == '-' || c.is_ascii_lowercase());
        let like_codes: BTreeSet<&str> =
            strings(&text).filter(is_word).filter(|word| !word.starts_with('-') && !word.ends_with('-')).collect();
        assert!(like_codes.len() > 30, "{like_codes:?}");
        let unknown: Vec<&&str> =
            like_codes.iter().filter(|word| !is_known(word) && !NO_CODES.contains(word)).collect();
        assert!(unknown.is_empty(), "codes of lisp/src/check that are not in the registry: {unknown:?}");
    }

    #[test]
    fn each_code_is_given_by_the_image_or_the_host() {
        let text = sources(&lisp()) + &sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let given: BTreeSet<&str> = strings(&text).collect();
        let never: Vec<&&str> = CODES.iter().filter(|code| !given.contains(**code)).collect();
        assert!(never.is_empty(), "codes that nothing gives: {never:?}");
    }
}
