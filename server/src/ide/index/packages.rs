//! The packages that texts define, and the home packages of symbols according to these definitions.

use std::collections::{HashMap, HashSet};

use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};
use crate::text::designator;
use crate::text::names;
use crate::text::scanner::TokenKind;

/// A package definition in a text. All names are as by `symbol-name` and `package-name`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageText {
    /// The name.
    pub name: String,
    /// The nicknames.
    pub nicknames: Vec<String>,
    /// The packages that the package uses.
    pub uses: Vec<String>,
    /// The exported names.
    pub exports: HashSet<String>,
    /// The names in `:shadow` and `:intern`, whose symbols belong to the package.
    pub shadows: HashSet<String>,
    /// The names in `:shadow` only.
    pub shadowed: HashSet<String>,
    /// The imported names, with the packages from which they are imported.
    pub imports: HashMap<String, String>,
    /// The packages whose exports the package also exports.
    pub reexports: Vec<String>,
    /// Other packages, by their local nicknames in the package.
    pub local: HashMap<String, String>,
}

/// Returns the name that a string designator in a package definition denotes. The designator is a
/// string, a symbol or a keyword.
pub fn designated(form: &Form, node: &Node) -> Option<String> {
    match node.kind {
        Kind::String => designator::designated(form.text(node), TokenKind::String),
        Kind::Atom => names::symbol(form.text(node)).map(|symbol| symbol.name),
        _ => None,
    }
}

/// Returns the package definition at a span of a form, or `None` if its name cannot be read.
pub(super) fn package_of_form(form: &Form, span: Span) -> Option<PackageText> {
    let node = form.node_at(span)?;
    let mut package = PackageText { name: designated(form, node.children.get(1)?)?, ..PackageText::default() };
    for option in node.children.iter().skip(2).filter(|option| option.kind == Kind::List) {
        let Some(head) = option.children.first().and_then(|head| form.name(head)) else { continue };
        let all = || option.children.iter().skip(1).filter_map(|one| designated(form, one));
        match head.as_str() {
            ":nicknames" => package.nicknames.extend(all()),
            ":use" | ":mix" => package.uses.extend(all()),
            ":use-reexport" | ":mix-reexport" => {
                package.uses.extend(all());
                package.reexports.extend(all());
            }
            ":reexport" => package.reexports.extend(all()),
            ":export" => package.exports.extend(all()),
            ":shadow" => {
                package.shadows.extend(all());
                package.shadowed.extend(all());
            }
            ":intern" => package.shadows.extend(all()),
            ":import-from" | ":shadowing-import-from" => {
                let mut all = all();
                if let Some(from) = all.next() {
                    package.imports.extend(all.map(|name| (name, from.clone())));
                }
            }
            ":local-nicknames" => {
                for pair in option.children.iter().skip(1) {
                    if let [local, of] = pair.children.as_slice()
                        && let (Some(local), Some(of)) = (designated(form, local), designated(form, of))
                    {
                        package.local.insert(local, of);
                    }
                }
            }
            _ => {}
        }
    }
    Some(package)
}

/// All packages that texts define.
#[derive(Debug)]
pub struct Packages<'a> {
    by_name: HashMap<&'a str, &'a PackageText>,
}

impl<'a> Packages<'a> {
    pub(super) fn of(all: impl Iterator<Item = &'a PackageText>) -> Packages<'a> {
        let mut by_name = HashMap::new();
        for one in all {
            for nickname in &one.nicknames {
                by_name.entry(nickname.as_str()).or_insert(one);
            }
            by_name.insert(one.name.as_str(), one);
        }
        Packages { by_name }
    }

    /// Returns the packages with the definition of the same name as `changed` replaced by
    /// `changed`.
    pub fn with_replaced<'b>(&'b self, changed: &'b PackageText) -> Packages<'b> {
        let of_same =
            |(name, one): (&&'b str, &&'b PackageText)| (*name, if one.name == changed.name { changed } else { *one });
        Packages { by_name: self.by_name.iter().map(of_same).collect() }
    }

    /// Returns all packages, sorted by name.
    pub fn all(&self) -> Vec<&'a PackageText> {
        let mut all: Vec<&PackageText> = self.by_name.values().copied().collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all.dedup_by(|one, other| one.name == other.name);
        all
    }

    /// Returns a package by its name or nickname.
    pub fn get(&self, name: &str) -> Option<&'a PackageText> {
        self.by_name.get(name).copied()
    }

    /// Returns the packages in which a symbol is accessible without a prefix.
    pub fn with_access_to(&self, home: &str, name: &str) -> Vec<&'a PackageText> {
        let mut all: Vec<&PackageText> = self.by_name.values().copied().collect();
        all.retain(|package| self.home(&package.name, name) == home);
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all.dedup_by(|one, other| one.name == other.name);
        all
    }

    /// Returns the name of the package that a prefix denotes in the package `here`. Returns the
    /// prefix, with local nicknames resolved, if no text defines the package.
    pub fn package_name(&self, prefix: &str, here: &str) -> String {
        let local = self.get(here).and_then(|here| here.local.get(prefix));
        let name = local.map_or(prefix, String::as_str);
        self.get(name).map_or_else(|| name.to_owned(), |package| package.name.clone())
    }

    /// Returns the home package, according to the texts, of the symbol that a name denotes in a
    /// package. Returns the package itself if no text defines it.
    pub fn home(&self, package: &str, name: &str) -> String {
        self.home_within(package, name, 0)
    }

    fn home_within(&self, package: &str, name: &str, depth: usize) -> String {
        const MAX_DEPTH: usize = 16;
        let Some(known) = self.get(package).filter(|_| depth < MAX_DEPTH) else { return package.to_owned() };
        if let Some(from) = known.imports.get(name) {
            return self.home_within(&self.package_name(from, package), name, depth + 1);
        }
        if known.shadows.contains(name) {
            return known.name.clone();
        }
        let mut visited = HashSet::new();
        let from = known.uses.iter().find(|used| self.exports(used, name, &mut visited));
        match from {
            Some(used) => self.home_within(used, name, depth + 1),
            None => known.name.clone(),
        }
    }

    /// Returns true if a package exports a name, according to the texts. `visited` contains the
    /// packages that are known not to export the name, by themselves or through packages that they
    /// reexport.
    fn exports(&self, package: &str, name: &str, visited: &mut HashSet<&'a str>) -> bool {
        let mut pending: Vec<&'a PackageText> = self.get(package).into_iter().collect();
        while let Some(known) = pending.pop() {
            if !visited.insert(&known.name) {
                continue;
            }
            if known.exports.contains(name) {
                return true;
            }
            pending.extend(known.reexports.iter().filter_map(|other| self.get(other)));
        }
        false
    }
}
