//! The provenance of definitions: the client, the time and the source text of every definition that
//! was made through Consort. It is kept in this process, so that code that runs in the image cannot
//! change it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use super::loaded_texts::{LoadedNow, LoadedTexts, Written};
use super::others_definitions::{DefinitionChange, Maker, OthersDefinitions};
use super::recent_names::RecentNames;
use super::redefinitions;
use super::requests::{compute_all, compute_all_of};
use super::timestamp::timestamp;
use super::{ClientId, Frontend};
use crate::bounded_file;
use crate::image::Image;
use crate::image::api::package_contents::{Homes, SystemFiles};
use crate::image::api::{Origin, Redefinition};
use crate::locked::lock;
use crate::text::decode;
use crate::text::recorded_definitions::{Definition, definitions};

/// The maximum number of names with provenance.
const MAX_NAMES: usize = 20_000;
/// The maximum number of entries for one name, such as for a generic function's methods.
const MAX_PER_NAME: usize = 64;
/// The maximum number of symbols in one query for home packages.
const MAX_SYMBOLS: usize = 500;

/// The provenance of a definition.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Provenance {
    /// `function`, `setf function`, `macro`, `variable`, ...
    pub kind: String,
    /// For a method, [`Definition::method_in`], if known.
    #[serde(skip)]
    pub method: Option<String>,
    /// The client's name.
    pub by: String,
    /// The client's front end: an editor, an agent, the command line.
    pub frontend: Frontend,
    /// The time (RFC 3339).
    pub at: String,
    /// The tool, command or operation.
    pub how: String,
    /// The system with which the definition was loaded. A new image loads it again.
    #[serde(skip)]
    pub system: Option<String>,
    /// The form, clipped.
    pub text: String,
    /// The digest of the top-level form ([`Definition::digest`]); 0 if unknown.
    #[serde(skip)]
    pub digest: u64,
    /// The source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The source file without symbolic links.
    #[serde(skip)]
    pub real: Option<PathBuf>,
    /// The line in the file, 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

impl Provenance {
    /// Returns a sentence for a person: the client, the time, the operation and the source.
    pub fn sentence(&self) -> String {
        let who = match self.frontend {
            Frontend::Lsp => "in the editor",
            Frontend::Mcp => "by an agent",
            Frontend::Cli => "from the command line",
        };
        let place = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!(", from {}:{line}", file.display()),
            (Some(file), None) => format!(", from {}", file.display()),
            (None, _) => String::new(),
        };
        format!("Defined as {} {who} ({}) at {} with {}{place}.", self.kind, self.by, self.at, self.how)
    }
}

/// The provenance table. Clones share the table.
#[derive(Debug, Clone, Default)]
pub(super) struct ProvenanceStore {
    shared: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    made: HashMap<(String, String), Vec<Provenance>>,
    /// The names in order of insertion.
    order: BTreeMap<u64, (String, String)>,
    next: u64,
    /// The current package of each evaluation session.
    packages: HashMap<String, String>,
    image: String,
    others: OthersDefinitions,
    recent: RecentNames,
    loaded: LoadedTexts,
}

/// The operation that made definitions.
#[derive(Debug, Clone)]
pub(super) enum MadeBy {
    /// A tool, command or operation, by its name.
    Operation(String),
    /// The load of a system, which a new image loads again.
    System(String),
}

impl MadeBy {
    /// Returns the operation in words, and the system if the operation is its load.
    fn parts(&self) -> (String, Option<String>) {
        match self {
            MadeBy::Operation(how) => (how.clone(), None),
            MadeBy::System(system) => (loading(system), Some(system.clone())),
        }
    }
}

/// Returns the name of the load of a system, as an operation and as a job.
pub(super) fn loading(system: &str) -> String {
    format!("loading the system {system}")
}

/// The source of definitions.
#[derive(Debug, Clone)]
pub(super) struct ProvenanceEntry {
    pub(super) client: Maker,
    pub(super) made_by: MadeBy,
    /// The package in which the text begins.
    pub(super) package: String,
    /// The position at which the text begins.
    pub(super) origin: Option<Origin>,
    /// The file that the client named, used if `origin` is unknown.
    pub(super) file: Option<PathBuf>,
}

impl ProvenanceEntry {
    /// Returns the source file, if known.
    fn file(&self) -> Option<&PathBuf> {
        self.origin.as_ref().map(|origin| &origin.file).or(self.file.as_ref())
    }
}

