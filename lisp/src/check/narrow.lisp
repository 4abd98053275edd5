;;;; The search for the place that a condition is about. The compiler names a list; the condition is
;;;; often about one symbol, argument or clause in that list. A place is a span (START . END), or
;;;; NIL if there is none.

(in-package :consort)

(defun definition-tail (form)
  "The cons of FORM at which the search for a variable begins. If FORM is a definition, this is the
  cons after the name."
  (if (and (definer-p form) (consp (cdr form)))
      (cddr form)
      form))

(defun binding-place (check form variable)
  "Returns the place where FORM binds VARIABLE."
  (unused-place check (places check form variable :from (definition-tail form)
                              :skip (lambda (list) (or (quotation-p list) (declaration-p list))))
                (list :binding variable)))

(defun body-place (check form variable)
  "Returns the place where the body of FORM names VARIABLE: the last place outside declarations."
  (first (last (places check form variable :from (definition-tail form)
                                           :skip (lambda (list) (or (quotation-p list) (declaration-p list)))))))

(defun argument-place (check form value)
  "Returns the place where FORM has VALUE as an argument: the same object, or else an EQUAL
  literal."
  (or (and (consp value) (object-span check value))
      (and (consp form)
           (or (first (places check form value :from (cdr form)))
               (first (places check form value :from (cdr form) :test #'equal :skip (constantly nil)))))))

(defun function-places (check form name)
  "Returns the places where FORM names the function NAME: first the heads of calls, then #'NAME.
  After these, the other places of a symbol, or for a name (SETF SYMBOL) the lists that begin with
  SYMBOL."
  (let ((heads '()) (named '()) (others '()))
    (map-read (lambda (cons)
                (let ((element (uncomma (car cons))))
                  (cond ((consp element)
                         (cond ((equal (uncomma (car element)) name)
                                (let ((span (car-span check element))) (when span (push span heads))))
                               ((and (eq (car element) 'function) (consp (cdr element)) (equal (uncomma (second element)) name))
                                (let ((span (or (car-span check (cdr element)) (object-span check element))))
                                  (when span (push span named))))
                               ((and (consp name) (eq (first name) 'setf) (eq (uncomma (car element)) (second name)))
                                (let ((span (car-span check element))) (when span (push span others))))))
                        ((and (symbolp name) (eq element name))
                         (let ((span (car-span check cons))) (when span (push span others)))))))
              (list form))
    (remove-duplicates (append (nreverse heads) (nreverse named) (nreverse others)) :test #'equal :from-end t)))

(defun undefined-place (check form cons name kind)
  "Returns the place of a use of NAME in FORM, and marks that place as used. Prefers a place that no
  earlier finding about NAME has. KIND is :FUNCTION, :VARIABLE or :TYPE. CONS is the cons whose car
  is the compiler's place, or NIL."
  (let ((key (list kind name)))
    (or (and cons (eq (uncomma (car cons)) name)
             (unused-place check (list (car-span check cons)) key))
        (unused-place check
                      (ecase kind
                        (:function (function-places check form name))
                        (:variable (or (places check form name :from (definition-tail form)) (places check form name)))
                        (:type (or (places check form name :skip (constantly nil))
                                   (and (consp name) (places check form (car name) :skip (constantly nil))))))
                      key))))

(defun designator-place (check form designator)
  "Returns the first place in FORM of a string designator that is equal to DESIGNATOR, the name of a
  package or the like. Returns NIL if DESIGNATOR is not a string designator."
  (let ((name (ignore-errors (string designator))) (place nil))
    (when name
      (map-read (lambda (cons)
                  (let ((element (uncomma (car cons))))
                    (when (and (not place) (typep element '(or symbol string character)) (string= name (string element)))
                      (setf place (car-span check cons)))))
                form)
      place)))

(defun condition-arguments (condition)
  "The format arguments of CONDITION, if CONDITION is a simple condition."
  (and (typep condition 'simple-condition) (ignore-errors (simple-condition-format-arguments condition))))

(defun innermost-offender (check form condition)
  "The place in FORM of the first list among the arguments of CONDITION, a simple condition: the
  same list as it was read, or else an EQUAL one. Also searches the arguments of conditions among
  the arguments."
  (loop for argument in (condition-arguments condition)
        do (let ((place (typecase argument
                          (condition (innermost-offender check form argument))
                          (cons (or (object-span check argument)
                                    (first (places check form argument :from (cdr form) :test #'equal :skip (constantly nil)))))
                          (t nil))))
             (when place (return place)))))

(defun read-argument-place (check form condition)
  "The place of the first list among CONDITION's arguments that is part of the read text and not
  FORM itself."
  (loop for argument in (condition-arguments condition)
        for place = (and (consp argument) (not (eq argument form)) (object-span check argument))
        when place return place))

(defun loop-offender (check form condition)
  "Returns the place of the LOOP keyword that CONDITION reports as unknown. Returns NIL if FORM is
  not a LOOP form."
  (when (and (consp form) (eq (car form) 'loop))
    (loop for argument in (condition-arguments condition)
          do (when (typep argument 'condition)
               ;; LOOP signals this condition with "~?...": the arguments are a format control, its
               ;; arguments, and the context.
               (loop for words in (condition-arguments argument)
                     for word = (if (consp words) (first words) words)
                     when (and word (symbolp word))
                       do (let ((place (first (last (places check form word)))))
                            (when place (return-from loop-offender place))))))))

(defun narrow (check code condition form cons span)
  "The span to mark for CONDITION, which is reported with CODE. The compiler's place is FORM, whose
  span is SPAN, or the car of CONS in FORM if CONS is not NIL."
  (let* ((arguments (condition-arguments condition))
         (name (first arguments)))
    (flet ((code-p (&rest codes) (member code codes :test #'string=)))
      (or (cond ((code-p "duplicate-variable")
                 (let ((variable (find-if (lambda (a) (and a (symbolp a))) arguments)))
                   (and variable (second (places check form variable :from (definition-tail form))))))
                ((code-p "duplicate-definition" "redefinition")
                 (let ((form (check-form check)))
                   (and (consp form) (consp (cdr form))
                        (equal (defined-name form) (duplicate-name condition))
                        (or (car-span check (cdr form)) (first (places check form (duplicate-name condition)))))))
                ((code-p "unused-variable" "unread-variable")
                 (let ((variable (find-if (lambda (a) (and a (symbolp a))) arguments)))
                   (and variable (binding-place check form variable))))
                ((code-p "ignored-variable-used")
                 (if (and cons (eq (uncomma (car cons)) name))
                     (car-span check cons)
                     (body-place check form name)))
                ((code-p "ignore-unknown")
                 (let ((variable (find-if (lambda (a) (and a (symbolp a) (places check form a))) arguments :from-end t)))
                   (and variable (first (last (places check form variable))))))
                ((code-p "unused-function")
                 ;; ((FLET NAME :IN OUTER))
                 (and (consp name) (consp (cdr name))
                      (let ((local (second name)))
                        (or (first (function-places check form local))))))
                ((code-p "unknown-keyword")
                 (unused-place check (places check form name) (list :keyword name)))
                ((code-p "type-conflict")
                 (or (and arguments (argument-place check form name))
                     (and cons (car-span check cons))))
                ((code-p "constant-modified" "set-constant" "duplicate-case-key" "unknown-block" "unknown-tag" "unknown-class")
                 (or (and cons (car-span check cons))
                     (and name (symbolp name)
                          (or (first (places check form name :from (cdr form))) (designator-place check form name)))))
                ((code-p "format-arguments") span)
                ((code-p "malformed-binding" "malformed-form" "malformed-lambda-list" "macro-expansion")
                 (let ((inner (or (innermost-offender check form condition)
                                  (loop-offender check form condition))))
                   ;; Only a place within SPAN that is smaller than SPAN is used.
                   (and inner (not (equal inner span)) (<= (car span) (car inner) (cdr inner) (cdr span))
                        inner)))
                ((code-p "unknown-package")
                 (and (typep condition 'package-error)
                      (designator-place check form (package-error-package condition))))
                ((code-p "deprecated")
                 (cond ((typep condition 'sb-ext:deprecation-condition)
                        (first (or (function-places check form (sb-ext:deprecation-condition-name condition))
                                   (places check form (sb-ext:deprecation-condition-name condition)))))
                       ((consp name) ; the situations of an EVAL-WHEN
                        (let ((all (loop for old in name append (places check form old))))
                          (and all (cons (reduce #'min all :key #'car) (reduce #'max all :key #'cdr))))))))
          (and (code-p "optional-and-key" "style" "compiler") (read-argument-place check form condition))
          (and cons (not (code-p "macro-expansion")) (car-span check cons))
          span))))
