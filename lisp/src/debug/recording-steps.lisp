;;;; Steps through a recording: the next or the previous event of the same call, the end of a call,
;;;; the next or the previous event at a breakpoint.

(in-package :consort)

(defun shown-event-p (event)
  "Returns true if EVENT is of a recorded definition, so that it has a place."
  (and (activation-unit (event-activation event)) t))

(defun first-shown (log)
  (do-events (event log) (when (shown-event-p event) (return-from first-shown event)))
  (refuse-question "The recording has no call of a recorded definition to step through"))

(defun last-shown (log)
  (do-events (event log :from-end t) (when (shown-event-p event) (return-from last-shown event)))
  (refuse-question "The recording has no call of a recorded definition to step through"))

(defun failed-event (log)
  "The event of the error that nothing handled, if it is kept."
  (let ((event (and (event-log-failed log) (event-at log (event-log-failed log)))))
    (and event (shown-event-p event) event)))

(defun query-begin (log params)
  "The event that is shown first: that of the error that nothing handled; otherwise the one at which
  the value that a check of a test found wrong first appears; otherwise the first event."
  (declare (ignore params))
  (let* ((failed (failed-event log)) (wrong (and (null failed) (wrong-origin log))))
    (event-object log (or failed wrong (first-shown log))
                  "reason" (cond (failed "error") (wrong "wrong") (t "begin"))
                  "check" (or-null (and wrong (field (failed-check log) "message"))))))

;;; Steps

(defun outer-calls-p (event)
  "A function that returns true for the events of EVENT's call and of those around it."
  (let* ((activation (event-activation event)) (depth (activation-depth activation))
         (calls (make-array (1+ depth) :initial-element nil)))
    (loop for around = activation then (activation-parent around)
          while around
          do (setf (svref calls (activation-depth around)) around))
    (lambda (other)
      (let ((at (activation-depth (event-activation other))))
        (and (<= at depth) (eq (svref calls at) (event-activation other)))))))

(defun event-after (log event wanted-p)
  "The first shown event after EVENT that is wanted, or NIL."
  (loop for number from (1+ (event-number event)) below (event-log-count log)
        for other = (event-at log number)
        when (and (shown-event-p other) (funcall wanted-p other)) return other))

(defun event-before (log event wanted-p)
  (loop for number from (1- (event-number event)) downto (event-log-first log)
        for other = (event-at log number)
        when (and (shown-event-p other) (funcall wanted-p other)) return other))

