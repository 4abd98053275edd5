;;;; The variables of a frame: their values, safe assignments to them, and code in which they are
;;;; visible. SBCL's own setter does not work for variables that a local function shares with its
;;;; parent. These are in the parent's frame, and the setter overwrites the pointer to that frame
;;;; (code/debug-int.lisp).

(in-package :consort)

(define-internal debug-function-variables :function "locals of a frame" ("SB-DI" "DEBUG-FUN-DEBUG-VARS"))
(define-internal debug-variable-symbol :function "locals of a frame" ("SB-DI" "DEBUG-VAR-SYMBOL"))
(define-internal debug-variable-validity :function "locals of a frame" ("SB-DI" "DEBUG-VAR-VALIDITY"))
(define-internal debug-variable-value :place "locals of a frame" ("SB-DI" "DEBUG-VAR-VALUE"))
(define-internal preprocess-for-eval :function "evaluating in a frame" ("SB-DI" "PREPROCESS-FOR-EVAL"))

;;; Variables in a parent's frame

(define-internal place-in-parent :function "setting locals of a parent" ("SB-DI" "COMPILED-DEBUG-VAR-INDIRECT-SC+OFFSET"))
(define-internal place-of-variable :function "setting locals of a parent" ("SB-DI" "COMPILED-DEBUG-VAR-SC+OFFSET"))
(define-internal saved-place-of-variable :function "setting locals of a parent" ("SB-DI" "COMPILED-DEBUG-VAR-SAVE-SC+OFFSET"))
(define-internal interrupted-context :function "setting locals of a parent" ("SB-DI" "COMPILED-FRAME-ESCAPED"))
(define-internal frame-pointer :function "setting locals of a parent" ("SB-DI" "FRAME-POINTER"))
(define-internal value-at-place :function "setting locals of a parent" ("SB-DI" "SUB-ACCESS-DEBUG-VAR-SLOT"))
(define-internal set-value-at-place :function "setting locals of a parent" ("SB-DI" "SUB-SET-DEBUG-VAR-SLOT"))
(define-internal address-of-object :function "setting locals of a parent" ("SB-KERNEL" "GET-LISP-OBJ-ADDRESS"))
(define-internal address-of-pointer :function "setting locals of a parent" ("SB-SYS" "SAP-INT"))

(defun frame-of-pointer (address frame)
  "The frame below FRAME whose pointer is ADDRESS, or NIL."
  (loop for below = (frame-below frame) then (frame-below below)
        while below
        when (= (address-of-pointer (frame-pointer below)) address) return below))

(defun parent-of-variable (variable frame)
  "The frame that contains VARIABLE of FRAME, a local function's frame; NIL if it is not on this
  stack."
  (let ((context (interrupted-context frame)))
    (frame-of-pointer (address-of-object (value-at-place (frame-pointer frame)
                                                 (or (and (not context) (saved-place-of-variable variable)) (place-of-variable variable))
                                                 context))
              frame)))

(defun set-in-parent (variable frame value)
  "Sets VARIABLE of FRAME, which is in the frame of the enclosing function."
  (let ((parent (and (every #'internal-p '(place-of-variable saved-place-of-variable interrupted-context frame-pointer value-at-place set-value-at-place
                                           address-of-object address-of-pointer))
                     (parent-of-variable variable frame))))
    (unless parent
      (refuse-setting "~A belongs to a function around this one, whose frame is not on this stack: it cannot be set" (debug-variable-symbol variable)))
    (set-value-at-place (frame-pointer parent) (place-in-parent variable) value)))

;;; Values

