;;;; The origin of a value in a recording: the form by which it first came to be, found from the
;;;; call or the form that had it last; and that of the value that a check of a test found wrong.

(in-package :consort)

(defun value-had (event)
  "The kept value of EVENT, a form or a call; the first of several."
  (let ((kept (event-kept event)))
    (if (several-p kept) (first (several-values kept)) kept)))

(defun same-value-p (one other)
  "Returns true if what was kept in ONE and OTHER looks the same."
  (or (eql one other)
      (and (eq (type-of one) (type-of other))
           (string= (kept-text one (user-package)) (kept-text other (user-package))))
      (and (typep one '(or cons string vector)) (typep other '(or cons string vector))
           (string= (kept-text one (user-package)) (kept-text other (user-package))))))

(defun span-within-p (span unit site)
  "Returns true if SPAN lies within SITE of UNIT; SITE NIL is all of it."
  (declare (ignore unit))
  (or (null site)
      (and (<= (site-start site) (car span)) (<= (cdr span) (site-end site)))))

(defun calling-site (activation)
  "The unit and the site at which the parent of ACTIVATION called it, as far as is known."
  (multiple-value-bind (unit site) (place-of-activation (activation-from activation))
    (values unit site)))

(defun event-before-form (log event)
  "The event at which EVENT's form got the value that it has: of a form within it, or the end of a
  call that it made. NIL where the form made the value itself."
  (multiple-value-bind (unit site) (site-of-number (event-site-number event))
    (let ((activation (event-activation event)) (wanted (value-had event)))
      (loop for number from (1- (event-number event)) downto (max (event-log-first log) (activation-begin activation))
            for other = (event-at log number)
            do (cond ((and (eq (event-activation other) activation) (eq (event-kind other) :value))
                      (multiple-value-bind (other-unit other-site) (site-of-number (event-site-number other))
                        (when (or (not (eq unit other-unit)) (equal (site-span other-site) (site-span site))
                                  (not (span-within-p (site-span other-site) unit site)))
                          (return nil))     ; it came before the form began
                        (when (same-value-p wanted (value-had other)) (return other))))
                     ((and (eq (event-kind other) :return) (eq (activation-parent (event-activation other)) activation))
                      (multiple-value-bind (from-unit from) (calling-site (event-activation other))
                        (unless (and (eq unit from-unit) from (span-within-p (site-span from) unit site))
                          (return nil))
                        (when (same-value-p wanted (value-had other)) (return other)))))))))

(defun event-before-end (log event)
  "The last event of EVENT's call, which has ended there, with the value that it returned: of a form,
  or the end of a call that it made."
  (event-with-value log (event-activation event) (value-had event) (event-number event)))

(defun event-with-value (log activation wanted before)
  "The last event before the event BEFORE of a form of ACTIVATION, or of the end of a call that it
  made, that has the value WANTED."
  (loop for number from (1- before) downto (max (event-log-first log) (activation-begin activation))
        for event = (event-at log number)
        when (and (or (and (eq (event-kind event) :value) (eq (event-activation event) activation))
                      (and (eq (event-kind event) :return) (eq (activation-parent (event-activation event)) activation)))
                  (same-value-p wanted (value-had event)))
          return event))

(defun passed-on-p (event)
  "Returns true if EVENT's form has a variable among its arguments that has the value of the form."
  (let* ((site (nth-value 1 (site-of-number (event-site-number event))))
         (form (site-form site)) (wanted (value-had event)))
    (and (proper-list-p form)
         (loop for name in (site-variables site)
               for kept in (event-variables event)
                 thereis (and (member name (rest form) :test #'eq) (same-value-p wanted kept))))))

(defun event-before-variable (log event)
  "The event at which the variable got its value, if EVENT's form only passes on the value of one:
  in the same call or, where it is an argument, in the call around it."
  (when (passed-on-p event)
    (let* ((activation (event-activation event)) (parent (activation-parent activation)) (wanted (value-had event)))
      (or (event-with-value log activation wanted (event-number event))
          (and parent (activation-unit parent)
               (some (lambda (argument) (same-value-p wanted argument)) (activation-arguments activation))
               (event-with-value log parent wanted (activation-begin activation)))))))

(defun origin-chain (log event)
  "EVENT and the events by which its value came to it, values of forms and returns of calls, the
  origin first."
  (let ((chain (list event)))
    (loop
      (let ((before (ecase (event-kind (first chain))
                      (:value (or (event-before-form log (first chain)) (event-before-variable log (first chain))))
                      (:return (event-before-end log (first chain))))))
        (unless before (return chain))
        (push before chain)))))

;;; Checks of a test

(defun value-written (text package)
  "A list of the value that a framework printed as TEXT, or NIL where it cannot be read."
  (handler-case (let ((*package* package) (*read-eval* nil))
                  (multiple-value-bind (value end) (read-from-string text)
                    (and (null (position-if-not #'blank-p text :start end)) (list value))))
    (error () nil)))

(defun call-with-value (log value)
  "The end of the last call that the test itself made which returned VALUE, or NIL."
  (let ((kept (keep value)))
    (do-events (event log :from-end t)
      (let ((parent (activation-parent (event-activation event))))
        (when (and (eq (event-kind event) :return) parent (null (activation-unit parent))
                   (same-value-p kept (value-had event)))
          (return-from call-with-value event))))))

(defun failed-check (log)
  "The first failure of the recorded test whose wrong value is that of a recorded call, and the end
  of that call; the first failure alone where there is none."
  (dolist (failure (event-log-failures log) (first (event-log-failures log)))
    (let* ((actual (field failure "actual"))
           (read (and (stringp actual) (value-written actual (event-log-package log))))
           ;; Some frameworks tell the arguments of the predicate, in a list.
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
  "The event at which the value that a check found wrong first appears, if that can be told."
  (let ((call (nth-value 1 (failed-check log))))
    (and call (first (origin-chain log call)))))

(defun query-origin (log params)
  "Where the value of an event first appeared, with the way that it took from there; without an
  event, that of the value that a check of the test found wrong."
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
