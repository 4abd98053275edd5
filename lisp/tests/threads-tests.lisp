;;;; Threads that programs start stop as the evaluations do whose code started them.

(in-package :consort)

(defun stopping-id (image code &key (session "s"))
  "Sends an editor's evaluation: it stops at errors, and so do threads that it starts; returns its
  id."
  (send image "eval" "session" session "code" code "capture_time" :false "timeout" *patience* "stream" :false
              "debug" :true "threads" :true))

(defun started (image code &rest keys)
  "Evaluates CODE, which starts threads, to its end."
  (let ((outcome (result-or-error (answer image (apply #'stopping-id image code keys)))))
    (unless (equal (path outcome "status") "ok")
      (abort-test "~A~%  should be evaluated, and gives ~A" code (shown outcome)))))

(defun stop-of-thread (image name &optional (number 0))
  "Returns the event of the stop NUMBER of the thread NAME, waited for."
  (await-event image "stopped" :which (lambda (events)
                                        (nth number (remove name events :key (lambda (event) (path event "thread")) :test-not #'string=)))))

(defun error-of-thread (image name)
  "Returns the event of the error that ended the thread NAME, waited for."
  (await-event image "thread-error" :which (lambda (events) (find name events :key (lambda (event) (path event "thread")) :test #'string=))))

(defun threads-named (image name)
  (count name (path (call image "threads") "result" "threads") :key (lambda (thread) (path thread "name")) :test #'string=))

(defun thread-gone (image name)
  "Waits until no thread NAME is left."
  (eventually (zerop (threads-named image name))))

(defun names-of-frames (image stop)
  (map 'list (lambda (frame) (path frame "name")) (frames-of image stop)))

(deftest a-thread-stops-at-an-error
  (with-debugged (image)
    (started image "(defvar *result* nil) (defun work (x) (setf *result* (outer x)))
                    (defvar *thread* (sb-thread:make-thread #'work :name \"worker\" :arguments '(5)))")
    (let ((stop (stop-of-thread image "worker")))
      (is string= "error" (path stop "reason"))
      (is string= "boom 10" (path stop "condition" "message"))
      (is eq nil (path-if-any stop "session"))
      (is string= "s" (path stop "started_by"))
      (ok (< 1000000000 (path stop "id")))
      (is string= "ABORT" (path stop "restarts" 2 "name"))
      (is = 3 (length (path stop "restarts")))
      (is equal '("FAILS" "INNER" "OUTER" "WORK") (names-of-frames image stop))
      ;; The session that started it goes on, as do others, checks and hot reload.
      (is string= "3" (first-value image "(+ 1 2)"))
      (is equal (codes-of image *sound-text*) (codes-of image *sound-text*))
      (ok (reloaded-p (compile-string image "(in-package :cl-user) (defun reloaded () :reloaded)")))
      (is equal (list (path stop "stop")) (map 'list (lambda (each) (path each "stop")) (path (call image "status") "result" "stops")))
      (let ((inner (frame-number image stop "INNER")))
        (is string= "5" (path (local-in image stop inner "A") "value" "text"))
        (is string= "7" (in-frame image stop inner "(progn (format t \"seen\") (+ a b))"))
        (is string= "UNBOUND-VARIABLE" (path (on-stop image "debug-eval" stop "frame" inner "code" "no-such-thing") "result" "error" "type")))
      (is string= "sent" (path (restarted image stop "USE-OTHER" "arguments" #("(* 6 7)")) "result" "status"))
      (is string= "restart" (left image stop))
      (is string= "(:OUTER (:INNER (:USED 42) 5) 5)" (first-value image "(sb-thread:join-thread *thread*)"))
      (is equal '() (events image "thread-error")))))

(deftest a-thread-is-mended-and-goes-on
  (with-debugged (image)
    (started image "(defun work (x) (list :worked (outer x)))
                    (defun start (name) (sb-thread:make-thread 'work :name name :arguments 5))
                    (defvar *one* (start \"one\")) (defvar *two* (start \"two\")) (defvar *three* (start \"three\"))")
    (let ((one (stop-of-thread image "one")) (two (stop-of-thread image "two")) (three (stop-of-thread image "three")))
      (is string= "sent" (path (on-stop image "debug-return" one "frame" (frame-number image one "OUTER") "code" "(list x :returned)") "result" "status"))
      (is string= "(:WORKED (5 :RETURNED))" (first-value image "(sb-thread:join-thread *one*)"))
      (prepare image "(defun fails (c) (list :fixed c))")
      (is string= "sent" (path (on-stop image "debug-restart-frame" two "frame" (frame-number image two "INNER")) "result" "status"))
      (is string= "(:WORKED (:OUTER (:INNER (:FIXED 10) 5) 5))" (first-value image "(sb-thread:join-thread *two*)"))
      ;; A thread's own ABORT ends it without a report; an abort ends it with the report of today.
      (is string= "sent" (path (restarted image three "ABORT") "result" "status"))
      (is string= ":GONE" (first-value image "(sb-thread:join-thread *three* :default :gone)"))
      (is equal '() (events image "thread-error")))
    (started image "(defvar *four* (sb-thread:make-thread (lambda () (list (error \"four failed\"))) :name \"four\"))")
    (on-stop image "debug-abort" (stop-of-thread image "four"))
    (is string= "four failed" (path (error-of-thread image "four") "message"))
    (is string= ":GONE" (first-value image "(sb-thread:join-thread *four* :default :gone)"))))

(deftest frames-of-threads-have-the-forms-of-earlier-evaluations
  (with-debugged (image)
    (let ((defining "(defun in-repl (x) (list (error \"no ~A\" x)))")
          (starting "(sb-thread:make-thread (lambda () (list (in-repl 1))) :name \"worker\")"))
      (started image (format nil ":first~%~A" defining))
      (started image starting)
      (let ((answer (path (on-stop image "debug-frames" (stop-of-thread image "worker") "count" 5) "result")))
        (is equal (list "(error \"no ~A\" x)" defining) (loaded-part answer 0))
        (is equal (list "(in-repl 1)" starting) (loaded-part answer 1))))))

(deftest what-a-thread-handles-does-not-stop
  (with-debugged (image)
    (started image "(defun run (function) (sb-thread:join-thread (sb-thread:make-thread function :name \"run\")))")
    (flet ((gives (expected form)
             (is-when form string= expected
                      (outcome-text image (stopping-id image (format nil "(run (lambda () ~A))" form))))))
      (gives ":HANDLED" "(handler-case (outer 5) (error () :handled))")
      (gives ":BOUND" "(block nil (handler-bind ((error (lambda (c) (declare (ignore c)) (return :bound)))) (outer 5)))")
      (gives ":HOOK" "(block nil (let ((*debugger-hook* (lambda (c h) (declare (ignore c h)) (return :hook)))) (outer 5)))")
      (gives ":INVOKED" "(block nil (let ((sb-ext:*invoke-debugger-hook* (lambda (c h) (declare (ignore c h)) (return :invoked)))) (outer 5)))")
      (gives "NIL" "(ignore-errors (outer 5))")
      (gives "(1 2)" "(multiple-value-list (values 1 2))"))
    (is string= "(1 2 3)" (outcome-text image (stopping-id image "(multiple-value-list (sb-thread:join-thread (sb-thread:make-thread #'values :arguments '(1 2 3))))")))
    (is string= "UNDEFINED-FUNCTION" (outcome-text image (debug-id image "(handler-case (sb-thread:make-thread 'no-such-function) (undefined-function (c) (type-of c)))")))
    (settle image)
    (is equal '() (events image "stopped"))))

(deftest which-threads-stop
  (with-debugged (image)
    (prepare image "(defun start (name) (sb-thread:make-thread (lambda () (list (fails name))) :name name))")
    ;; Threads of an evaluation that does not stop, of one whose threads do not, of code in a frame.
    (prepare image "(start \"agents\")")
    (is string= "boom agents" (path (error-of-thread image "agents") "message"))
    (answer image (debug-id image "(start \"terminals\")"))
    (is string= "boom terminals" (path (error-of-thread image "terminals") "message"))
    (let* ((id (stopping-id image "(fails 1)"))
           (stop (stop-of-id image id)))
      (in-frame image stop 0 "(start \"frames\")")
      (is string= "boom frames" (path (error-of-thread image "frames") "message"))
      (restarted image stop "PLAINLY")
      (answer image id))
    ;; A thread that such a thread starts, when the evaluation is over.
    (started image "(defvar *go* (sb-thread:make-semaphore))
                    (sb-thread:make-thread (lambda () (sb-thread:wait-on-semaphore *go*) (start \"child\")) :name \"parent\")")
    (prepare image "(sb-thread:signal-semaphore *go*)" :session "others")
    (let ((stop (stop-of-thread image "child")))
      (is string= "s" (path stop "started_by"))
      (restarted image stop "PLAINLY")
      (left image stop))
    ;; When the session has ended nobody looks; a stop that was there stays until it is left.
    (started image "(sb-thread:make-thread (lambda () (sb-thread:wait-on-semaphore *go*) (list (fails \"late\"))) :name \"late\")
                    (start \"early\")" :session "leaving")
    (let ((early (stop-of-thread image "early")))
      (call image "close-session" "session" "leaving")
      (prepare image "(sb-thread:signal-semaphore *go*)" :session "others")
      (is string= "boom late" (path (error-of-thread image "late") "message"))
      (is equal (list (path early "stop")) (map 'list (lambda (each) (path each "stop")) (path (call image "debug-stops") "result" "stops")))
      (on-stop image "debug-abort" early)
      (is string= "boom early" (path (error-of-thread image "early") "message")))))

(deftest break-and-nested-stops-of-a-thread
  (with-debugged (image)
    (started image "(defvar *thread* (sb-thread:make-thread (lambda () (break \"here\") (list :went (fails 3))) :name \"breaks\"))")
    (let ((stop (stop-of-thread image "breaks")))
      (is string= "break" (path stop "reason"))
      (is string= "here" (path stop "condition" "message"))
      (on-stop image "debug-continue" stop)
      (is string= "continue" (left image stop)))
    (let* ((outer (stop-of-thread image "breaks" 1))
           (request (send image "debug-eval" "stop" (path outer "stop") "frame" 0 "code" "(list (fails 4))" "debug" :true))
           (inner (stop-of-thread image "breaks" 2)))
      (is = 2 (path inner "level"))
      (is = (path outer "id") (path inner "id"))
      (restarted image inner "PLAINLY")
      (is string= "(:PLAIN)" (path (answer image request) "result" "values" 0 "text"))
      (restarted image outer "PLAINLY")
      (is string= "(:WENT :PLAIN)" (first-value image "(sb-thread:join-thread *thread*)")))))

(deftest breakpoints-and-steps-in-a-thread
  (with-probed (image file text)
    (points-set image file text '("(square i)" "condition" "(= i 2)"))
    (started image "(defvar *thread* (sb-thread:make-thread #'probed::sum-to :name \"sums\" :arguments '(2)))")
    (let ((stop (stop-of-thread image "sums")))
      (is string= "breakpoint" (path stop "reason"))
      (is string= "(square i)" (span-text (path stop "at") text))
      ;; A thread that runs beside it does not step along.
      (let ((over (stepped image stop "over")))
        (is string= "step" (path over "reason"))
        (is string= "4" (path over "at" "value"))
        (is string= "4" (first-value image "(probed::square 2)"))
        (on-stop image "debug-continue" over)
        (is string= "(5)" (first-value image "(sb-thread:join-thread *thread*)"))))
    ;; An abort at a breakpoint ends the thread.
    (started image "(defvar *other* (sb-thread:make-thread #'probed::sum-to :name \"others\" :arguments '(2)))")
    (on-stop image "debug-abort" (stop-of-thread image "others"))
    (is string= ":GONE" (first-value image "(sb-thread:join-thread *other* :default :gone)"))))

(deftest a-thread-is-paused
  (with-image (image)
    (started image "(defvar *go-on* t)
                    (defun spins (n) (loop while *go-on* do (incf n)) (list :spun (plusp n)))
                    (defvar *thread* (sb-thread:make-thread #'spins :name \"spins\" :arguments '(0)))
                    (defvar *fails* (sb-thread:make-thread (lambda () (break)) :name \"breaks\"))")
    ;; The threads are numbered in their order.
    (let ((number (1- (path (stop-of-thread image "breaks") "id"))))
      (call image "debug-pause" "target" number)
      (let ((stop (stop-of-thread image "spins")))
        (is string= "pause" (path stop "reason"))
        (is = number (path stop "id"))
        (prepare image "(setf *go-on* nil)")
        (on-stop image "debug-continue" stop)
        (is string= "(:SPUN T)" (first-value image "(sb-thread:join-thread *thread*)"))))))

(deftest threads-that-end-leave-their-stops
  (with-debugged (image)
    (started image "(defun start (name) (sb-thread:make-thread (lambda () (list (fails name))) :name name))
                    (defvar *one* (start \"one\")) (defvar *two* (start \"two\")) (defvar *three* (start \"three\"))")
    (let ((one (stop-of-thread image "one")) (two (stop-of-thread image "two")) (three (stop-of-thread image "three")))
      (prepare image "(sb-thread:terminate-thread *one*)")
      (is string= "stopped" (left image one))
      (is string= ":GONE" (first-value image "(sb-thread:join-thread *one* :default :gone)"))
      ;; While code runs in a frame of it.
      (let ((request (send image "debug-eval" "stop" (path two "stop") "code" "(loop)" "timeout" *patience*)))
        (eventually (find "busy" (path (call image "debug-stops") "result" "stops") :key (lambda (stop) (path stop "state")) :test #'string=))
        (prepare image "(sb-thread:terminate-thread *two*)")
        (left image two)
        (is string= "left" (path (answer image request) "result" "status"))
        (is string= ":GONE" (first-value image "(sb-thread:join-thread *two* :default :gone)")))
      ;; By the list of threads.
      (let ((number (path (find "three" (path (call image "threads") "result" "threads") :key (lambda (thread) (path thread "name")) :test #'string=)
                          "number")))
        (call image "interrupt-thread" "number" number)
        (is string= "stopped" (left image three))
        (thread-gone image "three")))
    ;; A running thread ends as ever, with a report and without a stop.
    (started image "(defvar *turns* 0) (sb-thread:make-thread (lambda () (loop (incf *turns*))) :name \"runs\")")
    (eventually (string= "T" (first-value image "(plusp *turns*)" :session "others")))
    (call image "interrupt-thread" "number"
          (path (find "runs" (path (call image "threads") "result" "threads") :key (lambda (thread) (path thread "name")) :test #'string=) "number"))
    (is string= "SB-SYS:INTERACTIVE-INTERRUPT" (path (error-of-thread image "runs") "type"))
    (thread-gone image "runs")))

(deftest stops-of-threads-are-few
  (with-debugged (image)
    (started image "(defvar *threads* (loop for i below 30 collect (sb-thread:make-thread (lambda () (list (fails :many))) :name \"many\")))")
    ;; Errors beyond the limit are reported at once.
    (await-event image "thread-error" :which (lambda (events) (<= 22 (length events))))
    (is = 22 (length (events image "thread-error")))
    (is = 8 (length (path (call image "debug-stops") "result" "stops")))
    ;; Evaluations stop all the same; checks and completion go on.
    (let* ((id (debug-id image "(fails 1)" :session "others"))
           (stop (stop-of-id image id)))
      (restarted image stop "PLAINLY")
      (is string= ":PLAIN" (outcome-text image id)))
    (ok (path (call image "complete" "text" "mapca" "limit" 3) "result" "items"))
    (loop for stop across (path (call image "debug-stops") "result" "stops")
          do (restarted image stop "PLAINLY"))
    (is string= "8" (first-value image "(count '(:plain) *threads* :test #'equal :key (lambda (thread) (sb-thread:join-thread thread :default nil)))"))
    (is equalp #() (path (call image "debug-stops") "result" "stops"))))

(deftest a-thread-that-is-started-while-its-session-is-closed
  ;; Jobs are withdrawn before the evaluation is told to end; a thread that it starts in between is
  ;; told all the same.
  (with-image (image)
    (is string= "(T NIL)"
        (first-value image "(let ((starter (consort::make-evaluation 0 \"closing\")) (started nil) (before nil))
                              (setf (consort::evaluation-debug starter) t
                                    (consort::evaluation-threads starter) t
                                    (consort::session-current (consort::find-session \"closing\")) (consort::make-job starter #'identity #'identity #'identity))
                              (sb-int:encapsulate 'consort::withdraw-jobs 'starting
                                                  (lambda (withdraw &rest arguments)
                                                    (setf started (consort::evaluation-of-new-thread starter))
                                                    (consort::note-started-thread started starter)
                                                    (setf before (consort::evaluation-debug started))
                                                    (apply withdraw arguments)))
                              (consort::close-session \"closing\")
                              (sb-int:unencapsulate 'consort::withdraw-jobs 'starting)
                              (setf (consort::evaluation-state starter) :ended)
                              (consort::forget-started-thread started)
                              (list before (consort::evaluation-debug started)))"))))
