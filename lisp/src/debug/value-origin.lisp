;;;; The origin of a value in a recording: the earliest event in which the value can be found,
;;;; searched backwards from an event with this value. The event is given by its number, or is the
;;;; return of the call whose value a failed check of a test reported as wrong.

(in-package :consort)

(defun value-had (event)
  "The kept value of EVENT, which is the value of a form or the return of a call. The first value if
  there are several, NIL if there are none."
  (let ((kept (event-kept event)))
    (if (several-p kept) (first (several-values kept)) kept)))

(defun same-value-p (one other)
  "Returns true if the kept values ONE and OTHER are EQL, or if they print alike and either have the
  same type or both are conses or vectors."
  (or (eql one other)
      (and (eq (type-of one) (type-of other))
           (string= (kept-text one (user-package)) (kept-text other (user-package))))
      (and (typep one '(or cons string vector)) (typep other '(or cons string vector))
           (string= (kept-text one (user-package)) (kept-text other (user-package))))))

(defun span-within-p (span unit site)
  "Returns true if SPAN, a cons (START . END), lies within the span of SITE. A SITE of NIL contains
  every span."
  (declare (ignore unit))
  (or (null site)
      (and (<= (site-start site) (car span)) (<= (cdr span) (site-end site)))))

(defun calling-site (activation)
  "The unit and the site in the parent of ACTIVATION from which the parent made that call. Both are
  NIL if they are not known."
  (multiple-value-bind (unit site) (place-of-activation (activation-from activation))
    (values unit site)))

(defun event-before-form (log event)
  "The last event before EVENT, the value of a form, at which the same value came from within the
  form: the value of a subform, or the return of a call that the form made. NIL if there is none, so
  that the form itself made the value."
  (multiple-value-bind (unit site) (site-of-number (event-site-number event))
    (let ((activation (event-activation event)) (wanted (value-had event)))
      (loop for number from (1- (event-number event)) downto (max (event-log-first log) (activation-begin activation))
            for other = (event-at log number)
            do (cond ((and (eq (event-activation other) activation) (eq (event-kind other) :value))
                      (multiple-value-bind (other-unit other-site) (site-of-number (event-site-number other))
                        (when (or (not (eq unit other-unit)) (equal (site-span other-site) (site-span site))
                                  (not (span-within-p (site-span other-site) unit site)))
                          (return nil))     ; OTHER happened before the form began
                        (when (same-value-p wanted (value-had other)) (return other))))
                     ((and (eq (event-kind other) :return) (eq (activation-parent (event-activation other)) activation))
                      (multiple-value-bind (from-unit from) (calling-site (event-activation other))
                        (unless (and (eq unit from-unit) from (span-within-p (site-span from) unit site))
                          (return nil))
                        (when (same-value-p wanted (value-had other)) (return other)))))))))

(defun event-before-end (log event)
  "The last event within the call that returned at EVENT that has the returned value: the value of a
  form, or the return of a call that it made. NIL if there is none."
  (event-with-value log (event-activation event) (value-had event) (event-number event)))

(defun event-with-value (log activation wanted before)
  "The last event before the event number BEFORE that has the value WANTED: the value of a form in
  ACTIVATION, or the return of a call that ACTIVATION made. NIL if there is none."
  (loop for number from (1- before) downto (max (event-log-first log) (activation-begin activation))
        for event = (event-at log number)
        when (and (or (and (eq (event-kind event) :value) (eq (event-activation event) activation))
                      (and (eq (event-kind event) :return) (eq (activation-parent (event-activation event)) activation)))
                  (same-value-p wanted (value-had event)))
          return event))

