;;;; Loads the tests and runs them; tests/run.sh says with what.

(setf *compile-verbose* nil)
(defvar cl-user::*tests-directory* *load-truename*)

(dolist (file '("../src/package" "../src/sbcl" "../src/json" "harness" "json-tests" "eval-tests" "fault-tests" "operation-tests" "profile-tests" "testing-tests" "tools-tests"))
  (handler-bind ((warning #'muffle-warning)) ; macros are defined after their first use is read
    (load (merge-pathnames (concatenate 'string file ".lisp") cl-user::*tests-directory*))))

(sb-ext:exit :code (consort::run-tests) :abort t)
