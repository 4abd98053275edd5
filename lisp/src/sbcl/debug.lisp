;;;; SBCL's internals that stopped programs and the inspector need (debug/).

(in-package :consort)

;;; Frames (code/debug-int.lisp, code/debug.lisp)

(define-internal top-frame :function "stopping with the stack alive" ("SB-DI" "TOP-FRAME"))
(define-internal frame-below :function "stopping with the stack alive" ("SB-DI" "FRAME-DOWN"))
(define-internal frame-above :function "places of evaluated forms" ("SB-DI" "FRAME-UP"))
(define-internal frame-location :function "stopping with the stack alive" ("SB-DI" "FRAME-CODE-LOCATION"))
(define-internal debug-function-function :function "places of frames" ("SB-DI" "DEBUG-FUN-FUN"))
(define-internal location-form-number :function "places of frames" ("SB-DI" "CODE-LOCATION-FORM-NUMBER"))
(define-internal location-source :function "places of frames" ("SB-DI" "CODE-LOCATION-DEBUG-SOURCE"))
(define-internal form-translations :function "places of frames" ("SB-DI" "FORM-NUMBER-TRANSLATIONS"))
(define-internal core-source-p :function "places of frames" ("SB-C" "CORE-DEBUG-SOURCE-P"))
(define-internal core-source-form :function "places of frames" ("SB-C" "CORE-DEBUG-SOURCE-FORM"))
(define-internal %frame-unwindable-p :function "returning from a frame" ("SB-DEBUG" "FRAME-HAS-DEBUG-TAG-P"))
(define-internal %unwind-to-frame :function "returning from a frame" ("SB-DEBUG" "UNWIND-TO-FRAME-AND-CALL"))
(define-internal %frame-call :function "restarting a frame" ("SB-DEBUG" "FRAME-CALL"))
(define-internal unprintable-object-p :function "restarting a frame" ("SB-DEBUG" "UNPRINTABLE-OBJECT-P"))
(define-internal restart-interactive-function :function "telling which restarts ask for values" ("SB-KERNEL" "RESTART-INTERACTIVE-FUNCTION"))

(define-internal restart-function-of :function "telling which restarts take values" ("SB-KERNEL" "RESTART-FUNCTION"))

(define-internal %function-name :function "frozen failures of tests" ("SB-KERNEL" "%FUN-NAME"))

(define-internal inspector :variable "INSPECT without a prompt" ("SB-IMPL" "*INSPECT-FUN*"))

