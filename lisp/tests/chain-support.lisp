;;;; The host's side of a chain, in Lisp, for the tests.

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defstruct (host-chain (:conc-name host-))
  pid stream text path directory listener
  (number 0)                            ; of the last edit
  findings                              ; of the base text, as facts
  pids forms
  (broken nil))                         ; whether its keeper has gone

(defun read-report-line (stream)
  "The next line of STREAM, read; NIL at its end."
  (let ((octets (make-array 0 :element-type '(unsigned-byte 8) :adjustable t :fill-pointer t)))
    (loop for octet = (read-byte stream nil)
          until (or (null octet) (= octet 10)) do (vector-push-extend octet octets)
          finally (return (and (or octet (plusp (length octets))) (parse-json (coerce octets 'octets)))))))

(defun send-to-chain (chain message)
  (multiple-value-bind (octets end) (json-line message)
    (write-sequence octets (host-stream chain) :end end)
    (finish-output (host-stream chain))))

(defun finding-facts-of (diagnostic)
  "DIAGNOSTIC as a list that EQUAL compares."
  (flet ((span (value) (coerce value 'list)))
    (list (span (field diagnostic "span")) (field diagnostic "severity") (field diagnostic "code") (field diagnostic "message")
          (field diagnostic "form") (and (vectorp (field diagnostic "toplevel")) (span (field diagnostic "toplevel")))
          (map 'list (lambda (place) (list (span (field place "span")) (field place "message"))) (field diagnostic "related" #())))))

(defun sorted-facts (diagnostics)
  (sort (mapcar #'finding-facts-of diagnostics) #'string< :key #'prin1-to-string))

(defun process-ended-p (pid)
  "Returns true if the process PID, which was not reaped, has ended."
  (let ((line (with-open-file (in (format nil "/proc/~D/stat" pid) :external-format :latin-1) (read-line in))))
    (char= #\Z (char line (+ 2 (position #\) line :from-end t))))))

(defun stop-chain (chain)
  "End CHAIN, in order unless its keeper has gone; how its head ended."
  (ignore-errors (close (host-stream chain)))
  (sb-bsd-sockets:socket-close (host-listener chain))
  (let ((end (+ (get-universal-time) *patience*)))
    (loop until (or (process-ended-p (host-pid chain)) (host-broken chain) (> (get-universal-time) end))
          do (sleep 0.01)))
  (unless (process-ended-p (host-pid chain)) (sb-posix:kill (- (host-pid chain)) sb-posix:sigkill))
  (multiple-value-prog1 (wait-for-group (host-pid chain))
    (delete-directory (host-directory chain))))

(defun start-chain (text &key path asd-files (spacing 5) (withheld #()) (package :null) (runner 'check-with-chain) (deadline *patience*))
  "Check TEXT with a chain. The HOST-CHAIN; NIL when none stands, and then why not."
  (let* ((directory (fresh-directory))
         (socket-name (concatenate 'string directory "s"))
         (listener (make-instance 'sb-bsd-sockets:local-socket :type :stream))
         (params (object "text" text "path" (or-null path) "mode" "file" "package" package "withheld" withheld
                         "asd_files" (coerce asd-files 'vector) "notes" :false "unreachable" :false "confine" :true "deadline" deadline
                         "socket" socket-name "token" "secret" "scratch" directory
                         "read" (vector (uiop:native-namestring (uiop:temporary-directory)))
                         "chain" (object "spacing_ms" spacing "checkpoints" 48))))
    (sb-bsd-sockets:socket-bind listener socket-name)
    (sb-bsd-sockets:socket-listen listener 1)
    (let* ((pid (call-in-copy (lambda ()
                                (refuse-exits #'refuse-exit)
                                (setf *serves-host* t)
                                (funcall runner params))
                              :patience *patience*))
           (connection (progn (await-connection listener pid) (sb-bsd-sockets:socket-accept listener)))
           (stream (sb-bsd-sockets:socket-make-stream connection :input t :output t :element-type '(unsigned-byte 8) :buffering :full))
           (chain (make-host-chain :pid pid :stream stream :text (coerce text 'text) :path path :directory directory :listener listener))
           (diagnostics '()))
      (loop
        (let ((line (read-report-line stream)))
          (cond ((null line)
                 (setf (host-broken chain) t)
                 (stop-chain chain)
                 (return (values nil "it ended")))
                ((field line "diagnostic") (push (field line "diagnostic") diagnostics))
                ((loop for key in (rest line) by #'cddr thereis (equal key "chain"))
                 (let ((facts (field line "chain")))
                   (unless facts
                     (stop-chain chain)
                     (return (values nil "its records do not give what its check found")))
                   (setf (host-findings chain) (sorted-facts diagnostics)
                         (host-pids chain) (coerce (field facts "pids") 'list)
                         (host-forms chain) (field facts "forms"))
                   (return chain)))))))))

(defun edit-span (old new)
  "Start and end in OLD, and what is there in NEW."
  (let* ((start (common-start old new))
         (tail (common-end old new (- (min (length old) (length new)) start))))
    (values start (- (length old) tail) (subseq new start (- (length new) tail)))))

(defun ask-chain (chain new &key (withheld #()))
  "The answer of CHAIN to the text NEW: the findings of the last answer and those of the first, as
  facts, how often it answered; or :WHOLE and why."
  (multiple-value-bind (start end insert) (edit-span (host-text chain) (coerce new 'text))
    (let ((number (incf (host-number chain))) (diagnostics '()) (first nil) (answers 0))
      (handler-case
          (send-to-chain chain (object "edit" (object "number" number "start" start "end" end "insert" insert "withheld" withheld)))
        (stream-error () (setf (host-broken chain) t) (return-from ask-chain (values :ended nil 0))))
      (loop
        (let ((line (read-report-line (host-stream chain))))
          (cond ((null line)
                 (setf (host-broken chain) t)
                 (return (values :ended nil 0)))
                ((field line "failed") (expect nil (format nil "the keeper of a chain failed: ~A" (field line "failed"))))
                ((field line "diagnostic") (push (field line "diagnostic") diagnostics))
                ((field line "whole") (return (values :whole (field (field line "whole") "why") 0)))
                ((field line "answer")
                 (let ((facts (sorted-facts (shiftf diagnostics '()))))
                   (incf answers)
                   (when (= answers 1) (setf first facts))
                   (when (eq (field (field line "answer") "final") :true)
                     (return (values facts first answers)))))))))))

(defun whole-facts (text &key path asd-files)
  "The findings of a whole check of TEXT, as facts, and whether it came to its end."
  (let ((lines (check-lines (coerce text 'text) :path path :asd-files asd-files)))
    (values (sorted-facts (diagnostics-of lines))
            (loop for line in lines thereis (and (field line "done") t)))))

(defun compare-with-whole (final text &rest more)
  "Whether FINAL, the facts that a chain found in TEXT, are those of a whole check, which MORE says
  more of; those that are missing, and those that it has in addition. Third value: whether the whole
  check came to its end. Some of what SBCL tells depends on the state of its caches of types, in a
  whole check as well (docs/diagnostics.md): what one of several whole checks has and another has
  not is no difference."
  (multiple-value-bind (whole complete) (apply #'whole-facts text more)
    (let ((missing (set-difference whole final :test #'equal)) (extra (set-difference final whole :test #'equal)))
      (when (or missing extra)
        (let ((others (loop repeat 40 collect (whole-facts text :path (getf more :path) :asd-files (getf more :asd-files)))))
          (flet ((unsteady-p (fact)
                   (let ((all (cons whole others)))
                     (and (some (lambda (whole) (member fact whole :test #'equal)) all)
                          (notevery (lambda (whole) (member fact whole :test #'equal)) all)))))
            (setf missing (remove-if #'unsteady-p missing)
                  extra (remove-if #'unsteady-p extra)))))
      (values missing extra complete))))

(defun same-as-whole-p (final text &rest more)
  "Whether FINAL, the facts that a chain found in TEXT, are those of a whole check."
  (multiple-value-bind (missing extra) (apply #'compare-with-whole final text more)
    (not (or missing extra))))
