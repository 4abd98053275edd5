//! The control of the SBCL process: its core, its start, its link, its end. docs/wire.md describes
//! the protocol, and docs/architecture.md each file.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

pub mod api;
mod build;
mod core;
mod evaluate;
pub mod excerpt;
pub(crate) mod frames;
mod handle;
mod hang;
pub(crate) mod instance;
pub(crate) mod lines;
pub(crate) mod link;
mod obstacles;
pub(crate) mod pipes;
mod plan;
pub mod probe;
pub(crate) mod process;
pub mod process_table;
pub(crate) mod program;
pub mod programs;
mod rate;
pub(crate) mod restore;
pub(crate) mod running;
pub(crate) mod runtime;
mod silence;
pub(crate) mod stops;
mod supervisor;
mod suspended;
mod turns;

pub use handle::Image;
pub use plan::Replay;
pub use program::find_program;
