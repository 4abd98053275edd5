//! What the product does, one file a feature: plain data in, plain data out. Never names `lsp_types` or `rmcp`.

pub mod asd;
pub mod clip;
pub mod compile_form;
pub mod completion;
pub mod described;
pub mod diagnostic;
pub mod diagnostics;
pub mod evaluate;
pub mod places;
pub mod references;
pub mod reload;
pub mod expand;
pub mod fixes;
pub mod render;
pub mod signature;
pub mod source_location;
pub mod structure;
pub mod texts;
