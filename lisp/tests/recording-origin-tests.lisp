;;;; Where a wrong value first appears: the origin of the value of an event, and of the value that a
;;;; failed check of a test tells.

(in-package :consort)

(defun write-bills ()
  "Writes a system whose function BILL is wrong, and its tests; returns its .asd files."
  (write-file "bills/lib.lisp" "(defpackage :bills (:use :cl) (:export #:bill #:names #:tax #:twice-taxed))
(in-package :bills)
(defun tax (n)
  (let ((rate 1/10))
    (floor (* n rate))))
(defun price (item)
  (+ (getf item :net)
     (tax (getf item :gross))))
(defun bill (items)
  (let ((sum 0))
    (dolist (item items)
      (setf sum (+ sum (price item))))
    sum))
(defun names (items)
  (mapcar (lambda (item) (string-upcase (getf item :name))) items))
(defun pass-on (n) (identity n))
(defun twice-taxed (n)
  (let ((once (pass-on (tax n))))
    (pass-on once)))
")
  (write-file "bills/tests.lisp" "(defpackage :bills/tests (:use :cl :fiveam :bills))
(in-package :bills/tests)
(def-suite all)
(in-suite all)
(test sums (is (= 34 (bill (list (list :net 10 :gross 10) (list :net 20 :gross 25))))))
(test right (is (= 11 (bill (list (list :net 10 :gross 10))))))
(test reports-names (is (equal '(\"a\") (names (list (list :name \"a\"))))))
(test passed-on (is (= 3 (twice-taxed 20))))
(test of-its-own (is (= 5 (+ 1 (tax 20)))))
")
  (list (write-file "bills/bills.asd" "(asdf:defsystem \"bills\" :components ((:file \"lib\")) :in-order-to ((test-op (test-op \"bills/tests\"))))
(asdf:defsystem \"bills/tests\" :depends-on (\"bills\" \"fiveam\") :components ((:file \"tests\")) :perform (test-op (o c) (uiop:symbol-call :fiveam '#:run! (uiop:find-symbol* '#:all :bills/tests))))")))

(defun rows-as-text (answer)
  (map 'list (lambda (row) (format nil "~A ~A~@[ ~A~]" (path row "kind") (path row "text") (path-if-any row "value"))) (path answer "rows")))

(deftest a-wrong-value-is-traced-to-its-origin
  (with-image (image :debian *fiveam*)
    (let ((files (write-bills)))
      (is equal "ok" (path (tests-run image "system" "bills" "asd_files" files) "status"))
      (flet ((rows (test)
               (with-recording (link answer image "test" (format nil "bills/tests::~A" test))
                 (let ((origin (ask-recording link "origin")))
                   (is equal (path-if-any origin "event")
                       (let ((begin (ask-recording link "begin"))) (and (string= "wrong" (path begin "reason")) (path begin "event"))))
                   (rows-as-text origin)))))
        (is equal '("check (BILL (LIST (LIST :NET 10 :GROSS 10) (LIST :NET 20 :GROSS 25))) evaluated to 33 which is not = to 34 expected 34"
                    "value (+ sum (price item)) => 33"
                    "variable ITEM (:net 20 :gross 25)" "variable SUM 11" "variable ITEMS ((:net 10 :gross 10) (:net 20 :gross 25))"
                    "value (setf sum (+ sum (price item))) => 33" "value (let ((sum 0)) ... => 33"
                    "return (bills:bill ((:net 10 :gross 10) (:net 20 :gross 25))) => 33")
            (rows "sums"))
        (is equal '("value (mapcar (lambda (item) (string-upcase (getf item :name))) items) => (\"A\")" "variable ITEMS ((:name \"a\"))"
                    "return (bills:names ((:name \"a\"))) => (\"A\")")
            (rest (rows "reports-names")))
        ;; Passed on by two functions and a variable, to where it was made.
        (is equal '("value (floor (* n rate)) => 2 ; 0" "value (tax n) => 2" "value (pass-on (tax n)) => 2" "value (pass-on once) => 2")
            (remove-if-not (lambda (row) (member row '("value (floor (* n rate)) => 2 ; 0" "value (tax n) => 2" "value (pass-on (tax n)) => 2" "value (pass-on once) => 2")
                                                 :test #'string=))
                           (rows "passed-on")))
        ;; The test changed the value itself.
        (is equal '("check (+ 1 (TAX 20)) evaluated to 3 which is not = to 5 expected 5" "call (bills:tax 20) => 2 ; 0") (rows "of-its-own")))
      (with-recording (link answer image "test" "bills/tests::right")
        (is = 0 (path answer "failed_checks"))
        (ok (text-contains "No check of a test has failed" (path (ask-recording link "origin") "problem")))
        (is string= "begin" (path (ask-recording link "begin") "reason"))
        ;; The origin of any value.
        (let* ((price (find "value (+ sum (price item)) => 11" (map 'list #'identity (path (ask-recording link "values" "text" "(+ sum (price item))") "rows"))
                            :test #'string= :key (lambda (row) (format nil "value ~A ~A" (path row "text") (path row "value")))))
               (origin (ask-recording link "origin" "event" (path price "event"))))
          (is string= "value (+ (getf item :net) ... => 11" (first (rows-as-text origin))))
        (ok (text-contains "has no value" (path (ask-recording link "origin" "event" 1) "problem")))
        (ok (text-contains "is not kept" (path (ask-recording link "origin" "event" 100000) "problem")))))))
