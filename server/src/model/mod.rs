//! Plain data types that all layers share, independent of any protocol and of the image.

pub mod check;
pub mod diagnostic;
pub mod diagnostic_codes;
pub mod error_kind;
pub mod evaluation;
pub mod expansion;
pub mod frozen;
pub mod image;
pub mod input;
pub mod lint_rule;
pub mod recording;
pub mod stack_frame;
pub mod trial;
