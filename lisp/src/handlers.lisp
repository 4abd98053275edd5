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

(defun call-put-off ()
  "Calls what is put off, for ever."
  (let ((*own-thread* nil) (*users-code* t))
    (loop
      (sb-thread:wait-on-semaphore *put-off*)
      (loop for signal from 0 below +signals+
            for call = (shiftf (svref *put-off-signals* signal) nil)
            when call do (call-reporting-error call))
      (loop for calls = *put-off-calls*
            until (eq calls (sb-ext:compare-and-swap (symbol-value '*put-off-calls*) calls '()))
            finally (mapc #'call-reporting-error (reverse calls))))))

(defun call-soon ()
  "Has what was put off called, by the thread for it or a new one. Waits for nothing."
  (let ((thread *handlers-thread*))
    (unless (and thread (or (eq thread :starting) (sb-thread:thread-alive-p thread)))
      (setf *handlers-thread* :starting)
      (start-thread-soon "handlers" (lambda ()
                                      (setf *handlers-thread* sb-thread:*current-thread*)
                                      (call-put-off)))))
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

(defun serve-signals ()
  "Waits for signals, and calls their handlers, for ever."
  (let ((*own-thread* nil) (*users-code* t) (info (make-array +siginfo+ :element-type '(unsigned-byte 8))))
    (loop
      (let* ((signal (await-signal info)) (handler (svref *awaited-handlers* signal)))
        (when handler
          (call-reporting-error (lambda ()
                                  (with-pinned-objects (info)
                                    (funcall (the function handler) signal (vector-sap info) (int-sap 0))))))))))

(defun await-signals (signal handler)
  "Has HANDLER called, by a thread that waits, when SIGNAL comes."
  (setf (svref *awaited-handlers* signal) handler)
  (let ((thread *signals-thread*))
    (unless (and thread (or (eq thread :starting) (sb-thread:thread-alive-p thread)))
      (setf *signals-thread* :starting)
      (start-thread-soon "handlers" (lambda ()
                                      (setf *signals-thread* sb-thread:*current-thread*)
                                      (serve-signals))))))

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
                     ;; A blocked signal that is ignored is waited for all the same.
                     (apply install signal
                            (cond ((and users awaited) :ignore) (users (users-handler handler)) (t handler))
                            more)))))
  (when (every #'internal-p '(run-timer users-timer-thread users-timer-function))
    (encapsulate run-timer 'consort #'run-timer-safely)))
