;;;; The variables in whose scope a frame is, as its text has them: those that the compiler removed
;;;; are told by their names.

(in-package :consort)

(defun frame-shape (frame)
  "The top-level form of FRAME's function: as it was compiled, or its shape in the file that is as
  it was then; NIL where neither is known."
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
  "The forms around the one that FRAME is at, outermost first: a list of (FORM . POSITION), POSITION
  that of the next form in FORM."
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
             unless (eql 0 (search "&" (or (part-name first) "&")))
               append (cons (if (and (consp first) (consp (cdr first))) (second first) first)
                            (and (proper-list-p item) (cddr item) (list (third item)))))))

(defun names-of-loop (form)
  "The variables of the clauses before the first one that does something."
  (loop for (word name) on (rest form)
        until (named-p word '("DO" "DOING" "COLLECT" "COLLECTING" "APPEND" "APPENDING" "NCONC" "NCONCING" "SUM" "SUMMING" "COUNT" "COUNTING"
                              "MAXIMIZE" "MAXIMIZING" "MINIMIZE" "MINIMIZING" "WHEN" "IF" "UNLESS" "RETURN" "ALWAYS" "NEVER" "THEREIS"))
        when (and (named-p word '("FOR" "AS" "WITH" "AND")) (or (stringp name) (symbolp name))) collect name))

(defun names-bound (form position)
  "The variables that FORM binds around what is at POSITION in it, as its text has them."
  (flet ((behind (at names) (and (> position at) names)))
    (let ((second (second form)) (operator (list (part-name (first form)))))
      (cond ((named-p "LET" operator) (behind 1 (names-of-bindings second)))
            ((some (lambda (name) (named-p name operator)) '("LET*" "DO" "DO*" "PROG" "PROG*")) (behind 1 (names-of-bindings second)))
            ((some (lambda (name) (named-p name operator)) '("LAMBDA" "MULTIPLE-VALUE-BIND" "DESTRUCTURING-BIND" "NAMED-LAMBDA"))
             (behind 1 (names-of-parameters (if (named-p "NAMED-LAMBDA" operator) (third form) second))))
            ((some (lambda (name) (named-p name operator)) '("DOLIST" "DOTIMES" "WITH-OPEN-FILE" "WITH-OUTPUT-TO-STRING" "WITH-INPUT-FROM-STRING"))
             (behind 1 (and (consp second) (list (first second)))))
            ((some (lambda (name) (named-p name operator)) '("DEFUN" "DEFMETHOD" "DEFMACRO"))
             (let ((at (position-if #'listp form :start (min 2 (length form)))))
               (and at (behind at (names-of-parameters (nth at form))))))
            ((named-p "LOOP" operator) (names-of-loop form))))))

(defun names-in-scope (frame)
  "The variables in whose scope FRAME is, as its text has them."
  (when (form-frame-p frame) (return-from names-in-scope '()))
  (let ((names '()) (functions 0))
    (loop for (form . position) in (forms-around frame)
          when (and (proper-list-p form) form)
            do (cond ((= 1 functions)   ; (NAME LAMBDA-LIST . BODY) of FLET
                      (when (> position 1) (setf names (append (names-of-parameters (second form)) names))))
                     ((zerop functions) (setf names (append (names-bound form position) names))))
               (setf functions (cond ((plusp functions) (1- functions))
                                     ((and (named-p (first form) '("FLET" "LABELS")) (= position 1)) 2)
                                     (t 0))))
    names))

(defun removed-variables (frame)
  "The symbols of the variables in whose scope FRAME is and of which the compiler kept nothing."
  (handler-case
      (let ((present (mapcar #'debug-variable-symbol (handler-case (variables-of-frame frame) (serious-condition () '()))))
            (package (package-of-frame frame)))
        (remove-duplicates
         (loop for name in (names-in-scope frame)
               for symbol = (if (stringp name) (ignore-errors (parse-symbol name package)) name)
               when (and symbol (symbolp symbol) (symbol-package symbol) (not (keywordp symbol))
                         (not (member symbol present))
                         (not (member (sb-cltl2:variable-information symbol) '(:special :constant :global :symbol-macro))))
                 collect symbol)
         :from-end t))
    (error () '())))

(defun unkept-variables (frame)
  "The symbols of the variables of FRAME that the compiler has named and whose values it has not
  kept. SBCL takes such a name in code for another variable."
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
