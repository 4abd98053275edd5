;;;; The files that define a package, in the order in which their systems load them.

(in-package :consort)

(defun package-files (packages snapshot)
  "The native names of the files that define PACKAGES, and of those that contain the definitions of
  their symbols."
  (let ((files (make-hash-table :test #'equal)) (seen (make-hash-table :test #'equal)))
    (flet ((note (pathname)
             (when pathname
               (let ((name (namestring pathname)))
                 (unless (gethash name seen)
                   (setf (gethash name seen) t)
                   (let ((true (ignore-errors (probe-file (translate-logical-pathname pathname)))))
                     (when (and true (pathname-name true)) (setf (gethash (sb-ext:native-namestring true) files) t))))))))
      (dolist (package packages)
        (note (object-pathname package)))
      (maphash (lambda (symbol record)
                 (when (member (symbol-package symbol) packages)
                   (loop for (nil . function) in (symbol-record-functions record)
                         do (note (object-pathname function))
                            (when (typep function 'standard-generic-function)
                              (mapc (lambda (method) (note (object-pathname method))) (sb-mop:generic-function-methods function))))
                   (let ((macro (info-of record symbol :function :macro-function)))
                     (when macro (note (object-pathname macro))))
                   (when (variable-source record symbol)
                     (note (or (named-pathname symbol :variable) (named-pathname symbol :constant))))
                   (when (symbol-record-class record)
                     (dolist (kind '(:class :structure :condition)) (note (named-pathname symbol kind))))))
               (snapshot-symbols snapshot)))
    (loop for file being the hash-keys of files collect file)))

(defun packages-using (package)
  "PACKAGE, and every package that uses it, directly or indirectly."
  (let ((found '()))
    (labels ((look (package)
               (unless (or (member package found) (system-package-p package))
                 (push package found)
                 (mapc #'look (package-used-by-list package)))))
      (look package))
    (reverse found)))

(defun system-file-pairs (system other-systems)
  "A list of (NAME . COMPONENT), with native names, for the Lisp files of SYSTEM, in the order of a
  load. If OTHER-SYSTEMS, the files of the systems on which it depends are included."
  (loop for component in (ignore-errors (asdf:required-components system :other-systems other-systems :component-type 'asdf:cl-source-file))
        for true = (ignore-errors (probe-file (asdf:component-pathname component)))
        when true collect (cons (sb-ext:native-namestring true) component)))

(defun dependency-name (dependency)
  "The name of the system in a dependency as in DEFSYSTEM: \"name\", (:version \"name\" ...) or
  (:feature ... dependency). NIL for others."
  (cond ((typep dependency '(or string symbol)) (and dependency (string-downcase dependency)))
        ((eq (first dependency) :version) (dependency-name (second dependency)))
        ((eq (first dependency) :feature) (dependency-name (third dependency)))))

(defun known-system-files (system)
  "The names of the files of SYSTEM, a name, and of all systems on which it depends, and of the
  files that define these, as far as ASDF knows them now. No system is searched, and no .asd is
  read, because that would run its code."
  (let ((seen '()) (files '()))
    (labels ((note (pathname)
               (let ((true (and pathname (ignore-errors (probe-file pathname)))))
                 (when true (pushnew (sb-ext:native-namestring true) files :test #'string=))))
             (look (component)
               (typecase component
                 (asdf:parent-component (mapc #'look (asdf:component-children component)))
                 (asdf:source-file (note (asdf:component-pathname component)))))
             (visit (name)
               (let ((system (and name (not (member name seen :test #'string=)) (asdf:registered-system name))))
                 (when system
                   (push name seen)
                   (note (asdf:system-source-file system))
                   (look system)
                   (mapc (lambda (dependency) (visit (dependency-name dependency)))
                         (append (asdf:system-defsystem-depends-on system) (asdf:system-depends-on system)))))))
      (visit system))
    (reverse files)))

(defun definition-changed-p (system)
  "Returns true if the file that defines SYSTEM may be newer than its definition, or has another
  content than the one that was read."
  (let ((read (ignore-errors (asdf/action:component-operation-time (asdf:make-operation 'asdf:define-op) system)))
        (written (ignore-errors (file-write-date (asdf:system-source-file system)))))
    (or (and (realp read) written (> written read))
        (changed-content-p (asdf:system-source-file system)))))

(defun nothing-to-load-p (system asd-files)
  "Returns true if a load of the system called SYSTEM and its test systems would load nothing, as
  far as ASDF knows them now: they are loaded, and no file of theirs, nor of the systems on which
  they depend, may be newer. No system is searched, and no .asd is read."
  (let* ((loaded (asdf:already-loaded-systems))
         (tests (or (declared-test-systems (asdf:registered-system system))
                    (remove-if-not (lambda (name)
                                     (or (asdf:registered-system name)
                                         (and (not (find #\/ name)) (asd-file-for name asd-files))))
                                   (usual-test-systems system))))
         (seen '()))
    (labels ((loaded-p (name) (member name loaded :test #'string=))
             (current-p (component)
               (typecase component
                 (asdf:parent-component (every #'current-p (asdf:component-children component)))
                 (asdf:cl-source-file (not (changed-since-load-p component)))
                 (t t)))
             (settled-p (name)
               (or (member name seen :test #'string=)
                   (let ((system (asdf:registered-system name)))
                     (push name seen)
                     (and (not (definition-changed-p system))
                          (current-p system)
                          (loop for dependency in (asdf:system-depends-on system)
                                for needed = (dependency-name dependency)
                                always (or (null needed) (not (loaded-p needed)) (settled-p needed))))))))
      (loop for name in (cons system tests)
            always (and (loaded-p name) (settled-p name))))))

(defun in-load-order (files)
  "A list of (NAME . COMPONENT) for FILES, names, in the order in which the systems to which they
  belong load them. Files that belong to none follow, as (NAME . NIL)."
  (let ((wanted (make-hash-table :test #'equal)) (ordered '()))
    (dolist (file files) (setf (gethash file wanted) t))
    (dolist (name (asdf:already-loaded-systems))
      (let ((system (asdf:registered-system name)))
        (when (and system (some (lambda (pair) (gethash (car pair) wanted)) (system-file-pairs system nil)))
          (dolist (pair (system-file-pairs system t))
            (when (gethash (car pair) wanted)
              (remhash (car pair) wanted)
              (push pair ordered))))))
    (append (reverse ordered)
            (mapcar #'list (sort (loop for file being the hash-keys of wanted collect file) #'string<)))))

(defun reload-file (name component directory number)
  "Compiles and loads the file NAME, as its system does if it has one."
  (if component
      (progn
        (handler-case (asdf:perform (asdf:make-operation 'asdf:compile-op) component)
          (uiop:compile-file-error () (fail-compilation nil (format nil "~A could not be compiled" name))))
        (asdf:perform (asdf:make-operation 'asdf:load-op) component))
      (multiple-value-bind (fasl warnings failed)
          (let ((pathname (sb-ext:parse-native-namestring name)) (values '()))
            (check-allowed pathname)
            (call-noting-writes name (lambda ()
                                       (let ((*error-output* (make-broadcast-stream)))
                                         (setf values (multiple-value-list
                                                       (compile-file pathname :output-file (format nil "~A~D.fasl" directory number)
                                                                              :verbose nil :print nil))))))
            (values-list values))
        (declare (ignore warnings))
        (when (or failed (null fasl))
          (fail-compilation nil (format nil "~A could not be compiled" name)))
        (check-allowed (sb-ext:parse-native-namestring name))
        (call-loading (lambda () (load fasl))))))

(defun reload-files (id pairs)
  "Compiles and loads the files of PAIRS, which are from IN-LOAD-ORDER, one after another, and sends
  progress events for the request ID."
  (call-with-scratch-directory
   (lambda (directory)
     (loop with total = (length pairs)
           for (name . component) in pairs
           for number from 0
           do (send-event "progress" "id" id "message" (format nil "reloading ~A" (subseq name (1+ (or (position #\/ name :from-end t) -1)))) "done" number "total" total)
              (reload-file name component directory number)))))
