//! Document links: files that a text names. In an `.asd` file, these are its components and the
//! systems on which it depends. Elsewhere, they are the files that `load` and `#p` name.

use std::path::{Path, PathBuf};

use super::context::{Backend, Context};
use super::hierarchy::{Lookup, Named};
use super::index::Snapshot;
use crate::file_uri::{path_of_uri, uri_of_path};
use crate::image::api::symbols::SymbolPart;
use crate::text::Span;
use crate::text::cancellation;
use crate::text::datum::{Form, Kind, Node};
use crate::text::document::Document;

/// The maximum number of links of a text.
const MAX_LINKS: usize = 1_000;
/// The extensions that a `:file` may have.
const SOURCES: [&str; 3] = ["lisp", "cl", "lsp"];

/// A part of a text that names a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The span of the part.
    pub span: Span,
    /// The URI of the file.
    pub target: String,
}

/// A target that a part of a text may name.
#[derive(Debug)]
enum Candidate {
    /// The first of these paths that is a file.
    File(Vec<PathBuf>),
    /// A system, by its name.
    System(String),
}

/// The links of a text.
#[derive(Debug, Default)]
pub struct Links {
    /// The links, in the order of the text.
    pub links: Vec<Link>,
    /// The reason why links are missing, as a clause for a person: a system was not found, and the
    /// index of the workspace's texts is incomplete.
    pub incomplete: Option<String>,
}

/// Returns the links of a text of the file `uri`.
pub async fn links<B: Backend>(context: &Context<B>, uri: &str, document: &Document) -> Links {
    let Some(path) = path_of_uri(uri) else { return Links::default() };
    let Some(directory) = path.parent().map(Path::to_owned) else { return Links::default() };
    let candidates = candidates(document, &directory);
    if candidates.is_empty() {
        return Links::default();
    }
    let index = context.texts_index().await;
    let mut lookup = Lookup::new(context, &index).await;
    let mut incomplete = None;
    let (mut files, mut found) = (Vec::new(), Vec::new());
    for (span, candidate) in candidates {
        match candidate {
            Candidate::File(paths) => files.push((span, paths)),
            Candidate::System(name) => match system(&index, &mut lookup, &name).await {
                Some(target) => found.push(Link { span, target }),
                None => incomplete.clone_from(&index.incomplete),
            },
        }
    }
    let on_disk = tokio::task::spawn_blocking(move || {
        let one = |(span, paths): (Span, Vec<PathBuf>)| {
            let file = paths.into_iter().find(|path| path.is_file())?;
            Some(Link { span, target: uri_of_path(&file) })
        };
        files.into_iter().filter_map(one).collect::<Vec<Link>>()
    });
    found.extend(on_disk.await.unwrap_or_default());
    found.sort_by_key(|link| link.span);
    Links { links: found, incomplete }
}

/// Returns the URI of the file that defines a system, according to the workspace, or else to the
/// image.
async fn system<B: Backend>(index: &Snapshot, lookup: &mut Lookup<'_, B>, name: &str) -> Option<String> {
    let of =
        |file: &super::index::FileEntry| file.definitions.iter().any(|one| one.kind() == "system" && one.key == name);
    if let Some(file) = index.files.iter().find(|file| of(file)) {
        return Some(file.uri.clone());
    }
    let named = Named { name: name.to_owned(), package: None };
    let known = lookup.known(&named, &[SymbolPart::Definitions, SymbolPart::Systems]).await;
    let system = known.definitions.into_iter().find(|one| one.kind == "system")?;
    system.place.file.map(|file| uri_of_path(&file))
}

fn candidates(document: &Document, directory: &Path) -> Vec<(Span, Candidate)> {
    let mut found = Vec::new();
    for top in document.scan().forms() {
        if cancellation::should_stop() || found.len() >= MAX_LINKS {
            break;
        }
        let form = Form::of(document, top.span);
        for node in &form.nodes {
            match form.operator(node).as_deref() {
                Some("defsystem") => of_system(&form, node, directory, &mut found),
                _ => of_code(&form, node, None, directory, &mut found),
            }
        }
    }
    found.truncate(MAX_LINKS);
    found
}

/// Returns the value of a key in a list of keys and values.
fn value<'a>(form: &Form, options: &'a [Node], key: &str) -> Option<&'a Node> {
    let at = options.iter().position(|one| form.name(one).as_deref() == Some(key))?;
    options.get(at + 1)
}

/// Returns the name that a string or a symbol designates in ASDF.
fn name(form: &Form, node: &Node) -> Option<String> {
    match node.kind {
        Kind::String => Some(form.text(node).trim_matches('"').to_owned()),
        Kind::Atom => form.name(node).map(|name| name.trim_start_matches(':').to_owned()),
        _ => None,
    }
}

