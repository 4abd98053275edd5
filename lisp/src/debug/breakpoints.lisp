;;;; Breakpoints: the probe for a line, a column or a function; conditions, hit counts and log
;;;; messages; putting breakpoints in force, and noticing that they are no longer in force.

(in-package :consort)

(defstruct (breakpoint (:constructor make-breakpoint (owner id file unit site wants test log hit)))
  "The breakpoint ID of OWNER in FILE. WANTS lists the texts of its condition, its log message and
  its hit count. TEST, the condition, and LOG are functions of the variables of SITE, HIT is a
  function of the number of HITS; each may be NIL."
  (owner "" :type string :read-only t) (id 0 :type integer :read-only t) (file "" :type string :read-only t)
  (unit nil :read-only t) (site nil :read-only t) (wants nil :read-only t)
  (test nil :read-only t) (log nil :read-only t) (hit nil :read-only t)
  (hits 0 :type sb-ext:word))

(define-global *breakpoints* '() "The breakpoints that are in force. The list is replaced under *PROBES-LOCK*.")
(define-global *unverified* '() "A list of (OWNER . FILE) whose breakpoints are not all in force.
  Replaced under *PROBES-LOCK*.")

(declaim (special *points-to-wait*))
(defvar *setting-breakpoints* nil "True while this thread sets breakpoints: no `breakpoints-changed`
  is sent then.")

;;; The request for a breakpoint

(defun condition-function (text unit site)
  (let ((forms (handler-case (forms-of-text text (unit-package unit))
                 (error (condition) (refuse-probe "The condition cannot be read: ~A" condition)))))
    (unless (= (length forms) 1)
      (refuse-probe "The condition must be one form, ~S has ~D" text (length forms)))
    (function-of-variables forms site)))

(defun log-parts (text package)
  "The parts of a log message: strings, and a list of the form for each {FORM} in it."
  (let ((parts '()) (at 0))
    (loop
      (let ((open (position #\{ text :start at)))
        (push (subseq text at open) parts)
        (unless open (return (nreverse parts)))
        (let ((in (make-string-input-stream text (1+ open))))
          (push (handler-case (let ((*package* package)) (list (read-delimited-form in)))
                  (error (condition) (refuse-probe "The log message's {...} cannot be read: ~A" condition)))
                parts)
          (setf at (+ 1 open (file-position in))))))))

(defun read-delimited-form (in)
  "Reads one form from IN, and the closing brace after it."
  (let ((*readtable* (copy-readtable)))
    (set-macro-character #\} (get-macro-character #\)))
    (prog1 (read in)
      (unless (eql (read-char (progn (peek-char t in) in)) #\})
        (error "there is more than one form before }")))))

(defun log-function (text unit site)
  (function-of-variables
   `((concatenate 'string ,@(loop for part in (log-parts text (unit-package unit))
                                  collect (if (stringp part) part `(shown-in-log ,(first part))))))
   site))

(defun shown-in-log (value)
  (if (stringp value) value (with-own-settings () (present value (user-package) :case :upcase))))

(defun hit-function (text)
  "The predicate of a number of hits that TEXT describes: `5`, `= 5`, `> 5`, `>= 5`, `< 5`, `<= 5`,
  `!= 5`, `% 5`."
  (let* ((text (string-trim " " text))
         (digits (or (position-if #'digit-char-p text) (length text)))
         (operator (string-trim " " (subseq text 0 digits)))
         (number (ignore-errors (parse-integer text :start digits)))
         (test (cdr (assoc operator (list (cons "" #'=) (cons "=" #'=) (cons "==" #'=) (cons "!=" #'/=) (cons ">" #'>) (cons ">=" #'>=) (cons "<" #'<) (cons "<=" #'<=)
                                          (cons "%" (lambda (hits number) (zerop (mod hits number)))))
                           :test #'string=))))
    (unless (and test number (plusp number))
      (refuse-probe "The hit count ~S is not understood. It is a number, or one after =, !=, >, >=, <, <= or %" text))
    (lambda (hits) (funcall test hits number))))

;;; The probe for a place

(defun point-offset (text line column)
  "The offset in TEXT of LINE and COLUMN, both from 1, in UTF-16 code units; NIL when TEXT has no
  such line."
  (let ((at 0))
    (loop repeat (1- line)
          do (setf at (let ((newline (position #\Newline text :start at))) (if newline (1+ newline) (return-from point-offset nil)))))
    (loop with left = (1- column)
          while (and (plusp left) (< at (length text)) (char/= (char text at) #\Newline))
          do (decf left (if (> (char-code (char text at)) #xFFFF) 2 1))
             (incf at))
    at))

(defun body-start (unit)
  "Returns the end of the lambda list in UNIT's text."
  (let* ((form (unit-form unit))
         (lambda-list (and (not (eq (unit-kind unit) :evaluated)) (find-if #'listp (cddr form))))
         (place (and lambda-list (gethash lambda-list (unit-places unit)))))
    (cond (place (cdr place))
          (t 0)))) ; the list is (), which has no place and no default forms

(defun site-on-line (unit start end)
  "The site of UNIT for a breakpoint on the line from START to END of its text: the outermost form
  that begins there, else the first after it, else the innermost around it."
  (let* ((body (body-start unit))
         ;; On the line of the name, default forms of parameters are skipped.
         (start (if (<= start 0) body start))
         (best nil))
    (flet ((before-p (site other)
             (or (< (site-start site) (site-start other))
                 (and (= (site-start site) (site-start other)) (> (site-end site) (site-end other))))))
      (loop for site across (unit-sites unit)
            when (and (>= (site-start site) start) (or (null best) (before-p site best)))
              do (setf best site))
      (or best
          (loop for site across (unit-sites unit)
                when (and (<= (site-start site) start) (>= (site-end site) (min end start))
                          (or (null best) (>= (site-start site) (site-start best))))
                  do (setf best site)
                finally (return best))))))

(defun site-at (unit offset)
  "The innermost site of UNIT that contains OFFSET of its text; else the first after OFFSET."
  (let ((around nil) (behind nil))
    (loop for site across (unit-sites unit)
          do (cond ((and (<= (site-start site) offset) (< offset (site-end site)))
                    (when (or (null around) (>= (site-start site) (site-start around))) (setf around site)))
                   ((and (> (site-start site) offset) (or (null behind) (< (site-start site) (site-start behind))))
                    (setf behind site))))
    (or around behind)))

(defun piece-at (pieces start)
  "The first of PIECES that ends after START."
  (find-if (lambda (piece) (> (cdr piece) start)) pieces))

(declaim (ftype function site-of-function))
(defun site-of-span (unit span)
  "The site of UNIT that a breakpoint at SPAN means: a list of the start and the end of its line in
  the text of UNIT, and the offset of its column or NIL; or (:FUNCTION NAME)."
  (if (eq (first span) :function)
      (site-of-function unit (second span))
      (destructuring-bind (start end at) span
        (or (if at (site-at unit at) (site-on-line unit start end))
            (refuse-probe "~S has no form to stop at" (unit-name unit))))))

(declaim (ftype function await-evaluation replace-waiting-points refuse-replaced replacing-definitions))
(defun locate-point (owner point file text pieces)
  "The unit and the site for POINT in TEXT, the text of FILE."
  (let* ((line (param point "line" '(integer 1)))
         (column (param point "column" '(integer 1) :default nil))
         (start (or (point-offset text line 1) (refuse-probe "The text has no line ~D" line)))
         (end (or (position #\Newline text :start start) (length text)))
         (piece (or (piece-at pieces start) (refuse-probe "There is no form at or after line ~D" line)))
         (own (car piece))
         (span (list (- start own) (- end own) (and column (max 0 (- (point-offset text line column) own)))))
         (unit (handler-bind ((not-yet-probed (lambda (condition)
                                                (declare (ignore condition))
                                                (await-evaluation owner file text piece span point))))
                 (ensure-unit file text pieces piece))))
    (let ((site (site-of-span unit span)))
      (when (eq (unit-kind unit) :evaluated)
        ;; The breakpoint also waits for the next evaluation of the form.
        (await-evaluation owner file text piece span point)
        (refuse-replaced unit site))
      (values unit site))))

;;; Putting in force

(defun wanted-text (point key)
  (let ((text (param point key 'string :default nil)))
    (and text (string/= "" (string-trim " " text)) text)))

(defun breakpoint-for (owner file point unit site known)
  "The breakpoint for POINT at SITE of UNIT. If KNOWN has the same one, that is returned, with its
  hits."
  (let* ((id (param point "id" 'integer :default 0))
         (condition (wanted-text point "condition"))
         (log (wanted-text point "log"))
         (hit (wanted-text point "hit"))
         (wants (list condition log hit)))
    (or (find-if (lambda (breakpoint)
                   (and (eq (breakpoint-site breakpoint) site) (eql (breakpoint-id breakpoint) id) (equal (breakpoint-wants breakpoint) wants)))
                 known)
        (make-breakpoint owner id file unit site wants
                         (and condition (condition-function condition unit site))
                         (and log (log-function log unit site))
                         (and hit (hit-function hit))))))

(defun flag-breakpoints (unit)
  "Sets the break flags of UNIT, and the breakpoints of its sites, by the breakpoints in force."
  (loop for site across (unit-sites unit)
        do (setf (site-breakpoints site) (remove site *breakpoints* :key #'breakpoint-site :test-not #'eq)))
  ;; The flags of steps are in the same octets.
  (with-lock (*stepping-lock*)
    (loop for site across (unit-sites unit)
          for number from 0
          for flags = (unit-flags unit)
          do (setf (aref flags number)
                   (if (site-breakpoints site) (logior +break-flag+ (aref flags number)) (logandc2 (aref flags number) +break-flag+))))))

(defun unit-used-p (unit)
  (find unit *breakpoints* :key #'breakpoint-unit :test #'eq))

(defun code-with-probes-runs-p ()
  "Returns true if an evaluation, or a thread that is stopped or steps, may still be in a definition
  with probes, and stop there."
  (or *stops* *stepping* (some #'evaluation-debug *running*)))

(defun settle-units ()
  "Sets the flags of all units according to their breakpoints and, unless an evaluation steps,
  removes the units that have none. Such a unit stays in *UNITS* as long as an evaluation that could
  stop may still run its code. *PROBES-LOCK* is held."
  (mapc #'flag-breakpoints *units*)
  (dolist (unit *units*)
    (unless (or (unit-used-p unit) *stepping*) (take-out unit)))
  (unless (code-with-probes-runs-p)
    (setf *units* (remove-if-not (lambda (unit)
                                   (or (unit-used-p unit) (and (eq (unit-state unit) :in-place) (not (eq (unit-kind unit) :evaluated)))))
                                 *units*))))

(defun verified-json (unit site)
  (list* :object "verified" :true "message" :null (unit-span-fields unit (site-span site))))

(defun unverified-json (condition)
  (object "verified" :false
          "message" (typecase condition
                      (unprobed (refusal-why condition))
                      (t (format nil "~A: ~A" (condition-type condition) (condition-message condition))))))

(defun settle-units-soon ()
  "Calls SETTLE-UNITS in one of Consort's threads, as soon as the lock is free."
  (call-in-helper (lambda ()
                    (let ((*setting-breakpoints* t))
                      (sb-thread:with-mutex (*probes-lock*) (settle-units))))))

(defun words-of-piece (file text piece)
  "Describes the PIECE of TEXT, a definition in FILE."
  (format nil "~A (line ~D of ~A)" (clipped-line (subseq text (car piece) (cdr piece))) (line-and-column text (car piece)) file))

(defun clipped-line (text)
  "The first line of TEXT, its first 60 characters."
  (let ((line (first-line text)))
    (if (> (length line) 60) (concatenate 'string (subseq line 0 60) "...") line)))

(defun point-within (seconds owner file point locate key words known)
  "The JSON of POINT, and its breakpoint or NIL; third value: true if it took longer than SECONDS.
  LOCATE, KEY, WORDS and KNOWN as in CALL-SETTING-BREAKPOINTS."
  (let* ((own (list key (wanted-text point "condition") (wanted-text point "log")))
         (message (or (timed-out-definition-message owner file key) (timed-out-definition-message owner file own)))
         (located nil))
    (flet ((unset (message) (object "verified" :false "message" message)))
      (if message
          (unset message)
          (values-list
           (call-with-time-limit seconds
                        (lambda ()
                          (handler-case
                              (multiple-value-bind (unit site) (funcall (the function locate) point)
                                (setf located t)
                                (let ((breakpoint (breakpoint-for owner file point unit site known)))
                                  (list (verified-json unit site) breakpoint)))
                            (error (condition) (list (unverified-json condition)))))
                        (lambda (holder)
                          (let ((message (timeout-message (funcall (the function words) point) seconds holder)))
                            (unless holder (note-timed-out-definition owner file (if located own key) message))
                            (list (unset message) nil t)))))))))

(defun call-setting-breakpoints (owner file locate key words points timeout)
  "Makes POINTS the breakpoints of OWNER in FILE, in place of all earlier ones. Returns a vector
  with the JSON of each. LOCATE returns the unit and the site of a point. KEY returns an object that
  identifies the definition before it is read, and WORDS a description of the definition. A
  definition that takes longer than TIMEOUT seconds is left as it is. After the first such
  definition, all others together have TIMEOUT seconds, but each at least half a second."
  (let ((*setting-breakpoints* t) (*points-to-wait* '()) (until nil) (keys (map 'list key points)))
    (sb-thread:with-mutex (*probes-lock*)
      (retain-timed-out-definitions owner file keys)
      (flet ((ours-p (breakpoint) (and (string= (breakpoint-owner breakpoint) owner) (string= (breakpoint-file breakpoint) file))))
        (let* ((known (remove-if-not #'ours-p *breakpoints*))
               (made '())
               (answers (map 'vector
                             (lambda (point key)
                               (multiple-value-bind (answer breakpoint late)
                                   (point-within (if until (max 1/2 (/ (- until (now-ms)) 1000)) timeout) owner file point locate key words known)
                                 (when (and late (not until)) (setf until (+ (now-ms) (* 1000 timeout))))
                                 (when breakpoint (push breakpoint made))
                                 answer))
                             points keys)))
          (without-interrupts
            (replace-waiting-points owner file)
            (setf *breakpoints* (append (remove-if #'ours-p *breakpoints*) (reverse made))
                  *unverified* (remove-if (lambda (entry) (and (string= (car entry) owner) (string= (cdr entry) file))) *unverified*))
            (when (find :false answers :key (lambda (answer) (field answer "verified")))
              (push (cons owner file) *unverified*)))
          (settle-units)
          answers)))))

(defun pieces-in-time (file text timeout)
  "TOPLEVEL-PIECES, which calls the reader macros of the user. Refuses after TIMEOUT seconds."
  (call-with-time-limit timeout
                        (lambda () (toplevel-pieces text))
                        (lambda (holder)
                          (declare (ignore holder))
                          (refuse-probe "the text of ~A was not read within ~A s: a reader macro may not end" file timeout))))

(defun forget-breakpoints (owner file timeout)
  "Removes the breakpoints of OWNER in FILE, which are to be set again as soon as possible."
  (call-setting-breakpoints owner file (constantly nil) (constantly nil) (constantly "") #() timeout)
  (sb-thread:with-mutex (*probes-lock*)
    (pushnew (cons owner file) *unverified* :test #'equal)))

(defun set-breakpoints (owner file text points timeout)
  "Makes POINTS in TEXT the breakpoints of OWNER in FILE, in place of all earlier ones."
  (let ((*for-agent* (session-of-agent-p owner))
        (pieces (and (plusp (length points))
                     (handler-bind ((unprobed (lambda (condition)
                                                (declare (ignore condition))
                                                (forget-breakpoints owner file timeout))))
                       (pieces-in-time file text timeout)))))
    (flet ((piece-of (point)
             (let* ((line (field point "line")) (start (and (typep line '(integer 1)) (point-offset text line 1))))
               (and start (piece-at pieces start)))))
      (call-setting-breakpoints owner file
                                (lambda (point) (locate-point owner point file text pieces))
                                (lambda (point) (let ((piece (piece-of point))) (and piece (subseq text (car piece) (cdr piece)))))
                                (lambda (point) (words-of-piece file text (piece-of point)))
                                points timeout))))

(defun possible-sites (file text start-line end-line timeout)
  "The JSON of the places from START-LINE to END-LINE of TEXT where there can be breakpoints. No
  definition gets probes by this. Refuses after TIMEOUT seconds."
  (let ((*setting-breakpoints* t) (pieces (pieces-in-time file text timeout)))
    (sb-thread:with-mutex (*probes-lock*)
      (let* ((start (point-offset text start-line 1))
             (piece (and start (piece-at pieces start)))
             (unit (and piece
                        (call-with-time-limit timeout
                                     (lambda () (handler-case (ensure-unit file text pieces piece) (error () nil)))
                                     (lambda (holder)
                                       (settle-units)
                                       (refuse-probe "~A" (timeout-message (words-of-piece file text piece) timeout holder)))))))
        (prog1
            (if (null unit)
                #()
                (coerce (loop for site across (unit-sites unit)
                              for fields = (cons :object (unit-span-fields unit (site-span site)))
                              when (<= start-line (aref (field fields "position") 0) end-line)
                                collect fields)
                        'vector))
          (settle-units))))))

;;; Definitions that were made anew

(defun report-changed (changed)
  "Asks the host to set the breakpoints of CHANGED, a list of (OWNER . FILE), again."
  (when changed
    (send-event "breakpoints-changed"
                "changed" (map 'vector (lambda (entry) (object "owner" (car entry) "file" (cdr entry)))
                               (remove-duplicates changed :test #'equal)))))

(defun note-changed-definitions ()
  "Is called after user code has run. Reports to the host the owners and files whose breakpoints are
  no longer in force, or may be put in force now. The host then sets them again."
  (unless (or *setting-breakpoints* *in-copy* (not (or *breakpoints* *unverified* *units*)))
    (let ((changed *unverified*))
      (dolist (breakpoint *breakpoints*)
        (let ((unit (breakpoint-unit breakpoint)))
          (when (or (not (eq (unit-state unit) :in-place))
                    (if (eq (unit-kind unit) :evaluated) (replacing-definitions unit (breakpoint-site breakpoint)) (unit-lost-p unit)))
            (pushnew (cons (breakpoint-owner breakpoint) (breakpoint-file breakpoint)) changed :test #'equal))))
      (report-changed changed))
    (unless (code-with-probes-runs-p)
      (settle-units-soon))))
