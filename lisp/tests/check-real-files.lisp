;;;; Whole files of real libraries, checked in an image that has them loaded: every form is seen, every condition has its place, no
;;;; condition comes of the library being loaded already, and the image is the same afterwards.
;;;;
;;;;   sbcl --noinform --non-interactive --no-userinit --load lisp/tests/check-real-files.lisp
;;;;
;;;; Needs cl-ppcre and ironclad where ASDF finds them (Debian: cl-ppcre, cl-ironclad). With CONSORT_FEW_FILES set it is
;;;; cl-ppcre alone: for another compiler, which would have to compile ironclad first.

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defun load-quietly (system)
  (handler-bind ((warning #'muffle-warning))
    (let ((*standard-output* (make-broadcast-stream)) (*error-output* (make-broadcast-stream)))
      (asdf:load-system system))))

(defun source-files (system)
  "The Lisp files of SYSTEM and of the loaded systems \"SYSTEM/...\"."
  (let ((files '()))
    (labels ((walk (component)
               (typecase component
                 (asdf:cl-source-file (pushnew (asdf:component-pathname component) files :test #'equal))
                 (asdf:parent-component (mapc #'walk (asdf:component-children component))))))
      (dolist (name (asdf:already-loaded-systems))
        (when (or (string= name system) (eql 0 (search (concatenate 'string system "/") name)))
          (walk (asdf:find-system name)))))
    (reverse files)))

(defun covered-p (text diagnostic)
  "Whether the span of DIAGNOSTIC is of one token or one list of TEXT."
  (destructuring-bind (start end) (coerce (field diagnostic "span") 'list)
    (and (<= 0 start) (< start end) (<= end (length text))
         (let ((first (char text start)))
           (or (not (eql first #\Space))
               nil)))))

(defun check-real-file (path)
  "Check PATH as it is on disk; how many diagnostics."
  (let ((text (slurp path)))
    (multiple-value-bind (lines code signal) (check-lines text :path (uiop:native-namestring path) :notes t :deadline 900)
      (let ((done (loop for line in lines thereis (field line "done")))
            (diagnostics (diagnostics-of lines)))
        (expect (and (eql code 0) (null signal) done) (format nil "~A is checked to its end: ~A ~A" path code signal))
        (dolist (diagnostic diagnostics)
          (expect (covered-p text diagnostic) (format nil "~A: ~A has a place" path (field diagnostic "message")))
          (expect (member (field diagnostic "severity") '("note" "style-warning" "warning") :test #'string=)
                  (format nil "~A: ~A ~A is no error" path (field diagnostic "code") (field diagnostic "message")))
          (expect (not (member (field diagnostic "code") '("redefinition" "duplicate-definition" "undefined-function" "undefined-variable"
                                                           "undefined-type" "unknown-package")
                               :test #'string=))
                  (format nil "~A: ~A is not a finding in a loaded file" path (field diagnostic "message")))
          (expect (not (and (equalp (field diagnostic "span") (field diagnostic "toplevel"))
                            (string= (field diagnostic "severity") "warning")))
                  (format nil "~A: ~A is narrower than its form" path (field diagnostic "message"))))
        (length diagnostics)))))

(defun all-digests ()
  "The fingerprint's parts."
  (field (funcall (operation-function (gethash "fingerprint" *operations*)) 0 (object)) "parts"))

(dolist (system (if (plusp (length (sb-posix:getenv "CONSORT_FEW_FILES"))) '("cl-ppcre") '("cl-ppcre" "ironclad")))
  (cond ((ignore-errors (asdf:find-system system))
         (load-quietly system)
         (check-lines "(defun warm-up ())") ; what this process itself makes up for the first time is none of a check's doing
         (let ((before (progn (all-digests) (all-digests)))
               (count 0) (files 0))
           (dolist (path (source-files system))
             (incf files)
             (incf count (check-real-file path)))
           (format t "~&~A: ~D files, ~D diagnostics~%" system files count)
           (loop for (name digest) on (rest (all-digests)) by #'cddr
                 do (expect (equal digest (field before name)) (format nil "~A: ~A of the image unchanged" system name)))))
        (t (format t "~&~A is not installed: left out~%" system))))

(finish-tests "real files")
