;;;; The dispatcher: one thread that reads requests and starts the work on them. It never runs user
;;;; code and never waits. MAIN starts the threads of the image.

(in-package :consort)

(define-condition request-error (error)
  ((kind :initarg :kind :reader request-error-kind)
   (message :initarg :message :reader request-error-message))
  (:documentation "Signalled when the request cannot be served. KIND is an `error.kind` of
  docs/wire.md.")
  (:report (lambda (condition stream) (write-string (request-error-message condition) stream))))

(defun refuse (kind control &rest arguments)
  "Answers the request with an error."
  (error 'request-error :kind kind :message (apply #'format nil control arguments)))

;;; Parameters

(defun param (params name type &key (default nil default-p))
  "The value of NAME in PARAMS, an object. It must be of TYPE, or may be absent if there is a
  DEFAULT. Booleans are returned as T and NIL."
  (let ((value (field params name)))
    (cond ((null value)
           (if default-p default (refuse "bad-params" "The parameter ~S is missing" name)))
          ((eq type 'boolean)
           (case value
             (:true t)
             (:false nil)
             (t (refuse "bad-params" "The parameter ~S must be true or false" name))))
          ((typep value type) value)
          (t (refuse "bad-params" "The parameter ~S is not of the right type (~(~A~))" name type)))))

;;; Operations

(defstruct (operation (:constructor make-operation (name where function)))
  (name "" :type string :read-only t)
  (where :thread :type (member :dispatcher :query :helper :thread :interruptible) :read-only t)
  (function nil :type function :read-only t))

(define-global *operations* (make-hash-table :test #'equal) "The operations by name. Filled when the
  image is built.")

(defmacro define-operation (name where (id params) &body body)
  "Defines the operation NAME. ID is that of the request, and PARAMS is its object. BODY returns the
  result. WHERE specifies the thread:
  - :DISPATCHER: the dispatcher; BODY returns NIL if another thread will answer.
  - :QUERY: a thread that queries share; BODY runs no user code and cannot be interrupted.
  - :HELPER: as :QUERY, but it does not wait for the locks that listing packages takes.
  - :THREAD: a thread of its own; BODY determines the effect of an interruption.
  - :INTERRUPTIBLE: a thread of its own, in which BODY is left when the request is interrupted."
  (let ((documentation (when (stringp (first body)) (list (pop body)))))
    `(setf (gethash ,name *operations*)
           (make-operation ,name ,where (lambda (,id ,params) ,@documentation (declare (ignorable ,id ,params)) ,@body)))))

(defun call-answering (id answer answer-error function &aux (answer-error (coerce answer-error 'function)))
  "Calls FUNCTION. If its result is not NIL, calls ANSWER with the answer to the request ID. If
  there is an error, calls ANSWER-ERROR."
  (block answering
    (handler-bind ((serious-condition
                     (lambda (condition)
                       (unless (in-user-code-p) ; user code may signal any condition
                         (return-from answering
                           (multiple-value-call answer-error id (error-answer condition)))))))
      (let ((result (funcall function)))
        (when result
          (funcall answer (object "id" id "result" result)))))))

(defun error-answer (condition)
  "Two values: the kind and message of the answer to a request that CONDITION ended."
  (if (typep condition 'request-error)
      (values (request-error-kind condition) (request-error-message condition))
      (values "internal" (concatenate 'string (condition-type condition) ": " (condition-message condition)))))

(defun call-sending (id note function)
  "Like CALL-ANSWERING, with the answer sent to the host. NOTE is called after the answer was sent.
  The thread cannot be ended in between."
  (flet ((noting (answer)
           (lambda (&rest arguments)
             (without-interrupts
               (apply (the function answer) arguments)
               (funcall (the function note))))))
    (call-answering id (noting #'send-frame) (noting #'send-error) function)))

(defun answer-at-once (id operation params)
  "Answers a request in this thread, even if something ends the thread."
  (let ((ended t))
    (unwind-protect
         (progn
           (call-sending id (lambda () (setf ended nil)) (lambda () (call-operation id operation params)))
           (setf ended nil))            ; another thread may answer
      (when ended
        (send-error id "internal" "The thread that worked on this was ended")))))

(defun answer-query (id operation params)
  "Answers a query, or names the holder of the lock that it needs. A query cannot be interrupted, so
  it must not wait without limit."
  (handler-case (await-package-locks)
    (request-error (refusal)
      (send-error id (request-error-kind refusal) (request-error-message refusal))
      (return-from answer-query)))
  (answer-at-once id operation params))

(defun answer-in-thread (id operation params evaluation)
  "Answers a request in a thread of its own."
  (call-starting evaluation (lambda () (answer-at-once id operation params))))

(defun call-operation (id operation params)
  "Returns the result of OPERATION."
  (flet ((result () (funcall (operation-function operation) id params)))
    (if (eq (operation-where operation) :interruptible) (call-interruptible #'result) (result))))

(defvar *input-client* nil "In the dispatcher: the field `input` of the request, which names the client that
  may be asked for input, or NIL.")

(defun report-busy (id obstacle)
  "Answers the request ID, for which no thread can be made because of OBSTACLE, which is as in
  START-THREAD-OR-REPORT. Must be called in the thread that makes threads, which may wait for the
  host."
  (send-error id "busy" (if (eq obstacle :refused)
                            "No work can begin now: the system makes no further thread, perhaps because the program has as many as it may have. End threads of the program, or restart the image."
                            (format nil "No work can begin now: ~A. If that thread does not finish, interrupt what it runs, end it, or restart the image."
                                    obstacle))))

(defun start-answering (id operation params)
  "Starts a thread that answers a request. From now on the request can be interrupted. If something
  prevents the creation of threads, the answer says so."
  (let ((evaluation (make-evaluation id nil)))
    (setf (evaluation-input-client evaluation) *input-client*)
    (with-lock (*running-lock*)
      (push evaluation *starting*))
    (start-thread-or-report (lambda (obstacle)
                              (end-starting evaluation)
                              (report-busy id obstacle))
                            (concatenate 'string "consort " (operation-name operation)) #'answer-in-thread id operation params evaluation)))

(defun post-error (id kind message)
  (post-frame (object "id" id "error" (object "kind" kind "message" message))))

(defun dispatch (frame)
  "Starts the operation that FRAME requests."
  (let* ((id (if (object-p frame) (field frame "id" :null) :null))
         (name (and (object-p frame) (field frame "op")))
         (params (if (object-p frame) (field frame "params" (object)) (object)))
         (input-client (if (object-p frame) (field frame "input") nil))
         (*input-client* (and (object-p input-client) input-client))
         (operation (and (stringp name) (gethash name *operations*))))
    (cond ((not (and (object-p frame) (stringp name) (or (integerp id) (stringp id)) (object-p params)))
           (post-error id "bad-frame" "A request is an object with an id, an op and params"))
          ((null operation)
           (post-error id "unknown-op" (format nil "There is no operation ~S" name)))
          ((member (operation-where operation) '(:thread :interruptible))
           (start-answering id operation params))
          ((eq (operation-where operation) :query)
           (call-in-helper (lambda () (answer-query id operation params)) (lambda (obstacle) (report-busy id obstacle))))
          ((eq (operation-where operation) :helper)
           (call-in-helper (lambda () (answer-at-once id operation params)) (lambda (obstacle) (report-busy id obstacle))))
          (t
           (call-answering id #'post-frame #'post-error (lambda () (funcall (operation-function operation) id params)))))))

(defun dispatch-line (octets start end)
  (handler-case (dispatch (parse-json octets start end))
    (json-error (condition)
      (post-error :null "bad-frame" (princ-to-string condition)))
    (serious-condition (condition)
      (post-error :null "internal" (concatenate 'string (condition-type condition) ": " (condition-message condition))))))

(defun serve (fd)
  "Reads requests until the link ends. Then the process ends, whatever else runs."
  (let ((reader (make-line-reader fd)))
    (loop
      (multiple-value-bind (octets start end) (next-line reader)
        (cond ((null octets) (leave-with-programs))
              ((eq octets :too-long)
               (post-error :null "bad-frame" "A frame is larger than 64 MiB"))
              (t (dispatch-line octets start end)))))))

;;; The start

(define-global *image-id* "" "The id of this image, new at each start.")

(defun image-id ()
  "Returns the id of this image, new at each start. Front ends that see the same id share one
  image."
  *image-id*)
(define-global *started* 0 "The time when this image began to serve, in units of
  GET-INTERNAL-REAL-TIME.")
(define-global *features-of-image* '() "The features that DEFINE-FEATURE collected, newest first.")

(defmacro define-feature (name () &body body)
  "Reports the value of BODY to the host as the feature NAME (docs/wire.md, `ready`), a JSON value."
  `(push (cons ,name (lambda () ,@body)) *features-of-image*))

(defun image-features ()
  "The JSON of the features. A feature that fails has a default that means absent."
  (flet ((value (name default)
           (let ((probe (cdr (assoc name *features-of-image* :test #'string=))))
             (if probe
                 (handler-case (funcall probe) (serious-condition () default))
                 default))))
    (object "fork" (value "fork" :false) "landlock" (value "landlock" 0) "seccomp" (value "seccomp" :false)
            "chain" (value "chain" :false))))

(defun lisp-version ()
  (format nil "~A ~A" (lisp-implementation-type) (lisp-implementation-version)))

(defun random-id ()
  "Thirty-two random hexadecimal digits."
  (let ((octets (make-array 16 :element-type '(unsigned-byte 8))))
    (with-open-file (random "/dev/urandom" :element-type '(unsigned-byte 8))
      (read-sequence octets random))
    (with-standard-io-syntax (format nil "~(~{~2,'0X~}~)" (coerce octets 'list)))))

(defun take-link ()
  "The descriptor that CONSORT_FD names. Programs that the image runs inherit neither the descriptor
  nor the variable."
  (let* ((text (sb-ext:posix-getenv "CONSORT_FD"))
         (fd (and text (ignore-errors (parse-integer text)))))
    (unless fd
      (format *error-output* "CONSORT_FD must name the descriptor of the host. This image is started by `consort`, not by hand.~%")
      (finish-output *error-output*)
      (exit-process 2))
    (handler-case (sb-posix:fcntl fd sb-posix:f-setfd 1) ; FD_CLOEXEC
      (sb-posix:syscall-error ()
        (format *error-output* "CONSORT_FD names no open descriptor: ~D~%" fd)
        (finish-output *error-output*)
        (exit-process 2)))
    (sb-posix:unsetenv "CONSORT_FD")
    fd))

(define-global *work-directory* nil "The host's own directory, which is removed with the host; NIL
  if it named none.")

(defun take-work-directory ()
  "Returns the value of CONSORT_WORK, and removes it from the environment of programs that the image
  runs."
  (let ((text (sb-ext:posix-getenv "CONSORT_WORK")))
    (sb-posix:unsetenv "CONSORT_WORK")
    (and text (plusp (length text)) (string-right-trim "/" text))))

(define-global *functions-replaced* nil "True once REPLACE-FUNCTIONS has run, here or before the
  core was saved.")

(defun replace-functions ()
  "Makes functions of SBCL call Consort's functions from now on. Part of the build of a core,
  because the first encapsulation of a function takes some ten milliseconds, and far longer on some
  machines (sbcl/encapsulation.lisp)."
  (unless *functions-replaced*
    (publish-what-is-loaded)
    (spare-files-of-debugging)
    (leave-sbcls-stepper)
    (have-threads-stop)
    (keep-own-threads)
    (limit-handlers)
    (limit-encapsulations)
    (end-frozen-before-collections)
    (refuse-exits #'refuse-exit)
    (refuse-standard-conditions #'refuse-condition)
    (refuse-package-loss '("COMMON-LISP" "COMMON-LISP-USER" "CONSORT" "KEYWORD") #'refuse-loss-of-package)
    (replace-debugger #'evaluation-debugger)
    (after-collections 'guard-heap 'put-off-hooks-of-collections)
    (setf *functions-replaced* t)))

(defun prepare-image ()
  "Sets the global state to what user code may expect, including code in threads of its own."
  (setf *package* (user-package))
  (let ((out (instance-of 'shared-output :kind 'stdout))
        (err (instance-of 'shared-output :kind 'stderr)))
    (setf *standard-output* out
          *error-output* err
          *trace-output* err
          *standard-input* *null-io*
          *terminal-io* *null-io*
          *query-io* *null-io*
          *debug-io* *null-io*
          sb-ext:*invoke-debugger-hook* 'evaluation-debugger
          sb-ext:*default-external-format* :utf-8))
  ;; This finds the cache of this user, and sets UIOP's variables for the streams above.
  (uiop:call-image-restore-hook)
  (take-image-settings)
  (replace-functions)
  (setf *serves-host* t)
  (print-parts-when-inspected)
  (note-methods)
  (prepare-signals)
  (ignore-stray-signals)
  (line-buffer-stdout)
  (rehearse-evaluation)
  (note-locks-of-process))

(defun rehearse (texts &rest keys)
  "Evaluates each of TEXTS with the settings of a new session and writes its outcome as JSON, so
  that SBCL already makes what it makes at the first use. KEYS are EVALUATE's."
  (dolist (text texts)
    (let ((*user-settings* (copy-of-settings)))
      (json-line (apply #'evaluate (make-evaluation 0 "rehearsal") text :package (user-package) keys)))))

(defun rehearse-evaluation ()
  "Evaluates a value and an error. SBCL computes again what it discarded about generic functions
  when the core was saved. That takes the compiler's lock, which user code may hold from the first
  evaluation on."
  (rehearse '("1" "(error \"rehearsal\")")))

(defun main ()
  "Serves the host over CONSORT_FD until the host closes the link. Never returns."
  (look-up-foreign-addresses)
  (setf *link* (take-link)
        *work-directory* (take-work-directory)
        *image-id* (random-id)
        *started* (get-internal-real-time))
  (begin-references)
  (prepare-for-programs)
  (prepare-image)
  (send-event "ready" "protocol" +protocol+ "pid" (sb-posix:getpid) "image" *image-id* "lisp" (lisp-version)
                      "features" (image-features))
  (start-thread "consort starter" #'start-all)
  (start-helper) ; for when no thread can be made
  (start-thread "consort poster" #'post-all)
  (with-own-settings () (serve *link*)))
