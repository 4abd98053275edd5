;;;; Compile and load a system, for the tests in tests/refactorings.rs.
;;;;
;;;; Standard input: a list of directories, the first with the system, and the system's name.
;;;; Standard output: the warnings in order, a line each, and `loaded` or the error at the end.

(require :asdf)
(push :hunchentoot-no-ssl *features*)

(defvar *answers* *standard-output*)
(defvar *directories* (read))
(defvar *system* (read))

(defun say (control &rest arguments)
  (let ((*print-pretty* nil))
    (format *answers* "~A~%" (substitute #\Space #\Newline (apply #'format nil control arguments)))))

(asdf:initialize-source-registry
 `(:source-registry ,@(mapcar (lambda (directory) `(:tree ,directory)) *directories*) :ignore-inherited-configuration))
;; Compiled files go beside the sources, which are copies.
(asdf:initialize-output-translations
 `(:output-translations (,(first *directories*) ,(first *directories*)) :inherit-configuration))

(handler-case
    (let ((*standard-output* (make-broadcast-stream))
          (*error-output* (make-broadcast-stream)))
      ;; Other systems first, whose conditions are not asked for.
      (dolist (needed (asdf:system-depends-on (asdf:find-system *system*)))
        (when (stringp needed)
          (handler-bind ((warning #'muffle-warning)) (asdf:load-system needed))))
      (handler-bind ((warning (lambda (warning)
                                (say "~A: ~A" (type-of warning) warning)
                                (muffle-warning warning))))
        (asdf:load-system *system*)))
  (error (condition) (say "failed: ~A" condition))
  (:no-error (&rest values) (declare (ignore values)) (say "loaded")))
