//! The lines that the keeper, the last process of a chain, sends. They are untrusted: code under
//! check may write to the same socket.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::checker::report::Findings;
use crate::model::diagnostic::Diagnostic;
use crate::text::expected::Expected;

/// The answer of a chain to an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainAnswer {
    /// The findings of the whole edited text.
    Findings {
        /// The number of the edit.
        number: u64,
        /// The findings.
        diagnostics: Vec<Diagnostic>,
        /// True if no other answer to this edit follows. If false, forms that depend on the edited
        /// ones are not compiled yet.
        last: bool,
    },
    /// The edit needs a check of the whole text.
    Whole {
        /// The number of the edit.
        number: u64,
        /// The reason.
        why: String,
    },
}

impl ChainAnswer {
    fn number(&self) -> u64 {
        match self {
            ChainAnswer::Findings { number, .. } | ChainAnswer::Whole { number, .. } => *number,
        }
    }
}

/// A line; at most one of these fields is present.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    diagnostic: Option<IgnoredAny>,
    #[serde(default)]
    answer: Option<Answer>,
    #[serde(default)]
    whole: Option<WholeCheck>,
    #[serde(default)]
    failed: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    edit: u64,
    #[serde(rename = "final")]
    last: bool,
}

#[derive(Deserialize)]
struct WholeCheck {
    edit: u64,
    why: String,
}

/// The state of the exchange with a keeper: the last edit, and the keeper's findings so far.
#[derive(Debug, Default)]
pub(super) struct KeeperProtocol {
    /// The number of the last edit, and the length of its text in characters.
    edit: Option<(u64, usize)>,
    /// The diagnostics since the last answer.
    collected: Option<Findings>,
}

impl KeeperProtocol {
    /// Notes that the edit `number` was sent. `length` is the length of its text in characters.
    /// Answers to earlier edits are void.
    pub(super) fn sent(&mut self, number: u64, length: usize) {
        self.edit = Some((number, length));
    }

    /// Returns true if an answer is awaited.
    pub(super) fn awaits(&self) -> bool {
        self.edit.is_some()
    }

    /// Handles a line. Returns the answer that the line completes, if it is an answer to the last
    /// edit.
    ///
    /// # Errors
    /// The reason why the chain is of no use any more.
    pub(super) fn handle_line(&mut self, line: &[u8]) -> Result<Option<ChainAnswer>, String> {
        let said: Line = serde_json::from_slice(line)
            .map_err(|error| format!("it sent a line that could not be decoded: {error}"))?;
        if let Some(why) = said.failed {
            return Err(format!("it failed: {why}"));
        }
        let Some((number, length)) = self.edit else {
            return Err("it sent a line although no edit was pending".into());
        };
        if said.diagnostic.is_some() {
            let collected = self.collected.get_or_insert_with(|| empty(length));
            collected.handle_line(line, "")?;
            return Ok(None);
        }
        let collected = self.collected.take();
        let answer = match (said.answer, said.whole) {
            (Some(Answer { edit, last }), _) => {
                let collected = collected.unwrap_or_else(|| empty(length));
                // Diagnostics that began before the last edit was sent belong to an earlier edit.
                if edit == number && collected.length() != length {
                    return Err("it mixed two answers".into());
                }
                ChainAnswer::Findings { number: edit, diagnostics: collected.into_diagnostics(), last }
            }
            (None, Some(WholeCheck { edit, why })) => ChainAnswer::Whole { number: edit, why },
            (None, None) => return Err("it sent a line of an unknown kind".into()),
        };
        if answer.number() != number {
            return Ok(None);
        }
        if !matches!(answer, ChainAnswer::Findings { last: false, .. }) {
            self.edit = None;
        }
        Ok(Some(answer))
    }
}