fn of_system(form: &Form, node: &Node, directory: &Path, found: &mut Vec<(Span, Candidate)>) {
    let options = node.children.get(2..).unwrap_or_default();
    for key in [":depends-on", ":defsystem-depends-on", ":weakly-depends-on"] {
        for system in value(form, options, key).map(|list| list.children.as_slice()).unwrap_or_default() {
            // `(:version "x" "1.2")`, `(:feature :sbcl "x")`
            let named = match (system.kind, form.operator(system).as_deref()) {
                (Kind::List, Some(":feature")) => system.children.get(2),
                (Kind::List, _) => system.children.get(1),
                _ => Some(system),
            };
            if let Some((named, name)) = named.and_then(|named| Some((named, name(form, named)?.to_lowercase()))) {
                found.push((named.span, Candidate::System(name)));
            }
        }
    }
    let directory = below(form, options, directory, None);
    if let Some(components) = value(form, options, ":components") {
        of_components(form, components, &directory, found);
    }
}

/// Returns the directory of a component by its `:pathname`, or else by its name.
fn below(form: &Form, options: &[Node], directory: &Path, name: Option<&str>) -> PathBuf {
    match value(form, options, ":pathname").filter(|value| value.kind == Kind::String) {
        Some(value) => directory.join(form.text(value).trim_matches('"')),
        None => name.map_or_else(|| directory.to_owned(), |name| directory.join(name)),
    }
}

fn of_components(form: &Form, list: &Node, directory: &Path, found: &mut Vec<(Span, Candidate)>) {
    for component in list.children.iter().filter(|one| one.kind == Kind::List) {
        let (Some(kind), Some(node)) = (form.operator(component), component.children.get(1)) else { continue };
        let Some(name) = name(form, node) else { continue };
        let options = component.children.get(2..).unwrap_or_default();
        if let Some(components) = value(form, options, ":components") {
            of_components(form, components, &below(form, options, directory, Some(&name)), found);
        } else {
            let own = below(form, options, directory, Some(&name));
            let mut paths = vec![own.clone()];
            if !kind.contains("static") {
                let with = |extension: &&str| PathBuf::from(format!("{}.{extension}", own.display()));
                paths.extend(SOURCES.iter().map(with));
            }
            found.push((node.span, Candidate::File(paths)));
        }
    }
}

/// Adds the strings after `load`, `compile-file` and the like, and after `#p`.
fn of_code(form: &Form, node: &Node, operator: Option<&str>, directory: &Path, found: &mut Vec<(Span, Candidate)>) {
    const LOADERS: [&str; 5] = ["load", "compile-file", "include", "probe-file", "load-file"];
    if node.kind == Kind::String {
        let pathname = form.written(node).get(..2).is_some_and(|start| start.eq_ignore_ascii_case("#p"));
        let written = form.text(node).trim_matches('"');
        let plain = !written.is_empty() && !written.contains(['*', '?', '\\', '\n']);
        if plain && (pathname || operator.is_some_and(|operator| LOADERS.contains(&operator))) {
            let file = directory.join(written);
            let source = PathBuf::from(format!("{}.lisp", file.display()));
            found.push((node.span, Candidate::File(vec![file, source])));
        }
        return;
    }
    let own = form.operator(node);
    for child in &node.children {
        of_code(form, child, own.as_deref(), directory, found);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ide::fake::{FakeImage, context, run};

    #[test]
    fn components_and_systems_of_an_asd_file_are_links() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for file in ["src/a.lisp", "src/deep/b.lisp", "README.md", "other.lisp"] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        let text = "(asdf:defsystem \"app\"
  :depends-on (\"near\" (:version \"far\" \"1.0\") (:feature :sbcl \"gone\"))
  :components ((:static-file \"README.md\")
               (:module \"src\" :components ((:file \"a\") (:file \"missing\")
                                          (:module \"deep\" :components ((:file \"b\")))))
               (:file \"c\" :pathname \"other\")))
(load \"other.lisp\")
(f \"other.lisp\" #p\"src/a.lisp\")";
        let far = json!({"found": true, "definitions": [{"kind": "system", "name": "far", "file": "/lib/far.asd"}]});
        let image = FakeImage::empty().symbol("far", far).incomplete("/no/c.asd is large");
        let context = context(image, &[("near.asd", "(defsystem \"near\")")]);
        let document = Document::new(text, 0);
        let Links { links: found, incomplete } = run(links(&context, &uri_of_path(&root.join("app.asd")), &document));
        // The system "gone" was not found.
        assert_eq!(incomplete.as_deref(), Some("/no/c.asd is large"));
        let near = Document::new("(asdf:defsystem \"b\" :depends-on (\"near\"))", 0);
        assert_eq!(run(links(&context, &uri_of_path(&root.join("b.asd")), &near)).incomplete, None);
        let one = |link: &Link| {
            let target = link.target.replace(&uri_of_path(&root), "");
            format!("{} {target}", document.text().slice(link.span.start..link.span.end))
        };
        let shown: Vec<String> = found.iter().map(one).collect();
        assert_eq!(
            shown,
            [
                "\"near\" file:///no/near.asd",
                "\"far\" file:///lib/far.asd",
                "\"README.md\" /README.md",
                "\"a\" /src/a.lisp",
                "\"b\" /src/deep/b.lisp",
                "\"c\" /other.lisp",
                "\"other.lisp\" /other.lisp",
                "\"src/a.lisp\" /src/a.lisp",
            ]
        );
    }
}
