;;;; Checking a file that the image has loaded already is the normal case: what the image knows of
;;;; it from then is no finding.

(in-package :consort)

(defparameter *defining-forms*
  '(defmacro defclass defstruct define-condition deftype defgeneric defparameter defconstant define-compiler-macro defpackage)
  "Definers that may stand once for a name in a file; DEFUN is left to the compiler, DEFVAR and
  DEFMETHOD may be repeated.")

(defun defined-name (form)
  "The name that the top-level FORM defines, or NIL; the second value says whether there is one."
  (when (and (definer-p form) (consp (cdr form)))
    (let ((name (second form)))
      (when (and (consp name) (member (car form) '(defstruct))) (setf name (car name)))
      (when (and (eq (car form) 'defpackage) (typep name '(or symbol string character)))
        (setf name (intern (string name) :keyword)))
      (values name t))))

(defun namespace-of (form)
  "Returns the kind of definition that the top-level FORM is. A class and a macro of one name are
  two things; what an operator of the user's defines is not known."
  (case (and (consp form) (car form))
    ((defun defmacro defgeneric defmethod) :operator)
    ((defclass defstruct define-condition deftype) :type)
    ((defvar defparameter defconstant define-symbol-macro) :variable)
    (defpackage :package)
    (define-compiler-macro :compiler-macro)
    (t :unknown)))

(defun note-definition (check form)
  "Remembers what FORM, which the compiler comes to now, defines."
  (multiple-value-bind (name named) (defined-name form)
    (if named
        (dolist (key (list (list (car form) name) (list (namespace-of form) name)))
          (unless (gethash key (check-definitions check))
            (setf (gethash key (check-definitions check)) (check-form-start check))))
        (dolist (definition (inner-definitions form))
          (note-inner-definition check definition)))))

(defun inner-definitions (form)
  "The definitions among the top-level forms that are in FORM as it was read."
  (and (consp form)
       (loop for rest = (case (car form)
                          ((progn locally) (cdr form))
                          ((eval-when macrolet symbol-macrolet) (and (consp (cdr form)) (cddr form))))
                        then (cdr rest)
             while (consp rest)
             append (if (nth-value 1 (defined-name (car rest)))
                        (list (car rest))
                        (inner-definitions (car rest))))))

(defun note-inner-definition (check definition)
  "Remembers what DEFINITION, which is in the current form, defines. That the same operator defines
  it twice is then left to the compiler."
  (let ((key (list (namespace-of definition) (defined-name definition))))
    (unless (or (eq (first key) :unknown) (gethash key (check-definitions check)))
      (setf (gethash key (check-definitions check))
            (or (car (object-span check definition)) (check-form-start check))))))

(defun tell-duplicate (check form)
  "Reports it if the text defined the same as FORM before, as the same kind of thing, and the
  compiler did not say so."
  (multiple-value-bind (name named) (defined-name form)
    (when (and named (member (car form) *defining-forms*))
      (let ((earlier (gethash (list (car form) name) (check-definitions check))))
        (when (and earlier (/= earlier (check-form-start check)) (not (told-twice-p check "duplicate-definition")))
          (let ((span (or (car-span check (cdr form)) (form-span check)))
                (first (name-place check earlier)))
            (found check (new-finding check (car span) (cdr span) :warning "duplicate-definition"
                                      (format nil "Duplicate definition for ~A found in one file." (name-for-user name))
                                      :condition "WARNING"
                                      :related (list (list (car first) (cdr first) "First defined here."))))))))))

(defun name-place (check form-start)
  "The span of the name in the definition at FORM-START."
  (multiple-value-bind (token start end) (definition-name (check-text check) form-start)
    (if token (cons start end) (cons form-start (1+ form-start)))))

(defun operator-now (form)
  "The macro or function that the symbol that FORM defines names now, when what it defines it as is
  not known."
  (multiple-value-bind (name named) (defined-name form)
    (and named name (symbolp name) (eq (namespace-of form) :unknown)
         (or (macro-function name) (and (fboundp name) (fdefinition name))))))

(defun note-operator (check form before)
  "Remembers that FORM, which was compiled, made its name an operator, when that is not what it was
  BEFORE."
  (let ((now (operator-now form)))
    (when (and now (not (eq now before)))
      (let ((key (list :operator (defined-name form))))
        (unless (gethash key (check-definitions check))
          (setf (gethash key (check-definitions check)) (check-form-start check)))))))

(defun first-definition (check name namespace &key exactly)
  "The span of the name where the text first defines NAME in NAMESPACE, or, but for EXACTLY, in one
  that is not known; NIL when it does not before the current form."
  (let ((starts (loop for space in (cond (exactly (list namespace))
                                         ((eq namespace :unknown) '(:operator :type :variable :package :compiler-macro :unknown))
                                         (t (list namespace :unknown)))
                      for start = (gethash (list space name) (check-definitions check))
                      when start collect start)))
    (when starts
      (let ((start (reduce #'min starts)))
        ;; A definition in the current form is no earlier one.
        (and (< start (check-form-start check)) (name-place check start))))))

(defun duplicate-name (condition)
  "The name that a condition about a second definition is about."
  (or (and (typep condition redefinition-warning-type) (redefinition-name condition))
      (and (typep condition duplicate-definition-type) (duplicate-definition-name condition))
      (and (typep condition same-file-redefinition-type) (defined-name (check-form *check*)))
      (first (condition-arguments condition))))

(defparameter *stale-words*
  '("change in superclasses of class" "is incompatible with the most recently" "change in instance length of class"
    "change in placement of raw slots" "change in the inheritance structure" "Changing meta-class of" "redefining DEFTYPE type to be a class"
    "undeclaring functions for old subclasses" "Clobbering the compiler's idea of the layout"
    "is being redefined as a macro when it was previously defined to be a function")
  "SBCL's messages about a class or name that is not as it was. Its words are in code/class.lisp,
  code/defstruct.lisp, code/defmacro.lisp.")

(defun stale-p (check code condition)
  "Returns true if CONDITION is one only because an earlier state of the text is in the image."
  (flet ((new-p (name &optional (namespace (namespace-of (check-form check)))) (not (first-definition check name namespace))))
    ;; The message of a user's own macro has no arguments to recognise it by.
    (let ((words (and (or (condition-arguments condition) (not (typep condition 'simple-condition))) (say condition))))
      (cond ((typep condition redefinition-warning-type)
             (not (first-definition check (redefinition-name condition) :operator :exactly t)))
            ((typep condition package-variance-type) (new-p (defined-name (check-form check))))
            ((string= code "redefinition") (new-p (duplicate-name condition) :operator))
            ((and words (search "The new " words) (search " proclamation for " words))
             ;; The first that differs replaces what the image knew; another in the same text is a
             ;; conflict of its own.
             (let ((key (subseq words 0 (position #\Space words :start (+ (search "for " words) 4)))))
               (not (shiftf (gethash key (check-definitions check)) t))))
            ((and words (some (lambda (stale) (search stale words)) *stale-words*)) (new-p (defined-name (check-form check))))))))

(defun forget-definitions (check form)
  "Makes the compiler forget the functions that the text defines from FORM, which comes next, to its
  next IN-PACKAGE, so that calls before their definitions are not measured by what an earlier state
  of the text defined."
  (let ((text (check-text check)) (start (check-form-start check)))
    (when (and (>= start (check-forgotten-to check)) (not (in-package-form-p form)))
      (setf (check-forgotten-to check) (next-in-package text start))
      (dolist (at (definitions-between text start (check-forgotten-to check)))
        (let* ((token (definition-name text at))
               (head (and token (string-upcase (subseq text (1+ at) (position-if #'delimiter-p text :start (1+ at))))))
               (symbol (and (member head '("DEFUN" "DEFGENERIC") :test #'string=)
                            (not (find #\: token))
                            (find-symbol (string-upcase token) *package*))))
          (when (and symbol (eq (symbol-package symbol) *package*) (fboundp symbol) (not (sb-ext:package-locked-p *package*)))
            (push symbol (check-forgotten check))
            (cond ((special-operator-p symbol))
                  ((macro-function symbol) (fmakunbound symbol))
                  (t (forget-function-type symbol)))))))))

(defun forget-generic-function (form)
  "Undefines the generic function that FORM, a DEFGENERIC, defines with another lambda list: calls
  are measured by the function itself."
  (when (and (consp form) (eq (car form) 'defgeneric) (consp (cddr form)))
    (let* ((name (second form))
           (function (and (symbolp name) (fboundp name) (not (macro-function name)) (fdefinition name))))
      (when (and (typep function 'generic-function)
                 (not (equal (sb-mop:generic-function-lambda-list function) (third form)))
                 (eq (symbol-package name) *package*))
        (fmakunbound name)))))

(defun settle-redefinition (check condition)
  "Lets a definition that differs from the image's take its place when the text itself defined it
  only once: constants, structures."
  (let ((restart (cond ((typep condition 'sb-ext:defconstant-uneql)
                        (find-restart 'continue condition))
                       ((search "attempt to redefine the ~S class ~S incompatibly" (or (control-text condition) ""))
                        (or (and (internal-p 'recklessly-continue) (find-restart recklessly-continue condition))
                            (find-restart 'continue condition)))))
        (name (if (typep condition 'sb-ext:defconstant-uneql)
                  (ignore-errors (sb-ext:defconstant-uneql-name condition))
                  (second (condition-arguments condition)))))
    (when (and restart (not (first-definition check name (namespace-of (check-form check)))))
      (invoke-restart restart))))
