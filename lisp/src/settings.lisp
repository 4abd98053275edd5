;;;; The standard variables that user code sets, and their values. Consort's own threads have those
;;;; of the build. The image has those that its init files set. Each session has a copy of these
;;;; from the time when it began, and each check has another copy.
;;;;
;;;; User code also runs in threads that it has made itself. These see the global values, on which
;;;; Consort does not rely.

(in-package :consort)

(defparameter *repl-variables* '(* ** *** + ++ +++ / // /// -)
  "The variables of a REPL's history.")

(defparameter *settings*
  (append
   (list '*package* '*readtable* '*print-pprint-dispatch* '*random-state* '*features*
         '*print-array* '*print-base* '*print-case* '*print-circle* '*print-escape* '*print-gensym* '*print-length* '*print-level*
         '*print-lines* '*print-miser-width* '*print-pretty* '*print-radix* '*print-readably* '*print-right-margin*
         '*read-base* '*read-default-float-format* '*read-eval* '*read-suppress*
         '*break-on-signals* '*macroexpand-hook* '*debugger-hook* '*gensym-counter* '*default-pathname-defaults*
         '*compile-print* '*compile-verbose* '*load-print* '*load-verbose* 'sb-ext:*evaluator-mode* 'sb-ext:*muffled-warnings*)
   (remove nil (list policy-name handled-conditions-name disabled-package-locks-name))
   (loop for name in '("*PRINT-VECTOR-LENGTH*" "*COMPILE-PROGRESS*" "*INLINE-EXPANSION-LIMIT*" "*COMPILER-PRINT-VARIABLE-ALIST*"
                       "*DEBUG-PRINT-VARIABLE-ALIST*" "*DEFAULT-C-STRING-EXTERNAL-FORMAT*")
         for symbol = (find-symbol name "SB-EXT")
         when (and symbol (boundp symbol)) collect symbol)
   *repl-variables*)
  "The variables of which each session has its own values. COPY-SETTINGS treats the first five one
  by one.")

;;; CL-USER. SBCL and Consort hold the package object itself, so it must not be deleted or renamed
;;; (REFUSE-PACKAGE-LOSS). If that happens nevertheless, another one is made.

