;;;; A test that is run in a debugger. The framework would handle its errors, and those that its
;;;; failed checks signal, so the evaluation stops before the framework's handler is called.
;;;; Handlers of the test itself are called first. A failed check of Rove signals nothing, so the
;;;; evaluation stops where the failure is recorded.

(in-package :consort)

(defvar *base-of-test* '() "In a test that stops: the handlers from before it.")
(defvar *errors-passed-on* '() "The errors of the test that a person has passed on to the
  framework.")

(defun stop-test (condition)
  "A handler that stops at CONDITION if it is an error."
  (when (and (typep condition 'error) (not (member condition *errors-passed-on* :test #'eq)))
    (with-simple-restart (continue "Continue: give the test framework the error.")
      (invoke-debugger condition))
    (push condition *errors-passed-on*)))

(defun prepare-to-stop (condition)
  "Called with each condition that a test signals, before its handlers (see *BREAK-ON-SIGNALS*).
  Inserts STOP-TEST before the handlers of the framework. Returns NIL, so that there is no break."
  (when (typep condition 'error)
    (put-before-frameworks-handlers *base-of-test* #'stop-test))
  nil)

(define-condition failed-check (error)
  ((words :initarg :words :reader failed-check-words))
  (:documentation "A failed check of a test that signals nothing itself.")
  (:report (lambda (condition stream) (write-string (failed-check-words condition) stream))))

(defun stop-at-failed-check (assertion)
  "Stops if ASSERTION, which a test of Rove is about to record, reports a failed check. Does not
  stop if it reports an error, because the evaluation has already stopped at that."
  (when (and *stopping-test*
             (framework-type-p assertion :rove/core/result "FAILED-ASSERTION")
             (not (rove-error assertion)))
    (let ((facts (rove-failure assertion)))
      (with-simple-restart (continue "Continue: record the check as failed.")
        (invoke-debugger (make-condition 'failed-check :words (format nil "A check failed: ~A~@[ The value is ~A.~]" (field facts "message")
                                                                      (let ((actual (field facts "actual"))) (and (stringp actual) actual)))))))))

(define-global *watched-record* nil "The function of Rove that STOP-AT-FAILED-CHECKS has
  encapsulated.")

(defun stop-at-failed-checks ()
  "Makes tests of Rove stop where a failed check is recorded, if they are to stop."
  (let ((record (framework-symbol :rove/core/stats "RECORD")))
    (when (and record (fboundp record) (not (eq *watched-record* (fdefinition record))))
      (setf *watched-record* (fdefinition record))
      (encapsulate record 'consort-failed-checks
                   (lambda (function stats result &rest more)
                     (stop-at-failed-check result)
                     (apply function stats result more))))))

(defun call-stopping-test (function)
  "Calls FUNCTION, which runs one test, in an evaluation that stops at errors. Two values: the
  number of times that it stopped at an error and continued, and the list of its values."
  (stop-at-failed-checks)
  (let* ((debug (framework-symbol :rove/core/assertion "*DEBUG-ON-ERROR*"))
         (errors 0)
         (debugger sb-ext:*invoke-debugger-hook*)
         (sb-ext:*invoke-debugger-hook* (lambda (condition hook)
                                          (when (typep condition 'error) (incf errors))
                                          (funcall debugger condition hook))))
    ;; Rove's macros put a handler into the test itself, unless this variable is true.
    (let ((values (multiple-value-list
                   (progv (and debug (list debug)) '(t)
                     (if (can-freeze-tests-p)
                         (let ((*base-of-test* handler-clusters)
                               (*errors-passed-on* '())
                               (*stopping-test* t)
                               (*break-on-signals* `(or (satisfies prepare-to-stop) ,*break-on-signals*)))
                           (funcall (the function function)))
                         (funcall (the function function)))))))
      (values errors values))))

(defun report-test (case errors status checks failures)
  "Prints the outcome of CASE, which continued after ERRORS errors. The other arguments are the
  values of a TEST-CASE's RUN. A framework may report a check that a person continued as skipped."
  (format t "~&~A: ~A~:[~*~;, after ~D error~:P~], ~D check~:P~%~{  ~A~%~}" (shown-name (test-case-name case)) status
          (and (plusp errors) (string= status "passed")) errors checks
          (mapcar (lambda (failure) (field failure "message")) failures)))

(defun debug-test (name package framework)
  "Runs the tests called NAME in an evaluation that stops at errors, and prints how each ended.
  PACKAGE and FRAMEWORK are names that limit the tests, or NIL. Returns NIL, for an evaluation
  without values."
  (let ((cases (handler-case (cases-meant framework nil '() :test name :package (and package (find-package-named package)))
                 (error (condition)
                   (format *error-output* "~&~A~%" (condition-message condition))
                   '()))))
    (dolist (case cases '())
      (multiple-value-bind (errors values) (call-stopping-test (test-case-run case))
        (apply #'report-test case errors values)))))
