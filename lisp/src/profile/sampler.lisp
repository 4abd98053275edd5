;;;; Samples of the threads that run the profiled code, and of no others.
;;;;
;;;; The modes cpu and time: each profiled thread has a timer of its own (timer_create(2),
;;;; SIGEV_THREAD_ID), which counts the processor time of the thread, or real time, and signals the
;;;; thread. SB-SPROF is not used for them. Its cpu mode has one timer for the process, so other
;;;; clients' code would count as this code. Its time mode has a thread that walks over all threads
;;;; and ends only when it has woken up. Its stacks lack the callers of assembler routines
;;;; (GENERIC-+) and of foreign code. The signal is one that the runtime defers where Lisp must not
;;;; run. While a timer's signal is pending, because it is deferred or because the thread waits for
;;;; a processor, the kernel merges further expirations into it. The weight of a sample is one more
;;;; than the number of these.
;;;;
;;;; The mode alloc: SB-SPROF, which the allocator itself calls each time a thread needs new memory.

(in-package :consort)

(defconstant +sample-signal+ 26 "SIGVTALRM on Linux.")
(defconstant +allocation-samples+ 500000 "The maximum number of samples of allocation that are
  gathered. The report is thinned out to the requested number.")

(defstruct (profile (:constructor make-profile (mode interval limit)))
  "A profiling run. MODE is :CPU, :TIME or :ALLOC. INTERVAL is in seconds, and LIMIT in samples.
  COUNT is the weight of the samples that came, including the lost ones."
  (mode :cpu :type (member :cpu :time :alloc) :read-only t)
  (interval 0.01 :type (real (0)) :read-only t)
  (limit 1000 :type (unsigned-byte 32) :read-only t)
  (count 0 :type sb-ext:word)
  (active nil)
  (recorders '() :type list)
  (lock (sb-thread:make-mutex :name "consort profile") :read-only t)
  (milliseconds 0 :type real)
  (bytes 0 :type integer)
  (stacks nil))

(defstruct recorder
  "The samples of a thread, newest first. Each is a cons of a weight and a simple vector of code and
  offsets. TIMER is the kernel's timer, or NIL after it is deleted."
  (samples '() :type list)
  (scratch (make-array (* 2 +stack-depth+) :initial-element nil) :type simple-vector :read-only t)
  (profile nil :type profile :read-only t)
  (timer nil))

(defvar *recorder* nil "The thread's recorder, while the thread is profiled.")
(define-global *profiling* nil "The profile that runs now, or NIL.")
(define-global *profiling-lock* (sb-thread:make-mutex :name "consort profiling") "Held while *PROFILING* is changed.")

;;; The timers

(defmacro call-foreign (name result &rest arguments)
  "Calls the C function NAME, looked up at the time of the call, with ARGUMENTS, each (TYPE VALUE).
  NIL if there is no such function."
  `(let ((address (find-foreign-symbol-address ,name)))
     (and address
          (sb-alien:alien-funcall (sb-alien:sap-alien (int-sap address) (function ,result ,@(mapcar #'first arguments)))
                                  ,@(mapcar #'second arguments)))))

(defun timers-p ()
  "Returns true if threads can have timers of their own on this system, and their stacks can be
  read."
  (and #+linux t #-linux nil
       (frames-readable-p)
       (find-foreign-symbol-address "timer_create")
       (find-foreign-symbol-address "gettid")
       t))

(defun make-thread-timer (mode)
  "A timer of the kernel's that signals this thread and does not run yet; NIL if the kernel gives
  none."
  ;; struct sigevent.
  (let ((event (make-array 8 :element-type '(unsigned-byte 64) :initial-element 0))
        (timer (make-array 1 :element-type '(unsigned-byte 64) :initial-element 0)))
    ;; sigev_signo, sigev_notify: SIGEV_THREAD_ID.
    (setf (aref event 1) (logior +sample-signal+ (ash 4 32))
          (aref event 2) (or (call-foreign "gettid" sb-alien:int) 0))
    (with-pinned-objects (event timer)
      (when (eql 0 (call-foreign "timer_create" sb-alien:int
                                 ;; CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC.
                                 (sb-alien:int (if (eq mode :cpu) 3 1))
                                 (sb-alien:system-area-pointer (vector-sap event))
                                 (sb-alien:system-area-pointer (vector-sap timer))))
        (aref timer 0)))))

(defun start-thread-timer (timer interval)
  (multiple-value-bind (seconds rest) (truncate (rationalize interval))
    (let* ((nanoseconds (max (if (zerop seconds) 1 0) (truncate (* rest 1000000000))))
           (times (make-array 4 :element-type '(unsigned-byte 64) :initial-contents (list seconds nanoseconds seconds nanoseconds))))
      (with-pinned-objects (times)
        (call-foreign "timer_settime" sb-alien:int
                      (sb-alien:unsigned-long timer) (sb-alien:int 0)
                      (sb-alien:system-area-pointer (vector-sap times)) (sb-alien:unsigned-long 0))))))

(defun stop-recorder (recorder)
  "Deletes RECORDER's timer, only once. Both its thread and the end of the profile call this."
  (with-lock ((profile-lock (recorder-profile recorder)))
    (let ((timer (shiftf (recorder-timer recorder) nil)))
      (when timer
        (call-foreign "timer_delete" sb-alien:int (sb-alien:unsigned-long timer))))))

(defun claim-weight (profile wanted)
  "The part of the weight WANTED that is within the limit of PROFILE. That part is used up."
  (let ((before (sb-ext:atomic-incf (profile-count profile) wanted)))
    (max 0 (min wanted (- (profile-limit profile) before)))))

(defun take-sample (signal info context)
  "Handles the signal of a timer. Does nothing if the signal arrives late."
  (declare (ignore signal))
  (let ((recorder *recorder*))
    (when recorder
      (let ((profile (recorder-profile recorder)))
        (when (profile-active profile)
          (let ((weight (claim-weight profile (1+ (timer-overrun info)))))
            (when (plusp weight)
              (let* ((frames (recorder-scratch recorder))
                     (count (handler-case (read-frames context frames) (error () 0))))
                (push (cons weight (subseq frames 0 count)) (recorder-samples recorder))))))))))

;;; Threads

(defun call-recorded (profile function)
  "Calls FUNCTION in this thread, as a part of the profiled code of PROFILE."
  (if (or (eq (profile-mode profile) :alloc) (not (timers-p)))
      (let ((*recorder* (make-recorder :profile profile)))
        (sb-sprof:with-sampling (t) (funcall function)))
      (let ((*recorder* (make-recorder :profile profile :timer (make-thread-timer (profile-mode profile)))))
        (with-lock ((profile-lock profile))
          (push *recorder* (profile-recorders profile)))
        (unwind-protect
             (progn
               (when (and (profile-active profile) (recorder-timer *recorder*))
                 (start-thread-timer (recorder-timer *recorder*) (profile-interval profile)))
               (funcall function))
          (stop-recorder *recorder*)))))

(defun make-thread-recorded (make-thread function &rest arguments)
  "The replacement of MAKE-THREAD: a thread that profiled code starts is profiled too."
  (let ((profile (and *recorder* (recorder-profile *recorder*))))
    (if (and profile (profile-active profile))
        (apply make-thread
               (lambda (&rest arguments)
                 (call-recorded profile (lambda () (call-user-code (lambda () (apply function arguments))))))
               arguments)
        (apply make-thread function arguments))))

;;; A run

(defun begin-profile (profile)
  "Makes PROFILE the one that runs. Refuses while another one runs."
  (let ((other (with-lock (*profiling-lock*)
                 (prog1 *profiling*
                   (unless *profiling* (setf *profiling* profile))))))
    (when other
      (refuse "busy" "Another profile is running in this image, and there can be one at a time. Try again when it has ended.")))
  (when (and (eq (profile-mode profile) :alloc) sprof-mode)
    (end-profile)
    (refuse "busy" "SB-SPROF is profiling already, started by code in the image. Stop it with (sb-sprof:stop-profiling) first.")))

(defun end-profile ()
  (with-lock (*profiling-lock*)
    (setf *profiling* nil)))

(defun call-profiled (profile function)
  "Calls FUNCTION, which runs the user's code, as the profiled code of PROFILE. The profiler is
  stopped whenever FUNCTION is left. A deadline does not interrupt that."
  (let ((start 0) (bytes 0)
        (sprof (or (eq (profile-mode profile) :alloc) (not (timers-p)))))
    (without-interrupts
      (encapsulate 'sb-thread:make-thread 'consort-profile #'make-thread-recorded)
      (setf (profile-active profile) t)
      (unwind-protect
           (with-local-interrupts
             (if sprof
                 (sb-sprof:start-profiling :mode (profile-mode profile) :threads (list sb-thread:*current-thread*)
                                           :sample-interval (profile-interval profile)
                                           :max-samples (if (eq (profile-mode profile) :alloc) +allocation-samples+ (profile-limit profile)))
                 (enable-interrupt +sample-signal+ #'take-sample))
             (setf start (now-ms) bytes (sb-ext:get-bytes-consed))
             (call-recorded profile function))
        (setf (profile-bytes profile) (- (sb-ext:get-bytes-consed) bytes)
              (profile-milliseconds profile) (max 0 (- (now-ms) start))
              (profile-active profile) nil)
        (when sprof (sb-sprof:stop-profiling))
        (mapc #'stop-recorder (profile-recorders profile))
        (unencapsulate 'sb-thread:make-thread 'consort-profile)))))

;;; The result

(defun sprof-stacks ()
  "The stacks that SB-SPROF has gathered, each a list of the names of its functions, innermost
  first. SB-SPROF's memory is freed."
  (let ((samples sprof-samples)
        (stacks '()))
    (when samples
      (setf (sprof-vector samples) (values (sprof-gathered)))
      (sb-sprof:map-traces (lambda (thread trace)
                             (declare (ignore thread))
                             (let ((names '()))
                               (map-sprof-trace (lambda (info place) (declare (ignore place)) (push (sprof-name info) names)) trace)
                               (push names stacks)))
                           samples)
      (sb-sprof:reset))
    stacks))

(defun sprof-name (info)
  (typecase info
    (debug-function-type (%debug-function-name info))
    ((or string (and symbol (not null))) info)
    (t "foreign function")))

(defun gathered-stacks (profile)
  "Returns conses of a weight and a stack of names, innermost first, one for each sample of
  PROFILE."
  (let ((samples (if (profile-recorders profile)
                     (loop for recorder in (profile-recorders profile)
                           nconc (loop for (weight . frames) in (recorder-samples recorder)
                                       collect (cons weight (stack-names frames))))
                     (mapcar (lambda (names) (cons 1 names)) (sprof-stacks)))))
    (loop for (weight . names) in samples
          collect (cons weight (names-of-user (if (eq (profile-mode profile) :alloc)
                                                  (or (member-if-not #'allocator-name-p names) names)
                                                  names))))))

(defun counted-stacks (profile)
  "Lists (COUNT NAME ...), outermost first, of the stacks of PROFILE, the most frequent first. If
  the counts add up to more than the limit of PROFILE, only every Nth sample in the order of the
  stacks is counted, so that the proportions stay."
  (let* ((counts (make-hash-table :test #'equal))
         (samples (loop for (weight . names) in (gathered-stacks profile)
                        when names collect (cons weight (reverse names))))
         (sorted (sort samples #'string< :key (lambda (sample) (prin1-to-string (rest sample)))))
         (total (reduce #'+ sorted :key #'first))
         (limit (profile-limit profile))
         (before 0))
    (flet ((kept (position) (if (<= total limit) position (floor (* position limit) total))))
      (loop for (weight . stack) in sorted
            for count = (- (kept (+ before weight)) (kept before))
            do (incf before weight)
               (when (plusp count) (incf (gethash stack counts 0) count))))
    (sort (loop for stack being the hash-keys of counts using (hash-value count) collect (cons count stack)) #'> :key #'first)))

(defun profile-facts (profile)
  "The JSON of Profile (docs/wire.md)."
  (let* ((names (make-hash-table :test #'equal))
         (stacks (counted-stacks profile))
         (texts (make-array 0 :adjustable t :fill-pointer t)))
    (flet ((index (name)
             (or (gethash name names) (setf (gethash name names) (vector-push-extend (name-text name) texts)))))
      (object "stacks" (mapcar (lambda (stack) (object "count" (first stack) "frames" (mapcar #'index (rest stack)))) stacks)
              "names" (coerce texts 'list)
              "milliseconds" (float (profile-milliseconds profile) 1d0)
              "bytes" (max 0 (profile-bytes profile))))))
