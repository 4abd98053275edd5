;;;; The expansion of a function call that the compiler would make: by the function's compiler
;;;; macro, or of its format control.

(in-package :consort)

(defparameter *control-strings*
  '((format . 2) (error . 1) (cerror . 2) (warn . 1) (signal . 1) (break . 1) (y-or-n-p . 1) (yes-or-no-p . 1))
  "The operators that take a format control, each with the position of that argument.")

(defun control-function (control)
  "The function that FORMATTER makes of the string CONTROL, as code: a plain LAMBDA."
  (let* ((expansion (macroexpand `(formatter ,control)))
         (function (and (proper-list-p expansion) (eq (first expansion) 'function) (second expansion))))
    (if (and named-lambda (consp function) (eq (first function) named-lambda))
        `(function (lambda ,@(cddr function)))
        expansion)))

(defun control-expanded (form)
  "FORM with its format control replaced by the function that FORMATTER makes of it. FORM itself if
  it has none."
  (let* ((at (and (proper-list-p form) (cdr (assoc (first form) *control-strings*))))
         (control (and at (nth at form))))
    (if (stringp control)
        `(,@(subseq form 0 at) ,(control-function control) ,@(nthcdr (1+ at) form))
        form)))

(defun by-compiler-macro (form environment)
  "The expansion of FORM by the compiler macro of its operator in ENVIRONMENT. FORM itself if there
  is none or it declines."
  (let ((expander (and (consp form) (symbolp (first form)) (compiler-macro-function (first form) environment))))
    (if expander
        (funcall *macroexpand-hook* expander form environment)
        form)))

(defun compiler-expanded (form environment)
  "FORM, in ENVIRONMENT, expanded once as the compiler expands a call before it compiles it. Counted
  in *EXPANSIONS*."
  (let* ((controlled (control-expanded form))
         (expansion (if (eq controlled form) (by-compiler-macro form environment) controlled)))
    (unless (eq expansion form) (incf *expansions*))
    expansion))
