//! All knowledge of the SBCL process: its core, its start, its link, its death. docs/wire.md is the protocol.
//!
//! | file | job |
//! |---|---|
//! | `state.rs`, `api.rs` | the types others see: state, events, errors; one shape an operation |
//! | `handle.rs` | [`Image`], the handle others hold |
//! | `supervisor.rs` | Starting, Ready, Dead, and again: back-off, restart, leaving |
//! | `running.rs`, `live.rs` | one process, as its owner and as its users see it |
//! | `restore.rs` | what a new image gets before anybody uses it |
//! | `program.rs`, `core.rs` | which program runs the image; the cached core it starts from |
//! | `process.rs` | starting processes, how they end, killing them |
//! | `link.rs`, `frames.rs`, `lines.rs` | requests and answers; their shapes; lines of bytes |
//! | `pipes.rs`, `rate.rs` | what comes on descriptors 1 and 2; a ration of what is told unasked |
//! | `evaluate.rs`, `turns.rs` | what runs in the live image, and that it ends; one evaluation of a session at a time |
//! | `second.rs` | a second process that does a copy's work where the image cannot be forked |
//! | `copies.rs`, `scratch.rs`, `findings.rs`, `memory.rs` | a check's copy: followed, what it may touch, what it says, what it takes |

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

pub mod api;
mod copies;
mod core;
mod evaluate;
mod findings;
mod frames;
mod handle;
mod lines;
mod link;
mod live;
mod memory;
mod order;
mod parked;
mod pipes;
mod process;
mod program;
mod rate;
mod restore;
mod running;
mod scratch;
mod second;
mod state;
mod supervisor;
mod turns;

pub use handle::Image;
pub use order::Look;
pub use restore::Replay;
pub use state::{ImageError, ImageEvent, ImageState, OutputChunk, Progress};
