;;;; `check-system`: the diagnostics of every file of a system, made in a confined copy of the
;;;; image. The host is told of each file before it is read.

(in-package :consort)

(defstruct (system-run (:constructor make-system-run (params report reader only texts asd changed)) (:conc-name run-))
  "The check of a system in a copy: its parameters, and its state."
  (params nil :read-only t)
  (report nil :read-only t)
  ;; A reader of the host's answers to BEGIN-FILE; NIL if it does not answer.
  (reader nil :read-only t)
  ;; The files to report on; NIL: all.
  (only '() :read-only t)
  ;; Texts that differ from those on disk, by the files' pathnames.
  (texts '() :read-only t)
  ;; The native name of the system's definition, or NIL.
  (asd nil :read-only t)
  ;; A list of one element, the changed files of a loaded system, of which only these and ONLY are
  ;; checked; NIL: all of the system is checked.
  (changed '() :read-only t)
  ;; The paths of files that a check was made for.
  (met '())
  ;; True if something could not be loaded: names that later files lack may be in it.
  (incomplete nil)
  ;; True if a problem around the files was reported.
  (told nil)
  ;; Words and code about a file that nobody asked about and that could not be loaded, for the files
  ;; after it; or NIL.
  (unloaded nil)
  ;; The lambda lists at the start, if files are checked together.
  (before nil)
  ;; For each of these files a list: path, withheld spans, findings about calls; newest first.
  (calls '())
  ;; The number of scratch directories so far.
  (numbers 0))

(defun native-paths (names)
  (map 'list #'sb-ext:parse-native-namestring names))

(defun silent-file-p (run path)
  "Returns true if nothing is reported on the file PATH."
  (and (run-only run) (not (member path (run-only run) :test #'same-file-p))))

(defun begin-file (run name silent)
  "Tells the host of the file NAME; returns the spans that it withholds."
  (send-line (run-report run) (if silent (object "file" name "silent" :true) (object "file" name)) :flush t)
  (withheld-answer (run-reader run)))

(defun send-finding-in (run name finding)
  (send-line (run-report run) (object "file" name "diagnostic" (finding-json finding))))

(defun send-problem (run path words code)
  (let ((path (or path (run-asd run) (first (run-only run)))))
    (send-finding-in run (if (pathnamep path) (sb-ext:native-namestring path) path) (definition-problem path words code))))

(defun note-problem (run path words &optional (code "system-failed"))
  "Reports WORDS about PATH, or keeps them for the files after it, if nobody asked about PATH."
  (let ((failed (string= code "load-failed")))
    (setf (run-incomplete run) t)
    (cond ((and failed (run-told run)))  ; perhaps for lack of what was reported
          ((and path (string/= code "system-failed") (silent-file-p run path) (member path (run-met run) :test #'equal))
           ;; Into a loaded system a file may fail to load that loads by itself.
           (unless (or (run-unloaded run) (run-changed run))
             (setf (run-told run) t
                   (run-unloaded run) (list (format nil "~A is loaded before this file. ~A" (file-namestring path) words)
                                            (if failed "system-failed" code)))))
          (t (setf (run-told run) t)
             (send-problem run path words code)))))

(defun report-unloaded (run name text)
  "Reports in the file NAME that one before it could not be loaded."
  (destructuring-bind (words code) (run-unloaded run)
    (let ((start (skip-comments text 0)))
      (send-finding-in run name (definition-problem name words code (cons start (end-of-line text start)))))))

(defun emitter-in (run entry lacking)
  "Returns the function that takes the findings in the file of ENTRY, one of the CALLS. LACKING: names
  that the file lacks may be in what could not be loaded."
  (lambda (finding)
    (cond ((and lacking (or (name-finding-p finding) (doubtful-finding-p finding) (consequence-p finding))))
          ((and (run-before run) (call-finding-p finding)) (push finding (third entry)))
          (t (send-finding-in run (sb-ext:native-namestring (first entry)) finding)))))

(defun emitter-of-calls (run name)
  "Returns the function that takes the findings of a second check: those about calls are sent."
  (lambda (finding) (when (call-finding-p finding) (send-finding-in run name finding))))

(defun make-check-in (run path &optional again)
  "Returns the CHECK of the file PATH; NIL if it cannot be read. AGAIN: the entry of CALLS of a file
  that was checked before."
  (let* ((name (sb-ext:native-namestring path))
         (silent (silent-file-p run path))
         (withheld (if again (second again) (begin-file run name silent)))
         (entry (list path withheld '()))
         (scratch (merge-pathnames (format nil "~D/" (incf (run-numbers run))) (scratch-directory (run-params run)))))
    (ensure-directories-exist scratch)
    (push path (run-met run))
    (handler-case
        ;; A system that is not loaded is no excuse here: it is being loaded.
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
  "Checks the calls again in files that mention functions with other lambda lists than BEFORE, and
  reports the findings about calls in the other files."
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
  "Checks the files of the system in order; returns the CHECKs."
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
  "The SYSTEM-RUN that PARAMS ask for."
  (let ((changed (field params "changed"))) ; null: all of the system
    (make-system-run params report
                     (and (eq (field params "withhold") :true) (make-line-reader (report-descriptor report)))
                     (native-paths (field params "only" #()))
                     (map 'list (lambda (entry) (cons (sb-ext:parse-native-namestring (field entry "path")) (field entry "text")))
                          (field params "texts" #()))
                     (field params "asd")
                     (and (vectorp changed) (list (native-paths changed))))))

(defun check-system-in-copy (params)
  "Does the check of a system in the copy. The host is told of each file before it is read, and
  answers if it said it would; each diagnostic has its file too."
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
