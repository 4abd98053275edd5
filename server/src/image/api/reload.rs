//! Hot reload: `compile-string`, `replace-function`, `load-fasl`, `reload-package`, `reload-system`, `undo-reload`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::model::evaluation::EvalOutcome;

/// `compile-string`: compile code, all of it, then load it.
#[derive(Debug, Clone, Serialize)]
pub struct CompileString {
    /// The code.
    pub code: String,
    /// In which package it is read; `None`: CL-USER.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The file in which it stands, so that what it defines is found there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line there of its first character, 1-based.
    pub line: usize,
}

/// `replace-function`: the same for exactly one definition of a function that is there.
#[derive(Debug, Clone, Serialize)]
pub struct ReplaceFunction {
    /// Its name, as a person writes it, in the definition's package.
    pub function: String,
    /// Its definition. Without a package the name is read in CL-USER, the definition where the name is at home.
    #[serde(flatten)]
    pub definition: CompileString,
}

/// `load-fasl`.
#[derive(Debug, Clone, Serialize)]
pub struct LoadFasl {
    /// The compiled file.
    pub path: PathBuf,
    /// The SHA-256 of its content, in hex: another content is not loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// `reload-sources`: the files that a reload would load, as far as the image knows them. Runs nothing.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum ReloadSources {
    /// Of [`ReloadPackage`].
    Package {
        /// The package.
        package: String,
        /// Also the packages that use it.
        recursive: bool,
    },
    /// Of [`ReloadSystem`]: its own, those it depends on, and the `.asd` files of all.
    System {
        /// The system.
        system: String,
    },
}

/// The answer to it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SourceFiles {
    /// Links resolved.
    pub files: Vec<PathBuf>,
}

impl Operation for ReloadSources {
    const NAME: &'static str = "reload-sources";
    type Answer = SourceFiles;
}

/// What of the files below a directory may be loaded: these contents and no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Allowed {
    /// The directory, with a slash at its end.
    pub within: PathBuf,
    /// Each file, links resolved, and the SHA-256 of its content, in hex.
    pub files: Vec<(PathBuf, String)>,
}

/// `reload-package`: compile and load the files that define its symbols.
#[derive(Debug, Clone, Serialize)]
pub struct ReloadPackage {
    /// The package.
    pub package: String,
    /// Also the packages that use it.
    pub recursive: bool,
    /// What may be loaded; `None`: what is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Allowed>,
}

/// `reload-system`.
#[derive(Debug, Clone, Serialize)]
pub struct ReloadSystem {
    /// ASDF's name of it.
    pub system: String,
    /// The workspace's `.asd` files, made known to ASDF first.
    pub asd_files: Vec<PathBuf>,
    /// Also files that have not changed.
    pub force: bool,
    /// What may be loaded; `None`: what is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Allowed>,
}

/// `undo-reload`: put back what the last reload changed.
#[derive(Debug, Clone, Serialize)]
pub struct UndoReload {}

/// What a reload did. Each definition is a string such as `function MY-APP::COMPUTE`; lists end with how many more there are when they are long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What was reloaded, in a few words.
    pub what: String,
    /// Whole files that were loaded, in order.
    pub files: Vec<String>,
    /// Was there, and is another now.
    pub redefined: Vec<String>,
    /// Was not there.
    pub new: Vec<String>,
    /// Is no longer in the files that were loaded, but still in the image; or was taken away.
    pub gone: Vec<String>,
    /// Has old code in it: it inlined an old function or expanded an old macro, and was not compiled again.
    pub stale: Vec<String>,
    /// Classes and structures whose instances are laid out in another way than before.
    pub layouts: Vec<String>,
}

/// Why a reload did not take place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadFailure {
    /// `COMPILATION_ERROR`, `SYSTEM_NOT_FOUND`, `NO_SOURCE`: the contract's `data.type`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is wrong, in the compiler's words.
    pub message: String,
    /// Where; a file that the caller named, or one that was reloaded.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// 1-based.
    #[serde(default)]
    pub line: Option<usize>,
    /// 1-based, in characters.
    #[serde(default)]
    pub column: Option<usize>,
}

/// The answer to each of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReloadOutcome {
    /// Whether it took place; otherwise what it changed has been put back.
    pub reloaded: bool,
    /// When it took place.
    #[serde(default)]
    pub report: Option<Report>,
    /// When the compiler or we refused it; an error of code that was loaded is in `outcome`.
    #[serde(default)]
    pub failure: Option<ReloadFailure>,
    /// What could not be put back, by an undo or after a failure, each with why.
    #[serde(default)]
    pub not_undone: Vec<String>,
    /// Something changed that can be taken back.
    #[serde(default)]
    pub recorded: bool,
    /// How many reloads can be taken back now.
    #[serde(default)]
    pub undoable: usize,
    /// Output, warnings, and the error of code that was loaded.
    #[serde(flatten)]
    pub outcome: EvalOutcome,
}

macro_rules! operation {
    ($($name:literal $params:ty),*) => {
        /// The names of these operations.
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
    "replace-function" ReplaceFunction,
    "load-fasl" LoadFasl,
    "reload-package" ReloadPackage,
    "reload-system" ReloadSystem,
    "undo-reload" UndoReload
);
