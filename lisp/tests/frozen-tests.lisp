;;;; Frozen failures: an evaluation that fails leaves a copy behind in which its stack lives on, and
;;;; each request to that is tried in a process of its own.

(in-package :consort)

(defstruct (frozen-host (:constructor make-frozen-host (listener path)))
  "The host's side: where the copies connect."
  listener path)

(defstruct (frozen-link (:constructor make-frozen-link (pid socket stream)))
  pid socket stream (id 0))

(defvar *frozen-hosts* 0 "How many there were: each has a socket of its own.")

(defun call-with-frozen-host (function &optional (backlog 16))
  (let* ((path (format nil "~Afrozen~D" *scratch* (incf *frozen-hosts*)))
         (listener (make-instance 'sb-bsd-sockets:local-socket :type :stream)))
    (sb-bsd-sockets:socket-bind listener path)
    (sb-bsd-sockets:socket-listen listener backlog)
    (unwind-protect (funcall function (make-frozen-host listener path))
      (sb-bsd-sockets:socket-close listener)
      (delete-file path))))

(defun freeze-fields (host &key (keep 4) (seconds *patience*))
  (object "socket" (frozen-host-path host) "token" "secret" "keep" keep "seconds" seconds "read" #()))

(defun failed (image host code &key (session "s") (keep 4) (seconds *patience*))
  "Evaluates CODE, whose failure may be frozen; returns the outcome."
  (result-or-error (call image "eval" "session" session "code" code "capture_time" :true "timeout" *patience* "stream" :false
                                      "freeze" (freeze-fields host :keep keep :seconds seconds))))

(defun frozen (image host code &rest options)
  "Evaluates CODE until its failure is frozen; returns the outcome. OPTIONS are those of FAILED. A
  busy machine may not let the image be copied at once."
  (eventually
   (let ((outcome (apply #'failed image host code options)))
     (and (path-if-any outcome "frozen" "pid") outcome))))

(defun read-frozen (link)
  "Returns the next line of LINK as JSON, NIL at the end."
  (let ((line (read-line (frozen-link-stream link) nil)))
    (and line (parse-json (sb-ext:string-to-octets line :external-format :utf-8)))))

(defun connect-frozen (host)
  "Returns the link to the frozen failure that connects next. One that was ended as it connected is
  passed over."
  (loop
    (let* ((socket (sb-bsd-sockets:socket-accept (frozen-host-listener host)))
           (stream (sb-bsd-sockets:socket-make-stream socket :input t :output t :external-format :utf-8 :buffering :full :timeout *patience*))
           (link (make-frozen-link 0 socket stream))
           (hello (read-frozen link)))
      (when hello
        (is string= "secret" (path hello "token"))
        (setf (frozen-link-pid link) (path hello "pid"))
        (return link)))))

(defun hang-up (link)
  (close (frozen-link-stream link) :abort t)
  (sb-bsd-sockets:socket-close (frozen-link-socket link)))

(defun report-frozen (link message)
  (multiple-value-bind (octets end) (json-octets message)
    (write-line (sb-ext:octets-to-string octets :end end :external-format :utf-8) (frozen-link-stream link))
    (finish-output (frozen-link-stream link))))

(defun ask-frozen (link op fields &key (timeout *patience*))
  "Returns the answer of LINK to OP, or, when there is none, the line that says why."
  (report-frozen link (object "id" (incf (frozen-link-id link)) "op" op "timeout" timeout "params" (list* :object "stop" 0 fields)))
  (frozen-answer link))

(defun timed-out-p (answer &rest path)
  "Returns true if an attempt was ended by its time: by itself, which its result says at PATH, or by
  the frozen failure, where a busy machine's attempt is late."
  (equal "timeout" (or (path-if-any answer "why") (apply #'path answer "result" path))))

(defun frozen-answer (link)
  (let ((line (read-frozen link)))
    (is = (frozen-link-id link) (path line "id"))
    (if (eq (path line "answered") :true) (read-frozen link) line)))

(defun frozen-names (link)
  (map 'list (lambda (frame) (path frame "name")) (path (ask-frozen link "debug-frames" '()) "result" "frames")))

(defun tried (link restarts name &rest fields)
  "Tries the restart NAME of RESTARTS; returns the outcome that the evaluation would have had, or
  the answer."
  (let* ((index (position name restarts :key (lambda (restart) (path-if-any restart "name")) :test #'equal))
         (answer (ask-frozen link "debug-restart" (list* "index" index "name" name fields))))
    (or (path-if-any answer "result" "outcome") answer)))

(defun tried-value (&rest arguments)
  (path (apply #'tried arguments) "values" 0 "text"))

(defun alive-p (pid)
  "Returns true if the process PID is there and no zombie."
  (with-open-file (in (format nil "/proc/~D/stat" pid) :if-does-not-exist nil :external-format :latin-1)
    (and in
         (let ((line (ignore-errors (read-line in nil))))
           (and line (char/= #\Z (char line (+ 2 (position #\) line :from-end t)))))))))

(defmacro with-frozen ((image host &optional (backlog 16)) &body body)
  `(call-with-frozen-host
    (lambda (,host)
      (with-image (,image)
        (prepare ,image "(defvar *count* 0)
(defun inner (a b)
  (let ((c (list a b)))
    (restart-bind ((comes-back (lambda () (incf *count*))))
      (restart-case (error \"boom ~A\" c)
        (use-other (v) :report \"Use another.\" :interactive (lambda () (list (eval (read *query-io*)))) (list :used v))
        (fail-again () (error \"again\"))
        (ask () (read-line))))))
(defun outer (x y) (incf *count*) (prog1 (list :outer (inner x y) (incf *count*)) (princ \"end\")))" :session "others")
        ,@body))
    ,backlog))

(deftest a-failure-is-frozen
  (with-frozen (image host)
    (let* ((outcome (frozen image host "(progn (princ \"begin \") (outer 5 6))"))
           (link (connect-frozen host))
           (restarts (path outcome "frozen" "restarts")))
      (is string= "SIMPLE-ERROR" (path outcome "error" "type"))
      (is = (path outcome "frozen" "pid") (frozen-link-pid link))
      (is equalp #("USE-OTHER" "FAIL-AGAIN" "ASK" "COMES-BACK" "ABORT") (map 'vector (lambda (restart) (path restart "name")) restarts))
      ;; The image goes on; the failure stays as it was.
      (prepare image "(progn (setf *count* 100) (defun inner (a b) (declare (ignore a b)) :redefined))" :session "others")
      (is equal '("INNER" "OUTER") (subseq (frozen-names link) 0 2))
      (let ((stop (path (ask-frozen link "debug-stops" '()) "result" "stops" 0)))
        (is string= "boom (5 6)" (path stop "condition" "message"))
        (is string= "Use another." (path stop "restarts" 0 "report")))
      (is string= "5" (path (ask-frozen link "debug-locals" '("frame" 1)) "result" "locals" 0 "value" "text"))
      (is string= "(5 6 1)" (path (ask-frozen link "debug-eval" '("frame" 1 "code" "(list x y (setf *count* *count*))")) "result" "values" 0 "text"))
      (is string= "UNBOUND-VARIABLE" (path (ask-frozen link "debug-eval" '("frame" 1 "code" "no-such-thing")) "result" "error" "type"))
      (let ((written (path (ask-frozen link "debug-eval" '("frame" 1 "code" "(progn (princ x) (princ :e *error-output*))")) "result")))
        (is string= "5" (path written "stdout" "text"))
        (is string= "E" (path written "stderr" "text")))
      (let ((written (path (ask-frozen link "debug-eval" '("frame" 1 "code" "(progn (princ (make-string 500000 :initial-element #\\a)) (error \"after\"))")) "result")))
        (is string= "after" (path written "error" "message"))
        (let ((text (path written "stdout" "text")))
          (is = 500000 (+ (path written "stdout" "omitted") (- (length text) 1 (position #\Newline text :from-end t))))))
      (let ((page (path (ask-frozen link "debug-inspect" '("frame" 1 "code" "(list x (vector y (setf *count* 7)))" "path" #(1))) "result")))
        (is equalp '(("0" "6") ("1" "7")) (part-texts (path page "inspected"))))
      (is string= "not-found" (path (ask-frozen link "debug-inspect" '("frame" 1 "code" "x" "path" #(1))) "error" "kind"))
      (is string= "UNBOUND-VARIABLE" (path (ask-frozen link "debug-inspect" '("frame" 1 "code" "no-such-thing")) "result" "error" "type"))
      (is string= "bad-params" (path (ask-frozen link "debug-locals" '("frame" 99)) "error" "kind"))
      (is string= "unknown-op" (path (ask-frozen link "eval" '()) "error" "kind"))
      ;; Restarts, each in a process of its own.
      (is string= "restart-returned" (path (tried link restarts "COMES-BACK") "error" "kind"))
      (let ((used (tried link restarts "USE-OTHER" "arguments" #("(+ 40 (incf *count*))"))))
        (is eq nil (path-if-any used "timing"))
        (is string= "(:OUTER (:USED 42) 3)" (path used "values" 0 "text"))
        (is string= "begin end" (path used "stdout" "text")))
      (is string= "(:OUTER (:USED X) 2)" (tried-value link restarts "USE-OTHER" "arguments" #("'x")))
      (is string= "(:OUTER (:USED 9) 2)" (tried-value link restarts "USE-OTHER" "input" "(+ 4 5)"))
      (is string= "again" (path (tried link restarts "FAIL-AGAIN") "error" "message"))
      (is string= "END-OF-FILE" (path (tried link restarts "ASK") "error" "type"))
      (is string= "ABORT" (path (tried link restarts "ABORT") "error" "type"))
      (is string= "(:OUTER (:MINE) 2)"
          (path (ask-frozen link "debug-return" '("frame" 0 "code" "(list :mine)")) "result" "outcome" "values" 0 "text"))
      ;; The original shows nothing of this, and the failure outlives its session.
      (is string= "100" (first-value image "*count*" :session "others"))
      (call image "close-session" "session" "s")
      (is string= "INNER" (first (frozen-names link)))
      (hang-up link)
      (eventually (not (alive-p (frozen-link-pid link)))))))

(deftest what-is-tried-is-limited
  (with-frozen (image host)
    (prepare image "(require :sb-bsd-sockets) (require :sb-posix)" :session "others")
    (prepare image "(defun spins () (restart-case (error \"x\")
  (spin () (loop))
  (sleeps () (sleep 1000))
  (holds () (sb-sys:without-interrupts (loop)))
  (collects () (gc :full t) :collected)
  (writes () (handler-case (with-open-file (out \"/tmp/consort-frozen-escape\" :direction :output :if-exists :supersede) (print 1 out) :written)
               (error () :refused)))
  (connects () (handler-case (progn (sb-bsd-sockets:socket-connect (make-instance 'sb-bsd-sockets:inet-socket :type :stream :protocol :tcp) #(127 0 0 1) 9) :connected)
                 (sb-bsd-sockets:socket-error (condition) (if (typep condition 'sb-bsd-sockets:operation-not-permitted-error) :refused (type-of condition)))
                 (error () :refused)))
  (runs () (handler-case (progn (sb-ext:run-program \"/bin/true\" '()) :run) (error () :refused)))
  (threads () (handler-case (progn (sb-thread:make-thread (lambda () 1)) :started) (error () :refused)))
  (forks () (if (minusp (sb-alien:alien-funcall (sb-alien:extern-alien \"syscall\" (function sb-alien:long sb-alien:long sb-alien:unsigned-long sb-alien:long sb-alien:long sb-alien:long sb-alien:long))
                                                #+x86-64 56 #-x86-64 220 sb-posix:sigchld 0 0 0 0)) :refused :forked))
  (kills () (handler-case (progn (sb-posix:kill (sb-posix:getppid) 9) :killed) (error () :refused)))))" :session "others")
    (let* ((restarts (path (frozen image host "(spins)") "frozen" "restarts"))
           (link (connect-frozen host)))
      (flet ((limited (name seconds)
               (ask-frozen link "debug-restart"
                           (list "index" (position name restarts :key (lambda (restart) (path restart "name")) :test #'string=) "name" name)
                           :timeout seconds)))
        (ok (timed-out-p (limited "SPIN" 3) "outcome" "status"))
        (ok (timed-out-p (limited "SLEEPS" 3) "outcome" "status"))
        (is string= "timeout" (path (limited "HOLDS" 1) "why"))
        (ok (timed-out-p (ask-frozen link "debug-eval" '("frame" 0 "code" "(loop)") :timeout 1) "status"))
        (is string= ":COLLECTED" (tried-value link restarts "COLLECTS"))
        (dolist (name '("WRITES" "CONNECTS" "RUNS" "THREADS" "FORKS" "KILLS"))
          (is-when name string= ":REFUSED" (tried-value link restarts name)))
        (ok (not (probe-file "/tmp/consort-frozen-escape")))
        ;; The host ends what it does not want any more.
        (report-frozen link (object "id" (incf (frozen-link-id link)) "op" "debug-eval" "timeout" *patience*
                                    "params" (object "stop" 0 "frame" 0 "code" "(loop)")))
        (report-frozen link (object "stop" "memory"))
        (is string= "memory" (path (frozen-answer link) "why"))
        (is string= "SPINS" (first (frozen-names link)))))))

(deftest frozen-failures-are-few-and-end
  (with-frozen (image host)
    (let ((links (loop repeat 3 do (frozen image host "(outer 1 2)" :keep 2) collect (connect-frozen host))))
      (eventually (not (alive-p (frozen-link-pid (first links)))))
      (is equal '("INNER" "INNER") (mapcar (lambda (link) (first (frozen-names link))) (rest links)))
      ;; A full collection would copy what they share with the image.
      (prepare image "(gc)" :session "others")
      (is string= "INNER" (first (frozen-names (third links))))
      (prepare image "(gc :full t)" :session "others")
      (dolist (link (rest links))
        (eventually (not (alive-p (frozen-link-pid link))))))
    (frozen image host "(outer 1 2)" :seconds 1)
    (let ((link (connect-frozen host)))
      (eventually (not (alive-p (frozen-link-pid link)))))
    ;; An attempt ends with the failure.
    (frozen image host "(outer 1 2)")
    (let ((link (connect-frozen host)))
      (frozen-names link)
      (report-frozen link (object "id" 1 "op" "debug-eval" "timeout" *patience* "params" (object "stop" 0 "frame" 0 "code" "(loop)")))
      (flet ((attempts ()
               (with-open-file (in (format nil "/proc/~D/task/~:*~D/children" (frozen-link-pid link)))
                 (let ((line (read-line in nil))) (and line (plusp (length line)) (parse-integer line :junk-allowed t))))))
        (let ((attempt (eventually (attempts))))
          (hang-up link)
          (eventually (not (alive-p attempt)))
          (eventually (not (alive-p (frozen-link-pid link)))))))))

(deftest a-frozen-failure-that-hangs-ends
  ;; If nobody accepts connections and no more may wait, the next one stands still.
  (with-frozen (image host 0)
    (let ((pids (loop for seconds in (list *patience* 1 1)
                      do (prepare image (format nil "(setf consort::*greeting-time* ~D)" (ceiling seconds)))
                      collect (path (frozen image host "(outer 1 2)") "frozen" "pid"))))
      (eventually (not (alive-p (third pids))))
      (ok (alive-p (first pids))))))

(deftest a-frozen-failure-that-reaches-no-host-leaves-the-program-alone
  ;; The program's cleanup forms would run a second time.
  (with-frozen (image host)
    (let* ((file (concatenate 'string *scratch* "cleaned-by"))
           (nobody (make-frozen-host nil (concatenate 'string *scratch* "nobody-listens")))
           (pid (path (frozen image nobody (format nil "(unwind-protect (outer 1 2)
                                                          (with-open-file (out ~S :direction :output :if-exists :append :if-does-not-exist :create)
                                                            (print (sb-posix:getpid) out)))"
                                                   file))
                      "frozen" "pid")))
      (eventually (not (alive-p pid)))
      (is equal (list (path (call image "status") "result" "pid"))
          (with-open-file (in file) (remove-duplicates (loop for pid = (read in nil) while pid collect pid)))))))

(deftest only-failures-are-frozen
  (with-frozen (image host)
    (flet ((frozen-of (code) (path-if-any (failed image host code) "frozen")))
      (is eq nil (frozen-of "(+ 1 2)"))
      (is eq nil (frozen-of "(handler-case (outer 1 2) (error () :handled))"))
      (is eq nil (frozen-of "(invoke-restart (find-restart 'abort))"))
      (is eq nil (frozen-of "(labels ((f (n) (1+ (f n)))) (f 1))")) ; the stack is full
      (is eq nil (frozen-of "(sb-sys:without-gcing (error \"the collector is off\"))"))
      ;; Nor where the image cannot be copied at once.
      (prepare image "(defvar *holds* nil) (defvar *release* nil)
                      (sb-thread:make-thread (lambda () (sb-sys:without-gcing (setf *holds* t) (loop until *release*))))
                      (loop until *holds* do (sleep 0.001))" :session "others")
      (is eq nil (frozen-of "(error \"while a thread keeps the collector off\")"))
      (prepare image "(setf *release* t)" :session "others")
      (is eq nil (path-if-any (evaluated image "(outer 1 2)") "frozen"))
      (ok (frozen image host "(outer 1 2)")))))

(deftest failures-of-many-kinds-are-frozen
  (with-frozen (image host)
    (prepare image "(defclass thing () ()) (defgeneric weigh (thing n)) (defmethod weigh ((thing thing) (n integer)) (list (/ n (- n n))))" :session "others")
    (loop for (code type name) in '(("(weigh (make-instance 'thing) 3)" "DIVISION-BY-ZERO" "(METHOD WEIGH (THING INTEGER))")
                                    ("(let ((f (lambda (k) (car (list* k 1 (car k)))))) (list (funcall f 5)))" "TYPE-ERROR" nil)
                                    ("(no-such-function 1)" "UNDEFINED-FUNCTION" nil)
                                    ("(break \"here\")" "SIMPLE-CONDITION" nil)
                                    ("(car" "END-OF-FILE" nil)
                                    ("(labels ((f (n) (if (zerop n) (error \"deep\") (1+ (f (1- n)))))) (f 5000))" "SIMPLE-ERROR" "(LABELS F)"))
          do (let* ((outcome (frozen image host code)) (link (connect-frozen host)) (names (frozen-names link)))
               (is-when code text-contains type (path outcome "error" "type"))
               (when name (is-when code string= name (first names)))
               (hang-up link)))))

(defun thread-error-of (image name)
  (await-event image "thread-error" :which (lambda (events) (find name events :key (lambda (event) (path event "thread")) :test #'string=))))

(defvar *failing-threads* 0 "How many threads FROZEN-THREAD has had started: each has a name of its own.")

(defun frozen-thread (image host control)
  "Has threads started by CONTROL, code with a place for the name, until the error of one is frozen;
  returns that event. A busy machine may not let the image be copied at once."
  (eventually
   (let ((name (format nil "thread ~D" (incf *failing-threads*))))
     (failed image host (format nil control name))
     (let ((event (thread-error-of image name)))
       (and (path-if-any event "frozen" "pid") event)))))

(deftest failures-of-threads-are-frozen
  (with-frozen (image host)
    (prepare image "(defun work (x) (write-string \"worked\") (list :worked (outer x 6)))" :session "others")
    ;; A thread of a thread, when its evaluation is over and its session is closed.
    (let* ((event (frozen-thread image host "(progn (setf *count* 0)
                                                   (sb-thread:make-thread (lambda () (sb-thread:make-thread #'work :name ~S :arguments '(5)) :first)) 1)"))
           (restarts (path event "frozen" "restarts"))
           (link (connect-frozen host)))
      (call image "close-session" "session" "s")
      (is string= "SIMPLE-ERROR" (path event "type"))
      (is string= "boom (5 6)" (path event "message"))
      (is = (path event "frozen" "pid") (frozen-link-pid link))
      (is equalp #("USE-OTHER" "FAIL-AGAIN" "ASK" "COMES-BACK" "ABORT") (map 'vector (lambda (restart) (path restart "name")) restarts))
      (is equal '("INNER" "OUTER" "WORK") (frozen-names link))
      (is string= "5" (path (ask-frozen link "debug-locals" '("frame" 1)) "result" "locals" 0 "value" "text"))
      (is string= "(5 6 1)" (path (ask-frozen link "debug-eval" '("frame" 1 "code" "(list x y *count*)")) "result" "values" 0 "text"))
      ;; The thread goes on to its end.
      (let ((used (tried link restarts "USE-OTHER" "arguments" #("(values 7)"))))
        (is string= "ok" (path used "status"))
        (is string= "(:WORKED (:OUTER (:USED 7) 2))" (path used "values" 0 "text"))
        (is string= "end" (path used "stdout" "text")))
      (is string= "again" (path (tried link restarts "FAIL-AGAIN") "error" "message"))
      (is string= "ABORT" (path (tried link restarts "ABORT") "error" "type"))
      (is string= ":MINE" (path (ask-frozen link "debug-return" '("frame" 2 "code" ":mine")) "result" "outcome" "values" 0 "text"))
      (ok (timed-out-p (ask-frozen link "debug-return" '("frame" 1 "code" "(loop)") :timeout 1) "status"))
      (is string= "1" (first-value image "*count*" :session "others"))
      (hang-up link)
      (eventually (not (alive-p (frozen-link-pid link)))))))

(deftest frozen-failures-of-threads-are-few
  (with-frozen (image host 64)
    (let ((evaluations (loop repeat 2 do (frozen image host "(outer 1 2)") collect (connect-frozen host))))
      ;; Thirty that fail at once, and some that follow.
      (failed image host "(defvar *gate* nil)")
      (failed image host "(let ((threads (loop repeat 30 collect (sb-thread:make-thread (lambda () (loop until *gate* do (sleep 0.001)) (list (outer 1 2))) :name \"many\"))))
                            (setf *gate* t) (dolist (thread threads) (sb-thread:join-thread thread :default nil)))")
      (await-event image "thread-error" :which (lambda (events) (<= 30 (length events))))
      (let* ((at-once (remove nil (map 'list (lambda (event) (path-if-any event "frozen" "pid")) (events image "thread-error"))))
             (later (loop repeat 3 collect (path (frozen-thread image host "(sb-thread:make-thread (lambda () (list (outer 1 2))) :name ~S)") "frozen" "pid")))
             ;; Failures that were ended early may never connect.
             (links (loop for link = (connect-frozen host)
                          collect link into links
                          until (subsetp (last later 2) (mapcar #'frozen-link-pid links))
                          finally (return links))))
        (ok (< (length at-once) 30))
        ;; Two of threads stay, and both of evaluations.
        (dolist (pid (append at-once (butlast later 2)))
          (eventually (not (alive-p pid))))
        (dolist (link (append evaluations (remove-if-not (lambda (link) (member (frozen-link-pid link) (last later 2))) links)))
          (is string= "INNER" (first (frozen-names link))))))))

(deftest threads-that-leave-no-frozen-failure
  (with-frozen (image host)
    (flet ((frozen-of (name code)
             (failed image host code)
             (path-if-any (thread-error-of image name) "frozen")))
      (is eq nil (frozen-of "full" "(sb-thread:make-thread (lambda () (labels ((f (n) (1+ (f n)))) (f 1))) :name \"full\")"))
      (is eq nil (frozen-of "ended" "(let ((thread (sb-thread:make-thread (lambda () (loop (sleep 1000))) :name \"ended\")))
                                       (sb-thread:interrupt-thread thread (lambda () (error 'sb-sys:interactive-interrupt)))
                                       (sb-thread:join-thread thread :default nil))"))
      ;; A session that asks for none.
      (prepare image "(sb-thread:make-thread (lambda () (outer 1 2)) :name \"plain\")" :session "others")
      (is eq nil (path-if-any (thread-error-of image "plain") "frozen"))
      ;; Errors that are handled, and a stop that somebody aborted.
      (failed image host "(sb-thread:join-thread (sb-thread:make-thread (lambda () (handler-case (outer 1 2) (error () :handled)))))")
      (answer image (send image "eval" "session" "d" "code" "(sb-thread:make-thread (lambda () (list (outer 1 2))) :name \"stops\")" "capture_time" :false
                                       "timeout" *patience* "stream" :false "debug" :true "threads" :true "freeze" (freeze-fields host)))
      (call image "debug-abort" "stop" (path (await-event image "stopped") "stop"))
      (is eq nil (path-if-any (thread-error-of image "stops") "frozen"))
      ;; Once the editor has left, such threads are frozen.
      (eventually
       (let ((name (format nil "later ~D" (incf *failing-threads*))))
         (answer image (send image "eval" "session" "d" "capture_time" :false
                                          "code" (format nil "(progn (defvar *go*) (setf *go* nil)
                                                                (sb-thread:make-thread (lambda () (loop until *go* do (sleep 0.001)) (list (outer 1 2))) :name ~S))" name)
                                          "timeout" *patience* "stream" :false "debug" :true "threads" :true "freeze" (freeze-fields host)))
         (call image "close-session" "session" "d")
         (prepare image "(setf *go* t)" :session "others")
         (path-if-any (thread-error-of image name) "frozen" "pid"))))))

(defun frozen-tests (image host &rest fields)
  "Runs tests, whose errors are to be frozen; returns the answer."
  (result-or-error (apply #'call image "run-tests" "timeout" *patience* "freeze" (freeze-fields host) fields)))

(defun frozen-test (image host &rest fields)
  "Runs a test until its error is frozen; returns its result. A busy machine may not let the image
  be copied at once."
  (eventually
   (let ((test (path (apply #'frozen-tests image host fields) "tests" 0)))
     (and (path-if-any test "frozen" "pid") test))))

(defun restarts-of (test)
  (path test "frozen" "restarts"))

(deftest errors-of-tests-are-frozen
  (call-with-frozen-host
   (lambda (host)
     (with-image (image :debian *fiveam*)
       (prepare image "(asdf:load-system \"fiveam\")" :session "others")
       (prepare image "(progn (defpackage :z (:use :cl :fiveam)) (in-package :z))")
       (prepare image "(defun price (n) (if (numberp n) (* 2 n) (restart-case (error \"no price for ~A\" n) (cl-user::use-price (p) p))))
(test mends (let ((name :milk)) (princ \"looking\") (is (= 4 (price name)))))
(test logs (handler-bind ((error (lambda (c) (princ c)))) (is (= 4 (price :tea)))))
(test takes (is (= 4 (handler-case (price :rum) (error () 4)))))
(test expects (signals error (price :rum)))
(test wrong (is (= 5 (price 2))))
(test computes (is (= 4 (car (price 2)))))")
       (let* ((test (frozen-test image host "test" "mends" "package" "z")) (link (connect-frozen host)))
         (is string= "error" (path test "status"))
         (is string= "no price for MILK" (path test "frozen" "error" "message"))
         (is string= "Z::PRICE" (first (frozen-names link)))
         (is string= ":MILK" (path (ask-frozen link "debug-locals" '("frame" 0)) "result" "locals" 0 "value" "text"))
         (let ((used (tried link (restarts-of test) "USE-PRICE" "arguments" #("4"))))
           (is string= "The test Z::MENDS passed: 1 check." (path used "values" 0 "text"))
           (ok (text-contains "looking" (path used "stdout" "text"))))
         (let ((used (tried link (restarts-of test) "USE-PRICE" "arguments" #("5"))))
           (is string= "TEST-FAILED" (path used "error" "type"))
           (ok (text-contains "Z::MENDS" (path used "error" "message"))))
         (let ((used (tried link (restarts-of test) "USE-PRICE" "arguments" #("\"four\""))))
           (is string= "TEST-ERROR" (path used "error" "type")))
         (hang-up link))
       ;; A handler of the test that declines does not hide its error; one that takes it does.
       (let* ((test (frozen-test image host "test" "logs" "package" "z")) (link (connect-frozen host)))
         (is string= "no price for TEA" (path test "frozen" "error" "message"))
         (hang-up link))
       (let* ((test (frozen-test image host "test" "computes" "package" "z")) (link (connect-frozen host)))
         (is string= "TYPE-ERROR" (path test "frozen" "error" "type"))
         (hang-up link))
       (dolist (name '("takes" "expects" "wrong"))
         (is-when name eq nil (path-if-any (frozen-tests image host "test" name "package" "z") "tests" 0 "frozen")))
       ;; The first two of a run.
       (ok (>= 2 (count-if (lambda (test) (path-if-any test "frozen" "pid")) (path (frozen-tests image host "package" "z") "tests"))))
       ;; Without the wish for it none.
       (is eq nil (path-if-any (tests-run image "test" "mends" "package" "z") "tests" 0 "frozen"))))
   64))

(deftest errors-of-other-frameworks-are-frozen
  (call-with-frozen-host
   (lambda (host)
     (with-image (image)
       (is equal "ok" (path (call image "load-file" "path" (concatenate 'string (namestring (directory-namestring cl-user::*tests-directory*)) "stand-ins.lisp")
                                  "if_missing" "error") "result" "status"))
       (prepare image "(progn (defun broken (n) (restart-case (error \"broken ~A\" n) (go-on () 1)))
  (defpackage :p-tests (:use :cl :parachute)) (defpackage :r-tests (:use :cl :rove)))")
       (prepare image "(in-package :p-tests) (define-test breaks (is = 1 (cl-user::broken :p)))" :session "p")
       (prepare image "(in-package :r-tests) (deftest breaks (ok (= 1 (cl-user::broken :r))))" :session "r")
       (loop for (package message) in '(("p-tests" "broken P") ("r-tests" "broken R"))
             do (let* ((test (frozen-test image host "package" package)) (link (connect-frozen host)))
                  (is string= message (path test "frozen" "error" "message"))
                  (is string= "BROKEN" (first (frozen-names link)))
                  (ok (text-contains "passed" (tried-value link (restarts-of test) "GO-ON")))
                  (hang-up link)))
       ;; A system's own test-op, of no framework.
       (let* ((asd (write-file "plain/plain.asd" "(asdf:defsystem \"plain\" :perform (test-op (o c) (uiop:symbol-call :cl-user '#:broken :plain)))"))
              (test (frozen-test image host "system" "plain" "framework" "asdf" "asd_files" (list asd)))
              (link (connect-frozen host)))
         (is string= "broken PLAIN" (path test "frozen" "error" "message"))
         (is string= "BROKEN" (first (frozen-names link)))
         (ok (text-contains "passed" (tried-value link (restarts-of test) "GO-ON")))
         (hang-up link))))
   64))

(deftest a-frozen-form-has-a-frame
  (with-frozen (image host)
    (loop for (code at) in '(("(error \"x\")" "(error \"x\")") ("1 (progn 2 (error \"y\"))" "(error \"y\")")
                             ("(let ((x 1)) (list x) (error \"z\"))" "(error \"z\")"))
          do (frozen image host code)
             (let* ((link (connect-frozen host))
                    (frames (path (ask-frozen link "debug-frames" '()) "result" "frames")))
               (is-when code equal '("top-level form") (map 'list (lambda (frame) (path frame "name")) frames))
               (is-when code string= at (or (text-at (aref frames 0) code) (path-if-any frames 0 "place" "form") "nowhere"))
               (is-when code string= "3" (path (ask-frozen link "debug-eval" '("frame" 0 "code" "(+ 1 2)")) "result" "values" 0 "text"))
               (is-when code string= ":MINE" (path (ask-frozen link "debug-return" '("frame" 0 "code" ":mine")) "result" "outcome" "values" 0 "text"))
               (hang-up link)))))
