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
      (run-check check)
      (send-line report (object "done" (object "forms" (check-forms check) "unloaded_system" :null)) :flush t))))

(defun check-params-problem (params)
  "What is wrong with PARAMS, or NIL."
  (loop for (key . type) in '(("text" . string) ("socket" . string) ("token" . string) ("scratch" . string))
        unless (typep (field params key) type)
          return (format nil "check needs ~S, a string" key)))
