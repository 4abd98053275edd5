;;;; The state of a running check, and its findings, the diagnostics that it reports.

(in-package :consort)

(defstruct finding
  "A diagnostic: the fields of Diagnostic in server/src/model/diagnostic.rs."
  (start 0 :type fixnum)
  (end 0 :type fixnum)
  (severity :warning :type (member :error :warning :style-warning :note :information))
  (code "" :type string)
  (message "" :type string)
  (condition nil)                       ; the name of the condition's type, printed in CL-USER
  (form nil)                            ; the top-level form, printed on one line
  (toplevel nil)                        ; the span of the top-level form: (start . end)
  (tags '() :type list)                 ; :unnecessary, :deprecated
  (related '() :type list)              ; (start end message) or (start end message file)
  (data '() :type list)                 ; plist of strings
  (follows nil)                         ; true if an unknown name in the form is a possible cause
  (file nil))                           ; a path, when a system is checked

(defstruct (undefined-use (:constructor make-undefined-use (name kind finding tentative form-start)))
  "A use of a name that was undefined when the compiler reached the use. FINDING is reported only if
  the name is still undefined at the end of the check. If TENTATIVE is true, the use is dropped once
  all uses in the top-level form at FORM-START are found."
  name kind finding tentative form-start)

(defstruct check
  "The state of the check of one text."
  (text "" :type (simple-array character (*)))
  (path nil)                            ; the pathname of the text's own file; NIL if none
  (mode :file :type (member :file :form))
  (package "COMMON-LISP-USER")
  (notes nil)                           ; report compiler notes
  (unreachable nil)                     ; report deleted code
  (confined nil)
  (withheld '())                        ; spans that are left out: ((start . end) ...)
  (scratch nil)                         ; the directory for the text and the fasl
  (written nil)                         ; whether the text is in the scratch directory yet
  (emit #'identity :type function)      ; called with each finding
  (at (constantly nil) :type function)  ; called with the span of each top-level form
  ;; Called with the offset at which the next form is to be read. Returns the offset to use instead.
  (before-form #'identity :type function)
  ;; Called with a function that compiles the current form.
  (around-form #'funcall :type function)
  ;; Called with the offset at which reading the form began, the offset of the form's end, and
  ;; :FORM, :END or :UNREADABLE (READ-ONE's second value).
  (after-form (constantly nil) :type function)
  (forms 0 :type fixnum)                ; the number of compiled forms
  (met 0 :type fixnum)                  ; the number of forms read, including unreadable ones
  ;; The current top-level form.
  (form nil)
  (form-line nil)                       ; the form on one line, made for the first finding
  (form-start 0 :type fixnum)
  (form-end 0 :type fixnum)
  (subforms nil)                        ; the reader's reports: start, end, object, ...
  (index nil)                           ; the FORM-INDEX of SUBFORMS; NIL until it is needed
  (marked (make-hash-table :test 'equal)) ; (start end code message) of reported findings
  (used (make-hash-table :test 'equal)) ; (key span) of places that UNUSED-PLACE has returned
  ;; For the whole text:
  ;; (operator name) and (namespace name) -> the offset of the first such definition; see
  ;; stale.lisp.
  (definitions (make-hash-table :test 'equal))
  (unseen-names (make-hash-table :test 'equal)) ; names that withheld or unreadable forms define
  (undefined '())                       ; undefined-use, newest first
  (keyword-uses '())                    ; (generic-function keyword finding), newest first
  ;; Findings that unknown names may explain. They are reported at the end of the check, unless the
  ;; cause is that the file's system is not loaded.
  (held '())
  (asd-files '())                       ; files that may define the file's system
  (system-facts nil)                    ; the values of SYSTEM-OF-FILE, as a list, after its call
  (unloaded-system nil)                 ; the system's name, if it is known and not loaded
  (forgotten '())                       ; functions that the compiler was made to forget
  (forgotten-to 0 :type fixnum)         ; the offset up to which that was done
  (lost-package nil)                    ; true if an IN-PACKAGE failed: names are unreliable
  (placeholders '())                    ; packages made in place of unknown ones
  (duplicate-reported nil)              ; true if the current form was reported as a duplicate
  (failures '())                        ; lists of the current form that could not be compiled
  (hook-reported nil)                   ; true once a finding reported a set *MACROEXPAND-HOOK*
  (unknown-packages nil)                ; some package of the text does not exist
  (first-span nil)                      ; the span of the first form
  (in-package-span nil)                 ; the span of the first IN-PACKAGE
  (reader-messages (make-hash-table :test 'equal)))

(define-global *form-recorder* nil
  "The FORM-RECORDER (chain/effects.lisp) of the form that is being compiled, in a process of a
  chain; NIL in other processes.")

(defvar *check* nil "The CHECK of the text that is being compiled, in a copy.")

(declaim (ftype function note-finding note-keywords))
(defun report-finding (check finding)
  "Reports FINDING, or holds it until the end of the check if the file's system may explain it. Does
  nothing if a finding with the same span, code and message was reported before, or if FINDING is
  meaningless because an IN-PACKAGE failed."
  (let ((key (list (finding-start finding) (finding-end finding) (finding-code finding) (finding-message finding))))
    (unless (or (gethash key (check-marked check))
                (and (check-lost-package check) (meaningless-p finding)))
      (setf (gethash key (check-marked check)) t)
      (when *form-recorder* (note-finding *form-recorder* finding))
      (if (and (check-asd-files check)
               (or (name-finding-p finding) (doubtful-finding-p finding)
                   ;; After a failed IN-PACKAGE, the system's macros and syntax are missing, too.
                   (and (check-lost-package check) (consequence-p finding))))
          (push finding (check-held check))
          (funcall (check-emit check) finding)))))

(defun meaningless-p (finding)
  "Returns true if FINDING may be wrong after an IN-PACKAGE of an unknown package: names are then
  read in a placeholder package, in which a call of a macro looks like a call of a function."
  (or (member (finding-code finding) '("unused-variable" "unused-function" "unread-variable" "unknown-class" "compile-time-error" "read-eval" "illegal-call"
                                       "style" "compiler" "undefined-function" "undefined-variable" "undefined-type" "unknown-symbol")
              :test #'string=)
      (search "There is no function named" (finding-message finding))))

(defun name-finding-p (finding)
  "Returns true if FINDING is about a name that nothing defines, or if such a name in the same form
  may be its cause."
  (or (finding-follows finding)
      (member (finding-code finding) '("unknown-package" "unknown-symbol" "undefined-function" "undefined-variable" "undefined-type")
              :test #'string=)
      (search "does not designate any package" (finding-message finding)))) ; in a DEFPACKAGE

(defun package-definition-finding-p (finding)
  "Returns true if FINDING is about a DEFPACKAGE that is wrong whatever else is loaded: its options
  are wrong, or the packages that it uses conflict."
  (or (search "(during macroexpansion of (DEFPACKAGE " (finding-message finding))
      (search "causes name-conflicts in" (finding-message finding))))

(defun doubtful-finding-p (finding)
  "Returns true if unknown names may be the only cause of FINDING: the arguments of an unknown macro
  are compiled as forms, a macro of the file calls a function that is defined in another file, or
  another file defines a dispatch macro character."
  (or (and (not (package-definition-finding-p finding))
           (member (finding-code finding) '("illegal-call" "macro-expansion" "compile-time-error" "unknown-block" "unknown-tag" "unknown-class" "note")
                   :test #'string=))
      (search "no dispatch function" (finding-message finding))))

(defun consequence-p (finding)
  "Returns true if the only cause of FINDING may be that an earlier file or package is not loaded,
  so that macros (whose arguments are then compiled as forms), types, compiler macros and reader
  syntax are missing."
  (member (finding-code finding) '("read-eval" "malformed-form" "type-conflict" "wrong-argument-count" "compiler") :test #'string=))
