//! What the product does, one file a feature: plain data in, plain data out. Never names `lsp_types` or `rmcp`.

pub mod asd;
pub mod diagnostic;
pub mod render;
pub mod diagnostics;
pub mod structure;
