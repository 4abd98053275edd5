;;;; `manual`: the documentation of all names that a package, or each package of a system, exports.
;;;; The only user code that may run here is methods on DOCUMENTATION, and system definitions.

(in-package :consort)

(defun package-file (package)
  "The native namestring of the file that defines PACKAGE; NIL if it is not known."
  (handler-case (source-file-name (sb-introspect:definition-source-pathname (sb-introspect:find-definition-source package)))
    (error () nil)))

(defun packages-of-system (name)
  "The packages that the files of the system of that NAME define, sorted; NIL if there is no such
  system."
  (let* ((system (asdf:find-system (string-downcase name) nil))
         (files (and system (system-source-files system))))
    (sort (remove-if-not (lambda (package) (member (package-file package) files :test #'equal)) (and files (list-all-packages)))
          #'string< :key #'package-name)))

(defun package-manual (package)
  (let ((exports (sorted-exports package)))
    (object "name" (package-name package)
            "nicknames" (copy-list (package-nicknames package))
            "documentation" (or-null (documentation package t))
            "count" (length exports)
            "exports" (most-names exports #'symbol-object))))

(define-operation "manual" :interruptible (id params)
  (let* ((name (param params "name" 'string))
         (package (package-called name))
         (packages (if package (list package) (packages-of-system name))))
    (unless packages
      (refuse "not-found" "There is no package ~A, and no system of that name whose packages are loaded" name))
    (object "packages" (mapcar #'package-manual packages))))