(defparameter *user-package-uses* (mapcar #'package-name (package-use-list "COMMON-LISP-USER"))
  "The names of the packages that SBCL's CL-USER uses.")

(defun make-user-package ()
  "A package that is called CL-USER and is like a new one."
  (let ((package (make-package "COMMON-LISP-USER" :nicknames '("CL-USER")
                                                  :use (remove-if-not #'find-package *user-package-uses*))))
    (shadow "DOUBLE" package)
    package))

(defun user-package ()
  "The package that is called CL-USER. It is made if there is none."
  (or (find-package "COMMON-LISP-USER") (make-user-package)))

(defun live-package (package)
  "PACKAGE, or CL-USER if PACKAGE was deleted."
  (if (and (packagep package) (package-name package)) package (user-package)))

;;; Values

(define-global *own-readtable* (copy-readtable nil) "The readtable of Consort's own threads.")
(define-global *own-dispatch* (copy-pprint-dispatch nil) "The pprint dispatch table of Consort's own
  threads.")

(define-global *own-values*
    (loop for symbol in *settings*
          collect (case symbol
                    (*package* (find-package "COMMON-LISP-USER"))
                    (*readtable* *own-readtable*)
                    (*print-pprint-dispatch* *own-dispatch*)
                    (*random-state* (make-random-state nil))
                    ((* ** *** + ++ +++ / // /// -) nil)
                    ;; The names of files come from the host in UTF-8.
                    (t (if (string= symbol "*DEFAULT-C-STRING-EXTERNAL-FORMAT*") :utf-8 (symbol-value symbol)))))
  "The values of Consort's own threads, in the order of *SETTINGS*.")

(defmacro with-own-settings (() &body body)
  "Runs BODY with the values that Consort's own threads have."
  `(let ((*users-code* nil)) (progv *settings* *own-values* ,@body)))

(defstruct (settings (:constructor make-settings (values &optional (seen 0))))
  "VALUES are in the order of *SETTINGS*. SEEN is the number of the image's published features that
  were already added to them."
  (values '() :type list)
  (seen 0 :type fixnum))

(define-global *image-settings* (make-settings *own-values*)
  "The values of the image: those at its start and those that its init files set. Loaded code
  changes the readtable of the image in place.")

(define-global *published-features* '() "Features that loaded files or systems have added, newest
  first.")
(define-global *features-lock* (sb-thread:make-mutex :name "consort features") "Held while a feature is published.")

(defun setting (settings symbol)
  "The value of SYMBOL in SETTINGS."
  (nth (position symbol *settings*) (settings-values settings)))

(defun (setf setting) (value settings symbol)
  "Sets the value of SYMBOL in SETTINGS. The list is replaced, because threads may have bound its
  values."
  (let ((values (copy-list (settings-values settings))))
    (setf (nth (position symbol *settings*) values) value
          (settings-values settings) values)
    value))

(defun global-value (symbol)
  "The global value of SYMBOL, regardless of any thread's binding."
  (sb-ext:symbol-global-value symbol))

(defun take-image-settings ()
  "Makes the global values the image's settings, with a readtable and a dispatch table of their own.
  Consort's own threads keep the values of the build, except for *DEFAULT-PATHNAME-DEFAULTS*."
  (setf *image-settings*
        (make-settings (loop for symbol in *settings*
                             collect (case symbol
                                       (*package* (user-package))
                                       (*readtable* (copy-readtable (global-value symbol)))
                                       (*print-pprint-dispatch* (copy-pprint-dispatch (global-value symbol)))
                                       ((* ** *** + ++ +++ / // /// -) nil)
                                       (t (global-value symbol)))))
        (nth (position '*default-pathname-defaults* *settings*) *own-values*) *default-pathname-defaults*))

(defun copy-of-settings (&key (tables t))
  "Settings that begin as the image's. If TABLES, they have a readtable and a dispatch table of
  their own, so that changes of these stay local."
  ;; The features are counted first. One that is published meanwhile is then added twice, and none
  ;; is left out.
  (let ((seen (length *published-features*)) (image (settings-values *image-settings*)))
    (destructuring-bind (package readtable dispatch random-state features &rest others) image
      (declare (ignore package))
      (make-settings (list* (user-package)
                            (if tables (copy-readtable readtable) readtable)
                            (if tables (copy-pprint-dispatch dispatch) dispatch)
                            (make-random-state random-state)
                            (copy-list features)
                            (copy-list others))
                     seen))))

(defun current-value (symbol)
  "The value of SYMBOL; that of the image's settings if user code has made SYMBOL unbound."
  (if (boundp symbol) (symbol-value symbol) (setting *image-settings* symbol)))

(defun refresh-settings (settings)
  "Adds the features that were published since to SETTINGS, and replaces a deleted package in them
  by CL-USER."
  (let* ((published *published-features*) (new (- (length published) (settings-seen settings))))
    (when (plusp new)
      (let ((features (setting settings '*features*)))
        (loop repeat new
              for feature in published
              do (setf features (adjoin feature features)))
        (setf (setting settings '*features*) features)
        (incf (settings-seen settings) new))))
  (let ((package (setting settings '*package*)))
    (unless (eq package (live-package package))
      (setf (setting settings '*package*) (user-package)))))

(defun call-with-settings (settings function)
  "Calls FUNCTION with SETTINGS in force. Assignments of FUNCTION are kept in them."
  (refresh-settings settings)
  (progv *settings* (settings-values settings)
    (unwind-protect (funcall function)
      (setf (settings-values settings) (mapcar #'current-value *settings*)))))

(defun package-of-settings (settings)
  "The name of the current package in SETTINGS."
  (package-name (live-package (setting settings '*package*))))

(defun call-with-copied-settings (function)
  "Calls FUNCTION, in a copy of the image, with the settings with which a check begins."
  (progv *settings* (settings-values (copy-of-settings)) (funcall function)))

(defun keep-in-image (settings)
  "Makes SETTINGS, which an init file has set, those of the image as a whole."
  (setf (setting settings '*package*) (user-package))
  (dolist (symbol *repl-variables*) (setf (setting settings symbol) nil))
  (loop for symbol in *settings*
        for value in (settings-values settings)
        unless (member symbol *repl-variables*)
          do (setf (sb-ext:symbol-global-value symbol)
                   (case symbol ; changes by threads of the user's stay with these
                     (*readtable* (copy-readtable value))
                     (*print-pprint-dispatch* (copy-pprint-dispatch value))
                     (t value))))
  (setf *image-settings* settings))

;;; Features. Those that code sets stay in its session. Those that a loaded file adds show what is
;;; loaded now, and so apply to every session and check.

(defun publish-features (before)
  "Publishes the features that exist now and were not in BEFORE, a list, to the image, to all
  sessions, and to threads of the user's."
  (unless (eq *features* before)
    (let ((new (set-difference *features* before)))
      (when new
        (with-lock (*features-lock*)
          (dolist (feature new)
            (unless (member feature (setting *image-settings* '*features*))
              (setf (setting *image-settings* '*features*) (adjoin feature (setting *image-settings* '*features*))
                    (sb-ext:symbol-global-value '*features*) (adjoin feature (global-value '*features*)))
              (push feature *published-features*)))))))) ; this is last, as COPY-OF-SETTINGS expects

(defun publish-what-is-loaded ()
  "From now on, the features that a loaded file or system adds are published."
  (dolist (name '(load asdf:operate))
    (encapsulate name 'consort-features
                 (lambda (function &rest arguments &aux (before *features*))
                   (unwind-protect (apply function arguments)
                     (publish-features before))))))
