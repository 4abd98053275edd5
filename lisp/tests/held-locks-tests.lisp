;;;; A user's thread holds a lock of the runtime: every request answers or says who is in the way,
;;;; and all goes on when it is free.

(in-package :consort)

(defparameter *holders*
  '((:world "(sb-kernel::with-world-lock () (hold))" "compiler's lock")
    (:graph "(sb-impl::with-package-graph () (hold))" "Package Graph Lock")
    (:names "(sb-thread:with-recursive-lock ((find-if (lambda (lock) (member (sb-thread:mutex-name lock) '(\"package names\" \"Package Table Lock\") :test #'equal))
                                                      consort::*runtime-locks*))
               (hold))"
     "ackage")
    (:collector "(sb-sys:without-gcing (hold))" "prevents garbage collection")
    (:scheduler "(sb-sys:without-interrupts (sb-thread:with-mutex (sb-impl::*scheduler-lock*) (sb-sys:allow-with-interrupts (hold))))" "cheduler")
    (:session "(sb-thread:with-recursive-lock ((sb-thread::session-lock sb-thread::*session*)) (hold))" "session lock")
    (:deadline "(sb-sys:with-deadline (:seconds 3600) (sb-kernel::with-world-lock () (hold)))" "compiler's lock"))
  "Forms with which a thread holds something, and the message then.")

