;;;; The conditions of the compiler as findings. Each condition is observed and declined: nothing
;;;; here unwinds.

(in-package :consort)

(defun new-finding (check start end severity code message &rest more)
  "A finding in the current top-level form of CHECK."
  (apply #'make-finding :start start :end end :severity severity :code code :message message
         :form (and (check-form check) (check-form-text check))
         :toplevel (form-span check)
         more))

(defun check-form-text (check)
  "The top-level form on one line."
  (or (check-form-line check)
      (setf (check-form-line check) (abbreviate (check-form check)))))

(defun confined-message (message condition)
  "MESSAGE, the report of CONDITION, with the reason why the system refused an operation of the
  code."
  (let ((unread (unread-file condition)))
    (if unread
        (format nil "~A (Code under check runs confined: it can read the workspace, Lisp's own files, and what check.read names in your own config.toml, and ~
~A is none of these. If the code needs this file, add it to check.read, or load the file's system first.)" message unread)
        (format nil "~A (Code under check runs confined: it cannot write files, start programs or threads, or use the network. ~
If the code needs this, load the file's system first.)" message))))

(defun severity-of (condition)
  "The severity of CONDITION, which the compiler signals."
  (typecase condition
    (sb-ext:compiler-note :note)
    (style-warning :style-warning)
    (warning :warning)
    (t :error)))

(defun inner-condition (condition)
  "The condition that CONDITION encapsulates if that is a compiler's error, else CONDITION."
  (if (typep condition compiler-error-type)
      (encapsulated-condition condition)
      condition))

(defun observe (check condition)
  "Reports CONDITION, which the compiler signals, at the place that it is about. Never fails: if the
  place cannot be found, the top-level form is marked."
  (handler-case
      (multiple-value-bind (form span cons)
          (handler-case (locate-context check)
            (error () (values (check-form check) (form-span check) nil)))
        (observe-at check condition form (or span (form-span check)) cons))
    (error (problem)
      (report-finding check (new-finding check (check-form-start check) (check-form-end check) (severity-of condition) "compiler"
                                         (format nil "~A (The place could not be found: ~A)" (condition-report condition) (condition-report problem)))))))

(defun observe-at (check condition form span cons)
  "Reports CONDITION at a place within FORM, which was read at SPAN: the part that CONDITION is
  about, or the car of CONS, if either is found, else SPAN."
  (let* ((inner (inner-condition condition))
         (message (condition-report inner))
         (severity (severity-of condition))
         (code (cond ((typep condition 'sb-ext:code-deletion-note)
                      (if (search "unused function" (or (control-text condition) message)) "unused-function" "unreachable-code"))
                     ((and (eq severity :error) (macro-failure-p inner)) "macro-expansion")
                     ((kind-of inner message))
                     ((typep inner 'package-error) "unknown-package")
                     (t (ecase severity (:error "malformed-form") (:warning "compiler") (:style-warning "style") (:note "note")))))
         (place (or (handler-case (narrow check code inner form cons span) (error () nil)) span)))
    (when (eq severity :error) (note-failure check code form))
    (cond ((and (eq severity :error) (confinement-refusal-p inner) (check-confined check))
           (setf code "confined" message (confined-message message inner)))
          ((and (string= code "unknown-package") (in-package-form-p (check-form check)))
           (when (typep inner 'package-error) (enter-placeholder-package check (package-error-package inner)))))
    (unless (or (passed-over-p check code inner) (note-duplicate-reported check code))
      (report-finding check (new-finding check (car place) (cdr place) severity code message
                                         :condition (type-name-for-user inner)
                                         :tags (cond ((member code '("unused-variable" "unused-function" "unreachable-code" "unread-variable")
                                                              :test #'string=)
                                                      '(:unnecessary))
                                                     ((string= code "deprecated") '(:deprecated)))
                                         :related (related-places check code inner)
                                         :data (finding-facts code inner))))))

(defun unused-through-failure-p (check condition)
  "Returns true if the variable or function that CONDITION calls unused is named in a list that
  could not be compiled, so that it may be used there."
  (let ((variable (find-if (lambda (a) (and a (symbolp a))) (condition-arguments condition))))
    (and variable
         (some (lambda (failure)
                 (block search
                   (map-read (lambda (cons) (when (eq (uncomma (car cons)) variable) (return-from search t))) failure)
                   nil))
               (check-failures check)))))

(defun note-failure (check code form)
  "Remembers that FORM could not be compiled. If FORM is the part of a macro's call that the macro
  signals an error about, remembers the call around FORM too."
  (push form (check-failures check))
  (when (and (string= code "macro-expansion")
             (not (and (consp form) (symbolp (car form)) (macro-function (car form)))))
    (let ((around (second (member form (reverse (context-trail)) :test #'eq))))
      (when (consp around) (push around (check-failures check))))))

(defun in-package-form-p (form)
  "Returns true if FORM is an IN-PACKAGE."
  (and (consp form) (eq (car form) 'in-package)))

(defun finding-facts (code condition)
  "Returns the data of CONDITION that a quick fix for CODE needs, as a list of keys and values."
  (let ((name (first (condition-arguments condition))))
    (cond ((and (member code '("unused-variable" "unread-variable" "ignored-variable-used") :test #'string=) name (symbolp name))
           (list "symbol" (symbol-name name)))
          ((and (string= code "unknown-keyword") (symbolp name)) (list "keyword" (symbol-name name)))
          ((and (string= code "unknown-package") (typep condition 'package-error))
           (list "package" (ignore-errors (string (package-error-package condition))))))))

(defun related-places (check code condition)
  "The other places that explain CONDITION, each (START END MESSAGE)."
  (when (string= code "duplicate-definition")
    (let ((first (first-definition check (duplicate-name condition) (namespace-of (check-form check)))))
      (when first (list (list (car first) (cdr first) "First defined here."))))))

(defun note-duplicate-reported (check code)
  "Returns true if CODE is that of a duplicate definition, and one was already reported for the
  current form. Remembers that one is reported now."
  (when (member code '("duplicate-definition" "redefinition") :test #'string=)
    (shiftf (check-duplicate-reported check) t)))

(defun passed-over-p (check code condition)
  "Returns true if a finding is not wanted: a note that was not requested, a variable or function
  that may be used in a list that could not be compiled, and a condition that the compiler signals
  only because the file is loaded already."
  (or (and (typep condition 'sb-ext:compiler-note)
           (if (typep condition 'sb-ext:code-deletion-note)
               (not (or (check-unreachable check) (check-notes check)))
               (not (or (check-notes check) (speed-wanted-p)))))
      (and (member code '("unused-variable" "unused-function" "unread-variable") :test #'string=)
           (unused-through-failure-p check condition))
      (stale-p check code condition)))
