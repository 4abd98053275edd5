;;;; Removing what a name stands for, and putting it back.

(in-package :consort)

(defun undefine (image name parts &rest fields)
  (apply #'outcome-of image "undefine" "name" name "package" "HX" "parts" (coerce parts 'vector) fields))

(defun removable (image name &rest fields)
  (map 'list (lambda (part) (path part "text")) (path (apply #'outcome-of image "removable" "name" name "package" "HX" fields) "parts")))

(defparameter *undefine-program*
  "(defpackage :hx (:use :cl) (:export #:api)) (in-package :hx) (defun f (x) (* 2 x)) (defun (setf f) (v) v) (defmacro m () 1) (defvar *v* 1)
(defconstant +c+ 5) (defclass c () ((a :initform 7 :reader a-of))) (defstruct s x) (define-condition co (error) ())
(defgeneric run (x)) (defmethod run ((x integer)) :integer) (defmethod run :before ((x integer)) nil) (defmethod run ((x (eql :key))) :key)
(define-symbol-macro sm 9) (defun api () :api) (defun uses (x) (f x))")

(deftest undefine-and-undo
  (with-image (image)
    (compile-string image *undefine-program*)
    (is equal '("function HX::F" "setf function (SETF HX::F)" "symbol HX::F from the package HX, with all of these") (removable image "f"))
    (loop for (name parts gone probe value)
            in '(("f" ("function") "function HX::F" "(list (fboundp 'hx::f) (and (fboundp '(setf hx::f)) t))" "(NIL T)")
                 ("f" ("setf-function") "setf function (SETF HX::F)" "(fboundp '(setf hx::f))" "NIL")
                 ("m" ("function") "macro HX::M" "(macro-function 'hx::m)" "NIL")
                 ("*v*" ("variable") "variable HX::*V*" "(list (boundp 'hx::*v*) (let ((hx::*v* 2)) (declare (ignorable hx::*v*)) (boundp 'hx::*v*)))" "(NIL NIL)")
                 ("c" ("class") "class HX::C" "(find-class 'hx::c nil)" "NIL")
                 ("sm" ("variable") "symbol macro HX::SM" "(macroexpand-1 'hx::sm)" "HX::SM")
                 ("api" ("symbol") "function #:API" "(find-symbol \"API\" :hx)" "NIL"))
          do (let ((old (first-value image probe)) (outcome (undefine image name parts)))
               (ok (reloaded-p outcome))
               (ok (listed outcome "gone" gone))
               (is equal value (first-value image probe))
               (ok (not-undone-p (undo image)))
               (is equal old (first-value image probe))))
    (is equal "(42 :API 7 1)" (first-value image "(list (hx::uses 21) (hx:api) (hx::a-of (make-instance 'hx::c)) hx::*v*)"))
    ;; Nothing that is not named goes.
    (is equalp #() (path (undefine image "f" '()) "report" "gone"))))

(deftest undefine-methods
  (with-image (image)
    (compile-string image *undefine-program*)
    (flet ((method (specializer &rest qualifiers) (object "qualifiers" (coerce qualifiers 'vector) "specializers" (vector specializer))))
      (is equal "method (HX::RUN (INTEGER))" (first (removable image "run" "method" (method "integer"))))
      (is equal "method (HX::RUN :BEFORE (INTEGER))" (first (removable image "run" "method" (method "integer" ":before"))))
      (is equal "generic function HX::RUN with its 3 methods" (first (removable image "run" "method" (method "string"))))
      (let ((outcome (undefine image "run" '("method") "method" (method "(eql :key)"))))
        (ok (reloaded-p outcome))
        (ok (find-if (lambda (text) (search "EQL :KEY" text)) (path outcome "report" "gone"))))
      (is equal "(:INTEGER NIL)" (first-value image "(list (hx::run 1) (ignore-errors (hx::run :key)))"))
      (ok (not-undone-p (undo image)))
      (is equal ":KEY" (first-value image "(hx::run :key)")))))

(deftest undefine-refuses-and-tells-what-is-lost
  (with-image (image)
    (compile-string image *undefine-program*)
    (dolist (name '("car" "sb-ext:quit" ":key" "uiop:run-program"))
      (is equal "package-locked" (path (call image "undefine" "name" name "package" "HX" "parts" (vector "function")) "error" "kind"))
      (is equal "package-locked" (path (call image "removable" "name" name "package" "HX") "error" "kind")))
    (is equal "not-found" (path (call image "removable" "name" "no-such-name" "package" "HX") "error" "kind"))
    (is equal "NIL" (first-value image "(find-symbol \"NO-SUCH-NAME\" :hx)"))
    (let ((parts (path (outcome-of image "removable" "name" "s" "package" "HX") "parts")))
      (ok (text-contains "cannot be put back" (path (aref parts 0) "lost"))))
    (ok (reloaded-p (undefine image "s" '("class"))))
    (is equal "NIL" (first-value image "(find-class 'hx::s nil)"))
    (ok (not-undone-p (undo image) "HX::S"))
    (ok (reloaded-p (undefine image "+c+" '("variable"))))
    (is equal "NIL" (first-value image "(boundp 'hx::+c+)"))))