(defun end-of-call (log event)
  "The event of the end of EVENT's call. If EVENT is that end, the next event of a call around it."
  (if (member (event-kind event) '(:return :exit))
      (event-after log event (outer-calls-p event))
      (event-after log event (lambda (other)
                               (and (eq (event-activation other) (event-activation event))
                                    (member (event-kind other) '(:return :exit)))))))

;;; Breakpoints

(defstruct (recorded-point (:conc-name recorded-point-) (:constructor make-recorded-point (id unit site places)))
  "The breakpoint ID, at SITE of UNIT or at the beginning of its calls. PLACES maps the span of each
  site of the breakpoint's line to that of the outermost of them around it. PASSES maps an
  activation to the form that its call evaluates there now: (OUTERMOST . FIRST), the spans of the
  outermost form and of the one that had a value first."
  (id 0 :read-only t) (unit nil :read-only t) (site nil :read-only t) (places nil :read-only t)
  (passes (make-hash-table :test #'eq) :read-only t))

(defun outermost-spans (sites)
  "A table from the span of each of SITES to the span of the outermost of SITES around it."
  (let ((table (make-hash-table :test #'equal)))
    (loop for site across sites
          do (setf (gethash (site-span site) table)
                   (loop with best = site
                         for other across sites
                         when (and (<= (site-start other) (site-start best)) (>= (site-end other) (site-end best)))
                           do (setf best other)
                         finally (return (site-span best)))))
    table))

(defun sites-from-line (unit line)
  "The sites of UNIT that begin on LINE of its file, or on the next line that has any."
  (let* ((own (1+ (- line (unit-line unit))))
         (start (and (plusp own) (point-offset (unit-text unit) own 1)))
         (next (and start (loop for site across (unit-sites unit)
                                when (>= (site-start site) start) minimize (site-start site)))))
    (if (and next (plusp next))
        (sites-at unit (line-and-column (unit-text unit) next 0 (unit-line unit) (unit-column unit)) nil)
        #())))

(defun unit-lines (unit)
  "The first and the last line of UNIT in its file."
  (values (unit-line unit) (line-and-column (unit-text unit) (length (unit-text unit)) 0 (unit-line unit) (unit-column unit))))

(defun point-meant (file point)
  "The RECORDED-POINT that POINT of FILE means, or NIL."
  (let* ((line (param point "line" '(integer 1))) (column (param point "column" '(integer 1) :default nil))
         (id (param point "id" '(integer 0))))
    (loop for unit across *recorded-units*
          do (multiple-value-bind (first last) (unit-lines unit)
               (when (and (<= first line last) (same-native-file-p file (unit-file unit)))
                 (if (and (= line first) (null column))
                     (return (make-recorded-point id unit nil nil))
                     (let ((sites (if column (sites-at unit line column) (sites-from-line unit line))))
                       (when (plusp (length sites))
                         (return (make-recorded-point id unit (reduce (lambda (one other) (if (<= (site-start one) (site-start other)) one other)) sites)
                                                      (outermost-spans sites)))))))))))

(defun points-meant (params)
  "The breakpoints of PARAMS, each a POINT-MEANT or NIL."
  (map 'list (lambda (point) (point-meant (param point "file" 'string) point))
       (param params "points" 'vector :default #())))

(defun query-breakpoints (log params)
  "Answers the place of each breakpoint, or null."
  (declare (ignore log))
  (object "places" (map 'vector (lambda (point)
                                  (if point
                                      (cons :object (place-fields (recorded-point-unit point) (recorded-point-site point)))
                                      :null))
                        (points-meant params))))

(defun event-place (event)
  "The unit and the site of EVENT, if it is of a form."
  (case (event-kind event)
    (:value (site-of-number (event-site-number event)))
    (:signal (site-of-signal event))))

(defun within-p (span outer)
  (<= (car outer) (car span) (cdr span) (cdr outer)))

(defun comes-to-p (point event unit site)
  "Returns true if the program comes to POINT with EVENT, at SITE of UNIT. It does if SITE's form is
  the first of the line that has a value, or if the form that was the first has a value again. Must
  be called for every event, in order."
  (let ((activation (event-activation event)))
    (cond ((null (recorded-point-site point))
           (and (eq (event-kind event) :call) (eq (activation-unit activation) (recorded-point-unit point))))
          ((and site (eq unit (recorded-point-unit point)))
           (let* ((span (site-span site))
                  (pass (gethash activation (recorded-point-passes point)))
                  (outermost (gethash span (recorded-point-places point)))
                  (inside (and pass (within-p span (car pass))))
                  (hit (and outermost (or (not inside) (equal span (cdr pass))))))
             (cond ((or (equal span (if hit outermost (car pass))) (not (or inside hit)))
                    (remhash activation (recorded-point-passes point)))
                   (hit (setf (gethash activation (recorded-point-passes point)) (cons outermost span))))
             hit)))))

(defun event-at-point (log points event direction)
  "The next event at one of POINTS after EVENT, or the last one before it, and the ids of the
  breakpoints there."
  (let ((found nil) (ids '()) (limit (event-number event)))
    (do-events (other log)
      (when (and (eq direction :back) (>= (event-number other) limit)) (return))
      (when (shown-event-p other)
        (multiple-value-bind (unit site) (event-place other)
          (let ((hit (loop for point in points
                           when (comes-to-p point other unit site) collect (recorded-point-id point))))
            (when (and hit (or (eq direction :back) (> (event-number other) limit)))
              (setf found other ids hit)
              (unless (eq direction :back) (return)))))))
    (values found ids)))

(defun go-to-point (log points event direction)
  "The event, the reason and the ids of the breakpoints where running from EVENT in DIRECTION stops.
  Forwards, the error that nothing handled stops it too."
  (multiple-value-bind (found ids) (and points (event-at-point log points event direction))
    (let ((failed (and (eq direction :forth) (failed-event log))))
      (cond ((and failed (> (event-number failed) (event-number event))
                  (or (null found) (< (event-number failed) (event-number found))))
             (values failed "error" '()))
            (found (values found "breakpoint" ids))
            ((eq direction :forth) (values (last-shown log) "end" '()))
            (t (values (first-shown log) "begin" '()))))))

(defun query-step (log params)
  "The event at which a step from an event, or a run to a breakpoint, ends, with the reason."
  (let* ((event (wanted-event log params)) (how (param params "how" 'string)) (reason "step") (ids '())
         (to (cond ((string= how "next") (event-after log event (outer-calls-p event)))
                   ((string= how "back") (event-before log event (outer-calls-p event)))
                   ((string= how "into") (event-after log event (constantly t)))
                   ((string= how "out") (end-of-call log event))
                   ((or (string= how "continue") (string= how "reverse"))
                    (multiple-value-bind (to why hit)
                        (go-to-point log (remove nil (points-meant params)) event (if (string= how "continue") :forth :back))
                      (setf reason why ids hit)
                      to))
                   (t (refuse-question "There is no step ~A" how)))))
    (cond ((null to)
           (let ((back (string= how "back")))
             (setf to (if back (first-shown log) (last-shown log)) reason (if back "begin" "end"))))
          ((and (string= reason "step") (eql (event-number to) (event-log-failed log)))
           (setf reason "error")))
    (event-object log to "reason" reason "ids" (coerce ids 'vector))))
