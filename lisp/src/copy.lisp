;;;; A copy of the live, multi-threaded image: a forked process with one thread, which does one
;;;; piece of work and exits.
;;;;
;;;; A fork is safe under the following conditions. Each was found necessary:
;;;;  1. The collector's lock is held and the world is stopped across the fork, so that no thread
;;;;     allocates or collects. WITHOUT-GCING is not held around the retries: the collector would
;;;;     wait for this thread, and this thread for the collector.
;;;;  2. No other thread holds a lock of the runtime at that moment (compiler, packages,
;;;;     fdefinitions, ...). Otherwise the copy would wait for ever for a thread that it does not
;;;;     have. The locks are examined before the world is stopped and again afterwards. If one is
;;;;     held, the fork is tried again after a pause in which the world runs, until the time limit.
;;;;     A copy that would wait for any other inherited lock exits, and is made again
;;;;     (copy-locks.lisp).
;;;;  3. The copy closes the other threads' allocation regions and makes itself the only thread, so
;;;;     that it can collect garbage.
;;;;  4. Condition 2 holds for the locks of the runtime's C code, too. Two of them are examined
;;;;     before the fork. The finalizer's are initialized again in the copy.
;;;;  5. The fork is a system call of its own, and not the C library's function, where BARE-FORK
;;;;     supports that. The C library's function waits for the locks of malloc, for ever if a
;;;;     stopped thread holds one. A copy that needs such a lock hangs: the host kills a copy that
;;;;     does not begin its work, and has another made.
;;;;  6. The copy exits by _exit: no exit hooks run, and no buffers are flushed twice.

(in-package :consort)

