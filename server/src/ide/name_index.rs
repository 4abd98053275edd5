//! The index of the names of all packages of the image, from which completion answers without a
//! query. An index is immutable. An update makes another one that shares the unchanged packages.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::image::api::name_index::{Indexed, IndexedPackage};

/// The names of all packages.
#[derive(Debug, Clone, Default)]
pub struct NameIndex {
    packages: BTreeMap<String, Arc<Package>>,
    /// The names of the packages, by their names and nicknames.
    called: HashMap<String, String>,
}

/// A package and the symbols that are present in it.
#[derive(Debug, Default)]
pub struct Package {
    /// The name.
    pub name: String,
    /// The nicknames.
    pub nicknames: Vec<String>,
    /// The local nicknames, each with the package that it means.
    pub local: Vec<(String, String)>,
    /// The packages that the package uses.
    pub uses: Vec<String>,
    /// True for a package of SBCL itself.
    pub system: bool,
    /// The symbols, sorted by their names in lower case.
    pub symbols: Vec<Symbol>,
    /// The set of characters ([`letters`]) of each symbol's name, in the order of `symbols`.
    /// Exported symbols also have the bit [`EXTERNAL`].
    pub letters: Vec<u64>,
    digest: String,
}

/// A symbol present in a package. There are tens of thousands, so the texts share one allocation.
#[derive(Debug, Clone)]
pub struct Symbol {
    /// The name, the name in lower case, the home package, the parameters and the slots.
    texts: Box<str>,
    /// The ends of the first four texts, in bytes.
    ends: [u32; 4],
    /// True if the package exports the symbol.
    pub external: bool,
    /// The function's kind: `f`unction, `g`eneric function, `m`acro, special `o`perator, or `-`.
    pub function: u8,
    /// The variable's kind: `v`ariable, `g`lobal variable, `c`onstant, `k`eyword, `s`ymbol macro,
    /// `a`lien, or `-`.
    pub variable: u8,
    /// The class's kind: `c`lass, `s`tructure, condition (`e`), `t`ype, or `-`.
    pub class: u8,
}

impl Symbol {
    fn of(line: &str) -> Option<Symbol> {
        let bytes = line.as_bytes();
        let [external, function, variable, class] = bytes.get(..4)? else { return None };
        let mut fields = line.get(4..)?.split('\t');
        let name = fields.next()?;
        let mut next = || fields.next().unwrap_or_default();
        let lower = name.to_lowercase();
        let texts = [name, &lower, next(), next(), next()];
        let mut ends = [0; 4];
        let mut end = 0;
        for (one, text) in ends.iter_mut().zip(texts) {
            end += text.len();
            *one = u32::try_from(end).ok()?;
        }
        Some(Symbol {
            texts: texts.concat().into(),
            ends,
            external: *external == b'E',
            // DECLARE is written in place of an operator, but SBCL has no function of that name.
            function: if name == "DECLARE" { b'o' } else { *function },
            variable: *variable,
            class: *class,
        })
    }

    fn text(&self, index: usize) -> &str {
        let end = |index: usize| self.ends.get(index).map_or(self.texts.len(), |end| *end as usize);
        &self.texts[if index == 0 { 0 } else { end(index - 1) }..end(index)]
    }

    /// Returns the symbol's name, as by `symbol-name`.
    pub fn name(&self) -> &str {
        self.text(0)
    }

    /// Returns the name in lower case.
    pub fn lower(&self) -> &str {
        self.text(1)
    }

    /// Returns the home package, if it is another one than that in which the symbol was found.
    pub fn home(&self) -> Option<&str> {
        Some(self.text(2)).filter(|home| !home.is_empty())
    }

    /// Returns the words of the lambda list, lower-case, with single spaces: the required
    /// parameters, then `&optional`, `&rest`, `&body` and `&key`, each before its parameters or
    /// keywords.
    pub fn parameters(&self) -> &str {
        self.text(3)
    }

    /// Returns the slots, then `&initargs` and the initialization arguments.
    fn slots_and_initargs(&self) -> &str {
        self.text(4)
    }

