;;;; A second process in place of a copy. If the image cannot be forked, the host starts another
;;;; process from the same core, makes it load the systems and files that it knows of (docs/wire.md,
;;;; `in_place`), and requests one check from it. The process then becomes like a copy after the
;;;; fork: it has one thread and no descriptors and is confined for good. It does its work and ends.
;;;;
;;;; The other threads of this process must have ended before, because Landlock and seccomp apply
;;;; only to the thread that requests them and to the threads that it starts.

(in-package :consort)

(defun threads-of-system ()
  "Returns the number of threads that the system counts in this process; if the system does not
  report them, the number that Lisp knows."
  (let ((tasks #+linux (length (directory "/proc/self/task/*/" :resolve-symlinks nil)) #-linux 0))
    (if (plusp tasks) tasks (count-if #'sb-thread:thread-alive-p (sb-thread:list-all-threads)))))

(defun end-threads-but (keep seconds)
  "Ends every thread except those of KEEP, which must contain this one. The runtime's finalizer
  thread ends too. Returns true if within SECONDS no more threads are left than KEEP has."
  (let ((until (+ (get-internal-real-time) (round (* seconds internal-time-units-per-second)))))
    (when (and (internal-p 'stop-finalizer-thread) (typep finalizer-thread 'sb-thread:thread))
      (stop-finalizer-thread)
      (setf finalizer-thread nil))
    (dolist (thread (set-difference (sb-thread:list-all-threads) keep))
      (handler-case (let ((*interrupts-any-thread* t)) (sb-thread:terminate-thread thread))
        (sb-thread:interrupt-thread-error () nil))) ; the thread has ended
    (loop
      (when (<= (threads-of-system) (length keep)) (return t))
      (when (> (get-internal-real-time) until) (return nil))
      (sleep 1/500))))

(defun become-copy (id params runner)
  "Makes this process's first thread call RUNNER with PARAMS, as a copy does, and end the process.
  Must be called in the thread of the request ID, which then ends without an answer. Refuses if
  threads of the user's do not end, because they would not be confined."
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
