;;;; A copy of the live, multi-threaded image: a fork with one thread, which does one thing and
;;;; leaves.
;;;;
;;;; The conditions under which a fork is safe. Each was found necessary:
;;;;  1. The collector's lock is held and the world is stopped across the fork, so that no thread
;;;;     allocates or collects. WITHOUT-GCING is not held around the retries: the collector would
;;;;     wait for this thread, and this thread for the collector.
;;;;  2. No other thread holds a lock of the runtime at that moment (compiler, packages,
;;;;     fdefinitions, ...). Otherwise the copy would wait for ever for a thread that it does not
;;;;     have. If one is held, the world is not stopped, or started again, and the fork is tried
;;;;     again after a pause, until the time limit.
;;;;     A copy that would wait for another lock that it inherited exits, and is made again
;;;;     (copy-locks.lisp).
;;;;  3. The copy closes the other threads' allocation regions and makes itself the only thread, so
;;;;     that it can collect garbage.
;;;;  4. The same holds for locks of the runtime's C code: two are examined before the fork, and the
;;;;     finalizer's are initialized again in the copy.
;;;;  5. The fork is the kernel's and not the C library's. The C library's fork waits for the locks
;;;;     of malloc, for ever if a stopped thread holds one. A copy that needs such a lock hangs: the
;;;;     host kills a copy that does not begin its work, and has another made.
;;;;  6. The copy exits by _exit: no exit hooks run, and no buffers are flushed twice.

(in-package :consort)

