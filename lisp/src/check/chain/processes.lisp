;;;; The processes of a chain and the pipes between them.
;;;;
;;;; The runner compiles the text. Before some of its forms it forks: the parent stays behind as a
;;;; checkpoint, stopped inside the compiler's loop over the file with all its state, and the child
;;;; goes on as the runner. At the end of the text the runner becomes the keeper, which has the
;;;; records of all forms and the host's socket. A checkpoint forks a grandchild for an edit. All
;;;; are in one process group, which none can leave, and each ends with its parent.

(in-package :consort)

(defstruct (pipe (:constructor make-pipe (reader writer)))
  (reader 0 :type fixnum :read-only t)
  (writer 0 :type fixnum :read-only t))

(defun new-pipe ()
  (multiple-value-call #'make-pipe (sb-posix:pipe)))

(defstruct (checkpoint (:constructor make-checkpoint (index pid pipe)))
  "A process that waits before the form INDEX."
  (index 0 :type fixnum :read-only t)
  (pid 0 :type fixnum :read-only t)
  (pipe nil :type pipe :read-only t))   ; for messages to it

(defstruct chain
  (role :runner :type (member :runner :checkpoint :grandchild :mover))
  (check nil)
  (report nil)                          ; of the runner, to the host
  (recorder (make-form-recorder))
  (octets (make-array 0 :element-type '(unsigned-byte 8)) :type octets) ; the text in UTF-8
  (keys nil)                            ; the pipe in which the key waits
  (answers nil)                         ; the pipe to the keeper
  (mover-pipe nil)                      ; for messages to the checkpoint that follows the edits
  (spacing 0.015)                       ; seconds of processor time from one checkpoint to the next
  (limit 48)                            ; of checkpoints
  (deadline 10)                         ; seconds that a form of an edit may take at most
  (index 0 :type fixnum)                ; of the form that comes next
  (checkpoints '())                     ; newest first
  (records '())                         ; of the runner, newest first
  (reported '())                        ; findings that the runner reported to the host
  (packages '())                        ; that forms were read in
  (uses-before '())                     ; of undefined names, before the current form
  ;; Reads the messages to this process, in a checkpoint and in the processes that it forks.
  (reader nil)
  (edit nil)                            ; in a grandchild: what it was told of the edit
  (target nil))                         ; in a mover: the index of the form to stop before

(define-global *chain* nil "The CHAIN that this process is of, or NIL.")

;;; Messages: lines of JSON

(defun send-message (descriptor message)
  "Sends MESSAGE through the pipe whose end is DESCRIPTOR. Ends this process when that fails: the
  reader is gone."
  (multiple-value-bind (octets end) (json-line message)
    (unless (write-octets descriptor octets 0 end) (exit-process 0))))

(defun next-message (reader)
  "The next message, waited for; NIL when there comes none any more."
  (multiple-value-bind (octets start end) (next-line reader)
    (and (typep octets 'octets)
         (handler-case (parse-json octets start end)
           (error () nil)))))

(defun message-read-p (reader)
  "Returns true if something was read that was not taken yet."
  (< (line-reader-start reader) (line-reader-end reader)))

(defun message-waiting-p (reader)
  "Returns true if something has come that was not taken yet."
  (or (message-read-p reader)
      (wait-until-fd-usable (line-reader-fd reader) :input 0 nil)))

(defun send-to-keeper (chain &rest message)
  (send-message (pipe-writer (chain-answers chain)) (apply #'object message)))

;;; Alarms

(defun hook-interruptions ()
  "Has an alarm call its function directly in this thread, without a signal: the filter of a chain
  refuses all signals."
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
           ;; The system's timer is not inherited, and the next alarm would wait for those that Lisp
           ;; believes to be set.
           (stop-alarms)
           0))))

(defun close-report ()
  "Closes the host's socket in this process, so that the host sees the end of the keeper, which
  alone keeps it open."
  (let ((nowhere (sb-posix:open "/dev/null" sb-posix:o-rdwr)))
    (sb-posix:dup2 nowhere +report-descriptor+)
    (sb-posix:close nowhere)))
