//! All knowledge of the SBCL process: its core, its start, its link, its death. docs/wire.md is the protocol,
//! docs/architecture.md says what each file is for.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

pub mod api;
mod check_job;
mod copies;
mod core;
mod evaluate;
pub mod excerpt;
mod findings;
mod frames;
mod handle;
mod instance;
mod lines;
mod link;
mod memory;
mod pipes;
pub mod probe;
mod process;
mod program;
mod rate;
mod restore;
mod running;
mod scratch;
mod state;
mod supervisor;
mod turns;
mod warm_copy;
mod worker;

pub use check_job::Look;
pub use handle::Image;
pub use restore::Replay;
pub use state::{ImageError, ImageEvent, ImageState, OutputChunk, Progress};
