;;;; `run-tests` on the test systems of real libraries, as Debian has them.

(in-package :consort)

(defun all-end-p (answer least)
  "Returns true if at least LEAST tests ended in one way or another, each at a place that is known."
  (let ((tests (coerce (path answer "tests") 'list)))
    (or (and (>= (length tests) least)
             (every (lambda (test)
                      (and (member (path test "status") '("passed" "failed" "error" "skipped") :test #'equal)
                           (stringp (path-if-any test "file")) (integerp (path-if-any test "line"))))
                    tests))
        (progn (format t "~&  ~D tests: ~S~%" (length tests) (or (find-if (lambda (test) (not (stringp (path-if-any test "file")))) tests) (path-if-any answer "error")))
               nil))))

(deftest real-suites-of-fiveam
  (with-image (image :debian (append *fiveam* '("cl-split-sequence")))
    ;; FiveAM's own tests, and those that they run: these fail, are skipped and depend on each other
    ;; on purpose.
    (let ((answer (tests-run image "system" "fiveam")))
      (is equal "fiveam" (path answer "framework"))
      (ok (all-end-p answer 20))
      (loop for (name status) in '(("FAIL1" "failed") ("IS2" "failed") ("CIRCULAR-0" "error") ("AND1" "skipped") ("IS1" "passed"))
            do (is equal status (path (test-named answer (concatenate 'string "IT.BESE.FIVEAM::" name)) "status"))))
    ;; Tests that a macro names.
    (let ((answer (tests-run image "system" "split-sequence")))
      (is equal "fiveam" (path answer "framework"))
      (ok (< 100 (length (path answer "tests"))))
      (is equal '() (remove "passed" (statuses answer) :key #'cdr :test #'equal)))))

(deftest real-suites-by-test-op
  (with-image (image :debian '("alexandria" "rt"))
    ;; SB-RT's tests are of no framework that is known: the system's own test-op is the one test.
    (let ((answer (tests-run image "system" "alexandria" "framework" "asdf")))
      (is equal "asdf" (path answer "framework"))
      (is equal '(("alexandria" . "passed")) (statuses answer))
      (ok (text-contains "tests" (path answer "tests" 0 "output" "text"))))))
