;;;; `debug-*`: the operations by which a host inspects stopped programs and controls them.

(in-package :consort)

;;; Stops as data

(defun takes-arguments-p (restart)
  "Returns true if the function of RESTART has parameters. If a clause of RESTART-CASE has several
  parameters, or optional ones, its function has one parameter."
  (and (internal-p 'restart-function-of)
       (ignore-errors (sb-introspect:function-lambda-list (restart-function-of restart)))))

(defun wants-arguments-p (restart)
  "Returns true if RESTART is meant to receive values."
  (or (member (restart-name restart) '(use-value store-value))
      (and (internal-p 'restart-interactive-function) (restart-interactive-function restart))
      (takes-arguments-p restart)))

(defun restart-json (restart)
  (object "name" (if (restart-name restart) (present (restart-name restart) (user-package) :case :upcase) :null)
          "report" (with-terse-printing () (text-of (print-safely restart 500 #'princ)))
          "arguments" (bool (wants-arguments-p restart))))

(defun locks-held ()
  "The names of the runtime's locks that this thread holds. Other threads may wait for them while it
  is stopped."
  (loop for lock across (the simple-vector *runtime-locks*)
        when (eq (sb-thread:mutex-owner lock) sb-thread:*current-thread*)
          collect (if (eq lock world-lock) "the compiler's lock" (princ-to-string (sb-thread:mutex-name lock)))))

(defun stop-fixed-facts (stop holds)
  "The JSON fields of STOP that do not change. Must be called in its thread, because restarts may
  name the thread that prints them."
  (let ((condition (stopped-condition stop))
        (evaluation (stopped-evaluation stop)))
    (list "stop" (stopped-id stop)
          "id" (evaluation-id evaluation)
          "session" (or-null (evaluation-session evaluation))
          "started_by" (or-null (evaluation-starter evaluation))
          "thread" (thread-title (stopped-thread stop))
          "level" (stop-level stop)
          "parent" (if (stopped-parent stop) (stopped-id (stopped-parent stop)) :null)
          "reason" (stopped-reason stop)
          "condition" (if condition
                          (object "type" (condition-type condition) "message" (condition-message condition))
                          :null)
          "restarts" (map 'vector #'restart-json (stopped-restarts stop))
          "holds" (coerce holds 'vector)
          "at" (let ((moment (stopped-moment stop))) (if moment (moment-json moment) :null))
          "frames" (length (stopped-frames stop))
          "more_frames" (bool (stopped-more stop)))))

(defun stop-json (stop)
  (list* :object "state" (if (eq (stopped-state stop) :starting) "waiting" (string-downcase (stopped-state stop)))
                 (stopped-facts stop)))

(defun stop-of (params)
  "The stop that PARAMS name. Refuses if it was left."
  (let ((id (param params "stop" 'integer)))
    (or (find id *stops* :key #'stopped-id)
        (refuse "stale" "There is no stop ~D (any more). List the present stops" id))))

(defun frame-of (stop params)
  "The frame of STOP that PARAMS name, and its number."
  (let ((number (param params "frame" '(integer 0) :default 0)))
    (values (or (nth number (stopped-frames stop))
                (refuse "bad-params" "The stop ~D has ~D frames; there is no frame ~D" (stopped-id stop) (length (stopped-frames stop)) number))
            number)))

;;; Inspection

(define-operation "debug-stops" :dispatcher (id params)
  (object "stops" (map 'vector #'stop-json (reverse *stops*))
          "asking" (map 'vector #'evaluation-id (remove-if-not #'evaluation-question *running*))))

(defun definition-of-frame (frame)
  "The JSON of the definition to which the code of FRAME belongs: its kind and its name, by which it
  is found in a text. Null if there is none."
  (let ((name (frame-name frame)))
    (multiple-value-bind (of method) (named-function name)
      (flet ((text (part) (present part (user-package))))
        (if (or (null of) (form-frame-p frame))
            :null
            (object "kind" (cond (method "method")
                                 ((and (symbolp of) (macro-function of)) "macro")
                                 (t "function"))
                    "name" (text of)
                    "qualifiers" (map 'vector #'text (butlast method))
                    "specializers" (map 'vector #'text (first (last method)))))))))

(defun standard-frame-p (frame)
  "Returns true if FRAME is of a function that came with the implementation."
  (let ((symbol (frame-symbol (list (frame-name frame)))))
    (and (not (form-frame-p frame))
         symbol
         (symbol-package symbol)
         (own-package-p (symbol-package symbol)))))

(defun frame-json (frame number stop)
  (object "number" number
          "name" (frame-label frame)
          "system" (bool (and (not (form-frame-p frame)) (internal-frame-p (list (frame-name frame)))))
          "standard" (bool (standard-frame-p frame))
          "unwindable" (bool (frame-unwindable-p frame))
          "place" (let ((moment (and (zerop number) (stopped-moment stop))))
                    (if moment
                        (cons :object (append (unit-span-fields (moment-unit moment) (site-span (moment-site moment)))
                                              (unit-loaded-fields (moment-unit moment))))
                        (frame-place-fields frame)))
          "package" (let ((moment (and (zerop number) (stopped-moment stop))))
                      (package-name (live-package (if moment (unit-package (moment-unit moment)) (or (package-of-name frame) (stopped-package stop))))))
          "definition" (definition-of-frame frame)))

(define-operation "debug-frames" :query (id params)
  (let ((stop (stop-of params))
        (start (param params "start" '(integer 0) :default 0))
        (count (param params "count" `(integer 1 ,+page-limit+) :default 20)))
    (reading-stack stop
                   (lambda ()
                     (let* ((*loaded-forms* (make-array 10 :adjustable t :fill-pointer 0))
                            (frames (loop for frame in (nthcdr start (stopped-frames stop))
                                          for number from start below (+ start count)
                                          collect (frame-json frame number stop))))
                       (object "total" (length (stopped-frames stop))
                               "more" (bool (stopped-more stop))
                               "texts" (coerce *loaded-forms* 'simple-vector)
                               "frames" (coerce frames 'vector)))))))

(defun moment-json (moment)
  "The JSON of the place of a stop at a probe, with the value of the form if the stop is after it."
  (list* :object "after" (bool (moment-after moment))
                 "value" (if (moment-after moment) (present (moment-value moment) (user-package) :case :upcase) :null)
                 "breakpoints" (map 'vector (lambda (breakpoint)
                                              (object "owner" (breakpoint-owner breakpoint) "id" (breakpoint-id breakpoint)))
                                    (moment-breakpoints moment))
                 (unit-span-fields (moment-unit moment) (site-span (moment-site moment)))))

(defun written-variable-p (variable)
  "Returns true if VARIABLE may come from a person's code, and not from a macro of the system's."
  (let ((package (symbol-package (first variable))))
    (and package (not (member package *internal-packages*)) (not (sbcl-package-p package)))))

(defun moment-of (stop params)
  "The probe at which the frame of PARAMS is: that of STOP for its innermost frame, and otherwise
  NIL."
  (and (eql 0 (param params "frame" '(integer 0) :default 0)) (stopped-moment stop)))

(defun union-of-variables (passed found)
  "Returns PASSED, the variables of a probe, and those variables FOUND on the stack that are not in
  it."
  (append passed (remove-if (lambda (variable) (or (not (second variable)) (find (first variable) passed :key #'first))) found)))

(defun variable-label (name)
  (present name (or (symbol-package name) (user-package)) :case :upcase))

(defun variable-json (variable stop)
  (destructuring-bind (name kept value &optional removed (label (variable-label name))) variable
    (list* :object "name" label
                   (if kept
                       (list "value" (value-json value stop) "missing" :null)
                       (list "value" :null
                             "missing" (format nil "not kept by the compiler: compile the function with (debug ~:[2~;3~]) to see it" removed))))))

(define-operation "debug-locals" :query (id params)
  (let* ((stop (stop-of params))
         (frame (frame-of stop params))
         (moment (moment-of stop params))
         (start (param params "start" '(integer 0) :default 0))
         (count (param params "count" `(integer 1 ,+page-limit+) :default 100)))
    (reading-stack stop
                   (lambda ()
                     (multiple-value-bind (variables known) (frame-variables frame)
                       (let ((unbound (and (not moment) (unbound-variables frame)))) ; not needed there
                         (setf variables (remove-if (lambda (variable) (member (first variable) unbound)) variables)))
                       (setf variables (append (loop for (label name kept value) in (label-variables (remove-if-not #'written-variable-p variables) frame #'second)
                                                     collect (list name kept value (and (frame-evaluated-form frame) t) label))
                                               (and (not moment)
                                                    (remove-if-not #'written-variable-p
                                                                   (mapcar (lambda (name) (list name nil nil :removed)) (removed-variables frame))))))
                       (when moment
                         (setf variables (union-of-variables (moment-variables moment) variables) known t))
                       (object "total" (length variables)
                               "known" (bool known)
                               "locals" (coerce (loop for variable in (nthcdr start variables) repeat count
                                                      collect (variable-json variable stop))
                                                'vector)))))))

;;; Code for a stop, in its thread

(defun forms-of-text (text package)
  "The forms of TEXT, read in PACKAGE."
  (let ((*reading-code* t) (*package* package) (in (make-string-input-stream text)))
    (loop for form = (read in nil in)
          until (eq form in) collect form)))

(defun eval-text-in-frame (text frame &optional moment)
  "Returns the values of TEXT, evaluated where the variables of FRAME are visible; at MOMENT, those
  that its probe passed."
  (let* ((package (if moment (unit-package (moment-unit moment)) (package-of-frame frame)))
         (forms (forms-of-text text package)))
    (let ((*package* package))
      (when moment (return-from eval-text-in-frame (values-at-moment forms moment frame)))
      (multiple-value-list (eval-in-frame (if (and forms (null (rest forms))) (first forms) `(progn ,@forms)) frame)))))

(defun eval-text-at-stop (text frame &optional moment)
  "The values of TEXT in FRAME. A stop has no frame if nothing but the failed call is left of the
  code. TEXT is then evaluated in the current package."
  (if frame
      (eval-text-in-frame text frame moment)
      (multiple-value-list (eval `(progn ,@(forms-of-text text (live-package *package*)))))))

(defvar *tell-warnings* nil "True while warnings of code at a stop are printed. Those of watches,
  which are evaluated unasked, are not.")

(defun tell-warning (warning)
  "Muffles WARNING, of a person's code at a stop, unless it was only signalled. Prints it before
  that if *TELL-WARNINGS*."
  (let ((restart (find-restart 'muffle-warning warning)))
    (when restart
      (when (and *tell-warnings* (not (typep warning sb-ext:*muffled-warnings*)))
        (let ((text (with-own-settings () (format nil "~A: ~A" (warning-type warning) (condition-message warning)))))
          (format *error-output* "~&~A~%" text)))
      (unless *compile-file-truename*
        (invoke-restart restart)))))

(defun call-past-handlers (function)
  "Calls FUNCTION, code at a stop. Handlers of the stopped program do not receive its errors, since
  they would unwind the program, nor its warnings, since the report of the program's evaluation
  would contain them."
  (handler-bind ((warning #'tell-warning)
                 (serious-condition #'invoke-debugger))
    (funcall function)))

(defun call-for-work (stop work seconds function &optional (tells (and (work-back work) t)))
  "Calls FUNCTION in the thread of STOP for WORK, for SECONDS at most. The time begins anew whenever
  a stop in FUNCTION was left, and does not count while FUNCTION waits in one. If TELLS, its
  warnings are printed."
  (let ((timer nil))
    (labels ((end () (when timer (cancel *deadlines* (shiftf timer nil))))
             (begin ()
               (end)
               (let ((this nil)) ; the interruption may come after this timer was cancelled
                 (setf this (schedule *deadlines* seconds
                                      (lambda ()
                                        (when (eq (innermost-stop stop) stop)
                                          (end-work stop work "timeout" (lambda () (not (eq this timer)))))))
                       timer this))))
      (setf (work-begin-time work) #'begin)
      (begin)
      (unwind-protect (let ((*tell-warnings* tells)) (call-past-handlers function))
        (setf (work-begin-time work) nil)
        (end)))))

(defun call-going-back (stop work function)
  "Calls FUNCTION for WORK, whose errors are stops of their own. A restart goes back from these to
  STOP, which serves WORK."
  (restart-case (progn
                  (setf (work-back work) (find-restart 'abort))
                  (funcall function))
    (abort ()
      :report (lambda (stream) (format stream "Go back to the stop at level ~D." (stop-level stop)))
      (throw work "interrupted"))))

(defun values-json (values)
  (object "status" "ok"
          "values" (map 'vector (lambda (value facts) (list* :object "reference" (refer value) (rest facts)))
                        (first-values values) (with-own-settings () (values-facts (first-values values))))))

(defun values-and-output-json (stop function)
  "The JSON of the values of FUNCTION and of its output. The output is also sent before. A thread
  that a program started has no output of its own."
  (if (of-thread-p stop)
      (values-json (funcall function))
      (let* ((evaluation (stopped-evaluation stop))
             (written (characters-written evaluation))
             (values (unwind-protect (funcall function)
                       (pass-on (evaluation-stdout evaluation))
                       (pass-on (evaluation-stderr evaluation)))))
        (append (values-json values) (output-fields evaluation written)))))

(defun code-at-stop (params)
  "Two values: the stop of PARAMS, and a function that returns the values of their code in their
  frame."
  (let* ((stop (stop-of params))
         (frame (and (or (stopped-frames stop) (plusp (param params "frame" '(integer 0) :default 0)))
                     (frame-of stop params)))
         (moment (moment-of stop params))
         (code (param params "code" 'string)))
    (values stop (lambda () (eval-text-at-stop code frame moment)))))

(define-operation "debug-eval" :dispatcher (id params)
  (let* ((nests (param params "debug" 'boolean :default nil))
         (tells (param params "warnings" 'boolean :default nests))
         (timeout (param params "timeout" '(real (0)) :default +stop-work-time+)))
    (multiple-value-bind (stop code) (code-at-stop params)
      (give-work stop id
                 (lambda (work)
                   (flet ((evaluate ()
                            (call-for-work stop work timeout
                                           (lambda () (answer-work work (values-and-output-json stop code)))
                                           tells)))
                     (if nests (call-going-back stop work #'evaluate) (evaluate))))
                 :nests nests))))

(defun inspect-value-of-code (stop code path start count)
  "The JSON of COUNT parts from START of the first value of the function CODE, or of the part of
  that value along PATH, with the output of CODE."
  (let* ((inspected :null)
         (json (values-and-output-json stop
                                       (lambda ()
                                         (let ((values (funcall (the function code))))
                                           (when values
                                             (setf inspected (with-own-settings ()
                                                               (inspected-json (part-along (first values) path) stop start count))))
                                           '())))))
    (append json (list "inspected" inspected))))

(define-operation "debug-inspect" :dispatcher (id params)
  (let ((path (path-param params))
        (timeout (param params "timeout" '(real (0)) :default +stop-work-time+)))
    (multiple-value-bind (start count) (page-params params)
      (multiple-value-bind (stop code) (code-at-stop params)
        (give-work stop id
                   (lambda (work)
                     (call-for-work stop work timeout
                                    (lambda ()
                                      (handler-case (inspect-value-of-code stop code path start count)
                                        (request-error (refusal)
                                          (answer-work-error work (request-error-kind refusal) (request-error-message refusal)))
                                        (:no-error (json) (answer-work work json)))))))))))

(defun moment-variable-p (name moment)
  "Returns true if NAME is among the variables that the probe of MOMENT passed."
  (find name (moment-variables moment) :key (lambda (variable) (variable-label (first variable))) :test #'string=))

(define-operation "debug-set" :dispatcher (id params)
  (let* ((stop (stop-of params))
         (frame (frame-of stop params))
         (moment (moment-of stop params))
         (name (param params "name" 'string))
         (code (param params "code" 'string)))
    (give-work stop id
               (lambda (work)
                 (call-for-work stop work +stop-work-time+
                                (lambda ()
                                  (let ((value (first (eval-text-in-frame code frame moment))))
                                    (handler-case (if (and moment (moment-variable-p name moment))
                                                      (set-at-moment name value moment frame)
                                                      (set-frame-variable frame name value))
                                      (unsettable (condition) (answer-work-error work "not-settable" (refusal-why condition)))
                                      (:no-error (&rest values)
                                        (declare (ignore values))
                                        (answer-work work (values-json (list value))))))))))))

(defun restart-of (stop params)
  "The restart of STOP that PARAMS name by index and name. Refuses if the two do not match a
  restart."
  (let* ((index (param params "index" '(integer 0)))
         (name (param params "name" 'string :default nil))
         (restart (nth index (stopped-restarts stop)))
         (own-name (nth index (stopped-restart-names stop))))
    (unless (and restart (equal name (and own-name (present own-name (user-package) :case :upcase))))
      (refuse "stale" "The stop ~D has no restart ~D of the name ~A. Ask for its restarts" (stopped-id stop) index name))
    restart))

(defun argument-values (texts frame moment)
  "The first value of each of TEXTS, which are forms, where the variables of FRAME are visible; at
  MOMENT, those that its probe passed."
  (loop for text in texts
        collect (first (eval-text-at-stop text frame moment))))

(defun answering-questions (text function)
  "Calls FUNCTION, which reads TEXT from *QUERY-IO*."
  (let ((*query-io* (make-two-way-stream (make-string-input-stream text) (make-broadcast-stream))))
    (funcall function)))

(define-operation "debug-restart" :dispatcher (id params)
  (let* ((stop (stop-of params))
         (restart (restart-of stop params))
         (texts (coerce (param params "arguments" 'vector :default #()) 'list))
         (input (param params "input" 'string :default nil))
         (frame (first (stopped-frames stop))))
    (unless (every #'stringp texts) (refuse "bad-params" "The arguments must be texts, one form each"))
    (give-work stop id
               (lambda (work)
                 (let ((values (call-for-work stop work +stop-work-time+ (lambda () (argument-values texts frame (stopped-moment stop))))))
                   (leave-stop stop "restart" work)
                   (if input
                       (answering-questions input (lambda () (invoke-restart-interactively restart)))
                       (apply #'invoke-restart restart values)))))))

(defun check-unwindable (frame)
  (unless (frame-unwindable-p frame)
    (refuse "not-unwindable" "The frame ~A cannot be returned from or restarted: the compiler kept nothing for it. Compile its function with more debugging, ~
                              (declaim (optimize (debug 1))) or more, and not with a higher speed"
            (frame-label frame))))

(define-operation "debug-return" :dispatcher (id params)
  (let* ((stop (stop-of params))
         (frame (frame-of stop params))
         (moment (moment-of stop params))
         (code (param params "code" 'string :default "nil")))
    (check-unwindable frame)
    (give-work stop id
               (lambda (work)
                 (let ((values (call-for-work stop work +stop-work-time+ (lambda () (eval-text-in-frame code frame moment)))))
                   (leave-stop stop "return" work)
                   (unwind-to-frame frame (lambda () (values-list values))))))))

(defun method-called-p (generic name arguments)
  "Returns true if GENERIC first calls for ARGUMENTS the method of a frame's NAME, (:METHOD GENERIC
  QUALIFIER... SPECIALIZERS)."
  (let ((first (first (compute-applicable-methods generic arguments))))
    (and first
         (equal (butlast (cddr name)) (method-qualifiers first))
         (equal (mapcar #'princ-to-string (car (last name)))
                (mapcar #'princ-to-string (unparse-specializers generic (sb-mop:method-specializers first)))))))

(defun frame-again (frame)
  "A function that calls the function of FRAME, in its current definition, with the current
  arguments of FRAME. If there is none, a string with the reason."
  (multiple-value-bind (name arguments complete) (frame-call frame)
    (flet ((callable (name) (and (or (symbolp name) (and (consp name) (eq (first name) 'setf))) (fboundp name)
                                 (not (and (symbolp name) (or (macro-function name) (special-operator-p name))))))
           (again (function) (lambda () (apply function arguments))))
      (cond ((not complete) "the compiler did not keep all of its arguments")
            ((callable name) (again (fdefinition name)))
            ((and (consp name) (eq (first name) :method) (callable (second name)))
             (let ((generic (fdefinition (second name))))
               (if (ignore-errors (method-called-p generic name arguments))
                   (again generic)
                   "it is of a method that another one called; restart the frame of that")))
            (t "it is not of a function with a name: restart the frame that called it")))))

(defun frame-again-in-time (frame seconds)
  "FRAME-AGAIN with a time limit. It runs the user's code if a generic function has a class of the
  user's, or if a specializer is printed. If that takes longer than SECONDS, the value is also a
  string."
  (call-with-time-limit seconds
               (lambda () (call-past-handlers (lambda () (frame-again frame))))
               (lambda (holder)
                 (format nil "to find the method that its generic function calls took longer than ~A and was stopped~@[, because ~A~]. ~
                              The stop is as it was; restart the frame that called it, or return from this one"
                         (seconds-text seconds) holder))))

(define-operation "debug-restart-frame" :dispatcher (id params)
  (let* ((stop (stop-of params))
         (frame (frame-of stop params))
         (timeout (param params "timeout" '(real (0)) :default +stop-work-time+)))
    (check-unwindable frame)
    (give-work stop id
               (lambda (work)
                 (let ((again (frame-again-in-time frame timeout)))
                   (cond ((stringp again)
                          (answer-work-error work "not-restartable" (format nil "The frame ~A cannot be restarted: ~A" (frame-label frame) again)))
                         (t (leave-stop stop "restart-frame" work)
                            (unwind-to-frame frame again))))))))

(defun abort-stop (stop work)
  "Leaves STOP for WORK as if there had been no stop."
  (leave-stop stop "abort" work)
  (throw stop :abort))

(defun own-continue (stop)
  "The restart CONTINUE of STOP itself, not of a stop around it; NIL if it has none."
  (loop for restart in (stopped-restarts stop)
        for name in (stopped-restart-names stop)
        until (eq restart (stopped-back stop))
        when (eq name 'continue) return restart))

(define-operation "debug-continue" :dispatcher (id params)
  (let* ((stop (stop-of params))
         (restart (own-continue stop)))
    (unless (or restart (stopped-back stop))
      (refuse "cannot-continue" "The stop ~D has no restart CONTINUE: choose another restart, return from a frame, or abort" (stopped-id stop)))
    (give-work stop id
               (lambda (work)
                 (unless restart (abort-stop stop work))
                 (leave-stop stop "continue" work)
                 (invoke-restart restart)))))

(define-operation "debug-abort" :dispatcher (id params)
  "Ends what stopped as if it had not stopped: an evaluation with the report of its error, and
  likewise a request to a stop."
  (let ((stop (stop-of params)))
    (give-work stop id (lambda (work) (abort-stop stop work)))))

(define-operation "debug-pause" :dispatcher (id params)
  (let* ((target (param params "target" '(or integer string)))
         (evaluation (or (find target *running* :key #'evaluation-id :test #'equal)
                         (find target *started-threads* :key #'evaluation-id :test #'equal))))
    (cond ((null evaluation) (refuse "not-found" "No evaluation ~A runs" target))
          ((not (evaluation-debug evaluation)) (refuse "bad-params" "The evaluation ~A was not begun for debugging, so it cannot be paused; interrupt it" target))
          (t (pause-evaluation evaluation)
             (object)))))
