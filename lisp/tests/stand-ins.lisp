;;;; Stand-ins for Parachute and Rove, which Debian does not have: their packages, classes and
;;;; functions as their own sources and documentation have them (Parachute's result.lisp, test.lisp,
;;;; report.lisp; Rove's core/), with as little behind them as running a test takes.

(defpackage :parachute (:use :cl)
  (:export #:test #:define-test #:is #:true #:skip #:name #:home #:parent #:children #:tests #:package-tests #:find-test #:plain #:interactive #:result #:expression
           #:status #:duration #:value #:expected #:comparison #:value-result #:comparison-result #:parent-result #:test-result #:results #:report
           #:format-result #:output))
(in-package :parachute)

(defvar *tests* (make-hash-table :test 'eq))
(defvar *parent* nil)
(defclass test ()
  ((name :initarg :name :reader name) (home :initarg :home :reader home) (parent :initarg :parent :accessor parent)
   (children :initform nil :accessor children) (tests :initarg :tests :accessor tests)))
(defclass result ()
  ((expression :initarg :expression :accessor expression) (status :initform :unknown :accessor status) (duration :initform nil :accessor duration)))
(defclass value-result (result) ((value :initarg :value :accessor value)))
(defclass comparison-result (value-result) ((expected :initarg :expected :accessor expected) (comparison :initarg :comparison :accessor comparison)))
(defclass parent-result (result) ((results :initform (make-array 0 :adjustable t :fill-pointer t) :accessor results)))
(defclass test-result (parent-result) ())
(defclass report (parent-result) ())
(defclass plain (report) ((output :initarg :stream :accessor output)))

(defun package-tests (package)
  (let ((index (gethash (find-package package) *tests*)))
    (when index (loop for test being the hash-values of index collect test))))

(defun add-test (name parent tests)
  (let* ((index (or (gethash *package* *tests*) (setf (gethash *package* *tests*) (make-hash-table :test 'equal))))
         (above (and parent (gethash (string parent) index))))
    (setf (gethash (string name) index) (make-instance 'test :name name :home *package* :parent above :tests tests))))

(defmacro define-test (name &body body)
  (let ((parent (when (eq (first body) :parent) (pop body) (pop body))))
    `(add-test ',name ',parent (list ,@(loop for form in body collect `(lambda () ,form))))))

(defgeneric format-result (result type))
(defmethod format-result ((result comparison-result) (type (eql :extensive)))
  (format nil "The test form   ~s~%evaluated to    ~s~%when            ~s~%was expected to be equal under ~s."
          (expression result) (value result) (expected result) (comparison result)))

(defvar *report* nil)
(defclass interactive (report) ())

(defun compare (result)
  (when (eq (status result) :unknown)
    (setf (status result) (if (funcall (comparison result) (expected result) (value result)) :passed :failed))))

(defun note (result thunk)
  (vector-push-extend result (results *parent*))
  (cond ((typep *report* 'interactive)
         (restart-case (progn (setf (value result) (funcall thunk))
                              (when (eq (compare result) :failed)
                                (error "Test ~a failed:~%~a" (expression result) (format-result result :extensive))))
           (continue () (setf (status result) :skipped))))
        (t
         (handler-case (setf (value result) (funcall thunk))
           (error (condition) (setf (value result) condition (status result) :failed)))
         (compare result))))

(defmacro is (comparison expected form)
  `(note (make-instance 'comparison-result :expression '(is ,comparison ,expected ,form) :expected ,expected :comparison ',comparison) (lambda () ,form)))

(defun test (test &rest arguments &key (report 'plain) &allow-other-keys)
  (let ((report (apply #'make-instance report :expression test (loop for (key value) on arguments by #'cddr unless (eq key :report) append (list key value)))))
    (let ((result (make-instance 'test-result :expression test)))
      (vector-push-extend result (results report))
      (let ((*parent* result) (*report* report))
        (if (typep report 'interactive)
            (mapc #'funcall (tests test))
            (handler-case (mapc #'funcall (tests test))
              (error (condition) (warn "Unhandled error: ~a" condition) (setf (status result) :failed))))
        (when (find :failed (results result) :key #'status) (setf (status result) :failed)))
      (setf (status report) (if (eq (status result) :failed) :failed :passed)))
    (unless (typep report 'interactive)
      (format (output report) "~&;; Summary: ~a~%" (status report)))
    report))

(defpackage :rove/core/result (:use :cl)
  (:export #:assertion-form #:assertion-reason #:assertion-values #:assertion-description #:test #:test-name #:test-passed-assertions
           #:test-failed-assertions #:test-pending-assertions #:failed-assertion #:passed-assertion #:failed-test #:passed-test))
(defpackage :rove/core/stats (:use :cl :rove/core/result) (:export #:*stats* #:stats #:stats-passed #:stats-failed #:stats-pending #:record))
(defpackage :rove/core/suite/package (:use :cl)
  (:export #:all-suites #:suite-name #:suite-before-hooks #:suite-after-hooks #:suite-tests #:get-test #:set-test))
(defpackage :rove (:use :cl :rove/core/result :rove/core/stats :rove/core/suite/package) (:export #:deftest #:testing #:ok))

(in-package :rove/core/result)
(defclass assertion () ((form :initarg :form :reader assertion-form) (reason :initarg :reason :initform nil :reader assertion-reason)
                        (values :initarg :values :initform nil :reader assertion-values)))
(defun assertion-description (assertion) (format nil "Expect ~W to be true." (assertion-form assertion)))
(defclass test () ((name :initarg :name :reader test-name) (passed :initarg :passed :reader test-passed-assertions)
                   (failed :initarg :failed :reader test-failed-assertions) (pending :initform nil :reader test-pending-assertions)))
(defclass passed () ()) (defclass failed () ())
(defclass passed-assertion (assertion passed) ()) (defclass failed-assertion (assertion failed) ())
(defclass passed-test (test passed) ()) (defclass failed-test (test failed) ())

(in-package :rove/core/stats)
(defvar *stats* nil)
(defclass stats ()
  ((passed :initform (make-array 0 :adjustable t :fill-pointer 0) :accessor stats-passed)
   (failed :initform (make-array 0 :adjustable t :fill-pointer 0) :accessor stats-failed)
   (pending :initform (make-array 0 :adjustable t :fill-pointer 0) :accessor stats-pending)
   (contexts :initform nil :accessor contexts)))
(defun context (stats) (or (first (contexts stats)) stats))
(defgeneric record (stats object))
(defmethod record ((stats stats) object)
  (vector-push-extend object (if (typep object 'rove/core/result::passed) (stats-passed (context stats)) (stats-failed (context stats)))))
(defun call-testing (name function)
  (push (make-instance 'stats) (contexts *stats*))
  (unwind-protect
       (block nil
         (handler-bind ((error (lambda (error)
                                 (record *stats* (make-instance 'failed-assertion :form t :reason error))
                                 (return nil))))
           (funcall function)))
    (let ((inner (pop (contexts *stats*))))
      (record *stats* (make-instance (if (zerop (length (stats-failed inner))) 'passed-test 'failed-test) :name name
                                     :passed (coerce (stats-passed inner) 'list) :failed (coerce (stats-failed inner) 'list))))))

(in-package :rove/core/suite/package)
(defstruct suite name package before-hooks after-hooks tests)
(defvar *suites* '())
(defun all-suites () *suites*)
(defun get-test (name) (get name 'test))
(defun set-test (name function)
  (let ((suite (or (find *package* *suites* :key #'suite-package)
                   (first (push (make-suite :name (string-downcase (package-name *package*)) :package *package*) *suites*)))))
    (setf (suite-tests suite) (append (remove name (suite-tests suite)) (list name)) (get name 'test) function)))

(in-package :rove)
(defmacro testing (name &body body) `(rove/core/stats::call-testing ,name (lambda () ,@body)))
(defmacro deftest (name &body body) `(set-test ',name (lambda () (testing ,(string-downcase name) ,@body))))
(defmacro ok (form)
  `(let ((values (list ,@(rest form))))
     (record *stats* (make-instance (if (apply #',(first form) values) 'passed-assertion 'failed-assertion) :form ',form :values values))))
