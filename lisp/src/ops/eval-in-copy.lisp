;;;; `eval-in-copy`: forms evaluated in a confined copy of the image that says to the host what came of it and leaves. Everything that is
;;;; loaded is at hand, and the REPL variables of the session; nothing of what the forms do is kept.

(in-package :consort)

(defun settings-of-session (name)
  "The settings of the session NAME, as they were after its last evaluation; those of a new one where it has none."
  (let ((session (gethash name *sessions*)))
    (or (and session (session-settings session))
        (copy-of-settings))))

(defun refusal-words (condition)
  "Why the system refused what CONDITION tells of, in a copy."
  (format nil "(It was evaluated in a copy of the image, which is confined: it cannot write files, start programs or threads, or use the network~@[, ~
and ~A is none of the files that it can read, which are the workspace's, Lisp's own and those that check.read names in the person's config.toml~].)"
          (unread-file condition)))

(defun add-to-message (error words)
  "The JSON of EvalError ERROR with WORDS after its message."
  (object "type" (field error "type") "message" (format nil "~A ~A" (field error "message") words) "backtrace" (field error "backtrace")))

(defun with-error (outcome error)
  "The JSON of EvalOutcome OUTCOME, with that of EvalError ERROR for its own."
  (apply #'object (loop for (key value) on (rest outcome) by #'cddr
                        collect key collect (if (string= key "error") error value))))

(defun outcome-in-copy (params code package)
  "The JSON of EvalOutcome for CODE in PACKAGE, that of the session of PARAMS where it is NIL; and the words about what was refused, or NIL."
  (let* ((evaluation (make-evaluation 0 (field params "session")))
         (timeout (field params "timeout"))
         (*user-settings* (settings-of-session (field params "session")))
         (refused nil)
         (outcome nil))
    (handler-bind ((error (lambda (condition)
                            (when (and (confined-p params) (confinement-errno condition))
                              (setf refused (refusal-words condition))))))
      (call-with-alarm timeout
                       (lambda ()
                         (setf (evaluation-reason evaluation) :timeout)
                         (stop-here evaluation))
                       (lambda ()
                         (setf outcome (evaluate evaluation code
                                                 :package package :timing (eq (field params "capture_time") :true) :deadline timeout)))))
    (values (cond ((eq (evaluation-reason evaluation) :timeout)
                   (with-error outcome (error-facts "TIMEOUT" (format nil "Stopped: the deadline of ~A passed." (seconds-text timeout)))))
                  ((and refused (evaluation-error evaluation))
                   (with-error outcome (add-to-message (evaluation-error evaluation) refused)))
                  (t outcome))
            refused)))

(defun evaluation-in-copy (params)
  "The JSON of EvalOutcome for the text of PARAMS, in a copy that is confined as it should be."
  (let ((name (field params "package")))
    (values (outcome-in-copy params (field params "code") (and name (package-called name))))))

(defun unconfined-outcome ()
  "The JSON of EvalOutcome where code cannot be confined: nothing was evaluated."
  (let ((evaluation (make-evaluation 0 nil)))
    (setf (evaluation-error evaluation)
          (error-facts "CANNOT-CONFINE" "Nothing was evaluated: this system cannot confine what code does in a copy of the image (no seccomp)."))
    (outcome evaluation :error :package "COMMON-LISP-USER")))

(defun eval-in-copy (params)
  "What the copy does: everything after the fork."
  (let ((report (begin-in-copy params)))
    (setf *checking* nil)               ; the compiler prints what it always does
    (send-line report (object "answer" (if (confine-copy params report) (evaluation-in-copy params) (unconfined-outcome))) :flush t)
    (tell-done report '())))

(define-operation "eval-in-copy" :thread (id params)
  (param params "code" 'string)
  (param params "session" 'string)
  (param params "timeout" '(real (0)))
  (check-check-params params)
  (answer-from-copy id params 'eval-in-copy))
