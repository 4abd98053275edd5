//! Tests of the comments of conditionals.

use std::time::Duration;

use expect_test::expect;

use super::*;
use crate::ide::refactor::comments::{all, first_line};
use crate::text::thread_time::Limit;

#[test]
fn each_comment_stays_with_its_branch() {
    for (id, text, expected) in [
        (
            "cond-to-if",
            "(cond‸ ;; by size\n      ((a) ; when a\n       b) ; after\n      ;; second\n      ((c)\n       ;; first of two\n       d ; d\n       e ; e\n       )\n      ;; otherwise\n      (t ; else\n       f ; f\n       )\n      ;; end\n      )",
            expect![[r#"
                Write as if
                (if (a) ; when a
                    ;; by size
                    b ; after
                    ;; second
                    (if (c)
                        (progn
                          ;; first of two
                          d ; d
                          e) ; e
                        ;; otherwise
                        ; else
                        f) ; f
                    ;; end
                    )
            "#]],
        ),
        (
            "cond-to-if",
            "(cond‸\n  ;; No input.\n  ((null x) a)\n  ;; One.\n  ((= x 1) b)\n  ;; More.\n  (t (c) ; c\n     (d) ; d\n  ))",
            expect![[r#"
                Write as if
                (if (null x)
                    ;; No input.
                    a
                    ;; One.
                    (if (= x 1) b
                        ;; More.
                        (progn
                          (c) ; c
                          (d))) ; d
                    )
            "#]],
        ),
        (
            "cond-to-if",
            "(cond‸ (;; is it\n       (a) ; test\n       b)\n      (#| why |# (c) d))",
            expect![[r#"
            Write as if
            (if (a) ; test
                ;; is it
                b
                (if (c) #| why |# d))
        "#]],
        ),
        (
            "cond-to-if",
            "(cond‸ ((a) b) ; one\n      ((c) d)) ; two",
            expect![[r#"
            Write as if
            (if (a) b ; one
                (if (c) d)) ; two
        "#]],
        ),
        (
            "if-to-cond",
            "(‸if ;; is it\n    (a) ; a\n    b ; b\n    ;; or\n    (if ;; c\n        (c)\n        ;; d\n        d ; d\n        ;; else\n        (progn ; two\n          e ; e\n          f ; f\n          ) ; no more\n        ))",
            expect![[r#"
                Write as cond
                (cond ;; is it
                  ((a) ; a
                   b) ; b
                  ;; or
                  ;; c
                  ((c)
                   ;; d
                   d) ; d
                  ;; else
                  (t
                   ; two
                   e ; e
                   f ; f
                   ) ; no more
                  )
            "#]],
        ),
        (
            "if-to-cond",
            "(‸if (a)\n    b\n    (if (c) d ; d\n        ))",
            expect![[r#"
            Write as cond
            (cond ((a)
                   b)
                  ((c) d) ; d
                  )
        "#]],
        ),
        (
            "when-to-if",
            "(‸when (a) ; a\n  ;; first\n  b ; b\n  ;; second\n  c ; c\n  )",
            expect![[r#"
            Write as if
            (if (a) ; a
                (progn
                  ;; first
                  b ; b
                  ;; second
                  c) ; c
                )
        "#]],
        ),
        (
            "unless-to-if",
            "(‸unless (not (a)) ; a\n  ;; first\n  b)",
            expect![[r#"
            Write as if
            (if (a) ; a
                ;; first
                b)
        "#]],
        ),
        (
            "if-to-when",
            "(‸if (a)\n    ;; do it\n    b ; b\n    ;; nothing\n    nil ; nil\n    )",
            expect![[r#"
            Write as when
            (when (a)
              ;; do it
              b ; b
              ;; nothing
              ; nil
              )
        "#]],
        ),
        (
            "if-to-when",
            "(‸if (a) b nil) ; b",
            expect![[r#"
            Write as when
            (when (a) b) ; b
        "#]],
        ),
        (
            "if-to-unless",
            "(‸if (a) nil ; nothing\n    ;; do it\n    (progn ; two\n      b\n      c))",
            expect![[r#"
            Write as unless
            (unless (a) ; nothing
              ;; do it
              ; two
              b
              c)
        "#]],
        ),
        (
            "if-to-unless",
            "(‸if (a) #| x |# nil (b))",
            expect![[r#"
            Write as unless
            (unless (a) #| x |# (b))
        "#]],
        ),
        (
            "when-to-unless",
            "(‸when ;; why\n  (a) ; a\n  b)",
            expect![[r#"
            Write as unless
            (unless ;; why
                (not (a)) ; a
              b)
        "#]],
        ),
    ] {
        check(text, id, expected);
    }
}

#[test]
fn a_comment_at_any_place_is_written_once() {
    let forms = [
        "(if (a) nil (b))",
        "(if (a) (b) nil)",
        "(if (a) (b))",
        "(if (not (a)) (progn (b) (c)) (d))",
        "(if (a) (b) (if (c) (d) (e)))",
        "(when (a) (b) (c))",
        "(unless (not (a)) (b))",
        "(cond ((a) (b)) ((c) (d) (e)) (t (f)))",
    ];
    let ids = [
        "if-to-when",
        "if-to-unless",
        "invert-if",
        "if-to-cond",
        "when-to-if",
        "when-to-unless",
        "unless-to-if",
        "unless-to-when",
        "cond-to-if",
    ];
    let (mut wrong, mut written) = (Vec::new(), 0);
    for form in forms {
        for (at, _) in form.match_indices([' ', ')']) {
            for comment in [" #| c |# ", " ; c\n "] {
                let text = format!("(‸{}{comment}{}", &form[1..at], &form[at..]);
                let is_made = |found: &String| !found.contains("not offered") && !found.contains("refused: ");
                let results = ids.map(|id| refactored(&[("a.lisp", &text)], id));
                for found in results.iter().filter(|found| is_made(found)) {
                    written += 1;
                    if found.matches(comment.trim()).count() != 1 {
                        wrong.push(format!("{text}\n{found}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(written > 100, "{written} refactorings were made");
}

#[test]
fn a_condition_without_a_blank_behind_it_stays_apart() {
    check(
        "(‸if a()b)",
        "if-to-unless",
        expect![[r#"
        Write as unless
        (unless a b)
    "#]],
    );
}

#[test]
fn comments_are_told_apart() {
    assert_eq!(all("#|#|a|#|# b ; c\n#|d"), [(0, 9), (12, 15), (16, 19)]);
    assert_eq!(all("#|||#|#"), [(0, 5)]);
    assert_eq!(first_line("#|a\n|# #|\n|#\nb"), 12);
    assert_eq!(first_line("; a\nb"), 3);
    assert_eq!(first_line("#|a\n"), 4);
}

/// Returns the least of three measurements, in seconds.
fn cost(text: &str, run: fn(&str) -> usize) -> f64 {
    let measured = (0..3).map(|_| {
        let limit = Limit::after(Duration::MAX);
        assert_eq!(run(text), text.len());
        limit.used().as_secs_f64()
    });
    measured.fold(f64::MAX, f64::min)
}

#[test]
fn comments_are_found_in_linear_time() {
    let nested = [20_000, 80_000].map(|count| "#|".repeat(count) + &"|#".repeat(count));
    let costs = nested.map(|text| cost(&text, |text| all(text)[0].1));
    assert!(costs[1] < 7.0 * costs[0], "four times as many marks: {costs:?} seconds");
    let many = [20_000, 80_000].map(|count| "#|\n|#".repeat(count));
    let costs = many.map(|text| cost(&text, first_line));
    assert!(costs[1] < 7.0 * costs[0], "four times as many comments: {costs:?} seconds");
}
