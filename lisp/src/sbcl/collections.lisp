;;;; The heap: its use, the room that its collections need, and the function that is called after
;;;; each collection.

(in-package :consort)

(define-internal dynamic-usage :function "stopping evaluations before the heap is full" ("SB-KERNEL" "DYNAMIC-USAGE"))

;;; Room for the collector (code/gc.lisp, runtime/gencgc-internal.h). It copies small objects, so it
;;; needs as much free room as they occupy.

(define-internal free-pointer :function "having memory ready for a check" ("SB-KERNEL" "DYNAMIC-SPACE-FREE-POINTER"))
(define-internal page-bytes :variable "stopping evaluations before the heap is full" ("SB-VM" "GENCGC-PAGE-BYTES") ("SB-VM" "GENCGC-CARD-BYTES"))

(defun movable-bytes (&optional (oldest 2))
  "An estimate of the number of bytes, those of small objects, that collections of the generations
  up to OLDEST may have to copy. The next few collections cover the three youngest generations."
  (declare (optimize speed (safety 0)) (type (signed-byte 8) oldest))
  ;; The table is an array of (start u32, words u16, type u8, generation s8).
  (let ((table (sb-alien:extern-alien "page_table" sb-sys:system-area-pointer))
        (pages 0))
    (declare (type fixnum pages))
    (dotimes (page (the (unsigned-byte 40) (sb-alien:extern-alien "next_free_page" sb-alien:long)))
      (let ((type (sb-sys:sap-ref-8 table (+ (* 8 page) 6)))
            (generation (sb-sys:signed-sap-ref-8 table (+ (* 8 page) 7))))
        (when (and (<= 1 (logand type 31) 15) ; in use, and not one object of its own
                   (<= 0 generation oldest))
          (incf pages))))
    (the fixnum (* pages (the (unsigned-byte 20) page-bytes)))))

;;; After collections (code/gc.lisp). Newer SBCLs call the hooks in a thread of their own, which may
;;; wait for a processor until the heap is full.

(define-internal post-gc :symbol "stopping evaluations before the heap is full" ("SB-KERNEL" "POST-GC"))
(define-internal notify-finalizers :function "hooks of collections beside Consort's threads" ("SB-IMPL" "FINALIZER-THREAD-NOTIFY"))

(defun hooks-in-collections-p ()
  "Returns true if this SBCL calls the hooks of collections in the thread that collected."
  (let ((called nil) (hooks sb-ext:*after-gc-hooks*) (here sb-thread:*current-thread*))
    ;; Newer SBCLs call it in another thread, which may happen before the check.
    (setf sb-ext:*after-gc-hooks* (list (lambda () (when (eq sb-thread:*current-thread* here) (setf called t)))))
    (unwind-protect (funcall post-gc)
      (setf sb-ext:*after-gc-hooks* hooks))
    called))

(defun end-collection-without-hooks ()
  "Does the work of an older SBCL after a collection, except for the hooks."
  (notify-finalizers)
  (sb-alien:alien-funcall (sb-alien:extern-alien "empty_thread_recyclebin" (function sb-alien:void))))

(defun after-collections (function put-off-hooks)
  "From now on, FUNCTION, a symbol, is called after each collection. Interrupts are off, and the
  caller is the thread that collected, if SBCL has a place for that. Otherwise FUNCTION becomes one
  of the hooks. PUT-OFF-HOOKS, a symbol, is called before that thread calls the program's hooks, and
  returns true if the thread must not call them."
  (if (and (internal-p 'post-gc) (fboundp post-gc))
      (let ((hooks-here (and (internal-p 'notify-finalizers) (hooks-in-collections-p))))
        (encapsulate post-gc 'consort (lambda (collected)
                                        (declare (function collected))
                                        (without-interrupts (funcall function))
                                        (if (and hooks-here (without-interrupts (funcall put-off-hooks)))
                                            (end-collection-without-hooks)
                                            (funcall collected))
                                        nil)))
      (push function sb-ext:*after-gc-hooks*)))
