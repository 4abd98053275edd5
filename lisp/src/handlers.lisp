;;;; Signal handlers, timers without a thread and, in older SBCLs, hooks of collections that the
;;;; user's code installs. The system calls them in any thread, mostly the one that serves the host.
;;;; There, an error in them would end the image, and a loop would block all sessions. In a thread
;;;; of Consort's that runs none of the user's code, they are therefore put off: a thread of the
;;;; user's calls them.

(in-package :consort)

(defconstant +signals+ 65 "One more than the largest signal number.")
(defconstant +siginfo+ 128 "The size of a siginfo_t, in bytes.")

(define-global *put-off-signals* (make-array +signals+ :initial-element nil)
  "The calls that are put off, by the number of the signal. If a signal comes again, only its last
  call is kept. The call at number 0 is that of the hooks of collections.")
(define-global *put-off-calls* '() "Other functions that are put off, newest first.")
(define-global *put-off* (sb-thread:make-semaphore :name "consort handlers")
  "Counts the calls that are put off.")
(define-global *handlers-thread* nil "The thread that makes the calls that are put off, if it was
  started.")

(defun puts-off-p ()
  "Returns true if this thread is Consort's or the system's and runs none of the user's code."
  (and *serves-host*
       (not *in-copy*)
       (or *own-thread* (sb-thread:main-thread-p) (ephemeral-thread-p sb-thread:*current-thread*))
       (not (in-user-code-p))
       ;; For a request that calls the user's code through a library (CALL-INTERRUPTIBLE).
       (not (and *own-evaluation* (eq (evaluation-state *own-evaluation*) :running)))))

(defun call-reporting-error (function)
  "Calls FUNCTION. An unhandled error is reported like that of any thread of the user's. It ends
  only the call, so that the thread can make the next one."
  (let ((sb-ext:*invoke-debugger-hook* (lambda (condition hook)
                                         (declare (ignore hook))
                                         (user-debugger-hook condition)
                                         (with-own-settings () (report-thread-error condition nil))
                                         (throw 'call-reporting-error nil))))
    (catch 'call-reporting-error (funcall (the function function)))))

(defconstant +start-of-thread+ 10 "The time in seconds after which a thread that has not begun
  counts as ended.")

(defun take-place (place)
  "Makes this thread the value of PLACE, as in KEEP-CALLING, and returns true. Returns NIL if a
  thread is its value already."
  (loop for value = (symbol-value place)
        until (typep value 'sb-thread:thread)
          thereis (eq value (sb-ext:compare-and-swap (symbol-value place) value sb-thread:*current-thread*))))

(defun keep-calling (place function)
  "Makes a thread call FUNCTION, which waits for work, again and again. PLACE, a symbol, has as its
  value that thread, or the time in seconds at which its start began. If the user's code ends the
  thread, another one replaces it."
  (let ((thread (symbol-value place)) (now (get-universal-time)))
    ;; A thread may be ended before it has begun.
    (when (and (if (integerp thread)
                   (> (- now thread) +start-of-thread+)
                   (not (and thread (sb-thread:thread-alive-p thread))))
               (eq thread (sb-ext:compare-and-swap (symbol-value place) thread now)))
      (flet ((keep-on ()
               (let ((*own-thread* nil) (*users-code* t))
                 (unwind-protect (loop (funcall (the function function)))
                   (setf (symbol-value place) nil)
                   (keep-calling place function)))))
        ;; If the system makes no thread for a while, several are started then, and one keeps on.
        (start-thread-soon "handlers" (lambda () (when (take-place place) (keep-on))))))))

(defun take-oldest-call ()
  "Takes the oldest of the *PUT-OFF-CALLS*, or returns NIL."
  (loop for calls = *put-off-calls*
        while calls
        when (eq calls (sb-ext:compare-and-swap (symbol-value '*put-off-calls*) calls (butlast calls)))
          return (first (last calls))))

(defun call-put-off ()
  "Makes the calls that are put off, and waits for more. If a call ends the thread, the next thread
  makes the others."
  (loop for signal from 0 below +signals+
        for call = (shiftf (svref *put-off-signals* signal) nil)
        when call do (call-reporting-error call))
  (loop for call = (take-oldest-call)
        while call do (call-reporting-error call))
  (sb-thread:wait-on-semaphore *put-off*))

(defun run-handlers-thread ()
  "Makes the thread for calls that are put off, or a new one, run. Waits for nothing."
  (keep-calling '*handlers-thread* #'call-put-off)
  (sb-thread:signal-semaphore *put-off*))

(defun call-or-put-off (function)
  "Calls FUNCTION, or makes a thread of the user's call it."
  (cond ((puts-off-p)
         (sb-ext:atomic-push function *put-off-calls*)
         (run-handlers-thread))
        (t (funcall (the function function)))))

(defun put-off-signal (handler signal info)
  "Makes a thread of the user's call HANDLER with SIGNAL, a copy of INFO, and no context."
  (let ((octets (copied-octets info +siginfo+)))
    (setf (svref *put-off-signals* signal)
          (lambda ()
            (if octets
                (with-pinned-objects (octets)
                  (funcall handler signal (vector-sap octets) (int-sap 0)))
                (funcall handler signal (int-sap 0) (int-sap 0)))))
    (run-handlers-thread)))

(define-global *awaited-handlers* (make-array +signals+ :initial-element nil)
  "The user's handlers of the *AWAITED-SIGNALS*, by signal number.")
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
  "Makes a thread that waits call HANDLER when SIGNAL comes."
  (setf (svref *awaited-handlers* signal) handler)
  (keep-calling '*signals-thread* #'handle-next-signal))

(defun users-handler (handler)
  "A function that calls HANDLER, which the user's code has for a signal, or puts the call off where
  it must."
  (declare (function handler))
  (lambda (signal info context)
    (if (and (puts-off-p) (< -1 signal +signals+))
        (put-off-signal handler signal info)
        (funcall handler signal info context))))

(defun call-hooks-of-collections ()
  "Calls the user's hooks of collections. Each is called even if one before it failed."
  (dolist (hook sb-ext:*after-gc-hooks*)
    (call-reporting-error (lambda () (funcall hook)))))

(defun put-off-hooks-of-collections ()
  "If this is one of Consort's threads or the thread for calls that are put off, makes the latter
  call the hooks of collections, and returns true."
  (when (and *serves-host*
             (not *in-copy*)
             sb-ext:*after-gc-hooks*
             (or *own-thread* (sb-thread:main-thread-p) (eq sb-thread:*current-thread* *handlers-thread*)))
    (setf (svref *put-off-signals* 0) #'call-hooks-of-collections)
    (run-handlers-thread)
    t))

(defun run-timer-safely (run-timer timer)
  "Runs TIMER as RUN-TIMER, SBCL's own function, would. If the thread is then Consort's and runs
  none of the user's code, the timer's function is put off."
  (declare (function run-timer))
  (let ((thread (or (users-timer-thread timer) sb-thread:*current-thread*))
        (function (users-timer-function timer))
        (*interrupts-any-thread* t))
    (if (typep thread 'sb-thread:thread)
        (handler-case (sb-thread:interrupt-thread thread (lambda () (call-or-put-off function)))
          (sb-thread:interrupt-thread-error () (funcall run-timer timer))) ; which warns
        (funcall run-timer timer))))

(defun limit-handlers ()
  "From now on, handlers that the user's code installs, and its timers, never run in a thread of
  Consort's outside an evaluation."
  (when (internal-p 'install-handler)
    (encapsulate install-handler 'consort
                 (lambda (install signal handler &rest more)
                   (declare (function install))
                   (let ((users (installed-by-user-p handler))
                         (awaited (and *serves-host* (not *in-copy*) (member signal *awaited-signals*))))
                     (when awaited
                       (if users (await-signals signal handler) (setf (svref *awaited-handlers* signal) nil)))
                     ;; This is also done for an awaited signal, which is blocked, because programs
                     ;; that the image starts inherit ignored signals, but no handlers.
                     (apply install signal (if users (users-handler handler) handler) more)))))
  (when (every #'internal-p '(run-timer users-timer-thread users-timer-function))
    (encapsulate run-timer 'consort #'run-timer-safely)))
