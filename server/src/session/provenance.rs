//! The provenance of definitions: the client, the time and the source text of every definition that
//! was made through Consort. The table is in the host's process, so that code that runs in the
//! image cannot change it. Its size is limited.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use super::loaded_texts::{LoadedNow, LoadedTexts, Written};
use super::others_definitions::{DefinitionChange, Maker, OthersDefinitions};
use super::recent_names::RecentNames;
use super::redefinitions;
use super::requests::{compute_all, compute_all_of};
use super::timestamp::{for_person, timestamp};
use super::{ClientId, Frontend};
use crate::bounded_file;
use crate::image::Image;
use crate::image::api::package_contents::{Homes, SystemFiles};
use crate::image::api::{Origin, Redefinition};
use crate::locked::lock;
use crate::text::decode;
use crate::text::recorded_definitions::{Definition, definitions};

/// The maximum number of names with provenance. The name that was added first is removed first.
const MAX_NAMES: usize = 20_000;
/// The maximum number of entries for one name, such as for a generic function's methods.
const MAX_PER_NAME: usize = 64;
/// The maximum number of symbols in one query for home packages.
const MAX_SYMBOLS: usize = 500;

/// The provenance of a definition.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Provenance {
    /// The kind of definition: `function`, `setf function`, `macro`, `variable`, ...
    pub kind: String,
    /// The text of [`Definition::method_in`] for a method, if known. `None` for other definitions.
    #[serde(skip)]
    pub method: Option<String>,
    /// The client's name.
    pub by: String,
    /// The client's front end: an editor, an agent, the command line.
    pub frontend: Frontend,
    /// The time at which the definition was recorded, in the format of RFC 3339.
    pub at: String,
    /// The same time.
    #[serde(skip)]
    pub time: SystemTime,
    /// The tool, command or operation that made the definition.
    pub how: String,
    /// The system with which the definition was loaded, and which a new image loads again. `None`
    /// if the definition was made in another way.
    #[serde(skip)]
    pub system: Option<String>,
    /// The defining form, cut to a maximum length; empty if unknown.
    pub text: String,
    /// The digest of the top-level form ([`Definition::digest`]); 0 if unknown.
    #[serde(skip)]
    pub digest: u64,
    /// The source file, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The path of the source file with symbolic links resolved, if it could be resolved.
    #[serde(skip)]
    pub real: Option<PathBuf>,
    /// The line in the file, 1-based, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

impl Provenance {
    /// Returns a sentence for an agent: the client, the time, the operation and the source.
    pub fn sentence(&self) -> String {
        let who = self.frontend_words();
        let place = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!(", from {}:{line}", file.display()),
            (Some(file), None) => format!(", from {}", file.display()),
            (None, _) => String::new(),
        };
        format!("Defined as {} {who} ({}) at {} with {}{place}.", self.kind, self.by, self.at, self.how)
    }

    /// Returns the maker and the time for a person who reads them at the time `now`, such as `in
    /// the editor (nvim), today 13:50`.
    pub(super) fn maker(&self, now: SystemTime) -> String {
        let system = self.system.as_ref().map(|system| format!(" with the system {system}")).unwrap_or_default();
        format!("{} ({}){system}, {}", self.frontend_words(), self.by, for_person(self.time, now))
    }

    fn frontend_words(&self) -> &'static str {
        match self.frontend {
            Frontend::Lsp => "in the editor",
            Frontend::Mcp => "by an agent",
            Frontend::Cli => "from the command line",
        }
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
    /// The names in the order in which they were inserted, by a number that increases.
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
    /// Returns the name of the operation, and the system if the operation is the load of a system.
    fn parts(&self) -> (String, Option<String>) {
        match self {
            MadeBy::Operation(how) => (how.clone(), None),
            MadeBy::System(system) => (loading(system), Some(system.clone())),
        }
    }
}

/// Returns the name that the load of a system has as an operation and as a job.
pub(super) fn loading(system: &str) -> String {
    format!("loading the system {system}")
}

/// The facts that all definitions of one text share: the client, the operation and the source.
#[derive(Debug, Clone)]
pub(super) struct ProvenanceEntry {
    pub(super) client: Maker,
    pub(super) made_by: MadeBy,
    /// The package in which the text begins.
    pub(super) package: String,
    /// The file and the position in it at which the text begins, if known.
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

    /// Returns the provenance of the definitions of a name, the newest first. Returns an empty
    /// vector if there is none. `package` is the name of the symbol's home package.
    pub(super) fn of(&self, package: &str, name: &str) -> Vec<Provenance> {
        self.table().made.get(&(package.to_owned(), name.to_owned())).cloned().unwrap_or_default()
    }

    /// Returns the source files of the definitions of a name without symbolic links, the newest
    /// first, and `None` for those without a file. Definitions in a row from one file count once.
    pub(super) fn files_of(&self, package: &str, name: &str) -> Vec<Option<PathBuf>> {
        let table = self.table();
        let made = table.made.get(&(package.to_owned(), name.to_owned()));
        let mut files: Vec<_> = made.into_iter().flatten().map(|one| one.real.clone()).collect();
        files.dedup();
        files
    }

    /// Returns the package in which a session's next evaluation begins: the one that
    /// [`ProvenanceStore::package_is`] recorded, or `COMMON-LISP-USER`.
    pub(super) fn package(&self, session: &str) -> String {
        self.table().packages.get(session).cloned().unwrap_or_else(|| "COMMON-LISP-USER".into())
    }

