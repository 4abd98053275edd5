;;;; Faults that a running image must survive, with a clear answer and nothing lost.

(in-package :consort)

(defun survives (image)
  "Check that what was defined before is still there."
  (is equal ":KEPT" (first-value image "(defvar *kept* :kept) *kept*")))

(deftest deadlines
  (with-image (image)
    (evaluated image "(defvar *kept* :kept)")
    (dolist (code '("(loop)" "(sleep 100)" "(loop (ignore-errors (sleep 1)))" "(loop (handler-case (sleep 1) (t () 1)))"
                    "(unwind-protect (loop) (sleep 0.7))" "(loop (print 1))" "(loop (write-string (make-string 10000) *error-output*))"
                    "(defmethod print-object ((x (eql 'endless)) stream) (declare (ignorable stream)) (loop)) (list 'endless)"
                    "(with-open-file (s \"/dev/zero\") (loop (read-char s)))" "(sb-thread:join-thread (sb-thread:make-thread (lambda () (sleep 10000))))"))
      (let ((outcome (evaluated image code :timeout 0.3)))
        (is equal "timeout" (path outcome "status"))
        (ok (text-contains "deadline" (path outcome "error" "message"))))
      (survives image))
    ;; The deadline is one that a slow machine reaches the waiting in.
    (let ((outcome (evaluated image "(princ \"so far\") (loop (sleep 1000))" :timeout 5)))
      (is equal "timeout" (path outcome "status"))
      (is equal "so far" (path outcome "stdout" "text")))))

(deftest deadline-while-others-collect
  (with-image (image)
    (evaluated image "(defvar *stop* nil) (sb-thread:make-thread (lambda () (loop until *stop* do (make-array 100000))))")
    (is equal "timeout" (status-of image "(loop)" :timeout 0.5 :session "t"))
    (evaluated image "(setf *stop* t)")))

(deftest exhaustion
  (with-image (image)
    (evaluated image "(defvar *kept* :kept)")
    (dotimes (i 3)
      (is equal "SB-KERNEL::CONTROL-STACK-EXHAUSTED" (error-type image "(labels ((f (x) (1+ (f x)))) (f 1))"))
      (is equal "SB-KERNEL::HEAP-EXHAUSTED-ERROR" (error-type image "(make-array (expt 10 9))")))
    (is equal "timeout" (status-of image "(loop (ignore-errors (make-array (expt 10 9))) (handler-case (make-array (expt 10 9)) (storage-condition () nil)))" :timeout 0.5))
    (survives image)
    (let ((outcome (evaluated image "(let (l) (loop (push (make-array 1000000) l)))")))
      (is equal "error" (path outcome "status"))
      (is equal "STORAGE-CONDITION" (path outcome "error" "type"))
      (ok (text-contains "Heap nearly full" (path outcome "error" "message")))
      (ok (plusp (path (await-event image "heap") "usage"))))
    (survives image)
    (is equal "STORAGE-CONDITION" (error-type image "(let (l) (loop (push (make-array 10) l)))"))
    (survives image)))

