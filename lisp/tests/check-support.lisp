;;;; Shared by the checker's tests: a check in a real copy, as the host would ask for it.

(unless (and (find-package "CONSORT") (fboundp (intern "CHECK-IN-COPY" "CONSORT")))
  (load (merge-pathnames "../boot.lisp" *load-truename*)))

(in-package :consort)

(defparameter *patience* 900
  "Seconds that anything is waited for. Only a failure takes that long, so that a slow or busy
  machine makes none.")

(defun fresh-directory ()
  "Returns the name of a new, empty directory, with a slash."
  (let ((name (format nil "~Acheck-~D-~36R/" (uiop:native-namestring (uiop:temporary-directory))
                      (sb-posix:getpid) (random (expt 36 8) (make-random-state t)))))
    (ensure-directories-exist name)
    name))

(defun delete-directory (name)
  "Delete the directory NAME and what is in it."
  (uiop:delete-directory-tree (uiop:ensure-directory-pathname name) :validate t))

(unless (fboundp 'check-in-copy)
  (let ((directory (fresh-directory)))
    (unwind-protect (compile-sources (uiop:ensure-directory-pathname directory))
      (delete-directory directory))))

(defvar *tests-directory* (make-pathname :name nil :type nil :defaults *load-truename*))

(defun slurp (path)
  "The text of the file PATH, every character as it is."
  (with-open-file (in path :external-format :utf-8)
    (let* ((text (make-string (file-length in)))
           (end (read-sequence text in)))
      (coerce (subseq text 0 end) '(simple-array character (*))))))

(defun call-with-scratch (function)
  "Call FUNCTION with the name of a fresh directory, which is deleted afterwards."
  (let ((directory (fresh-directory)))
    (unwind-protect (funcall function directory)
      (delete-directory directory))))

(defun await-connection (listener pid)
  "Wait until somebody connects to LISTENER; an error when the process PID ends before."
  (loop until (wait-until-fd-usable (sb-bsd-sockets:socket-file-descriptor listener) :input 0.5 nil)
        do (multiple-value-bind (ended status) (sb-posix:waitpid pid (logior sb-posix:wnohang +any-child+))
             (when (eql ended pid)
               (error "The copy ended, with status ~D, before it connected." status)))))

(defun warm-params (params)
  "Returns the request for a copy that is to wait for PARAMS."
  (object "text" "" "warm" :true "room" 10000000 "world" (car *world*) "confine" (field params "confine")
          "socket" (field params "socket") "token" (field params "token") "scratch" (field params "scratch") "read" (field params "read")))

(defun report-warm (stream params)
  "Tell the copy at the other end of STREAM what PARAMS say, once it waits."
  (loop repeat 3 ; token, confined, warm
        do (loop until (= 10 (read-byte stream))))
  (multiple-value-bind (octets end) (json-line params)
    (write-sequence octets stream :end end)
    (finish-output stream)))

(defun check-lines (text &key path (mode "file") package notes unreachable (withheld #()) asd-files (confine t) (deadline *patience*) more
                           (read (mapcar #'uiop:native-namestring (list (uiop:temporary-directory) *tests-directory* (merge-pathnames "../../tests/programs/" *tests-directory*))))
                           (runner 'check-in-copy) warm)
  "Returns the messages of a copy that checks TEXT, each line read; and its exit code and signal.
  WARM: it is made before it has the text."
  (call-with-scratch
   (lambda (directory)
     (let* ((socket-name (concatenate 'string directory "s"))
            (listener (make-instance 'sb-bsd-sockets:local-socket :type :stream))
            (params (append (object "text" text "path" (or-null path) "mode" mode "package" (or-null package) "withheld" withheld
                                    "asd_files" (coerce asd-files 'vector) "notes" (bool notes) "unreachable" (bool unreachable)
                                    "confine" (bool confine) "deadline" deadline
                                    "socket" socket-name "token" "secret" "scratch" directory "read" (coerce read 'vector))
                            more)))
       (sb-bsd-sockets:socket-bind listener socket-name)
       (sb-bsd-sockets:socket-listen listener 1)
       (let ((pid (call-in-copy (lambda ()
                                  (refuse-exits #'refuse-exit) ; as the image does when it serves
                                  (setf *serves-host* t)
                                  (funcall runner (if warm (warm-params params) params)))
                                :patience *patience*)))
         (unwind-protect
              (let* ((connection (progn (await-connection listener pid) (sb-bsd-sockets:socket-accept listener)))
                     (stream (sb-bsd-sockets:socket-make-stream connection :input t :output t :element-type '(unsigned-byte 8) :buffering :full))
                     (octets (loop initially (when warm (report-warm stream params))
                                   with all = (make-array 0 :element-type '(unsigned-byte 8) :adjustable t :fill-pointer t)
                                   for octet = (read-byte stream nil) while octet do (vector-push-extend octet all)
                                   finally (return (coerce all 'octets)))))
                (close stream)
                (let ((lines (loop with start = 0
                                   for end = (position 10 octets :start start)
                                   while end collect (parse-json octets start end)
                                   do (setf start (1+ end)))))
                  (multiple-value-bind (code signal) (wait-for-copy pid)
                    (setf pid nil)
                    (values lines code signal))))
           (sb-bsd-sockets:socket-close listener)
           (when pid (kill-copy pid))))))))

(defun diagnostics-of (lines)
  "The diagnostics among LINES, in the order of the text."
  (stable-sort (loop for line in lines
                     for diagnostic = (field line "diagnostic")
                     when diagnostic collect diagnostic)
               #'< :key (lambda (diagnostic) (aref (field diagnostic "span") 0))))

(defvar *failures* 0)
(defvar *test* nil "The name of the test that runs.")
(defvar *tests-run* 0)
(defvar *failed-tests* '() "The names of the tests that failed, newest first.")
(defvar *test-names* (remove "" (uiop:split-string (or (sb-posix:getenv "CONSORT_TEST_NAMES") "")) :test #'string=)
  "The names of the tests to run, or parts of them; none for all.")

(defun test-wanted-p (name)
  "Returns true if the test NAME is to be run. A test within another one is part of it."
  (or *test* (null *test-names*)
      (let ((name (substitute #\- #\Space (string-downcase name))))
        (some (lambda (part) (search (string-downcase part) name)) *test-names*))))

(defmacro test (name &body body)
  "Runs BODY, which has checks, if the test of this NAME is to be run. The name is given with hyphens
  for spaces."
  `(call-test ,name (lambda () ,@body)))

(defun call-test (name function)
  (when (test-wanted-p name)
    (incf *tests-run*)
    (let ((*test* (or *test* name)))
      (funcall function))))

(defmacro expect (form &optional (name (prin1-to-string form)))
  "Counts a failure and reports it, with the test that runs, when FORM is false."
  `(unless ,form (count-failure ,name)))

(defun count-failure (what)
  (incf *failures*)
  (when *test* (pushnew *test* *failed-tests* :test #'string=))
  (format t "~&FAILED~:[: ~*~; ~A~%  ~]~A~%" *test* *test* what))

(defun finish-tests (title &key skipped)
  "Tells how it went and ends with the exit code: 77 when nothing failed and the tests were
  SKIPPED."
  (when (and *test-names* (zerop *tests-run*) (not skipped))
    (count-failure (format nil "no test has one of ~{~A~^, ~} in its name" *test-names*)))
  (format t "~@[~&Tests that failed, as names for lisp/tests/run.sh:~{ ~A~}~%~]"
          (mapcar (lambda (name) (substitute #\- #\Space name)) (reverse *failed-tests*)))
  (format t "~&~A: ~:[~D failed~;~:[all passed~;skipped~]~]~%" title (zerop *failures*) (if (zerop *failures*) skipped *failures*))
  (finish-output)
  (exit-process (cond ((plusp *failures*) 1) (skipped 77) (t 0))))

;;; Systems

(defun write-files (directory &rest files)
  "Write FILES, names and texts, below DIRECTORY."
  (loop for (name text) on files by #'cddr
        for path = (merge-pathnames name directory)
        do (ensure-directories-exist path)
           (with-open-file (out path :direction :output :if-exists :supersede :external-format :utf-8) (write-string text out))))

(defun reported-codes (lines)
  "Lists of file and code of what LINES tell, sorted."
  (sort (loop for line in lines
              for diagnostic = (field line "diagnostic")
              when diagnostic
                collect (format nil "~A ~A" (file-namestring (field line "file")) (field diagnostic "code")))
        #'string<))
