//! A program that is left by non-local exits and handles conditions: recorded by a debugger and by
//! an agent alike.

/// The name of the program's file.
pub const NAME: &str = "exits.lisp";

/// The text of the program's file.
pub const TEXT: &str = r#"(defpackage :exits (:use :cl))
(in-package :exits)
(defun thrower (n)
  (throw 'out (list :thrown n)))
(defun catcher (n)
  (list (catch 'out
          (thrower n))))
(defun failing (n)
  (error "boom ~A" n))
(defun handling (n)
  (handler-case (failing n)
    (error (e)
      (list :handled (type-of e)))))
(defun using (n)
  (handler-bind ((error (lambda (e)
                          (use-value (list :used (type-of e))))))
    (restart-case (failing n)
      (use-value (v) v))))
(defun cleaned (n)
  (let ((seen '()))
    (catch 'out
      (unwind-protect (thrower n)
        (push (list :cleanup n) seen)))
    seen))
"#;

/// The form that is recorded, and its value.
pub const CODE: &str = "(list (exits::catcher 1) (exits::handling 2) (exits::using 3) (exits::cleaned 4))";
/// The value of [`CODE`].
pub const VALUE: &str = "(((:THROWN 1)) (:HANDLED SIMPLE-ERROR) (:USED SIMPLE-ERROR) ((:CLEANUP 4)))";

/// The steps of a debugger through the recording: the depth, the line, and the text of each.
pub const STEPS: &[(usize, u64, &str)] = &[
    (1, 1, "the form"),
    (2, 5, "(exits::catcher 1)"),
    (3, 3, "(exits::thrower 1)"),
    (3, 4, "(list :thrown n) => (:thrown 1)"),
    (3, 4, "(exits::thrower 1) left by a non-local exit"),
    (2, 6, "(catch 'out ... => (:thrown 1)"),
    (2, 6, "(list (catch 'out ... => ((:thrown 1))"),
    (2, 5, "(exits::catcher 1) => ((:thrown 1))"),
    (1, 1, "(exits::catcher 1) => ((:thrown 1))"),
    (2, 10, "(exits::handling 2)"),
    (3, 8, "(exits::failing 2)"),
    (3, 9, "(error \"boom ~A\" n) signals #<simple-error format-control \"boom ~A\" format-arguments (2)>"),
    (3, 9, "(exits::failing 2) left by a non-local exit"),
    (2, 13, "(type-of e) => simple-error"),
    (2, 13, "(list :handled (type-of e)) => (:handled simple-error)"),
    (2, 11, "(handler-case (failing n) ... => (:handled simple-error)"),
    (2, 10, "(exits::handling 2) => (:handled simple-error)"),
    (1, 1, "(exits::handling 2) => (:handled simple-error)"),
    (2, 14, "(exits::using 3)"),
    (3, 8, "(exits::failing 3)"),
    (3, 9, "(error \"boom ~A\" n) signals #<simple-error format-control \"boom ~A\" format-arguments (3)>"),
    // The handler's forms, called by the function that fails.
    (3, 16, "(type-of e) => simple-error"),
    (3, 16, "(list :used (type-of e)) => (:used simple-error)"),
    (3, 16, "(exits::failing 3) left by a non-local exit"),
    (2, 17, "(restart-case (failing n) ... => (:used simple-error)"),
    (2, 15, "(handler-bind ((error (lambda (e) ... => (:used simple-error)"),
    (2, 14, "(exits::using 3) => (:used simple-error)"),
    (1, 1, "(exits::using 3) => (:used simple-error)"),
    (2, 19, "(exits::cleaned 4)"),
    (3, 3, "(exits::thrower 4)"),
    (3, 4, "(list :thrown n) => (:thrown 4)"),
    (3, 4, "(exits::thrower 4) left by a non-local exit"),
    (2, 23, "(list :cleanup n) => (:cleanup 4)"),
    (2, 23, "(push (list :cleanup n) seen) => ((:cleanup 4))"),
    (2, 21, "(catch 'out ... => (:thrown 4)"),
    (2, 20, "(let ((seen '())) ... => ((:cleanup 4))"),
    (2, 19, "(exits::cleaned 4) => ((:cleanup 4))"),
    (1, 1, "(exits::cleaned 4) => ((:cleanup 4))"),
];

/// The calls of the recording, with what ended each.
pub const CALLS: &[&str] = &[
    "(exits::catcher 1) => ((:thrown 1))",
    "(exits::thrower 1) left by a non-local exit",
    "(exits::handling 2) => (:handled simple-error)",
    "(exits::failing 2) left by a non-local exit",
    "(exits::using 3) => (:used simple-error)",
    "(exits::failing 3) left by a non-local exit",
    "(exits::cleaned 4) => ((:cleanup 4))",
    "(exits::thrower 4) left by a non-local exit",
];