    /// Records the current package of a session.
    pub(super) fn package_is(&self, session: &str, package: &str) {
        self.table().packages.insert(session.to_owned(), package.to_owned());
    }

    /// Returns the definitions of a text that may replace others of which compiled code contains a
    /// part. A definition is left out if the last one on record with its name and kind has the same
    /// text, except a variable. `package` is the package in which the text begins. At most
    /// [`redefinitions::MAX_DEFINITIONS`] are returned.
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

    /// Returns the number of the last definition, for [`ProvenanceStore::others_since`].
    pub(super) fn last_definition(&self) -> u64 {
        self.table().others.last()
    }

    /// Returns sentences about the definitions after the one with this number that clients other
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

    /// Returns the names, without packages, whose definitions changed since
    /// [`ProvenanceStore::changes`] returned `changes`. Returns `None` if any definition may have
    /// changed.
    pub(super) fn changed_since(&self, changes: u64) -> Option<HashSet<String>> {
        self.table().recent.since(changes)
    }

    /// Removes the current package of a session that has ended.
    pub(super) fn session_ended(&self, session: &str) {
        self.table().packages.remove(session);
    }

    /// Handles a ready image. If it is another image than before, removes the sessions' packages,
    /// the texts of loaded files, and all definitions but those of systems, which a new image loads
    /// again.
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
    /// names' home packages; records nothing if the image does not answer.
    pub(super) async fn record_text(&self, image: &Image, text: &str, making: ProvenanceEntry) {
        let text = text.to_owned();
        let found = compute_all_of(text.len(), move || definitions(&text)).await;
        self.made_of(image, found, making).await;
    }

    /// Records definitions that were found in a text, as [`ProvenanceStore::record_text`] does.
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

    /// Records the definitions in the files of a system that was loaded. `now` has the files that
    /// this load has loaded. Definitions in the system's other files were loaded earlier, so they
    /// do not replace definitions on record. The texts of files that were written after the time
    /// `until` are not kept.
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

    /// Returns true if a file was written after the image had loaded it and before this process
    /// read it, so that the text that the image loaded is not known.
    pub(super) fn was_written_since_its_load(&self, path: &std::path::Path) -> bool {
        self.table().loaded.is_load_unknown(path)
    }

    /// Records the definitions in files that were loaded. Keeps the text of each file that was
    /// certainly written before the time `until`. Leaves out files that cannot be read.
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

    /// Acts as [`ProvenanceStore::files`]. If `replaces` is false, definitions on record are newer
    /// and stay.
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

    /// Records the definitions that a reload or its undoing made (`back`) and removed (`gone`).
    /// Both lists have definitions as the reload's report names them.
    pub(super) fn reported(&self, back: &[String], gone: &[String], how: &str, client: &Maker) {
        let time = SystemTime::now();
        let at = timestamp(time);
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
                    time,
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

    /// Records definitions. `real` is the path of the source file with symbolic links resolved. If
    /// `replaces` is false, definitions on record stay.
    async fn note(
        &self,
        image: &Image,
        found: Vec<Definition>,
        making: &ProvenanceEntry,
        (real, replaces): (Option<PathBuf>, bool),
    ) {
        let time = SystemTime::now();
        let at = timestamp(time);
        let (how, system) = making.made_by.parts();
        for found in found.chunks(MAX_SYMBOLS) {
            let names: Vec<(String, String)> = found
                .iter()
                .map(|one| (one.package.clone().unwrap_or_else(|| making.package.clone()), one.name.clone()))
                .collect();
            // An image that does not answer has usually ended, and its definitions with it.
            let Ok(homes) = image.query(&Homes { symbols: names }).await else { return };
            let mut table = self.table();
            for (definition, home) in found.iter().zip(homes.homes) {
                // The name of a package need not be that of a symbol, so the image does not know
                // its home package. The table has packages under KEYWORD.
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
                        time,
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

/// Parses a definition as a reload's report names it: `method (HR::RUN (TASK))` or `setf function
/// (SETF HR::PLACE)`. Returns the symbol's package and name, and the kind. Returns `None` for a
/// text that names no definition.
fn parse_reported_name(text: &str) -> Option<((String, String), String)> {
    let at = text.find(|char: char| !char.is_ascii_lowercase() && char != ' ')?;
    let (kind, name) = text.split_at(at);
    if kind.is_empty() {
        return None; // "... and 3 more"
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
    /// Returns true if a definition of this name and kind is on record; for a method, if this
    /// method is.
    fn has(&self, name: &(String, String), kind: &str, method: Option<&str>) -> bool {
        let of_kind = |made: &Provenance| made.kind == kind && made.method.as_deref() == method;
        self.made.get(name).is_some_and(|made| made.iter().any(of_kind))
    }

    /// Adds a definition, and removes the earlier one of the same name and kind.
    fn add(&mut self, maker: &Maker, name: (String, String), made: Provenance) {
        self.recent.add(&name.1);
        let is_new = !self.made.contains_key(&name);
        let system = made.system.clone();
        // A name whose definitions were removed is still in the table, with an empty vector.
        let is_defined = self.made.get(&name).is_some_and(|made| !made.is_empty());
        let deed = if is_defined { DefinitionChange::Redefined } else { DefinitionChange::Defined };
        self.others.add(maker, format!("{}::{}", name.0, name.1), deed, system);
        let provenance = self.made.entry(name.clone()).or_default();
        // A name has one definition of each kind, but any number of methods.
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
