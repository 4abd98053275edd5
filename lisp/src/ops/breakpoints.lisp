;;;; `debug-breakpoints`, `debug-function-breakpoints`, `debug-breakpoint-locations`,
;;;; `debug-break-on`, `debug-step`.

(in-package :consort)

(defun points-param (params)
  (let ((points (param params "points" 'vector :default #())))
    (unless (every #'object-p points) (refuse "bad-params" "Each of the points must be an object"))
    points))

(defun timeout-param (params)
  (param params "timeout" '(real (0)) :default +default-breakpoint-seconds+))

(defun answer-setting (id function)
  "Calls FUNCTION, which reads and compiles the user's code and returns a vector, as an evaluation.
  Returns the JSON of the answer to the request ID."
  (let ((answers nil) (refused nil))
    (multiple-value-bind (how outcome)
        (let ((*setting-breakpoints* t))
          (evaluate-alone id (lambda ()
                               (handler-case (setf answers (funcall (the function function)))
                                 (unprobed (condition) (setf refused (refusal-why condition)))))))
      (declare (ignore outcome))
      (unless answers
        (settle-units-soon) ; the work was left, perhaps between two definitions
        (refuse "not-set" "~A" (or refused (format nil "The breakpoints were not set: the work ~A" (if (eq how :stopped) "was interrupted" "failed")))))
      (object "breakpoints" answers))))

(define-operation "debug-breakpoints" :thread (id params)
  (let ((owner (param params "owner" 'string))
        (file (param params "file" 'string))
        (text (param params "text" 'string :default ""))
        (points (points-param params))
        (timeout (timeout-param params)))
    (answer-setting id (lambda () (set-breakpoints owner file text points timeout)))))

(define-operation "debug-function-breakpoints" :thread (id params)
  (let ((owner (param params "owner" 'string))
        (points (points-param params))
        (timeout (timeout-param params)))
    (answer-setting id (lambda () (set-function-breakpoints owner points timeout)))))

(define-operation "debug-breakpoint-locations" :thread (id params)
  (let ((file (param params "file" 'string))
        (text (param params "text" 'string))
        (line (param params "line" '(integer 1)))
        (end (param params "end_line" '(integer 1) :default nil))
        (timeout (timeout-param params)))
    (answer-setting id (lambda () (possible-sites file text line (or end line) timeout)))))

(define-operation "debug-break-on" :thread (id params)
  (let ((owner (param params "owner" 'string))
        (types (param params "types" 'vector :default #())))
    (unless (every #'stringp types) (refuse "bad-params" "The types must be texts"))
    (answer-setting id (lambda () (watch-signals owner types)))))

(define-operation "debug-step" :dispatcher (id params)
  (let* ((stop (stop-of params))
         (how (param params "how" 'string))
         (mode (cdr (assoc how '(("into" . :into) ("over" . :over) ("out" . :out)) :test #'string=)))
         (restart (own-continue stop)))
    (unless mode (refuse "bad-params" "How to step is into, over or out, not ~S" how))
    (unless restart
      (refuse "cannot-continue" "The stop ~D has no restart CONTINUE, so there is no step from it: choose another restart, return from a frame, or abort"
              (stopped-id stop)))
    (give-work stop id
               (lambda (work)
                 (when (and (eq mode :into) (stopped-moment stop))
                   (announce-step (stopped-evaluation stop))
                   (let ((probed nil))
                     (unwind-protect
                          (progn
                            (call-for-work stop work +stop-work-time+ (lambda () (probe-callees (stopped-moment stop))))
                            (setf probed t))
                       (unless probed (forget-step (stopped-evaluation stop))))))
                 (begin-step stop mode)
                 (leave-stop stop "step" work)
                 (invoke-restart restart)))))
