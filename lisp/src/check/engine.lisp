;;;; The check of one text: COMPILE-FILE, with its loop over the forms of a file replaced by
;;;; COMPILE-TEXT. The check runs in a copy of the image. Besides the effects of COMPILE-FILE, the
;;;; copy loses definitions that the text replaces (stale.lisp) and gets placeholder packages.

(in-package :consort)

(defvar *reading* nil "The READING of the text that is being compiled.")

(defun form-failed (check condition where)
  "Reports that the compilation of the current form was ended by CONDITION, or by a THROW or ABORT
  if CONDITION is NIL. WHERE is the span of the compiler's place at that time, or NIL."
  (let* ((span (form-span check))
         (message (cond ((null condition) "Compiling this form was left by a THROW or ABORT.")
                        ((typep condition 'storage-condition)
                         (let ((words (condition-report condition)))
                           (format nil "~A. Is there a macro that never ends?"
                                   (subseq words 0 (or (search " (" words) (position #\. words) (length words))))))
                        (t (condition-report condition))))
         (refused (and condition (confinement-refusal-p condition) (check-confined check)))
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
  "Reports, once in a text, that the current form set *MACROEXPAND-HOOK*. The compiler then compiles
  the forms after it as the hook expands them, and not as they are written."
  (unless (shiftf (check-hook-reported check) t)
    (let ((span (form-span check)))
      (report-finding check (new-finding check (car span) (cdr span) :information "style"
                                         "This sets *MACROEXPAND-HOOK*, which expands the macros from here on: what follows is not judged as it stands.")))))

(defun compile-one (check function form info)
  "Compiles the top-level FORM by calling FUNCTION, which the compiler passed to its loop over the
  forms of a file. INFO is the compiler's description of the file. Updates INFO and CHECK, and
  reports problems."
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
  "Resets the state of CHECK for the next form. Reading that form begins at START."
  (setf (check-form check) nil
        (check-duplicate-reported check) nil
        (check-failures check) '()
        (check-form-line check) nil
        (check-index check) nil
        (check-form-start check) start
        (check-form-end check) (min (length (check-text check)) (1+ start))))

(defun compile-next (check reading start function info)
  "Reads the first form at or after START, and compiles it with FUNCTION (COMPILE-ONE). Returns the
  second value of READ-ONE."
  (let* ((text (check-text check)) (begin (skip-comments text start)))
    (flet ((report-at (end)
             (when (< begin (length text))
               (funcall (check-at check) begin (max (1+ begin) (min (length text) end))))))
      (report-at 0)
      (multiple-value-bind (form state) (read-one reading)
        (unless (eq state :end) (incf (check-met check)))
        (ecase state
          (:end (report-at (length text))) ; the rest of the text was read as a comment
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
  "Reads the text of CHECK form by form, and compiles each form with FUNCTION (COMPILE-ONE).
  Replaces the compiler's own loop over the forms of a file."
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
  "Reports, at the end of a compilation unit, the names and keyword arguments that are still
  unknown. Keeps the compiler from reporting the names itself."
  (when *checks*
    (dolist (check (reverse *checks*))
      (let ((*check* check))
        (mapc (lambda (finding) (report-finding check finding)) (take-undefined check *checks*))
        (mapc (lambda (finding) (report-finding check finding)) (take-unknown-keywords check))))
    (forget-undefined-warnings)))

(sb-ext:defglobal *checking* nil "True if this process is a copy that checks. The hooks below
  have an effect only then.")

(defmacro hook (name (original &rest lambda-list) &body body)
  "Replaces the function NAME by BODY in a copy that checks. In BODY, ORIGINAL is the function
  replaced. Anywhere else NAME behaves as before. The hooks are installed when the image is built,
  because installing them takes tens of milliseconds."
  `(encapsulate ,name 'consort-check
                (lambda (,original &rest arguments)
                  (declare (type function ,original))
                  (if *checking*
                      (destructuring-bind ,lambda-list arguments ,@body)
                      (apply ,original arguments)))))

(defun plain-definition-p (form)
  "Returns true if FORM is a definition that runs no code of the user's when it is loaded. The
  compiler may then defer the compilation of its load-time code."
  (and (consp form)
       (member (first form) '(in-package defpackage declaim defun defmacro defmethod defgeneric defclass deftype define-condition))))

;; COMPILE-TEXT replaces the loop of the COMPILE-FILE that RUN-CHECK calls, but not the loops of
;; further COMPILE-FILEs within.
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

;; The compiler defers load-time code in order to compile that of several forms together. The
;; messages would then be reported for a later form, so the code is compiled at once.
(hook compile-toplevel-lambdas-name (original lambdas force)
  (funcall original lambdas (or force (and *check* (not (plain-definition-p (check-form *check*)))))))

(hook summarize-name (original abort)
  (report-undefined)
  (funcall original abort))

;; RUN-CHECK discards the compiler's output, so its messages need not be printed.
(hook print-compiler-message-name (original &rest more)
  (declare (ignore more))
  nil)

;; The compiler's handlers for warnings invoke the restart MUFFLE-WARNING. The handlers would fail
;; for a warning that was signalled by SIGNAL, because there is no such restart.
(hook warning-handler-name (original condition)
  (when (find-restart 'muffle-warning condition)
    (funcall original condition)))

(hook style-warning-handler-name (original condition)
  (when (find-restart 'muffle-warning condition)
    (funcall original condition)))

;; The check of a system has ASDF perform its COMPILE-OP on each file, so that a system's own
;; methods run, but replaces the compilation in that operation (system.lisp).
(defvar *compile-instead* nil "A function without arguments, called instead of
  UIOP:COMPILE-FILE* while ASDF compiles *COMPILED-COMPONENT*; NIL for none.")
(defvar *compiled-component* nil "The component to which *COMPILE-INSTEAD* applies, or NIL.")

(defun visited-component ()
  "The component on which ASDF is performing an operation, or NIL."
  (let ((session asdf/session:*asdf-session*))
    (and session (cdr (first (asdf/session:visiting-action-list session))))))

;; A system's own method may load other components meanwhile. Their files are compiled as usual.
(hook 'uiop:compile-file* (original file &rest more)
  (if (and *compile-instead* (eq *compiled-component* (visited-component)))
      (funcall *compile-instead*)
      (apply original file more)))

;; SB-POSIX:FORK looks for SBCL's other threads, which a copy does not have, before the system could
;; refuse the call. Here it fails at once, as a refused call does.
(hook 'sb-posix:fork (original)
  (error 'sb-posix:syscall-error :errno sb-posix:eperm :name 'sb-posix:fork))

(defun discard-fasls (directory)
  "Redirects output to files below DIRECTORY to /dev/null from now on, if Lisp's OPEN opens them.
  Must be called while /dev/null can still be opened."
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
  "Returns true if CONDITION is not a warning, or is a warning with the restart MUFFLE-WARNING, as
  WARN establishes it."
  (or (not (typep condition 'warning))
      (find-restart 'muffle-warning condition)))

(defvar *ask-handlers* nil "True if a method of the system's own calls the compilation, and may have
  handlers for warnings. Warnings that such a handler muffles are not reported.")
(defvar *shown-to-handlers* nil "True while a condition is signalled for those handlers only. The
  handler of CALL-SILENTLY does not muffle the condition then.")

(defun observe-unless-muffled (check condition)
  "Reports CONDITION, a warning or compiler note, unless a handler of the code that calls the
  compilation muffles it (*ASK-HANDLERS*)."
  (when *ask-handlers*
    (let ((*shown-to-handlers* t)) (signal condition)))
  (observe check condition))

(defun call-observing (check function)
  "Calls FUNCTION. Reports the notes, warnings and compiler errors that are signalled meanwhile.
  SETTLE-REDEFINITION may handle other errors."
  (handler-bind ((sb-ext:compiler-note (lambda (condition) (observe-unless-muffled check condition)))
                 (warning (lambda (condition)
                            (when (observable-p condition) (observe-unless-muffled check condition))))
                 (error (lambda (condition) (settle-redefinition check condition)))
                 (condition (lambda (condition)
                              (when (typep condition compiler-error-type) (observe check condition)))))
    (funcall function)))

(defmacro with-checks (() &body body)
  "Runs BODY as one compilation unit, which may contain several calls of RUN-CHECK. Undefined names
  are reported at its end."
  `(let ((*checks* '()))
     (with-compilation-unit (:override t) ,@body)))

(defun enter-placeholder-package (check designator)
  "Handles an IN-PACKAGE form for a package that does not exist. The forms after it are read in a
  new placeholder package of that name, which uses only COMMON-LISP. Findings about names in it are
  not reported."
  (setf (check-lost-package check) t
        (check-unknown-packages check) t)
  (handler-case (push (setf *package* (make-package (string designator) :use '(:common-lisp))) (check-placeholders check))
    (error () nil)))

(defun forget-placeholders (check)
  "Renames the placeholder packages, so that code can create packages with those names."
  (loop for package in (shiftf (check-placeholders check) '())
        do (handler-case (rename-package package (symbol-name (gensym "PLACEHOLDER-")))
             (error () nil))))

(defun report-held-back (check code message)
  "Reports MESSAGE with CODE instead of the held findings of CHECK. MESSAGE says why names are not
  checked."
  (let ((place (or (check-in-package-span check) (check-first-span check) (cons 0 1))))
    (funcall (check-emit check)
             (make-finding :start (car place) :end (cdr place) :severity :information :code code :message message :toplevel place))))

(defun system-of-check (check)
  "The values of SYSTEM-OF-FILE for the file of CHECK. Calls that function only once for each
  check."
  (values-list (or (check-system-facts check)
                   (setf (check-system-facts check) (multiple-value-list (system-of-file (check-path check) (check-asd-files check)))))))

(defun settle-names (check)
  "Reports the held findings. If the names of the text cannot be known, reports only why: the file's
  system is not loaded, has the file for other Lisps only, or is not known."
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
              ;; An unknown package is the reason only if an IN-PACKAGE names it. An unknown package
              ;; prefix of one symbol does not concern other names.
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
  "Returns the pathname of the file from which the text of CHECK is read."
  (merge-pathnames "text.lisp" (check-scratch check)))

(defun put-source (check)
  "Replaces the withheld parts of the text of CHECK by blanks, and writes the text to the file from
  which it is read (SOURCE-FILE-OF)."
  (loop for (start) in (check-withheld check) do (note-unseen-name check start))
  (when (check-withheld check)
    (setf (check-text check) (blank (check-text check) (check-withheld check))))
  (write-source (check-text check) (source-file-of check))
  (setf (check-written check) t))

(defun run-check (check)
  "Checks the text of CHECK. Must be called within WITH-CHECKS, in a copy in which *CHECKING* is
  true. Returns the pathname of the fasl, or NIL if there is none."
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
