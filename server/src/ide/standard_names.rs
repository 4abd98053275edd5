//! The names of COMMON-LISP, known without an image from the table of the HyperSpec's pages.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::hyperspec;
use super::name_index::NameIndex;
use crate::image::api::name_index::{Indexed, IndexedPackage};

/// The meanings of those symbols for which the name of the page does not show them. The first
/// letter is `f`unction, `m`acro or special `o`perator, the second `v`ariable or `c`onstant, the
/// third `c`lass, condition (`e`) or `t`ype.
const SEVERAL: [(&str, &str); 37] = [
    ("*", "fv-"),
    ("+", "fv-"),
    ("-", "fv-"),
    ("/", "fv-"),
    ("abort", "f--"),
    ("and", "m-t"),
    ("atom", "f-t"),
    ("bit", "f-t"),
    ("character", "f-c"),
    ("complex", "f-c"),
    ("cons", "f-c"),
    ("continue", "f--"),
    ("eql", "f-t"),
    ("error", "f-e"),
    ("float", "f-c"),
    ("function", "o-c"),
    ("lambda", "m--"),
    ("list", "f-c"),
    ("logical-pathname", "f-c"),
    ("member", "f-t"),
    ("method-combination", "--c"),
    ("mod", "f-t"),
    ("muffle-warning", "f--"),
    ("nil", "-ct"),
    ("not", "f-t"),
    ("null", "f-c"),
    ("or", "m-t"),
    ("pathname", "f-c"),
    ("rational", "f-c"),
    ("setf", "m--"),
    ("store-value", "f--"),
    ("string", "f-c"),
    ("t", "-cc"),
    ("type", "---"),
    ("use-value", "f--"),
    ("values", "f-t"),
    ("vector", "f-c"),
];

/// The keyword parameters of the standard's functions (CLHS, each function's page).
const KEYWORDS: &str = include_str!("standard_keywords.txt");

/// Returns the index of an image that has only COMMON-LISP and COMMON-LISP-USER. Only the keyword
/// parameters of functions are known.
pub fn index() -> Arc<NameIndex> {
    static INDEX: OnceLock<Arc<NameIndex>> = OnceLock::new();
    INDEX
        .get_or_init(|| {
            let keywords: HashMap<&str, &str> = KEYWORDS.lines().filter_map(|line| line.split_once(' ')).collect();
            let symbols = hyperspec::symbols().map(|(name, page)| line(name, page, keywords.get(name))).collect();
            let package = |name: &str, nickname: &str, uses: &[&str], symbols: Vec<String>| IndexedPackage {
                name: name.to_owned(),
                nicknames: vec![nickname.to_owned()],
                uses: uses.iter().map(|&used| used.to_owned()).collect(),
                system: name == "COMMON-LISP",
                symbols: Some(symbols),
                ..IndexedPackage::default()
            };
            let packages = vec![
                package("COMMON-LISP", "CL", &[], symbols),
                package("COMMON-LISP-USER", "CL-USER", &["COMMON-LISP"], Vec::new()),
            ];
            Arc::new(NameIndex::default().updated(Indexed { packages }))
        })
        .clone()
}

/// Returns a symbol as a line of the answer to `name-index` (docs/wire.md).
fn line(name: &str, page: &str, keywords: Option<&&str>) -> String {
    let several = SEVERAL.iter().find(|(known, _)| *known == name).map(|(_, meanings)| *meanings);
    let meanings = several.unwrap_or(match page.as_bytes().first() {
        Some(b'f') => "f--",
        Some(b'm') => "m--",
        Some(b's') => "o--",
        Some(b'v') => "-v-",
        Some(b't') => "--c",
        Some(b'e') => "--e",
        _ => "---",
    });
    let parameters = keywords.map(|keywords| format!("\t\t&key {keywords}")).unwrap_or_default();
    format!("E{meanings}{}{parameters}", name.to_uppercase())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_has_its_names_without_an_image() {
        let index = index();
        let user = index.package("CL-USER", None).unwrap();
        let kind = |name: &str| index.written(name, Some(user)).map(|symbol| symbol.kind());
        for (name, expected) in [
            ("with-open-file", "macro"),
            ("let*", "special operator"),
            ("*print-base*", "variable"),
            ("car", "function"),
            ("cl:stream", "class"),
            ("file-error", "condition"),
            ("list", "function"),
            ("t", "constant"),
        ] {
            assert_eq!(kind(name), Some(expected), "{name}");
        }
        let keywords = |name: &str| index.written(name, Some(user)).unwrap().keywords().collect::<Vec<_>>().join(" ");
        assert_eq!(keywords("make-string"), ":element-type :initial-element");
        assert_eq!(keywords("car"), "");
        assert!(KEYWORDS.lines().all(|line| {
            line.split(' ').next().is_some_and(|name| kind(name) == Some("function") || name == "pushnew")
        }));
        assert_eq!(index.package("CL", None).unwrap().symbols.len(), 978);
        let several = hyperspec::symbols().filter(|(_, page)| page.starts_with("a_"));
        assert_eq!(several.map(|(name, _)| name).collect::<Vec<_>>(), SEVERAL.map(|(name, _)| name));
    }
}
