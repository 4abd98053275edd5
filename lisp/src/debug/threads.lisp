;;;; Threads that programs start stop like the evaluations whose code started them, directly
;;;; or through other threads. Such a thread has an evaluation that no request asked for, as
;;;; long as it lives; the code of stops, steps and pauses finds it in *EVALUATION*. Where the
;;;; thread does not stop, an error that ends it leaves a frozen failure (debug/frozen.lisp), if
;;;; an error of that evaluation would.

(in-package :consort)

(defconstant +first-thread-id+ 1000000000 "Added to a thread's number to get an id that no request
  has.")
(define-global *last-started-thread* (list 0) "A list of the number that was given last.")
(define-global *started-threads* '()
  "The evaluations of started threads that may stop. Each is added before its thread is made. The
  list is replaced under *RUNNING-LOCK*, never changed.")

(defun threads-stop-p (evaluation)
  "Returns true if threads that EVALUATION, which this thread is in, starts now are to stop as it
  does. They do not if EVALUATION is being ended, or if code for a stop runs that does not itself
  stop."
  (and (evaluation-debug evaluation)
       (evaluation-threads evaluation)
       (null (evaluation-reason evaluation))
       (or (null *current-work*) (work-nests *current-work*))))

(defun starting-evaluation ()
  "The evaluation that this thread is in, if threads that are started now stop, or leave frozen
  failures."
  (let ((evaluation *evaluation*))
    (and (in-user-code-p)
         (not *in-copy*)
         (or (threads-stop-p evaluation) (evaluation-freeze-threads evaluation))
         evaluation)))

(defun evaluation-of-new-thread (evaluation)
  "An evaluation for a thread that the code of EVALUATION, which this thread is in, starts."
  (let ((new (make-evaluation (+ +first-thread-id+ (sb-ext:atomic-incf (car *last-started-thread*)) 1) nil))
        (stops (threads-stop-p evaluation)))
    (setf (evaluation-debug new) stops
          (evaluation-threads new) stops
          (evaluation-freeze-threads new) (evaluation-freeze-threads evaluation)
          (evaluation-starter new) (or (evaluation-starter evaluation) (evaluation-session evaluation) ""))
    new))

(defun begin-started-thread (evaluation)
  (setf (evaluation-thread evaluation) sb-thread:*current-thread*
        (evaluation-started evaluation) (get-internal-real-time)
        (evaluation-abort evaluation) (find-restart 'abort)))

(defun note-started-thread (evaluation starter)
  "Adds EVALUATION to *STARTED-THREADS*. It belongs to a thread that may stop and that STARTER is
  about to make. The session may be closed at any time. This then finds EVALUATION in the list, or
  has already told STARTER to end or not to stop, which is checked after the addition."
  (when (evaluation-debug evaluation)
    (with-lock (*running-lock*)
      (push evaluation *started-threads*))
    (unless (threads-stop-p starter)
      (setf (evaluation-debug evaluation) nil))))

(defun forget-started-thread (evaluation)
  (when (member evaluation *started-threads* :test #'eq)
    (with-lock (*running-lock*)
      (setf *started-threads* (remove evaluation *started-threads* :test #'eq)))))

(defun end-started-thread (evaluation)
  (forget-started-thread evaluation)
  (when (end-step evaluation)
    (settle-after-thread evaluation)))

(defun settle-after-thread (evaluation)
  "Removes the probes that a stop of the thread of EVALUATION needed, unless the thread continues to
  step."
  (unless (evaluation-stepper evaluation)
    (with-own-settings () (note-changed-definitions))))

(defun call-in-started-thread (evaluation function)
  "Calls FUNCTION, the function of a thread that a program started; EVALUATION is the thread's.
  Returns its values; when the evaluation is left, the thread ends without values."
  (without-interrupts
    (unwind-protect
         (catch evaluation
           (begin-started-thread evaluation)
           (unwind-protect
                (let ((*evaluation* evaluation))
                  (setf (evaluation-state evaluation) :running)
                  (return-from call-in-started-thread
                    (with-local-interrupts
                      (multiple-value-call #'returned-in-thread evaluation (call-user-code function)))))
             (leave-if-forked)
             (setf (evaluation-state evaluation) :ended)))
      (when *attempt* (answer-of-thread evaluation (cond ((evaluation-error evaluation) :error) ((evaluation-reason evaluation) :stopped) (t :aborted)) '()))
      (end-started-thread evaluation))
    (sb-thread:abort-thread)))

(defun returned-in-thread (evaluation &rest values)
  "Returns VALUES, which the function of the thread of EVALUATION returned. In an attempt they are
  the answer."
  (when *attempt* (answer-of-thread evaluation :ok (values-facts values)))
  (values-list values))

(defun make-thread-that-stops (make-thread function &rest arguments)
  "The replacement of MAKE-THREAD: a thread that an evaluation's code starts stops as the evaluation
  does, or leaves a frozen failure."
  (let ((starter (starting-evaluation)))
    (if starter
        (let ((evaluation (evaluation-of-new-thread starter))
              (function (coerce function 'function)) ; an error of it is the caller's
              (thread nil))
          (note-started-thread evaluation starter)
          (unwind-protect
               (setf thread (apply make-thread
                                   (lambda (&rest arguments)
                                     (call-in-started-thread evaluation (lambda () (apply function arguments))))
                                   arguments))
            (if thread
                (setf (evaluation-thread evaluation) thread)
                (forget-started-thread evaluation))))
        (apply make-thread function arguments))))

(defun terminate-thread-that-stops (terminate-thread thread)
  "The replacement of TERMINATE-THREAD, which interrupts the thread. A thread that waits in a stop
  takes no interruption, so it is woken."
  (let ((evaluation (find thread *started-threads* :key #'evaluation-thread :test #'eq)))
    (when (and evaluation (null (evaluation-reason evaluation)))
      (setf (evaluation-reason evaluation) :cancel))
    (multiple-value-prog1 (funcall terminate-thread thread)
      (let ((stop (and evaluation (evaluation-stop evaluation))))
        (when stop (wake-stop stop))))))

(defun have-threads-stop ()
  "Makes threads that evaluations' code starts stop, from now on, if these evaluations do."
  (encapsulate 'sb-thread:make-thread 'consort-stops #'make-thread-that-stops)
  (encapsulate 'sb-thread:terminate-thread 'consort-stops #'terminate-thread-that-stops))

(defun have-threads-report (session)
  "Makes the threads that the code of SESSION started report errors from now on, and not stop at
  them, because no client is there to inspect them. Existing stops stay."
  ;; A thread that was not changed yet may have started another one meanwhile.
  (loop for told = nil
        do (dolist (evaluation *started-threads*)
             (when (and (evaluation-debug evaluation) (equal (evaluation-starter evaluation) session))
               (setf (evaluation-debug evaluation) nil
                     told t)))
        while told))
