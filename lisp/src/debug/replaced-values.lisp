;;;; Functions in variables and tests of frameworks that an evaluated form with breakpoints has
;;;; made, and in whose place others have put another since.

(in-package :consort)

(defun value-made (unit list span)
  "The MADE-DEFINITION of the variable that LIST, in the form of UNIT at SPAN, defines or sets, if
  its value is a function with the code of UNIT; NIL otherwise."
  (let* ((name (second list))
         (value (and name (symbolp name) (not (keywordp name))
                     (or (definer-p list) (eq (first list) 'setf))
                     (ignore-errors (global-value name)))))
    (flet ((of-unit-p (value) (and (functionp value) (member unit (function-constants value) :test #'eq))))
      (when (of-unit-p value)
        ;; The code of the form may set the variable to another of its functions.
        (make-made-definition name (lambda ()
                                     (let ((now (ignore-errors (global-value name)))) (if (of-unit-p now) value now)))
                              value span)))))

(defun finder-of-test (unit list)
  "For LIST, in the form of UNIT, that defines a test of FiveAM, Parachute or Rove: a function that
  returns that test as it is now, and the test's name. NIL otherwise."
  (flet ((definer-p (package name) (let ((symbol (framework-symbol package name))) (and symbol (eq (first list) symbol)))))
    (let ((name (if (consp (second list)) (first (second list)) (second list))) (package (unit-package unit)))
      (cond ((or (definer-p :fiveam "TEST") (definer-p :fiveam "DEF-TEST"))
             (values (lambda () (call-framework :fiveam "GET-TEST" name)) name))
            ((definer-p :parachute "DEFINE-TEST")
             (values (lambda ()
                       (find (string name) (call-framework :parachute "PACKAGE-TESTS" package)
                             :test #'string= :key (lambda (test) (string (call-framework :parachute "NAME" test)))))
                     name))
            ((definer-p :rove "DEFTEST")
             (values (lambda () (call-framework :rove/core/suite/package "GET-TEST" name)) name))))))

(defun test-made (unit list span)
  "The MADE-DEFINITION of the test that LIST, in the form of UNIT at SPAN, defines; NIL if it defines
  none."
  (multiple-value-bind (current name) (finder-of-test unit list)
    (flet ((now () (ignore-errors (funcall (the function current)))))
      (let ((test (and current (now))))
        (and test (make-made-definition name #'now test span))))))

(defun values-and-tests-made (unit)
  "The MADE-DEFINITIONs of functions in variables and of tests that the form of UNIT has made."
  (loop for list being the hash-keys of (unit-places unit) using (hash-value span)
        for made = (and (consp list) (symbolp (first list)) (consp (cdr list))
                        (or (value-made unit list span) (test-made unit list span)))
        when made collect made))
