;;;; Handlers of signals, timers without a thread and, in older SBCLs, hooks of collections that the
;;;; user's code installs. The system calls them in any thread, as a rule the one that serves the
;;;; host, where they would end the image by an error and hold up all sessions by a loop. In a
;;;; thread of Consort's that runs none of the user's code they are put off: a thread of the user's
;;;; calls them.

(in-package :consort)

(defconstant +signals+ 65 "One more than the largest number of a signal.")
(defconstant +siginfo+ 128 "The size of a siginfo_t, in bytes.")

(define-global *put-off-signals* (make-array +signals+ :initial-element nil)
  "The calls that are put off, by the number of the signal; of one that comes again, the last. That
  of number 0 calls the hooks of collections.")
(define-global *put-off-calls* '() "Other functions that are put off, newest first.")
(define-global *put-off* (sb-thread:make-semaphore :name "consort handlers")
  "Counts what is put off.")
(define-global *handlers-thread* nil "The thread that calls what is put off, if one was started.")

(defun puts-off-p ()
  "Returns true if this thread is Consort's or the system's and runs none of the user's code."
  (and *serves-host*
       (not *in-copy*)
       (or *own-thread* (sb-thread:main-thread-p) (ephemeral-thread-p sb-thread:*current-thread*))
       (not (in-user-code-p))
       ;; A request that comes to the user's code by way of a library (CALL-INTERRUPTIBLE).
       (not (and *own-evaluation* (eq (evaluation-state *own-evaluation*) :running)))))

(defun call-reporting-error (function)
  "Calls FUNCTION. An error that nobody handles is told as that of any thread of the user's, and
  ends the call alone, so that the thread is there for the next one."
  (let ((sb-ext:*invoke-debugger-hook* (lambda (condition hook)
                                         (declare (ignore hook))
                                         (user-debugger-hook condition)
                                         (with-own-settings () (report-thread-error condition nil))
                                         (throw 'call-reporting-error nil))))
    (catch 'call-reporting-error (funcall (the function function)))))

(defconstant +start-of-thread+ 10 "The seconds after which a thread that has not begun counts as ended.")

(defun keep-calling (place function)
  "Has a thread call FUNCTION, which waits for something to do, again and again. PLACE, a symbol,
  has that thread, or the second at which its start began. When the user's code has ended it,
  another takes over."
  (let ((thread (symbol-value place)) (now (get-universal-time)))
    ;; A thread may be ended before it has begun.
    (when (and (if (integerp thread)
                   (> (- now thread) +start-of-thread+)
                   (not (and thread (sb-thread:thread-alive-p thread))))
               (eq thread (sb-ext:compare-and-swap (symbol-value place) thread now)))
      (flet ((keep-on ()
               (let ((*own-thread* nil) (*users-code* t))
                 (unwind-protect (progn (setf (symbol-value place) sb-thread:*current-thread*)
                                        (loop (funcall (the function function))))
                   (setf (symbol-value place) nil)
                   (keep-calling place function)))))
        (handler-case (start-thread-soon "handlers" #'keep-on)
          (error (condition)            ; the system has no room for it now
            (setf (symbol-value place) nil)
            (report-own-error "No thread could be made for handlers of signals" condition)))))))

(defun take-oldest-call ()
  "Takes the oldest of the *PUT-OFF-CALLS*, or returns NIL."
  (loop for calls = *put-off-calls*
        while calls
        when (eq calls (sb-ext:compare-and-swap (symbol-value '*put-off-calls*) calls (butlast calls)))
          return (first (last calls))))

(defun call-put-off ()
  "Calls what is put off, and waits for more. A call that ends the thread leaves the others to the
  next one."
  (loop for signal from 0 below +signals+
        for call = (shiftf (svref *put-off-signals* signal) nil)
        when call do (call-reporting-error call))
  (loop for call = (take-oldest-call)
        while call do (call-reporting-error call))
  (sb-thread:wait-on-semaphore *put-off*))

(defun call-soon ()
  "Has what was put off called, by the thread for it or a new one. Waits for nothing."
  (keep-calling '*handlers-thread* #'call-put-off)
  (sb-thread:signal-semaphore *put-off*))

(defun call-or-put-off (function)
  "Calls FUNCTION, or has a thread of the user's call it."
  (cond ((puts-off-p)
         (sb-ext:atomic-push function *put-off-calls*)
         (call-soon))
        (t (funcall (the function function)))))

(defun put-off-signal (handler signal info)
  "Has HANDLER called with SIGNAL, a copy of INFO, and no context."
  (let ((octets (copied-octets info +siginfo+)))
    (setf (svref *put-off-signals* signal)
          (lambda ()
            (if octets
                (with-pinned-objects (octets)
                  (funcall handler signal (vector-sap octets) (int-sap 0)))
                (funcall handler signal (int-sap 0) (int-sap 0)))))
    (call-soon)))

(define-global *awaited-handlers* (make-array +signals+ :initial-element nil)
  "The user's handlers of the *AWAITED-SIGNALS*, by number.")
(define-global *signals-thread* nil "The thread that waits for these signals, if one was started.")

(defun handle-next-signal ()
  "Waits for a signal, and calls its handler."
  (let* ((info (make-array +siginfo+ :element-type '(unsigned-byte 8)))
         (signal (await-signal info))
         (handler (svref *awaited-handlers* signal)))
    (when handler
      (call-reporting-error (lambda ()
                              (with-pinned-objects (info)
                                (funcall (the function handler) signal (vector-sap info) (int-sap 0))))))))

(defun await-signals (signal handler)
  "Has HANDLER called, by a thread that waits, when SIGNAL comes."
  (setf (svref *awaited-handlers* signal) handler)
  (keep-calling '*signals-thread* #'handle-next-signal))

(defun users-handler (handler)
  "HANDLER, a function that the user's code has for a signal, so that it is put off where it must."
  (declare (function handler))
  (lambda (signal info context)
    (if (and (puts-off-p) (< -1 signal +signals+))
        (put-off-signal handler signal info)
        (funcall handler signal info context))))

(defun call-hooks-of-collections ()
  "Calls the user's hooks of collections, each whatever became of those before it."
  (dolist (hook sb-ext:*after-gc-hooks*)
    (call-reporting-error (lambda () (funcall hook)))))

(defun put-off-hooks-of-collections ()
  "Has the hooks of collections called by the thread for what is put off, and returns true, if this
  is one of Consort's threads or that one."
  (when (and *serves-host*
             (not *in-copy*)
             sb-ext:*after-gc-hooks*
             (or *own-thread* (sb-thread:main-thread-p) (eq sb-thread:*current-thread* *handlers-thread*)))
    (setf (svref *put-off-signals* 0) #'call-hooks-of-collections)
    (call-soon)
    t))

(defun run-timer-safely (run-timer timer)
  "Has TIMER run, as RUN-TIMER, SBCL's own function, would; but its function is put off where the
  thread is Consort's and runs none of the user's code by then."
  (declare (function run-timer))
  (let ((thread (or (users-timer-thread timer) sb-thread:*current-thread*))
        (function (users-timer-function timer))
        (*interrupts-any-thread* t))
    (if (typep thread 'sb-thread:thread)
        (handler-case (sb-thread:interrupt-thread thread (lambda () (call-or-put-off function)))
          (sb-thread:interrupt-thread-error () (funcall run-timer timer))) ; which warns
        (funcall run-timer timer))))

(defun limit-handlers ()
  "From now on, handlers that the user's code installs, and timers of its, never run in a thread of
  Consort's outside of an evaluation."
  (when (internal-p 'install-handler)
    (encapsulate install-handler 'consort
                 (lambda (install signal handler &rest more)
                   (declare (function install))
                   (let ((users (installed-by-user-p handler))
                         (awaited (and *serves-host* (not *in-copy*) (member signal *awaited-signals*))))
                     (when awaited
                       (if users (await-signals signal handler) (setf (svref *awaited-handlers* signal) nil)))
                     ;; Also for an awaited signal, which is blocked: programs that the image starts
                     ;; inherit ignored signals, but no handlers.
                     (apply install signal (if users (users-handler handler) handler) more)))))
  (when (every #'internal-p '(run-timer users-timer-thread users-timer-function))
    (encapsulate run-timer 'consort #'run-timer-safely)))
