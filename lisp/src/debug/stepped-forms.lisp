;;;; (STEP FORM) in text that is evaluated for debugging: the evaluation stops in the function that
;;;; FORM calls, or otherwise at FORM, and continues by the same steps as from any stop. While the
;;;; text is evaluated, each call of STEP that is expanded becomes FORM with probes, whether the
;;;; text has the call or a macro makes it. Any other STEP is SBCL's: code of files, and of sessions
;;;; that do not stop, is compiled as usual.

(in-package :consort)

(defvar *steps* nil "The EVALUATED-TEXT of the form that this thread evaluates, if its calls of STEP stop.")
(defvar *steps-stop* nil "The stop that this thread serves while it evaluates that form, or NIL.")

(defun places-in-form (form known)
  "(START . END) of each list in FORM in the text of KNOWN, from which FORM was read; NIL when the
  text does not show the places."
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

(defun places-of-steps (unit known)
  "The places of the lists in the form of UNIT, which is read from KNOWN."
  (let ((places (unit-places unit)))
    (when (and (eq known (unit-known unit)) (zerop (hash-table-count places)))
      (let ((found (places-in-form (unit-form unit) known)))
        (when found
          (maphash (lambda (list place) (setf (gethash list places) place)) found))))
    places))

(defun stepping (form unit known)
  "The code for FORM, a call of STEP in the text of KNOWN or in a macro's expansion of it. UNIT is
  that of the text's form. NIL if the text shows no place."
  (let* ((places (places-of-steps unit known))
         (stepped (second form))
         (place (cond ((probed-p stepped) stepped)
                      (t (find-if (lambda (list) (and (consp list) (gethash list places))) (list stepped form (unit-form unit)))))))
    (cond ((not (eq *current-stop* *steps-stop*))
           ;; Code at a stop within that evaluation. Its text is not known.
           `(let ()
              (step-from-form ',stepped nil)
              (multiple-value-prog1 ,stepped (touch-frame))))
          (place
           `(let ()
              (step-from-form ',stepped ',place)
              (multiple-value-prog1 ,(if (probed-p stepped) `(probe ,stepped :all) `(probe-at ,place ,stepped))
                (touch-frame)))))))

(defmacro probe-at (place form &environment environment)
  "FORM, with a probe before it that is at PLACE, a list that was read."
  (let* ((variables (variables-in-scope environment)) (number (site-number place variables)))
    `(progn ,(probe-code *unit* number `(before-form ,*unit* ,number ,@variables))
            ,form)))

(defvar *outer-hook* 'funcall "The *MACROEXPAND-HOOK* that EXPAND-STEPS replaces.")
(defvar *in-outer-hook* nil "True while this hook runs, up to its call of the expander: it may call EXPAND-STEPS, which it has found earlier.")

(defun expand-steps (expander form environment)
  "The *MACROEXPAND-HOOK* while a form is evaluated whose calls of STEP stop."
  (or (and *steps* *unit*
           (consp form) (eq 'step (car form)) ; a symbol macro's form is the symbol
           (proper-list-p form) (= 2 (length form))
           (null *load-truename*) (null *compile-file-truename*)
           (can-probe-p)
           (stepping form *unit* *steps*))
      (flet ((expand (form environment)
               (let ((*in-outer-hook* nil)) (funcall (the function expander) form environment))))
        (if (or *in-outer-hook* (eq *outer-hook* 'funcall)
                ;; Consort's macro calls contain lists that are known by their identity.
                (and (consp form) (member (car form) '(probe probe-at top-probe))))
            (expand form environment)
            (let ((*in-outer-hook* t)) (funcall *outer-hook* #'expand form environment))))))

(defun leave-sbcls-stepper ()
  "Makes SBCL's STEP only evaluate its form from now on, unless a program sets a hook of its own.
  SBCL's stepper reads commands from a terminal, and an evaluation has none."
  (setf sb-ext:*stepper-hook* nil))

(defun call-with-steps (function form known)
  "Calls FUNCTION, which evaluates FORM, read from the text of KNOWN, so that its calls of STEP
  stop. A value that the code assigns to *MACROEXPAND-HOOK* is kept."
  (let ((unit (make-unit "" (live-package *package*) (evaluated-text known) form (make-hash-table :test #'eq)))
        (outer *macroexpand-hook*)
        (after 'expand-steps))
    (setf (unit-known unit) known
          (unit-evaluated unit) form)
    (fill (unit-flags unit) +step-flag+)
    (unwind-protect
         (let ((*unit* unit) (*steps* known) (*steps-stop* *current-stop*)
               (*outer-hook* (if (eq outer 'expand-steps) *outer-hook* outer))
               (*macroexpand-hook* 'expand-steps))
           (unwind-protect (funcall (the function function))
             (setf after *macroexpand-hook*)))
      (unless (eq after 'expand-steps) (setf *macroexpand-hook* after)))))

(defun probe-functions-called-by (form)
  "Gives probes to the functions that FORM calls itself. Returns true if there are any, and each of
  them has probes."
  ;; A thread that gives probes to a function waits for the compiler's lock.
  (and (null (locks-held))
       (call-with-time-limit +stop-work-time+ (lambda () (probe-functions (names-called-by form))) (constantly nil))))

(defun step-from-form (form place)
  "Makes this thread stop in one of the functions that FORM calls itself, if they can have probes,
  or otherwise at the probe of PLACE before FORM. Does nothing in code that does not stop."
  (let ((evaluation *evaluation*))
    (when (and evaluation (stops-at-errors-p evaluation) (in-user-code-p) (not *in-copy*) (not *at-probe*)
               (or (null *current-work*) (work-nests *current-work*)))
      (announce-step evaluation)
      (let ((begun nil))
        (unwind-protect
             (progn
               (begin-step-at evaluation (make-stepper :into nil nil nil *current-stop* (and (probe-functions-called-by form) place)))
               (setf begun t))
          (unless begun (forget-step evaluation)))))))
