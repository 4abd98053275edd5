//! A pass over a text that finds its top-level forms, with recovery if the text is not balanced.
//! Offsets are bytes of the given part.

use super::scanner::{MissingDelimiter, Scanner, Token, TokenKind, Unterminated};
use super::top_form::{Edited, TopForm, Unreadable};

/// The maximum number of rescans of the text after a broken form. After that many, every `(` at the
/// start of a line begins a form, so that the time stays linear.
pub(super) const MAX_RECOVERIES: usize = 8;

/// A form that a pass has found.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundForm {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) fault: Option<Unreadable>,
    pub(super) missing_delimiter: Option<MissingDelimiter>,
}

/// A scan of the text before a change, for reuse after the change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reuse<'a> {
    /// The forms of the old scan.
    pub(super) old: &'a [TopForm],
    /// The changed range, in bytes of the whole text.
    pub(super) damage: Edited,
    /// The start of the part in the whole new text.
    pub(super) from: usize,
    /// The first index in `old` from which on all forms are sound: they have no fault, or are only
    /// not closed.
    sound_from: usize,
}

impl<'a> Reuse<'a> {
    pub(super) fn new(old: &'a [TopForm], damage: Edited, from: usize) -> Self {
        let sound = |form: &TopForm| matches!(form.fault, None | Some(Unreadable::UnclosedList));
        let sound_from = old.iter().rposition(|form| !sound(form)).map_or(0, |last| last + 1);
        Reuse { old, damage, from, sound_from }
    }

    fn old_position(&self, at: usize) -> Option<usize> {
        let at = at + self.from;
        (at >= self.damage.new_end).then(|| at - self.damage.new_end + self.damage.old_end)
    }

    /// Returns the index of the first old form after `at`, if an old form ended at `at`.
    fn resumes_after(&self, at: usize) -> Option<usize> {
        let at = self.old_position(at)?;
        self.old.binary_search_by(|form| form.bytes.end.cmp(&at)).ok().map(|index| index + 1)
    }

    /// Returns the index of the old form that began at `at`, if it and all later forms are sound.
    fn resumes_at(&self, at: usize) -> Option<usize> {
        let at = self.old_position(at)?;
        let index = self.old.binary_search_by(|form| form.bytes.start.cmp(&at)).ok()?;
        (index >= self.sound_from).then_some(index)
    }
}

/// The end of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The pass ended at the end of the part.
    End,
    /// The old forms from this index on follow.
    Reuse(usize),
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    /// The first byte of the frame's token.
    start: usize,
    /// The end of the previous token.
    before: usize,
    /// The number of datums that the frame still takes; 0 for a list.
    takes: u8,
    /// True if the datum may be missing.
    lenient: bool,
    /// True for `#+` or `#-`.
    guard: bool,
    /// The index of the outermost frame in the unbroken run of surrounding frames that wait for a
    /// datum. For a list, the index of its own frame.
    outermost: usize,
}

/// The first form at the start of a line inside a form.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: usize,
    /// The end of the token before the form.
    before: usize,
}

enum Step {
    /// No form is left.
    End,
    Form(FoundForm),
    /// The form is cut. The text after it is scanned again from `resume`.
    Cut {
        form: FoundForm,
        resume: usize,
    },
    /// The form takes the rest of the text.
    Swallowed {
        form: FoundForm,
        fault: Unreadable,
        mark: Option<Mark>,
    },
}

/// A pass over a text.
pub(super) struct Pass<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    reuse: Option<Reuse<'a>>,
    frames: Vec<Frame>,
    /// The forms found.
    pub(super) forms: Vec<FoundForm>,
}

impl<'a> Pass<'a> {
    /// Prepares a pass over `text`, the part of a text after the byte `before`. The part begins
    /// outside of every form.
    pub(super) fn new(text: &'a str, before: Option<u8>, reuse: Option<Reuse<'a>>) -> Self {
        Pass { text, scanner: Scanner::with_preceding(text, before), reuse, frames: Vec::new(), forms: Vec::new() }
    }

