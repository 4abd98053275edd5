//! `removable` and `undefine`: the definitions of a name that can be removed from the image, and
//! their removal.

use serde::{Deserialize, Serialize};

use super::Operation;
use super::reload::ReloadOutcome;
use crate::model::written_method::WrittenMethod;

/// `removable`: the definitions of a symbol that can be removed.
#[derive(Debug, Clone, Serialize)]
pub struct Removable {
    /// The name as written.
    pub name: String,
    /// The package in which the name is read. `None` stands for CL-USER.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The method to remove, if the name is that of a method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<WrittenMethod>,
}

/// The answer to [`Removable`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovableParts {
    /// The symbol with its package.
    pub name: String,
    /// The definitions that can be removed.
    pub parts: Vec<RemovablePart>,
}

/// A definition that can be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovablePart {
    /// The key: `method`, `function`, `setf-function`, `compiler-macro`, `variable`, `class` or
    /// `symbol`.
    pub key: String,
    /// A description of the definition, such as `function MY-APP::COMPUTE`.
    pub text: String,
    /// The reason why an undo would not restore the definition completely.
    pub lost: Option<String>,
}

impl Operation for Removable {
    const NAME: &'static str = "removable";
    type Answer = RemovableParts;
}

/// `undefine`: removes parts of a symbol, as a change that can be undone.
#[derive(Debug, Clone, Serialize)]
pub struct Undefine {
    /// The symbol, and the method if one is to be removed.
    #[serde(flatten)]
    pub of: Removable,
    /// The keys of the definitions to remove.
    pub parts: Vec<String>,
}

impl Operation for Undefine {
    const NAME: &'static str = "undefine";
    type Answer = ReloadOutcome;
}
