;;;; Loads the tests and runs those that CONSORT_TEST_NAMES names, all when it names none;
;;;; tests/run.sh says with what.

(setf *compile-verbose* nil)
(defvar cl-user::*tests-directory* *load-truename*)

(handler-bind ((sb-kernel:redefinition-warning
                 (lambda (warning)
                   ;; The tests are one package.
                   (format *error-output* "Two files of tests define the same: ~A~%" warning)
                   (sb-ext:exit :code 1 :abort t)))
               (warning #'muffle-warning)) ; macros are defined after their first use is read
  (dolist (file '("../src/package" "../src/sbcl" "../src/json" "harness" "images"))
    (load (merge-pathnames (concatenate 'string file ".lisp") cl-user::*tests-directory*)))
  (mapc #'load (sort (directory (merge-pathnames "*-tests.lisp" cl-user::*tests-directory*)) #'string< :key #'namestring)))

(sb-ext:exit :code (consort::run-tests (remove "" (uiop:split-string (or (sb-ext:posix-getenv "CONSORT_TEST_NAMES") "") :separator '(#\Space))
                                               :test #'string=))
             :abort t)
