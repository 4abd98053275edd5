;;;; The sources of definitions, as sb-introspect returns them: as file, top-level form and offset.
;;;; The host finds the place in the text.

(in-package :consort)

(defun source-file-name (pathname)
  "The native name of the file PATHNAME; NIL if there is none. SBCL's own sources have logical
  names."
  (handler-case
      (and pathname
           (let ((physical (translate-logical-pathname pathname)))
             (and (pathname-name physical) ; none if it was compiled from no file
                  (sb-ext:native-namestring (merge-pathnames physical)))))
    (error () nil)))

(defconstant +unix-epoch+ 2208988800 "Seconds from Lisp's universal time 0 to 1970.")

(defun source-place (source)
  "The JSON fields of the place of SOURCE, a definition source of sb-introspect; NIL if it has no
  file."
  (let ((file (source-file-name (sb-introspect:definition-source-pathname source))))
    (when file
      (let* ((plist (sb-introspect:definition-source-plist source))
             (evaluated (and (equal file (ignore-errors (source-file-name (getf plist :consort-file))))
                             (getf plist :consort-position)))
             (write-date (sb-introspect:definition-source-file-write-date source))
             (written (and write-date (- write-date +unix-epoch+)))
             (octets (sb-introspect:definition-source-character-offset source))) ; in spite of its name
        (list "file" file
              "offset" (or-null (or evaluated (and octets (character-offset file written octets))))
              "form" (or-null (and (not evaluated) (first (sb-introspect:definition-source-form-path source))))
              "written" (or-null written))))))

