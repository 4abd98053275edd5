;;;; SBCL's internals that the chain of a check needs (check/chain/): every change of what the
;;;; compiler knows about names. If one of them is absent, there is no chain, and each check is a
;;;; complete one.

(in-package :consort)

(define-internal update-symbol-info-name :symbol "checking only what an edit changes" ("SB-INT" "UPDATE-SYMBOL-INFO") ("SB-IMPL" "UPDATE-SYMBOL-INFO"))
(define-internal note-name-defined-name :symbol "checking only what an edit changes" ("SB-KERNEL" "NOTE-NAME-DEFINED") ("SB-C" "NOTE-NAME-DEFINED"))
(define-internal eval-compile-toplevel-name :symbol "checking only what an edit changes" ("SB-C" "EVAL-COMPILE-TOPLEVEL"))
(define-internal symbol-infos :function "checking only what an edit changes" ("SB-KERNEL" "SYMBOL-DBINFO") ("SB-INT" "SYMBOL-DBINFO"))
(define-internal call-with-packed-infos :function "checking only what an edit changes" ("SB-IMPL" "%CALL-WITH-EACH-INFO") ("SB-INT" "%CALL-WITH-EACH-INFO"))
(define-internal inline-expansion :function "checking only what an edit changes" ("SB-INT" "FUN-NAME-INLINE-EXPANSION"))
(define-internal package-of-system-p :macro "checking only what an edit changes" ("SB-INT" "SYSTEM-PACKAGE-P") ("SB-IMPL" "SYSTEM-PACKAGE-P"))
(define-internal policy-declaration :function "checking only what an edit changes" ("SB-C" "POLICY-TO-DECL-SPEC"))
(define-internal handled-conditions :variable "checking only what an edit changes" ("SB-C" "*HANDLED-CONDITIONS*"))
(define-internal disabled-package-locks :variable "checking only what an edit changes" ("SB-C" "*DISABLED-PACKAGE-LOCKS*"))
(define-internal method-declaration :symbol "checking only what an edit changes" ("SB-C" "CURRENT-DEFMETHOD"))
(define-internal compiler-type :type "checking only what an edit changes" ("SB-KERNEL" "CTYPE"))
(define-internal compiler-type-specifier :function "checking only what an edit changes" ("SB-KERNEL" "TYPE-SPECIFIER"))
(define-internal assumed-type-p :function "checking only what an edit changes" ("SB-C" "APPROXIMATE-FUN-TYPE-P"))
(define-internal assumed-type-least :function "checking only what an edit changes" ("SB-C" "APPROXIMATE-FUN-TYPE-MIN-ARGS"))
(define-internal assumed-type-most :function "checking only what an edit changes" ("SB-C" "APPROXIMATE-FUN-TYPE-MAX-ARGS"))
(define-internal assumed-type-types :function "checking only what an edit changes" ("SB-C" "APPROXIMATE-FUN-TYPE-TYPES"))
(define-internal assumed-type-keys :function "checking only what an edit changes" ("SB-C" "APPROXIMATE-FUN-TYPE-KEYS"))
(define-internal assumed-key-name :function "checking only what an edit changes" ("SB-C" "APPROXIMATE-KEY-INFO-NAME"))
(define-internal assumed-key-position :function "checking only what an edit changes" ("SB-C" "APPROXIMATE-KEY-INFO-POSITION"))

(defun chain-internals-p ()
  "Returns true if this SBCL has all internals that a chain needs."
  (and (every #'internal-p '(update-symbol-info-name note-name-defined-name eval-compile-toplevel-name symbol-infos call-with-packed-infos
                             inline-expansion package-of-system-p policy-declaration handled-conditions disabled-package-locks method-declaration
                             compiler-type compiler-type-specifier assumed-type-p assumed-type-least assumed-type-most assumed-type-types
                             assumed-type-keys assumed-key-name assumed-key-position *info-types* meta-info-category meta-info-kind
                             stream-descriptor))
       (every #'fboundp (list update-symbol-info-name note-name-defined-name eval-compile-toplevel-name))))

(defun info-numbers (test)
  "The numbers of those kinds of the compiler's entries about names for which TEST, called with
  category and kind, is true."
  (loop for info across *info-types* for number from 0
        when (and info (funcall test (meta-info-category info) (meta-info-kind info)))
          collect number))

(defun policy-in-force ()
  "The policy with which forms are compiled now, as a declaration."
  (policy-declaration (symbol-value policy-name)))

(defun assumed-type-parts (type)
  "The parts, as lists, of TYPE, which the compiler assumed of an undefined function from its calls.
  The compiler changes such a type in place."
  (list (assumed-type-least type) (assumed-type-most type)
        (mapcar (lambda (types) (mapcar (lambda (type) (if (typep type 'compiler-type) (compiler-type-specifier type) type)) types))
                (assumed-type-types type))
        (mapcar (lambda (key) (list (assumed-key-name key) (assumed-key-position key))) (assumed-type-keys type))))
