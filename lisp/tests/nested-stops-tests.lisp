;;;; Stops in code that is evaluated at a stop, and the ways back. The functions of debug-tests.lisp
;;;; are used; `nested-stops` there has the plain way.

(in-package :consort)

(defun nesting (image stop code &rest fields)
  "Evaluates CODE in the innermost frame of STOP, where it stops in its turn; returns the id of the
  request."
  (apply #'send image "debug-eval" "stop" (path stop "stop") "frame" 0 "code" code "debug" :true fields))

(defun status-of-work (image request)
  (path (answer image request) "result" "status"))

(deftest a-nested-stop-at-a-breakpoint-goes-back
  (with-debugged (image)
    (let* ((text (format nil "(defun halved (x)~%  (list (/ x 2)))~%"))
           (file (write-file "halved.lisp" text)))
      (prepare image (format nil "(load ~S)" file) :session "others")
      (is equalp #(:true)
          (map 'vector (lambda (answer) (path answer "verified"))
               (path (call image "debug-breakpoints" "owner" "test" "file" file "text" text "points" (vector (object "id" 1 "line" 2))) "result" "breakpoints")))
      (multiple-value-bind (outer id) (stopped-at image "(list (fails 5))")
        (let* ((request (nesting image outer "(halved 4)"))
               (inner (stop-of-id image id 1)))
          (is string= "breakpoint" (path inner "reason"))
          (is = 2 (path inner "level"))
          ;; Nothing of the two signals is among its frames.
          (is equal (cons "HALVED" (frame-names image outer)) (frame-names image inner))
          ;; A step goes on within that code, and ends with it.
          (on-stop image "debug-step" inner "how" "over")
          (let ((next (stop-of-id image id 2)))
            (is string= "step" (path next "reason"))
            (on-stop image "debug-abort" next))
          (is string= "interrupted" (status-of-work image request)))
        (let ((request (nesting image outer "(halved 4)")))
          (on-stop image "debug-step" (stop-of-id image id 3) "how" "out")
          (is string= "(2)" (path (answer image request) "result" "values" 0 "text")))
        (is string= "5" (in-frame image outer 0 "c"))
        (is string= "0" (first-value image "(length consort::*stepping*)" :session "others"))
        (restarted image outer "PLAINLY")
        (is string= "(:PLAIN)" (outcome-text image id))))))

(deftest ways-back-from-a-nested-stop
  (with-debugged (image)
    ;; The outer stop has a CONTINUE, which is none of the inner one.
    (multiple-value-bind (outer id) (stopped-at image "(list (break \"here\") :went-on)")
      (let* ((request (nesting image outer "(fails 7)"))
             (inner (stop-of-id image id 1))
             (back (find "Go back to the stop at level 1." (path inner "restarts") :key (lambda (restart) (path restart "report")) :test #'string=)))
        (is string= "ABORT" (path back "name"))
        (is string= "cannot-continue" (path (on-stop image "debug-step" inner "how" "over") "error" "kind"))
        (is string= "sent" (path (on-stop image "debug-continue" inner) "result" "status"))
        (is string= "boom 7" (path (answer image request) "result" "error" "message")))
      (let* ((request (nesting image outer "(list (break \"inner\") 1)")) (inner (stop-of-id image id 2)))
        (is equal (frame-names image outer) (frame-names image inner))
        (on-stop image "debug-continue" inner)
        (is string= "(NIL 1)" (path (answer image request) "result" "values" 0 "text")))
      (let* ((request (nesting image outer "(fails 8)")) (inner (stop-of-id image id 3)))
        (restarted image inner "ABORT")
        (is string= "interrupted" (status-of-work image request)))
      (is string= "interrupted" (status-of-work image (nesting image outer "(abort)")))
      (is string= "(NIL :WENT-ON)" (progn (on-stop image "debug-continue" outer) (outcome-text image id))))
    ;; ABORT of the evaluation ends all.
    (multiple-value-bind (outer id) (stopped-at image "(list (fails 5))")
      (let* ((request (nesting image outer "(fails 9)")) (inner (stop-of-id image id 1)))
        (on-stop image "debug-restart" inner "index" (1- (length (path inner "restarts"))) "name" "ABORT")
        (is string= "left" (status-of-work image request))
        (is string= "ABORT" (outcome-text image id))
        (is equalp #() (path (call image "debug-stops") "result" "stops"))))))

(deftest warnings-of-code-at-a-stop
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(list (fails 5))")
      (flet ((printed (answer) (path answer "result" "stderr" "text")))
        (is string= (format nil "WARNING: careful 1~%") (printed (answer image (nesting image stop "(progn (warn \"careful ~A\" 1) 7)"))))
        ;; A watch is evaluated unasked.
        (is string= "" (printed (on-stop image "debug-eval" stop "frame" 0 "code" "(progn (warn \"careful\") 7)"))))
      (restarted image stop "USE-OTHER" "arguments" (vector "1"))
      (let ((answer (answer image id)))
        (is string= "ok" (path answer "result" "status"))
        (is equalp #() (path answer "result" "warnings"))))))

(deftest restarts-name-the-levels-they-go-back-to
  (with-debugged (image)
    (multiple-value-bind (outer id) (stopped-at image "(list (fails 5))")
      (nesting image outer "(fails 6)")
      (let ((inner (stop-of-id image id 1)))
        (nesting image inner "(fails 7)")
        (is equal '("Go back to the stop at level 2." "Go back to the stop at level 1." "End the evaluation.")
            (loop for restart across (path (stop-of-id image id 2) "restarts")
                  when (string= "ABORT" (path restart "name")) collect (path restart "report")))))))

(deftest frames-name-the-package-of-their-code
  (with-debugged (image)
    (prepare image "(defpackage :of-frames (:use :cl)) (defun of-frames::calls (x) (list (fails x)))" :session "others")
    (let* ((stop (stopped-at image "(list (of-frames::calls 1))")) (calls (frame-number image stop "OF-FRAMES::CALLS")))
      (flet ((package-of (stop frame) (path (aref (frames-of image stop) frame) "package")))
        (is string= "OF-FRAMES" (package-of stop calls))
        (is string= "COMMON-LISP-USER" (package-of stop (frame-number image stop "FAILS")))
        ;; A frame without a name of its own: the current package.
        (send image "debug-eval" "stop" (path stop "stop") "frame" calls "code" "(error \"inner\")" "debug" :true)
        (is string= "OF-FRAMES" (package-of (stop-of-id image (path stop "id") 1) 0))))))

(deftest nested-code-ends
  (with-debugged (image)
    (multiple-value-bind (outer id) (stopped-at image "(list (fails 5))")
      ;; By the time that it runs.
      (is string= "timeout" (status-of-work image (nesting image outer "(loop)" "timeout" 1)))
      (let ((request (nesting image outer "(list (fails 6) (loop))" "timeout" 1)))
        (restarted image (stop-of-id image id 1) "PLAINLY")
        (is string= "timeout" (status-of-work image request)))
      ;; By an interruption of the request, with all stops in it.
      (let* ((first (nesting image outer "(list (fails 7))"))
             (second (nesting image (stop-of-id image id 2) "(list (fails 8))"))
             (third (stop-of-id image id 3)))
        (is = 3 (path third "level"))
        (call image "interrupt" "target" first)
        (is string= "boom 8" (path (answer image second) "result" "error" "message"))
        (is string= "boom 7" (path (answer image first) "result" "error" "message")))
      (is string= "5" (in-frame image outer 0 "c"))
      ;; The evaluation is interrupted as ever.
      (let ((request (nesting image outer "(list (fails 9))")))
        (stop-of-id image id 4)
        (call image "interrupt" "target" id)
        (is string= "interrupted" (status-of-work image id))
        (is string= "left" (status-of-work image request))))))

(defparameter *long-timers* "
(defun long-timers ()
  (remove (+ (get-internal-real-time) (* 1000 internal-time-units-per-second)) (consort::timer-queue-timers consort::*deadlines*)
          :key #'consort::timer-at :test #'>))
" "The timers that have more than a thousand seconds to go.")

(deftest the-time-of-nested-code-begins-anew
  (with-debugged (image)
    (prepare image *long-timers* :session "others")
    (multiple-value-bind (outer id) (stopped-at image "(list (fails 5))")
      (let ((request (nesting image outer "(let ((before (long-timers))) (fails 6) (fails 7) (list (length (long-timers)) (intersection (long-timers) before)))" "timeout" 2000)))
        (restarted image (stop-of-id image id 1) "PLAINLY")
        (restarted image (stop-of-id image id 2) "PLAINLY")
        (is string= "(1 NIL)" (path (answer image request) "result" "values" 0 "text")))
      ;; The stop is over with the code.
      (is string= "NIL" (in-frame image outer 0 "(long-timers)")))))

(defparameter *slow-report* "
(defvar *reporting* nil)
(defvar *go-on* nil)
(define-condition slow (error) ()
  (:report (lambda (condition stream)
             (declare (ignore condition))
             (setf *reporting* t)
             (loop until *go-on* do (sleep 0.01))
             (write-string \"slow\" stream))))
" "A condition whose text is there once *GO-ON* is true: a stop at it begins for as long.")

(deftest nested-code-ends-while-its-stop-begins
  (with-debugged (image)
    (prepare image *slow-report* :session "others")
    (flet ((ended-as-it-begins (stop target)
             (prepare image "(setf *reporting* nil *go-on* nil)" :session "others")
             (let ((request (nesting image stop "(error 'slow)")))
               (prepare image "(loop until *reporting* do (sleep 0.01))" :session "others")
               (is eq :true (path (call image "interrupt" "target" (or target request)) "result" "found"))
               (prepare image "(setf *go-on* t)" :session "others")
               request))
           (ended (request) ; by the error that stopped, or by the interruption itself
             (ok (member (status-of-work image request) '("error" "interrupted") :test #'string=))))
      (multiple-value-bind (outer id) (stopped-at image "(list (fails 5))")
        (ended (ended-as-it-begins outer nil))
        ;; So does the code around it, which waits in a stop of its own.
        (let* ((first (nesting image outer "(list (fails 6))"))
               (around (find 2 (list (stop-of-id image id 1) (stop-of-id image id 2)) :key (lambda (stop) (path stop "level")) :from-end t))
               (second (ended-as-it-begins around first)))
          (ended second)
          (ended first))
        (is string= "5" (in-frame image outer 0 "c"))))))
