;;;; Steps: while an evaluation steps, every probe checks whether the step ends there.

(in-package :consort)

(defstruct (stepper (:constructor make-stepper (mode frame unit site within &optional passed)))
  "A step of an evaluation that was at a probe of UNIT, at SITE. FRAME is the frame pointer of the
  function there. These are NIL when the evaluation was elsewhere. WITHIN is the stop that the
  stepping code serves, or NIL. ENTERED has the places of local functions that were called meanwhile
  and have the same frame. PASSED is a form at which the step does not end when the program comes
  there first, or NIL."
  (mode :into :type (member :into :over :out) :read-only t)
  (frame nil :type (or null (unsigned-byte 62)) :read-only t)
  (unit nil :read-only t)
  (site nil :read-only t)
  (within nil :read-only t)
  (passed nil)
  (entered '() :type list))

(define-global *stepping* '() "The evaluations that step. The list is replaced under *STEPPING-LOCK*.")
(define-global *stepping-lock* (sb-thread:make-mutex :name "consort steps") "Held while *STEPPING* and the flags of steps and breakpoints change.")

(defun set-step-flags (unit on)
  (let ((flags (unit-flags unit)))
    (dotimes (number (length (unit-sites unit)))
      (setf (aref flags number)
            (if on (logior +step-flag+ (aref flags number)) (logandc2 (aref flags number) +step-flag+))))))

(defun flag-for-steps (unit)
  "Gives UNIT, which is new, the flags that the others have."
  (with-lock (*stepping-lock*)
    (when *stepping* (set-step-flags unit t))))

(defun announce-step (evaluation)
  "Notes that EVALUATION is about to step. From now on, units that nothing else uses stay in place."
  (with-lock (*stepping-lock*)
    (setf *stepping* (adjoin evaluation *stepping* :test #'eq))))

(defun forget-step (evaluation)
  "Removes EVALUATION from the evaluations that step, or are about to."
  (with-lock (*stepping-lock*)
    (setf *stepping* (remove evaluation *stepping* :test #'eq))
    (unless *stepping*
      (dolist (unit *units*) (set-step-flags unit nil)))))

(defun end-step (evaluation)
  "Ends the step that EVALUATION makes or is about to make. Returns true if there was one."
  (when (or (shiftf (evaluation-stepper evaluation) nil)
            (member evaluation *stepping* :test #'eq))
    (forget-step evaluation)
    t))

(defun end-step-within (stop)
  "Ends a step that was begun in code that STOP serves and that has ended."
  (let ((stepper (evaluation-stepper (stopped-evaluation stop))))
    (when (and stepper (eq (stepper-within stepper) stop))
      (end-step (stopped-evaluation stop)))))

(defun begin-step (stop mode)
  "Makes the evaluation that waits in STOP stop again after a step, once it continues. MODE is as in
  STEPPER."
  (let ((moment (stopped-moment stop)))
    (begin-step-at (stopped-evaluation stop)
                   (make-stepper (if moment mode :into) (and moment (moment-frame moment)) (and moment (moment-unit moment)) (and moment (moment-site moment)) (stopped-parent stop)))))

(defun begin-step-at (evaluation stepper)
  "Makes EVALUATION stop after the step STEPPER."
  (setf (evaluation-stepper evaluation) stepper)
  (with-lock (*stepping-lock*)
    (setf *stepping* (adjoin evaluation *stepping* :test #'eq))
    (dolist (unit *units*) (set-step-flags unit t))))

(defun where-in-unit (stepper unit site after)
  "The function that contains the probe of UNIT at SITE, before or AFTER the form, relative to the
  probe where STEPPER was, in the same unit and frame: :SAME for the same function, :CALLED for a
  function that called it, NIL for another one. The compiler merges a local function into its only
  caller, and then both have one frame. Such a caller contains the function, or continues after the
  call. A function that is called begins with a probe before a form."
  (let ((now (function-around unit site)) (begun (function-around unit (stepper-site stepper))))
    (cond ((equal now begun) :same)
          ((or (null now) (and begun (<= (car now) (car begun)) (<= (cdr begun) (cdr now)))) :called)
          ((member now (stepper-entered stepper) :test #'equal) nil)
          (after :called)
          (t (push now (stepper-entered stepper)) nil))))

(defun step-ends-p (evaluation unit site after frame)
  "Returns true if the step of EVALUATION, if it is in one, ends at the probe of UNIT at SITE,
  before or AFTER the form, whose function's frame pointer is FRAME. A function that was called in tail
  position has the frame of the one that called it, so the unit tells them apart."
  (let ((stepper (evaluation-stepper evaluation)))
    (and stepper
         (eq (stepper-within stepper) *current-stop*)
         (not (and (stepper-passed stepper) (eq (site-form site) (shiftf (stepper-passed stepper) nil))))
         (let* ((begun (stepper-frame stepper))
                (where (and begun (= frame begun) (eq unit (stepper-unit stepper)) (where-in-unit stepper unit site after))))
           (ecase (stepper-mode stepper)
             (:into t)
             (:over (or (null begun) (> frame begun) (and where t)))
             (:out (or (null begun) (> frame begun) (eq where :called))))))))
