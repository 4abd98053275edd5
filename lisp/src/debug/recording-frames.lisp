;;;; The frames of a recorded moment: the calls around an event, each with its place, its variables,
;;;; the last values of its forms, and the parts of these values.

(in-package :consort)

(defconstant +frame-text+ 100 "The maximum number of characters that are shown of a frame's call.")

(defstruct (recorded-frame (:conc-name recorded-frame-) (:constructor make-recorded-frame (activation unit site names values)))
  "An ACTIVATION at a moment: at SITE of UNIT, or at the beginning of UNIT without one, where the
  variables NAMES had VALUES."
  (activation nil :read-only t) (unit nil :read-only t) (site nil :read-only t)
  (names '() :type list :read-only t) (values '() :type list :read-only t))

(defun wanted-event (log params)
  "The event that PARAMS name, which must be of a recorded definition."
  (let* ((number (param params "event" '(integer 0))) (event (event-at log number)))
    (unless (and event (activation-unit (event-activation event)))
      (refuse-event log number))
    event))

(defun place-of-activation (at)
  "The unit, the site and the names of the variables at the place AT of an activation."
  (cond ((or (null at) (= at +nowhere+)) (values nil nil '()))
        ((minusp at) (multiple-value-bind (unit site) (site-of-number (- -1 at))
                       (values unit (or (site-around unit site) site) (site-variables site))))
        (t (multiple-value-bind (unit site) (site-of-number at) (values unit site (site-variables site))))))

(defun argument-names (unit)
  "The names of the arguments that activations of UNIT keep, as far as each argument has a name."
  (case (unit-kind unit)
    (:function (loop for item in (third (unit-form unit))
                     until (member item lambda-list-keywords)
                     when (symbolp item) collect item))
    (:method (parameter-variables (find-if #'listp (cddr (unit-form unit)))))))

(defun frame-at (activation at values &key (placed t))
  "The frame of ACTIVATION at the place AT, with the VALUES of the variables there. Unless PLACED,
  its place is that of the whole definition."
  (multiple-value-bind (unit site names) (place-of-activation at)
    (if (and placed site)
        (make-recorded-frame activation unit site names values)
        (make-recorded-frame activation (activation-unit activation) nil names values))))

(defun frame-of-event (event)
  "The innermost frame at EVENT."
  (let* ((activation (event-activation event)) (unit (activation-unit activation)))
    (ecase (event-kind event)
      (:value (multiple-value-bind (unit site) (site-of-number (event-site-number event))
                (make-recorded-frame activation unit site (site-variables site) (event-variables event))))
      (:signal (frame-at activation (event-site-number event) (event-variables event)))
      (:call (make-recorded-frame activation unit nil (argument-names unit) (activation-arguments activation)))
      (:return (frame-at activation (activation-at activation) (event-variables event) :placed nil))
      (:exit (frame-at activation (activation-at activation) (event-variables event))))))

(defun frames-of-event (event)
  "The frames at EVENT, innermost first."
  (cons (frame-of-event event)
        (loop for activation = (event-activation event) then parent
              for parent = (activation-parent activation)
              while (and parent (activation-unit parent))
              collect (frame-at parent (activation-from activation) (activation-from-variables activation)))))

(defun unit-number (unit)
  (position unit *recorded-units*))

(defun frame-fields (frame)
  (let* ((unit (recorded-frame-unit frame)) (site (recorded-frame-site frame)))
    (list* :object "name" (bounded-text (call-text (recorded-frame-activation frame)) +frame-text+)
                   "unit" (or-null (unit-number unit))
                   (place-fields unit site))))

(defun event-object (log event &rest fields)
  "The JSON of EVENT: its row, and whether its error was unhandled."
  (append (event-row event)
          (list "error" (bool (eql (event-number event) (event-log-failed log))))
          fields))

(defun query-frames (log params)
  "The calls around an event, from `start` on."
  (let* ((event (wanted-event log params)) (frames (frames-of-event event)))
    (paged (mapcar (lambda (frame) (lambda () (frame-fields frame))) frames) params)))

(defun query-text (log params)
  "The text of a recorded definition, with the line and the column where it begins."
  (declare (ignore log))
  (let* ((number (param params "unit" '(integer 0)))
         (unit (and (< number (length *recorded-units*)) (aref *recorded-units* number))))
    (unless unit (refuse-question "There is no recorded definition ~D" number))
    (object "text" (unit-text unit) "line" (unit-line unit) "column" (unit-column unit))))

;;; Values

(defun last-values (log frame before)
  "The events of the values that the forms of FRAME had last before the event BEFORE, in the order
  of their places."
  (let ((activation (recorded-frame-activation frame)) (seen (make-hash-table :test #'equal)) (found '()))
    (loop for number from (1- before) downto (max (event-log-first log) (activation-begin activation))
          for event = (event-at log number)
          when (and (eq (event-activation event) activation) (eq (event-kind event) :value))
            do (multiple-value-bind (unit site) (site-of-number (event-site-number event))
                 (let ((key (cons unit (site-span site))))
                   (unless (gethash key seen)
                     (setf (gethash key seen) t)
                     (push event found)))))
    (sort found #'< :key (lambda (event) (site-start (nth-value 1 (site-of-number (event-site-number event))))))))

(defun value-of-event (event)
  "Returns the data of the event itself, as an entry in a list: the value of its form, or a
  condition."
  (case (event-kind event)
    ((:value :return) (list (list "=>" (event-kept event) nil)))
    (:signal (list (list "condition" (cdr (event-kept event)) nil)))))

(defun entries-of-scope (log event number scope)
  "The entries of SCOPE, `variables` or `values`, of the frame NUMBER at EVENT, a list of (label
  kept name), and the package that they are shown in."
  (let ((frame (nth number (frames-of-event event))))
    (unless frame (refuse-question "There is no call ~D around the event ~D" number (event-number event)))
    (values (cond ((string= scope "variables")
                   (append (and (zerop number) (value-of-event event))
                           (loop for name in (recorded-frame-names frame)
                                 for kept in (recorded-frame-values frame)
                                 collect (list (variable-label name) kept name))))
                  ((string= scope "values")
                   (loop for other in (last-values log frame (event-number event))
                         collect (multiple-value-bind (unit site) (site-of-number (event-site-number other))
                                   (list (form-text unit site) (event-kept other) nil))))
                  (t (refuse-question "There is no scope ~A" scope)))
            (unit-package (recorded-frame-unit frame)))))

(defun parts-of-kept (kept package)
  "The parts of KEPT, a list of (label kept)."
  (flet ((numbered (parts) (loop for part in parts for index from 0 collect (list (format nil "[~D]" index) part))))
    (typecase kept
      (several (numbered (several-values kept)))
      (cons (loop for tail = kept then (cdr tail)
                  for index from 0
                  while (consp tail)
                  collect (list (format nil "[~D]" index) (car tail)) into parts
                  finally (return (if tail (append parts (list (list "." tail))) parts))))
      (simple-vector (numbered (coerce kept 'list)))
      (object-snapshot (if (object-snapshot-labels kept)
                   (loop for label in (object-snapshot-labels kept)
                         for part in (object-snapshot-parts kept)
                         collect (list (if (and label (symbolp label) (not (eq (object-snapshot-type kept) 'hash-table)))
                                           (string-downcase label)
                                           (present (revived label package) package))
                                       part))
                   (numbered (object-snapshot-parts kept)))))))

(defun entry-json (entry package)
  (destructuring-bind (label kept &rest more) entry
    (declare (ignore more))
    (object "name" label "value" (result-text kept package) "parts" (length (parts-of-kept kept package)))))

(defun paged-entries (entries package params)
  (paged (mapcar (lambda (entry) (lambda () (entry-json entry package))) entries) params))

(defun query-parts (log params)
  "The values of `scope` of a frame at an event, or the parts of one: `path` is the number of the
  value in the scope, followed by the number of a part at each further level."
  (let ((path (coerce (param params "path" 'vector :default #()) 'list)))
    (multiple-value-bind (entries package)
        (entries-of-scope log (wanted-event log params) (param params "frame" '(integer 0)) (param params "scope" 'string))
      (dolist (index path)
        (let ((entry (and (typep index '(integer 0)) (nth index entries))))
          (unless entry (refuse-question "There is no such part"))
          (setf entries (parts-of-kept (second entry) package))))
      (paged-entries entries package params))))

;;; Expressions

(defun evaluate-over (text names values package)
  "The kept values of TEXT, evaluated with copies of the kept VALUES as the values of the variables
  NAMES."
  (multiple-value-bind (form used) (read-over-variables "expression" text names package)
    (let ((function (compile-quietly `(lambda ,used (declare (ignorable ,@used)) ,form))))
      (call-with-alarm
       +condition-seconds+
       (lambda () (refuse-question "The expression took more than ~D seconds" +condition-seconds+))
       (lambda ()
         (handler-case
             (keep-results (multiple-value-list
                            (apply (the function function)
                                   (loop for name in used
                                         collect (with-instances (keep (nth (position name names) values)))))))
           (unanswerable (condition) (error condition))
           (error (condition)
             (refuse-question "~A: ~A" (condition-type condition) (condition-message condition)))))))))

(defun query-evaluate (log params)
  "The value of `code` in a frame at an event: a variable, or, unless `hover`, an expression over
  copies of the variables' values."
  (let* ((event (wanted-event log params)) (number (param params "frame" '(integer 0)))
         (code (string-trim '(#\Space #\Newline #\Tab) (param params "code" 'string))))
    (multiple-value-bind (entries package) (entries-of-scope log event number "variables")
      (let ((at (position-if (lambda (entry) (or (string= (first entry) code)
                                                 (and (third entry) (name-matches-p (third entry) code))))
                             entries)))
        (cond (at (append (entry-json (nth at entries) package) (list "path" (vector at))))
              ((param params "hover" 'boolean :default nil)
               (refuse-question "No value of ~A is recorded at this moment" code))
              (t (let* ((variables (remove nil entries :key #'third))
                        (kept (let ((*package* package))
                                (evaluate-over code (mapcar #'third variables) (mapcar #'second variables) package))))
                   (object "name" code "value" (result-text kept package) "parts" 0))))))))
