//! Stops that a debugger and an agent look at and leave alike.

/// A function that fails, with the restart USE-OTHER, and one that calls it.
pub const FAILS: &str = "(defun fails (x) (restart-case (error \"boom ~A\" x) (use-other (value) :report \"Use another.\" (list :used value))))
                         (defun outer (x y) (list (fails x) y))";

/// Definitions that stop in odd places.
pub const ODD: &str = "(defmacro of-kind (kind) (list 'quote (list :kind (fails kind))))
(declaim (inline half))
(defun half (x) (/ x (second (fails x))))
(defun halves (x) (list (half x)))
(defun cleaned (x) (unwind-protect (list :body x) (fails x)))
(defun deep (n) (list (deep (1+ n))))";

/// Each: the form, the frame that must be there, and the value after the restart USE-OTHER with 2.
pub const STOPS: &[(&str, &str, &str)] = &[
    ("(list :read '#.(fails :k))", "FAILS", "(:READ (:USED 2))"),
    ("(macroexpand-1 '(of-kind :a))", "(MACRO-FUNCTION OF-KIND)", "'(:KIND (:USED 2))\nT"),
    ("(halves 4)", "HALVES", "(2)"),
    ("(cleaned 7)", "CLEANED", "(:BODY 7)"),
    ("(mapcar (lambda (x) (fails x)) (list 1))", "FAILS", "((:USED 2))"),
    ("(handler-case (signal (make-condition 'error)) (error () (list (fails 1))))", "FAILS", "((:USED 2))"),
    ("(funcall (compile nil '(lambda () (fails 3))))", "FAILS", "(:USED 2)"),
];

/// Definitions whose frames are returned from and restarted.
pub const FRAMES: &str = "(defun middle (x) (let ((got (multiple-value-list (fails x)))) (list :middle got)))
(defun top (x) (let ((got (multiple-value-list (middle x)))) (list :top got)))
(defgeneric area (x))
(defmethod area (x) (list :area (fails x)))
(defun calls-area (x) (list (area x)))";

/// Returns from frames: the frame, the code, and the value of `(top 1)`.
pub const RETURNS: &[(&str, &str, &str)] = &[
    ("MIDDLE", "(values 1 2 3)", "(:TOP (1 2 3))"),
    ("MIDDLE", "(values)", "(:TOP NIL)"),
    ("FAILS", "(values x (list x))", "(:TOP ((:MIDDLE (1 (1)))))"),
];

/// Code that fails, or that cannot be read, and the type of its error.
pub const WRONG: &[(&str, &str)] = &[("(car 5)", "TYPE-ERROR"), ("(car", "END-OF-FILE")];

/// Frames that are restarted after a definition was replaced: the form, the new definition, the
/// frame, and the value.
pub const REPLACED: &[(&str, &str, &str, &str)] = &[
    ("(top 1)", "(defun middle (x) (values :new x))", "MIDDLE", "(:TOP (:NEW 1))"),
    ("(calls-area 1)", "(defmethod area (x) (list :new x))", "(METHOD AREA (T))", "((:NEW 1))"),
];

/// Definitions of a class whose PRINT-OBJECT does not end, and a form that stops with an instance
/// in a local variable.
pub const UNPRINTABLE: (&str, &str) = (
    "(progn (defclass odd () ()) (defmethod print-object ((x odd) stream) (declare (ignore stream)) (loop)) nil)",
    "(let ((odd (make-instance 'odd))) (list (fails 1) (null odd)))",
);

/// Code that fills the stack or the heap, and a part of its error.
pub const FULL: &[(&str, &str)] = &[("(deep 0)", "EXHAUSTED"), ("(make-array (expt 10 11))", "HEAP-EXHAUSTED")];
