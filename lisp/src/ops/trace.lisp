;;;; `trace`, `untrace`, `traced-calls`: traced functions, methods and packages print their calls,
;;;; as TRACE does. Calls in other sessions are reported to the session that requested the trace.
;;;; The newest calls are kept with their arguments and values, as a tree to inspect.

(in-package :consort)

(define-global *tracers* '() "The traces, as a list of (NAME . SESSION). Replaced under
  *TRACED-LOCK*, never changed.")
(define-global *traces-reported* (cons 0 0) "A second, as a universal time, and the number of lines
  that were reported in it.")
(defconstant +traces-a-second+ 200 "The maximum number of lines a second about other sessions'
  calls.")

(defun reported-too-much-p ()
  "Counts a line, and returns true if it is beyond the limit of this second. Takes no lock, because
  a few lines too many do no harm."
  (let ((second (get-universal-time)))
    (unless (eql second (car *traces-reported*))
      (setf *traces-reported* (cons second 0)))
    (> (incf (cdr *traces-reported*)) +traces-a-second+)))

;;; The calls that are kept

(defconstant +traced-calls+ 1000 "The number of newest traced calls that are kept with their
  arguments and values.")

(defstruct (traced-call (:conc-name traced-) (:constructor make-traced-call (number parent depth name thread arguments)))
  "The call NUMBER. PARENT is the number of the call that made it, or NIL. DEPTH is TRACE's depth in
  THREAD."
  (number 0 :type fixnum :read-only t) (parent nil :type (or null fixnum) :read-only t)
  (depth 0 :type fixnum :read-only t) (name nil :read-only t) (thread "" :type string :read-only t)
  (arguments '() :type list :read-only t) (results '() :type list)
  (outcome :open :type (member :open :returned :left)))

(define-global *traced-ring* (make-array +traced-calls+ :initial-element nil) "A ring buffer of calls, by
  their numbers.")
(define-global *traced-count* 0 "The number of all calls since the ring buffer was emptied.")
(define-global *traced-lock* (sb-thread:make-mutex :name "consort traced calls")
  "Guards these variables and *TRACERS*.")
(define-global *traced-open* (make-hash-table :test #'eq :weakness :key) "The traced calls in
  progress of each thread, innermost first.")

(defun begin-traced (depth name arguments)
  "Keeps the call of NAME that begins in this thread. Calls in progress in the thread with this or a
  greater depth were left, but TRACE was not told."
  (with-lock (*traced-lock*)
    (let* ((thread sb-thread:*current-thread*)
           (open (loop for calls = (gethash thread *traced-open*) then (rest calls)
                       while (and calls (>= (traced-depth (first calls)) depth))
                       do (setf (traced-outcome (first calls)) :left)
                       finally (return calls)))
           (call (make-traced-call (incf *traced-count*) (and open (traced-number (first open))) depth name
                                   (thread-title thread) arguments)))
      (setf (gethash thread *traced-open*) (cons call open)
            (svref *traced-ring* (mod *traced-count* +traced-calls+)) call))))

(defun end-traced (depth outcome results)
  (with-lock (*traced-lock*)
    (let ((thread sb-thread:*current-thread*))
      (loop
        (let ((call (pop (gethash thread *traced-open*))))
          (unless call (return))
          (cond ((= (traced-depth call) depth)
                 ;; In this order, because readers of the call read the outcome first.
                 (setf (traced-results call) results (traced-outcome call) outcome)
                 (return))
                ((< (traced-depth call) depth) ; it began before the ring buffer was emptied
                 (push call (gethash thread *traced-open*))
                 (return))
                (t (setf (traced-outcome call) :left))))))))

(defun forget-traced ()
  "Empties the ring buffer. Must be called with *TRACED-LOCK* held."
  (fill *traced-ring* nil)
  (clrhash *traced-open*)
  (setf *traced-count* 0))

(defun traced-calls (after count clear)
  "Two values: those kept calls that follow the call number AFTER, COUNT at most, and the number of
  the last call of all. If CLEAR, all calls are forgotten."
  (with-lock (*traced-lock*)
    (let ((calls (loop for number from (max (1+ after) (- *traced-count* +traced-calls+ -1)) to *traced-count*
                       repeat count
                       for call = (svref *traced-ring* (mod number +traced-calls+))
                       when call collect call)))
      (when clear (forget-traced))
      (values calls *traced-count*))))

(defun traced-json (call)
  (flet ((shown (values) (map 'vector #'value-json values)))
    (object "call" (traced-number call) "parent" (or-null (traced-parent call)) "thread" (traced-thread call)
            "name" (present (traced-name call) (user-package))
            "arguments" (shown (traced-arguments call))
            "outcome" (string-downcase (traced-outcome call))
            "values" (shown (traced-results call)))))

(define-operation "traced-calls" :query (id params)
  (multiple-value-bind (calls last)
      (traced-calls (param params "after" '(integer 0) :default 0)
                    (param params "count" `(integer 1 ,+traced-calls+) :default 200)
                    (param params "clear" 'boolean :default nil))
    (object "calls" (map 'vector #'traced-json calls) "last" last
            "names" (map 'vector (lambda (name) (present name (user-package)))
                         (remove-duplicates (mapcar #'car *tracers*) :test #'equal)))))

;;; The report

(defun report-traced (depth name kind frame values)
  "Called by TRACE at each entry and exit."
  (declare (ignore frame))
  (ecase kind
    (:enter (begin-traced depth name values))
    (:exit (end-traced depth :returned values))
    (:non-local-exit (end-traced depth :left '())))
  (let* ((sessions (loop for (traced . session) in *tracers*
                         ;; NAME may be a method of the traced function.
                         when (or (equal traced name) (and (consp name) (equal traced (second name))))
                           collect session))
         (text (with-terse-printing ()
                 (let ((*print-pretty* nil))
                   (format nil "~vT~D: ~A" (+ 2 (* 2 (mod depth 20))) depth
                           (ecase kind
                             (:enter (text-of (print-safely (cons name values) 2000 #'prin1)))
                             (:exit (format nil "~S returned~{ ~A~}" name
                                            (mapcar (lambda (value) (text-of (print-safely value 2000 #'prin1))) values)))
                             (:non-local-exit (format nil "~S exited non-locally" name))))))))
    (format *trace-output* "~&~A~%" text)
    (dolist (session sessions)
      (unless (or (equal session (and *evaluation* (evaluation-session *evaluation*))) (reported-too-much-p))
        (send-event "trace" "session" session "text" text)))))

(defun trace-methods-p (name)
  "Returns true if NAME is of a generic function, whose methods this SBCL can trace one by one."
  (typep (fdefinition name) 'generic-function))

(defun names-to-trace (params)
  "The names of the functions that PARAMS mean: one, or, without a name, all of a package's own
  functions."
  (if (param params "name" 'string :default nil)
      (list (function-name-of-params params))
      (let* ((package (find-package-named (param params "package" 'string)))
             (names (loop for symbol in (package-own-symbols package)
                          when (callable-name-p symbol) collect symbol)))
        (or names (refuse "not-found" "The package ~A has no functions of its own." (package-name package))))))

(define-operation "trace" :thread (id params)
  (let ((names (names-to-trace params))
        (session (param params "session" 'string)))
    (multiple-value-bind (how outcome)
        (evaluate-alone id (lambda ()
                             (dolist (name names)
                               (eval (if (trace-methods-p name)
                                         `(trace ,name :report report-traced :methods t)
                                         `(trace ,name :report report-traced))))
                             (format t "~{~S~^, ~} ~:[is~;are~] traced." names (rest names))))
      (when (eq how :ok)
        (with-lock (*traced-lock*)
          (dolist (name names) (setf *tracers* (adjoin (cons name session) *tracers* :test #'equal)))))
      outcome)))

(define-operation "untrace" :thread (id params)
  (let ((given (and (or (param params "name" 'string :default nil) (param params "package" 'string :default nil))
                    (names-to-trace params)))
        (one (param params "name" 'string :default nil)))
    (nth-value 1 (evaluate-alone id (lambda ()
                                      (let ((names (cond (one given)
                                                         (given (intersection (eval '(trace)) given :test #'equal))
                                                         (t (eval '(trace))))))
                                        (with-lock (*traced-lock*)
                                          (setf *tracers* (remove-if (lambda (tracer) (member (car tracer) names :test #'equal)) *tracers*)))
                                        (when names (eval `(untrace ,@names)))
                                        (format t "~:[Nothing is traced.~;~:*Not traced any more: ~{~S~^, ~}.~]" names)))))))
