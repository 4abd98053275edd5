;;;; Timers: one thread for each queue waits for the earliest of many times. Mostly, adding or
;;;; cancelling a timer wakes no thread.

(in-package :consort)

(defstruct (timer (:constructor make-timer (at function)))
  "A call of FUNCTION at the time AT, in units of GET-INTERNAL-REAL-TIME."
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
  evaluations. Their functions must not wait.")
(define-global *flushes* (make-timer-queue "consort flushes") "The timers that send streamed output.
  Their functions may wait for the host.")

(defun start-timers (queue)
  "Starts the thread of QUEUE, unless it has one."
  (unless (timer-queue-thread queue)
    (when (with-lock ((timer-queue-lock queue))
            (unless (timer-queue-thread queue)
              (setf (timer-queue-thread queue) t)))
      (start-thread-soon (timer-queue-name queue) #'run-timers queue))))

(defun schedule (queue seconds function)
  "Makes the thread of QUEUE call FUNCTION in SECONDS. Returns a timer for CANCEL."
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
  "Removes TIMER from QUEUE. It may run now, or have run."
  (with-lock ((timer-queue-lock queue))
    (setf (timer-queue-timers queue) (delete timer (timer-queue-timers queue) :test #'eq :count 1))))

(defun take-due (queue)
  "The first timer that is due, which is removed from QUEUE. If there is none, NIL and the seconds
  until one is due, or NIL if there are no timers."
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
              ;; SBCL allocates here with the lock of the semaphore held. With interrupts off, no
              ;; code of Consort's runs after a collection in this thread.
              (without-interrupts
                (sb-thread:wait-on-semaphore (timer-queue-changed queue) :timeout seconds))))
      (serious-condition (condition) (report-own-error "A timer failed" condition)))))
