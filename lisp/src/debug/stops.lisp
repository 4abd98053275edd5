;;;; A stop: an evaluation that asked for it, or a thread that its code started, waits where it
;;;; failed, broke or was paused, with its stack alive. Its thread serves requests about that stack,
;;;; one after another, until one of them leaves.
;;;;
;;;; Other threads read the stack of a waiting thread (frames, locals). Only requests that run code
;;;; or unwind go through the thread itself.

(in-package :consort)


(defstruct (stop (:conc-name stopped-) (:constructor make-stop (id thread evaluation parent reason condition restarts frames more moment
                                                               &optional back
                                                               &aux (restart-names (mapcar #'restart-name restarts)))))
  "A thread that waits in EVALUATION. PARENT is the stop around it on the same stack. BACK is the
  restart that goes back to that stop, or NIL. STATE is :STARTING; :WAITING exactly while the thread
  waits and runs nothing of the user's; :BUSY while it serves a request; or :LEFT. FRAMES are the
  user's, innermost first. MORE is true if there were more. HOW says how the stop was left. READING
  is held by other threads while they read the stack. MOMENT describes the probe at which the thread
  is. DESCRIBING has the evaluations that describe values of the stop, each (EVALUATION . MUTEX);
  the mutex is held as long as that takes. LEAVING is true once the stop is to be left. PACKAGE is
  the package that was current. RESTARTS are on the thread's stack: no other thread may access them,
  since the stop may be left meanwhile. RESTART-NAMES are their names."
  (id 0 :type fixnum :read-only t)
  (thread nil :read-only t)
  (evaluation nil :read-only t)
  (parent nil :read-only t)
  (reason "" :type string :read-only t)
  (condition nil :read-only t)
  (restarts '() :type list :read-only t)
  (restart-names '() :type list :read-only t)
  (frames '() :type list :read-only t)
  (more nil :read-only t)
  (moment nil :read-only t)
  (back nil :read-only t)
  (package (live-package *package*) :read-only t)
  (facts '() :type list)
  (work '() :type list)
  (current nil)
  (lock (sb-thread:make-mutex :name "consort stop") :type sb-thread:mutex :read-only t)
  (reading (sb-thread:make-mutex :name "consort stop's stack") :type sb-thread:mutex :read-only t)
  (wake (sb-thread:make-semaphore :name "consort stop") :type sb-thread:semaphore :read-only t)
  (describing '() :type list)
  (leaving nil :type boolean)
  (state :starting :type (member :starting :waiting :busy :left))
  (how "unwound" :type string))

(defstruct (stop-work (:conc-name work-) (:constructor make-work (id function)))
  "The request ID to a stop. FUNCTION, called with this object in the stopped thread, answers by
  ANSWER-WORK or ANSWER-WORK-ERROR. If NESTS, an error in FUNCTION is a stop of its own. This object
  is the tag of the THROW that ends the work. LEAVES is true if the request was to leave the stop.
  BACK is the restart by which nested code goes back to the stop, or NIL. ENDED is true if the
  request is to end; each stop in FUNCTION then goes back at once. BEGIN-TIME, if not NIL, is called
  after each such stop and starts the request's time limit anew."
  (id nil :read-only t)
  (function nil :type function :read-only t)
  (answered nil)
  (nests nil)
  (back nil)
  (leaves nil)
  (ended nil)
  (begin-time nil))

(defconstant +stops-limit+ 8 "The maximum number of stops of evaluations, and likewise of threads; a
  further error is reported.")
(defconstant +stop-work-time+ 10 "The time in seconds that code for a stop may take if its request
  does not specify one.")
(define-global *stops* '() "The existing stops, newest first. The list is replaced under its lock,
  never changed.")
(define-global *stops-lock* (sb-thread:make-mutex :name "consort stops") "Held while *STOPS* is replaced.")
(define-global *next-stop* (list 1) "A list of the id that is given next; the first is 1.")

(defvar *current-stop* nil "The innermost stop of this thread.")
(defvar *current-work* nil "The request that this thread serves in a stop.")
(defvar *reading-code* nil "True while the code of a request to a stop is read: an error there is no stop of its own.")

(defun thread-waiting-p (thread)
  "Returns true if THREAD waits in a stop. Conses nothing and takes no lock, because it is called
  with the world stopped."
  (dolist (stop *stops* nil)
    (when (and (eq (stopped-thread stop) thread) (eq (stopped-state stop) :waiting))
      (return t))))

(defun evaluation-waiting-p (evaluation)
  "Returns true if EVALUATION waits in a stop. Conses nothing."
  (let ((stop (evaluation-stop evaluation)))
    (and stop (eq (stopped-state stop) :waiting))))

(defun stop-level (stop)
  "Returns the number of stops that are nested on the stack of STOP, itself included."
  (if (stopped-parent stop) (1+ (stop-level (stopped-parent stop))) 1))

(defun innermost-stop (stop)
  "The innermost stop on the stack of STOP."
  (or (find (stopped-thread stop) *stops* :key #'stopped-thread :test #'eq) stop))

;;; Requests to a stop

(defun answer-work-by (work send &rest arguments)
  "Calls SEND, which answers the request of WORK, with the request's id and ARGUMENTS, but only
  once. Interrupts that would end WORK meanwhile, so that nobody would answer, are deferred."
  (without-interrupts
    (unless (sb-ext:compare-and-swap (work-answered work) nil t)
      (with-own-settings () (apply (the function send) (work-id work) arguments)))))

(defun answer-work (work result)
  "Answers the request of WORK, once."
  (answer-work-by work #'send-result result))

(defun answer-work-error (work kind message)
  (answer-work-by work #'send-error kind message))

(defun stale-message (stop)
  (format nil "The stop ~D was left (~A): its frames and values are gone. List the present stops" (stopped-id stop) (stopped-how stop)))

(defun give-work (stop id function &key nests)
  "Makes FUNCTION serve the request ID in the thread of STOP. Refuses when the stop was left, or
  when another stop is on its stack. Waits for no thread."
  (let ((inner (innermost-stop stop))
        (work (make-work id function)))
    (unless (eq inner stop)
      ;; The thread may have stopped again since.
      (when (eq (stopped-state stop) :left)
        (refuse "stale" "~A" (stale-message stop)))
      (refuse "busy" "The stop ~D is the innermost of this thread: leave it first" (stopped-id inner)))
    (setf (work-nests work) nests)
    (unless (with-lock ((stopped-lock stop))
              (unless (eq (stopped-state stop) :left)
                (setf (stopped-work stop) (append (stopped-work stop) (list work)))))
      (refuse "stale" "~A" (stale-message stop)))
    (sb-thread:signal-semaphore (stopped-wake stop))
    nil))

(defun wake-stop (stop)
  "Makes the thread of STOP check whether its evaluation is to end."
  (sb-thread:signal-semaphore (stopped-wake stop)))

(defun take-work (stop)
  "Takes the next request to STOP, which is then its current one; NIL when there is none. A thread
  that interrupts the request finds it in the list or as the current one."
  (with-lock ((stopped-lock stop))
    (setf (stopped-current stop) (pop (stopped-work stop)))))

(defun leave-stop (stop how work)
  "Answers WORK, which leaves STOP. HOW is the reason in the event. From now on, an error of WORK is
  a new stop."
  (setf (stopped-how stop) how
        (work-nests work) t
        (work-leaves work) t)
  (answer-work work (object "status" "sent")))

(defun interrupt-work (id)
  "Ends the request ID that a stop serves, or that waits for one. The stop stays. Returns true if
  there was such a request."
  (dolist (stop *stops* nil)
    (let ((waiting (with-lock ((stopped-lock stop))
                     (let ((found (find id (stopped-work stop) :key #'work-id :test #'equal)))
                       (setf (stopped-work stop) (remove found (stopped-work stop) :test #'eq))
                       found)))
          (current (stopped-current stop)))
      (cond (waiting (answer-work-by waiting (lambda (id) (post-frame (object "id" id "result" (object "status" "interrupted")))))
                     (return t))
            ((and current (equal (work-id current) id))
             ;; With the lock held, so that a stop within this one that is listed later sees the
             ;; value.
             (with-lock (*stops-lock*) (setf (work-ended current) t))
             (abort-stops-within stop)
             (end-work stop current "interrupted")
             (return t))))))

(defun abort-stops-within (stop)
  "Makes the stops in code that STOP serves go back to STOP, each when it is the innermost."
  (dolist (inner *stops*)
    (unless (eq inner stop)
      (when (loop for around = (stopped-parent inner) then (stopped-parent around)
                  while around thereis (eq around stop))
        (let* ((inner inner)
               (work (make-work nil (lambda (work)
                                      (leave-stop inner "abort" work)
                                      (throw inner :abort)))))
          (setf (work-answered work) t) ; no request waits for an answer
          (with-lock ((stopped-lock inner))
            (setf (stopped-work inner) (append (stopped-work inner) (list work))))
          (wake-stop inner))))))

(defun back-at-once-p (stop)
  "Returns true if STOP, which is listed, is in code whose end was requested before it was listed."
  (loop for around = (stopped-parent stop) then (stopped-parent around)
        while around
          thereis (let ((work (stopped-current around))) (and work (work-ended work)))))

(defun end-work (stop work status &optional (over-p (constantly nil)))
  "Makes the thread of STOP end WORK and answer STATUS. Does nothing if the thread no longer does
  WORK, if another stop is in it, or if OVER-P returns true. The stop stays."
  (interrupt-outside-foreign-code
   (stopped-thread stop)
   (lambda ()
     (when (and (eq *current-work* work) (eq (stopped-current stop) work) (eq *current-stop* stop)
                (not (funcall (the function over-p))))
       (throw work status)))))

;;; The wait

(declaim (ftype function call-unrecorded form-frame-p end-step-within))
(defun serve-work (stop work call)
  "Must be called with interrupts off. Serves WORK, the current request, in the thread of STOP. CALL
  calls a function with interrupts on. If WORK was to leave the stop and has returned, as the
  function of a restart may, throws :AGAIN to STOP."
  (setf (stopped-state stop) :busy)
  (world-changed)
  (let ((status "left"))
    (unwind-protect
         (setf status (catch work
                        (let ((*current-work* work))
                          (funcall (the function call) (lambda () (call-unrecorded (lambda () (funcall (work-function work) work))))))
                        "done"))
      (setf (stopped-current stop) nil)
      (end-step-within stop)
      (world-changed)
      (cond ((stringp status) (answer-work work (object "status" status)))
            (t (answer-work work (object "status" "error" "error" status)))))
    (when (work-leaves work) (throw stop :again))))

(defun wait-in-stop (stop call)
  "Must be called with interrupts off. Waits and serves requests until something throws to STOP, or
  unwinds further. Returns the thrown value."
  (flet ((end-if-asked ()
           (let ((evaluation (stopped-evaluation stop)))
             (when (evaluation-reason evaluation)
               (setf (stopped-state stop) :busy
                     (stopped-how stop) "stopped")
               (stop-here evaluation)))))
    (catch stop
      (end-if-asked)                    ; requests before the stop was known woke no thread
      (loop
        (setf (stopped-state stop) :waiting)
        (with-internals ((deadline nil)) ; the user's own would end the wait
          (sb-thread:wait-on-semaphore (stopped-wake stop)))
        (end-if-asked)
        ;; Interrupts that were sent to this thread while it waited must not run now: a WITH-TIMEOUT
        ;; of the user's would unwind the stack that people look at. They are put aside before the
        ;; request is taken, because an interrupt that ends the request may come as soon as it is
        ;; taken.
        (let ((late (take-interruptions)))
          (unwind-protect
               (let ((work (take-work stop)))
                 (when work (serve-work stop work call)))
            (give-interruptions late)))))))

(defun hold-deadline (evaluation)
  "Cancels the deadline of EVALUATION. Returns the time that was left, in units of
  GET-INTERNAL-REAL-TIME, or NIL."
  (let ((timer (evaluation-deadline evaluation)))
    (when timer
      (cancel *deadlines* timer)
      (setf (evaluation-deadline evaluation) nil)
      (max 1 (- (timer-at timer) (get-internal-real-time))))))

(defun resume-deadline (evaluation left)
  (when (and left (not (eq (evaluation-state evaluation) :ended)))
    (set-deadline evaluation (/ left (float internal-time-units-per-second 1d0)))))

(defun may-stop-p (condition)
  "Returns true if this thread may wait here. It may not while the collector is off, since the
  collector would wait for it, nor with a full stack or heap, nor when it is interrupted in order to
  end."
  (and (can-stop-p)
       (not (forked-p)) ; no client can inspect it
       (not (typep condition 'storage-condition))
       (not (and (internal-p 'interactive-interrupt) (typep condition interactive-interrupt)))
       (not (collecting-off-p))
       (room-for-stop-p *evaluation*)))

(defun of-thread-p (stop)
  "Returns true if STOP belongs to a thread that a program started."
  (and (evaluation-starter (stopped-evaluation stop)) t))

(defun room-for-stop-p (evaluation)
  "Returns true if EVALUATION may have another stop. Stops of threads and of evaluations are counted
  separately."
  (< (count (and (evaluation-starter evaluation) t) *stops* :key #'of-thread-p) +stops-limit+))

(defun list-stop (stop)
  "Adds STOP to *STOPS*. Returns NIL when there are too many. This is decided with the lock held,
  because several threads may fail at once."
  (with-lock (*stops-lock*)
    (when (room-for-stop-p (stopped-evaluation stop))
      (push stop *stops*))))

(defun own-restarts (evaluation restarts)
  "RESTARTS down to the one that ends EVALUATION. Those beyond it would end the thread."
  (let ((last (member (evaluation-abort evaluation) restarts :test #'eq)))
    (if last (ldiff restarts (rest last)) restarts)))

(defun reading-stack (stop function)
  "Calls FUNCTION, which reads the stack of STOP in a thread of Consort. Refuses when the stop was
  left."
  (sb-thread:with-mutex ((stopped-reading stop))
    (when (eq (stopped-state stop) :left) (refuse "stale" "~A" (stale-message stop)))
    (funcall function)))

(define-global *description-time* 2 "The time in seconds for which a stop that is to be left waits
  for the description of one of its values.")

(defun call-describing (stop function)
  "Calls FUNCTION, which runs user code on a value of STOP as *OWN-EVALUATION*. Refuses when the
  stop was left. The stop is not left meanwhile, but *DESCRIPTION-TIME* seconds after it is to be
  left that code is stopped, because it may wait for something that the stopped thread holds."
  (let ((entry (cons *own-evaluation* (sb-thread:make-mutex :name "consort stop's value"))))
    (unwind-protect
         (sb-thread:with-mutex ((cdr entry))
           (when (with-lock ((stopped-lock stop))
                   (push entry (stopped-describing stop))
                   (stopped-leaving stop))
             (refuse "stale" "~A" (stale-message stop)))
           (funcall function))
      (with-lock ((stopped-lock stop))
        (setf (stopped-describing stop) (remove entry (stopped-describing stop) :test #'eq))))))

(defun await-descriptions (stop)
  "Lets no further description of a value of STOP begin, and waits for those that run. They are
  stopped after *DESCRIPTION-TIME* seconds."
  (let ((entries (with-lock ((stopped-lock stop))
                   (setf (stopped-leaving stop) t)
                   (stopped-describing stop))))
    (loop for (evaluation) in entries
          do (let ((evaluation evaluation))
               (schedule *deadlines* *description-time* (lambda () (stop-evaluation evaluation :cancel)))))
    (loop for (nil . mutex) in entries
          do (sb-thread:with-mutex (mutex)))))

(defun forget-stop (stop)
  "Marks STOP as left, reports that to the host, and answers the requests that still wait for the
  stop."
  (await-descriptions stop)
  (sb-thread:with-mutex ((stopped-reading stop)) ; threads that read the stack finish first
    (with-lock ((stopped-lock stop)) (setf (stopped-state stop) :left)))
  (with-lock (*stops-lock*) (setf *stops* (remove stop *stops* :test #'eq)))
  (drop-references stop)
  (dolist (work (with-lock ((stopped-lock stop)) (shiftf (stopped-work stop) '())))
    (answer-work-error work "stale" (stale-message stop)))
  (with-own-settings ()
    (send-event "stop-left" "stop" (stopped-id stop) "id" (evaluation-id (stopped-evaluation stop)) "how" (stopped-how stop))))

(defun user-stack ()
  "The user's frames of this thread, and whether there are more, as a list; no frames where the
  stack cannot be read."
  (multiple-value-list (handler-case (user-frames) (serious-condition () (values '() nil)))))

(defun wait-at (condition reason &key stack moment)
  "Stops here for REASON until a request leaves the stop. Returns :ABORT if the evaluation is to end
  as if it had not stopped, or NIL at once if the thread may not wait. STACK is the USER-STACK if
  the caller has read it. MOMENT describes the probe at which the thread is. If a restart that was
  to leave the stop returns, the program is still here. This is then another stop, which is reported
  like any other."
  (loop for outcome = (wait-once condition reason stack moment)
        while (eq outcome :again)
        finally (return outcome)))

(defun wait-once (condition reason stack moment)
  "Makes one stop of WAIT-AT. Returns the value that left it, or :AGAIN."
  (when (may-stop-p condition)
    (destructuring-bind (frames more) (or stack (user-stack))
      (let* ((evaluation *evaluation*)
             (work *current-work*)
             (stop (make-stop (sb-ext:atomic-incf (car *next-stop*)) sb-thread:*current-thread* evaluation *current-stop* reason condition
                              (own-restarts evaluation (compute-restarts condition)) frames more moment
                              (and work (work-back work))))
             (*current-stop* stop)
             (*current-work* nil)
             (sb-ext:*invoke-debugger-hook* 'evaluation-debugger)
             (left nil))
        (end-step evaluation)
        (setf (stopped-facts stop) (with-own-settings () (stop-fixed-facts stop (locks-held))))
        (unless (of-thread-p stop) ; earlier output is shown before the stop
          (pass-on (evaluation-stdout evaluation))
          (pass-on (evaluation-stderr evaluation)))
        (without-interrupts
          (when (list-stop stop)
            (unwind-protect
                 (progn
                   (unless (stopped-parent stop) (setf left (hold-deadline evaluation)))
                   (setf (evaluation-stop evaluation) stop)
                   (world-changed)
                   (with-own-settings () (send-frame (list* :object "event" "stopped" (rest (stop-json stop)))))
                   ;; WITH-LOCAL-INTERRUPTS must belong to this WITHOUT-INTERRUPTS: within a nested
                   ;; one, interrupts would stay off.
                   (cond ((back-at-once-p stop)
                          (setf (stopped-how stop) "abort")
                          :abort)
                         (t (wait-in-stop stop (lambda (work) (with-local-interrupts (funcall (the function work))))))))
              (forget-stop stop)
              (world-changed)
              (setf (evaluation-stop evaluation) (stopped-parent stop))
              (when (and work (work-begin-time work)) (funcall (the function (work-begin-time work))))
              (unless (stopped-parent stop) (resume-deadline evaluation left))
              (when (of-thread-p stop) (settle-after-thread evaluation)))))))))

;;; The reasons why a thread stops

(defun end-request-of-stop (condition)
  "Ends the request to a stop that this thread serves, if there is one, with CONDITION as its error,
  unless CONDITION makes a stop of its own."
  (let ((work *current-work*))
    (when (and work (not (and (work-nests work) (not *reading-code*) (may-stop-p condition))))
      (throw work (with-own-settings () (describe-error condition))))))

(defun stop-at-condition (condition)
  "Stops where CONDITION was signalled and not handled. Returns when CONDITION is to be reported as
  in an evaluation that does not stop. The value is true if the thread has stopped, and was
  aborted."
  (let ((work *current-work*))
    (prog1 (wait-at condition (if (typep condition 'serious-condition) "error" "break"))
      (when work ; back to the stop around this one
        (throw work (with-own-settings () (describe-error condition)))))))

(defun end-aborted (evaluation)
  "Ends the code that has stopped without a failure, and was aborted: the code that a stop around it
  serves, or otherwise EVALUATION."
  (when *current-work*
    (throw *current-work* "interrupted"))
  (setf (evaluation-reason evaluation) :cancel)
  (stop-here evaluation))

(defconstant +pause-tries+ 20 "The maximum number of times that a pause looks for frames of the
  program before it stops without them.")

(defun pause-here (evaluation tries)
  "Stops where this thread is, if it is in EVALUATION. To be called as an interruption. Before the
  program runs, and while a stop is being left, the thread continues and is interrupted again a
  moment later. The same happens, up to TRIES times, between two instructions of a call, where the
  stack cannot be read."
  (flet ((again (tries)
           (schedule *deadlines* 0.01d0 (lambda () (pause-evaluation evaluation tries)))))
    (when (eq (evaluation-thread evaluation) sb-thread:*current-thread*)
      (case (if (evaluation-stop evaluation) :stopped (evaluation-state evaluation))
        (:stopped
         (when (and *current-work* (work-leaves *current-work*)) (again tries)))
        (:ended)
        (:running
         (let ((stack (user-stack)))
           (if (and (plusp tries) (every #'form-frame-p (first stack)))
               (again (1- tries))
               (with-interrupts
                 (with-simple-restart (continue "Continue.")
                   (when (eq (wait-at nil "pause" :stack stack) :abort)
                     (end-aborted evaluation)))))))
        (t (again tries))))))

(defun pause-evaluation (evaluation &optional (tries +pause-tries+))
  "Asks the thread of EVALUATION to stop where it is, as soon as interrupts are on there and its
  stack can be read."
  (interrupt-outside-foreign-code (evaluation-thread evaluation) (lambda () (pause-here evaluation tries))))
