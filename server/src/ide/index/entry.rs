//! The part of the index about one file.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use super::packages::{PackageText, of_form};
use crate::ide::name_index::letters;
use crate::text::datum::{Form, Kind, Node, symbol_name};
use crate::text::definitions::{self, Made, class_parts, kind_of, structure_functions};
use crate::text::document::Document;
use crate::text::forms::{package_at, packages_named};
use crate::text::position::{Position, PositionEncoding, to_position};
use crate::text::{Span, stop};

/// A definition in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// The name as written.
    pub written: String,
    /// The name for comparison, lower-case, without package: `foo`, `(setf foo)`.
    pub key: String,
    /// The defining operator.
    pub operator: String,
    /// The package in force.
    pub package: Option<String>,
    /// The span of the name.
    pub name: Span,
    /// The span of the form.
    pub form: Span,
    /// The slots of a class, condition or structure, as written.
    pub slots: Vec<String>,
    /// The readers, writers and accessors of the slots, as written.
    pub accessors: Vec<String>,
    /// The options of a structure that name its functions: `constructor`, `conc-name`, ...
    pub structure: HashSet<String>,
    /// The names by which a structure makes its functions.
    pub made: Option<Made>,
    /// The accessors of a class or condition and the functions of a structure, lower-case, each
    /// with its [`letters`].
    pub functions: Vec<(u64, String)>,
    /// The [`letters`] of the key.
    pub letters: u64,
    /// The superclasses of a class or condition, and what a structure includes, as written.
    pub supers: Vec<String>,
    /// The start of the name in UTF-8, UTF-16 and UTF-32.
    pub start: [Position; 3],
    /// The end of the name.
    pub end: [Position; 3],
}

impl Indexed {
    /// The kind, in the image's terms.
    pub fn kind(&self) -> &str {
        kind_of(&self.operator)
    }

    /// The start and the end of the name for a client.
    pub fn range(&self, encoding: PositionEncoding) -> (Position, Position) {
        let at = index(encoding);
        (self.start[at], self.end[at])
    }
}

fn index(encoding: PositionEncoding) -> usize {
    match encoding {
        PositionEncoding::Utf8 => 0,
        PositionEncoding::Utf16 => 1,
        PositionEncoding::Utf32 => 2,
    }
}

/// A file of the index.
#[derive(Debug, Clone)]
pub struct FileEntry {
    /// The path.
    pub path: PathBuf,
    /// The URI, as its client named it if it is open.
    pub uri: String,
    /// The text, if an editor has the file open.
    pub open: Option<Document>,
    /// The definitions, in order.
    pub definitions: Vec<Indexed>,
    /// The packages that it defines.
    pub packages: Vec<PackageText>,
    /// The packages that its `in-package` forms name.
    pub inside: Vec<String>,
    /// The keywords in forms that define something, lower-case, with their colons, sorted.
    pub keywords: Vec<Box<str>>,
    /// The hashes of all words, sorted.
    pub words: Vec<u64>,
    /// The digest of the text ([`digest_of`]).
    pub digest: u64,
}

/// The maximum number of keywords of a file in the index.
const KEYWORDS: usize = 2_000;
/// The maximum number of definitions of a file in the index.
const DEFINITIONS: usize = 20_000;

impl FileEntry {
    /// Indexes a text. Takes time by its length.
    pub fn of(path: PathBuf, uri: String, document: &Document, open: bool) -> FileEntry {
        let (mut definitions, mut packages, mut keywords) = (Vec::new(), Vec::new(), BTreeSet::new());
        let text = document.text();
        for top in document.scan().forms() {
            if stop::now() || definitions.len() >= DEFINITIONS {
                break;
            }
            let bytes = text.byte_slice(top.bytes.start..top.bytes.end);
            // A form that begins with no parenthesis or guard defines nothing.
            if bytes.len_bytes() == 0 || !matches!(bytes.byte(0), b'(' | b'#') {
                continue;
            }
            let form = Form::of(document, top.span);
            let found = definitions::in_form(&form);
            if found.is_empty() {
                continue;
            }
            add_keywords(&form, &form.nodes, &mut keywords);
            let package = package_at(document, top.span.start);
            for one in found {
                if matches!(one.operator.as_str(), "defpackage" | "define-package") {
                    packages.extend(of_form(&form, one.span));
                }
                let at = |offset: usize| {
                    [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32]
                        .map(|encoding| to_position(text, offset, encoding))
                };
                let parts = class_parts(&form, one.span, &one.operator);
                let accessors: Vec<String> = parts.slots.iter().flat_map(|slot| slot.accessors.clone()).collect();
                let made = match one.operator.as_str() {
                    "defstruct" => structure_functions(&form, one.span),
                    _ => accessors.clone(),
                };
                let functions = made.into_iter().map(|name| name.to_lowercase());
                let is_structure = one.operator == "defstruct";
                definitions.push(Indexed {
                    made: is_structure.then(|| definitions::made(&form, one.span)).flatten(),
                    slots: parts.slots.into_iter().map(|slot| slot.name).collect(),
                    accessors,
                    functions: functions.map(|name| (letters(&name), name)).collect(),
                    letters: letters(&one.key),
                    structure: parts.options,
                    supers: parts.supers,
                    start: at(one.name.start),
                    end: at(one.name.end),
                    written: one.written,
                    key: one.key,
                    operator: one.operator,
                    package: package.clone(),
                    name: one.name,
                    form: one.span,
                });
            }
        }
        let open = open.then(|| document.clone());
        let string = text.to_string();
        let keywords = keywords.into_iter().collect();
        FileEntry {
            path,
            uri,
            open,
            definitions,
            packages,
            inside: packages_named(document),
            keywords,
            words: words(&string),
            digest: digest_of(&string),
        }
    }
}

/// Adds the keywords of some nodes.
fn add_keywords(form: &Form, nodes: &[Node], found: &mut BTreeSet<Box<str>>) {
    for node in nodes {
        if node.kind == Kind::Atom && found.len() < KEYWORDS {
            let written = form.text(node);
            if written.starts_with(':') && written.len() > 2 && !written.contains('|') {
                found.insert(written.to_lowercase().into());
            }
        }
        add_keywords(form, &node.children, found);
    }
}

/// The digest of a text, or of several digests.
pub fn digest_of(all: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    all.hash(&mut hasher);
    hasher.finish()
}

/// The hashes of all words of a text, sorted: of symbols, and of what strings and comments have.
fn words(string: &str) -> Vec<u64> {
    let delimiter = |char: char| char.is_whitespace() || "()\"';`,|\\:".contains(char);
    let mut found: Vec<u64> = string.split(delimiter).filter(|word| !word.is_empty()).map(hash).collect();
    // A name that is written with escapes is found as a whole.
    let escaped = string.split(|char: char| char.is_whitespace() || "()\"';`,".contains(char));
    found.extend(
        escaped
            .filter(|word| word.contains(['|', '\\']))
            .filter_map(symbol_name)
            .map(|name| hash(name.trim_matches('|'))),
    );
    found.sort_unstable();
    found.dedup();
    found
}

/// The hash of a word, in any case, without what is left of a prefix before it (`#.x`, `,@x`).
pub(super) fn hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let word = word.trim_start_matches(['#', '.', '@']);
    for char in word.chars().flat_map(char::to_lowercase) {
        char.hash(&mut hasher);
    }
    hasher.finish()
}
