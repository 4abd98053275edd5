;;;; Stops where a condition of a chosen type is signalled, before its handlers are called, as a
;;;; debugger's exception filters request. Only evaluations that stop at errors make such stops.

(in-package :consort)

(define-global *signals-watched* '() "A list of (OWNER . TYPES) for each debugger that requests such
  stops. Replaced under *PROBES-LOCK*.")

(defun watched-type (text)
  "The type that TEXT names, as people write it."
  (let ((type (handler-case (let ((*package* (user-package)) (*read-eval* nil)) (values (read-from-string text)))
                (error (condition) (refuse-probe "The type cannot be read: ~A" condition)))))
    (unless (ignore-errors (sb-ext:valid-type-specifier-p type))
      (refuse-probe "~A is no type in the image" text))
    type))

(defun watch-signals (owner texts)
  "Makes the types that TEXTS name those at which OWNER requests stops, in place of all earlier
  ones. Returns a vector with the JSON of each."
  (let* ((types '())
         (answers (map 'vector (lambda (text)
                                 (handler-case (progn (push (watched-type text) types)
                                                      (object "verified" :true "message" :null))
                                   (error (condition) (unverified-json condition))))
                       texts)))
    (sb-thread:with-mutex (*probes-lock*)
      (let ((others (remove owner *signals-watched* :key #'car :test #'string=)))
        (setf *signals-watched* (if types (acons owner types others) others))))
    answers))

(defun watched-p (condition)
  "Returns true if a debugger requests stops at CONDITION."
  (and (not (typep condition 'sb-ext:compiler-note))
       (loop for (nil . types) in *signals-watched*
               thereis (some (lambda (type) (ignore-errors (typep condition type))) types))))

(defun stop-at-signal-p (condition)
  "Stops if a debugger requests stops at CONDITION, which is about to be signalled. Always returns
  NIL, because *BREAK-ON-SIGNALS* calls it to decide whether to break."
  (let ((evaluation *evaluation*))
    (when (and evaluation (in-user-code-p) (not *in-copy*) (not *at-probe*) (stops-at-errors-p evaluation)
               (or (null *current-work*) (work-nests *current-work*))
               (watched-p condition))
      (with-simple-restart (continue "Continue: call the handlers of the condition.")
        (when (eq :abort (wait-at condition "signal"))
          (end-aborted evaluation)))))
  nil)

(defun call-watching-signals (function)
  "Calls FUNCTION, which evaluates code, so that it stops at the conditions that debuggers request.
  A value that the code assigns to *BREAK-ON-SIGNALS* is kept. If the variable has a value before,
  there are no such stops."
  (if (or (null *signals-watched*) *break-on-signals*)
      (funcall (the function function))
      (let* ((ours '(satisfies stop-at-signal-p)) (after ours))
        (unwind-protect
             (let ((*break-on-signals* ours))
               (unwind-protect (funcall (the function function))
                 (setf after *break-on-signals*)))
          (unless (eq after ours) (setf *break-on-signals* after))))))
