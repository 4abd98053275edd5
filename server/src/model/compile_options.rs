//! The options of a compilation.

use serde::Serialize;

/// The options of the compilation of a text that is loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CompileOptions {
    /// True to compile for debugging, with `(debug 3)`. Variables are then kept, and no call is a
    /// tail call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub debug: bool,
    /// True to load even forms that do not compile. They signal an error when they run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub anyway: bool,
}
