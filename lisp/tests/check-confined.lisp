;;;; Attempts that code under check must not succeed in: the system must refuse each, and the answer
;;;; must say so.
;;;;
;;;;   sbcl --noinform --non-interactive --no-userinit --load lisp/tests/check-confined.lisp

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defparameter *attempts*
  '(("delete" "(delete-file ~S)" :victim)
    ("overwrite" "(with-open-file (s ~S :direction :output :if-exists :supersede) (print 1 s))" :victim)
    ("append" "(with-open-file (s ~S :direction :output :if-exists :append) (print 1 s))" :victim)
    ("rename" "(sb-posix:rename ~S ~:*~S)" :victim)
    ("truncate" "(sb-posix:truncate ~S 0)" :victim)
    ("chmod" "(sb-posix:chmod ~S 0)" :victim)
    ("utimes" "(sb-posix:utimes ~S 0 0)" :victim)
    ("create" "(with-open-file (s ~S :direction :output) (print 1 s))" :new)
    ("mkdir" "(sb-posix:mkdir ~S 448)" :new)
    ("symlink" "(sb-posix:symlink \"/etc\" ~S)" :new)
    ("run-program" "(sb-ext:run-program \"/bin/true\" '())")
    ("shell" "(uiop:run-program \"true\")")
    ("fork" "(sb-posix:fork)")
    ("c-fork" "(when (minusp (sb-alien:alien-funcall (sb-alien:extern-alien \"fork\" (function sb-alien:int)))) (sb-posix:syscall-error 'fork))")
    ("thread" "(sb-thread:join-thread (sb-thread:make-thread (lambda () 1)))")
    ("kill" "(sb-posix:kill (sb-posix:getppid) 0)")
    ("kill-group" "(sb-posix:kill 0 0)")
    ("kill-all" "(sb-posix:kill -1 0)")
    ("tcp" "(sb-bsd-sockets:socket-connect (make-instance 'sb-bsd-sockets:inet-socket :type :stream) #(127 0 0 1) 9)")
    ("udp" "(make-instance 'sb-bsd-sockets:inet-socket :type :datagram :protocol :udp)")
    ("unix" "(sb-bsd-sockets:socket-connect (make-instance 'sb-bsd-sockets:local-socket :type :stream) \"/nowhere\")")
    ("setsid" "(sb-posix:setsid)")
    ("setuid" "(sb-posix:setuid 12345)")
    ("ptrace" "(when (minusp (sb-alien:alien-funcall (sb-alien:extern-alien \"ptrace\" (function sb-alien:long sb-alien:long sb-alien:long sb-alien:long sb-alien:long)) 16 (sb-posix:getppid) 0 0)) (sb-posix:syscall-error 'ptrace))")
    ("limits-of-others" "(when (minusp (sb-alien:alien-funcall (sb-alien:extern-alien \"prlimit\" (function sb-alien:int sb-alien:int sb-alien:int sb-alien:unsigned-long sb-alien:unsigned-long)) (sb-posix:getppid) 7 0 0)) (sb-posix:syscall-error 'prlimit))"))
  "Name, Lisp text, and the file it is about.")

(defun attempt-text (form place)
  "FORM where code runs while a text is checked: in an EVAL-WHEN, a macro, a reader macro, or at
  read time."
  (ecase place
    (:eval-when (format nil "(eval-when (:compile-toplevel) ~A (warn \"SUCCEEDED\"))~%" form))
    (:macro (format nil "(defmacro attempt () ~A (warn \"SUCCEEDED\") nil)~%(defun f () (attempt))~%" form))
    (:read (format nil "(defun f () #.(progn ~A (warn \"SUCCEEDED\") nil))~%" form))
    (:reader-macro (format nil "(eval-when (:compile-toplevel) (setf *readtable* (copy-readtable)) (set-macro-character #\\! (lambda (stream char) (declare (ignore stream char)) ~A (warn \"SUCCEEDED\") nil)))~%(defun f () !)~%" form))))

(defun state-of (path)
  "Returns the facts of the file PATH that a change would show in."
  (let ((stat (ignore-errors (sb-posix:stat path))))
    (and stat (list (sb-posix:stat-ino stat) (sb-posix:stat-size stat) (sb-posix:stat-mode stat) (sb-posix:stat-mtime stat) (sb-posix:stat-uid stat)))))

