;;;; Timers: one thread for each queue waits for the earliest of many moments. Adding or cancelling
;;;; a timer wakes no thread as a rule.

(in-package :consort)

(defstruct (timer (:constructor make-timer (at function)))
  "FUNCTION is to be called at AT, in units of GET-INTERNAL-REAL-TIME."
  (at 0 :type (unsigned-byte 62) :read-only t)
  (function nil :type function :read-only t))

(defstruct (timer-queue (:constructor make-timer-queue (name)))
  (name "" :type string :read-only t)
  (lock (sb-thread:make-mutex :name "consort timers") :type sb-thread:mutex :read-only t)
  (changed (sb-thread:make-semaphore :name "consort timers") :type sb-thread:semaphore :read-only t)
  (timers '() :type list)
  (wakes nil :type (or null (unsigned-byte 62)))
  (thread nil :type boolean))

(define-global *deadlines* (make-timer-queue "consort deadlines") "The timers that interrupt
  evaluations. None of them may wait.")
(define-global *flushes* (make-timer-queue "consort flushes") "The timers that send streamed output.
  Flushes may wait for the host.")

(defun start-timers (queue)
  "Starts the thread of QUEUE, unless it has one."
  (unless (timer-queue-thread queue)
    (when (with-lock ((timer-queue-lock queue))
            (unless (timer-queue-thread queue)
              (setf (timer-queue-thread queue) t)))
      (start-thread-soon (timer-queue-name queue) #'run-timers queue))))

(defun schedule (queue seconds function)
  "Has FUNCTION called in SECONDS, by the thread of QUEUE. Returns a timer for CANCEL."
  (let* ((timer (make-timer (+ (get-internal-real-time) (ceiling (* seconds internal-time-units-per-second))) function))
         (at (timer-at timer))
         (earlier nil))
    (with-lock ((timer-queue-lock queue))
      (setf (timer-queue-timers queue)
            (merge 'list (list timer) (timer-queue-timers queue) #'< :key #'timer-at)
            earlier (or (null (timer-queue-wakes queue)) (< at (timer-queue-wakes queue)))))
    (start-timers queue)
    (when earlier
      (sb-thread:signal-semaphore (timer-queue-changed queue)))
    timer))

(defun cancel (queue timer)
  "Forgets TIMER. It may be running, or have run."
  (with-lock ((timer-queue-lock queue))
    (setf (timer-queue-timers queue) (delete timer (timer-queue-timers queue) :test #'eq :count 1))))

(defun take-due (queue)
  "The first timer that is due, taken out; or NIL and the seconds until there is one, NIL for
  never."
  (with-lock ((timer-queue-lock queue))
    (let ((first (first (timer-queue-timers queue)))
          (now (get-internal-real-time)))
      (cond ((null first)
             (setf (timer-queue-wakes queue) nil)
             (values nil nil))
            ((<= (timer-at first) now)
             (pop (timer-queue-timers queue)))
            (t
             (setf (timer-queue-wakes queue) (timer-at first))
             (values nil (/ (- (timer-at first) now) (float internal-time-units-per-second 1d0))))))))

(defun run-timers (queue)
  (loop
    (handler-case
        (multiple-value-bind (timer seconds) (take-due queue)
          (if timer
              (funcall (timer-function timer))
              ;; SBCL allocates here with the lock of the semaphore held. With interrupts off
              ;; nothing of ours runs after a collection in this thread.
              (without-interrupts
                (sb-thread:wait-on-semaphore (timer-queue-changed queue) :timeout seconds))))
      (serious-condition (condition) (report-own-error "A timer failed" condition)))))
