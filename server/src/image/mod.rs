//! All knowledge of the SBCL process: its core, its start, its link, its death. docs/wire.md is the protocol.

pub mod api;
