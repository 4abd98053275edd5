//! Plain data types that all layers share, independent of any protocol and of the image.

pub mod action_outcome;
pub mod breakpoint;
pub mod check;
pub mod compile_options;
pub mod diagnostic;
pub mod diagnostic_codes;
pub mod error_kind;
pub mod evaluation;
pub mod expansion;
pub mod frozen;
pub mod image;
pub mod input;
pub mod inspection;
pub mod lint_rule;
pub mod place;
pub mod profile;
pub mod recording;
pub mod stack_frame;
pub mod stop;
pub mod testing;
pub mod trial;
pub mod written_method;
