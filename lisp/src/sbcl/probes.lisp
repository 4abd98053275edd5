;;;; SBCL's internals that probes use (debug/probes.lisp): variables in scope, frame pointers,
;;;; constants of code, replacing functions.

(in-package :consort)

(define-internal lexenv-variables :function "breakpoints" ("SB-C" "LEXENV-VARS"))
(define-internal lambda-variable :type "breakpoints" ("SB-C" "LAMBDA-VAR"))
(define-internal walker-variables :function "breakpoints in methods" ("SB-WALKER" "ENV-LEXICAL-VARIABLES"))
(define-internal named-lambda-name :symbol "breakpoints" ("SB-INT" "NAMED-LAMBDA"))
(define-internal checked-the-name :symbol "breakpoints in DOLIST and LOOP" ("SB-KERNEL" "THE*"))
(define-internal source-form-name :symbol "breakpoints in RESTART-CASE and HANDLER-CASE" ("SB-C" "WITH-SOURCE-FORM"))
(define-internal current-frame-pointer :macro "steps" ("SB-VM" "CURRENT-FP"))
(define-internal integer-of-address :macro "steps" ("SB-SYS" "SAP-INT"))
(define-internal address-at :macro "steps" ("SB-SYS" "SAP-REF-SAP"))

(defun can-probe-p ()
  "Returns true if this SBCL has the internals that breakpoints and steps need."
  (every #'internal-p '(lexenv-variables lambda-variable named-lambda-name current-frame-pointer integer-of-address address-at)))

(defun passes-second-p (operator)
  "Returns true if the value of (OPERATOR X FORM), a special form, is that of FORM, and X is not
  evaluated."
  (or (member operator '(the sb-ext:truly-the))
      (and (internal-p 'checked-the-name) (eq operator checked-the-name))
      (and (internal-p 'source-form-name) (eq operator source-form-name))))

(defmacro caller-frame-pointer ()
  "The frame pointer of the caller of the function that contains the macro call. The stack grows
  downwards, so a caller's frame pointer is greater."
  `(integer-of-address (address-at (current-frame-pointer) 0)))

(defun sbcl-package-p (package)
  (eql 0 (search "SB-" (package-name package))))

(defun lisp-package-p (package)
  "Returns true if PACKAGE is COMMON-LISP or one of SBCL's own."
  (or (eq package (load-time-value (find-package "COMMON-LISP"))) (sbcl-package-p package)))

(defun variables-in-scope (environment)
  "The names of the lexical variables in ENVIRONMENT that a person may have written, innermost
  first."
  (let ((names '()))
    (flet ((note (name)
             (when (and (symbolp name) (symbol-package name) (not (sbcl-package-p (symbol-package name))))
               (pushnew name names))))
      (when environment
        (loop for (name . what) in (lexenv-variables environment)
              when (typep what 'lambda-variable) do (note name))
        (when (internal-p 'walker-variables) ; in the walk of a method's body by CLOS
          (loop for entry in (handler-case (walker-variables environment) (error () '()))
                do (note (if (consp entry) (first entry) entry)))))
      (nreverse names))))

(defun function-constants (function)
  "The constants of the code that contains FUNCTION; NIL if they cannot be read."
  (let ((code (and function (code-of function))) (constants '()))
    (when code
      (handler-case (map-code-constants (lambda (constant) (push constant constants)) code)
        (error () nil)))
    constants))

(defun exchange-function (name function)
  "Makes FUNCTION the global function NAME. The compiler keeps its entries about the type of the
  function."
  (let ((type (info :function :type name))
        (origin (info :function :where-from name)))
    (setf (fdefinition name) function)
    (unless (or (eq origin :declared) (eq (info :function :where-from name) :declared))
      (setf (info :function :type name) type
            (info :function :where-from name) origin))
    function))

(defun note-same-place (form replacement)
  "Makes the compiler give REPLACEMENT, made from FORM, the place of FORM."
  (let ((paths (and (consp form) (consp replacement) (not (eq form replacement)) (boundp *source-paths*) (symbol-value *source-paths*))))
    (when (hash-table-p paths)
      (let ((path (gethash form paths)))
        (when (and path (not (gethash replacement paths)))
          (setf (gethash replacement paths) path))))))
