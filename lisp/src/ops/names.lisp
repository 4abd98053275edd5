;;;; Queries about names (docs/wire.md): the exports of a package, the meanings of a name, a
;;;; symbol's home package, the files of a system. The only user code that may run here is methods
;;;; on DOCUMENTATION and PRINT-OBJECT, and system definitions.

(in-package :consort)

(defconstant +most-names+ 2000 "The maximum number of exports in one answer.")
(defconstant +most-symbols+ 20 "The maximum number of symbols of one name in one answer.")

(defun first-line (text)
  "The first line of TEXT without blanks at its ends."
  (string-trim " " (subseq text 0 (or (position #\Newline text) (length text)))))

(defun printed-lambda-list (symbol)
  "The lambda list of the operator SYMBOL as a string, in lower case; NIL if SYMBOL is not fbound."
  (let ((*print-case* :downcase) (*print-pretty* nil) (*print-length* 50) (*print-level* 5)
        (*package* (or (symbol-package symbol) *package*)))
    (when (fboundp symbol)
      (let ((list (ignore-errors (sb-introspect:function-lambda-list symbol))))
        (if list (princ-to-string list) "()")))))

(defun naming-kinds (symbol)
  "The kinds of things that SYMBOL names, each with its documentation: a list of objects with the
  fields `kind` and `documentation`, the latter null if there is none."
  (let ((class (find-class symbol nil)))
    (flet ((kind (name type)
             (object "kind" name "documentation" (or-null (ignore-errors (documentation symbol type))))))
      (remove nil
              (list (cond ((special-operator-p symbol) (kind "special operator" 'function))
                          ((macro-function symbol) (kind "macro" 'function))
                          ((and (fboundp symbol) (typep (fdefinition symbol) 'generic-function)) (kind "generic function" 'function))
                          ((fboundp symbol) (kind "function" 'function)))
                    (cond ((keywordp symbol) nil)
                          ((constantp symbol) (kind "constant" 'variable))
                          ((boundp symbol) (kind "variable" 'variable)))
                    (typecase class
                      (null nil)
                      (structure-class (kind "structure" 'structure))
                      (t (kind (if (subtypep class 'condition) "condition" "class") 'type)))
                    (when (compiler-macro-function symbol) (kind "compiler macro" 'compiler-macro))
                    (when (find-package symbol) (kind "package" t)))))))

(defun exported-object (symbol)
  "The entry of SYMBOL in the field `exports` of the answer to \"package-contents\"."
  (let* ((kinds (naming-kinds symbol))
         (text (find-if #'stringp (mapcar (lambda (kind) (field kind "documentation")) kinds))))
    (object "name" (symbol-name symbol)
            "kinds" (mapcar (lambda (kind) (field kind "kind")) kinds)
            "documentation" (if text (first-line text) :null))))

(defun sorted-exports (package)
  "The external symbols of PACKAGE, by name."
  (let ((exports '()))
    (do-external-symbols (symbol package)
      (push symbol exports))
    (sort exports #'string<)))

(defun most-names (symbols function)
  "The values of FUNCTION for SYMBOLS, as many as an answer may have."
  (mapcar function (subseq symbols 0 (min (length symbols) +most-names+))))

(define-operation "package-contents" :interruptible (id params)
  (let* ((name (param params "name" 'string))
         (package (find-package-named name))
         (exports (sorted-exports package)))
    (flet ((names (packages) (sort (mapcar #'package-name packages) #'string<)))
      (object "name" (package-name package)
              "nicknames" (copy-list (package-nicknames package))
              "documentation" (or-null (documentation package t))
              "uses" (names (package-use-list package))
              "used_by" (names (package-used-by-list package))
              "count" (length exports)
              "exports" (most-names exports #'exported-object)))))

(defun symbols-written (written)
  "The symbols that WRITTEN, such as `cl:car`, `foo::bar` or `bar`, may denote. Without a package
  prefix these are all symbols of the name that name something or are in CL-USER. The name is looked
  up in upper case first, and as it is written if there is none. Signals an error if there is no
  such package."
  (let* ((colon (position #\: written))
         (name (string-left-trim ":" (if colon (subseq written colon) written))))
    (flet ((symbols-named (name)
             (cond ((null colon)
                    (remove-if-not (lambda (symbol) (or (naming-kinds symbol) (eq (symbol-package symbol) (find-package :cl-user))))
                                   (remove-duplicates (find-all-symbols name))))
                   (t
                    (let* ((prefix (subseq written 0 colon))
                           (package (if (zerop colon)
                                        (find-package :keyword)
                                        (find-package-named prefix))))
                      (multiple-value-bind (symbol status) (find-symbol name package)
                        (when status (list symbol))))))))
      (or (symbols-named (string-upcase name)) (symbols-named name)))))

(defun symbol-object (symbol)
  "The entry of SYMBOL in the answer to \"symbol-facts\"."
  (let ((home (symbol-package symbol)))
    (object "name" (symbol-name symbol)
            "package" (if home (package-name home) :null)
            "external" (bool (and home (eq :external (nth-value 1 (find-symbol (symbol-name symbol) home)))))
            "lambda_list" (or-null (printed-lambda-list symbol))
            "kinds" (naming-kinds symbol))))

(define-operation "symbol-facts" :interruptible (id params)
  (let ((symbols (symbols-written (param params "name" 'string))))
    (object "symbols" (mapcar #'symbol-object (subseq symbols 0 (min +most-symbols+ (length symbols)))))))

(defun home-of (package name)
  "The list of the name of the home package and the name of the symbol NAME that is accessible in
  PACKAGE; :NULL if there is no such package, symbol or home package. PACKAGE and NAME are strings."
  (let ((package (package-called package)))
    (multiple-value-bind (symbol status) (if package (find-symbol name package) (values nil nil))
      (if (and status (symbol-package symbol))
          (list (package-name (symbol-package symbol)) (symbol-name symbol))
          :null))))

(defun undefined-symbol-p (package name)
  "Returns true if the symbol NAME that is accessible in PACKAGE names nothing, as far as the compiler
  records it. Reading code makes such symbols."
  (let ((package (package-called package)))
    (multiple-value-bind (symbol status) (if package (find-symbol name package) (values nil nil))
      ;; The dispatcher calls this, so no class is looked up, which may need a lock.
      (and status
           (not (fboundp symbol))
           (not (boundp symbol))
           (not (fboundp (list 'setf symbol)))
           (null (info-kinds symbol))
           (not (method-combination-p symbol))))))

(define-operation "homes" :dispatcher (id params)
  (let ((pairs (param params "symbols" 'vector)))
    (object "homes" (map 'list (lambda (pair) (home-of (elt pair 0) (elt pair 1))) pairs)
            "undefined" (loop for pair across pairs
                              for index from 0
                              when (undefined-symbol-p (elt pair 0) (elt pair 1)) collect index)
            "features" (feature-names))))

(defun system-source-files (component)
  "The native namestrings of the Lisp source files of the ASDF COMPONENT, in the order of its
  children."
  (typecase component
    (asdf:cl-source-file (list (sb-ext:native-namestring (asdf:component-pathname component))))
    (asdf:parent-component (mapcan #'system-source-files (copy-list (asdf:component-children component))))))

(define-operation "system-files" :interruptible (id params)
  (let ((system (asdf:find-system (string-downcase (param params "system" 'string)) nil)))
    (object "files" (and system (system-source-files system)))))

;;; The names of systems, for completion.

(defconstant +most-systems+ 4000 "The maximum number of systems in an answer.")
(defconstant +registry-seconds+ 30 "The time in seconds for which names found in the source registry
  are used again.")
(define-global *registry-names* '(0 . ()) "The time when the names of the source registry were
  collected, as a universal time, and the names. Not used once ASDF has a registry of its own.")

(defun registry-names ()
  "The names of the systems in ASDF's source registry. A registry that ASDF has not made yet is
  computed without being made ASDF's."
  (flet ((names (registry)
           (loop for name being the hash-keys of registry collect name)))
    (cond (asdf/source-registry:*source-registry*
           (names asdf/source-registry:*source-registry*))
          ((< (get-universal-time) (+ (car *registry-names*) +registry-seconds+))
           (cdr *registry-names*))
          (t
           (let ((registry (make-hash-table :test #'equal)))
             ;; A configuration that ASDF refuses is reported when a system is loaded.
             (handler-case (asdf/source-registry:compute-source-registry nil registry)
               (error () (clrhash registry)))
             (cdr (setf *registry-names* (cons (get-universal-time) (names registry)))))))))

(defun central-registry-names ()
  "The names of the files of systems in the directories of ASDF:*CENTRAL-REGISTRY*. Its entries that
  are code are not evaluated."
  (loop for entry in asdf:*central-registry*
        when (and (typep entry '(or string pathname)) (uiop:absolute-pathname-p entry))
          nconc (mapcar #'pathname-name (uiop:directory-files entry "*.asd"))))

(defun system-names (typed)
  "The names of the systems that ASDF knows or finds in its registries and that contain all
  characters of TYPED, sorted."
  (flet ((fits (name)
           (and (stringp name) (every (lambda (char) (find char name :test #'char-equal)) typed))))
    (sort (remove-duplicates (remove-if-not #'fits (append (asdf:registered-systems) (central-registry-names) (registry-names)))
                             :test #'string=)
          #'string<)))

(define-operation "system-names" :interruptible (id params)
  (let ((names (system-names (param params "text" 'string))))
    (object "systems" (subseq names 0 (min +most-systems+ (length names))))))