impl ProvenanceStore {
    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.shared)
    }

    pub(super) fn of(&self, package: &str, name: &str) -> Vec<Provenance> {
        self.table().made.get(&(package.to_owned(), name.to_owned())).cloned().unwrap_or_default()
    }

    /// Returns the package in which a session's next evaluation begins.
    pub(super) fn package(&self, session: &str) -> String {
        self.table().packages.get(session).cloned().unwrap_or_else(|| "COMMON-LISP-USER".into())
    }

    pub(super) fn package_is(&self, session: &str, package: &str) {
        self.table().packages.insert(session.to_owned(), package.to_owned());
    }

    /// Returns the definitions of a text that replace others which may live on in compiled code. A
    /// macro, function or structure replaces nothing if its text is the one that was evaluated or
    /// loaded last. `package` is the package in which the text begins.
    pub(super) fn replaced_by(&self, found: &[Definition], package: &str) -> Vec<Redefinition> {
        let table = self.table();
        let package = |one: &Definition| one.package.clone().unwrap_or_else(|| package.to_owned());
        let is_another = |one: &&Definition| {
            one.kind == "variable"
                || !table.made.get(&(package(one), one.name.clone())).is_some_and(|made| {
                    made.iter().find(|made| made.kind == one.kind).is_some_and(|made| made.digest == one.digest)
                })
        };
        let replaced = found.iter().filter(|one| redefinitions::is_compiled_into_uses(&one.kind)).filter(is_another);
        let replaced = replaced.take(redefinitions::MAX_DEFINITIONS);
        replaced
            .map(|one| Redefinition { package: package(one), name: one.name.clone(), kind: one.kind.clone() })
            .collect()
    }

    /// Returns the number of the last definition.
    pub(super) fn last_definition(&self) -> u64 {
        self.table().others.last()
    }

    /// Returns a sentence about each definition after the one with this number that a client other
    /// than `reader` made.
    pub(super) fn others_since(&self, number: u64, reader: ClientId) -> Vec<String> {
        self.table().others.sentences_since(number, reader)
    }

    /// Returns the names, without packages, of definitions that were not loaded with a system.
    pub(super) fn evaluated_names(&self) -> HashSet<String> {
        let table = self.table();
        let evaluated = table.made.iter().filter(|(_, made)| made.iter().any(|made| made.system.is_none()));
        evaluated.map(|((_, name), _)| name.clone()).collect()
    }

    /// Returns the number of changes of definitions so far.
    pub(super) fn changes(&self) -> u64 {
        self.table().recent.number()
    }

    /// Returns the names, without packages, whose definitions changed after the first `changes`
    /// changes. Returns `None` if any definition may have changed.
    pub(super) fn changed_since(&self, changes: u64) -> Option<HashSet<String>> {
        self.table().recent.since(changes)
    }

    pub(super) fn session_ended(&self, session: &str) {
        self.table().packages.remove(session);
    }

    /// Handles a ready image. If it is another image than before, forgets the definitions that were
    /// only evaluated. The definitions of systems stay, because systems are loaded again.
    pub(super) fn image_is(&self, image: &str) {
        let mut table = self.table();
        if table.image != image {
            image.clone_into(&mut table.image);
            table.recent.all_changed();
            table.packages.clear();
            table.loaded.clear();
            table.made.retain(|_, made| {
                made.retain(|made| made.system.is_some());
                !made.is_empty()
            });
            let Table { made, order, .. } = &mut *table;
            order.retain(|_, name| made.contains_key(name));
        }
    }

    /// Records the definitions of a text that was evaluated or compiled. Asks the image for the
    /// home packages of the names.
    pub(super) async fn record_text(&self, image: &Image, text: &str, making: ProvenanceEntry) {
        let text = text.to_owned();
        let found = compute_all_of(text.len(), move || definitions(&text)).await;
        self.made_of(image, found, making).await;
    }

    /// Records the definitions of a text, as [`ProvenanceStore::record_text`] does.
    pub(super) async fn made_of(&self, image: &Image, found: Vec<Definition>, making: ProvenanceEntry) {
        if found.is_empty() {
            return;
        }
        let real = match making.file() {
            Some(file) => tokio::fs::canonicalize(file).await.ok(),
            None => None,
        };
        self.note(image, found, &making, (real, true)).await;
    }

    /// Records the definitions in the files of a system that was loaded. Definitions in files that
    /// were loaded before, and not `now`, replace no others.
    pub(super) async fn loaded(&self, image: &Image, system: &str, client: Maker, now: &LoadedNow, until: SystemTime) {
        let Ok(files) = image.query(&SystemFiles { system: system.to_owned() }).await else { return };
        let (again, before): (Vec<PathBuf>, Vec<PathBuf>) = files.files.into_iter().partition(|file| now.has(file));
        let made_by = MadeBy::System(system.to_owned());
        self.texts_of(image, before, (&made_by, false), client.clone(), until).await;
        self.texts_of(image, again, (&made_by, true), client, until).await;
    }

    /// Returns the text of a file that the image has loaded, if known.
    pub(super) fn text_loaded(&self, path: &std::path::Path) -> Option<Arc<str>> {
        self.table().loaded.of(path)
    }

    /// Returns true if a file was written after the image had loaded it and before its text was
    /// read, so that the text that the image has is not known.
    pub(super) fn was_written_since_its_load(&self, path: &std::path::Path) -> bool {
        self.table().loaded.is_load_unknown(path)
    }

    /// Records the definitions in files that were loaded, and the files' texts unless they were
    /// written after `until`.
    pub(super) async fn files(
        &self,
        image: &Image,
        files: Vec<PathBuf>,
        made_by: &MadeBy,
        client: Maker,
        until: SystemTime,
    ) {
        self.texts_of(image, files, (made_by, true), client, until).await;
    }

    /// Acts as [`ProvenanceStore::files`]. `replaces` is false if definitions on record are newer.
    async fn texts_of(
        &self,
        image: &Image,
        files: Vec<PathBuf>,
        (made_by, replaces): (&MadeBy, bool),
        client: Maker,
        until: SystemTime,
    ) {
        for file in files {
            let Ok(bytes) = bounded_file::read_blocking(file.clone(), bounded_file::SOURCE_LIMIT).await else {
                continue;
            };
            let real = tokio::fs::canonicalize(&file).await.ok();
            let (store, path, place) = (self.clone(), file.clone(), real.clone());
            let found = compute_all(move || {
                let text = decode(bytes);
                let written = Written::of(&path, until);
                let place = place.unwrap_or(path);
                match written {
                    Written::Before => store.table().loaded.loaded(place, &text),
                    Written::After => store.table().loaded.written_since(place),
                    Written::Unclear => {}
                }
                definitions(&text)
            })
            .await;
            let origin = Some(Origin { file, line: 1, column: 1 });
            let package = "COMMON-LISP-USER".to_owned();
            let (client, made_by) = (client.clone(), made_by.clone());
            let making = ProvenanceEntry { client, made_by, package, origin, file: None };
            self.note(image, found, &making, (real, replaces)).await;
        }
    }

    /// Records the definitions that a reload made and removed, as its report names them.
    pub(super) fn reported(&self, back: &[String], gone: &[String], how: &str, client: &Maker) {
        let at = timestamp(SystemTime::now());
        let mut table = self.table();
        for (name, kind) in gone.iter().filter_map(|text| parse_reported_name(text)) {
            table.recent.add(&name.1);
            table.others.add(client, format!("{}::{}", name.0, name.1), DefinitionChange::Removed, None);
            if let Some(provenance) = table.made.get_mut(&name) {
                provenance.retain(|made| made.kind != kind);
            }
        }
        for (name, kind) in back.iter().filter_map(|text| parse_reported_name(text)) {
            let (by, frontend, how) = (client.info.name.clone(), client.info.frontend, how.to_owned());
            let (at, text) = (at.clone(), String::new());
            table.add(
                client,
                name,
                Provenance {
                    kind,
                    method: None,
                    by,
                    frontend,
                    at,
                    how,
                    system: None,
                    text,
                    digest: 0,
                    file: None,
                    real: None,
                    line: None,
                },
            );
        }
    }

    /// Records definitions. `real` is the source file without symbolic links. `replaces` is false
    /// to keep definitions that are on record.
    async fn note(
        &self,
        image: &Image,
        found: Vec<Definition>,
        making: &ProvenanceEntry,
        (real, replaces): (Option<PathBuf>, bool),
    ) {
        let at = timestamp(SystemTime::now());
        let (how, system) = making.made_by.parts();
        for found in found.chunks(MAX_SYMBOLS) {
            let names: Vec<(String, String)> = found
                .iter()
                .map(|one| (one.package.clone().unwrap_or_else(|| making.package.clone()), one.name.clone()))
                .collect();
            // If the image gives no answer, its definitions are lost with it.
            let Ok(homes) = image.query(&Homes { symbols: names }).await else { return };
            let mut table = self.table();
            for (definition, home) in found.iter().zip(homes.homes) {
                // A package is named by a string, which need not be a symbol's name.
                let home = match home {
                    _ if definition.kind == "package" => ("KEYWORD".into(), definition.name.clone()),
                    Some(home) => home,
                    None => continue,
                };
                if !definition.is_read(&homes.features) {
                    continue;
                }
                let method = definition.method_in(&making.package);
                if !replaces && table.has(&home, &definition.kind, method.as_deref()) {
                    continue;
                }
                let origin = making.origin.as_ref();
                table.add(
                    &making.client,
                    home,
                    Provenance {
                        kind: definition.kind.clone(),
                        method,
                        by: making.client.info.name.clone(),
                        frontend: making.client.info.frontend,
                        at: at.clone(),
                        how: how.clone(),
                        system: system.clone(),
                        text: definition.text.clone(),
                        digest: definition.digest,
                        file: making.file().cloned(),
                        real: real.clone(),
                        line: origin.map(|origin| origin.line + definition.line - 1),
                    },
                );
            }
        }
    }
}

