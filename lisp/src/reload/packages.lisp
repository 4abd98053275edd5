;;;; The state of packages at one moment, the difference between two such states, and the
;;;; restoration of a package.

(in-package :consort)

(defstruct (package-record (:constructor make-package-record
                               (package name nicknames local-nicknames uses shadowing externals imports own)))
  "The definition of a package. OWN has the symbols whose home is the package, and IMPORTS the other
  symbols that are present in it."
  package name nicknames local-nicknames uses shadowing externals imports own)

(defun record-package (package)
  (let ((externals '()) (imports '()) (own '()))
    (with-package-iterator (next package :internal :external)
      (loop (multiple-value-bind (more symbol access) (next)
              (unless more (return))
              (when (eq access :external) (push symbol externals))
              (if (eq (symbol-package symbol) package)
                  (push symbol own)
                  (push symbol imports)))))
    (make-package-record package (package-name package) (package-nicknames package) (sb-ext:package-local-nicknames package)
                         (package-use-list package) (package-shadowing-symbols package) externals imports own)))

(defun without (list other &optional (test #'eq))
  "Returns the elements of LIST that are not in OTHER. Either may be long."
  (if (equal list other)
      '()
      (let ((table (make-hash-table :test test)))
        (dolist (each other) (setf (gethash each table) t))
        (remove-if (lambda (each) (gethash each table)) list))))

(defparameter *package-parts*
  '((package-record-nicknames equal) (package-record-local-nicknames equal) (package-record-uses eq) (package-record-shadowing eq)
    (package-record-externals eq) (package-record-imports eq))
  "The parts of a package that are compared, each with the test for its elements.")

(defun package-differs-p (before after)
  "Returns true if a part differs, or if a symbol of the old record has no home package now. New
  symbols alone make no difference."
  (or (some (lambda (symbol) (null (symbol-package symbol))) (package-record-own before))
      (parts-differ-p before after)))

(defun parts-differ-p (before after)
  (loop for (part test) in *package-parts*
        for old = (funcall part before)
        for new = (funcall part after)
          thereis (or (without old new test) (without new old test))))

(defun compare-packages (before after)
  "A list of (OLD . NEW) for each package that differs between two lists of records. OLD is NIL for
  a new package, and NEW for one that no longer exists."
  (flet ((record-in (package records) (find package records :key #'package-record-package :test #'eq)))
    (append (loop for new in after
                  for old = (record-in (package-record-package new) before)
                  when (or (null old) (package-differs-p old new)) collect (cons old new))
            (loop for old in before
                  unless (record-in (package-record-package old) after) collect (cons old nil)))))

;;; Restoring a package. Each step is taken only if the package still is as the reload left it.

(defun accessible-p (symbol package)
  (multiple-value-bind (found status) (find-symbol (symbol-name symbol) package)
    (and status (eq found symbol))))

(defun make-way (symbol package before)
  "Uninterns from PACKAGE another symbol with the name of SYMBOL, if it was not there before and has
  no meaning."
  (multiple-value-bind (found status) (find-symbol (symbol-name symbol) package)
    (when (and (member status '(:internal :external)) (not (eq found symbol)) (eq (symbol-package found) package)
               (not (member found (package-record-own before) :test #'eq)) (null (record-symbol found)))
      (unintern found package))))

(defun restore-symbols-of-package (package before after)
  (flet ((added (part) (without (funcall part after) (funcall part before)))
         (removed (part) (without (funcall part before) (funcall part after))))
    (macrolet ((each ((variable list words) &body body)
                 `(dolist (,variable ,list)
                    (attempting (,words ,variable (package-name package)) ,@body))))
      ;; Additions are removed first, so that they cause no conflicts.
      (each (symbol (added 'package-record-externals) "~S is still exported from ~A")
        (when (accessible-p symbol package) (unexport symbol package)))
      (each (symbol (added 'package-record-imports) "~S is still imported into ~A")
        (when (accessible-p symbol package) (unintern symbol package)))
      (each (symbol (added 'package-record-shadowing) "~S still shadows in ~A")
        (cond ((not (member symbol (package-shadowing-symbols package) :test #'eq)))
              ((or (member symbol (package-record-own before) :test #'eq) (record-symbol symbol))
               (cannot-undo "~S stays a shadowing symbol of ~A" symbol (package-name package)))
              (t (unintern symbol package))))
      (each (used (added 'package-record-uses) "~A is still used by ~A")
        (unuse-package used package))
      (each (symbol (remove-if #'symbol-package (package-record-own before)) "~S is not at home in ~A again")
        (make-way symbol package before)
        (import symbol package))
      (each (symbol (removed 'package-record-shadowing) "~S does not shadow in ~A again")
        (shadowing-import symbol package))
      (each (symbol (removed 'package-record-imports) "~S is not imported into ~A again")
        (make-way symbol package before)
        (import symbol package))
      (each (used (removed 'package-record-uses) "~A is not used by ~A again")
        (do-external-symbols (symbol used) (make-way symbol package before))
        (use-package used package))
      (each (symbol (removed 'package-record-externals) "~S is not exported from ~A again")
        (unless (accessible-p symbol package) (import symbol package))
        (export symbol package)))))

(defun restore-package (before after)
  "Restores the exports, imports, shadowing symbols, used packages and names of a package, as far as
  it still is as the reload left it."
  (cond ((null before)
         (cannot-undo "the package ~A, which was new, stays, with its symbols" (package-record-name after)))
        ((or (null after) (null (package-name (package-record-package before))))
         (cannot-undo "the package ~A was deleted" (package-record-name before)))
        (t
         (let ((package (package-record-package before)))
           (restore-symbols-of-package package before after)
           (attempting ("the names of the package ~A could not be put back" (package-record-name before))
             (unless (and (equal (package-record-name before) (package-name package))
                          (null (without (package-record-nicknames before) (package-nicknames package) 'equal))
                          (null (without (package-nicknames package) (package-record-nicknames before) 'equal)))
               (rename-package package (package-record-name before) (package-record-nicknames before))))
           (attempting ("the local nicknames of the package ~A could not be put back" (package-record-name before))
             (dolist (nickname (without (package-record-local-nicknames after) (package-record-local-nicknames before) 'equal))
               (sb-ext:remove-package-local-nickname (car nickname) package))
             (dolist (nickname (without (package-record-local-nicknames before) (package-record-local-nicknames after) 'equal))
               (sb-ext:add-package-local-nickname (car nickname) (cdr nickname) package)))))))
