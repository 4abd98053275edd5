;;;; The standard's operators, classes and methods as they were built. The work of every session and
;;;; every check uses them, so a redefinition is reverted: in the image when the evaluation that
;;;; made it ends, and in a copy when the copy begins.

(in-package :consort)

;; Every evaluation ends with a comparison of some 700 operators, so it is made of one read of each
;; cell. The cell of a macro, too, has another content after a redefinition.
(defstruct (standard-operator (:constructor make-standard-operator (symbol kind definition cell)))
  "An operator of the standard as it was built. CELL is the content of the function cell of SYMBOL
  where it shows that DEFINITION is in force; :UNKNOWN where the definition has to be looked up."
  (symbol nil :type symbol :read-only t)
  (kind nil :type (member :macro :function) :read-only t)
  (definition nil :type function :read-only t)
  (cell :unknown))

(defun cell-of-definition (symbol kind definition)
  "Returns the CELL of an operator: the one of a function that is encapsulated does not show which."
  (let ((cell (if (internal-p 'function-cell) (function-cell symbol) :unknown)))
    (if (or (eq kind :macro) (eq cell definition)) cell :unknown)))

(define-global *standard-operators*
    (let ((operators '()))
      (flet ((add (symbol kind definition)
               (push (make-standard-operator symbol kind definition (cell-of-definition symbol kind definition)) operators)))
        (do-external-symbols (symbol "COMMON-LISP")
          (cond ((special-operator-p symbol))
                ((macro-function symbol) (add symbol :macro (macro-function symbol)))
                ((fboundp symbol) (add symbol :function (fdefinition symbol))))))
      (coerce operators 'simple-vector))
  "Each operator of the standard, its kind and its definition, without encapsulations.")

(defmacro as-built (name &rest arguments)
  "Calls the function that NAME had when this code was loaded, whatever it is now."
  `(funcall (the function (load-time-value (fdefinition ',name))) ,@arguments))

(defun operator-definition (symbol kind)
  "The current definition of SYMBOL; NIL if it has none of KIND."
  (if (eq kind :macro)
      (as-built macro-function symbol)
      (and (as-built fboundp symbol) (not (as-built macro-function symbol)) (as-built fdefinition symbol))))

(defun redefined-operators ()
  "The entries of the standard's operators whose definitions have changed."
  (declare (optimize speed))
  (loop with cells = (internal-p 'function-cell)
        for operator across (the simple-vector *standard-operators*)
        for symbol = (standard-operator-symbol operator)
        unless (or (and cells (eq (standard-operator-cell operator) (function-cell symbol)))
                   (eq (standard-operator-definition operator) (operator-definition symbol (standard-operator-kind operator))))
          collect operator))

(defun restore-operator (operator)
  "Gives OPERATOR its definition back."
  (let ((symbol (standard-operator-symbol operator)) (kind (standard-operator-kind operator)) (definition (standard-operator-definition operator)))
    (if (eq kind :macro)
        (as-built (setf macro-function) definition symbol)
        (as-built (setf fdefinition) definition symbol))
    ;; Each time a macro is defined its cell gets a new function.
    (setf (standard-operator-cell operator) (cell-of-definition symbol kind definition))))

(defun restore-operators ()
  "Restores the definitions of the standard's operators. Returns the symbols of those that had
  changed."
  (let ((redefined (redefined-operators)))
    (when redefined
      (sb-ext:without-package-locks
        (mapc #'restore-operator redefined)))
    (mapcar #'standard-operator-symbol redefined)))

;;; Classes of the standard

(define-global *standard-classes*
    (coerce (loop for symbol being the external-symbols of "COMMON-LISP"
                  for class = (find-class symbol nil)
                  when class collect (cons symbol class))
            'simple-vector)
  "Each name of a class of the standard, with its class.")

(defun restore-classes ()
  "Restores the classes of the standard's class names. Returns the names that had other classes."
  (declare (optimize speed))
  (loop for (name . class) across (the simple-vector *standard-classes*)
        unless (eq class (as-built find-class name nil))
          do (sb-ext:without-package-locks (as-built (setf find-class) class name))
          and collect name))

;;; Methods. A user's method for a class of the system's, such as T or CONDITION, on a generic
;;; function of the system's would be called in the work of every session.

(define-global *system-functions* '() "The generic functions that packages of the system export; NIL
  until they were noted.")
(define-global *print-methods* '() "The methods on PRINT-OBJECT of the build; NIL until they were
  noted.")
(define-global *changed-functions* '() "The generic functions of the system whose methods have
  changed since the last check.")

(defclass method-watcher () ()
  (:documentation "A dependent of a generic function that notes its changes in *CHANGED-FUNCTIONS*."))

(defmethod sb-mop:update-dependent ((function generic-function) (watcher method-watcher) &rest change)
  (declare (ignore change))
  (sb-ext:atomic-push function *changed-functions*))

(defparameter *functions-for-anything* '(describe-object documentation make-load-form no-applicable-method sb-mop:make-method-lambda)
  "Generic functions on which programs have harmless methods for T. Only methods with qualifiers on
  them count as harmful.")

(defun exported-generic-functions (package)
  "Returns the generic functions that PACKAGE exports."
  (let ((found '()))
    (do-external-symbols (symbol package found)
      (dolist (name (list symbol (list 'setf symbol)))
        (when (and (fboundp name) (not (and (symbolp name) (or (macro-function name) (special-operator-p name)))))
          (let ((function (fdefinition name)))
            (when (typep function 'generic-function)
              (push function found))))))))

(defun note-methods ()
  "Notes the current methods of the system's generic functions as those of the build. Must be called
  before user code runs."
  (setf *print-methods* (copy-list (sb-mop:generic-function-methods #'print-object)))
  (unless *system-functions*
    (setf *system-functions* (remove-duplicates (mapcan #'exported-generic-functions (list "COMMON-LISP" "SB-MOP" "SB-GRAY"))))
    (let ((watcher (make-instance 'method-watcher)))
      (dolist (function *system-functions*)
        (sb-mop:add-dependent function watcher))))
  (setf *before-adding-method* 'refuse-method-of-protocol
        *changed-functions* '()))

(defun system-class-p (specializer)
  "Returns true if SPECIALIZER is a class that came with the system."
  (and (typep specializer 'class) (part-of-core-p specializer)))

(defun shared-class-p (function class)
  "Returns true if the work of every session uses the methods of FUNCTION for CLASS."
  (or (eq class (load-time-value (find-class 't)))
      (case (sb-mop:generic-function-name function)
        ;; These classes are the parts of names, values, errors and code. Methods for functions and
        ;; hash tables, which programs have, do no harm.
        (print-object (or (subtypep class '(or condition symbol cons number character array)) (eq (class-name class) 'sequence)))
        ((initialize-instance reinitialize-instance shared-initialize) (eq class (load-time-value (find-class 'standard-object))))
        ((make-instance allocate-instance) (member (class-name class) '(symbol class standard-class))))))

(defun users-methods (function wanted-p)
  "Returns the methods on FUNCTION that users made for a class of the system's as the first argument
  and for all objects as the others. WANTED-P decides which classes count."
  (let ((all (load-time-value (find-class 't))))
    (remove-if-not (lambda (method)
                     (destructuring-bind (&optional (first all) &rest others) (sb-mop:method-specializers method)
                       (and (every (lambda (other) (eq other all)) others)
                            (system-class-p first)
                            (funcall wanted-p first)
                            (or (method-qualifiers method)
                                (not (member (sb-mop:generic-function-name function) *functions-for-anything*)))
                            (not (part-of-core-p method))
                            (not (member method *print-methods* :test #'eq)))))
                   (sb-mop:generic-function-methods function))))

(defparameter *functions-of-the-protocol*
  '(class-name compute-applicable-methods method-qualifiers remove-method
    sb-mop:class-direct-subclasses sb-mop:class-finalized-p sb-mop:class-precedence-list sb-mop:class-prototype
    sb-mop:compute-discriminating-function sb-mop:compute-effective-method sb-mop:generic-function-method-class
    sb-mop:generic-function-method-combination sb-mop:generic-function-methods (setf sb-mop:generic-function-methods)
    sb-mop:generic-function-name sb-mop:map-dependents sb-mop:method-generic-function (setf sb-mop:method-generic-function)
    sb-mop:method-specializers sb-mop:remove-direct-method sb-mop:slot-boundp-using-class sb-mop:slot-definition-location
    sb-mop:slot-definition-name sb-mop:slot-value-using-class (setf sb-mop:slot-value-using-class))
  "Generic functions without which no method can be added or removed. A failing method on one of
  these could not be removed again.")

(defun refuse-method-of-protocol (function method)
  "Signals an error if METHOD, which is to be added to FUNCTION, is a user's method on one of the
  *FUNCTIONS-OF-THE-PROTOCOL* and has none of the user's classes as a specializer."
  (when (and *serves-host*
             (not *in-copy*)
             (member (sb-mop:generic-function-name function) *functions-of-the-protocol* :test #'equal)
             ;; A core of the user's has classes of the user's that count as the system's.
             (every (lambda (specializer) (and (system-class-p specializer) (locked-class-p specializer)))
                    (sb-mop:method-specializers method)))
    (error "The method on ~A for ~{~A~^ and ~} is refused: every session's generic functions go through it. Specialize one of its parameters on a class of your own."
           (sb-mop:generic-function-name function) (mapcar #'class-name (sb-mop:method-specializers method)))))

(defun method-words (function method)
  "Returns the name of FUNCTION and the first class of METHOD, as a text for people."
  (format nil "~A for ~A" (sb-mop:generic-function-name function) (class-name (first (sb-mop:method-specializers method)))))

(defun locked-class-p (class)
  "Returns true if the name of CLASS is in a package that SBCL locks. This excludes ASDF, which came
  with the system too, but replaces its own classes and methods when it loads a newer ASDF."
  (let ((package (symbol-package (class-name class))))
    (and package (sb-ext:package-locked-p package))))

(defun restore-methods (function wanted-p)
  "Removes users' methods on FUNCTION for the classes for which WANTED-P is true, and restores those
  of the build on PRINT-OBJECT. Returns texts about both."
  (let* ((foreign (users-methods function wanted-p))
         (lost (and (eq function #'print-object)
                    (remove-if-not (lambda (method) (locked-class-p (first (sb-mop:method-specializers method))))
                                   (set-difference *print-methods* (sb-mop:generic-function-methods function) :test #'eq)))))
    (when (or foreign lost)
      (sb-ext:without-package-locks
        (dolist (method foreign) (remove-method function method))
        (dolist (method lost) (add-method function method))))
    ;; This must come after the changes, because the methods may be those that print the names.
    (mapcar (lambda (method) (method-words function method)) (append foreign lost))))

(defun restore-shared-methods ()
  "Removes those new methods that the work of every session would use. Returns texts about them."
  (let ((changed (loop for old = *changed-functions*
                       when (or (null old) (eq old (sb-ext:compare-and-swap (symbol-value '*changed-functions*) old '())))
                         return old)))
    (loop for function in (remove-duplicates changed)
          append (restore-methods function (lambda (class) (shared-class-p function class))))))

(defun restore-standard ()
  "Restores the standard's operators, classes and methods in a copy."
  (restore-classes)
  (restore-operators)
  (restore-shared-methods)
  (restore-methods #'print-object #'system-class-p))

(defun print-condition (condition stream)
  "Prints the report of CONDITION to STREAM. If a user's method prints every condition, the system's
  way of printing is used instead."
  (if (and (internal-p 'condition-reporter) (users-methods #'print-object #'system-class-p))
      (report-condition condition stream)
      (princ condition stream)))
