;;;; The standard's operators and the printing of conditions as they were built. Every session and
;;;; every check stands on them, so a redefinition is taken back: in the image when the evaluation
;;;; ends that made it, in a copy where it begins.

(in-package :consort)

(define-global *standard-operators*
    (let ((operators '()))
      (do-external-symbols (symbol "COMMON-LISP")
        (cond ((special-operator-p symbol))
              ((macro-function symbol) (push (list* symbol :macro (macro-function symbol)) operators))
              ((fboundp symbol) (push (list* symbol :function (fdefinition symbol)) operators))))
      (coerce operators 'simple-vector))
  "Each operator of the standard, its kind and its definition, without what encapsulates it.")

(defmacro as-built (name &rest arguments)
  "Call the function NAME as it was when this was loaded, whatever it is now."
  `(funcall (the function (load-time-value (fdefinition ',name))) ,@arguments))

(defun operator-definition (symbol kind)
  "The definition of SYMBOL now; NIL when it has none of KIND."
  (if (eq kind :macro)
      (as-built macro-function symbol)
      (and (as-built fboundp symbol) (not (as-built macro-function symbol)) (as-built fdefinition symbol))))

(defun redefined-operators ()
  "The standard's operators that are not what they were."
  (declare (optimize speed))
  (loop for entry across (the simple-vector *standard-operators*)
        for (symbol kind . definition) = entry
        unless (eq definition (operator-definition symbol kind))
          collect entry))

(defun restore-operators ()
  "Give the standard's operators their definitions back; the symbols of those that had others."
  (let ((redefined (redefined-operators)))
    (when redefined
      (sb-ext:without-package-locks
        (loop for (symbol kind . definition) in redefined
              do (if (eq kind :macro)
                     (as-built (setf macro-function) definition symbol)
                     (as-built (setf fdefinition) definition symbol)))))
    (mapcar #'first redefined)))

;;; PRINT-OBJECT. A user's method for a class of the system's, such as T or CONDITION, would print
;;; all that a check tells.

(define-global *print-methods* '() "The methods of the build; none until they were noted.")
(define-global *print-methods-seen* '() "The list of PRINT-OBJECT's methods when it was last found to be without one that everybody's printing would go through.")

(defun note-print-methods ()
  "Have the methods that PRINT-OBJECT has now be those of the build. To be called before user code
  runs."
  (setf *print-methods* (copy-list (sb-mop:generic-function-methods #'print-object))
        *print-methods-seen* (sb-mop:generic-function-methods #'print-object)))

(defun system-class-p (specializer)
  "Returns true if SPECIALIZER is a class that came with the system."
  (and (typep specializer 'class) (part-of-core-p specializer)))

(defun shared-class-p (specializer)
  "Returns true if all printing, or all that is told of conditions, goes through SPECIALIZER."
  (and (system-class-p specializer)
       (or (eq specializer (load-time-value (find-class 't)))
           (subtypep specializer 'condition))))

(defun foreign-print-methods (&optional (wanted-p #'system-class-p))
  "The methods on PRINT-OBJECT that users made for classes that are WANTED-P."
  (loop for method in (and *print-methods* (sb-mop:generic-function-methods #'print-object))
        when (and (eq (second (sb-mop:method-specializers method)) (load-time-value (find-class 't))) ; whatever it is printed to
                  (funcall wanted-p (first (sb-mop:method-specializers method)))
                  (not (member method *print-methods* :test #'eq)))
          collect method))

(defun restore-printing (&optional (wanted-p #'system-class-p))
  "Remove users' methods on PRINT-OBJECT for classes that are WANTED-P, and give those of the build
  back; the classes."
  (let ((foreign (foreign-print-methods wanted-p))
        (lost (set-difference *print-methods* (sb-mop:generic-function-methods #'print-object) :test #'eq)))
    (when (or foreign lost)
      (sb-ext:without-package-locks
        (dolist (method foreign) (remove-method #'print-object method))
        (dolist (method lost) (add-method #'print-object method))))
    (remove-duplicates (mapcar (lambda (method) (class-name (first (sb-mop:method-specializers method)))) (append foreign lost)))))

(defun restore-shared-printing ()
  "Remove the methods on PRINT-OBJECT that everybody's printing goes through; their classes. Looks
  only when some method is new."
  (unless (eq (sb-mop:generic-function-methods #'print-object) *print-methods-seen*)
    (prog1 (restore-printing #'shared-class-p)
      (setf *print-methods-seen* (sb-mop:generic-function-methods #'print-object)))))

(defun restore-standard ()
  "In a copy: have the standard's operators and printing as they were built."
  (restore-operators)
  (restore-printing))

(defun print-condition (condition stream)
  "Print what CONDITION reports to STREAM: as the system does where a user's method would do it for
  every condition."
  (if (and (internal-p 'condition-reporter) (foreign-print-methods))
      (report-condition condition stream)
      (princ condition stream)))
