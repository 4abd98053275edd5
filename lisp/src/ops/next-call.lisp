;;;; `await-call`, `record-call`: waits for the next call of a function and records it. A copy of
;;;; the image then keeps the recording, as for `record`.

(in-package :consort)

(defconstant +call-look+ 1/4 "The time in seconds between two checks whether the function was
  defined anew, or the request cancelled.")
(defconstant +called-seconds+ 60 "The time in seconds for which a recorded call waits for the copy
  that is to keep it.")
(define-global *awaited-lock* (sb-thread:make-mutex :name "consort awaited call") "Held while *AWAITED* is set.")
(define-global *calls-awaited* 0 "The number of calls that were awaited, which is also the number of
  the last one.")

(defun function-to-await (params)
  "The name of the function that PARAMS name."
  (let* ((text (param params "function" 'string))
         (name (ignore-errors (parse-function-name text *package*))))
    (cond ((or (null name) (not (fboundp name))) (refuse "not-found" "There is no function ~A in the image" text))
          ((and (symbolp name) (or (macro-function name) (special-operator-p name)))
           (refuse "not-found" "~A is no function: calls of macros and special operators are not recorded" text))
          ((not (callable-name-p name)) (refuse "not-found" "~A is none of the program's functions" text))
          (t name))))

(defconstant +cancelled-seconds+ 10 "The time in seconds within which a cancelled wait must end so
  that the next one can begin.")

(defun begin-awaiting (name request)
  "The AWAITED for the next call of NAME. Refuses while another call is awaited."
  (let ((new (make-awaited name request)) (other nil) (until (+ (now-ms) (* 1000 +cancelled-seconds+))))
    (loop
      (setf other (with-lock (*awaited-lock*)
                    (or *awaited* (progn (setf (awaited-number new) (incf *calls-awaited*) *awaited* new) nil))))
      (unless (and other (evaluation-reason (awaited-request other)) (< (now-ms) until)) (return))
      (sleep 1/50))                     ; the cancelled wait is about to end
    (when other
      (refuse "busy" "The next call of ~A is waited for already, and one call is at a time. Make that call, or cancel its recording"
              (present (awaited-name other) (user-package))))
    new))

(defun stop-awaiting (awaited)
  "Installs the plain definitions again, and awaits no call."
  (sb-thread:with-mutex (*probes-lock*)
    (take-out-awaited awaited)
    (with-lock (*awaited-lock*) (setf *awaited* nil)))
  (clrhash *slots-of-classes*))

(defun make-ready (id awaited names directories wait)
  "Compiles the definitions that AWAITED needs, as an evaluation of the request ID, within WAIT
  seconds."
  (let ((refused nil) (late nil) (within (min wait (* 2 +definitions-seconds+))))
    (multiple-value-bind (how outcome)
        (let ((*setting-breakpoints* t))
          (evaluate-alone id (lambda ()
                               (handler-case
                                   (sb-thread:with-mutex (*probes-lock*)
                                     (call-with-time-limit within
                                                  (lambda () (prepare-awaited awaited names directories +definitions-seconds+))
                                                  (lambda (holder) (setf late (or holder t)))))
                                 (refusal (condition) (setf refused (refusal-why condition)))))))
      (cond (refused (refuse "not-recordable" "The next call of ~A cannot be recorded. ~A" (present (awaited-name awaited) (user-package)) refused))
            ((eq how :stopped) (refuse "interrupted" "The recording was cancelled"))
            (late (refuse "timeout" "The functions to record could not be compiled within ~A: ~A" (seconds-text within)
                          (if (stringp late) late "a macro that one of them uses may not end")))
            ((not (eq how :ok))
             (refuse "not-recordable" "The functions to record could not be compiled: ~A" (field (field outcome "error") "message" "the work was ended")))
            (t (send-event "progress" "id" id "message" (format nil "waiting for the next call of ~A" (present (awaited-name awaited) (user-package)))
                                      "done" 0 "total" :null))))))

(defun make-ready-again (id awaited names directories wait)
  "MAKE-READY after a definition changed. If the call cannot be recorded now, as in the middle of a
  load, the reason is reported to the host, and AWAIT-CALL tries again later."
  (handler-case (make-ready id awaited names directories wait)
    (request-error (condition)
      (unless (string= (request-error-kind condition) "not-recordable") (error condition))
      (setf (awaited-why awaited) (request-error-message condition))
      (send-event "progress" "id" id "message" (request-error-message condition) "done" 0 "total" :null))))

(defun await-call (awaited again wait timeout)
  "Waits until AWAITED ends. Returns :DONE, :ENDED, :CANCELLED or :LATE. AGAIN is a function that
  makes AWAITED ready again. WAIT is the maximum time in seconds until the call begins, and TIMEOUT
  that of the call."
  (let ((late (+ (now-ms) (* 1000 wait))) (since nil) (world (car *world*)))
    (flet ((let-go-p () ; true if no call will be recorded any more
             (or (eq (awaited-phase awaited) :preparing) (stop-waiting awaited :ended))))
      (loop
        (case (awaited-state awaited)
          (:done (return :done))
          (:ended (return :ended))
          (:recording
           (unless since (setf since (now-ms)))
           (when (> (now-ms) (+ since (* 1000 timeout)))
             (when (close-awaited awaited) (return :done))))
          (:closing) ; it is about to be done
          (t
           (cond ((> (now-ms) late) (when (let-go-p) (return :late)))
                 ((or (awaited-stale-p awaited)
                      (and (eq (awaited-state awaited) :preparing) (/= world (car *world*))))
                  (funcall again)
                  (setf world (car *world*))))))
        (when (evaluation-reason (awaited-request awaited))
          (unless (let-go-p) (close-awaited awaited))
          (return :cancelled))
        (sb-thread:wait-on-semaphore (awaited-wake awaited) :timeout +call-look+)))))

(defun forget-called (awaited)
  (sb-ext:compare-and-swap (symbol-value '*called*) awaited nil))

(define-operation "await-call" :thread (id params)
  (let* ((wait (param params "wait" '(real (0)))) (timeout (param params "timeout" '(real (0))))
         (*package* (let ((name (param params "package" 'string :default nil)))
                      (if name (find-package-named name) (user-package))))
         (name (function-to-await params))
         (names (handler-case (names-given params)
                  (simple-error (condition) (refuse "not-found" "~A" condition))))
         (directories (directories-recorded params))
         (*for-agent* (session-of-agent-p (param params "session" 'string :default nil)))
         (waiting (make-evaluation id nil)))
    (unless (can-probe-p) (refuse "bad-params" "This SBCL lacks what a recording takes"))
    (let* ((awaited (begin-awaiting name waiting)) (shown (present name (user-package)))
           ;; The answer, even if it is an error, is given only after all definitions are restored.
           (how (unwind-protect
                     (handler-case
                         (progn
                           ;; An interrupt finds this entry before the thread's own evaluation,
                           ;; which ends earlier.
                           (with-lock (*running-lock*) (push waiting *starting*))
                           (make-ready id awaited names directories wait)
                           (let ((*own-evaluation* nil))
                             (await-call awaited (lambda () (make-ready-again id awaited names directories wait)) wait timeout)))
                       (request-error (condition) condition))
                  (setf (evaluation-state waiting) :ended)
                  (with-lock (*running-lock*) (setf *starting* (remove waiting *starting* :test #'eq)))
                  (stop-awaiting awaited))))
      (case how
        (:done (setf *called* awaited)
         (schedule *deadlines* +called-seconds+ (lambda () (forget-called awaited)))
         (object "call" (awaited-number awaited)))
        (:ended (refuse "interrupted" "The next call of ~A is not waited for any more: ~A. Ask again" shown (awaited-why awaited)))
        (:late (refuse "timeout" "~A was not called within ~A, and is not waited for any more~@[ (~A)~]" shown (seconds-text wait) (awaited-why awaited)))
        (:cancelled (refuse "interrupted" "The recording was cancelled"))
        (t (error how))))))

(defun keep-call-in-copy (params)
  "Does the work of the copy that keeps a recorded call."
  (let ((called *called*))
    (setf *recorded-units* (awaited-units called)
          *slots-of-classes* (make-hash-table :test #'eq))
    (take-out-all)
    (keep-recording params (awaited-log called) (lambda () (recording-of-call called (field params "timeout"))))))

(define-operation "record-call" :thread (id params)
  (param params "timeout" '(real (0)))
  (check-check-params params)
  (let ((called *called*) (number (param params "call" '(integer 1))))
    (unless (and called (= (awaited-number called) number))
      (refuse "stale" "The recorded call is not kept any more. Ask for the next one again"))
    (answer-from-copy id params 'keep-call-in-copy)))