    /// Finds all forms. `partial` is true if more text follows the part. Returns `None` if the part
    /// is then not sufficient to decide.
    pub(super) fn run(&mut self, partial: bool) -> Option<Outcome> {
        let mut recoveries = 0;
        let mut base = 0;
        loop {
            let step = self.step(recoveries >= MAX_RECOVERIES);
            if partial && self.scanner.position() >= self.text.len() {
                return None;
            }
            let resume = match step {
                Step::End => return Some(Outcome::End),
                Step::Form(form) => {
                    self.forms.push(form);
                    if let Some(index) = self.reuse.and_then(|reuse| reuse.resumes_after(form.end)) {
                        return Some(Outcome::Reuse(index));
                    }
                    continue;
                }
                Step::Cut { form, resume } => {
                    self.forms.push(form);
                    resume
                }
                Step::Swallowed { form, fault, mark } => match self.recover(base, form, fault, mark) {
                    None => return Some(Outcome::End),
                    Some(resume) => {
                        recoveries += 1;
                        base = self.forms.len();
                        resume
                    }
                },
            };
            if let Some(index) = self.reuse.and_then(|reuse| reuse.resumes_at(resume)) {
                return Some(Outcome::Reuse(index));
            }
            self.scanner.seek(resume);
        }
    }

    /// Cuts the form that causes the text to end inside `form`. Returns the place at which to
    /// continue, if any.
    fn recover(&mut self, base: usize, form: FoundForm, fault: Unreadable, mark: Option<Mark>) -> Option<usize> {
        if matches!(fault, Unreadable::UnterminatedString | Unreadable::UnterminatedBar) {
            let earlier = self.forms[base..].iter().position(|form| form.missing_delimiter.is_some());
            if let Some((index, missing_delimiter)) =
                earlier.and_then(|i| Some((base + i, self.forms[base + i].missing_delimiter?)))
            {
                let start = self.forms[index].start;
                self.forms.truncate(index);
                return Some(self.cut_in_text(start, missing_delimiter));
            }
        }
        match (mark, form.missing_delimiter) {
            (Some(mark), missing_delimiter)
                if missing_delimiter.is_none_or(|missing_delimiter| mark.at < missing_delimiter.resume) =>
            {
                self.forms.push(FoundForm {
                    end: mark.before,
                    fault: Some(Unreadable::UnclosedList),
                    missing_delimiter: None,
                    ..form
                });
                Some(mark.at)
            }
            (_, Some(missing_delimiter)) => Some(self.cut_in_text(form.start, missing_delimiter)),
            (_, None) => {
                self.forms.push(FoundForm { fault: Some(fault), ..form });
                None
            }
        }
    }

    fn cut_in_text(&mut self, start: usize, missing_delimiter: MissingDelimiter) -> usize {
        let form = self.ended_by(start, missing_delimiter);
        self.forms.push(form);
        missing_delimiter.resume
    }

    fn ended_by(&self, start: usize, missing_delimiter: MissingDelimiter) -> FoundForm {
        let string = self.text.as_bytes().get(missing_delimiter.opening) == Some(&b'"');
        let fault = if string { Unreadable::UnterminatedString } else { Unreadable::UnterminatedBar };
        let end = start + self.text.get(start..missing_delimiter.resume).map_or(0, |text| text.trim_ascii_end().len());
        FoundForm { start, end, fault: Some(fault), missing_delimiter: None }
    }

