;;;; A frozen failure: a copy of the image, made in the thread that fails. It keeps the stack while
;;;; the evaluation in the image reports its error and continues, or the thread ends. It never runs
;;;; code of the user's itself: it forks an attempt for each request of the host, and so stays as it
;;;; was.

(in-package :consort)

;;; In the image

(defconstant +freeze-patience+ 1/20 "The time in seconds that a failing evaluation waits until the
  image can be copied.")

(define-global *greeting-time* 5 "Seconds that a frozen failure may take until it has connected.")

(defconstant +thread-pause+ 1 "The time in seconds after an error of a thread was frozen during
  which no other is frozen.")

(define-global *frozen* '()
  "The existing frozen failures, newest first. Each is a cons of the process id and a kind:
  :EVALUATION, :THREAD or :TEST.")
(define-global *frozen-lock* (sb-thread:make-mutex :name "consort frozen failures")
  "Held while *FROZEN* changes, or one of its processes is killed or reaped.")
(define-global *last-frozen-thread* (list 0)
  "A list of the time when a thread's error was last frozen, in units of GET-INTERNAL-REAL-TIME.")

(defun freeze-param (params)
  "Returns the object `freeze` of PARAMS, which says how errors are frozen, or NIL."
  (let ((freeze (param params "freeze" '(satisfies object-p) :default nil)))
    (when freeze
      (param freeze "socket" 'string)
      (param freeze "token" 'string)
      (param freeze "keep" '(integer 1))
      (param freeze "seconds" '(real (0))))
    freeze))

(defun may-freeze-p (condition)
  "Returns true if this thread may be copied with its stack: not where the collector is off, nor
  with a full stack or heap, nor where an attempt could read all of the person's files."
  (and (not *in-copy*)
       (can-stop-p)
       (not (typep condition 'storage-condition))
       (not (collecting-off-p))
       (seccomp-p)
       (plusp (landlock-abi))))

(defun end-frozen (keep &optional kind)
  "Ends all frozen failures but the newest KEEP; only those of KIND, unless that is NIL."
  (with-lock (*frozen-lock*)
    (dolist (one (nthcdr keep (if kind (remove kind *frozen* :key #'cdr :test-not #'eq) *frozen*)))
      (handler-case (sb-posix:kill (car one) sb-posix:sigkill)
        (sb-posix:syscall-error () nil))
      (setf *frozen* (remove one *frozen* :test #'eq)))))

(defun kept-of-kind (kind keep)
  "The maximum number of frozen failures of KIND, if KEEP may exist in all. Threads and tests cannot
  take the places of all evaluations."
  (if (eq kind :evaluation) keep (max 1 (floor keep 2))))

(defun make-room-for (kind keep)
  "Ends frozen failures, so that there are at most KEEP after another one of KIND is made."
  (end-frozen (1- (kept-of-kind kind keep)) kind)
  (end-frozen (1- keep)))

(defun note-frozen (pid kind keep)
  "Adds the frozen failure PID of KIND. Then ends those beyond KEEP, because other threads may have
  made room, and used it, at the same time."
  (with-lock (*frozen-lock*) (push (cons pid kind) *frozen*))
  (end-frozen (kept-of-kind kind keep) kind)
  (end-frozen keep))

(defun reap-frozen (pid)
  "Waits for the frozen failure PID to end, and reaps it."
  (await-end pid)
  (with-lock (*frozen-lock*)
    (setf *frozen* (remove pid *frozen* :key #'car))
    (wait-for-copy pid)))

(defun fork-frozen ()
  "Forks the process of a frozen failure. Returns its process id, 0 in the new process, and NIL when
  the image could not be copied."
  (let ((*break-on-signals* nil))
    (handler-case (fork-image +freeze-patience+
                              (lambda (call)
                                (declare (ignore call))
                                (limit-life *greeting-time*)
                                (detach-from-image)
                                (take-interruptions)))
      ((or copy-busy cannot-copy) () nil))))

(defun freeze-failure (evaluation condition freeze &optional (kind :evaluation))
  "Makes a frozen failure of EVALUATION, which fails with CONDITION here, if that can be done at
  once. Returns its JSON, or NIL. FREEZE is as in FREEZE-PARAM; KIND as in *FROZEN*."
  (when (may-freeze-p condition)
    (let ((began (now-ms)))
      (make-room-for kind (field freeze "keep"))
      (let ((pid (fork-frozen)))
        (case pid
          ((nil))
          (0 (serve-as-frozen-failure evaluation condition freeze))
          (t
           (note-frozen pid kind (field freeze "keep"))
           (start-thread-soon "consort frozen failure" #'reap-frozen pid)
           (let ((ms (- (now-ms) began)))
             (with-own-settings ()
               (object "pid" pid "ms" ms
                       "restarts" (map 'vector #'restart-json (own-restarts evaluation (compute-restarts condition))))))))))))

(defun thread-turn-p ()
  "Returns true if an error of a thread may be frozen now, once for each +THREAD-PAUSE+: a program
  may have many threads that fail at once."
  (let ((last (car *last-frozen-thread*)) (now (get-internal-real-time)))
    (and (or (eql last 0) (>= (- now last) (* +thread-pause+ internal-time-units-per-second)))
         (eql last (sb-ext:compare-and-swap (car *last-frozen-thread*) last now)))))

(defun freeze-thread (evaluation condition)
  "Makes a frozen failure of this thread, which CONDITION ends, if a program started it. Returns its
  JSON, or NIL. EVALUATION is the thread's."
  (let ((freeze (evaluation-freeze-threads evaluation)))
    (and freeze
         (evaluation-starter evaluation)
         ;; An interrupt from a person is no failure.
         (not (and (internal-p 'interactive-interrupt) (typep condition interactive-interrupt)))
         (may-freeze-p condition)
         (thread-turn-p)
         (freeze-failure evaluation condition freeze :thread))))

(defun end-frozen-before-collections ()
  "Makes frozen failures end, from now on, before the program has the old generations collected. The
  collector would rewrite, and so copy, all memory that they share with the image."
  (encapsulate 'sb-ext:gc 'consort-frozen
               (lambda (function &rest arguments)
                 (when (or (getf arguments :full) (not (eql 0 (getf arguments :gen 0))))
                   (end-frozen 0))
                 (apply function arguments))))

;;; In the frozen failure

(defconstant +frozen-run+ (* 256 1024 1024) "The number of octets that a frozen failure allocates
  before a collection. A collection would copy the memory that it shares.")

(defconstant +life-grace+ 25 "The time in seconds beyond its limit in which a frozen failure
  finishes its current attempt.")
(define-global *life-timer* nil "The id of the POSIX timer that ends this process, once there is
  one.")

(defun limit-life (seconds)
  "Makes the system end this process in SECONDS, whatever it does then. It would wait for ever for a
  lock of the C library that is held by a thread which the copy does not have."
  #+linux
  (progn
    (unless *life-timer*
      ;; struct sigevent: SIGKILL by SIGEV_SIGNAL
      (with-octets (event (0 sb-posix:sigkill) 64)
        (with-octets (number (0))
          ;; CLOCK_MONOTONIC.
          (when (zerop (system-call (number-here '(timer_create 222 107)) 1 event number))
            (setf *life-timer* (sap-32 (int-sap number) 0))))))
    (when *life-timer*
      (with-octets (time (0 0 (ceiling seconds) 0)) ; struct itimerspec
        (system-call (number-here '(timer_settime 223 110)) *life-timer* 0 time 0))))
  #-linux
  seconds)

(defstruct (frozen (:constructor make-frozen (condition params report reader until)))
  "The state of a frozen failure by CONDITION. READY is true once the process is confined, or WHY
  says why it cannot be; FRAMES is the USER-STACK from then on."
  (condition nil :read-only t)
  (params nil :read-only t)
  (report nil :read-only t)
  (reader nil :read-only t)
  (until 0 :read-only t)                ; in milliseconds, as NOW-MS
  (frames '())
  (ready nil)
  (landlock 0)                          ; the version in force
  (why nil))

(defun serve-as-frozen-failure (evaluation condition params)
  "Serves the host as the frozen failure of EVALUATION. Never returns; in the process of an attempt,
  the program that goes on may unwind through this call."
  (free-lost-locks evaluation)
  (multiple-value-bind (attempt frozen)
      ;; The handlers of the program are left out, and not the one for errors of this process: an
      ;; error that reached the debugger would unwind the program's stack, and so run its cleanup
      ;; forms a second time.
      (with-internals ((handler-clusters initial-handler-clusters))
        (handler-case (with-own-settings () (next-attempt (greet-host condition params)))
          (serious-condition () (exit-process 70))))
    (serve-attempt attempt condition (first (frozen-frames frozen)) (second (frozen-frames frozen)))))

(defun free-lost-locks (evaluation)
  "Frees those of Consort's locks that are not among *RUNTIME-LOCKS* and that a thread holds which
  this process does not have."
  (dolist (lock (list* *references-lock* *frozen-lock*
                       (mapcar #'capture-lock (remove nil (list (evaluation-stdout evaluation) (evaluation-stderr evaluation))))))
    (when (and (lock-held-p lock) (not (eq (sb-thread:mutex-owner lock) sb-thread:*current-thread*)))
      (free-lock lock))))

(defun greet-host (condition params)
  "Connects to the host. Returns the FROZEN of this process."
  (let ((report (make-report (connect-to-host (field params "socket")))))
    (send-line report (object "token" (field params "token") "pid" (sb-posix:getpid)) :flush t)
    (limit-life (+ (field params "seconds") +life-grace+))
    (defer-collection +frozen-run+)
    (make-frozen condition params report (make-line-reader (report-descriptor report))
                 (+ (now-ms) (* 1000 (field params "seconds"))))))

(defun next-request (frozen)
  "The host's next request. Ends the process when its time is over or the host has closed the
  connection."
  (let ((reader (frozen-reader frozen)))
    (unless (or (message-waiting-p reader)
                (wait-until-fd-usable (line-reader-fd reader) :input (max 0 (/ (- (frozen-until frozen) (now-ms)) 1000)) nil))
      (exit-process 0))
    (or (next-message reader) (exit-process 0))))

(defun next-attempt (frozen)
  "Serves requests, each in a process of its own. Returns only in such a process: the attempt, and
  FROZEN."
  (loop
    (let ((request (next-request frozen)))
      (when (field request "op")        ; not a `stop` that came late
        (confine-frozen frozen)
        (if (frozen-why frozen)
            (send-line (frozen-report frozen) (object "id" (field request "id") "answered" :false "why" (frozen-why frozen)) :flush t)
            (let* ((pipe (new-pipe)) (parent (sb-posix:getpid))
                   (pid (without-interrupts (bare-fork))))
              (case pid
                (-1 (send-line (frozen-report frozen)
                               (object "id" (field request "id") "answered" :false "why" (format nil "no process could be made: ~A" (system-message)))
                               :flush t)
                 (close-pipe pipe))
                (0 (let ((attempt (attempt-of-request request (pipe-writer pipe))))
                     (confine-attempt attempt frozen parent)
                     (return (values attempt frozen))))
                (t (sb-posix:close (pipe-writer pipe))
                   (follow-attempt frozen request pid (pipe-reader pipe))
                   (sb-posix:close (pipe-reader pipe))))))))))

(defun close-pipe (pipe)
  (sb-posix:close (pipe-reader pipe))
  (sb-posix:close (pipe-writer pipe)))

(defun confine-frozen (frozen)
  "Confines this process for good, and reads the stack. Does this only once."
  (unless (frozen-ready frozen)
    (setf (frozen-ready frozen) t)
    #+linux (set-limit +rlimit-core+ 0 0)
    (multiple-value-bind (landlock confined why)
        (confine nil (readable-names (frozen-params frozen)) #'confine-calls-of-frozen)
      (setf (frozen-landlock frozen) landlock)
      (unless confined (setf (frozen-why frozen) (format nil "this system cannot confine it: ~A" why))))
    (hook-interruptions)
    (setf (frozen-frames frozen) (user-stack))))

(defun confine-attempt (attempt frozen parent)
  "Prepares the process of ATTEMPT, forked by PARENT, the process of FROZEN: it ends with PARENT,
  has no connection to the host, and has only the rights of any copy."
  (die-with-parent parent)
  (close-report)
  (limit-copy (attempt-seconds attempt))
  (unless (confine-calls (plusp (frozen-landlock frozen))) (exit-process 71)))

(defconstant +attempt-grace+ 1 "Seconds beyond its time after which an attempt is ended.")

(defun follow-attempt (frozen request pid descriptor)
  "Waits for the attempt PID, which serves REQUEST and answers on DESCRIPTOR, and ends it. Sends the
  host a line that says how it ended, and then its answer unchanged, if it has one."
  (let ((octets (make-array 65536 :element-type '(unsigned-byte 8)))
        (end 0)
        (newline nil)
        (why nil)
        (until (+ (now-ms) (* 1000 (+ +attempt-grace+ (field request "timeout" 5))))))
    (loop
      (case (if (message-read-p (frozen-reader frozen))
                :host
                (await-either descriptor (line-reader-fd (frozen-reader frozen)) (max 0 (ceiling (- until (now-ms))))))
        ((nil) (setf why "timeout") (return))
        (:host
         (let ((message (next-message (frozen-reader frozen))))
           (unless message (kill-copy pid) (exit-process 0))
           (when (field message "stop") (setf why (field message "stop")) (return))))
        (:answers
         (when (= end (length octets))
           (setf octets (replace (make-array (* 2 end) :element-type '(unsigned-byte 8)) octets)))
         (let ((count (read-octets descriptor octets end (length octets))))
           (when (or (null count) (zerop count)) (return))
           (setf newline (newline-position octets end (+ end count)))
           (incf end count)
           (when newline (return))
           (when (> end (* 2 +line-limit+)) (setf why "it answered with too much") (return))))))
    (multiple-value-bind (code signal) (kill-copy pid)
      (let ((report (frozen-report frozen)))
        (send-line report (object "id" (field request "id") "answered" (bool newline) "why" (or-null why)
                                  "exit" (or-null code) "signal" (if newline :null (or-null signal)))
                   :flush t)
        (when newline
          (unless (write-octets (report-descriptor report) octets 0 (1+ newline)) (exit-process 0)))))))
