//! The loop keywords that can follow a place in a `loop` form (CLHS 6.1).

use crate::text::datum::{Form, Kind, Node};
use crate::text::loop_keywords::{
    self, AFTER_RANGE, AFTER_THE, AFTER_VARIABLE, ARITHMETIC, CLAUSES, CONDITIONALS, SELECTABLE, STATEMENTS, TESTS,
};

/// The syntax that is expected at a place of a `loop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ide) enum Next {
    /// A loop keyword. The values are the keywords that fit best, and true if any clause may follow
    /// too.
    Keyword(&'static str, bool),
    /// A form.
    Form,
    /// A new name.
    Name,
}

impl Next {
    /// Returns the loop keywords that fit.
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

/// The state of the parser after some elements of the `loop`.
#[derive(Clone, Copy)]
enum State {
    Keyword(&'static str, bool),
    /// One form is expected, then a keyword.
    Form(&'static str, bool),
    /// One variable or name is expected, then a keyword.
    Name(&'static str, bool),
    /// Compound forms are expected until the next keyword. `some` is true after the first of them.
    Forms {
        some: bool,
    },
}

/// Returns the syntax that is expected after the first `at` elements of an extended `loop`.
pub(in crate::ide) fn next(form: &Form, list: &Node, at: usize) -> Next {
    let mut state = State::Keyword("named", true);
    // The variables after `and` are those of a `for` or a `with`, until another clause begins.
    let mut binds = None;
    for node in list.children.iter().take(at).skip(1) {
        let word = (node.kind == Kind::Atom).then(|| form.name(node)).flatten();
        let word = word.as_deref().map(|word| word.trim_start_matches(':'));
        state = match (state, word) {
            (State::Form(words, clauses) | State::Name(words, clauses), _) => State::Keyword(words, clauses),
            (State::Forms { .. }, None) => State::Forms { some: true },
            (State::Forms { some: false }, Some("return")) => State::Form("and else end", true),
            (State::Keyword(..) | State::Forms { .. }, Some(word)) => state_after(word, &mut binds),
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

/// Returns the state after a loop keyword. `binds` are the keywords after a variable of the clause,
/// if the clause binds variables.
fn state_after(keyword: &str, binds: &mut Option<&'static str>) -> State {
    let is = |group| loop_keywords::is_in(keyword, group);
    if is(CLAUSES) && !matches!(keyword, "for" | "as" | "with") {
        *binds = None;
    }
    match keyword {
        "for" | "as" => {
            *binds = Some(AFTER_VARIABLE);
            State::Name(AFTER_VARIABLE, false)
        }
        "with" => {
            *binds = Some("= of-type and");
            State::Name("= of-type and", true)
        }
        "and" => match *binds {
            Some(words) => State::Name(words, false),
            None => State::Keyword(SELECTABLE, false),
        },
        "named" => State::Name("", true),
        "in" | "on" => State::Form("by and", true),
        "across" | "then" | "by" => State::Form("and", true),
        _ if is(ARITHMETIC) => State::Form(AFTER_RANGE, true),
        "=" => State::Form("then and", true),
        "being" => State::Keyword("the each", false),
        "the" | "each" => State::Keyword(AFTER_THE, false),
        _ if is(AFTER_THE) => State::Keyword("of in", false),
        "of" => State::Form("using and", true),
        "using" => State::Form("and", true),
        "of-type" => State::Form(AFTER_VARIABLE, true),
        "into" => State::Name("of-type and else end", true),
        _ if is(TESTS) => State::Form("", true),
        _ if is(CONDITIONALS) => State::Form(SELECTABLE, false),
        "else" => State::Keyword(SELECTABLE, false),
        "end" => State::Keyword("", true),
        _ if is(STATEMENTS) => State::Forms { some: false },
        "return" => State::Form("and else end", true),
        // The keywords that collect values.
        _ if is(CLAUSES) => State::Form("into and else end", true),
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
            ("(loop for x)", Next::Keyword(AFTER_VARIABLE, false)),
            ("(loop for x in)", Next::Form),
            ("(loop for x in xs)", Next::Keyword("by and", true)),
            ("(loop for i from 1 to 10)", Next::Keyword(AFTER_RANGE, true)),
            ("(loop for x in xs and)", Next::Name),
            ("(loop for x = 1)", Next::Keyword("then and", true)),
            ("(loop for k being the)", Next::Keyword(AFTER_THE, false)),
            ("(loop for k being the hash-keys of table)", Next::Keyword("using and", true)),
            ("(loop :for x :in xs :collect)", Next::Form),
            ("(loop for x in xs collect x)", Next::Keyword("into and else end", true)),
            ("(loop for x in xs collect x into)", Next::Name),
            ("(loop for x in xs when x)", Next::Keyword(SELECTABLE, false)),
            ("(loop for x in xs when x collect x and)", Next::Keyword(SELECTABLE, false)),
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
