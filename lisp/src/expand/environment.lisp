;;;; Lexical environments, as far as they matter for macro expansion: what a walk over code knows
;;;; about the names around a form.

(in-package :consort)

(defun augmented (environment &rest names)
  "ENVIRONMENT with NAMES, which are arguments of SB-CLTL2:AUGMENT-ENVIRONMENT. If SBCL refuses
  them, ENVIRONMENT itself, since the compiler will report the error better."
  (handler-case (apply #'sb-cltl2:augment-environment environment names)
    (error () environment)))

(defun proper-list-p (object)
  "Returns true if OBJECT is a list that ends with NIL."
  (and (listp object) (ignore-errors (list-length object)) t))

(defun split-body (body &optional docstring)
  "Three lists of BODY: its forms; the declarations and, if DOCSTRING, the string before them, as
  written; and the declarations' specifiers."
  (loop with preamble = '() and specifiers = '()
        for (form . more) on body
        for rest = body then (rest rest)
        do (cond ((and (consp form) (eq (first form) 'declare) (proper-list-p form))
                  (push form preamble)
                  (setf specifiers (append specifiers (remove-if-not #'consp (rest form)))))
                 ((and docstring (stringp form) more)
                  (push form preamble)
                  (setf docstring nil))
                 (t (return (values rest (nreverse preamble) specifiers))))
        finally (return (values '() (nreverse preamble) specifiers))))

(defun bind-variables (environment names &optional specifiers)
  "ENVIRONMENT with the variables NAMES bound. SPECIFIERS are those of declarations, and the names
  that they declare special are special."
  (let* ((names (remove-if-not #'symbolp names))
         (specials (loop for specifier in specifiers
                         when (and (eq (first specifier) 'special) (proper-list-p specifier))
                           append (intersection (rest specifier) names))))
    (if (null names)
        environment
        (augmented environment :variable names :declare (and specials `((special ,@specials)))))))

(defun declare-policy (environment specifiers)
  "ENVIRONMENT with the OPTIMIZE declarations of SPECIFIERS, because macros of SBCL read the
  policy."
  (let ((policy (remove 'optimize specifiers :key #'first :test-not #'eq)))
    (if policy (augmented environment :declare policy) environment)))

(defun bind-functions (environment names)
  "ENVIRONMENT with the local functions NAMES, which hide the macros of those names."
  (let ((names (remove-if-not (lambda (name) (or (symbolp name) (consp name))) names)))
    (if names (augmented environment :function names) environment)))

(defun expander (definition environment)
  "The macro function of DEFINITION, (NAME LAMBDA-LIST . BODY) of a MACROLET in ENVIRONMENT."
  (destructuring-bind (name lambda-list &rest body) definition
    (handler-bind ((warning #'muffle-warning))
      (sb-cltl2:enclose (sb-cltl2:parse-macro name lambda-list body environment) environment))))
