//! What packages export, what names stand for, where symbols are at home (lisp/src/ops/names.lisp).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Operation;

/// `package-contents`.
#[derive(Debug, Clone, Serialize)]
pub struct PackageContents {
    /// A name or nickname of it.
    pub name: String,
}

/// The answer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PackageFacts {
    /// Its name.
    pub name: String,
    /// Its other names.
    pub nicknames: Vec<String>,
    /// Its documentation.
    pub documentation: Option<String>,
    /// The packages it uses.
    pub uses: Vec<String>,
    /// The packages that use it.
    pub used_by: Vec<String>,
    /// How many symbols it exports.
    pub count: usize,
    /// They, in order, up to a limit.
    pub exports: Vec<Export>,
}

/// An exported symbol.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// What it names.
    pub kinds: Vec<String>,
    /// The first line of its documentation.
    pub documentation: Option<String>,
}

impl Operation for PackageContents {
    const NAME: &'static str = "package-contents";
    type Answer = PackageFacts;
}

/// `symbol-facts`.
#[derive(Debug, Clone, Serialize)]
pub struct SymbolFacts {
    /// As written: `cl:car`, `foo::bar`, `bar`.
    pub name: String,
}

/// The answer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Symbols {
    /// Every symbol that it may be.
    pub symbols: Vec<SymbolFact>,
}

/// What a symbol is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SymbolFact {
    /// Its name.
    pub name: String,
    /// Its home package.
    pub package: Option<String>,
    /// It is exported there.
    pub external: bool,
    /// The lambda list of the operator it names.
    pub lambda_list: Option<String>,
    /// What it names.
    pub kinds: Vec<SymbolKind>,
}

/// One thing that a symbol names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SymbolKind {
    /// `function`, `macro`, `variable`, `class`, ...
    pub kind: String,
    /// Its documentation as that.
    pub documentation: Option<String>,
}

impl Operation for SymbolFacts {
    const NAME: &'static str = "symbol-facts";
    type Answer = Symbols;
}

/// `homes`.
#[derive(Debug, Clone, Serialize)]
pub struct Homes {
    /// Package and name, as the reader has them.
    pub symbols: Vec<(String, String)>,
}

/// The answer to it, in the same order.
#[derive(Debug, Clone, Deserialize)]
pub struct Home {
    /// Home package and name; `None`: there is no such symbol.
    pub homes: Vec<Option<(String, String)>>,
}

impl Operation for Homes {
    const NAME: &'static str = "homes";
    type Answer = Home;
}

/// `system-files`.
#[derive(Debug, Clone, Serialize)]
pub struct SystemFiles {
    /// ASDF's name of it.
    pub system: String,
}

/// The answer to it.
#[derive(Debug, Clone, Deserialize)]
pub struct Files {
    /// Its Lisp sources, in order.
    pub files: Vec<PathBuf>,
}

impl Operation for SystemFiles {
    const NAME: &'static str = "system-files";
    type Answer = Files;
}

/// `workspace-systems`: from then on ASDF finds the systems of these files first.
#[derive(Debug, Clone, Serialize)]
pub struct WorkspaceSystems {
    /// The workspace's `.asd` files.
    pub asd_files: Vec<PathBuf>,
}

/// A loaded system that has the name of one of the workspace's and comes from another file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ForeignSystem {
    /// Its name.
    pub system: String,
    /// The file it was defined in.
    pub file: String,
    /// The workspace's file of that name.
    pub workspace: String,
}

/// The answer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ForeignSystems {
    /// All of them.
    pub foreign: Vec<ForeignSystem>,
}

impl Operation for WorkspaceSystems {
    const NAME: &'static str = "workspace-systems";
    type Answer = ForeignSystems;
}

/// `loaded-files`: of the systems that are loaded and defined below a directory.
#[derive(Debug, Clone, Serialize)]
pub struct LoadedFiles {
    /// The start of the path of a definition.
    pub within: PathBuf,
}

/// A file of a loaded system.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadedFile {
    /// Where it is.
    pub path: PathBuf,
    /// ASDF holds it for newer than what was loaded of it.
    pub changed: bool,
}

/// A loaded system.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadedSystem {
    /// ASDF's name of it.
    pub system: String,
    /// Its Lisp sources, in order.
    pub files: Vec<LoadedFile>,
}

/// The answer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadedSystems {
    /// All of them.
    pub systems: Vec<LoadedSystem>,
}

impl Operation for LoadedFiles {
    const NAME: &'static str = "loaded-files";
    type Answer = LoadedSystems;
}
