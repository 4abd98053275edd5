;;;; check: the diagnostics of a text, made in a confined copy of the image that streams them to the host and leaves.

(in-package :consort)

(defun span-conses (spans)
  "SPANS, [[start, end], ...] as read, as conses."
  (map 'list (lambda (span) (cons (aref span 0) (aref span 1))) spans))

(defun check-of-params (params report)
  "The CHECK that PARAMS ask for, which sends what it finds through REPORT."
  (let ((path (field params "path")))
    (make-check :text (coerce (field params "text" "") '(simple-array character (*)))
                :path (and path (sb-ext:parse-native-namestring path))
                :mode (if (equal (field params "mode") "form") :form :file)
                :package (field params "package" "COMMON-LISP-USER")
                :notes (eq (field params "notes") :true)
                :unreachable (eq (field params "unreachable") :true)
                :confined (eq (field params "confine" :true) :true)
                :withheld (span-conses (field params "withheld" #()))
                :scratch (scratch-directory params)
                :emit (lambda (finding) (send-line report (object "diagnostic" (finding-json finding))))
                :at (lambda (start end) (send-line report (object "at" (span-json start end)) :flush t)))))

(defun scratch-directory (params)
  (let ((name (field params "scratch")))
    (sb-ext:parse-native-namestring (string-right-trim "/" name) nil *default-pathname-defaults* :as-directory t)))

(defun check-in-copy (params)
  "What the copy does: everything after the fork."
  (let ((report (make-report (connect-to-host (field params "socket")))))
    (send-line report (object "token" (field params "token") "pid" (sb-posix:getpid)) :flush t)
    (let ((check (check-of-params params report)))
      (limit-copy (field params "deadline" 10))
      (multiple-value-bind (landlock seccomp)
          (if (check-confined check) (confine (sb-ext:native-namestring (check-scratch check))) (values 0 nil))
        (send-line report (object "confined" (object "landlock" landlock "seccomp" (bool seccomp))) :flush t))
      (install-hooks)
      ;; The copy is still inside the request that forked it, whose handlers would take every error of the code under check for its own.
      (with-internals ((handler-clusters initial-handler-clusters))
        (run-check check))
      (send-line report (object "done" (object "forms" (check-forms check) "unloaded_system" :null)) :flush t))))

(defun check-check-params (params)
  "Refuse PARAMS that a copy could not work with."
  (dolist (name '("socket" "token" "scratch"))
    (param params name 'string))
  (param params "withheld" 'vector :default #())
  (param params "deadline" 'real :default 10)
  (let ((package (param params "package" 'string :default nil)))
    (when (and package (not (find-package package)))
      (refuse "package-not-found" "Package ~A not found" package))))

(defun answer-from-copy (id params runner)
  "Have RUNNER, called with PARAMS, work in a copy of this image; tell the host the copy's process id, wait for it and reap it; the answer."
  (let ((pid (handler-case (call-in-copy (lambda () (funcall runner params)))
               (copy-busy (condition) (refuse "busy" "~A" condition))
               (cannot-copy (condition) (refuse "cannot-fork" "~A" condition)))))
    (unwind-protect
         (progn
           (send-event "copy" "id" id "pid" pid)
           (multiple-value-bind (code signal) (wait-for-copy pid)
             (object "pid" (shiftf pid nil) "exit" (or-null code) "signal" (or-null signal))))
      (when pid (kill-copy pid)))))

(define-operation "check" :thread (id params)
  (param params "text" 'string)
  (check-check-params params)
  (answer-from-copy id params 'check-in-copy))

(define-feature "fork" () (bool (can-copy-p)))
(define-feature "landlock" () (landlock-abi))
(define-feature "seccomp" () (bool (seccomp-p)))
