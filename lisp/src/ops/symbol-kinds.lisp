;;;; `symbol-kinds`: the kinds of the symbols of a text, for its colours and its indentation. Runs
;;;; no user code and interns nothing.

(in-package :consort)

(defun arguments-before-body (macro-name)
  "Returns the number of arguments before the &BODY in MACRO-NAME's lambda list; NIL if it has no
  &BODY."
  (loop with count = 0
        with rest = (ignore-errors (sb-introspect:function-lambda-list (macro-function macro-name)))
        while (consp rest)
        do (let ((parameter (pop rest)))
             (case parameter
               (&body (return count))
               ((&whole &environment) (unless (consp rest) (return nil)) (pop rest))
               (&optional)
               ((&rest &key &aux) (return nil))
               (t (incf count))))))

(defun operator-kind (symbol)
  (cond ((special-operator-p symbol) "special-operator")
        ((macro-function symbol) "macro")
        ((not (fboundp symbol)) nil)
        ((typep (symbol-function symbol) 'generic-function) "generic-function")
        (t "function")))

(defun variable-word (symbol)
  (case (sb-cltl2:variable-information symbol)
    (:constant "constant")
    (:special "special")
    (:global "global")
    (:symbol-macro "symbol-macro")))

(defun symbol-kind (symbol)
  (let ((operator (operator-kind symbol)))
    (object "operator" (or-null operator)
            "body" (or-null (when (equal operator "macro") (arguments-before-body symbol)))
            "variable" (or-null (variable-word symbol))
            "class" (if (find-class symbol nil) :true :false))))

(define-operation "symbol-kinds" :query (id params)
  (let* ((name (param params "package" 'string :default nil))
         (*package* (or (and name (package-called name)) (user-package))))
    (object "kinds"
            (map 'vector
                 (lambda (asked)
                   (unless (typep asked '(simple-vector 2))
                     (refuse "bad-params" "Each of \"symbols\" is a package prefix (or null) and a name"))
                   (let* ((prefix (svref asked 0))
                          (package (if (stringp prefix) (find-package prefix) *package*))
                          (symbol (and package (stringp (svref asked 1)) (find-symbol (svref asked 1) package))))
                     ;; FIND-SYMBOL also returns NIL for the symbol NIL, but that needs no colour.
                     (if symbol (symbol-kind symbol) :null)))
                 (param params "symbols" 'vector)))))
