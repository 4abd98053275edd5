;;;; Definitions in a checked text that the image already has, because the file was loaded before. A
;;;; difference between the text and the loaded definition is not reported.

(in-package :consort)

(defparameter *defining-forms*
  '(defmacro defclass defstruct define-condition deftype defgeneric defparameter defconstant define-compiler-macro defpackage)
  "Defining operators that a file may use only once for a name. The compiler itself reports a second
  DEFUN; DEFVAR and DEFMETHOD may be repeated.")

(defun defined-name (form)
  "Two values: the name that the top-level FORM defines, and true if FORM is a definition. Both are
  NIL otherwise."
  (when (and (definer-p form) (consp (cdr form)))
    (let ((name (second form)))
      (when (and (consp name) (member (car form) '(defstruct))) (setf name (car name)))
      (when (and (eq (car form) 'defpackage) (typep name '(or symbol string character)))
        (setf name (intern (string name) :keyword)))
      (values name t))))

(defun namespace-of (form)
  "The namespace in which the top-level FORM defines its name, a keyword; :UNKNOWN for other
  operators, such as the user's own. A class and a macro, for example, may have the same name."
  (case (and (consp form) (car form))
    ((defun defmacro defgeneric defmethod) :operator)
    ((defclass defstruct define-condition deftype) :type)
    ((defvar defparameter defconstant define-symbol-macro) :variable)
    (defpackage :package)
    (define-compiler-macro :compiler-macro)
    (t :unknown)))

(defun note-definition (check form)
  "Records, before FORM is compiled, the definition that it is, or the definitions in it
  (INNER-DEFINITIONS). Keeps the first definition of a name."
  (multiple-value-bind (name named) (defined-name form)
    (if named
        (dolist (key (list (list (car form) name) (list (namespace-of form) name)))
          (unless (gethash key (check-definitions check))
            (setf (gethash key (check-definitions check)) (check-form-start check))))
        (dolist (definition (inner-definitions form))
          (note-inner-definition check definition)))))

(defun inner-definitions (form)
  "The definitions in FORM that are top-level forms too, as in a PROGN. Does not expand macros."
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
  "Records DEFINITION, which is inside the current form, by its namespace only, so that
  REPORT-DUPLICATE does not count it. The compiler itself reports a second definition by the same
  operator."
  (let ((key (list (namespace-of definition) (defined-name definition))))
    (unless (or (eq (first key) :unknown) (gethash key (check-definitions check)))
      (setf (gethash key (check-definitions check))
            (or (car (object-span check definition)) (check-form-start check))))))

(defun report-duplicate (check form)
  "Reports FORM as a duplicate if the text has an earlier definition of its name by the same
  operator (*DEFINING-FORMS*), and the compiler did not report that."
  (multiple-value-bind (name named) (defined-name form)
    (when (and named (member (car form) *defining-forms*))
      (let ((earlier (gethash (list (car form) name) (check-definitions check))))
        (when (and earlier (/= earlier (check-form-start check)) (not (note-duplicate-reported check "duplicate-definition")))
          (let ((span (or (car-span check (cdr form)) (form-span check)))
                (first (name-place check earlier)))
            (report-finding check (new-finding check (car span) (cdr span) :warning "duplicate-definition"
                                               (format nil "Duplicate definition for ~A found in one file." (name-for-user name))
                                               :condition "WARNING"
                                               :related (list (list (car first) (cdr first) "First defined here."))))))))))

(defun name-place (check form-start)
  "The span of the name in the definition at FORM-START, or of one character if no name is found."
  (multiple-value-bind (token start end) (definition-name (check-text check) form-start)
    (if token (cons start end) (cons form-start (1+ form-start)))))

(defun operator-now (form)
  "The macro function or function that the name defined by FORM has now, if the namespace of FORM is
  unknown; otherwise NIL."
  (multiple-value-bind (name named) (defined-name form)
    (and named name (symbolp name) (eq (namespace-of form) :unknown)
         (or (macro-function name) (and (fboundp name) (fdefinition name))))))

(defun note-operator (check form before)
  "Records that FORM, which has been compiled, defined its name as an operator. Records nothing if
  OPERATOR-NOW still returns BEFORE, its value before the compilation."
  (let ((now (operator-now form)))
    (when (and now (not (eq now before)))
      (let ((key (list :operator (defined-name form))))
        (unless (gethash key (check-definitions check))
          (setf (gethash key (check-definitions check)) (check-form-start check)))))))

(defun first-definition (check name namespace &key exactly)
  "The span of the name in the first definition of NAME in NAMESPACE, if that definition precedes
  the current form; otherwise NIL. Unless EXACTLY is true, :UNKNOWN matches every namespace."
  (let ((starts (loop for space in (cond (exactly (list namespace))
                                         ((eq namespace :unknown) '(:operator :type :variable :package :compiler-macro :unknown))
                                         (t (list namespace :unknown)))
                      for start = (gethash (list space name) (check-definitions check))
                      when start collect start)))
    (when starts
      (let ((start (reduce #'min starts)))
        ;; A definition in the current form is not an earlier definition.
        (and (< start (check-form-start check)) (name-place check start))))))

(defun duplicate-name (condition)
  "The name in CONDITION, which the compiler signalled because the name was defined again."
  (or (and (typep condition redefinition-warning-type) (redefinition-name condition))
      (and (typep condition duplicate-definition-type) (duplicate-definition-name condition))
      (and (typep condition same-file-redefinition-type) (defined-name (check-form *check*)))
      (first (condition-arguments condition))))

(defparameter *stale-words*
  '("change in superclasses of class" "is incompatible with the most recently" "change in instance length of class"
    "change in placement of raw slots" "change in the inheritance structure" "Changing meta-class of" "redefining DEFTYPE type to be a class"
    "undeclaring functions for old subclasses" "Clobbering the compiler's idea of the layout"
    "is being redefined as a macro when it was previously defined to be a function")
  "Parts of SBCL's messages about a class or name whose definition changed. The messages are in
  code/class.lisp, code/defstruct.lisp and code/defmacro.lisp.")

(defun stale-p (check code condition)
  "Returns true if CONDITION, which has the code CODE, was signalled only because the image has
  definitions from an earlier state of the text."
  (flet ((new-p (name &optional (namespace (namespace-of (check-form check)))) (not (first-definition check name namespace))))
    ;; A simple condition without arguments is not one of SBCL's, whose messages are recognised
    ;; below. A macro of the user's may have signalled it.
    (let ((words (and (or (condition-arguments condition) (not (typep condition 'simple-condition))) (condition-report condition))))
      (cond ((typep condition redefinition-warning-type)
             (not (first-definition check (redefinition-name condition) :operator :exactly t)))
            ((typep condition package-variance-type) (new-p (defined-name (check-form check))))
            ((string= code "redefinition") (new-p (duplicate-name condition) :operator))
            ((and words (search "The new " words) (search " proclamation for " words))
             ;; The first proclamation that differs replaces the image's. Another one in the same
             ;; text is a conflict within the text.
             (let ((key (subseq words 0 (position #\Space words :start (+ (search "for " words) 4)))))
               (not (shiftf (gethash key (check-definitions check)) t))))
            ((and words (some (lambda (stale) (search stale words)) *stale-words*)) (new-p (defined-name (check-form check))))))))

(defun forget-definitions (check form)
  "Makes the compiler forget the functions that the text defines from FORM, the next form, up to the
  next IN-PACKAGE form. Otherwise calls that precede a definition would be checked against the
  lambda list of an earlier state of the text. Concerns DEFUN and DEFGENERIC of symbols whose home
  package is the current one. Undefines a macro of such a name."
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
  "Undefines the generic function that the image has for FORM, if FORM is a DEFGENERIC with another
  lambda list. The compiler would otherwise check calls against the existing function."
  (when (and (consp form) (eq (car form) 'defgeneric) (consp (cddr form)))
    (let* ((name (second form))
           (function (and (symbolp name) (fboundp name) (not (macro-function name)) (fdefinition name))))
      (when (and (typep function 'generic-function)
                 (not (equal (sb-mop:generic-function-lambda-list function) (third form)))
                 (eq (symbol-package name) *package*))
        (fmakunbound name)))))

(defun settle-redefinition (check condition)
  "Invokes the restart that replaces the image's definition, if CONDITION reports that a constant or
  structure differs from the image's definition and the text has no earlier definition of it."
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
