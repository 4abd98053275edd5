;;;; A copy of the live, multi-threaded image: a fork with one thread, which does one thing and
;;;; leaves.
;;;;
;;;; The conditions under which a fork is safe, each found necessary:
;;;;  1. The lock of the collector is held and the world stopped across the fork, so no thread is
;;;;     allocating or collecting. WITHOUT-GCING is not held around the retries: the collector then
;;;;     waits for us, and we for it.
;;;;  2. No other thread holds a lock of the runtime at that moment (compiler, packages,
;;;;     fdefinitions, ...), else the copy would wait for ever for a thread that it does not have.
;;;;     If one is held, we let go and try again, until patience ends. A copy that comes to wait for
;;;;     another lock that it inherited leaves, and is made again (copy-locks.lisp).
;;;;  3. The copy closes the other threads' allocation regions and makes itself the only thread: it
;;;;     can collect garbage.
;;;;  4. The runtime's C locks count too: two are looked at before the fork, the finalizer's are
;;;;     made new in the copy.
;;;;  5. The system is asked for the fork, not the C library: its fork waits for the locks of
;;;;     malloc, and for ever when a stopped thread holds one. A copy that needs such a lock hangs:
;;;;     the host kills one that does not come to its work, and has another made.
;;;;  6. The copy leaves by _exit: no exit hooks, no buffers flushed twice.

(in-package :consort)

(define-condition copy-busy (error)
  ((obstacle :initarg :obstacle :initform nil :reader copy-busy-obstacle))
  (:documentation "A lock of the runtime stays held: no copy could be made in time. OBSTACLE: words that say by whom, or NIL. Try again.")
  (:report (lambda (condition stream)
             (format stream "The image is busy and could not be copied yet~@[: ~A~]. It is tried again; if that thread never lets go, interrupt ~
                             what it runs, end it, or restart the image."
                     (copy-busy-obstacle condition)))))

(define-condition cannot-copy (error)
  ((reason :initarg :reason :reader cannot-copy-reason))
  (:documentation "This system or this SBCL cannot be forked as we do it, or the system refused to.")
  (:report (lambda (condition stream) (format stream "The image cannot be copied: ~A" (cannot-copy-reason condition)))))

(defun thread-without-collector ()
  "Another thread that keeps the collector off. To stop the world would stop all but that one, until
  it lets go."
  (find-if (lambda (thread)
             (and (not (eq thread sb-thread:*current-thread*))
                  (eq t (handler-case (sb-thread:symbol-value-in-thread collector-off thread nil)
                          (error () nil)))))
           (sb-thread:list-all-threads)))

(defconstant +obstacles-told+ 3 "The obstacles to a copy that a message names.")

