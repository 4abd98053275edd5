use proptest::prelude::*;

use super::Action::*;
use super::*;
use crate::text::scanner::{Scanner, TokenKind};

/// Returns the text without its `‸`s, and their places. One marks the cursor, two mark a selection.
fn read(source: &str) -> (String, Range<usize>) {
    let start = source.find('‸').unwrap_or(0);
    let text = source.replacen('‸', "", 1);
    let end = text.find('‸').unwrap_or(start);
    (text.replace('‸', ""), start..end)
}

fn done(source: &str, action: Action) -> Option<String> {
    let (text, selection) = read(source);
    let outcome = act(&text, selection, action)?;
    let mut new = applied(&text, &outcome.edits);
    let Range { start, end } = outcome.selection;
    if start != end {
        new.insert(end, '‸');
    }
    new.insert(start, '‸');
    Some(new)
}

pub(super) fn all(action: Action, table: &[(&str, &str)]) {
    for (before, after) in table {
        let expected = (!after.is_empty()).then_some(*after);
        assert_eq!(done(before, action).as_deref(), expected, "{action:?} {before}");
    }
}

#[test]
fn slurping() {
    all(
        SlurpForward,
        &[
            ("(foo‸ bar) baz", "(foo‸ bar baz)"),
            ("(a (b‸) c)", "(a (b‸ c))"),
            ("(‸) a", "(‸a)"),
            ("(a‸)b", "(a‸ b)"),
            ("(a‸ ; c\n ) b", "(a‸ ; c\n  b)"),
            ("(a‸) #+x (b) c", "(a‸ #+x (b)) c"),
            ("(a‸) 'b", "(a‸ 'b)"),
            ("(a \"‸)\") b", "(a \"‸)\" b)"),
            ("(a #\\)‸) b", "(a #\\)‸ b)"),
            ("'(a‸) b", "'(a‸ b)"),
            ("(a‸)", ""),
            ("a‸ b", ""),
            ("(a‸) ; c\n b", "(a‸ ; c\n b)"),
        ],
    );
    all(
        SlurpBackward,
        &[
            ("a (‸b)", "(a ‸b)"),
            ("a '(b‸)", "'(a b‸)"),
            ("(a (b‸))", "((a b‸))"),
            ("a(b‸)", "(a b‸)"),
            ("#+x a (b‸)", "(#+x a b‸)"),
            ("(b‸)", ""),
        ],
    );
}

#[test]
fn barfing() {
    all(
        BarfForward,
        &[
            ("(foo‸ bar baz)", "(foo‸ bar) baz"),
            ("(‸a)", "(‸)a"),
            ("(a‸ b)c", "(a‸) b c"),
            ("(a‸ 'b)", "(a‸) 'b"),
            ("(a‸ |b)|)", "(a‸) |b)|"),
            ("(‸)", ""),
        ]
        .map(|(before, after)| (before, if after == "(‸)a" { "(‸) a" } else { after })),
    );
    all(
        BarfBackward,
        &[
            ("(foo bar‸ baz)", "foo (bar‸ baz)"),
            ("(a ‸b)", "a (‸b)"),
            ("'(a b‸)", "a '(b‸)"),
            ("x(a b‸)", "x a (b‸)"),
            ("#(a b‸)", "a #(b‸)"),
        ],
    );
}

#[test]
fn raising_splicing_and_wrapping() {
    all(
        Raise,
        &[
            ("(a (b ‸c d) e)", "(a ‸c e)"),
            ("(if x ‸(foo))", "‸(foo)"),
            ("(progn ‸(a) (b)‸)", "‸(a) (b)"),
            ("'(a ‸b)", "'‸b"),
            ("#+x (a ‸b)", "#+x ‸b"),
            ("(a '(b ‸'c))", "(a '‸'c)"),
            ("x(‸a)y", "x ‸a y"),
            ("(#\\((‸a b))", "(#\\( ‸a)"),
            ("‸a", ""),
        ],
    );
    all(
        Splice,
        &[
            ("(a (b‸ c) d)", "(a b‸ c d)"),
            ("((a‸)b)", "(a‸ b)"),
            ("(a(b‸))", "(a b‸)"),
            ("#+x (a‸)", "#+x a‸"),
            ("'(‸)", ""),
            ("(a \"(‸\")", "a \"(‸\""),
        ],
    );
    all(
        Wrap,
        &[
            ("(a ‸b c)", "(a (‸b) c)"),
            ("(a b‸ c)", "(a (‸b) c)"),
            ("(‸a b‸ c)", "((‸a b) c)"),
            ("‸'(a)", "(‸'(a))"),
            ("(a ‸)", "(a (‸))"),
            ("‸|a(b|", "(‸|a(b|)"),
            ("#+x ‸a", "(‸#+x a)"),
            ("; ‸a", ""),
        ],
    );
    all(WrapSquare, &[("(a ‸b)", "(a [‸b])")]);
}

