;;;; The event log: the events of a recorded program, in their order. One thread is recorded at a
;;;; time, in a copy of the image or in the image itself (next-call.lisp), so no locks are needed.
;;;;
;;;; An event is a call, the value of a form, a return, a non-local exit, or a condition that was
;;;; signalled, with the variables that were in scope. The newest events are kept, within limits of
;;;; number and octets.

(in-package :consort)

(defconstant +events-kept+ 100000 "The maximum number of events that are kept, the newest.")
(defconstant +octets-kept+ (* 64 1024 1024) "The approximate maximum of octets that all kept events
  take.")
(defconstant +event-octets+ 48 "Octets of an event without its values.")
(defconstant +recorded-depth+ 1000 "The maximum depth of recorded calls. Deeper ones are not
  recorded.")

(defconstant +nowhere+ (- (ash 1 40)) "The place, in an event, of an activation that has not reached
  a probe yet.")

(defstruct (activation (:constructor make-activation
                           (number unit parent depth arguments begin
                            &aux (from (and parent (activation-at parent)))
                                 (from-variables (and parent (activation-variables parent))))))
  "The call NUMBER, of UNIT's function, which its PARENT made; BEGIN is its first event. AT is its
  place: the number of the last probe that it reached, or, after that form returned its value, -1
  minus the number. VARIABLES are the latest known values. FROM and FROM-VARIABLES are the parent's
  at the call."
  (number 0 :type index :read-only t) (unit nil :read-only t) (parent nil :read-only t)
  (depth 0 :type index :read-only t) (arguments '() :type list :read-only t) (begin 0 :type index :read-only t)
  (at nil :type (or null fixnum)) (variables '() :type list)
  (from nil :type (or null fixnum) :read-only t) (from-variables '() :type list :read-only t)
  (outcome :open :type (member :open :returned :left)) (results '() :type list))

(defstruct (event-log (:constructor make-event-log (&optional (size +events-kept+) (octets-limit +octets-kept+))))
  "EVENTS is a ring buffer of four objects for each event: its kind and probe (CONS-WHAT), its
  ACTIVATION, and the kept copies of its value and of the variables. COUNT is the number of all
  events, FIRST the number of the oldest kept one. COUNTED is the value of *KEPT-OCTETS* at the last
  event; octets that were kept since then count for the next. OUTSIDE is true from the moment an
  error reaches handlers that are not the program's until the program continues. SIGNALLED is the
  condition that was signalled last, while the program runs, and SIGNALLED-AT its event. FAILED is
  the event of the error that nothing handled. FAILURES are those of the checks of a test, whose
  values are printed as in PACKAGE. CLOSED: nothing more is recorded."
  (size 0 :type index :read-only t) (octets-limit 0 :type index :read-only t)
  (events (make-array (* 4 size) :initial-element 0) :type simple-vector :read-only t)
  (octets (make-array size :element-type '(unsigned-byte 32) :initial-element 0) :type (simple-array (unsigned-byte 32) (*)) :read-only t)
  (count 0 :type index) (first 0 :type index) (total 0 :type index) (counted *kept-octets* :type fixnum)
  (calls 0 :type index) (skipped 0 :type index) (outside nil)
  (signalled nil) (signalled-at nil :type (or null index)) (failed nil :type (or null index))
  (failures '() :type list) (package nil) (closed nil)
  (current nil :type (or null activation)))

(declaim (type (or null event-log) *event-log*))
(defvar *event-log* nil "The log of this thread's events; NIL in threads that are not recorded.")

(declaim (inline open-log))
(defun open-log ()
  "The log of this thread, if its events are recorded now."
  (let ((log *event-log*))
    (and log (not (event-log-closed log)) log)))

(defun call-unrecorded (function)
  "Calls FUNCTION without recording: its work, such as serving a request at a stop, is not part of
  the program."
  (let ((*event-log* nil))
    (funcall (the function function))))

(declaim (inline cons-what))
(defun cons-what (kind number)
  "The KIND of an event and NUMBER in one fixnum."
  (declare (type fixnum number))
  (logior (ash (the (signed-byte 48) number) 3)
          (ecase kind (:call 0) (:value 1) (:return 2) (:exit 3) (:signal 4))))

(defun record-event (log kind number activation kept variables)
  "Adds an event of ACTIVATION at the probe NUMBER or -1; returns its number."
  (declare (type event-log log) (type fixnum number))
  (let* ((size (event-log-size log))
         (count (event-log-count log))
         (slot (rem count size))
         (events (event-log-events log))
         (at (* 4 slot))
         (octets (min (+ +event-octets+ (- *kept-octets* (event-log-counted log))) #xFFFFFFF)))
    (declare (type index at slot))
    (when (= (- count (event-log-first log)) size)
      (forget-oldest log))
    (setf (svref events at) (cons-what kind number)
          (svref events (+ at 1)) activation
          (svref events (+ at 2)) kept
          (svref events (+ at 3)) variables
          (aref (event-log-octets log) slot) octets)
    (incf (event-log-total log) octets)
    (setf (event-log-counted log) *kept-octets*)
    (setf (event-log-count log) (1+ count))
    (loop while (and (> (event-log-total log) (event-log-octets-limit log))
                     (< (event-log-first log) (1- (event-log-count log))))
          do (forget-oldest log))
    count))

(defun forget-oldest (log)
  (let* ((slot (rem (event-log-first log) (event-log-size log))) (at (* 4 slot)))
    (decf (event-log-total log) (aref (event-log-octets log) slot))
    (fill (event-log-events log) 0 :start at :end (+ at 4))
    (incf (event-log-first log))))

;;; Functions that the code of recorded definitions calls

(declaim (notinline record-before record-value record-values))
(defun record-before (number &rest values)
  "Notes that a recorded definition reached the probe NUMBER, where the variables have VALUES."
  (declare (dynamic-extent values))
  (let* ((log (open-log)) (activation (and log (event-log-current log))))
    (when activation
      (setf (event-log-outside log) nil
            (activation-at activation) number
            (activation-variables activation) (keep-all values (activation-variables activation)))))
  nil)

(defun note-value (log number kept values)
  (let ((activation (event-log-current log)))
    (when activation
      (let ((variables (keep-all values (activation-variables activation))))
        (setf (event-log-outside log) nil
              (activation-at activation) (- -1 number)
              (activation-variables activation) variables)
        (record-event log :value number activation kept variables)))))

(defun record-value (number value &rest values)
  "Records that the form of the probe NUMBER had VALUE; the variables have VALUES."
  (declare (dynamic-extent values))
  (let ((log (open-log)))
    (when log (note-value log number (keep value) values)))
  nil)

(defstruct (several (:constructor make-several (values)))
  "Several VALUES, or none, as they are kept."
  (values '() :type list :read-only t))

(defun keep-results (results)
  (if (and results (null (cdr results)))
      (keep (car results))
      (make-several (loop for result in results repeat +kept-parts+ collect (keep result)))))

(defun record-values (number results &rest values)
  "Records that the form of the probe NUMBER had the values RESULTS; the variables have VALUES."
  (declare (dynamic-extent values))
  (let ((log (open-log)))
    (when log (note-value log number (keep-results results) values)))
  nil)

(defun recording-call-p ()
  "Returns true if a call that is made now is to be recorded. Counts the calls that are not recorded
  because of their depth."
  (let* ((log (open-log)) (current (and log (event-log-current log))))
    (cond ((null current) nil)
          ((< (activation-depth current) +recorded-depth+) t)
          (t (incf (event-log-skipped log)) nil))))

(defun begin-activation (log unit arguments)
  (let ((parent (event-log-current log)))
    (let* ((kept (loop for argument in arguments repeat +kept-parts+ collect (keep argument)))
           (activation (make-activation (event-log-calls log) unit parent (if parent (1+ (activation-depth parent)) 0)
                                        kept (event-log-count log))))
      (note-octets (+ 128 (* 16 (length kept))))
      (incf (event-log-calls log))
      (setf (event-log-current log) activation)
      (record-event log :call -1 activation kept '())
      activation)))

(defun end-activation (log activation outcome results)
  (let ((kept (if (eq outcome :returned) (keep-results results) '())))
    (record-event log (if (eq outcome :returned) :return :exit) -1 activation kept (activation-variables activation))
    (setf (activation-outcome activation) outcome
          (activation-results activation) (if (eq outcome :returned) (list kept) '())
          (activation-variables activation) '()
          (event-log-current log) (activation-parent activation))))

(defun record-call (unit arguments function)
  "Calls FUNCTION, which runs the code of UNIT with ARGUMENTS, and records the call."
  (declare (type function function))
  (let* ((log *event-log*) (activation (begin-activation log unit arguments)) (outcome :left) (results '()))
    (unwind-protect
         (progn (setf results (multiple-value-list (funcall function))
                      outcome :returned)
                (values-list results))
      (unless (event-log-closed log) (end-activation log activation outcome results)))))

;;; Conditions

(defvar *signals-noted* t "True if conditions that are signalled here are the program's.")

(defun note-signalled (condition)
  "Records that CONDITION is signalled. Always returns NIL, because *BREAK-ON-SIGNALS* calls it to
  decide whether to break."
  (let* ((log (open-log)) (activation (and log (event-log-current log))))
    (when (and activation *signals-noted* (not (event-log-outside log)) (or (null *evaluation*) (in-user-code-p))
               (not (typep condition 'sb-ext:compiler-note)))
      (setf (event-log-signalled-at log)
            (record-event log :signal (or (activation-at activation) +nowhere+) activation
                          (cons (signalled-class condition) (keep condition)) (activation-variables activation))
            (event-log-signalled log) condition)))
  nil)

(defun signalled-class (condition)
  (typecase condition (error :error) (warning :warning) (t :condition)))

(defun call-recording (log function)
  "Calls FUNCTION, which runs the program, and records its events."
  (unwind-protect (let* ((*event-log* log)
                         (*break-on-signals* '(satisfies note-signalled))
                         (debugger sb-ext:*invoke-debugger-hook*)
                         ;; The debugger's hook signals and handles errors of its own.
                         (sb-ext:*invoke-debugger-hook*
                           (lambda (condition hook)
                             (let ((*signals-noted* nil)) (funcall debugger condition hook)))))
                    (handler-bind ((serious-condition (lambda (condition) (note-unhandled log condition))))
                      ;; The program returned, so it continued after the error that nothing handled.
                      (multiple-value-prog1 (record-call nil '() function)
                        (setf (event-log-failed log) nil))))
    (setf (event-log-signalled log) nil)))

(defun note-unhandled (log condition)
  "Notes that CONDITION reached handlers that are not the program's."
  (setf (event-log-outside log) t
        (event-log-failed log) (and (eq condition (event-log-signalled log)) (event-log-signalled-at log))))

;;; Reading

(defstruct (event (:constructor make-event (number kind site-number activation kept variables)))
  "The event NUMBER. SITE-NUMBER is the number of its probe, or NIL; for a signal it is as AT of an
  ACTIVATION."
  (number 0 :type index :read-only t) (kind nil :read-only t) (site-number nil :read-only t)
  (activation nil :read-only t) (kept nil :read-only t) (variables '() :type list :read-only t))

(defun event-at (log number)
  "The event NUMBER of LOG, or NIL where it is not kept."
  (when (and (<= (event-log-first log) number) (< number (event-log-count log)))
    (let* ((at (* 4 (rem number (event-log-size log)))) (events (event-log-events log))
           (what (svref events at))
           (kind (svref #(:call :value :return :exit :signal) (logand what 7)))
           (site (ash what -3)))
      (make-event number kind (if (member kind '(:value :signal)) site nil)
                  (svref events (+ at 1)) (svref events (+ at 2)) (svref events (+ at 3))))))

(defmacro do-events ((event log &key from-end) &body body)
  "Runs BODY for each EVENT that LOG keeps, oldest first or, if FROM-END, newest first."
  (let ((number (gensym "NUMBER")) (of (gensym "LOG")))
    `(let ((,of ,log))
       (loop for ,number ,@(if from-end
                               `(from (1- (event-log-count ,of)) downto (event-log-first ,of))
                               `(from (event-log-first ,of) below (event-log-count ,of)))
             do (let ((,event (event-at ,of ,number))) ,@body)))))
