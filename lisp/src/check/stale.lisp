;;;; Checking a file that the image has loaded already is the normal case: what the image knows of it from then is no finding.

(in-package :consort)

(defparameter *defining-forms*
  '(defmacro defclass defstruct define-condition deftype defgeneric defparameter defconstant define-compiler-macro defpackage)
  "What may stand once for a name in a file; DEFUN is left to the compiler, DEFVAR and DEFMETHOD may be repeated.")

(defun defined-name (form)
  "The name that the top-level FORM defines, or NIL; the second value says whether there is one."
  (when (and (consp form) (symbolp (car form)) (consp (cdr form))
             (let ((head (symbol-name (car form)))) (and (> (length head) 3) (string= "DEF" head :end2 3))))
    (let ((name (second form)))
      (when (and (consp name) (member (car form) '(defstruct))) (setf name (car name)))
      (when (and (eq (car form) 'defpackage) (typep name '(or symbol string character)))
        (setf name (intern (string name) :keyword)))
      (values name t))))

(defun note-definition (check form)
  "Remember what FORM, which the compiler comes to now, defines."
  (multiple-value-bind (name named) (defined-name form)
    (when named
      (dolist (key (list (list (car form) name) name))
        (unless (gethash key (check-definitions check))
          (setf (gethash key (check-definitions check)) (check-form-start check)))))))

(defun tell-duplicate (check form)
  "Report it if the text defined the same as FORM before, as the same kind of thing, and the compiler did not say so."
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

(defun first-definition (check name)
  "The span of the name where the text first defines NAME, or NIL."
  (let ((start (gethash name (check-definitions check))))
    (and start (/= start (check-form-start check)) (name-place check start))))

(defun duplicate-name (condition)
  "The name that a condition about a second definition is about."
  (or (and (typep condition redefinition-warning-type) (redefinition-name condition))
      (and (typep condition duplicate-definition-type) (duplicate-definition-name condition))
      (and (typep condition same-file-redefinition-type) (defined-name (check-form *check*)))
      (first (condition-arguments condition))))

(defun stale-p (check code condition)
  "Whether CONDITION is one only because an earlier state of the text is in the image."
  (cond ((typep condition redefinition-warning-type)
         (not (first-definition check (redefinition-name condition))))
        ((and package-variance-type (typep condition package-variance-type))
         (not (first-definition check (second-value-keyword check))))
        ((string= code "redefinition")
         (not (first-definition check (duplicate-name condition))))))

(defun second-value-keyword (check)
  "The keyword under which the package that the current form defines is remembered."
  (values (defined-name (check-form check))))

(defun settle-redefinition (check condition)
  "Let a definition that differs from the image's take its place when the text itself defined it only once: constants, structures."
  (let ((restart (cond ((typep condition 'sb-ext:defconstant-uneql)
                        (find-restart 'continue condition))
                       ((find-restart 'recklessly-continue* condition)))))
    (when (and restart (not (first-definition check (ignore-errors (sb-ext:defconstant-uneql-name condition)))))
      (invoke-restart restart))))
