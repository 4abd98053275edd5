;;;; The standard input of an evaluation whose client can be asked for input. The host asks whoever
;;;; started the evaluation for each line.

(in-package :consort)

(defstruct (question (:constructor make-question (id)))
  "A request for a line. ANSWERED is set last, by the dispatcher. TEXT is NIL for end of file, and
  WHY is then the cause."
  (id 0 :type fixnum :read-only t)
  (text nil :type (or null string))
  (why "" :type string)
  (answered nil)
  (wake (sb-thread:make-semaphore :name "consort input") :type sb-thread:semaphore :read-only t))

(define-global *last-question* (list 0) "A list of the id that was given last.")

(defun wake-question (question)
  "Makes the thread that waits for the answer to QUESTION check whether its evaluation is to end."
  (sb-thread:signal-semaphore (question-wake question)))

(defun answer-question (id text why)
  "Gives TEXT, or end of file and WHY, as the answer to the question ID. Returns true if there is
  such a question."
  (let ((question (loop for evaluation in *running*
                        for question = (evaluation-question evaluation)
                        when (and question (= (question-id question) id)) return question)))
    (when question
      (setf (question-text question) text
            (question-why question) why
            (question-answered question) t)
      (wake-question question)
      t)))

(defun await-answer (evaluation question)
  "Waits until QUESTION is answered, or leaves EVALUATION if it is to end."
  (loop until (question-answered question)
        ;; Checked here because interruptions may be off.
        do (when (evaluation-reason evaluation) (stop-here evaluation))
           (sb-thread:wait-on-semaphore (question-wake question))))

(defun ask-for-line (evaluation)
  "Asks the person who started EVALUATION for a line, in the evaluation's thread. Returns the
  answered question. The time that the person takes does not count as the evaluation's."
  (let ((question (make-question (sb-ext:atomic-incf (car *last-question*))))
        (target (evaluation-input-client evaluation))
        (left nil))
    (pass-on (evaluation-stdout evaluation))
    (pass-on (evaluation-stderr evaluation))
    (without-interrupts
      (unwind-protect
           (progn
             (setf left (hold-deadline evaluation)
                   (evaluation-question evaluation) question)
             (with-own-settings ()
               (send-event "input" "id" (evaluation-id evaluation) "question" (question-id question)
                                   "session" (field target "session") "what" (field target "what")
                                   "prompt" (prompt-of (evaluation-stdout evaluation))))
             (with-local-interrupts (await-answer evaluation question)))
        (setf (evaluation-question evaluation) nil)
        (resume-deadline evaluation left)
        (with-own-settings ()
          (send-event "input-over" "id" (evaluation-id evaluation) "question" (question-id question)
                                   "answered" (bool (question-answered question))))))
    question))

(defconstant +prompt-limit+ 500 "The maximum number of output characters in a prompt.")

(defun prompt-of (capture)
  "The last line that CAPTURE has kept, without newlines after it. It is shown to the person as the
  prompt."
  (let* ((text (string-right-trim '(#\Newline #\Return) (last-characters capture +prompt-limit+)))
         (newline (position #\Newline text :from-end t)))
    (if newline (subseq text (1+ newline)) text)))

;;; The stream

(defclass asked-input (consort-stream sb-gray:fundamental-character-input-stream sb-gray:fundamental-character-output-stream)
  ((evaluation :initarg :evaluation :reader asked-evaluation)
   (line :initform "" :accessor asked-line :type string)
   (at :initform 0 :accessor asked-at :type index)
   (why :initform nil :accessor asked-why :documentation "The cause of the last end of file."))
  (:documentation "The stream that is *STANDARD-INPUT* and the bidirectional streams of an
  evaluation. Output to it goes to the evaluation's standard output. LINE from AT on was typed and
  is not read yet. Only the evaluation's own thread asks for lines. For other threads the stream is
  at its end."))

(defmethod print-object ((stream asked-input) output)
  (format output "#<standard input~@[: ~A~]>" (asked-why stream)))

(defun asked-output (stream)
  (evaluation-stdout (asked-evaluation stream)))

(defun fill-asked-input (stream)
  "Asks for a line. Returns NIL at end of file."
  (let ((evaluation (asked-evaluation stream)))
    (unless (and (eq evaluation *evaluation*) (in-user-code-p))
      (setf (asked-why stream) "only the thread of the evaluation can ask for input")
      (return-from fill-asked-input nil))
    (let* ((question (ask-for-line evaluation))
           (text (question-text question)))
      (cond (text
             (echo (asked-output stream) text)
             (setf (asked-line stream) (concatenate 'string text '(#\Newline))
                   (asked-at stream) 0
                   (asked-why stream) nil)
             t)
            (t
             (setf (asked-why stream) (question-why question))
             nil)))))

(defun typed-ahead-p (stream)
  (< (asked-at stream) (length (asked-line stream))))

(defun read-asked-char (stream)
  (prog1 (char (asked-line stream) (asked-at stream))
    (incf (asked-at stream))))

(defmethod sb-gray:stream-read-char ((stream asked-input))
  (if (or (typed-ahead-p stream) (fill-asked-input stream))
      (read-asked-char stream)
      :eof))

(defmethod sb-gray:stream-unread-char ((stream asked-input) char)
  (declare (ignore char))
  (when (plusp (asked-at stream))
    (decf (asked-at stream)))
  nil)

(defmethod sb-gray:stream-read-char-no-hang ((stream asked-input))
  (when (typed-ahead-p stream) (read-asked-char stream)))

(defmethod sb-gray:stream-listen ((stream asked-input))
  (typed-ahead-p stream))

(defmethod sb-gray:stream-clear-input ((stream asked-input))
  (setf (asked-line stream) ""
        (asked-at stream) 0)
  nil)

(defmethod sb-gray:stream-write-char ((stream asked-input) char)
  (write-char char (asked-output stream)))

(defmethod sb-gray:stream-write-string ((stream asked-input) string &optional (start 0) end)
  (write-string string (asked-output stream) :start start :end end))

(defmethod sb-gray:stream-line-column ((stream asked-input))
  (capture-column (asked-output stream)))

(defun input-of (evaluation)
  "The standard input of EVALUATION."
  (if (evaluation-input-client evaluation)
      (instance-of 'asked-input :evaluation evaluation)
      *null-io*))

(define-operation "input" :dispatcher (id params)
  (object "found" (bool (answer-question (param params "question" 'integer)
                                         (param params "text" 'string :default nil)
                                         (param params "why" 'string :default "end of file")))))
