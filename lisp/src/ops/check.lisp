;;;; `check` and `check-system`: the diagnostics of a text, or of every file of a system, made in a
;;;; confined copy of the image that streams them to the host and leaves.

(in-package :consort)

(defun span-conses (spans)
  "SPANS, [[start, end], ...] as read, as conses."
  (map 'list (lambda (span) (cons (aref span 0) (aref span 1))) spans))

(defun check-of-params (params report path text &key (emit (finding-sender report)) (at (place-sender report)) (scratch (scratch-directory params)))
  "The CHECK of TEXT, from PATH, that PARAMS ask for; it sends what it finds through REPORT."
  (make-check :text (coerce text 'text)
              :path (and path (sb-ext:parse-native-namestring path))
              :mode (if (equal (field params "mode") "form") :form :file)
              :package (package-name (or (package-called (field params "package" "COMMON-LISP-USER"))
                                         (find-package "COMMON-LISP-USER")))
              :notes (eq (field params "notes") :true)
              :unreachable (eq (field params "unreachable") :true)
              :confined (confined-p params)
              :withheld (span-conses (field params "withheld" #()))
              :asd-files (map 'list #'sb-ext:parse-native-namestring (field params "asd_files" #()))
              :scratch scratch
              :emit emit
              :at at))

(defun finding-sender (report)
  (lambda (finding) (send-line report (object "diagnostic" (finding-json finding)))))

(defun place-sender (report)
  (lambda (start end) (send-line report (object "at" (span-json start end)) :flush t)))

(defun confined-p (params)
  (eq (field params "confine" :true) :true))

(defun scratch-directory (params)
  (let ((name (field params "scratch")))
    (sb-ext:parse-native-namestring (string-right-trim "/" name) nil *default-pathname-defaults* :as-directory t)))

(defun warm-p (params)
  "Returns true if the copy is made before there is a text."
  (eq (field params "warm") :true))

(defun threads-p (params)
  "Returns true if the person lets this copy have threads and a network of its own."
  (eq (field params "threads") :true))

(defconstant +processors+ 16 "The number of processors whose time a copy with threads may use up.")

(defun begin-deadline (params)
  "From now on the time that the check may take counts."
  (limit-copy (* (field params "deadline" 10) (if (threads-p params) +processors+ 1)))
  (set-check-end (field params "deadline" 10)))

(defun begin-in-copy (params)
  "Begins the work of a copy: connects to the host, identifies itself, and puts the hooks of checks
  in force. Returns the REPORT."
  (let ((report (make-report (connect-to-host (field params "socket")))))
    (send-line report (object "token" (field params "token") "pid" (sb-posix:getpid)) :flush t)
    (setf *report-leaving* (lambda (field words) (send-line report (object field words) :flush t)))
    (unless (warm-p params) (begin-deadline params))
    (redirect-asdf (scratch-directory params))
    (keep-asdf)
    (allow-free-run)
    (setf *checking* t)
    report))

(define-global *no-network* nil "In a copy that may have threads: why it has no network of its own, or NIL.")

(defun confine-copy (params report &rest confine-calls)
  "Confines this process for good, if PARAMS ask for it; CONFINE-CALLS as CONFINE takes it. Returns
  true if the text may be checked now; NIL and why, where the process could not be confined."
  (let ((scratch (scratch-directory params)) (landlock 0) (seccomp nil) (why nil))
    (when (confined-p params)
      (when (zerop (landlock-abi)) (discard-fasls scratch))
      (let ((scratch (sb-ext:native-namestring scratch)) (readable (readable-names params)))
        (if (threads-p params)
            (setf (values landlock seccomp why *no-network*) (confine-with-threads scratch readable (report-descriptor report)))
            (setf (values landlock seccomp why) (apply #'confine scratch readable confine-calls)))))
    (send-line report (object "confined" (object "landlock" landlock "seccomp" (bool seccomp))) :flush t)
    (values (or seccomp (not (confined-p params))) why)))

(defun cannot-confine (why)
  "The finding that stands for all others where code cannot be confined, and WHY."
  (make-finding :start 0 :end 1 :severity :error :code "cannot-confine"
                :message (format nil "This system cannot confine what code does while it is checked (~A), so it was not compiled. To check it all the same, set confine = false under [check] in your own config.toml." why)))

(defun check-in-copy (params)
  "Does the check in the copy: everything after the fork."
  (if (warm-p params)
      (check-on-request params)
      (let* ((report (begin-in-copy params))
             (check (check-of-params params report (field params "path") (field params "text"))))
        (put-source check)
        (multiple-value-call #'finish-check check report (confine-copy params report)))))

(defun check-on-request (params)
  "Does the work of a warm copy."
  (let ((report (begin-in-copy params)))
    ;; There is nothing to win if it cannot be confined, or not while files can still be opened.
    (unless (or (not (confined-p params)) (plusp (landlock-abi))) (exit-process 0))
    (unless (confine-copy params report) (exit-process 0))
    (send-line report (object "warm" (world-json (field params "world"))) :flush t)
    (let ((params (await-text params report)))
      (begin-deadline params)
      (finish-check (check-of-params params report (field params "path") (field params "text")) report t))))

(defun report-done (report checks &optional unloaded-system)
  "Tells the host that CHECKS are all done. UNLOADED-SYSTEM: the name of the system to load before
  its file can be checked well."
  (send-line report (object "done" (object "forms" (reduce #'+ checks :key #'check-forms) "read" (reduce #'+ checks :key #'check-met)
                                           "unloaded_system" (or-null unloaded-system)))
             :flush t))

(defun finish-check (check report confined &optional why)
  "Runs CHECK, if code is CONFINED as it should be, or tells WHY it is not; and tells the end."
  (cond (confined
         (with-checks () (run-check-of-file check))
         (settle-names check))
        (t (funcall (check-emit check) (cannot-confine why))))
  (report-done report (list check) (check-unloaded-system check)))

(defun withheld-answer (reader)
  "The spans that the host withholds of the file it was just told of. Leaves when the host is gone."
  (if reader
      (multiple-value-bind (octets start end) (next-line reader)
        (if (typep octets 'octets)
            (field (parse-json octets start end) "withheld" #())
            (exit-process 0)))
      #()))

(defun check-system-in-copy (params)
  "Does the check of a system in the copy. The host is told of each file before it is read, and
  answers if it said it would; each diagnostic has its file too."
  (let* ((report (begin-in-copy params))
         (reader (and (eq (field params "withhold") :true) (make-line-reader (report-descriptor report))))
         (only (map 'list #'sb-ext:parse-native-namestring (field params "only" #())))
         (asd-files (map 'list #'sb-ext:parse-native-namestring (field params "asd_files" #())))
         (asd (field params "asd"))
         (texts (map 'list (lambda (entry) (cons (sb-ext:parse-native-namestring (field entry "path")) (field entry "text")))
                     (field params "texts" #())))
         (changed (let ((changed (field params "changed"))) ; null: all of the system
                    (and (vectorp changed) (list (map 'list #'sb-ext:parse-native-namestring changed)))))
         (met '())                      ; the paths of files that a check was made for
         ;; True if something could not be loaded: what later files lack may be in it.
         (incomplete nil)
         (told nil)                     ; one of these was reported
         ;; Words and code about a file that nobody asked about and that could not be loaded: the
         ;; files after it are told.
         (unloaded nil)
         (before nil)                   ; of files checked together: the lambda lists at first
         ;; For each of these files a list: path, withheld spans, findings about calls; newest
         ;; first.
         (calls '())
         (numbers 0))
    (multiple-value-bind (confined why) (confine-copy params report)
      (unless confined
        (send-line report (object "file" (if (stringp asd) asd (sb-ext:native-namestring (first only)))
                                  "diagnostic" (finding-json (cannot-confine why))))
        (report-done report '())
        (exit-process 0)))
    (labels ((silent-p (path)
               (and only (not (member path only :test #'same-file-p))))
             (begin-file (name silent)
               (send-line report (if silent (object "file" name "silent" :true) (object "file" name)) :flush t)
               (withheld-answer reader))
             (send-finding (path finding)
               (send-line report (object "file" path "diagnostic" (finding-json finding))))
             (problem (path words &optional (code "system-failed"))
               (let ((failed (string= code "load-failed")))
                 (setf incomplete t)
                 (cond ((and failed told)) ; perhaps for lack of what was reported
                       ((and path (string/= code "system-failed") (silent-p path) (member path met :test #'equal))
                        ;; Into a loaded system a file may fail to load that loads by itself.
                        (unless (or unloaded changed)
                          (setf told t
                                unloaded (list (format nil "~A is loaded before this file. ~A" (file-namestring path) words)
                                               (if failed "system-failed" code)))))
                       (t (setf told t)
                          (report-problem path words code)))))
             (report-unloaded (name text)
               (let ((start (skip-comments text 0)))
                 (send-finding name (definition-problem name (first unloaded) (second unloaded) (cons start (end-of-line text start))))))
             (report-problem (path words code)
               (let ((path (or path asd (first only))))
                 (send-finding (if (pathnamep path) (sb-ext:native-namestring path) path) (definition-problem path words code))))
             (emit-in (entry lacking)
               (lambda (finding)
                 (cond ((and lacking (or (name-finding-p finding) (doubtful-finding-p finding) (consequence-p finding))))
                       ((and before (call-finding-p finding)) (push finding (third entry)))
                       (t (send-finding (sb-ext:native-namestring (first entry)) finding)))))
             (check-of (path &optional again)
               (let* ((name (sb-ext:native-namestring path))
                      (silent (silent-p path))
                      (withheld (if again (second again) (begin-file name silent)))
                      (entry (list path withheld '()))
                      (scratch (merge-pathnames (format nil "~D/" (incf numbers)) (scratch-directory params))))
                 (ensure-directories-exist scratch)
                 (push path met)
                 (handler-case
                     ;; A system that is not loaded is no excuse here: it is being loaded.
                     (let ((check (check-of-params (list* :object "asd_files" #() "withheld" withheld (rest params)) report name
                                                   (or (cdr (assoc path texts :test #'same-file-p)) (read-source-file path))
                                                   :scratch scratch
                                                   :emit (cond (silent #'identity)
                                                               (again (lambda (finding) (when (call-finding-p finding) (send-finding name finding))))
                                                               (t (push entry calls)
                                                                  (emit-in entry incomplete)))
                                                   :at (if (or silent again) (constantly nil) (place-sender report)))))
                       (when (and unloaded (not silent) (not again)) (report-unloaded name (check-text check)))
                       check)
                   (file-error (condition) (problem path (condition-report condition)) nil))))
             (settle-calls ()
               "Checks the calls again in files that mention functions with other lambda lists than
               BEFORE, and reports the findings about calls in the other files."
               (let ((words (if incomplete '() (words-of-changed-functions before))))
                 (dolist (entry (reverse calls))
                   (destructuring-bind (path withheld findings) entry
                     (declare (ignore withheld))
                     (let ((check (and words (check-of path entry))))
                       (if (and check (mentions-p (check-text check) words))
                           (with-checks () (run-check-of-file check))
                           (dolist (finding (reverse findings))
                             (send-finding (sb-ext:native-namestring path) finding)))))))))
      (when changed (setf before (lambda-lists-now)))
      (let ((checks (call-with-asd-files
                     asd-files
                     (lambda ()
                       (prog1
                           (with-checks ()
                             (apply #'check-system (and asd (sb-ext:parse-native-namestring asd)) (field params "system") asd-files
                                       :confined (confined-p params)
                                       :make-check #'check-of
                                       :problem #'problem
                                       :at-definition (lambda (path)
                                                        (when reader (begin-file (sb-ext:native-namestring path) (silent-p path))))
                                       :step (lambda (words) (send-line report (object "step" words) :flush t))
                                       (when changed
                                         (list :wanted
                                               (lambda (component)
                                                 (let ((path (asdf:component-pathname component)))
                                                   (or (member path only :test #'same-file-p)
                                                       (member path (first changed) :test #'same-file-p))))))))
                         (when changed (settle-calls)))))))
        (report-done report checks)))))

(defun check-check-params (params)
  "Refuses PARAMS that a copy could not work with."
  (dolist (name '("socket" "token" "scratch"))
    (param params name 'string))
  (param params "withheld" 'vector :default #())
  (param params "asd_files" 'vector :default #())
  (param params "deadline" 'real :default 10)
  (let ((package (param params "package" 'string :default nil)))
    (when package (find-package-named package))))

(defun answer-from-copy (id params runner &optional (wait 'wait-for-copy))
  "Has RUNNER, called with PARAMS, work in a copy of this image. Tells the host the copy's process
  id, waits for it and reaps it. Returns the answer. With `in_place` this process is a second one,
  which becomes the copy: returns NIL, and no answer is sent."
  (when (eq (field params "in_place") :true)
    (return-from answer-from-copy (become-copy id params runner)))
  ;; The copy is still inside the request that forked it, whose handlers would take every error of
  ;; the code under check for its own.
  (let ((pid (handler-case (call-in-copy (lambda ()
                                           (with-internals ((handler-clusters initial-handler-clusters))
                                             (funcall runner params))))
               (copy-busy (condition) (refuse "busy" "~A" condition))
               (cannot-copy (condition) (refuse "cannot-fork" "~A" condition)))))
    (unwind-protect
         (progn
           (send-event "copy" "id" id "pid" pid)
           (multiple-value-bind (code signal) (funcall wait pid)
             (object "pid" (shiftf pid nil) "exit" (or-null code) "signal" (or-null signal))))
      (when pid (kill-copy pid)))))

(define-operation "check" :thread (id params)
  (param params "text" 'string)
  (check-check-params params)
  (when (warm-p params)
    (let ((world (and (quiet-p) (car *world*))))
      (unless world (refuse "busy" "The image is not at rest"))
      (setf params (append params (list "world" world)))))
  (if (object-p (field params "chain"))
      (answer-from-copy id params 'check-with-chain 'wait-for-group)
      (answer-from-copy id params 'check-in-copy)))

(define-operation "check-system" :thread (id params)
  (param params "asd" 'string :default nil)
  (param params "system" 'string :default nil)
  (param params "only" 'vector :default #())
  (check-check-params params)
  (answer-from-copy id params 'check-system-in-copy))

(define-operation "loaded-files" :interruptible (id params)
  (object "systems" (loop for name in (asdf:already-loaded-systems)
                          for source = (ignore-errors (asdf:system-source-file (asdf:registered-system name)))
                          when (and source (prefix-p (param params "within" 'string) (sb-ext:native-namestring source)))
                            collect (object "system" name "files" (coerce (ignore-errors (loaded-file-facts name)) 'vector)))))

(define-operation "source-directories" :interruptible (id params)
  (object "directories" (coerce (remove-duplicates (remove nil (append (directories-of-lisp) (directories-of-systems) (directories-of-fasls)))
                                                   :test #'string=)
                                'vector)))

(define-feature "fork" () (bool (can-copy-p)))
(define-feature "landlock" () (landlock-abi))
(define-feature "seccomp" () (bool (seccomp-p)))
