//! What the product does, one file a feature: plain data in, plain data out. Never names `lsp_types` or `rmcp`.

pub mod asd;
pub mod clip;
pub mod compile_form;
pub mod diagnostic;
pub mod diagnostics;
pub mod evaluate;
pub mod files;
pub mod fix;
pub mod render;
pub mod structure;
