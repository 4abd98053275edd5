use super::*;

const SPACES: Options = Options { tab_size: 8, tabs: false };

fn formatted(text: &str, options: Options) -> String {
    let tree = Tree::parse(text);
    let wanted = IndentRange { lines: 0..text.matches('\n').count() + 1, typing: false };
    apply(text, &format(&tree, &wanted, &Bodies::of(&tree), options))
}

fn apply(text: &str, changes: &[Change]) -> String {
    let mut new = text.to_owned();
    for (range, by) in changes.iter().rev() {
        new.replace_range(range.clone(), by);
    }
    new
}

/// Asserts that formatting restores the text's indentation after it was removed, and keeps it.
fn stays(text: &str) {
    let text = text.trim_start_matches('\n');
    let flat: Vec<&str> = text.split('\n').map(|line| line.trim_start_matches(' ')).collect();
    assert_eq!(formatted(&flat.join("\n"), SPACES), text);
    assert_eq!(formatted(text, SPACES), text);
}

#[test]
fn definitions_and_bodies() {
    stays(
        r#"
(defun f (a b
          &key c
            d
          &aux e)
  "Doc."
  (let ((x 1)
        (y (list 1
                 2)))
    (declare (ignore x))
    (when (and a
               b)
      (foo)
      (bar x
           y)))
  (list
   1
   2))

(defmethod area :after
    ((s square)
     y)
  1)

(defclass a (b
             c)
  ((x :initarg :x
      :reader x)
   (y))
  (:documentation "x"))

(defvar *x*
  1)

(defpackage :foo
  (:use :cl)
  (:export #:a
           #:b))

(defgeneric g (x)
  (:method ((x a))
    1))
"#,
    );
}

#[test]
fn control() {
    stays(
        r#"
(progn
  (if a
      b
      c)
  (cond ((foo)
         1)
        (t
         2))
  (case x
    (:a 1)
    ((:b :c)
     2
     3))
  (flet ((g (x)
           (+ x
              1))
         (h () 1))
    (g 1))
  (labels ((a (b
               c)
             1))
    1)
  (multiple-value-bind (a b)
      (foo)
    (bar))
  (handler-case (foo)
    (error (e)
      (bar e)))
  (unwind-protect
       (foo)
    (bar))
  (do ((i 0 (1+ i)))
      ((= i 3)
       i)
    (print i))
  (lambda (x)
    x)
  (tagbody
   a
     (foo)))
"#,
    );
}

#[test]
fn loops_quotes_guards_and_macros() {
    stays(
        r#"
(loop for x in y
      for z = 1
      when x
        collect x
        and collect z
      else
        do (foo)
           (bar)
      finally (return 1))

(loop for x in y do
  (foo)
  (bar))

(loop
  (foo)
  (bar))

(setf a '(let (b
               c)
          d)
      e `(let ((a 1))
           ,@(foo
              bar)))

(defmacro with-it ((x) y &body body)
  `(foo ,x
        ,y))

(cl:with-it (1)
    2
  #+sbcl
  (foo)
  #-sbcl (bar
          1)
  #(1
    2))
"#,
    );
}

/// Asserts the indentation of SLIME's slime-cl-indent.el, as `tests/format/compare` measures it.
#[test]
fn as_slime_indents() {
    stays(
        r#"
(deftest name.1
    (car
     x)
  1
  2)

(defrule integer
    (and digit
         (* digit))
  (:text t))

(define-constant +x+
    (list 1))

(deftest name.2
  :a)

(progn
  (cond
    ((foo)
     1)
    (t
     2))
  (let ((x
          (foo)))
    x)
  (multiple-value-bind
        (a b)
      (foo)
    a)
  (make-array 2 :element-type 'octet
                :fill-pointer t)
  (when x (foo)
        (bar))
  (prog1 1
    (foo))
  (loop for x in y
        while x do
          (foo)
          (bar))
  (loop for x in y
        do
           (foo))
  (loop ; why
        for x in y
        collect x))
"#,
    );
}

#[test]
fn rules_of_the_person_come_first() {
    let text = "(progn\n(with-it a\nb\nc)\n(when\na\nb))";
    let tree = Tree::parse(text);
    let mut bodies = Bodies::of(&tree);
    bodies.add_user_rule("WITH-IT", 2);
    bodies.add_user_rule("when", 0);
    let wanted = IndentRange { lines: 0..usize::MAX, typing: false };
    let new = apply(text, &format(&tree, &wanted, &bodies, SPACES));
    assert_eq!(new, "(progn\n  (with-it a\n      b\n    c)\n  (when\n    a\n    b))");
}

#[test]
fn comments_stay_with_what_they_are_about() {
    let text = ";;;; A\n   ; b\n(defun f ()\n;;; kept\n;; moves\n   (foo) ; one\n         ; two\n                                        ; far\n   #| x\n y |#\n   (bar))\n";
    let expected = ";;;; A\n; b\n(defun f ()\n;;; kept\n  ;; moves\n  (foo) ; one\n        ; two\n                                        ; far\n  #| x\n y |#\n  (bar))\n";
    assert_eq!(formatted(text, SPACES), expected);
    assert_eq!(formatted(expected, SPACES), expected);
}

#[test]
fn strings_symbols_and_characters_are_not_touched() {
    let text = "(foo \"a\n b\"\n|x\n y| #\\\n z\nb\\\n c)\n(a\n\"b\nc\" d\n  e)";
    let new = formatted(text, SPACES);
    assert_eq!(new, "(foo \"a\n b\"\n     |x\n y| #\\\n z\n     b\\\n c)\n(a\n \"b\nc\" d\n e)");
}