(define-condition copy-busy (error)
  ((obstacle :initarg :obstacle :initform nil :reader copy-busy-obstacle))
  (:documentation
   "A lock of the runtime stays held, so that no copy could be made in time. Making one may be tried
   again. OBSTACLE: a string that names the holders, or NIL.")
  (:report (lambda (condition stream)
             (format stream "The image is busy and could not be copied yet~@[: ~A~]. Consort tries again; if that thread does not finish, interrupt ~
                             what it runs, end it, or restart the image."
                     (copy-busy-obstacle condition)))))

(define-condition cannot-copy (error)
  ((reason :initarg :reason :reader cannot-copy-reason))
  (:documentation
   "This operating system or SBCL does not support copies, or fork(2) failed. REASON: a string.")
  (:report (lambda (condition stream) (format stream "The image cannot be copied: ~A" (cannot-copy-reason condition)))))

(defun thread-inhibiting-gc ()
  "Another thread that is in WITHOUT-GCING, or NIL. Stopping the world would stop all other threads
  until that one leaves it."
  (find-if (lambda (thread)
             (and (not (eq thread sb-thread:*current-thread*))
                  (eq t (handler-case (sb-thread:symbol-value-in-thread collector-off thread nil)
                          (error () nil)))))
           (sb-thread:list-all-threads)))

(defconstant +max-obstacles+ 3 "The maximum number of obstacles to a copy in a message.")

(defun obstacle ()
  "A string that describes the current obstacles to a copy of the image; NIL when there are none any
  more. A thread that waits for a lock may itself hold another, so all holders are named."
  (let* ((thread (thread-inhibiting-gc))
         (all (remove-duplicates (append (and thread (list (format nil "~A prevents garbage collection" (thread-words thread))))
                                         (mapcar #'holding-words (held-runtime-locks)))
                                 :test #'string= :from-end t)))
    (and all (format nil "~{~A~^; ~}" (subseq all 0 (min +max-obstacles+ (length all)))))))

(defun c-variables (names)
  "The addresses of the runtime's C variables NAMES, without those that this runtime lacks. Never
  called with the world stopped, because the dynamic linker takes locks."
  (remove nil (mapcar #'foreign-address names)))

(defun c-lock-held-p (locks)
  "Returns true if one of LOCKS, the addresses of C mutexes, is held. With glibc the first word of a
  mutex is nonzero then."
  (dolist (address locks nil)
    (when (plusp (sap-32 (int-sap address) 0)) (return t))))

(defun renew-finalizer-locks (mutexes conditions)
  "Initializes the finalizer's C mutex and condition variable again in a copy, which does not have
  the thread that may hold the one and wait for the other."
  (flet ((clear (address size)
           (loop for offset from 0 below size by 4 do (setf (sap-32 (int-sap address) offset) 0))))
    (dolist (address mutexes) (clear address 40)) ; sizeof (pthread_mutex_t), (pthread_cond_t)
    (dolist (address conditions) (clear address 48))))

(defun can-copy-p ()
  "Returns true if this image can be copied: on Linux, with all internals of SBCL that are used."
  (and #+linux t #-linux nil
       #+sb-thread t #-sb-thread nil
       (every #'internal-p '(map-heap mutex-state primitive-thread thread-next-slot thread-previous-slot all-threads avl-insert
                             joinable-threads finalizer-thread world-lock collector-off variables-of-process))
       (every #'find-foreign-symbol-address '("all_threads" "gc_stop_the_world" "gc_start_the_world" "try_acquire_gc_lock" "release_gc_lock"
                                  "gc_close_thread_regions"))))

(defun become-only-thread ()
  "Makes this thread the only one that the runtime knows: in a new copy, with the world stopped."
  (let ((self (primitive-thread sb-thread:*current-thread*))
        (next (* thread-next-slot word-bytes))
        (previous (* thread-previous-slot word-bytes)))
    (loop for thread = (sb-alien:extern-alien "all_threads" sb-alien:unsigned-long) then (sap-word (int-sap thread) next)
          until (zerop thread)
          unless (= thread self)
            do (sb-alien:alien-funcall
                (sb-alien:extern-alien "gc_close_thread_regions" (function sb-alien:void sb-alien:unsigned-long sb-alien:int))
                thread 0))
    (setf (sb-alien:extern-alien "all_threads" sb-alien:unsigned-long) self
          (sap-word (int-sap self) next) 0
          (sap-word (int-sap self) previous) 0
          all-threads (avl-insert nil self sb-thread:*current-thread*)
          joinable-threads nil
          finalizer-thread nil)))

(defmacro call-c (name result &rest typed-arguments)
  "Calls the C function NAME with the TYPED-ARGUMENTS, each (TYPE VALUE)."
  `(sb-alien:alien-funcall (sb-alien:extern-alien ,name (function ,result ,@(mapcar #'first typed-arguments)))
                           ,@(mapcar #'second typed-arguments)))

(defun take-arena ()
  "Has the C library's malloc assign an arena to this thread, unless it has one. The assignment
  takes a lock that all threads share, also threads that no Lisp code started; another thread hardly
  ever locks this thread's arena."
  (sb-alien:free-alien (sb-alien:make-alien (sb-alien:unsigned 8) 65536)))

(defconstant +signal-of-end+ 0
  "The signal that a copy sends at its end: none. So code of the user's that waits for any child of
  the image, or has SIGCHLD ignored or handled, has nothing to do with copies.")

(defconstant +any-child+ #+linux #x40000000 #-linux 0 "__WALL, with which children without such a signal are waited for.")

(defun bare-fork ()
  "fork(2) without the C library's handlers: the process id, 0 in the copy, -1 on an error."
  #+(and linux (or x86-64 arm64))
  (call-c "syscall" sb-alien:long (sb-alien:long #+x86-64 56 #+arm64 220) ; SYS_clone
          (sb-alien:unsigned-long +signal-of-end+) (sb-alien:long 0) (sb-alien:long 0) (sb-alien:long 0) (sb-alien:long 0))
  #-(and linux (or x86-64 arm64))
  (call-c "fork" sb-alien:int))

(defconstant +thread-octets+ 1024
  "The octets at the start of the C library's thread record that are searched for the thread's id.")

#+linux
(defun thread-id-address ()
  "The address at which the C library keeps the kernel's id of this thread, which it uses to send
  the thread signals; NIL if it is not found. The kernel's fork does not update it."
  (let ((record (foreign-address "pthread_self"))
        (id (call-c "syscall" sb-alien:long (sb-alien:long #+x86-64 186 #-x86-64 178))))
    (when record
      (let* ((start (call-c "pthread_self" sb-alien:unsigned-long))
             (found (loop for offset from 0 below +thread-octets+ by 4
                          when (= id (sap-32 (int-sap (+ start offset)) 0)) collect (+ start offset))))
        (and found (null (rest found)) (first found))))))

#-linux
(progn
  (defun thread-id-address () "Not needed on this system." nil))

(defun renew-thread-id (address)
  "Stores the id of a copy's thread at ADDRESS, the value of THREAD-ID-ADDRESS before the fork."
  (when address
    (setf (sap-32 (int-sap address) 0) (sb-posix:getpid))))

(defun start-world ()
  "Starts the other threads again and releases the collector's lock."
  (call-c "gc_start_the_world" sb-alien:void)
  (call-c "release_gc_lock" sb-alien:void))

(defun try-to-fork (c-locks finalizer-mutexes finalizer-conditions)
  "Forks unless a lock of the runtime is held: the process id, 0 in the copy, -1 on an error; NIL if
  a lock is held. Called with interrupts off and the compiler's lock held. Nothing here may allocate
  or look up foreign symbols while the world is stopped."
  (without-collecting
    (when (eql 1 (call-c "try_acquire_gc_lock" sb-alien:int))
      (call-c "gc_stop_the_world" sb-alien:void)
      (let ((pid (if (or (held-runtime-lock) (c-lock-held-p c-locks))
                     nil
                     (bare-fork))))
        (when (eql pid 0)
          (become-only-thread)
          (renew-finalizer-locks finalizer-mutexes finalizer-conditions))
        (start-world)
        pid))))

(defun stopped-thread-holds-world-lock-p ()
  "Returns true if a thread that waits in a stop holds the compiler's lock."
  (let ((owner (sb-thread:mutex-owner world-lock)))
    (and owner (thread-waiting-p owner))))

(defun call-with-world-lock (function deadline)
  "Calls FUNCTION while this thread, or one that waits in a stop, holds the compiler's lock. Signals
  COPY-BUSY if the lock is not released until DEADLINE, in internal real time."
  (loop
    (cond ((or (sb-thread:holding-mutex-p world-lock)
               ;; TRY-TO-FORK looks again with the world stopped.
               (stopped-thread-holds-world-lock-p))
           (return (funcall function)))
          ;; The timeout is short: the holder may come to wait in a stop meanwhile.
          ((sb-thread:grab-mutex world-lock :timeout (max 0 (min (/ (- deadline (get-internal-real-time)) internal-time-units-per-second) 1/10)))
           (return (unwind-protect (funcall function)
                     (sb-thread:release-mutex world-lock))))
          ((> (get-internal-real-time) deadline)
           (error 'copy-busy :obstacle (or (obstacle) (holding-words world-lock)))))))

(defconstant +looks+ 100 "How often it is looked whether the runtime's locks are free, before a pause.")
(defconstant +shortest-pause+ 1/1000 "Seconds of the first pause between two attempts at a copy. Each pause is twice as long as the one before.")
(defconstant +longest-pause+ 1/20 "Seconds that a pause between two attempts at a copy may be long.")

(defun runtime-locks-free-p ()
  "Returns true if no other thread holds a lock of the runtime, now or within a moment. The world is
  not stopped for a lock that stays held: its holder would get no further."
  (loop repeat +looks+
        do (unless (held-runtime-lock) (return t))
           (sb-thread:thread-yield)))

(defun be-copy (function call parent)
  "Makes this process a copy of the process PARENT, calls FUNCTION through CALL, which enables
  interrupts, and exits. Called with interrupts off."
  (unwind-protect
       (progn (prepare-copy parent)
              (funcall (the function call) (lambda () (call-in-fresh-dynamic-state function)))
              (exit-process 0))
    (exit-process 70)))

(define-global *usage-with-room* 0
  "The part of the heap that was in use when room was last made for a copy.")

(defun make-room-for-copy ()
  "Collects garbage if little heap is left, so that the copy has some: once, until a tenth of the
  heap more is in use. A program may have that much data."
  (flet ((free () (- (sb-ext:dynamic-space-size) (dynamic-usage))))
    (cond ((not (heap-nearly-full-p)) (setf *usage-with-room* 0))
          ((> (dynamic-usage) (+ *usage-with-room* (floor (sb-ext:dynamic-space-size) 10)))
           (let ((*makes-room* t))
             ;; A collection that finds no room for its copies ends the process. One of fewer
             ;; generations makes room for the next.
             (loop for generations from 1 to 6
                   while (and (heap-nearly-full-p) (< (movable-bytes (1- generations)) (free)))
                   do (sb-ext:gc :gen generations)))
           (setf *usage-with-room* (dynamic-usage))))))

(defun fork-image (patience in-copy)
  "Copies the image: the process id of the copy. In the copy IN-COPY is called with interrupts off;
  its argument is a function that calls another with interrupts on. The value in the copy is 0, if
  IN-COPY returns. Signals COPY-BUSY if no copy can be made within PATIENCE seconds, and
  CANNOT-COPY."
  (unless (can-copy-p)
    (error 'cannot-copy :reason "this system or version of SBCL is not supported"))
  (make-room-for-copy)
  (take-arena)
  (let ((pid nil)
        (thread-id (thread-id-address))
        (c-locks (c-variables '("code_allocator_lock" "alloc_profiler_lock")))
        (mutexes (c-variables '("finalizer_mutex")))
        (conditions (c-variables '("finalizer_condvar")))
        (deadline (+ (get-internal-real-time) (round (* patience internal-time-units-per-second)))))
    ;; Between two attempts this thread holds no lock and the world runs: the holder of what is
    ;; waited for may itself need the compiler's lock.
    (loop for pause = +shortest-pause+ then (min (* 2 pause) +longest-pause+)
          do (call-with-world-lock
              (lambda ()
                (without-interrupts
                  (when (and (not (thread-inhibiting-gc)) (runtime-locks-free-p))
                    (setf pid (try-to-fork c-locks mutexes conditions)))
                  (when (eql pid 0)
                    (renew-thread-id thread-id)
                    (free-locks-of-stopped)
                    ;; WITH-LOCAL-INTERRUPTS within another WITHOUT-INTERRUPTS would leave them off.
                    (funcall (the function in-copy) (lambda (work) (with-local-interrupts (funcall (the function work))))))))
              deadline)
          until (or pid (> (get-internal-real-time) deadline))
          do (sleep (min patience pause)))
    (cond ((null pid) (error 'copy-busy :obstacle (obstacle)))
          ((minusp pid) (error 'cannot-copy :reason (system-message)))
          (t pid))))

(defun call-in-copy (function &key (patience 2))
  "Copies the image and calls FUNCTION in the copy, which then exits with code 0, or 70 if FUNCTION
  did not return. The process id of the copy, which the caller must reap (WAIT-FOR-COPY). Signals
  COPY-BUSY if no copy can be made within PATIENCE seconds, and CANNOT-COPY. FUNCTION has no effect
  on this image."
  (let ((parent (sb-posix:getpid)))
    (fork-image patience
                (lambda (call)
                  (unless (sb-thread:holding-mutex-p world-lock) (sb-thread:grab-mutex world-lock))
                  (be-copy function call parent)))))

;;; In the copy

(defun descriptor-numbers ()
  "The open descriptors of this process; only those below 4096 where the system does not list them."
  (let ((directory (handler-case (sb-posix:opendir #+linux "/proc/self/fd" #-linux "/dev/fd")
                     (sb-posix:syscall-error () nil))))
    (if directory
        (unwind-protect
             (loop for entry = (sb-posix:readdir directory)
                   until (or (null entry) (sb-alien:null-alien entry))
                   for descriptor = (parse-integer (sb-posix:dirent-name entry) :junk-allowed t)
                   when descriptor collect descriptor)
          (sb-posix:closedir directory))
        (loop for descriptor below 4096
              when (handler-case (sb-posix:fcntl descriptor sb-posix:f-getfd)
                     (sb-posix:syscall-error () nil))
                collect descriptor))))

(defun close-inherited-descriptors ()
  "Replaces every descriptor by one of /dev/null. They are not closed: code under check may write to
  a stream of the live image, whose descriptor's number must not be given to a file opened later."
  (let ((null-fd (sb-posix:open "/dev/null" sb-posix:o-rdwr)))
    (dolist (descriptor (descriptor-numbers))
      (unless (= descriptor null-fd)
        (handler-case (sb-posix:dup2 null-fd descriptor)
          (sb-posix:syscall-error () nil))))))

(defun call-in-fresh-dynamic-state (function)
  "Calls FUNCTION without the handlers and restarts of the thread that was copied, and without its
  streams."
  (let* ((in (make-concatenated-stream))
         (out (make-broadcast-stream))
         (both (make-two-way-stream in out)))
    (with-internals ((handler-clusters initial-handler-clusters) (restart-clusters '()))
      (let ((*standard-input* in) (*standard-output* out) (*error-output* out) (*trace-output* out)
            (*terminal-io* both) (*query-io* both) (*debug-io* both))
        (call-with-copied-settings (lambda ()
                                     (restore-standard)
                                     (funcall function)))))))

(defconstant +pr-set-pdeathsig+ 1)

(define-global *timers-of-image* '()
  "In a copy: the timers that the image had at the fork, which may change the image later.")

(defun die-with-parent (parent)
  "Has the kernel kill this process when the process PARENT ends. Exits if PARENT has ended
  already."
  #+linux (call-c "prctl" sb-alien:int (sb-alien:int +pr-set-pdeathsig+) (sb-alien:unsigned-long 9))
  (unless (eql parent (sb-posix:getppid)) (exit-process 70)))

(defun detach-from-image ()
  "Detaches a new copy from the image, so that the copy cannot change the image: descriptors,
  timers, signal handlers, hooks."
  (close-inherited-descriptors)
  ;; The image's timers do not run here. SBCL sets the clock only for the earliest timer, so they
  ;; would delay the copy's own.
  (setf *timers-of-image* (sb-ext:list-all-timers))
  (mapc #'sb-ext:unschedule-timer *timers-of-image*)
  (dolist (signal (list sb-posix:sigint sb-posix:sigterm sb-posix:sigpipe sb-posix:sighup sb-posix:sigchld))
    (enable-interrupt signal :default))
  (restore-alarm-handler)
  (restore-interruption-handler)
  (setf *in-copy* t
        sb-ext:*exit-hooks* '()
        sb-ext:*after-gc-hooks* '()))

(defun leave-for (condition hook)
  "The value of *INVOKE-DEBUGGER-HOOK* in a copy: reports CONDITION, which nothing handled, and
  exits with code 70."
  (declare (ignore hook))
  ;; A condition that cannot be printed comes here again.
  (let ((tell (shiftf *report-leaving* nil)))
    (when tell
      (funcall (the function tell) "failed" (format nil "~A: ~A" (condition-type condition) (condition-message condition)))))
  (exit-process 70))

(defun prepare-copy (parent)
  "Makes a new copy of the process PARENT independent of it. The copy ends with PARENT, and exits at
  an error that nothing handles."
  (die-with-parent parent)
  (detach-from-image)
  ;; The user's code may have set a mask with which the copy could not read its own files.
  (sb-posix:umask #o077)
  (setf sb-ext:*invoke-debugger-hook* 'leave-for
        *debugger-hook* nil))

;;; In the image

(defun call-with-alarm (seconds alarm function)
  "Calls FUNCTION. After SECONDS, ALARM is called in this thread, as an interruption: a copy has no
  other thread that could do that."
  (let ((timer (sb-ext:make-timer alarm :thread sb-thread:*current-thread*)))
    (sb-ext:schedule-timer timer seconds)
    (unwind-protect (funcall function)
      (sb-ext:unschedule-timer timer))))

(defun wait-for-copy (pid)
  "Waits for the copy PID to end, and reaps it. Returns two values: its exit code, and the signal
  that ended it; NIL for the one that does not apply, and twice NIL if there is no such child."
  (loop
    (handler-case
        (multiple-value-bind (reaped status) (sb-posix:waitpid pid +any-child+)
          (when (eql reaped pid)
            (return (cond ((sb-posix:wifexited status) (values (sb-posix:wexitstatus status) nil))
                          ((sb-posix:wifsignaled status) (values nil (sb-posix:wtermsig status)))))))
      (sb-posix:syscall-error (error)
        (unless (= (sb-posix:syscall-errno error) sb-posix:eintr)
          (return (values nil nil)))))))

(defun await-end (pid)
  "Waits for the child PID to end, without reaping it, so that its id is not used again."
  #+linux
  (let ((facts (make-array 16 :element-type '(unsigned-byte 64) :initial-element 0))) ; siginfo_t
    (with-pinned-objects (facts)
      ;; P_PID; WEXITED, WNOWAIT and __WALL
      (loop while (and (minusp (call-c "waitid" sb-alien:int (sb-alien:int 1) (sb-alien:int pid)
                                       (sb-alien:system-area-pointer (vector-sap facts)) (sb-alien:int (logior #x01000004 +any-child+))))
                       (= (sb-alien:get-errno) sb-posix:eintr))))))

(defun wait-for-group (pid)
  "WAIT-FOR-COPY for a copy that leads a process group. The other processes of the group are killed
  before the copy is reaped, while the group's id cannot be used again."
  #+linux
  (progn
    (await-end pid)
    (handler-case (sb-posix:kill (- pid) sb-posix:sigkill)
      (sb-posix:syscall-error () nil)))
  (wait-for-copy pid))

(defun kill-copy (pid)
  "Ends the copy PID and reaps it."
  (handler-case (sb-posix:kill pid sb-posix:sigkill)
    (sb-posix:syscall-error () nil))
  (wait-for-copy pid))
