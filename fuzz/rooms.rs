//! The pure rooms of the house alone, under the crate's own name, so that the fuzzer is built in a minute and not with the whole server.
#![allow(dead_code, reason = "the rest of the house uses the rest")]

#[path = "../server/src/text/mod.rs"]
pub mod text;

#[path = "../server/src/ide"]
pub mod ide {
    pub mod diagnostic;
    pub mod structure;
}
