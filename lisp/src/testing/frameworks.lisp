;;;; The test frameworks. None is needed to build this file, because their symbols are looked up
;;;; when tests are run. A framework lists its TEST-CASEs. Running one returns its status, the
;;;; number of its checks, and its failures.

(in-package :consort)

(defstruct (test-case (:constructor make-test-case (name suites run &key system-p)))
  "NAME is a symbol or string. SUITES are the names of the suites that contain the test, nearest
  first. RUN is called without arguments and returns the status, the number of checks, and the
  failures. SYSTEM-P is true for all tests of the ASDF system NAME as one."
  (name nil :read-only t)
  (suites '() :type list :read-only t)
  (run nil :type function :read-only t)
  (system-p nil :read-only t))

(defun framework-symbol (package name)
  "The symbol that PACKAGE calls NAME; NIL if there is no such package or symbol."
  (let ((found (find-package package)))
    (and found (find-symbol name found))))

(defun call-framework (package name &rest arguments)
  "Calls the function NAME of PACKAGE."
  (let ((symbol (framework-symbol package name)))
    (unless (and symbol (fboundp symbol))
      (error "~A has no function ~A: this version of it is not known to Consort." package name))
    (apply symbol arguments)))

(defun framework-type-p (object package name)
  (let ((symbol (framework-symbol package name)))
    (and symbol (find-class symbol nil) (typep object symbol))))

(defun shown (object)
  "OBJECT as text, for a report."
  (with-terse-printing ()
    (text-of (print-safely object 2000 #'prin1))))

(defun failure (message &key expression expected actual)
  "The JSON of Failure."
  (object "message" (text-of (print-safely message 4000 #'princ)) "expression" (or-null expression)
          "expected" (or-null expected) "actual" (or-null actual)))

(defun compact (text)
  "TEXT without the line breaks and indentation of a framework's layout."
  (format nil "~{~A~^ ~}"
          (loop for start = (position-if-not #'blank-p text) then (position-if-not #'blank-p text :start end)
                while start
                for end = (or (position-if #'blank-p text :start start) (length text))
                collect (subseq text start end))))

(defun blank-p (char)
  (member char '(#\Space #\Newline #\Tab #\Return)))

(defun between (text before after)
  "Returns the part of TEXT between BEFORE and AFTER; NIL if they are not in it. If AFTER is NIL,
  the part up to the end."
  (let* ((at (search before text))
         (start (and at (+ at (length before))))
         (end (and start (if after (search after text :start2 start) (length text)))))
    (and end (string-trim " ." (subseq text start end)))))

(defun worst (statuses)
  (or (find "error" statuses :test #'string=) (find "failed" statuses :test #'string=)
      (if (and statuses (every (lambda (status) (string= status "skipped")) statuses)) "skipped" "passed")))

;;; FiveAM

(defun fiveam-cases ()
  (let ((cases '()))
    (labels ((walk (suite suites)
               (loop for name being the hash-keys of (call-framework :fiveam "TESTS" suite) using (hash-value value)
                     for test = (if (symbolp value) (call-framework :fiveam "GET-TEST" value) value)
                     do (cond ((framework-type-p test :fiveam "TEST-SUITE") (walk test (cons name suites)))
                              (test (pushnew (fiveam-case name suites) cases :key #'test-case-name))))))
      (walk (call-framework :fiveam "GET-TEST" nil) '())
      (dolist (name (symbol-value (framework-symbol :fiveam "*TOPLEVEL-SUITES*")))
        (let ((suite (and name (call-framework :fiveam "GET-TEST" name))))
          (when suite (walk suite (list name))))))
    (nreverse cases)))

(defun fiveam-case (name suites)
  (make-test-case name suites
                  (lambda ()
                    (let ((results (progv (list (framework-symbol :fiveam "*TEST-DRIBBLE*")) (list *standard-output*)
                                     (remove name (call-framework :fiveam "RUN" name :print-names nil)
                                             :test-not #'eq :key #'fiveam-result-name))))
                      (values (worst (mapcar #'fiveam-status results))
                              (length results)
                              (mapcar #'fiveam-failure (remove-if-not (lambda (result) (framework-type-p result :fiveam "TEST-FAILURE")) results)))))))

(defun fiveam-result-name (result)
  (call-framework :fiveam "NAME" (call-framework :fiveam "TEST-CASE" result)))

(defun fiveam-status (result)
  (cond ((framework-type-p result :fiveam "UNEXPECTED-TEST-FAILURE") "error")
        ((framework-type-p result :fiveam "TEST-FAILURE") "failed")
        ((framework-type-p result :fiveam "TEST-SKIPPED") "skipped")
        (t "passed")))

(defun fiveam-failure (result)
  "A failure, with the expected and the actual value if FiveAM's message contains them (`X evaluated
  to A which is not EQL to B`)."
  (let* ((reason (compact (princ-to-string (or (call-framework :fiveam "REASON" result) "failed"))))
         (relation (between reason " which is not " nil))
         (to (and relation (search " to " relation))))
    (failure reason
             :expression (ignore-errors (let ((form (call-framework :fiveam "TEST-EXPR" result))) (and form (shown form))))
             :actual (between reason " evaluated to " " which is not ")
             :expected (and to (subseq relation (+ to 4))))))

;;; Parachute

(defun parachute-cases ()
  (loop for package in (list-all-packages)
        nconc (loop for test in (call-framework :parachute "PACKAGE-TESTS" package)
                    collect (parachute-case test))))

(defun parachute-case (test)
  (make-test-case (parachute-symbol test)
                  (loop for parent = (call-framework :parachute "PARENT" test) then (call-framework :parachute "PARENT" parent)
                        while parent collect (parachute-symbol parent))
                  (lambda ()
                    (let* ((report (parachute-report test))
                           (results (remove-if-not (lambda (result) (framework-type-p result :parachute "RESULT"))
                                                   (parachute-leaves report test))))
                      (values (parachute-status report)
                              (length results)
                              (loop for result in results
                                    when (eq (call-framework :parachute "STATUS" result) :failed) collect (parachute-failure result)))))))

(defvar *stopping-test* nil "True in a test that is to stop at failed checks.")

(defun parachute-report (test)
  "Runs TEST. Returns the report. In a test that stops, the report signals an error for a failed
  check."
  (let ((interactive (and *stopping-test* (framework-symbol :parachute "INTERACTIVE"))))
    (if interactive
        (call-framework :parachute "TEST" test :report interactive)
        (call-framework :parachute "TEST" test :report (framework-symbol :parachute "PLAIN") :stream *standard-output*))))

(defun parachute-symbol (test)
  (let ((name (call-framework :parachute "NAME" test)))
    (if (symbolp name) name (string name))))

(defun parachute-leaves (result test)
  "The results below RESULT that belong to TEST itself, not to its children, and have no results
  below them."
  (if (framework-type-p result :parachute "PARENT-RESULT")
      (loop for child being the elements of (parachute-children result)
            unless (and (framework-type-p child :parachute "TEST-RESULT") (not (eq (call-framework :parachute "EXPRESSION" child) test)))
              nconc (parachute-leaves child test))
      (list result)))

(defun parachute-children (result)
  (coerce (if (and (framework-symbol :parachute "CHILDREN") (ignore-errors (call-framework :parachute "CHILDREN" result)))
              (call-framework :parachute "CHILDREN" result)
              (call-framework :parachute "RESULTS" result))
          'vector))

(defun parachute-status (result)
  (ecase (call-framework :parachute "STATUS" result)
    (:failed "failed")
    (:skipped "skipped")
    ((:passed :unknown) "passed")))

(defun parachute-failure (result)
  (let ((value (ignore-errors (call-framework :parachute "VALUE" result)))
        (comparison (framework-type-p result :parachute "COMPARISON-RESULT")))
    (failure (compact (call-framework :parachute "FORMAT-RESULT" result :extensive))
             :expression (shown (call-framework :parachute "EXPRESSION" result))
             :actual (if (typep value 'condition) (condition-message value) (shown value))
             :expected (and comparison (shown (ignore-errors (call-framework :parachute "EXPECTED" result)))))))

;;; Rove

(defun rove-cases ()
  (loop for suite in (rove-suites)
        nconc (loop with package = (call-framework :rove/core/suite/package "SUITE-NAME" suite)
                    for name in (call-framework :rove/core/suite/package "SUITE-TESTS" suite)
                    collect (rove-case suite package name))))

(defun rove-suites ()
  (if (framework-symbol :rove/core/suite/package "ALL-SUITES")
      (call-framework :rove/core/suite/package "ALL-SUITES")
      (loop for suite being the hash-values of (symbol-value (framework-symbol :rove/core/suite/package "*PACKAGE-SUITES*")) collect suite)))

(defun rove-case (suite suite-name name)
  (make-test-case name (list suite-name)
                  (lambda ()
                    (let ((stats (make-instance (framework-symbol :rove/core/stats "STATS"))))
                      (progv (list (framework-symbol :rove/core/stats "*STATS*")) (list stats)
                        (rove-hooks suite "SUITE-BEFORE-HOOKS")
                        (unwind-protect (funcall (call-framework :rove/core/suite/package "GET-TEST" name))
                          (rove-hooks suite "SUITE-AFTER-HOOKS")))
                      (let ((failed (rove-assertions (coerce (call-framework :rove/core/stats "STATS-FAILED" stats) 'list) "TEST-FAILED-ASSERTIONS"))
                            (passed (rove-assertions (coerce (call-framework :rove/core/stats "STATS-PASSED" stats) 'list) "TEST-PASSED-ASSERTIONS"))
                            (pending (rove-assertions (coerce (call-framework :rove/core/stats "STATS-PENDING" stats) 'list) "TEST-PENDING-ASSERTIONS")))
                        (values (cond ((find-if #'rove-error failed) "error")
                                      (failed "failed")
                                      ((and pending (null passed)) "skipped")
                                      (t "passed"))
                                (+ (length failed) (length passed) (length pending))
                                (mapcar #'rove-failure failed)))))))

(defun rove-hooks (suite which)
  (dolist (hook (reverse (call-framework :rove/core/suite/package which suite)))
    (funcall (if (consp hook) (cdr hook) hook))))

(defun rove-assertions (results reader)
  "The assertions among RESULTS. These are assertions, and tests that contain assertions."
  (loop for result in results
        if (framework-type-p result :rove/core/result "TEST")
          append (rove-assertions (coerce (call-framework :rove/core/result reader result) 'list) reader)
        else collect result))

(defun rove-error (assertion)
  "The condition that ended the test, if ASSERTION reports one."
  (let ((reason (call-framework :rove/core/result "ASSERTION-REASON" assertion)))
    (and (typep reason 'condition) reason)))

(defun rove-failure (assertion)
  (let ((reason (call-framework :rove/core/result "ASSERTION-REASON" assertion))
        (form (call-framework :rove/core/result "ASSERTION-FORM" assertion))
        (values (call-framework :rove/core/result "ASSERTION-VALUES" assertion)))
    (failure (format nil "~A~@[ ~A~]" (call-framework :rove/core/result "ASSERTION-DESCRIPTION" assertion)
                     (and (typep reason 'condition) (condition-message reason)))
             :expression (shown form)
             :actual (and values (shown (if (rest values) values (first values)))))))

;;; The frameworks that are loaded

(defparameter *frameworks*
  '(("fiveam" :fiveam "GET-TEST" fiveam-cases)
    ("parachute" :parachute "PACKAGE-TESTS" parachute-cases)
    ("rove" :rove/core/suite/package "SUITE-TESTS" rove-cases))
  "The frameworks, as lists of a name, a package, one of its functions that exists if the framework
  is loaded, and the function that lists its tests.")

(defun framework-loaded-p (framework)
  (let ((symbol (framework-symbol (second framework) (third framework))))
    (and symbol (fboundp symbol))))

(defun loaded-frameworks (name)
  "Returns the frameworks that are loaded; only the one called NAME, if that is not NIL."
  (let ((named (if name (remove name *frameworks* :key #'first :test-not #'string-equal) *frameworks*)))
    (when (and name (null named) (not (string-equal name "asdf")))
      (refuse "bad-params" "There is no framework ~A. Known are fiveam, parachute, rove and asdf." name))
    (remove-if-not #'framework-loaded-p named)))
