;;;; `find-name`: the meanings of a name in its package, and the packages that have a symbol of that
;;;; name with a meaning. Interns nothing and runs no code of the user's.

(in-package :consort)

(defun offer-kinds (symbol)
  "Returns the meanings of SYMBOL, as a list of words."
  (append (cond ((special-operator-p symbol) '("special-operator"))
                ((macro-function symbol) '("macro"))
                ((fboundp symbol) (list* "function" (and (compiler-macro-function symbol) '("compiler-macro")))))
          (cond ((constantp symbol) '("constant"))
                ((or (boundp symbol) (eq (sb-cltl2:variable-information symbol) :special)) '("variable")))
          (when (find-class symbol nil) '("class"))))

(defun excluded-package-p (package)
  "Returns true if no user would use a name from PACKAGE."
  (or (member package (list (find-package "CONSORT") (find-package "KEYWORD")))))

(defun offers-of (name)
  "The packages that have a symbol called NAME with a meaning. Each is a list of the package, the
  symbol, and true if the package exports it. Internal symbols of locked packages are left out."
  (let ((offers '()))
    (dolist (package (list-all-packages))
      (multiple-value-bind (symbol status) (find-symbol name package)
        (when (and (member status '(:internal :external))
                   (not (excluded-package-p package))
                   (or (eq status :external)
                       (and (eq (symbol-package symbol) package) (not (sb-ext:package-locked-p package))))
                   (offer-kinds symbol))
          (push (list package symbol (eq status :external)) offers))))
    ;; Packages that are meant to be used come first, then those nearest to the user.
    (sort offers (lambda (a b)
                   (destructuring-bind ((a-package a-symbol a-external) (b-package b-symbol b-external)) (list a b)
                     (declare (ignore a-symbol b-symbol))
                     (flet ((rank (package external)
                              (+ (if external 0 4) (if (sb-ext:package-locked-p package) 2 0))))
                       (let ((a-rank (rank a-package a-external)) (b-rank (rank b-package b-external)))
                         (or (< a-rank b-rank)
                             (and (= a-rank b-rank) (string< (package-name a-package) (package-name b-package)))))))))))

(defconstant +offers-limit+ 20)

(define-operation "find-name" :query (id params)
  (let* ((name (param params "name" 'string))
         (package (find-package (param params "package" 'string :default "COMMON-LISP-USER")))
         (offers (offers-of name)))
    (multiple-value-bind (symbol status) (if package (find-symbol name package) (values nil nil))
      (object "here" (if status (offer-kinds symbol) '())
              "known_package" (bool package)
              "offers" (loop for (package symbol external) in offers
                             repeat +offers-limit+
                             collect (object "package" (package-name package)
                                             "external" (bool external)
                                             "kinds" (offer-kinds symbol)))))))
