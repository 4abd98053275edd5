//! Consort: one live Common Lisp image, shared by a person's editor (LSP) and that person's coding agent (MCP).
//!
//! Data flows one way: door (`lsp`, `mcp`, `host::control`) -> `session` -> `ide` -> `image`, and back as the answer.
//! Nothing lower calls upward; what the image volunteers enters the session as an event. See docs/architecture.md.

pub mod config;
pub mod host;
pub mod ide;
pub mod image;
pub mod lsp;
pub mod mcp;
pub mod session;
pub mod text;
