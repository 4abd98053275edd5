;;;; The operations `describe`, `disassemble` and `reference-count`, each on a name.

(in-package :consort)

(defun name-of-params (params)
  "Returns the name that the parameters `name` and `package` give: a symbol, or a list such as
  (SETF X). A list, or a symbol written with | or \\, is read, and may be interned. Any other symbol
  must exist. Refuses with `not-found` if there is no such name."
  (let* ((text (string-trim " " (string-left-trim "#'" (param params "name" 'string))))
         (package-name (param params "package" 'string :default nil))
         (package (if package-name (find-package-named package-name) (user-package)))
         (colon (position #\: text))
         (bare (if colon (string-left-trim ":" (subseq text colon)) text)))
    (if (or (eql 0 (position #\( text)) (find #\| text) (find #\\ text))
        (let ((*package* package) (*read-eval* nil))
          (handler-case (values (read-from-string text))
            (error () (refuse "not-found" "~A names nothing." text))))
        (let ((home (cond ((null colon) package)
                          ((zerop colon) (find-package "KEYWORD"))
                          (t (find-package-named (subseq text 0 colon))))))
          (multiple-value-bind (symbol found) (find-symbol (string-upcase bare) home)
            (if found symbol (refuse "not-found" "There is no symbol ~A in ~A." bare (package-name home))))))))

(defun function-name-of-params (params)
  "Returns the name that NAME-OF-PARAMS returns. Refuses if it names no function, macro or
  special operator."
  (let ((name (name-of-params params)))
    (if (ignore-errors (fboundp name)) name (refuse "not-found" "~A names no function." (shown name)))))

(define-operation "describe" :thread (id params)
  (let ((name (name-of-params params)))
    (nth-value 1 (evaluate-alone id (lambda () (describe name))))))

(define-operation "disassemble" :thread (id params)
  (let ((name (function-name-of-params params)))
    (nth-value 1 (evaluate-alone id (lambda () (disassemble name))))))

;;; References

(define-operation "reference-count" :thread (id params)
  (let* ((name (name-of-params params))
         (who (and (symbolp name)
                   (append (mapcan (lambda (function) (copy-list (ignore-errors (funcall function name))))
                                   '(sb-introspect:who-calls sb-introspect:who-macroexpands sb-introspect:who-references
                                     sb-introspect:who-binds sb-introspect:who-sets))
                           (and (find-class name nil) (copy-list (ignore-errors (sb-introspect:who-specializes-directly name))))))))
    (object "count" (length who))))
