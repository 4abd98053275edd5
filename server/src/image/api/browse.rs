//! What an editor's trees show: packages and their symbols, and threads (lisp/src/ops/browse.lisp).

use serde::{Deserialize, Serialize};

use super::Operation;

/// `packages`.
#[derive(Debug, Clone, Serialize)]
pub struct Packages {}

/// The answer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AllPackages {
    /// By name.
    pub packages: Vec<PackageEntry>,
}

/// A package.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PackageEntry {
    /// Its name.
    pub name: String,
    /// Its other names.
    pub nicknames: Vec<String>,
    /// How many symbols it exports.
    pub exports: usize,
    /// It is a program's, and not the Lisp's, ASDF's or ours.
    pub own: bool,
}

impl Operation for Packages {
    const NAME: &'static str = "packages";
    type Answer = AllPackages;
}

/// `package-symbols`: those at home in a package that are exported or name something.
#[derive(Debug, Clone, Serialize)]
pub struct PackageSymbols {
    /// The package's name.
    pub name: String,
}

/// The answer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HomeSymbols {
    /// How many there are.
    pub count: usize,
    /// They, by name, up to a limit.
    pub symbols: Vec<HomeSymbol>,
}

/// A symbol at home in the package.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HomeSymbol {
    /// Its name.
    pub name: String,
    /// It is exported.
    pub external: bool,
    /// What it names.
    pub kinds: Vec<String>,
}

impl Operation for PackageSymbols {
    const NAME: &'static str = "package-symbols";
    type Answer = HomeSymbols;
}

/// `threads`.
#[derive(Debug, Clone, Serialize)]
pub struct Threads {}

/// The answer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AllThreads {
    /// The oldest first.
    pub threads: Vec<Thread>,
}

/// A thread of the image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Thread {
    /// What it is called by, as long as it lives.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// `user`, `evaluation` (one runs in it) or `system` (Consort's, which nobody may end).
    pub kind: String,
    /// Milliseconds that its evaluation has run.
    pub ms: Option<u64>,
}

impl Operation for Threads {
    const NAME: &'static str = "threads";
    type Answer = AllThreads;
}

/// `interrupt-thread`: as Ctrl-C in a terminal.
#[derive(Debug, Clone, Serialize)]
pub struct InterruptThread {
    /// The thread's.
    pub number: u64,
}

/// `kill-thread`: its clean-up forms run, and it ends.
#[derive(Debug, Clone, Serialize)]
pub struct KillThread {
    /// The thread's.
    pub number: u64,
}

/// The answer to both.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoppedThread {
    /// Its name.
    pub name: String,
}

impl Operation for InterruptThread {
    const NAME: &'static str = "interrupt-thread";
    type Answer = StoppedThread;
}

impl Operation for KillThread {
    const NAME: &'static str = "kill-thread";
    type Answer = StoppedThread;
}
