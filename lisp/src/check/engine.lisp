;;;; The check of one text: COMPILE-FILE, with its loop over the forms of a file replaced by ours.
;;;; It runs in a copy of the image, which it leaves changed as COMPILE-FILE would, and a little
;;;; more.

(in-package :consort)

(defvar *reading* nil "The READING of the text that is being compiled.")

(defun form-failed (check condition where)
  "Reports that compiling the current form was ended by CONDITION, or by a THROW or ABORT when that
  is NIL. WHERE: the compiler's place then, if it is known."
  (let* ((span (form-span check))
         (message (cond ((null condition) "Compiling this form was left by a THROW or ABORT.")
                        ((typep condition 'storage-condition)
                         (let ((words (condition-report condition)))
                           (format nil "~A. Is there a macro that never ends?"
                                   (subseq words 0 (or (search " (" words) (position #\. words) (length words))))))
                        (t (condition-report condition))))
         (refused (and condition (confinement-errno condition) (check-confined check)))
         (package (and condition (typep condition 'package-error) (in-package-form-p (check-form check))))
         (place (or (and package
                         (ignore-errors (designator-place check (check-form check) (package-error-package condition))))
                    where
                    span)))
    (when package (enter-placeholder-package check (package-error-package condition)))
    (report-finding check (new-finding check (car place) (cdr place) :error
                                       (cond (refused "confined")
                                             (package "unknown-package")
                                             ((typep condition 'storage-condition) "exhausted")
                                             ((typep condition 'form-out-of-time) "out-of-time")
                                             (t "compile-time-error"))
                                       (if refused (confined-message message condition) message)
                                       :condition (and condition (type-name-for-user condition))
                                       :data (and package
                                                  (list "package" (ignore-errors (string (package-error-package condition)))))))))

(defun report-macroexpand-hook (check)
  "Reports that the current form set *MACROEXPAND-HOOK*, once: what it makes of the forms after it
  is compiled, and not what they say."
  (unless (shiftf (check-hook-reported check) t)
    (let ((span (form-span check)))
      (report-finding check (new-finding check (car span) (cdr span) :information "style"
                                         "This sets *MACROEXPAND-HOOK*, which expands the macros from here on: what follows is not judged as it stands.")))))

(defun compile-one (check function form info)
  "Has FUNCTION, the compiler's, process FORM, the next of the file that INFO describes."
  (let* ((file (source-info-file info))
         (forms (file-info-forms file))
         (index (fill-pointer forms))
         (operator (ignore-errors (operator-now form))))
    (vector-push-extend form forms)
    (vector-push-extend (check-form-start check) (file-info-positions file))
    (incf (check-forms check))
    (unless (check-first-span check) (setf (check-first-span check) (form-span check)))
    (when (in-package-form-p form)
      (setf (check-lost-package check) nil)
      (unless (check-in-package-span check) (setf (check-in-package-span check) (form-span check))))
    (handler-case (progn (note-definition check form)
                         (forget-definitions check form)
                         (forget-generic-function form))
      (error () nil))
    (let ((hook *macroexpand-hook*))
      (call-guarded (lambda ()
                      (funcall function form :current-index index))
                    (lambda (condition where) (form-failed check condition where))
                    (lambda () (nth-value 1 (locate-context check))))
      (unless (eq *macroexpand-hook* hook) (report-macroexpand-hook check)))
    (handler-case (progn (note-operator check form operator)
                         (report-duplicate check form))
      (error () nil))))

(defun begin-form (check start)
  "Resets the state of CHECK for the next form, which is read from START on."
  (setf (check-form check) nil
        (check-duplicate-reported check) nil
        (check-failures check) '()
        (check-form-line check) nil
        (check-index check) nil
        (check-form-start check) start
        (check-form-end check) (min (length (check-text check)) (1+ start))))

(defun compile-next (check reading start function info)
  "Reads the form that begins at or behind START and calls FUNCTION, the compiler's, with it.
  Returns the second value of READ-ONE."
  (let* ((text (check-text check)) (begin (skip-comments text start)))
    (flet ((report-at (end)
             (when (< begin (length text))
               (funcall (check-at check) begin (max (1+ begin) (min (length text) end))))))
      (report-at 0)
      (multiple-value-bind (form state) (read-one reading)
        (unless (eq state :end) (incf (check-met check)))
        (ecase state
          (:end (report-at (length text))) ; what is left was read as a comment
          (:unreadable
           (skip-unreadable reading start)
           (report-at (reading-position reading)))
          (:form
           (let* ((subforms (reading-subforms reading)) (n (length subforms)))
             (setf (check-form check) form
                   (check-subforms check) subforms)
             (when (>= n 3)
               (setf (check-form-start check) (aref subforms (- n 3))
                     (check-form-end check) (aref subforms (- n 2))))
             (funcall (check-at check) (check-form-start check) (check-form-end check))
             (funcall (check-around-form check) (lambda () (compile-one check function form info))))))
        state))))

(defun compile-text (check function info)
  "Reads the text of CHECK form by form and calls FUNCTION, the compiler's, with each, as its own
  loop over a file would."
  (let ((reading *reading*))
    (setf *compile-file-pathname* (check-path check)
          *compile-file-truename* (check-path check)
          (file-info-truename (source-info-file info)) (file-info-pathname (source-info-file info))
          (reading-subforms reading) (file-info-subforms (source-info-file info)))
    (reopen reading 0)
    (unwind-protect
         (loop
           (let ((start (funcall (check-before-form check) (skip-blanks (check-text check) (reading-position reading)))))
             (setf (source-info-stream info) (reading-stream reading))
             (begin-form check start)
             (let ((state (compile-next check reading start function info)))
               (funcall (check-after-form check) start
                        (if (eq state :form) (check-form-end check) (max (1+ start) (reading-position reading)))
                        state)
               (when (eq state :end) (return)))))
      (setf (source-info-stream info) nil)
      (close (reading-stream reading)))))

(defvar *checks* '() "The CHECKs of this compilation unit, newest first.")

(defun report-undefined ()
  "Reports, at the end of a compilation unit, the names that nothing in it defined."
  (when *checks*
    (dolist (check (reverse *checks*))
      (let ((*check* check))
        (mapc (lambda (finding) (report-finding check finding)) (take-undefined check *checks*))
        (mapc (lambda (finding) (report-finding check finding)) (take-unknown-keywords check))))
    (forget-undefined-warnings)))

(sb-ext:defglobal *checking* nil "True if this process is a copy that checks: then the hooks below
  are in force.")

(defmacro hook (name (original &rest lambda-list) &body body)
  "Has BODY called instead of the function NAME, with that as ORIGINAL, in a copy that checks.
  Installed when the image is built, because that takes tens of milliseconds. In the image itself
  NAME does what it always did."
  `(encapsulate ,name 'consort-check
                (lambda (,original &rest arguments)
                  (declare (type function ,original))
                  (if *checking*
                      (destructuring-bind ,lambda-list arguments ,@body)
                      (apply ,original arguments)))))

(defun plain-definition-p (form)
  "Returns true if no code of the user's in FORM runs when it is loaded, so that the compiler may
  put its load-time code off."
  (and (consp form)
       (member (first form) '(in-package defpackage declaim defun defmacro defmethod defgeneric defclass deftype define-condition))))

;; COMPILE-FILE reads through COMPILE-TEXT.
(hook do-forms-name (original function info &rest more)
  (if (and *check* *reading* (null (reading-stream *reading*)))
      (compile-text *check* function info)
      (apply original function info more)))

(hook note-undefined-name (original name kind)
  (funcall original name kind)
  (when (and *check* (undefined-now-p name kind))
    (handler-case (note-undefined-use *check* name kind)
      (error () nil))))

(when (internal-p 'note-key-mismatch-name)
  (hook note-key-mismatch-name (original name keywords)
    (funcall original name keywords)
    (when *check*
      (handler-case (note-keyword-use *check* name keywords)
        (error () nil)))))

(hook compile-toplevel-name (original &rest more)
  (when *check*
    (handler-case (note-function-uses *check*)
      (error () nil)))
  (apply original more))

;; The compiler puts load-time code off, to compile that of several forms at once: its messages
;; would then be reported for a later form.
(hook compile-toplevel-lambdas-name (original lambdas force)
  (funcall original lambdas (or force (and *check* (not (plain-definition-p (check-form *check*)))))))

(hook summarize-name (original abort)
  (report-undefined)
  (funcall original abort))

;; Output of the compiler would be discarded anyway.
(hook print-compiler-message-name (original &rest more)
  (declare (ignore more))
  nil)

;; A warning that code merely signals has no MUFFLE-WARNING: then these would fail.
(hook warning-handler-name (original condition)
  (when (find-restart 'muffle-warning condition)
    (funcall original condition)))

(hook style-warning-handler-name (original condition)
  (when (find-restart 'muffle-warning condition)
    (funcall original condition)))

;; Files that ASDF's operations would have compiled, and that a system's own methods on them do not.
(defvar *compile-instead* nil "A function without arguments that is called instead of compiling *COMPILED-COMPONENT* for ASDF; NIL for none.")
(defvar *compiled-component* nil "See *COMPILE-INSTEAD*.")

(defun visited-component ()
  "The component on which ASDF performs an operation now, or NIL."
  (let ((session asdf/session:*asdf-session*))
    (and session (cdr (first (asdf/session:visiting-action-list session))))))

;; Files that the system's own methods load meanwhile are not the system's.
(hook 'uiop:compile-file* (original file &rest more)
  (if (and *compile-instead* (eq *compiled-component* (visited-component)))
      (funcall *compile-instead*)
      (apply original file more)))

;; The loader would look for the threads that a copy does not have before the system could refuse
;; it.
(hook 'sb-posix:fork (original)
  (error 'sb-posix:syscall-error :errno sb-posix:eperm :name 'sb-posix:fork))

(defun discard-fasls (directory)
  "Has the files that Lisp opens for output below DIRECTORY written to /dev/null from now on. Must
  be called while /dev/null can still be opened."
  (let ((prefix (sb-ext:native-namestring directory))
        (descriptor (sb-posix:open "/dev/null" sb-posix:o-wronly)))
    (encapsulate 'open 'consort
                 (lambda (original path &rest arguments &key direction element-type &allow-other-keys)
                   (if (and (member direction '(:output :io))
                            (typep path '(or string pathname))
                            (eql 0 (search prefix (sb-ext:native-namestring path))))
                       (make-fd-stream (sb-posix:dup descriptor) :output t :input nil :element-type (or element-type 'character)
                                                                  :buffering :full)
                       (apply original path arguments))))))

(defun observable-p (condition)
  "Returns true if CONDITION was signalled by WARN, or is not a warning at all."
  (or (not (typep condition 'warning))
      (find-restart 'muffle-warning condition)))

(defvar *ask-handlers* nil "True if the code that has the file compiled may have handlers: what
  these muffle is not reported.")
(defvar *shown-to-handlers* nil "True if a condition is shown to those handlers: then ours let it
  pass.")

(defun observe-unless-muffled (check condition)
  "Reports CONDITION, a warning or note, unless the code that has the file compiled muffles it."
  (when *ask-handlers*
    (let ((*shown-to-handlers* t)) (signal condition)))
  (observe check condition))

(defun call-observing (check function)
  "Calls FUNCTION, reporting what the compiler signals."
  (handler-bind ((sb-ext:compiler-note (lambda (condition) (observe-unless-muffled check condition)))
                 (warning (lambda (condition)
                            (when (observable-p condition) (observe-unless-muffled check condition))))
                 (error (lambda (condition) (settle-redefinition check condition)))
                 (condition (lambda (condition)
                              (when (typep condition compiler-error-type) (observe check condition)))))
    (funcall function)))

(defmacro with-checks (() &body body)
  "BODY as one compilation unit, which may have several RUN-CHECKs: names count as undefined at its
  end."
  `(let ((*checks* '()))
     (with-compilation-unit (:override t) ,@body)))

(defun enter-placeholder-package (check designator)
  "Handles an IN-PACKAGE of a package that does not exist: what follows is read in an empty one of
  that name, and names in it mean nothing."
  (setf (check-lost-package check) t
        (check-unknown-packages check) t)
  (handler-case (push (setf *package* (make-package (string designator) :use '(:common-lisp))) (check-placeholders check))
    (error () nil)))

(defun forget-placeholders (check)
  "Renames the placeholder packages, so that code can make packages of their names."
  (loop for package in (shiftf (check-placeholders check) '())
        do (handler-case (rename-package package (symbol-name (gensym "PLACEHOLDER-")))
             (error () nil))))

(defun report-held-back (check code message)
  "Reports, instead of the held findings of CHECK, why nothing can be said of names."
  (let ((place (or (check-in-package-span check) (check-first-span check) (cons 0 1))))
    (funcall (check-emit check)
             (make-finding :start (car place) :end (cdr place) :severity :information :code code :message message :toplevel place))))

(defun system-of-check (check)
  "SYSTEM-OF-FILE for the file of CHECK, which is looked for once."
  (values-list (or (check-system-facts check)
                   (setf (check-system-facts check) (multiple-value-list (system-of-file (check-path check) (check-asd-files check)))))))

(defun settle-names (check)
  "Reports the held findings, or, when names are unknown because the file's system is not loaded or
  not for this Lisp, only that."
  (let ((held (sort (shiftf (check-held check) '()) #'< :key #'finding-start)))
    (when held
      (forget-placeholders check)
      (multiple-value-bind (system loaded late)
          (and (check-path check) (some #'name-finding-p held) (system-of-check check))
        (cond ((and system (not (component-for-this-lisp-p (component-with-file (asdf:registered-system system) (check-path check)))))
               (report-held-back check "not-for-this-lisp"
                                 (format nil "The system ~S has this file for other Lisps or features only (:IF-FEATURE), so it is not checked here." system)))
              (late
               (report-held-back check "no-system"
                                 (format nil "The system definition ~A was left after ~A, so it is not known whether this file's names are a loaded system's. ~
                                              They are not checked. Does something in the definition never end?"
                                         (file-namestring late) (seconds-text +definition-limit+))))
              ;; An unknown prefix says nothing of other names.
              ((and (null system) (check-lost-package check) (find "unknown-package" held :key #'finding-code :test #'string=))
               (report-held-back check "no-system"
                                 (format nil "~A This file is of no system that is known here, so what its names mean is not known either: ~
                                              load what defines its package." (finding-message (find "unknown-package" held :key #'finding-code :test #'string=)))))
              ((and system (not loaded))
               (setf (check-unloaded-system check) system)
               (let ((place (or (check-in-package-span check) (check-first-span check) (cons 0 1))))
                 (funcall (check-emit check)
                          (make-finding :start (car place) :end (cdr place) :severity :information :code "system-not-loaded"
                                        :message (format nil "The system ~S of this file is not loaded, so its names are not known here." system)
                                        :toplevel place
                                        :data (list "system" system)))))
              (t (mapc (check-emit check) held)))))))

(defun source-file-of (check)
  "Returns the file into which the text of CHECK is put to be read."
  (merge-pathnames "text.lisp" (check-scratch check)))

(defun put-source (check)
  "Puts the text of CHECK, with what is withheld made blank, where it is read from."
  (loop for (start) in (check-withheld check) do (note-unseen-name check start))
  (when (check-withheld check)
    (setf (check-text check) (blank (check-text check) (check-withheld check))))
  (write-source (check-text check) (source-file-of check))
  (setf (check-written check) t))

(defun run-check (check)
  "Checks the text of CHECK, within WITH-CHECKS, in a copy that is *CHECKING*. Returns the fasl's
  path, or NIL."
  (push check *checks*)
  (let* ((scratch (check-scratch check))
         (stub (source-file-of check))
         (fasl (merge-pathnames "text.fasl" scratch))
         (*check* check)
         (*reading* (make-reading check stub))
         (*package* (or (find-package (check-package check)) (user-package)))
         (*readtable* *readtable*)
         (*read-eval* (eq (check-mode check) :file))
         (*load-pathname* (check-path check))
         (*load-truename* (check-path check))
         (*default-pathname-defaults* (if (check-path check)
                                          (make-pathname :name nil :type nil :version nil :defaults *default-pathname-defaults*)
                                          *default-pathname-defaults*)))
    (unless (check-written check) (put-source check))
    (let ((output (make-broadcast-stream)))
      (let ((*standard-output* output) (*error-output* output) (*trace-output* output)
            (*compile-verbose* nil) (*compile-print* nil))
        (call-guarded
         (lambda ()
           (call-observing check
                           (lambda ()
                             (with-compilation-unit (:source-namestring (and (check-path check) (namestring (check-path check))))
                               (values (compile-file stub :output-file fasl :external-format :utf-8))))))
         (lambda (condition where) (form-failed check condition where)))))))
