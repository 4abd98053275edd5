//! The argument `in` of tools that run code: the live image, or a confined copy of it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Call;
use crate::session::approval::{Class, Subject};

// The process in which code runs: the live image (default), or a copy of it. Comments of
// documentation would go into the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum EvalPlace {
    Image,
    Copy,
}

/// Returns true if the call asks for a copy.
pub(super) fn in_copy(place: Option<EvalPlace>) -> bool {
    place == Some(EvalPlace::Copy)
}

/// Returns true if the call asks for a copy in which it needs no approval.
pub(super) fn is_free(call: &Call, place: Option<EvalPlace>) -> bool {
    in_copy(place) && call.session.limits_reading() == Some(true)
}

/// Returns the approval that work needs which needs `asked` in the image. In a copy nothing of it
/// reaches the image or the person's files, and it reads what checks read; where the system cannot
/// limit what is read, the copy needs what the image needs.
pub(super) fn asks(call: &Call, place: Option<EvalPlace>, asked: (Class, Subject)) -> Option<(Class, Subject)> {
    needed(in_copy(place), call.session.limits_reading(), asked)
}

fn needed(
    in_copy: bool,
    limits_reading: Option<bool>,
    (class, mut subject): (Class, Subject),
) -> Option<(Class, Subject)> {
    if in_copy {
        if limits_reading == Some(true) {
            return None;
        }
        subject.what += ", in a copy of it, which can read all that you can (no Landlock here)";
    }
    Some((class, subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_can_read_everything_needs_the_approval_that_the_image_needs() {
        let asked = || (Class::Eval, Subject { what: "Evaluate code in the image".into(), ..Subject::default() });
        let what = |in_copy, limits| needed(in_copy, limits, asked()).map(|(_, subject)| subject.what);
        assert_eq!(what(true, Some(true)), None);
        for limits in [None, Some(false)] {
            assert!(what(true, limits).is_some_and(|what| what.contains("can read all that you can")));
        }
        assert_eq!(what(false, Some(true)).as_deref(), Some("Evaluate code in the image"));
    }
}
