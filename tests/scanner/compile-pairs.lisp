;;;; Compile forms before and after a refactoring, for refactorings.rs.
;;;;
;;;; Standard input: a list of directories, a list of systems, and then lists
;;;;   ("PACKAGE" "form before" "forms after" ("NAME of a function that came to be" ...))
;;;; Standard output: a line for each of these: `same`, or what the compiler says only of what came
;;;; after. Nothing is evaluated but the systems.

(require :asdf)
(push :hunchentoot-no-ssl *features*)

(defvar *answers* *standard-output*)

(defun forms (text package)
  (let ((*package* package)
        (end (gensym)))
    (with-input-from-string (stream text)
      (loop for form = (read stream nil end) until (eq form end) collect form))))

(defun findings (forms)
  "The warnings of the compiler, as strings, sorted."
  (let ((found '())
        (*error-output* (make-broadcast-stream)))
    (handler-bind ((warning (lambda (warning)
                              (push (remove #\Newline (princ-to-string warning)) found)
                              (muffle-warning warning)))
                   (sb-ext:compiler-note #'muffle-warning))
      (with-compilation-unit (:override t)
        (dolist (form forms)
          (compile nil `(lambda () ,form)))))
    (sort found #'string<)))

(defun answer (package before after names)
  (handler-case
      (let ((package (or (find-package package) (error "There is no package ~A." package))))
        (sb-ext:unlock-package package)
        (let ((old (findings (forms before package))))
          (dolist (name names)
            (proclaim `(ftype function ,(let ((*package* package)) (read-from-string name)))))
          (let ((new (findings (forms after package))))
            (dolist (one old)
              (setf new (remove one new :test #'string= :count 1)))
            (if new (format nil "~{~A~^ / ~}" new) "same"))))
    (error (condition) (remove #\Newline (format nil "failed: ~A" condition)))))

(asdf:initialize-source-registry
 `(:source-registry ,@(mapcar (lambda (directory) `(:tree ,directory)) (read)) :ignore-inherited-configuration))
(let ((*standard-output* (make-broadcast-stream))
      (*error-output* (make-broadcast-stream)))
  (dolist (system (read))
    (handler-bind ((warning #'muffle-warning))
      (asdf:load-system system))))
(loop for job = (read *standard-input* nil)
      while job
      do (let ((*print-pretty* nil))
           (format *answers* "~A~%" (substitute #\Space #\Newline (apply #'answer job))))
         (finish-output *answers*))
