;;;; `run-tests`, with FiveAM as Debian has it (cl-fiveam), and with stand-ins for Parachute and
;;;; Rove.

(in-package :consort)

(defun tests-run (image &rest fields)
  "The answer to running tests; for an error frame, that."
  (result-or-error (apply #'call image "run-tests" (if (given-p "timeout" fields) fields (list* "timeout" *patience* fields)))))

(defun given-p (name fields)
  "Returns true if FIELDS, names and values, have NAME."
  (loop for (key) on fields by #'cddr thereis (equal key name)))

(defun test-named (answer name)
  (or (find name (path answer "tests") :key (lambda (test) (path test "name")) :test #'equal) (object)))

(defun statuses (answer)
  (sort (map 'list (lambda (test) (cons (path test "name") (path test "status"))) (path answer "tests")) #'string< :key #'car))

(defparameter *fiveam* '("fiveam" "alexandria" "asdf-flv" "trivial-backtrace") "FiveAM and what it depends on, as Debian has them.")

(defun write-shop ()
  "A system with a FiveAM test system that its test-op is handed on to; its .asd files."
  (write-file "shop/lib.lisp" "(defpackage :shop (:use :cl) (:export #:price)) (in-package :shop) (defun price (n) (* 2 n))")
  (write-file "shop/tests.lisp" "(defpackage :shop/tests (:use :cl :fiveam))
(in-package :shop/tests)
(def-suite all)
(def-suite prices :in all)
(in-suite prices)
(test good
  (princ \"looking\") (is (= 4 (shop:price 2))) (is (= 6 (shop:price 3))))
(test wrong (is (= 5 (shop:price 2))))
(def-test broken () (is (= 1 (error \"no price\"))))
(test (late :depends-on wrong) (pass))
")
  (list (write-file "shop/shop.asd" "(asdf:defsystem \"shop\" :components ((:file \"lib\")) :in-order-to ((test-op (test-op \"shop/tests\"))))
(asdf:defsystem \"shop/tests\" :depends-on (\"shop\" \"fiveam\") :components ((:file \"tests\")) :perform (test-op (o c) (uiop:symbol-call :fiveam '#:run! (uiop:find-symbol* '#:all :shop/tests))))")))

(deftest tests-of-fiveam
  (with-image (image :debian *fiveam*)
    (let* ((files (write-shop))
           (answer (tests-run image "system" "shop" "asd_files" files)))
      (is equal "ok" (path answer "status"))
      (is equal "fiveam" (path answer "framework"))
      (is equal '(("SHOP/TESTS::BROKEN" . "error") ("SHOP/TESTS::GOOD" . "passed") ("SHOP/TESTS::LATE" . "skipped") ("SHOP/TESTS::WRONG" . "failed"))
          (statuses answer))
      (let ((good (test-named answer "SHOP/TESTS::GOOD")) (wrong (test-named answer "SHOP/TESTS::WRONG")))
        (is equal "SHOP/TESTS::PRICES" (path good "suite"))
        (is = 2 (path good "checks"))
        (ok (text-contains "looking" (path good "output" "text")))
        (ok (text-contains "shop/tests.lisp" (path good "file")))
        (is = 6 (path good "line"))
        (is = 8 (path wrong "line"))
        (ok (realp (path wrong "milliseconds")))
        (ok (text-contains "evaluated to" (path wrong "failures" 0 "message")))
        (is equal "4" (path wrong "failures" 0 "actual"))
        (is equal "5" (path wrong "failures" 0 "expected"))
        (ok (text-contains "no price" (path (test-named answer "SHOP/TESTS::BROKEN") "failures" 0 "message"))))
      (ok (events image "progress")))
    (is equal '(("SHOP/TESTS::GOOD" . "passed")) (statuses (tests-run image "test" "good")))
    (is equal '(("SHOP/TESTS::GOOD" . "passed")) (statuses (tests-run image "test" "shop/tests::good" "package" "SHOP/TESTS")))
    (is = 4 (length (statuses (tests-run image "suite" "all"))))
    (is = 4 (length (statuses (tests-run image "package" "shop/tests" "framework" "fiveam"))))
    (is equal "error" (path (tests-run image "test" "no-such-test") "status"))
    (ok (text-contains "no-such-test" (path (tests-run image "test" "no-such-test") "error" "message")))
    (is equal "bad-params" (path (tests-run image "framework" "junit") "error" "kind"))
    (is equal "package-not-found" (path (tests-run image "package" "no-such") "error" "kind"))
    (let ((answer (tests-run image "system" "shop" "framework" "asdf" "asd_files" '())))
      (is equal "asdf" (path answer "framework"))
      (ok (text-contains "shop.asd" (path answer "tests" 0 "file")))
      (is = 1 (path answer "tests" 0 "line"))
      (is equal "(NIL 2)" (first-value image "(list (consort::defines-system-p \"(defsystem \\\"shop/tests\\\"\" \"shop\") (nth-value 1 (consort::system-place \"shop/tests\")))")))))

(deftest tests-of-parachute-and-rove
  (with-image (image)
    (is equal "ok" (path (call image "load-file" "path" (concatenate 'string (namestring (directory-namestring cl-user::*tests-directory*)) "stand-ins.lisp")
                               "if_missing" "error") "result" "status"))
    (let ((parachute (write-file "p.lisp" "(defpackage :p-tests (:use :cl :parachute))
(in-package :p-tests)
(define-test sums (is = 3 (+ 1 2)))
(define-test products :parent sums
  (is = 7 (* 2 3)))
(define-test breaks (is = 1 (error \"broken\")))
"))
          (rove (write-file "r.lisp" "(defpackage :r-tests (:use :cl :rove))
(in-package :r-tests)
(deftest sums (testing \"small\" (ok (= 3 (+ 1 2)))))
(deftest products (testing \"large\" (ok (= 7 (* 2 3)))))
(deftest breaks (error \"broken\"))
")))
      (dolist (file (list parachute rove))
        (is equal "ok" (path (call image "load-file" "path" file "if_missing" "error") "result" "status")))
      (loop for (framework package wrong-actual) in '(("parachute" "P-TESTS" "6") ("rove" "R-TESTS" "(7 6)"))
            do (let ((answer (tests-run image "package" package)))
                 (flet ((named (name) (test-named answer (concatenate 'string package "::" name))))
                   (is equal framework (path answer "framework"))
                   (is equal "passed" (path (named "SUMS") "status"))
                   (is equal "failed" (path (named "PRODUCTS") "status"))
                   (is equal wrong-actual (path (named "PRODUCTS") "failures" 0 "actual"))
                   (ok (text-contains "broken" (format nil "~A~A" (path (named "BREAKS") "failures" 0 "message") (path-if-any (named "BREAKS") "failures" 0 "actual"))))
                   (is = 1 (path (named "SUMS") "checks"))
                   (is = 3 (path (named "SUMS") "line"))
                   (is = 4 (path (named "PRODUCTS") "line")))))
      (is equal "7" (path (test-named (tests-run image "test" "products" "framework" "parachute") "P-TESTS::PRODUCTS") "failures" 0 "expected")))))

(deftest tests-that-do-not-end
  (with-image (image)
    (is equal "ok" (path (call image "load-file" "path" (concatenate 'string (namestring (directory-namestring cl-user::*tests-directory*)) "stand-ins.lisp")
                               "if_missing" "error") "result" "status"))
    (evaluated image "(defpackage :e-tests (:use :cl :rove)) (in-package :e-tests) (deftest early (ok (= 1 1))) (deftest endless (loop))")
    (is equal "timeout" (path (tests-run image "package" "e-tests" "timeout" 1) "status"))
    ;; The tests that have ended by then are told; the deadline may come before there is one, an
    ;; interrupt does not.
    (let ((id (send image "run-tests" "timeout" *patience* "package" "e-tests")))
      (await-event image "progress" :id id
                   :which (lambda (events) (find-if (lambda (event) (text-contains "ENDLESS" (string-upcase (path event "message")))) events)))
      (call image "interrupt" "target" id)
      (let ((answer (path (answer image id) "result")))
        (is equal "interrupted" (path answer "status"))
        (is equal '(("E-TESTS::EARLY" . "passed")) (remove "E-TESTS::ENDLESS" (statuses answer) :key #'car :test #'equal))))))

(defun debugged-test (image name &rest fields)
  "Begins to run the test NAME in an evaluation that stops at errors; returns its id."
  (send image "eval" "session" "s" "code" "" "test" (apply #'object "name" name fields) "debug" :true
              "capture_time" :false "timeout" *patience* "stream" :false))

(defun test-frames (image stop)
  (map 'list (lambda (frame) (path frame "name")) (frames-of image stop)))

(deftest tests-stop-in-a-debugger
  (with-image (image :debian *fiveam*)
    (tests-run image "system" "shop" "asd_files" (write-shop) "test" "good")
    (flet ((stdout (id) (path (result-or-error (answer image id)) "stdout" "text")))
      ;; An error, before FiveAM's handler is given it; then the framework goes on with it.
      (let* ((id (debugged-test image "broken" "package" "shop/tests")) (stop (stop-of-id image id)))
        (is string= "error" (path stop "reason"))
        (is string= "no price" (path stop "condition" "message"))
        (is string= "CONTINUE" (path stop "restarts" 0 "name"))
        (restarted image stop "CONTINUE")
        (left image stop)
        (ok (text-contains "SHOP/TESTS::BROKEN: error, 1 check" (stdout id))))
      ;; A failed check; in a frame of the test.
      (let* ((id (debugged-test image "shop/tests::wrong")) (stop (stop-of-id image id)))
        (ok (text-contains "evaluated to" (path stop "condition" "message")))
        (ok (text-contains "IGNORE-FAILURE" (path stop "restarts" 1 "name")))
        (restarted image stop "CONTINUE")
        (left image stop)
        (ok (text-contains "SHOP/TESTS::WRONG: failed, 1 check" (stdout id))))
      ;; A test that passes does not stop; one whose function is stopped at a `break` does.
      (ok (text-contains "SHOP/TESTS::GOOD: passed, 2 checks" (stdout (debugged-test image "good"))))
      (prepare image "(fiveam:def-test handled () (fiveam:is (eq :seen (handler-case (error \"x\") (error () :seen))))
                                                   (fiveam:signals error (error \"y\")))")
      (ok (text-contains "HANDLED: passed, 2 checks" (stdout (debugged-test image "handled"))))
      (prepare image "(defun shop:price (n) (break \"in price\") (* 2 n))" :session "other")
      (let* ((id (debugged-test image "good")) (stop (stop-of-id image id)))
        (is string= "break" (path stop "reason"))
        (is string= "SHOP:PRICE" (first (test-frames image stop)))
        (on-stop image "debug-abort" stop)
        (left image stop)
        (answer image id))
      ;; A name that is no test is told.
      (let ((outcome (result-or-error (answer image (debugged-test image "no-such-test")))))
        (is string= "ok" (path outcome "status"))
        (ok (text-contains "No test is found called no-such-test" (path outcome "stderr" "text"))))
      (ok (text-contains "Package no-such not found"
                         (path (result-or-error (answer image (debugged-test image "good" "package" "no-such"))) "stderr" "text")))
      ;; As before: runs of tests do not stop.
      (is equal "error" (path (test-named (tests-run image "test" "broken") "SHOP/TESTS::BROKEN") "status")))))

(deftest tests-of-other-frameworks-stop-in-a-debugger
  (with-image (image)
    (is equal "ok" (path (call image "load-file" "path" (concatenate 'string (namestring (directory-namestring cl-user::*tests-directory*)) "stand-ins.lisp")
                               "if_missing" "error") "result" "status"))
    (let ((file (write-file "pr.lisp" "(defpackage :p-tests (:use :cl :parachute))
(in-package :p-tests)
(define-test breaks (is = 1 (error \"broken\")))
(define-test wrong (is = 7 (* 2 3)))
(defpackage :r-tests (:use :cl :rove))
(in-package :r-tests)
(deftest breaks (error \"broken\"))
(deftest wrong (ok (= 1 1)) (let ((n 7)) (ok (= n (* 2 3)))) (ok (= 2 2)))
")))
      (is equal "ok" (path (call image "load-file" "path" file "if_missing" "error") "result" "status"))
      (loop for (package outcome) in '(("p-tests" "passed, after 1 error, 1 check") ("r-tests" "error, 1 check")) do
        (let* ((id (debugged-test image "breaks" "package" package)) (stop (stop-of-id image id)))
          (is string= "broken" (path stop "condition" "message"))
          (restarted image stop "CONTINUE")
          (left image stop)
          (ok (text-contains (format nil "::BREAKS: ~A" outcome) (path (result-or-error (answer image id)) "stdout" "text")))))
      ;; A check that fails; Rove signals nothing for one.
      (let* ((id (debugged-test image "wrong" "framework" "rove")) (stop (stop-of-id image id)))
        (is string= "A check failed: Expect (= R-TESTS::N (* 2 3)) to be true. The value is (7 6)." (path stop "condition" "message"))
        (ok (text-contains "(LAMBDA () :IN" (path (frames-of image stop) 0 "name")))
        (restarted image stop "CONTINUE")
        (left image stop)
        (ok (text-contains "WRONG: failed, 1 check" (path (result-or-error (answer image id)) "stdout" "text"))))
      ;; Run otherwise, it fails as ever.
      (is string= "failed" (path (test-named (tests-run image "test" "wrong" "framework" "rove") "R-TESTS::WRONG") "status"))
      (let* ((id (debugged-test image "wrong" "framework" "parachute")) (stop (stop-of-id image id)))
        (ok (text-contains "evaluated to    6" (path stop "condition" "message")))
        (restarted image stop "CONTINUE")
        (left image stop)
        (ok (text-contains "WRONG: passed, after 1 error, 1 check" (path (result-or-error (answer image id)) "stdout" "text")))))))

(deftest files-of-a-system-that-is-wanted-in-a-version
  (with-image (image)
    (write-file "fam/lib.lisp" "1")
    (write-file "fam/core.lisp" "2")
    (let ((asd (write-file "fam/fam.asd" "(asdf:defsystem \"fam/core\" :version \"1.0\" :components ((:file \"core\")))
(asdf:defsystem \"fam\" :depends-on ((:version \"fam/core\" \"1.0\")) :components ((:file \"lib\")))")))
      (prepare image (format nil "(asdf:load-asd ~S)" asd))
      (is equal "(\"core\" \"lib\")" (first-value image "(sort (mapcar #'pathname-name (consort::system-files \"fam\")) #'string<)")))))
