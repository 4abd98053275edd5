;;;; Which ASDF system a file belongs to, and the check of a whole system. All of it in a copy: system definitions are read there, and
;;;; what ASDF compiles goes to the scratch directory.

(in-package :consort)

(defun redirect-asdf (scratch)
  "Have ASDF put what it compiles below SCRATCH."
  (asdf:initialize-output-translations
   `(:output-translations (t (,scratch "asdf" :implementation :**/ :*.*.*)) :ignore-inherited-configuration :disable-cache)))

(defun call-silently (function on-failure)
  "Call FUNCTION, whatever it prints discarded; ON-FAILURE as in CALL-GUARDED."
  (let* ((nowhere (make-broadcast-stream))
         (*standard-output* nowhere) (*error-output* nowhere) (*trace-output* nowhere))
    (call-guarded (lambda ()
                    (handler-bind ((warning (lambda (condition)
                                              (let ((muffle (find-restart 'muffle-warning condition)))
                                                (when muffle (invoke-restart muffle))))))
                      (funcall function)))
                  (lambda (condition where) (declare (ignore where)) (funcall on-failure condition)))))

(defun load-definition (asd)
  "Have ASDF read the system definitions in the file ASD; the names of the systems it defines, or NIL when that failed."
  (call-silently (lambda ()
                   (asdf:load-asd asd)
                   (loop for name in (asdf:registered-systems)
                         for system = (asdf:registered-system name)
                         for source = (and system (asdf:system-source-file system))
                         when (and source (same-file-p source asd)) collect name))
                 (constantly nil)))

(defun same-file-p (a b)
  "Whether A and B name one file."
  (flet ((true (path) (or (ignore-errors (truename path)) (pathname path))))
    (or (equal (pathname a) (pathname b))
        (equal (true a) (true b)))))

(defun component-with-file (component path)
  "The component in COMPONENT whose file is PATH, or NIL."
  (typecase component
    (asdf:parent-component
     (some (lambda (child) (component-with-file child path)) (asdf:component-children component)))
    (asdf:source-file
     (let ((file (ignore-errors (asdf:component-pathname component))))
       (and file (same-file-p file path) component)))))

(defun system-with-file (names path)
  "The first of the systems NAMES that has a component whose file is PATH, or NIL."
  (find-if (lambda (name)
             (let ((system (asdf:registered-system name)))
               (and system (component-with-file system path))))
           names))

(defun system-of-file (path asd-files)
  "The name of the system that the file PATH belongs to, and whether it is loaded. NIL when none of ASDF's, nor of those in ASD-FILES, has it."
  (let* ((loaded (asdf:already-loaded-systems))
         (mine (system-with-file loaded path)))
    (if mine
        (values mine t)
        (loop for asd in asd-files
              for name = (system-with-file (load-definition asd) path)
              when name return (values name (and (member name loaded :test #'string=) t))))))

;;; A whole system

(defun parts-of-system (name)
  "NAME and those systems it depends on that are defined with it (\"NAME/...\"), dependencies first."
  (let ((primary (asdf:primary-system-name name)) (seen '()))
    (labels ((walk (name)
               (let ((name (string-downcase (if (consp name) (car (last name)) name))))
                 (unless (or (member name seen :test #'string=)
                             (string/= primary (asdf:primary-system-name name)))
                   (push name seen)
                   (let ((system (asdf:find-system name)))
                     (mapc #'walk (remove-if-not (lambda (dependency) (typep dependency '(or string symbol)))
                                                 (asdf:system-depends-on system)))
                     (setf seen (append (remove name seen :test #'string=) (list name))))))))
      (walk name))
    seen))

(defun outer-dependencies (names)
  "What the systems NAMES depend on but for each other."
  (remove-duplicates
   (loop for name in names
         for system = (asdf:find-system name)
         append (remove-if (lambda (dependency)
                             (member (string-downcase (if (consp dependency) (car (last dependency)) dependency)) names :test #'string=))
                           (append (asdf:system-defsystem-depends-on system) (asdf:system-depends-on system))))
   :test #'equal :from-end t))

(defun files-of-system (name)
  "The components of the system NAME that are Lisp source, in the order in which they are loaded."
  (remove-if-not (lambda (component) (typep component 'asdf:cl-source-file))
                 (asdf:required-components (asdf:find-system name) :other-systems nil :goal-operation 'asdf:load-op
                                                                   :keep-component 'asdf:source-file)))

(defun read-source-file (path)
  "The text of the file PATH: as UTF-8, or as Latin-1 when it is none."
  (flet ((text (format)
           (with-open-file (in path :external-format format)
             (let* ((all (make-string (file-length in)))
                    (end (read-sequence all in)))
               (coerce (subseq all 0 end) 'text)))))
    (handler-case (text :utf-8)
      (stream-error () (text :latin-1))
      (error () (text :latin-1)))))

(defun call-around-compile (component function)
  "Call FUNCTION as ASDF would have COMPONENT compiled: within its :AROUND-COMPILE."
  (let ((hook (asdf/component:around-compile-hook component)))
    (if hook
        (funcall (uiop:ensure-function hook) (lambda (&rest arguments) (declare (ignore arguments)) (funcall function)))
        (funcall function))))

(defun definition-problem (path message)
  "A finding about the file PATH as a whole."
  (make-finding :start 0 :end 1 :severity :error :code "system-failed" :message message
                :file (uiop:native-namestring path)))

(defun check-component (component make-check problem)
  "Check the file of COMPONENT with what MAKE-CHECK makes of its path, then load it, so that the files after it see what it defines. The
CHECK, or NIL when the file cannot be read. PROBLEM is called with words when loading fails."
  (let* ((path (asdf:component-pathname component))
         (check (funcall make-check path)))
    (when check
      (let ((fasl (call-around-compile component (lambda () (run-check check)))))
        (when fasl
          (call-silently (lambda () (load (or (probe-file fasl) path)))
                         (lambda (condition)
                           (funcall problem path (format nil "Loading it failed: ~A" (if condition (say condition) "it was left")))))))
      check)))

(defun check-system (asd name make-check problem at-file only)
  "Check the files of the system NAME, or of the first one that ASD defines, in order. MAKE-CHECK makes the CHECK of a path; AT-FILE is
called with each path first; PROBLEM with a path and words when something goes wrong around the files. With ONLY, paths, nothing is told
of others. The CHECKs."
  (let* ((names (load-definition asd))
         (name (or name (find (pathname-name asd) names :test #'string=) (first names)))
         (checks '()))
    (cond ((null name)
           (funcall problem asd "The system definition could not be loaded.")
           '())
          (t
           (let ((parts (call-silently (lambda () (parts-of-system name))
                                       (lambda (condition) (funcall problem asd (if condition (say condition) "It could not be loaded."))))))
             (dolist (dependency (call-silently (lambda () (outer-dependencies parts)) (constantly '())))
               (call-silently (lambda () (asdf:load-system (asdf/find-component:resolve-dependency-spec nil dependency)))
                              (lambda (condition)
                                (funcall problem asd (format nil "~(~S~), which it depends on, cannot be loaded: ~A" dependency
                                                             (if condition (say condition) "loading was left"))))))
             (dolist (part parts)
               (dolist (component (call-silently (lambda () (files-of-system part)) (constantly '())))
                 (let ((path (asdf:component-pathname component)))
                   (when (or (null only) (member path only :test #'same-file-p))
                     (funcall at-file path))
                   (let ((check (check-component component make-check problem)))
                     (when check (push check checks))))))
             (nreverse checks))))))
