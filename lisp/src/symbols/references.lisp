;;;; References to a name, by the compiler's notes in the code that it made. The functions who-...
;;;; of sb-introspect take a tenth of a second for each kind and, in newer SBCLs, a full garbage
;;;; collection. This is a single pass over the user's functions.

(in-package :consort)

(defun own-package-p (package)
  "Returns true if PACKAGE is SBCL's or Consort's. Nobody searches callers there."
  (or (eq package (load-time-value (find-package "CONSORT")))
      (and (sb-ext:package-locked-p package)
           (or (eql 0 (search "SB-" (package-name package)))
               (member (package-name package) '("COMMON-LISP") :test #'string=)))))

(defun find-elsewhere (text)
  "The symbols called TEXT, which has no prefix, that have a meaning and whose home is a package of
  the user's. If some of them are exported, only those."
  (multiple-value-bind (prefix name) (parse-name text)
    (unless prefix
      (let ((found '()))
        (dolist (package (list-all-packages))
          (unless (or (own-package-p package) (eq package (load-time-value (find-package "KEYWORD"))))
            (multiple-value-bind (symbol status) (find-symbol name package)
              (when (and status (eq (symbol-package symbol) package) (main-kind symbol))
                (push (cons status symbol) found)))))
        (mapcar #'cdr (or (remove :external found :key #'car :test-not #'eq) found))))))

(defun simple-functions (function)
  "All functions in the code object of FUNCTION: itself and those inside it."
  (let* ((code (function-code (underlying-function function))))
    (loop for index from 0 below (code-entries code)
          collect (code-entry code index))))

(defun map-methods-of-system (function)
  "Calls FUNCTION with each method that users defined for a generic function that a package of
  SBCL's exports, such as PRINT-OBJECT or those of Gray streams."
  (let ((seen (make-hash-table :test 'eq)))
    (dolist (package (list-all-packages))
      (when (and (own-package-p package) (not (eq package (load-time-value (find-package "CONSORT")))))
        (do-external-symbols (symbol package)
          (dolist (name (list symbol (list 'setf symbol)))
            (when (and (fboundp name) (not (and (symbolp name) (or (macro-function name) (special-operator-p name)))))
              (let ((object (fdefinition name)))
                (when (and (typep object 'generic-function) (not (gethash object seen)))
                  (setf (gethash object seen) t)
                  (dolist (method (sb-mop:generic-function-methods object))
                    (unless (part-of-core-p method) (funcall function method))))))))))))

(defun map-own-functions (function)
  "Calls FUNCTION with the kind and name of each global function, macro and method of the user's
  packages, and with the function itself."
  (let ((seen (make-hash-table :test 'eq)))
    (flet ((visit (kind name object)
             (when (and (functionp object) (not (typep object 'generic-function)) (not (gethash object seen)))
               (setf (gethash object seen) t)
               (funcall function kind name object))))
      (map-methods-of-system (lambda (method) (visit "method" method (method-fast-function method))))
      (dolist (package (list-all-packages))
        (unless (own-package-p package)
          (do-symbols (symbol package)
            (when (eq (symbol-package symbol) package)
              (visit "macro" symbol (macro-function symbol))
              (visit "compiler macro" symbol (compiler-macro-function symbol))
              (visit "setf expander" symbol (setf-expander-function symbol))
              (dolist (name (list symbol (list 'setf symbol)))
                (when (and (fboundp name) (not (and (symbolp name) (or (macro-function name) (special-operator-p name)))))
                  (let ((object (fdefinition name)))
                    (if (typep object 'generic-function)
                        (dolist (method (sb-mop:generic-function-methods object))
                          (visit "method" method (method-fast-function method)))
                        (visit "function" name object))))))))))))

(defun reference-kind (xref-kind)
  (case xref-kind
    (:calls "calls") (:macroexpands "macroexpands") (:binds "binds") (:sets "sets") (:references "references")))

(defun references-from-code (symbol package)
  "The JSON of the functions whose code calls, expands, binds, sets or reads SYMBOL."
  (let ((found '()) (setf-name (list 'setf symbol)) (codes (make-hash-table :test 'eq)))
    (map-own-functions
     (lambda (kind name object)
       (let ((code (function-code (underlying-function object))))
         (unless (gethash code codes)
           (setf (gethash code codes) t)
           (let ((kinds '()))
             (dolist (simple (simple-functions object))
               (map-function-xrefs (lambda (xref-kind xref-name)
                                     (when (or (eq xref-name symbol) (and (consp xref-name) (equal xref-name setf-name)))
                                       (pushnew xref-kind kinds)))
                                   simple))
             (when kinds
               (let ((place (ignore-errors
                             (source-place (if (typep name 'method)
                                               (sb-introspect:find-definition-source name)
                                               (function-definition-source (underlying-function object)))))))
                 (dolist (xref-kind kinds)
                   (let ((words (reference-kind xref-kind)))
                     (when words
                       (push (list* :object "kind" words "by_kind" kind
                                            "by" (if (typep name 'method) (method-name-text name package) (present name package))
                                            place)
                             found)))))))))))
    (nreverse found)))

(defun references-from-methods (symbol package)
  "The JSON of the methods that specialize on the class SYMBOL."
  (when (find-class symbol nil)
    (loop for method in (handler-case (sb-mop:specializer-direct-methods (find-class symbol)) (error () '()))
          for place = (ignore-errors (source-place (sb-introspect:find-definition-source method)))
          when place
            collect (list* :object "kind" "specializes" "by_kind" "method" "by" (method-name-text method package) place))))

(defun references-to (symbol package)
  "The JSON of all references to SYMBOL."
  (append (references-from-code symbol package) (references-from-methods symbol package)))

(defun callees-of (symbol package)
  "The names of the user's functions and macros that SYMBOL's own code uses."
  (let ((names '()))
    (flet ((look (object)
             (when (functionp object)
               (dolist (simple (simple-functions object))
                 (map-function-xrefs (lambda (kind name)
                                       (let ((symbol (cond ((symbolp name) name)
                                                           ((eq (first name) 'setf) (second name)))))
                                         (when (and symbol (member kind '(:calls :macroexpands))
                                                    (symbolp symbol) (symbol-package symbol)
                                                    (not (own-package-p (symbol-package symbol))))
                                           (pushnew name names :test #'equal))))
                                     simple)))))
      (let ((object (or (macro-function symbol) (and (fboundp symbol) (not (special-operator-p symbol)) (fdefinition symbol)))))
        (if (typep object 'generic-function)
            (dolist (method (sb-mop:generic-function-methods object))
              ;; SBCL's own methods, such as those of PRINT-OBJECT, are not the user's code.
              (unless (part-of-core-p method) (look (method-fast-function method))))
            (look object))))
    (sort (mapcar (lambda (name) (present name package)) names) #'string<)))
