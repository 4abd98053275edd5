;;;; SBCL's internals that hot reload (reload/) uses: the compiler's database about names, the
;;;; definitions that code was compiled from, and methods replaced in one store.

(in-package :consort)

(define-internal set-info-value :function "undoing a reload" ("SB-INT" "SET-INFO-VALUE"))
(define-internal clear-info-values :function "undoing a reload" ("SB-INT" "CLEAR-INFO-VALUES"))
(define-internal meta-info-category :function "undoing a reload" ("SB-IMPL" "META-INFO-CATEGORY") ("SB-INT" "META-INFO-CATEGORY"))
(define-internal definition-source-slot :symbol "undoing a reload" ("SB-PCL" "SOURCE"))
(define-internal initial-methods-slot :symbol "undoing a reload" ("SB-PCL" "INITIAL-METHODS"))
(define-internal fast-method-function :function "finding stale callers" ("SB-PCL" "%METHOD-FUNCTION-FAST-FUNCTION"))
(define-internal generic-function-lock :function "replacing methods that other threads call" ("SB-PCL" "GF-LOCK"))
(define-internal set-methods :symbol "replacing methods that other threads call" ("SB-PCL" "GENERIC-FUNCTION-METHODS"))
(define-internal set-method-function :symbol "replacing methods that other threads call" ("SB-PCL" "METHOD-GENERIC-FUNCTION"))

(define-internal remove-slot-accessors :symbol "replacing accessors that other threads call" ("SB-PCL" "REMOVE-SLOT-ACCESSORS"))

(defun put-method-in-place (generic-function new old)
  "Replaces the method OLD of GENERIC-FUNCTION by NEW, in one store. SBCL's own method of ADD-METHOD
  must be called next and computes the dispatch again. Until then, calls are dispatched as before.
  If it were called alone, that method would first remove OLD, and a call in between would find no
  method."
  (without-interrupts
    (sb-thread:with-recursive-lock ((generic-function-lock generic-function))
      (funcall (fdefinition `(setf ,set-methods))
               (cons new (remove old (sb-mop:generic-function-methods generic-function)))
               generic-function)
      (funcall (fdefinition `(setf ,set-method-function)) nil old)
      (dolist (specializer (sb-mop:method-specializers old))
        (sb-mop:remove-direct-method specializer old)))))

(define-internal generic-arguments :function "replacing methods that other threads call" ("SB-PCL" "GF-ARG-INFO"))
(define-internal check-method-arguments :function "replacing methods that other threads call" ("SB-PCL" "CHECK-METHOD-ARG-INFO"))
(define-internal load-defgeneric-name :symbol "replacing generic functions that other threads call" ("SB-PCL" "LOAD-DEFGENERIC"))

