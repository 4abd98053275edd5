;;;; SBCL's internals that copying the image stands on (copy.lisp, confine.lisp).

(in-package :consort)

(define-internal without-collecting :macro "copying the image" ("SB-SYS" "WITHOUT-GCING"))
(define-internal map-heap :function "copying the image" ("SB-VM" "LIST-ALLOCATED-OBJECTS"))
(define-internal instance-widetag :variable "copying the image" ("SB-VM" "INSTANCE-WIDETAG"))
(define-internal primitive-thread :function "copying the image" ("SB-THREAD" "THREAD-PRIMITIVE-THREAD"))
(define-internal thread-next-slot :variable "copying the image" ("SB-VM" "THREAD-NEXT-SLOT"))
(define-internal thread-previous-slot :variable "copying the image" ("SB-VM" "THREAD-PREV-SLOT"))
(define-internal word-bytes :variable "copying the image" ("SB-VM" "N-WORD-BYTES"))
(define-internal all-threads :variable "copying the image" ("SB-THREAD" "*ALL-THREADS*"))
(define-internal avl-insert :function "copying the image" ("SB-THREAD" "AVL-INSERT"))
(define-internal joinable-threads :variable "copying the image" ("SB-THREAD" "*JOINABLE-THREADS*"))
(define-internal variables-of-process :variable "copying the image" ("SB-KERNEL" "*SAVE-LISP-CLOBBERED-GLOBALS*"))
(define-internal thread-session :variable "copying the image" ("SB-THREAD" "*SESSION*"))
(define-internal thread-session-lock :function "copying the image" ("SB-THREAD" "SESSION-LOCK"))
(define-internal finalizer-thread :variable "copying the image" ("SB-IMPL" "*FINALIZER-THREAD*"))
(define-internal stop-finalizer-thread :function "checking in a second process" ("SB-IMPL" "FINALIZER-THREAD-STOP"))
(define-internal world-lock :variable "copying the image" ("SB-KERNEL" "**WORLD-LOCK**") ("SB-C" "**WORLD-LOCK**"))
(define-internal sap-32 :place "copying the image" ("SB-SYS" "SAP-REF-32"))
(define-internal sap-word :place "copying the image" ("SB-SYS" "SAP-REF-WORD"))
(define-internal collector-off :symbol "copying the image" ("SB-KERNEL" "*GC-INHIBIT*"))
(define-internal restart-clusters :variable "leaving the image's handlers behind" ("SB-KERNEL" "*RESTART-CLUSTERS*"))
(define-internal system-message :function "copying the image" ("SB-INT" "STRERROR"))
(define-internal sap-integer :macro "confining a copy" ("SB-SYS" "SAP-INT"))

(defun defer-collection (octets)
  "Have the next collection wait until OCTETS more are allocated, where this runtime lets itself be
  told (gencgc.c: set after each collection)."
  (let ((address (foreign-address "auto_gc_trigger")))
    (when (and address (internal-p 'dynamic-usage))
      (setf (sb-sys:sap-ref-64 (sb-sys:int-sap address) 0) (+ (dynamic-usage) octets)))))
