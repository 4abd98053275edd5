;;;; Steps: while an evaluation steps, every probe looks whether the step ends there.

(in-package :consort)

(defstruct (stepper (:constructor make-stepper (mode frame unit site within &optional passed)))
  "A step of an evaluation that was at a probe of UNIT, at SITE, whose function's frame pointer was
  FRAME; NIL when it was elsewhere. WITHIN: the stop that the stepping code serves, or NIL. ENTERED:
  places of local functions that were called meanwhile, with the same frame. PASSED: a form at which
  the step does not end when it comes there first, or NIL."
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
  "EVALUATION is about to step: units that nobody else uses stay in place from now on."
  (with-lock (*stepping-lock*)
    (setf *stepping* (adjoin evaluation *stepping* :test #'eq))))

(defun forget-step (evaluation)
  "Takes EVALUATION from those that step, or are about to."
  (with-lock (*stepping-lock*)
    (setf *stepping* (remove evaluation *stepping* :test #'eq))
    (unless *stepping*
      (dolist (unit *units*) (set-step-flags unit nil)))))

(defun end-step (evaluation)
  "EVALUATION does not step any more, and is not about to. Returns true if it did, or was."
  (when (or (shiftf (evaluation-stepper evaluation) nil)
            (member evaluation *stepping* :test #'eq))
    (forget-step evaluation)
    t))

(defun end-step-within (stop)
  "Ends a step that was begun in code which STOP serves, and which is over."
  (let ((stepper (evaluation-stepper (stopped-evaluation stop))))
    (when (and stepper (eq (stepper-within stepper) stop))
      (end-step (stopped-evaluation stop)))))

(defun begin-step (stop mode)
  "Has the evaluation that waits in STOP stop again after a step, once it goes on. MODE is as in
  STEPPER."
  (let ((moment (stopped-moment stop)))
    (begin-step-at (stopped-evaluation stop)
                   (make-stepper (if moment mode :into) (and moment (moment-frame moment)) (and moment (moment-unit moment)) (and moment (moment-site moment)) (stopped-parent stop)))))

(defun begin-step-at (evaluation stepper)
  "Has EVALUATION stop after the step STEPPER."
  (setf (evaluation-stepper evaluation) stepper)
  (with-lock (*stepping-lock*)
    (setf *stepping* (adjoin evaluation *stepping* :test #'eq))
    (dolist (unit *units*) (set-step-flags unit t))))

(defun where-in-unit (stepper unit site after)
  "Tells in which function the probe of UNIT at SITE, before or AFTER the form, is, as seen from
  STEPPER, which was at a probe of UNIT with the same frame: :SAME for the function of that probe,
  :CALLED for one that called it, NIL for another. The compiler merges a local function into the
  only one that calls it, and both have one frame then. Such a caller is around it, or goes on after
  the call; one that is called begins with a probe before a form."
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
