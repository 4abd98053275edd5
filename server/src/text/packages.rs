//! The packages that the `(in-package ...)` forms of a text name. Computed in one pass over the
//! text, and stored with it.

use ropey::Rope;

use super::forms::in_package;
use super::toplevel::Scan;

/// The packages in force, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Packages {
    /// The end of each form, in characters, and the package it names.
    named: Vec<(usize, String)>,
}

impl Packages {
    /// Collects the packages of a text.
    pub(super) fn of(text: &Rope, scan: &Scan) -> Packages {
        let forms = scan.forms();
        let mut named = Vec::new();
        let mut last = None;
        for at in mentions(text) {
            let index = forms.partition_point(|form| form.bytes.end <= at);
            if let Some(form) = forms.get(index).filter(|form| form.bytes.start < at && last != Some(index)) {
                last = Some(index);
                named.extend(in_package(text, form).map(|name| (form.span.end, name)));
            }
        }
        Packages { named }
    }

    /// The package named by the last form before `offset`.
    pub(super) fn at(&self, offset: usize) -> Option<&str> {
        let before = self.named.partition_point(|(end, _)| *end <= offset);
        self.named[..before].last().map(|(_, name)| name.as_str())
    }
}

/// The bytes at which `in-package` is written, in upper or lower case.
fn mentions(text: &Rope) -> Vec<usize> {
    const NAME: &[u8] = b"in-package";
    let mut found = Vec::new();
    // The last bytes seen, for a name that lies in two of the rope's chunks.
    let mut tail: Vec<u8> = Vec::new();
    let mut begin = 0;
    for chunk in text.chunks() {
        let kept = tail.len();
        tail.extend_from_slice(chunk.as_bytes());
        for (at, part) in tail.windows(NAME.len()).enumerate() {
            if part[2] == b'-' && part.eq_ignore_ascii_case(NAME) {
                found.push(begin + at);
            }
        }
        begin += (kept + chunk.len()).saturating_sub(NAME.len() - 1);
        tail.drain(..tail.len().saturating_sub(NAME.len() - 1));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_wherever_the_rope_cuts_the_text() {
        for before in 0..3_000 {
            let text = format!("{}(In-Package :a)", " ".repeat(before));
            assert_eq!(mentions(&Rope::from_str(&text)), [before + 1]);
        }
    }
}
