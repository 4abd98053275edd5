//! Operations on packages, symbols and systems: the exports of packages, the meanings of names, the
//! home packages of symbols (lisp/src/ops/names.lisp), documentation (lisp/src/ops/manual.lisp),
//! and the files of systems.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Operation;

/// `package-contents`: a package's exports.
#[derive(Debug, Clone, Serialize)]
pub struct PackageContents {
    /// A name or nickname of the package.
    pub name: String,
}

/// The answer to `package-contents`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PackageFacts {
    /// The package's name.
    pub name: String,
    /// The nicknames.
    pub nicknames: Vec<String>,
    /// The package's documentation.
    pub documentation: Option<String>,
    /// The packages that the package uses.
    pub uses: Vec<String>,
    /// The packages that use the package.
    pub used_by: Vec<String>,
    /// The number of exported symbols.
    pub count: usize,
    /// The exported symbols, in order, up to a limit.
    pub exports: Vec<Export>,
}

/// An exported symbol.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Export {
    /// The symbol's name.
    pub name: String,
    /// The kinds of things that the symbol names.
    pub kinds: Vec<String>,
    /// The first line of the symbol's documentation.
    pub documentation: Option<String>,
}

impl Operation for PackageContents {
    const NAME: &'static str = "package-contents";
    type Answer = PackageFacts;
}

/// `symbol-facts`: the symbols that a name may denote, and their meanings.
#[derive(Debug, Clone, Serialize)]
pub struct SymbolFacts {
    /// The name as written: `cl:car`, `foo::bar`, `bar`.
    pub name: String,
}

/// The answer to `symbol-facts`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Symbols {
    /// Every symbol that the name may denote.
    pub symbols: Vec<SymbolFact>,
}

/// The facts of a symbol.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SymbolFact {
    /// The symbol's name.
    pub name: String,
    /// The symbol's home package.
    pub package: Option<String>,
    /// True if the home package exports the symbol.
    pub external: bool,
    /// The lambda list of the operator that the symbol names.
    pub lambda_list: Option<String>,
    /// The things that the symbol names.
    pub kinds: Vec<SymbolKind>,
}

/// A thing that a symbol names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SymbolKind {
    /// `function`, `macro`, `variable`, `class`, ...
    pub kind: String,
    /// The documentation of this kind.
    pub documentation: Option<String>,
}

impl Operation for SymbolFacts {
    const NAME: &'static str = "symbol-facts";
    type Answer = Symbols;
}

/// `manual`: the documentation of a package's exports, or of those of a system's packages.
#[derive(Debug, Clone, Serialize)]
pub struct Manual {
    /// A name or nickname of a package. If there is no such package: the name of a system, for the
    /// packages that its files define.
    pub name: String,
}

/// The answer to `manual`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manuals {
    /// The packages, by name.
    pub packages: Vec<ManualPackage>,
}

/// The exports of a package with their whole documentation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ManualPackage {
    /// The package's name.
    pub name: String,
    /// The nicknames.
    pub nicknames: Vec<String>,
    /// The package's documentation.
    pub documentation: Option<String>,
    /// The number of exported symbols.
    pub count: usize,
    /// The exported symbols, in order, up to a limit.
    pub exports: Vec<SymbolFact>,
}

impl Operation for Manual {
    const NAME: &'static str = "manual";
    type Answer = Manuals;
}

/// `homes`: the home packages of symbols.
#[derive(Debug, Clone, Serialize)]
pub struct Homes {
    /// The package and the name of each symbol, as the reader has them.
    pub symbols: Vec<(String, String)>,
}

/// The answer to `homes`.
#[derive(Debug, Clone, Deserialize)]
pub struct HomesAnswer {
    /// The home package and the name of each symbol, in the order of the request. `None`: there is
    /// no such symbol.
    pub homes: Vec<Option<(String, String)>>,
    /// The indices of the symbols that name nothing, such as those that were only read.
    #[serde(default)]
    pub undefined: Vec<usize>,
    /// The image's `*features*`, upper-case.
    pub features: Vec<String>,
}

impl Operation for Homes {
    const NAME: &'static str = "homes";
    type Answer = HomesAnswer;
}

/// `system-files`: the source files of a system.
#[derive(Debug, Clone, Serialize)]
pub struct SystemFiles {
    /// ASDF's name of the system.
    pub system: String,
}

/// The answer to `system-files`.
#[derive(Debug, Clone, Deserialize)]
pub struct Files {
    /// The system's Lisp sources, in order.
    pub files: Vec<PathBuf>,
}

impl Operation for SystemFiles {
    const NAME: &'static str = "system-files";
    type Answer = Files;
}

/// `system-names`: the names of systems that contain certain characters.
#[derive(Debug, Clone, Serialize)]
pub struct SystemNames {
    /// The characters that each name must contain, in any order and case.
    pub text: String,
}

/// The answer to `system-names`.
#[derive(Debug, Clone, Deserialize)]
pub struct Systems {
    /// The names, in order, up to a limit.
    pub systems: Vec<String>,
}

impl Operation for SystemNames {
    const NAME: &'static str = "system-names";
    type Answer = Systems;
}

/// `workspace-systems`: makes ASDF prefer the systems of these files from then on.
#[derive(Debug, Clone, Serialize)]
pub struct WorkspaceSystems {
    /// The workspace's `.asd` files.
    pub asd_files: Vec<PathBuf>,
    /// The workspace's directory.
    pub root: PathBuf,
}

impl Operation for WorkspaceSystems {
    const NAME: &'static str = "workspace-systems";
    type Answer = serde::de::IgnoredAny;
}

/// `loaded-files`: the files of the loaded systems that are defined below a directory.
#[derive(Debug, Clone, Serialize)]
pub struct LoadedFiles {
    /// The prefix of the path of a definition.
    pub within: PathBuf,
}

/// A file of a loaded system.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadedFile {
    /// The file's path.
    pub path: PathBuf,
    /// True if ASDF considers the file newer than its loaded version.
    pub changed: bool,
}

/// A loaded system.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadedSystem {
    /// ASDF's name of the system.
    pub system: String,
    /// The system's Lisp sources, in order.
    pub files: Vec<LoadedFile>,
}

/// The answer to `loaded-files`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadedSystems {
    /// The loaded systems.
    pub systems: Vec<LoadedSystem>,
}

impl Operation for LoadedFiles {
    const NAME: &'static str = "loaded-files";
    type Answer = LoadedSystems;
}

/// `source-directories`: the directories that contain sources of systems.
#[derive(Debug, Clone, Serialize)]
pub struct SourceDirectories {}

/// The answer to `source-directories`.
#[derive(Debug, Clone, Deserialize)]
pub struct Directories {
    /// Directories, with links resolved.
    pub directories: Vec<PathBuf>,
}

impl Operation for SourceDirectories {
    const NAME: &'static str = "source-directories";
    type Answer = Directories;
}
