//! Methods, as clients name them.

use serde::{Deserialize, Serialize};

/// A method of a generic function, as its definition is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenMethod {
    /// True for a method of the setf function of the name.
    #[serde(default)]
    pub setf: bool,
    /// The qualifiers in lower case, such as `:around`.
    pub qualifiers: Vec<String>,
    /// The specializers in lower case, without packages, such as `circle`, `(eql :x)` or `t`.
    pub specializers: Vec<String>,
}
