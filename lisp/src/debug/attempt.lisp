;;;; An attempt: a process that a frozen failure forks for one request. It has the stack of the
;;;; failure as a stop of its own, and serves the request as the image would serve it at a stop: it
;;;; shows the stack, runs code in a frame, or leaves the stop by a restart, after which the
;;;; evaluation continues in this process. The answer goes to the frozen failure through a pipe;
;;;; then the process ends.

(in-package :consort)

(defconstant +attempted-stop+ 0 "The number of the stop in an attempt.")

(defconstant +attempted-request+ :attempt
  "The id of the request in an attempt. It differs from the ids of all requests of the image, such
  as that of the evaluation which failed.")

(defparameter *attempted-operations*
  '("debug-stops" "debug-frames" "debug-locals" "debug-eval" "debug-inspect" "debug-restart" "debug-return" "debug-restart-frame" "debug-continue")
  "The operations that an attempt serves.")

(defstruct (attempt (:constructor make-attempt (id operation params seconds report)))
  "A request, and the REPORT to which its answer is sent."
  (id nil :read-only t)
  (operation nil :read-only t)
  (params nil :read-only t)
  (seconds 5 :type real :read-only t)
  (report nil :read-only t)
  (written '() :type list))             ; CHARACTERS-WRITTEN at its start

(defun attempt-of-request (request descriptor)
  "The attempt for REQUEST, JSON. Its answer is sent to DESCRIPTOR."
  (make-attempt (field request "id") (field request "op" "") (field request "params" (object)) (field request "timeout" 5)
                (make-report descriptor)))

(defun answer-attempt (attempt &rest fields)
  "Sends the answer, FIELDS as in OBJECT, and ends the process."
  (send-line (attempt-report attempt) (apply #'object "id" (attempt-id attempt) fields) :flush t)
  (exit-process 0))

(defun take-frame-of-attempt (attempt evaluation frame)
  "Answers ATTEMPT with FRAME, which the image would have sent to the host, if it is the answer to
  the attempt's request, or to that of EVALUATION, if that continued. Other frames are dropped."
  (let ((id (field frame "id")) (result (field frame "result")))
    (cond ((equal (field frame "event") "input")
           (answer-question (field frame "question") nil "nobody is asked in an attempt at a frozen failure"))
          ((field frame "event"))
          ((eq id +attempted-request+)
           (cond ((field frame "error") (answer-attempt attempt "error" (field frame "error")))
                 ((not (equal (field result "status") "sent"))
                  (answer-attempt attempt "result"
                                  (if (field result "stdout") result (append result (output-fields evaluation (attempt-written attempt))))))))
          ((equal id (evaluation-id evaluation))
           (answer-attempt attempt "result" (object "status" "left" "outcome" (or result (error-answer-outcome frame))))))))

(defun error-answer-outcome (frame)
  "The JSON of EvalOutcome for an evaluation that FRAME answers with an error."
  (let ((evaluation (make-evaluation 0 nil)) (problem (field frame "error")))
    (setf (evaluation-error evaluation) (error-facts (string-upcase (field problem "kind")) (field problem "message")))
    (outcome evaluation :error :package "COMMON-LISP-USER")))

(defun answer-of-thread (evaluation how values)
  "Answers this process's attempt with the outcome of a thread that a program started. EVALUATION is
  the thread's, HOW is as in CALL-EVALUATING, and VALUES are JSON."
  (let ((package (package-name *package*)))
    (with-own-settings ()
      (send-result (evaluation-id evaluation)
                   (outcome evaluation how :values values :package (or package "COMMON-LISP-USER") :timeout (attempt-seconds *attempt*))))))

(defun answer-of-test (evaluation name status checks failures output)
  "Answers this process's attempt with the end of the test NAME: STATUS, CHECKS and FAILURES as in
  TestResult, and OUTPUT, the JSON of its output. EVALUATION runs the tests."
  (let ((good (or (string= status "passed") (string= status "skipped"))))
    (unless good
      (setf (evaluation-error evaluation)
            (error-facts (if (string= status "error") "TEST-ERROR" "TEST-FAILED")
                         (format nil "~A:~{ ~A~^;~}" name (mapcar (lambda (failure) (field failure "message")) failures)))))
    (send-result (evaluation-id evaluation)
                 (with-field (outcome evaluation (if good :ok :error)
                                      :values (list (clipped (format nil "The test ~A ~A~[~:;~:*: ~D check~:P~]." name
                                                                     (if (string= status "passed") "passed" "was skipped") checks)
                                                             0))
                                      :package "COMMON-LISP-USER" :timeout (attempt-seconds *attempt*))
                   "stdout" output))))

(defun capture-output-of-thread (evaluation)
  "Captures the output of this thread, whose evaluation is EVALUATION, if a program started the
  thread. In the image, such output belongs to no client."
  (unless (evaluation-stdout evaluation)
    (setf (evaluation-stdout evaluation) (make-capture :kind 'stdout)
          (evaluation-stderr evaluation) (make-capture :kind 'stderr)
          *running* (list evaluation))))

(defun set-alarm-of-attempt (attempt evaluation)
  "Sets an alarm that ends ATTEMPT at its time limit. Code that runs in a frame is answered with
  `timeout`. EVALUATION, if it has continued, ends as at its deadline. Otherwise the process ends
  without an answer."
  (sb-ext:schedule-timer
   (sb-ext:make-timer (lambda ()
                        (cond (*current-work* (throw *current-work* "timeout"))
                              (*evaluation*
                               (setf (evaluation-reason evaluation) :timeout)
                               (stop-here evaluation))
                              (t (exit-process 72)))))
   (attempt-seconds attempt)))

(defun serve-attempt (attempt condition frames more)
  "Serves ATTEMPT at a stop for CONDITION, with FRAMES; MORE is true if the stack has more frames.
  Never returns: leaving the stop unwinds through this call."
  (let* ((evaluation *evaluation*)
         (operation (gethash (attempt-operation attempt) *operations*))
         (stop (make-stop +attempted-stop+ sb-thread:*current-thread* evaluation nil
                          (if (typep condition 'serious-condition) "error" "break") condition
                          (own-restarts evaluation (compute-restarts condition)) frames more nil))
         (*current-stop* stop)
         (*current-work* nil)
         (sb-ext:*invoke-debugger-hook* 'evaluation-debugger))
    (capture-output-of-thread evaluation)
    (setf *stops* (list stop)
          *attempt* attempt
          *instead-of-link* (lambda (frame) (with-own-settings () (take-frame-of-attempt attempt evaluation frame))))
    (setf (attempt-written attempt) (characters-written evaluation))
    (set-alarm-of-attempt attempt evaluation)
    ;; Handlers of the program must not see refusals.
    (let ((*evaluation* nil))
      (with-own-settings ()
        (unless (member (attempt-operation attempt) *attempted-operations* :test #'string=)
          (send-error +attempted-request+ "unknown-op" "A frozen failure does not know this operation"))
        (setf (stopped-facts stop)
              (if (string= (attempt-operation attempt) "debug-stops") (stop-fixed-facts stop '()) '()))
        (call-answering +attempted-request+ #'send-frame #'send-error
                        (lambda () (funcall (operation-function operation) +attempted-request+ (attempt-params attempt))))))
    (when (eq :again (without-interrupts
                       (wait-in-stop stop (lambda (work) (with-local-interrupts (funcall (the function work)))))))
      (answer-attempt attempt "error" (object "kind" "restart-returned"
                                              "message" "The function of the restart returned: the program would stay where it failed")))
    (exit-process 73)))
