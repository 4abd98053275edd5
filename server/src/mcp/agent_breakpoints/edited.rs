//! The breakpoints of an agent that are refused, because they are in definitions that were edited
//! since the image loaded them. Setting a breakpoint compiles the text of its definition anew. The
//! person approved a breakpoint and no other code, so this text must be the one that the image has
//! loaded.

use std::path::Path;

use ropey::Rope;

use crate::ide::differences;
use crate::model::breakpoint::{Breakpoint, RequestedBreakpoint};
use crate::model::image::ImageError;
use crate::session::Session;
use crate::text::position::line_column;

/// Returns the reason why each of `points` is not set, or `None` for a point that may be set.
/// `text` is the text from which the definitions are compiled.
///
/// # Errors
/// The image does not say which definitions were edited.
pub(super) async fn refusals(
    session: &Session,
    file: &Path,
    text: &str,
    points: &[RequestedBreakpoint],
) -> Result<Vec<Option<String>>, ImageError> {
    if points.is_empty() {
        return Ok(Vec::new());
    }
    if session.was_written_since_its_load(file).await {
        let why =
            "The file was written while or after it was loaded, so the image may have another text. Load it again";
        return Ok(vec![Some(why.into()); points.len()]);
    }
    let text = Rope::from_str(text);
    let differing = differences::of(session, text.clone(), Some(file.to_owned())).await?;
    let edited: Vec<(usize, usize, String)> = differing
        .into_iter()
        .map(|form| {
            let line = |at: usize| line_column(&text, at.min(text.len_chars())).line;
            (line(form.form.start), line(form.form.end), form.names.join(" "))
        })
        .collect();
    let refusal = |point: &RequestedBreakpoint| {
        let line = point.line?;
        let (.., names) = edited.iter().find(|(first, last, _)| (*first..=*last).contains(&line))?;
        Some(format!("{names} was edited since the image loaded it. Load it first, then set the breakpoint"))
    };
    Ok(points.iter().map(refusal).collect())
}

/// Returns the outcomes for all points. `set` are those of the points without a refusal, in order.
pub(super) fn merged(refusals: Vec<Option<String>>, set: Vec<Breakpoint>) -> Vec<Breakpoint> {
    let mut set = set.into_iter();
    refusals
        .into_iter()
        .map(|refusal| match refusal {
            Some(why) => Breakpoint { message: Some(why), ..Breakpoint::default() },
            None => set.next().unwrap_or_default(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_and_what_was_set_come_in_the_order_of_the_points() {
        let set = |name: &str| Breakpoint { verified: true, message: Some(name.into()), ..Breakpoint::default() };
        let both = merged(vec![None, Some("edited".into()), None], vec![set("first"), set("second")]);
        let told = |one: &Breakpoint| (one.verified, one.message.clone().unwrap_or_default());
        let expected = [(true, "first"), (false, "edited"), (true, "second")].map(|(set, of)| (set, of.to_owned()));
        assert_eq!(both.iter().map(told).collect::<Vec<_>>(), expected);
    }
}
