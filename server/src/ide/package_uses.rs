//! The exports and imports of package definitions that no text of the workspace uses. A name counts
//! as used if the texts do not show whether it is.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::index::{PackageText, Packages, Snapshot, designated};
use super::package_lists::is_definition;
use crate::text::datum::{Form, Node};
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::names;
use crate::text::toplevel::TopForm;
use crate::text::tree::{Kind, Tree};

/// The place of a name in a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    /// Code that is read in the package, or a name with the package's prefix.
    Read(String),
    /// The definition of the package.
    Definition(String),
    /// A string, or code that may be read in any package.
    Anywhere,
}

/// The uses of names in a text and in the other texts of the workspace.
#[derive(Debug)]
pub struct Uses<'a> {
    index: &'a Snapshot,
    packages: &'a Packages<'a>,
    path: &'a Path,
    /// The places in the text, by name.
    places: HashMap<String, HashSet<Place>>,
}

/// A package definition of a text.
#[derive(Debug)]
pub struct Definition {
    /// The top-level form.
    pub form: Form,
    /// The name of the package.
    pub name: String,
}

impl Definition {
    /// Returns the package definition in a top-level form, if the form is one.
    pub fn of(document: &Document, top: &TopForm) -> Option<Definition> {
        // The first characters are enough to skip most forms, which are not package definitions.
        let start: String = document.text().slice(top.span.start..top.span.end).chars().take(40).collect();
        if top.fault.is_some() || !start.to_ascii_lowercase().contains("package") {
            return None;
        }
        let form = Form::of(document, top.span);
        let name = form.nodes.first().filter(|list| is_definition(&form, list))?.children.get(1)?;
        let name = designated(&form, name)?;
        Some(Definition { form, name })
    }

    /// Returns the clauses that begin with a keyword, except guarded ones.
    pub fn clauses<'a>(&'a self, keyword: &'a str) -> impl Iterator<Item = &'a Node> + 'a {
        let options = self.form.nodes.iter().flat_map(|list| list.elements()).skip(2);
        options.filter(move |option| {
            option.is_list()
                && option.elements().first().and_then(|head| self.form.name(head)).as_deref() == Some(keyword)
        })
    }
}

impl<'a> Uses<'a> {
    /// Finds the uses of the names `wanted`. `path` is the file of the text.
    pub fn of(
        document: &Document,
        index: &'a Snapshot,
        packages: &'a Packages<'a>,
        path: &'a Path,
        wanted: &HashSet<String>,
    ) -> Uses<'a> {
        let mut uses = Uses { index, packages, path, places: HashMap::new() };
        let text = document.text().to_string();
        let tree = Tree::of(&text, document.scan());
        let mut ids = tree.ids().skip(1).peekable();
        for top in document.scan().forms() {
            let here = package_at(document, top.span.start).map(|here| packages.package_name(&here, ""));
            let place = match Definition::of(document, top) {
                Some(definition) => Place::Definition(definition.name),
                None => here.clone().map_or(Place::Anywhere, Place::Read),
            };
            while let Some(id) = ids.next_if(|id| tree.node(*id).start < top.bytes.end) {
                let written = tree.text_of(id);
                match tree.node(id).kind {
                    Kind::String if matches!(place, Place::Definition(_)) => {
                        uses.note(wanted, written.trim_matches('"'), &place);
                    }
                    Kind::String => {
                        let words = written.split(|char: char| char.is_whitespace() || "()\"';`,|\\:#".contains(char));
                        words.for_each(|word| uses.note(wanted, &word.to_uppercase(), &Place::Anywhere));
                    }
                    Kind::Atom => {
                        let Some(symbol) = names::symbol(written) else { continue };
                        match symbol.package.as_deref() {
                            // A keyword counts as a name only in the definition of a package.
                            Some("") if !matches!(place, Place::Definition(_)) => continue,
                            Some("") | None => {}
                            Some(prefix) => {
                                let prefixed = packages.package_name(prefix, here.as_deref().unwrap_or_default());
                                uses.note(wanted, &symbol.name, &Place::Read(prefixed));
                            }
                        }
                        uses.note(wanted, &symbol.name, &place);
                    }
                    _ => {}
                }
            }
        }
        uses
    }

    fn note(&mut self, wanted: &HashSet<String>, name: &str, place: &Place) {
        if !wanted.contains(name) {
            return;
        }
        let places = self.places.entry(name.to_owned()).or_default();
        if !places.contains(place) {
            places.insert(place.clone());
        }
    }

    fn places(&self, name: &str) -> impl Iterator<Item = &Place> {
        self.places.get(name).into_iter().flatten()
    }

    /// Returns true if a text outside of a package may use a name that the package exports.
    pub fn is_export_used(&self, package: &str, name: &str) -> bool {
        let own = |place: &Place| match place {
            Place::Read(other) | Place::Definition(other) => other == package,
            Place::Anywhere => false,
        };
        let of_package = |file: &super::index::FileEntry| {
            !file.in_packages.is_empty()
                && file.in_packages.iter().all(|inside| self.packages.package_name(inside, "") == package)
                && file.packages.iter().all(|other| other.name == package)
        };
        !self.places(name).all(own)
            || self.index.mentioning(name).any(|file| file.path != self.path && !of_package(file))
    }

    /// Returns true if a text may use a name that a package imports, or the package may export it.
    pub fn is_import_used(&self, package: &PackageText, name: &str) -> bool {
        let definition = |place: &Place| *place == Place::Definition(package.name.clone());
        let may_be_inside = |file: &super::index::FileEntry| {
            file.in_packages.is_empty()
                || file.in_packages.iter().any(|inside| self.packages.package_name(inside, "") == package.name)
                || std::iter::once(&package.name).chain(&package.nicknames).any(|name| self.index.has(file, name))
        };
        let in_package = |place: &Place| match place {
            Place::Read(other) => *other == package.name,
            Place::Definition(_) => !definition(place),
            Place::Anywhere => true,
        };
        package.exports.contains(name)
            || !package.reexports.is_empty()
            || self.places(name).any(in_package)
            || self.index.mentioning(name).any(|file| file.path != self.path && may_be_inside(file))
    }
}

/// Returns the package definitions of a text, and the names in their clauses with these keywords.
/// Each keyword comes with the number of elements before the names.
pub fn names_in(document: &Document, keywords: &[(&str, usize)]) -> (Vec<Definition>, HashSet<String>) {
    let (mut definitions, mut names) = (Vec::new(), HashSet::new());
    for definition in document.scan().forms().iter().filter_map(|top| Definition::of(document, top)) {
        for (keyword, before) in keywords {
            let nodes = definition.clauses(keyword).flat_map(|clause| clause.elements().iter().skip(*before));
            names.extend(nodes.filter_map(|node| designated(&definition.form, node)));
        }
        definitions.push(definition);
    }
    (definitions, names)
}
