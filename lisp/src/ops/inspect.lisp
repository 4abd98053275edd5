;;;; `inspect`: a page of the parts of a value that was shown.

(in-package :consort)

(defconstant +page-limit+ 1000 "The maximum number of parts, rows, frames or variables of one
  page.")

(defun inspected-json (object stop start count &optional reference)
  "The JSON of COUNT parts from START of OBJECT. STOP is the stop to whose stack OBJECT belongs, or
  NIL. The parts can be set by the reference in this JSON, and by the number REFERENCE."
  (multiple-value-bind (kind total parts note) (parts-of object start (+ start count))
    (object "value" (let ((value (value-json object stop)))
                      (note-shown-keys (field value "reference") object parts start)
                      (when reference (note-shown-keys reference object parts start))
                      value)
            "kind" kind
            "note" (or-null note)
            "total" total
            "stop" (if stop (stopped-id stop) :null)
            "parts" (map 'vector (lambda (part) (part-json part stop)) parts))))

(defun part-along (object path)
  "The part of OBJECT to which PATH leads. PATH is a list of the numbers of parts, outermost first.
  Refuses if there is no such part."
  (dolist (number path object)
    (let ((part (first (nth-value 2 (parts-of object number (1+ number))))))
      (cond ((null part) (refuse "not-found" "~A has no part ~D" (present object (user-package) :case :upcase) number))
            ((stringp (second part)) (refuse "not-found" "The part ~D (~A) has no value: ~A" number (first part) (second part)))
            (t (setf object (first (second part))))))))

(defun path-param (params)
  "The path of PARAMS, for PART-ALONG."
  (let ((path (coerce (param params "path" 'vector :default #()) 'list)))
    (unless (every (lambda (number) (typep number '(and fixnum (integer 0)))) path)
      (refuse "bad-params" "The path must be numbers of parts"))
    path))

(defun page-params (params)
  "Two values: the first part of the page that PARAMS request, and the number of parts."
  (values (param params "start" '(and fixnum (integer 0)) :default 0)
          (param params "count" `(integer 1 ,+page-limit+) :default 100)))

(defun referenced (params key)
  "The reference that PARAMS name under KEY. Refuses if it is forgotten."
  (let ((number (param params key '(integer 1))))
    (or (find-reference number) (refuse "not-found" "~A" (gone-message number)))))

(defun value-of-reference (reference)
  "The value of REFERENCE. Refuses if the value is gone."
  (multiple-value-bind (object there) (referent reference)
    (unless there (refuse "not-found" "~A" (gone-message (reference-number reference))))
    object))

(defun reading-references (references function)
  "Calls FUNCTION. None of the stops to which REFERENCES belong is left meanwhile."
  (labels ((reading (stops)
             (if stops
                 (reading-stack (first stops) (lambda () (reading (rest stops))))
                 (funcall (the function function)))))
    ;; The order is fixed, because two requests could otherwise each wait for the stop that the
    ;; other one holds.
    (reading (sort (remove-duplicates (remove nil (mapcar #'reference-stop references))) #'< :key #'stopped-id))))

(define-operation "inspect" :query (id params)
  (let ((reference (referenced params "reference")) (path (path-param params)))
    (multiple-value-bind (start count) (page-params params)
      (reading-references (list reference)
                          (lambda ()
                            (inspected-json (part-along (value-of-reference reference) path) (reference-stop reference) start count
                                            (and (null path) (reference-number reference))))))))

;;; Parts that contain a text

(defconstant +searched-parts+ 1000000 "The maximum number of parts of a value that are searched.")
(defconstant +search-seconds+ 3 "The maximum time of such a search, in seconds.")
(defconstant +parts-at-once+ 10000 "The number of parts that a search gets at a time.")

(defconstant +characters-at-once+ 100000 "The number of characters that a search compares between
  two checks of the time.")

(defun text-contains-p (text shown until)
  "Returns true if SHOWN contains TEXT, regardless of case. Throws to OUT-OF-TIME at UNTIL."
  (loop with last = (- (length shown) (length text))
        for start from 0 to last by +characters-at-once+
        do (when (>= (now-ms) until) (throw 'out-of-time nil))
           (when (search text shown :start2 start :end2 (min (length shown) (+ start +characters-at-once+ (length text))) :test #'char-equal)
             (return t))))

(defun value-contains-p (text value until)
  "Returns true if VALUE, in the form that a page of parts gives it, contains TEXT, regardless of
  case. Strings and names of symbols are searched whole. Of other values, the printed text is
  searched. Throws to OUT-OF-TIME at UNTIL."
  (let* ((object (and (consp value) (first value)))
         (shown (cond ((stringp value) value)
                      ((stringp object) object)
                      ((and (symbolp object) (not (find #\: text))) (symbol-name object))
                      (t (present object (user-package) :case :upcase)))))
    (text-contains-p text shown until)))

(defun part-contains-p (text part until)
  (destructuring-bind (label value &optional key) part
    (or (value-contains-p text value until)
        (if key (value-contains-p text key until) (text-contains-p text label until)))))

(defun found-parts (object text start count &optional (until (+ (now-ms) (* 1000 +search-seconds+))))
  "Five values: the number of OBJECT's parts; the number of those that were searched; the number of
  those that contain TEXT; COUNT of the latter from START, each as (NUMBER PART); and the kind of
  OBJECT. The search ends at UNTIL."
  (let ((found '()) (matches 0) (searched 0))
    (multiple-value-bind (kind total) (parts-of object 0 1)
      (catch 'out-of-time
        (loop while (and (< searched (min total +searched-parts+)) (< (now-ms) until))
              do (let ((parts (nth-value 2 (parts-of object searched (+ searched +parts-at-once+)))))
                   (when (null parts) (return))
                   (loop for part in parts
                         for number from searched
                         do (when (part-contains-p text part until)
                              (when (< (1- start) matches (+ start count)) (push (list number part) found))
                              (incf matches))
                            (incf searched)))))
      (values total searched matches (nreverse found) kind))))

(define-operation "inspect-find" :query (id params)
  (let ((reference (referenced params "reference")) (path (path-param params)) (text (param params "text" 'string)))
    (multiple-value-bind (start count) (page-params params)
      (reading-references (list reference)
                          (lambda ()
                            (let ((object (part-along (value-of-reference reference) path)) (stop (reference-stop reference)))
                              (multiple-value-bind (total searched matches found kind) (found-parts object text start count)
                                (unless path
                                  (loop for (number part) in found do (note-shown-keys (reference-number reference) object (list part) number)))
                                (object "value" (value-json object stop)
                                        "kind" kind
                                        "total" total "searched" searched "matches" matches
                                        "parts" (map 'vector (lambda (entry)
                                                               (list* :object "number" (first entry) (rest (part-json (second entry) stop))))
                                                     found)))))))))

;;; Variables

(defun value-of-variable (text settings package)
  "The value of the variable that TEXT names where PACKAGE is current, in a session of SETTINGS.
  Refuses a TEXT that names no variable. Nothing is interned, and no code runs."
  (multiple-value-bind (symbol found) (find-written text package)
    (flet ((none (why)
             (refuse "not-found" "~A ~A in the package ~A" text why (package-name package))))
      (cond ((not found) (none "names nothing"))
            ((member symbol *settings*) (setting settings symbol))
            ((eq (variable-kind symbol) :macro) (none "is a symbol macro, which would be code to evaluate,"))
            ((not (boundp symbol)) (none "has no value"))
            (t (symbol-value symbol))))))

(define-operation "variable-value" :dispatcher (id params)
  (let* ((text (param params "name" 'string))
         (session (gethash (param params "session" 'string) *sessions*))
         (settings (or (and session (session-settings session)) *image-settings*))
         (package-name (param params "package" 'string :default nil)))
    (call-in-helper (lambda ()
                      (answer-query id
                                    (make-operation "variable-value" :query
                                                    (lambda (id params)
                                                      (declare (ignore id params))
                                                      (let ((package (if package-name
                                                                         (find-package-named package-name)
                                                                         (live-package (setting settings '*package*)))))
                                                        (value-json (value-of-variable text settings package)))))
                                    params))
                    (lambda (obstacle) (report-busy id obstacle)))
    nil))

;;; Tables and comparisons

(define-operation "inspect-table" :query (id params)
  (let* ((reference (referenced params "reference"))
         (start (param params "start" '(integer 0) :default 0))
         (count (param params "count" `(integer 1 ,+page-limit+) :default 100)))
    (reading-references (list reference) (lambda () (table-json (value-of-reference reference) start (+ start count) (reference-stop reference))))))

(define-operation "inspect-compare" :query (id params)
  (let ((one (referenced params "reference")) (other (referenced params "other")))
    (reading-references (list one other)
                        (lambda () (comparison-json (value-of-reference one) (value-of-reference other) (reference-stop one) (reference-stop other))))))

(defun shown-values-alone (id function)
  "The JSON of the values that FUNCTION returns as a list and of its output. FUNCTION is called for
  the request ID as in a new REPL. If it fails, the JSON of the evaluation."
  (let ((values '()) (why nil))
    (multiple-value-bind (how outcome)
        (evaluate-alone id (lambda ()
                             (handler-case (setf values (funcall (the function function)))
                               (unsettable (condition) (setf why (refusal-why condition))))))
      (cond (why (refuse "not-settable" "~A" why))
            ((eq how :ok) (append (values-json values)
                                  (list "stdout" (field outcome "stdout") "stderr" (field outcome "stderr"))))
            (t outcome)))))

(defun give-shown-values (stop id seconds function)
  "Answers the request ID with the values that FUNCTION returns as a list. FUNCTION is called
  for SECONDS at most, in the thread of the innermost stop on the stack of STOP. None of these stops
  is left meanwhile."
  (let ((inner (innermost-stop stop)))
    (give-work inner id
               (lambda (work)
                 (call-for-work inner work seconds
                                (lambda ()
                                  (handler-case (values-and-output-json inner function)
                                    (unsettable (condition) (answer-work-error work "not-settable" (refusal-why condition)))
                                    (:no-error (json) (answer-work work json)))))))))

(defun evaluate-on (id params name function)
  "Answers the request ID, of the operation NAME. FUNCTION is called with the value of the reference
  of PARAMS, and with the list of the values of their code, in which * is that value. It returns the
  list of values for the answer. If the value belongs to a stop, the code runs like code in a frame
  of the stop."
  (let* ((code (param params "code" 'string))
         (timeout (param params "timeout" '(real (0)) :default +stop-work-time+))
         (reference (referenced params "reference"))
         (stop (reference-stop reference))
         (object (value-of-reference reference)))
    (flet ((work ()
             (funcall (the function function) object
                      (let ((* object))
                        (multiple-value-list (eval `(progn ,@(forms-of-text code (live-package *package*)))))))))
      (if stop
          (give-shown-values stop id timeout #'work)
          (start-answering id (make-operation name :thread (lambda (id params) (declare (ignore params)) (shown-values-alone id #'work))) params))
      nil)))

(define-operation "inspect-eval" :dispatcher (id params)
  (evaluate-on id params "inspect-eval" (lambda (object values) (declare (ignore object)) values)))

(define-operation "inspect-set" :dispatcher (id params)
  (let ((part (param params "part" '(integer 0)))
        (reference (referenced params "reference")))
    (evaluate-on id params "inspect-set"
                 (lambda (object values)
                   (set-part object part (first values) (shown-key reference part))
                   (list (first values))))))
