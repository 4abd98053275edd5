//! The registry of the codes of diagnostics. docs/diagnostics.md describes each code. A test
//! compares the page, the image's Lisp sources and the host's sources with this list.

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
    "lint-misplaced-docstring",
    "lint-missing-otherwise",
    "lint-negated-when",
    "lint-nil-key",
    "lint-own",
    "lint-package-cycle",
    "lint-quoted-key",
    "lint-shadowed-function",
    "lint-unsorted-names",
    "lint-unused-definition",
    "lint-unused-export",
    "lint-unused-import",
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

/// Returns the address of the section about a code in the documentation of this version, below the
/// address of the repository (`repository` in `Cargo.toml`). Returns `None` if that address is
/// empty, or if the code is not in the registry.
pub fn page(repository: &str, code: &str) -> Option<String> {
    let (page, anchor) = section(code)?;
    let repository = repository.trim_end_matches('/');
    let version = env!("CARGO_PKG_VERSION");
    (!repository.is_empty()).then(|| format!("{repository}/blob/v{version}/docs/{page}#{anchor}"))
}

/// Returns the page of `docs/` with the section about a code, and the section's anchor.
fn section(code: &str) -> Option<(&'static str, &str)> {
    if !is_known(code) {
        return None;
    }
    Some(match code.strip_prefix("lint-") {
        Some("own") => ("lint.md", "rules-of-ones-own"),
        Some(rule) => ("lint.md", rule),
        None => ("diagnostics.md", code),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Words that look like codes and are not, in the files that make findings.
    const NO_CODES: &[&str] = &[
        "cannot-fork",
        "check-system",
        "destructuring-bind",
        "ill-formed",
        "kebab-case",
        "loaded-files",
        "multiple-value-bind",
        "package-inferred",
        "source-directories",
        "style-warning",
    ];

    /// The words before a string that is a code, in Lisp and in Rust.
    const MAKERS: &[&str] = &[
        ":code ",
        "(code ",
        "= code ",
        "setf code ",
        "(code-p ",
        "-type ",
        "(:error ",
        "(:warning ",
        "(:style-warning ",
        "(:note ",
        "(refused ",
        "storage-condition) ",
        "(severity-of condition) ",
        "code: ",
        "Severity::Error, ",
        "Severity::Warning, ",
        "Severity::StyleWarning, ",
        "Severity::Note, ",
        "Severity::Information, ",
        "diagnostic(",
        "unterminated(",
        ".code == ",
    ];

    /// Words of Rust files that make findings.
    const RUST: &[&str] = &["Diagnostic::new(", "Diagnostic {", ".diagnostic(", "finding("];

    /// Returns the strings in the source `text`.
    fn strings(text: &str) -> impl Iterator<Item = &str> {
        text.lines().flat_map(|line| line.split('"').skip(1).step_by(2))
    }

    /// Returns the strings that are codes because of the words before them, whatever they look
    /// like. Parts of code in Lisp's `(param params "code" ...)` do not follow one of these words.
    fn made(text: &str) -> BTreeSet<String> {
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.replace("( \"", "(\"");
        let behind = MAKERS.iter().flat_map(|maker| line.split(maker).skip(1).map(str::to_owned).collect::<Vec<_>>());
        let string = |rest: &String| Some(rest.strip_prefix('"')?.split('"').next()?.to_owned());
        behind.filter_map(|rest| string(&rest)).filter(|code| !code.trim().is_empty()).collect()
    }

    /// Returns the strings that look like codes.
    fn like_codes(text: &str) -> BTreeSet<String> {
        let is_word = |word: &&str| word.contains('-') && word.chars().all(|c| c == '-' || c.is_ascii_lowercase());
        let whole = |word: &&str| !word.starts_with('-') && !word.ends_with('-') && !NO_CODES.contains(word);
        strings(text).filter(is_word).filter(whole).map(str::to_owned).collect()
    }

    /// Returns the sources below `directory`, without this file and without tests.
    fn sources(directory: &Path) -> Vec<String> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                all.extend(sources(&path));
            } else if (name.ends_with(".rs") || name.ends_with(".lisp"))
                && !name.ends_with("tests.rs")
                && name != "diagnostic_codes.rs"
            {
                let text = std::fs::read_to_string(path).unwrap();
                let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let text = lines.collect::<Vec<_>>().join("\n");
                all.push(text.split_once("mod tests {").map_or(text.as_str(), |(main, _)| main).to_owned());
            }
        }
        all
    }

    fn lisp() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../lisp/src")
    }

    /// Returns the codes that a source has.
    fn given(text: &str) -> BTreeSet<String> {
        made(text).into_iter().chain(like_codes(text)).collect()
    }

    /// Returns the codes of the image: those of its checks, and of the operations that call these.
    fn of_image() -> BTreeSet<String> {
        let check = sources(&lisp().join("check"));
        let ops = sources(&lisp().join("ops")).into_iter().filter(|text| text.contains("finding"));
        let mut codes: BTreeSet<String> = check.into_iter().chain(ops).flat_map(|text| given(&text)).collect();
        // The table of SBCL's words. Each list in it begins with a code.
        let kinds = std::fs::read_to_string(lisp().join("check/kinds.lisp")).unwrap();
        let first = |line: &str| line.trim_start().strip_prefix("(\"")?.split('"').next().map(str::to_owned);
        codes.extend(kinds.lines().filter_map(first));
        codes
    }

    /// Returns the codes of the host.
    fn of_host() -> BTreeSet<String> {
        let all = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let makers = all.into_iter().filter(|text| RUST.iter().any(|word| text.contains(word)));
        makers.flat_map(|text| given(&text)).collect()
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

    /// Returns the anchors of a page: explicit ones, and those made of its headings.
    fn anchors(page: &str) -> BTreeSet<String> {
        let own = page.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned);
        let headings = page.lines().filter(|line| line.starts_with('#')).map(|line| {
            let kept = |char: &char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_');
            let words: String = line.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect();
            words.replace(' ', "-")
        });
        own.chain(headings).collect()
    }

    #[test]
    fn each_code_has_its_section() {
        let pages = [
            ("diagnostics.md", anchors(include_str!("../../../docs/diagnostics.md"))),
            ("lint.md", anchors(include_str!("../../../docs/lint.md"))),
        ];
        for code in CODES {
            let (page, anchor) = section(code).unwrap();
            let (_, anchors) = pages.iter().find(|(name, _)| *name == page).unwrap();
            assert!(anchors.contains(anchor), "{page} has no section {anchor}");
        }
    }

    #[test]
    fn a_section_has_an_address_in_the_repository() {
        let address = |code| page("https://example.org/consort/", code);
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            address("lint-eq-literal"),
            Some(format!("https://example.org/consort/blob/v{version}/docs/lint.md#eq-literal"))
        );
        assert_eq!(
            address("unknown-package"),
            Some(format!("https://example.org/consort/blob/v{version}/docs/diagnostics.md#unknown-package"))
        );
        assert_eq!((address("of-another"), page("", "style")), (None, None));
    }

    #[test]
    fn each_form_of_a_code_is_found() {
        for text in [
            "(make-finding :start 0 :code \"new\" :message x)",
            "(problem (path &optional (code \"new\")))",
            "Diagnostic::new(span, Severity::Error,\n    \"new\", message)",
            "self.diagnostic(\n    \"new\",\n    span)",
            "Rule { name: \"a\", code: \"new\", judge: a }",
            "(setf code \"new\" message x)",
        ] {
            assert_eq!(given(text), BTreeSet::from(["new".to_owned()]), "{text}");
        }
        assert_eq!(given("(problem path words \"new-one\")"), BTreeSet::from(["new-one".to_owned()]));
        assert_eq!(given("(param params \"code\" 'string)"), BTreeSet::new());
    }

    #[test]
    fn no_other_code_is_given() {
        for (by, codes) in [("the image", of_image()), ("the host", of_host())] {
            assert!(codes.len() > 10, "{by}: {codes:?}");
            let unknown: Vec<&String> = codes.iter().filter(|code| !is_known(code)).collect();
            assert!(unknown.is_empty(), "codes of {by} that are not in the registry: {unknown:?}");
        }
    }

    #[test]
    fn each_code_is_given_by_the_image_or_the_host() {
        let (image, host) = (of_image(), of_host());
        let never: Vec<&&str> = CODES.iter().filter(|code| !image.contains(**code) && !host.contains(**code)).collect();
        assert!(never.is_empty(), "codes that nothing gives: {never:?}");
    }
}
