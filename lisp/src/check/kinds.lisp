;;;; The code of the finding that a condition causes. The codes are stable, and are documented in
;;;; docs/diagnostics.md.
;;;;
;;;; The condition's type determines the code, if SBCL has a type for it. Otherwise the format
;;;; control with which SBCL's own code signals the condition does, which contains no name or text
;;;; of the user's. A user's macro may use the same words, but its format controls are not part of
;;;; the core, so it is not mistaken for the compiler. The printed text counts only for SBCL's own
;;;; conditions that have neither.

(in-package :consort)

(defparameter *kinds-by-type*
  '((redefinition-warning-type "redefinition") (duplicate-definition-type "duplicate-definition") (same-file-redefinition-type "duplicate-definition")
    (type-warning-type "type-conflict") (type-style-warning-type "type-conflict") (constant-modified-type "constant-modified")
    (duplicate-case-key-type "duplicate-case-key") (local-argument-mismatch-type "wrong-argument-count")
    (format-mismatch-type "format-arguments") (optional-and-key-type "optional-and-key")
    (argument-count-error-type "malformed-form") (lambda-list-error-type "malformed-form"))
  "SBCL's types, as sbcl.lisp names them, and their codes. The first type that fits a condition
  counts.")

(eval-when (:compile-toplevel :load-toplevel :execute)
(defparameter *kinds*
  '(;; (code words-of-the-control ...); the first that matches is taken. narrow.lisp has the
    ;; narrowing of each to a place.
    ("unused-variable" "defined but never used")
    ("unread-variable" "is assigned but never read" "is set but never read" "assigned but never read")
    ("ignored-variable-used" "reading an ignored variable" "is ignored but is" "declaring unknown variable")
    ("ignore-unknown" "~A declaration for ~A: ~A" "declaration for an unknown variable")
    ("unused-function" "deleting unused function")
    ("wrong-argument-count" "argument~:P, but wants")
    ("odd-keyword-arguments" "odd number of keyword arguments" "odd number of &KEY")
    ("unknown-keyword" "is not a known argument keyword" "known argument keyword")
    ("constant-modified" "called on constant data")
    ("set-constant" "is a constant and thus can't be set" "names a ~A, and cannot be used in" "can't be set")
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
    ("illegal-call" "illegal function call")
    ("malformed-form" "Error while parsing arguments" "ill-formed" "malformed" "form is too short")
    ("deprecated" "using deprecated EVAL-WHEN")
    ("unknown-class" "Cannot find type for specializer")
    ("unknown-package" "does not designate any package")
    ("redefinition" "was previously defined as a"))
  "Codes, and words that the format control of a condition with this code contains."))

(defun control-text (condition)
  "The format control of CONDITION if this is a simple condition that SBCL itself signals; otherwise
  NIL."
  (let ((control (and (typep condition 'simple-condition) (simple-condition-format-control condition))))
    (and control
         (part-of-core-p control)
         (if (stringp control)
             control
             (and (internal-p 'control-string) (ignore-errors (control-string control)))))))

(defun system-condition-p (condition)
  "Returns true if SBCL itself defines the class of CONDITION."
  (system-symbol-p (class-name (class-of condition))))

(defun kind-of (condition message)
  "The code for CONDITION, whose text is MESSAGE, or NIL."
  (cond ((second (find-if (lambda (row) (typep-internal condition (first row))) *kinds-by-type*)))
        ((typep condition 'sb-ext:deprecation-condition) "deprecated")
        ((typep condition 'sb-ext:compiler-note) nil)
        (t (let ((text (if (typep condition 'simple-condition)
                           (control-text condition)
                           (and (system-condition-p condition) message))))
             (when text
               (loop with text = (as-text text)
                     for (code . all) in (load-time-value (loop for (code . all) in *kinds* collect (cons code (mapcar #'as-text all))))
                     when (loop for words in all thereis (find-words words text))
                       return code))))))

(defun macro-failure-p (condition)
  "Returns true if CONDITION is the compiler's message about an error in a macro's function. Its
  arguments are the place and the error."
  (let ((control (control-text condition)) (arguments (condition-arguments condition)))
    (and control
         (or (search "during macroexpansion" control)
             (and (stringp (first arguments)) (typep (second arguments) 'condition)
                  (search "during macroexpansion" (first arguments))))
         t)))

(defun condition-errno (condition)
  "The errno of the failure that CONDITION reports; 0 if it has none."
  (let ((of-socket (let ((package (find-package "SB-BSD-SOCKETS"))) (and package (find-symbol "SOCKET-ERROR-ERRNO" package)))))
    (cond ((typep condition 'sb-posix:syscall-error) (sb-posix:syscall-errno condition))
          ((and of-socket (fboundp of-socket)) (or (ignore-errors (funcall of-socket condition)) 0))
          (t 0))))

(defun confinement-refusal-p (condition &optional (depth 3))
  "Returns true if CONDITION reports that the system has refused something to the code. This is seen
  in its errno, or in the arguments of its report: the system's own message, or another such
  condition. The words of the report count only if it has no arguments."
  (let ((refusals (list sb-posix:eperm sb-posix:eacces)))
    (labels ((message-p (text)
               (and (stringp text) (some (lambda (errno) (string= text (system-message errno))) refusals)))
             (reported-p (argument depth)
               (typecase argument
                 (condition (and (plusp depth) (confinement-refusal-p argument (1- depth))))
                 (cons (and (plusp depth) (list-length argument) (some (lambda (part) (reported-p part (1- depth))) argument)))
                 (t (message-p argument)))))
      (or (and (member (condition-errno condition) refusals) t)
          (and (typep-internal condition 'file-error-type) (internal-p 'file-error-message) (message-p (file-error-message condition)))
          (and (search "Could not create new OS thread" (or (control-text condition) "")) t)
          (and (typep condition 'simple-condition)
               (some (lambda (argument) (ignore-errors (reported-p argument depth))) (condition-arguments condition)))
          (and (not (typep condition 'simple-condition))
               (let ((words (ignore-errors (princ-to-string condition))))
                 (and words (some (lambda (errno) (search (system-message errno) words)) refusals) t)))))))
