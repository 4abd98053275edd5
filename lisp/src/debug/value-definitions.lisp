;;;; The places where a value is defined: the definition of a function, method, package or class,
;;;; the definitions of a symbol, or the class of an instance. Runs no code of the user's.

(in-package :consort)

(defconstant +value-methods+ 50 "The maximum number of methods listed for a generic function.")

(defun class-definitions (class)
  "The JSON of the definition of CLASS; empty for a class that is from no file, such as a built-in
  one."
  (let ((name (class-name class)))
    (when (and (symbolp name) name (eq (find-class name nil) class) (not (typep class 'built-in-class)))
      (loop for (kind words) in '((:class "class") (:structure "structure") (:condition "condition"))
            append (loop for source in (sources-named name kind)
                         append (definition-in-list words (printed-name name (user-package)) source))))))

(defun function-text (function)
  "The name of FUNCTION; for a local function, that of the function that contains it."
  (let* ((name (ignore-errors (nth-value 2 (function-lambda-expression function))))
         (in (and (consp name) (ignore-errors (member :in name)))))
    (present (if in (second in) name) (user-package))))

(defun function-definitions (function)
  "The JSON of the definition of FUNCTION, which may be a closure. For a generic function, also that
  of its methods."
  (let* ((generic (typep function 'generic-function))
         (name (and generic (sb-mop:generic-function-name function)))
         (shown (if generic (present name (user-package)) (function-text function))))
    (append (handler-case (definition-in-list (if generic "generic function" "function") shown (sb-introspect:find-definition-source function))
              (error () '()))
            (and generic
                 (ignore-errors (eq function (fdefinition name)))
                 (values (definitions-of-methods name (user-package) +value-methods+))))))

(defun value-definitions (object)
  "The JSON of those definitions of OBJECT that are from files; empty if there are none."
  (if (obsolete-p object)
      (class-definitions (class-of object))
      (typecase object
        (symbol (values (definitions-of object (user-package) +value-methods+)))
        (package (definition-of-package object))
        (method (definition-of-method object (user-package)))
        (function (function-definitions object))
        (class (class-definitions object))
        (t (class-definitions (class-of object))))))

;;; Text for people

(defun names-p (text offset name)
  "Returns true if TEXT contains NAME, in the form that DEFINITION gives it, soon after OFFSET."
  (let* ((end (or (and (plusp (length name)) (position #\Space name :start 1)) (length name)))
         (bare (string-trim "()" (subseq name (1+ (or (position #\: name :from-end t :end end) -1)) end))))
    (search bare text :start2 offset :end2 (min (length text) (+ offset 200)) :test #'char-equal)))

(defun line-of (definition file)
  "The line, from 1, of DEFINITION in FILE; NIL if it is no longer there."
  (let ((offset (field definition "offset")) (form (field definition "form")))
    (handler-case
        ;; The user's *BREAK-ON-SIGNALS* is not in force: an evaluation that is tried in a copy,
        ;; which may not read the file, would count that as a refusal of its own.
        (with-own-settings ()
          (let* ((text (file-text file))
                 (offset (cond ((null text) nil) ((integerp offset) offset) ((integerp form) (form-start text form)))))
            (and offset
                 (<= offset (length text))
                 (names-p text offset (field definition "name"))
                 (1+ (count #\Newline text :end offset)))))
      ;; This includes a text that is nested so deeply that the stack of its reader overflows.
      (serious-condition () nil))))

(defun first-from-file (object)
  "The first of OBJECT's definitions whose file exists, or NIL."
  (find-if (lambda (one) (with-own-settings () (ignore-errors (probe-file (sb-ext:parse-native-namestring (field one "file"))))))
           (value-definitions object)))

(defun defined-text (object)
  "The place where OBJECT is defined, such as `class good, /w/shop.lisp:12`. NIL if that is no
  existing file, or if OBJECT is part of SBCL. The line is left out if the file now has another
  definition there, or may not be read."
  (let* ((defined (if (and (not (obsolete-p object)) (typep object '(or function method class package symbol)))
                      object
                      (class-of object)))
         (found (and (not (part-of-core-p defined)) (first-from-file object))))
    (when found
      (format nil "~A ~A, ~A~@[:~D~]" (field found "kind") (field found "name") (field found "file")
              (line-of found (sb-ext:parse-native-namestring (field found "file")))))))
