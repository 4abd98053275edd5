;;;; `interrupt` and `close-session`: ending what runs or waits.

(in-package :consort)

(defun reason-named (name)
  (cond ((string= name "cancel") :cancel)
        ((string= name "timeout") :timeout)
        (t (refuse "bad-params" "The reason must be cancel or timeout, not ~S" name))))

(defun withdraw (id)
  "Answer request ID without running it, if it waits in a session; whether it did."
  (loop for session being the hash-values of *sessions*
        for job = (withdraw-job session id)
        when job
          do (funcall (job-on-cancel job))
             (return t)))

(define-operation "interrupt" :dispatcher (id params)
  (let* ((target (param params "target" '(or integer string)))
         (reason (reason-named (param params "reason" 'string :default "cancel")))
         (evaluation (find target *running* :key #'evaluation-id :test #'equal)))
    (when evaluation
      (stop-evaluation evaluation reason))
    (object "found" (bool (or evaluation (withdraw target))))))

(define-operation "close-session" :dispatcher (id params)
  (close-session (param params "session" 'string))
  (object))
