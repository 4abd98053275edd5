//! The argument `in` of tools that run code. It selects the image or a confined copy of it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Call;
use crate::session::approval::{Class, Subject};

// The process in which code runs: the image (default), or a copy of it. This is no doc comment,
// because schemars would put it into the schema of each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum EvalPlace {
    Image,
    Copy,
}

/// Returns true if the call requests a copy.
pub(super) fn in_copy(place: Option<EvalPlace>) -> bool {
    place == Some(EvalPlace::Copy)
}

/// Returns true if the call needs no approval, because it runs in a copy that can read only the
/// files that checks read.
pub(super) fn needs_no_approval(call: &Call, place: Option<EvalPlace>) -> bool {
    in_copy(place) && call.session.limits_reading() == Some(true)
}

/// Returns the approval that a call needs at `place`. `in_image` is the approval that it needs in
/// the image. A copy needs no approval, because it has no effect on the image and on the person's
/// files, and can read only the files that checks read. If the system cannot limit reading, the
/// copy needs the same approval as the image.
pub(super) fn required_approval(
    call: &Call,
    place: Option<EvalPlace>,
    in_image: (Class, Subject),
) -> Option<(Class, Subject)> {
    required(in_copy(place), call.session.limits_reading(), in_image)
}

fn required(
    in_copy: bool,
    limits_reading: Option<bool>,
    (class, mut subject): (Class, Subject),
) -> Option<(Class, Subject)> {
    if in_copy {
        if limits_reading == Some(true) {
            return None;
        }
        subject.what += ", in a copy of it, which can read all of your files (this kernel has no Landlock)";
    }
    Some((class, subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_can_read_everything_needs_the_approval_that_the_image_needs() {
        let asked = || (Class::Eval, Subject { what: "Evaluate code in the image".into(), ..Subject::default() });
        let what = |in_copy, limits| required(in_copy, limits, asked()).map(|(_, subject)| subject.what);
        assert_eq!(what(true, Some(true)), None);
        for limits in [None, Some(false)] {
            assert!(what(true, limits).is_some_and(|what| what.contains("can read all of your files")));
        }
        assert_eq!(what(false, Some(true)).as_deref(), Some("Evaluate code in the image"));
    }
}
