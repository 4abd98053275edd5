;;;; Tests and checks: defining them, running all or those that are named, and telling what failed.
;;;; In tests PATH takes a member of an object that must be there, PATH-IF-ANY one that may be
;;;; missing; ANSWER takes the answer to a request by its id, AWAIT-EVENT an event by its name and
;;;; id.

(in-package :consort)

(defvar *passed* 0)
(defvar *failed* 0)
(defvar *skipped* 0)
(defvar *tests* '() "Names and functions, newest first.")
(defvar *costs* '() "Seconds of processor time and names of tests, newest first.")
(defvar *test* nil "The name of the test that runs.")
(defvar *failed-tests* '() "Names of tests, newest first.")
(defvar *subject* nil "The frame, or the part of one, that the running check looked into last. It is shown when the check fails.")

(defparameter *patience* 900
  "Seconds that anything is waited for. Only a failure takes that long, so that a slow or busy
  machine makes none.")

(defmacro deftest (name &body body)
  "Defines a test: BODY with checks."
  `(push (cons ',name (lambda () ,@body)) *tests*))

;;; Checks

(define-condition test-aborted (error)
  ((why :initarg :why))
  (:report (lambda (condition stream) (write-string (slot-value condition 'why) stream)))
  (:documentation "The test cannot go on: the image is gone, or what was waited for did not come."))

(defun abort-test (control &rest arguments)
  (error 'test-aborted :why (apply #'format nil control arguments)))

(defun note-failure (control &rest arguments)
  (incf *failed*)
  (pushnew *test* *failed-tests*)
  (format t "~&FAILED ~(~A~)~%  ~?~%" *test* control arguments)
  (finish-output))

(defun call-check (form check)
  "Calls CHECK, which returns whether it passed, and why not as a text; counts, and tells of a
  failure. An error fails the check alone, unless the test cannot go on."
  (let ((*subject* nil))
    (multiple-value-bind (passed why)
        (handler-bind ((test-aborted (lambda (condition) (note-failure "~S~%  ~A" form condition) (throw 'test-ended nil))))
          (handler-case (funcall check)
            ((and error (not test-aborted)) (condition) (values nil (format nil "~A: ~A" (type-of condition) condition)))))
      (if passed
          (incf *passed*)
          (note-failure "~S~%  ~A~@[~%  in ~A~]" form why (and *subject* (shown *subject*)))))))

(defmacro is (test expected actual)
  "Checks that ACTUAL is EXPECTED under TEST."
  `(call-check ',actual
               (lambda ()
                 (let ((expected ,expected) (actual ,actual))
                   (values (,test expected actual) (format nil "expected ~S, got ~S" expected (clipped-text actual)))))))

(defmacro is-when (circumstance test expected actual)
  "Checks as IS does. A failure also shows CIRCUMSTANCE, a text: for a check that is made in several
  of them."
  `(call-check (list ,circumstance ',actual)
               (lambda ()
                 (let ((expected ,expected) (actual ,actual))
                   (values (,test expected actual) (format nil "expected ~S, got ~S" expected (clipped-text actual)))))))

(defmacro ok (form)
  "Checks that FORM is true."
  `(call-check ',form (lambda () (values ,form "is false"))))

(defmacro signals (type form)
  "Checks that FORM signals a TYPE."
  `(call-check ',form (lambda () (values (handler-case (progn ,form nil) (,type () t)) ,(format nil "did not signal ~S" type)))))

(defmacro eventually (form)
  "Returns the first true value of FORM, which is evaluated again and again; the test ends when none
  comes."
  `(call-until (lambda () ,form) ',form))

(defun call-until (function form)
  (loop with end = (+ (get-internal-real-time) (* *patience* internal-time-units-per-second))
        do (let ((value (funcall function)))
             (when value (return value)))
           (when (> (get-internal-real-time) end)
             (abort-test "~S did not become true in ~D s~@[; the last frame: ~A~]" form *patience* (and *subject* (shown *subject*))))
           (sleep 0.01)))

(defun skip-test (control &rest arguments)
  "Ends the running test, which is counted as skipped."
  (incf *skipped*)
  (format t "~&  skipped: ~?~%" control arguments)
  (throw 'test-ended nil))

;;; Access to frames

(define-condition missing-member (error)
  ((object :initarg :object)
   (path :initarg :path)
   (step :initarg :step))
  (:report (lambda (condition stream)
             (with-slots (object path step) condition
               (format stream "There is no ~S of the path~{ ~S~} in ~A" step path (shown object))))))

(defun member-at (object step)
  "Returns the member STEP, a name or an index, of OBJECT, and whether there is one that is not
  null."
  (let ((value (cond ((and (stringp step) (object-p object)) (field object step))
                     ((and (integerp step) (vectorp object) (not (stringp object)) (< step (length object))) (aref object step)))))
    (values value (and value (not (eq value :null))))))

(defun path (object &rest path)
  "Returns what is at PATH, names and indices, in OBJECT. A missing member is an error, and so is
  one that is null."
  (setf *subject* object)
  (let ((at object))
    (dolist (step path at)
      (multiple-value-bind (value there) (member-at at step)
        (unless there
          (error 'missing-member :object object :path path :step step))
        (setf at value)))))

(defun path-if-any (object &rest path)
  "Returns what is at PATH in OBJECT; NIL when a member on the way is missing or null. For a test
  that asks for absence."
  (setf *subject* object)
  (let ((at object))
    (dolist (step path at)
      (multiple-value-bind (value there) (member-at at step)
        (unless there (return nil))
        (setf at value)))))

(defun rewritten (value)
  "Returns VALUE, which was read, as the writer of JSON wants it."
  (cond ((object-p value) (cons :object (mapcar #'rewritten (rest value))))
        ((and (vectorp value) (not (stringp value))) (map 'vector #'rewritten value))
        (t value)))

(defun shown (value)
  "Returns VALUE, which was read, as JSON of a bounded length."
  (multiple-value-bind (octets end) (json-octets (rewritten value))
    (let ((text (sb-ext:octets-to-string octets :end end :external-format :utf-8)))
      (if (> (length text) 3000)
          (format nil "~A [...] (~D characters)" (subseq text 0 3000) (length text))
          text))))

(defun clipped-text (value)
  (if (and (stringp value) (> (length value) 3000)) (concatenate 'string (subseq value 0 3000) " [...]") value))

(defun text-contains (part text)
  (and (stringp text) (search part text) t))

;;; Running

(defun name-of-test (test)
  (string-downcase (car test)))

(defun chosen-tests (names)
  "Returns the tests of NAMES, in their order of definition; all when there are no names. A name
  that no test has stands for those that have it as a part of theirs."
  (let ((tests (reverse *tests*)))
    (flet ((meant (name)
             (or (remove name tests :key #'name-of-test :test #'string/=)
                 (remove-if-not (lambda (test) (search name (name-of-test test))) tests)
                 (progn (incf *failed*) (format t "~&No test has ~S in its name.~%" name) nil))))
      (if names
          (let ((meant (mapcan (lambda (name) (copy-list (meant (string-downcase name)))) names)))
            (remove-if-not (lambda (test) (member test meant)) tests))
          tests))))

(defun processor-seconds ()
  "Returns the processor time of this process and of its children that have ended."
  (sb-alien:with-alien ((times (array sb-alien:long 4)))
    (sb-alien:alien-funcall (sb-alien:extern-alien "times" (function sb-alien:long (* (array sb-alien:long 4)))) (sb-alien:addr times))
    (/ (loop for i below 4 sum (sb-alien:deref times i)) 100.0))) ; ticks of a hundredth of a second

(defun run-test (*test* function)
  (format t "~&~(~A~)~%" *test*)
  (finish-output)
  (let ((begun (get-internal-real-time)) (used (processor-seconds)))
    (catch 'test-ended
      (handler-case (funcall function)
        (serious-condition (condition)
          (note-failure "~A: ~A" (type-of condition) condition))))
    (let ((seconds (/ (- (get-internal-real-time) begun) internal-time-units-per-second 1.0)))
      (push (list (- (processor-seconds) used) *test*) *costs*)
      (when (> seconds 5) ; where the time goes
        (format t "~&  ~,1F s~%" seconds)))))

(defun run-tests (names)
  "Runs the tests of NAMES; returns the exit code of the process."
  (loop for (name . function) in (chosen-tests names)
        do (run-test name function))
  (when *failed-tests*
    (format t "~&Failed tests, and how to run each alone:~%~:{  lisp/tests/run.sh ~A image ~(~A~)~%~}"
            (mapcar (lambda (name) (list (or (sb-ext:posix-getenv "CONSORT_TEST_SBCL_NAME") "sbcl") name)) (reverse *failed-tests*))))
  (when (sb-ext:posix-getenv "CONSORT_TEST_COSTS")
    (let ((costs (sort (copy-list *costs*) #'> :key #'first)))
      (format t "~&~D tests took ~,1F s of processor time; the dearest:~%~:{~7,2F s  ~(~A~)~%~}" (length costs) (reduce #'+ costs :key #'first)
              (subseq costs 0 (min 30 (length costs))))))
  (format t "~&~D passed, ~D failed, ~D skipped~%" *passed* *failed* *skipped*)
  (if (and (zerop *failed*) (plusp (+ *passed* *skipped*))) 0 1))
