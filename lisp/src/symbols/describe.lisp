;;;; The description of a symbol: kinds, lambda list, documentation, value. No code of the user's
;;;; runs.

(in-package :consort)

(defun lambda-list-of (symbol)
  "Two values: the lambda list of the operator SYMBOL, and true; NIL and NIL if none is known."
  (handler-case
      (cond ((or (special-operator-p symbol) (fboundp symbol))
             (multiple-value-bind (list unknown) (sb-introspect:function-lambda-list symbol)
               (if (or unknown (not (listp list))) (values nil nil) (values list t))))
            ((type-expander-p symbol) (sb-introspect:deftype-lambda-list symbol))
            (t (values nil nil)))
    (error () (values nil nil))))

(defun without-system-packages (form package)
  "FORM, a part of a lambda list, in which SBCL's internal symbols are written without their
  packages, which mean nothing to a user of PACKAGE."
  (cond ((consp form)
         (cons (without-system-packages (car form) package) (without-system-packages (cdr form) package)))
        ((and (symbolp form)
              (symbol-package form)
              (own-package-p (symbol-package form))
              (not (eq form (find-symbol (symbol-name form) package)))
              (not (eq :external (nth-value 1 (find-symbol (symbol-name form) (symbol-package form))))))
         (make-placeholder (string-downcase (symbol-name form))))
        (t form)))

(defun keyword-with-own-name-p (part)
  "True if PART is `(keyword variable)` and both have the same name, as in the lambda list of a
  structure's constructor."
  (and (consp part)
       (keywordp (first part))
       (consp (rest part))
       (symbolp (second part))
       (string= (first part) (second part))))

