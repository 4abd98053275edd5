;;;; Steps: while an evaluation steps, every probe looks whether the step ends there.

(in-package :consort)

(defstruct (stepper (:constructor make-stepper (mode frame unit within)))
  "A step of an evaluation that was at a probe of UNIT, whose function's frame pointer was FRAME;
  NIL when it was elsewhere. WITHIN: the stop that the stepping code serves, or NIL."
  (mode :into :type (member :into :over :out) :read-only t)
  (frame nil :type (or null (unsigned-byte 62)) :read-only t)
  (unit nil :read-only t)
  (within nil :read-only t))

(define-global *stepping* '() "The evaluations that step. The list is replaced under *STEPPING-LOCK*.")
(define-global *stepping-lock* (sb-thread:make-mutex :name "consort steps") "Held while *STEPPING* and the flags of steps change.")

(defun set-step-flags (unit on)
  (let ((flags (unit-flags unit)))
    (dotimes (number (length (unit-sites unit)))
      (setf (aref flags number)
            (if on (logior +step-flag+ (aref flags number)) (logandc2 (aref flags number) +step-flag+))))))

(defun flag-for-steps (unit)
  "Gives UNIT, which is new, the flags that the others have."
  (with-lock (*stepping-lock*)
    (when *stepping* (set-step-flags unit t))))

(defun end-step (evaluation)
  "EVALUATION does not step any more."
  (when (shiftf (evaluation-stepper evaluation) nil)
    (with-lock (*stepping-lock*)
      (setf *stepping* (remove evaluation *stepping* :test #'eq))
      (unless *stepping*
        (dolist (unit *units*) (set-step-flags unit nil))))))

(defun begin-step (stop mode)
  "Has what waits in STOP stop again after a step, once it goes on."
  (let ((evaluation (stopped-evaluation stop))
        (moment (stopped-moment stop)))
    (setf (evaluation-stepper evaluation)
          (make-stepper (if moment mode :into) (and moment (moment-frame moment)) (and moment (moment-unit moment)) (stopped-parent stop)))
    (with-lock (*stepping-lock*)
      (setf *stepping* (adjoin evaluation *stepping* :test #'eq))
      (dolist (unit *units*) (set-step-flags unit t)))))

(defun step-ends-p (evaluation unit frame)
  "Returns true if the step of EVALUATION, if it is in one, ends at a probe of UNIT whose function's
  frame pointer is FRAME. A function that was called in tail position has the frame of the one that
  called it, so the unit tells them apart."
  (let ((stepper (evaluation-stepper evaluation)))
    (and stepper
         (eq (stepper-within stepper) *current-stop*)
         (let ((begun (stepper-frame stepper)))
           (ecase (stepper-mode stepper)
             (:into t)
             (:over (or (null begun) (> frame begun) (and (= frame begun) (eq unit (stepper-unit stepper)))))
             (:out (or (null begun) (> frame begun))))))))