    /// Returns the word of the image for the symbol's main kind, or `symbol` for a name without a
    /// meaning.
    pub fn kind(&self) -> &'static str {
        match (self.function, self.variable, self.class) {
            (b'f', ..) => "function",
            (b'g', ..) => "generic function",
            (b'm', ..) => "macro",
            (b'o', ..) => "special operator",
            (_, b'v', _) => "variable",
            (_, b'g', _) => "global variable",
            (_, b'c', _) => "constant",
            (_, b'k', _) => "keyword",
            (_, b's', _) => "symbol macro",
            (_, b'a', _) => "alien variable",
            (_, _, b'c') => "class",
            (_, _, b's') => "structure",
            (_, _, b'e') => "condition",
            (_, _, b't') => "type",
            _ => "symbol",
        }
    }

    /// Returns the required parameters, lower-case.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.parameters().split(' ').take_while(|word| !word.is_empty() && !word.starts_with('&'))
    }

    /// Returns the keywords that a call may have, with their colons.
    pub fn keywords(&self) -> impl Iterator<Item = String> {
        words_after(self.parameters(), "&key").map(|word| format!(":{word}"))
    }

    /// Returns the slots of the class of that name, lower-case.
    pub fn slots(&self) -> impl Iterator<Item = &str> {
        self.slots_and_initargs().split(' ').take_while(|word| *word != "&initargs").filter(|word| !word.is_empty())
    }

    /// Returns the initialization arguments of the class of that name.
    pub fn initargs(&self) -> impl Iterator<Item = &str> {
        words_after(self.slots_and_initargs(), "&initargs")
    }
}

fn words_after<'a>(words: &'a str, marker: &'a str) -> impl Iterator<Item = &'a str> {
    words.split(' ').skip_while(move |word| *word != marker).skip(1).filter(|word| !word.is_empty())
}

/// The bit in [`Package::letters`] that marks an exported symbol.
pub const EXTERNAL: u64 = 1 << 63;

/// Returns the set of the characters of a lower-case name as bits. If a name has all characters of
/// another, its set has all bits of the other's.
pub fn letters(lower: &str) -> u64 {
    lower.bytes().fold(0, |set, byte| {
        set | 1
            << match byte {
                b'a'..=b'z' => byte - b'a',
                b'0'..=b'9' => 26 + byte - b'0',
                b'-' => 36,
                b'*' => 37,
                b'%' => 38,
                b'+' => 39,
                b'/' => 40,
                b'.' => 41,
                b'<' | b'=' | b'>' => 42,
                _ => 43 + byte % 20,
            }
    })
}

impl Package {
    fn of(indexed: IndexedPackage) -> Package {
        let mut symbols: Vec<Symbol> =
            indexed.symbols.unwrap_or_default().iter().filter_map(|line| Symbol::of(line)).collect();
        symbols.sort_by(|a, b| a.lower().cmp(b.lower()));
        let letters =
            symbols.iter().map(|one| letters(one.lower()) | if one.external { EXTERNAL } else { 0 }).collect();
        Package {
            name: indexed.name,
            nicknames: indexed.nicknames,
            local: indexed.local,
            uses: indexed.uses,
            system: indexed.system,
            digest: indexed.digest,
            symbols,
            letters,
        }
    }

    /// Returns a package without symbols, of which only the definition is known.
    pub fn defined(name: String, uses: Vec<String>, local: Vec<(String, String)>) -> Package {
        Package { name, uses, local, ..Package::default() }
    }

    /// Returns the symbol whose `symbol-name` is `name`, if it is present in the package.
    pub fn symbol(&self, name: &str) -> Option<&Symbol> {
        let lower = name.to_lowercase();
        let from = self.symbols.partition_point(|one| one.lower() < &*lower);
        self.symbols[from..].iter().take_while(|one| one.lower() == lower).find(|one| one.name() == name)
    }
}

impl NameIndex {
    /// Returns the index that results from an answer of the image. A package that is not in the
    /// answer no longer exists.
    pub fn updated(&self, indexed: Indexed) -> NameIndex {
        let mut packages = BTreeMap::new();
        for one in indexed.packages {
            let package = match (&one.symbols, self.packages.get(&one.name)) {
                (None, Some(known)) => known.clone(),
                _ => Arc::new(Package::of(one)),
            };
            packages.insert(package.name.clone(), package);
        }
        let mut called = HashMap::new();
        for package in packages.values() {
            called.extend(package.nicknames.iter().map(|nickname| (nickname.clone(), package.name.clone())));
        }
        called.extend(packages.keys().map(|name| (name.clone(), name.clone())));
        NameIndex { packages, called }
    }

