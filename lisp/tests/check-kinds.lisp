;;;; The code of each kind of finding, as this SBCL signals it; and that what a user's macro says is
;;;; not taken for the compiler's words.
;;;;
;;;;   sbcl --noinform --non-interactive --no-userinit --load lisp/tests/check-kinds.lisp

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defun codes-of (text)
  "The codes of what the check of TEXT finds."
  (multiple-value-bind (lines code signal) (check-lines (coerce text 'text) :path "/nowhere/text.lisp" :unreachable t)
    (if (and (eql code 0) (null signal))
        (mapcar (lambda (diagnostic) (field diagnostic "code")) (diagnostics-of lines))
        (list (format nil "the copy ended with ~A, ~A" code signal)))))

;;; A function whose name begins as those of definers do.
(defun cl-user::deflated (a b) (list a b))
(let* ((text "(deflated unknown-one (list unknown-one))")
       (place (position #\u text)))
  (test "a-function-whose-name-begins-with-def"
    (expect (equalp (vector place (+ place (length "unknown-one")))
                    (field (first (diagnostics-of (check-lines (coerce text 'text) :path "/nowhere/text.lisp"))) "span"))
            "its first argument is no name")))

(defvar *directory* (fresh-directory) "A directory that no copy may write in.")
(defvar *victim* (concatenate 'string *directory* "victim") "A file that no copy may delete.")
(with-open-file (out *victim* :direction :output) (write-string "untouched" out))

(loop for (code . programs) in
      `(("unused-variable" "(defun f (x) 1)")
        ("unread-variable" "(defun f () (let ((x 1)) (setq x 2) nil))")
        ("ignored-variable-used" "(defun f (x) (declare (ignore x)) (list x))")
        ("ignore-unknown" "(defun f () (declare (ignore zz)) 1)")
        ("unused-function" "(defun f () (flet ((g () 1)) 2))")
        ("unreachable-code" "(defun f () (progn (return-from f 1) (print 2)))")
        ("wrong-argument-count" "(defun f () (car 1 2))" "(defun f () (flet ((g (x) x)) (g 1 2)))" "(defun g (x) x) (defun f () (g 1 2))")
        ("odd-keyword-arguments" "(defun f () (make-hash-table :test))")
        ("unknown-keyword" "(defun f () (make-hash-table :tset 1))" "(defun f () (flet ((g (&key a) a)) (g :b 1)))")
        ("constant-modified" "(defun f () (sort '(1 2) #'<))")
        ("set-constant" "(defun f () (setq pi 3))" "(defun f () (let ((t 1)) t))")
        ("type-conflict" "(defun f () (+ 1 \"a\"))" "(defun f () (let ((x \"a\")) (+ x 1)))" "(defun f (x) (if (stringp x) (1+ x)))")
        ("duplicate-case-key" "(defun f (x) (case x (1 2) (1 3)))")
        ("duplicate-variable" "(defun f (x x) x)" "(defun f () (let ((x 1) (x 2)) x))")
        ("format-arguments" "(defun f () (format nil \"~A\"))" "(defun f () (format nil \"~A\" 1 2))" "(defun f () (error \"~A ~A\" 1))")
        ("constant-folding" "(defun f () (/ 1 0))")
        ("unknown-block" "(defun f () (return-from nowhere 1))")
        ("unknown-tag" "(defun f () (tagbody (go a)))")
        ("malformed-binding" "(defun f () (let ((a 1 2)) a))" "(defun f () (let x 1))")
        ("malformed-lambda-list" "(defun f (&optional &optional) 1)")
        ("optional-and-key" "(defun f (&optional a &key b) (list a b))")
        ("illegal-call" "(defun f () ((list 1)))" "(list (\"a\"))")
        ("malformed-form" "(defun f () (if))" "(defun f () (flet (g) 1))" "(symbol-macrolet ((a)) a)")
        ("macro-expansion" "(defun f () (when))" "(defun f () (loop foo 3))" "(defmacro m (a) a) (defun f () (m))"
                           "(defmacro m () (error \"Permission denied, says ~A\" 'me)) (defun f () (m))"
                           "(defmacro m () (error \"Operation not permitted\")) (m)")
        ("deprecated" "(eval-when (compile) (defvar *a* 1))")
        ("unknown-class" "(defmethod m ((x no-such)) x)")
        ("unknown-package" "(in-package :no-such-package)")
        ("redefinition" "(defmacro yy () 1) (defun yy () 1)")
        ("duplicate-definition" "(defun dd () 1) (defun dd () 2)")
        ;; The system's refusal, told as it is or by another condition.
        ("confined" ,(format nil "(defmacro m () (delete-file ~S)) (m)" *victim*)
                    ,(format nil "(defmacro m () (handler-case (delete-file ~S) (error (e) (error \"In vain: ~~A\" e)))) (m)" *victim*)
                    ,(format nil "(eval-when (:compile-toplevel) (sb-posix:mkdir ~S 448))" (concatenate 'string *directory* "new")))
        ("compile-time-error" "(eval-when (:compile-toplevel) (error \"Permission denied by me\"))")
        ;; The compiler's words in a user's mouth.
        ("compiler" "(defmacro m () (warn \"The class ~A does not match anything\" 'x) nil) (m)"
                    "(defmacro m () (warn \"X is defined but never used: odd number of keyword arguments\") nil) (m)")
        ("style" "(defmacro m () (warn 'sb-int:simple-style-warning :format-control \"Duplicate key, in lambda list\") nil) (m)"
                 "(eval-when (:compile-toplevel) (define-condition c (style-warning) () (:report \"Derived type is malformed\"))) (defmacro m () (warn 'c) nil) (m)"))
      do (test code
           (dolist (program programs)
             (let ((codes (codes-of program)))
               (expect (member code codes :test #'string=) (format nil "~A: ~A is not in ~S" program code codes))
               (when (member code '("compiler" "style") :test #'string=)
                 (expect (null (rest codes)) (format nil "~A: others than ~A in ~S" program code codes)))))))

;;; Settings of the reader and the compiler that the text changes

(test "read-suppress"
  (let ((codes (codes-of "(eval-when (:compile-toplevel) (set (intern (concatenate 'string \"*READ-\" \"SUPPRESS*\") :cl) t))
(defun h () (zork))")))
    (expect (equal codes '("undefined-function")) (format nil "what follows is read: ~S" codes))))

(test "macroexpand-hook"
  (let ((codes (codes-of "(defun f () (zork))
(eval-when (:compile-toplevel) (setf *macroexpand-hook* (lambda (expander form environment) (declare (ignore expander form environment)) nil)))
(defun g () (zork)) (eval-when (:compile-toplevel) (setf *macroexpand-hook* 'funcall))")))
    (expect (equal codes '("undefined-function" "style")) (format nil "it is told, once: ~S" codes)))
  (let ((codes (codes-of "(eval-when (:compile-toplevel) (let ((*macroexpand-hook* (lambda (e f v) (funcall e f v)))) (macroexpand '(when 1 2)))) (defun g () (zork))")))
    (expect (equal codes '("undefined-function")) (format nil "a binding is not told: ~S" codes))))

(expect (probe-file *victim*) "the file is still there")
(expect (null (probe-file (concatenate 'string *directory* "new"))) "no directory was made")
(delete-directory *directory*)

(finish-tests "kinds of findings")
