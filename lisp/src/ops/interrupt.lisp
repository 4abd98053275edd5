;;;; `interrupt` and `close-session`, which end running and waiting requests.

(in-package :consort)

(defun reason-named (name)
  (cond ((string= name "cancel") :cancel)
        ((string= name "timeout") :timeout)
        (t (refuse "bad-params" "The reason must be cancel or timeout, not ~S" name))))

(defun withdraw (id)
  "Answers the request ID without running it, if it waits in a session. Returns true if it waited."
  (loop for session being the hash-values of *sessions*
        for jobs = (withdraw-jobs session id)
        when jobs
          do (mapc (lambda (job) (funcall (job-on-cancel job))) jobs)
             (return t)))

(defun find-evaluation (id)
  "Returns the evaluation of the request ID that runs or is about to run, or NIL."
  (flet ((wanted-p (evaluation) (and evaluation (equal (evaluation-id evaluation) id))))
    (or (find-if #'wanted-p *running*)
        (find-if #'wanted-p *starting*)
        (loop for session being the hash-values of *sessions*
              for evaluation = (current-evaluation session)
              when (wanted-p evaluation) return evaluation))))

(define-operation "interrupt" :dispatcher (id params)
  (let* ((target (param params "target" '(or integer string)))
         (reason (reason-named (param params "reason" 'string :default "cancel")))
         ;; The queue is searched before the running evaluations, because a job goes from the queue
         ;; to these and never back.
         (withdrawn (withdraw target))
         (evaluation (and (not withdrawn) (find-evaluation target))))
    (when evaluation
      (stop-evaluation evaluation reason))
    (object "found" (bool (or evaluation withdrawn (interrupt-work target))))))

(define-operation "close-session" :dispatcher (id params)
  (close-session (param params "session" 'string))
  (object))
