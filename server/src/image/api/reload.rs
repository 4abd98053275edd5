//! Hot reload: `compile-string`, `compile-texts`, `replace-function`, `load-fasl`,
//! `reload-package`, `reload-system`, `undo-reload`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::model::compile_options::CompileOptions;
use crate::model::evaluation::EvalOutcome;

/// `compile-string`: compiles all of the code, then loads it.
#[derive(Debug, Clone, Serialize)]
pub struct CompileString {
    /// The code.
    pub code: String,
    /// The package in which the code is read. `None` stands for CL-USER.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The file that contains the code, so that its definitions are found there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line of the code's first character in the file, 1-based.
    pub line: usize,
    /// The options of the compilation.
    #[serde(flatten)]
    pub options: CompileOptions,
}

/// `compile-texts`: compiles and loads texts one after another, as one reload.
#[derive(Debug, Clone, Serialize)]
pub struct CompileTexts {
    /// A short description of the reload, for the report.
    pub what: String,
    /// The texts, in order.
    pub texts: Vec<CompileString>,
}

/// `replace-function`: compiles and loads exactly one definition of an existing function.
#[derive(Debug, Clone, Serialize)]
pub struct ReplaceFunction {
    /// The function's name, as the user writes it, in the definition's package.
    pub function: String,
    /// The definition. If it has no package, the function's name is read in CL-USER, and the
    /// definition in the home package of that name.
    #[serde(flatten)]
    pub definition: CompileString,
}

/// `load-fasl`: loads a compiled file.
#[derive(Debug, Clone, Serialize)]
pub struct LoadFasl {
    /// The compiled file.
    pub path: PathBuf,
    /// The SHA-256 of the file's content, in hex. A file with other content is not loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// `reload-sources`: the files that a reload would load, as far as the image knows them. The
/// operation runs no code.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum ReloadSources {
    /// The files of [`ReloadPackage`].
    Package {
        /// The package.
        package: String,
        /// True to include the packages that use the package.
        recursive: bool,
    },
    /// The files of [`ReloadSystem`]: those of the system, those of its dependencies, and the
    /// `.asd` files of all these systems.
    System {
        /// The system.
        system: String,
        /// The workspace's `.asd` files.
        asd_files: Vec<PathBuf>,
    },
}

/// The answer to `reload-sources`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SourceFiles {
    /// The files, with links resolved.
    pub files: Vec<PathBuf>,
    /// True if the system and its test systems are loaded, and none of their files changed since.
    #[serde(default)]
    pub loaded: bool,
}

impl Operation for ReloadSources {
    const NAME: &'static str = "reload-sources";
    type Answer = SourceFiles;
}

/// The approved contents of the files below a directory. No other contents may be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Allowed {
    /// The directory, with a slash at its end.
    pub within: PathBuf,
    /// Each file, links resolved, and the SHA-256 of its content, in hex.
    pub files: Vec<(PathBuf, String)>,
    /// The time at which the user was asked, in seconds since 1970. Other files below the directory
    /// may be loaded if they have not changed since. `None` if no others may be loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

/// `reload-package`: compiles and loads the files that define the package's symbols.
#[derive(Debug, Clone, Serialize)]
pub struct ReloadPackage {
    /// The package.
    pub package: String,
    /// True to include the packages that use the package.
    pub recursive: bool,
    /// The contents that may be loaded. `None` if the files may be loaded as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Allowed>,
}

/// `reload-system`: compiles and loads the files of a system.
#[derive(Debug, Clone, Serialize)]
pub struct ReloadSystem {
    /// ASDF's name of the system.
    pub system: String,
    /// The workspace's `.asd` files, which are made known to ASDF first.
    pub asd_files: Vec<PathBuf>,
    /// True to include files that have not changed.
    pub force: bool,
    /// The contents that may be loaded. `None` if the files may be loaded as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Allowed>,
}

/// `undo-reload`: restores the definitions that the last reload changed.
#[derive(Debug, Clone, Serialize)]
pub struct UndoReload {}

/// The effects of a reload. Each definition is a string such as `function MY-APP::COMPUTE`. A long
/// list ends with the number of further entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// A short description of the reload.
    pub what: String,
    /// The whole files that were loaded, in order.
    pub files: Vec<String>,
    /// Definitions that existed before and have changed.
    pub redefined: Vec<String>,
    /// Definitions that did not exist before.
    pub new: Vec<String>,
    /// Definitions that are no longer in the loaded files but still in the image, or that were
    /// removed.
    pub gone: Vec<String>,
    /// Definitions that contain old code and were not compiled again. They inlined an old function,
    /// expanded an old macro, or took the old value of a constant or variable.
    pub stale: Vec<String>,
    /// Classes and structures with a changed instance layout.
    pub layouts: Vec<String>,
    /// The errors of forms that were loaded despite them ([`CompileOptions::anyway`]), each with
    /// its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// The reason why a reload did not take place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadFailure {
    /// The kind, as in the contract's `data.type`: `COMPILATION_ERROR`, `SYSTEM_NOT_FOUND` or
    /// `NO_SOURCE`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The message of the compiler.
    pub message: String,
    /// The file with the error: one that the caller named, or one that was reloaded.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The line, 1-based.
    #[serde(default)]
    pub line: Option<usize>,
    /// The column, 1-based, in characters.
    #[serde(default)]
    pub column: Option<usize>,
    /// True if the text cannot be read. Nothing of it can then be loaded, not even with
    /// [`CompileOptions::anyway`].
    #[serde(default)]
    pub unreadable: bool,
}

/// The answer to each reload operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReloadOutcome {
    /// True if the reload took place. Otherwise its changes have been undone.
    pub reloaded: bool,
    /// The effects, when the reload took place.
    #[serde(default)]
    pub report: Option<Report>,
    /// The error, when the compiler or Consort refused the reload. An error of loaded code is in
    /// `outcome`.
    #[serde(default)]
    pub failure: Option<ReloadFailure>,
    /// The definitions that an undo, or the recovery from a failure, could not restore, each with
    /// the reason.
    #[serde(default)]
    pub not_undone: Vec<String>,
    /// True if a change was made that can be undone.
    #[serde(default)]
    pub recorded: bool,
    /// The number of reloads that can be undone now.
    #[serde(default)]
    pub undoable: usize,
    /// The output, the warnings, and the error of loaded code.
    #[serde(flatten)]
    pub outcome: EvalOutcome,
}

macro_rules! operation {
    ($($name:literal $params:ty),*) => {
        /// The names of the operations of this file whose answer is [`ReloadOutcome`].
        pub const OPERATIONS: &[&str] = &[$($name),*];
        $(
        impl Operation for $params {
            const NAME: &'static str = $name;
            type Answer = ReloadOutcome;
        }
    )*};
}

operation!(
    "compile-string" CompileString,
    "compile-texts" CompileTexts,
    "replace-function" ReplaceFunction,
    "load-fasl" LoadFasl,
    "reload-package" ReloadPackage,
    "reload-system" ReloadSystem,
    "undo-reload" UndoReload
);
