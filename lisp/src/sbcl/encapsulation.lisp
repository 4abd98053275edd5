;;;; Having other functions called in place of SBCL's.
;;;;
;;;; Where the calls of a function are linked to its code, its first encapsulation rewrites them
;;;; (code/immobile-space.lisp, REMOVE-STATIC-LINKS), each with a locked CMPXCHG. Some of these
;;;; operands lie across two cache lines. A hypervisor that detects such writes ("split lock")
;;;; delays them, and a virtual machine with other work may never come to the end of one. Where no
;;;; other thread runs, the write needs no lock. The same holds for the first redefinition of such a
;;;; function, by a program too.

(in-package :consort)

(define-internal %encapsulate :function "refusing (sb-ext:exit)" ("SB-INT" "ENCAPSULATE"))
(define-internal encapsulate-name :symbol "evaluating after code has encapsulated what the system calls" ("SB-INT" "ENCAPSULATE"))
(define-internal compile-in-environment :symbol "evaluating after code has encapsulated what the compiler calls" ("SB-C" "COMPILE-IN-LEXENV"))
(define-internal function-cell :function "fast evaluation" ("SB-KERNEL" "%SYMBOL-FUNCTION"))
(define-internal remove-static-links :function "building on a busy virtual machine" ("SB-VM" "REMOVE-STATIC-LINKS"))
(define-internal function-code-header :function "building on a busy virtual machine" ("SB-KERNEL" "FUN-CODE-HEADER"))
(define-internal machine-code :function "building on a busy virtual machine" ("SB-KERNEL" "CODE-INSTRUCTIONS"))
(define-internal named-definition :function "building on a busy virtual machine" ("SB-INT" "FIND-FDEFN"))
(define-internal linked-p :function "building on a busy virtual machine" ("SB-VM" "FDEFN-HAS-STATIC-CALLERS"))
(define-internal never-linked :variable "building on a busy virtual machine" ("SB-VM" "*NEVER-STATICALLY-LINK*"))
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

(defun call-with-plain-links (function)
  "Calls FUNCTION, with links rewritten without a lock on the way where that is possible: no other
  thread runs. The argument of FUNCTION is true then."
  (let ((prefix (and (null (rest (sb-thread:list-all-threads))) (lock-prefix-of-links))))
    (if prefix
        (unwind-protect
             (progn (setf (sb-sys:sap-ref-8 prefix 0) +no-operation+)
                    (funcall function t))
          (setf (sb-sys:sap-ref-8 prefix 0) (first *locked-write*)))
        (funcall function nil))))

(defun encapsulate (name type function)
  "From now on FUNCTION is called in place of the function NAME, with that as its first argument.
  TYPE, a symbol, tells this encapsulation of NAME from others."
  (call-with-plain-links (lambda (plain)
                           (declare (ignore plain))
                           (%encapsulate name type function))))

(defun exported-functions ()
  "The names of SBCL's exported functions that calls may be linked to: those of the standard, and
  others that are called so now."
  (let ((names '()))
    (dolist (package '("COMMON-LISP" "SB-EXT" "SB-GRAY" "SB-MOP" "SB-THREAD") names)
      (do-external-symbols (symbol package)
        (dolist (name (list symbol (list 'setf symbol)))
          (let ((definition (and (fboundp name)
                                 (not (and (symbolp name) (or (macro-function name) (special-operator-p name))))
                                 (named-definition name))))
            (when (and definition
                       (or (linked-p definition) (string= package "COMMON-LISP")))
              (pushnew name names :test #'equal))))))))

(defun unlink-exported-functions ()
  "Has calls within SBCL find its exported functions by their names, in the core that is saved next
  too: a program that traces or redefines one has no links to rewrite. Does nothing where another
  thread runs."
  (when (every #'internal-p '(named-definition linked-p never-linked))
    (call-with-plain-links
     (lambda (plain)
       (when plain
         (let ((names (exported-functions)) (variable (get 'never-linked 'internal)))
           (dolist (name names)
             (let ((definition (named-definition name)))
               (when (linked-p definition) (remove-static-links definition))))
           ;; Saving links all calls but of these.
           (setf (symbol-value variable) (union names (symbol-value variable) :test #'equal))))))))
