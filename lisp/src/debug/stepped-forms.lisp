;;;; (STEP FORM) in text that is evaluated for debugging: the evaluation stops in the function that
;;;; FORM calls, or else at FORM, and goes on by the steps of any stop. While the text is evaluated,
;;;; each such call in it that is expanded becomes FORM with probes. Any other STEP is SBCL's: code
;;;; of files and of sessions that do not stop is compiled as ever.

(in-package :consort)

(defun leave-sbcls-stepper ()
  "From now on, SBCL's STEP only evaluates its form, unless a program sets a hook of its own: SBCL's
  stepper asks for commands at a terminal, and an evaluation has none."
  (setf sb-ext:*stepper-hook* nil))

(defun places-in-form (form known)
  "(START . END) of each list in FORM in the text of KNOWN, which it was read from; NIL when that
  text does not tell."
  (handler-case
      (let* ((input (shape-input-of known))
             (top (read-shape input 0))
             (places (make-hash-table :test #'eq)))
        (labels ((note (list shape)
                   (let ((place (and (consp shape) (gethash shape (shape-places input)))))
                     (when (and place (not (gethash list places)) (same-operator-p list shape))
                       (setf (gethash list places) place)
                       (loop for parts = list then (cdr parts)
                             for shapes = shape then (cdr shapes)
                             while (and (consp parts) (consp shapes))
                             do (let ((part (without-comma (car parts))))
                                  (when (consp part) (note part (without-comma (car shapes))))))))))
          (when (consp form) (note form top)))
        places)
    (error () nil)))

(defun unit-of-steps (form known)
  "A unit of FORM, which is about to be evaluated, with probes for the forms in its calls of STEP;
  NIL if it has none. Nothing is installed, and no breakpoint is set in it."
  (let ((places (and (can-probe-p)
                     (search "step" (evaluated-text known) :start2 (evaluated-start known) :test #'char-equal)
                     (places-in-form form known))))
    (when (and places (loop for list being the hash-keys of places thereis (stepping-call-p list places)))
      (let ((unit (make-unit "" (live-package *package*) (evaluated-text known) form places)))
        (setf (unit-known unit) known
              (unit-evaluated unit) form)
        (fill (unit-flags unit) +step-flag+)
        unit))))

(defun stepping-call-p (form places)
  "Returns true if FORM is a call of STEP that was read, and what it steps has a place, as PLACES
  have it."
  (and (consp form) (eq (first form) 'step)
       (proper-list-p form) (= 2 (length form))
       (gethash form places)
       (consp (second form)) (gethash (second form) places)))

(defun stepping (form)
  "The code for the call of STEP with FORM."
  `(let ()
     (step-from-form ',form)
     (multiple-value-prog1 (probe ,form :all)
       (touch-frame))))

(defun call-with-steps (function form known)
  "Calls FUNCTION, which evaluates FORM, read from the text of KNOWN, so that its calls of STEP
  stop. A value that the code gives to *MACROEXPAND-HOOK* stays."
  (let ((unit (unit-of-steps form known)))
    (if (null unit)
        (funcall (the function function))
        (let* ((outer *macroexpand-hook*)
               (ours (lambda (expander form environment)
                       (if (stepping-call-p form (unit-places unit))
                           (stepping (second form))
                           (funcall outer expander form environment))))
               (after ours))
          (unwind-protect
               (let ((*unit* unit) (*macroexpand-hook* ours))
                 (unwind-protect (funcall (the function function))
                   (setf after *macroexpand-hook*)))
            (unless (eq after ours) (setf *macroexpand-hook* after)))))))

(defun probe-functions-called-by (form)
  "Gives probes to the functions that FORM calls itself. Returns true if there are any, and each of
  them has probes."
  ;; Whoever gives a function probes waits for the compiler's lock.
  (and (null (locks-held))
       (call-with-time-limit +stop-work-time+ (lambda () (probe-functions (names-called-by form))) (constantly nil))))

(defun step-from-form (form)
  "Has this thread stop in one of the functions that FORM calls itself, if they can have probes,
  else at FORM. Does nothing in code that does not stop."
  (let ((evaluation *evaluation*))
    (when (and evaluation (stops-at-errors-p evaluation) (in-user-code-p) (not *in-copy*) (not *at-probe*)
               (or (null *current-work*) (work-nests *current-work*)))
      (announce-step evaluation)
      (let ((begun nil))
        (unwind-protect
             (progn
               (begin-step-at evaluation (make-stepper :into nil nil nil *current-stop* (and (probe-functions-called-by form) form)))
               (setf begun t))
          (unless begun (forget-step evaluation)))))))
