;;;; The check of a whole system follows ASDF's own plan for loading the system. The compilation of
;;;; each Lisp file is a check, and every other action is performed as ASDF performs it.

(in-package :consort)

(defstruct system-check
  "The check of one system. PROBLEM, STEP and MAKE-CHECK are as in CHECK-SYSTEM."
  definition                            ; the path of its .asd file
  confined                              ; true if its code runs confined
  make-check problem step
  ;; A predicate of a system's name: true if the files of the system are checked, false if they are
  ;; loaded.
  part-p
  ;; True if the system is loaded in this image: only components in WANTED are compiled again.
  loaded
  wanted                                ; a predicate of a component: true if it is to be compiled
  (checks '())                          ; newest first
  (outcomes (make-hash-table))          ; component -> the outcome of its compilation
  ;; The missing dependencies that were reported: (COMPONENT . DEPENDENCY), with :SYSTEM as
  ;; COMPONENT for a system.
  (unresolved (make-hash-table :test 'equal)))

(defun report-system-problem (state path words code)
  (funcall (system-check-problem state) path words code))

(defun report-failure (state path words code condition)
  "Reports a failure as WORDS with CODE. CONDITION is its cause, or NIL. If the operating system has
  refused an operation of confined code, the code is \"system-not-loaded\" instead."
  (if (and condition (system-check-confined state) (confinement-refusal-p condition))
      (report-system-problem state path (confined-message words condition) "system-not-loaded")
      (report-system-problem state path words code)))

(defun words-of-failure (condition)
  (if condition (condition-report condition) "it was left"))

;;; Systems whose files are checked

(defun part-of-definition-p (name)
  "Returns a predicate of a system's name: true if the system is defined together with the system
  NAME (\"NAME/...\")."
  (let ((primary (asdf:primary-system-name name)))
    (lambda (other) (string= primary (asdf:primary-system-name other)))))

(defun workspace-part-p (asd-files)
  "Returns a predicate of a system's name: true if the system is defined in one of ASD-FILES."
  (let ((known (make-hash-table :test 'equal)))
    (lambda (name)
      (let* ((system (asdf:registered-system name))
             (file (and system (asdf:system-source-file system))))
        (and file
             (multiple-value-bind (part found) (gethash name known)
               (if found
                   part
                   (setf (gethash name known) (and (some (lambda (asd) (same-file-p asd file)) asd-files) t)))))))))

(defun part-p (state component)
  (funcall (system-check-part-p state) (asdf:component-name (asdf:component-system component))))

;;; Programs

(defvar *run-no-programs* nil "True if the code that a system has for its operations must not run
  programs, even where it is not confined.")

(hook 'sb-ext:run-program (original &rest arguments)
  (when *run-no-programs* (error "A check runs no programs."))
  (apply original arguments))

;;; The plan

(defvar *system-check* nil "The SYSTEM-CHECK whose plan is made or performed, in a copy.")

(defclass check-plan (asdf/plan:sequential-plan) ()
  (:documentation "The plan of all actions that load a checked system, and of the actions of other
  systems on which these depend directly."))

(defmethod asdf/plan:record-dependency ((plan check-plan) (operation asdf:operation) (component asdf:component))
  (unless (part-p *system-check* component)
    (pushnew (cons operation component) (asdf/plan::plan-actions-r plan) :test #'equal)))

;; A part that cannot be found is reported, and the rest of the system is checked.
(hook 'asdf/find-component:resolve-dependency-spec (original component dependency)
  (let ((state *system-check*)
        (component (and component (asdf:find-component nil component))))
    (if (and state component (part-p state component))
        (resolve-or-report state component dependency (lambda () (funcall original component dependency)))
        (funcall original component dependency))))

(defun resolve-or-report (state component dependency resolve)
  "Calls RESOLVE, which resolves the DEPENDENCY of COMPONENT, and returns its value. A failure is
  reported once, and NIL is returned."
  (let ((key (cons (if (typep component 'asdf:system) :system component) dependency)))
    (unless (gethash key (system-check-unresolved state))
      (call-silently resolve
                     (lambda (condition)
                       (setf (gethash key (system-check-unresolved state)) t)
                       (report-system-problem state (system-check-definition state)
                                              (if (typep component 'asdf:system)
                                                  (unloaded-dependency-words dependency condition)
                                                  (format nil "~(~S~), which the component ~S depends on, cannot be found: ~A" dependency
                                                          (asdf:component-name component) (words-of-failure condition)))
                                              "system-failed"))))))

(defun unloaded-dependency-words (dependency condition)
  (format nil "~(~S~), which it depends on, cannot be loaded: ~A" dependency (if condition (condition-report condition) "loading was left")))

(defun make-check-plan (state name)
  "The plan for loading the system NAME, in which all actions of the checked systems are to be
  performed."
  (let ((part-p (system-check-part-p state)))
    (prog1 (asdf/plan:make-plan 'check-plan (asdf:make-operation 'asdf:load-op) (asdf:find-system name)
                                :forcing (asdf/forcing:make-forcing :force part-p :force-not (complement part-p)))
      (forget-actions-not-done state))))

(defun forget-actions-not-done (state)
  "Removes ASDF's records of the actions of systems that are neither checked nor loaded. Planning
  records an action that is not forced as done. ASDF would then not perform it when the checked
  system's own code loads such a system."
  (let ((visited (asdf/session:visited-actions asdf/session:*asdf-session*)))
    (loop for action in (loop for action being the hash-keys of visited collect action)
          for component = (cdr action)
          unless (or (part-p state component) (asdf:component-loaded-p (asdf:component-system component)))
            do (remhash action visited))))

(defun check-by-plan (state name)
  "Performs the plan for loading the system NAME. Each Lisp file is checked. Returns the CHECKs in
  order."
  (keep-loaded-systems (system-check-part-p state))
  (let ((*system-check* state)
        (uiop:*warnings-file-type* nil) ; a check makes no such files
        (*package* *package*) (*readtable* *readtable*))
    (asdf/session:with-asdf-session (:override t :override-cache t :override-forcing t)
      (let ((plan (call-silently (lambda () (make-check-plan state name))
                                 (lambda (condition)
                                   (report-system-problem state (system-check-definition state)
                                                          (if condition (condition-report condition) "It could not be loaded.") "system-failed"))))
            (seen (make-hash-table :test 'equal)))
        (when plan
          (loop for action in (asdf/plan:plan-actions plan)
                for (operation . component) = action
                do (unless (shiftf (gethash action seen) t)
                     (perform-in-check state operation component)
                     ;; As in ASDF, so that loads by the system's own code take these actions into
                     ;; account.
                     (when (asdf/action:component-operation-time operation component)
                       (asdf/plan:mark-as-done plan operation component))))))))
  (nreverse (system-check-checks state)))

(defun perform-in-check (state operation component)
  "Performs OPERATION on COMPONENT as the check of a system requires."
  (cond ((typep operation 'asdf:define-op)) ; the definition has been read
        ((not (part-p state component))
         (unless (system-check-loaded state) (perform-elsewhere state operation component)))
        ((and (system-check-loaded state)
              (not (and (typep component 'asdf:source-file) (funcall (system-check-wanted state) component)))))
        ((not (typep component 'asdf:cl-source-file)) (perform-guarded state operation component))
        ((typep operation 'asdf:compile-op) (compile-in-check state operation component))
        ((typep operation 'asdf:load-op) (load-in-check state operation component))
        ((and (generated-p component) (not (typep operation 'asdf:prepare-op)))
         (generate-in-check state operation component))
        (t (perform-guarded state operation component))))

(defun perform-elsewhere (state operation component)
  "Performs OPERATION on COMPONENT, a part of another system on which the checked system depends."
  (let* ((system (asdf:component-system component)) (name (asdf:component-name system)))
    (unless (and (typep operation '(or asdf:prepare-op asdf:compile-op asdf:load-op)) (asdf:component-loaded-p system))
      (funcall (system-check-step state) (format nil "loading ~A" name))
      (let ((*system-check* nil)
            (asdf/session:*asdf-session* nil))
        (call-silently (lambda ()
                         (if (typep operation 'asdf:load-op)
                             (load-dependency system)
                             (asdf:operate operation component)))
                       (lambda (condition)
                         (report-failure state (system-check-definition state) (unloaded-dependency-words name condition) "system-failed" condition))))
      ;; The loaded system is kept for systems that depend on it and that the checked system's own
      ;; code loads.
      (keep-loaded-systems (system-check-part-p state)))))

(defun perform-guarded (state operation component)
  "Performs OPERATION on COMPONENT as ASDF does, unless the person has the files that it makes. A
  failure is reported. The later actions then lack the effects of this one."
  (flet ((perform-it ()
           (asdf:perform-with-restarts operation component)))
    (call-silently (lambda ()
                     (cond ((made-already-p operation component)
                            (setf (gethash component (system-check-outcomes state)) :made
                                  (asdf/action:component-operation-time operation component) (get-universal-time)))
                           ((and (eq (gethash component (system-check-outcomes state)) :made)
                                 ;; An operation that writes no files, such as loading the person's
                                 ;; compiled files.
                                 (null (asdf:output-files operation component)))
                            (call-with-the-persons-files #'perform-it))
                           (t (perform-it))))
                   (lambda (condition) (report-action-problem state operation component condition)))))

(defun call-with-the-persons-files (function)
  "Calls FUNCTION while ASDF uses the output files of the person's own configuration, to read them."
  (let ((asdf/session:*asdf-session* nil)) ; the session keeps the names of files
    (call-with-the-persons-fasls function)))

(defun made-already-p (operation component)
  "Returns true if OPERATION makes files of COMPONENT, and the person has them."
  (and (asdf:output-files operation component)
       (call-with-the-persons-files
        (lambda ()
          (let ((made (mapcar #'written-time (asdf:output-files operation component)))
                (sources (mapcar #'written-time (asdf:input-files operation component))))
            (and (notany #'null made) (notany #'null sources)
                 (or (null sources) (<= (reduce #'max sources) (reduce #'min made)))))))))

(defun written-time (path)
  (and path (probe-file path) (file-write-date path)))

(defun report-action-problem (state operation component condition)
  "Reports that OPERATION on COMPONENT failed with CONDITION."
  ;; The host accepts findings only for the files that are checked and for the definition.
  (report-failure state (system-check-definition state)
                  (format nil "The operation ~A on ~A failed: ~A" (string-downcase (type-of operation)) (component-words component)
                          (words-of-failure condition))
                  "load-failed" condition))

(defun component-words (component)
  "The COMPONENT, in words."
  (format nil "the ~A ~S"
          (typecase component (asdf:system "system") (asdf:module "module") (t "component"))
          (asdf:component-name component)))

;;; Lisp files

(defun compile-in-check (state operation component)
  "Checks the file of COMPONENT in place of its compilation by OPERATION, and notes the outcome."
  (setf (gethash component (system-check-outcomes state))
        (if (generated-p component)
            (compile-generated state operation component)
            (check-lisp-component state operation component))))

(defun generate-in-check (state operation component)
  "Performs OPERATION, which makes the Lisp text of COMPONENT, unless the person has its fasl."
  (unless (persons-fasl component)
    (perform-without-programs state operation component)))

(defun perform-without-programs (state operation component)
  "Performs OPERATION on COMPONENT. Returns true if that succeeded; otherwise the outcome of
  COMPONENT is (:FAILED words)."
  (call-silently (lambda ()
                   (let ((*run-no-programs* t))
                     (asdf:perform-with-restarts operation component))
                   t)
                 (lambda (condition)
                   (setf (gethash component (system-check-outcomes state)) (list :failed (words-of-failure condition)))
                   nil)))

(defun compile-generated (state operation component)
  "Loads the person's fasl of COMPONENT, whose text is generated, or compiles the text that was
  generated here. Reports a problem if there is neither. Returns the same as CHECK-LISP-COMPONENT."
  (flet ((failure () (gethash component (system-check-outcomes state))))
    (cond ((persons-fasl component)
           (unless (load-generated component) (report-not-generated state component nil))
           :nothing-to-load)
          ((and (null (failure)) (perform-without-programs state operation component))
           :by-asdf)
          (t (report-not-generated state component (second (failure)))
             :nothing-to-load))))

(defun report-not-generated (state component why)
  (report-system-problem state (system-check-definition state)
                         (format nil "The code of ~A is generated when the system ~S is loaded, and a check, which runs no programs, does not generate it~@[ (~A)~]. ~
                                      Load the system once. Until then, names that later files lack are not reported."
                                 (file-namestring (asdf:component-pathname component)) (asdf:component-name (asdf:component-system component))
                                 (and why (string-right-trim "." why)))
                         "system-not-loaded"))

(defun check-lisp-component (state operation component)
  "Checks the file of COMPONENT. Returns the file to load afterwards: :BY-ASDF for ASDF's own output
  file, a fasl at another place, or :NOTHING-TO-LOAD."
  (let* ((path (asdf:component-pathname component))
         (check (funcall (system-check-make-check state) path)))
    (if (null check)
        :nothing-to-load                ; the problem was reported
        (multiple-value-bind (fasl compiled why)
            (run-check-as-compiled component check :operation operation
                                                   :scratch (uiop:pathname-parent-directory-pathname (check-scratch check)))
          (push check (system-check-checks state))
          (when why
            (report-system-problem state path (format nil "Compiling it failed: ~A" why) "load-failed"))
          (cond (why :nothing-to-load)
                ((not compiled) :by-asdf) ; the system's own method did
                ((null fasl) :nothing-to-load)
                ((equal fasl (first (ignore-errors (asdf:output-files operation component)))) :by-asdf)
                (t fasl))))))

(defun load-in-check (state operation component)
  "Loads the file of COMPONENT as far as it was compiled, so that the files after it have its
  definitions."
  (let ((outcome (gethash component (system-check-outcomes state) :by-asdf)))
    (unless (eq outcome :nothing-to-load)
      (call-silently (lambda ()
                       (cond ((eq outcome :by-asdf) (asdf:perform-with-restarts operation component))
                             ((own-load-p component) (load-by-own-method component outcome))
                             (t (load (or (probe-file outcome) (asdf:component-pathname component)))
                                (setf (asdf/action:component-operation-time operation component) (get-universal-time)))))
                     (lambda (condition)
                       (report-failure state (asdf:component-pathname component)
                                       (format nil "Loading it failed: ~A" (words-of-failure condition)) "load-failed" condition))))))