#[test]
fn tabs_crlf_blank_lines_and_what_is_broken() {
    assert_eq!(formatted("(progn\r\n(a\r\n  \r\nb))\r\n", SPACES), "(progn\r\n  (a\r\n\r\n   b))\r\n");
    let tabs = Options { tab_size: 4, tabs: true };
    assert_eq!(
        formatted("(defun foo (a b c d)\n  (let ((a 1)\n   (b 2))\n a))", tabs),
        "(defun foo (a b c d)\n  (let ((a 1)\n\t\t(b 2))\n\ta))"
    );
    let broken = "(defun f (\n x\n\n(a\nb)";
    assert_eq!(formatted(broken, SPACES), "(defun f (\n x\n\n(a\n b)");
    assert_eq!(formatted("\u{c}\n(a)\n  \u{c}\n", SPACES), "\u{c}\n(a)\n  \u{c}\n");
}

#[test]
fn a_line_that_is_typed_is_indented_though_nothing_closes() {
    let text = "(defun f (x)\n  (when x\n\n";
    let tree = Tree::parse(text);
    let changes = format(&tree, &IndentRange { lines: 2..3, typing: true }, &Bodies::default(), SPACES);
    assert_eq!(apply(text, &changes), "(defun f (x)\n  (when x\n    \n");
    let text = "(a)\n\n";
    let changes = format(&Tree::parse(text), &IndentRange { lines: 1..2, typing: true }, &Bodies::default(), SPACES);
    assert_eq!(changes, []);
}

#[test]
fn keywords_are_aligned_as_emacs_does() {
    // Two data before a keyword is another keyword, and so on to the head of the list.
    stays("(defpackage :a\n  (:use :cl :b\n        :c)\n  (:use :cl\n   :b))");
    stays("(f `(:name ,name\n     :path ,path))");
    stays("(f x :name name\n     :path path)");
    stays("(loop for x in y\n        thereis (f x))");
}

#[test]
fn arguments_below_a_head_alone_on_its_line_are_in_one_column() {
    stays("(make-thing\n a b :c 1\n :d 2\n #+x :e #+x 3\n :f 4)");
    stays("(f (make-thing\n    a :c 1\n    :d 2))");
    stays("(make-thing ; comment\n            a :c 1\n              :d 2)");
    stays("(make-thing a\n            b :c 1\n              :d 2)");
}

#[test]
fn values_for_different_features_are_one_argument() {
    stays("(open file :type #+a :one #-a :two\n           :other 1)");
    stays("(open file :type #+(or a b) :one #-(or a b) :two\n           :other 1)");
}

#[test]
fn the_words_and_forms_of_if_star() {
    stays(
        "(if* (f x)\n   then (g x)\n        (h x)\n elseif x\n   then\n       (g y)\n   else ; comment\n        (let ((x 1))\n          x))",
    );
    stays("(excl:if* (or a\n              b)\n   then a\n   else b)");
    stays("(if* é é\n   then ( ;; é\n         é))");
}

#[test]
fn the_body_of_a_lambda_in_function_is_below_function() {
    stays("(mapc (function (lambda (x)\n        x))\n      y)");
    stays("(typecase f\n  (function\n   (lambda (x)\n    x)))");
    stays("(mapc #'(lambda (x)\n          x)\n      y)");
}

#[test]
fn words_that_emacs_takes_for_clauses_stand_as_clauses() {
    stays("(loop for i of-type fixnum\n      from 1\n      upto 3\n      by 2\n      do (x))");
    stays("(loop for i from 1\n        to 3\n          below 4)");
    stays("(loop for x in y\n        initially (f x)\n      for z = 1)");
}

#[test]
fn a_macro_s_rest_parameter_does_not_tell_against_its_name() {
    stays("(defmacro with-round ((op block) &rest clauses)\n  1)\n\n(with-round (a b)\n  (c d)\n  (e f))");
    stays("(defmacro collect-round (op &rest clauses)\n  1)\n\n(collect-round (a b)\n               (c d))");
    let text = "(with-it a\nb)";
    let tree = Tree::parse(text);
    let told = |learn: fn(&mut Bodies)| {
        let mut bodies = Bodies::of(&tree);
        learn(&mut bodies);
        apply(text, &format(&tree, &IndentRange { lines: 0..2, typing: false }, &bodies, SPACES))
    };
    assert_eq!(told(|bodies| bodies.learn_macro("with-it", None)), "(with-it a\n  b)");
    assert_eq!(told(|bodies| bodies.learn("with-it", None)), "(with-it a\n         b)");
}

#[test]
fn the_elements_of_a_list_that_begins_on_the_line_below_its_parenthesis_are_in_one_column() {
    stays(
        r#"
(defvar *table*
  (
   #x1 #x2
   #x3 #x4))
"#,
    );
}

#[test]
fn a_macro_of_the_text_with_a_standard_name_is_indented_as_the_standard_s() {
    stays(
        r#"
(defmacro defmethod (&whole form name &body body)
  (list form name body))

(defmethod area :after
    ((s square)
     y)
  1)
"#,
    );
}

#[test]
fn loop_keywords_written_as_keywords_are_indented_as_others() {
    stays(
        r#"
(loop :for name :in names
      :for other = (f name)
        :thereis (g other))

(loop for name in names
      for other = (f name)
        thereis (g other))
"#,
    );
}
