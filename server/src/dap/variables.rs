//! Scopes and variables, and the numbers by which clients refer to frames, scopes and values.

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use crate::model::frozen::Restart;

use crate::model::inspection::{LispValue, Part};

use crate::model::stop::Local;

/// The maximum number of handles that a client may have. Beyond it, the oldest are removed.
const MAX_HANDLES: u64 = 50_000;

/// The referent of a frame id or a `variablesReference` of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Referent {
    /// A frame of a stop.
    Frame { stop: u64, frame: usize },
    /// The locals of a frame.
    Locals { stop: u64, frame: usize },
    /// The restarts of a stop.
    Restarts { stop: u64 },
    /// The parts of a value from a certain part on.
    Parts { reference: u64, start: usize },
}

/// The handles of one client, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Handles {
    last: u64,
    handles: HashMap<u64, Referent>,
}

impl Handles {
    pub(super) fn number(&mut self, referent: Referent) -> u64 {
        self.last += 1;
        self.handles.insert(self.last, referent);
        self.handles.remove(&self.last.saturating_sub(MAX_HANDLES));
        self.last
    }

    pub(super) fn get(&self, number: u64) -> Option<Referent> {
        self.handles.get(&number).copied()
    }

    /// Returns a reference to the parts of a value, or 0 if there are none.
    pub(super) fn parts(&mut self, value: &LispValue) -> u64 {
        self.parts_of(value.reference)
    }

    /// Returns a reference to the parts of the value that the image calls `reference`, or 0 if
    /// there are none.
    pub(super) fn parts_of(&mut self, reference: u64) -> u64 {
        if reference == 0 { 0 } else { self.number(Referent::Parts { reference, start: 0 }) }
    }

    fn variable(&mut self, name: &str, value: &LispValue) -> Json {
        let mut variable = json!({"name": name, "value": value.text, "variablesReference": self.parts(value)});
        if let Some(kind) = &value.kind {
            variable["type"] = json!(kind);
        }
        variable
    }

    /// Returns the variables of a frame. If several have the same name, a number follows the name
    /// of each. Code cannot refer to any of them, because SBCL refuses the name.
    pub(super) fn locals(&mut self, locals: &[Local]) -> Vec<Json> {
        let stem = |at: usize| numbered(&locals[at].name).unwrap_or(&locals[at].name);
        let is_one_of_several = |at: usize| {
            let others = (0..locals.len()).filter(|other| *other != at);
            others.map(stem).any(|other| other == stem(at))
        };
        let in_code = |at: usize| match numbered(&locals[at].name) {
            Some(_) if is_one_of_several(at) => None,
            _ => Some(locals[at].name.clone()),
        };
        (0..locals.len()).map(|at| self.local(&locals[at], in_code(at))).collect()
    }

    fn local(&mut self, local: &Local, in_code: Option<String>) -> Json {
        match (&local.value, &local.missing) {
            (Some(value), _) => {
                let mut variable = self.variable(&local.name, value);
                if let Some(name) = in_code {
                    variable["evaluateName"] = json!(name);
                }
                variable
            }
            (None, missing) => {
                let why = missing.as_deref().unwrap_or("there is no value");
                let hint = json!({"attributes": ["readOnly"]});
                json!({"name": local.name, "value": format!("<{why}>"), "variablesReference": 0, "presentationHint": hint})
            }
        }
    }

    pub(super) fn part(&mut self, part: &Part) -> Json {
        let label = part_name(part);
        if part.missing {
            return json!({"name": label, "value": format!("<{}>", part.value.text), "variablesReference": 0});
        }
        self.variable(label, &part.value)
    }
}

/// Returns the name without the number that was added to it, if one was: `X` for `X#2`.
fn numbered(name: &str) -> Option<&str> {
    let (stem, number) = name.rsplit_once('#')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(stem)
}

/// Returns the name of a part: its key in a hash table, or else its label.
pub(super) fn part_name(part: &Part) -> &str {
    part.key.as_ref().map_or(part.label.as_str(), |key| key.text.as_str())
}

/// Returns the restarts of a stop as variables, so that every client shows them.
pub(super) fn restarts(restarts: &[Restart]) -> Vec<Json> {
    let restart = |(index, restart): (usize, &Restart)| {
        let name = restart.name.as_deref().unwrap_or("(no name)");
        json!({"name": format!("{index}: {name}"), "value": restart.report, "variablesReference": 0})
    };
    restarts.iter().enumerate().map(restart).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_code_means_one_of_several_variables_of_a_name() {
        let local = |name: &str| json!({"name": name, "value": {"text": "1", "type": "FIXNUM", "reference": 0}});
        let locals: Vec<Local> =
            serde_json::from_value(json!([local("X#2"), local("Y#1"), local("X#1"), local("Z")])).unwrap();
        let shown = Handles::default().locals(&locals);
        let names: Vec<&Json> = shown.iter().map(|one| &one["evaluateName"]).collect();
        assert_eq!(names, [&Json::Null, &json!("Y#1"), &Json::Null, &json!("Z")]);
    }
}
