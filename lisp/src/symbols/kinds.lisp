;;;; The kinds of definitions that a symbol names. Runs no code of the user's.

(in-package :consort)

(defun function-kind (symbol)
  "Returns the kind of operator that SYMBOL is; NIL if it is none."
  (cond ((special-operator-p symbol) "special operator")
        ((macro-function symbol) "macro")
        ((not (fboundp symbol)) nil)
        ((typep (fdefinition symbol) 'generic-function) "generic function")
        (t "function")))

(defun variable-kind-name (symbol)
  "Returns the kind of variable that SYMBOL is; NIL if it is none."
  (case (variable-kind symbol)
    (:constant (if (keywordp symbol) "keyword" "constant"))
    (:special "variable")
    (:global "global variable")
    (:macro "symbol macro")
    (:alien "alien variable")
    (t (when (boundp symbol) "variable"))))

(defun class-kind (symbol)
  "Returns the kind of class that SYMBOL names; NIL if it names none."
  (let ((class (find-class symbol nil)))
    (cond ((null class) nil)
          ((typep class 'structure-class) "structure")
          ((typep class (load-time-value (class-of (find-class 'condition)))) "condition")
          (t "class"))))

(defun main-kind (symbol)
  "The single kind that a list of completions shows; NIL for a name without a meaning."
  (or (function-kind symbol)
      (variable-kind-name symbol)
      (class-kind symbol)
      (and (type-expander-p symbol) "type")))

(defun method-combination-p (symbol)
  (handler-case (progn (sb-introspect:method-combination-lambda-list symbol) t)
    (error () nil)))

(defun symbol-kinds (symbol)
  "The kinds of all definitions that SYMBOL names, as words."
  (remove nil (list (function-kind symbol)
                    (and (compiler-macro-function symbol) "compiler macro")
                    (and (fboundp (list 'setf symbol)) "setf function")
                    (and (setf-expander-function symbol) "setf expander")
                    (variable-kind-name symbol)
                    (class-kind symbol)
                    (and (type-expander-p symbol) "type")
                    (and (method-combination-p symbol) "method combination"))))