(define-condition copy-busy (error)
  ((obstacle :initarg :obstacle :initform nil :reader copy-busy-obstacle))
  (:documentation
   "No copy could be made in time, because a thread holds a lock of the runtime or prevents garbage
   collection. A later attempt may succeed. OBSTACLE: a string that names the threads, or NIL if
   there is no obstacle any more.")
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
  "Another thread that is in WITHOUT-GCING; NIL if there is none. To stop the world takes until that
  thread leaves WITHOUT-GCING, while all others are stopped."
  (find-if (lambda (thread)
             (and (not (eq thread sb-thread:*current-thread*))
                  (eq t (handler-case (sb-thread:symbol-value-in-thread collector-off thread nil)
                          (error () nil)))))
           (sb-thread:list-all-threads)))

(defconstant +max-obstacles+ 3 "The maximum number of obstacles to a copy in a message.")

(defun obstacle ()
  "A string that describes at most +MAX-OBSTACLES+ of the current obstacles to a copy of the image;
  NIL if there are none. A holder of a lock may itself wait for another lock, so the string names
  more than one."
  (let* ((thread (thread-inhibiting-gc))
         (all (remove-duplicates (append (and thread (list (format nil "~A prevents garbage collection" (thread-words thread))))
                                         (mapcar #'holding-words (held-runtime-locks)))
                                 :test #'string= :from-end t)))
    (and all (format nil "~{~A~^; ~}" (subseq all 0 (min +max-obstacles+ (length all)))))))

(defun c-variables (names)
  "The addresses of the runtime's C variables NAMES; those that this runtime lacks are left out.
  Must not be called with the world stopped, because the dynamic linker takes locks."
  (remove nil (mapcar #'foreign-address names)))

(defun c-lock-held-p (locks)
  "Returns true if one of LOCKS, the addresses of C mutexes, is held. In glibc, the first 32 bits of
  a mutex are nonzero while it is held."
  (dolist (address locks nil)
    (when (plusp (sap-32 (int-sap address) 0)) (return t))))

(defun renew-finalizer-locks (mutexes conditions)
  "Initializes the finalizer's C mutexes and condition variables at these addresses again. A copy
  does not have the finalizer's thread, which may have held the mutex or waited for the condition."
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
  "Makes this thread the only one that the runtime has on record, and closes the allocation regions
  of the others. Called in a new copy, with the world stopped."
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
  "Calls the C function NAME, a string, whose result has the alien type RESULT. Each of
  TYPED-ARGUMENTS is a list (TYPE VALUE)."
  `(sb-alien:alien-funcall (sb-alien:extern-alien ,name (function ,result ,@(mapcar #'first typed-arguments)))
                           ,@(mapcar #'second typed-arguments)))

(defun take-arena ()
  "Has the C library's malloc assign an arena to this thread, unless it has one. The assignment
  locks a mutex that all threads share, including threads of foreign code, so a copy must not need
  it. Other threads hardly ever lock this thread's arena."
  (sb-alien:free-alien (sb-alien:make-alien (sb-alien:unsigned 8) 65536)))

(defconstant +signal-of-end+ 0
  "The signal that the image gets when a copy ends: none. So user code that waits for any child of
  the image, or that ignores or handles SIGCHLD, does not notice copies.")

(defconstant +any-child+ #+linux #x40000000 #-linux 0
  "The option __WALL of waitpid(2), which includes children that send no signal when they end.")

(defun bare-fork ()
  "Forks without the C library's function, on Linux on x86-64 and arm64; elsewhere with it. Returns
  the process id of the copy; 0 in the copy; -1 on an error."
  #+(and linux (or x86-64 arm64))
  (call-c "syscall" sb-alien:long (sb-alien:long #+x86-64 56 #+arm64 220) ; SYS_clone
          (sb-alien:unsigned-long +signal-of-end+) (sb-alien:long 0) (sb-alien:long 0) (sb-alien:long 0) (sb-alien:long 0))
  #-(and linux (or x86-64 arm64))
  (call-c "fork" sb-alien:int))

(defconstant +thread-octets+ 1024
  "The number of octets of the C library's thread record, from its start, in which
  THREAD-ID-ADDRESS searches.")

#+linux
(defun thread-id-address ()
  "The address at which the C library keeps the kernel's id of this thread, with which it sends
  signals to the thread. NIL if the id is not found, or found at more than one address. BARE-FORK
  does not update the id."
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
  "Forks unless another thread holds a lock of the runtime. Returns the process id of the copy; 0 in
  the copy; -1 on an error; NIL if a lock is held. C-LOCKS, FINALIZER-MUTEXES and
  FINALIZER-CONDITIONS are lists of addresses. Called with interrupts off and with the compiler's
  lock held. While the world is stopped, no code here may allocate or look up foreign symbols."
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
  "Calls FUNCTION while this thread, or one that waits in a stop, holds the compiler's lock. Returns
  its values. Signals COPY-BUSY if another thread still holds the lock at DEADLINE, which is in
  internal time units."
  (loop
    (cond ((or (sb-thread:holding-mutex-p world-lock)
               ;; TRY-TO-FORK tests this again with the world stopped.
               (stopped-thread-holds-world-lock-p))
           (return (funcall function)))
          ;; The timeout is short, because the holder may meanwhile begin to wait in a stop.
          ((sb-thread:grab-mutex world-lock :timeout (max 0 (min (/ (- deadline (get-internal-real-time)) internal-time-units-per-second) 1/10)))
           (return (unwind-protect (funcall function)
                     (sb-thread:release-mutex world-lock))))
          ((> (get-internal-real-time) deadline)
           (error 'copy-busy :obstacle (or (obstacle) (holding-words world-lock)))))))

(defconstant +looks+ 100
  "The maximum number of tests in one attempt at a copy whether the runtime's locks are free.")
(defconstant +shortest-pause+ 1/1000
  "The first pause between two attempts at a copy, in seconds. Each further pause is twice as
  long.")
(defconstant +longest-pause+ 1/20
  "The maximum pause between two attempts at a copy, in seconds.")

(defun runtime-locks-free-p ()
  "Returns true if at one of +LOOKS+ tests no other thread holds a lock of the runtime. Only then is
  the world stopped: while it is stopped, a holder could not release its lock."
  (loop repeat +looks+
        do (unless (held-runtime-lock) (return t))
           (sb-thread:thread-yield)))

(defun be-copy (function call parent)
  "Makes this new process an independent copy of the process PARENT, calls FUNCTION, and exits with
  code 0, or 70 if FUNCTION did not return. CALL is a function that calls its argument with
  interrupts on. Called with interrupts off."
  (unwind-protect
       (progn (prepare-copy parent)
              (funcall (the function call) (lambda () (call-in-fresh-dynamic-state function)))
              (exit-process 0))
    (exit-process 70)))

(define-global *usage-with-room* 0
  "The octets of the heap that were in use after MAKE-ROOM-FOR-COPY last collected garbage; 0 if the
  heap was not nearly full when the last copy was made.")

(defun make-room-for-copy ()
  "Collects garbage if the heap is nearly full, so that a copy has free heap. Does so again only
  when the use has grown by a tenth of the heap, because the user's data may fill the heap for
  good."
  (flet ((free () (- (sb-ext:dynamic-space-size) (dynamic-usage))))
    (cond ((not (heap-nearly-full-p)) (setf *usage-with-room* 0))
          ((> (dynamic-usage) (+ *usage-with-room* (floor (sb-ext:dynamic-space-size) 10)))
           (let ((*makes-room* t))
             ;; A collection that has no room to copy objects to ends the process. A collection of
             ;; fewer generations needs less room, and makes room for the next.
             (loop for generations from 1 to 6
                   while (and (heap-nearly-full-p) (< (movable-bytes (1- generations)) (free)))
                   do (sb-ext:gc :gen generations)))
           (setf *usage-with-room* (dynamic-usage))))))

(defun fork-image (patience in-copy)
  "Copies the image. Returns the process id of the copy. In the copy, calls IN-COPY with interrupts
  off and one argument, a function that calls its own argument with interrupts on; returns 0 in the
  copy if IN-COPY returns. Signals COPY-BUSY if no copy can be made within PATIENCE seconds, and
  CANNOT-COPY if this system or SBCL does not support copies or the fork fails."
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
    ;; Between two attempts the world runs, and this thread does not hold the compiler's lock, which
    ;; the holder of another lock may need before it can release that.
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
  did not return. Returns the process id of the copy, which the caller must reap (WAIT-FOR-COPY).
  Signals COPY-BUSY and CANNOT-COPY as FORK-IMAGE does. FUNCTION has no effect on the memory of this
  image."
  (let ((parent (sb-posix:getpid)))
    (fork-image patience
                (lambda (call)
                  (unless (sb-thread:holding-mutex-p world-lock) (sb-thread:grab-mutex world-lock))
                  (be-copy function call parent)))))

;;; In the copy

(defun descriptor-numbers ()
  "A list of the open file descriptors of this process. If the system does not list them, only those
  below 4096."
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
  "Redirects every open file descriptor to /dev/null. The descriptors stay open, so that no file
  that is opened later gets the number of one of them: code under check may write to a stream of the
  live image."
  (let ((null-fd (sb-posix:open "/dev/null" sb-posix:o-rdwr)))
    (dolist (descriptor (descriptor-numbers))
      (unless (= descriptor null-fd)
        (handler-case (sb-posix:dup2 null-fd descriptor)
          (sb-posix:syscall-error () nil))))))

(defun call-in-fresh-dynamic-state (function)
  "Calls FUNCTION without the handlers and restarts of the thread that forked, with the settings
  that copies have, and with standard streams that are empty and discard output."
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
  "In a copy: the list of the timers that the image had at the fork. They run in the image and may
  change it. NIL in the image.")

(defun die-with-parent (parent)
  "Has the kernel kill this process when the process PARENT ends. Exits if PARENT has ended
  already."
  #+linux (call-c "prctl" sb-alien:int (sb-alien:int +pr-set-pdeathsig+) (sb-alien:unsigned-long 9))
  (unless (eql parent (sb-posix:getppid)) (exit-process 70)))

(defun detach-from-image ()
  "Removes the inherited descriptors, timers, signal handlers and hooks from a new copy, so that the
  copy cannot act on the image's files and connections."
  (close-inherited-descriptors)
  ;; The image's timers do not run in a copy. SBCL sets the alarm clock only for the earliest timer,
  ;; so an image's timer that is earlier than the copy's would keep the copy's from running.
  (setf *timers-of-image* (sb-ext:list-all-timers))
  (mapc #'sb-ext:unschedule-timer *timers-of-image*)
  (dolist (signal (list* sb-posix:sigint sb-posix:sigterm sb-posix:sigpipe sb-posix:sigchld *stray-signals*))
    (enable-interrupt signal :default))
  (restore-alarm-handler)
  (restore-interruption-handler)
  (setf *in-copy* t
        ;; The starts make threads of the image. While any waits, START-THREAD-SOON leaves each
        ;; further one to the starter, which a copy does not have. A copy can make threads at once:
        ;; it is not forked while a thread of the image holds the lock that SBCL takes for that
        ;; (NOTE-LOCKS-OF-PROCESS), and the lock of the list of all threads is the forking thread's
        ;; while the world is stopped. The runtime's lock for the memory of ended threads, and the C
        ;; library's, are held for some instructions by a thread that begins or ends. A copy that
        ;; finds one of them held stands still, and is ended at its time limit.
        *starts* '()
        sb-ext:*exit-hooks* '()
        sb-ext:*after-gc-hooks* '()))

(defun leave-for (condition hook)
  "The value of *INVOKE-DEBUGGER-HOOK* in a copy: reports CONDITION, which nothing handled, and
  exits with code 70."
  (declare (ignore hook))
  ;; If printing CONDITION fails, this function is called again, and then reports nothing.
  (let ((tell (shiftf *report-leaving* nil)))
    (when tell
      (funcall (the function tell) "failed" (format nil "~A: ~A" (condition-type condition) (condition-message condition)))))
  (exit-process 70))

(defun prepare-copy (parent)
  "Makes a new copy of the process PARENT independent of it. The copy ends with PARENT, and exits at
  an error that nothing handles."
  (die-with-parent parent)
  (detach-from-image)
  ;; User code may have set a umask with which the copy could not read the files that it creates.
  (sb-posix:umask #o077)
  (setf sb-ext:*invoke-debugger-hook* 'leave-for
        *debugger-hook* nil))

;;; In the image

(defun call-with-alarm (seconds alarm function)
  "Calls FUNCTION and returns its values. If it takes longer than SECONDS, calls the function ALARM
  in this thread, as an interruption, because a copy has no other thread to call it in."
  (let ((timer (sb-ext:make-timer alarm :thread sb-thread:*current-thread*)))
    (sb-ext:schedule-timer timer seconds)
    (unwind-protect (funcall function)
      (sb-ext:unschedule-timer timer))))

(defun wait-for-copy (pid)
  "Waits for the copy PID to end, and reaps it. Returns two values: the exit code, and the number of
  the signal that ended the copy. The one that does not apply is NIL. Both are NIL if there is no
  such child."
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
  "Waits for the child PID to end, without reaping it, so that its id is not used again. Does
  nothing on systems other than Linux."
  #-linux (declare (ignore pid))
  #+linux
  (let ((facts (make-array 16 :element-type '(unsigned-byte 64) :initial-element 0))) ; siginfo_t
    (with-pinned-objects (facts)
      ;; P_PID; WEXITED, WNOWAIT and __WALL
      (loop while (and (minusp (call-c "waitid" sb-alien:int (sb-alien:int 1) (sb-alien:int pid)
                                       (sb-alien:system-area-pointer (vector-sap facts)) (sb-alien:int (logior #x01000004 +any-child+))))
                       (= (sb-alien:get-errno) sb-posix:eintr))))))

(defun wait-for-group (pid)
  "Acts as WAIT-FOR-COPY for a copy that leads a process group. On Linux, kills the other processes
  of the group before it reaps the copy, while the group's id cannot be used again."
  #+linux
  (progn
    (await-end pid)
    (handler-case (sb-posix:kill (- pid) sb-posix:sigkill)
      (sb-posix:syscall-error () nil)))
  (wait-for-copy pid))

(defun kill-copy (pid)
  "Kills the copy PID and reaps it. Returns the values of WAIT-FOR-COPY."
  (handler-case (sb-posix:kill pid sb-posix:sigkill)
    (sb-posix:syscall-error () nil))
  (wait-for-copy pid))
