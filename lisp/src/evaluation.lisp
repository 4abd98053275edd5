;;;; Evaluations: user code in a thread of Consort's, captured, watched and stopped.

(in-package :consort)

(defstruct (evaluation (:constructor make-evaluation (id session)))
  "User code that runs for the request ID in SESSION."
  (id nil :read-only t)
  (session nil :type (or null string) :read-only t)
  ;; The thread in which the code runs; NIL before it does.
  (thread nil)
  ;; The interruption that was last sent to THREAD to stop the code.
  (interruption nil :type (or null interruption))
  (started (get-internal-real-time))
  ;; NIL, :RUNNING or :ENDED. It is :RUNNING exactly while the catch tag, the evaluation itself, is
  ;; in force and interrupts are on.
  (state nil)
  ;; The reason why the code was asked to stop: NIL, :CANCEL, :TIMEOUT or :HEAP.
  (reason nil)
  ;; The number of bytes of the heap that were in use when the code was stopped for :HEAP.
  (usage 0 :type (unsigned-byte 62))
  (stdout nil :type (or null capture))
  (stderr nil :type (or null capture))
  (warnings '() :type list)
  (warnings-count 0 :type fixnum)
  (error nil)
  ;; True if the code stops where it would fail (debug/stops.lisp).
  (debug nil)
  ;; The innermost such stop.
  (stop nil)
  ;; The restart that ends the evaluation.
  (abort nil)
  ;; The timer of the evaluation's time limit.
  (deadline nil)
  ;; The step that the code is in (debug/steps.lisp).
  (stepper nil)
  ;; The client that is asked for input, as the request has it, or NIL.
  (input-client nil)
  ;; The line of input that the code waits for (input.lisp).
  (question nil)
  ;; The way in which an error is frozen, as the request has it, or NIL.
  (freeze nil)
  ;; The JSON of the frozen failure (debug/frozen.lisp).
  (frozen nil)
  ;; True if threads that the code starts stop as it does.
  (threads nil)
  ;; The way in which an error that ends such a thread is frozen, or NIL.
  (freeze-threads nil)
  ;; In the evaluation of such a thread, the name of the session whose code started the first of
  ;; these threads (debug/threads.lisp).
  (starter nil :type (or null string)))

(defvar *evaluation* nil "The evaluation that this thread runs.")
(define-global *attempt* nil "In a process that tries code at a frozen failure: the request
  (debug/attempt.lisp).")
(defvar *user-settings* nil "The SETTINGS of the user code that this thread runs.")

(define-global *running* '() "The evaluations that run. The list is replaced under its lock, never
  changed, so that reading needs no lock.")
(define-global *running-lock* (sb-thread:make-mutex :name "consort running")
  "Held while *RUNNING* is replaced.")

(define-global *world* (list 0)
  "A list of a number that counts the events that may have changed the image: the beginnings and
  ends of user code, and collections, after which finalizers and hooks run.")

(defun world-changed ()
  "Notes that the image may have changed. Evaluations call this for user code. All other code that
  changes the image must also call it."
  (sb-ext:atomic-incf (car *world*)))

(defun in-user-code-p ()
  "Returns true if user code is running in this thread."
  (let ((evaluation *evaluation*))
    (and evaluation (eq (evaluation-state evaluation) :running))))

(defun sole-capture (kind)
  "The capture, STDOUT or STDERR, of the only evaluation that runs; NIL if none or several run."
  (let ((running *running*))
    (when (and running (null (rest running)))
      (let ((evaluation (first running)))
        (ecase kind
          (stdout (evaluation-stdout evaluation))
          (stderr (evaluation-stderr evaluation)))))))

(defun stop-here (evaluation)
  "Leaves EVALUATION if this thread is in it. No condition is signalled, so that no handler can
  decline to leave."
  (when (and (eq (evaluation-state evaluation) :running)
             (eq (evaluation-thread evaluation) sb-thread:*current-thread*))
    (throw evaluation :stopped)))

(defun interrupt-evaluation (evaluation reason)
  "Requests the thread of EVALUATION to leave it, for REASON. If it does not run yet, it will find
  the reason. Takes no lock under which memory is allocated while interrupts may come, and waits for
  nothing."
  (unless (eq (evaluation-state evaluation) :ended)
    (unless (evaluation-reason evaluation)
      (setf (evaluation-reason evaluation) reason))
    (let ((thread (evaluation-thread evaluation))
          (stop (evaluation-stop evaluation))
          (question (evaluation-question evaluation)))
      (when thread
        (unless (let ((before (evaluation-interruption evaluation))) (and before (interruption-under-way-p before)))
          (setf (evaluation-interruption evaluation)
                (interrupt-outside-foreign-code thread (lambda () (stop-here evaluation))))))
      (when stop ; a stop defers interruptions
        (wake-stop stop))
      (when question ; interruptions may be off there
        (wake-question question)))))

(defun stop-evaluation (evaluation reason)
  "Stops EVALUATION, for REASON. Clean-up forms that run for half a second are stopped too."
  (interrupt-evaluation evaluation reason)
  (unless (eq (evaluation-state evaluation) :ended)
    (schedule *deadlines* 0.5d0 (lambda () (stop-evaluation evaluation reason)))))

(defconstant +warnings-limit+ 200 "The maximum number of warnings that an evaluation reports.")

(defun note-warning (warning)
  "Records and muffles WARNING, unless it was only signalled, or the user has muffled its type.
  While a file is compiled it is not muffled: COMPILE-FILE would not count it, and would return
  success."
  (let ((restart (find-restart 'muffle-warning warning))
        (evaluation *evaluation*))
    (when (and restart evaluation (not (typep warning sb-ext:*muffled-warnings*)))
      (when (<= (incf (evaluation-warnings-count evaluation)) +warnings-limit+)
        (with-own-settings ()
          (push (object "type" (warning-type warning) "message" (condition-message warning))
                (evaluation-warnings evaluation))))
      (unless *compile-file-truename*
        (invoke-restart restart)))))

(defvar *code-stream* nil "The stream from which the code of an evaluation is read, while a form is
  read from it.")

(defun unread-code-p (condition)
  "Returns true if CONDITION means that the code of the evaluation cannot be read."
  (and *code-stream*
       (typep condition 'stream-error)
       (eq *code-stream* (ignore-errors (stream-error-stream condition)))))

(defun note-error (evaluation condition)
  "Records CONDITION as the error that ends EVALUATION. If the stack is full, the condition is
  printed later, when there is room again. If the heap is full, it is printed now, but briefly,
  since it knows its sizes only now."
  (unless (evaluation-error evaluation) ; a second one would be an error of recording the first
    (when (typep condition 'storage-condition)
      (setf (evaluation-error evaluation) (cons condition (current-frame-names))))
    (unless (typep condition stack-exhausted)
      (setf (evaluation-error evaluation)
            (append (describe-error condition (if (typep condition 'storage-condition) (cdr (evaluation-error evaluation)) (current-frames)))
                    (and (unread-code-p condition)
                         (list "unread" (or (ignore-errors (file-position *code-stream*)) 0))))))))

(defun user-debugger-hook (condition)
  "Calls the user's own *DEBUGGER-HOOK*, if there is one, as the debugger would."
  (let ((hook *debugger-hook*))
    (when hook
      (let ((*debugger-hook* nil)
            (*users-code* t)
            (sb-ext:*invoke-debugger-hook* 'evaluation-debugger)) ; which is unset while it runs
        (funcall hook condition hook)))))

(defun stops-at-errors-p (evaluation)
  "Returns true if EVALUATION stops at errors, and not only at breakpoints."
  (eq (evaluation-debug evaluation) t))

(defun evaluation-debugger (condition hook)
  "Called instead of the debugger. Stops if the evaluation is to stop. Otherwise freezes the failure
  if that was requested, reports CONDITION and leaves the evaluation. In a thread that programs
  started, freezes and reports the failure and ends the thread."
  (declare (ignore hook))
  (let* ((*users-code* nil)
         (evaluation *evaluation*)
         (thread (or (not (in-user-code-p)) (evaluation-starter evaluation)))
         (stopped nil))
    (when (in-user-code-p)
      (end-request-of-stop condition))
    (when (or thread (not (typep condition 'storage-condition)))
      (user-debugger-hook condition))
    (leave-if-forked 70)
    (when (and (in-user-code-p) (stops-at-errors-p evaluation))
      (setf stopped (stop-at-condition condition)))
    (when (and thread (not (and *attempt* (in-user-code-p))))
      (let ((frozen (and (in-user-code-p) (not stopped) (freeze-thread evaluation condition))))
        (with-own-settings () (report-thread-error condition frozen)))
      (sb-thread:abort-thread))
    (when (evaluation-freeze evaluation)
      (setf (evaluation-frozen evaluation) (freeze-failure evaluation condition (evaluation-freeze evaluation))))
    (with-own-settings () (note-error evaluation condition))
    (throw evaluation :error)))

(defun report-thread-error (condition frozen)
  "Reports CONDITION, which ends this thread, to the host. FROZEN is the JSON of its frozen failure,
  or NIL."
  (handler-case
      (send-event "thread-error" "thread" (thread-title sb-thread:*current-thread*)
                                 "frozen" (or-null frozen)
                                 "type" (condition-type condition)
                                 "message" (condition-message condition)
                                 "backtrace" (backtrace-of (if (typep condition 'storage-condition) '() (current-frames))))
    (serious-condition () nil)))

(define-condition exit-refused (error)
  ((name :initarg :name :reader exit-refused-name))
  (:report (lambda (condition stream)
             (format stream "~A is refused: it would end the image that editor and agents share. Restart the image through Consort instead."
                     (exit-refused-name condition)))))

(defun refuse-exit (name &rest arguments)
  "Refuses a call of NAME, a function that ends the process. A process that the user's code has
  forked ends, but saves no core, because the image's other threads do not exist in it."
  (leave-if-forked (cond ((eq name 'sb-ext:save-lisp-and-die) 70)
                         ((find-if #'integerp arguments)) ; the code, whatever its keyword
                         (t 0)))
  (error 'exit-refused :name name))

(define-condition package-loss-refused (package-error)
  ((operator :initarg :operator :reader package-loss-refused-operator))
  (:report (lambda (condition stream)
             (format stream "~A of the package ~A is refused: every session of the image that editor and agents share depends on it. ~
                             Unintern the symbols that are in the way, or restart the image."
                     (package-loss-refused-operator condition) (package-error-package condition)))))

(defun refuse-loss-of-package (operator package)
  (error 'package-loss-refused :operator operator :package package))

(defun refuse-condition (name)
  (error "The definition of the condition ~A is refused: every session of the image uses the standard's conditions. ~
          Shadow the symbol in a package of your own instead." name))

(defmacro with-user-streams ((evaluation) &body body)
  `(let* ((*standard-output* (evaluation-stdout ,evaluation))
          (*error-output* (evaluation-stderr ,evaluation))
          (*trace-output* (evaluation-stderr ,evaluation))
          (*standard-input* (input-of ,evaluation))
          (*terminal-io* *standard-input*)
          (*query-io* *standard-input*)
          (*debug-io* *standard-input*))
     ,@body))

(defun call-user-code (function)
  "Calls FUNCTION as user code is called. The name of this function marks where the user's frames
  end."
  (multiple-value-prog1 (let ((*users-code* t)) (funcall (the function function)))
    (touch-frame)))

(defun call-keeping-signal-mask (function)
  "Calls FUNCTION, and restores this thread's signal mask afterwards. If the collector's signal
  stayed blocked, every thread would wait for this one at the next collection."
  (declare (function function))
  #+linux
  (let ((mask (make-array 16 :element-type '(unsigned-byte 64) :initial-element 0))) ; a sigset_t
    (flet ((exchange (new old)
             (sb-alien:alien-funcall
              (sb-alien:extern-alien "pthread_sigmask" (function sb-alien:int sb-alien:int sb-alien:unsigned-long sb-alien:unsigned-long))
              2 new old)))              ; SIG_SETMASK
      (with-pinned-objects (mask)
        (let ((address (sap-integer (vector-sap mask))))
          (exchange 0 address)
          (unwind-protect (funcall function)
            (exchange address 0))))))
  #-linux
  (funcall function))

(declaim (notinline call-user-code touch-frame))
(defun touch-frame (&rest kept)
  "Does nothing, so that the caller's frame stays on the stack, with the values KEPT."
  (declare (ignore kept))
  nil)

(defun begin-evaluation (evaluation stream timeout)
  "Adds EVALUATION to those that run. If STREAM, its output is sent as events. TIMEOUT is in
  seconds, or NIL for no limit."
  (flet ((sink (name)
           (let ((id (evaluation-id evaluation)))
             (lambda (text) (send-event "output" "id" id "stream" name "text" text)))))
    (setf (evaluation-stdout evaluation) (make-capture :kind 'stdout :sink (and stream (sink "stdout")))
          (evaluation-stderr evaluation) (make-capture :kind 'stderr :sink (and stream (sink "stderr")))))
  (setf (evaluation-thread evaluation) sb-thread:*current-thread*
        (evaluation-started evaluation) (get-internal-real-time))
  (with-lock (*running-lock*)
    (push evaluation *running*))
  (world-changed)
  (when timeout
    (set-deadline evaluation timeout)))

(defun set-deadline (evaluation seconds)
  "Makes EVALUATION stop when it has run for SECONDS more."
  (setf (evaluation-deadline evaluation)
        (schedule *deadlines* seconds (lambda () (stop-evaluation evaluation :timeout)))))

(defun warn-of-restored (evaluation control names)
  "Adds a warning to EVALUATION that changes of NAMES were reverted, if there are any NAMES."
  (when names
    (incf (evaluation-warnings-count evaluation))
    (push (object "type" "WARNING" "message" (with-terse-printing () (let ((*print-length* 20)) (format nil control names))))
          (evaluation-warnings evaluation))))

(defun take-back-redefinitions (evaluation)
  "Restores those definitions that every session uses and that EVALUATION changed, with warnings."
  (warn-of-restored evaluation "The redefinition of ~{~A~^, ~} was taken back: every session of the image uses the standard's operators and classes. ~
                                Shadow the symbol in a package of your own instead."
                    (append (restore-classes) (restore-operators)))
  (warn-of-restored evaluation "The methods on ~{~A~^, ~} were taken back: the work of every session goes through them. ~
                                Define them for classes of your own instead."
                    (restore-shared-methods)))

(define-global *asdf-actions* (list 0)
  "A list of a number that counts the actions that may have loaded a system, or may have made one a
  system of the workspace (ops/load-system.lisp).")
(define-global *asdf-actions-seen* 0 "The number when an evaluation was last warned of foreign
  systems.")

(declaim (ftype function foreign-system-warnings))

(defun warn-of-foreign-systems (evaluation)
  "Adds warnings to EVALUATION about loaded systems that are not the workspace's, if there may be
  new ones."
  (unless (eql (car *asdf-actions*) (shiftf *asdf-actions-seen* (car *asdf-actions*)))
    (dolist (message (foreign-system-warnings))
      (incf (evaluation-warnings-count evaluation))
      (push (object "type" "WARNING" "message" message) (evaluation-warnings evaluation)))))

(defun end-evaluation (evaluation &aux (timer (evaluation-deadline evaluation)))
  (setf (evaluation-state evaluation) :ended)
  (take-back-redefinitions evaluation)
  (warn-of-foreign-systems evaluation)
  (world-changed)
  (end-step evaluation)
  (with-lock (*running-lock*)
    (setf *running* (remove evaluation *running* :test #'eq)))
  (note-changed-definitions)
  (when timer
    (cancel *deadlines* timer))
  (end-capture (evaluation-stdout evaluation))
  (end-capture (evaluation-stderr evaluation)))

(defun call-with-user-settings (package function)
  "Calls FUNCTION with *USER-SETTINGS* in force. PACKAGE, unless it is NIL, is the current package,
  which is not part of the settings."
  (call-with-settings *user-settings*
                      (if package
                          (lambda () (let ((*package* package)) (funcall function)))
                          function)))

(defun call-evaluating (function evaluation &key stream timeout package)
  "Calls FUNCTION, which runs user code, as EVALUATION, with *USER-SETTINGS*. Returns how it ended
  and, if it returned, its value. It ends with :OK, :ERROR, :STOPPED, or :ABORTED for the ABORT
  restart. Only the end of the thread leaves this call in another way. PACKAGE is as in
  CALL-WITH-USER-SETTINGS."
  (begin-evaluation evaluation stream timeout)
  (let ((*evaluation* evaluation)
        (value nil))
    (unwind-protect
         (let ((how (without-interrupts
                      (catch evaluation
                        (unwind-protect
                             (progn
                               (setf (evaluation-state evaluation) :running)
                               (when (evaluation-reason evaluation)
                                 (throw evaluation :stopped))
                               (with-local-interrupts
                                 (restart-case
                                     (with-user-streams (evaluation)
                                       (let ((sb-ext:*invoke-debugger-hook* 'evaluation-debugger))
                                         (setf (evaluation-abort evaluation) (find-restart 'abort))
                                         (handler-bind ((warning #'note-warning))
                                           (setf value (call-with-user-settings
                                                        package
                                                        (lambda () (call-keeping-signal-mask (lambda () (call-user-code function))))))
                                           :ok)))
                                   (abort ()
                                     :report "End the evaluation."
                                     :aborted))))
                          (leave-if-forked)
                          (setf (evaluation-state evaluation) :ended))))))
           (finish-storage-error evaluation)
           (when (and (eq how :stopped) (eq (evaluation-reason evaluation) :heap))
             (make-room-again evaluation))
           (values how value))
      (end-evaluation evaluation))))

(defun finish-storage-error (evaluation)
  (let ((error (evaluation-error evaluation)))
    (when (and (consp error) (typep (car error) 'condition))
      (setf (evaluation-error evaluation) (describe-error (car error) (cdr error))))))

;;; Outcomes

(defun characters-written (evaluation)
  "The numbers of characters that EVALUATION has written, for OUTPUT-FIELDS."
  (list (capture-total (evaluation-stdout evaluation)) (capture-total (evaluation-stderr evaluation))))

(defun output-fields (evaluation written)
  "The JSON fields of the output that EVALUATION has printed after WRITTEN."
  (list "stdout" (captured-since (evaluation-stdout evaluation) (first written))
        "stderr" (captured-since (evaluation-stderr evaluation) (second written))))

(defun seconds-text (seconds)
  (with-standard-io-syntax (format nil "~,1,,,'0F s" seconds)))

(defun stop-facts (evaluation timeout)
  "The status and error of an evaluation that was stopped."
  (ecase (evaluation-reason evaluation)
    (:timeout
     (values "timeout"
             (error-facts "TIMEOUT" (format nil "Stopped: the deadline of ~A passed. What had been defined before is kept." (seconds-text timeout)))))
    (:cancel
     (values "interrupted"
             (error-facts "INTERRUPTED" "Stopped: the evaluation was interrupted. What had been defined before is kept.")))
    (:heap
     (values "error" (heap-error (evaluation-usage evaluation))))))

(defun outcome (evaluation how &key values timing package timeout)
  "The JSON of EvalOutcome, as an object to which more fields may be added."
  (multiple-value-bind (status error)
      (ecase how
        (:ok (values "ok" nil))
        (:error (values "error" (evaluation-error evaluation)))
        (:aborted (values "error" (error-facts "ABORT" "The evaluation was ended by its ABORT restart, without values.")))
        (:ended (values "error" (error-facts "THREAD-ENDED" "The evaluation ended the thread it ran in, without values.")))
        (:stopped (stop-facts evaluation timeout)))
    (object "status" status
            "values" values
            "stdout" (captured-or-nothing (evaluation-stdout evaluation))
            "stderr" (captured-or-nothing (evaluation-stderr evaluation))
            "warnings" (reported-warnings evaluation)
            "error" (or-null error)
            ;; An attempt has a clock and a heap of its own, so the timing would mean nothing.
            "timing" (or-null (and (not *attempt*) timing))
            "package" package)))

(defun captured-or-nothing (capture)
  (if capture (captured capture) (clipped "" 0)))

(defun reported-warnings (evaluation)
  (let* ((warnings (reverse (evaluation-warnings evaluation)))
         ;; Warnings of Consort's own are never left out.
         (more (- (evaluation-warnings-count evaluation) (length warnings))))
    (if (plusp more)
        (append warnings (list (object "type" "WARNING" "message" (format nil "~D more warnings were left out" more))))
        warnings)))

;;; Little free heap. When a collection finds no room to copy to, the process dies, so evaluations
;;; are stopped before that.

(defun heap-nearly-full-p ()
  "Returns true if a collection may soon fail: three quarters of the heap are in use, or the next
  collection may have to copy more than is free."
  (let* ((size (sb-ext:dynamic-space-size))
         (usage (dynamic-usage)))
    (declare (type (unsigned-byte 62) size usage))
    (or (> (* 4 usage) (* 3 size))
        (and (> (* 3 usage) size)
             ;; Until the next collection BYTES-CONSED-BETWEEN-GCS are allocated. Three times that
             ;; is reserved: for these bytes, for their copies, and for waste.
             (> (+ (movable-bytes) (* 3 (sb-ext:bytes-consed-between-gcs))) (- size usage))))))

(defvar *makes-room* nil "True while this thread collects to have room for a copy. Such a collection
  stops nothing.")

(defun guard-heap ()
  "Called after each collection, in the thread that collected. Stops evaluations when little heap is
  free. Conses next to nothing, and takes no lock under which memory is allocated while interrupts
  may come."
  (world-changed)
  (handler-case
      (when (and *running* (not *in-copy*) (not *makes-room*) (heap-nearly-full-p))
        ;; Evaluations that wait allocate nothing.
        (let ((all (not (find-if-not #'evaluation-waiting-p *running*))))
          ;; With interrupts off, this thread leaves its own evaluation only after all others are
          ;; told.
          (dolist (evaluation *running*)
            (when (or all (not (evaluation-waiting-p evaluation)))
              (setf (evaluation-usage evaluation) (dynamic-usage))
              (interrupt-evaluation evaluation :heap)))))
    ;; The error would reach the code that allocated in this thread.
    (serious-condition (condition) (report-own-error "Looking after the heap failed" condition))))

(defun make-room-again (evaluation)
  "Called when GUARD-HEAP has stopped EVALUATION. Collects its garbage, for which there is still
  room, and reports that to the host."
  (sb-ext:gc :gen 2)
  (send-event "heap" "usage" (evaluation-usage evaluation) "size" (sb-ext:dynamic-space-size) "stopped" (list (evaluation-id evaluation))))

(defun megabytes (bytes)
  (with-standard-io-syntax (format nil "~D MB" (round bytes 1000000))))

(defun heap-error (usage)
  "The JSON of EvalError for an evaluation that GUARD-HEAP stopped."
  (error-facts "STORAGE-CONDITION"
               (format nil "Heap nearly full (~A of ~A): evaluation stopped"
                       (megabytes usage) (megabytes (sb-ext:dynamic-space-size)))))