    /// Returns the digests of the packages by name, for the next query.
    pub fn digests(&self) -> BTreeMap<String, String> {
        self.packages.iter().map(|(name, package)| (name.clone(), package.digest.clone())).collect()
    }

    /// Returns all packages.
    pub fn packages(&self) -> impl Iterator<Item = &Arc<Package>> {
        self.packages.values()
    }

    /// Returns the package that `name` names where the package `from` is current. `name` is
    /// compared with case.
    pub fn package(&self, name: &str, from: Option<&Package>) -> Option<&Arc<Package>> {
        let local = from.and_then(|from| from.local.iter().find(|(nickname, _)| nickname == name));
        let name = local.map_or(name, |(_, meant)| meant);
        self.packages.get(self.called.get(name)?)
    }

    /// Returns the symbol that is accessible in a package under `name`. `name` is compared with
    /// case.
    pub fn accessible<'a>(&'a self, package: &'a Package, name: &str) -> Option<&'a Symbol> {
        package.symbol(name).or_else(|| {
            let used = package.uses.iter().filter_map(|used| self.packages.get(used));
            used.filter_map(|used| used.symbol(name)).find(|symbol| symbol.external)
        })
    }

    /// Returns the symbol that a name means in a package. The name is as written, with or without a
    /// prefix.
    pub fn written<'a>(&'a self, written: &str, package: Option<&'a Package>) -> Option<&'a Symbol> {
        let symbol = crate::text::names::symbol(written)?;
        let found = match symbol.package.as_deref() {
            None => self.accessible(package?, &symbol.name),
            Some(prefix) => self.accessible(self.package(prefix, package)?, &symbol.name),
        }?;
        // An imported symbol is described in its home package.
        let home = found.home().and_then(|home| self.packages.get(home)?.symbol(found.name()));
        Some(home.unwrap_or(found))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn indexed(packages: serde_json::Value) -> Indexed {
        serde_json::from_value(serde_json::json!({"packages": packages})).unwrap()
    }

    #[test]
    fn an_update_keeps_what_has_not_changed() {
        let first = NameIndex::default().updated(indexed(serde_json::json!([
            {"name": "A", "digest": "1", "nicknames": ["NICK"], "uses": ["CL"], "local": [["L", "CL"]],
             "symbols": ["Ef--SCAN\t\tregex target &key start end", "Im--WITH-IT", "If--CAR\tCL"]},
            {"name": "CL", "digest": "1", "symbols": ["Ef--CAR\t\tlist", "E--cCLASS\t\t\tname size &initargs :name"]},
            {"name": "GONE", "digest": "1", "symbols": []},
        ])));
        let a = first.package("NICK", None).unwrap().clone();
        assert_eq!(first.package("L", Some(&a)).unwrap().name, "CL");
        let scan = first.written("scan", Some(&a)).unwrap();
        assert_eq!(scan.required().collect::<Vec<_>>(), ["regex", "target"]);
        assert_eq!(scan.keywords().collect::<Vec<_>>(), [":start", ":end"]);
        assert_eq!(first.written("car", Some(&a)).unwrap().parameters(), "list");
        let class = first.written("cl:class", None).unwrap();
        assert_eq!(class.slots().collect::<Vec<_>>(), ["name", "size"]);
        assert_eq!(class.initargs().collect::<Vec<_>>(), [":name"]);
        assert!(first.written("with", Some(&a)).is_none());

        let second = first.updated(indexed(serde_json::json!([
            {"name": "A", "digest": "2", "symbols": []}, {"name": "CL", "digest": "1"},
        ])));
        assert!(second.written("a:scan", None).is_none());
        assert!(second.written("cl:car", None).is_some());
        assert!(second.package("GONE", None).is_none());
        assert_eq!(second.digests().get("A").unwrap(), "2");
    }
}
