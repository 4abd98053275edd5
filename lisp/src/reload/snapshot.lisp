;;;; The image's definitions at one moment, by which a reload can be reported and undone: the
;;;; definitions of every symbol of every user's package, and the methods of every generic function.
;;;; Taking a snapshot needs some tens of milliseconds for a large program.

(in-package :consort)

(defun system-package-p (package)
  "Returns true if PACKAGE came with SBCL or belongs to Consort. Its definitions are not compared,
  except for methods on its generic functions."
  (let ((name (package-name package)))
    (or (null name)
        (member name '("COMMON-LISP" "KEYWORD" "CONSORT") :test #'string=)
        (some (lambda (prefix) (eql 0 (search prefix name))) '("SB-" "ASDF" "UIOP")))))

(defstruct (symbol-record (:constructor make-symbol-record (infos functions value class)))
  "The definitions of one symbol. INFOS is from INFO-KINDS. FUNCTIONS is a list of (NAME . FUNCTION)
  for the symbol and (SETF SYMBOL), without macros. VALUE is a list of the global value, or NIL.
  CLASS is a class record."
  (infos '() :type list)
  (functions '() :type list)
  (value '() :type list)
  (class nil))

(defstruct (class-record (:constructor make-class-record (class layout slots supers initargs source documentation &optional report)))
  "The definition of a class. SLOTS are its direct slot definitions. For a condition they are SBCL's
  records of these, and for a structure a list of its only description. REPORT is that of a
  condition."
  class layout slots supers initargs source documentation report)

(defstruct (generic-record (:constructor make-generic-record (methods lambda-list source initial documentation)))
  "The definition of a generic function."
  methods lambda-list source initial documentation)

(defstruct (snapshot (:constructor make-snapshot ()))
  (symbols (make-hash-table :test #'eq) :read-only t)
  (generics (make-hash-table :test #'eq) :read-only t)
  (packages '()))

(defun slot-or-nil (object slot)
  (and slot (slot-exists-p object slot) (slot-boundp object slot) (slot-value object slot)))

(defun condition-class-p (class)
  (and (not (typep class '(or standard-class sb-mop:funcallable-standard-class structure-class built-in-class)))
       (subtypep class 'condition)))

(defun record-class (class)
  (let ((name (class-name class)) (layout (class-layout class)))
    (cond ((typep class '(or standard-class sb-mop:funcallable-standard-class))
           (make-class-record class layout (sb-mop:class-direct-slots class) (sb-mop:class-direct-superclasses class)
                              (sb-mop:class-direct-default-initargs class) (slot-or-nil class definition-source-slot) (documentation class t)))
          ((condition-class-p class)
           (make-class-record class layout (classoid-part name classoid-slots) (sb-mop:class-direct-superclasses class)
                              (classoid-part name classoid-initargs) (classoid-part name classoid-source) (documentation class t)
                              (classoid-part name classoid-report)))
          ((typep class 'structure-class)
           (make-class-record class layout (list (ignore-errors (structure-description name))) '() '() (classoid-part name classoid-source)
                              (documentation class t)))
          (t (make-class-record class layout '() '() '() nil nil)))))

(defun record-generic (function)
  (make-generic-record (sb-mop:generic-function-methods function) (sb-mop:generic-function-lambda-list function)
                       (slot-or-nil function definition-source-slot) (slot-or-nil function initial-methods-slot) (documentation function t)))

(defun global-function (name)
  "The function that NAME names; NIL for a macro and for a name of no function."
  (and (fboundp name)
       (not (and (symbolp name) (or (macro-function name) (special-operator-p name))))
       (fdefinition name)))

(defun record-symbol (symbol)
  "Returns the definitions of SYMBOL; NIL if it has none."
  (let ((infos (info-kinds symbol))
        (function (global-function symbol))
        (setf (global-function `(setf ,symbol)))
        (class (find-class symbol nil))
        (value (and (boundp symbol) (ignore-errors (list (sb-ext:symbol-global-value symbol))))))
    (when (or infos function setf class value)
      (make-symbol-record infos
                          (append (and function (list (cons symbol function))) (and setf (list (cons `(setf ,symbol) setf))))
                          value
                          (and class (record-class class))))))

(define-global *system-generics* '() "The generic functions of SYSTEM-PACKAGE-P packages, found when
  they are first needed.")

(defun system-generics ()
  (or *system-generics*
      (let ((found '()))
        (dolist (package (list-all-packages))
          (when (and (system-package-p package) (string/= (package-name package) "CONSORT"))
            (do-symbols (symbol package)
              (when (eq (symbol-package symbol) package)
                (dolist (name (list symbol `(setf ,symbol)))
                  (let ((function (global-function name)))
                    (when (typep function 'standard-generic-function) (push function found))))))))
        (setf *system-generics* found))))

(defun take-snapshot ()
  "The current definitions."
  (let* ((snapshot (make-snapshot)) (symbols (snapshot-symbols snapshot)) (generics (snapshot-generics snapshot)))
    (dolist (package (list-all-packages))
      (unless (system-package-p package)
        (push (record-package package) (snapshot-packages snapshot))
        (with-package-iterator (next package :internal :external)
          (loop (multiple-value-bind (more symbol) (next)
                  (unless more (return))
                  (when (and (eq (symbol-package symbol) package) (not (gethash symbol symbols)))
                    (let ((record (record-symbol symbol)))
                      (when record
                        (setf (gethash symbol symbols) record)
                        (loop for (nil . function) in (symbol-record-functions record)
                              do (when (typep function 'standard-generic-function)
                                   (setf (gethash function generics) (record-generic function))))))))))))
    (dolist (function (system-generics) snapshot)
      (setf (gethash function generics) (record-generic function)))))

(defun info-of (record name category kind)
  "The value that RECORD has for NAME as a KIND of CATEGORY; NIL if it has none."
  (and record (fifth (find-if (lambda (info) (and (eq (third info) category) (eq (fourth info) kind) (equal (first info) name)))
                              (symbol-record-infos record)))))

(defun function-in (record name)
  (and record (cdr (assoc name (symbol-record-functions record) :test #'equal))))

;;; While definitions are replaced, no method may be missing at any moment, because other threads
;;; call.

(defvar *methods-in-place* nil "True if each method that this thread defines replaces the old one in
  a single store.")
(defvar *old-accessors* '() "The classes that were defined again meanwhile, each with its former
  slots: (CLASS . SLOTS).")

(defvar *old-methods* '() "The generic functions that were defined again meanwhile, each with the
  methods that were in its DEFGENERIC: (FUNCTION . METHODS).")

(defun drop-old-methods ()
  "Removes the methods that are no longer in the DEFGENERIC from which they came, and that nothing
  has replaced."
  (loop for (function . methods) in *old-methods*
        do (dolist (method methods)
             (when (member method (sb-mop:generic-function-methods function) :test #'eq)
               (remove-method function method)))))

(defun drop-accessor (name class specializers)
  (let* ((function (global-function name))
         (method (and (typep function 'standard-generic-function)
                      (= (length specializers) (length (sb-mop:generic-function-argument-precedence-order function)))
                      (find-method function '() specializers nil))))
    (when (and (typep method 'sb-mop:standard-accessor-method) class)
      (remove-method function method))))

(defun drop-old-accessors ()
  "Removes the accessors that classes no longer have."
  (loop for (class . slots) in *old-accessors*
        for now = (sb-mop:class-direct-slots class)
        do (flet ((lost (names)
                    (set-difference (mapcan (lambda (slot) (copy-list (funcall names slot))) slots)
                                    (mapcan (lambda (slot) (copy-list (funcall names slot))) now)
                                    :test #'equal)))
             (dolist (name (lost #'sb-mop:slot-definition-readers))
               (drop-accessor name class (list class)))
             (dolist (name (lost #'sb-mop:slot-definition-writers))
               (drop-accessor name class (list (find-class t) class))))))

(defun call-replacing-in-place (function)
  "Calls FUNCTION, which may define methods, generic functions and classes again. If FUNCTION does
  not return, another call must undo its effects."
  (let ((*methods-in-place* t) (*old-accessors* '()) (*old-methods* '()))
    (multiple-value-prog1 (funcall function)
      (drop-old-accessors)
      (drop-old-methods))))

(replace-methods-in-place (lambda () *methods-in-place*))
(defer-removed-accessors (lambda () *methods-in-place*) (lambda (class slots) (push (cons class slots) *old-accessors*)))
(defer-removed-methods (lambda () *methods-in-place*) (lambda (function methods) (push (cons function methods) *old-methods*)))
