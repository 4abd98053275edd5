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

/// `thread-states`.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadStates {}

/// The answer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AllThreadStates {
    /// The oldest first.
    pub threads: Vec<ThreadState>,
}

/// What a thread does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadState {
    /// What it is called by, as long as it lives.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// `user`, `evaluation` or `system`.
    pub kind: String,
    /// Milliseconds that its evaluation has run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// In words.
    pub state: String,
    /// Its share of a processor, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<f64>,
    /// The name of a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The number of the thread that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<u64>,
}

/// `thread-stack`.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadStack {
    /// The thread's.
    pub number: u64,
}

/// The answer to it.
#[derive(Debug, Clone, Deserialize)]
pub struct Stack {
    /// The thread's name.
    pub name: String,
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// The image's `*features*`, upper-case.
    pub features: Vec<String>,
}

/// A frame of a stack.
#[derive(Debug, Clone, Deserialize)]
pub struct Frame {
    /// `(NAME ARG ...)`.
    pub call: String,
    /// The function's name, as written in CL-USER.
    pub name: Option<String>,
    /// Where that is defined.
    #[serde(flatten)]
    pub place: super::symbols::Place,
}

impl Operation for ThreadStates {
    const NAME: &'static str = "thread-states";
    type Answer = AllThreadStates;
}

impl Operation for ThreadStack {
    const NAME: &'static str = "thread-stack";
    type Answer = Stack;
}
