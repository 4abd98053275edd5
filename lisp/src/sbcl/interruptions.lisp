;;;; The place in which a signal interrupted this thread (SBCL: code/target-signal.lisp,
;;;; code/debug-int.lisp). The functions that read contexts are shared with profiling
;;;; (profile.lisp).

(in-package :consort)

(define-internal interrupt-context :function "interrupting foreign code safely" ("SB-DI" "NTH-INTERRUPT-CONTEXT"))
(define-internal interrupt-contexts :variable "interrupting foreign code safely" ("SB-KERNEL" "*FREE-INTERRUPT-CONTEXT-INDEX*"))

(define-internal run-timer :symbol "timers that interrupt an idle session's thread" ("SB-IMPL" "RUN-TIMER"))
(define-internal users-timer-thread :function "timers of the user's beside Consort's threads" ("SB-IMPL" "%TIMER-THREAD"))
(define-internal users-timer-function :function "timers of the user's beside Consort's threads" ("SB-IMPL" "%TIMER-INTERRUPT-FUNCTION"))
(defun copied-octets (sap count)
  "The COUNT octets at SAP; NIL for a null pointer."
  (unless (zerop (sb-sys:sap-int sap))
    (let ((octets (make-array count :element-type '(unsigned-byte 8))))
      (dotimes (at count octets)
        (setf (aref octets at) (sb-sys:sap-ref-8 sap at))))))

;;; Signals that SBCL defers in no thread, not even while it allocates or begins a thread
;;; (runtime/interrupt.c, deferrable_sigset). A handler that runs there may block the process for
;;; ever. These signals are blocked in all threads, and a thread waits for those that the program
;;; handles.

(define-internal start-finalizer-thread :function "signals that programs handle" ("SB-IMPL" "FINALIZER-THREAD-START"))

(defparameter *awaited-signals* (list* 10 16 30 (loop for signal from 34 to 64 collect signal))
  "On Linux: SIGUSR1, SIGSTKFLT, SIGPWR and the signals without a name.")

(defun awaited-set ()
  "The *AWAITED-SIGNALS* as a sigset_t."
  (let ((set (make-array 16 :element-type '(unsigned-byte 64) :initial-element 0)))
    (dolist (signal *awaited-signals* set)
      (setf (ldb (byte 1 (1- signal)) (aref set 0)) 1))))

(defun block-awaited-signals ()
  "Blocks the *AWAITED-SIGNALS* in this thread, and in threads that it begins."
  (let ((set (awaited-set)))
    (with-pinned-objects (set)
      (sb-alien:alien-funcall
       (sb-alien:extern-alien "pthread_sigmask" (function sb-alien:int sb-alien:int sb-sys:system-area-pointer sb-alien:unsigned-long))
       0 (vector-sap set) 0))))           ; SIG_BLOCK

(defun await-signal (info)
  "Waits for one of the *AWAITED-SIGNALS* and returns its number. INFO, an array of octets, receives
  the siginfo_t."
  (let ((set (awaited-set)))
    (loop
      (let ((signal (with-pinned-objects (set info)
                      (sb-alien:alien-funcall
                       (sb-alien:extern-alien "sigwaitinfo" (function sb-alien:int sb-sys:system-area-pointer sb-sys:system-area-pointer))
                       (vector-sap set) (vector-sap info)))))
        (when (plusp signal) (return signal))))))

(define-internal unblock-deferrable-signals :function "interrupting threads that a signal's handler has started" ("SB-UNIX" "UNBLOCK-DEFERRABLE-SIGNALS"))
(define-internal install-handler :symbol "handlers of signals beside Consort's threads" ("SB-UNIX" "%INSTALL-HANDLER"))

(defconstant +result-register+ 0 "The number of the register in which the system returns the result
  of a call: RAX, or X0.")
(defconstant +interrupted-call+ (- (ash 1 64) 4) "-EINTR in such a register: a call that waited was
  interrupted.")

(defun waited-for-system-p (context)
  "Returns true if the signal of CONTEXT interrupted a system call that waited. The program counter
  is then after the instruction that enters the system, with that result, or at it if the system
  will start the call again. Calls that do not wait, such as malloc's calls for memory, are finished
  before a signal comes."
  (let ((pc (context-pc context)))
    (flet ((enters (offset)
             #+x86-64 (and (= #x0f (sb-sys:sap-ref-8 pc offset)) (= #x05 (sb-sys:sap-ref-8 pc (1+ offset))))
             #+arm64 (= #xd4000001 (sb-sys:sap-ref-32 pc offset))
             #-(or x86-64 arm64) (progn offset nil)))
      (or (enters 0)
          (and (enters #+arm64 -4 #-arm64 -2)
               (= +interrupted-call+ (ldb (byte 64 0) (context-register context +result-register+))))))))

(defun interrupted-place ()
  "For an interruption: :WAIT if it came in foreign code that waited for the system; :FOREIGN if it
  came in other foreign code, such as malloc; and otherwise, or if that is not known, :LISP. Calls
  no function of the C library."
  (if (and (every #'internal-p '(interrupt-context interrupt-contexts context-pc context-register code-from-pc))
           (plusp interrupt-contexts))
      (let ((context (interrupt-context (1- interrupt-contexts))))
        (cond ((code-from-pc (context-pc context)) :lisp)
              ((waited-for-system-p context) :wait)
              (t :foreign)))
      :lisp))
