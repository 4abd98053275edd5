;;;; Checking a text of which an earlier state is loaded in the image: what the edit is right in
;;;; gives no findings, and what it is wrong in gives the same as in a fresh image.
;;;;
;;;;   sbcl --noinform --non-interactive --no-userinit --load lisp/tests/check-loaded.lisp

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defun load-text (text)
  "Load TEXT as a compiled file."
  (call-with-scratch
   (lambda (directory)
     (let ((file (concatenate 'string directory "text.lisp")))
       (with-open-file (out file :direction :output) (write-string text out))
       (handler-bind ((warning #'muffle-warning))
         (let ((*error-output* (make-broadcast-stream)) (*standard-output* (make-broadcast-stream)))
           (load (compile-file file))))))))

(defun findings-after (loaded text)
  "Returns the findings of a check of TEXT, as \"CODE message\", in an image that has LOADED
  loaded."
  (load-text loaded)
  (multiple-value-bind (lines code signal) (check-lines (coerce text '(simple-array character (*))) :path "/nowhere/text.lisp")
    (if (and (eql code 0) (null signal))
        (loop for diagnostic in (diagnostics-of lines)
              collect (format nil "~A: ~A" (field diagnostic "code") (field diagnostic "message")))
        (list (format nil "the copy ended with ~A, ~A" code signal)))))

(defmacro edit (name loaded text &rest expected)
  "Test that the check of TEXT, with LOADED in the image, gives findings that begin with EXPECTED,
  and no others."
  `(test ,name
     (let ((found (findings-after ,loaded ,text)) (expected (list ,@expected)))
       (expect (and (= (length found) (length expected))
                    (every (lambda (found expected) (eql 0 (search expected found))) found expected))
               (format nil "found~{~%  ~A~}" found)))))

(edit "a structure that is defined while compiling has another slot"
      "(eval-when (:compile-toplevel :load-toplevel :execute) (defstruct changed-slots (a 1)))"
      "(eval-when (:compile-toplevel :load-toplevel :execute) (defstruct changed-slots (a 1) (b 2)))
(defun f () (changed-slots-b (make-changed-slots :b 1)))")

(edit "nothing changed"
      "(defpackage :same (:use :cl) (:export #:f))
(in-package :same)
(defconstant +list+ (if (boundp '+list+) (symbol-value '+list+) '(1 2)))
(defstruct point x (y 0 :type fixnum))
(define-condition oops (error) ())
(defclass c () ((a :accessor c-a)))
(defgeneric g (x))
(defmethod g ((x c)) (c-a x))
(deftype small () '(integer 0 9))
(defmacro m (x) `(1+ ,x))
(declaim (inline f))
(defun f (x) (m x))
(define-compiler-macro f (&whole w x) (declare (ignore x)) w)
(defsetf my-place (x) (v) `(setf (car ,x) ,v))
(defvar *v* 1)"
      "(defpackage :same (:use :cl) (:export #:f))
(in-package :same)
(defconstant +list+ (if (boundp '+list+) (symbol-value '+list+) '(1 2)))
(defstruct point x (y 0 :type fixnum))
(define-condition oops (error) ())
(defclass c () ((a :accessor c-a)))
(defgeneric g (x))
(defmethod g ((x c)) (c-a x))
(deftype small () '(integer 0 9))
(defmacro m (x) `(1+ ,x))
(declaim (inline f))
(defun f (x) (m x))
(define-compiler-macro f (&whole w x) (declare (ignore x)) w)
(defsetf my-place (x) (v) `(setf (car ,x) ,v))
(defvar *v* 1)")

(edit "a structure gains a slot, changes a type and an order"
      "(in-package :cl-user) (defstruct box width (height 1 :type fixnum)) (defun area (b) (* (box-width b) (box-height b)))"
      "(in-package :cl-user)
(defstruct box depth (width 0 :type double-float) (height 1d0 :type double-float))
(defun area (b) (* (box-width b) (box-height b) (box-depth b)))
(defun new () (make-box :depth 1 :width 2d0))")

(edit "a structure loses a slot that is still used"
      "(in-package :cl-user) (defstruct crate width height)"
      "(in-package :cl-user)
(defstruct crate width)
(defun make-one () (make-crate :width 1 :height 2))"
      "unknown-keyword")

(edit "a structure that another includes"
      "(in-package :cl-user) (defstruct base a) (defstruct (derived (:include base)) b)"
      "(in-package :cl-user)
(defstruct base a aa)
(defstruct (derived (:include base)) b)
(defun f (d) (list (derived-a d) (derived-aa d) (derived-b d)))")

(edit "a constant changes its value"
      "(in-package :cl-user) (defconstant +size+ 10) (defconstant +names+ 'old)"
      "(in-package :cl-user)
(defconstant +size+ 11)
(defconstant +names+ 'new)
(defun f () (list +size+ +names+))")

(edit "a function changes its lambda list, with callers before and after it"
      "(in-package :cl-user) (defun old-caller () (changed 1)) (defun changed (a) a)"
      "(in-package :cl-user)
(defun before () (changed 1 2))
(defun changed (a b) (list a b))
(defun after () (changed 1 2))")

(edit "a function changes its lambda list, and a caller before it does not"
      "(in-package :cl-user) (defun changed-too (a) a)"
      "(in-package :cl-user)
(defun changed-too (a b) (list a b))
(defun after () (changed-too 1))"
      "wrong-argument-count")

(edit "a function changes its type"
      "(in-package :cl-user) (declaim (ftype (function (fixnum) fixnum) typed)) (defun typed (x) (1+ x))"
      "(in-package :cl-user)
(declaim (ftype (function (string) string) typed))
(defun before () (typed \"a\"))
(defun typed (x) (string-upcase x))
(defun after () (typed \"a\"))")

(edit "a macro becomes a function, a function a macro"
      "(in-package :cl-user) (defmacro was-macro (x) x) (defun was-function (x) x)"
      "(in-package :cl-user)
(defun was-macro (x) x)
(defmacro was-function (x) x)
(defun f () (list (was-macro 1) (was-function 2)))")

(edit "a package exports more and less, uses and shadows others"
      "(defpackage :edited (:use :cl) (:export #:a #:b))
(in-package :edited) (defun a () 1) (defun b () 2)"
      "(defpackage :edited (:use :cl) (:shadow #:position) (:export #:a #:c))
(in-package :edited)
(defun a () 1)
(defun b () 2)
(defun c () (position))
(defun position () 3)")

(edit "a generic function changes its lambda list"
      "(in-package :cl-user) (defgeneric describe-it (x)) (defmethod describe-it ((x fixnum)) x)"
      "(in-package :cl-user)
(defgeneric describe-it (x stream))
(defmethod describe-it ((x fixnum) stream) (print x stream))
(defun f () (describe-it 1 t))")

(edit "a class, a condition and a type change"
      "(in-package :cl-user) (defclass shape () ((size :initarg :size))) (define-condition bad (error) ()) (deftype tiny () '(integer 0 9))"
      "(in-package :cl-user)
(defclass shape () ((size :initarg :size) (name :initarg :name :accessor shape-name)))
(define-condition bad (warning) ((why :initarg :why)))
(deftype tiny () '(integer 0 99))
(defun f () (declare (optimize safety)) (list (make-instance 'shape :name 1) (make-condition 'bad :why 1) (the tiny 50)))")

(edit "an inline function changes"
      "(in-package :cl-user) (declaim (inline twice)) (defun twice (x) (+ x x)) (defun f () (twice 1))"
      "(in-package :cl-user)
(declaim (inline twice))
(defun twice (x) (list x x))
(defun f () (car (twice 1)))")

(edit "a variable becomes a constant, a parameter another type"
      "(in-package :cl-user) (declaim (type fixnum *level*)) (defvar *level* 1) (defvar +was-variable+ 1)"
      "(in-package :cl-user)
(declaim (type string *level*))
(defvar *level* \"one\")
(defun f () (setf *level* \"two\"))")

(edit "a class by a macro of the user's, and a macro of its name; and one that such a macro made"
      "(in-package :cl-user) (defmacro defthing (name) `(defclass ,name () ())) (defthing ptree) (defmacro ptree (x) x)
(defmacro defmac (name) `(defmacro ,name (x) x)) (defmac made) (defmacro made (x y) (list x y))"
      "(in-package :cl-user)
(defmacro defthing (name) `(defclass ,name () ()))
(defthing ptree)
(defmacro ptree (x) x)
(defmacro defmac (name) `(defmacro ,name (x) x))
(defmac made)
(defmacro made (x y) (list x y))"
      "duplicate-definition")

(edit "what is defined twice in the text is told all the same"
      "(in-package :cl-user) (defun twice-here () 1) (defmacro twice-too () 1)"
      "(in-package :cl-user)
(defun twice-here () 1)
(defun twice-here () 2)
(defmacro twice-too () 1)
(defmacro twice-too () 2)"
      "duplicate-definition" "duplicate-definition")

(finish-tests "loaded texts")