    /// Finds one form. If `strict`, cuts the form at the first mark or missing delimiter.
    fn step(&mut self, strict: bool) -> Step {
        self.frames.clear();
        let mut depth = 0usize;
        let mut start = None;
        let mut last_end = 0;
        let mut fault = None;
        let mut missing_delimiter: Option<MissingDelimiter> = None;
        let mut mark: Option<Mark> = None;
        while let Some(token) = self.scanner.next() {
            let comment = matches!(token.kind, TokenKind::LineComment | TokenKind::BlockComment);
            if comment && token.unterminated == Unterminated::No {
                continue;
            }
            let first = *start.get_or_insert(token.start);
            if let Some(fault) = fault_of(token.unterminated) {
                let missing_delimiter = missing_delimiter.or_else(|| self.scanner.take_missing_delimiter());
                let form = FoundForm { start: first, end: token.end, fault: None, missing_delimiter };
                return Step::Swallowed { form, fault, mark };
            }
            let mut done = false;
            match token.kind {
                TokenKind::Open => {
                    if depth > 0
                        && let Some(here) = self.mark(token, last_end)
                    {
                        let mark = *mark.get_or_insert(here);
                        let unclosed = FoundForm {
                            start: first,
                            end: mark.before,
                            fault: Some(Unreadable::UnclosedList),
                            missing_delimiter,
                        };
                        if strict {
                            return Step::Cut { form: unclosed, resume: mark.at };
                        }
                        if self.reuse.is_some_and(|reuse| reuse.resumes_at(here.at).is_some()) {
                            // The rest closes no list of this form, so it is not scanned again.
                            return Step::Swallowed {
                                form: unclosed,
                                fault: Unreadable::UnclosedList,
                                mark: Some(mark),
                            };
                        }
                    }
                    self.frames.push(Frame {
                        start: token.start,
                        before: last_end,
                        takes: 0,
                        lenient: false,
                        guard: false,
                        outermost: self.frames.len(),
                    });
                    depth += 1;
                }
                TokenKind::Close => {
                    while let Some(frame) = self.frames.last().filter(|frame| frame.takes > 0) {
                        if !frame.lenient {
                            fault = fault.or(Some(Unreadable::DanglingPrefix));
                        }
                        self.frames.pop();
                    }
                    if depth == 0 {
                        if first == token.start {
                            let fault = Some(Unreadable::ExtraClose);
                            return Step::Form(FoundForm { start: first, end: token.end, fault, missing_delimiter });
                        }
                        self.scanner.seek(token.start);
                        return Step::Form(FoundForm { start: first, end: last_end, fault, missing_delimiter });
                    }
                    self.frames.pop();
                    depth -= 1;
                    done = true;
                }
                TokenKind::Atom => done = true,
                TokenKind::String => done = true,
                TokenKind::Prefix => self.push_prefix(token, last_end, 1),
                TokenKind::FeatureConditional => self.push_prefix(token, last_end, 2),
                TokenKind::Unknown => self.push_prefix(token, last_end, 1),
                TokenKind::LineComment | TokenKind::BlockComment => {}
            }
            if let Some(found) = self.scanner.take_missing_delimiter() {
                if strict {
                    return Step::Cut { form: self.ended_by(first, found), resume: found.resume };
                }
                missing_delimiter = missing_delimiter.or(Some(found));
            }
            last_end = token.end;
            if done && self.datum_ends() {
                return Step::Form(FoundForm { start: first, end: token.end, fault, missing_delimiter });
            }
        }
        let Some(start) = start else { return Step::End };
        let form = FoundForm { start, end: last_end, fault, missing_delimiter };
        if depth > 0 {
            return Step::Swallowed {
                form: FoundForm { end: self.text.len(), ..form },
                fault: Unreadable::UnclosedList,
                mark,
            };
        }
        let dangling = self.frames.iter().any(|frame| !frame.lenient);
        Step::Form(FoundForm { fault: fault.or(dangling.then_some(Unreadable::DanglingPrefix)), ..form })
    }

    fn push_prefix(&mut self, token: Token, before: usize, takes: u8) {
        let lenient = token.kind == TokenKind::Unknown;
        let guard = token.kind == TokenKind::FeatureConditional;
        let around = self.frames.last().filter(|frame| frame.takes > 0);
        let outermost = around.map_or(self.frames.len(), |frame| frame.outermost);
        self.frames.push(Frame { start: token.start, before, takes, lenient, guard, outermost });
    }

    /// Ends a datum and the prefixes that waited for it. Returns true if this ends the top-level
    /// form.
    #[inline]
    fn datum_ends(&mut self) -> bool {
        while let Some(frame) = self.frames.last_mut() {
            match frame.takes {
                0 => return false,
                1 => {
                    self.frames.pop();
                }
                _ => {
                    frame.takes -= 1;
                    return false;
                }
            }
        }
        true
    }

    /// Returns the mark of the list that `open` begins, including its guards, if the list is at the
    /// start of a line.
    #[inline]
    fn mark(&self, open: Token, last_end: usize) -> Option<Mark> {
        if self.frames.last().is_some_and(|frame| frame.takes > 0)
            && let Some(mark) = self.guard_mark()
        {
            return Some(mark);
        }
        self.scanner.at_line_start(open.start).then_some(Mark { at: open.start, before: last_end })
    }

    #[cold]
    fn guard_mark(&self) -> Option<Mark> {
        let waiting = self.frames.last().filter(|frame| frame.takes > 0)?;
        let outermost = self.frames.get(waiting.outermost).filter(|frame| frame.guard && frame.takes == 1)?;
        self.scanner.at_line_start(outermost.start).then_some(Mark { at: outermost.start, before: outermost.before })
    }
}

fn fault_of(unterminated: Unterminated) -> Option<Unreadable> {
    match unterminated {
        Unterminated::No => None,
        Unterminated::String => Some(Unreadable::UnterminatedString),
        Unterminated::BlockComment => Some(Unreadable::UnterminatedComment),
        Unterminated::Bar => Some(Unreadable::UnterminatedBar),
        Unterminated::Escape => Some(Unreadable::DanglingEscape),
    }
}
