use proptest::prelude::*;

use super::super::Action::*;
use super::super::tests::all;
use super::super::{Action, act, applied};
use super::Shape;

#[test]
fn a_deleted_character_leaves_lists_and_strings_whole() {
    all(
        DeleteBackward,
        &[
            ("(ab‸ c)", "(a‸ c)"),
            ("(‸a)", "‸(a)"),
            ("(‸)", "‸"),
            ("'(‸)", "‸"),
            ("(a)‸", "(a‸)"),
            ("(a ‸(b))", "(a‸(b))"),
            ("\"ab‸\"", "\"a‸\""),
            ("\"‸ab\"", "‸\"ab\""),
            ("\"‸\"", "‸"),
            ("\"ab\"‸", "\"ab‸\""),
            ("\"a\\\"‸b\"", "\"a‸b\""),
            ("#\\(‸", "‸"),
            ("; a ‸(", "; a‸("),
            ("(a ; b\n‸ c)", ""),
            ("(a ; b\n‸\n c)", "(a ; b‸\n c)"),
            ("(a))‸", "(a)‸"),
            ("((‸a)", "(‸a)"),
            ("\"é‸\"", "\"‸\""),
        ],
    );
    all(
        DeleteForward,
        &[
            ("(‸ab)", "(‸b)"),
            ("‸(a)", "(‸a)"),
            ("(a‸)", "(a)‸"),
            ("(‸)", "‸"),
            ("\"‸\\\"b\"", "\"‸b\""),
            ("\"a‸\"", "\"a\"‸"),
            ("(a ; b‸\n c)", ""),
            ("(a‸\r\nb)", "(a‸b)"),
            ("a‸", ""),
        ],
    );
}

#[test]
fn a_deleted_selection_leaves_what_has_a_partner_outside() {
    all(
        DeleteBackward,
        &[
            ("(a ‸b c‸ d)", "(a ‸ d)"),
            ("‸(a b‸ c)", "‸( c)"),
            ("(a (b ‸c) d‸ e)", "(a (b ‸) e)"),
            ("(a ‸\"b‸ c\")", "(a ‸\" c\")"),
            ("(a ‸(b)‸ c)", "(a ‸ c)"),
            ("(a ‸b ; c\n‸ d)", "(a ‸ d)"),
            ("(a ; ‸b\n c‸ d)", "(a ; ‸\n d)"),
            ("(a ; ‸b\r\n c‸ d)", "(a ; ‸\r\n d)"),
        ],
    );
}

#[test]
fn a_line_is_killed_up_to_the_end_of_its_list() {
    all(
        KillLine,
        &[
            ("(a ‸b c)\nd", "(a ‸)\nd"),
            ("(a ‸b\n c)", "(a ‸\n c)"),
            ("(a ‸(b\n  c) d\n e)", "(a ‸ d\n e)"),
            ("(a \"b‸ c\" d)", "(a \"b‸\" d)"),
            ("(a ; b‸ c\n d)", "(a ; b‸\n d)"),
            ("(a‸\n b)", "(a‸ b)"),
            ("(a ; b‸\n c)", ""),
            ("(a‸)", ""),
            ("‸(a) (b\n c)", "‸"),
        ],
    );
}

#[test]
fn lists_are_split_joined_and_turned() {
    all(
        Split,
        &[
            ("(a b‸ c d)", "(a b)‸ (c d)"),
            ("(a (b ‸c))", "(a (b)‸ (c))"),
            ("\"a‸b\"", "\"a\"‸ \"b\""),
            ("(‸a)", "()‸ (a)"),
            ("(a\n ‸b)", "(a)‸\n (b)"),
            ("a‸", ""),
            ("\"a\\‸\"\"", ""),
        ],
    );
    all(
        Join,
        &[
            ("(a b)‸ (c d)", "(a b‸ c d)"),
            ("(a)‸(b)", "(a‸ b)"),
            ("\"a\"‸ \"b\"", "\"a‸b\""),
            ("'(a) ‸(b)", "'(a‸ b)"),
            ("(a) ‸'(b)", ""),
            ("(a) ‸b", ""),
        ],
    );
    all(
        Convolute,
        &[
            ("(let ((x 5)) (foo ‸bar baz))", "(foo ‸(let ((x 5)) bar baz))"),
            ("(a (b ‸c) d)", "(b ‸(a c d))"),
            ("(a ‸b)", ""),
            ("(a (‸b))", ""),
        ],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn nothing_unbalances_a_text(
        text in "[()\"; a\n'#|\\\\]{0,40}",
        at in 0usize..40,
        length in 0usize..12,
        action in prop::sample::select(Action::ALL.to_vec()),
    ) {
        let (start, end) = (at.min(text.len()), (at + length).min(text.len()));
        if let Some(outcome) = act(&text, start..end, action) {
            let new = applied(&text, &outcome.edits);
            prop_assert!(Shape::of(&new).broken <= Shape::of(&text).broken, "{text:?} {new:?}");
            prop_assert!(outcome.selection.end <= new.len() && new.is_char_boundary(outcome.selection.start));
        }
    }
}
