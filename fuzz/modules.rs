//! The pure modules alone, under the crate's own name, so that the fuzzer is built in a minute,
//! without the server.
#![allow(dead_code, reason = "the server uses the rest")]

#[path = "../server/src/text/mod.rs"]
pub mod text;

#[path = "../server/src/model"]
pub mod model {
    pub mod diagnostic;
}

#[path = "../server/src/ide"]
pub mod ide {
    pub mod structure;
}
