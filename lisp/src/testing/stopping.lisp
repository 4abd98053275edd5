;;;; A test that is run in a debugger. The framework would handle its errors, and those that its
;;;; failed checks signal: the evaluation stops before the framework's handler is called. Handlers
;;;; of the test itself come before. A failed check of Rove signals nothing: the evaluation stops
;;;; where it is recorded.

(in-package :consort)

(defvar *base-of-test* '() "In a test that stops: the handlers from before it.")
(defvar *errors-passed-on* '() "The errors of the test that a person had passed on to the framework.")

(defun stop-test (condition)
  "A handler that stops at CONDITION if it is an error."
  (when (and (typep condition 'error) (not (member condition *errors-passed-on* :test #'eq)))
    (with-simple-restart (continue "Continue: give the test framework the error.")
      (invoke-debugger condition))
    (push condition *errors-passed-on*)))

(defun prepare-to-stop (condition)
  "Called with each condition that a test signals, before its handlers; see *BREAK-ON-SIGNALS*. Has
  STOP-TEST be called before the handlers of the framework. Returns NIL: nothing breaks."
  (when (typep condition 'error)
    (put-before-frameworks-handlers *base-of-test* #'stop-test))
  nil)

(define-condition failed-check (error)
  ((words :initarg :words :reader failed-check-words))
  (:documentation "A check of a test failed that signals nothing itself.")
  (:report (lambda (condition stream) (write-string (failed-check-words condition) stream))))

(defun stop-at-failed-check (assertion)
  "Stops if ASSERTION, which a test of Rove is about to record, says that a check failed, and no
  error that the evaluation has stopped at already."
  (when (and *stopping-test*
             (framework-type-p assertion :rove/core/result "FAILED-ASSERTION")
             (not (rove-error assertion)))
    (let ((facts (rove-failure assertion)))
      (with-simple-restart (continue "Continue: record the check as failed.")
        (invoke-debugger (make-condition 'failed-check :words (format nil "A check failed: ~A~@[ The value is ~A.~]" (field facts "message")
                                                                      (let ((actual (field facts "actual"))) (and (stringp actual) actual)))))))))

(define-global *watched-record* nil "The function of Rove that STOP-AT-FAILED-CHECKS has encapsulated.")

(defun stop-at-failed-checks ()
  "Has tests of Rove stop where a failed check is recorded, if they are to stop."
  (let ((record (framework-symbol :rove/core/stats "RECORD")))
    (when (and record (fboundp record) (not (eq *watched-record* (fdefinition record))))
      (setf *watched-record* (fdefinition record))
      (encapsulate record 'consort-failed-checks
                   (lambda (function stats result &rest more)
                     (stop-at-failed-check result)
                     (apply function stats result more))))))

(defun call-stopping-test (function)
  "Calls FUNCTION, which runs one test, in an evaluation that stops at errors. Returns how often it
  stopped at an error and went on, and the list of its values."
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
  "Prints the outcome of CASE, which went on after that many ERRORS; the other arguments are as in a
  TEST-CASE's answer. A framework may take a check that a person continued for a skipped one."
  (format t "~&~A: ~A~:[~*~;, after ~D error~:P~], ~D check~:P~%~{  ~A~%~}" (shown-name (test-case-name case)) status
          (and (plusp errors) (string= status "passed")) errors checks
          (mapcar (lambda (failure) (field failure "message")) failures)))

(defun debug-test (name package framework)
  "Runs the tests called NAME, of the package and framework of these names unless they are NIL, in
  an evaluation that stops at errors, and prints how each ended. Returns a list of no values."
  (let ((cases (handler-case (cases-meant framework nil '() :test name :package (and package (find-package-named package)))
                 (error (condition)
                   (format *error-output* "~&~A~%" (condition-message condition))
                   '()))))
    (dolist (case cases '())
      (multiple-value-bind (errors values) (call-stopping-test (test-case-run case))
        (apply #'report-test case errors values)))))
