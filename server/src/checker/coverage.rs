//! Comparison of the forms that a copy says it has reached with the forms that the host finds in
//! the text.

use crate::text::Span;
use crate::text::expected::Expected;

/// The forms of one text, with a mark for each that the copy has reached.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    expected: Expected,
    /// True for each form that the copy has reached: the plain forms first, then the others.
    reached: Vec<bool>,
    /// The number of plain forms whose start the copy has reported as its place.
    reported_plain_forms: usize,
    /// The place that the copy reported last.
    previous: Option<Span>,
}

impl Coverage {
    pub(super) fn new(expected: Expected) -> Coverage {
        let forms = expected.plain.len() + expected.others.len();
        Coverage { reached: vec![false; forms], expected, reported_plain_forms: 0, previous: None }
    }

    /// Notes the place that the copy reports. A plain form at the start of the place is reached.
    /// All forms that begin within the place are reached only if the text may have a syntax of its
    /// own: if the place begins at another form than a plain one, such as `#{`, or if the text
    /// mentions readtables.
    pub(super) fn note_place(&mut self, span: Span) {
        if let Ok(index) = self.expected.plain.binary_search(&span.start)
            && !std::mem::replace(&mut self.reached[index], true)
        {
            self.reported_plain_forms += 1;
        }
        if self.expected.own_syntax || self.expected.others.binary_search(&span.start).is_ok() {
            self.reach(span);
        }
        // The previous place was one character, which began no plain form. The reader took the text
        // from there to the new place as one comment.
        if let Some(previous) = self.previous.replace(span)
            && self.expected.others.binary_search(&previous.start).is_ok()
            && previous.end == previous.start + 1
            && previous.start < span.start
        {
            self.reach(Span { start: previous.start, end: span.start });
        }
    }

    /// Marks the forms that begin in `span`.
    fn reach(&mut self, span: Span) {
        let (plain, others) = self.reached.split_at_mut(self.expected.plain.len());
        for (starts, reached) in [(&self.expected.plain, plain), (&self.expected.others, others)] {
            let first = starts.partition_point(|start| *start < span.start);
            let end = starts.partition_point(|start| *start < span.end).max(first);
            reached[first..end].fill(true);
        }
    }

    /// Returns the number of forms.
    pub(super) fn forms(&self) -> usize {
        self.reached.len()
    }

    /// Returns the number of plain forms whose start the copy has reported as its place.
    pub(super) fn reported_plain_forms(&self) -> usize {
        self.reported_plain_forms
    }

    /// Returns the starts of the forms that the copy did not reach, plain forms first.
    pub(super) fn missed(&self) -> impl Iterator<Item = usize> {
        let forms = self.expected.plain.iter().chain(&self.expected.others).zip(&self.reached);
        forms.filter(|(_, reached)| !**reached).map(|(start, _)| *start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::document::Document;

    const NONE: [usize; 0] = [];

    /// Returns the starts of the forms of `text` that are missed if the copy reports `places`.
    fn missed(text: &str, places: &[(usize, usize)]) -> Vec<usize> {
        let mut coverage = Coverage::new(Expected::of(&Document::new(text, 0)));
        for place in places {
            coverage.note_place((*place).into());
        }
        coverage.missed().collect()
    }

    #[test]
    fn each_form_is_to_be_named() {
        let text = "(a) (b) (c)\n#+x (d)";
        assert_eq!(missed(text, &[(0, 1), (0, 3), (4, 7), (8, 11), (12, 13), (16, 19)]), NONE);
        // The feature of the guard is missing.
        assert_eq!(missed(text, &[(0, 1), (0, 3), (4, 7), (8, 11), (12, 19)]), NONE);
        assert_eq!(missed(text, &[(0, 3), (4, 7), (8, 11)]), [12]);
        assert_eq!(missed(text, &[]), [0, 4, 8, 12]);
        assert_eq!(missed(text, &[(0, 3), (8, 11), (12, 13)]), [4]);
        // One place for the whole text, or places that begin within a form or at a blank.
        assert_eq!(missed(text, &[(0, 19)]), [4, 8, 12]);
        assert_eq!(missed(text, &[(0, 3), (1, 19), (3, 19)]), [4, 8, 12]);
        assert_eq!(missed("; x\n(a) (b)", &[(0, 11)]), [4, 8]);
    }

    #[test]
    fn a_syntax_of_ones_own_may_have_fewer_forms() {
        // `#{ (a) (b) }` is read as one form; `#;(c)` as a comment.
        let text = "#{ (a) (b) }\n#;(c) (d)";
        assert_eq!(missed(text, &[(0, 1), (0, 12), (13, 14), (19, 22)]), NONE);
        assert_eq!(missed(text, &[(0, 1), (0, 12), (13, 14)]), [19]);
        let text = "(enable-sweet-syntax)\n(a) (b)";
        assert_eq!(missed(text, &[(0, 21), (22, 29)]), NONE);
    }
}
