;;;; Whole files of real libraries, checked in an image that has them loaded: every form is seen,
;;;; every condition has its place, no condition comes of the library being loaded already, and the
;;;; image is the same afterwards.
;;;;
;;;;   sbcl --noinform --non-interactive --no-userinit --load lisp/tests/check-real-files.lisp
;;;;
;;;; Needs the sources of Debian's packages cl-ppcre and cl-ironclad, and reads no others. With
;;;; CONSORT_FEW_FILES set it is cl-ppcre alone: for another compiler, which would have to compile
;;;; ironclad first. CONSORT_TEST_FASLS names the directory of their fasls, which later runs load.

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
  "Returns true if the span of DIAGNOSTIC is of one token or one list of TEXT."
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

(defparameter *debian-sources* "/usr/share/common-lisp/source/")
(defparameter *checked-systems* '(("cl-ppcre" "cl-ppcre") ("ironclad" "ironclad" "bordeaux-threads" "alexandria"))
  "Each system to be checked, and the directories of Debian's sources that it is in and needs.")
(defvar *checked* 0 "How many systems were checked.")

(let ((directories (loop for name in (remove-duplicates (mapcan (lambda (entry) (copy-list (rest entry))) *checked-systems*) :test #'string=)
                         collect `(:directory ,(concatenate 'string *debian-sources* name "/")))))
  (asdf:initialize-source-registry `(:source-registry ,@directories :ignore-inherited-configuration)))
(let ((fasls (sb-posix:getenv "CONSORT_TEST_FASLS")))
  (when fasls
    (asdf:initialize-output-translations `(:output-translations (t (,(concatenate 'string fasls "/") :implementation)) :ignore-inherited-configuration))))

(defun check-system-files (system)
  "Loads SYSTEM, and checks its files."
  (load-quietly system)
  (check-lines "(defun warm-up ())") ; what this process itself makes up for the first time is none of a check's doing
  (let* ((files (source-files system)) ; before the digest, since ASDF finalizes a class of its own when it first looks for a system
         (before (progn (all-digests) (all-digests)))
         (count (reduce #'+ (mapcar #'check-real-file files))))
    (format t "~&~A: ~D files, ~D diagnostics~%" system (length files) count)
    (loop for (name digest) on (rest (all-digests)) by #'cddr
          do (expect (equal digest (field before name)) (format nil "~A: ~A of the image unchanged" system name)))))

(loop for (system . directories) in (if (plusp (length (sb-posix:getenv "CONSORT_FEW_FILES"))) (list (first *checked-systems*)) *checked-systems*)
      for missing = (remove-if (lambda (name) (probe-file (concatenate 'string *debian-sources* name "/"))) directories)
      do (cond (missing
                (format t "~&SKIPPED: ~A, because ~A has no ~{~A~^, ~}: install cl-ppcre and cl-ironclad~%" system *debian-sources* missing))
               (t
                (test system (check-system-files system))
                (incf *checked*))))

(finish-tests "real files" :skipped (zerop *checked*))
