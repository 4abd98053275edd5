;;;; The code in which a signal interrupted this thread (SBCL: code/target-signal.lisp,
;;;; code/debug-int.lisp). The reading of contexts is shared with profiling (profile.lisp).

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

(define-internal install-handler :symbol "handlers of signals beside Consort's threads" ("SB-UNIX" "%INSTALL-HANDLER"))

(defconstant +result-register+ 0 "The number of the register in which the system returns the result of a call: RAX, or X0.")
(defconstant +interrupted-call+ (- (ash 1 64) 4) "-EINTR in such a register: a call that waited was interrupted.")

(defun waited-for-system-p (context)
  "Returns true if the signal of CONTEXT interrupted a system call that waited: the machine is behind
  the instruction that enters the system, with that result, or at it when the system will start the
  call again. Calls that do not wait, such as malloc makes for memory, are done before a signal comes."
  (let ((pc (context-pc context)))
    (flet ((enters (offset)
             #+x86-64 (and (= #x0f (sb-sys:sap-ref-8 pc offset)) (= #x05 (sb-sys:sap-ref-8 pc (1+ offset))))
             #+arm64 (= #xd4000001 (sb-sys:sap-ref-32 pc offset))
             #-(or x86-64 arm64) (progn offset nil)))
      (or (enters 0)
          (and (enters #+arm64 -4 #-arm64 -2)
               (= +interrupted-call+ (ldb (byte 64 0) (context-register context +result-register+))))))))

(defun interrupted-place ()
  "In an interruption: :WAIT if it came in foreign code that waited for the system, :FOREIGN in other
  foreign code, such as malloc; :LISP in Lisp, and where that cannot be told. Calls nothing of the C
  library."
  (if (and (every #'internal-p '(interrupt-context interrupt-contexts context-pc context-register code-from-pc))
           (plusp interrupt-contexts))
      (let ((context (interrupt-context (1- interrupt-contexts))))
        (cond ((code-from-pc (context-pc context)) :lisp)
              ((waited-for-system-p context) :wait)
              (t :foreign)))
      :lisp))
