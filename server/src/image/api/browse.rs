//! The contents of an editor's tree views: packages and their symbols, and threads
//! (lisp/src/ops/browse.lisp).

use serde::{Deserialize, Serialize};

use super::Operation;

/// The operation `packages`.
#[derive(Debug, Clone, Serialize)]
pub struct Packages {}

/// The answer to `packages`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AllPackages {
    /// The packages, by name.
    pub packages: Vec<PackageEntry>,
}

/// A package.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PackageEntry {
    /// The package's name.
    pub name: String,
    /// The nicknames.
    pub nicknames: Vec<String>,
    /// The number of exported symbols.
    pub exports: usize,
    /// True if the package belongs to a program, and not to the Lisp system, ASDF or Consort.
    pub own: bool,
}

impl Operation for Packages {
    const NAME: &'static str = "packages";
    type Answer = AllPackages;
}

/// The operation `package-symbols`, for the symbols at home in a package that are exported or name
/// something.
#[derive(Debug, Clone, Serialize)]
pub struct PackageSymbols {
    /// The package's name.
    pub name: String,
}

/// The answer to `package-symbols`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HomeSymbols {
    /// The number of symbols, including those beyond the limit.
    pub count: usize,
    /// The symbols, by name, up to a limit.
    pub symbols: Vec<HomeSymbol>,
}

/// A symbol at home in the package.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HomeSymbol {
    /// The symbol's name.
    pub name: String,
    /// True if the symbol is exported.
    pub external: bool,
    /// The kinds of things that the symbol names.
    pub kinds: Vec<String>,
}

impl Operation for PackageSymbols {
    const NAME: &'static str = "package-symbols";
    type Answer = HomeSymbols;
}

/// The operation `threads`.
#[derive(Debug, Clone, Serialize)]
pub struct Threads {}

/// The answer to `threads`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AllThreads {
    /// The threads, oldest first.
    pub threads: Vec<Thread>,
}

/// A thread of the image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Thread {
    /// The thread's number, valid for the thread's lifetime.
    pub number: u64,
    /// The thread's name.
    pub name: String,
    /// `user`, `evaluation` (an evaluation runs in the thread) or `system` (a thread of Consort,
    /// which must not be killed).
    pub kind: String,
    /// The running time of the thread's evaluation, in milliseconds.
    pub ms: Option<u64>,
}

impl Operation for Threads {
    const NAME: &'static str = "threads";
    type Answer = AllThreads;
}

/// The operation `interrupt-thread`, the equivalent of Ctrl-C in a terminal.
#[derive(Debug, Clone, Serialize)]
pub struct InterruptThread {
    /// The thread's number.
    pub number: u64,
}

/// The operation `kill-thread`, which runs the thread's clean-up forms and ends the thread.
#[derive(Debug, Clone, Serialize)]
pub struct KillThread {
    /// The thread's number.
    pub number: u64,
}

/// The answer to `interrupt-thread` and `kill-thread`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoppedThread {
    /// The thread's name.
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

/// The operation `thread-states`.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadStates {}

/// The answer to `thread-states`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AllThreadStates {
    /// The threads, oldest first.
    pub threads: Vec<ThreadState>,
}

/// The state of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadState {
    /// The thread's number, valid for the thread's lifetime.
    pub number: u64,
    /// The thread's name.
    pub name: String,
    /// `user`, `evaluation` or `system`.
    pub kind: String,
    /// The running time of the thread's evaluation, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// A description of the state.
    pub state: String,
    /// The thread's share of a processor, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<f64>,
    /// The name of the lock for which the thread waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The number of the thread that holds the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<u64>,
}

/// The operation `thread-stack`.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadStack {
    /// The thread's number.
    pub number: u64,
}

/// The answer to `thread-stack`.
#[derive(Debug, Clone, Deserialize)]
pub struct Stack {
    /// The thread's name.
    pub name: String,
    /// The frames, innermost first.
    pub frames: Vec<Frame>,
    /// The image's `*features*`, upper-case.
    pub features: Vec<String>,
}

/// A stack frame.
#[derive(Debug, Clone, Deserialize)]
pub struct Frame {
    /// The call: `(NAME ARG ...)`.
    pub call: String,
    /// The function's name, as written in CL-USER.
    pub name: Option<String>,
    /// The location of the function's definition.
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