(defun can-stop-p ()
  "Returns true if this SBCL has the internals that stopping with the stack alive needs."
  (every #'internal-p '(top-frame frame-below %frame-debug-function %debug-function-name thread-interruptions with-interruptions-locked deadline)))

(defun frame-name (frame)
  "The compiler's name of the function of FRAME."
  (%debug-function-name (%frame-debug-function frame)))

(defun frame-unwindable-p (frame)
  "Returns true if FRAME can be unwound to. SBCL does not refuse to unwind to other frames: a memory
  fault is the result."
  (and (internal-p '%frame-unwindable-p) (internal-p '%unwind-to-frame)
       (handler-case (and (%frame-unwindable-p frame) t)
         (serious-condition () nil))))

(defun unwind-to-frame (frame function)
  "Leaves all frames above FRAME and calls FUNCTION in its place. FRAME must be unwindable."
  (unless (frame-unwindable-p frame)
    (error "The frame cannot be unwound to."))
  (%unwind-to-frame frame function))

(defun frame-call (frame)
  "Three values: the name of the function of FRAME, its arguments with their current values, and
  true if all of them are known."
  (multiple-value-bind (name arguments) (%frame-call frame)
    (values name arguments
            (and (listp arguments)
                 (notany (lambda (argument) (and (internal-p 'unprintable-object-p) (unprintable-object-p argument))) arguments)))))

(defun frame-form-number (frame)
  "The number of the form at which FRAME is, among the forms within its top-level form; NIL if it is
  not known."
  (handler-case (location-form-number (frame-location frame))
    (serious-condition () nil)))

(defun frame-evaluated-form (frame)
  "The top-level form itself from which FRAME's function was evaluated; NIL if the function comes
  from a file."
  (handler-case (let ((source (location-source (frame-location frame))))
                  (and (core-source-p source) (core-source-form source)))
    (serious-condition () nil)))

(defun frame-function (frame)
  "The function of FRAME, or NIL."
  (handler-case (debug-function-function (%frame-debug-function frame))
    (serious-condition () nil)))

(defun form-path (form number)
  "The path to the subform NUMBER of FORM, as the compiler counts subforms: a list of positions.
  :NONE if there is no such subform."
  (let ((translations (form-translations form 0)))
    (if (< -1 number (length translations))
        (rest (reverse (cdr (svref translations number)))) ; the first is that of the top-level form
        :none)))

;;; Waiting on a stack that must not be unwound

(define-internal thread-interruptions :place "stopping with the stack alive" ("SB-THREAD" "THREAD-INTERRUPTIONS"))
(define-internal with-interruptions-locked :macro "stopping with the stack alive" ("SB-THREAD" "WITH-DEATHLOK"))
(define-internal deadline :variable "stopping with the stack alive" ("SB-IMPL" "*DEADLINE*") ("SB-SYS" "*DEADLINE*"))

(defun take-interruptions ()
  "Removes and returns the interruptions that other threads have sent to this one. Interrupts must
  be off."
  (let ((thread sb-thread:*current-thread*))
    (with-interruptions-locked (thread) (shiftf (thread-interruptions thread) '()))))

(defun give-interruptions (interruptions &aux (thread sb-thread:*current-thread*))
  "Puts INTERRUPTIONS back, before those that came meanwhile. The signal is sent again, because
  setting the runtime's own flag would end the process."
  (when interruptions
    (with-interruptions-locked (thread)
      (setf (thread-interruptions thread) (append interruptions (thread-interruptions thread))))
    (sb-alien:alien-funcall (sb-alien:extern-alien "raise" (function sb-alien:int sb-alien:int)) sb-unix:sigurg)))

(defun collecting-off-p ()
  "Returns true if this thread keeps the collector off. All other threads would wait for it."
  (and (internal-p 'collector-off) (symbol-value collector-off) t))

(defun free-lock (mutex)
  "Releases MUTEX in a copy. Its owner is a thread that the copy does not have."
  (dolist (slot (sb-mop:class-slots (class-of mutex)))
    (when (member (symbol-name (sb-mop:slot-definition-name slot)) '("STATE" "%STATE" "%OWNER") :test #'string=)
      (setf (slot-value mutex (sb-mop:slot-definition-name slot)) 0))))

;;; Compilation policy of evaluated text

(define-internal process-optimize :function "keeping the variables of evaluated text" ("SB-C" "PROCESS-OPTIMIZE-DECL"))

(defun debugging-policy ()
  "The policy in force, with enough debugging for variables to be kept."
  (process-optimize '(optimize (debug 2)) (symbol-value policy-name)))

(defun policy-of-both (after during before)
  "The policy after a form that began with the policy DURING in place of BEFORE and ended with
  AFTER. The form's changes are kept. If it did not change DEBUG, that is as in BEFORE."
  (flet ((debug-of (policy) (second (assoc 'debug (policy-qualities policy)))))
    (if (eql (debug-of after) (debug-of during))
        (process-optimize `(optimize (debug ,(debug-of before))) after)
        after)))

(define-internal policy-qualities :function "keeping the variables of evaluated text" ("SB-C" "POLICY-TO-DECL-SPEC"))

;;; Parts of objects (the inspector)

(define-internal descriptor-stream :type "inspecting files that are open" ("SB-SYS" "FD-STREAM"))

(define-internal instance-p :function "inspecting values" ("SB-KERNEL" "%INSTANCEP"))
(define-internal layout-invalid :function "inspecting values" ("SB-KERNEL" "WRAPPER-INVALID") ("SB-KERNEL" "LAYOUT-INVALID"))
(define-internal layout-of :function "inspecting values" ("SB-KERNEL" "WRAPPER-OF") ("SB-KERNEL" "LAYOUT-OF"))
(define-internal closure-p :function "inspecting closures" ("SB-KERNEL" "CLOSUREP"))
(define-internal closure-length :function "inspecting closures" ("SB-KERNEL" "GET-CLOSURE-LENGTH"))
(define-internal closure-reference :function "inspecting closures" ("SB-KERNEL" "%CLOSURE-INDEX-REF"))
(define-internal other-pointer-lowtag :variable "inspecting closures" ("SB-VM" "OTHER-POINTER-LOWTAG"))
(define-internal value-cell-widetag :variable "inspecting closures" ("SB-VM" "VALUE-CELL-WIDETAG"))
(define-internal lowtag-of :function "inspecting closures" ("SB-KERNEL" "LOWTAG-OF"))
(define-internal widetag-of :function "inspecting closures" ("SB-KERNEL" "WIDETAG-OF"))
(define-internal value-cell-value :function "inspecting closures" ("SB-KERNEL" "VALUE-CELL-REF"))
(define-internal unbound-marker-p :function "inspecting instances" ("SB-INT" "UNBOUND-MARKER-P"))

(define-internal layout-inherits :function "inspecting values" ("SB-KERNEL" "WRAPPER-INHERITS") ("SB-KERNEL" "LAYOUT-INHERITS"))
(define-internal check-layout :function "inspecting values" ("SB-PCL" "CHECK-WRAPPER-VALIDITY"))

(defun obsolete-p (object)
  "Returns true if OBJECT is an instance of a class that was redefined since. Must be called before
  any other test of OBJECT: even TYPEP updates such an instance, which runs the user's
  UPDATE-INSTANCE-FOR-REDEFINED-CLASS with the compiler's lock held."
  (and (internal-p 'instance-p) (internal-p 'layout-of) (internal-p 'layout-invalid)
       (instance-p object)
       (layout-invalid (layout-of object))
       (not (take-new-layout object))))

(defun only-flushed-p (layout)
  "Returns true if LAYOUT, of instances of a class, was replaced by one with the same slots, as when
  a superclass was finalized. Instances then take the new layout without running any code of the
  user's."
  (flet ((obsolete-p (layout)
           (let ((state (layout-invalid layout))) (and (consp state) (eq (car state) :obsolete)))))
    (let ((state (layout-invalid layout)))
      (or (and (consp state) (eq (car state) :flush))
          (and (eq state t) (notany #'obsolete-p (layout-inherits layout)))))))

(defun take-new-layout (object)
  "Makes OBJECT, which has an invalid layout, take the layout of its class, if that runs no code of
  the user's and waits for no other thread. Returns true if OBJECT is then valid."
  (when (and (internal-p 'layout-inherits) (internal-p 'check-layout) (internal-p 'world-lock)
             (eq (class-of (class-of object)) (load-time-value (find-class 'standard-class))))
    (flet ((settle ()
             (when (only-flushed-p (layout-of object)) (check-layout object))
             (not (layout-invalid (layout-of object)))))
      (without-interrupts
        (cond ((sb-thread:holding-mutex-p world-lock) (settle))
              ((sb-thread:grab-mutex world-lock :waitp nil)
               (unwind-protect (settle)
                 (sb-thread:release-mutex world-lock))))))))

(defun closure-values (function)
  "The values that FUNCTION closes over. For a variable that is assigned, this is its current
  value."
  (when (and (internal-p 'closure-p) (internal-p 'closure-length) (internal-p 'closure-reference) (closure-p function))
    (loop for index below (1- (closure-length function))
          for value = (closure-reference function index)
          collect (if (and (= (lowtag-of value) other-pointer-lowtag) (= (widetag-of value) value-cell-widetag))
                      (value-cell-value value)
                      value))))
