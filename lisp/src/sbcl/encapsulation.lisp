;;;; Having other functions called in place of SBCL's.
;;;;
;;;; Where the calls of a function are linked to its code, its first encapsulation rewrites them
;;;; (code/immobile-space.lisp, REMOVE-STATIC-LINKS), each with a locked CMPXCHG. Some of these
;;;; operands lie across two cache lines. A hypervisor that detects such writes ("split lock")
;;;; delays them, and a virtual machine with other work may never come to the end of one. Where no
;;;; other thread runs, the write needs no lock.

(in-package :consort)

(define-internal %encapsulate :function "refusing (sb-ext:exit)" ("SB-INT" "ENCAPSULATE"))
(define-internal remove-static-links :function "building on a busy virtual machine" ("SB-VM" "REMOVE-STATIC-LINKS"))
(define-internal function-code-header :function "building on a busy virtual machine" ("SB-KERNEL" "FUN-CODE-HEADER"))
(define-internal machine-code :function "building on a busy virtual machine" ("SB-KERNEL" "CODE-INSTRUCTIONS"))
(define-internal machine-code-size :function "building on a busy virtual machine" ("SB-KERNEL" "%CODE-TEXT-SIZE"))

(defparameter *locked-write* '(#xF0 #x41 #x0F #xB1) "The octets of a locked CMPXCHG of 32 bits in the code of SBCL for x86-64.")
(defconstant +no-operation+ #x90 "The x86-64 instruction that does nothing.")

(defun lock-prefix-of-links ()
  "The address of the prefix that locks the write of REMOVE-STATIC-LINKS, code that does not move; or
  NIL: this SBCL links no calls, or its code is not as known."
  #+(and x86-64 linux)
  (when (every #'internal-p '(remove-static-links function-code-header machine-code machine-code-size))
    (let* ((code (function-code-header #'remove-static-links))
           (text (machine-code code))
           (places (loop for offset from 0 to (- (machine-code-size code) (length *locked-write*))
                         when (loop for octet in *locked-write*
                                    for at from offset
                                    always (eql octet (sb-sys:sap-ref-8 text at)))
                           collect offset)))
      (and places
           (null (rest places))
           (sb-sys:sap+ text (first places))))))

(defun encapsulate (name type function)
  "From now on FUNCTION is called in place of the function NAME, with that as its first argument.
  TYPE, a symbol, tells this encapsulation of NAME from others."
  (let ((prefix (and (null (rest (sb-thread:list-all-threads))) (lock-prefix-of-links))))
    (if prefix
        (unwind-protect
             (progn (setf (sb-sys:sap-ref-8 prefix 0) +no-operation+)
                    (%encapsulate name type function))
          (setf (sb-sys:sap-ref-8 prefix 0) (first *locked-write*)))
        (%encapsulate name type function))))
