;;;; `check`: the diagnostics of a text, made in a confined copy of the image that streams them to
;;;; the host and ends.

(in-package :consort)

(defun span-conses (spans)
  "SPANS, [[start, end], ...] as read, as conses."
  (map 'list (lambda (span) (cons (aref span 0) (aref span 1))) spans))

(defun check-of-params (params report path text &key (emit (finding-sender report)) (at (place-sender report)) (scratch (scratch-directory params)))
  "The CHECK of TEXT, from PATH, that PARAMS request. It sends its findings through REPORT."
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
  "Returns true if the copy is made before the text is known."
  (eq (field params "warm") :true))

(defun threads-p (params)
  "Returns true if the person allows this copy to have threads and a network of its own."
  (eq (field params "threads") :true))

(defconstant +processors+ 16 "The factor by which a copy with threads may use more processor time
  than its deadline.")

(defun begin-deadline (params)
  "Starts the time limit of the check."
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

(define-global *no-network* nil "In a copy that may have threads: the reason why it has no network
  of its own, or NIL.")

(defun confine-copy (params report &rest confine-calls)
  "Confines this process for good if PARAMS request that. CONFINE-CALLS is passed to CONFINE.
  Returns true if the text may be checked now. If the process could not be confined, returns NIL and
  the reason."
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
  "The finding that replaces all others if code cannot be confined. WHY is the reason."
  (make-finding :start 0 :end 1 :severity :error :code "cannot-confine"
                :message (format nil "This system cannot confine what code does while it is checked (~A), so it was not compiled. To check it without confinement, set confine = false under [check] in your own config.toml." why)))

(defun check-in-copy (params)
  "Makes the check in the copy: everything after the fork."
  (if (warm-p params)
      (check-on-request params)
      (let* ((report (begin-in-copy params))
             (check (check-of-params params report (field params "path") (field params "text"))))
        (put-source check)
        (multiple-value-call #'finish-check check report (confine-copy params report)))))

(defun check-on-request (params)
  "Does the work of a warm copy."
  (let ((report (begin-in-copy params)))
    ;; A warm copy has no use if it cannot be confined, or if it cannot be confined before files are
    ;; opened.
    (unless (or (not (confined-p params)) (plusp (landlock-abi))) (exit-process 0))
    (unless (confine-copy params report) (exit-process 0))
    (send-line report (object "warm" (world-json (field params "world"))) :flush t)
    (let ((params (await-text params report)))
      (begin-deadline params)
      (finish-check (check-of-params params report (field params "path") (field params "text")) report t))))

(defun report-done (report checks &optional unloaded-system)
  "Reports to the host that all CHECKS are done. UNLOADED-SYSTEM is the name of the system that must
  be loaded before its file can be checked well."
  (send-line report (object "done" (object "forms" (reduce #'+ checks :key #'check-forms) "read" (reduce #'+ checks :key #'check-met)
                                           "unloaded_system" (or-null unloaded-system)))
             :flush t))

(defun finish-check (check report confined &optional why)
  "Runs CHECK if code is CONFINED as it should be, and otherwise reports WHY it is not. Then reports
  the end."
  (cond (confined
         (with-checks () (run-check-of-file check))
         (settle-names check))
        (t (funcall (check-emit check) (cannot-confine why))))
  (report-done report (list check) (check-unloaded-system check)))

(defun withheld-answer (reader)
  "The spans that the host withholds of the file that was just reported. Ends the process if the
  host is gone."
  (if reader
      (multiple-value-bind (octets start end) (next-line reader)
        (if (typep octets 'octets)
            (field (parse-json octets start end) "withheld" #())
            (exit-process 0)))
      #()))

(defun check-check-params (params)
  "Refuses PARAMS with which a copy could not work."
  (dolist (name '("socket" "token" "scratch"))
    (param params name 'string))
  (param params "withheld" 'vector :default #())
  (param params "asd_files" 'vector :default #())
  (param params "deadline" 'real :default 10)
  (let ((package (param params "package" 'string :default nil)))
    (when package (find-package-named package))))

(defun answer-from-copy (id params runner &optional (wait 'wait-for-copy))
  "Makes RUNNER, called with PARAMS, work in a copy of this image. Reports the copy's process id to
  the host, waits for the copy and reaps it. Returns the answer. With `in_place` this process is
  already a second one, and becomes the copy: returns NIL, and no answer is sent."
  (when (eq (field params "in_place") :true)
    (return-from answer-from-copy (become-copy id params runner)))
  ;; The copy is still inside the request that forked it. The handlers of the request would treat
  ;; every error of the code under check as an error of the request, so they are removed.
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
