;;;; `run-tests`: runs the tests of a system, a package or a suite, or one test. Each test has its
;;;; own outcome.

(in-package :consort)

(defun run-case (case files &optional run)
  "Runs CASE. Returns the JSON of TestResult. RUN is as in CALL-FREEZING-TEST."
  (let ((output (make-capture :limit 20000 :kind 'stdout))
        (start (now-ms))
        (status "error") (checks 0) (failures '()))
    (let ((*standard-output* output) (*error-output* output) (*trace-output* output))
      (unwind-protect
           (handler-case (setf (values status checks failures) (call-freezing-test run (test-case-run case)))
             (error (condition)
               (setf failures (list (failure (concatenate 'string (condition-type condition) ": " (condition-message condition)))))))
        (end-capture output)))
    (when *attempt*
      (answer-of-test *evaluation* (shown-name (test-case-name case)) status checks failures (captured output)))
    (multiple-value-bind (file line) (place-of-case case files)
      (object "name" (shown-name (test-case-name case))
              "suite" (or-null (let ((suite (first (test-case-suites case)))) (and suite (shown-name suite))))
              "status" status
              "checks" checks
              "failures" failures
              "frozen" (or-null (and run (test-run-frozen run)))
              "file" (or-null (and file (sb-ext:native-namestring file)))
              "line" (or-null line)
              "milliseconds" (- (now-ms) start)
              "output" (captured output)))))

(defun place-of-case (case files)
  "Two values: the file and the line of the definition of CASE, in one of FILES or of its system's;
  NIL if they are not known."
  (if (test-case-system-p case)
      (system-place (test-case-name case))
      (test-place (test-case-name case) (append files (files-about (test-case-package case))))))

(defun shown-name (name)
  (if (stringp name) name (with-terse-printing () (prin1-to-string name))))

(defun whole-system-case (system)
  "SYSTEM's own test-op, as one test, for use if no framework lists tests."
  (make-test-case system '() (lambda () (asdf:test-system system) (values "passed" 0 '())) :system-p t))

(defun load-tests (id system asd-files allowed)
  "Loads SYSTEM and its test systems, from ALLOWED files only. Returns their names."
  (call-allowing
   allowed
   (lambda ()
     (load-with-quicklisp-fallback id system asd-files nil)
     (call-with-asd-files asd-files
                          (lambda ()
                            (let ((names (test-system-names system)))
                              (dolist (name names (cons system names))
                                (load-with-quicklisp-fallback id name asd-files nil))))))))

(defun cases-meant (framework systems files &key suite test package)
  "Two values: the tests that the arguments select, and the framework to which they belong."
  (let ((packages (if systems (packages-of-files files) :all)))
    (unless (equal framework "asdf")
      (dolist (known (loaded-frameworks framework))
        (let ((cases (select-cases (funcall (fourth known)) :suite suite :test test :package package :packages packages)))
          (when cases
            (return-from cases-meant (values cases (first known)))))))
    (if (and systems (not suite) (not test) (not package))
        (values (list (whole-system-case (first systems))) "asdf")
        (error "No test is found~@[ called ~A~]~@[ in the suite ~A~]~@[ in the package ~A~]. ~:[No framework is loaded: load the system that has the tests, or name it as `system`~;Loaded: ~:*~{~A~^, ~}~]."
               test suite (and package (package-name package)) (mapcar #'first (loaded-frameworks nil))))))

(defun report-progress (id done total case)
  (send-event "progress" "id" id "message" (format nil "testing ~A" (shown-name (test-case-name case))) "done" done "total" total))

(defun run-tests (evaluation params package timeout tell)
  "Runs the tests that PARAMS request as EVALUATION, with *USER-SETTINGS*. Returns the JSON of
  RunTestsOutcome. TELL is called before each test with the number of finished tests, the number of
  all tests, and the test."
  (let* ((system (param params "system" 'string :default nil))
         (suite (param params "suite" 'string :default nil))
         (test (param params "test" 'string :default nil))
         (framework (param params "framework" 'string :default nil))
         (asd-files (map 'list #'sb-ext:parse-native-namestring (param params "asd_files" 'vector :default #())))
         (allowed (allowed-param params))
         (freeze (freeze-param params))
         (run (and freeze (make-test-run evaluation freeze)))
         (results '())
         (kind nil))
    (setf (evaluation-freeze-threads evaluation) freeze)
    (let ((how (call-evaluating
                (lambda ()
                  (let* ((systems (and system (load-tests (evaluation-id evaluation) (string-downcase system) asd-files allowed)))
                         (files (mapcan #'system-files (copy-list systems))))
                    (multiple-value-bind (cases found) (cases-meant framework systems files :suite suite :test test :package package)
                      (setf kind found)
                      (loop with total = (length cases)
                            for case in cases
                            for done from 0
                            do (funcall tell done total case)
                               (push (run-case case files run) results)))))
                evaluation :timeout timeout)))
      (append (outcome evaluation how :package (package-of-settings *user-settings*) :timeout timeout)
              (list "framework" (or-null kind) "tests" (reverse results))))))

(define-operation "run-tests" :thread (id params)
  (let* ((package (let ((name (param params "package" 'string :default nil))) (and name (find-package-named name))))
         (framework (param params "framework" 'string :default nil))
         (timeout (param params "timeout" '(real (0)) :default 30))
         (evaluation (or *own-evaluation* (make-evaluation id nil)))
         (*user-settings* (copy-of-settings :tables nil))) ; systems are loaded
    (when framework
      (loaded-frameworks framework))
    (run-tests evaluation params package timeout (lambda (done total case) (report-progress id done total case)))))
