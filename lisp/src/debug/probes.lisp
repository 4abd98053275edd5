;;;; Probes: calls around the subforms of a definition at which a running thread can stop.
;;;;
;;;; (PROBE FORM) is a macro that expands one level of FORM and wraps each evaluated subform in
;;;; PROBE again. So the compiler itself walks the code: every macro is expanded in its own lexical
;;;; environment. A form has a probe if the reader made its cons. Arguments that a macro keeps in
;;;; its expansion have their exact place; forms that the macro makes have none.
;;;;
;;;; An idle probe is a test of one byte. Otherwise the variables in scope are passed as arguments:
;;;; they are always available, nothing is closed over, and the program's own policy applies. A form
;;;; in tail position has a probe only before it, so tail calls stay tail calls. A value on the
;;;; stack (`dynamic-extent`) has no probe, because a probe would move it to the heap.

(in-package :consort)

(deftype flags () '(simple-array (unsigned-byte 8) (*)))

(defconstant +probes-limit+ 4000 "The maximum number of probes of one definition; further forms have
  none.")
(defconstant +break-flag+ 1 "Set for a probe that has a breakpoint.")
(defconstant +step-flag+ 2 "Set for every probe while an evaluation steps.")

(defconstant +cover-flag+ 4 "Set for a probe that no thread has passed, if coverage is recorded
  (coverage.lisp).")

(defstruct (probe-site (:conc-name site-) (:constructor make-site (form start end variables)))
  "The place of a probe: FORM and its span in the definition's text, the names of the VARIABLES in
  scope, and the BREAKPOINTS there."
  (form nil :read-only t) (start 0 :type fixnum :read-only t) (end 0 :type fixnum :read-only t)
  (variables '() :type list :read-only t)
  (breakpoints '() :type list))

(defstruct (unit (:constructor make-unit (file package text form places)))
  "A definition with probes, read in PACKAGE from TEXT, which is in FILE. PLACES maps each list that
  was read to its (START . END). START, LINE and COLUMN say where TEXT begins in the file as it was
  last given. COPIES maps the copies that macros have made of lists to the lists that were read
  (copied-forms.lisp). FUNCTIONS has (START . END) of the local functions that were read. EVALUATED
  is the form that the compiler was given. NAMES are those of global functions that the code of an
  evaluated form may define. MADE are those that it has defined (replaced-definitions.lisp). KNOWN
  is NIL, or the text of a form that is evaluated with calls of STEP (stepped-forms.lisp). KIND and
  NAME describe the definition. KIND is :EVALUATED for another top-level form
  (evaluated-units.lisp). OLD and NEW are the definition without and with probes. STATE says whether
  NEW is in place."
  (file "" :type string :read-only t)
  (package nil :read-only t)
  (text "" :type string :read-only t)
  (form nil :read-only t)
  (places nil :type hash-table :read-only t)
  (start 0 :type index) (line 1 :type index) (column 1 :type index)
  (flags (make-array +probes-limit+ :element-type '(unsigned-byte 8) :initial-element 0) :type flags :read-only t)
  (sites (make-array 50 :adjustable t :fill-pointer 0) :type vector :read-only t)
  (copies nil :type (or null hash-table))
  (functions '() :type list)
  (names '() :type list)
  (made '() :type list)
  (evaluated nil)
  (known nil :type (or null evaluated-text))
  (kind nil) (name nil) (old nil) (new nil)
  (state :made :type (member :made :in-place :out :lost)))

(defmethod print-object ((unit unit) stream)
  (print-unreadable-object (unit stream :type t) (prin1 (unit-name unit) stream)))

(defmethod make-load-form ((unit unit) &optional environment)
  (declare (ignore environment))
  (error "A definition with probes is not for files."))

(defvar *unit* nil "The unit that this thread compiles.")

(defvar *probe-writer* nil
  "Writes the code of a probe while definitions are compiled to be recorded (recorded-units.lisp):
  a function of FORM, its INSIDE, TAIL, the probe's number and the variables in scope.")

(defparameter *unprobed-operators* '(quote function lambda declare load-time-value the go)
  "Operators of forms at which a stop is of no use.")

(defun form-as-read (form)
  "The form that was read if FORM is a copy of it, otherwise FORM itself."
  (let ((copies (unit-copies *unit*)))
    (if copies (values (gethash form copies form)) form)))

(defun expanded-once (form environment)
  "MACROEXPAND-1 of FORM. Copies that the macro has made of forms get the places of the forms that
  were read. Macros of the standard make no copies."
  (let ((expansion (macroexpand-1 form environment)) (unit *unit*))
    (when (and unit (symbol-package (car form)) (not (lisp-package-p (symbol-package (car form)))))
      (loop for (copy . list) in (copies-of form expansion (unit-places unit))
            do (setf (gethash copy (unit-places unit)) (gethash list (unit-places unit))
                     (gethash copy (or (unit-copies unit) (setf (unit-copies unit) (make-hash-table :test #'eq)))) (form-as-read list))
               (note-same-place list copy)))
    expansion))

(defun site-number (form variables &aux (form (form-as-read form)))
  "The number of the probe of FORM. A form that is expanded twice, by CLOS or by a macro that uses
  an argument twice, has one probe if its variables are the same."
  (let ((sites (unit-sites *unit*)))
    (or (position-if (lambda (site) (and (eq (site-form site) form) (equal (site-variables site) variables))) sites :from-end t)
        (destructuring-bind (start . end) (gethash form (unit-places *unit*))
          (vector-push-extend (make-site form start end variables) sites)
          (1- (length sites))))))

(defun probed-p (form)
  (and *unit*
       (consp form)
       (gethash form (unit-places *unit*))
       (not (member (car form) *unprobed-operators*))
       (< (length (unit-sites *unit*)) +probes-limit+)))

(defun probe-code (unit number call)
  "The code of the probe NUMBER of UNIT, which is CALL unless the probe is idle."
  ;; The compiler would treat a literal vector as a constant, and fold the test away.
  `(unless (zerop (aref (the flags (load-time-value (unit-flags ,unit))) ,number))
     (locally (declare (sb-ext:muffle-conditions warning sb-ext:compiler-note)) ,call)))

(defmacro probe (form tail &environment environment)
  "FORM with probes. TAIL is true if FORM is in tail position, :ALL if all of its values are used,
  and :STACK if its value is on the stack. If TAIL is true, there is no probe after FORM, because
  such a probe passes on only one value. If TAIL is :STACK, there is no probe around FORM."
  (let ((inside (if *unit* (with-probes-inside form environment tail) form)))
    (note-same-place form inside)
    (if (or (eq tail :stack) (not (probed-p form)))
        inside
        (let* ((variables (variables-in-scope environment))
               (number (site-number form variables))
               (writer *probe-writer*)
               (unit *unit*))
          (cond (writer (funcall (the function writer) form inside tail number variables))
                (tail `(progn ,(probe-code unit number `(before-form ,unit ,number ,@variables))
                              ,inside))
                (t (let ((value (gensym "VALUE")))
                     `(progn ,(probe-code unit number `(before-form ,unit ,number ,@variables))
                             (let ((,value ,inside))
                               ,(probe-code unit number `(after-form ,unit ,number ,value ,@variables))
                               ,value)))))))))

(defmacro entry-probe (&environment environment)
  "The probe at the entry of the definition that is being compiled."
  (let* ((unit *unit*)
         (variables (variables-in-scope environment))
         (number (site-number (unit-form unit) variables)))
    `(progn ,(probe-code unit number `(before-form ,unit ,number ,@variables)) nil)))

(defun may-have-probe-p (form)
  "Returns true if FORM, which was read, has a probe, or if its value is that of an evaluated
  subform that has one."
  (cond ((and (internal-p 'comma-p) (comma-p form)) (may-have-probe-p (comma-expression form)))
        ((atom form) nil)
        ((and (symbolp (car form)) (string= (car form) "QUASIQUOTE")) (comma-with-probe-p (cdr form)))
        ((eq (car form) 'the) (and (proper-list-p form) (may-have-probe-p (third form))))
        ((member (car form) *unprobed-operators*) nil)
        (t (gethash form (unit-places *unit*)))))

(defun comma-with-probe-p (template)
  (cond ((consp template)
         (loop for tail = template then (cdr tail)
               while (consp tail)
               thereis (comma-with-probe-p (car tail))
               finally (return (comma-with-probe-p tail))))
        ((and template (internal-p 'comma-p) (comma-p template)) (may-have-probe-p template))))

(defvar *entry-probes* t "True if definitions whose bodies have no probe get one at their entries.")

(defun body-with-entry (body)
  "BODY of the definition that is being compiled, with a probe at its beginning if no form of it has
  one."
  (multiple-value-bind (forms preamble) (split-body body t)
    (if (or (not *entry-probes*) (some #'may-have-probe-p forms))
        body
        (append preamble '((entry-probe)) forms))))

(defun call-printing-without-probes (function)
  "Calls FUNCTION, which compiles a definition. Error messages contain the compiler's source texts;
  a form in PROBE is shown there as the form itself."
  (let ((*print-pprint-dispatch* (copy-pprint-dispatch)))
    (set-pprint-dispatch '(cons (eql probe) (cons t (cons t null)))
                         (lambda (stream probe) (write (second probe) :stream stream))
                         1)
    (funcall (the function function))))

(defun probing (form tail)
  (if (consp form) `(probe ,form ,tail) form))

(defun probing-all (forms tail)
  "FORMS, evaluated in order, with probes. TAIL applies to the last one."
  (loop for (form . more) on forms collect (probing form (if more nil tail))))

(defun probing-body (body tail &key docstring)
  (multiple-value-bind (forms preamble) (split-body body docstring)
    (append preamble (probing-all forms tail))))

(defun probing-lambda-list (lambda-list)
  "LAMBDA-LIST with probes in the forms of defaults."
  ;; Before the first lambda-list keyword, a list is a specialized parameter of a method or a
  ;; destructuring pattern of a macro.
  (loop with defaults = nil
        for tail = lambda-list then (cdr tail)
        while (consp tail)
        for item = (car tail)
        when (member item lambda-list-keywords)
          do (setf defaults (member item '(&optional &key &aux)))
        collect (if (and defaults (consp item) (consp (cdr item)))
                    (list* (first item) (probing (second item) nil) (cddr item))
                    item)
          into items
        finally (return (append items tail))))

(defun function-around (unit site)
  "(START . END) of the innermost local function of UNIT that contains SITE, or NIL."
  (loop with found = nil
        for function in (unit-functions unit)
        when (and (<= (car function) (site-start site)) (<= (site-end site) (cdr function))
                  (or (null found) (< (car found) (car function))))
          do (setf found function)
        finally (return found)))

(defun probing-function (lambda-list-and-body &optional (definition nil))
  "(LAMBDA-LIST . BODY) with probes. If DEFINITION is given, it is the form, as read, of a local
  function to which this belongs."
  (let ((place (gethash definition (unit-places *unit*))))
    (when place (pushnew place (unit-functions *unit*) :test #'equal)))
  (destructuring-bind (lambda-list &rest body) lambda-list-and-body
    (cons (probing-lambda-list lambda-list) (probing-body body t :docstring t))))

(defun on-stack-names (specifiers)
  "The variables whose values the declaration SPECIFIERS put on the stack. A probe around such a
  value would let it escape."
  (loop for (name . variables) in specifiers
        when (and (symbolp name) (member name '("DYNAMIC-EXTENT" "TRULY-DYNAMIC-EXTENT") :test #'string=))
          append variables))

(defun probing-on-stack (argument)
  "ARGUMENT, with probes, of a call whose value is on the stack. If ARGUMENT is a call of a system
  function, such as LIST, its own value may be on the stack too."
  (let ((operator (and (consp argument) (car argument))))
    (probing argument
             (and (symbolp operator) (symbol-package operator)
                  (lisp-package-p (symbol-package operator))
                  :stack))))

(defun probing-bindings (bindings body)
  (let ((on-stack (on-stack-names (nth-value 2 (split-body body)))))
    (loop for binding in bindings
          collect (if (and (consp binding) (consp (cdr binding)) (null (cddr binding)))
                      (list (first binding) (probing (second binding) (and (member (first binding) on-stack) :stack)))
                      binding))))

(defun function-parts-p (parts)
  "Returns true if PARTS is (LAMBDA-LIST . BODY)."
  (and (consp parts) (proper-list-p parts) (listp (first parts))))

(defun well-formed-p (operator arguments &aux (count (length arguments)) (first (first arguments)))
  "Returns true if the special operator OPERATOR may have ARGUMENTS, or if OPERATOR is another one."
  (case operator
    (throw (= count 2))
    (if (<= 2 count 3))
    (return-from (<= 1 count 2))
    (function (and (= count 1)
                   (or (not (consp first)) (not (eq (first first) 'lambda)) (function-parts-p (rest first)))))
    (setq (evenp count))
    (progv (>= count 2))
    ((let let*) (and arguments (proper-list-p first)))
    ((flet labels) (and arguments (proper-list-p first)
                        (every (lambda (definition) (and (consp definition) (function-parts-p (rest definition)))) first)))
    ((block catch unwind-protect multiple-value-prog1 multiple-value-call eval-when macrolet symbol-macrolet) (>= count 1))
    (t (cond ((passes-second-p operator) (= count 2))
             (t (or (not (consp operator)) (not (eq (first operator) 'lambda)) (function-parts-p (rest operator))))))))

(declaim (ftype function note-names-defined))
(defun with-probes-inside (form environment tail)
  "FORM with each evaluated subform in PROBE, one level deep. Forms of special operators that are
  not known here, and malformed forms, are unchanged, so that the compiler's messages about them
  stay the same."
  (if (not (and (consp form) (proper-list-p form) (well-formed-p (first form) (rest form))))
      form
      (destructuring-bind (operator &rest arguments) form
        (case operator
          ((quote go declare load-time-value) form)
          (function
           (let ((what (first arguments)))
             (cond ((and (consp what) (eq (first what) 'lambda)) `(function (lambda ,@(probing-function (rest what) what))))
                   ((and (consp what) (eq (first what) named-lambda-name))
                    `(function (,(first what) ,(second what) ,@(probing-function (cddr what)))))
                   (t form))))
          (progn `(progn ,@(probing-all arguments tail)))
          (locally `(locally ,@(probing-body arguments tail)))
          (if `(if ,(probing (first arguments) nil) ,@(mapcar (lambda (branch) (probing branch tail)) (rest arguments))))
          ((let let*) `(,operator ,(probing-bindings (first arguments) (rest arguments)) ,@(probing-body (rest arguments) tail)))
          (block `(block ,(first arguments) ,@(probing-all (rest arguments) tail)))
          (return-from `(return-from ,(first arguments) ,@(mapcar (lambda (value) (probing value t)) (rest arguments))))
          (setq `(setq ,@(loop for (name value) on arguments by #'cddr collect name collect (probing value nil))))
          (catch `(catch ,(probing (first arguments) nil) ,@(probing-all (rest arguments) :all)))
          (throw `(throw ,(probing (first arguments) nil) ,(probing (second arguments) :all)))
          ((unwind-protect multiple-value-prog1)
           `(,operator ,(probing (first arguments) :all) ,@(probing-all (rest arguments) nil)))
          (multiple-value-call
           `(multiple-value-call ,(probing (first arguments) nil) ,@(mapcar (lambda (argument) (probing argument :all)) (rest arguments))))
          (progv `(progv ,(probing (first arguments) nil) ,(probing (second arguments) nil) ,@(probing-all (cddr arguments) tail)))
          (tagbody `(tagbody ,@(mapcar (lambda (statement) (probing statement nil)) arguments)))
          (eval-when `(eval-when ,(first arguments) ,@(probing-all (rest arguments) tail)))
          ((flet labels)
           `(,operator ,(loop for definition in (first arguments)
                               for (name . function) = definition
                               collect (cons name (probing-function function definition)))
                       ,@(probing-body (rest arguments) tail)))
          ((macrolet symbol-macrolet) `(,operator ,(first arguments) ,@(probing-body (rest arguments) tail)))
          (t (cond ((passes-second-p operator) `(,operator ,(first arguments) ,(probing (second arguments) tail)))
                   ((and (consp operator) (eq (first operator) 'lambda))
                    `((lambda ,@(probing-function (rest operator) operator)) ,@(probing-all arguments nil)))
                   ((or (consp operator) (not (symbolp operator)) (special-operator-p operator)) form)
                   ((macro-function operator environment) (probing (expanded-once form environment) tail))
                   ((eq tail :stack) `(,operator ,@(mapcar #'probing-on-stack arguments)))
                   (t (note-names-defined operator arguments)
                      `(,operator ,@(probing-all arguments nil)))))))))
