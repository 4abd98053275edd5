;;;; `eval`: reads and evaluates code, form by form, in a session's thread.

(in-package :consort)

;;; Reading

(defun package-called (name &optional (from (load-time-value (find-package "COMMON-LISP-USER"))))
  "The package that a person means by NAME, seen from the package FROM; NIL if there is none. All
  names of packages follow the same rule: the package is found by the name as given, or upper-cased.
  A leading colon or #: is not part of the name, nor are quotes. Text between bars is not
  upper-cased."
  (let* ((*package* from)
         (trimmed (string-trim '(#\Space #\Tab #\Newline) name))
         (bare (string-trim "\"" (string-left-trim "#:" trimmed)))
         (length (length bare)))
    (or (find-package name)
        (find-package bare)
        (if (and (> length 1) (char= (char bare 0) (char bare (1- length)) #\|))
            (find-package (subseq bare 1 (1- length)))
            (find-package (string-upcase bare))))))

(defun find-package-named (name)
  "Like PACKAGE-CALLED, but refuses if there is no such package."
  (or (package-called name)
      (refuse "package-not-found" "Package ~A not found" name)))

(defstruct (origin (:constructor make-origin (source offset line column)))
  "The origin of a text: a SOURCE, the OFFSET of its first character in the file, 0-based, and its
  LINE and COLUMN in the editor, 1-based. The editor's text may differ from the file's."
  (source nil :read-only t)
  (offset 0 :type index :read-only t)
  (line 1 :type (integer 1) :read-only t)
  (column 1 :type (integer 1) :read-only t))

(defun line-offset (pathname line)
  "Returns the number of characters of the file that precede LINE, 1-based; NIL if the file has
  fewer lines or cannot be read."
  (ignore-errors
   (with-open-file (in pathname :external-format '(:utf-8 :replacement #\?))
     (loop with offset = 0
           for number from 1
           when (= number line)
             return offset
           do (let ((text (or (read-line in nil) (return nil))))
                (incf offset (1+ (length text))))))))

(defconstant +unknown-line+ (expt 2 20) "The number of characters that a line counts for that the
  file does not have. It is larger than lines are, so that no two forms of an editor's text have the
  same offset.")

(defun read-origin (params)
  "The origin that PARAMS give, or NIL."
  (let ((given (param params "origin" '(satisfies object-p) :default nil)))
    (when given
      (let* ((pathname (sb-ext:parse-native-namestring (param given "file" 'string)))
             (line (param given "line" '(integer 1)))
             (column (param given "column" '(integer 1))))
        (make-origin (make-source pathname) (+ (or (line-offset pathname line) (* line +unknown-line+)) (1- column)) line column)))))

;;; Evaluating

(defun remember-form (form)
  (shiftf +++ ++ + form))

(defun remember-values (values)
  (shiftf /// // / values)
  (shiftf *** ** * (first values)))

;;; The REPLs of editors enter a package without a trace in the variables of the person's REPL.

(defvar *leaves-history* nil "Set to true by a form that does not change the variables of the REPL.")

(defun enter-package (name)
  "Makes the package NAME the session's. Returns no values; :MISSING if there is no such package.
  NAME may be NIL: the session stays in its package. Editors evaluate calls of this function."
  (setf *leaves-history* t)
  (let ((package (and name (find-package name))))
    (when package (setf *package* package))
    (if (or package (null name)) (values) :missing)))

(declaim (notinline call-with-form-frame))
(defun call-with-form-frame (function form known)
  "Calls FUNCTION, which evaluates FORM, read from the EVALUATED-TEXT KNOWN. The frame of this call
  represents FORM on a stack that has no function of the program's (debug/form-frames.lisp). It can
  be returned from and restarted."
  (declare (optimize (debug 3)))
  (multiple-value-prog1 (funcall (the function function))
    (touch-frame function form known)))

(defun evaluate-form (form position end origin text)
  "Evaluates FORM, read from POSITION of TEXT up to END. Returns the list of its values. Sets the
  REPL variables as a REPL does. If the evaluation stops at errors, places and variables are kept
  for the debugger."
  (let* ((last-form (shiftf - form))
         (*leaves-history* nil)
         (known (evaluated-text-from text position origin))
         (values (flet ((work (&optional (evaluated form))
                          (multiple-value-list
                           (call-with-form-frame
                            (lambda ()
                              (if origin
                                  (eval-in-source form (+ position (origin-offset origin)) (origin-source origin) evaluated)
                                  (as-built eval evaluated)))
                            form known))))
                   (cond ((evaluation-debug *evaluation*)
                          (note-evaluated-form form known)
                          (call-watching-signals (lambda () (call-keeping-variables (lambda () (call-with-steps (lambda () (call-with-breakpoints #'work form known end)) form known))))))
                         (t (call-replacing-evaluated known end #'work))))))
    (cond (*leaves-history* (setf - last-form))
          (t (remember-values values)
             (remember-form form)))
    values))

(defun evaluate-text (text origin)
  "Reads and evaluates the forms of TEXT one at a time. Returns the list of the last form's values,
  or NIL if there is no form."
  ;; The stream of WITH-INPUT-FROM-STRING would appear in messages under a name that people do not
  ;; know.
  (let* ((in (make-string-input-stream text))
         (values '()))
    (loop
      (let* ((placed (or origin (evaluation-debug *evaluation*) (evaluation-freeze *evaluation*)))
             (position (if placed (skip-blanks text (file-position in)) 0))
             (form (let ((*code-stream* in) (*users-code* nil)) (read in nil in))))
        (when (eq form in)
          (return values))
        (when (and origin (consp form))
          (note-evaluated-source text position (file-position in) origin))
        (setf values (evaluate-form form position (file-position in) origin text))))))

;;; Text that is evaluated for debugging

(defvar *policy-of-files* nil "While a form is evaluated for debugging: the policy with which files
  are still compiled.")

(defun call-keeping-variables (function)
  "Calls FUNCTION, which evaluates a form, with a policy that keeps variables. Qualities that the
  form itself declaims stay in force, but the policy does not apply to files that it compiles."
  (if (not (and (internal-p 'process-optimize) (internal-p 'policy-qualities) policy-name))
      (funcall function)
      (let* ((before (symbol-value policy-name))
             (during (debugging-policy))
             (after during))
        (multiple-value-prog1
            (unwind-protect
                 (progv (list policy-name) (list during)
                   (let ((*policy-of-files* before))
                     (unwind-protect (funcall function)
                       (setf after (symbol-value policy-name)))))
              (unless (eq after during)
                (setf (symbol-value policy-name) (policy-of-both after during before))))))))

(declaim (ftype function call-noting-compilation call-noting-load))
(defun spare-files-of-debugging ()
  "From now on, files are loaded and compiled with the session's own policy, even by a form that is
  evaluated with another one, and their contents are recorded."
  (flet ((call (function arguments)
           (if *policy-of-files*
               (progv (list policy-name) (list *policy-of-files*)
                 (let ((*policy-of-files* nil)) (apply function arguments)))
               (apply function arguments))))
    (encapsulate 'compile-file 'consort-policy
                 (lambda (function &rest arguments)
                   (call-noting-compilation (first arguments) (lambda () (call function arguments)))))
    (encapsulate 'load 'consort-policy
                 (lambda (function &rest arguments)
                   (let ((units (units-of-file (first arguments))))
                     ;; The forms before an error in the file are replaced too.
                     (unwind-protect (call-noting-load (first arguments) (lambda () (call function arguments)))
                       (forget-units units)))))))

;;; Values

(defconstant +values-limit+ 100 "The maximum number of values that are shown.")

(defconstant +whole-limit+ 4000000 "The maximum number of characters of all values that are printed
  whole.")
(defvar *whole-limit* nil "The maximum number of characters of each value if values are printed
  whole, each on a line, for a program; otherwise NIL.")

(defun value-facts (value)
  "The JSON of VALUE, printed under the contract's limits, or whole."
  (let ((*print-length* (if *whole-limit* nil 100))
        (*print-level* (if *whole-limit* nil 10))
        (*print-right-margin* (if *whole-limit* +whole-limit+ *print-right-margin*))
        (*print-circle* t)
        (*print-pretty* t)
        (limit (or *whole-limit* +text-limit+)))
    (cond ((typep value '(or fixnum symbol)) (clipped (prin1-to-string value) 0))
          ((and (stringp value) (> (length value) limit)) (long-string-facts value limit))
          (t (print-safely value limit #'prin1)))))

(defun long-string-facts (string limit)
  "The JSON of a string of which only the two ends are printed."
  (let* ((half (ash limit -1))
         (omitted (- (length string) (* 2 half)))
         (head (prin1-to-string (subseq string 0 half)))
         (tail (prin1-to-string (subseq string (- (length string) half)))))
    (clipped (concatenate 'string (subseq head 0 (1- (length head))) (omission omitted) (subseq tail 1))
             omitted)))

(defun first-values (values)
  "Returns those of VALUES that are shown."
  (loop for value in values repeat +values-limit+ collect value))

(defun values-facts (values)
  "The JSON of VALUES. If there are too many, only the first are contained."
  (let ((more (nthcdr +values-limit+ values)))
    (append (mapcar #'value-facts (if more (subseq values 0 +values-limit+) values))
            (when more
              (list (clipped (format nil "...[~D more values left out]..." (length more)) 0))))))

;;; Time

(defun now-ms ()
  "The wall clock time in milliseconds, with a resolution of microseconds. GET-INTERNAL-REAL-TIME
  may advance in steps of four milliseconds."
  (multiple-value-bind (seconds microseconds) (sb-ext:get-time-of-day)
    (+ (* 1000d0 seconds) (/ microseconds 1000d0))))

(defun call-timing (function)
  "Calls FUNCTION. Two values: the value of FUNCTION, and the JSON of Timing."
  (let ((real (now-ms))
        (run (get-internal-run-time))
        (gc sb-ext:*gc-run-time*)
        (bytes (sb-ext:get-bytes-consed)))
    (flet ((ms (units) (* units (/ 1000d0 internal-time-units-per-second))))
      (let ((value (funcall function)))
        (values value
                (object "real_ms" (max 0d0 (- (now-ms) real))
                        "run_ms" (ms (- (get-internal-run-time) run))
                        "gc_ms" (ms (- sb-ext:*gc-run-time* gc))
                        "bytes" (- (sb-ext:get-bytes-consed) bytes)))))))

;;; The operation

(defun evaluate (evaluation text &key package origin timing timeout (deadline timeout) stream refer whole instead)
  "Evaluates TEXT as EVALUATION. Returns the JSON of EvalOutcome. DEADLINE is the timeout that the
  outcome names; it is given if the caller enforces it. If REFER, the values get references. If
  WHOLE, they are printed whole. INSTEAD, if given, is a function that is called in place of reading
  TEXT and returns a list of values."
  (let ((time nil)
        (values '())
        (references nil))
    (labels ((results ()
               (if instead (call-watching-signals instead) (evaluate-text text origin)))
             (work ()
               (let ((results (if timing
                                  (multiple-value-bind (results facts) (call-timing #'results)
                                    (setf time facts)
                                    results)
                                  (results))))
                 ;; SBCL signals an error when a deleted package is used.
                 (setf *package* (live-package *package*))
                 (when (or refer (evaluation-debug evaluation))
                   (setf references (map 'vector #'refer (first-values results))))
                 (let ((*whole-limit* (and whole (floor +whole-limit+ (max 1 (min +values-limit+ (length results)))))))
                   (setf values (let ((*users-code* nil)) (values-facts results)))))))
      (let ((how (call-evaluating #'work evaluation :package package :timeout timeout :stream stream)))
        (append (outcome evaluation how :values (when (eq how :ok) values) :timing time :package (package-of-settings *user-settings*)
                                        :timeout deadline)
                (and references (eq how :ok) (list "references" references))
                (and (evaluation-frozen evaluation) (list "frozen" (evaluation-frozen evaluation))))))))

(defun interrupted-outcome (evaluation)
  "The JSON of the outcome of EVALUATION, which was interrupted before it began."
  (setf (evaluation-reason evaluation) :cancel)
  (outcome evaluation :stopped :package "COMMON-LISP-USER"))

(defun enqueue-evaluation (id params function)
  "Answers the request ID by FUNCTION, called with an evaluation and the package of PARAMS or NIL.
  The call is made in the thread of the session of PARAMS, after the earlier requests of the
  session."
  (let* ((name (param params "session" 'string))
         (package (param params "package" 'string :default nil))
         (required (param params "requires" 'string :default nil))
         (evaluation (make-evaluation id name))
         (answered nil))
    (setf (evaluation-input-client evaluation) *input-client*)
    (enqueue (find-session name)
             (make-job evaluation
                       (lambda ()
                         (call-sending id (lambda () (setf answered t))
                                       (lambda ()
                                         (when required (find-package-named required))
                                         (funcall function evaluation (and package (find-package-named package))))))
                       (lambda () (post-frame (object "id" id "result" (interrupted-outcome evaluation))))
                       (lambda ()
                         (unless answered
                           (send-result id (outcome evaluation :ended :package "COMMON-LISP-USER"))))))
    nil))

(defun test-to-debug (params)
  "Returns a function that runs the test that PARAMS name, for use in place of their code; NIL if
  they name none."
  (let ((test (param params "test" '(satisfies object-p) :default nil)))
    (when test
      (let ((name (param test "name" 'string))
            (package (param test "package" 'string :default nil))
            (framework (param test "framework" 'string :default nil)))
        (lambda () (debug-test name package framework))))))

(define-operation "eval" :dispatcher (id params)
  (let* ((text (param params "code" 'string))
         (timing (param params "capture_time" 'boolean :default nil))
         (timeout (param params "timeout" '(real (0)) :default 30))
         (stream (param params "stream" 'boolean :default nil))
         (debug (param params "debug" 'boolean :default nil))
         (threads (param params "threads" 'boolean :default nil))
         (breakpoints (param params "breakpoints" 'boolean :default nil))
         (refer (param params "refer" 'boolean :default nil))
         (redefines (param params "redefines" 'vector :default #()))
         (whole (param params "whole" 'boolean :default nil))
         (freeze (freeze-param params))
         (instead (test-to-debug params)))
    (enqueue-evaluation id params
                        (lambda (evaluation package)
                          (setf (evaluation-debug evaluation) (or debug (and breakpoints :breakpoints))
                                (evaluation-threads evaluation) threads
                                (evaluation-freeze evaluation) (and (not debug) freeze)
                                (evaluation-freeze-threads evaluation) freeze)
                          (call-watching-definitions
                           redefines
                           (lambda ()
                             (evaluate evaluation text :package package :origin (read-origin params) :timing timing
                                                       :timeout timeout :stream stream
                                                       :refer refer :whole whole :instead instead)))))))

(defun warm-up ()
  "Evaluates some code of each kind, so that the objects that CLOS makes on first use are in the
  core. Otherwise the first user would wait for that, and so would an evaluation that comes while
  another one holds the compiler's lock."
  (note-methods)
  (users-methods #'print-object #'system-class-p)
  (rehearse '("(values 1 '(:a :b) \"c\")" "(print 1) (format *error-output* \"~A~%\" 2)" "(warn \"w\")" "(error \"e\")" "(read-line)" "(car" "(abort)")
            :timing t)
  (mapc #'sb-mop:finalize-inheritance (mapcar #'find-class '(capture null-io asked-input shared-output))))
