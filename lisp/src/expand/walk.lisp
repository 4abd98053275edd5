;;;; A walk over code that expands every macro call and symbol macro in a place that is evaluated,
;;;; and no data. It knows the special operators of the standard and those few of SBCL's own that
;;;; its macros expand to. A form of any other special operator is left unchanged. SB-WALKER, which
;;;; SBCL has for its own CLOS, is internal and cannot tell in which environment it found a form.

(in-package :consort)

(defvar *expansions* 0 "The number of macro calls that this walk has expanded.")
(defvar *sought* nil "NIL, or an EQ table whose keys are the forms whose environments are to be
  found. Such a walk continues after a macro that fails.")
(defvar *most-sought* nil "The form of *SOUGHT* at which the walk ends, or NIL.")
(defvar *found* nil "If there is *SOUGHT*: an EQ table from the sought forms that the walk has met
  to their environments.")

(defun sought (forms)
  "A table of FORMS for *SOUGHT*; NIL if there are none."
  (when forms
    (let ((table (make-hash-table :test #'eq)))
      (dolist (form forms table) (setf (gethash form table) t)))))

(defvar *before-expansion* nil "A function that is called with each form whose macro is about to be
  expanded, and its environment. It may throw.")

(defun expand-once (form environment)
  "Like MACROEXPAND-1. The expansion is counted in *EXPANSIONS*."
  (when *before-expansion* (funcall (the function *before-expansion*) form environment))
  (multiple-value-bind (expansion expanded)
      (if *sought*
          (handler-case (macroexpand-1 form environment)
            (error () (values form nil)))
          (macroexpand-1 form environment))
    (when expanded (incf *expansions*))
    (values expansion expanded)))

(defun note-found (form environment)
  "Notes ENVIRONMENT if FORM is sought. Leaves the walk if FORM is *MOST-SOUGHT*."
  (when (and (gethash form *sought*) (not (nth-value 1 (gethash form *found*))))
    (setf (gethash form *found*) environment)
    (when (eq form *most-sought*)
      (throw 'found t))))

(define-global *walkers* (make-hash-table :test #'eq) "Maps special operators to functions of a form
  and its environment that return the walked form.")

(defmacro define-walker (operators (arguments environment) &body body)
  "Defines how forms of the special OPERATORS are walked. BODY returns the walked ARGUMENTS."
  (let ((form (gensym "FORM")) (operator (gensym "OPERATOR")))
    `(dolist (,operator (list ,@(loop for operator in operators
                                      collect (if (member (symbol-package operator) (list (find-package "CONSORT"))) operator `',operator))))
       (setf (gethash ,operator *walkers*)
             (lambda (,form ,environment &aux (,arguments (rest ,form)))
               (declare (ignorable ,environment))
               (cons (first ,form) (progn ,@body)))))))

(defun walk (form environment)
  "FORM, which is evaluated in ENVIRONMENT, with all macros in it expanded."
  (cond ((consp form)
         (when *sought* (note-found form environment))
         (if (proper-list-p form) (walk-compound form environment) form))
        ((and form (symbolp form) (not (keywordp form)))
         (multiple-value-bind (expansion expanded) (expand-once form environment)
           (if expanded (walk expansion environment) form)))
        (t form)))

(defun walk-compound (form environment)
  (let* ((operator (first form))
         (walker (and (symbolp operator) (gethash operator *walkers*))))
    (cond (walker (funcall (the function walker) form environment))
          ((consp operator)
           (if (and (eq (first operator) 'lambda) (proper-list-p operator))
               (cons (walk-lambda operator environment) (walk-all (rest form) environment))
               form))
          ((not (symbolp operator)) form)
          (t (multiple-value-bind (expansion expanded) (expand-once form environment)
               (cond (expanded (walk expansion environment))
                     ((or (special-operator-p operator) (eq operator 'declare)) form)
                     (t (cons operator (walk-all (rest form) environment)))))))))

(defun walk-all (forms environment)
  (mapcar (lambda (form) (walk form environment)) forms))

(defun walk-body (forms preamble environment)
  "Returns the body of a binding form: PREAMBLE as written, then FORMS walked."
  (append preamble (walk-all forms environment)))

;;; Functions

(defun walk-parameter (parameter environment)
  "Two values: PARAMETER of a lambda list, as written, with its default form walked; and the names
  that it binds."
  (if (and (consp parameter) (proper-list-p parameter))
      (destructuring-bind (name &optional (default nil default-p) (supplied nil supplied-p) &rest more) parameter
        (values `(,name ,@(and default-p (list (walk default environment))) ,@(and supplied-p (list supplied)) ,@more)
                ;; ((:keyword name) default)
                (cons (if (and (consp name) (consp (rest name))) (second name) name)
                      (and supplied-p (list supplied)))))
      (values parameter (list parameter))))

(defun walk-lambda-list (lambda-list environment specifiers)
  "Two values: LAMBDA-LIST with its forms walked, each where the names before it are bound; and the
  environment of the body."
  (if (not (proper-list-p lambda-list))
      (values lambda-list environment)
      (values (loop for parameter in lambda-list
                    collect (if (member parameter lambda-list-keywords)
                                parameter
                                (multiple-value-bind (walked names) (walk-parameter parameter environment)
                                  (setf environment (bind-variables environment names specifiers))
                                  walked)))
              environment)))

(defun walk-definition (definition environment)
  "DEFINITION, (LAMBDA-LIST . BODY), walked."
  (multiple-value-bind (forms preamble specifiers) (split-body (rest definition) t)
    (multiple-value-bind (lambda-list inside) (walk-lambda-list (first definition) environment specifiers)
      (cons lambda-list (walk-body forms preamble (declare-policy inside specifiers))))))

(defun walk-lambda (lambda environment)
  "LAMBDA, (LAMBDA LAMBDA-LIST . BODY) or (NAMED-LAMBDA NAME LAMBDA-LIST . BODY), walked."
  (let ((before (if (eq (first lambda) 'lambda) 1 2)))
    (append (subseq lambda 0 before) (walk-definition (nthcdr before lambda) environment))))

(defun definition-p (object)
  "Returns true if OBJECT could be (NAME LAMBDA-LIST . BODY)."
  (and (proper-list-p object) (rest object)))

;;; The special operators

(define-walker (quote go) (arguments environment)
  arguments)

(define-walker (progn if catch throw unwind-protect multiple-value-call multiple-value-prog1 progv) (arguments environment)
  (walk-all arguments environment))

(define-walker (block return-from the eval-when truly-the the* with-source-form) (arguments environment)
  (cons (first arguments) (walk-all (rest arguments) environment)))

(define-walker (load-time-value) (arguments environment)
  (cons (walk (first arguments) nil) (rest arguments)))

(define-walker (tagbody) (arguments environment)
  (loop for statement in arguments
        collect (if (consp statement) (walk statement environment) statement)))

(define-walker (function) (arguments environment)
  (let ((function (first arguments)))
    (if (and (proper-list-p function) (member (first function) (list 'lambda named-lambda)))
        (list (walk-lambda function environment))
        arguments)))

(define-walker (locally) (arguments environment)
  (multiple-value-bind (forms preamble specifiers) (split-body arguments)
    (walk-body forms preamble (declare-policy environment specifiers))))

(defun walk-bindings (bindings environment sequential specifiers)
  "Two values: the BINDINGS of LET, or of LET* if SEQUENTIAL, walked; and the environment of the
  body."
  (let ((inside environment))
    (values (loop for binding in bindings
                  for name = (if (consp binding) (first binding) binding)
                  collect (if (and (proper-list-p binding) (rest binding))
                              `(,name ,@(walk-all (rest binding) (if sequential inside environment)))
                              binding)
                  do (setf inside (bind-variables inside (list name) specifiers)))
            inside)))

(defun walk-let (arguments environment sequential)
  (if (proper-list-p (first arguments))
      (multiple-value-bind (forms preamble specifiers) (split-body (rest arguments))
        (multiple-value-bind (bindings inside) (walk-bindings (first arguments) environment sequential specifiers)
          (cons bindings (walk-body forms preamble (declare-policy inside specifiers)))))
      arguments))

(define-walker (let) (arguments environment) (walk-let arguments environment nil))
(define-walker (let*) (arguments environment) (walk-let arguments environment t))

(defun walk-functions (arguments environment recursive)
  "The ARGUMENTS of FLET, or of LABELS if RECURSIVE, walked."
  (if (and (proper-list-p (first arguments)) (every #'definition-p (first arguments)))
      (multiple-value-bind (forms preamble specifiers) (split-body (rest arguments))
        (let ((inside (bind-functions environment (mapcar #'first (first arguments)))))
          (cons (loop for (name . definition) in (first arguments)
                      collect (cons name (walk-definition definition (if recursive inside environment))))
                (walk-body forms preamble (declare-policy inside specifiers)))))
      arguments))

(define-walker (flet) (arguments environment) (walk-functions arguments environment nil))
(define-walker (labels) (arguments environment) (walk-functions arguments environment t))

(defun walk-locally (body environment)
  "The walked BODY of a MACROLET or SYMBOL-MACROLET, as one form. The macros are in ENVIRONMENT and
  are no longer needed after the walk."
  (multiple-value-bind (forms preamble specifiers) (split-body body)
    (let ((forms (walk-all forms (declare-policy environment specifiers))))
      (cond (preamble `(locally ,@preamble ,@forms))
            ((and forms (null (rest forms))) (first forms))
            (t `(progn ,@forms))))))

(defun walk-macrolet (form environment)
  (when *before-expansion* (funcall (the function *before-expansion*) form environment))
  (destructuring-bind (&optional definitions &rest body) (rest form)
    (if (and (proper-list-p definitions) (every #'definition-p definitions))
        (let ((macros (if *sought*
                          (loop for definition in definitions
                                for expander = (ignore-errors (expander definition environment))
                                when expander collect (list (first definition) expander))
                          (loop for definition in definitions
                                collect (list (first definition) (expander definition environment))))))
          (incf *expansions*)
          (walk-locally body (if macros (augmented environment :macro macros) environment)))
        form)))

(defun walk-symbol-macrolet (form environment)
  (destructuring-bind (&optional definitions &rest body) (rest form)
    (if (and (proper-list-p definitions) (every #'definition-p definitions))
        (progn
          (incf *expansions*)
          (walk-locally body (if definitions
                                 (augmented environment :symbol-macro (loop for (name expansion) in definitions collect (list name expansion)))
                                 environment)))
        form)))

(defun walk-setq (form environment)
  "The walked SETQ FORM. Assignments to symbol macros become SETFs."
  (if (evenp (length (rest form)))
      (let ((plain '()) (groups '()))
        (flet ((finish ()
                 (when plain (push `(setq ,@(nreverse (shiftf plain '()))) groups))))
          (loop for (place value) on (rest form) by #'cddr
                for (expansion expanded) = (if (symbolp place) (multiple-value-list (expand-once place environment)) (list place nil))
                do (cond (expanded
                          (finish)
                          (push (walk `(setf ,expansion ,value) environment) groups))
                         (t (push place plain)
                            (push (walk value environment) plain))))
          (finish))
        (cond ((null groups) form)
              ((null (rest groups)) (first groups))
              (t `(progn ,@(nreverse groups)))))
      form))

(setf (gethash 'macrolet *walkers*) #'walk-macrolet
      (gethash 'symbol-macrolet *walkers*) #'walk-symbol-macrolet
      (gethash 'setq *walkers*) #'walk-setq)

(defun expanded (form environment full)
  "FORM, in ENVIRONMENT, with all macros in it expanded if FULL, and otherwise with its outermost
  macro expanded once."
  (if full (walk form environment) (values (expand-once form environment))))

;;; Forms inside another one

(defun environments-in (sought form environment &optional most)
  "An EQ table from those of SOUGHT, forms inside FORM, that are evaluated when FORM is evaluated in
  ENVIRONMENT, to their environments. The walk ends at MOST, if that is not NIL."
  (let ((*sought* (sought sought)) (*most-sought* most)
        (*found* (make-hash-table :test #'eq)) (*expansions* 0))
    ;; If the walk fails, it may have met the sought forms before.
    (catch 'found
      (handler-case (walk form environment)
        (error () nil)))
    *found*))

(defun environments-of (sought form environment)
  "Two values: the first of SOUGHT, forms inside FORM, that is evaluated when FORM is evaluated in
  ENVIRONMENT; and its environment. NIL if there is none."
  (let ((environments (environments-in sought form environment (first sought))))
    (loop for candidate in sought
          do (multiple-value-bind (found there) (gethash candidate environments)
               (when there (return (values candidate found)))))))
