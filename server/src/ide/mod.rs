//! What the product does, one file a feature: plain data in, plain data out. Never names `lsp_types` or `rmcp`.

pub mod asd;
pub mod clip;
pub mod compile_form;
pub mod diagnostic;
pub mod diagnostics;
pub mod edit_form;
pub mod evaluate;
pub mod evaluate_part;
pub mod format;
pub mod outline;
pub mod ranges;
pub mod read_file;
pub mod render;
pub mod semantic;
pub mod structural;
pub mod structure;
pub mod symbols;
