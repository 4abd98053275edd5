;;;; Code that reads, where the person who started it is asked.

(in-package :consort)

(defun send-asking (image op &rest fields)
  "Sends a request that may ask for input; returns its id."
  (let ((id (incf (image-id image))))
    (push (cons id op) (image-requests image))
    (multiple-value-bind (octets end)
        (json-octets (object "id" id "op" op "params" (cons :object fields) "input" (object "session" "s" "what" "a test")))
      (send-line image (sb-ext:octets-to-string octets :end end :external-format :utf-8)))
    id))

(defun asking-id (image code &key (session "s") (timeout *patience*) (op "eval") stream)
  "Sends an evaluation that may ask; returns its id."
  (send-asking image op "session" session "code" code "capture_time" :false "timeout" timeout "stream" (bool stream)))

(defun question-of (image id &optional (number 0))
  "Returns the event of the question NUMBER of the evaluation ID, waited for."
  (await-event image "input" :id id :which (lambda (events) (nth number events))))

(defun give-input (image question text &optional why)
  "Answers QUESTION; returns whether it was asked."
  (path (apply #'call image "input" "question" (path question "question") (append (when text (list "text" text)) (when why (list "why" why))))
        "result" "found"))

(defun value-with-input (image code &rest texts)
  "Returns the outcome of CODE, whose questions get TEXTS, NIL being end of file."
  (let ((id (asking-id image code)))
    (loop for text in texts
          for number from 0
          do (give-input image (question-of image id number) text "the person cancelled"))
    (result-or-error (answer image id))))

(defun value-text (outcome)
  (or (path-if-any outcome "values" 0 "text") (path-if-any outcome "error" "message") outcome))

(deftest input-is-asked-for
  (with-image (image)
    (let* ((id (asking-id image "(progn (format t \"before~%Your name? \") (let ((name (read-line))) (format t \"Hello, ~A.~%\" name) name))"))
           (question (question-of image id)))
      (is equal "Your name? " (path question "prompt"))
      (is equal "s" (path question "session"))
      (is equal "a test" (path question "what"))
      (is eq :true (give-input image question "Ada"))
      (let ((outcome (result-or-error (answer image id))))
        (is equal "\"Ada\"" (value-text outcome))
        (is equal (format nil "before~%Your name? Ada~%Hello, Ada.~%") (path outcome "stdout" "text")))
      (is eq :false (give-input image question "late"))
      (is eq :true (path (await-event image "input-over" :id id) "answered")))
    (is equal "(A \"rest\")" (value-text (value-with-input image "(list (read) (read-line))" "a rest")))
    (is equal "(\"a\" \"b\")" (value-text (value-with-input image "(list (read-line) (read-line *query-io*))" "a" "b")))
    (is equal "(1 2 NIL)" (value-text (value-with-input image "(list (read) (read) (listen))" (format nil "1~%2"))))
    (let ((outcome (value-with-input image "(y-or-n-p \"Sure?\")" "y")))
      (is equal "T" (value-text outcome))
      (ok (text-contains "Sure?" (path outcome "stdout" "text"))))))

(deftest no-input-is-end-of-file
  (with-image (image)
    (let ((outcome (value-with-input image "(read-line)" nil)))
      (is equal "END-OF-FILE" (path outcome "error" "type"))
      (ok (text-contains "the person cancelled" (value-text outcome))))
    (is equal ":NONE" (value-text (value-with-input image "(read-line *standard-input* nil :none)" nil)))
    ;; After an end of file the next reading asks again, as at a terminal.
    (is equal "\"more\"" (value-text (value-with-input image "(progn (read-line nil nil) (read-line))" nil "more")))
    ;; Code that may not ask meets the end of file at once, with the reason.
    (ok (text-contains "nobody is asked" (value-text (evaluated image "(read-line)"))))
    (ok (text-contains "only the thread of the evaluation"
                       (value-text (value-with-input image "(let ((in *standard-input*))
                                                              (sb-thread:join-thread (sb-thread:make-thread (lambda () (handler-case (read-line in) (error (e) (princ-to-string e)))))))"))))))

(deftest waiting-for-input-ends
  (with-image (image)
    (flet ((interrupted (code)
             (let ((id (asking-id image code)))
               (question-of image id)
               (call image "interrupt" "target" id)
               (is equal "interrupted" (path (result-or-error (answer image id)) "status"))
               (is eq :false (path (await-event image "input-over" :id id) "answered")))))
      (interrupted "(read-line)")
      (interrupted "(sb-sys:without-interrupts (read-line))"))
    ;; The time that a person takes is not the evaluation's.
    (let ((id (in-time (seconds 0.3)
                (let* ((id (asking-id image "(progn (read-line) (read-line))" :timeout seconds)) (question (event-or-answer image "input" id)))
                  (when question
                    (is equal (list id) (coerce (path (call image "debug-stops") "result" "asking") 'list))
                    (sleep (* 2 seconds))
                    (give-input image question "a")
                    (and (event-or-answer image "input" id 1) id))))))
      (give-input image (question-of image id 1) "b")
      (is equal "\"b\"" (value-text (result-or-error (answer image id)))))
    (destructuring-bind (id question) (in-time (seconds 0.3)
                                        (let* ((id (asking-id image "(progn (read-line) (loop))" :timeout seconds)) (question (event-or-answer image "input" id)))
                                          (and question (list id question))))
      (give-input image question "a")
      (is equal "timeout" (path (result-or-error (answer image id)) "status")))
    ;; The session is closed with its client.
    (let ((id (asking-id image "(read-line)" :session "leaves")))
      (question-of image id)
      (call image "close-session" "session" "leaves")
      (is equal "interrupted" (path (result-or-error (answer image id)) "status")))))

(deftest input-of-loads-and-profiles
  (with-image (image)
    (let ((id (asking-id image "(read-line)" :op "profile")))
      (give-input image (question-of image id) "profiled")
      (is equal "\"profiled\"" (value-text (result-or-error (answer image id)))))
    (let* ((file (write-file "asks.lisp" "(defvar *answer* (read-line))"))
           (id (send-asking image "load-file" "path" file)))
      (give-input image (question-of image id) "loaded")
      (is equal "ok" (path (result-or-error (answer image id)) "status"))
      (is equal "\"loaded\"" (first-value image "*answer*")))))