/// Parses a definition as a report names it: `method (HR::RUN (TASK))`, `setf function (SETF
/// HR::PLACE)`. Returns the symbol's package and name, and the kind.
fn parse_reported_name(text: &str) -> Option<((String, String), String)> {
    let at = text.find(|char: char| !char.is_ascii_lowercase() && char != ' ')?;
    let (kind, name) = text.split_at(at);
    if kind.is_empty() {
        return None; // the number of further definitions
    }
    let name = name.trim_start_matches('(');
    let name = name.strip_prefix("SETF ").unwrap_or(name);
    let name = name.split([' ', ')']).next().filter(|name| !name.is_empty())?;
    let kind = kind.trim_end().to_owned();
    let (package, name) = match name.split_once(':') {
        _ if kind == "package" => ("KEYWORD", name),
        Some((package, name)) => (package, name.trim_start_matches(':')),
        None => ("COMMON-LISP", name),
    };
    Some(((package.to_owned(), name.to_owned()), kind))
}

impl Table {
    /// Returns true if a definition of this name and kind is on record.
    fn has(&self, name: &(String, String), kind: &str, method: Option<&str>) -> bool {
        let of_kind = |made: &Provenance| made.kind == kind && made.method.as_deref() == method;
        self.made.get(name).is_some_and(|made| made.iter().any(of_kind))
    }