fn empty(length: usize) -> Findings {
    Findings::new(PathBuf::new(), length, Expected::default()).trusted()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Span;

    const FOUND: &str = r#"{"diagnostic":{"span":[1,900],"severity":"warning","code":"x","message":"m"}}"#;

    fn answer(number: u64, last: bool) -> String {
        format!(r#"{{"answer":{{"edit":{number},"final":{last}}}}}"#)
    }

    fn take(protocol: &mut KeeperProtocol, line: &str) -> Option<(u64, Vec<Span>, bool)> {
        match protocol.handle_line(line.as_bytes()).unwrap()? {
            ChainAnswer::Findings { number, diagnostics, last } => {
                Some((number, diagnostics.into_iter().map(|found| found.span).collect(), last))
            }
            ChainAnswer::Whole { .. } => panic!("{line}"),
        }
    }

    #[test]
    fn each_answer_has_its_own_findings_inside_the_text() {
        let mut protocol = KeeperProtocol::default();
        protocol.sent(1, 10);
        let within = Span { start: 1, end: 10 };
        assert_eq!(take(&mut protocol, FOUND), None);
        assert_eq!(take(&mut protocol, &answer(1, false)), Some((1, vec![within], false)));
        assert!(protocol.awaits());
        assert_eq!(take(&mut protocol, FOUND), None);
        assert_eq!(take(&mut protocol, FOUND), None);
        assert_eq!(take(&mut protocol, &answer(1, true)), Some((1, vec![within, within], true)));
        assert!(!protocol.awaits());
        protocol.sent(2, 10);
        assert_eq!(take(&mut protocol, &answer(2, true)), Some((2, vec![], true)), "nothing of the answer before");
    }

    #[test]
    fn the_answer_to_an_edit_that_another_followed_is_void() {
        let mut protocol = KeeperProtocol::default();
        protocol.sent(1, 10);
        assert_eq!(take(&mut protocol, FOUND), None);
        protocol.sent(2, 5);
        assert_eq!(take(&mut protocol, FOUND), None);
        assert_eq!(take(&mut protocol, &answer(1, true)), None);
        assert!(protocol.handle_line(br#"{"whole":{"edit":1,"why":"w"}}"#).unwrap().is_none());
        assert!(protocol.awaits());
        assert_eq!(take(&mut protocol, FOUND), None);
        assert_eq!(take(&mut protocol, &answer(2, true)), Some((2, vec![Span { start: 1, end: 5 }], true)));
        protocol.sent(3, 5);
        let whole = protocol.handle_line(br#"{"whole":{"edit":3,"why":"w"}}"#).unwrap();
        assert_eq!(whole, Some(ChainAnswer::Whole { number: 3, why: "w".into() }));
        assert!(!protocol.awaits());
    }

    #[test]
    fn a_keeper_that_breaks_the_rules_is_given_up() {
        for lines in [
            &["nonsense"][..],
            &["{}"],
            &[r#"{"failed":"out of memory"}"#],
            &[r#"{"answer":{"edit":"x"}}"#],
            // Diagnostics of a text of another length.
            &[FOUND, "longer", r#"{"answer":{"edit":2,"final":true}}"#],
        ] {
            let mut protocol = KeeperProtocol::default();
            protocol.sent(1, 10);
            let (last, before) = lines.split_last().unwrap();
            for line in before {
                match *line {
                    "longer" => protocol.sent(2, 20),
                    line => assert!(protocol.handle_line(line.as_bytes()).unwrap().is_none()),
                }
            }
            assert!(protocol.handle_line(last.as_bytes()).is_err(), "{lines:?}");
        }
        assert!(KeeperProtocol::default().handle_line(FOUND.as_bytes()).is_err(), "nothing was asked");
    }

    #[test]
    fn a_flood_of_findings_is_bounded() {
        let mut protocol = KeeperProtocol::default();
        protocol.sent(1, 10);
        let long = format!(
            r#"{{"diagnostic":{{"span":[0,1],"severity":"note","code":"x","message":"{}"}}}}"#,
            "x".repeat(20_000)
        );
        assert!((0..3000).any(|_| protocol.handle_line(long.as_bytes()).is_err()));
    }
}