(defun plain-parameters (lambda-list)
  "LAMBDA-LIST in which the names of its parameters, including those in destructured lists, are
  written without their packages, because SBCL made them in packages of its own. A parameter of a
  structure's constructor, `((:name #:name) nil)`, is written as a person writes it."
  (let ((defaults nil))
    (labels ((plain (name)
               (if (and (symbolp name) name) (make-placeholder (string-downcase (symbol-name name))) name))
             (parameter (part)
               (cond ((member part lambda-list-keywords)
                      (setf defaults (member part '(&optional &key &aux)))
                      part)
                     ((atom part) (plain part))
                     ((not defaults) (plain-parameters part))
                     ((keyword-with-own-name-p (first part))
                      (let ((name (plain (second (first part)))))
                        (if (equal (rest part) '(nil)) name (cons name (rest part)))))
                     ((consp (first part)) part) ; a keyword with a variable of another name
                     (t (cons (plain (first part)) (rest part))))))
      (loop for rest = lambda-list then (cdr rest)
            while (consp rest)
            collect (parameter (car rest)) into parts
            finally (return (nconc parts (plain rest)))))))

(defun lambda-list-parts (lambda-list package)
  "The parts of LAMBDA-LIST as written where PACKAGE is current. A dotted rest becomes a &rest."
  (flet ((part (part)
           (if (and (symbolp part) part (not (keywordp part)))
               (string-downcase (symbol-name part)) ; whatever the package in which SBCL made it
               (present (without-system-packages part package) package :depth 6))))
    (loop for rest = (plain-parameters lambda-list) then (cdr rest)
          while rest
          collect (if (consp rest) (part (car rest)) "&rest")
          unless (consp rest)
            collect (part rest) and do (loop-finish))))

(defun signature-package (symbol)
  "Returns the package in which the names of SYMBOL's parameters need no prefix."
  (or (symbol-package symbol) (user-package)))

(defun docs-of (symbol)
  "The JSON of all documentation of SYMBOL, by kind."
  (loop for (type kind) in '((function "function") (compiler-macro "compiler macro") (setf "setf") (variable "variable") (type "type")
                             (structure "structure") (method-combination "method combination"))
        for text = (handler-case (documentation symbol type) (error () nil))
        when (and (stringp text) (not (and (eq type 'structure) (equal text (handler-case (documentation symbol 'type) (error () nil))))))
          collect (object "kind" (if (and (eq type 'function) (fboundp symbol)) (function-kind symbol) kind)
                          "text" (subseq text 0 (min (length text) 20000)))))

(defun value-text (symbol package)
  "A short text of SYMBOL's value, as seen from PACKAGE; NIL if it has none, or is a symbol macro."
  (and (not (keywordp symbol))
       (not (eq (variable-kind symbol) :macro))
       (boundp symbol)
       (present (symbol-value symbol) package)))

(defun function-type-text (symbol package)
  "Returns the declared or derived type of the ordinary function SYMBOL."
  (when (equal (function-kind symbol) "function")
    (let ((type (handler-case (sb-introspect:function-type symbol) (error () nil))))
      (when (consp type)
        (present type package :depth 8 :length 40)))))

(defun class-facts (symbol package)
  "The JSON of SYMBOL's class: its direct superclasses, and its slots. If it is not finalized, only
  its direct slots."
  (let ((class (find-class symbol nil)))
    (when class
      (handler-case
          (flet ((name (part) (present part package)))
            (object "supers" (mapcar (lambda (super) (name (class-name super))) (sb-mop:class-direct-superclasses class))
                    "slots" (mapcar (lambda (slot) (name (sb-mop:slot-definition-name slot)))
                                    (if (sb-mop:class-finalized-p class)
                                        (sb-mop:class-slots class)
                                        (sb-mop:class-direct-slots class)))))
        (error () nil)))))

(defun symbol-facts (symbol package)
  "The JSON of the facts about SYMBOL, as seen from PACKAGE."
  (multiple-value-bind (lambda-list known) (lambda-list-of symbol)
    (object "name" (symbol-name symbol)
            "package" (let ((home (symbol-package symbol))) (if home (package-name home) :null))
            "external" (bool (and (symbol-package symbol)
                                  (eq (nth-value 1 (find-symbol (symbol-name symbol) (symbol-package symbol))) :external)))
            "printed" (printed-name symbol package)
            "kinds" (symbol-kinds symbol)
            "lambda_list" (if known (coerce (lambda-list-parts lambda-list (signature-package symbol)) 'vector) :null)
            "type" (or-null (function-type-text symbol (signature-package symbol)))
            "documentation" (docs-of symbol)
            "value" (or-null (value-text symbol package))
            "class" (or-null (class-facts symbol (signature-package symbol))))))

(defun package-facts (package)
  "The JSON of the facts about PACKAGE."
  (let ((external 0))
    (do-external-symbols (symbol package) (declare (ignore symbol)) (incf external))
    (object "name" (package-name package)
            "nicknames" (package-nicknames package)
            "uses" (mapcar #'package-name (package-use-list package))
            "used_by" (mapcar #'package-name (package-used-by-list package))
            "external" external
            "documentation" (or-null (documentation package t)))))

;;; Initialization arguments

(defun classes-above (class)
  "CLASS and its superclasses, without duplicates. Finalizes nothing."
  (let ((seen '()))
    (labels ((visit (class)
               (unless (member class seen :test #'eq)
                 (push class seen)
                 (mapc #'visit (sb-mop:class-direct-superclasses class)))))
      (visit class))
    (nreverse seen)))

(defun keyword-parameters (lambda-list)
  "The keywords that LAMBDA-LIST, of a function or method, accepts."
  (loop for part in (rest (member '&key lambda-list))
        until (member part lambda-list-keywords)
        collect (cond ((symbolp part) (existing-keyword part))
                      ((consp (first part)) (first (first part)))
                      (t (existing-keyword (first part))))))

(defun existing-keyword (variable)
  "The keyword of the parameter VARIABLE; VARIABLE itself if there is no such keyword."
  (or (find-symbol (symbol-name variable) (load-time-value (find-package "KEYWORD"))) variable))

(defun initargs-of (symbol package)
  "The initialization arguments of the class SYMBOL, as written where PACKAGE is current: those of
  its slots and of the methods that initialize its instances."
  (let ((class (find-class symbol nil)) (found '()))
    (when class
      (handler-case
          (let ((classes (classes-above class)))
            (dolist (one classes)
              (dolist (slot (sb-mop:class-direct-slots one))
                (setf found (append (sb-mop:slot-definition-initargs slot) found))))
            (dolist (name '(initialize-instance shared-initialize))
              (dolist (method (sb-mop:generic-function-methods (fdefinition name)))
                (when (member (first (sb-mop:method-specializers method)) classes :test #'eq)
                  (setf found (append (keyword-parameters (sb-mop:method-lambda-list method)) found))))))
        (error () nil))
      (mapcar (lambda (initarg) (printed-name initarg package)) (remove-duplicates (reverse (remove-if-not #'symbolp found)) :from-end t)))))
