//! The host's life, its bridges and its command line, as separate processes.
#![allow(missing_docs, clippy::unwrap_used)]

mod bridges;
mod command_line;
mod folders;
mod kept_breakpoints;
mod killed;
mod lifetime;
mod no_image;
mod repl;
mod shown;
mod support;
mod trust;