(defun obstacle ()
  "Describes the obstacles to a copy of the image now; NIL when there are none any more. A thread
  that waits for a lock may itself hold another: only both tell who is in the way."
  (let* ((thread (thread-without-collector))
         (all (remove-duplicates (append (and thread (list (format nil "~A keeps the collector off" (thread-words thread))))
                                         (mapcar #'holding-words (held-runtime-locks)))
                                 :test #'string= :from-end t)))
    (and all (format nil "~{~A~^; ~}" (subseq all 0 (min +obstacles-told+ (length all)))))))

(defun c-variables (names)
  "The addresses of those C variables of the runtime that it has. Never called with the world
  stopped: the linker has locks too."
  (remove nil (mapcar #'foreign-address names)))

(defun c-lock-held-p (locks)
  "Returns true if one of the C LOCKS, addresses, is held: with glibc the first word of a mutex is
  the lock."
  (dolist (address locks nil)
    (when (plusp (sap-32 (int-sap address) 0)) (return t))))

(defun renew-finalizer-locks (mutexes conditions)
  "Makes the finalizer's C mutex and condition variable new: the thread that may hold the one and
  wait for the other is gone."
  (flet ((clear (address size)
           (loop for offset from 0 below size by 4 do (setf (sap-32 (int-sap address) offset) 0))))
    (dolist (address mutexes) (clear address 40)) ; sizeof (pthread_mutex_t), (pthread_cond_t)
    (dolist (address conditions) (clear address 48))))

(defun can-copy-p ()
  "Returns true if this image can be copied: Linux, with every internal that it takes."
  (and #+linux t #-linux nil
       #+sb-thread t #-sb-thread nil
       (every #'internal-p '(map-heap mutex-state primitive-thread thread-next-slot thread-previous-slot all-threads avl-insert
                             joinable-threads finalizer-thread world-lock collector-off variables-of-process))
       (every #'find-foreign-symbol-address '("all_threads" "gc_stop_the_world" "gc_start_the_world" "try_acquire_gc_lock" "release_gc_lock"
                                  "gc_close_thread_regions"))))

(defun become-only-thread ()
  "In a copy just made, with the world stopped: make this thread the only one the runtime knows."
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
  "Has the C library's malloc give this thread an arena of its own, if it has none yet: to choose
  one takes a lock of all threads, also of those that begin and end outside of Lisp. A thread's own
  arena is hardly ever locked by another."
  (sb-alien:free-alien (sb-alien:make-alien (sb-alien:unsigned 8) 65536)))

(defun bare-fork ()
  "fork(2) without what the C library does around it: the process id, 0 in the copy, -1 when the
  system refused."
  #+(and linux (or x86-64 arm64))
  (call-c "syscall" sb-alien:long (sb-alien:long #+x86-64 56 #+arm64 220) ; SYS_clone
          (sb-alien:unsigned-long sb-posix:sigchld) (sb-alien:long 0) (sb-alien:long 0) (sb-alien:long 0) (sb-alien:long 0))
  #-(and linux (or x86-64 arm64))
  (call-c "fork" sb-alien:int))

(defconstant +thread-octets+ 1024 "Octets at the start of the C library's thread record that are searched for the thread's id.")

#+linux
(defun thread-id-address ()
  "Where the C library keeps the system's id of this thread, by which it sends the thread signals;
  NIL where that cannot be told. The system's fork does not tell the C library of the new id."
  (let ((record (foreign-address "pthread_self"))
        (id (call-c "syscall" sb-alien:long (sb-alien:long #+x86-64 186 #-x86-64 178))))
    (when record
      (let* ((start (call-c "pthread_self" sb-alien:unsigned-long))
             (found (loop for offset from 0 below +thread-octets+ by 4
                          when (= id (sap-32 (int-sap (+ start offset)) 0)) collect (+ start offset))))
        (and found (null (rest found)) (first found))))))

#-linux
(progn
  (defun thread-id-address () "Nothing needs it here." nil))

(defun renew-thread-id (address)
  "In a copy: have ADDRESS, of THREAD-ID-ADDRESS, hold the id of the copy's thread."
  (when address
    (setf (sap-32 (int-sap address) 0) (sb-posix:getpid))))

(defun start-world ()
  "Lets the other threads go on."
  (call-c "gc_start_the_world" sb-alien:void)
  (call-c "release_gc_lock" sb-alien:void))

(defun try-to-fork (c-locks finalizer-mutexes finalizer-conditions)
  "With interrupts off and the compiler's lock held: fork if nothing is in the way. The process id,
  0 in the copy, -1 when the system refused; NIL when something was in the way. Nothing here may
  cons or look up while the world is stopped."
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

(defun world-lock-of-stopped-p ()
  "Returns true if a thread that waits in a stop holds the compiler's lock."
  (let ((owner (sb-thread:mutex-owner world-lock)))
    (and owner (thread-waiting-p owner))))

(defun call-with-world-lock (function seconds)
  "Calls FUNCTION with the compiler's lock held, or in the hands of a thread that waits in a stop;
  COPY-BUSY when it is not free within SECONDS."
  (loop with end = (+ (get-internal-real-time) (* seconds internal-time-units-per-second))
        do (cond ((or (sb-thread:holding-mutex-p world-lock)
                      (world-lock-of-stopped-p)) ; TRY-TO-FORK looks again with the world stopped
                  (return (funcall function)))
                 ;; The timeout is short: the holder may come to wait in a stop meanwhile.
                 ((sb-thread:grab-mutex world-lock :timeout (min seconds 0.1))
                  (return (unwind-protect (funcall function)
                            (sb-thread:release-mutex world-lock))))
                 ((> (get-internal-real-time) end)
                  (error 'copy-busy :obstacle (or (obstacle) (holding-words world-lock)))))))

(defun be-copy (function call parent)
  "In a process that is to be a copy of PARENT's, with interrupts off: cut its ties, call FUNCTION
  by means of CALL, which has interrupts on, and leave."
  (unwind-protect
       (progn (prepare-copy parent)
              (funcall (the function call) (lambda () (call-on-its-own function)))
              (leave 0))
    (leave 70)))

(defun fork-image (patience in-copy)
  "Copies the image: the process id of the copy. In the copy IN-COPY is called with interrupts off,
  and 0 comes back if it returns; its argument is a function that calls another with interrupts on.
  COPY-BUSY when the image does not let itself be copied within PATIENCE seconds."
  (unless (can-copy-p)
    (error 'cannot-copy :reason "this system or version of SBCL is not supported"))
  (take-arena)
  (let ((pid nil)
        (thread-id (thread-id-address))
        (c-locks (c-variables '("code_allocator_lock" "alloc_profiler_lock")))
        (mutexes (c-variables '("finalizer_mutex")))
        (conditions (c-variables '("finalizer_condvar")))
        (deadline (+ (get-internal-real-time) (round (* patience internal-time-units-per-second)))))
    (call-with-world-lock
     (lambda ()
       (without-interrupts
         (loop
           (let ((collecting (not (thread-without-collector))))
             (setf pid (and collecting (try-to-fork c-locks mutexes conditions)))
             (when (or pid (> (get-internal-real-time) deadline)) (return))
             ;; Not again and again: to look conses, and the collection that comes of it would stop
             ;; everybody.
             (if collecting (sb-thread:thread-yield) (sleep (min patience 1/20)))))
         (when (eql pid 0)
           (renew-thread-id thread-id)
           (free-locks-of-stopped)
           ;; Within another WITHOUT-INTERRUPTS they would stay off.
           (funcall (the function in-copy) (lambda (work) (with-local-interrupts (funcall (the function work))))))))
     patience)
    (cond ((null pid) (error 'copy-busy :obstacle (obstacle)))
          ((minusp pid) (error 'cannot-copy :reason (system-message)))
          (t pid))))

(defun call-in-copy (function &key (patience 2))
  "Copies the image, calls FUNCTION in the copy, which then leaves with exit code 0, or 70 if
  FUNCTION did not return. The process id of the copy, which the caller must reap (WAIT-FOR-COPY).
  COPY-BUSY when the image does not let itself be copied within PATIENCE seconds. Nothing of
  FUNCTION is seen in this image."
  (let ((parent (sb-posix:getpid)))
    (fork-image patience
                (lambda (call)
                  (unless (sb-thread:holding-mutex-p world-lock) (sb-thread:grab-mutex world-lock))
                  (be-copy function call parent)))))

;;; In the copy

(defun descriptor-numbers ()
  "The descriptors of this process; those up to 4096 where the system does not list them."
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
  "Makes every descriptor one of /dev/null. They stay taken: a stream of the live image that code
  under check writes to must not meet a descriptor that is opened later under the same number."
  (let ((null-fd (sb-posix:open "/dev/null" sb-posix:o-rdwr)))
    (dolist (descriptor (descriptor-numbers))
      (unless (= descriptor null-fd)
        (handler-case (sb-posix:dup2 null-fd descriptor)
          (sb-posix:syscall-error () nil))))))

(defun call-on-its-own (function)
  "Calls FUNCTION without the handlers and restarts of the thread that was copied, and without its
  streams."
  (let* ((nobody (make-concatenated-stream))
         (nowhere (make-broadcast-stream))
         (both (make-two-way-stream nobody nowhere)))
    (with-internals ((handler-clusters initial-handler-clusters) (restart-clusters '()))
      (let ((*standard-input* nobody) (*standard-output* nowhere) (*error-output* nowhere) (*trace-output* nowhere)
            (*terminal-io* both) (*query-io* both) (*debug-io* both))
        (call-with-copied-settings (lambda ()
                                     (restore-standard)
                                     (funcall function)))))))

(defconstant +pr-set-pdeathsig+ 1)

(define-global *timers-of-image* '() "In a copy: the timers that the image had at the fork, which may change the image later.")

(defun die-with-parent (parent)
  "Has this process end with the process PARENT, also where that ended before it could be tied to
  it."
  #+linux (call-c "prctl" sb-alien:int (sb-alien:int +pr-set-pdeathsig+) (sb-alien:unsigned-long 9))
  (unless (eql parent (sb-posix:getppid)) (leave 70)))

(defun cut-ties ()
  "Cuts what connects a fresh copy to the image, so that nothing of the image is changed through it:
  descriptors, timers, signals, hooks."
  (close-inherited-descriptors)
  ;; The image's timers do not run here, and SBCL would wait for one of them before it sets the
  ;; clock for a later one of ours.
  (setf *timers-of-image* (sb-ext:list-all-timers))
  (mapc #'sb-ext:unschedule-timer *timers-of-image*)
  (dolist (signal (list sb-posix:sigint sb-posix:sigterm sb-posix:sigpipe sb-posix:sighup))
    (enable-interrupt signal :default))
  (setf *in-copy* t
        sb-ext:*exit-hooks* '()
        sb-ext:*after-gc-hooks* '()))

(defun leave-for (condition hook)
  "Leaves this copy, in which nobody handles CONDITION, and tells why: the debugger's hook."
  (declare (ignore hook))
  ;; A condition that cannot be printed comes here again.
  (let ((tell (shiftf *tell-leaving* nil)))
    (when tell
      (funcall (the function tell) "failed" (format nil "~A: ~A" (condition-type condition) (condition-message condition)))))
  (leave 70))

(defun prepare-copy (parent)
  "Makes a fresh copy of the process PARENT one that has no ties to it, ends with it, and leaves
  where something fails."
  (die-with-parent parent)
  (cut-ties)
  (sb-posix:umask #o077)                ; one that code set could keep this copy from its own files
  (setf sb-ext:*invoke-debugger-hook* 'leave-for
        *debugger-hook* nil))

;;; In the image

(defun call-with-alarm (seconds alarm function)
  "Calls FUNCTION. After SECONDS, ALARM is called in it, in this thread: a copy has no other thread
  of ours that could do that."
  (let ((timer (sb-ext:make-timer alarm :thread sb-thread:*current-thread*)))
    (sb-ext:schedule-timer timer seconds)
    (unwind-protect (funcall function)
      (sb-ext:unschedule-timer timer))))

(defun wait-for-copy (pid)
  "Waits for the copy PID to end, and reaps it: its exit code or NIL, and the signal that ended it
  or NIL."
  (loop
    (handler-case
        (multiple-value-bind (reaped status) (sb-posix:waitpid pid 0)
          (when (eql reaped pid)
            (return (cond ((sb-posix:wifexited status) (values (sb-posix:wexitstatus status) nil))
                          ((sb-posix:wifsignaled status) (values nil (sb-posix:wtermsig status)))))))
      (sb-posix:syscall-error (error)
        (unless (= (sb-posix:syscall-errno error) sb-posix:eintr)
          (return (values nil nil)))))))

(defun await-end (pid)
  "Waits for the child PID to end. It is not reaped, so its number stays taken."
  #+linux
  (let ((facts (make-array 16 :element-type '(unsigned-byte 64) :initial-element 0))) ; siginfo_t
    (with-pinned-objects (facts)
      ;; P_PID; WEXITED and WNOWAIT
      (loop while (and (minusp (call-c "waitid" sb-alien:int (sb-alien:int 1) (sb-alien:int pid)
                                       (sb-alien:system-area-pointer (vector-sap facts)) (sb-alien:int #x01000004)))
                       (= (sb-alien:get-errno) sb-posix:eintr))))))

(defun wait-for-group (pid)
  "WAIT-FOR-COPY for a copy that leads a process group: what else is in the group is ended before
  its number is free again."
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
