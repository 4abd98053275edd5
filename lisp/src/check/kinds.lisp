;;;; What kind of finding a condition is: the stable codes of docs/diagnostics.md, by SBCL's words.

(in-package :consort)

(eval-when (:compile-toplevel :load-toplevel :execute)
(defparameter *kinds*
  '(;; (code words-in-the-message ...); the first that matches is taken. How each is narrowed is in narrow.lisp.
    ("unused-variable" "defined but never used")
    ("unread-variable" "is assigned but never read" "is set but never read" "assigned but never read")
    ("ignored-variable-used" "reading an ignored variable" "is ignored but is" "declaring unknown variable")
    ("ignore-unknown" "IGNORE declaration for an unknown variable" "IGNORE declaration for")
    ("unused-function" "deleting unused function")
    ("wrong-argument-count" "arguments, but wants" "argument, but wants")
    ("odd-keyword-arguments" "odd number of keyword arguments" "odd number of &KEY")
    ("unknown-keyword" "is not a known argument keyword" "known argument keyword")
    ("constant-modified" "called on constant data")
    ("set-constant" "is a constant and thus can't be set" "names a defined constant, and cannot be used" "can't be set")
    ("type-conflict" "conflicts with its asserted type" "conflicting with its asserted type" "conflicting with its declared"
     "conflict with its asserted type" "Derived type" "is not a suitable index" "does not match" "is not of type"
     "conflicts with the asserted type")
    ("duplicate-case-key" "Duplicate key")
    ("duplicate-variable" "occurs more than once")
    ("format-arguments" "arguments (" "to FORMAT")
    ("constant-folding" "during constant folding")
    ("unknown-block" "return for unknown block")
    ("unknown-tag" "attempt to GO to nonexistent tag")
    ("malformed-binding" "binding spec" "Malformed LET" "Malformed")
    ("malformed-lambda-list" "in lambda list")
    ("optional-and-key" "&OPTIONAL and &KEY found")
    ("unreachable-code" "deleting unreachable code")
    ("malformed-form" "Error while parsing arguments" "ill-formed" "malformed" "form is too short")
    ("deprecated" "using deprecated EVAL-WHEN")
    ("unknown-class" "Cannot find type for specializer")
    ("unknown-package" "does not designate any package")
    ("redefinition" "was previously defined as a"))
  "Codes, and what SBCL says when it is that."))

(defun kind-of (condition message)
  "The code for CONDITION, which says MESSAGE, or NIL."
  (cond ((typep condition redefinition-warning-type) "redefinition")
        ((or (typep condition duplicate-definition-type) (typep condition same-file-redefinition-type)) "duplicate-definition")
        ((typep condition 'sb-ext:deprecation-condition) "deprecated")
        ((typep condition 'sb-ext:compiler-note) nil)
        (t (loop with text = (as-text message)
                 for (code . all) in (load-time-value (loop for (code . all) in *kinds* collect (cons code (mapcar #'as-text all))))
                 when (loop for words in all thereis (find-words words text))
                   return code))))
