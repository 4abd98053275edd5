//! The packages that the `(in-package ...)` forms of a text name. They are computed in one pass
//! over the text, and stored with it.

use ropey::Rope;

use super::designator::designated;
use super::part::Part;
use super::scanner::{Token, TokenKind};
use super::toplevel::{Scan, TopForm};

/// The packages in force, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Packages {
    named: Vec<InPackageForm>,
}

/// An `(in-package ...)` form.
#[derive(Debug)]
struct InPackageForm {
    /// The end of the form, in characters.
    end: usize,
    /// The package.
    name: String,
    /// True if `#+` or `#-` precedes, so that the reader may skip the form.
    guarded: bool,
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
                named.extend(in_package(text, form));
            }
        }
        Packages { named }
    }

    /// Returns the package named by the last form before `offset`.
    pub(super) fn at(&self, offset: usize) -> Option<&str> {
        self.before(offset).last().map(|one| one.name.as_str())
    }

    /// Returns the packages that may be in force at `offset`, the last one first: those of the last
    /// guarded forms, and that of the last form before these that has no guard. If there is no such
    /// form, the last element is `None`.
    pub(super) fn possible_at(&self, offset: usize) -> Vec<Option<&str>> {
        const MAX_PACKAGES: usize = 8;
        let mut found = Vec::new();
        for one in self.before(offset).iter().rev().take(MAX_PACKAGES) {
            found.push(Some(one.name.as_str()));
            if !one.guarded {
                return found;
            }
        }
        if found.len() < MAX_PACKAGES {
            found.push(None);
        }
        found
    }

    /// Returns all packages that are named, in the order of the text.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|one| one.name.as_str())
    }

    fn before(&self, offset: usize) -> &[InPackageForm] {
        &self.named[..self.named.partition_point(|one| one.end <= offset)]
    }
}

/// Returns the bytes at which `in-package` is written, in upper or lower case.
fn mentions(text: &Rope) -> Vec<usize> {
    const NAME: &[u8] = b"in-package";
    let mut found = Vec::new();
    // The last bytes seen, for a name that spans two of the rope's chunks.
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

/// Returns the form as `(in-package name)`, if it is such a form.
fn in_package(text: &Rope, form: &TopForm) -> Option<InPackageForm> {
    const MAX_BYTES: usize = 400;
    if form.fault.is_some() || form.span.end - form.span.start > MAX_BYTES {
        return None;
    }
    let part = Part::of(text, form.span);
    let mut tokens =
        part.tokens().filter(|token| !matches!(token.kind, TokenKind::LineComment | TokenKind::BlockComment));
    let mut token = tokens.next()?;
    let guarded = token.kind == TokenKind::FeatureConditional;
    while token.kind == TokenKind::FeatureConditional {
        skip_datum(&mut tokens)?;
        token = tokens.next()?;
    }
    let operator = tokens.next().filter(|_| token.kind == TokenKind::Open)?;
    let operator = part.text.get(operator.start..operator.end)?.to_ascii_lowercase();
    let operator = operator.strip_prefix("cl:").or_else(|| operator.strip_prefix("common-lisp:")).unwrap_or(&operator);
    if operator != "in-package" {
        return None;
    }
    let name = tokens.next()?;
    let name = designated(part.text.get(name.start..name.end)?, name.kind)?;
    Some(InPackageForm { end: form.span.end, name, guarded })
}

/// Skips a feature expression.
fn skip_datum(tokens: &mut impl Iterator<Item = Token>) -> Option<()> {
    let mut depth = 0usize;
    loop {
        match tokens.next()?.kind {
            TokenKind::Open => depth += 1,
            TokenKind::Close => depth = depth.checked_sub(1)?,
            TokenKind::Prefix | TokenKind::FeatureConditional | TokenKind::Unknown => continue,
            _ => {}
        }
        if depth == 0 {
            return Some(());
        }
    }
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
