;;;; The state of a running check, and the findings it makes.

(in-package :consort)

(defstruct finding
  "A diagnostic: the fields of Diagnostic in server/src/model/diagnostic.rs."
  (start 0 :type fixnum)
  (end 0 :type fixnum)
  (severity :warning :type (member :error :warning :style-warning :note :information))
  (code "" :type string)
  (message "" :type string)
  (condition nil)                       ; the type's name, as CL-USER prints it
  (form nil)                            ; the top-level form on a line
  (toplevel nil)                        ; (start . end)
  (tags '() :type list)                 ; :unnecessary, :deprecated
  (related '() :type list)              ; (start end message) or (start end message file)
  (data '() :type list)                 ; plist of strings
  (follows nil)                         ; an earlier name in its form is unknown, a possible reason
  (file nil))                           ; a path, when a system is checked

(defstruct (undefined-use (:constructor make-undefined-use (name kind finding tentative form-start)))
  "A use of a name that was undefined when the compiler met it; it counts only if the name is
  undefined at the end. TENTATIVE: to be dropped when all uses in the top-level form at FORM-START
  are found."
  name kind finding tentative form-start)

(defstruct check
  "The state of the check of one text."
  (text "" :type (simple-array character (*)))
  (path nil)                            ; the real file's pathname, or NIL
  (mode :file :type (member :file :form))
  (package "COMMON-LISP-USER")
  (notes nil)                           ; report compiler notes
  (unreachable nil)                     ; report deleted code
  (confined nil)
  (withheld '())                        ; ((start . end) ...)
  (scratch nil)                         ; directory: fasl, text
  (written nil)                         ; whether the text is in the scratch directory yet
  (emit #'identity :type function)      ; called with each finding
  (at (constantly nil) :type function)  ; called with the span of each top-level form
  ;; Called with the offset at which reading the next form begins. Returns the offset to read from.
  (before-form #'identity :type function)
  ;; Called with a function that compiles the current form.
  (around-form #'funcall :type function)
  ;; Called with the offset at which reading the form began, its end, and READ-ONE's second value.
  (after-form (constantly nil) :type function)
  (forms 0 :type fixnum)                ; the number of compiled forms
  (met 0 :type fixnum)                  ; the number of reached forms, unreadable ones included
  ;; The current top-level form.
  (form nil)
  (form-line nil)                       ; the form on one line, made for the first finding
  (form-start 0 :type fixnum)
  (form-end 0 :type fixnum)
  (subforms nil)                        ; the reader's reports: start, end, object, ...
  (index nil)                           ; made of SUBFORMS when a condition asks for it
  (marked (make-hash-table :test 'equal)) ; (start end code ...) of the findings
  (used (make-hash-table :test 'equal)) ; places that are used for a repeated name
  ;; For the whole text:
  ;; (operator name) and (namespace name) -> the offset of the first such definition; see
  ;; stale.lisp.
  (definitions (make-hash-table :test 'equal))
  (unseen-names (make-hash-table :test 'equal)) ; names that withheld or unreadable forms define
  (undefined '())                       ; undefined-use, newest first
  (keyword-uses '())                    ; (generic-function keyword finding), newest first
  ;; Findings about unknown names, or due to them, reported at the end unless the file's system
  ;; explains them.
  (held '())
  (asd-files '())                       ; files that may define the file's system
  (system-facts nil)                    ; the values of SYSTEM-OF-FILE, as a list, after its call
  (unloaded-system nil)                 ; its name, when it is known and not loaded
  (forgotten '())                       ; the functions of the image that were forgotten
  (forgotten-to 0 :type fixnum)         ; definitions of the text up to here were forgotten
  (lost-package nil)                    ; an IN-PACKAGE failed: later names cannot be judged
  (placeholders '())                    ; packages made in place of unknown ones
  (duplicate-reported nil)              ; a duplicate definition was reported for the current form
  (failures '())                        ; lists of the current form that could not be compiled
  (hook-reported nil)                   ; it was reported that the text set *MACROEXPAND-HOOK*
  (unknown-packages nil)                ; some package of the text does not exist
  (first-span nil)                      ; the first form
  (in-package-span nil)                 ; the first IN-PACKAGE
  (reader-messages (make-hash-table :test 'equal)))

(define-global *form-recorder* nil
  "The FORM-RECORDER (chain/effects.lisp) of the form that is compiled, in a process of a chain; NIL
  elsewhere.")

(defvar *check* nil "The CHECK of the text that is being compiled, in a copy.")

(declaim (ftype function note-finding note-keywords))
(defun report-finding (check finding)
  "Reports FINDING unless the same was found at the same place."
  (let ((key (list (finding-start finding) (finding-end finding) (finding-code finding) (finding-message finding))))
    (unless (or (gethash key (check-marked check))
                (and (check-lost-package check) (meaningless-p finding)))
      (setf (gethash key (check-marked check)) t)
      (when *form-recorder* (note-finding *form-recorder* finding))
      (if (and (check-asd-files check)
               (or (name-finding-p finding) (doubtful-finding-p finding)
                   ;; The macros and the syntax of the system are unknown too.
                   (and (check-lost-package check) (consequence-p finding))))
          (push finding (check-held check))
          (funcall (check-emit check) finding)))))

(defun meaningless-p (finding)
  "Returns true if FINDING may be wrong because names are read in a placeholder for an unknown
  package, where macros are taken for functions."
  (or (member (finding-code finding) '("unused-variable" "unused-function" "unread-variable" "unknown-class" "compile-time-error" "read-eval" "illegal-call"
                                       "style" "compiler" "undefined-function" "undefined-variable" "undefined-type" "unknown-symbol")
              :test #'string=)
      (search "There is no function named" (finding-message finding))))

(defun name-finding-p (finding)
  "Returns true if FINDING is about a name that nothing defines, or may follow from such a name in
  its form."
  (or (finding-follows finding)
      (member (finding-code finding) '("unknown-package" "unknown-symbol" "undefined-function" "undefined-variable" "undefined-type")
              :test #'string=)
      (search "does not designate any package" (finding-message finding)))) ; in a DEFPACKAGE

(defun package-definition-finding-p (finding)
  "Returns true if FINDING is about a DEFPACKAGE that is wrong whatever else is loaded: because of
  its options, or of a conflict between two used packages."
  (or (search "(during macroexpansion of (DEFPACKAGE " (finding-message finding))
      (search "causes name-conflicts in" (finding-message finding))))

(defun doubtful-finding-p (finding)
  "Returns true if FINDING may result only from unknown names: the arguments of an unknown macro are
  taken for forms, a macro of the file calls a function that is defined elsewhere, or a dispatch
  macro character is defined elsewhere."
  (or (and (not (package-definition-finding-p finding))
           (member (finding-code finding) '("illegal-call" "macro-expansion" "compile-time-error" "unknown-block" "unknown-tag" "unknown-class" "note")
                   :test #'string=))
      (search "no dispatch function" (finding-message finding))))

(defun consequence-p (finding)
  "Returns true if FINDING may result only from an earlier package or file that was not loaded: its
  macros (whose arguments are then taken for forms), types, compiler macros and syntax are missing."
  (member (finding-code finding) '("read-eval" "malformed-form" "type-conflict" "wrong-argument-count" "compiler") :test #'string=))
