;;;; `record`: runs a form or a test once in a confined copy of the image and records it. The copy
;;;; stays and answers queries about the recording until the host closes its socket.

(in-package :consort)

(defconstant +definitions-seconds+ 20 "The maximum time in seconds in which definitions are prepared
  for the recording.")

;;; The code to record

(defun names-in-text (text)
  "The names of functions in the forms of TEXT, read in the current package."
  (let ((names '()) (at 0) (text (coerce text 'simple-string)))
    (handler-case
        (loop
          (let ((start (skip-blanks text at)))
            (when (>= start (length text)) (return))
            (multiple-value-bind (form end) (read-placing text start)
              (setf names (append names (symbols-in form)) at end))))
      (error () nil)) ; the evaluation reports the error
    (remove-duplicates names :test #'equal :from-end t)))

(defun names-of-package (package)
  "The names of the functions of PACKAGE, 200 at most."
  (loop for symbol in (package-own-symbols package)
        when (callable-name-p symbol) collect symbol into names
        when (= (length names) 200) do (return names)
        finally (return names)))

(defun names-of-test (case)
  "The names of functions in the definition of the test CASE, if its file is found. Otherwise the
  names of the functions of its package."
  (or (handler-case
          (multiple-value-bind (file line) (test-place (test-case-name case) (files-about (test-case-package case)))
            (let* ((text (and file (text-of-file (sb-ext:native-namestring file) nil)))
                   (start (and text (point-offset text line 1)))
                   (pieces (and start (toplevel-pieces text)))
                   (piece (and pieces (piece-at pieces start))))
              (when piece
                (let ((*package* (package-before text pieces piece)))
                  (names-in-text (subseq text (car piece) (cdr piece)))))))
        (error () nil))
      (and (test-case-package case) (names-of-package (test-case-package case)))))

(defun names-given (params)
  "The names of the functions that PARAMS name, or NIL if they name none."
  (loop for text across (param params "functions" 'vector :default #())
        collect (or (and (stringp text)
                         (let ((name (ignore-errors (parse-function-name text *package*))))
                           (and name (fboundp name) name)))
                    (error "There is no function ~A to record" text))))

(defun test-meant (name)
  "The test called NAME. If there are several, the one that has that name in the current package."
  (let* ((cases (cases-meant nil nil '() :test name))
         (near (remove-if-not (lambda (case)
                                (let ((symbol (test-case-name case)))
                                  (and (symbolp symbol) (eq symbol (find-symbol (symbol-name symbol) *package*)))))
                              cases)))
    (cond ((null (rest cases)) (first cases))
          ((and near (null (rest near))) (first near))
          (t (error "There are ~D tests called ~A: name the one with its package, as PACKAGE::NAME" (length cases) name)))))

(defun directories-recorded (params)
  (map 'list (lambda (name) (concatenate 'string (string-right-trim "/" name) "/")) (field params "within" #())))

(defun call-recording-test (log case)
  "Runs the test CASE and records it. Returns its values. Notes the failures of its checks in LOG."
  (let ((values (call-recording log (lambda () (multiple-value-list (funcall (test-case-run case)))))))
    (setf (event-log-failures log) (coerce (third values) 'list)
          (event-log-package log) (or (test-case-package case) (user-package)))
    (values-list values)))

(defun record-as-asked (evaluation params package log timeout)
  "Runs the code or test that PARAMS request as EVALUATION, and records it in LOG. Three values: the
  JSON of EvalOutcome, the recorded units, and the number of functions that were left out."
  (let ((units '()) (left-out 0) (values '())
        (test (param params "test" 'string :default nil))
        (code (field params "code" "")))
    (flet ((prepare (names)
             (let ((given (names-given params)))
               (setf (values units left-out)
                     (record-definitions (or given names) (if given :all (directories-recorded params))
                                         :limit (if given most-positive-fixnum +recorded-definitions+)
                                         :follow (null given)
                                         :until (+ (now-ms) (* 1000 (min +definitions-seconds+ (/ timeout 2)))))))))
      (let ((how (call-evaluating
                  (lambda ()
                    (setf values
                          (values-facts
                           (multiple-value-list
                            (cond (test
                                   (let ((case (test-meant test)))
                                     (prepare (names-of-test case))
                                     (call-recording-test log case)))
                                  (t
                                   (prepare (names-in-text code))
                                   (call-recording log
                                                   (lambda ()
                                                     (evaluate-recorded code (param params "file" 'string :default "")
                                                                        (param params "line" '(integer 1) :default 1)
                                                                        (param params "column" '(integer 1) :default 1))))))))))
                  evaluation :package package)))
        (values (outcome evaluation how :values (when (eq how :ok) values) :package (package-of-settings *user-settings*) :timeout timeout)
                units left-out)))))

(defun recording (params log)
  "The JSON of Recording, in a copy that is confined as it should be."
  (let ((units '()) (left-out 0))
    (take-out-all)
    (let ((outcome (outcome-in-copy params #'settings-of-session
                                    (lambda (evaluation timeout)
                                      (multiple-value-bind (outcome recorded others)
                                          (record-as-asked evaluation params
                                                           (let ((name (field params "package"))) (and name (package-called name)))
                                                           log timeout)
                                        (setf units recorded left-out others)
                                        outcome)))))
      (object "outcome" outcome
              "events" (event-log-count log) "first" (event-log-first log) "calls" (max 0 (1- (event-log-calls log)))
              "skipped" (event-log-skipped log)
              "failed_checks" (length (event-log-failures log))
              "definitions" (map 'vector #'unit-words units) "left_out" left-out))))

;;; In the copy

(defun serve-recording (log report)
  "Answers the host's queries until it closes the socket. Does not return."
  (let ((reader (make-line-reader (report-descriptor report))))
    (loop
      (let ((params (or (next-message reader) (exit-process 0))))
        (send-line report (object "answer" (with-own-settings () (answer-recording-query log params))) :flush t)
        (report-done report '())))))

(defun keep-recording (params log function)
  "Does the work of the copy, everything after the fork. FUNCTION fills LOG and returns the JSON of
  its Recording."
  (let ((report (begin-in-copy params)))
    (setf *checking* nil)               ; the compiler prints its usual output
    (multiple-value-bind (confined why) (confine-copy params report)
      (send-line report
                 (object "answer" (if confined
                                      (funcall function)
                                      (object "outcome" (unconfined-outcome why) "events" 0 "first" 0 "calls" 0 "skipped" 0
                                              "definitions" #() "left_out" 0)))
                 :flush t))
    (report-done report '())
    (serve-recording log report)))

(defun record-in-copy (params)
  "Does the work of the copy that runs and records the code."
  (let ((log (make-event-log)))
    (keep-recording params log (lambda () (recording params log)))))

(define-operation "record" :thread (id params)
  (param params "code" 'string :default "")
  (param params "test" 'string :default nil)
  (param params "session" 'string)
  (param params "timeout" '(real (0)))
  (param params "functions" 'vector :default #())
  (param params "within" 'vector :default #())
  (check-check-params params)
  (unless (can-probe-p) (refuse "bad-params" "This SBCL lacks what a recording takes"))
  (answer-from-copy id params 'record-in-copy))
