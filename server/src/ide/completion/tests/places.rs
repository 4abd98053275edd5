//! Tests of completion at places where the reader or the surrounding form allows only certain
//! names.

use super::*;

#[test]
fn characters_are_completed_by_their_names() {
    check(
        FakeImage::absent(),
        "(list #\\Sp‸)",
        expect![[r#"
            #\Space (character)
        "#]],
    );
    let found = run(complete(&cursor(FakeImage::absent(), &[("a.lisp", "(list #\\n‸)")]), Path::new("/no"))).unwrap();
    assert_eq!((found.typed.as_str(), found.replace), ("#\\n", Span { start: 6, end: 9 }));
}

#[test]
fn no_name_is_offered_where_the_reader_allows_none() {
    for text in ["(list #b1‸)", "(list #x1‸)", "(foo)‸", "(f \"a\"‸ x)", "(list #*1‸)"] {
        check(
            image(),
            text,
            expect![[r#"
                no completion
            "#]],
        );
    }
}

#[test]
fn features_are_those_of_the_image_and_of_the_texts() {
    let image = || FakeImage::empty().answer("homes", "", json!({"homes": [], "features": ["SB-THREAD", "SBCL"]}));
    check(
        image(),
        "#+sb-mine (f)\n(list #+sb‸ 1)",
        expect![[r#"
            sbcl (feature of the image)
            sb-thread (feature of the image)
            sb-mine (feature in a text)
            sb-unicode (feature)
        "#]],
    );
    check(
        image(),
        "(list #+(or :sb-t‸) 1)",
        expect![[r#"
            :sb-thread (feature of the image)
        "#]],
    );
    check(
        FakeImage::absent(),
        "#+(‸)",
        expect![[r#"
            and (operator)
            not (operator)
            or (operator)
        "#]],
    );
    check(
        FakeImage::absent(),
        "#-cc‸",
        expect![[r#"
            ccl (feature)
        "#]],
    );
}

#[test]
fn only_a_loop_keyword_follows_a_complete_form_of_a_clause() {
    check(
        FakeImage::absent(),
        "(loop for i from 1 to 10 co‸)",
        expect![[r#"
            count (loop keyword)
            collect (loop keyword)
            counting (loop keyword)
            collecting (loop keyword)
        "#]],
    );
    check(
        FakeImage::absent(),
        "(loop repeat 3 do (print 1) fi‸)",
        expect![[r#"
            finally (loop keyword)
            fixnum (class, COMMON-LISP)
            first (function, COMMON-LISP)
            fill-pointer (function, COMMON-LISP)
        "#]],
    );
    check(
        FakeImage::absent(),
        "(loop for item in items collect it‸)",
        expect![[r#"
            item (local variable (loop))
            items (in this text)
            internal-time-units-per-second (variable, COMMON-LISP)
            with-package-iterator (macro, COMMON-LISP)
        "#]],
    );
}

#[test]
fn the_name_that_is_being_defined_is_not_offered() {
    let labels = |text: &str| {
        let found = run(complete(&cursor(FakeImage::absent(), &[("a.lisp", text)]), Path::new("/no"))).unwrap();
        let own = found.items.into_iter().filter(|item| item.package.is_none());
        own.map(|item| item.label).collect::<Vec<String>>()
    };
    assert_eq!(labels("(defmethod run-it (x) x)\n(defmethod run‸ ((x widget)) x)"), ["run-it"]);
    assert_eq!(labels("(defvar *ra‸ 1)"), [""; 0]);
    assert_eq!(labels("(defgeneric rug (x))\n(defmethod rug‸ ((x widget)) x)"), ["rug"]);
}

#[test]
fn slots_of_an_unknown_class_are_those_of_the_workspace() {
    let labels = |instance: &str| {
        let zoo = FakeImage::absent()
            .file("b.lisp", "(in-package :zoo)\n(defclass bird () (wings weight))")
            .file("c.lisp", "(in-package :zoo)\n(defclass worm () (width))");
        let text = format!("(in-package :zoo)\n(defun f (x) (slot-value {instance} 'w‸))");
        let found = run(complete(&cursor(zoo, &[("a.lisp", &text)]), Path::new("/no"))).unwrap();
        let first: Vec<String> = found.items.into_iter().take(3).map(|item| item.detail).collect();
        first.join(", ")
    };
    assert_eq!(labels("x"), "slot of worm, slot of bird, slot of bird");
    assert_eq!(labels("(the bird x)"), "slot of bird, slot of bird, macro");
}
