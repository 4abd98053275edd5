//! The invariants of `fuzz/invariants.rs`, on the fuzzer's seeds, on every way of cutting them, and
//! on random texts.

use proptest::prelude::*;

#[path = "../../fuzz/invariants.rs"]
#[allow(unreachable_pub)]
mod invariants;

const SEEDS: [&str; 3] = [
    include_str!("../../fuzz/seeds/tour.lisp"),
    include_str!("../../fuzz/seeds/broken.lisp"),
    include_str!("../../fuzz/seeds/unicode.lisp"),
];

#[test]
fn they_hold_of_the_seeds_cut_anywhere_and_with_any_character_gone() {
    for seed in SEEDS {
        for (byte, _) in seed.char_indices() {
            let offset = seed[..byte].chars().count();
            invariants::check(&seed[..byte], 0, 0, "");
            invariants::check(&seed[byte..], 0, 1, ")");
            invariants::check(seed, offset, offset + 1, "");
            let inserted = ["(", ")", "\"", "|", "#|", "\\", "'", "\n("];
            invariants::check(seed, offset, offset, inserted[offset % inserted.len()]);
        }
    }
}

#[test]
fn they_hold_of_bytes_from_a_fuzzer() {
    for seed in SEEDS {
        let data = [&[7, 0, 90, 0], seed.as_bytes(), &[1], b"(defun \xFF\""].concat();
        for end in (0..data.len()).step_by(4) {
            invariants::check_bytes(&data[..end]);
        }
    }
}

#[test]
fn they_hold_of_what_the_fuzzer_found() {
    let text = "\0\0\0\r\n(b é𝄞 \u{2028})\r(c)\u{c}\n\u{feff}(d \\梢 |梼)|";
    invariants::check(text, 100, 100, ")\n#!(b é𝄞 (/usr#!\u{fffd}a)\r\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn they_hold_of_random_texts(
        text in "([()\"|;#'`,@\\\\ \n\r\t+a-c1é漢]|\n\\(def|#\\||\\|#|#\\\\){0,80}",
        from in 0usize..90, length in 0usize..12, by in "([()\"|;#\\\\ \na]|\n\\(def|#\\|){0,6}",
    ) {
        invariants::check(&text, from, from + length, &by);
    }
}
