;;;; SBCL's internals that profiling needs (profile/): the stack of an interrupted thread, and the
;;;; samples that SB-SPROF has gathered.

(in-package :consort)

(define-internal unencapsulate :function "profiling threads that the code starts" ("SB-INT" "UNENCAPSULATE"))
(define-internal context-pc :function "profiling" ("SB-VM" "CONTEXT-PC"))
(define-internal context-register :function "profiling" ("SB-VM" "CONTEXT-REGISTER"))
(define-internal stack-register :variable "profiling" ("SB-VM" "RSP-OFFSET"))
(define-internal frame-register :variable "profiling" ("SB-VM" "RBP-OFFSET"))
(define-internal thread-slot :macro "profiling" ("SB-VM" "CURRENT-THREAD-OFFSET-SAP"))
(define-internal stack-end-slot :variable "profiling" ("SB-VM" "THREAD-CONTROL-STACK-END-SLOT"))
(define-internal code-from-pc :function "profiling" ("SB-DI" "CODE-HEADER-FROM-PC"))
(define-internal code-start :function "profiling" ("SB-KERNEL" "CODE-INSTRUCTIONS"))
(define-internal debug-function-at :function "profiling" ("SB-DI" "DEBUG-FUN-FROM-PC"))
(define-internal assembler-routines :variable "profiling" ("SB-FASL" "*ASSEMBLER-ROUTINES*") ("SB-KERNEL" "*ASSEMBLER-ROUTINES*"))
(define-internal assembler-routine-at :function "profiling" ("SB-DISASSEM" "FIND-ASSEMBLER-ROUTINE"))
(define-internal foreign-symbol-at :function "profiling" ("SB-SYS" "SAP-FOREIGN-SYMBOL") ("SB-IMPL" "SAP-FOREIGN-SYMBOL"))
(define-internal sprof-samples :variable "profiling allocation" ("SB-SPROF" "*SAMPLES*"))
(define-internal sprof-vector :place "profiling allocation" ("SB-SPROF" "SAMPLES-VECTOR"))
(define-internal sprof-gathered :function "profiling allocation" ("SB-SPROF" "CONVERT-RAW-DATA"))
(define-internal map-sprof-trace :function "profiling allocation" ("SB-SPROF" "MAP-TRACE-PC-LOCS"))
(define-internal sprof-mode :variable "profiling allocation" ("SB-SPROF" "*PROFILING*"))
(define-internal debug-function-type :type "profiling allocation" ("SB-DI" "COMPILED-DEBUG-FUN"))

(defun signal-context (sap)
  "Returns the third argument of a signal handler in the form that CONTEXT-PC and CONTEXT-REGISTER
  take."
  (sb-alien:sap-alien sap (* sb-sys:os-context-t)))

(defun timer-overrun (info)
  "Returns the number of further expirations of its timer that a signal represents; 0 for a signal
  that no timer has sent. INFO is the address of the signal's siginfo_t."
  ;; On 64-bit Linux, si_code is at 8, and SI_TIMER in it is -2. si_overrun, which is never
  ;; negative, is at 20.
  (if (and (plusp (the sb-ext:word (sap-integer info)))
           (= (the (unsigned-byte 32) (sap-32 info 8)) #xFFFFFFFE))
      (ldb (byte 31 0) (sap-32 info 20))
      0))

(defun allocator-name-p (name)
  "Returns true if NAME is that of an allocator: a C function of the runtime, or an assembler
  routine that calls one."
  (if (stringp name)
      (search "foreign function" name)
      (and (symbolp name)
           (eq (symbol-package name) (load-time-value (find-package "SB-VM")))
           (search "ALLOC-TRAMP" (symbol-name name)))))