(defun parameters-shape (lambda-list)
  "Returns the parts that must agree between the lambda lists of a generic function and its methods
  (CLHS 7.6.4): the numbers of required and optional parameters, and whether there are others."
  (let* ((rest (member-if (lambda (parameter) (member parameter lambda-list-keywords)) lambda-list))
         (required (ldiff lambda-list rest))
         (optional (and (eq (first rest) '&optional)
                        (loop for parameter in (rest rest) until (member parameter lambda-list-keywords) count t))))
    (list (length required) (or optional 0) (and (intersection '(&rest &key) rest) t))))

(defun congruent-p (lambda-list other)
  "Returns true if LAMBDA-LIST and OTHER have the same PARAMETERS-SHAPE."
  (equal (parameters-shape lambda-list) (parameters-shape other)))

(defun check-arguments (generic-function method)
  "Signals the error that ADD-METHOD would signal about METHOD's lambda list, before any change is
  made."
  (when (and (internal-p 'generic-arguments) (internal-p 'check-method-arguments))
    (check-method-arguments generic-function (generic-arguments generic-function) method)))

(defun defer-removed-methods (wanted-p note)
  "From now on, if WANTED-P returns true, a generic function whose DEFGENERIC is loaded again keeps
  the methods that the DEFGENERIC had defined. NOTE is called with the generic function and those
  methods, so that they can be removed later."
  (when (and (internal-p 'load-defgeneric-name) (internal-p 'initial-methods-slot))
    (encapsulate load-defgeneric-name 'consort
                 (lambda (function name lambda-list &rest more)
                   (let ((old (and (fboundp name) (fdefinition name))))
                     (when (and (funcall wanted-p) (typep old 'standard-generic-function)
                                (congruent-p lambda-list (sb-mop:generic-function-lambda-list old)))
                       (let ((methods (slot-value old initial-methods-slot)))
                         (when methods
                           (funcall note old methods)
                           (setf (slot-value old initial-methods-slot) '())))))
                   (apply function name lambda-list more)))))

(defun observe-compiler-errors (observe)
  "From now on, OBSERVE is called with each error that the compiler reports, a condition or a
  string, in the thread that reports it."
  (when (internal-p 'print-compiler-message-name)
    (encapsulate print-compiler-message-name 'consort-reload
                 (lambda (function stream control arguments &rest more)
                   (when (and (stringp control) (search "caught ERROR" control))
                     (funcall observe (first arguments)))
                   (apply function stream control arguments more)))))

(define-global *replace-in-place-p* (constantly nil) "A function that returns true if a method that
  this thread adds must replace another one in one store.")

(defvar *before-replacement* nil
  "A function that is called before this thread replaces a method in one store. If it exits
  non-locally, the method is kept.")

(define-global *before-adding-method* nil
  "A function that is called with the generic function and the method before a method is added, or
  NIL.")

(defun replace-methods-in-place (wanted-p)
  "From now on, if WANTED-P returns true, a method replaces another one in one store, so that one of
  the two always exists."
  (setf *replace-in-place-p* wanted-p))

;;; This is a method and not an encapsulation of REAL-ADD-METHOD, because that function is itself
;;; the function of ADD-METHOD's only method (pcl/boot.lisp, *!GENERIC-FUNCTION-FIXUPS*), and so
;;; nothing calls it by its name.
(defmethod add-method :around ((generic-function standard-generic-function) (method standard-method))
  (when *before-adding-method* (funcall *before-adding-method* generic-function method))
  (when (and (funcall *replace-in-place-p*) (null (sb-mop:method-generic-function method))
             (internal-p 'generic-function-lock) (internal-p 'set-methods) (internal-p 'set-method-function))
    (let ((old (find-method generic-function (method-qualifiers method) (sb-mop:method-specializers method) nil)))
      (when (and old (congruent-p (sb-mop:method-lambda-list old) (sb-mop:method-lambda-list method)))
        (check-arguments generic-function method)
        (when *before-replacement* (funcall (the function *before-replacement*)))
        (put-method-in-place generic-function method old))))
  (call-next-method))

(defun defer-removed-accessors (wanted-p note)
  "From now on, if WANTED-P returns true, a class that is defined again keeps its old accessors.
  NOTE is called with the class and its old slots, so that those accessors can be removed later."
  (when (internal-p 'remove-slot-accessors)
    (encapsulate remove-slot-accessors 'consort
                 (lambda (function class slots)
                   (if (funcall wanted-p)
                       (funcall note class slots)
                       (funcall function class slots))))))

(defun info-kinds (name)
  "Returns the entries of the compiler's database about the symbol NAME and about names made from
  it: a list of (NAME NUMBER CATEGORY KIND VALUE). Entries are left out that no definition makes, or
  that are kept elsewhere, such as the function itself, counts of calls and assumed types."
  (let ((result '()))
    (call-with-each-info (lambda (name number value)
                           (let ((meta (svref *info-types* number)))
                             (when (and meta (not (eql meta 0)))
                               (let ((kind (meta-info-kind meta)))
                                 (unless (member kind '(:emitted-full-calls :definition :assumed-type :forward-references :package :wired-tls
                                                        :classoid-cell :compiler-layout :builtin))
                                   (push (list name number (meta-info-category meta) kind value) result))))))
                         name)
    result))

(define-internal undefined-warning-contexts :function "where a reload's undefined variables are" ("SB-C" "UNDEFINED-WARNING-WARNINGS"))
(define-internal context-file-name :function "where a reload's undefined variables are" ("SB-C" "COMPILER-ERROR-CONTEXT-FILE-NAME"))
(define-internal context-file-position :function "where a reload's undefined variables are" ("SB-C" "COMPILER-ERROR-CONTEXT-FILE-POSITION"))

(defun undefined-variable-uses ()
  "Returns the variables that this compilation unit uses and nothing defines, in the order of their
  first uses. Each is a list of a name, and the file and the offset of a form that uses the
  variable, if known."
  (loop for warning in (reverse (undefined-warnings))
        when (eq (undefined-warning-kind warning) :variable)
          collect (let ((context (first (ignore-errors (undefined-warning-contexts warning)))))
                    (list (undefined-warning-name warning)
                          (ignore-errors (context-file-name context))
                          (ignore-errors (context-file-position context))))))

(defun code-of (function)
  "The code object that contains FUNCTION, or NIL."
  (ignore-errors (function-code (underlying-function function))))

(defun map-code-uses (function code)
  "Calls FUNCTION with a kind and a name: :CALLS for each function that CODE calls or has inlined,
  :MACROEXPANDS for each macro that was expanded in it, and :REFERENCES for each constant or
  variable that it reads."
  (dotimes (i (code-entries code))
    (map-function-xrefs (lambda (kind name)
                          (when (member kind '(:calls :macroexpands :references)) (funcall function kind name)))
                        (code-entry code i))))

(define-internal code-words :function "what of old values is in code" ("SB-KERNEL" "CODE-HEADER-WORDS"))
(define-internal code-word :function "what of old values is in code" ("SB-KERNEL" "CODE-HEADER-REF"))
(define-internal code-constants-offset :variable "what of old values is in code" ("SB-VM" "CODE-CONSTANTS-OFFSET"))

(defun map-code-constants (function code)
  "Calls FUNCTION with each object that is a constant of CODE."
  (loop for i from code-constants-offset below (code-words code)
        do (funcall function (code-word code i))))

(define-internal find-classoid :function "undoing the redefinition of conditions" ("SB-KERNEL" "FIND-CLASSOID"))
(define-internal classoid-slots :symbol "undoing the redefinition of conditions" ("SB-KERNEL" "SLOTS"))
(define-internal classoid-report :symbol "undoing the redefinition of conditions" ("SB-KERNEL" "REPORT"))
(define-internal classoid-initargs :symbol "undoing the redefinition of conditions" ("SB-KERNEL" "DIRECT-DEFAULT-INITARGS"))
(define-internal classoid-source :symbol "undoing the redefinition of conditions" ("SB-KERNEL" "SOURCE-LOCATION"))
(define-internal condition-slot-name :function "breakpoints in initial forms of conditions" ("SB-KERNEL" "CONDITION-SLOT-NAME"))
(define-internal condition-slot-initfunction :function "breakpoints in initial forms of conditions" ("SB-KERNEL" "CONDITION-SLOT-INITFUNCTION"))
(define-internal condition-slot-readers :function "undoing the redefinition of conditions" ("SB-KERNEL" "CONDITION-SLOT-READERS"))
(define-internal condition-slot-writers :function "undoing the redefinition of conditions" ("SB-KERNEL" "CONDITION-SLOT-WRITERS"))
(define-internal condition-layout :function "undoing the redefinition of conditions" ("SB-KERNEL" "FIND-CONDITION-LAYOUT"))
(define-internal define-condition-of :function "undoing the redefinition of conditions" ("SB-KERNEL" "%DEFINE-CONDITION"))
(define-internal set-condition-report :function "undoing the redefinition of conditions" ("SB-KERNEL" "%SET-CONDITION-REPORT"))
(define-internal layout-description :place "undoing the redefinition of structures" ("SB-KERNEL" "LAYOUT-INFO") ("SB-KERNEL" "WRAPPER-INFO"))

(defun classoid-part (name part)
  "The slot PART, such as CLASSOID-SLOTS, of SBCL's description of the condition class NAME; NIL if
  there is none."
  (let ((classoid (ignore-errors (find-classoid name nil))))
    (and classoid part (slot-exists-p classoid part) (slot-value classoid part))))

(defun define-condition-again (name parents slots initargs report source documentation)
  "Defines the condition NAME again from the values that CLASSOID-PART returned for it."
  (flet ((all (accessors) (remove-duplicates (mapcan (lambda (slot) (copy-list (funcall accessors slot))) slots))))
    (define-condition-of name parents (condition-layout name parents) slots initargs (all #'condition-slot-readers) (all #'condition-slot-writers)
                         source documentation)
    (set-condition-report name report)))

(define-internal structure-description :function "undoing a reload" ("SB-KERNEL" "FIND-DEFSTRUCT-DESCRIPTION"))
(define-internal structure-constructors :function "undoing a reload" ("SB-KERNEL" "DD-CONSTRUCTORS"))
(define-internal structure-copier :function "undoing a reload" ("SB-KERNEL" "DD-COPIER-NAME"))
(define-internal structure-predicate :function "undoing a reload" ("SB-KERNEL" "DD-PREDICATE-NAME"))
(define-internal structure-slots :function "undoing a reload" ("SB-KERNEL" "DD-SLOTS"))
(define-internal slot-accessor :function "undoing a reload" ("SB-KERNEL" "DSD-ACCESSOR-NAME"))

(defun structure-names (name)
  "The names of the functions that the definition of the structure NAME made. NIL stands for a
  copier or predicate that it did not make."
  (let ((description (ignore-errors (structure-description name))))
    (when description
      (append (mapcar (lambda (constructor) (if (consp constructor) (car constructor) constructor)) (structure-constructors description))
              (list (structure-copier description) (structure-predicate description))
              (mapcar #'slot-accessor (structure-slots description))))))

(define-internal compile-forms-name :symbol "following a package that a macro enters" ("SB-C" "%DO-FORMS-FROM-INFO"))

(defvar *note-package* nil
  "A function that is called with the package that is current after the last form of a file that
  this thread compiles, or NIL.")

(when (and (internal-p 'compile-forms-name) (fboundp compile-forms-name))
  (encapsulate compile-forms-name 'consort-reload
               (lambda (function &rest arguments)
                 (declare (function function))
                 (multiple-value-prog1 (apply function arguments)
                   (when *note-package* (funcall (the function *note-package*) *package*))))))
