;;;; The programs that the user's code has started. The host ends them after the image. A host that
;;;; was killed cannot do that, so the image ends them when its link ends.

(in-package :consort)

(define-global *own-pid* nil "The process that ends its programs: the image, and not a copy of it.")
(define-global *in-copy* nil "True if this process is a copy of the image, in which nothing stops.")
(define-global *keep-programs* nil "True if the programs that were started here are to outlive the
  image.")
(defconstant +programs-end+ 0.5 "The time in seconds that programs have to end after SIGTERM.")

(defun prepare-for-programs ()
  "Reads CONSORT_KEEP_PROGRAMS, and removes it from the environment of programs that the image
  runs."
  (setf *keep-programs* (equal (sb-ext:posix-getenv "CONSORT_KEEP_PROGRAMS") "yes")
        *own-pid* (sb-posix:getpid))
  (sb-posix:unsetenv "CONSORT_KEEP_PROGRAMS"))

(defun forked-p ()
  "Returns true in a process that the user's code has forked from the image by the C library. The
  link belongs to the image, so such a process neither reads from it nor writes to it."
  (not (or *in-copy* (null *own-pid*) (eql *own-pid* (sb-posix:getpid)))))

(defun leave-if-forked (&optional (code 0))
  "Ends this process if the user's code has forked it. Must be called where that code ends, since
  the process has no request to answer, and none of the image's other threads."
  (when (forked-p) (exit-process code)))

(defun signal-programs (programs signal)
  "Sends SIGNAL to the process groups that PROGRAMS, process ids, lead. Returns true if at least one
  of them exists."
  (let ((there nil))
    (dolist (pid programs there)
      (handler-case (progn (sb-posix:kill (- pid) signal) (setf there t))
        (sb-posix:syscall-error ()))))) ; it has ended

(defun end-programs ()
  "Ends the programs that were started here, unless they are to stay. Takes no lock, because the
  user's code might hold it."
  (unless (or *keep-programs* (not (eql *own-pid* (sb-posix:getpid))) (not (internal-p 'active-processes)))
    ;; A process in the list has not been waited for, so its id does not belong to another one.
    (let ((programs (mapcar #'sb-ext:process-pid (copy-list active-processes))))
      (when (signal-programs programs sb-posix:sigterm)
        (loop repeat 50
              while (signal-programs programs 0)
              do (sleep (/ +programs-end+ 50)))
        (signal-programs programs sb-posix:sigkill)))))

(defun leave-with-programs ()
  "Ends the programs, and then the process, because its link has ended."
  (end-programs)
  (exit-process 0))
