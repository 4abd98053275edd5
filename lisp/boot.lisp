;;;; Compile, load and save: from the sources of lisp/ to a core that serves, or to one fasl that
;;;; does.
;;;;
;;;;   CONSORT_OUTPUT=/path/consort.core sbcl --noinform --no-sysinit --no-userinit \
;;;;     --non-interactive --load boot.lisp --eval '(consort:build)'
;;;;
;;;; sources.sexp lists the sources. CONSORT_OUTPUT ending in .fasl gives a fasl instead. A warning
;;;; of the compiler is an error. docs/wire.md tells how either is started.

(load (merge-pathnames "src/package.lisp" *load-truename*))

(in-package :consort)

(declaim (ftype function save-core main warm-up replace-functions unlink-exported-functions note-locks-before-saving))

(defparameter *sources*
  (with-open-file (stream (merge-pathnames "sources.sexp" *load-truename*) :external-format :utf-8)
    (let ((*read-eval* nil))
      (read stream)))
  "The files of src/, in order, without their type. A file that is named there must exist.")

(defvar *sources-directory* (merge-pathnames "src/" *load-truename*))

(define-condition build-failed (error)
  ((name :initarg :name))
  (:report (lambda (condition stream)
             (format stream "~A.lisp does not compile without warnings" (slot-value condition 'name)))))

(defun compile-source (name directory)
  "Compiles src/NAME.lisp to a fasl in DIRECTORY and loads it. Returns the fasl's path."
  (let ((fasl (merge-pathnames (concatenate 'string (substitute #\- #\/ name) ".fasl") directory)))
    (multiple-value-bind (output warnings-p failure-p)
        (compile-file (merge-pathnames (concatenate 'string name ".lisp") *sources-directory*) :output-file fasl)
      (when (or (null output) warnings-p failure-p)
        (error 'build-failed :name name)))
    (load fasl)
    fasl))

(deftype redefinition ()
  "The style warning for what is defined again. Its name is not exported."
  (find-symbol "REDEFINITION-WARNING" "SB-KERNEL"))

(defun compile-sources (directory &optional (before (constantly nil)))
  "Compiles and loads every source. Calls BEFORE with the number of each. Returns the fasls. Signals
  an error for names that are undefined at the end."
  (let ((undefined '()))
    (prog1
        (handler-bind ((sb-ext:compiler-note #'muffle-warning)
                       (redefinition #'muffle-warning) ; macros: once when compiled, once when loaded
                       (warning (lambda (warning) (push (princ-to-string warning) undefined))))
          (with-compilation-unit ()
            (let ((*compile-verbose* nil) (*compile-print* nil))
              (loop for name in *sources*
                    for number from 1
                    do (funcall before number)
                    collect (compile-source name directory)))))
      (when undefined
        (error "Warnings of the build as a whole:~{~%~A~}" (remove-duplicates undefined :test #'string=))))))

(defun concatenate-files (files target)
  (with-open-file (out target :direction :output :element-type '(unsigned-byte 8) :if-exists :supersede)
    (let ((buffer (make-array 65536 :element-type '(unsigned-byte 8))))
      (dolist (file files)
        (with-open-file (in file :element-type '(unsigned-byte 8))
          (loop for count = (read-sequence buffer in)
                until (zerop count)
                do (write-sequence buffer out :end count)))))))

(defun report-step (number)
  "Reports the progress of the build to the host, in a line that it knows."
  (format t "; consort build: ~D of ~D~%" number (1+ (length *sources*)))
  (finish-output))

(defun build ()
  "Makes the file that the environment's CONSORT_OUTPUT names: a fasl when it ends in .fasl, else a
  core. Deletes the intermediate fasls."
  (let* ((output (or (sb-ext:posix-getenv "CONSORT_OUTPUT")
                     (error "CONSORT_OUTPUT must name the core or the fasl to write")))
         (output-file (sb-ext:parse-native-namestring output))
         (directory (uiop:ensure-directory-pathname (sb-ext:parse-native-namestring (concatenate 'string output ".build")))))
    (ensure-directories-exist directory)
    (unwind-protect
         (let ((fasls (compile-sources directory #'report-step)))
           (when (string= (pathname-type output-file) "fasl")
             (concatenate-files fasls output-file)
             (return-from build output-file)))
      (uiop:delete-directory-tree directory :validate t))
    (save-core output-file)))

(defun save-core (output-file)
  "Writes the core and ends the process."
  (report-step (1+ (length *sources*)))
  (warm-up)
  (replace-functions)
  (unlink-exported-functions)
  (note-locks-before-saving)
  (asdf:clear-configuration)
  (setf asdf:*central-registry* '())
  (in-package :cl-user)
  (sb-ext:gc :full t)
  (sb-ext:save-lisp-and-die output-file :toplevel #'main :executable nil))
