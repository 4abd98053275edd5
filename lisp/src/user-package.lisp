;;;; CL-USER without the symbol that clashes with what people and agents write there.

(in-package :consort)

;;; SBCL's CL-USER uses SB-ALIEN, whose DOUBLE is locked. The first function of many introductions,
;;; (defun double (x) (* 2 x)), would be refused. CL-USER therefore has a DOUBLE of its own, which
;;; names the same alien type.
(shadow "DOUBLE" "COMMON-LISP-USER")
(eval `(sb-alien:define-alien-type ,(intern "DOUBLE" "COMMON-LISP-USER") sb-alien:double))
