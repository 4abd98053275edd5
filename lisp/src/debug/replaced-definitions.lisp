;;;; Global definitions that an evaluated form with breakpoints has made, and that other definitions
;;;; have replaced since. A breakpoint in their code is then no longer in force.

(in-package :consort)

(defstruct (made-definition (:conc-name made-) (:constructor make-made-definition (name current object span)))
  "A definition of NAME that the form of a unit has made: OBJECT, a function, macro function or
  method. CURRENT is a function that returns the present definition. SPAN is (START . END) of the
  list in the unit's text that makes the definition; NIL if that is not known."
  (name nil :read-only t) (current nil :type function :read-only t) (object nil :read-only t) (span nil :read-only t))

(defun note-name-defined (name)
  "Notes that the code of the unit that is compiled may define NAME."
  (when (and (eq (unit-kind *unit*) :evaluated) (function-name-p name))
    (pushnew name (unit-names *unit*) :test #'equal)))

(defun note-names-defined (operator arguments)
  "Notes the names that a call of OPERATOR, which a macro has made, may define."
  (when (and (symbolp operator) (symbol-package operator) (sbcl-package-p (symbol-package operator)))
    (dolist (argument arguments)
      (when (and (consp argument) (eq (first argument) 'quote) (consp (cdr argument)))
        (note-name-defined (second argument))))))

(defun function-name-p (name)
  (or (and name (symbolp name))
      (and (proper-list-p name) (= 2 (length name)) (eq (first name) 'setf) (symbolp (second name)))))

(defun defines-method-p (form method)
  "Returns true if FORM, a DEFMETHOD, is known to define METHOD. Evaluates nothing."
  (ignore-errors
   (multiple-value-bind (qualifiers lambda-list required) (method-parts form)
     (declare (ignore lambda-list))
     (and (equal qualifiers (method-qualifiers method))
          (equal (mapcar (lambda (parameter) (parameter-specializer parameter :evaluate nil)) required) (sb-mop:method-specializers method))))))

(defun span-of-definition (unit name object)
  "(START . END) of the list in the form of UNIT that defines OBJECT as NAME: the longest list whose
  second element is NAME. For a method this is its DEFMETHOD. NIL if there is none."
  (let ((best nil))
    (loop for list being the hash-keys of (unit-places unit) using (hash-value span)
          when (and (consp list) (consp (cdr list)) (equal name (second list))
                    (or (not (typep object 'method)) (not (eq (first list) 'defmethod)) (defines-method-p list object))
                    (or (null best) (> (- (cdr span) (car span)) (- (cdr best) (car best)))))
            do (setf best span))
    best))

(defun methods-named (name)
  (let ((generic (and (fboundp name) (fdefinition name))))
    (and (typep generic 'generic-function) (sb-mop:generic-function-methods generic))))

(defun definitions-named (name)
  "The functions, macro functions and methods that NAME has now: a list of (OBJECT CODE CURRENT).
  CODE is the function whose constants show its unit. CURRENT is as in MADE-DEFINITION."
  (flet ((plain () (and (fboundp name) (not (and (symbolp name) (or (macro-function name) (special-operator-p name)))) (fdefinition name)))
         (macro () (and (symbolp name) (macro-function name))))
    (let ((function (plain)))
      (cond ((macro) (list (list (macro) (macro) #'macro)))
            ((typep function 'generic-function)
             (loop for method in (methods-named name)
                   collect (let ((method method))
                             (list method
                                   (let ((function (sb-mop:method-function method))) (or (ignore-errors (fast-method-function function)) function))
                                   (lambda () (find method (methods-named name) :test #'eq))))))
            (function (list (list function function #'plain)))))))

(defun definitions-made (unit)
  "The global functions, macros and methods with the code of UNIT, whose form was evaluated."
  (loop for name in (unit-names unit)
        append (loop for (object code current) in (definitions-named name)
                     when (member unit (function-constants code) :test #'eq)
                       collect (make-made-definition name current object (span-of-definition unit name object)))))

(defun replacing-definitions (unit site)
  "The names of the definitions that have the code of UNIT at SITE, if all of them were replaced."
  (let ((around (remove-if-not (lambda (made)
                                 (let ((span (made-span made)))
                                   (or (null span) (and (<= (car span) (site-start site)) (<= (site-end site) (cdr span))))))
                               (unit-made unit))))
    (and around
         (notany (lambda (made) (eq (funcall (made-current made)) (made-object made))) around)
         (remove-duplicates (mapcar #'made-name around) :test #'equal :from-end t))))

(defun refuse-replaced (unit site)
  "Signals a refusal if the code of UNIT at SITE was replaced by definitions elsewhere."
  (let ((names (replacing-definitions unit site)))
    (when names
      (refuse-probe "~{~S~^, ~} ~:[was~;were~] defined anew since this form was evaluated, and the code here does not run any more. Evaluate this form to stop here"
                    names (rest names)))))
