;;;; The variables in whose scope a frame is, found in the text of its code. The text also names
;;;; variables that the compiler has removed.

(in-package :consort)

(defun frame-shape (frame)
  "The top-level form of FRAME's function as it was compiled, or its shape in the file, if the file
  has not changed since. NIL if neither is known."
  (let ((unit (frame-unit frame)))
    (or (if unit (unit-evaluated unit) (frame-evaluated-form frame))
        (let* ((source (source-of-frame frame))
               (recent (recent-text source))
               (text (if recent (evaluated-text recent) (text-of-source source)))
               (start (if recent (evaluated-start recent) (and text (start-of-source source text)))))
          (and start
               (handler-case (values (read-shape (make-shape-input (coerce text 'simple-string) start (min (length text) (+ start +shape-length+))) 0))
                 (error () nil)))))))

(defun forms-around (frame)
  "The forms around the form at which FRAME is, outermost first: a list of (FORM . POSITION).
  POSITION is that of the next form in FORM."
  (let* ((number (frame-form-number frame))
         (form (and number (frame-shape frame)))
         (path (if (consp form) (ignore-errors (form-path form number)) :none)))
    (unless (eq path :none)
      (loop for step in path
            while (consp form)
            collect (cons form step)
            do (setf form (without-comma (ignore-errors (nth step form))))))))

(defun part-name (part)
  "The name of PART, a symbol or a token, or NIL."
  (typecase part
    (string (shape-name part))
    (symbol (symbol-name part))))

(defun named-p (part names)
  (member (part-name part) names :test #'equal))

(defun names-of-bindings (bindings)
  (and (proper-list-p bindings)
       (loop for binding in bindings collect (if (consp binding) (first binding) binding))))

(defun names-of-parameters (lambda-list)
  "The variables of LAMBDA-LIST, also that of a method; no destructuring."
  (and (proper-list-p lambda-list)
       (loop for item in lambda-list
             for first = (if (consp item) (first item) item)
             unless (and (not (consp first)) (eql 0 (search "&" (or (part-name first) "&"))))
               append (cons (if (and (consp first) (consp (cdr first))) (second first) first)
                            (and (proper-list-p item) (cddr item) (list (third item)))))))

(defun names-of-loop (form)
  "The variables of the clauses of FORM, a LOOP, before the first clause with code or an
  accumulation."
  (loop for (word name) on (rest form)
        until (named-p word '("DO" "DOING" "COLLECT" "COLLECTING" "APPEND" "APPENDING" "NCONC" "NCONCING" "SUM" "SUMMING" "COUNT" "COUNTING"
                              "MAXIMIZE" "MAXIMIZING" "MINIMIZE" "MINIMIZING" "WHEN" "IF" "UNLESS" "RETURN" "ALWAYS" "NEVER" "THEREIS"))
        when (and (named-p word '("FOR" "AS" "WITH" "AND")) (or (stringp name) (symbolp name))) collect name))

(defun names-of-function (definition position &optional inner)
  "The parameters of DEFINITION, (NAME LAMBDA-LIST . BODY), that are bound at POSITION in it. INNER
  has the positions within the element there."
  (names-bound (list* "named-lambda" definition) (1+ position) inner))

(defun names-bound (form position &optional inner)
  "The variables that FORM binds at POSITION in it, by its text. INNER has the positions within the
  element there."
  (let ((second (second form)))
    (labels ((operator-p (names) (named-p (first form) names))
             (after (at names) (and (> position at) names))
             ;; The items of a list at AT are bound one after another.
             (one-by-one (at items names)
               (cond ((> position at) (funcall names items))
                     ((and (= position at) inner (proper-list-p items))
                      (funcall names (subseq items 0 (min (first inner) (length items)))))))
             (parameters (at) (one-by-one at (nth at form) #'names-of-parameters)))
      (cond ((operator-p '("LET" "PROG")) (after 1 (names-of-bindings second)))
            ((operator-p '("LET*" "PROG*")) (one-by-one 1 second #'names-of-bindings))
            ((operator-p '("DO" "DO*"))
             (cond ((eql 2 (second inner)) (names-of-bindings second)) ; the step of a variable
                   ((operator-p '("DO")) (after 1 (names-of-bindings second)))
                   (t (one-by-one 1 second #'names-of-bindings))))
            ((operator-p '("LAMBDA" "DESTRUCTURING-BIND")) (parameters 1))
            ((operator-p '("MULTIPLE-VALUE-BIND")) (after 1 (names-of-bindings second)))
            ((operator-p '("NAMED-LAMBDA")) (parameters 2))
            ((operator-p '("DOLIST" "DOTIMES" "WITH-OPEN-FILE" "WITH-OUTPUT-TO-STRING" "WITH-INPUT-FROM-STRING"))
             (and (or (> position 1)
                      (and (operator-p '("DOLIST" "DOTIMES")) (= position 1) (eql 2 (first inner)))) ; the result
                  (consp second)
                  (list (first second))))
            ((operator-p '("DEFUN" "DEFMETHOD" "DEFMACRO"))
             (let ((at (position-if #'listp form :start (min 2 (length form)))))
               (and at (parameters at))))
            ((operator-p '("LOOP")) (names-of-loop form))))))

(defun names-in-scope (frame &optional (around (forms-around frame)))
  "The variables in whose scope FRAME is, by its text. AROUND are the FORMS-AROUND it."
  (when (form-frame-p frame) (return-from names-in-scope '()))
  (let ((names '()) (functions 0))
    (loop for ((form . position) . inner) on around
          when (and (proper-list-p form) form)
            do (cond ((= 1 functions)   ; (NAME LAMBDA-LIST . BODY) of FLET
                      (setf names (append (names-of-function form position (mapcar #'cdr inner)) names)))
                     ((zerop functions) (setf names (append (names-bound form position (mapcar #'cdr inner)) names))))
               (setf functions (cond ((plusp functions) (1- functions))
                                     ((and (named-p (first form) '("FLET" "LABELS")) (= position 1)) 2)
                                     (t 0))))
    names))

;;; SBCL names a variable for the whole of its function, also where it is not bound.

(defparameter *binding-operators*
  '("DEFMACRO" "DEFINE-COMPILER-MACRO" "DEFTYPE" "DEFSETF" "DEFINE-SETF-EXPANDER" "DEFINE-METHOD-COMBINATION"
    "LOOP" "DESTRUCTURING-BIND" "HANDLER-CASE" "RESTART-CASE" "MACROLET" "SYMBOL-MACROLET" "WITH-SLOTS" "WITH-ACCESSORS" "DO-SYMBOLS"
    "DO-EXTERNAL-SYMBOLS" "DO-ALL-SYMBOLS" "WITH-OPEN-STREAM" "WITH-HASH-TABLE-ITERATOR" "WITH-PACKAGE-ITERATOR" "DEFGENERIC" "PPRINT-LOGICAL-BLOCK")
  "The standard's operators that bind variables which NAMES-BOUND may not know.")

(defun part-symbol (part package)
  "The symbol that PART, of a form or of a shape that was read in PACKAGE, stands for; or NIL."
  (typecase part
    (string (ignore-errors (parse-symbol part package)))
    (symbol part)))

(defun may-bind-p (form package)
  "Returns true if FORM may bind variables otherwise than NAMES-BOUND knows."
  (or (named-p (first form) *binding-operators*)
      (let ((symbol (part-symbol (first form) package)))
        (if symbol
            (and (macro-function symbol) (not (standard-symbol-p symbol)))
            (stringp (first form))))))  ; of another package, and may be a macro's

(defun standard-symbol-p (symbol)
  (eq (symbol-package symbol) (load-time-value (find-package "COMMON-LISP"))))

(defun call-with-parts (function form)
  "Calls FUNCTION with each part of FORM, lists and atoms. Returns NIL if there are too many."
  (let ((count 0))
    (labels ((look (part depth)
               (when (or (> (incf count) +placed-conses+) (> depth +shape-depth+)) (return-from call-with-parts nil))
               (funcall function part)
               (loop for tail = part then (cdr tail)
                     while (consp tail)
                     do (when (> (incf count) +placed-conses+) (return-from call-with-parts nil))
                        (look (without-comma (car tail)) (1+ depth)))))
      (look form 0)
      t)))

(defun may-mention-p (form symbol)
  "Returns true if FORM may have SYMBOL in it."
  (not (call-with-parts (lambda (part)
                          (when (and part (atom part) (equal (part-name part) (symbol-name symbol)))
                            (return-from may-mention-p t)))
                        form)))

(defun names-bound-within (form)
  "The variables that known operators bind in FORM, by its text."
  (let ((names '()))
    (call-with-parts (lambda (part)
                       (when (and (consp part) (proper-list-p part))
                         (setf names (append (names-bound part most-positive-fixnum) names))
                         (when (and (named-p (first part) '("FLET" "LABELS")) (proper-list-p (second part)))
                           (dolist (function (second part))
                             (when (and (consp function) (proper-list-p function))
                               (setf names (append (names-of-function function most-positive-fixnum) names)))))))
                     form)
    names))

(defun unbound-variables (frame)
  "The symbols of the variables that the compiler has named for the function of FRAME, but in whose
  scope FRAME is not: the scope has not begun, has ended, or is in a local function. Includes only
  variables for which the text shows this."
  (handler-case
      (let* ((candidates (unkept-variables frame))
             (around (and candidates (forms-around frame)))
             (package (package-of-frame frame)))
        (when around
          (flet ((among-p (symbol names) (find symbol names :key (lambda (name) (part-symbol name package)))))
            (let* ((in-scope (names-in-scope frame around))
                   (bound (names-bound-within (car (first around))))
                   (last (first (last around)))
                   (innermost (without-comma (nth (cdr last) (car last)))))
              (remove-if (lambda (symbol)
                           (or (among-p symbol in-scope)
                               (not (among-p symbol bound))
                               ;; Code that a macro has made is at the place of its call.
                               (and (consp innermost) (may-mention-p innermost symbol))
                               (loop for (form . position) in around
                                     thereis (and (proper-list-p form)
                                                  (may-bind-p form package)
                                                  (loop for part in form
                                                        for at from 0
                                                        thereis (and (/= at position) (may-mention-p part symbol)))))))
                         candidates)))))
    (error () '())))

(defun removed-variables (frame)
  "The symbols of the variables in whose scope FRAME is and of which the compiler kept nothing."
  (handler-case
      (let ((present (mapcar #'debug-variable-symbol (handler-case (variables-of-frame frame) (serious-condition () '()))))
            (package (package-of-frame frame)))
        (remove-duplicates
         (loop for name in (names-in-scope frame)
               for symbol = (part-symbol name package)
               when (and symbol (symbol-package symbol) (not (keywordp symbol))
                         (not (member symbol present))
                         (not (member (sb-cltl2:variable-information symbol) '(:special :constant :global :symbol-macro))))
                 collect symbol)
         :from-end t))
    (error () '())))

(defun unkept-variables (frame)
  "The symbols of the variables of FRAME that the compiler has named and whose values it has not
  kept. In code, SBCL treats such a name as another variable."
  (handler-case
      (let* ((variables (variables-of-frame frame))
             (kept (loop for variable in variables
                         when (variable-live-p variable frame) collect (debug-variable-symbol variable))))
        (remove-duplicates
         (loop for variable in variables
               for symbol = (debug-variable-symbol variable)
               when (and (symbol-package symbol) (not (member symbol kept))
                         (not (member (sb-cltl2:variable-information symbol) '(:special :constant :global :symbol-macro))))
                 collect symbol)))
    (serious-condition () '())))        ; NO-DEBUG-VARS: there are none

(defun refuse-removed (name)
  (refuse-setting "The variable ~A was not kept by the compiler: nothing of it is left at this place. Compile the function with (debug 3), and call it again" name))

(defun refuse-unbound (name)
  (refuse-setting "The variable ~A is not bound at this place: its scope has not begun yet, or has ended" name))
