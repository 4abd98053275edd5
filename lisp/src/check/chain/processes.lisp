;;;; The processes of a chain and the pipes between them.
;;;;
;;;; The runner compiles the text. Before some of its forms it forks: the parent stays behind as a
;;;; checkpoint, stopped inside the compiler's loop over the file with all its state, and the child
;;;; goes on as the runner. At the end of the text the runner becomes the keeper, which has the
;;;; records of all forms and the host's socket. For an edit, a checkpoint forks a process, called a
;;;; grandchild. All processes are in one process group, which none can leave. Each ends with its
;;;; parent.

(in-package :consort)

(defstruct (pipe (:constructor make-pipe (reader writer)))
  (reader 0 :type fixnum :read-only t)
  (writer 0 :type fixnum :read-only t))

(defun new-pipe ()
  (multiple-value-call #'make-pipe (sb-posix:pipe)))

(defstruct (checkpoint (:constructor make-checkpoint (index pid pipe)))
  "A process that waits before compiling the form INDEX."
  (index 0 :type fixnum :read-only t)
  (pid 0 :type fixnum :read-only t)
  (pipe nil :type pipe :read-only t))   ; for messages to it

(defstruct chain
  (role :runner :type (member :runner :checkpoint :grandchild :mover))
  (check nil)
  (report nil)                          ; the runner's connection to the host
  (recorder (make-form-recorder))
  (octets (make-array 0 :element-type '(unsigned-byte 8)) :type octets) ; the text in UTF-8
  (keys nil)                            ; the pipe that holds the key for forking
  (answers nil)                         ; the pipe to the keeper
  (mover-pipe nil)                      ; for messages to the checkpoint that follows the edits
  (spacing 0.015)                       ; seconds of processor time from one checkpoint to the next
  (limit 48)                            ; the maximum number of checkpoints
  (deadline 10)                         ; seconds that a form of an edit may take at most
  (index 0 :type fixnum)                ; the index of the next form
  (checkpoints '())                     ; newest first
  (records '())                         ; the runner's form records, newest first
  (reported '())                        ; findings that the runner reported to the host
  (packages '())                        ; the packages in which forms were read
  (uses-before '())                     ; the uses of undefined names before the current form
  ;; Reads the messages to this process, in a checkpoint and in the processes that it forks.
  (reader nil)
  (edit nil)                            ; in a grandchild: the message that describes the edit
  (target nil))                         ; in a mover: the index of the form to stop before

(define-global *chain* nil "The CHAIN that this process belongs to; NIL if none.")

;;; Messages: lines of JSON

(defun send-message (descriptor message)
  "Sends MESSAGE through the pipe whose write end is DESCRIPTOR. Ends this process when that fails,
  because no process reads the pipe any more."
  (multiple-value-bind (octets end) (json-line message)
    (unless (write-octets descriptor octets 0 end) (exit-process 0))))

(defun next-message (reader)
  "Waits for the next message and returns it; NIL when no more messages come. A line that is too long
  or no JSON is left out: it is no end, and who sent it waits for an answer in vain at most."
  (loop
    (multiple-value-bind (octets start end) (next-line reader)
      (when (null octets) (return nil))
      (let ((message (and (typep octets 'octets)
                          (handler-case (parse-json octets start end)
                            (error () nil)))))
        (when message (return message))))))

(defun message-read-p (reader)
  "Returns true if READER holds octets that were read but not yet returned."
  (< (line-reader-start reader) (line-reader-end reader)))

(defun message-waiting-p (reader)
  "Returns true if READER holds octets that were not yet returned, or its descriptor can be read."
  (or (message-read-p reader)
      (wait-until-fd-usable (line-reader-fd reader) :input 0 nil)))

(defun send-to-keeper (chain &rest message)
  (send-message (pipe-writer (chain-answers chain)) (apply #'object message)))

;;; Alarms

(defun hook-interruptions ()
  "Makes an alarm call its function directly in this thread, without a signal, because the filter of
  a chain refuses to send any signal."
  (encapsulate 'sb-thread:interrupt-thread 'consort-chain
               (lambda (original thread function)
                 (declare (type function original))
                 (if (eq thread sb-thread:*current-thread*)
                     (with-interrupts (funcall function))
                     (funcall original thread function)))))

;;; Forking

(defun stop-alarms ()
  "Unschedules all timers of this process."
  (mapc #'sb-ext:unschedule-timer (sb-ext:list-all-timers)))

(defun chain-fork (chain)
  "Forks. Returns the process id; 0 in the child, which ends with this process and has no alarms;
  NIL when the system refused."
  (let* ((parent (sb-posix:getpid))
         (pid (fork-with-key (pipe-reader (chain-keys chain)) (pipe-writer (chain-keys chain)))))
    (cond ((minusp pid) nil)
          ((plusp pid) pid)
          (t
           #+linux (call-c "prctl" sb-alien:int (sb-alien:int +pr-set-pdeathsig+) (sb-alien:unsigned-long 9))
           (unless (eql parent (sb-posix:getppid)) (exit-process 70))
           ;; The child inherits SBCL's queue of timers, but not the kernel's timer. A new alarm
           ;; would wait for earlier ones in the queue, which never come.
           (stop-alarms)
           0))))

(defun close-report ()
  "Replaces the host's socket in this process by /dev/null. Only the keeper has the socket then, so
  that the host notices the end of the keeper."
  (let ((nowhere (sb-posix:open "/dev/null" sb-posix:o-rdwr)))
    (sb-posix:dup2 nowhere +report-descriptor+)
    (sb-posix:close nowhere)))
