;;;; Questions to a recording. An answer consists of rows, at most one page of them. A row has its
;;;; subject, the place of the subject, and its value as text.

(in-package :consort)

(defconstant +recording-rows+ 200 "The maximum number of rows of an answer.")
(defconstant +recorded-form-text+ 80 "The maximum number of characters that are shown of a form.")
(defconstant +condition-seconds+ 5 "The maximum time in seconds for all evaluations of a question's
  condition.")

(define-condition unanswerable (refusal) ()
  (:documentation "Signalled for a question that a recording cannot answer."))

(defun refuse-question (control &rest arguments)
  (signal-refusal 'unanswerable control arguments))

;;; Rows

(defun unit-words (unit)
  (cond ((null unit) "what was recorded")
        ((eq (unit-kind unit) :form) "the form")
        ((eq (unit-kind unit) :method) (format nil "~A ~A" (shown-name (unit-name unit)) (present (third (unit-form unit)) (unit-package unit))))
        (t (present (unit-name unit) (user-package)))))

(defun unit-package-shown (unit)
  (if unit (unit-package unit) (user-package)))

(defun form-text (unit site)
  "The first line of the text of SITE in UNIT, bounded."
  (let* ((end (site-end site)) (text (unit-text unit)) (newline (position #\Newline text :start (site-start site) :end end)))
    (bounded-text (if newline
                      (concatenate 'string (subseq text (site-start site) newline) " ...")
                      (subseq text (site-start site) end))
                  +recorded-form-text+)))

(defun place-fields (unit &optional site)
  "The JSON fields of the place of SITE of UNIT, or of UNIT."
  (if unit
      (unit-span-fields unit (if site (site-span site) (cons 0 (length (unit-text unit)))))
      '()))

(defun result-text (kept package)
  (cond ((not (several-p kept)) (kept-text kept package))
        ((null (several-values kept)) "no values")
        (t (bounded-text (format nil "~{~A~^ ; ~}" (mapcar (lambda (value) (kept-text value package)) (several-values kept))) +kept-text+))))

(defun row (kind text value event fields)
  (list* :object "kind" kind "text" text "value" (or-null value) "event" (or-null event) fields))

(defun call-text (activation)
  (let ((unit (activation-unit activation)))
    (if (or (null unit) (eq (unit-kind unit) :form))
        (unit-words unit)
        (bounded-text (format nil "(~A~{ ~A~})" (present (unit-name unit) (user-package))
                              (mapcar (lambda (kept) (kept-text kept (unit-package unit))) (activation-arguments activation)))
                      +kept-text+))))

(defun call-row (activation &optional (depth (activation-depth activation)))
  (let ((unit (activation-unit activation)))
    (row "call" (call-text activation)
         (ecase (activation-outcome activation)
           (:returned (format nil "=> ~A" (result-text (first (activation-results activation)) (unit-package-shown unit))))
           (:left "left by a non-local exit")
           (:open "did not return"))
         (activation-begin activation)
         (list* "depth" depth (place-fields unit)))))

(defun event-row (event)
  (let* ((activation (event-activation event)) (package (unit-package-shown (activation-unit activation))))
    (ecase (event-kind event)
      (:call (row "call" (call-text activation) nil (event-number event) (place-fields (activation-unit activation))))
      (:value (multiple-value-bind (unit site) (site-of-number (event-site-number event))
                (row "value" (form-text unit site) (format nil "=> ~A" (result-text (event-kept event) (unit-package unit)))
                     (event-number event) (place-fields unit site))))
      (:return (row "return" (call-text activation) (format nil "=> ~A" (result-text (event-kept event) package))
                    (event-number event) (place-fields (activation-unit activation))))
      (:exit (row "exit" (call-text activation) "left by a non-local exit" (event-number event) (place-fields (activation-unit activation))))
      (:signal (multiple-value-bind (unit site) (site-of-signal event)
                 (row "signal" (if site (form-text unit site) (call-text activation))
                      (format nil "signals ~A" (kept-text (cdr (event-kept event)) package))
                      (event-number event) (place-fields (or unit (activation-unit activation)) site)))))))

(defun site-of-signal (event)
  "The unit and the innermost site whose form was still being evaluated at EVENT, a signal; NIL
  where that is not known."
  (let ((at (event-site-number event)))
    (cond ((= at +nowhere+) (values nil nil))
          ((minusp at) (multiple-value-bind (unit site) (site-of-number (- -1 at))
                         (let ((around (site-around unit site))) (and around (values unit around)))))
          (t (site-of-number at)))))

(defun paged (rows params &rest fields)
  "The JSON of an answer: `count` of ROWS from `start` on. FIELDS are further fields."
  (let* ((start (param params "start" '(integer 0) :default 0))
         (count (min +recording-rows+ (param params "count" '(integer 1) :default 50)))
         (total (length rows))
         (shown (loop for row in (nthcdr start rows) repeat count collect (if (functionp row) (funcall row) row))))
    (apply #'object "rows" (coerce shown 'vector) "start" start "total" total fields)))

;;; Questions

(defun calls-of-recording (log)
  (let ((calls '()))
    (do-events (event log)
      (when (and (eq (event-kind event) :call) (activation-unit (event-activation event)))
        (push (event-activation event) calls)))
    (nreverse calls)))

(defun query-tree (log params)
  "The calls, each before those that it made."
  (let* ((calls (calls-of-recording log))
         (base (if calls (reduce #'min calls :key #'activation-depth) 0)))
    (paged (mapcar (lambda (call) (lambda () (call-row call (- (activation-depth call) base)))) calls) params)))

(defun wanted-unit-p (unit function)
  "Returns true if UNIT is of FUNCTION, a name as a person writes it, or FUNCTION is NIL."
  (or (null function)
      (and (not (eq (unit-kind unit) :form))
           (let ((name (unit-name unit))) (name-matches-p (if (consp name) (second name) name) function)))))

(defun one-line (text)
  (format nil "~{~A~^ ~}" (remove "" (uiop:split-string text :separator '(#\Space #\Newline #\Tab)) :test #'string=)))

(defun sites-meant (params)
  "A table whose keys are the sites that PARAMS name by a `text`, or by a `line` and perhaps `file`
  and `column`."
  (let* ((text (param params "text" 'string :default nil))
         (file (param params "file" 'string :default nil))
         (line (param params "line" '(integer 1) :default nil))
         (column (param params "column" '(integer 1) :default nil))
         (function (param params "function" 'string :default nil))
         (meant (make-hash-table :test #'eq)))
    (unless (or text line) (refuse-question "Name the expression: its `text`, or a `line` and, better, its `column`"))
    (loop for unit across *recorded-units*
          when (and (wanted-unit-p unit function) (or (null file) (same-native-file-p file (unit-file unit))))
            do (let ((found (if text
                                (let ((text (one-line text)))
                                  (remove-if-not (lambda (site) (string= text (one-line (subseq (unit-text unit) (site-start site) (site-end site)))))
                                                 (unit-sites unit)))
                                (sites-at unit line column))))
                 (loop for site across found do (setf (gethash site meant) t))))
    (when (zerop (hash-table-count meant))
      (refuse-question "No recorded definition has ~:[an expression there~;the expression ~:*~A~]. Forms that are no lists are not recorded; variables have a history"
                       text))
    meant))

(defun sites-at (unit line column)
  "The sites of UNIT that begin on LINE of its file; with COLUMN those of the innermost form there."
  (let* ((own (1+ (- line (unit-line unit))))
         (start (and (plusp own) (if (= own 1) 0 (point-offset (unit-text unit) own 1)))))
    (cond ((null start) #())
          (column
           (let ((offset (if (= own 1)
                             (and (>= column (unit-column unit)) (point-offset (unit-text unit) 1 (1+ (- column (unit-column unit)))))
                             (point-offset (unit-text unit) own column))))
             (let ((best nil))
               (when offset
                 (loop for site across (unit-sites unit)
                       when (and (<= (site-start site) offset) (< offset (site-end site))
                                 (or (null best) (> (site-start site) (site-start best))))
                         do (setf best site)))
               (if best (remove (site-span best) (unit-sites unit) :key #'site-span :test-not #'equal) #()))))
          (t (let ((end (or (position #\Newline (unit-text unit) :start start) (length (unit-text unit)))))
               (remove-if-not (lambda (site) (<= start (site-start site) end)) (unit-sites unit)))))))

(defun query-values (log params)
  "The values that an expression took."
  (let ((meant (sites-meant params)) (rows '()))
    (do-events (event log)
      (when (and (eq (event-kind event) :value)
                 (gethash (nth-value 1 (site-of-number (event-site-number event))) meant))
        (push (let ((event event)) (lambda () (event-row event))) rows)))
    (paged (nreverse rows) params)))

(defun variable-of-event (event name)
  "The kept value of the variable called NAME at EVENT, in a list, and the variable; NIL without
  it."
  (when (eq (event-kind event) :value)
    (let* ((site (nth-value 1 (site-of-number (event-site-number event))))
           (position (position-if (lambda (variable) (name-matches-p variable name)) (site-variables site))))
      (and position
           (let ((tail (nthcdr position (event-variables event)))) (and tail (list (first tail))))))))

(defun query-history (log params)
  "The values of a variable, call by call."
  (let* ((name (param params "variable" 'string)) (function (param params "function" 'string :default nil))
         (last (make-hash-table :test #'eq)) (rows '()))
    (unless (loop for unit across *recorded-units*
                    thereis (and (wanted-unit-p unit function)
                                 (loop for site across (unit-sites unit)
                                         thereis (find-if (lambda (variable) (name-matches-p variable name)) (site-variables site)))))
      (refuse-question "No recorded definition has a variable ~A" name))
    (do-events (event log)
      (let* ((unit (and (eq (event-kind event) :value) (site-of-number (event-site-number event))))
             (kept (and unit (wanted-unit-p unit function) (variable-of-event event name))))
        (when kept
          (let* ((activation (event-activation event)) (before (gethash activation last)))
            (unless (and before (eq (first before) (first kept)))
              (let ((text (kept-text (first kept) (unit-package unit))))
                (unless (and before (string= (second before) text))
                  (push (row "variable" (format nil "~A in ~A" name (call-text activation)) text (event-number event)
                             (place-fields unit (nth-value 1 (site-of-number (event-site-number event)))))
                        rows))
                (setf (gethash activation last) (list (first kept) text))))))))
    (paged (nreverse rows) params)))

(defun variables-recorded (function)
  "The variables of the recorded definitions, of FUNCTION's alone if it is not NIL."
  (let ((names '()))
    (loop for unit across *recorded-units*
          when (wanted-unit-p unit function)
            do (loop for site across (unit-sites unit) do (setf names (union names (site-variables site)))))
    names))

(defun package-of-question (function)
  "The package in which a condition is read: that of the definition of FUNCTION, or of the first
  definition."
  (let ((unit (or (find-if (lambda (unit) (and (not (eq (unit-kind unit) :form)) (wanted-unit-p unit function))) *recorded-units*)
                  (find :form *recorded-units* :key #'unit-kind))))
    (if unit (unit-package unit) (user-package))))

(defun read-condition-form (text variables package)
  "READ-OVER-VARIABLES for a condition, which must have a variable."
  (multiple-value-bind (form used) (read-over-variables "condition" text variables package)
    (unless used (refuse-question "The condition ~A has no variable of the recorded definitions" text))
    (values form used)))

(defun read-over-variables (what text variables package)
  "Returns the only form of TEXT, read in PACKAGE, and those of VARIABLES that occur in it. A symbol
  stands for a variable of the same name, even one of another package. A symbol of the standard or a
  keyword stands only for a variable that is this symbol. WHAT is the word for the form in
  refusals."
  (let* ((forms (handler-case (forms-of-text text package)
                  (error (condition) (refuse-question "The ~A cannot be read: ~A" what condition)))))
    (unless (= (length forms) 1) (refuse-question "The ~A must be one form, ~S has ~D" what text (length forms)))
    (let ((used '()) (left 10000))
      (labels ((standard-p (symbol) (eq (symbol-package symbol) (load-time-value (find-package "COMMON-LISP"))))
               (own-symbol (symbol)
                 (let ((variable (or (find symbol variables)
                                     (and (not (standard-p symbol)) (not (keywordp symbol)) (find symbol variables :test #'string=)))))
                   (when variable (pushnew variable used))
                   (or variable symbol)))
               (own (part)
                 (cond ((minusp (decf left)) (refuse-question "The ~A is too long" what))
                       ((consp part)
                        ;; A symbol at the head of a list is an operator and no variable.
                        (cons (if (symbolp (car part)) (car part) (own (car part)))
                              (own-rest (cdr part))))
                       ((and part (symbolp part)) (own-symbol part))
                       (t part)))
               (own-rest (tail)
                 (cond ((minusp (decf left)) (refuse-question "The ~A is too long" what))
                       ((consp tail) (cons (own (car tail)) (own-rest (cdr tail))))
                       (t tail))))
        (let ((form (own (first forms))))
          (values form used))))))

(defun query-when (log params)
  "The first event at which a condition over variables was true."
  (let* ((text (param params "code" 'string)) (function (param params "function" 'string :default nil))
         (errors 0) (looked 0) (first-error nil) (found nil))
    (multiple-value-bind (form used) (read-condition-form text (variables-recorded function) (package-of-question function))
      (let ((test (compile-quietly `(lambda ,used ,form))))
        (block looking
          (call-with-alarm
           +condition-seconds+
           (lambda () (refuse-question "The condition took more than ~D seconds in all: ~D moments were looked at" +condition-seconds+ looked))
           (lambda ()
             (do-events (event log)
               (when (eq (event-kind event) :value)
                 (multiple-value-bind (unit site) (site-of-number (event-site-number event))
                   (when (wanted-unit-p unit function)
                     (let ((values (loop for name in used
                                         for position = (position name (site-variables site))
                                         for tail = (and position (nthcdr position (event-variables event)))
                                         ;; A copy of the value, because code may change it.
                                         collect (if tail (with-instances (keep (first tail))) (return :none)))))
                       (unless (eq values :none)
                         (incf looked)
                         (when (handler-case (apply (the function test) values)
                                 (unanswerable (condition) (error condition))
                                 (error (condition)
                                   (incf errors)
                                   (setf first-error (or first-error (format nil "~A: ~A" (condition-type condition) (condition-message condition))))
                                   nil))
                           (setf found event)
                           (return-from looking))))))))))))
      (paged (if found (list (event-row found)) '()) params
             "looked" looked "failed" errors "failure" (or-null first-error)
             "event" (if found (event-number found) :null)))))

(defun query-error (log params)
  "The last error that was signalled, where it was, and the calls around it."
  (let ((found nil))
    (do-events (event log :from-end t)
      (when (and (eq (event-kind event) :signal) (eq (car (event-kept event)) :error))
        (setf found event)
        (return)))
    (if (null found)
        (paged '() params "event" :null)
        (paged (append (list (event-row found))
                       (variable-rows found)
                       (loop for activation = (event-activation found) then (activation-parent activation)
                             while (and activation (activation-unit activation))
                             collect (call-row activation)))
               params "event" (event-number found)))))

(defun variable-rows (event)
  "The rows of the variables at EVENT."
  (multiple-value-bind (unit site)
      (case (event-kind event)
        (:value (site-of-number (event-site-number event)))
        (:signal (let ((at (event-site-number event)))
                   (unless (= at +nowhere+) (site-of-number (if (minusp at) (- -1 at) at))))))
    (and unit
         (loop for name in (site-variables site)
               for kept in (event-variables event)
               collect (row "variable" (variable-label name) (kept-text kept (unit-package unit)) nil '())))))

(defun refuse-event (log number)
  (refuse-question "The event ~D is not kept: those from ~D to ~D are" number (event-log-first log) (1- (event-log-count log))))

(defun query-event (log params)
  "An event, its variables, and the value that each form of its call had last."
  (let* ((number (param params "event" '(integer 0)))
         (event (or (event-at log number) (refuse-event log number)))
         (activation (event-activation event))
         (seen (make-hash-table :test #'equal)) (forms '()))
    (loop for earlier from (1- number) downto (max (event-log-first log) (activation-begin activation))
          for other = (event-at log earlier)
          when (and (eq (event-activation other) activation) (eq (event-kind other) :value))
            do (multiple-value-bind (unit site) (site-of-number (event-site-number other))
                 (let ((key (cons unit (site-span site))))
                   (unless (gethash key seen)
                     (setf (gethash key seen) t)
                     (push other forms)))))
    (paged (append (list (event-row event)) (variable-rows event)
                   (mapcar (lambda (other) (lambda () (event-row other)))
                           (sort forms #'< :key (lambda (other) (site-start (nth-value 1 (site-of-number (event-site-number other))))))))
           params "event" number "calls" (coerce (loop for around = activation then (activation-parent around)
                                                       while (and around (activation-unit around)) repeat 20
                                                       collect (call-text around))
                                                 'vector))))

(defparameter *recording-queries*
  '(("tree" . query-tree) ("values" . query-values) ("history" . query-history) ("when" . query-when) ("error" . query-error) ("event" . query-event) ("origin" . query-origin)
    ("begin" . query-begin) ("frames" . query-frames) ("parts" . query-parts) ("evaluate" . query-evaluate) ("text" . query-text)
    ("breakpoints" . query-breakpoints) ("step" . query-step)))

(defun answer-recording-query (log params)
  "The JSON of the answer to the question of PARAMS; an object with `problem` where there is none."
  (handler-case
      (let* ((name (param params "query" 'string :default "tree"))
             (query (cdr (assoc name *recording-queries* :test #'string=))))
        (unless query (refuse-question "There is no question ~S. There are~{ ~A~}" name (mapcar #'car *recording-queries*)))
        (append (funcall query log params)
                (list "query" name "first" (event-log-first log) "events" (event-log-count log))))
    (refusal (condition) (object "problem" (refusal-why condition)))
    (request-error (condition) (object "problem" (request-error-message condition)))
    (error (condition) (object "problem" (format nil "~A: ~A" (condition-type condition) (condition-message condition))))))
