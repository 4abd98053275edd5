;;;; Definitions that an evaluation replaces, and the code that was compiled with the old ones.

(in-package :consort)

(defun inlined-p (symbol name)
  "Returns true if calls of the function NAME, which is SYMBOL or (SETF SYMBOL), may be inlined."
  (find-if (lambda (info)
             (and (equal (first info) name) (eq (third info) :function) (eq (fourth info) :inlinep)
                  (member (fifth info) '(inline sb-ext:maybe-inline))))
           (info-kinds symbol)))

(defun watched-symbol (definition)
  "The symbol that DEFINITION, an object with a package, a name and a kind, defines, if there is
  such a definition and compiled code may contain parts of it; otherwise NIL."
  (let* ((package (package-called (param definition "package" 'string)))
         (symbol (and package (find-symbol (param definition "name" 'string) package)))
         (kind (param definition "kind" 'string)))
    (flet ((kind-p (&rest kinds) (member kind kinds :test #'string=)))
      (and symbol
           (cond ((kind-p "macro") (macro-function symbol))
                 ((kind-p "structure") (typep (find-class symbol nil) 'structure-class))
                 ((kind-p "function") (and (global-function symbol) (inlined-p symbol symbol)))
                 ((kind-p "setf function") (and (global-function `(setf ,symbol)) (inlined-p symbol `(setf ,symbol))))
                 ((kind-p "constant" "variable") (boundp symbol)))
           symbol))))

(defun call-watching-definitions (definitions function)
  "Calls FUNCTION, which evaluates a text with DEFINITIONS and returns an outcome. Returns the
  outcome. It has the field `stale` if code that was compiled before contains a part of an old
  definition, either of DEFINITIONS or from a file that the text loads again."
  (let* ((symbols (remove nil (map 'list #'watched-symbol definitions)))
         (before (and symbols (take-snapshot)))
         (*before-loads* (list nil))
         (outcome (funcall function))
         (before-loads (first *before-loads*)))
    (flet ((watched-p (name)
             (member (if (consp name) (second name) name) symbols :test #'eq)))
      (let ((stale (union (and before (stale-since before #'watched-p))
                          (and before-loads (stale-since before-loads (constantly t)))
                          :test #'string=)))
        (append outcome (and stale (list "stale" (bounded stale))))))))

(defun stale-since (before watched-p)
  "Texts about code that was compiled before the snapshot BEFORE and contains a part of an old
  definition. Only definitions count for whose name WATCHED-P is true."
  (let ((after (take-snapshot)))
    (multiple-value-bind (changes differences) (compare-snapshots before after)
      (append (stale-callers changes differences after watched-p)
              (mapcar (lambda (text) (format nil "~A: instances and code of the old layout" text))
                      (changed-layouts (remove-if-not (lambda (change)
                                                        (and (string= (change-kind change) "structure") (funcall watched-p (change-name change))))
                                                      changes)))))))
