;;;; The hit of a probe by a thread: conditions and log messages are evaluated, and the thread stops
;;;; or continues.

(in-package :consort)

(defvar *at-probe* nil "True if this thread runs a condition or a log message of a breakpoint.")

(defun send-log (breakpoint text)
  (with-own-settings ()
    (send-event "breakpoint-log" "owner" (breakpoint-owner breakpoint) "id" (breakpoint-id breakpoint) "text" text
                                 "place" (cons :object (unit-span-fields (breakpoint-unit breakpoint) (site-span (breakpoint-site breakpoint)))))))

(defun call-of-breakpoint (breakpoint function values)
  "Returns the value of FUNCTION, a condition or log message of BREAKPOINT, for VALUES; an error is
  logged, and counts as true."
  (let ((*at-probe* t))
    (handler-case (apply (the function function) values)
      (error (condition)
        (send-log breakpoint (with-own-settings ()
                               (format nil "A breakpoint's ~:[condition~;message~] failed: ~A: ~A" (eq function (breakpoint-log breakpoint))
                                       (condition-type condition) (condition-message condition))))
        t))))

(defun breakpoints-hit (site values may-stop)
  "The breakpoints of SITE at which a thread with VALUES stops, if it MAY-STOP. Those with a log
  message send it instead."
  (let ((hit '()))
    (dolist (breakpoint (site-breakpoints site) (nreverse hit))
      (when (and (or may-stop (breakpoint-log breakpoint))
                 (or (null (breakpoint-test breakpoint)) (call-of-breakpoint breakpoint (breakpoint-test breakpoint) values))
                 (let ((hits (1+ (sb-ext:atomic-incf (breakpoint-hits breakpoint))))) ; threads come at once
                   (or (null (breakpoint-hit breakpoint)) (funcall (the function (breakpoint-hit breakpoint)) hits))))
        (if (breakpoint-log breakpoint)
            (let ((text (call-of-breakpoint breakpoint (breakpoint-log breakpoint) values)))
              (when (stringp text) (send-log breakpoint text)))
            (push breakpoint hit))))))

(defun stop-at-probe (unit site after value values frame breakpoints)
  (with-simple-restart (continue "Continue.")
    (when (eq :abort (wait-at nil (if breakpoints "breakpoint" "step")
                              :moment (make-moment unit site after value values frame breakpoints)))
      (end-aborted *evaluation*))))

(defun handle-probe (unit number after value values frame)
  "Handles the arrival of this thread at the probe NUMBER of UNIT, which is not idle, before its
  form or AFTER it. FRAME is the frame pointer of the thread's function. Only evaluations that stop
  at errors stop here, and code that runs for a stop if its errors are stops of their own."
  (note-covered unit number)
  (unless (or *in-copy* *at-probe*)
    (let* ((evaluation *evaluation*)
           (site (aref (unit-sites unit) number))
           (may-stop (and evaluation (evaluation-debug evaluation) (in-user-code-p)
                          (or (null *current-work*) (work-nests *current-work*))))
           (hit (and (not after) (site-breakpoints site) (breakpoints-hit site values may-stop))))
      (when (and may-stop (or hit (step-ends-p evaluation unit site after frame)))
        (stop-at-probe unit site after value values frame hit)))))

(declaim (notinline before-form after-form))
(defun before-form (unit number &rest values)
  (handle-probe unit number nil nil values (caller-frame-pointer))
  nil)

(defun after-form (unit number value &rest values)
  (handle-probe unit number t value values (caller-frame-pointer))
  nil)
