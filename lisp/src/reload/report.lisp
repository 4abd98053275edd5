;;;; The report of a reload.

(in-package :consort)

(defconstant +names-limit+ 500 "The maximum number of names in each list of a report.")

(defun definition-name-text (name)
  "NAME with its package, whatever the current package is. Names of COMMON-LISP have none."
  (with-standard-io-syntax
    (let ((*package* (find-package "CONSORT")) (*print-readably* nil) (*print-length* 20) (*print-level* 6))
      (handler-case (prin1-to-string name)
        (error () "#<a name that cannot be printed>")))))

(defun change-text (change)
  "The text of CHANGE, such as `function MY-APP::COMPUTE`."
  (let ((name (change-name change)))
    (format nil "~A ~A" (change-kind change) (if (stringp name) name (definition-name-text name)))))

(defun bounded (texts)
  "TEXTS sorted, without duplicates. If there are too many, the first and a text with the number of
  the others."
  (let* ((sorted (sort (remove-duplicates texts :test #'string=) #'string<)) (more (nthcdr +names-limit+ sorted)))
    (coerce (if more (append (subseq sorted 0 +names-limit+) (list (format nil "... and ~D more" (length more)))) sorted) 'vector)))

;;; Sources of definitions

(defun same-file-table (files)
  "A table whose keys are the true names of FILES, which are native names."
  (let ((table (make-hash-table :test #'equal)))
    (dolist (file files table)
      (let ((true (ignore-errors (probe-file (sb-ext:parse-native-namestring file)))))
        (when true (setf (gethash (namestring true) table) t))))))

(defun source-pathname (source)
  (and source (sb-introspect:definition-source-pathname source)))

(defun from-files-p (pathname table cache)
  "Returns true if PATHNAME is one of the files in TABLE."
  (and pathname
       (let ((name (namestring pathname)))
         (multiple-value-bind (known present) (gethash name cache)
           (if present
               known
               (setf (gethash name cache)
                     (let ((true (ignore-errors (probe-file (translate-logical-pathname pathname)))))
                       (and true (gethash (namestring true) table)))))))))

(defun object-pathname (object)
  (source-pathname (ignore-errors (sb-introspect:find-definition-source object))))

(defun named-pathname (name kind)
  (source-pathname (first (ignore-errors (sb-introspect:find-definition-sources-by-name name kind)))))

(defun structure-function-p (record symbol)
  "Returns true if the function SYMBOL is part of a structure, and so is made and removed with it."
  (info-of record symbol :function :source-transform))

(defun gone-definitions (before after files)
  "Returns, as strings, the definitions that came from FILES before these were loaded again, and
  that the files no longer contain."
  (let ((table (same-file-table files)) (cache (make-hash-table :test #'equal)) (gone '()))
    (flet ((add-if-gone (word name old new pathname)
             (when (and old (eq old new) (from-files-p (funcall pathname) table cache))
               (push (format nil "~A ~A" word (definition-name-text name)) gone))))
      (maphash
       (lambda (symbol old)
         (let ((new (gethash symbol (snapshot-symbols after))))
           (when new
             (dolist (name (list symbol `(setf ,symbol)))
               (let ((function (function-in old name)))
                 (unless (or (null function) (structure-function-p old symbol) (typep function 'generic-function))
                   (add-if-gone (function-word name function) name function (function-in new name) (lambda () (object-pathname function))))))
             (let ((macro (info-of old symbol :function :macro-function)))
               (add-if-gone "macro" symbol macro (info-of new symbol :function :macro-function) (lambda () (object-pathname macro))))
             (add-if-gone "variable" symbol (variable-source old symbol) (variable-source new symbol)
                   (lambda () (or (named-pathname symbol :variable) (named-pathname symbol :constant))))
             (let ((class (symbol-record-class old)))
               (when (and class (class-record-source class) (symbol-record-class new)
                          (eq (class-record-source class) (class-record-source (symbol-record-class new))))
                 (add-if-gone (class-word (class-record-class class)) symbol (class-record-class class) (class-record-class (symbol-record-class new))
                       (lambda () (some (lambda (kind) (named-pathname symbol kind)) '(:class :structure :condition)))))))))
       (snapshot-symbols before))
      (maphash
       (lambda (function old)
         (let ((new (gethash function (snapshot-generics after))))
           (when new
             (when (and (generic-record-source old) (eq (generic-record-source old) (generic-record-source new)))
               (add-if-gone "generic function" (sb-mop:generic-function-name function) function function (lambda () (object-pathname function))))
             (dolist (method (generic-record-methods old))
               (when (and (written-method-p method) (member method (generic-record-methods new) :test #'eq))
                 (add-if-gone "method" (method-name function method) method method (lambda () (object-pathname method))))))))
       (snapshot-generics before)))
    gone))

;;; Callers that still contain old code

(defstruct (old-code (:constructor make-old-code ()))
  "Changed definitions that code may still contain. Three tables have the names of functions that
  were inlined, of macros, and of constants. VALUES maps the old values of variables and constants
  to their names. It has only values that no literal makes, because code does not show which of two
  equal literals it contains."
  (inlined (make-hash-table :test #'equal) :read-only t)
  (macros (make-hash-table :test #'eq) :read-only t)
  (constants (make-hash-table :test #'eq) :read-only t)
  (values (make-hash-table :test #'eq) :read-only t))

(defun old-code-empty-p (old)
  (every (lambda (table) (zerop (hash-table-count table)))
         (list (old-code-inlined old) (old-code-macros old) (old-code-constants old) (old-code-values old))))

(defun find-old-code (changes symbol-differences)
  "The OLD-CODE of a reload."
  (let ((old (make-old-code)))
    (dolist (change changes)
      (let ((kind (change-kind change)) (name (change-name change)) (before (change-before change)) (after (change-after change)))
        (cond ((null before))
              ((string= kind "macro") (setf (gethash name (old-code-macros old)) t))
              ((member kind '("constant" "variable") :test #'string=)
               (unless (and after (eql (first before) (first after)))
                 (when (string= kind "constant") (setf (gethash name (old-code-constants old)) t))
                 (when (typep (first before) '(or function standard-object structure-object hash-table))
                   (setf (gethash (first before) (old-code-values old)) name)))))))
    (dolist (each symbol-differences old)
      (dolist (info (and (symbol-difference-before each) (symbol-record-infos (symbol-difference-before each))))
        (when (and (eq (third info) :function) (eq (fourth info) :inlinep) (member (fifth info) '(inline sb-ext:maybe-inline))
                   (not (eq (function-in (symbol-difference-before each) (first info)) (function-in (symbol-difference-after each) (first info)))))
          (setf (gethash (first info) (old-code-inlined old)) t))))))

(defun stale-uses (function old)
  "Returns texts about the OLD code that FUNCTION contains."
  (let ((code (code-of function)) (calls '()) (stale '()))
    (flet ((note (words name)
             (pushnew (format nil "~A ~A" words (definition-name-text name)) stale :test #'string=)))
      (when code
        (map-code-uses (lambda (kind name)
                         (ecase kind
                           (:calls (when (gethash name (old-code-inlined old)) (pushnew name calls :test #'equal)))
                           (:macroexpands (when (gethash name (old-code-macros old)) (note "expanded" name)))
                           (:references (when (gethash name (old-code-constants old)) (note "has the old value of" name)))))
                       code)
        (unless (zerop (hash-table-count (old-code-values old)))
          (map-code-constants (lambda (value)
                                (let ((name (gethash value (old-code-values old))))
                                  (when name (note "has the old value of" name))))
                              code))
        (when calls
          (let ((called (sb-introspect:find-function-callees function))) ; at run time
            (dolist (name calls)
              (unless (member (global-function name) called :test #'eq)
                (note "inlined" name)))))))
    stale))

(defun stale-callers (changes symbol-differences after &optional (of (constantly t)))
  "Texts about the functions and methods that were not compiled again although a definition that
  they inlined, expanded or took the value of has changed. Only definitions whose names satisfy OF
  count."
  (let ((old (find-old-code (remove-if-not of changes :key #'change-name)
                            (remove-if-not of symbol-differences :key #'symbol-difference-symbol)))
        (fresh (make-hash-table :test #'eq)) (stale '()))
    (unless (old-code-empty-p old)
      (dolist (change changes)
        (setf (gethash (change-after change) fresh) t))
      (flet ((add-stale-uses (word name object function)
               (unless (gethash object fresh)
                 (dolist (use (ignore-errors (stale-uses function old)))
                   (push (format nil "~A ~A ~A" word (definition-name-text name) use) stale)))))
        (maphash (lambda (symbol record)
                   (loop for (name . function) in (symbol-record-functions record)
                         do (add-stale-uses (function-word name function) name function function))
                   (let ((macro (info-of record symbol :function :macro-function)))
                     (when macro (add-stale-uses "macro" symbol macro macro))))
                 (snapshot-symbols after))
        (maphash (lambda (generic record)
                   (dolist (method (generic-record-methods record))
                     (when (written-method-p method)
                       (add-stale-uses "method" (method-name generic method) method
                             (let ((function (sb-mop:method-function method)))
                               (or (ignore-errors (fast-method-function function)) function))))))
                 (snapshot-generics after))))
    stale))

(defun slot-shape (slot)
  "Returns the part of SLOT, a slot of a class record, that determines the layout of instances. The
  description of a structure changes only when the structure gets a new layout."
  (cond ((typep slot 'sb-mop:slot-definition)
         (list (sb-mop:slot-definition-name slot) (sb-mop:slot-definition-allocation slot)))
        ((typep slot '(or null structure-object))
         (or (ignore-errors (list (condition-slot-readers slot) (condition-slot-writers slot))) slot))
        (t slot)))

(defun class-shape (record)
  (list (mapcar #'class-name (class-record-supers record))
        (mapcar #'slot-shape (class-record-slots record))))

(defun same-shape-p (before after)
  "Returns true if the definitions of the class itself give instances the same layout. A class that
  is defined again may still get a new layout object."
  (handler-case (equal (class-shape before) (class-shape after))
    (error () nil)))

(defun changed-layouts (changes)
  "Texts about the classes and structures whose instances have another layout than before: those
  whose own definitions differ, and their subclasses."
  (let* ((moved (loop for change in changes
                      for before = (change-before change)
                      for after = (change-after change)
                      when (and (class-record-p before) (class-record-p after)
                                (not (eq (class-record-layout before) (class-record-layout after))))
                        collect change))
         (shaped (remove-if (lambda (change) (same-shape-p (change-before change) (change-after change))) moved))
         (classes (mapcar (lambda (change) (class-record-class (change-after change))) shaped)))
    (loop for change in moved
          for class = (class-record-class (change-after change))
          when (or (member change shaped :test #'eq)
                   (some (lambda (above) (and (not (eq above class)) (ignore-errors (subtypep class above)))) classes))
            collect (change-text change))))

;;; The report

(defun texts-with (status changes)
  (loop for change in changes when (eq (change-status change) status) collect (change-text change)))

(defun report-of (what files before after changes symbol-differences)
  "The JSON of Report."
  (object "what" what
          "files" (coerce files 'vector)
          "redefined" (bounded (texts-with :redefined changes))
          "new" (bounded (texts-with :new changes))
          "gone" (bounded (append *variances* (texts-with :removed changes) (and files (gone-definitions before after files))))
          "stale" (bounded (stale-callers changes symbol-differences after))
          "layouts" (bounded (changed-layouts changes))
          "errors" (bounded (mapcar #'failure-text (reverse *passed-over*)))))
