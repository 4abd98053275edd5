//! `try-code`: definitions, then code that uses them, in a confined copy of the image that is
//! thrown away.

use serde::Serialize;

use super::eval_copy::EvalInCopyParams;
use crate::model::trial::TriedForm;

/// The parameters of `try-code`, which is not an [`Operation`](super::Operation), since the checker
/// sends it to a copy.
#[derive(Debug, Clone, Serialize)]
pub struct TryParams {
    /// The code after the definitions, empty for none, and the parameters of the copy.
    #[serde(flatten)]
    pub copy: EvalInCopyParams,
    /// The definitions.
    pub forms: Vec<TriedForm>,
}
