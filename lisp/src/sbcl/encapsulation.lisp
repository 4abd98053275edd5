;;;; Encapsulation: other functions are called in place of SBCL's.
;;;;
;;;; If the calls of a function are linked to its code, its first encapsulation rewrites them
;;;; (code/immobile-space.lisp, REMOVE-STATIC-LINKS), each with a locked CMPXCHG. Some of these
;;;; operands cross a cache line. A hypervisor that detects such writes ("split lock") delays them,
;;;; and a busy virtual machine may hardly make progress. If no other thread runs, the write needs
;;;; no lock. The same is true of the first redefinition of such a function, even by a program.

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

(defparameter *locked-write* '(#xF0 #x41 #x0F #xB1) "The octets of a locked CMPXCHG of 32 bits in
  the code of SBCL for x86-64.")
(defconstant +no-operation+ #x90 "The x86-64 instruction that does nothing.")

(defun lock-prefix-of-links ()
  "The address of the prefix that locks the write of REMOVE-STATIC-LINKS, whose code does not move.
  NIL if this SBCL links no calls, or if its code is not as expected."
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
           (sb-sys:sap+ text (first places)))))
  #-(and x86-64 linux)
  nil)

(defun call-with-plain-links (function)
  "Calls FUNCTION. If no other thread runs and it is possible, links are meanwhile rewritten without
  a lock, and the argument of FUNCTION is true."
  (let ((prefix (and (null (rest (sb-thread:list-all-threads))) (lock-prefix-of-links))))
    (if prefix
        (unwind-protect
             (progn (setf (sb-sys:sap-ref-8 prefix 0) +no-operation+)
                    (funcall function t))
          (setf (sb-sys:sap-ref-8 prefix 0) (first *locked-write*)))
        (funcall function nil))))

(defun encapsulate (name type function)
  "From now on, FUNCTION is called in place of the function NAME, with the original function as its
  first argument. TYPE, a symbol, distinguishes this encapsulation of NAME from others."
  (call-with-plain-links (lambda (plain)
                           (declare (ignore plain))
                           (%encapsulate name type function))))

(defun exported-functions ()
  "The names of SBCL's exported functions to which calls may be linked: those of the standard, and
  others to which calls are linked now."
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
  "Makes calls within SBCL find its exported functions by their names, also in the core that is
  saved next. A program that traces or redefines one then has no links to rewrite. Does nothing if
  another thread runs."
  (when (every #'internal-p '(named-definition linked-p never-linked))
    (call-with-plain-links
     (lambda (plain)
       (when plain
         (let ((names (exported-functions)) (variable (get 'never-linked 'internal)))
           (dolist (name names)
             (let ((definition (named-definition name)))
               (when (linked-p definition) (remove-static-links definition))))
           ;; Saving the core links all calls except those of these functions.
           (setf (symbol-value variable) (union names (symbol-value variable) :test #'equal))))))))
