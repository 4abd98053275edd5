;;;; Stopped programs: an evaluation with `debug` stops where it would fail, is looked at, and goes
;;;; on or ends.

(in-package :consort)

(defun debug-id (image code &key (session "s") (timeout *patience*) package stream origin)
  "Sends an evaluation that stops at errors; returns its id."
  (apply #'send image "eval" "session" session "code" code "capture_time" :false "timeout" timeout "stream" (bool stream) "debug" :true
         (append (when package (list "package" package)) (when origin (list "origin" origin)))))

(defun stop-of-id (image id &optional (number 0))
  "Returns the event of the stop NUMBER of the evaluation ID, waited for."
  (await-event image "stopped" :id id :which (lambda (events) (nth number events))))

(defun stopped-at (image code &rest keys)
  "Evaluates CODE for debugging; returns its stop and the id of the evaluation."
  (let ((id (apply #'debug-id image code keys)))
    (values (stop-of-id image id) id)))

(defun on-stop (image op stop &rest fields)
  "Returns the answer to OP about STOP, an event."
  (apply #'call image op "stop" (path stop "stop") fields))

(defun frames-of (image stop &rest fields)
  (path (apply #'on-stop image "debug-frames" stop fields) "result" "frames"))

(defun frame-number (image stop name)
  "Returns the number of the frame of STOP that is called NAME."
  (path (find name (frames-of image stop) :key (lambda (frame) (path frame "name")) :test #'string=) "number"))

(defun local-in (image stop frame name)
  "Returns the facts of the local NAME."
  (find name (path (on-stop image "debug-locals" stop "frame" frame) "result" "locals") :key (lambda (local) (path local "name")) :test #'string=))

(defun in-frame (image stop frame code &rest fields)
  "Returns the first value of CODE in a frame, as text, or the whole answer."
  (let ((answer (apply #'on-stop image "debug-eval" stop "frame" frame "code" code fields)))
    (or (path-if-any answer "result" "values" 0 "text") answer)))

(defun restart-index (stop name)
  (position name (path stop "restarts") :key (lambda (restart) (path-if-any restart "name")) :test #'equal))

(defun restarted (image stop name &rest fields)
  "Invokes the restart NAME of STOP; returns the answer."
  (apply #'on-stop image "debug-restart" stop "index" (restart-index stop name) "name" name fields))

(defun left (image stop)
  "Waits until STOP is left; returns how."
  (path (await-event image "stop-left" :which (lambda (events) (find (path stop "stop") events :key (lambda (event) (path event "stop"))))) "how"))

(defun outcome-text (image id)
  "Returns the first value of the evaluation ID as text, or its error's type."
  (let ((outcome (result-or-error (answer image id))))
    (or (path-if-any outcome "values" 0 "text") (path-if-any outcome "error" "type") outcome)))

(defparameter *debugged-functions* "
(defun inner (a b) (let ((c (* a b))) (list :inner (fails c) a)))
(defun outer (x) (list :outer (inner x 2) x))
(defun fails (c)
  (restart-case (error \"boom ~A\" c)
    (use-other (value) :report \"Use another.\" :interactive (lambda () (list (eval (read *query-io*)))) (list :used value))
    (plainly () :report \"Plainly.\" :plain)))")

(defmacro with-debugged ((image &rest options) &body body)
  "BODY with an IMAGE that has the functions above."
  `(with-image (,image ,@options)
     (prepare ,image *debugged-functions* :session "others")
     ,@body))

(deftest stops-at-an-error
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (is string= "error" (path stop "reason"))
      (is string= "SIMPLE-ERROR" (path stop "condition" "type"))
      (is string= "boom 10" (path stop "condition" "message"))
      (is = 1 (path stop "level"))
      (is equalp #("USE-OTHER" "PLAINLY" "ABORT") (map 'vector (lambda (restart) (path restart "name")) (path stop "restarts")))
      (is equalp #(:true :false :false) (map 'vector (lambda (restart) (path restart "arguments")) (path stop "restarts")))
      (is string= "Use another." (path stop "restarts" 0 "report"))
      (is equal '("FAILS" "INNER" "OUTER") (map 'list (lambda (frame) (path frame "name")) (frames-of image stop)))
      (is equal '("OUTER") (map 'list (lambda (frame) (path frame "name")) (frames-of image stop "start" 2 "count" 1)))
      (is = 3 (path (on-stop image "debug-frames" stop "count" 1) "result" "total"))
      ;; Everybody else goes on.
      (is string= "3" (first-value image "(+ 1 2)" :session "others"))
      (is string= "SIMPLE-ERROR" (error-type image "(error \"as ever\")" :session "others"))
      (ok (path (call image "complete" "text" "mapca" "limit" 3) "result" "items"))
      (is equal (list (path stop "stop")) (map 'list (lambda (each) (path each "stop")) (path (call image "status") "result" "stops")))
      (is string= "waiting" (path (call image "debug-stops") "result" "stops" 0 "state"))
      ;; Locals and code in frames.
      (let ((inner (frame-number image stop "INNER")))
        (is string= "5" (path (local-in image stop inner "A") "value" "text"))
        (is string= "7" (in-frame image stop inner "(+ a b)"))
        (is string= "UNBOUND-VARIABLE" (path (on-stop image "debug-eval" stop "frame" inner "code" "no-such-thing") "result" "error" "type"))
        (is string= "5" (in-frame image stop inner "a")))
      (is string= "sent" (path (restarted image stop "USE-OTHER" "arguments" #("(* 6 7)")) "result" "status"))
      (is string= "restart" (left image stop))
      (is string= "(:OUTER (:INNER (:USED 42) 5) 5)" (outcome-text image id))
      (is string= "stale" (path (on-stop image "debug-frames" stop) "error" "kind"))
      (is string= "stale" (path (restarted image stop "PLAINLY") "error" "kind"))
      (is equalp #() (path (call image "debug-stops") "result" "stops")))))

(deftest without-debug-errors-are-reported
  (with-debugged (image)
    (is string= "SIMPLE-ERROR" (error-type image "(outer 5)"))
    (is string= ":HANDLED" (outcome-text image (debug-id image "(handler-case (outer 5) (error () :handled))")))
    (settle image)
    (is equal '() (events image "stopped"))))

(deftest code-at-a-stop-of-a-form-alone
  (with-debugged (image)
    (prepare image "(defpackage :elsewhere (:use :cl))" :session "others")
    ;; Only the call of ERROR is on the stack.
    (multiple-value-bind (stop id) (stopped-at image "(error \"bare\")" :package "ELSEWHERE")
      (is eql 1 (path stop "frames"))
      (is string= "(3 \"ELSEWHERE\")" (path (on-stop image "debug-eval" stop "code" "(list (+ 1 2) (package-name *package*))") "result" "values" 0 "text"))
      (is string= "3" (in-frame image stop 0 "(+ 1 2)"))
      (is string= "bad-params" (path (on-stop image "debug-eval" stop "frame" 1 "code" "1") "error" "kind"))
      (on-stop image "debug-abort" stop)
      (is string= "SIMPLE-ERROR" (outcome-text image id)))))

(deftest frames-of-the-implementation
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(list (/ 1 0))")
      (is equalp '(("/" :true) ("top-level form" :false))
          (map 'list (lambda (frame) (list (path frame "name") (path frame "standard"))) (frames-of image stop)))
      (on-stop image "debug-abort" stop)
      (is string= "DIVISION-BY-ZERO" (outcome-text image id)))))

(deftest ways-to-leave-a-stop
  (with-debugged (image)
    (flet ((leaving (how expected op &rest fields)
             (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
               (is-when how string= "sent" (path (apply #'on-stop image op stop fields) "result" "status"))
               (is-when how string= how (left image stop))
               (is-when how string= expected (outcome-text image id)))))
      (leaving "restart" "(:OUTER (:INNER :PLAIN 5) 5)" "debug-restart" "index" 1 "name" "PLAINLY")
      (leaving "restart" "(:OUTER (:INNER (:USED 9) 5) 5)" "debug-restart" "index" 0 "name" "USE-OTHER" "input" "(+ 4 5)")
      (leaving "return" "(:OUTER 11 5)" "debug-return" "frame" 1 "code" "(+ a 6)")
      (leaving "abort" "SIMPLE-ERROR" "debug-abort")
      (leaving "restart" "ABORT" "debug-restart" "index" 2 "name" "ABORT"))
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (is string= "cannot-continue" (path (on-stop image "debug-continue" stop) "error" "kind"))
      (is string= "stale" (path (on-stop image "debug-restart" stop "index" 1 "name" "USE-OTHER") "error" "kind"))
      ;; The report is that of an evaluation that does not stop.
      (on-stop image "debug-abort" stop)
      (let ((stopped (path (answer image id) "result" "error"))
            (plain (path (evaluated image "(outer 5)") "error")))
        (is equalp (path plain "backtrace") (path stopped "backtrace"))
        (is string= (path plain "message") (path stopped "message"))))))

(deftest fix-and-continue
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (prepare image "(defun fails (c) (list :fixed c))" :session "others")
      (is string= "sent" (path (on-stop image "debug-restart-frame" stop "frame" (frame-number image stop "INNER")) "result" "status"))
      (is string= "(:OUTER (:INNER (:FIXED 10) 5) 5)" (outcome-text image id)))))

(deftest a-methods-frame-is-restarted
  (with-image (image)
    (prepare image "(defgeneric area (x)) (defclass shape () ()) (defclass circle (shape) ())
                    (defmethod area ((x shape)) (list :shape (error \"none\")))
                    (defmethod area ((x circle)) (list :circle (call-next-method)))
                    (defmethod area ((x integer)) (list :integer (error \"no area of ~A\" x)))")
    (multiple-value-bind (stop id) (stopped-at image "(area 3)")
      (is string= "(METHOD AREA (INTEGER))" (path (frames-of image stop) 0 "name"))
      (prepare image "(defmethod area ((x integer)) (list :fixed x))" :session "others")
      (is string= "sent" (path (on-stop image "debug-restart-frame" stop "frame" 0) "result" "status"))
      (is string= "(:FIXED 3)" (outcome-text image id)))
    (multiple-value-bind (stop id) (stopped-at image "(area (make-instance 'circle))")
      (is string= "not-restartable" (path (on-stop image "debug-restart-frame" stop "frame" 0) "error" "kind"))
      (on-stop image "debug-abort" stop)
      (is string= "SIMPLE-ERROR" (outcome-text image id)))))

(deftest a-frame-that-is-not-found-again-in-time
  (with-image (image)
    (prepare image "(defclass asks (standard-generic-function) () (:metaclass sb-mop:funcallable-standard-class))
                    (defvar *loops* nil)
                    (defmethod compute-applicable-methods ((generic asks) arguments)
                      (declare (ignore arguments))
                      (loop while *loops* do (sleep 0.001))
                      (call-next-method))
                    (defgeneric area (x) (:generic-function-class asks))
                    (defmethod area ((x integer)) (list :integer (error \"no area of ~A\" x)))")
    (multiple-value-bind (stop id) (stopped-at image "(area 3)")
      (prepare image "(setf *loops* t)" :session "others")
      (let ((answer (on-stop image "debug-restart-frame" stop "frame" 0 "timeout" 0.2)))
        (is string= "not-restartable" (path answer "error" "kind"))
        (ok (text-contains "took longer than 0.2 s" (path answer "error" "message"))))
      ;; The stop is as it was.
      (is string= "3" (in-frame image stop 0 "x"))
      (prepare image "(progn (setf *loops* nil) (defmethod area ((x integer)) (list :fixed x)))" :session "others")
      (is string= "sent" (path (on-stop image "debug-restart-frame" stop "frame" 0) "result" "status"))
      (is string= "(:FIXED 3)" (outcome-text image id)))))

(deftest break-and-continue
  (with-image (image)
    (multiple-value-bind (stop id) (stopped-at image "(progn (break \"here ~A\" 1) :after)")
      (is string= "break" (path stop "reason"))
      (is string= "here 1" (path stop "condition" "message"))
      (is string= "sent" (path (on-stop image "debug-continue" stop) "result" "status"))
      (is string= ":AFTER" (outcome-text image id)))
    (multiple-value-bind (stop id) (stopped-at image "(let ((*break-on-signals* 'warning)) (handler-case (warn \"w\") (warning () :handled)))")
      (on-stop image "debug-continue" stop)
      (is string= ":HANDLED" (outcome-text image id)))))

(deftest restarts-of-the-system
  (with-image (image)
    (multiple-value-bind (stop id) (stopped-at image "(+ 1 no-such-variable)")
      (restarted image stop "USE-VALUE" "arguments" #("41"))
      (is string= "42" (outcome-text image id)))
    (multiple-value-bind (stop id) (stopped-at image "(list (+ 1 no-such-variable) no-such-variable)")
      (restarted image stop "STORE-VALUE" "input" "41")
      (is string= "(42 41)" (outcome-text image id)))
    (multiple-value-bind (stop id) (stopped-at image "(no-such-function 3)")
      (prepare image "(defun no-such-function (x) (* 2 x))" :session "others")
      (restarted image stop "CONTINUE")
      (is string= "6" (outcome-text image id)))))

(deftest restarts-that-take-arguments
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(restart-bind ((bound (lambda (x) (print x))) (bare (lambda () 1)))
                                                        (restart-case (error \"y\") (one (a) (list :one a)) (several (a b) (list b a)) (perhaps (&optional a) a) (none () nil)))")
      (is equalp '(("ONE" :true) ("SEVERAL" :true) ("PERHAPS" :true) ("NONE" :false) ("BOUND" :true) ("BARE" :false) ("ABORT" :false))
          (map 'list (lambda (restart) (list (path restart "name") (path restart "arguments"))) (path stop "restarts")))
      (restarted image stop "SEVERAL" "arguments" (vector "1" "2"))
      (is string= "(2 1)" (outcome-text image id)))))

;;; The function of a restart may return; the program is where it was then, and people are told so.
(deftest restarts-that-return
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(let ((count 0))
                                                        (restart-bind ((again (lambda (x) (incf count x))) (continue (lambda () (incf count 10))))
                                                          (list (restart-case (error \"y\") (use-other () (list :count count))))))")
      (is string= "sent" (path (restarted image stop "AGAIN" "arguments" (vector "1")) "result" "status"))
      (let ((second (stop-of-id image id 1)))
        (is string= "restart" (left image stop))
        (is string= "stale" (path (restarted image stop "AGAIN" "arguments" (vector "1")) "error" "kind"))
        (is string= "y" (path second "condition" "message"))
        (is string= (path stop "reason") (path second "reason"))
        (is = 1 (path second "level"))
        (is string= "1" (path (local-in image second (frame-number image second "top-level form") "COUNT") "value" "text"))
        (on-stop image "debug-continue" second)
        (let ((third (stop-of-id image id 2)))
          (is string= "continue" (left image second))
          (restarted image third "USE-OTHER")
          (is string= "((:COUNT 11))" (outcome-text image id))))
      (is equalp #() (path (call image "debug-stops") "result" "stops")))
    ;; One that fails is a stop of its own; to abort that is to be back where the program was.
    (multiple-value-bind (stop id) (stopped-at image "(restart-bind ((bad (lambda () (error \"bad\")))) (error \"y\"))")
      (restarted image stop "BAD")
      (let ((inner (stop-of-id image id 1)))
        (is = 2 (path inner "level"))
        (on-stop image "debug-abort" inner)
        (let ((again (stop-of-id image id 2)))
          (is = 1 (path again "level"))
          (is string= "y" (path again "condition" "message"))
          (on-stop image "debug-abort" again)
          (is string= "SIMPLE-ERROR" (outcome-text image id)))))))

(deftest a-loop-is-paused
  (with-image (image)
    (prepare image "(defvar *end* nil) (defun spin (n) (print :begun) (finish-output) (let ((i 0)) (loop (incf i) (when *end* (return (list n (plusp i)))))))")
    (let ((id (debug-id image "(spin 7)" :stream t)))
      (await-text image "output" "BEGUN" :id id)
      (is equal '() (rest (path (call image "debug-pause" "target" id) "result")))
      (let ((stop (stop-of-id image id)))
        (is string= "pause" (path stop "reason"))
        (is string= "SPIN" (path (frames-of image stop) 0 "name"))
        (is string= "CONTINUE" (path stop "restarts" 0 "name"))
        (on-stop image "debug-continue" stop)
        (is string= "continue" (left image stop)))
      (call image "debug-pause" "target" id)
      (let ((stop (stop-of-id image id 1)))
        (is string= "T" (in-frame image stop 0 "(setf cl-user::*end* t)"))
        (on-stop image "debug-continue" stop))
      (is string= "(7 T)" (outcome-text image id)))
    (prepare image "(setf *end* nil)")
    (let ((id (debug-id image "(spin 8)")))
      (eventually (find id (path (call image "status") "result" "running") :key (lambda (each) (path each "id"))))
      (call image "debug-pause" "target" id)
      (on-stop image "debug-abort" (stop-of-id image id))
      (is string= "INTERRUPTED" (outcome-text image id)))
    (let ((id (eval-id image "(spin 9)")))
      (eventually (find id (path (call image "status") "result" "running") :key (lambda (each) (path each "id"))))
      (is string= "bad-params" (path (call image "debug-pause" "target" id) "error" "kind"))
      (call image "interrupt" "target" id)
      (is string= "INTERRUPTED" (outcome-text image id)))
    (is string= "not-found" (path (call image "debug-pause" "target" 99999) "error" "kind"))))

(deftest nested-stops
  (with-debugged (image)
    (multiple-value-bind (outer id) (stopped-at image "(outer 5)")
      (let* ((request (send image "debug-eval" "stop" (path outer "stop") "frame" 1 "code" "(list a (outer 6))" "debug" :true))
             (inner (stop-of-id image id 1)))
        (is = 2 (path inner "level"))
        (is = (path outer "stop") (path inner "parent"))
        (is string= "boom 12" (path inner "condition" "message"))
        (is string= "5" (path (local-in image outer (frame-number image outer "INNER") "A") "value" "text"))
        (is string= "busy" (path (on-stop image "debug-abort" outer) "error" "kind"))
        (restarted image inner "PLAINLY")
        (is string= "(5 (:OUTER (:INNER :PLAIN 6) 6))" (path (answer image request) "result" "values" 0 "text")))
      (let* ((request (send image "debug-eval" "stop" (path outer "stop") "frame" 1 "code" "(error \"second\")" "debug" :true))
             (inner (stop-of-id image id 2)))
        (on-stop image "debug-abort" inner)
        (is string= "second" (path (answer image request) "result" "error" "message"))
        (is string= "abort" (left image inner)))
      (is string= "10" (in-frame image outer (frame-number image outer "FAILS") "c"))
      (restarted image outer "PLAINLY")
      (is string= "(:OUTER (:INNER :PLAIN 5) 5)" (outcome-text image id)))))

(deftest several-stops-are-left-at-once
  (with-debugged (image)
    (let* ((ids (loop for i below 8 collect (debug-id image (format nil "(list ~D (fails ~:*~D))" i) :session (format nil "s~D" i))))
           (stops (mapcar (lambda (id) (stop-of-id image id)) ids)))
      ;; A stop beyond the limit is reported.
      (is string= "SIMPLE-ERROR" (outcome-text image (debug-id image "(fails 9)" :session "s9")))
      (is = 8 (length (path (call image "debug-stops") "result" "stops")))
      (let ((requests (mapcar (lambda (stop) (send image "debug-restart" "stop" (path stop "stop") "index" 1 "name" "PLAINLY")) stops)))
        (loop for request in requests
              for id in (reverse ids)
              do (is string= "sent" (path (answer image request) "result" "status")))
        (loop for id in ids
              for i from 0
              for stop in stops
              do (is string= (format nil "(~D :PLAIN)" i) (outcome-text image id))
                 (is string= "restart" (left image stop))))
      (is equalp #() (path (call image "debug-stops") "result" "stops")))))

(deftest two-leave-one-stop
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      ;; While it is busy both wait; the first leaves.
      (let* ((busy (send image "debug-eval" "stop" (path stop "stop") "code" "(loop)" "timeout" *patience*))
             (first (progn (eventually (string= "busy" (path (call image "debug-stops") "result" "stops" 0 "state")))
                           (send image "debug-restart" "stop" (path stop "stop") "index" 1 "name" "PLAINLY")))
             (second (send image "debug-abort" "stop" (path stop "stop"))))
        (is string= "interrupted" (progn (call image "interrupt" "target" busy) (path (answer image busy) "result" "status")))
        (is string= "sent" (path (answer image first) "result" "status"))
        (is string= "stale" (path (answer image second) "error" "kind")))
      (is string= "(:OUTER (:INNER :PLAIN 5) 5)" (outcome-text image id)))))

(deftest time-in-a-stop
  (with-debugged (image)
    ;; Only running time counts: the deadline passes while it is stopped, and again a little after.
    (destructuring-bind (stop id seconds) (in-time (seconds 1)
                                            (let* ((id (debug-id image "(progn (fails 1) (loop))" :timeout seconds)) (stop (event-or-answer image "stopped" id)))
                                              (and stop (list stop id seconds))))
      (evaluated image (format nil "(sleep ~F)" (* 1.5 seconds)) :session "others")
      (is string= "waiting" (path (call image "debug-stops") "result" "stops" 0 "state"))
      (restarted image stop "PLAINLY")
      (is string= "timeout" (path (answer image id) "result" "status")))
    ;; Code in a frame has a time of its own, and the stop stays.
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (is string= "timeout" (path (on-stop image "debug-eval" stop "code" "(loop)" "timeout" 0.2) "result" "status"))
      (is string= "10" (in-frame image stop 0 "c"))
      (restarted image stop "PLAINLY")
      (is string= "(:OUTER (:INNER :PLAIN 5) 5)" (outcome-text image id)))
    ;; A timeout of the user's own, as WITH-TIMEOUT makes one, does not unwind the stack that people
    ;; look at. Its time is over when the program is stopped.
    (prepare image "(defvar *timer*)" :session "others")
    (multiple-value-bind (stop id) (stopped-at image "(handler-case (progn (setf *timer* (sb-ext:make-timer (lambda () (error 'sb-ext:timeout)) :thread sb-thread:*current-thread*))
                                                                           (fails 1))
                                                        (sb-ext:timeout () :timed-out))")
      (prepare image "(sb-ext:schedule-timer *timer* 0)" :session "others")
      (eventually (string= "T" (first-value image "(and (consort::thread-interruptions (consort::stopped-thread (first consort::*stops*))) t)" :session "others")))
      (is string= "3" (in-frame image stop 0 "(+ 1 2)"))
      (is string= "3" (in-frame image stop 0 "(+ 1 2)"))
      (restarted image stop "PLAINLY")
      (is string= "restart" (left image stop))
      (ok (member (outcome-text image id) '(":PLAIN" ":TIMED-OUT") :test #'string=)))
    (multiple-value-bind (stop id) (stopped-at image "(handler-case (sb-sys:with-deadline (:seconds 0.2) (fails 1)) (sb-sys:deadline-timeout () :deadline))")
      (evaluated image "(sleep 0.5)" :session "others")
      (is string= "1" (in-frame image stop 0 "c"))
      (restarted image stop "PLAINLY")
      (is string= ":PLAIN" (outcome-text image id)))))

(deftest a-stopped-evaluation-is-ended
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (call image "interrupt" "target" id)
      (is string= "INTERRUPTED" (outcome-text image id))
      (is string= "stopped" (left image stop)))
    ;; Also while code runs in a frame, whose request is answered.
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (let ((request (send image "debug-eval" "stop" (path stop "stop") "code" "(loop)" "timeout" *patience*)))
        (eventually (string= "busy" (path (call image "debug-stops") "result" "stops" 0 "state")))
        (call image "interrupt" "target" id)
        (is string= "INTERRUPTED" (outcome-text image id))
        (is string= "left" (path (answer image request) "result" "status"))))
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)" :session "closing")
      (call image "close-session" "session" "closing")
      (is string= "INTERRUPTED" (outcome-text image id))
      (left image stop))
    ;; Code in a frame that leaves by itself.
    (multiple-value-bind (stop id) (stopped-at image "(catch 'out (outer 5))")
      (is string= "left" (path (on-stop image "debug-eval" stop "code" "(throw 'out :thrown)") "result" "status"))
      (is string= ":THROWN" (outcome-text image id)))))

(deftest handlers-of-a-stopped-program
  (with-debugged (image)
    ;; The program's own handlers do not see errors of what people evaluate there.
    (multiple-value-bind (stop id) (stopped-at image "(handler-case (outer 5) (unbound-variable () :mine))")
      (is string= "UNBOUND-VARIABLE" (path (on-stop image "debug-eval" stop "code" "no-such-thing") "result" "error" "type"))
      (is string= "SB-INT:SIMPLE-READER-ERROR" (path (on-stop image "debug-eval" stop "code" "#<x>") "result" "error" "type"))
      (restarted image stop "PLAINLY")
      (is string= "(:OUTER (:INNER :PLAIN 5) 5)" (outcome-text image id)))
    (is string= ":MINE" (outcome-text image (debug-id image "(block nil (let ((*debugger-hook* (lambda (c h) (declare (ignore c h)) (return :mine)))) (fails 1)))")))
    ;; A full stack is reported, not stopped at.
    (prepare image "(defun deep (n) (+ 1 (deep n)))" :session "others")
    (ok (text-contains "EXHAUSTED" (outcome-text image (debug-id image "(deep 1)"))))))

(deftest checks-beside-stopped-threads
  (with-debugged (image)
    (prepare image "(defclass thing () ((a :initform 1))) (defvar *thing* (make-instance 'thing))
                    (defmethod update-instance-for-redefined-class ((x thing) added discarded plist &key) (error \"in update\"))
                    (defclass thing () ((a :initform 1) (b :initform 2)))
                    (defmacro breaks (x) (break \"in a macro\") `(list ,x))" :session "others")
    (let ((expected (codes-of image *sound-text*))
          (stops '()))
      (flet ((stop (code session)
               (push (stopped-at image code :session session) stops)
               (dotimes (i 3)
                 (is-when code equal expected (codes-of image *sound-text*)))))
        (stop "(outer 5)" "plain")
        (stop "(sb-thread:with-mutex ((sb-thread:make-mutex)) (outer 6))" "mutex")
        (stop "(funcall (compile nil '(lambda (y) (breaks y))) 1)" "macro")
        (stop "(slot-value *thing* 'b)" "world")
        (is equalp #("the compiler's lock") (path (first stops) "holds"))
        (prepare image "1" :session "plain-reads")
        (is equal 4 (length (path (call image "debug-stops") "result" "stops"))))
      (dolist (stop stops)
        (is string= "sent" (path (on-stop image "debug-abort" stop) "result" "status"))
        (left image stop))
      (is equal expected (codes-of image *sound-text*))
      (is string= "3" (first-value image "(funcall (compile nil '(lambda () 3)))" :session "others")))))

(deftest stops-where-a-condition-is-signalled
  (with-image (image)
    (prepare image "(define-condition odd (condition) ((n :initarg :n)))
                    (defun handled (n) (handler-case (if (oddp n) (error \"odd ~A\" n) (signal 'odd :n n)) (error () (list :handled n)) (odd () (list :odd n))))")
    (flet ((break-on (&rest types) (path (call image "debug-break-on" "owner" "test" "types" (coerce types 'vector)) "result" "breakpoints")))
      (is equal '(:true :false :false) (map 'list (lambda (answer) (path answer "verified")) (break-on "error" "no-such-type" "(")))
      (let* ((id (debug-id image "(let ((k 3)) (list k (handled k)))"))
             (stop (await-event image "stopped" :id id)))
        (is string= "signal" (path stop "reason"))
        (is string= "odd 3" (path stop "condition" "message"))
        (is string= "HANDLED" (path (on-stop image "debug-frames" stop) "result" "frames" 0 "name"))
        (is string= "N" (path (on-stop image "debug-locals" stop "frame" 0) "result" "locals" 0 "name"))
        ;; The handlers have their say once it goes on.
        (on-stop image "debug-continue" stop)
        (is string= "(3 (:HANDLED 3))" (outcome-text image id)))
      ;; Not of another type, and not in what does not stop at errors.
      (is string= "(:ODD 2)" (outcome-text image (debug-id image "(handled 2)")))
      (is string= "(:HANDLED 5)" (first-value image "(handled 5)"))
      (break-on "odd")
      (let* ((id (debug-id image "(handled 4)")) (stop (await-event image "stopped" :id id)))
        (is string= "signal" (path stop "reason"))
        (on-stop image "debug-abort" stop)
        (is string= "interrupted" (path (answer image id) "result" "status")))
      ;; A setting by the program itself stays.
      (is string= "WARNING" (outcome-text image (debug-id image "(setf *break-on-signals* 'warning)")))
      (is string= "(:ODD 6)" (outcome-text image (debug-id image "(handled 6)")))
      (is string= "NIL" (outcome-text image (debug-id image "(setf *break-on-signals* nil)")))
      (break-on)
      (is string= "(:ODD 8)" (outcome-text image (debug-id image "(handled 8)"))))))

(deftest a-pause-before-the-program-runs-is-kept
  (with-image (image)
    (is equal "T" (first-value image "(let ((evaluation (consort::make-evaluation 99 nil)) (before (length (consort::timer-queue-timers consort::*deadlines*))))
                                        (setf (consort::evaluation-thread evaluation) sb-thread:*current-thread*)
                                        (consort::pause-here evaluation 3)
                                        (prog1 (loop repeat 1000
                                                     thereis (> (length (consort::timer-queue-timers consort::*deadlines*)) before)
                                                     do (sleep 0.01))
                                          (setf (consort::evaluation-state evaluation) :ended)))"))))