    fn add(&mut self, maker: &Maker, name: (String, String), made: Provenance) {
        self.recent.add(&name.1);
        let is_new = !self.made.contains_key(&name);
        let system = made.system.clone();
        // A name whose definitions were removed is still in the table.
        let is_defined = self.made.get(&name).is_some_and(|made| !made.is_empty());
        let deed = if is_defined { DefinitionChange::Redefined } else { DefinitionChange::Defined };
        self.others.add(maker, format!("{}::{}", name.0, name.1), deed, system);
        let provenance = self.made.entry(name.clone()).or_default();
        // There is one definition of each kind, except of methods.
        provenance.retain(|other| other.kind != made.kind || other.method != made.method);
        provenance.insert(0, made);
        provenance.truncate(MAX_PER_NAME);
        if is_new {
            self.next += 1;
            self.order.insert(self.next, name);
            if self.order.len() > MAX_NAMES
                && let Some((_, oldest)) = self.order.pop_first()
            {
                self.made.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_reported_name;

    #[test]
    fn a_report_names_symbols() {
        for (text, kind, package, name) in [
            ("function HR::F", "function", "HR", "F"),
            ("generic function HR:RUN", "generic function", "HR", "RUN"),
            ("method (HR::RUN :AFTER (TASK))", "method", "HR", "RUN"),
            ("setf function (SETF HR::PLACE)", "setf function", "HR", "PLACE"),
            ("method ((SETF HR::PLACE) (T T))", "method", "HR", "PLACE"),
            ("method (PRINT-OBJECT (HR::D T))", "method", "COMMON-LISP", "PRINT-OBJECT"),
            ("package HR", "package", "KEYWORD", "HR"),
        ] {
            assert_eq!(
                parse_reported_name(text),
                Some(((package.to_owned(), name.to_owned()), kind.to_owned())),
                "{text}"
            );
        }
        assert_eq!(parse_reported_name("... and 3 more"), None);
    }
}
