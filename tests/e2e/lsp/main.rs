//! The LSP frontend over a real image: what an editor sees.
#![allow(missing_docs, clippy::unwrap_used)]

mod chains;
mod commands;
mod documents;
mod fixes;
mod image;
mod input;
mod lint;
mod macroexpand;
mod macrostep;
mod moving;
mod names;
mod refactor;
mod stopping;
mod texts;
mod tools;
mod typing;
mod watchdog;
mod workspace;
