//! The entry of one file in the index of the workspace's texts.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use super::packages::{PackageText, package_of_form};
use crate::ide::name_index::letters;
use crate::text::datum::{Form, Kind, Node, symbol_name};
use crate::text::definitions::{
    self, Defined, StructureNaming, class_parts, kind_of, structure_functions, structure_naming,
};
use crate::text::document::Document;
use crate::text::forms::{package_at, packages_named};
use crate::text::position::{Position, PositionEncoding, to_position};
use crate::text::scanner::{Scanner, TokenKind};
use crate::text::{Span, cancellation, names};

/// A definition in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// The name as written.
    pub written: String,
    /// The name for comparison, lower-case, without package: `foo`, `(setf foo)`.
    pub key: String,
    /// The defining operator, lower-case, without package.
    pub operator: String,
    /// The current package at the form; `None` if no `in-package` form precedes it.
    pub package: Option<String>,
    /// The span of the name in the document.
    pub name: Span,
    /// The span of the form in the document.
    pub form: Span,
    /// The slots of a class, condition or structure, as written.
    pub slots: Vec<String>,
    /// The initialization arguments of the slots of a class or condition, as written.
    pub initargs: Vec<String>,
    /// The readers, writers and accessors of the slots, as written.
    pub accessors: Vec<String>,
    /// The names of a structure's functions.
    pub naming: Option<StructureNaming>,
    /// The accessors of a class or condition, or all functions of a structure, lower-case, each
    /// after its [`letters`].
    pub functions: Vec<(u64, String)>,
    /// The [`letters`] of the key.
    pub letters: u64,
    /// The direct superclasses of a class or condition, or the structure that a structure includes,
    /// as written.
    pub supers: Vec<String>,
    /// The start of the name, in UTF-8, UTF-16 and UTF-32.
    pub start: [Position; 3],
    /// The end of the name, in the same encodings.
    pub end: [Position; 3],
}

impl Indexed {
    /// Returns the kind as the image calls it: `function`, `generic function`, ... ([`kind_of`]).
    pub fn kind(&self) -> &str {
        kind_of(&self.operator)
    }

    /// Returns the start and the end of the name in a client's encoding.
    pub fn range(&self, encoding: PositionEncoding) -> (Position, Position) {
        let at = encoding_index(encoding);
        (self.start[at], self.end[at])
    }
}

/// Returns the index of an encoding in [`Indexed::start`] and [`Indexed::end`].
fn encoding_index(encoding: PositionEncoding) -> usize {
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
    /// The URI: that of the client if an editor has the file open.
    pub uri: String,
    /// The text, if an editor has the file open.
    pub open: Option<Document>,
    /// The definitions, in the order of the text.
    pub definitions: Vec<Indexed>,
    /// The packages that the file defines.
    pub packages: Vec<PackageText>,
    /// The packages that the file's `in-package` forms name.
    pub in_packages: Vec<String>,
    /// The keywords in forms with a definition, lower-case, with their colons, sorted.
    pub keywords: Vec<Box<str>>,
    /// The hashes of all words ([`word_hash`]), sorted.
    pub word_hashes: Vec<u64>,
    /// The digest of the text ([`digest_of`]).
    pub digest: u64,
}

/// The maximum number of keywords of a file in the index.
const KEYWORDS: usize = 2_000;
/// The maximum number of definitions of a file in the index.
const DEFINITIONS: usize = 20_000;

impl FileEntry {
    /// Indexes a text in time linear in its length. `open` is true if an editor has the file open.
    /// The entry may be incomplete if the computation is cancelled ([`cancellation::should_stop`]).
    pub fn of(path: PathBuf, uri: String, document: &Document, open: bool) -> FileEntry {
        let (mut definitions, mut packages, mut keywords) = (Vec::new(), Vec::new(), BTreeSet::new());
        let text = document.text();
        for top in document.scan().forms() {
            if cancellation::should_stop() || definitions.len() >= DEFINITIONS {
                break;
            }
            let bytes = text.byte_slice(top.bytes.start..top.bytes.end);
            // Only a list, possibly after #+ or #-, defines something.
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
                    packages.extend(package_of_form(&form, one.span));
                }
                definitions.push(indexed(document, &form, one, package.clone()));
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
            in_packages: packages_named(document),
            keywords,
            word_hashes: word_hashes(&string),
            digest: digest_of(&string),
        }
    }
}

/// Returns the entry of a definition in `form`.
fn indexed(document: &Document, form: &Form, definition: Defined, package: Option<String>) -> Indexed {
    let positions = |offset: usize| {
        [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32]
            .map(|encoding| to_position(document.text(), offset, encoding))
    };
    let is_structure = definition.operator == "defstruct";
    let parts = class_parts(form, definition.span, &definition.operator);
    let accessors: Vec<String> = parts.slots.iter().flat_map(|slot| slot.accessors.clone()).collect();
    let functions = if is_structure { structure_functions(form, definition.span) } else { accessors.clone() };
    let functions = functions.into_iter().map(|name| name.to_lowercase());
    Indexed {
        naming: is_structure.then(|| structure_naming(form, definition.span)).flatten(),
        initargs: parts.slots.iter().flat_map(|slot| slot.initargs.clone()).collect(),
        slots: parts.slots.into_iter().map(|slot| slot.name).collect(),
        accessors,
        functions: functions.map(|name| (letters(&name), name)).collect(),
        letters: letters(&definition.key),
        supers: parts.supers,
        start: positions(definition.name.start),
        end: positions(definition.name.end),
        written: definition.written,
        key: definition.key,
        operator: definition.operator,
        package,
        name: definition.name,
        form: definition.span,
    }
}

/// Adds the keywords in `nodes` and below them to `found`, up to [`KEYWORDS`].
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

/// Returns the digest of a text, or of several digests. The digest is stable only within one build
/// of the program.
pub fn digest_of(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the hashes of all words of a text, in code, strings and comments, sorted and without
/// repetition.
fn word_hashes(text: &str) -> Vec<u64> {
    let delimiter = |char: char| char.is_whitespace() || "()\"';`,|\\:".contains(char);
    let mut found: Vec<u64> = text.split(delimiter).filter(|word| !word.is_empty()).map(word_hash).collect();
    // A name with escapes is also hashed as a whole.
    let escaped = text.split(|char: char| char.is_whitespace() || "()\"';`,".contains(char));
    found.extend(
        escaped
            .filter(|word| word.contains(['|', '\\']))
            .filter_map(symbol_name)
            .map(|name| word_hash(name.trim_matches('|'))),
    );
    // An escaped name of code may have delimiters in it.
    let atoms = Scanner::new(text).filter(|token| token.kind == TokenKind::Atom);
    let escaped = atoms.map(|token| &text[token.start..token.end]).filter(|atom| atom.contains(['|', '\\']));
    found.extend(escaped.filter_map(names::symbol).map(|symbol| word_hash(&symbol.name)));
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the hash of a word without regard to case. Ignores characters of a reader macro before
/// the word, such as `#.` in `#.x`, and `@`, which remains of `,@x`.
pub(super) fn word_hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let word = word.trim_start_matches(['#', '.', '@']);
    for char in word.chars().flat_map(char::to_lowercase) {
        char.hash(&mut hasher);
    }
    hasher.finish()
}
