;;;; `check-system`: the diagnostics of every file of a system, made in a confined copy of the
;;;; image. Each file is reported to the host before it is read.

(in-package :consort)

(defstruct (system-run (:constructor make-system-run (params report reader only texts asd changed)) (:conc-name run-))
  "The parameters and the state of the check of a system in a copy."
  (params nil :read-only t)
  (report nil :read-only t)
  ;; A reader of the host's answers to BEGIN-FILE; NIL if it does not answer.
  (reader nil :read-only t)
  ;; The files whose findings are reported; NIL for all.
  (only '() :read-only t)
  ;; Texts that differ from those on disk, by the files' pathnames.
  (texts '() :read-only t)
  ;; The native name of the system's definition, or NIL.
  (asd nil :read-only t)
  ;; A list of one element, the list of the changed files of a loaded system. Only these files and
  ;; ONLY are checked. NIL if all of the system is checked.
  (changed '() :read-only t)
  ;; The paths of the files for which a check was made.
  (met '())
  ;; True if something could not be loaded: it may define names that later files lack.
  (incomplete nil)
  ;; True if a problem with a file as a whole was reported.
  (told nil)
  ;; NIL, or a list of words and code about a file that nobody requested and that could not be
  ;; loaded. It is reported in the files after that one.
  (unloaded nil)
  ;; The lambda lists at the start, if files are checked together.
  (before nil)
  ;; A list for each of these files, newest first: path, withheld spans, findings about calls.
  (calls '())
  ;; The number of scratch directories made so far.
  (numbers 0))

(defun native-paths (names)
  (map 'list #'sb-ext:parse-native-namestring names))

(defun silent-file-p (run path)
  "Returns true if nothing is to be reported about the file PATH."
  (and (run-only run) (not (member path (run-only run) :test #'same-file-p))))

(defun begin-file (run name silent)
  "Reports the file NAME to the host. Returns the spans of it that the host withholds."
  (send-line (run-report run) (if silent (object "file" name "silent" :true) (object "file" name)) :flush t)
  (withheld-answer (run-reader run)))

(defun send-finding-in (run name finding)
  (send-line (run-report run) (object "file" name "diagnostic" (finding-json finding))))

(defun send-problem (run path words code)
  (let ((path (or path (run-asd run) (first (run-only run)))))
    (send-finding-in run (if (pathnamep path) (sb-ext:native-namestring path) path) (definition-problem path words code))))

(defun note-problem (run path words &optional (code "system-failed"))
  "Reports WORDS about PATH, or keeps them for the files after it if nobody requested PATH."
  (let ((failed (string= code "load-failed")))
    (setf (run-incomplete run) t)
    (cond ((and failed (run-told run)))  ; perhaps because of what was reported before
          ((and path (string/= code "system-failed") (silent-file-p run path) (member path (run-met run) :test #'equal))
           ;; A file that loads by itself may fail to load into a loaded system.
           (unless (or (run-unloaded run) (run-changed run))
             (setf (run-told run) t
                   (run-unloaded run) (list (format nil "~A is loaded before this file. ~A" (file-namestring path) words)
                                            (if failed "system-failed" code)))))
          (t (setf (run-told run) t)
             (send-problem run path words code)))))

(defun report-unloaded (run name text)
  "Reports in the file NAME that a file before it could not be loaded."
  (destructuring-bind (words code) (run-unloaded run)
    (let ((start (skip-comments text 0)))
      (send-finding-in run name (definition-problem name words code (cons start (end-of-line text start)))))))

(defun emitter-in (run entry lacking)
  "Returns the function that takes the findings in the file of ENTRY, one of the CALLS. LACKING is
  true if code that could not be loaded may define names that the file lacks."
  (lambda (finding)
    (cond ((and lacking (or (name-finding-p finding) (doubtful-finding-p finding) (consequence-p finding))))
          ((and (run-before run) (call-finding-p finding)) (push finding (third entry)))
          (t (send-finding-in run (sb-ext:native-namestring (first entry)) finding)))))

(defun emitter-of-calls (run name)
  "Returns the function that takes the findings of a second check. It sends those about calls."
  (lambda (finding) (when (call-finding-p finding) (send-finding-in run name finding))))

(defun make-check-in (run path &optional again)
  "Returns the CHECK of the file PATH; NIL if it cannot be read. AGAIN, if not NIL, is the entry in
  CALLS of a file that was checked before."
  (let* ((name (sb-ext:native-namestring path))
         (silent (silent-file-p run path))
         (withheld (if again (second again) (begin-file run name silent)))
         (entry (list path withheld '()))
         (scratch (merge-pathnames (format nil "~D/" (incf (run-numbers run))) (scratch-directory (run-params run)))))
    (ensure-directories-exist scratch)
    (push path (run-met run))
    (handler-case
        ;; The `asd_files` are empty, so that findings are not excused by a system that is not
        ;; loaded: it is being loaded.
        (let ((check (check-of-params (list* :object "asd_files" #() "withheld" withheld (rest (run-params run))) (run-report run) name
                                      (or (cdr (assoc path (run-texts run) :test #'same-file-p)) (read-source-file path))
                                      :scratch scratch
                                      :emit (cond (silent #'identity)
                                                  (again (emitter-of-calls run name))
                                                  (t (push entry (run-calls run))
                                                     (emitter-in run entry (run-incomplete run))))
                                      :at (if (or silent again) (constantly nil) (place-sender (run-report run))))))
          (when (and (run-unloaded run) (not silent) (not again)) (report-unloaded run name (check-text check)))
          check)
      (file-error (condition) (note-problem run path (condition-report condition)) nil))))

(defun settle-calls (run)
  "Checks the calls again in files that mention functions whose lambda lists differ from those in
  BEFORE, and reports the findings about calls in the other files."
  (let ((words (if (run-incomplete run) '() (words-of-changed-functions (run-before run)))))
    (dolist (entry (reverse (run-calls run)))
      (destructuring-bind (path withheld findings) entry
        (declare (ignore withheld))
        (let ((check (and words (make-check-in run path entry))))
          (if (and check (mentions-p (check-text check) words))
              (with-checks () (run-check-of-file check))
              (dolist (finding (reverse findings))
                (send-finding-in run (sb-ext:native-namestring path) finding))))))))

(defun check-files-in (run asd-files)
  "Checks the files of the system in order. Returns the CHECKs."
  (let ((params (run-params run)) (asd (run-asd run)))
    (apply #'check-system (and asd (sb-ext:parse-native-namestring asd)) (field params "system") asd-files
           :confined (confined-p params)
           :make-check (lambda (path) (make-check-in run path))
           :problem (lambda (path words &rest code) (apply #'note-problem run path words code))
           :at-definition (lambda (path)
                            (when (run-reader run) (begin-file run (sb-ext:native-namestring path) (silent-file-p run path))))
           :step (lambda (words) (send-line (run-report run) (object "step" words) :flush t))
           (when (run-changed run)
             (list :wanted (lambda (component)
                             (let ((path (asdf:component-pathname component)))
                               (or (member path (run-only run) :test #'same-file-p)
                                   (member path (first (run-changed run)) :test #'same-file-p)))))))))

(defun run-of-params (params report)
  "The SYSTEM-RUN that PARAMS request."
  (let ((changed (field params "changed"))) ; null for all of the system
    (make-system-run params report
                     (and (eq (field params "withhold") :true) (make-line-reader (report-descriptor report)))
                     (native-paths (field params "only" #()))
                     (map 'list (lambda (entry) (cons (sb-ext:parse-native-namestring (field entry "path")) (field entry "text")))
                          (field params "texts" #()))
                     (field params "asd")
                     (and (vectorp changed) (list (native-paths changed))))))

(defun check-system-in-copy (params)
  "Makes the check of a system in the copy. Each file is reported to the host before it is read, and
  the host answers if it said that it would. Each diagnostic names its file."
  (let* ((report (begin-in-copy params))
         (run (run-of-params params report))
         (asd-files (native-paths (field params "asd_files" #()))))
    (multiple-value-bind (confined why) (confine-copy params report)
      (unless confined
        (send-finding-in run (let ((asd (run-asd run))) (if (stringp asd) asd (sb-ext:native-namestring (first (run-only run)))))
                         (cannot-confine why))
        (report-done report '())
        (exit-process 0)))
    (when (run-changed run) (setf (run-before run) (lambda-lists-now)))
    (report-done report (call-with-asd-files asd-files
                                             (lambda ()
                                               (prog1 (with-checks () (check-files-in run asd-files))
                                                 (when (run-changed run) (settle-calls run))))))))

(define-operation "check-system" :thread (id params)
  (param params "asd" 'string :default nil)
  (param params "system" 'string :default nil)
  (param params "only" 'vector :default #())
  (check-check-params params)
  (answer-from-copy id params 'check-system-in-copy))
