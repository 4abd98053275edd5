;;;; Recording of the next call of a function, whoever makes it. It is recorded once, where it is
;;;; made: in the image itself, in the thread of its caller.
;;;;
;;;; Functions are not replaced. As with traced functions, callers get them through an
;;;; encapsulation. It calls the recorded function in the thread that is recorded, and the plain one
;;;; everywhere else. A method has its recorded code beside the plain code. The thread that waits
;;;; for the call puts all of it in place and removes it, so the caller compiles nothing and waits
;;;; for no lock.

(in-package :consort)

(defstruct (awaited (:constructor make-awaited (name request)))
  "The next call of NAME, whose function is DEFINITION, with METHODS if that is generic. PHASE is
  :PREPARING; LOG while the call is waited for, so that no call is recorded for which another log
  was made; :RECORDING; :CLOSING while the results are added; :DONE; or :ENDED for the reason WHY.
  Threads change PHASE by COMPARE-AND-SWAP. PLACED are the units that callers get. UNITS are those
  of the log. LEFT-OUT is the number of functions that were not examined. THREAD, OUTCOME and
  RESULTS are those of the call. OUTCOME is :RETURNED, :LEFT, or :OPEN while the call is in
  progress. REQUEST is the EVALUATION by which the wait is cancelled."
  (name nil :read-only t)
  (request nil :type evaluation :read-only t)
  (number 0 :type index)
  (definition nil) (methods '() :type list)
  (phase :preparing) (why nil)
  (placed '() :type list) (generic nil)
  (units (make-recorded-units) :type vector) (recorded '() :type list) (left-out 0 :type index)
  (log nil :type (or null event-log))
  (thread "" :type string) (outcome :open :type (member :open :returned :left)) (results nil)
  (wake (sb-thread:make-semaphore :name "consort recorded call") :type sb-thread:semaphore :read-only t))

(defun awaited-state (awaited)
  "The phase of AWAITED, or :WAITING while its call is waited for."
  (let ((phase (awaited-phase awaited)))
    (if (event-log-p phase) :waiting phase)))

(defun stop-waiting (awaited phase)
  "If the call of AWAITED is waited for, ends the wait and sets the phase to PHASE. Returns true if
  so."
  (let ((log (awaited-phase awaited)))
    (and (event-log-p log)
         (eq log (sb-ext:compare-and-swap (awaited-phase awaited) log phase)))))

(define-global *awaited* nil "The call that is waited for, an AWAITED, or NIL.")
(define-global *called* nil "The recorded call that no copy of the image keeps yet: an AWAITED in
  the phase :DONE, or NIL.")

(defconstant +recorded-share+ 16 "The divisor of the heap's size that gives the maximum size of the
  values of a call.")

;;; The call

(defun claim-call (awaited log)
  "Returns true if the call that is about to be made is the one to record in LOG. The code that asks
  was compiled for LOG."
  (and (eq (awaited-phase awaited) log)
       (not *in-copy*)
       (not *attempt*)
       (eq log (sb-ext:compare-and-swap (awaited-phase awaited) log :recording))))

(defun call-noting-signals (function)
  "Calls FUNCTION so that the conditions which it signals are noted. The program's value of
  *BREAK-ON-SIGNALS* stays in force, and one that FUNCTION assigns is kept."
  (let* ((own *break-on-signals*)
         (ours (if own `(or (satisfies note-signalled) ,own) '(satisfies note-signalled)))
         (after ours))
    (unwind-protect
         (let ((*break-on-signals* ours))
           (unwind-protect (funcall (the function function))
             (setf after *break-on-signals*)))
      (unless (eq after ours) (setf *break-on-signals* after)))))

(defun record-awaited (awaited function)
  "Calls FUNCTION, which makes the call that is waited for, and records it in this thread."
  (let* ((log (awaited-log awaited)) (*event-log* log) (outcome :left) (results '()))
    (setf (awaited-thread awaited) (thread-title sb-thread:*current-thread*))
    (unwind-protect
         (handler-bind ((serious-condition (lambda (condition) (note-unhandled log condition))))
           (setf results (multiple-value-list (call-noting-signals (lambda () (record-call nil '() function))))
                 outcome :returned)
           (values-list results))
      (without-interrupts ; :CLOSING is always followed by :DONE soon
        (when (eq :recording (sb-ext:compare-and-swap (awaited-phase awaited) :recording :closing))
          (unwind-protect
               (progn
                 (setf (awaited-outcome awaited) outcome)
                 (when (eq outcome :returned)
                   (setf (event-log-failed log) nil ; the program continued
                         (awaited-results awaited) (keep-results results))))
            (setf (event-log-closed log) t
                  (event-log-signalled log) nil
                  (awaited-phase awaited) :done)
            (sb-thread:signal-semaphore (awaited-wake awaited))))))))

;;; In place

(defun place-function (awaited unit)
  "Makes callers of UNIT's function call it through the recorder."
  (compile-recorded unit)
  (let ((new (unit-new unit)) (old (unit-old unit)) (log (awaited-log awaited)) (entry (equal (unit-name unit) (awaited-name awaited))))
    (declare (type function new))
    (push unit (awaited-placed awaited))
    (encapsulate (unit-name unit) 'consort-record
                 (lambda (plain &rest arguments)
                   (declare (type function plain))
                   (flet ((recorded () (record-call unit arguments (lambda () (apply new arguments)))))
                     ;; The function was redefined, or has breakpoints, if PLAIN is another one.
                     (cond ((not (eq plain old)) (apply plain arguments))
                           ((recording-call-p) (recorded))
                           ((and entry (claim-call awaited log)) (record-awaited awaited #'recorded))
                           (t (apply plain arguments))))))))

(defun place-method (awaited unit)
  "Replaces the plain method of UNIT by one that has the recorded code beside the plain code."
  (push unit (awaited-placed awaited))
  (call-unless-replaced unit (lambda () (compile-recorded unit))))

(defun place-recorded (awaited unit)
  "Makes callers use the definition of UNIT through the recorder."
  (when (find (unit-old unit) *units* :key #'unit-new)
    (refuse-probe "~S has breakpoints" (unit-name unit)))
  (ecase (unit-kind unit)
    (:function (place-function awaited unit))
    (:method (place-method awaited unit))))

(defun place-generic (awaited)
  "Makes the generic function of AWAITED check for the call that is waited for. Its methods record
  themselves."
  (setf (awaited-generic awaited) t)
  (let ((log (awaited-log awaited)))
    (encapsulate (awaited-name awaited) 'consort-record
                 (lambda (plain &rest arguments)
                   (declare (type function plain))
                   (if (and (null (open-log)) (claim-call awaited log))
                       (record-awaited awaited (lambda () (apply plain arguments)))
                       (apply plain arguments))))))

(defun remove-recorder (name)
  (handler-case (unencapsulate name 'consort-record)
    (error () nil)))                    ; it is no longer a function

(defun take-out-recorded (unit)
  "Makes callers get the plain definition of UNIT again."
  (ecase (unit-kind unit)
    (:function (remove-recorder (unit-name unit)))
    (:method
     (let ((current (current-definition unit)))
       (when (and current (not (eq current (unit-old unit)))
                  (or (eq current (unit-new unit))
                      ;; The thread that put the method in place was ended before it noted that.
                      (find unit (function-constants (fast-method-function (sb-mop:method-function current))))))
         (install-definition unit (unit-old unit)))))))

(defun take-out-awaited (awaited)
  "Removes all that AWAITED has put in place. *PROBES-LOCK* is held."
  (when (shiftf (awaited-generic awaited) nil) (remove-recorder (awaited-name awaited)))
  (mapc #'take-out-recorded (shiftf (awaited-placed awaited) '()))
  (world-changed))

(defun free-recorded-methods ()
  "Puts plain methods in place before breakpoints are set in one, because a method can have only one
  replacement at a time. *PROBES-LOCK* is held."
  (let ((awaited *awaited*))
    (when awaited
      (let ((methods (remove :method (awaited-placed awaited) :key #'unit-kind :test-not #'eq)))
        (mapc #'take-out-recorded methods)
        (setf (awaited-placed awaited) (set-difference (awaited-placed awaited) methods))))))

(defun end-awaited (why)
  "Ends the wait for a call, for the reason WHY. *PROBES-LOCK* is held."
  (let ((awaited *awaited*))
    (when awaited
      (take-out-awaited awaited)
      (when (stop-waiting awaited :ended)
        (setf (awaited-why awaited) why)
        (unless *in-copy* (sb-thread:signal-semaphore (awaited-wake awaited)))))))

;;; From the request to the call

(defun current-methods (definition)
  (and (typep definition 'generic-function) (sb-mop:generic-function-methods definition)))

(defun awaited-stale-p (awaited)
  "Returns true if the function was redefined since it was prepared."
  (let ((definition (and (fboundp (awaited-name awaited)) (fdefinition (awaited-name awaited)))))
    (not (and (eq definition (awaited-definition awaited))
              (or (not (typep definition 'generic-function))
                  (subsetp (sb-mop:generic-function-methods definition) (awaited-methods awaited)))))))

(defun prepare-awaited (awaited names directories seconds)
  "Prepares the function of AWAITED for recording, with the functions that it calls below
  DIRECTORIES, or with those of NAMES. *PROBES-LOCK* is held."
  (let* ((name (awaited-name awaited)) (own (list* name names)))
    (unless (or (eq (awaited-phase awaited) :preparing) (stop-waiting awaited :preparing))
      (return-from prepare-awaited nil)) ; the call was made meanwhile
    (take-out-awaited awaited)
    (unless (fboundp name) (refuse-probe "There is no function ~S any more" name))
    (clrhash *slots-of-classes*)
    (setf (awaited-definition awaited) (fdefinition name)
          (awaited-units awaited) (make-recorded-units)
          (awaited-log awaited) (make-event-log +events-kept+ (min +octets-kept+ (floor (sb-ext:dynamic-space-size) +recorded-share+))))
    (let ((*recorded-units* (awaited-units awaited)))
      (setf (values (awaited-recorded awaited) (awaited-left-out awaited))
            (record-definitions own directories
                                :anywhere own :follow (null names) :until (+ (now-ms) (* 1000 seconds))
                                :install (lambda (unit) (place-recorded awaited unit)))))
    (unless (find name (awaited-recorded awaited) :key #'unit-name :test #'equal)
      (refuse-probe "The text that ~S was made from is not known, or its file has another one now, or it has breakpoints. Save and load its file" name))
    (when (typep (awaited-definition awaited) 'generic-function) (place-generic awaited))
    (setf (awaited-methods awaited) (copy-list (current-methods (awaited-definition awaited)))
          (awaited-why awaited) nil
          (awaited-phase awaited) (awaited-log awaited))))

(defun close-awaited (awaited)
  "Ends the recording of a call that has not returned yet, and returns true. The thread continues
  without being recorded."
  (when (eq :recording (sb-ext:compare-and-swap (awaited-phase awaited) :recording :done))
    (setf (event-log-closed (awaited-log awaited)) t)))

;;; The outcome of a call

(defun outcome-of-call (awaited timeout)
  "The JSON of EvalOutcome of the call that AWAITED has recorded."
  (let* ((evaluation (make-evaluation 0 nil))
         (log (awaited-log awaited))
         (failed (and (event-log-failed log) (event-at log (event-log-failed log))))
         (results (awaited-results awaited)))
    (flet ((ended (kind control &rest arguments)
             (setf (evaluation-error evaluation) (error-facts kind (apply #'format nil control arguments)))
             (outcome evaluation :error :package (package-of-settings (copy-of-settings)))))
      (cond ((eq (awaited-outcome awaited) :returned)
             (outcome evaluation :ok :package (package-of-settings (copy-of-settings))
                                     :values (mapcar (lambda (value) (clipped (kept-text value (user-package)) 0))
                                                     (if (several-p results) (several-values results) (list results)))))
            ((eq (awaited-outcome awaited) :open)
             (ended "TIMEOUT" "The call had not returned after ~A, when its recording was ended. It goes on." (seconds-text timeout)))
            (failed
             (ended "ERROR" "The call was left by an error that it did not handle: ~A" (kept-text (cdr (event-kept failed)) (user-package))))
            (t (ended "NON-LOCAL-EXIT" "The call did not return: it was left by a THROW, a RETURN-FROM, a restart, or the end of its thread."))))))

(defun recording-of-call (awaited timeout)
  "The JSON of the Recording that AWAITED has."
  (let ((log (awaited-log awaited)))
    ;; A thread that is still in the call may have been about to remove its oldest event.
    (when (and (eq (awaited-outcome awaited) :open)
               (= (- (event-log-count log) (event-log-first log)) (event-log-size log)))
      (incf (event-log-first log)))
    (object "outcome" (outcome-of-call awaited timeout)
            "call" (object "function" (present (awaited-name awaited) (user-package)) "thread" (awaited-thread awaited))
            "events" (event-log-count log) "first" (event-log-first log) "calls" (max 0 (1- (event-log-calls log)))
            "skipped" (event-log-skipped log) "failed_checks" 0
            "definitions" (map 'vector #'unit-words (awaited-recorded awaited)) "left_out" (awaited-left-out awaited))))
