;;;; Requests beside evaluations that come to code of the user's which does not end: they are left
;;;; when they are interrupted, or in time, and hold nothing then.

(in-package :consort)

(defun interrupted (image op &rest fields)
  "Sends a request whose code sets *BEGUN* and does not end, and interrupts it; returns the kind of
  its error."
  (let ((id (apply #'send image op fields)))
    (eventually (string= "T" (first-value image "(shiftf *begun* nil)" :session "others")))
    (is eq :true (path (call image "interrupt" "target" id) "result" "found"))
    (path (answer image id) "error" "kind")))

(deftest requests-that-come-to-the-users-code-are-interrupted
  (with-image (image)
    (prepare image "(defvar *begun* nil) (defvar *endless* t) (defun endless () (when *endless* (setf *begun* t) (loop (sleep 0.01))))" :session "others")
    (prepare image "(defun search-endlessly (name) (when (equal name \"endless-system\") (endless)))
                    (setf asdf:*system-definition-search-functions* (append asdf:*system-definition-search-functions* '(search-endlessly)))
                    (defpackage :slow-names (:use :cl) (:export #:described)) (defun slow-names:described () 1)
                    (defmethod documentation ((symbol (eql 'slow-names:described)) (type (eql 'function))) (endless) \"Documented.\")
                    (defclass slow-key () ()) (defvar *slow-key* (make-instance 'slow-key)) (defgeneric keyed (key))
                    (defmethod keyed ((key (eql *slow-key*))) 1)
                    (defmethod print-object ((key slow-key) stream) (endless) (write-string \"KEY\" stream))"
             :session "others")
    (is string= "interrupted" (interrupted image "system-files" "system" "endless-system"))
    (is string= "interrupted" (interrupted image "symbol-facts" "name" "slow-names:described"))
    (is string= "interrupted" (interrupted image "package-contents" "name" "SLOW-NAMES"))
    (is string= "interrupted" (interrupted image "package-symbols" "name" "SLOW-NAMES"))
    (is string= "interrupted" (interrupted image "removable" "name" "keyed" "method" (object "qualifiers" #() "specializers" (vector "(eql key)"))))
    ;; Not interrupted, they answer.
    (prepare image "(setf *endless* nil)" :session "others")
    (is string= "Documented." (path (call image "package-contents" "name" "SLOW-NAMES") "result" "exports" 0 "documentation"))
    (is equal '("method" "function" "symbol")
        (map 'list (lambda (part) (path part "key"))
             (path (call image "removable" "name" "keyed" "method" (object "qualifiers" #() "specializers" (vector "(eql key)"))) "result" "parts")))))

(deftest a-system-whose-methods-do-not-end
  (with-image (image)
    (prepare image "(defvar *begun* nil) (defun endless () (setf *begun* t) (loop (sleep 0.01)))" :session "others")
    (let ((file (write-file "slow/slow-files.asd" "(defclass cl-user::slow-file (asdf:cl-source-file) ())
(defmethod asdf:component-pathname ((file cl-user::slow-file)) (when (boundp 'cl-user::*slow*) (cl-user::endless)) (call-next-method))
(asdf:defsystem \"slow-files\" :components ((cl-user::slow-file \"slow\")))
")))
      (write-file "slow/slow.lisp" "(defvar cl-user::*slow-loaded* t)")
      (prepare image (format nil "(asdf:load-asd ~S) (asdf:load-system \"slow-files\") (defvar *slow* t)" file) :session "others")
      (is string= "interrupted" (interrupted image "loaded-files" "within" *scratch*)))))

(deftest a-call-that-cannot-be-made-ready-in-time
  (with-endless-macro (image file text)
    (is string= "timeout" (path (call image "await-call" "function" "endless::slow" "wait" 1 "timeout" 1 "functions" #() "within" (vector *scratch*)) "error" "kind"))
    (plain-again-p image)
    (is eq :true (path (answer image (ask-for-points image file text *patience* "(list :quick")) "result" "breakpoints" 0 "verified"))))

;;; The moments between two steps are met by a function that is wrapped for the test.

(deftest a-request-to-a-stop-is-interrupted-as-it-is-taken
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (prepare image "(defvar *found* nil)
                      (sb-int:encapsulate 'consort::take-work 'interrupting
                                          (lambda (take stop)
                                            (let ((work (funcall take stop)))
                                              (when work
                                                (sb-int:unencapsulate 'consort::take-work 'interrupting)
                                                (setf *found* (sb-thread:join-thread
                                                               (sb-thread:make-thread (lambda () (consort::interrupt-work (consort::work-id work)))))))
                                              work)))"
               :session "others")
      (is string= "interrupted" (path (on-stop image "debug-eval" stop "code" "(loop)" "timeout" *patience*) "result" "status"))
      (is string= "T" (first-value image "*found*" :session "others"))
      (is string= "10" (in-frame image stop 0 "c"))
      (restarted image stop "PLAINLY")
      (is string= "(:OUTER (:INNER :PLAIN 5) 5)" (outcome-text image id)))))

(deftest the-time-of-a-restarts-arguments-that-is-over-late
  ;; The timer has fired, and its interruption comes when the restart is being invoked.
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (prepare image "(sb-int:encapsulate 'consort::leave-stop 'late
                                          (lambda (leave stop how work)
                                            (funcall leave stop how work)
                                            (let ((interruption (consort::end-work stop work \"timeout\" (constantly t))))
                                              (loop until (eq (consort::interruption-state interruption) :over) do (sleep 0.001)))))"
               :session "others")
      (is string= "sent" (path (restarted image stop "USE-OTHER" "arguments" #("(* 6 7)")) "result" "status"))
      ;; The program goes on to its end, and does not stop again where it was.
      (is eq nil (event-or-answer image "stopped" id 1)))))

(deftest a-pause-that-comes-while-a-stop-is-left
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(progn (break) (loop (sleep 0.01)))")
      (prepare image "(sb-int:encapsulate 'consort::leave-stop 'pausing
                                          (lambda (leave stop how work)
                                            (funcall leave stop how work)
                                            (sb-int:unencapsulate 'consort::leave-stop 'pausing)
                                            (consort::pause-evaluation (consort::stopped-evaluation stop))))"
               :session "others")
      (is string= "sent" (path (restarted image stop "CONTINUE") "result" "status"))
      (let ((paused (event-or-answer image "stopped" id 1)))
        (is string= "pause" (path paused "reason"))
        (on-stop image "debug-abort" paused)
        (is string= "interrupted" (path (answer image id) "result" "status"))))))

(deftest who-stops-an-evaluation-that-was-refused-does-not-go-on
  ;; The request was refused before it began, and so it does not end either.
  (with-image (image)
    (is string= "(:REFUSED :CANCEL :ENDED)"
        (first-value image "(let* ((evaluation (consort::make-evaluation 0 \"refused\"))
                                   (job (consort::make-job evaluation
                                                           (lambda () (consort::stop-evaluation evaluation :cancel) :refused)
                                                           #'identity #'identity)))
                              (list (consort::perform job) (consort::evaluation-reason evaluation) (consort::evaluation-state evaluation)))"))))