(defun hold-in (image code)
  "Makes a thread of the user's in IMAGE hold what CODE holds around its HOLD, until RELEASE-IN.
  Returns when it does."
  ;; All is read and compiled before the thread starts: both may take what it holds.
  (prepare image "(defvar *held* nil) (defvar *go* (sb-thread:make-semaphore)) (defvar *holder*)
    (defun hold () (setf *held* t) (sb-thread:wait-on-semaphore *go*) (setf *held* nil))
    (defun await-hold () (loop until *held* do (sb-thread:thread-yield)))")
  (prepare image (format nil "(defun start-holder () (setf *holder* (sb-thread:make-thread (lambda () ~A) :name \"the holder\")) (await-hold) :held)" code))
  (prepare image "(start-holder)"))

(defun release-in (image)
  (evaluated image "(sb-thread:signal-semaphore *go*)"))

(deftest held-locks
  (loop for (what code words) in *holders*
        ;; Not every version of SBCL has a lock for all packages.
        when (or (not (eq what :graph)) (find-symbol "WITH-PACKAGE-GRAPH" "SB-IMPL"))
        do (with-image (image)
             (evaluated image "(defun f (x) x)")
             (codes-of image *sound-text*)
             (call image "symbol" "name" "mapcar" "want" #("facts" "definitions" "elsewhere"))
             (hold-in image code)
             (macrolet ((holds (expected actual) `(is-when (format nil "while ~A is held" what) equal ,expected ,actual)))
               (let ((refusal (checked-with image "check" "text" *sound-text*)))
                 (holds "busy" (path refusal "error" "kind"))
                 (holds t (text-contains words (path refusal "error" "message")))
                 (holds t (text-contains "the holder" (path refusal "error" "message"))))
               (holds "3" (first-value image "(+ 1 2)"))
               (holds "SIMPLE-ERROR" (error-type image "(error \"second\")"))
               (holds t (integerp (path (call image "status") "result" "pid")))
               (holds t (plusp (length (path (call image "thread-states") "result" "threads"))))
               (dolist (look '(("complete" "text" "mapca" "limit" 3)
                               ("symbol" "name" "mapcar" "want" #("facts" "definitions" "elsewhere"))
                               ("apropos" "pattern" "mapcar" "limit" 3)
                               ("thread-states")))
                 (let ((answer (apply #'call image look)))
                   (holds t (or (object-p (path-if-any answer "result"))
                                (text-contains "the holder" (path answer "error" "message"))))))
               (let ((loops (eval-id image "(loop)" :session "looping")))
                 (holds :true (path (call image "interrupt" "target" loops) "result" "found"))
                 (holds "interrupted" (path (answer image loops) "result" "status")))
               (release-in image)
               (evaluated image "(sb-thread:join-thread *holder* :default nil)")
               (holds '() (codes-of image *sound-text*))
               (holds "G" (first-value image "(defun g (x) (list x))"))))))

(deftest status-asks-once
  ;; While ASDF cannot answer, each request for the status does not leave a thread behind that
  ;; waits.
  (with-image (image)
    (hold-in image "(sb-kernel::with-world-lock () (hold))")
    (dotimes (i 5)
      (ok (integerp (path (call image "status") "result" "pid"))))
    (is equal "1" (first-value image "(count \"consort systems\" (sb-thread:list-all-threads) :key 'sb-thread:thread-name :test 'equal)"))
    (release-in image)
    (evaluated image "(sb-thread:join-thread *holder* :default nil)")))

(deftest no-thread-can-be-made
  (with-image (image)
    (evaluated image "1")
    (hold-in image "(sb-thread::with-recursive-lock (sb-thread::*make-thread-lock*) (hold))")
    (is equal "3" (first-value image "(+ 1 2)"))
    (ok (integerp (path (call image "status") "result" "pid")))
    (ok (object-p (path (call image "world") "result")))
    (let ((complete (send image "complete" "text" "mapca" "limit" 3)) ; waits, and the dispatcher does not
          (other (eval-id image "4" :session "other")))
      (ok (integerp (path (call image "status") "result" "pid")))
      (release-in image)
      (is equal "4" (path (answer image other) "result" "values" 0 "text"))
      (ok (object-p (path (answer image complete) "result"))))))

(deftest who-keeps-threads-from-being-made-is-told
  (with-image (image)
    (evaluated image "1")
    (hold-in image "(sb-thread::with-recursive-lock (sb-thread::*make-thread-lock*) (hold))")
    (ok (find "the holder" (path (call image "thread-states") "result" "threads") :key (lambda (thread) (path thread "name")) :test #'equal))
    ;; A session that waits for its thread is in the way of nobody's answer.
    (let ((other (eval-id image "4" :session "other")))
      (dolist (refusal (list (checked-with image "check" "text" *sound-text*) (call image "thread-stack" "number" 1)))
        (is equal "busy" (path refusal "error" "kind"))
        (ok (text-contains "Make-Thread Lock" (path refusal "error" "message")))
        (ok (text-contains "the holder" (path refusal "error" "message"))))
      (release-in image)
      (is equal "4" (path (answer image other) "result" "values" 0 "text")))
    (evaluated image "(sb-thread:join-thread *holder* :default nil)")
    (is equal '() (codes-of image *sound-text*))))

(deftest answers-that-wait-while-no-thread-can-be-made
  (with-image (image)
    (evaluated image "1")
    (hold-in image "(sb-thread::with-recursive-lock (sb-thread::*make-thread-lock*) (hold))")
    (let* ((mark (concatenate 'string *scratch* "link-is-held"))
           (holding (eval-id image (format nil "(sb-thread:with-mutex (consort::*link-lock*) (close (open ~S :direction :output)) (loop))" mark))))
      (eventually (probe-file mark))
      (delete-file mark)
      ;; The dispatcher cannot write this at once, and leaves it to another thread. It reads the
      ;; interrupt, which frees the link, after that.
      (let ((status (send image "status"))
            (interrupt (send image "interrupt" "target" holding)))
        (ok (integerp (path (answer image status) "result" "pid")))
        (is equal :true (path (answer image interrupt) "result" "found"))
        (is equal "interrupted" (path (answer image holding) "result" "status"))))
    (release-in image)))

(deftest a-copy-waits-for-the-locks-that-a-process-makes-anew
  ;; A process that starts from a core does not use the locks that were saved in it.
  (loop for (lock name) in '(("sb-thread::*make-thread-lock*" "Make-Thread Lock") ("(sb-thread::session-lock sb-thread::*session*)" "session lock")
                             ;; that of the table of all pathnames, in versions that make it anew
                             ("(first (last (let ((table (find-symbol \"*PATHNAMES*\" \"SB-IMPL\")))
                                              (if table (list (sb-impl::hash-table-lock (symbol-value table))) (consort::locks-of-tables)))))"
                              "hash-table lock"))
        do (with-image (image)
             (evaluated image "(defun copy () (handler-case (consort::wait-for-copy (consort::call-in-copy (lambda ()) :patience 1/5))
                                                (consort::copy-busy (c) (consort::copy-busy-obstacle c))))")
             (hold-in image (format nil "(sb-thread::with-recursive-lock (~A) (hold))" lock))
             (let ((obstacle (first-value image "(copy)")))
               (is-when (list lock obstacle) equal t (text-contains name obstacle))
               (is-when (list lock obstacle) equal t (text-contains "the holder" obstacle)))
             (release-in image)
             (evaluated image "(sb-thread:join-thread *holder* :default nil)")
             (eventually (equal "0" (first-value image "(copy)"))))))

(deftest the-lock-that-stays-held-is-told
  ;; One of ours, which is held for a moment, hides no other.
  (with-image (image)
    (evaluated image "(progn (defvar *ours* (sb-thread:make-mutex :name \"consort something\"))
                             (defvar *theirs* (sb-thread:make-mutex :name \"theirs\"))
                             (defvar *others* (sb-thread:make-mutex :name \"others\"))
                             (consort::add-runtime-locks (list *ours* *theirs* *others*)))")
    (hold-in image "(sb-thread:with-mutex (*ours*) (sb-thread:with-mutex (*theirs*) (sb-thread:with-mutex (*others*) (hold))))")
    (let ((obstacle (first-value image "(consort::obstacle)")))
      (ok (text-contains "the holder" obstacle))
      (ok (text-contains "theirs" obstacle))
      (ok (text-contains "others" obstacle))
      (ok (not (text-contains "consort" obstacle))))
    (release-in image)
    (evaluated image "(sb-thread:join-thread *holder* :default nil)")
    (ok (eventually (equal "NIL" (first-value image "(consort::obstacle)"))))))

(deftest every-lock-of-the-runtime-is-known
  ;; Others are ours, or belong to one thread, stream or semaphore.
  (with-image (image)
    (is equal "NIL"
        (first-value image "(remove-duplicates
                              (loop for lock in (set-difference (consort::every-lock) (coerce consort::*runtime-locks* 'list))
                                    for name = (sb-thread:mutex-name lock)
                                    unless (or (null name) (eql 0 (search \"consort\" name)) (member name '(\"thread interruptions lock\" \"finalizer\") :test 'equal)
                                               (member name (sb-thread:list-all-threads) :key 'sb-thread:thread-name :test 'equal))
                                      collect name)
                              :test 'equal)"))))

(deftest a-copy-that-would-wait-for-ever-leaves
  (with-image (image)
    (evaluated image "(defvar *theirs* (sb-thread:make-mutex :name \"theirs\"))")
    (evaluated image "(defmacro copy-exit (&body body) `(consort::wait-for-copy (consort::call-in-copy (lambda () ,@body) :patience 900)))")
    (is equal "0" (first-value image "(copy-exit (sb-thread:with-mutex (*theirs*) 1))"))
    (hold-in image "(sb-thread:with-mutex (*theirs*) (hold))")
    (is equal "71" (first-value image "(copy-exit (sb-thread:with-mutex (*theirs*) 1))"))
    (is equal "71" (first-value image "(copy-exit (sb-thread:with-recursive-lock (*theirs*) 1))"))
    (is equal "71" (first-value image "(copy-exit (sb-thread:grab-mutex *theirs*))"))
    ;; To wait for a while is to wait.
    (is equal "0" (first-value image "(copy-exit (sb-thread:grab-mutex *theirs* :timeout 0.01))"))
    (is equal "0" (first-value image "(copy-exit (sb-thread:with-mutex (*theirs* :wait-p nil) 1))"))
    (is equal "3" (first-value image "(copy-exit (handler-case (sb-sys:with-deadline (:seconds 0.01) (sb-thread:grab-mutex *theirs*)) (sb-sys:deadline-timeout () (consort::exit-process 3))))"))
    ;; A check tells the name, and is made again by the host.
    (let ((lines (checked-with image "check" "text" "(eval-when (:compile-toplevel) (sb-thread:with-mutex (cl-user::*theirs*) 1))")))
      (is equal "theirs" (loop for line in lines when (field line "locked") return (field line "locked"))))
    (release-in image)
    (evaluated image "(sb-thread:join-thread *holder* :default nil)")
    (is equal "0" (first-value image "(copy-exit (sb-thread:with-mutex (*theirs*) 1))"))))

(deftest a-held-lock-does-not-have-the-world-stopped
  ;; The holder would get no further.
  (with-image (image)
    (prepare image "(defvar *theirs* (sb-thread:make-mutex :name \"theirs\"))
                    (consort::add-runtime-locks (list *theirs*))
                    (defvar *stopped* 0)
                    (defun copy (&optional (patience 900)) (handler-case (consort::wait-for-copy (consort::call-in-copy (lambda ()) :patience patience))
                                     (consort::copy-busy () :busy)))")
    (prepare image "(sb-int:encapsulate 'consort::try-to-fork 'counted (lambda (f &rest arguments) (incf *stopped*) (apply f arguments)))")
    (is equal "0" (first-value image "(copy)"))
    (ok (not (equal "0" (first-value image "*stopped*"))))
    (hold-in image "(sb-thread:with-mutex (*theirs*) (hold))")
    (is equal "(:BUSY 0)" (first-value image "(progn (setf *stopped* 0) (list (copy 1) *stopped*))"))
    (release-in image)
    (evaluated image "(sb-thread:join-thread *holder* :default nil)")))

(deftest the-compiler-is-free-while-a-copy-waits-for-another-lock
  (with-image (image)
    (prepare image "(defvar *theirs* (sb-thread:make-mutex :name \"theirs\"))
                    (consort::add-runtime-locks (list *theirs*))
                    (defvar *done* nil) (defvar *waits* 0)")
    (prepare image "(sb-int:encapsulate 'consort::held-runtime-lock 'counted (lambda (f) (incf *waits*) (funcall f)))")
    ;; The holder goes on when it has compiled, and the copy is made when the holder has ended.
    (prepare image "(defun compile-holding ()
                      (sb-thread:with-mutex (*theirs*)
                        (setf *waits* 0)
                        (loop until (plusp *waits*) do (sleep 0.01))
                        (sb-kernel::with-world-lock () (compile nil '(lambda (x) x)))
                        (setf *done* t)))")
    (prepare image "(defvar *copier* (sb-thread:make-thread (lambda ()
                                       (loop until (sb-thread:mutex-owner *theirs*) do (sb-thread:thread-yield))
                                       (consort::wait-for-copy (consort::call-in-copy (lambda () (unless *done* (consort::exit-process 9))) :patience 100)))))")
    (prepare image "(defvar *compiler* (sb-thread:make-thread #'compile-holding))")
    (is equal "0" (first-value image "(sb-thread:join-thread *copier*)"))))

(deftest a-copy-makes-threads-although-threads-of-the-image-wait-to-be-made
  (with-image (image)
    (prepare image "(defun exit-of-copy ()
                      (consort::wait-for-copy
                       (consort::call-in-copy
                        (lambda ()
                          (let ((thread (consort::start-thread-if-possible \"in a copy\" (lambda () 3))))
                            (consort::exit-process (if thread (sb-thread:join-thread thread) 9))))
                        :patience 900)))")
    (is equal "3" (first-value image "(exit-of-copy)"))
    ;; The starter does not know of this one.
    (is equal "3" (first-value image "(let ((start (consort::make-start #'list nil nil)))
                                        (push start consort::*starts*)
                                        (unwind-protect (exit-of-copy) (consort::remove-starts (list start))))"))))