(deftest a-check-after-a-thread-has-filled-the-heap
  (with-image (image :command (core-command 512))
    ;; A word on some stack that looks like a pointer to the vector keeps the vector alone.
    (evaluated image "(sb-thread:join-thread
                       (sb-thread:make-thread
                        (lambda ()
                          (let ((kept (make-array 100000)))
                            (unwind-protect (dotimes (i 100000) (setf (svref kept i) (make-array 100000)))
                              (fill kept 0)))))
                       :default nil)")
    (is equal '() (codes-of image *sound-text*))))

(deftest a-check-beside-small-data-that-fills-the-heap
  ;; To collect all of it would take as much room again, which ends the process.
  (with-image (image :command (core-command 512))
    (evaluated image "(defvar *kept* '())")
    (evaluated image "(loop (push (list 1 2 3) *kept*))")
    (codes-of image *sound-text*)
    (is equal "T" (first-value image "(consp *kept*)"))))

(deftest exhaustion-whatever-the-hooks-of-collections
  ;; Newer SBCLs call the hooks in a thread of their own, which may be late; a program may take them
  ;; away.
  (with-image (image)
    (evaluated image "(defvar *kept* :kept)")
    (evaluated image "(setf sb-ext:*after-gc-hooks* '())")
    (is equal "STORAGE-CONDITION" (error-type image "(let (l) (loop (push (make-array 10) l)))"))
    (survives image)))

(deftest other-threads
  (with-image (image)
    (evaluated image "(sb-thread:join-thread (sb-thread:make-thread (lambda () (error \"in a thread\")) :name \"mine\") :default nil)")
    (let ((event (await-event image "thread-error")))
      (is equal "mine" (path event "thread"))
      (is equal "SIMPLE-ERROR" (path event "type"))
      (is equal "in a thread" (path event "message")))
    (evaluated image "(setf *kept* (defvar *kept* :kept))")
    (is equal "THREAD-ENDED" (error-type image "(sb-thread:abort-thread)"))
    (is equal "THREAD-ENDED" (error-type image "(sb-thread:terminate-thread sb-thread:*current-thread*) (sleep 10)"))
    (is equal "(LIST 1)" (progn (evaluated image "(list 1)") (evaluated image "(sb-thread:abort-thread)") (first-value image "+")))))

(deftest busy-image-answers
  (with-image (image)
    (let ((loops (eval-id image "(princ :looping) (loop)" :stream t))
          (waits (eval-id image "(princ 1)"))
          (locked (eval-id image "(sb-kernel::with-world-lock () (princ :locked) (loop))" :session "locked" :stream t)))
      (await-text image "output" "LOOPING" :id loops)
      (await-text image "output" "LOCKED" :id locked)
      (is equal "3" (first-value image "(+ 1 2)" :session "other"))
      (let ((running (path (call image "status") "result" "running")))
        (dolist (id (list loops locked))
          (ok (find id running :key (lambda (entry) (path entry "id")) :test #'equal))))
      (is eq :true (path (call image "interrupt" "target" waits) "result" "found"))
      (is eq :true (path (call image "interrupt" "target" loops "reason" "cancel") "result" "found"))
      (is eq :true (path (call image "interrupt" "target" locked) "result" "found"))
      (is eq :false (path (call image "interrupt" "target" 99999) "result" "found"))
      (is equal "(:DONE)" (first-value image "(list :done)"))
      (dolist (id (list loops waits locked))
        (is equal "interrupted" (path (answer image id) "result" "status"))))))

(deftest an-answer-is-known-by-its-kind
  ;; Events have the id of the request that they are about; neither they nor the answers to others
  ;; are taken for its answer.
  (with-image (image)
    (let ((speaks (eval-id image "(princ :said) (finish-output) :spoken" :stream t))
          (other (eval-id image ":other" :session "other")))
      (is equal ":OTHER" (path (answer image other) "result" "values" 0 "text"))
      (is equal ":SPOKEN" (path (answer image speaks) "result" "values" 0 "text"))
      (await-text image "output" "SAID" :id speaks)
      (is eq nil (image-answers image))
      (signals missing-member (path (first (events image "output")) "result"))
      (is eq nil (path-if-any (first (events image "output")) "result")))))

(deftest sessions-close
  (with-image (image)
    (evaluated image "(list 1)" :session "closing")
    (let ((id (eval-id image "(loop)" :session "closing"))
          (behind (eval-id image "2" :session "closing")))
      (call image "close-session" "session" "closing")
      (is equal "interrupted" (path (answer image behind) "result" "status"))
      (is equal "interrupted" (path (answer image id) "result" "status")))
    (is equal "NIL" (first-value image "*" :session "closing"))
    (call image "close-session" "session" "never-was")))

(deftest bad-frames
  (with-image (image)
    (flet ((kind (line) (send-line image line) (path (next-answer image) "error" "kind")))
      (dolist (line (list "nonsense" "" "[]" "7" "{\"id\":1}" "{\"op\":\"eval\"}" "{\"id\":[],\"op\":\"eval\"}" "{\"id\":1,\"op\":\"eval\",\"params\":[]}"
                          (make-string 200000 :initial-element #\[) "{\"id\":1,\"op\":\"status\",\"params\":{}"))
        (is equal "bad-frame" (kind line)))
      (is equal "unknown-op" (kind "{\"id\":1,\"op\":\"nope\",\"params\":{}}"))
      (is equal "bad-params" (kind "{\"id\":1,\"op\":\"eval\",\"params\":{}}"))
      (is equal "bad-params" (kind "{\"id\":1,\"op\":\"eval\",\"params\":{\"session\":\"s\",\"code\":\"1\",\"timeout\":\"x\"}}"))
      (is equal "bad-params" (kind "{\"id\":1,\"op\":\"interrupt\",\"params\":{\"target\":1,\"reason\":\"because\"}}")))
    (is equal "20000000" (first-value image (format nil "(length \"~A\")" (make-string 20000000 :initial-element #\x))))
    (send-line image (make-string (* 65 1024 1024) :initial-element #\x))
    (is equal "bad-frame" (path (next-answer image) "error" "kind"))
    (is equal "3" (first-value image "(+ 1 2)"))))

(deftest a-large-answer
  (with-image (image)
    (let ((values (path (evaluated image "(values-list (loop repeat 30 collect (make-string 90000 :initial-element (code-char 1))))") "values")))
      (is = 30 (length values))
      (is = 90002 (length (path values 29 "text"))))))

(deftest a-host-that-does-not-read
  (with-image (image)
    (dotimes (i 3000)
      (send image "status")) ; more than the socket holds, and no answer read
    (is equal '(:object) (path (call image "close-session" "session" "x") "result"))
    (is = 3000 (count-if (lambda (frame) (path frame "result" "pid")) (image-answers image)))
    (dotimes (i 3000)
      (send image "status"))
    (is equal 0 (stop-image image)))) ; sees the end of the link all the same

(deftest leaves-with-the-host
  (dolist (code '("(loop)" "(sb-sys:without-interrupts (loop))" "(sb-sys:without-gcing (loop))" "(loop (ignore-errors (sleep 1)))" "(loop (make-array 100000))"
                  "(loop (print 1))" "(sb-sys:enable-interrupt sb-posix:sigterm :ignore) (loop)"))
    (with-image (image)
      (eval-id image code :stream t)
      (eval-id image "1" :session "other")
      (is equal 0 (stop-image image)))))

(deftest descriptors-are-not-inherited
  (with-image (image)
    (is equal "NIL" (first-value image "(search \"socket\" (with-output-to-string (s) (sb-ext:run-program \"/bin/sh\" '(\"-c\" \"ls -l /proc/self/fd\") :output s)))"))
    (is equal "NIL" (first-value image "(sb-ext:posix-getenv \"CONSORT_FD\")"))))

(deftest like-a-plain-repl
  ;; The same facts in a plain SBCL with the same contribs.
  (let ((file (write-file "facts.lisp" "(let ((*print-pretty* nil)) (print (list *package* *read-default-float-format* *print-base* *print-case* *print-readably* sb-ext:*evaluator-mode*
  *default-pathname-defaults* (sort (mapcar #'symbol-name *features*) #'string<) (getf (sb-int:get-floating-point-modes) :traps)
  sb-ext:*default-external-format* *compile-print* *load-verbose* (sb-cltl2:declaration-information 'optimize) (readtable-case *readtable*)
  (sort (mapcar #'string *modules*) #'string<) (sb-ext:bytes-consed-between-gcs) sb-ext:*muffled-warnings*
  (sort (remove \"CONSORT\" (mapcar #'package-name (list-all-packages)) :test #'string=) #'string<)
  (let (names) (do-symbols (s :cl-user) (when (eq (symbol-package s) *package*) (push (symbol-name s) names)))
    (sort (remove \"DOUBLE\" names :test #'string=) #'string<)))))"))) ; src/user-package.lisp
    (with-image (image)
      (let ((plain (with-output-to-string (out)
                     (sb-ext:run-program "/bin/sh" (list "-c" (format nil "exec ~A --noinform --dynamic-space-size 1024 --no-sysinit --no-userinit --non-interactive --eval '(map nil (function require) (list :asdf :sb-posix :sb-introspect :sb-cltl2 :sb-sprof :sb-bsd-sockets))' --load ~A" *sbcl* file))
                                         :output out))))
        (ok (plusp (length plain)))
        (is string= plain (path (evaluated image (format nil "(load ~S)" file)) "stdout" "text"))))))

(deftest a-host-that-cannot-be-reached-leaves-no-descriptor
  (with-image (image)
    (dolist (path (list "/no/such/socket" (format nil "/~A" (make-string 200 :initial-element #\x))))
      (is equal "(:ERROR 0)"
          (first-value image (format nil "(flet ((descriptors () (length (directory \"/dev/fd/*.*\" :resolve-symlinks nil))))
                                            (let ((before (descriptors)))
                                              (list (handler-case (consort::connect-to-host ~S) (error () :error)) (- (descriptors) before))))"
                                     path))))))

(deftest the-users-code-ends-its-own-threads-alone
  (with-image (image)
    (prepare image "(defvar *kept* :kept)
                    (defun start () (sb-thread:make-thread (lambda () (sleep 100000)) :name \"theirs\"))
                    (defun others () (remove sb-thread:*current-thread* (sb-thread:list-all-threads)))
                    (defun theirs () (count \"theirs\" (others) :key 'sb-thread:thread-name :test 'equal))
                    (defun await-end () (loop until (zerop (theirs)) do (sleep 0.01)) 0)")
    (prepare image "(princ 1)" :session "other" :stream t)
    (dolist (code '("(mapc #'sb-thread:terminate-thread (others))"
                    "(dolist (thread (others)) (ignore-errors (sb-thread:terminate-thread thread)))"
                    "(sb-thread:join-thread (sb-thread:make-thread (lambda () (mapc #'sb-thread:terminate-thread (others))) :name \"theirs\"))"
                    "(dolist (thread (others)) (handler-case (sb-thread:interrupt-thread thread #'sb-thread:abort-thread) (sb-thread:interrupt-thread-error ())))"))
      (prepare image "(progn (start) (start))")
      (prepare image code)
      (is-when code equal "0" (first-value image "(await-end)"))
      (survives image)
      (is-when code equal "2" (first-value image "2" :session "other"))
      (is-when code equal "3" (first-value image "3" :session code))
      (is-when code equal '() (codes-of image *sound-text*)))
    ;; One warning, whatever the number of threads that stay.
    (let ((outcome (evaluated image "(mapc #'sb-thread:terminate-thread (others))")))
      (is equal 1 (length (path outcome "warnings")))
      (ok (text-contains "threads of Consort" (path outcome "warnings" 0 "message"))))
    (let ((outcome (evaluated image "(sb-thread:interrupt-thread (sb-thread:main-thread) (lambda () (loop)))")))
      (is equal "CONSORT::OWN-THREAD-INTERRUPTED" (path outcome "error" "type"))
      (ok (text-contains "main thread" (path outcome "error" "message"))))
    (is equal "timeout" (status-of image "(loop)" :timeout 0.3))
    (survives image)))

(deftest a-timer-whose-thread-is-idle-runs-in-another
  (with-image (image)
    (prepare image "(progn (defvar *came* nil) (sb-ext:schedule-timer (sb-ext:make-timer (lambda () (setf *came* (sb-thread:thread-name sb-thread:*current-thread*)))) 0.01))")
    (ok (eventually (equal "\"handlers\"" (first-value image "*came*" :session "other"))))
    (is equal ":OUT" (first-value image "(handler-case (sb-ext:with-timeout 0.01 (loop)) (sb-ext:timeout () :out))"))))

(deftest the-system-makes-no-thread
  (with-image (image)
    (prepare image "(defvar *refuses* nil)
                    (defvar *came* nil)
                    (consort::encapsulate 'sb-thread:make-thread 'refusing
                                          (lambda (make-thread &rest arguments)
                                            (if *refuses* (error \"Could not create new OS thread.\") (apply make-thread arguments))))")
    (prepare image "1" :session "ends")
    (prepare image "(setf *refuses* t)")
    (flet ((refused (answer)
             (is equal "busy" (path answer "error" "kind"))
             (ok (text-contains "makes no further thread" (path answer "error" "message")))))
      (refused (answer image (eval-id image "1" :session "new")))
      (refused (checked-with image "check" "text" *sound-text*))
      (is equal "THREAD-ENDED" (error-type image "(sb-thread:abort-thread)" :session "ends"))
      (refused (answer image (eval-id image "1" :session "ends"))))
    (ok (integerp (path (call image "status") "result" "pid")))
    (prepare image "(consort::schedule (consort::make-timer-queue \"timers\") 0 (lambda () (setf *came* :timer)))")
    (prepare image "(setf *refuses* nil)")
    (ok (eventually (equal ":TIMER" (first-value image "*came*"))))
    (is equal "2" (first-value image "2" :session "new"))
    (is equal "3" (first-value image "3" :session "ends"))
    (is equal '() (codes-of image *sound-text*))))

(deftest a-string-of-the-environment-leaves-no-characters-elsewhere
  ;; They would be a secret's.
  (with-image (image)
    (prepare image "(defun conses-with (char &aux (count 0))
                      (sb-vm:map-allocated-objects (lambda (object type size)
                                                     (declare (ignore type size))
                                                     (when (and (consp object) (eql (car object) char)) (incf count)))
                                                   :dynamic)
                      count)")
    (is equal "(\"xxxx\" 0)"
        (first-value image "(let* ((octets (make-array 5 :element-type '(unsigned-byte 8) :initial-contents '(254 254 254 254 0)))
                                   (before (conses-with (code-char 254)))
                                   (entry (sb-sys:with-pinned-objects (octets)
                                            (consort::entry-at (sb-sys:sap-int (sb-sys:vector-sap octets))))))
                              (list (substitute #\\x (code-char 254) entry) (- (conses-with (code-char 254)) before)))"))))
