;;;; `profile`: an evaluation, with the places where its time or its memory was used.

(in-package :consort)

(defun mode-named (name)
  (cond ((string= name "cpu") :cpu)
        ((string= name "time") :time)
        ((string= name "alloc") :alloc)
        (t (refuse "bad-params" "Invalid profiling mode: ~S. Valid modes: cpu, time, alloc" name))))

(defun evaluate-profiled (evaluation text profile package timeout)
  "Evaluates TEXT as EVALUATION and takes PROFILE meanwhile. Returns the JSON of ProfileOutcome."
  (let ((values '()))
    (begin-profile profile)
    (unwind-protect
         (flet ((work ()
                  (let ((results (call-profiled profile (lambda () (call-user-code (lambda () (evaluate-text text nil)))))))
                    (setf *package* (live-package *package*))
                    (setf values (values-facts results)))))
           (let ((how (call-evaluating #'work evaluation :package package :timeout timeout)))
             (append (outcome evaluation how :values (when (eq how :ok) values) :package (package-of-settings *user-settings*) :timeout timeout)
                     (list "profile" (profile-facts profile)))))
      (end-profile))))

(defun profile-of-params (params)
  "The profile that PARAMS request."
  (make-profile (mode-named (param params "mode" 'string :default "cpu"))
                (param params "interval" '(real (0)) :default 0.01)
                (param params "max_samples" '(integer 1 1000000) :default 1000)))

(define-operation "profile" :dispatcher (id params)
  (let* ((text (param params "code" 'string))
         (timeout (param params "timeout" '(real (0)) :default 30))
         (profile (profile-of-params params)))
    (enqueue-evaluation id params
                        (lambda (evaluation package) (evaluate-profiled evaluation text profile package timeout)))))
