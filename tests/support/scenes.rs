//! Scenes of breakpoints and steps, which a debugger and an agent play alike.

/// The name of the scenes' file.
pub const NAME: &str = "scenes.lisp";

/// The text of the scenes' file.
pub const TEXT: &str = r#"(defpackage :scenes (:use :cl))
(in-package :scenes)
(defun same (x)
  (identity x))
(defun in-local (n)
  (labels ((walk (k)
             (if (zerop k)
                 (list :end n)
                 (walk (- k 1)))))
    (flet ((twice (x)
             (* 2 x)))
      (list (twice n) (walk n)))))
(defun (setf shelf) (new place)
  (let ((old (car place)))
    (setf (car place) (+ new 1))
    (list old new)))
(defclass base () ((a :initarg :a
                      :initform
                      (list 1 2) :accessor a)))
(defclass derived (base) ())
(defgeneric act (x y))
(defmethod act ((x base) y)
  (list :base y))
(defmethod act :before ((x base) y)
  (setf (a x) (list :before y)))
(defmethod act :after ((x base) y)
  (setf (a x) (list :after (a x))))
(defmethod act :around ((x derived) y)
  (let ((result (call-next-method)))
    (list :around result (a x))))
(defun calls-act (y)
  (let ((object (make-instance 'derived)))
    (list (act object y))))
(define-compiler-macro squared (x)
  (list '* x x))
(define-setf-expander odd (place)
  (values '() '() '(s) (list 'setf place 's) place))
(deftype small (n)
  (list 'integer 0 n))
(defstruct thing
  (count
   (random 10)))
(defun clauses (how)
  (handler-case
      (restart-case
          (unwind-protect
               (ecase how
                 (:error (error "no"))
                 (:restart (invoke-restart 'mine 5))
                 (:throw (throw 'tag :thrown)))
            (same how))
        (mine (v)
          (list :restarted v)))
    (error (e)
      (list :handled (princ-to-string e)))))
(defun without-error (x)
  (handler-case
      (floor x 2)
    (error () (list :error))
    (:no-error (q r)
      (list q r))))
(defun bound (x)
  (handler-bind ((error (lambda (e)
                          (use-value (list x (princ-to-string e))))))
    (restart-case (error "no")
      (use-value (v) v))))
(defun with-restart (x)
  (restart-bind ((mine (lambda (v)
                         (return-from with-restart (list x v)))))
    (invoke-restart 'mine 3)))
(defun looping (items)
  (loop for x in
          (copy-list items)
        for y =
          (* x 2)
        when (evenp x)
          collect
          (list x y)
        finally
           (same :done)))
(defun items (n)
  (list n (* 2 n)))
(defun each (n)
  (let ((sum 0))
    (dolist (item
             (items n))
      (incf sum item))
    (list sum)))
(defun mapping (items)
  (mapcar (lambda (x)
            (list x (* x x)))
          items))
(defun counter (n)
  (lambda (x)
    (incf n x)))
(defun tail-a (x)
  (tail-b (+ x 1)))
(defun tail-b (x)
  (list :b x))
(defun calls-tail (x)
  (let ((found
          (tail-a x)))
    (list found)))
(defun leaves (x)
  (block here
    (return-from here (* 3 x)))
  (same 3)
  (list :left x))
(defun throws (x)
  (throw 'tag (list x)))
(defun catches (x)
  (let ((got (catch 'tag
               (throws x)
               (same 2))))
    (list :got got)))
(defun several (x)
  (values x (floor x 2)))
(defun uses-several (x)
  (multiple-value-list
   (several x)))
"#;

/// What is done at a breakpoint.
#[derive(Debug)]
pub struct Scene {
    /// The form that the breakpoint is at, the first of its line.
    pub at: &'static str,
    /// The form that is evaluated.
    pub code: &'static str,
    /// Steps (`over`, `into`, `out`) once the breakpoint is removed, each with the begin of the
    /// form where it ends.
    pub steps: &'static [(&'static str, &'static str)],
    /// The value after the last step.
    pub value: &'static str,
}

const fn scene(
    at: &'static str,
    code: &'static str,
    steps: &'static [(&'static str, &'static str)],
    value: &'static str,
) -> Scene {
    Scene { at, code, steps, value }
}

const ACT: &str = "(scenes::calls-act 1)";
const ACTED: &str = "((:AROUND (:BASE 1) (:AFTER (:BEFORE 1))))";

/// All scenes in which a program stops.
pub const SCENES: &[Scene] = &[
    scene("(list :end n)", "(scenes::in-local 3)", &[], "(6 (:END 3))"),
    scene("(* 2 x)", "(scenes::in-local 3)", &[("out", "(twice n)")], "(6 (:END 3))"),
    scene(
        "(setf (car place)",
        "(let ((l (list 1))) (list (setf (scenes::shelf l) 5) l))",
        &[("over", "(+ new 1)")],
        "((1 5) (6))",
    ),
    scene("(list :base y)", ACT, &[], ACTED),
    scene("(setf (a x) (list :before", ACT, &[("over", "(list :before y)")], ACTED),
    scene("(setf (a x) (list :after", ACT, &[], ACTED),
    scene("(let ((result (call", ACT, &[("over", "(call-next"), ("over", "(call-next"), ("over", "(list :ar")], ACTED),
    scene("(list (act object y))", ACT, &[("into", "(act object y)"), ("into", "(let ((result (call")], ACTED),
    scene("(list :handled", "(scenes::clauses :error)", &[("over", "(princ-to")], "(:HANDLED \"no\")"),
    scene("(list :restarted v)", "(scenes::clauses :restart)", &[], "(:RESTARTED 5)"),
    scene(
        "(same how)",
        "(scenes::clauses :error)",
        &[("over", "(same how)"), ("over", "(list :handled")],
        "(:HANDLED \"no\")",
    ),
    scene("(same how)", "(catch 'scenes::tag (scenes::clauses :throw))", &[("over", "(same how)")], ":THROWN"),
    scene("(list q r)", "(scenes::without-error 5)", &[], "(2 1)"),
    scene("(floor x 2)", "(scenes::without-error 5)", &[("over", "(list q r)")], "(2 1)"),
    scene("(use-value (list x", "(scenes::bound 7)", &[("over", "(list x (princ")], "(7 \"no\")"),
    scene("(return-from with-restart", "(scenes::with-restart 4)", &[("over", "(list x v)")], "(4 3)"),
    scene(
        "(copy-list items)",
        "(scenes::looping '(1 2))",
        &[("over", "(copy-list items)"), ("over", "(* x 2)")],
        "((2 4))",
    ),
    scene("(* x 2)\n        when", "(scenes::looping '(1 2))", &[], "((2 4))"),
    scene("(list x y)", "(scenes::looping '(1 2))", &[], "((2 4))"),
    scene("(same :done)", "(scenes::looping '(1 2))", &[("into", "(identity x)"), ("out", "(same :done)")], "((2 4))"),
    scene("(items n)", "(scenes::each 3)", &[("into", "(list n (* 2 n))"), ("out", "(items n)")], "(9)"),
    scene("(list x (* x x))", "(scenes::mapping '(3))", &[("over", "(* x x)")], "((3 9))"),
    scene("(incf n x)", "(funcall (scenes::counter 1) 2)", &[], "3"),
    scene(
        "(tail-a x)",
        "(scenes::calls-tail 1)",
        &[
            ("into", "(tail-b (+ x 1))"),
            ("into", "(+ x 1)"),
            ("into", "(+ x 1)"),
            ("into", "(list :b x)"),
            ("out", "(tail-a x)"),
            ("over", "(list found)"),
        ],
        "((:B 2))",
    ),
    scene(
        "(return-from here",
        "(scenes::leaves 1)",
        &[("over", "(* 3 x)"), ("over", "(block here"), ("over", "(same 3)")],
        "(:LEFT 1)",
    ),
    scene("(throws x)", "(scenes::catches 1)", &[("over", "(catch 'tag"), ("over", "(list :got got)")], "(:GOT (1))"),
    scene(
        "(throws x)",
        "(scenes::catches 1)",
        &[("into", "(throw 'tag (list"), ("over", "(list x)"), ("over", "(catch 'tag")],
        "(:GOT (1))",
    ),
    scene("(several x)", "(scenes::uses-several 5)", &[("into", "(values x")], "(5 2)"),
];

/// Forms in which breakpoints wait until they are evaluated, each with the name of what defines.
pub const WAITING: &[(&str, &str)] = &[
    ("(list '* x x)", "DEFINE-COMPILER-MACRO"),
    ("(values '() '()", "DEFINE-SETF-EXPANDER"),
    ("(list 'integer", "DEFTYPE"),
    ("(random 10)", "DEFSTRUCT"),
    ("(list 1 2)", "DEFCLASS"),
];

/// The line and the column, from 1, of the begin of `part` in the scenes' text.
pub fn place(part: &str) -> (usize, usize) {
    let at = TEXT.find(part).unwrap_or_else(|| panic!("{part} is in the text"));
    let line = TEXT[..at].rfind('\n').map_or(0, |newline| newline + 1);
    (TEXT[..at].matches('\n').count() + 1, at - line + 1)
}
