;;;; Interruptions that unwind the stack of another thread. One that came in foreign code would
;;;; leave what that code was doing half done: a thread that is thrown out of the C library's malloc
;;;; leaves a lock held, and the next one to allocate waits for ever. SBCL itself allocates with
;;;; malloc, when it reads its own debug information.

(in-package :consort)

(defvar *interrupts-any-thread* nil "True where Consort itself interrupts or ends threads, which may be its own (own-threads.lisp).")

(defconstant +foreign-pause+ 0.002d0 "Seconds until an interruption that came in foreign code is sent again.")
(defconstant +foreign-time+ 2 "Seconds for which that is done while foreign code computes; then the code is left all the same.")
(defconstant +wait-tries+ 4
  "How many times in succession that is done while foreign code waits in a system call, which may
  last for ever.")

(defstruct (interruption (:constructor make-interruption (thread function)))
  "THREAD is to call FUNCTION. STATE is :SENT until it has come, :LATE when it has not come in time,
  :FOREIGN when it is to be sent again, :OVER in the end."
  (thread nil :type sb-thread:thread :read-only t)
  (function nil :type function :read-only t)
  (began (get-internal-real-time) :type (unsigned-byte 62) :read-only t)
  (state :sent :type symbol)
  (waits 0 :type fixnum))

(defun interruption-age (interruption)
  "The seconds since INTERRUPTION was first sent."
  (/ (- (get-internal-real-time) (interruption-began interruption)) internal-time-units-per-second))

(defun interruption-under-way-p (interruption)
  "Returns true if INTERRUPTION is still to be received, and is not so old that it may be lost: a
  thread that serves people in a stop drops what comes meanwhile."
  (and (not (eq (interruption-state interruption) :over))
       (< (interruption-age interruption) (* 2 +foreign-time+))))

(defun send-interruption (interruption)
  "Sends INTERRUPTION to its thread; NIL when that has ended."
  (setf (interruption-state interruption) :sent)
  (restore-interruption-handler)
  (handler-case
      (progn (let ((*interrupts-any-thread* t))
               (sb-thread:interrupt-thread (interruption-thread interruption) (lambda () (receive-interruption interruption))))
             (look-again-at interruption)
             t)
    (sb-thread:interrupt-thread-error () nil)))

(defun receive-interruption (interruption)
  "Called in the thread of INTERRUPTION: calls its function, or has it sent again. As a rule the
  timers' thread does that, and not this thread, which may be preempted for the one that it wakes:
  the next interruption would come before this one has returned, and SBCL allows eight at once."
  (let ((place (interrupted-place)))
    (cond ((or (eq place :lisp)
               (>= (interruption-age interruption) +foreign-time+)
               (>= (interruption-waits interruption) +wait-tries+))
           (setf (interruption-state interruption) :over)
           (funcall (interruption-function interruption)))
          (t
           (setf (interruption-waits interruption) (if (eq place :wait) (1+ (interruption-waits interruption)) 0))
           (when (eq :late (sb-ext:compare-and-swap (interruption-state interruption) :sent :foreign))
             (setf (interruption-state interruption) :foreign)
             (look-again-at interruption))))))

(defun look-again-at (interruption)
  "Looks after INTERRUPTION in a moment."
  (schedule *deadlines* +foreign-pause+ (lambda () (look-after-interruption interruption))))

(defun look-after-interruption (interruption)
  "Sends INTERRUPTION again if it came in foreign code. One that has not come yet is left to its
  thread."
  (when (eq :foreign (sb-ext:compare-and-swap (interruption-state interruption) :sent :late))
    (send-interruption interruption)))

(defun interrupt-outside-foreign-code (thread function)
  "Has THREAD call FUNCTION, which may unwind its stack, as soon as it is not in foreign code, or
  when that does not end. Waits for nothing. Returns the interruption; NIL when THREAD has ended."
  (start-timers *deadlines*) ; to start its thread is no work for an interruption in foreign code
  (let ((interruption (make-interruption thread function)))
    (and (send-interruption interruption) interruption)))