#[test]
fn moving_datums() {
    all(
        DragForward,
        &[
            ("(‸a (b) c)", "((b) ‸a c)"),
            ("(a ‸'b #\\()", "(a #\\( ‸'b)"),
            ("(‸a ; c\n b)", "(b ; c\n ‸a)"),
            ("(a ‸b)", ""),
            ("(‸a\"x\"b)", ""),
        ],
    );
    all(DragBackward, &[("(a ‸(b c) d)", "(‸(b c) a d)"), ("(‸a b)", "")]);
    all(Transpose, &[("(a‸ b c)", "(b a‸ c)"), ("(foo ‸(x))", "((x) foo‸)"), ("(a‸)", "")]);
    all(
        KillSexp,
        &[
            ("(a‸ (b c) d)", "(a‸ d)"),
            ("(a ‸'(b) d)", "(a ‸ d)"),
            ("(a \"b‸ c\")", "(a \"b‸\")"),
            ("(a fo‸o)", "(a fo‸)"),
            ("(a ‸#+x (b))", "(a ‸)"),
            ("(a‸)", ""),
            ("; a‸ b\n(c)", "; a‸\n(c)"),
            ("a‸(b)c", "a‸ c"),
            ("(a \"b\\‸\"\")", ""),
        ],
    );
}

#[test]
fn moving_the_cursor_and_selecting() {
    all(
        MoveForward,
        &[("‸(a b) c", "(a b)‸ c"), ("(a‸)", "(a)‸"), ("(fo‸o)", "(foo‸)"), ("‸ #+x 'a b", " #+x 'a‸ b"), ("a‸", "")],
    );
    all(MoveBackward, &[("(a b)‸ c", "‸(a b) c"), ("(‸a)", "‸(a)"), ("(a 'b‸)", "(a ‸'b)")]);
    all(MoveUp, &[("(a (b ‸c))", "(a ‸(b c))"), ("‸a", "")]);
    all(MoveDown, &[("‸(a)", "(‸a)"), ("(‸a '(b))", "(a '(‸b))"), ("(a‸ b)", "")]);
    all(
        Select,
        &[
            ("(a (b f‸oo))", "(a (b ‸foo‸))"),
            ("(a (b ‸foo‸))", "(a (‸b foo‸))"),
            ("(a (‸b foo‸))", "(a ‸(b foo)‸)"),
            ("(a ‸(b foo)‸)", "(‸a (b foo)‸)"),
            ("(a \"x‸ y\")", "(a \"‸x y‸\")"),
        ],
    );
    all(SelectContract, &[("‸(a b)‸", "(‸a b‸)"), ("(‸a b‸)", "(‸a‸ b)"), ("(‸a‸ b)", "(‸a b)"), ("‸'a‸", "'‸a‸")]);
}

fn datum() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["a", "bb", "\"s ) (\"", "#\\(", "|a (b|", "12", ":k", "#:g", "é𝄞", "a\\)b"])
        .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 4, |inner| {
        let gap = prop::sample::select(vec![" ", "\n", "  ", " ; c )\n", " #| ( |# ", ""]);
        let prefix = prop::sample::select(vec!["", "", "'", "`", "#'", "#+x ", "#(", "#1="]);
        (prefix, prop::collection::vec((inner, gap), 0..4)).prop_map(|(prefix, items)| {
            let open = if prefix == "#(" { "#(".to_owned() } else { format!("{prefix}(") };
            let body: String = items.into_iter().map(|(item, gap)| item + gap).collect();
            format!("{open}{body})")
        })
    })
}

/// Returns the data and comments of a text, without brackets and white space, in the order of their
/// text.
fn tokens(text: &str) -> Vec<&str> {
    let all = Scanner::new(text).filter(|token| !matches!(token.kind, TokenKind::Open | TokenKind::Close));
    let mut all: Vec<&str> = all.map(|token| text[token.start..token.end].trim()).collect();
    all.sort_unstable();
    all
}

/// Returns true if each token of `some` is in `all`, at least as often.
fn are_among(some: &[&str], all: &[&str]) -> bool {
    let mut rest = all.iter();
    some.iter().all(|one| rest.any(|other| other == one))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn no_action_unbalances(texts in prop::collection::vec(datum(), 1..4), at in 0usize..200, length in 0usize..20, action in prop::sample::select(Action::ALL.to_vec())) {
        let text = texts.join("\n");
        let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let start = boundary(at % (text.len() + 1));
        let end = boundary(start + length).max(start);
        if let Some(outcome) = act(&text, start..end, action) {
            let new = applied(&text, &outcome.edits);
            prop_assert_eq!(Scan::of(&new).broken().count(), 0, "{:?} {:?} -> {:?}", action, text, new);
            prop_assert!(new.is_char_boundary(outcome.selection.start) && new.is_char_boundary(outcome.selection.end));
            let (before, after) = (tokens(&text), tokens(&new));
            match action {
                // These actions may end within a token.
                KillSexp | KillLine | DeleteForward | DeleteBackward | WrapSquare => {}
                // A string or comment that is split or joined becomes another one.
                Split | Join if text.contains(['"', ';', '|']) => {}
                Raise => prop_assert!(are_among(&after, &before), "{:?} {:?} -> {:?}", action, text, new),
                _ => prop_assert_eq!(before, after, "{:?} {:?} -> {:?}", action, text, new),
            }
        }
    }
}
