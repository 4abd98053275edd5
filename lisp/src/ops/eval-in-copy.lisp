;;;; `eval-in-copy`: evaluates forms in a confined copy of the image, which sends the outcome to the
;;;; host and ends. The copy has everything that is loaded and the REPL variables of the session. No
;;;; effect of the forms is kept.

(in-package :consort)

(defun settings-of-session (name)
  "The settings of the session NAME after its last evaluation; those of a new session if it has
  none."
  (let ((session (gethash name *sessions*)))
    (or (and session (session-settings session))
        (copy-of-settings))))

(defun refusal-words (condition params)
  "A text about the refusal that CONDITION reports in the copy of PARAMS. CONDITION may be NIL."
  (format nil "(It was evaluated in a copy of the image, which is confined: it cannot write files~:[, start programs or threads, or use the network~*~; outside ~
its temporary directory, start programs, or ~:[reach any network but a loopback interface of its own~;~:*use sockets (~A)~]~]~@[, ~
and ~A is none of the files that it can read, which are the workspace's, Lisp's own and those that check.read names in the person's config.toml~].)"
          (threads-p params) *no-network*
          (and condition (unread-file condition))))

(defun with-field (object name value)
  "OBJECT, JSON to be written, in which the value of the existing field NAME is replaced by VALUE."
  (apply #'object (loop for (key old) on (rest object) by #'cddr
                        collect key collect (if (string= key name) value old))))

(defun add-to-message (error words)
  "ERROR, JSON with a message, with WORDS appended to the message."
  (with-field error "message" (format nil "~A ~A" (field error "message") words)))

(defparameter *works-in-copy*
  '(("evaluate" settings-of-session evaluate-as-asked)
    ("try-evaluation" settings-of-session try-evaluation)
    ("profile" settings-of-session profile-as-asked)
    ("run-tests" settings-for-tests test-as-asked)
    ("compare-expansions" settings-of-session compare-as-asked))
  "The kinds of work that a copy can do. Each is a list of its name, the function that makes the
  copy's settings from the session's name, and the function that does the work.")

(defun settings-for-tests (session)
  "The settings in which systems are loaded, for any SESSION."
  (declare (ignore session))
  (copy-of-settings :tables nil))

(defun evaluate-as-asked (evaluation params package timeout)
  "The JSON of EvalOutcome for the code of PARAMS."
  (evaluate evaluation (field params "code") :package package :timing (eq (field params "capture_time") :true) :deadline timeout))

(defun profile-as-asked (evaluation params package timeout)
  "The JSON of ProfileOutcome for the code of PARAMS."
  (declare (ignore timeout)) ; the alarm has it
  (setf *profiling* nil)     ; a profile that runs in the image does not run here
  (evaluate-profiled evaluation (field params "code") (profile-of-params params) package nil))

