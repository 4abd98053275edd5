//! Support for end-to-end tests: hosts and sessions for single tests, clients for both front ends,
//! and checks that a host leaves nothing behind.

pub mod agent;
pub mod carets;
pub mod clients;
pub mod debugger;
pub mod environment;
pub mod framing;
pub mod frontends;
pub mod installation;
pub mod jitter;
pub mod lone_image;
pub mod lsp;
pub mod non_reading_client;
pub mod patience;
pub mod place;
pub mod real_files;
pub mod recorded_exits;
pub mod registry;
pub mod rpc;
pub mod scenes;
pub mod stops;
pub mod unread;
pub mod wire;
pub mod world;
