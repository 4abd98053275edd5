;;;; Moments: the place of a thread at a probe, with the values that were passed there.

(in-package :consort)

(defstruct (moment (:constructor make-moment (unit site after value values frame breakpoints)))
  "The moment at which a thread stopped at a probe: at SITE of UNIT, before its form or AFTER it
  gave VALUE. VALUES are those of the site's variables. FRAME is the frame pointer of the function."
  (unit nil :read-only t) (site nil :read-only t) (after nil :read-only t) (value nil :read-only t) (values '() :type list :read-only t)
  (frame 0 :type (unsigned-byte 62) :read-only t) (breakpoints '() :type list :read-only t))

(defun moment-variables (moment)
  "The variables in scope, as FRAME-VARIABLES has them; after a form, its value comes first."
  (append (and (moment-after moment) (list (list '=> t (moment-value moment))))
          (loop for name in (site-variables (moment-site moment))
                for value in (moment-values moment)
                collect (list name t value))))

;;; Code over the variables of a probe

(defun compile-quietly (lambda-expression)
  "Compiles code that a person gave for a place of a program. The compiler's warnings and notes are
  muffled, because nobody would read them there."
  (handler-bind ((warning #'muffle-warning) (sb-ext:compiler-note #'muffle-warning))
    (compile nil lambda-expression)))

(defun code-seeing (names places forms)
  "The form that evaluates FORMS where NAMES, lexical variables, stand for PLACES."
  ;; A name that is special by now can only be bound.
  (let* ((pairs (mapcar #'list names places))
         (special (remove-if-not (lambda (pair) (member (sb-cltl2:variable-information (first pair)) '(:special :global))) pairs))
         (pairs (set-difference pairs special)))
    `(locally (declare (sb-ext:disable-package-locks ,@(mapcar #'first pairs)))
       (let ,special
         (symbol-macrolet ,pairs
           (declare (sb-ext:enable-package-locks ,@(mapcar #'first pairs)))
           ,@forms)))))

(defmacro copied-value (variable name)
  "The value of VARIABLE, a copy of the program's variable NAME, which cannot be set."
  (declare (ignore name))
  variable)

(defsetf copied-value (variable name) (value)
  (declare (ignore variable))
  `(refuse-copy ',name ,value))

(defun refuse-copy (name value)
  (declare (ignore value))
  (refuse-setting "A condition or log message has a copy of the variable ~A: setting it would not reach the program" name))

(defun function-of-variables (forms site)
  "Compiles a function with the body FORMS where SITE's variables are its arguments, which FORMS
  cannot set."
  (let* ((names (site-variables site))
         (copies (mapcar (lambda (name) (make-symbol (symbol-name name))) names)))
    (compile-quietly `(lambda ,copies
                        (declare (ignorable ,@copies))
                        ,(code-seeing names (mapcar (lambda (copy name) `(copied-value ,copy ,name)) copies names) forms)))))

(defstruct (passed-variable (:conc-name passed-) (:constructor make-passed-variable (name moment frame)))
  "The variable NAME of the program, for code that runs at MOMENT. FRAME is the frame of the
  function, or NIL. OPEN is true while the code runs."
  (name nil :read-only t) (moment nil :read-only t) (frame nil :read-only t) (open t))

(defun passed-cell (passed)
  "The cons whose car is the value of PASSED. Refuses when the code for which it was made has
  ended."
  (unless (passed-open passed)
    (refuse-setting "~A was a variable of a stopped frame. It can be used only while the code in that frame runs: bind its value with LET for later"
                    (passed-name passed)))
  (let ((moment (passed-moment passed)))
    (nthcdr (position (passed-name passed) (site-variables (moment-site moment))) (moment-values moment))))

(defun value-of-passed (passed)
  (car (passed-cell passed)))

(defun (setf value-of-passed) (value passed)
  (let ((cell (passed-cell passed)))
    (set-passed-variable (passed-name passed) (car cell) value (passed-frame passed))
    (setf (car cell) value)))

(defun set-passed-variable (name old value frame)
  "Sets the variable NAME of FRAME, which a probe passed with the value OLD, to VALUE. Refuses if
  the variable is not kept on the stack."
  (let ((found (and frame (remove name (frame-variables frame) :key #'first :test-not #'eq))))
    (unless (and (= 1 (length found))
                 (destructuring-bind ((name kept now)) found
                   (declare (ignore name))
                   (and kept (eql old now))))
      (refuse-setting "~A cannot be set at this breakpoint: the probe passed its value, and the compiler did not keep the variable where it can be set. ~
                       Compile the function with (debug 2) or more, or return from the frame, or restart it"
                      name))
    (funcall (cdr (assoc name (settable-variables frame))) value)))

(defun values-at-moment (forms moment frame)
  "The values of FORMS, which can read MOMENT's variables, and set them in FRAME. * is the value of
  the form that the program has just left."
  (let* ((names (site-variables (moment-site moment)))
         (passed (mapcar (lambda (name) (make-passed-variable name moment frame)) names))
         (function (compile-quietly `(lambda () ,(code-seeing names (mapcar (lambda (each) `(value-of-passed ,each)) passed) forms))))
         (* (if (moment-after moment) (moment-value moment) *)))
    (unwind-protect (multiple-value-list (funcall function))
      (dolist (each passed) (setf (passed-open each) nil)))))

(defun set-at-moment (name value moment frame)
  "Sets the variable of MOMENT that is called NAME, as in VARIABLE-JSON, in FRAME."
  (let ((symbol (find name (site-variables (moment-site moment)) :key #'variable-label :test #'string=)))
    (unless symbol (refuse-setting "~A is no variable: it is the value of a form" name))
    (setf (value-of-passed (make-passed-variable symbol moment frame)) value)))
