//! The workspace's process: which directory, where its socket lies, who starts it, its doors and its lifetime.

pub mod bridge;
mod claim;
pub mod control;
pub mod elected;
pub mod election;
pub mod hello;
pub mod log;
pub mod runtime_dir;
pub mod serve;
pub mod services;
pub mod workspace;

/// This build's version; the two ends of a host's socket must agree on it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
