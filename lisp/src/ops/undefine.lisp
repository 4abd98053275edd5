;;;; `removable`, `undefine`: lists the definitions of a name that can be removed, and removes them,
;;;; as a change that `undo-reload` undoes as far as possible.

(in-package :consort)

(defun symbol-to-undefine (params)
  "The symbol that PARAMS name. Refuses a symbol that does not exist or whose package is locked."
  (let* ((text (param params "name" 'string))
         (name (parse-function-name text (reload-package-param params)))
         (symbol (if (consp name) (second name) name))
         (home (and symbol (symbol-package symbol))))
    (unless symbol
      (refuse "not-found" "There is no symbol ~A." text))
    (unless home
      (refuse "not-found" "~A is in no package." text))
    (when (or (system-package-p home) (sb-ext:package-locked-p home))
      (refuse "package-locked" "~A belongs to the package ~A, which is locked: its definitions cannot be removed." text (package-name home)))
    symbol))

(defun written-specializer (specializer)
  "SPECIALIZER as it is written in a DEFMETHOD: in lower case, without packages."
  (typecase specializer
    (class (string-downcase (symbol-name (class-name specializer))))
    (sb-mop:eql-specializer
     (let ((object (sb-mop:eql-specializer-object specializer)))
       (string-downcase (with-terse-printing () (format nil "(eql ~S)" object)))))
    (t "")))

(defun method-to-undefine (symbol params)
  "The method of the generic function SYMBOL that `method` in PARAMS describes; NIL if it describes
  none or several."
  (let* ((wanted (param params "method" '(satisfies object-p) :default nil))
         (function (and wanted (global-function (if (param wanted "setf" 'boolean :default nil) `(setf ,symbol) symbol)))))
    (when (typep function 'standard-generic-function)
      (flet ((texts (key) (coerce (param wanted key 'vector :default #()) 'list)))
        (let ((found (remove-if-not (lambda (method)
                                      (and (equal (texts "qualifiers") (mapcar (lambda (each) (string-downcase (prin1-to-string each))) (method-qualifiers method)))
                                           (equal (texts "specializers") (mapcar #'written-specializer (sb-mop:method-specializers method)))))
                                    (sb-mop:generic-function-methods function))))
          (and found (null (rest found)) (first found)))))))

(defun variable-kind-info (symbol)
  "The compiler's entry about the kind of variable that SYMBOL is, in the form of INFO-KINDS."
  (find-if (lambda (info) (and (eq (first info) symbol) (eq (third info) :variable) (eq (fourth info) :kind))) (info-kinds symbol)))

(defun forget-variable (symbol)
  "Removes the compiler's entries about SYMBOL as a variable, constant or symbol macro."
  (dolist (info (info-kinds symbol))
    (destructuring-bind (name number category kind value) info
      (declare (ignore value))
      (when (and (eq name symbol)
                 (or (eq category :variable)
                     (and (eq category :source-location) (member kind '(:variable :constant :symbol-macro)))))
        (clear-info-values symbol (list number))))))

(defun function-to-undefine-text (name)
  (let ((function (global-function name)))
    (cond ((null function) (format nil "macro ~A" (definition-name-text name)))
          ((typep function 'generic-function)
           (format nil "generic function ~A with its ~D method~:P" (definition-name-text name) (length (sb-mop:generic-function-methods function))))
          (t (format nil "~A ~A" (function-word name function) (definition-name-text name))))))

(defun removable-parts (symbol method)
  "Returns the definitions of SYMBOL that can be removed. Each is a list of a key, a description, a
  function that removes the definition, and the reason why it cannot be restored, or NIL."
  (let* ((name (definition-name-text symbol)) (setf `(setf ,symbol)) (kind (fifth (variable-kind-info symbol)))
         (class (find-class symbol nil)) (parts '()))
    (flet ((part (key words work &optional lost) (push (list key words work lost) parts)))
      (when method
        (let ((function (sb-mop:method-generic-function method)))
          (part "method" (format nil "method ~A" (definition-name-text (method-name function method))) (lambda () (remove-method function method)))))
      (when (fboundp symbol)
        (part "function" (function-to-undefine-text symbol) (lambda () (fmakunbound symbol))))
      (when (fboundp setf)
        (part "setf-function" (function-to-undefine-text setf) (lambda () (fmakunbound setf))))
      (when (compiler-macro-function symbol)
        (part "compiler-macro" (format nil "compiler macro ~A" name) (lambda () (setf (compiler-macro-function symbol) nil))))
      (when (or (boundp symbol) (member kind '(:special :global :constant :macro)))
        (part "variable" (format nil "~A ~A" (case kind (:constant "constant") (:macro "symbol macro") (t "variable")) name)
              (lambda ()
                (forget-variable symbol)
                (makunbound symbol))
              (and (eq kind :constant) "code that was compiled with it keeps its value")))
      (when class
        (part "class" (format nil "~A ~A" (class-word class) name) (lambda () (setf (find-class symbol) nil))
              (and (typep class 'structure-class) "a structure that is removed cannot be put back: load its definition again")))
      (let ((package (symbol-package symbol)))
        (part "symbol" (format nil "symbol ~A from the package ~A, with all of these" name (package-name package)) (lambda () (unintern symbol package)))))
    (nreverse parts)))

(define-operation "removable" :interruptible (id params)
  (let ((symbol (symbol-to-undefine params)))
    (object "name" (definition-name-text symbol)
            "parts" (map 'vector
                         (lambda (part) (object "key" (first part) "text" (second part) "lost" (or-null (fourth part))))
                         (removable-parts symbol (method-to-undefine symbol params))))))

(define-operation "undefine" :thread (id params)
  (let* ((symbol (symbol-to-undefine params))
         (keys (coerce (param params "parts" 'vector) 'list))
         (all (member "symbol" keys :test #'equal)))
    (call-reload id (format nil "~{~A~^, ~} of ~A" keys (definition-name-text symbol))
                 (lambda ()
                   (loop for (key nil work) in (removable-parts symbol (method-to-undefine symbol params))
                         do (when (if all (string/= key "method") (member key keys :test #'equal))
                              (funcall work)))
                   '()))))
