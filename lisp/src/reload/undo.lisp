;;;; Undoing a reload.

(in-package :consort)

(defstruct (reload (:constructor make-reload (what symbol-differences generic-differences package-differences times)))
  "The changes of one reload, by which it can be undone. TIMES are ASDF's records of the times of
  its operations before the reload, as from OPERATION-TIMES."
  (what "" :type string) symbol-differences generic-differences package-differences times)

(define-global *reloads* '() "The reloads that can be undone, newest first.")
(defconstant +reloads-kept+ 50 "The maximum number of reloads that can be undone.")

;;; The compiler's database

(defparameter *class-infos* '((:type :kind) (:type :source-location) (:type :documentation))
  "The entries that belong to a class if the symbol names one.")

(defun restorable-info-p (info class-p)
  (not (and class-p (find-if (lambda (pair) (and (eq (first pair) (third info)) (eq (second pair) (fourth info)))) *class-infos*))))

(defun restore-infos (before after class-p)
  "Restores the compiler's entries about a symbol from those of the record AFTER to those of
  BEFORE."
  (let ((old (and before (symbol-record-infos before))) (new (and after (symbol-record-infos after))))
    (flet ((counterpart (info list)
             (find-if (lambda (other) (and (eql (second other) (second info)) (equal (first other) (first info)))) list)))
      (dolist (info new)
        (when (and (restorable-info-p info class-p) (not (counterpart info old)))
          (clear-info-values (first info) (list (second info)))))
      (dolist (info old)
        (let ((now (counterpart info new)))
          (when (and (restorable-info-p info class-p) (not (and now (eq (fifth now) (fifth info)))))
            (set-info-value (first info) (second info) (fifth info))))))))

;;; Functions, macros, variables

(defun restore-function (name before after)
  "Makes NAME name the function BEFORE again, or none if that is NIL, if it still names AFTER. This
  is a single store, so that no caller finds the name unbound."
  (let ((now (global-function name)))
    (cond ((eq before after) t)
          ((not (eq now after))
           (cannot-undo "~S is left as it is: it was defined again since" name)
           nil)
          (before (setf (fdefinition name) before) t)
          (t (fmakunbound name) t))))

(defun restore-macro (symbol before after)
  "Makes SYMBOL the macro BEFORE again, or none if that is NIL, if it still is the macro AFTER."
  (cond ((eq before after) t)
        ((not (eq (macro-function symbol) after))
         (cannot-undo "~S is left as it is: it was defined again since" symbol)
         nil)
        (before (setf (macro-function symbol) before) t)
        (t (fmakunbound symbol) t)))

(defun restore-symbol (difference kept)
  "Restores the definitions of a symbol except for its class. KEPT has the names of functions that
  belong to structures that stay unchanged."
  (let* ((symbol (symbol-difference-symbol difference)) (before (symbol-difference-before difference)) (after (symbol-difference-after difference))
         (class-p (or (and before (symbol-record-class before)) (and after (symbol-record-class after))))
         (old-macro (info-of before symbol :function :macro-function)))
    (cond ((structure-changed-p difference)
           (cannot-undo "the structure ~S keeps its new layout, and with it ~{~S~^, ~}" symbol (remove nil (structure-names symbol))))
          ((member symbol kept :test #'eq))
          (t
           (attempting ("~S could not be put back" symbol)
             (restore-constant symbol before after)
             (when (and (restore-macro symbol old-macro (info-of after symbol :function :macro-function))
                        (or old-macro (restore-function symbol (function-in before symbol) (function-in after symbol)))
                        (let ((setf `(setf ,symbol)))
                          (restore-function setf (function-in before setf) (function-in after setf))))
               (restore-infos before after class-p))
             (unless (or (eq (variable-source before symbol) (variable-source after symbol)) (constant-p before after symbol))
               (restore-variable symbol before after)))))))

(defun constant-p (before after symbol)
  "Returns true if SYMBOL is a constant in both records."
  (and (info-of before symbol :source-location :constant) (info-of after symbol :source-location :constant) t))

(defun restore-constant (symbol before after)
  (when (and (constant-p before after symbol) (not (eql (first (symbol-record-value before)) (first (symbol-record-value after)))))
    (handler-bind ((sb-ext:defconstant-uneql (lambda (condition) (continue condition))))
      (eval `(defconstant ,symbol ',(first (symbol-record-value before)))))))

(defun restore-variable (symbol before after)
  "Gives SYMBOL the value from before the reload, or none. If the reload left the value alone, as for
  a DEFVAR, so does this, because the program may have set the variable since."
  (let ((old (and before (symbol-record-value before))) (new (and after (symbol-record-value after))))
    (cond ((if old (and new (eq (first old) (first new))) (null new)))
          (old (setf (sb-ext:symbol-global-value symbol) (first old)))
          (t (makunbound symbol)))))

;;; Structures. Code that uses them contains their sizes and the positions of their slots.

(defun structure-changed-p (difference)
  "Returns true for a structure whose layout changed."
  (let ((before (symbol-difference-before difference)) (after (symbol-difference-after difference)))
    (and before after (symbol-record-class before) (symbol-record-class after)
         (typep (class-record-class (symbol-record-class after)) 'structure-class)
         (not (eq (class-record-layout (symbol-record-class before)) (class-record-layout (symbol-record-class after)))))))

;;; Classes

(defun slot-initargs (slot)
  "Returns a direct SLOT definition in the form that ENSURE-CLASS takes."
  (append (list :name (sb-mop:slot-definition-name slot)
                :initargs (sb-mop:slot-definition-initargs slot)
                :readers (sb-mop:slot-definition-readers slot)
                :writers (sb-mop:slot-definition-writers slot)
                :type (sb-mop:slot-definition-type slot)
                :allocation (sb-mop:slot-definition-allocation slot)
                :documentation (documentation slot t))
          (let ((function (sb-mop:slot-definition-initfunction slot)))
            (and function (list :initform (sb-mop:slot-definition-initform slot) :initfunction function)))))

(defvar *own-methods* '() "The accessor methods that restored conditions made.")

(defun note-accessors (class slots)
  "Notes the accessors that the definition of a condition made."
  (dolist (slot slots)
    (dolist (name (append (condition-slot-readers slot) (condition-slot-writers slot)))
      (let ((function (global-function name)))
        (when (typep function 'standard-generic-function)
          (dolist (method (sb-mop:generic-function-methods function))
            (when (member class (sb-mop:method-specializers method) :test #'eq)
              (push method *own-methods*))))))))

(defun restore-structure (symbol before)
  "Restores SBCL's description of a structure whose layout is unchanged. It has the initial forms of
  the slots, which structures that include the structure need. Also restores its source and its
  documentation."
  (setf (layout-description (class-record-layout before)) (first (class-record-slots before)))
  (let ((classoid (find-classoid symbol nil)))
    (when (and classoid (slot-exists-p classoid classoid-source))
      (setf (slot-value classoid classoid-source) (class-record-source before))))
  (setf (documentation symbol 'structure) (class-record-documentation before)))

(defun restore-class (difference)
  (let* ((symbol (symbol-difference-symbol difference))
         (before (and (symbol-difference-before difference) (symbol-record-class (symbol-difference-before difference))))
         (after (and (symbol-difference-after difference) (symbol-record-class (symbol-difference-after difference)))))
    (when (and (or before after) (or (null before) (null after) (class-differs-p before after)) (not (structure-changed-p difference)))
      (attempting ("the class ~S could not be put back" symbol)
        (cond ((null before)
               (when (eq (find-class symbol nil) (class-record-class after))
                 (setf (find-class symbol) nil)))
              ((condition-class-p (class-record-class before))
               (unless (and after (eq (class-record-class before) (class-record-class after)))
                 (setf (find-class symbol) (class-record-class before)))
               (define-condition-again symbol (mapcar #'class-name (class-record-supers before)) (class-record-slots before) (class-record-initargs before)
                                       (class-record-report before) (class-record-source before) (class-record-documentation before))
               (note-accessors (class-record-class before) (class-record-slots before)))
              ((and after (typep (class-record-class before) 'structure-class) (eq (class-record-layout before) (class-record-layout after)))
               (restore-structure symbol before))
              ((not (typep (class-record-class before) '(or standard-class sb-mop:funcallable-standard-class)))
               (unless (and after (eq (class-record-layout before) (class-record-layout after)))
                 (cannot-undo "~S, a ~A, is left as it is" symbol (class-word (class-record-class before)))))
              (t
               (unless (and after (eq (class-record-class before) (class-record-class after)))
                 (setf (find-class symbol) (class-record-class before)))
               (sb-mop:ensure-class symbol
                                    :metaclass (class-of (class-record-class before))
                                    :direct-superclasses (class-record-supers before)
                                    :direct-slots (mapcar #'slot-initargs (class-record-slots before))
                                    :direct-default-initargs (class-record-initargs before)
                                    :documentation (class-record-documentation before))
               (setf (slot-value (class-record-class before) definition-source-slot) (class-record-source before))))))))

;;; Generic functions

(defun restore-generic (difference)
  "Restores the methods and the description of a generic function. Methods that were added since by
  other means stay."
  (let* ((function (generic-difference-function difference))
         (before (generic-difference-before difference)) (after (generic-difference-after difference)))
    (when before
      (attempting ("the generic function ~S could not be put back" (sb-mop:generic-function-name function))
        (unless (equal (generic-record-lambda-list before) (sb-mop:generic-function-lambda-list function))
          ;; Methods that do not fit the lambda list cannot exist at the same time.
          (unless (congruent-p (generic-record-lambda-list before) (sb-mop:generic-function-lambda-list function))
            (dolist (method (sb-mop:generic-function-methods function))
              (when (member method (generic-record-methods after) :test #'eq)
                (unless (member method (generic-record-methods before) :test #'eq) (remove-method function method)))))
          (reinitialize-instance function :lambda-list (generic-record-lambda-list before)))
        (dolist (method (generic-record-methods before))
          (when (and (written-method-p method)
                     (not (member method (sb-mop:generic-function-methods function) :test #'eq)))
            (let ((now (find method (sb-mop:generic-function-methods function) :test #'same-method-p)))
              (cond ((member now *own-methods* :test #'eq))
                    ((and now (not (member now (generic-record-methods after) :test #'eq)))
                     (cannot-undo "the method ~S is left as it is: it was defined again since" (method-name function method)))
                    (t (add-method function method))))))
        (dolist (method (sb-mop:generic-function-methods function))
          (when (and (written-method-p method)
                     (member method (generic-record-methods after) :test #'eq)
                     (not (member method (generic-record-methods before) :test #'eq)))
            (remove-method function method)))
        (when (generic-record-source before)
          (setf (slot-value function definition-source-slot) (generic-record-source before)))
        (when (and initial-methods-slot (slot-exists-p function initial-methods-slot))
          (setf (slot-value function initial-methods-slot) (generic-record-initial before)))
        (unless (equal (documentation function t) (generic-record-documentation before))
          (setf (documentation function t) (generic-record-documentation before)))))))

;;; All differences

(defun undo-differences (symbol-differences generic-differences package-differences times)
  "Undoes the differences of two snapshots. Returns notes on those that could not be undone, as
  strings."
  (let ((*undo-notes* '()) (*own-methods* '()))
    (without-interrupts
      (handler-bind ((warning #'muffle-warning))
        (sb-ext:without-package-locks
          (call-replacing-in-place (lambda ()
                                     (mapc #'restore-class symbol-differences)
                                     (mapc #'restore-generic generic-differences)))
          (let ((kept (loop for each in symbol-differences when (structure-changed-p each) append (structure-names (symbol-difference-symbol each)))))
            (dolist (each symbol-differences) (restore-symbol each kept)))
          ;; This is last, because symbols can only be removed if they have no meaning.
          (loop for (before . after) in package-differences do (restore-package before after))))
      (restore-times times))
    (reverse *undo-notes*)))

(defun remember-reload (reload)
  (let ((reloads (cons reload *reloads*)))
    (setf *reloads* (if (> (length reloads) +reloads-kept+) (subseq reloads 0 +reloads-kept+) reloads))))

;;; ASDF's records. After a reload is undone, the next load must find that the sources are newer.

(defun operation-times ()
  "Returns ASDF's records of every component, (COMPONENT TABLE . ALIST) for each."
  (let ((times (find-symbol "COMPONENT-OPERATION-TIMES" "ASDF/COMPONENT")) (result '()))
    (when times
      (labels ((look (component)
                 (let ((table (funcall times component)) (alist '()))
                   (maphash (lambda (key value) (push (cons key value) alist)) table)
                   (push (list* component table alist) result))
                 (when (typep component 'asdf:parent-component)
                   (mapc #'look (asdf:component-children component)))))
        (dolist (name (asdf:registered-systems))
          (let ((system (asdf:registered-system name)))
            (when system (look system))))))
    result))

(defun times-without (files times)
  "TIMES as if FILES, names, had never been loaded. Times are whole seconds, and a file may be newer
  by less than that."
  (let ((table (same-file-table files)))
    (loop for (component times . alist) in times
          for true = (and (typep component 'asdf:cl-source-file) (ignore-errors (probe-file (asdf:component-pathname component))))
          collect (list* component times (if (and true (gethash (namestring true) table)) '() alist)))))

(defun restore-times (times)
  (loop for (nil table . alist) in times
        do (clrhash table)
           (loop for (key . value) in alist do (setf (gethash key table) value))))