(defun test-as-asked (evaluation params package timeout)
  "The JSON of RunTestsOutcome for PARAMS."
  (declare (ignore timeout))
  (let ((outcome (run-tests evaluation params package nil (constantly nil))))
    (with-field outcome "tests" (mapcar (lambda (test) (report-refusals test params)) (field outcome "tests" '())))))

(defun report-refusals (test params)
  "The JSON of TestOutcome TEST in the copy of PARAMS. If a refusal seems to have caused a failure,
  its message says so. A refusal is recognized by the message, because the test frameworks do not
  pass on the condition."
  (flet ((refused-p (failure)
           (some (lambda (words) (search words (field failure "message")))
                 (list (system-message sb-posix:eperm) (system-message sb-posix:eacces) "Could not create new OS thread"))))
    (with-field test "failures"
      (mapcar (lambda (failure) (if (refused-p failure) (add-to-message failure (refusal-words nil params)) failure))
              (field test "failures" '())))))

(defun call-with-evaluation-timeout (evaluation seconds function)
  "Calls FUNCTION, which runs EVALUATION in a copy. After SECONDS the evaluation is left."
  (call-with-alarm seconds
                   (lambda ()
                     (unless (eq (evaluation-state evaluation) :ended) ; its outcome is being sent
                       (setf (evaluation-reason evaluation) :timeout)
                       (stop-here evaluation)))
                   function))

(defun outcome-in-copy (params settings function)
  "Calls FUNCTION with a new evaluation and its time limit in seconds, under the settings that the
  function SETTINGS returns for the session's name. Two values: the JSON that FUNCTION returns, and
  a text about a refusal, or NIL."
  (let* ((session (field params "session"))
         (evaluation (make-evaluation 0 session))
         (timeout (field params "timeout"))
         (*user-settings* (funcall settings session))
         (refusals '())
         (outcome nil))
    (handler-bind ((error (lambda (condition)
                            (when (and (confined-p params) (confinement-refusal-p condition))
                              (setf refusals (cons condition (loop for other in refusals repeat 19 collect other)))))))
      (call-with-evaluation-timeout evaluation timeout (lambda () (setf outcome (funcall function evaluation timeout)))))
    (let* ((error (evaluation-error evaluation))
           (refusal (and error (refusal-behind error refusals))))
      (values (cond ((eq (evaluation-reason evaluation) :timeout)
                     (with-field outcome "error" (error-facts "TIMEOUT" (format nil "Stopped: the deadline of ~A passed." (seconds-text timeout)))))
                    (refusal
                     (with-field outcome "error" (add-to-message error (refusal-words refusal params))))
                    (t outcome))
              (and refusals (refusal-words (first refusals) params))))))

(defun refusal-behind (error refusals)
  "The newest of REFUSALS, conditions, that the message of ERROR, JSON, repeats in whole or by the
  system's message; NIL if there is none. The code may have handled a refusal and failed for another
  reason."
  (let ((message (field error "message")))
    (flet ((repeats-p (text) (and (stringp text) (plusp (length text)) (search text message))))
      ;; The reports of conditions are the user's code, so they are called only if they are needed.
      (if (some (lambda (errno) (repeats-p (system-message errno))) (list sb-posix:eperm sb-posix:eacces))
          (first refusals)
          (find-if (lambda (refusal) (repeats-p (condition-message refusal))) refusals)))))

(defun work-in-copy (params)
  "The JSON of the outcome of the work that PARAMS request, in a copy that is confined as it should
  be."
  (destructuring-bind (settings function) (rest (assoc (field params "work" "evaluate") *works-in-copy* :test #'string=))
    (let* ((name (field params "package"))
           (package (and name (package-called name))))
      (values (outcome-in-copy params settings (lambda (evaluation timeout) (funcall function evaluation params package timeout)))))))

(defun unconfined-outcome (why)
  "The JSON of EvalOutcome if code cannot be confined, for the reason WHY, and nothing was
  evaluated."
  (let ((evaluation (make-evaluation 0 nil)))
    (setf (evaluation-error evaluation)
          (error-facts "CANNOT-CONFINE"
                       (format nil "Nothing was evaluated: this system cannot confine what code does in a copy of the image (~A)." why)))
    (outcome evaluation :error :package "COMMON-LISP-USER")))

(defun eval-in-copy (params)
  "Does the work of the copy: everything after the fork."
  (let ((report (begin-in-copy params)))
    (setf *checking* nil)               ; the compiler prints its usual output
    (multiple-value-bind (confined why) (confine-copy params report)
      (send-line report (object "answer" (if confined (work-in-copy params) (unconfined-outcome why))) :flush t))
    (report-done report '())))

(define-operation "eval-in-copy" :thread (id params)
  (let ((work (param params "work" 'string :default "evaluate")))
    (unless (assoc work *works-in-copy* :test #'string=)
      (refuse "bad-params" "There is no work ~S for a copy" work))
    (unless (string= work "run-tests")
      (param params "code" 'string)
      (param params "session" 'string))
    (when (string= work "profile")
      (profile-of-params params))
    (when (string= work "compare-expansions")
      (param params "old" 'string)
      (param params "new" 'string)
      (param params "variants" 'vector)))
  (param params "timeout" '(real (0)))
  (check-check-params params)
  (answer-from-copy id params 'eval-in-copy))
