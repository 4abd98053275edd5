//! Completion of file names in strings, and of the names of systems and components in system
//! definitions.

use std::path::{Path, PathBuf};

use super::{Item, Pattern};
use crate::ide::asd::AsdFiles;
use crate::text::Span;
use crate::text::datum::{Form, Kind};
use crate::text::document::Document;

/// The maximum number of directory entries that are read.
const ENTRIES: usize = 2_000;
/// The maximum size in bytes of a system definition that is read for its version.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Directories in which systems are installed.
const SYSTEMS: [&str; 2] = ["/usr/share/common-lisp/systems", "/usr/local/share/common-lisp/systems"];

/// A partial file name in a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartialFile {
    /// The last component as typed so far.
    pub(super) typed: String,
    /// The span that a completion replaces: that of the last component.
    pub(super) replace: Span,
    /// The directory as typed, up to and including its last slash. May be empty.
    directory: String,
    /// True if the string names a component of a system. Such a name is a file name without its
    /// type.
    component: bool,
}

/// Returns the partial file name at `offset`. It may be in a string with a slash, after `#p`, in a
/// call that takes a file, or in `(:file "...")`.
pub(super) fn partial(document: &Document, offset: usize) -> Option<PartialFile> {
    let form = Form::at(document, offset)?;
    let path = form.path(offset);
    let string = path.last().filter(|node| node.kind == Kind::String && node.span.start < offset)?;
    let text: String = document.text().slice(string.span.start + 1..offset).to_string();
    // A tilde stands for the home directory only at the beginning.
    let behind = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(&text);
    if behind.contains(['"', '\n', '\\', '*', '?', '[', '~']) {
        return None;
    }
    let list = path.iter().rev().find(|node| node.kind == Kind::List);
    let operator = list.and_then(|list| list.children.first()).and_then(|head| form.name(head)).unwrap_or_default();
    let component = matches!(operator.as_str(), ":file" | ":module" | ":static-file");
    let takes_file = matches!(
        operator.as_str(),
        "load"
            | "open"
            | "with-open-file"
            | "probe-file"
            | "compile-file"
            | "require"
            | "merge-pathnames"
            | "pathname"
            | "truename"
            | "directory"
            | "delete-file"
            | "include"
            | "ensure-directories-exist"
    );
    let pathname = form.written(string).to_ascii_lowercase().starts_with("#p");
    if !(component || takes_file || pathname || text.contains('/')) {
        return None;
    }
    // `~/name/` in a control string is a directive.
    let formats =
        matches!(operator.as_str(), "format" | "formatter" | "error" | "cerror" | "warn" | "signal" | "break");
    if text.starts_with('~') && (component || formats && !pathname) {
        return None;
    }
    let slash = text.rfind('/').map_or(0, |at| at + 1);
    let (directory, typed) = text.split_at(slash);
    let replace = Span { start: offset - typed.chars().count(), end: offset };
    let component = component && operator != ":static-file";
    Some(PartialFile { typed: typed.to_owned(), replace, directory: directory.to_owned(), component })
}

/// Returns the files that complete a partial name written in `file`, with their scores. Blocks,
/// because it reads a directory.
pub(super) fn files(partial: &PartialFile, file: &Path) -> Vec<(Item, f32)> {
    if partial.typed == "~" {
        let item = Item { label: "~/".into(), kind: "directory".into(), detail: "directory".into(), ..Item::default() };
        return vec![(item, 0.0)];
    }
    let base = file.parent().unwrap_or(Path::new("/"));
    let directory = match partial.directory.strip_prefix("~/") {
        Some(rest) => crate::search_paths::home().unwrap_or_else(|| PathBuf::from("/")).join(rest),
        None => base.join(&partial.directory),
    };
    let pattern = Pattern::new(&partial.typed);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten().take(ENTRIES) {
        let Ok(name) = entry.file_name().into_string() else { continue };
        // Hidden files are left out, and names that a Lisp string cannot contain without escapes.
        if name.starts_with('.') && !partial.typed.starts_with('.')
            || name.contains(['"', '\\', '*', '?', '['])
            || name.chars().any(char::is_control)
        {
            continue;
        }
        let is_directory = entry.path().is_dir();
        let lisp = ["lisp", "lsp", "cl"].iter().find_map(|kind| name.strip_suffix(&format!(".{kind}")));
        let label = match (partial.component, is_directory, lisp) {
            (true, false, Some(stem)) => stem.to_owned(),
            (true, false, None) => continue,
            (_, true, _) => format!("{name}/"),
            _ => name.clone(),
        };
        if let Some(fit) = pattern.score(&label.to_lowercase()) {
            let kind = if is_directory { "directory" } else { "file" };
            found.push((Item { label, kind: kind.into(), detail: kind.into(), ..Item::default() }, fit));
        }
    }
    found
}