(defun alike-p (old new)
  "Returns true if code that was compiled for OLD works with NEW. Numbers may be kept unboxed,
  according to their type."
  (or (not (typep old '(or fixnum float (complex float) character (unsigned-byte 64) (signed-byte 64) sb-sys:system-area-pointer)))
      (eq (class-of old) (class-of new))))

(defun misread-p (variable frame)
  "Returns true if VARIABLE of FRAME is an unboxed complex number of double floats. SBCL reads and
  sets its two halves beside their place on the stack (code/debug-int.lisp). Each read makes a new
  object."
  (let ((value (debug-variable-value variable frame)))
    (and (typep value '(complex double-float))
         (not (eq value (debug-variable-value variable frame))))))

(defun variable-live-p (variable frame)
  "Returns true if VARIABLE of FRAME has its value at its place. A register that a call may have
  changed since has not, and SBCL returns a keyword for it. Reading a variable that is not valid may
  treat any word as an object."
  (and (eq (debug-variable-validity variable (frame-location frame)) :valid)
       (not (eq (debug-variable-value variable frame) :invalid-value-for-unescaped-register-storage))))

(defun variable-kept-p (variable frame)
  "Returns true if VARIABLE of FRAME has its value, and SBCL reads it correctly."
  (and (variable-live-p variable frame)
       (not (misread-p variable frame))))

(defun set-variable (variable frame value)
  "Sets VARIABLE of FRAME, whose value is kept, to VALUE. Refuses an assignment that is not safe.
  VALUE must be of the type that the compiler relies on, as far as the old value shows it."
  (let ((old (debug-variable-value variable frame)))
    (unless (alike-p old value)
      (refuse-setting "~A is of type ~A now, and the compiler may rely on that: set it to a value of this type" (debug-variable-symbol variable)
                      (present (class-name (class-of old)) (user-package))))
    (cond ((not (internal-p 'place-in-parent)) (missing-internal "SB-DI:COMPILED-DEBUG-VAR-INDIRECT-SC+OFFSET" "setting locals"))
          ((place-in-parent variable) (set-in-parent variable frame value))
          (t (setf (debug-variable-value variable frame) value)))
    (unless (eql (debug-variable-value variable frame) value)
      (refuse-setting "~A is not kept where it can be set: compile the function with (debug 2)" (debug-variable-symbol variable)))
    value))

(declaim (ftype function form-frame-p))
(defun variables-of-frame (frame)
  "The variables of FRAME, without those for the number of its arguments, which have no name."
  (if (form-frame-p frame)
      '()
      (remove nil (coerce (debug-function-variables (%frame-debug-function frame)) 'list) :key #'debug-variable-symbol)))

(defun frame-variables (frame)
  "The variables of FRAME, as (SYMBOL KEPT VALUE). KEPT is NIL if the compiler did not keep the
  value. Second value: true if there is debug information about variables; without it, the list is
  NIL. This only reads the stack, so any thread may call it as long as the frame's thread does not
  leave the frame."
  (handler-case
      (values (loop for variable in (variables-of-frame frame)
                    for kept = (variable-kept-p variable frame)
                    collect (list (debug-variable-symbol variable) kept (and kept (debug-variable-value variable frame))))
              t)
    (serious-condition () (values '() nil)))) ; NO-DEBUG-VARS

(define-internal debug-function-lambda-list :function "telling several variables of one name apart" ("SB-DI" "DEBUG-FUN-LAMBDA-LIST"))

(defun parameter-of-frame-p (name frame)
  "Returns true if NAME is a parameter of the function of FRAME."
  (and (internal-p 'debug-function-lambda-list)
       (handler-case (loop for item in (debug-function-lambda-list (%frame-debug-function frame))
                           for variable = (if (consp item) (find-if-not #'symbolp item :from-end t) item)
                           thereis (and variable (not (symbolp variable)) (eq name (debug-variable-symbol variable))))
         (serious-condition () nil))))

(declaim (ftype function variable-label))
(defun label-variables (variables frame kept)
  "VARIABLES as (LABEL . VARIABLE). Each of VARIABLES is a list that begins with its symbol, and
  they are in the order of FRAME's function. Among several variables of one name, only those count
  for which KEPT is true. If these are several, each has SBCL's number in its label, and the
  innermost comes first. SBCL lists parameters first, and variables of LET in inner forms before
  those in outer forms."
  (loop for name in (remove-duplicates (mapcar #'first variables) :from-end t)
        append (let* ((label (variable-label name))
                      (numbered (loop for variable in (remove name variables :key #'first :test-not #'eq)
                                      for number from 0
                                      collect (cons number variable)))
                      (found (or (remove-if-not kept numbered :key #'cdr) (list (first numbered)))))
                 (if (null (rest found))
                     (list (cons label (cdr (first found))))
                     (loop for (number . variable) in (if (and (zerop (car (first found))) (parameter-of-frame-p name frame))
                                                          (append (rest found) (list (first found)))
                                                          found)
                           collect (cons (format nil "~A#~D" label number) variable))))))

(defun settable-variables (frame)
  "The variables of FRAME, as (SYMBOL . FUNCTION). FUNCTION sets the variable to its argument, or is
  NIL if the compiler did not keep the value. The list is NIL without debug information. Must be
  called in the frame's own thread."
  (handler-case
      (loop for variable in (variables-of-frame frame)
            collect (let ((variable variable))
                      (cons (debug-variable-symbol variable)
                            (and (variable-kept-p variable frame)
                                 (lambda (value) (set-variable variable frame value))))))
    (serious-condition () '())))

;;; Code in a frame

(defstruct (seen-variable (:constructor make-seen-variable (variable frame)))
  "A variable of a frame, for code in that frame. OPEN is true while the code runs."
  variable frame (open t))

(defun checked-variable (seen)
  "The variable and the frame of SEEN. Refuses if the code that got it has ended, because the stack
  may have changed since."
  (let ((variable (seen-variable-variable seen)))
    (unless (seen-variable-open seen)
      (refuse-setting "~A was a variable of a stopped frame. It can be used only while the code in that frame runs: bind its value with LET for later"
                      (debug-variable-symbol variable)))
    (values variable (seen-variable-frame seen))))

(defun value-of-seen (seen)
  (multiple-value-bind (variable frame) (checked-variable seen)
    (when (misread-p variable frame)
      (refuse-setting "~A is a complex number that SBCL cannot read off the stack" (debug-variable-symbol variable)))
    (debug-variable-value variable frame)))

(defun (setf value-of-seen) (value seen)
  (multiple-value-bind (variable frame) (checked-variable seen)
    (value-of-seen seen)                ; this refuses a variable that cannot be read
    (set-variable variable frame value)))

(defun seen-variables (frame)
  "The variables of FRAME that code in it can read and set, as (SYMBOL SEEN-VARIABLE). SBCL refuses
  uses of the others: those that are not kept, and those that share a name."
  (let ((present (remove :invalid (variables-of-frame frame) :key (lambda (variable) (debug-variable-validity variable (frame-location frame))))))
    (loop for variable in present
          for name = (debug-variable-symbol variable)
          when (and (symbol-package name)
                    (= 1 (count name present :key #'debug-variable-symbol))
                    (variable-live-p variable frame)
                    (not (member (sb-cltl2:variable-information name) '(:special :constant :global))))
            collect (list name (make-seen-variable variable frame)))))

(declaim (ftype function removed-variables unkept-variables unbound-variables refuse-removed refuse-unbound))
(defun eval-in-frame (form frame)
  "Evaluates FORM where the variables of FRAME are visible. Uses of variables that the compiler
  removed or did not keep, or that are not bound there, are refused. Must be called in the frame's
  own thread."
  (when (form-frame-p frame)
    (return-from eval-in-frame (eval form)))
  (let* ((seen (handler-case (seen-variables frame)
                 (serious-condition () '()))) ; NO-DEBUG-VARS, which SBCL reports
         (removed (union (removed-variables frame) (unkept-variables frame)))
         (unbound (unbound-variables frame))
         (names (append (mapcar #'first seen) removed)))
    (unwind-protect
         (funcall (preprocess-for-eval `(locally (declare (sb-ext:disable-package-locks ,@names))
                                          (symbol-macrolet (,@(loop for (name variable) in seen collect `(,name (value-of-seen ,variable)))
                                                            ,@(loop for name in removed collect `(,name (,(if (member name unbound) 'refuse-unbound 'refuse-removed) ',name))))
                                            (declare (sb-ext:enable-package-locks ,@names))
                                            ,form))
                                       (frame-location frame))
                  frame)
      (loop for (nil variable) in seen
            do (setf (seen-variable-open variable) nil)))))
