;;;; SBCL's internals that a fingerprint reads (ops/fingerprint.lisp).

(in-package :consort)

(define-internal call-with-each-info :function "the compiler's part of fingerprints" ("SB-INT" "CALL-WITH-EACH-INFO") ("SB-IMPL" "CALL-WITH-EACH-INFO")
  ("SB-C" "CALL-WITH-EACH-INFO"))
(define-internal *info-types* :variable "the compiler's part of fingerprints" ("SB-INT" "*INFO-TYPES*") ("SB-IMPL" "*INFO-TYPES*") ("SB-C" "*INFO-TYPES*"))
(define-internal meta-info-kind :function "the compiler's part of fingerprints" ("SB-INT" "META-INFO-KIND") ("SB-IMPL" "META-INFO-KIND") ("SB-C" "META-INFO-KIND"))
(define-internal class-layout :function "the classes' part of fingerprints" ("SB-PCL" "CLASS-WRAPPER"))

(defun map-symbol-info (function symbol)
  "Calls FUNCTION with a number and a value for each entry of the compiler's database about SYMBOL
  and names made from it, such as (SETF SYMBOL). The number identifies the kind and the name. Counts
  of calls are left out."
  (call-with-each-info (lambda (name kind value)
                         ;; There is no meta-info for an entry of no kind, such as the function
                         ;; itself.
                         (unless (let ((type (svref *info-types* kind)))
                                   (and type (string= (meta-info-kind type) "EMITTED-FULL-CALLS")))
                           (funcall function (logxor kind (if (symbolp name) 0 (sxhash (prin1-to-string name)))) value)))
                       symbol))

(defun system-symbol-p (symbol)
  "Returns true if SYMBOL belongs to SBCL itself."
  (let ((package (symbol-package symbol)))
    (and package (sb-ext:package-locked-p package))))

(defparameter *moving-internals*
  '("*CODE-SERIALNO*" "*COMPILE-ELAPSED-TIME*" "*COMPILE-FILE-ELAPSED-TIME*" "*EVAL-CALLS*" "*GC-EPOCH*" "*N-BYTES-FREED-OR-PURIFIED*" "*TYPE-CACHE-NONCE*"
    "*IMMOBILE-CODEBLOB-TREE*" "*DYNSPACE-CODEBLOB-TREE*" "*STORE-BARRIERS-EMITTED*" "*STORE-BARRIERS-POTENTIALLY-EMITTED*"
    "*CODE-ALLOC-COUNT*" "*PACKAGE-NAMES-COOKIE*" "*GC-REAL-TIME*" "*RUN-GC-HOOKS*" "*FINALIZERS-TRIGGERED*" "*FINALIZER-THREAD*" "*FINALIZER-REHASHLIST*"
    "*UNCOMPACTED-FUN-MAPS*" "*COMPILED-DEBUG-FUNS*" "*STARTING-THREADS*" "*JOINABLE-THREADS*" "*ALL-THREADS*" "*AVAILABLE-BUFFERS*")
  "Names of internal variables whose values change without any action of a user's.")

(defun moving-internal-p (symbol)
  "Returns true if SYMBOL, one of SBCL itself, is one of *MOVING-INTERNALS* or a cache."
  (let ((name (symbol-name symbol)))
    (and (system-symbol-p symbol)
         (or (member name *moving-internals* :test #'string=)
             (search "-CACHE-VECTOR*" name)
             (search "-CACHE*" name)))))
