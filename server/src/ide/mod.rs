//! The language features, one file each: plain data in, plain data out. Never names `lsp_types` or
//! `rmcp`.

pub mod apropos;
pub mod asd;
pub mod browse;
pub mod chatter;
pub mod clip;
pub mod compile_form;
pub mod completion;
pub mod context;
pub mod definition;
pub mod describe_symbol;
pub mod described;
pub mod diagnostics;
pub mod differences;
pub mod edit_form;
pub mod edit_forms;
pub mod edited_in_image;
pub mod evaluate;
pub mod evaluate_part;
pub mod expand;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
pub(crate) mod fake;
pub mod files;
pub mod fixes;
pub mod format;
pub mod hints;
pub mod hover;
pub mod initargs;
pub mod name_tools;
pub mod outline;
pub mod partial_name;
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
pub mod stops;
pub mod structural;
pub mod structure;
pub mod symbol_kinds;
pub mod symbols;
pub mod testing;
pub mod texts;
pub mod threads;
pub mod trial;
pub mod type_definition;
pub mod types;
pub mod undefined_variables;
pub mod workspace_symbols;
