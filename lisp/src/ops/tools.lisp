;;;; `describe`, `disassemble`, `trace`, `untrace`, and `reference-count`: what an editor shows of a
;;;; name.

(in-package :consort)

(defun name-given (params)
  "Returns the object of the parameters `name` and `package`: a symbol that exists, or a list such
  as (SETF X). Nothing is interned for a symbol."
  (let* ((text (string-trim " " (string-left-trim "#'" (param params "name" 'string))))
         (package-name (param params "package" 'string :default nil))
         (package (if package-name (find-package-named package-name) (user-package)))
         (colon (position #\: text))
         (bare (if colon (string-left-trim ":" (subseq text colon)) text)))
    (if (or (eql 0 (position #\( text)) (find #\| text) (find #\\ text))
        (let ((*package* package) (*read-eval* nil))
          (handler-case (values (read-from-string text))
            (error () (refuse "not-found" "~A names nothing." text))))
        (multiple-value-bind (symbol found)
            (find-symbol (string-upcase bare)
                         (cond ((null colon) package)
                               ((zerop colon) (find-package "KEYWORD"))
                               (t (find-package-named (subseq text 0 colon)))))
          (if found symbol (refuse "not-found" "There is no symbol ~A in ~A." text (package-name package)))))))

(defun function-given (params)
  (let ((name (name-given params)))
    (if (ignore-errors (fboundp name)) name (refuse "not-found" "~A names no function." (shown name)))))

(define-operation "describe" :thread (id params)
  (let ((name (name-given params)))
    (nth-value 1 (evaluate-alone id (lambda () (describe name))))))

(define-operation "disassemble" :thread (id params)
  (let ((name (function-given params)))
    (nth-value 1 (evaluate-alone id (lambda () (disassemble name))))))

;;; Tracing. What is traced prints where it is called, as TRACE does; and the session that asked is
;;; told when it was another's call.

(define-global *tracers* '() "The traces: (NAME . SESSION). Replaced, never changed.")
(define-global *traces-told* (cons 0 0) "The second, and how many lines have been told in it.")
(defconstant +traces-a-second+ 200 "Lines of traced calls that are told of others' calls.")

(defun told-too-much-p ()
  "Returns true if this second has had its lines; counts this one. A line too many does no harm, so
  nobody is waited for."
  (let ((second (get-universal-time)))
    (unless (eql second (car *traces-told*))
      (setf *traces-told* (cons second 0)))
    (> (incf (cdr *traces-told*)) +traces-a-second+)))

(defun report-traced (depth name kind frame values)
  "Called by TRACE at each entry and exit."
  (declare (ignore frame))
  (let* ((sessions (loop for (traced . session) in *tracers* when (equal traced name) collect session))
         (text (with-terse-printing ()
                 (let ((*print-pretty* nil))
                   (format nil "~vT~D: ~A" (+ 2 (* 2 (mod depth 20))) depth
                           (ecase kind
                             (:enter (text-of (print-safely (cons name values) 2000 #'prin1)))
                             (:exit (format nil "~S returned~{ ~A~}" name
                                            (mapcar (lambda (value) (text-of (print-safely value 2000 #'prin1))) values)))
                             (:non-local-exit (format nil "~S exited non-locally" name))))))))
    (format *trace-output* "~&~A~%" text)
    (dolist (session sessions)
      (unless (or (equal session (and *evaluation* (evaluation-session *evaluation*))) (told-too-much-p))
        (send-event "trace" "session" session "text" text)))))

(define-operation "trace" :thread (id params)
  (let ((name (function-given params))
        (session (param params "session" 'string)))
    (multiple-value-bind (how outcome)
        (evaluate-alone id (lambda ()
                             (eval `(trace ,name :report report-traced))
                             (format t "~S is traced." name)))
      (when (eq how :ok)
        (setf *tracers* (adjoin (cons name session) *tracers* :test #'equal)))
      outcome)))

(define-operation "untrace" :thread (id params)
  (let ((name (and (param params "name" 'string :default nil) (function-given params))))
    (nth-value 1 (evaluate-alone id (lambda ()
                                      (let ((names (if name (list name) (eval '(trace)))))
                                        (setf *tracers* (remove-if (lambda (tracer) (member (car tracer) names :test #'equal)) *tracers*))
                                        (when names (eval `(untrace ,@names)))
                                        (format t "~:[Nothing is traced.~;~:*Not traced any more: ~{~S~^, ~}.~]" names)))))))

;;; References

(define-operation "reference-count" :thread (id params)
  (let* ((name (name-given params))
         (who (and (symbolp name)
                   (append (mapcan (lambda (function) (copy-list (ignore-errors (funcall function name))))
                                   '(sb-introspect:who-calls sb-introspect:who-macroexpands sb-introspect:who-references
                                     sb-introspect:who-binds sb-introspect:who-sets))
                           (and (find-class name nil) (copy-list (ignore-errors (sb-introspect:who-specializes-directly name))))))))
    (object "count" (length who))))
