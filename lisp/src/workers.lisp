;;;; The threads that evaluations run in: one for each session, and one for each piece of work that is no session's.

(in-package :consort)

(defstruct (session (:constructor make-session (name)))
  "A client's own *PACKAGE*, *, + and / (as VARIABLES, while no thread of it runs), and the thread its evaluations run in, one after another."
  (name "" :type string :read-only t)
  (lock (sb-thread:make-mutex :name "consort session") :type sb-thread:mutex :read-only t)
  (work (sb-thread:make-semaphore :name "consort session") :type sb-thread:semaphore :read-only t)
  (jobs '() :type list)
  (current nil)
  (thread nil)
  (closed nil)
  (variables '() :type list))

(defstruct (job (:constructor make-job (id function on-cancel on-death)))
  "FUNCTION answers request ID when it is called; ON-CANCEL answers it when it never was; ON-DEATH when its thread ended while it ran."
  (id nil :read-only t)
  (function nil :type function :read-only t)
  (on-cancel nil :type function :read-only t)
  (on-death nil :type function :read-only t))

(define-global *sessions* (make-hash-table :test #'equal) "By name. Only the dispatcher touches it.")

(defparameter *session-variables* '(*package* *readtable* * ** *** + ++ +++ / // /// -)
  "What each session has its own of.")

(defun initial-variables ()
  "As in a new REPL, but for the readtable, which an init file may have set."
  (list (find-package "COMMON-LISP-USER") *readtable* nil nil nil nil nil nil nil nil nil nil))

(defun find-session (name)
  "The session of that NAME, made now if need be."
  (or (gethash name *sessions*)
      (setf (gethash name *sessions*) (make-session name))))

(defun enqueue (session job)
  "Have JOB done in SESSION's thread, after those before it."
  (with-lock ((session-lock session))
    (setf (session-jobs session) (append (session-jobs session) (list job))))
  (unless (session-thread session)
    (setf (session-thread session)
          (start-thread (concatenate 'string "consort session " (session-name session)) #'run-session session)))
  (sb-thread:signal-semaphore (session-work session)))

(defun take-job (session)
  (with-lock ((session-lock session))
    (setf (session-current session) (pop (session-jobs session)))))

(defun run-session (session)
  "The thread of SESSION."
  (progv *session-variables* (or (session-variables session) (initial-variables))
    (unwind-protect
         (loop until (session-closed session)
               do (sb-thread:wait-on-semaphore (session-work session))
                  (let ((job (take-job session)))
                    (when job
                      (perform job)
                      (setf (session-current session) nil))))
      (leave-session session))))

(defun perform (job)
  "Do JOB."
  (funcall (job-function job)))

(defun leave-session (session)
  "SESSION's thread ends: closed, or by what the user's code did to it. Then the job is answered, and another thread goes on."
  (setf (session-variables session) (mapcar #'symbol-value *session-variables*))
  (let ((job (shiftf (session-current session) nil)))
    (when job
      (funcall (job-on-death job))))
  (unless (session-closed session)
    (setf (session-thread session)
          (start-thread (concatenate 'string "consort session " (session-name session)) #'run-session session))))

(defun withdraw-job (session id)
  "Take job ID out of those that wait in SESSION; the job, or NIL."
  (with-lock ((session-lock session))
    (let ((job (find id (session-jobs session) :key #'job-id)))
      (when job
        (setf (session-jobs session) (remove job (session-jobs session)))
        job))))

(defun close-session (name)
  "Forget the session of that NAME; what it still runs is interrupted, what waits is answered."
  (let ((session (gethash name *sessions*)))
    (when session
      (remhash name *sessions*)
      (setf (session-closed session) t)
      (loop for job = (with-lock ((session-lock session)) (pop (session-jobs session)))
            while job do (funcall (job-on-cancel job)))
      (dolist (evaluation *running*)
        (when (equal (evaluation-session evaluation) name)
          (stop-evaluation evaluation :cancel)))
      (sb-thread:signal-semaphore (session-work session)))))

;;; Work that is not a session's

(defun evaluate-alone (id work)
  "Call WORK, which runs user code, for request ID in this thread, as if in a new REPL; how it ended, and the JSON of EvalOutcome."
  (let ((evaluation (make-evaluation id nil)))
    (progv *session-variables* (initial-variables)
      (let ((how (call-evaluating work evaluation)))
        (values how (outcome evaluation how :package (package-name *package*)))))))
