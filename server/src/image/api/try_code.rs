//! `try-code`: definitions, then code that uses them, in a confined, throw-away copy of the image.

use serde::Serialize;

use super::eval_copy::EvalInCopyParams;
use crate::model::trial::TriedForm;

/// The parameters of `try-code`, which the checker sends to a copy; so it is no
/// [`Operation`](super::Operation).
#[derive(Debug, Clone, Serialize)]
pub struct TryParams {
    /// The code after the definitions, empty for none, and the parameters of the copy.
    #[serde(flatten)]
    pub copy: EvalInCopyParams,
    /// The definitions.
    pub forms: Vec<TriedForm>,
}
