//! The process that serves a workspace: its directory, socket, start, connections and lifetime.

pub mod bridge;
mod claim;
pub mod control;
mod departure;
pub mod elected;
pub mod election;
pub mod folders;
pub mod hello;
pub mod host_location;
pub mod log;
mod memory;
mod named_marks;
mod peer_process;
mod reopening;
mod runtime_base;
pub mod runtime_dir;
pub mod serve;
pub mod services;
pub mod stray_signals;
pub mod workspace;

/// The version of this build. The two ends of a host's socket must agree on it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
