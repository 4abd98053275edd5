//! The language features, one file each: plain data in, plain data out. Never names `lsp_types` or
//! `rmcp`.

pub mod asd;
pub mod chatter;
pub mod clip;
pub mod compile_form;
pub mod completion;
pub mod described;
pub mod diagnostics;
pub mod edit_form;
pub mod edit_forms;
pub mod evaluate;
pub mod evaluate_part;
pub mod expand;
pub mod files;
pub mod fixes;
pub mod format;
pub mod hints;
pub mod initargs;
pub mod outline;
pub mod places;
pub mod profile;
pub mod ranges;
pub mod read_file;
pub mod references;
pub mod reload;
pub mod render;
pub mod semantic;
pub mod signature;
pub mod source_location;
pub mod structural;
pub mod structure;
pub mod symbols;
pub mod testing;
pub mod texts;
pub mod types;
