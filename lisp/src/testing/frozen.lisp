;;;; Frozen failures of tests. A framework handles the errors of the tests that it runs, so the
;;;; stack is frozen when its handler receives the error, before it unwinds. Handlers of the test
;;;; itself are called first. An error that one of them handles is no failure of the test.

(in-package :consort)

(defconstant +frozen-tests+ 2 "The number of tests of a run whose errors are frozen: the first
  ones that fail with an error.")

(defstruct (test-run (:constructor make-test-run (evaluation freeze)))
  "A run of tests as EVALUATION. FREEZE is as in FREEZE-PARAM. LEFT is the number of further tests
  that may be frozen. BASE has the handlers from before the test that runs now, and FROZEN is the
  JSON of the frozen failure of that test."
  (evaluation nil :read-only t)
  (freeze nil :read-only t)
  (left +frozen-tests+ :type fixnum)
  (base '() :type list)
  (frozen nil))

(defvar *test-run* nil "In a test: the TEST-RUN, if its error must be frozen.")

(defun frameworks-symbol-p (symbol)
  "Returns true if SYMBOL belongs to a framework, and so does a function of that name."
  (let ((package (and (symbolp symbol) (symbol-package symbol))))
    (and package
         (or (eq package (find-package :fiveam))
             (eq package (find-package :parachute))
             (eq package (find-package :rove))
             (eql 0 (search "ROVE/" (package-name package)))))))

(defun frameworks-handler-p (handler)
  "Returns true if a function of a framework made HANDLER, a function."
  (and (functionp handler)
       (let ((name (%function-name handler)))
         (frameworks-symbol-p (or (frame-symbol (list name))
                                  (and (consp name) (ignore-errors (list-length name)) (find-if #'frameworks-symbol-p name)))))))

(defun freeze-test (condition)
  "A handler that freezes the failure of the running test, if CONDITION is an error of the test."
  (let ((run *test-run*))
    (when (and run
               (null (test-run-frozen run))
               (plusp (test-run-left run))
               (typep condition 'error)
               (not (frameworks-symbol-p (class-name (class-of condition)))))
      (let ((frozen (freeze-failure (test-run-evaluation run) condition (test-run-freeze run) :test)))
        (when frozen
          (with-own-settings ()
            (setf (test-run-frozen run) (append frozen (list "error" (describe-error condition '()))))))))))

(defun put-before-frameworks-handlers (base first)
  "Inserts the function FIRST before each handler of a framework that is in force within BASE, under
  the same condition."
  (loop for clusters on handler-clusters
        until (eq clusters base)
        do (let ((cluster (first clusters)))
             (when (and (find-if #'frameworks-handler-p cluster :key #'cdr)
                        (not (find first cluster :key #'cdr)))
               (setf (first clusters)
                     (loop for (test . handler) in cluster
                           when (frameworks-handler-p handler)
                             collect (cons test first)
                           collect (cons test handler)))))))

(defun prepare-for-signal (condition)
  "Called with each condition that a test signals, before its handlers (see *BREAK-ON-SIGNALS*).
  Ensures that an error is frozen if a framework handles it. Returns NIL, so that there is no
  break."
  (let ((run *test-run*))
    (when (and run (null (test-run-frozen run)) (typep condition 'error))
      (put-before-frameworks-handlers (test-run-base run) #'freeze-test)))
  nil)

(defun can-freeze-tests-p ()
  "Returns true if this SBCL has the internals by which a framework's handlers are recognized."
  (and (internal-p 'handler-clusters) (internal-p '%function-name)))

(defun call-freezing-test (run function)
  "Calls FUNCTION, which runs one test of RUN, a TEST-RUN or NIL. Returns its values. Afterwards,
  TEST-RUN-FROZEN of RUN is the JSON of the frozen failure, or NIL."
  (cond ((null run) (funcall function))
        (t
         (setf (test-run-frozen run) nil)
         (let ((*test-run* run))
           (handler-bind ((error #'freeze-test)) ; for an error that no framework handles
             (unwind-protect
                  (if (and (null *break-on-signals*) (plusp (test-run-left run)) (can-freeze-tests-p))
                      (let ((*break-on-signals* '(satisfies prepare-for-signal)))
                        (setf (test-run-base run) handler-clusters)
                        (funcall function))
                      (funcall function))
               (setf (test-run-base run) '())
               (when (test-run-frozen run) (decf (test-run-left run)))))))))