(defun passed-on-p (event)
  "Returns true if one of the arguments of EVENT's form is a variable whose value is the value of
  the form."
  (let* ((site (nth-value 1 (site-of-number (event-site-number event))))
         (form (site-form site)) (wanted (value-had event)))
    (and (proper-list-p form)
         (loop for name in (site-variables site)
               for kept in (event-variables event)
                 thereis (and (member name (rest form) :test #'eq) (same-value-p wanted kept))))))

(defun event-before-variable (log event)
  "If EVENT's form returns the value of a variable among its arguments, the last earlier event with
  that value, in the same call or, if an argument of this call has the value, in the calling
  function before the call. NIL if there is none."
  (when (passed-on-p event)
    (let* ((activation (event-activation event)) (parent (activation-parent activation)) (wanted (value-had event)))
      (or (event-with-value log activation wanted (event-number event))
          (and parent (activation-unit parent)
               (some (lambda (argument) (same-value-p wanted argument)) (activation-arguments activation))
               (event-with-value log parent wanted (activation-begin activation)))))))

(defun origin-chain (log event)
  "The list of the events through which EVENT's value passed, values of forms and returns of calls:
  the origin first, EVENT last."
  (let ((chain (list event)))
    (loop
      (let ((before (ecase (event-kind (first chain))
                      (:value (or (event-before-form log (first chain)) (event-before-variable log (first chain))))
                      (:return (event-before-end log (first chain))))))
        (unless before (return chain))
        (push before chain)))))

;;; Checks of a test

(defun value-written (text package)
  "A list of the one value that is read from TEXT, which a test framework printed. NIL if TEXT
  cannot be read or has more after the first form."
  (handler-case (let ((*package* package) (*read-eval* nil))
                  (multiple-value-bind (value end) (read-from-string text)
                    (and (null (position-if-not #'blank-p text :start end)) (list value))))
    (error () nil)))

(defun call-with-value (log value)
  "The return event of the last call that the test itself made and that returned VALUE. NIL if there
  is none."
  (let ((kept (keep value)))
    (do-events (event log :from-end t)
      (let ((parent (activation-parent (event-activation event))))
        (when (and (eq (event-kind event) :return) parent (null (activation-unit parent))
                   (same-value-p kept (value-had event)))
          (return-from call-with-value event))))))

(defun failed-check (log)
  "Two values: the first failed check of the recorded test whose wrong value was returned by a call
  that the test made, and the return event of that call. If there is no such check, the first
  failed check or NIL, and NIL."
  (dolist (failure (event-log-failures log) (first (event-log-failures log)))
    (let* ((actual (field failure "actual"))
           (read (and (stringp actual) (value-written actual (event-log-package log))))
           ;; Some frameworks report no expected value, and as the actual value a list of the
           ;; arguments of the predicate. Each argument is then tried too.
           (values (and read (if (and (consp (first read)) (null (field failure "expected")))
                                 (cons (first read) (and (listp (cdr (first read))) (copy-list (first read))))
                                 read)))
           (call (some (lambda (value) (call-with-value log value)) values)))
      (when call (return (values failure call))))))

(defun check-rows (failure)
  (and failure
       (list (row "check" (one-line (bounded-text (field failure "message" "") +kept-text+))
                  (let ((expected (field failure "expected"))) (and expected (format nil "expected ~A" (one-line expected))))
                  nil '()))))

(defun wrong-origin (log)
  "The event at which the value that a failed check reported as wrong first appears. NIL if no
  recorded call of the test returned it."
  (let ((call (nth-value 1 (failed-check log))))
    (and call (first (origin-chain log call)))))

(defun query-origin (log params)
  "The answer to the query for the origin of a value: the event at which the value of the event in
  PARAMS first appeared, the variables there, and the later events through which the value passed.
  Without an event, the value is the one that a failed check of the test reported as wrong. If no
  call returned that value, the answer lists the calls that the test made."
  (let* ((number (param params "event" '(integer 0) :default nil))
         (event (and number (or (event-at log number) (refuse-event log number))))
         (failure nil))
    (cond (event
           (unless (member (event-kind event) '(:value :return))
             (refuse-question "The event ~D has no value: name one of a form or of a return" number)))
          ((null (event-log-failures log))
           (refuse-question "No check of a test has failed in this recording: name an event"))
          (t (setf (values failure event) (failed-check log))))
    (if (null event)
        (paged (append (check-rows failure)
                       (loop for call in (calls-of-recording log)
                             when (null (activation-unit (activation-parent call))) collect (call-row call)))
               params "event" :null)
        (let* ((chain (origin-chain log event)) (origin (first chain)))
          (paged (append (check-rows failure)
                         (list (event-row origin))
                         (variable-rows origin)
                         (mapcar #'event-row (rest chain)))
                 params "event" (event-number origin))))))