/// Returns true if the name of a system is expected at `offset`, in `:depends-on` or as the
/// argument of an operator on systems.
pub(super) fn is_system(document: &Document, offset: usize) -> bool {
    let Some(form) = Form::at(document, offset) else { return false };
    let path = form.path(offset);
    let lists: Vec<_> = path.iter().filter(|node| node.kind == Kind::List).collect();
    let Some(list) = lists.last() else { return false };
    let operator =
        |up: usize| lists.len().checked_sub(up + 1).and_then(|at| form.operator(lists[at])).unwrap_or_default();
    let on_systems =
        ["load-system", "test-system", "compile-system", "find-system", "quickload", "make", "load-systems"];
    if on_systems.contains(&operator(0).as_str()) && list.children.len() > 1 {
        let head = &list.children[0];
        return form.text(head).contains("asdf") || form.text(head).contains("ql:") || operator(0) != "make";
    }
    // `(defsystem name ... :depends-on (...))`, and `(:version "name" ...)` within it.
    let depends = |up: usize| {
        let (Some(outer), Some(inner)) = (lists.len().checked_sub(up + 2), lists.len().checked_sub(up + 1)) else {
            return false;
        };
        let (outer, inner) = (lists[outer], lists[inner]);
        let at = outer.children.iter().position(|child| child.span.start == inner.span.start).unwrap_or(0);
        let key = at.checked_sub(1).map(|at| form.text(&outer.children[at]).to_lowercase());
        form.operator(outer).is_some_and(|name| name == "defsystem")
            && key.is_some_and(|key| {
                matches!(key.as_str(), ":depends-on" | ":defsystem-depends-on" | ":weakly-depends-on")
            })
    };
    if operator(0) == ":version" && list.children.get(2).is_some_and(|version| version.span.start < offset) {
        return false;
    }
    depends(0) || matches!(operator(0).as_str(), ":version" | ":feature") && depends(1)
}

/// Returns the name of the system whose version is expected at `offset`, the part of the version
/// typed so far, and the span of that part. The place is the string of `(:version "name" "...")`.
pub(super) fn system_of_version(document: &Document, offset: usize) -> Option<(String, String, Span)> {
    let form = Form::at(document, offset)?;
    let path = form.path(offset);
    let [.., list, string] = path.as_slice() else { return None };
    let is_version = form.operator(list).is_some_and(|name| name == ":version")
        && string.kind == Kind::String
        && string.span.start < offset
        && list.children.get(2).is_some_and(|version| version.span == string.span);
    if !is_version {
        return None;
    }
    let start = string.span.start + 1;
    let typed = document.text().slice(start..offset).to_string();
    let name = system_name(form.written(list.children.get(1)?));
    Some((name, typed, Span { start, end: offset }))
}

/// Returns the name of a system that is written as a string or a symbol.
fn system_name(written: &str) -> String {
    written.trim_start_matches("#:").trim_matches([':', '"']).to_lowercase()
}

/// Returns the versions of a system that its definitions state as strings. The definitions are
/// those in the workspace and in the usual directories. Blocks, because it reads files.
pub(super) fn versions(system: &str, workspace: &Path) -> Vec<Item> {
    let primary = system.split('/').next().unwrap_or_default();
    let is_file = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case(primary));
    let mut files: Vec<PathBuf> = AsdFiles::new(workspace.to_owned()).all().into_iter().filter(is_file).collect();
    if !primary.contains(['\\', '\0']) && primary != ".." {
        files.extend(SYSTEMS.map(|directory| Path::new(directory).join(format!("{primary}.asd"))));
    }
    let mut found: Vec<Item> = Vec::new();
    for file in files {
        let Ok(bytes) = crate::bounded_file::read(&file, MAX_FILE_BYTES) else { continue };
        let document = Document::new(&crate::text::decode(bytes), 0);
        for label in document.scan().forms().iter().filter_map(|top| version(&Form::of(&document, top.span), system)) {
            if !found.iter().any(|one| one.label == label) {
                let detail = format!("version of {system}");
                found.push(Item { label, kind: "constant".into(), detail, ..Item::default() });
            }
        }
    }
    found
}

/// Returns the version in `(defsystem system ... :version "...")`, if the form defines `system`.
fn version(form: &Form, system: &str) -> Option<String> {
    let list = form.nodes.first().filter(|list| form.operator(list).is_some_and(|name| name == "defsystem"))?;
    let name = system_name(form.written(list.children.get(1)?));
    let key = list.children.iter().position(|one| form.written(one).eq_ignore_ascii_case(":version"))?;
    let value = list.children.get(key + 1).filter(|value| value.kind == Kind::String && name == system)?;
    let text = form.text(value).trim_matches('"');
    (!text.contains(['\\', '"'])).then(|| text.to_owned())
}

