;;;; Interruptions that unwind the stack of another thread. One that came in foreign code would
;;;; leave the work of that code half done. For example, a thread that is thrown out of the C
;;;; library's malloc leaves a lock held, and the next thread that allocates waits for ever. SBCL
;;;; itself allocates with malloc when it reads its own debug information.

(in-package :consort)

(defvar *interrupts-any-thread* nil "True while Consort itself interrupts or ends threads, which may
  be its own (own-threads.lisp).")

(defconstant +foreign-pause+ 0.002d0 "The time in seconds after which an interruption that came in
  foreign code is sent again.")
(defconstant +foreign-time+ 2 "The time in seconds for which it is sent again while foreign code
  computes. After that, the code is left in any case.")
(defconstant +wait-tries+ 4
  "The maximum number of times in succession that it is sent again while foreign code waits in a
  system call, which may last for ever.")

(defstruct (interruption (:constructor make-interruption (thread function)))
  "The request that THREAD call FUNCTION. STATE is :SENT until it has come, :LATE if it has not come
  in time, :FOREIGN if it is to be sent again, and :OVER in the end."
  (thread nil :type sb-thread:thread :read-only t)
  (function nil :type function :read-only t)
  (began (get-internal-real-time) :type (unsigned-byte 62) :read-only t)
  (state :sent :type symbol)
  (waits 0 :type fixnum))

(defun interruption-age (interruption)
  "The seconds since INTERRUPTION was first sent."
  (/ (- (get-internal-real-time) (interruption-began interruption)) internal-time-units-per-second))

(defun interruption-under-way-p (interruption)
  "Returns true if INTERRUPTION is not received yet, and is not so old that it may be lost: a thread
  that serves requests in a stop drops interruptions that come meanwhile."
  (and (not (eq (interruption-state interruption) :over))
       (< (interruption-age interruption) (* 2 +foreign-time+))))

(defun send-interruption (interruption)
  "Sends INTERRUPTION to its thread. Returns NIL if the thread has ended."
  (setf (interruption-state interruption) :sent)
  (restore-interruption-handler)
  (handler-case
      (progn (let ((*interrupts-any-thread* t))
               (sb-thread:interrupt-thread (interruption-thread interruption) (lambda () (receive-interruption interruption))))
             (look-again-at interruption)
             t)
    (sb-thread:interrupt-thread-error () nil)))

(defun receive-interruption (interruption)
  "Must be called in the thread of INTERRUPTION. Calls its function, or lets it be sent again.
  Mostly the timers' thread sends it, and not this thread, which may be preempted by the thread that
  it wakes: the next interruption would come before this one has returned, and SBCL allows eight at
  once."
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
  "Schedules the next LOOK-AFTER-INTERRUPTION of INTERRUPTION."
  (schedule *deadlines* +foreign-pause+ (lambda () (look-after-interruption interruption))))

(defun look-after-interruption (interruption)
  "Sends INTERRUPTION again if it came in foreign code. If it has not come yet, its thread will
  schedule this again if it comes in foreign code."
  (when (eq :foreign (sb-ext:compare-and-swap (interruption-state interruption) :sent :late))
    (send-interruption interruption)))

(defun interrupt-outside-foreign-code (thread function)
  "Makes THREAD call FUNCTION, which may unwind its stack, as soon as it is not in foreign code, or
  when the foreign code does not end. Waits for nothing. Returns the interruption; NIL if THREAD has
  ended."
  ;; An interruption in foreign code must not start the thread of the timers.
  (start-timers *deadlines*)
  (let ((interruption (make-interruption thread function)))
    (and (send-interruption interruption) interruption)))
