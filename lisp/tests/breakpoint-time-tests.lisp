;;;; Breakpoints whose setting does not end, or whose asker has left.

(in-package :consort)

(defparameter *endless-text* "(defpackage :endless (:use :cl))
(in-package :endless)
(defmacro m (x) x)
(defun slow (x)
  (m (list x)))
(defun quick (x)
  (list :quick x))
(defclass thing () ())
(defgeneric area (thing))
(defmethod area ((thing thing))
  (m (list :area)))
")

(defmacro with-endless-macro ((image file text) &body body)
  "BODY with an IMAGE into which the FILE of TEXT was loaded, whose macro M has no end since."
  `(with-image (,image)
     (let* ((,text *endless-text*) (,file (write-file "endless.lisp" ,text)))
       (prepare ,image (format nil "(load (compile-file ~S :output-file ~S))" ,file (concatenate 'string *scratch* "endless.fasl")) :session "others")
       (prepare ,image "(defvar *slow* #'slow) (defvar *area* (first (sb-mop:generic-function-methods #'area)))" :package "ENDLESS" :session "others")
       (prepare ,image "(defvar *begun* nil) (defmacro m (x) (declare (ignore x)) (setf *begun* t) (unwind-protect (loop (sleep 0.01)) (loop repeat 3 do (sleep 0.01))))" :package "ENDLESS" :session "others")
       ,@body)))

(defun ask-for-points (image file text timeout &rest parts)
  "Asks for breakpoints on the lines of PARTS of TEXT; returns the request's id."
  (send image "debug-breakpoints" "owner" "test" "file" file "text" text "timeout" timeout
        "points" (coerce (loop for part in parts for id from 1 collect (object "id" id "line" (line-of text part))) 'vector)))

(defun await-endless-macro (image)
  "Waits until the macro M of an ENDLESS text runs."
  (eventually (string= "T" (first-value image "(shiftf *begun* nil)" :package "ENDLESS" :session "others"))))

(defun plain-again-p (image)
  "Waits until the definitions are the very ones that were loaded, or gives up."
  (eventually (string= "T" (first-value image "(and (eq *slow* #'slow) (equal (list *area*) (sb-mop:generic-function-methods #'area)))" :package "ENDLESS" :session "others"))))

(deftest breakpoints-in-a-definition-whose-macro-does-not-end
  (with-endless-macro (image file text)
    (let ((answers (path (answer image (ask-for-points image file text 1 "(m (list x))" "(list :quick" "(m (list :area")) "result" "breakpoints")))
      (is equalp #(:false :true :false) (map 'vector (lambda (one) (path one "verified")) answers))
      (ok (text-contains "(defun slow (x) (line 4 of " (path answers 0 "message")))
      (ok (text-contains "took longer than 1.0 s" (path answers 0 "message")))
      (ok (text-contains "(defmethod area ((thing thing)) (line 10 of " (path answers 2 "message"))))
    (plain-again-p image)
    (prepare image "(setf *begun* nil)" :package "ENDLESS" :session "others")
    ;; Not tried each time that they are set again, but when one was removed and is set anew.
    (let ((answers (path (answer image (ask-for-points image file text *patience* "(m (list x))" "(list :quick")) "result" "breakpoints")))
      (is equalp #(:false :true) (map 'vector (lambda (one) (path one "verified")) answers))
      (is string= "NIL" (first-value image "*begun*" :package "ENDLESS" :session "others")))
    (prepare image "(defmacro m (x) x)" :package "ENDLESS" :session "others")
    (answer image (ask-for-points image file text *patience*))
    (is eq :true (path (answer image (ask-for-points image file text *patience* "(m (list x))")) "result" "breakpoints" 0 "verified"))))

(deftest a-definition-that-was-too-slow-is-tried-when-it-was-evaluated
  (with-endless-macro (image file text)
    (is eq :false (path (answer image (ask-for-points image file text 1 "(m (list x))")) "result" "breakpoints" 0 "verified"))
    (prepare image "(defmacro m (x) x)" :package "ENDLESS" :session "others")
    (is eq :false (path (answer image (ask-for-points image file text *patience* "(m (list x))")) "result" "breakpoints" 0 "verified"))
    (multiple-value-bind (line column) (line-of text "(defun slow")
      (prepare image (subseq text (search "(defun slow" text) (1- (search "(defun quick" text)))
               :package "ENDLESS" :origin (object "file" file "line" line "column" column)))
    (is eq :true (path (answer image (ask-for-points image file text *patience* "(m (list x))")) "result" "breakpoints" 0 "verified"))))

(deftest a-reader-macro-that-does-not-end
  (with-endless-macro (image file text)
    (let* ((text (concatenate 'string text "(defun read-slowly () (list #.(loop (sleep 0.01))))
"))
           (answers (path (answer image (ask-for-points image file text 1 "(defun read-slowly" "(list :quick")) "result" "breakpoints")))
      (ok (text-contains "(defun read-slowly" (path answers 0 "message")))
      (is equalp #(:false :true) (map 'vector (lambda (one) (path one "verified")) answers)))))

(deftest an-agents-breakpoint-runs-no-code-of-a-text
  (with-endless-macro (image file text)
    (prepare image "(defvar *read* 0)" :package "ENDLESS")
    (prepare image "(defgeneric seen (x))" :package "ENDLESS")
    (let ((text (concatenate 'string text "(defun read-here () (list #.(incf *read*)))
(defmethod seen ((x (eql (incf *read*)))) (list x))
")))
      (flet ((ask (owner)
               (call image "debug-breakpoints" "owner" owner "file" file "text" text "timeout" *patience*
                           "points" (vector (object "id" 1 "line" (line-of text "(defun read-here"))
                                            (object "id" 2 "line" (line-of text "(defmethod seen")))))
             (read-p () (first-value image "(shiftf endless::*read* 0)")))
        (ask "mcp-1")
        (is equal "0" (read-p))
        (ask "lsp-1")
        (ok (not (equal "0" (read-p))))))))

(deftest a-condition-that-does-not-end
  (with-endless-macro (image file text)
    (flet ((verified (timeout)
             (map 'vector (lambda (one) (path one "verified"))
                  (path (call image "debug-breakpoints" "owner" "test" "file" file "text" text "timeout" timeout
                              "points" (vector (object "id" 1 "line" (line-of text "(list :quick") "condition" "(m 1)")
                                               (object "id" 2 "line" (line-of text "(list :quick"))))
                        "result" "breakpoints"))))
      (is equalp #(:false :true) (verified 5))
      ;; The same again is not tried.
      (is equalp #(:false :true) (verified *patience*)))))

(deftest function-breakpoints-and-places-that-do-not-end
  (with-endless-macro (image file text)
    (let ((answer (path (call image "debug-function-breakpoints" "owner" "test" "timeout" 1 "points" (vector (object "id" 1 "name" "endless::slow")))
                        "result" "breakpoints" 0)))
      (is eq :false (path answer "verified"))
      (ok (text-contains "the function endless::slow took longer than" (path answer "message"))))
    (ok (text-contains "(defun slow (x) (line 4 of"
                       (path (call image "debug-breakpoint-locations" "file" file "text" text "line" 5 "timeout" 1) "error" "message")))
    (plain-again-p image)))

(deftest a-request-for-breakpoints-is-interrupted
  (with-endless-macro (image file text)
    (dolist (parts '(("(list :quick" "(m (list x))") ("(m (list :area")))
      (let ((id (apply #'ask-for-points image file text *patience* parts)))
        (await-endless-macro image)
        ;; Another waits for the lock, and can be interrupted too.
        (let ((waiting (send image "debug-function-breakpoints" "owner" "other" "points" (vector (object "id" 1 "name" "endless::quick")))))
          (is eq :true (path (call image "interrupt" "target" waiting) "result" "found"))
          (is string= "not-set" (path (answer image waiting) "error" "kind")))
        (is eq :true (path (call image "interrupt" "target" id) "result" "found"))
        (is string= "not-set" (path (answer image id) "error" "kind"))
        (is eq :true (path (call image "debug-function-breakpoints" "owner" "other" "points" (vector (object "id" 1 "name" "endless::quick")))
                           "result" "breakpoints" 0 "verified"))
        (call image "debug-function-breakpoints" "owner" "other" "points" #())
        (plain-again-p image)))))

(deftest requests-for-breakpoints-interrupted-at-any-moment
  (with-endless-macro (image file text)
    (prepare image "(defmacro m (x) x)" :package "ENDLESS" :session "others")
    (dotimes (round 40)
      (let ((id (ask-for-points image file text *patience* "(m (list x))" "(list :quick" "(m (list :area")))
        (dotimes (wait (floor round 2)) (call image "status"))
        (call image "interrupt" "target" id)
        (answer image id)))
    (is equalp #() (path (answer image (ask-for-points image file text *patience*)) "result" "breakpoints"))
    (plain-again-p image)
    (is equalp #(:true :true :true)
        (map 'vector (lambda (one) (path one "verified"))
             (path (answer image (ask-for-points image file text *patience* "(m (list x))" "(list :quick" "(m (list :area")) "result" "breakpoints")))
    (is string= "(:AREA)" (first-value image "(area (make-instance 'thing))" :package "ENDLESS" :session "others"))))

(deftest breakpoints-are-flagged-while-nobody-flags-for-steps
  ;; Both flags of a probe are bits of one octet.
  (with-endless-macro (image file text)
    (is eq :true (path (answer image (ask-for-points image file text *patience* "(list :quick")) "result" "breakpoints" 0 "verified"))
    (is string= "T"
        (first-value image "(let ((unit (first consort::*units*)))
                              (sb-thread:with-mutex (consort::*stepping-lock*)
                                (let ((thread (sb-thread:make-thread (lambda () (consort::flag-breakpoints unit)))))
                                  (loop while (and (sb-thread:thread-alive-p thread) (not (eq consort::*stepping-lock* (consort::waited-for thread))))
                                        do (sleep 0.01))
                                  (sb-thread:thread-alive-p thread))))"))))
