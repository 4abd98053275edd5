//! Definitions that people made in the image, in sentences for an agent's next answer. Bounded.

use std::collections::VecDeque;

use super::Frontend;

/// The number of definitions kept.
const REMEMBERED: usize = 500;
/// The number of names in one sentence.
const NAMED: usize = 12;

/// The definitions that people made, in order.
#[derive(Debug, Default)]
pub(super) struct PeopleDefinitions {
    made: VecDeque<PersonDefinition>,
    last: u64,
}

#[derive(Debug)]
struct PersonDefinition {
    number: u64,
    frontend: Frontend,
    /// The name, such as `SHOP::DISCOUNT`.
    name: String,
    /// True if the name was defined before.
    redefined: bool,
    /// The system with which it was loaded.
    system: Option<String>,
}

impl PeopleDefinitions {
    pub(super) fn add(&mut self, frontend: Frontend, name: String, redefined: bool, system: Option<String>) {
        if frontend == Frontend::Mcp {
            return;
        }
        self.last += 1;
        self.made.push_back(PersonDefinition { number: self.last, frontend, name, redefined, system });
        if self.made.len() > REMEMBERED {
            self.made.pop_front();
        }
    }

    /// Returns the number of the last definition.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the definitions after `since`: one sentence for each front end and each operation.
    pub(super) fn sentences_since(&self, since: u64) -> Vec<String> {
        let new: Vec<&PersonDefinition> = self.made.iter().filter(|made| made.number > since).collect();
        let missed = (self.last - since).saturating_sub(new.len() as u64);
        let mut sentences: Vec<String> = Vec::new();
        for (frontend, who) in [(Frontend::Lsp, "the editor"), (Frontend::Cli, "the command line")] {
            let mine = || new.iter().filter(move |made| made.frontend == frontend);
            for made in mine() {
                if let Some(system) = &made.system {
                    let sentence = format!("{who} loaded the system {system}");
                    if !sentences.contains(&sentence) {
                        sentences.push(sentence);
                    }
                }
            }
            for (redefined, verb) in [(true, "redefined"), (false, "defined")] {
                let mut names: Vec<&str> = Vec::new();
                for made in mine().filter(|made| made.system.is_none() && made.redefined == redefined) {
                    if !names.contains(&made.name.as_str()) {
                        names.push(&made.name);
                    }
                }
                if names.is_empty() {
                    continue;
                }
                let more = names.len().saturating_sub(NAMED);
                let mut sentence = format!("{who} {verb} {}", names[..names.len() - more].join(", "));
                if more > 0 {
                    sentence += &format!(" and {more} more");
                }
                sentences.push(sentence);
            }
        }
        if missed > 0 {
            sentences.push(format!("{missed} definitions before these were made by people"));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_of_once_and_agents_are_not() {
        let mut work = PeopleDefinitions::default();
        work.add(Frontend::Mcp, "SHOP::A".into(), true, None);
        work.add(Frontend::Lsp, "SHOP::DISCOUNT".into(), true, None);
        work.add(Frontend::Lsp, "SHOP::DISCOUNT".into(), true, None);
        work.add(Frontend::Lsp, "SHOP::NEW".into(), false, None);
        work.add(Frontend::Cli, "X::Y".into(), true, Some("x".into()));
        assert_eq!(
            work.sentences_since(0),
            [
                "the editor redefined SHOP::DISCOUNT",
                "the editor defined SHOP::NEW",
                "the command line loaded the system x"
            ]
        );
        assert_eq!(work.sentences_since(work.last()), Vec::<String>::new());
    }

    #[test]
    fn very_much_is_counted() {
        let mut work = PeopleDefinitions::default();
        (0..2_000).for_each(|number| work.add(Frontend::Lsp, format!("P::F{number}"), true, None));
        let sentences = work.sentences_since(0);
        assert!(sentences[0].ends_with("P::F1511 and 488 more"), "{sentences:?}");
        assert_eq!(sentences[1], "1500 definitions before these were made by people");
    }
}
