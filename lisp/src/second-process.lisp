;;;; A second process instead of a copy: where the image cannot be forked, the host starts another
;;;; process from the same core, has it load what it knows of (docs/wire.md, `in_place`), and asks
;;;; it for one check. It then becomes what a copy is after the fork: one thread, no descriptors,
;;;; confined for good; it does its work and leaves.
;;;;
;;;; The threads of this process must be gone before: Landlock and seccomp bind the thread that asks
;;;; for them and those that it starts, and no others.

(in-package :consort)

(defun threads-of-system ()
  "Returns the number of threads the system counts in this process; those that Lisp knows of where
  it does not tell."
  (let ((tasks #+linux (length (directory "/proc/self/task/*/" :resolve-symlinks nil)) #-linux 0))
    (if (plusp tasks) tasks (count-if #'sb-thread:thread-alive-p (sb-thread:list-all-threads)))))

(defun end-threads-but (keep seconds)
  "Ends every thread but those of KEEP, which must contain this one; the runtime's finalizer thread
  too. Returns true if only as many as KEEP are left within SECONDS."
  (let ((until (+ (get-internal-real-time) (round (* seconds internal-time-units-per-second)))))
    (when (and (internal-p 'stop-finalizer-thread) (typep finalizer-thread 'sb-thread:thread))
      (stop-finalizer-thread)
      (setf finalizer-thread nil))
    (dolist (thread (set-difference (sb-thread:list-all-threads) keep))
      (handler-case (let ((*interrupts-any-thread* t)) (sb-thread:terminate-thread thread))
        (sb-thread:interrupt-thread-error () nil))) ; it has ended
    (loop
      (when (<= (threads-of-system) (length keep)) (return t))
      (when (> (get-internal-real-time) until) (return nil))
      (sleep 1/500))))

(defun become-copy (id params runner)
  "Has this process's first thread call RUNNER with PARAMS, as a copy does, and leave. Called in
  the thread of request ID, which then ends without an answer. Refused when threads of the user's
  do not end: they would not be confined."
  (let ((first (sb-thread:main-thread)) (self sb-thread:*current-thread*))
    (unless (end-threads-but (list first self) 2)
      (refuse "cannot-copy" "Threads that what was loaded had started do not end:~{ ~A~}"
              (mapcar #'sb-thread:thread-name (set-difference (sb-thread:list-all-threads) (list first self)))))
    (send-event "copy" "id" id "pid" (sb-posix:getpid))
    (let ((*interrupts-any-thread* t))
      (sb-thread:interrupt-thread
       first
       (lambda ()
         (without-interrupts
           (be-copy (lambda ()
                      (if (end-threads-but (list first) 2)
                          (funcall runner params)
                          (exit-process 71)))
                    (lambda (work) (with-local-interrupts (funcall work)))
                    (sb-posix:getppid))))))
    nil))
