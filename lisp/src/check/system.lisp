;;;; The ASDF system that a file belongs to, and the check of a whole system. All of this runs in a
;;;; copy: system definitions are read there, and ASDF writes its fasls to the scratch directory.

(in-package :consort)

(defun redirect-asdf (scratch)
  "Makes ASDF write its fasls below the directory SCRATCH. Saves the person's own output
  translations in *PERSONS-TRANSLATIONS*."
  (setf *persons-translations* (unless-mistaken (progn (asdf:ensure-output-translations)
                                                       (asdf/output-translations::output-translations))))
  (asdf:initialize-output-translations
   `(:output-translations (t (,scratch "asdf" :implementation :**/ :*.*.*)) :ignore-inherited-configuration :disable-cache)))

(defun keep-asdf ()
  "Prevents ASDF from upgrading itself. ASDF would compile a newer installed version of itself,
  which takes many seconds, and the result would be lost at the end of the copy."
  (dolist (name '("asdf" "uiop"))
    (asdf:register-immutable-system name :version (asdf:asdf-version))))

(defun keep-loaded-systems (mine-p)
  "Makes ASDF leave the loaded systems as they are, except those whose names satisfy MINE-P. ASDF
  finds none of their fasls in the copy. Without this function, ASDF would read definitions again
  that load a system themselves, and would compile the systems that depend on the loaded ones."
  (dolist (name (asdf:already-loaded-systems))
    (unless (funcall mine-p name)
      (asdf:register-immutable-system name :version (asdf:component-version (asdf:registered-system name))))))

(defun call-silently (function on-failure)
  "Calls FUNCTION by CALL-GUARDED, discards its output and muffles its warnings. If FUNCTION does
  not return, calls ON-FAILURE with the condition or NIL, and returns NIL."
  (let* ((nowhere (make-broadcast-stream))
         (*standard-output* nowhere) (*error-output* nowhere) (*trace-output* nowhere))
    (call-guarded (lambda ()
                    (handler-bind ((warning (lambda (condition)
                                              (let ((muffle (and (not *shown-to-handlers*) (find-restart 'muffle-warning condition))))
                                                (when muffle (invoke-restart muffle))))))
                      (funcall function)))
                  (lambda (condition where) (declare (ignore where)) (funcall on-failure condition)))))

(defun load-definition (asd)
  "Makes ASDF read the system definitions in the file ASD. Returns the names of the systems that it
  defines. On failure returns three values: NIL, the reason in words, and true if reading took too
  long."
  (let ((why nil) (late nil))
    (values (call-silently (lambda ()
                             (ensure-regular asd)
                             (asdf:load-asd asd)
                             (loop for name in (asdf:registered-systems)
                                   for system = (asdf:registered-system name)
                                   for source = (and system (asdf:system-source-file system))
                                   when (and source (same-file-p source asd)) collect name))
                           (lambda (condition)
                             (setf late (typep condition 'form-out-of-time)
                                   why (if condition (condition-report condition) "loading it was left"))))
            why
            late)))

(defun defined-among-p (name names)
  "Returns true if the system NAME is one of NAMES, or if one of NAMES is a package-inferred system
  for which ASDF makes the system NAME from a file."
  (or (member name names :test #'string=)
      (let ((primary (asdf:primary-system-name name)))
        (and (member primary names :test #'string=)
             (typep (asdf:registered-system primary) 'asdf:package-inferred-system)
             (call-silently (lambda () (asdf:find-system name nil)) (constantly nil))))))

(defun find-definition (name asd-files)
  "Three values: the file that defines the system NAME, which is one of ASD-FILES or found by ASDF;
  the names of the systems that the file defines; and NIL. When no file defines NAME: the file of
  ASD-FILES with the name of its primary system or NIL; NIL; and the reason in words or NIL."
  (let* ((primary (asdf:primary-system-name name))
         (likely (find primary asd-files :key #'pathname-name :test #'equal))
         (why nil))
    (dolist (file (if likely (cons likely (remove likely asd-files)) asd-files))
      (multiple-value-bind (names failure) (load-definition file)
        (when (eq file likely) (setf why failure))
        (when (defined-among-p name names)
          (return-from find-definition (values file (adjoin name names :test #'string=) nil)))))
    (let ((source (call-silently (lambda () (asdf:system-source-file (asdf:find-system name)))
                                 (lambda (condition) (unless why (setf why (and condition (condition-report condition))))))))
      (if source
          (values source (list name) nil)
          (values likely '() why)))))

(defun same-file-p (a b)
  "Returns true if A and B name the same file."
  (flet ((true (path) (or (ignore-errors (truename path)) (pathname path))))
    (or (equal (pathname a) (pathname b))
        (equal (true a) (true b)))))

(defun component-with-file (component path &optional (test #'same-file-p))
  "The source file component within COMPONENT whose file is PATH by TEST, or NIL."
  (typecase component
    (asdf:parent-component
     (some (lambda (child) (component-with-file child path test)) (asdf:component-children component)))
    (asdf:source-file
     (let ((file (ignore-errors (asdf:component-pathname component))))
       (and file (funcall test file path) component)))))

(defun system-with-file (names path)
  "The first of the systems NAMES that has a component whose file is PATH, or NIL."
  (find-if (lambda (name)
             (let ((system (asdf:registered-system name)))
               (and system (component-with-file system path))))
           names))

(defun inferred-system-with-file (names path)
  "The name of the package-inferred system whose file is PATH and whose primary system is one of
  NAMES; NIL when there is none. ASDF makes such a system when it is looked up."
  (loop for name in names
        for system = (asdf:registered-system name)
        for directory = (and (typep system 'asdf:package-inferred-system)
                             (ignore-errors (truename (asdf:component-pathname system))))
        for below = (and directory (uiop:subpathp (or (ignore-errors (truename path)) path) directory))
        for inferred = (and below
                            (format nil "~A/~A" (asdf:primary-system-name name)
                                    (uiop:native-namestring (make-pathname :type nil :version nil :defaults below))))
        when (and inferred (system-with-file (and (call-silently (lambda () (asdf:find-system inferred nil)) (constantly nil)) (list inferred))
                             path))
          return inferred))

(defun may-define-p (asd path)
  "Returns true if a system that the file ASD defines may contain the file PATH, judged by the text
  of ASD. Usually the text must contain the name of PATH, and PATH must be below the directory of
  ASD. A definition that computes its components may contain any file, and one that refers to other
  directories may contain a file that is not below. This test avoids loading hundreds of
  definitions: loading one takes ten times as long as reading its text."
  (let ((text (handler-case (string-downcase (read-source-file asd)) (error () nil))))
    (and text
         (or (search "package-inferred" text)
             (search "#." text)
             (and (search (string-downcase (pathname-name path)) text)
                  (or (search ".." text)
                      (search "#p" text)
                      (let ((directory (pathname-directory (or (ignore-errors (truename asd)) asd)))
                            (file (pathname-directory (or (ignore-errors (truename path)) path))))
                        (member (mismatch directory file :test #'equal) (list nil (length directory))))))))))

(defun component-for-this-lisp-p (component)
  "Returns true if the :IF-FEATURE expressions of COMPONENT and of its parents are true in this
  image."
  (loop for part = component then (asdf:component-parent part)
        while part
        always (or (null (asdf/component:component-if-feature part))
                   (uiop:featurep (asdf/component:component-if-feature part)))))

(defun system-of-file (path asd-files)
  "Two values: the name of the system that the file PATH belongs to, and true if that system is
  loaded. When neither a loaded system nor one that ASD-FILES define contains the file, three
  values: NIL, NIL, and the first of ASD-FILES that may define one and whose reading took longer
  than +DEFINITION-LIMIT+, or NIL. After two such files, no more are read."
  (let* ((loaded (asdf:already-loaded-systems))
         (mine (system-with-file loaded path)))
    (if mine
        (values mine t)
        ;; A system of the same name may also be installed: ASD-FILES come first.
        (call-with-asd-files
         asd-files
         (lambda ()
           (keep-loaded-systems (lambda (name) (asd-file-for name asd-files)))
           (loop with *form-limit* = +definition-limit+ and left = '()
                 for asd in (remove-if-not (lambda (asd) (may-define-p asd path)) asd-files)
                 for (names nil late) = (multiple-value-list (load-definition asd))
                 for name = (or (system-with-file names path) (inferred-system-with-file names path))
                 when name return (values name (and (member name loaded :test #'string=) t))
                 when late do (push asd left)
                 until (nthcdr 2 left)
                 finally (return (values nil nil (first (last left))))))))))

;;; A whole system

(defun files-of-system (name)
  "The Lisp source components of the system NAME, in the order in which they are loaded."
  (remove-if-not (lambda (component) (typep component 'asdf:cl-source-file))
                 (asdf:required-components (asdf:find-system name) :other-systems nil :goal-operation 'asdf:load-op
                                                                   :keep-component 'asdf:source-file)))

(defun read-source-file (path)
  "The text of the file PATH, read as UTF-8, or as Latin-1 if that fails. Signals NO-REGULAR-FILE
  for a pipe or the like, where reading could block."
  (ensure-regular path)
  (flet ((text (format)
           (with-open-file (in path :external-format format)
             (let* ((all (make-string (file-length in)))
                    (end (read-sequence all in)))
               (coerce (subseq all 0 end) 'text)))))
    (handler-case (text :utf-8)
      (stream-error () (text :latin-1))
      (error () (text :latin-1)))))

(defun place-fasl (fasl operation component scratch)
  "Moves the file FASL to the output file of OPERATION on COMPONENT, if that is below the directory
  SCRATCH. Returns the new path. Returns FASL if it was not moved; FASL and SCRATCH may be NIL."
  (let ((expected (first (ignore-errors (asdf:output-files operation component)))))
    (cond ((and fasl expected scratch (uiop:subpathp expected scratch) (probe-file fasl))
           (ensure-directories-exist expected)
           (uiop:rename-file-overwriting-target fasl expected)
           expected)
          (t fasl))))

(defun run-check-as-compiled (component check &key (operation (asdf:make-operation 'asdf:compile-op)) scratch)
  "Makes ASDF perform OPERATION on COMPONENT, and runs CHECK where that would compile the file.
  CHECK therefore runs within the :AROUND-COMPILE hook of COMPONENT and the system's own methods on
  PERFORM. These may not compile the file at all. Three values: the fasl or NIL, true if the file
  was compiled, and the reason in words if PERFORM failed and the check has not reported it. The
  fasl is the operation's output file if that is below SCRATCH."
  (let ((fasl nil) (compiled nil) (why nil))
    (flet ((compile-it ()
             (let ((made (run-check check)))
               (setf compiled t
                     fasl (place-fasl made operation component scratch)))
             (values fasl nil nil)))
      (call-silently (lambda ()
                       (let ((*compile-instead* #'compile-it) (*compiled-component* component)
                             (*ask-handlers* (own-method-p 'asdf:compile-op component)))
                         (asdf:perform-with-restarts operation component)))
                     (lambda (condition)
                       ;; If there is no fasl, the check has reported the reason.
                       (when (or fasl (not compiled))
                         (setf why (if condition (condition-report condition) "it was left"))))))
    (values fasl compiled why)))

(defun own-method-p (operation component)
  "Returns true if ASDF:PERFORM has a method for COMPONENT, and for the operation that the symbol
  OPERATION names, that specializes on a class or object that neither ASDF nor Common Lisp defines."
  (flet ((asdfs-p (specializer)
           (and (typep specializer 'class)
                (let ((package (symbol-package (class-name specializer))))
                  (and package (or (eq package (load-time-value (find-package "COMMON-LISP")))
                                   (eql 0 (search "ASDF" (package-name package)))))))))
    (notevery (lambda (method) (every #'asdfs-p (sb-mop:method-specializers method)))
              (compute-applicable-methods #'asdf:perform (list (asdf:make-operation operation) component)))))

(defun own-load-p (component)
  "Returns true if COMPONENT is loaded by a method that OWN-METHOD-P finds."
  (own-method-p 'asdf:load-op component))

(defun own-compile-p (component)
  "Returns true if COMPONENT is compiled by a method that OWN-METHOD-P finds, or has an
  :AROUND-COMPILE hook."
  (or (own-method-p 'asdf:compile-op component)
      (asdf/component:around-compile-hook component)))

(defun component-of-its-own-way (path)
  "The component of a loaded system whose file is PATH, if OWN-COMPILE-P is true for it; NIL
  otherwise."
  (flet ((test (file path)
           ;; The names are compared first to save time, because each check examines the files of
           ;; all loaded systems.
           (and (equal (pathname-name file) (pathname-name path)) (equal (pathname-type file) (pathname-type path)) (same-file-p file path))))
    (let ((component (some (lambda (name)
                             (let ((system (asdf:registered-system name))) (and system (component-with-file system path #'test))))
                           (asdf:already-loaded-systems))))
      (and component (own-compile-p component) component))))

(defun run-check-of-file (check)
  "Runs CHECK, the check of one file, by the method or :AROUND-COMPILE by which a loaded system
  compiles the file, if there is one."
  (let ((component (and (check-path check) (eq (check-mode check) :file)
                        (handler-case (component-of-its-own-way (check-path check)) (error () nil)))))
    (unless (and component (nth-value 1 (run-check-as-compiled component check)))
      (run-check check))))

(defun definition-problem (path message code &optional (span '(0 . 1)))
  "A finding about the file PATH as a whole, at SPAN."
  (make-finding :start (car span) :end (cdr span) :severity (if (string= code "system-not-loaded") :information :error) :code code :message message
                :file (uiop:native-namestring path)))

(defun load-by-own-method (component fasl)
  "Loads COMPONENT by the system's own method. First copies FASL, which may be NIL, to the output
  file that ASDF expects."
  (let ((expected (first (ignore-errors (asdf:output-files (asdf:make-operation 'asdf:compile-op) component)))))
    (when (and fasl expected (probe-file fasl))
      (ensure-directories-exist expected)
      (uiop:copy-file fasl expected)))
  (asdf:perform (asdf:make-operation 'asdf:load-op) component))

;;; The dependencies of a system

(defun call-with-the-persons-fasls (function)
  "Calls FUNCTION with the person's own output translations of ASDF, so that existing fasls are
  found."
  (let ((ours (asdf/output-translations::output-translations)))
    (unwind-protect (progn (setf (asdf/output-translations::output-translations) *persons-translations*)
                           (funcall function))
      (setf (asdf/output-translations::output-translations) ours))))

(defun compiles-something-p (system)
  "Returns true if loading SYSTEM would compile a file, or if this version of ASDF cannot tell."
  (let ((make-plan (find-symbol "MAKE-PLAN" "ASDF")) (plan-actions (find-symbol "PLAN-ACTIONS" "ASDF")))
    (or (null make-plan) (null plan-actions)
        ;; Actions without output files do not count: ASDF always plans them, such as COMPILE-OP of
        ;; a system or of a file that is not source.
        (some (lambda (action) (asdf:output-files (car action) (cdr action)))
              (funcall plan-actions (funcall make-plan nil (asdf:make-operation 'asdf:load-op) system))))))

(defun load-dependency (system)
  "Loads SYSTEM, a dependency of the checked system, and first its own dependencies, unless they are
  loaded. The person's fasls are used for a system when they make all compilation unnecessary."
  (unless (asdf:component-loaded-p system)
    (flet ((load-it () (asdf:load-system system :force-not (asdf:already-loaded-systems))))
      ;; The definition of a secondary system depends on that of its primary system, which may
      ;; depend on loading the secondary one.
      (dolist (other (remove system (asdf:required-components system :other-systems t :component-type 'asdf:system
                                                                     :goal-operation 'asdf:load-op :keep-operation 'asdf:load-op)))
        (load-dependency other))
      (if (call-with-the-persons-fasls (lambda () (compiles-something-p system)))
          (load-it)
          (call-with-the-persons-fasls #'load-it)))))

(defun generated-p (component)
  "Returns true if another operation generates the Lisp source of COMPONENT from its file, as in
  CFFI-GROVEL. The file itself is then not Lisp source."
  (let ((compiled (first (ignore-errors (asdf:input-files (asdf:make-operation 'asdf:compile-op) component)))))
    (and compiled (not (same-file-p compiled (asdf:component-pathname component))))))

(defun persons-fasl (component)
  "The existing fasl of COMPONENT where the person's own configuration of ASDF puts it, or NIL."
  (let ((asdf/session:*asdf-session* nil)) ; a session caches file names
    (call-with-the-persons-fasls
     (lambda ()
       (let ((fasl (first (ignore-errors (asdf:output-files (asdf:make-operation 'asdf:compile-op) component)))))
         (and fasl (probe-file fasl)))))))

(defun load-generated (component)
  "Loads the person's fasl of COMPONENT, whose source is generated. Returns true if that succeeded."
  (call-silently (lambda () (load (persons-fasl component)) t)
                 (constantly nil)))

(defun changed-since-load-p (component)
  "Returns true if the file of COMPONENT may have changed since it was loaded. This is so if ASDF
  knows no time of loading, if the file was not written in an earlier second than that time, or if
  its content differs from the content that was compiled."
  (let ((loaded (ignore-errors (asdf/action:component-operation-time (asdf:make-operation 'asdf:load-op) component)))
        (written (ignore-errors (file-write-date (asdf:component-pathname component)))))
    (or (null loaded)
        (and (realp loaded) written (>= written loaded))
        (changed-content-p (asdf:component-pathname component)))))

(defun loaded-file-facts (name)
  "A list of JSON objects for the files of the system NAME in loading order: the path, and whether
  the file may have changed since it was loaded."
  (mapcar (lambda (component)
            (object "path" (sb-ext:native-namestring (asdf:component-pathname component))
                    "changed" (bool (changed-since-load-p component))))
          (files-of-system name)))

(defun check-system (asd name asd-files &key confined make-check problem at-definition step (wanted nil wanted-p))
  "Checks the files of the system NAME in loading order, and returns the CHECKs. If NAME is NIL, the
  system is the one that has the name of the file ASD, or else the first one that ASD defines. If
  ASD is NIL, ASD-FILES and then ASDF are searched for NAME. CONFINED is true if code is confined.
  MAKE-CHECK makes the CHECK of a path. PROBLEM is called with a path or NIL and a message when
  something fails outside the checks of files. AT-DEFINITION is called with the definition's path
  when it is known, and STEP with a message before a step that takes long. WANTED, if given, is a
  predicate on components. The system is then one that is loaded in this image, and only components
  that satisfy WANTED are checked and loaded again."
  (when asd (funcall at-definition asd))
  (multiple-value-bind (found names why) (if asd
                                             (multiple-value-bind (names why) (load-definition asd) (values asd names why))
                                             (find-definition name asd-files))
    (when (and found (not asd)) (funcall at-definition found))
    (let ((name (or name (find (pathname-name found) names :test #'string=) (first names))))
      (cond ((or (null names) (not (defined-among-p name names)))
             (funcall problem found
                      (cond (why (format nil "The system definition could not be loaded: ~A" why))
                            (name (format nil "The system ~S is not defined here." name))
                            (t "No system is defined here.")))
             '())
            (t
             (check-by-plan (make-system-check :definition found :confined confined :make-check make-check :problem problem :step step
                                               :part-p (if wanted-p (workspace-part-p asd-files) (part-of-definition-p name))
                                               :wanted (and wanted-p wanted) :loaded wanted-p)
                            name))))))