(defun sources-named (name kind)
  "Returns sb-introspect's definitions of NAME as a KIND, one of sb-introspect's kinds."
  (handler-case (sb-introspect:find-definition-sources-by-name name kind)
    (error () '())))

(defun specializer-texts (method package)
  "The specializers of METHOD, each as written where PACKAGE is current."
  (let ((generic (sb-mop:method-generic-function method)))
    (mapcar (lambda (specializer)
              (if (and (symbolp specializer) specializer)
                  (printed-name specializer package)
                  (present specializer package :depth 5)))
            (if (and generic (internal-p 'unparse-specializers))
                (unparse-specializers generic (sb-mop:method-specializers method))
                (mapcar #'class-name (sb-mop:method-specializers method))))))

(defun method-name-text (method package)
  "The name of METHOD as people write it, such as `area :around (circle t)`."
  (let ((generic (sb-mop:method-generic-function method)))
    (format nil "~A~{ ~A~} (~{~A~^ ~})"
            (present (and generic (sb-mop:generic-function-name generic)) package)
            (mapcar (lambda (qualifier) (present qualifier package)) (method-qualifiers method))
            (specializer-texts method package))))

(defparameter *definition-kinds*
  '((:function "function") (:generic-function "generic function") (:macro "macro") (:compiler-macro "compiler macro")
    (:setf-expander "setf expander") (:variable "variable") (:constant "constant") (:symbol-macro "symbol macro")
    (:class "class") (:structure "structure") (:condition "condition") (:type "type") (:alien-type "alien type")
    (:method-combination "method combination") (:declaration "declaration"))
  "Kinds of sb-introspect with their names, except for methods, setf functions and packages.")

(defun definition-in-list (kind name source &rest more)
  "A list of the JSON of a definition; NIL if the definition has no file."
  (let ((place (source-place source)))
    (and place (list (list* :object "kind" kind "name" name (append more place))))))

(defun methods-to-report (function)
  "The methods of the generic FUNCTION that are listed for people. The user's methods come before
  those of the core, and methods for classes of Consort's are left out."
  (flet ((ours-p (method)
           (some (lambda (specializer)
                   (and (typep specializer 'class) (class-name specializer)
                        (eq (symbol-package (class-name specializer)) (load-time-value (find-package "CONSORT")))))
                 (sb-mop:method-specializers method))))
    (let ((methods (remove-if #'ours-p (sb-mop:generic-function-methods function))))
      (append (remove-if #'part-of-core-p methods) (remove-if-not #'part-of-core-p methods)))))

(defun definition-of-method (method package)
  "A list of the JSON of the definition of METHOD; NIL if it has no file."
  (handler-case
      (definition-in-list "method" (method-name-text method package) (sb-introspect:find-definition-source method)
        "specializers" (specializer-texts method package)
        "qualifiers" (mapcar (lambda (one) (present one package)) (method-qualifiers method)))
    (error () '())))

(defun definitions-of-methods (name package &optional most)
  "Two values: the JSON of the methods of the generic function NAME, MOST of them at most; and the
  number of those that are left out."
  (let ((function (and (fboundp name) (fdefinition name))))
    (if (typep function 'generic-function)
        (let* ((methods (methods-to-report function)) (count (length methods)) (shown (min count (or most count))))
          (values (loop for method in methods
                        repeat shown
                        append (definition-of-method method package))
                  (- count shown)))
        (values '() 0))))

(defun definitions-of (symbol package &optional most)
  "Two values: the JSON of every definition of SYMBOL that is from a file, with MOST methods of each
  generic function at most; and the number of methods that are left out."
  (let ((name (printed-name symbol package))
        (setf-name (list 'setf symbol))
        (more 0))
    (flet ((methods (of)
             (multiple-value-bind (definitions left) (definitions-of-methods of package most)
               (incf more left)
               definitions)))
      (values
       (append
        (when (special-operator-p symbol)
          (loop for source in (sources-named symbol :ir1-convert)
                append (definition-in-list "special operator" name source)))
        (loop for (kind words) in *definition-kinds*
              append (loop for source in (sources-named symbol kind)
                           append (definition-in-list words name source)))
        (methods symbol)
        (when (fboundp setf-name)
          (append (loop for kind in '(:function :generic-function)
                        append (loop for source in (sources-named setf-name kind)
                                     append (definition-in-list "setf function" (format nil "(setf ~A)" name) source)))
                  (methods setf-name)))
        (when (compiler-macro-function setf-name)
          (loop for source in (sources-named setf-name :compiler-macro)
                append (definition-in-list "compiler macro" (format nil "(setf ~A)" name) source))))
       more))))

(defun definition-of-package (package)
  "The JSON of PACKAGE's definition."
  (handler-case (definition-in-list "package" (package-name package) (sb-introspect:find-definition-source package))
    (error () '())))

(defun definition-of-system (name)
  "The JSON of the place where the ASDF system NAME, which is loaded or known, is defined."
  (let ((system (asdf:registered-system (string-downcase name))))
    (when system
      (let ((file (source-file-name (asdf:system-source-file system))))
        (and file (list (object "kind" "system" "name" (asdf:component-name system) "file" file "offset" :null "form" :null "written" :null)))))))

;;; Types

(defun named-types (specifier)
  "The user's classes and types that are named in the type SPECIFIER."
  (let ((found '()))
    (labels ((visit (part depth)
               (cond ((consp part)
                      (unless (or (zerop depth) (member (first part) '(member eql satisfies mod unsigned-byte signed-byte)))
                        (loop for rest = part then (cdr rest)
                              while (consp rest)
                              do (visit (car rest) (1- depth)))))
                     ((and (symbolp part) (symbol-package part) (not (own-package-p (symbol-package part)))
                           (or (find-class part nil) (type-expander-p part)))
                      (pushnew part found)))))
      (visit specifier 8))
    (nreverse found)))

(defun slot-types (function)
  "The types of the slots that methods of the generic FUNCTION read."
  (loop for method in (sb-mop:generic-function-methods function)
        when (typep method 'sb-mop:standard-reader-method)
          append (named-types (sb-mop:slot-definition-type (sb-mop:accessor-method-slot-definition method)))))

(defun types-of (symbol)
  "The symbols that name the types of SYMBOL: SYMBOL itself if it names a type, the type of its
  value, and the types of the values of its function."
  (remove-duplicates
   (append (named-types symbol)
           (and (not (keywordp symbol)) (not (eq (variable-kind symbol) :macro)) (boundp symbol)
                (named-types (class-name (class-of (symbol-value symbol)))))
           (handler-case
               (let ((function (and (fboundp symbol) (not (macro-function symbol)) (not (special-operator-p symbol)) (fdefinition symbol))))
                 (typecase function
                   (null '())
                   (generic-function (slot-types function))
                   (t (let ((type (sb-introspect:function-type symbol)))
                        (and (consp type) (named-types (third type)))))))
             (error () '())))
   :from-end t))

(defun definitions-of-types (symbol package)
  "The JSON of the definitions of the types of SYMBOL."
  (loop for type in (types-of symbol)
        append (remove-if-not (lambda (definition)
                                (member (field definition "kind") '("class" "structure" "condition" "type") :test #'string=))
                              (definitions-of type package))))
