;;;; The threads in which evaluations run: one for each session, and one for each piece of work that
;;;; belongs to no session.

(in-package :consort)

(defstruct (session (:constructor make-session (name)))
  "A client's own SETTINGS, NIL until it evaluates, and the thread in which its evaluations run, one
  after another."
  (name "" :type string :read-only t)
  (lock (sb-thread:make-mutex :name "consort session") :type sb-thread:mutex :read-only t)
  (work (sb-thread:make-semaphore :name "consort session") :type sb-thread:semaphore :read-only t)
  (jobs '() :type list)
  (current nil)
  (thread nil :type boolean)
  (closed nil)
  (settings nil :type (or null settings)))

(defstruct (job (:constructor make-job (evaluation function on-cancel on-death)))
  "FUNCTION answers EVALUATION's request when it is called. ON-CANCEL answers it if FUNCTION was
  never called, and ON-DEATH if the thread ended while FUNCTION ran."
  (evaluation nil :type evaluation :read-only t)
  (function nil :type function :read-only t)
  (on-cancel nil :type function :read-only t)
  (on-death nil :type function :read-only t))

(define-global *sessions* (make-hash-table :test #'equal) "The sessions by name. Only the dispatcher
  uses the table.")

(defun find-session (name)
  "The session of that NAME. It is made if there is none."
  (or (gethash name *sessions*)
      (setf (gethash name *sessions*) (make-session name))))

(defun enqueue (session job)
  "Makes SESSION's thread do JOB, after the jobs before it."
  (unless (with-lock ((session-lock session))
            (setf (session-jobs session) (append (session-jobs session) (list job)))
            (shiftf (session-thread session) t))
    (start-session session))
  (sb-thread:signal-semaphore (session-work session)))

(declaim (ftype function report-busy))
(defun start-session (session)
  "Starts the thread of SESSION. If the system makes none, the answers to the jobs that wait say so,
  and the next job tries again."
  (start-thread-unless-refused
   (lambda (obstacle)
     (dolist (job (with-lock ((session-lock session))
                    (setf (session-thread session) nil)
                    (shiftf (session-jobs session) '())))
       (setf (evaluation-state (job-evaluation job)) :ended)
       (report-busy (job-id job) obstacle)))
   (concatenate 'string "consort session " (session-name session)) #'run-session session))

(defun take-job (session)
  (with-lock ((session-lock session))
    (setf (session-current session) (pop (session-jobs session)))))

(defun run-session (session)
  "The function of SESSION's thread."
  (let ((*user-settings* (or (session-settings session)
                             (setf (session-settings session) (copy-of-settings)))))
    (unwind-protect
         (loop until (session-closed session)
               do (sb-thread:wait-on-semaphore (session-work session))
                  (let ((job (take-job session)))
                    (when job
                      (perform job)
                      (setf (session-current session) nil))))
      (leave-session session))))

(defun perform (job)
  "Calls the function of JOB."
  (unwind-protect (funcall (job-function job))
    ;; This also happens if its request was refused: attempts to stop it would otherwise continue.
    (setf (evaluation-state (job-evaluation job)) :ended)))

(defun leave-session (session)
  "Called when SESSION's thread ends because the session was closed or user code ended the thread.
  Answers the job that the thread was doing, and starts another thread unless the session was
  closed."
  (let ((job (shiftf (session-current session) nil)))
    (when job
      (funcall (job-on-death job))))
  (unless (session-closed session)
    (start-session session)))

(defun job-id (job)
  (evaluation-id (job-evaluation job)))

(defun withdraw-jobs (session &optional (id nil id-p))
  "Removes the jobs that wait in SESSION, or only the job ID. Returns a list of them."
  (with-lock ((session-lock session))
    (let ((withdrawn (if id-p
                         (remove id (session-jobs session) :key #'job-id :test-not #'equal)
                         (session-jobs session))))
      (setf (session-jobs session) (remove-if (lambda (job) (member job withdrawn)) (session-jobs session)))
      withdrawn)))

(defun current-evaluation (session)
  "The evaluation of the job that SESSION is doing, or NIL. It may not run yet."
  (let ((job (session-current session)))
    (and job (job-evaluation job))))

(defun close-session (name)
  "Removes the session of that NAME. Its current evaluation is interrupted, waiting jobs are
  answered, and threads that its code started make no more stops."
  (let ((session (gethash name *sessions*)))
    (when session
      (remhash name *sessions*)
      (setf (session-closed session) t)
      (dolist (job (withdraw-jobs session))
        (funcall (job-on-cancel job)))
      (let ((evaluation (current-evaluation session)))
        (when evaluation
          (stop-evaluation evaluation :cancel)))
      (sb-thread:signal-semaphore (session-work session)))
    ;; Since the evaluation is to end, it starts no further thread that stops.
    (have-threads-report name)))

;;; Work that is not a session's

(define-global *starting* '() "The evaluations of requests that have a thread of their own, from
  before the thread runs until it ends.")
(defvar *own-evaluation* nil "The evaluation of the request for which this thread was made.")

(defun call-starting (evaluation function)
  "Calls FUNCTION in the thread that was made for the request of EVALUATION, which the dispatcher
  added to *STARTING*."
  (unwind-protect
       (let ((*own-evaluation* evaluation))
         (funcall function))
    (end-starting evaluation)))

(defun end-starting (evaluation)
  "Marks EVALUATION as ended, and removes it from *STARTING*."
  (setf (evaluation-state evaluation) :ended) ; or attempts to stop it would continue
  (with-lock (*running-lock*)
    (setf *starting* (remove evaluation *starting* :test #'eq))))

(defun evaluate-alone (id work &key keep)
  "Calls WORK, which runs user code, for the request ID in this thread, as in a new REPL. Two
  values: how it ended, and the JSON of EvalOutcome. Changes of the readtable are made in the
  image's readtable, with which later sessions and checks begin. If KEEP, these also begin with the
  variables that WORK sets."
  (let ((evaluation (or *own-evaluation* (make-evaluation id nil)))
        (*user-settings* (copy-of-settings :tables nil)))
    (let ((how (call-evaluating work evaluation)))
      (when keep (keep-in-image *user-settings*))
      (values how (outcome evaluation how :package (package-of-settings *user-settings*))))))

(defun call-interruptible (function)
  "Returns the value of FUNCTION, which may call the user's code through a library, in the thread
  that was made for a request. Refuses if the request is interrupted. Unlike an evaluation, this
  does not count as a change of the image."
  (let* ((evaluation *own-evaluation*)
         (stopped t)
         (value (without-interrupts
                  (catch evaluation
                    (unwind-protect
                         (progn
                           (setf (evaluation-thread evaluation) sb-thread:*current-thread*
                                 (evaluation-state evaluation) :running)
                           (when (evaluation-reason evaluation) (throw evaluation nil))
                           (prog1 (with-local-interrupts (funcall (the function function)))
                             (setf stopped nil)))
                      (setf (evaluation-state evaluation) :ended))))))
    (when stopped (refuse "interrupted" "The request was interrupted"))
    value))

;;; Short work that runs no user code. Making a thread takes longer than most of this work, so a few
;;; threads wait for more.

(defstruct (helper (:constructor make-helper (work)))
  "WORK is the function that the thread must call next, or NIL if it waits."
  (work nil)
  (wake (sb-thread:make-semaphore :name "consort helper") :type sb-thread:semaphore :read-only t))

(defconstant +idle-helpers+ 2 "The maximum number of threads that wait for work.")
(define-global *idle-helpers* '() "The helpers that wait. The one that finished last is first.")
(define-global *helpers-lock* (sb-thread:make-mutex :name "consort helpers")
  "Held while a helper begins to wait or receives work.")

(defun call-in-helper (work &optional tell)
  "Makes a thread of Consort's call WORK, whatever else runs. TELL is as in START-THREAD-OR-REPORT."
  (let ((helper (with-lock (*helpers-lock*)
                  (let ((helper (pop *idle-helpers*)))
                    (when helper
                      (setf (helper-work helper) work))
                    helper))))
    (if helper
        (sb-thread:signal-semaphore (helper-wake helper))
        (start-thread-or-report tell "consort helper" #'run-helper (make-helper work)))))

(defun wait-for-work (helper)
  "Waits for work for HELPER and returns true. Returns NIL at once if enough helpers wait."
  (when (with-lock (*helpers-lock*)
          (when (< (length *idle-helpers*) +idle-helpers+)
            (push helper *idle-helpers*)))
    (sb-thread:wait-on-semaphore (helper-wake helper))
    t))

(defun start-helper ()
  "Starts a helper that waits for work."
  (start-thread "consort helper" #'run-helper (make-helper (constantly nil))))

(defun run-helper (helper)
  "The function of HELPER's thread. If the thread is ended, another one does the work that it was
  given and has not begun."
  (unwind-protect
       (loop do (funcall (shiftf (helper-work helper) nil))
             while (wait-for-work helper))
    (with-lock (*helpers-lock*)
      (setf *idle-helpers* (remove helper *idle-helpers* :test #'eq)))
    (let ((left (shiftf (helper-work helper) nil)))
      (when left
        (call-in-helper left)))))