/// Returns the systems of the workspace, those in the usual source directories, and those that ASDF
/// knows, with their scores. Blocks, because it reads directories.
pub(super) fn systems(typed: &str, workspace: &Path, known: &[String]) -> Vec<(Item, f32)> {
    let bare = typed.trim_start_matches(['#', ':', '"']);
    let prefix = &typed[..typed.len() - bare.len()];
    let pattern = Pattern::new(bare);
    let own = AsdFiles::new(workspace.to_owned()).all();
    let mut found: Vec<(Item, f32)> = Vec::new();
    let mut add = |stem: &str, more: f32, detail: &str| {
        if let Some(fit) = pattern.score(&stem.to_lowercase()) {
            let label = format!("{prefix}{stem}");
            if stem.chars().all(|char| char.is_ascii_graphic()) && !found.iter().any(|(one, _)| one.label == label) {
                found.push((
                    Item { label, kind: "package".into(), detail: detail.into(), ..Item::default() },
                    fit + more,
                ));
            }
        }
    };
    let stem = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    own.iter().filter_map(|path| stem(path)).for_each(|name| add(&name, 20.0, "system of the workspace"));
    for directory in SYSTEMS {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten().take(ENTRIES) {
            let path = entry.path();
            if path.extension().is_some_and(|kind| kind == "asd")
                && let Some(name) = stem(&path)
            {
                add(&name, 0.0, "installed system");
            }
        }
    }
    known.iter().for_each(|name| add(name, 0.0, "system that ASDF knows"));
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn at(source: &str) -> (Document, usize) {
        let caret = source.chars().position(|char| char == '‸').unwrap();
        (Document::new(&source.replace('‸', ""), 0), caret)
    }

    #[test]
    fn file_names_are_wanted_in_some_strings() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["package.lisp", "parse.lisp", "picture.png", ".hidden"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        std::fs::create_dir(directory.path().join("parts")).unwrap();
        let file = directory.path().join("a.asd");
        for (source, expected) in [
            ("(defsystem a :components ((:file \"pa‸\")))", "package parse parts/"),
            ("(load \"pa‸\")", "package.lisp parse.lisp parts/"),
            ("#p\"./pi‸\"", "picture.png"),
            ("(princ \"pa‸\")", "-"),
            ("(load \"~a pa‸\")", "-"),
            ("(load \"./*pa‸\")", "-"),
            ("(load \"~/x/*‸\")", "-"),
            ("(load \"~/x~‸\")", "-"),
            ("(format t \"~/a‸\")", "-"),
            ("(load \"~pa‸\")", "-"),
        ] {
            let (document, offset) = at(source);
            let found = partial(&document, offset).map(|partial| {
                let mut names: Vec<String> = files(&partial, &file)
                    .into_iter()
                    .filter(|(_, fit)| *fit > 900.0)
                    .map(|(item, _)| item.label)
                    .collect();
                names.sort();
                names.join(" ")
            });
            assert_eq!(found.as_deref().unwrap_or("-"), expected, "{source}");
        }
    }

    #[test]
    fn a_tilde_is_the_home_directory() {
        let (document, offset) = at("(load \"~‸\")");
        let found = files(&partial(&document, offset).unwrap(), Path::new("/no/a.lisp"));
        assert_eq!(found.iter().map(|(item, _)| item.label.as_str()).collect::<Vec<_>>(), ["~/"]);
        for (source, directory) in [("(load \"~/a/b‸\")", "~/a/"), ("#p\"~/‸\"", "~/"), ("(f \"~/x‸\")", "~/")] {
            let (document, offset) = at(source);
            assert_eq!(partial(&document, offset).unwrap().directory, directory, "{source}");
        }
    }

    #[test]
    fn versions_are_those_of_the_systems_definition() {
        let directory = tempfile::tempdir().unwrap();
        let text =
            "(in-package :asdf-user)\n(defsystem \"zoo\" :version \"1.2.3\")\n(asdf:defsystem :zoo/x :version \"4\")";
        std::fs::write(directory.path().join("zoo.asd"), text).unwrap();
        for (source, expected) in [
            ("(defsystem a :depends-on ((:version \"zoo\" \"1‸\")))", "zoo 1 1.2.3"),
            ("(defsystem a :depends-on ((:version #:zoo/x \"‸\")))", "zoo/x  4"),
            ("(defsystem a :depends-on ((:version \"zo‸o\" \"1\")))", "-"),
            ("(defsystem a :version \"‸\")", "-"),
            ("(f ‸\"a\")", "-"),
            ("(:version a ‸\"1\")", "-"),
        ] {
            let (document, offset) = at(source);
            let found = system_of_version(&document, offset).map(|(name, typed, _)| {
                let all = versions(&name, directory.path());
                let labels: Vec<&str> = all.iter().map(|item| item.label.as_str()).collect();
                format!("{name} {typed} {}", labels.join(" "))
            });
            assert_eq!(found.as_deref().unwrap_or("-"), expected, "{source}");
        }
    }

    #[test]
    fn systems_are_wanted_where_dependencies_are() {
        for (source, expected) in [
            ("(defsystem \"a\" :depends-on (:al‸))", true),
            ("(asdf:defsystem a :depends-on (b (:version :al‸ \"1\")))", true),
            ("(defsystem a :components (:al‸))", false),
            ("(asdf:load-system :al‸)", true),
            ("(f :al‸)", false),
            ("(defsystem a :depends-on ((:version :b \"1‸\")))", false),
        ] {
            let (document, offset) = at(source);
            assert_eq!(is_system(&document, offset), expected, "{source}");
        }
    }
}
