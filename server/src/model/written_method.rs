//! Methods, as clients name them.

use serde::{Deserialize, Serialize};

/// A method of a generic function, as its definition is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenMethod {
    /// True for a method of the name's setf function.
    #[serde(default)]
    pub setf: bool,
    /// `:around`, lower-case.
    pub qualifiers: Vec<String>,
    /// `circle`, `(eql :x)`, `t`: lower-case, without packages.
    pub specializers: Vec<String>,
}
