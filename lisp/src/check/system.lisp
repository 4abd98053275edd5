;;;; The ASDF system that a file belongs to, and the check of a whole system. All of this runs in a
;;;; copy: system definitions are read there, and ASDF writes its fasls to the scratch directory.

(in-package :consort)

(defun redirect-asdf (scratch)
  "Has ASDF write its fasls below SCRATCH."
  (setf *persons-translations* (unless-mistaken (progn (asdf:ensure-output-translations)
                                                       (asdf/output-translations::output-translations))))
  (asdf:initialize-output-translations
   `(:output-translations (t (,scratch "asdf" :implementation :**/ :*.*.*)) :ignore-inherited-configuration :disable-cache)))

(defun keep-asdf ()
  "Keeps ASDF from upgrading itself: a newer version among the installed systems would be compiled,
  which takes many seconds and is lost with the copy."
  (dolist (name '("asdf" "uiop"))
    (asdf:register-immutable-system name :version (asdf:asdf-version))))

(defun keep-loaded-systems (mine-p)
  "Has ASDF leave the loaded systems as they are, except those whose names satisfy MINE-P. ASDF
  finds none of their fasls in the copy. It would therefore read definitions again that load a
  system themselves, and compile their dependents."
  (dolist (name (asdf:already-loaded-systems))
    (unless (funcall mine-p name)
      (asdf:register-immutable-system name :version (asdf:component-version (asdf:registered-system name))))))

(defun call-silently (function on-failure)
  "Calls FUNCTION, whatever it prints discarded; ON-FAILURE as in CALL-GUARDED."
  (let* ((nowhere (make-broadcast-stream))
         (*standard-output* nowhere) (*error-output* nowhere) (*trace-output* nowhere))
    (call-guarded (lambda ()
                    (handler-bind ((warning (lambda (condition)
                                              (let ((muffle (and (not *shown-to-handlers*) (find-restart 'muffle-warning condition))))
                                                (when muffle (invoke-restart muffle))))))
                      (funcall function)))
                  (lambda (condition where) (declare (ignore where)) (funcall on-failure condition)))))

(defun load-definition (asd)
  "Has ASDF read the system definitions in the file ASD. Returns the names of the systems that it
  defines; or NIL, the reason in words, and true if it was given up because it took too long."
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
  "Returns true if the system NAME is one of NAMES, or one that ASDF makes of a file for a
  package-inferred system of these."
  (or (member name names :test #'string=)
      (let ((primary (asdf:primary-system-name name)))
        (and (member primary names :test #'string=)
             (typep (asdf:registered-system primary) 'asdf:package-inferred-system)
             (call-silently (lambda () (asdf:find-system name nil)) (constantly nil))))))

(defun find-definition (name asd-files)
  "Three values: the file that defines the system NAME, one of ASD-FILES or the one that ASDF finds;
  the names of the systems that it defines; and, if there is none, the reason in words."
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
  "Returns true if A and B name one file."
  (flet ((true (path) (or (ignore-errors (truename path)) (pathname path))))
    (or (equal (pathname a) (pathname b))
        (equal (true a) (true b)))))

(defun component-with-file (component path &optional (test #'same-file-p))
  "The component in COMPONENT whose file is PATH by TEST, or NIL."
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
  "The name of the package-inferred system whose file is PATH and that belongs to one of the systems
  NAMES; NIL when there is none. ASDF makes such a system on demand."
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
  "Returns true if a system that the file ASD defines may have the file PATH: the file is below the
  definition, and its text has the name. Loading a definition takes ten times as long as reading its
  text, and a workspace may have hundreds. A definition that computes its components, or refers to
  other directories, may have any file."
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
  "Returns true if the :IF-FEATURE of COMPONENT, and those of its parents, hold here."
  (loop for part = component then (asdf:component-parent part)
        while part
        always (or (null (asdf/component:component-if-feature part))
                   (uiop:featurep (asdf/component:component-if-feature part)))))

(defun system-of-file (path asd-files)
  "The name of the system that the file PATH belongs to, and whether it is loaded. NIL when no
  system of ASDF or of ASD-FILES has it; the third value is then the first file in ASD-FILES that
  may define one and was given up after +DEFINITION-LIMIT+. After two such files, no more are read."
  (let* ((loaded (asdf:already-loaded-systems))
         (mine (system-with-file loaded path)))
    (if mine
        (values mine t)
        ;; The same system may be installed, too.
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
  "The components of the system NAME that are Lisp source, in the order in which they are loaded."
  (remove-if-not (lambda (component) (typep component 'asdf:cl-source-file))
                 (asdf:required-components (asdf:find-system name) :other-systems nil :goal-operation 'asdf:load-op
                                                                   :keep-component 'asdf:source-file)))

(defun read-source-file (path)
  "The text of the file PATH, read as UTF-8, or as Latin-1 if it is not UTF-8. Signals
  NO-REGULAR-FILE for a pipe, on which a read could wait."
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
  "Copies FASL, which may be NIL, to the output file of OPERATION on COMPONENT, if that is below the
  directory SCRATCH. Returns its path there, or FASL."
  (let ((expected (first (ignore-errors (asdf:output-files operation component)))))
    (cond ((and fasl expected scratch (uiop:subpathp expected scratch) (probe-file fasl))
           (ensure-directories-exist expected)
           (uiop:rename-file-overwriting-target fasl expected)
           expected)
          (t fasl))))

(defun run-check-as-compiled (component check &key (operation (asdf:make-operation 'asdf:compile-op)) scratch)
  "Runs CHECK in place of the compilation when ASDF performs OPERATION on COMPONENT: within its
  :AROUND-COMPILE and the system's own methods on PERFORM, which may not compile the file at all.
  Three values: the fasl or NIL, whether the file was compiled, and, in words, why PERFORM failed,
  unless the check has reported that. The fasl is the operation's output file, if that is below
  SCRATCH."
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
  "Returns true if the system of COMPONENT has a method of its own for the operation that OPERATION
  names."
  (flet ((asdfs-p (specializer)
           (and (typep specializer 'class)
                (let ((package (symbol-package (class-name specializer))))
                  (and package (or (eq package (load-time-value (find-package "COMMON-LISP")))
                                   (eql 0 (search "ASDF" (package-name package)))))))))
    (notevery (lambda (method) (every #'asdfs-p (sb-mop:method-specializers method)))
              (compute-applicable-methods #'asdf:perform (list (asdf:make-operation operation) component)))))

(defun own-load-p (component)
  "Returns true if the system of COMPONENT has a method of its own for loading it."
  (own-method-p 'asdf:load-op component))

(defun own-compile-p (component)
  "Returns true if the system of COMPONENT compiles it by a method or an :AROUND-COMPILE of its
  own."
  (or (own-method-p 'asdf:compile-op component)
      (asdf/component:around-compile-hook component)))

(defun component-of-its-own-way (path)
  "The component of a loaded system whose file is PATH, if OWN-COMPILE-P is true for it; NIL
  otherwise."
  (flet ((test (file path)
           ;; Each check examines the files of all loaded systems: comparing the name first saves
           ;; time.
           (and (equal (pathname-name file) (pathname-name path)) (equal (pathname-type file) (pathname-type path)) (same-file-p file path))))
    (let ((component (some (lambda (name)
                             (let ((system (asdf:registered-system name))) (and system (component-with-file system path #'test))))
                           (asdf:already-loaded-systems))))
      (and component (own-compile-p component) component))))

(defun run-check-of-file (check)
  "Runs CHECK, the check of one file, in the way in which its system compiles it."
  (let ((component (and (check-path check) (eq (check-mode check) :file)
                        (handler-case (component-of-its-own-way (check-path check)) (error () nil)))))
    (unless (and component (nth-value 1 (run-check-as-compiled component check)))
      (run-check check))))

(defun definition-problem (path message code &optional (span '(0 . 1)))
  "A finding about the file PATH as a whole, at SPAN."
  (make-finding :start (car span) :end (cdr span) :severity (if (string= code "system-not-loaded") :information :error) :code code :message message
                :file (uiop:native-namestring path)))

(defun load-by-own-method (component fasl)
  "Loads COMPONENT by the system's own method, after copying FASL, if there is one, to ASDF's output
  file."
  (let ((expected (first (ignore-errors (asdf:output-files (asdf:make-operation 'asdf:compile-op) component)))))
    (when (and fasl expected (probe-file fasl))
      (ensure-directories-exist expected)
      (uiop:copy-file fasl expected)))
  (asdf:perform (asdf:make-operation 'asdf:load-op) component))

;;; The dependencies of a system

(defun call-with-the-persons-fasls (function)
  "Calls FUNCTION with the person's own output translations of ASDF, for reading the fasls there."
  (let ((ours (asdf/output-translations::output-translations)))
    (unwind-protect (progn (setf (asdf/output-translations::output-translations) *persons-translations*)
                           (funcall function))
      (setf (asdf/output-translations::output-translations) ours))))

(defun compiles-something-p (system)
  "Returns true if loading SYSTEM would compile."
  (let ((make-plan (find-symbol "MAKE-PLAN" "ASDF")) (plan-actions (find-symbol "PLAN-ACTIONS" "ASDF")))
    (or (null make-plan) (null plan-actions)
        ;; ASDF always plans an operation that writes no file, such as COMPILE-OP of a system or of
        ;; a file that is no source.
        (some (lambda (action) (asdf:output-files (car action) (cdr action)))
              (funcall plan-actions (funcall make-plan nil (asdf:make-operation 'asdf:load-op) system))))))

(defun load-dependency (system)
  "Loads SYSTEM, a dependency of the checked system, unless it is loaded. Loaded systems are not
  compiled again, and neither are files whose fasls the person has."
  (unless (asdf:component-loaded-p system)
    (flet ((load-it () (asdf:load-system system :force-not (asdf:already-loaded-systems))))
      (dolist (other (remove system (asdf:required-components system :other-systems t :component-type 'asdf:system :goal-operation 'asdf:load-op)))
        (load-dependency other))
      (if (call-with-the-persons-fasls (lambda () (compiles-something-p system)))
          (load-it)
          (call-with-the-persons-fasls #'load-it)))))

(defun generated-p (component)
  "Returns true if another operation generates the Lisp text of COMPONENT from its file, as in
  CFFI-GROVEL: the file itself is no Lisp text."
  (let ((compiled (first (ignore-errors (asdf:input-files (asdf:make-operation 'asdf:compile-op) component)))))
    (and compiled (not (same-file-p compiled (asdf:component-pathname component))))))

(defun persons-fasl (component)
  "The fasl of COMPONENT at the place of the person's own configuration of ASDF, or NIL."
  (let ((asdf/session:*asdf-session* nil)) ; which keeps the names of files
    (call-with-the-persons-fasls
     (lambda ()
       (let ((fasl (first (ignore-errors (asdf:output-files (asdf:make-operation 'asdf:compile-op) component)))))
         (and fasl (probe-file fasl)))))))

(defun load-generated (component)
  "Loads the person's fasl of COMPONENT, whose text is generated. Returns true if that succeeded."
  (call-silently (lambda () (load (persons-fasl component)) t)
                 (constantly nil)))

(defun changed-since-load-p (component)
  "Returns true if the file of COMPONENT may differ from what was loaded of it, according to ASDF,
  which compares times in seconds, or to the content that was compiled."
  (let ((loaded (ignore-errors (asdf/action:component-operation-time (asdf:make-operation 'asdf:load-op) component)))
        (written (ignore-errors (file-write-date (asdf:component-pathname component)))))
    (or (null loaded)
        (and (realp loaded) written (>= written loaded))
        (changed-content-p (asdf:component-pathname component)))))

(defun loaded-file-facts (name)
  "The JSON of the files of the system NAME in their order, each with whether it changed since it
  was loaded."
  (mapcar (lambda (component)
            (object "path" (sb-ext:native-namestring (asdf:component-pathname component))
                    "changed" (bool (changed-since-load-p component))))
          (files-of-system name)))

(defun check-system (asd name asd-files &key confined make-check problem at-definition step (wanted nil wanted-p))
  "Checks the files of the system NAME, or of the first one that ASD defines, in order. If ASD is
  NIL, ASD-FILES are searched. CONFINED is true if code is confined. MAKE-CHECK makes the CHECK of a
  path. PROBLEM is called with a path and words when something fails outside the checks of files,
  AT-DEFINITION with the definition's path once it is known, STEP with words before a step that
  takes long. WANTED is a predicate on components: the system is then loaded in this image, and only
  components that satisfy it are checked and loaded again. Returns the CHECKs."
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
