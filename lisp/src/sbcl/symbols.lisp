;;;; SBCL's internals about symbols (symbols/), and its special operators and other operators that
;;;; represent a function (expand/).

(in-package :consort)

(define-internal function-xrefs :function "finding references" ("SB-KERNEL" "%SIMPLE-FUN-XREFS"))
(define-internal map-packed-xrefs :function "finding references" ("SB-C" "MAP-PACKED-XREF-DATA"))
(define-internal method-fast-function :function "finding references in methods" ("SB-PCL" "SAFE-METHOD-FAST-FUNCTION"))
(define-internal underlying-function :function "finding references" ("SB-KERNEL" "%FUN-FUN"))
(define-internal function-code :function "finding references" ("SB-KERNEL" "FUN-CODE-HEADER"))
(define-internal code-entries :function "finding references" ("SB-KERNEL" "CODE-N-ENTRIES"))
(define-internal code-entry :function "finding references" ("SB-KERNEL" "%CODE-ENTRY-POINT"))
(define-internal function-definition-source :function "finding references" ("SB-INTROSPECT" "FIND-FUNCTION-DEFINITION-SOURCE"))
(define-internal unparse-specializers :function "naming methods" ("SB-PCL" "UNPARSE-SPECIALIZERS"))

(defun variable-kind (symbol)
  "Returns the kind of variable that SYMBOL is for the compiler: :SPECIAL, :GLOBAL, :CONSTANT,
  :MACRO, :ALIEN or :UNKNOWN."
  (info :variable :kind symbol))

(defun type-expander-p (symbol)
  "Returns true if SYMBOL was defined by DEFTYPE."
  (and (info :type :expander symbol) t))

(defun setf-expander-function (symbol)
  "Returns the expander that DEFSETF or DEFINE-SETF-EXPANDER made for SYMBOL: a function, another
  true value, or NIL."
  (let ((expander (info :setf :expander symbol)))
    (if (and (consp expander) (functionp (cdr expander))) (cdr expander) expander)))

(defun map-function-xrefs (function simple-function)
  "Calls FUNCTION with the kind, such as :CALLS, and the name of each definition to which the code
  of SIMPLE-FUNCTION refers."
  (let ((xrefs (function-xrefs simple-function)))
    (when xrefs
      (map-packed-xrefs (lambda (kind name form-number)
                          (declare (ignore form-number))
                          (funcall function kind name))
                        xrefs))))

;;; Special operators of SBCL's own, and operators that represent a function (expand/)

(define-internal the* :symbol "expanding every macro in a form" ("SB-KERNEL" "THE*"))
(define-internal truly-the :symbol "expanding every macro in a form" ("SB-EXT" "TRULY-THE"))
(define-internal with-source-form :symbol "expanding every macro in a form" ("SB-C" "WITH-SOURCE-FORM"))
(define-internal named-lambda :symbol "expanding every macro in a form" ("SB-INT" "NAMED-LAMBDA"))