(defun attempt-all (directory places runner told &key warm)
  "Make every attempt in PLACES, in copies that RUNNER works in; TOLD: the diagnostic must say that
  checks are confined; WARM: by copies that were made before."
  (let ((victim (concatenate 'string directory "victim")) (new (concatenate 'string directory "new")))
    (with-open-file (out victim :direction :output) (write-string "untouched" out))
    (let ((before (state-of victim)))
      (loop for (name control about) in *attempts*
            for form = (format nil control (if (eq about :new) new victim))
            do (dolist (place places)
                 (multiple-value-bind (lines code signal) (check-lines (coerce (attempt-text form place) 'text) :path "/nowhere/text.lisp" :runner runner :warm warm)
                   (let ((diagnostics (diagnostics-of lines)))
                     (expect (and (eql code 0) (null signal)) (format nil "~A in ~A: the copy ends well: ~A ~A" name place code signal))
                     (expect (notany (lambda (d) (search "SUCCEEDED" (field d "message"))) diagnostics) (format nil "~A in ~A is refused" name place))
                     (expect (or (not told) (some (lambda (d) (string= (field d "code") "confined")) diagnostics))
                             (format nil "~A in ~A is told as confined: ~S" name place
                                     (mapcar (lambda (d) (list (field d "code") (field d "message"))) diagnostics)))))))
      (expect (equal before (state-of victim)) "the file is as it was")
      (expect (null (state-of new)) "no file was made"))))

(test "every-place"
  (call-with-scratch (lambda (directory) (attempt-all directory '(:eval-when :macro :read :reader-macro) 'check-in-copy t))))

(test "warm"
  (when (plusp (landlock-abi))
    (call-with-scratch (lambda (directory) (attempt-all directory '(:eval-when) 'check-in-copy t :warm t)))))

;; In the processes of a chain, which ends when the check does.
(defun check-with-short-chain (params)
  (setf (fdefinition 'keep-chain) (lambda (chain report text withheld)
                                    (declare (ignore report))
                                    (end-chain (make-keeper chain (chain-check chain) text withheld))))
  (check-with-chain (append params (list "chain" (object "spacing_ms" 0)))))

(test "chain"
  (call-with-scratch (lambda (directory) (attempt-all directory '(:eval-when) 'check-with-short-chain t))))

;; If the kernel has no Landlock, the filter of system calls must do alone. MKDIR and others that
;; it refuses are without paths.
(test "without-landlock"
  (flet ((without-landlock (params) (let ((*landlock-limit* 0)) (check-in-copy params))))
    (call-with-scratch (lambda (directory) (attempt-all directory '(:eval-when) #'without-landlock t)))
    (let ((lines (check-lines (coerce "(defun f (x y) (no-such-function y))" 'text) :path "/nowhere/text.lisp" :runner #'without-landlock)))
      (expect (equal '("unused-variable" "undefined-function") (mapcar (lambda (d) (field d "code")) (diagnostics-of lines)))
              "a check without Landlock finds what it should")
      (expect (eql 0 (loop for line in lines thereis (and (field line "confined") (field (field line "confined") "landlock"))))
              "it says that Landlock is not in force"))))

;; Allowed: reading, writing in the scratch directory and to /dev/null.
(test "allowed"
  (expect (null (diagnostics-of (check-lines (coerce (format nil "(eval-when (:compile-toplevel)
  (with-open-file (in ~S) (read-line in))
  (with-open-file (out \"/dev/null\" :direction :output :if-exists :append) (print 1 out))
  (sb-posix:kill (sb-posix:getpid) 0)
  (sb-ext:gc :full t))" (uiop:native-namestring (merge-pathnames "check-support.lisp" *tests-directory*))) 'text) :path "/nowhere/text.lisp")))
          "what is allowed works"))

;; Time: a form that never ends is left, and the rest is checked; what cannot be left ends the copy,
;; and not the image.
(test "never-ends"
  (expect (equal (mapcar (lambda (line) (field (field line "diagnostic") "code"))
                         (remove-if-not (lambda (line) (field line "diagnostic"))
                                        (check-lines (coerce "(eval-when (:compile-toplevel) (loop (ignore-errors (loop (sleep 1)))))
(defun f () (undefined-here))" 'text) :path "/nowhere/text.lisp" :deadline 20)))
                 '("out-of-time" "undefined-function"))
          "a form that never ends is left, and the rest is checked")
  (multiple-value-bind (lines code signal)
      (handler-case (check-lines (coerce "(eval-when (:compile-toplevel) (sb-sys:without-interrupts (loop)))" 'text)
                                :path "/nowhere/text.lisp" :deadline 1)
        (error () (values nil 70 nil)))
    (declare (ignore lines))
    (expect (or signal (not (eql code 0))) "a loop without end that masks interrupts meets the limit of CPU time")))

(finish-tests "confinement")
