//! The loop keywords that can follow at a place of a `loop` form (CLHS 6.1).

use crate::text::datum::{Form, Kind, Node};

const CLAUSES: &str = "for as with do doing collect collecting append appending nconc nconcing count counting sum summing maximize \
     maximizing minimize minimizing if when unless while until repeat always never thereis return initially finally";
const FOR: &str = "in on across from downfrom upfrom to downto upto below above by = being of-type and";
const RANGE: &str = "to downto upto below above by and";
const HASH: &str = "hash-keys hash-values hash-key hash-value symbols symbol present-symbols present-symbol external-symbols \
     external-symbol";
const SELECTED: &str = "do doing collect collecting append appending nconc nconcing count counting sum summing maximize maximizing \
     minimize minimizing if when unless return";

/// What follows at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ide) enum Next {
    /// A loop keyword: those that fit best, and with true any clause too.
    Keyword(&'static str, bool),
    /// A form.
    Form,
    /// A new name.
    Name,
}

impl Next {
    /// The loop keywords that fit.
    pub(super) fn words(self) -> Vec<&'static str> {
        match self {
            Next::Keyword(words, clauses) => {
                let clauses = if clauses { CLAUSES } else { "" };
                words.split_whitespace().chain(clauses.split_whitespace()).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A place behind some elements.
#[derive(Clone, Copy)]
enum State {
    Keyword(&'static str, bool),
    /// One form, then a keyword.
    Form(&'static str, bool),
    /// One variable or name, then a keyword.
    Name(&'static str, bool),
    /// Compound forms, until a keyword.
    Forms {
        some: bool,
    },
}

/// Returns what follows the first `at` elements of an extended `loop`.
pub(in crate::ide) fn next(form: &Form, list: &Node, at: usize) -> Next {
    let mut state = State::Keyword("named", true);
    // The variables of `and` are those of a `for` or a `with`, until another clause begins.
    let mut binds = None;
    for node in list.children.iter().take(at).skip(1) {
        let word = (node.kind == Kind::Atom).then(|| form.name(node)).flatten();
        let word = word.as_deref().map(|word| word.trim_start_matches(':'));
        state = match (state, word) {
            (State::Form(words, clauses) | State::Name(words, clauses), _) => State::Keyword(words, clauses),
            (State::Forms { .. }, None) => State::Forms { some: true },
            (State::Forms { some: false }, Some("return")) => State::Form("and else end", true),
            (State::Keyword(..) | State::Forms { .. }, Some(word)) => behind(word, &mut binds),
            (state, None) => state,
        };
    }
    match state {
        State::Keyword(words, clauses) => Next::Keyword(words, clauses),
        State::Forms { some: true } => Next::Keyword("and else end", true),
        State::Form(..) | State::Forms { some: false } => Next::Form,
        State::Name(..) => Next::Name,
    }
}

/// Returns what follows a loop keyword. `binds`: what follows a variable of the clause, if the
/// clause binds variables.
fn behind(keyword: &str, binds: &mut Option<&'static str>) -> State {
    match keyword {
        "for" | "as" => {
            *binds = Some(FOR);
            State::Name(FOR, false)
        }
        "with" => {
            *binds = Some("= of-type and");
            State::Name("= of-type and", true)
        }
        "and" => match *binds {
            Some(words) => State::Name(words, false),
            None => State::Keyword(SELECTED, false),
        },
        "named" => State::Name("", true),
        "in" | "on" => State::Form("by and", true),
        "across" | "then" | "by" => State::Form("and", true),
        "from" | "downfrom" | "upfrom" | "to" | "downto" | "upto" | "below" | "above" => State::Form(RANGE, true),
        "=" => State::Form("then and", true),
        "being" => State::Keyword("the each", false),
        "the" | "each" => State::Keyword(HASH, false),
        "hash-key" | "hash-keys" | "hash-value" | "hash-values" | "symbol" | "symbols" | "present-symbol"
        | "present-symbols" | "external-symbol" | "external-symbols" => State::Keyword("of in", false),
        "of" => State::Form("using and", true),
        "using" => State::Form("and", true),
        "of-type" => State::Form(FOR, true),
        "into" => State::Name("of-type and else end", true),
        "while" | "until" | "repeat" | "always" | "never" | "thereis" => {
            *binds = None;
            State::Form("", true)
        }
        "if" | "when" | "unless" => {
            *binds = None;
            State::Form(SELECTED, false)
        }
        "else" => State::Keyword(SELECTED, false),
        "end" => State::Keyword("", true),
        "do" | "doing" | "initially" | "finally" => {
            *binds = None;
            State::Forms { some: false }
        }
        "return" => {
            *binds = None;
            State::Form("and else end", true)
        }
        _ if CLAUSES.split_whitespace().any(|one| one == keyword) => {
            *binds = None;
            State::Form("into and else end", true)
        }
        _ => State::Keyword("", true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::document::Document;

    #[test]
    fn what_follows_in_a_loop() {
        let of = |source: &str| {
            let document = Document::new(source, 0);
            let form = Form::at(&document, 1).expect("a form");
            next(&form, &form.nodes[0], form.nodes[0].children.len())
        };
        for (source, expected) in [
            ("(loop)", Next::Keyword("named", true)),
            ("(loop for)", Next::Name),
            ("(loop for x)", Next::Keyword(FOR, false)),
            ("(loop for x in)", Next::Form),
            ("(loop for x in xs)", Next::Keyword("by and", true)),
            ("(loop for i from 1 to 10)", Next::Keyword(RANGE, true)),
            ("(loop for x in xs and)", Next::Name),
            ("(loop for x = 1)", Next::Keyword("then and", true)),
            ("(loop for k being the)", Next::Keyword(HASH, false)),
            ("(loop for k being the hash-keys of table)", Next::Keyword("using and", true)),
            ("(loop :for x :in xs :collect)", Next::Form),
            ("(loop for x in xs collect x)", Next::Keyword("into and else end", true)),
            ("(loop for x in xs collect x into)", Next::Name),
            ("(loop for x in xs when x)", Next::Keyword(SELECTED, false)),
            ("(loop for x in xs when x collect x and)", Next::Keyword(SELECTED, false)),
            ("(loop repeat 3 do)", Next::Form),
            ("(loop repeat 3 do (print i))", Next::Keyword("and else end", true)),
            ("(loop repeat 3 do (print i) (print i) finally)", Next::Form),
            ("(loop repeat 3 finally return)", Next::Form),
            ("(loop with a = 1 and)", Next::Name),
        ] {
            assert_eq!(of(source), expected, "{source}");
        }
    }
}
