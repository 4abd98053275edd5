;;;; Reading the text form by form. A form that cannot be read is reported at its place and skipped,
;;;; and reading continues after it.

(in-package :consort)

(defstruct (reading (:constructor make-reading (check file)))
  "The state of reading the text of CHECK. Positions are characters of the text."
  check
  file                                  ; the text as a file, with white space for withheld forms
  (first 0 :type fixnum)                ; the position in the text at which the file begins
  (stream nil)
  (base 0 :type fixnum)                 ; the position in the text at which the stream begins
  ;; Three elements for each subform: start, end, object. Replaced by the compiler's own vector
  ;; when that is known.
  (subforms (make-array 1000 :adjustable t :fill-pointer 0))
  ;; True if a name in the form was reported as unknown. The form is then read to its end, if that
  ;; can be found, and is not compiled.
  (unreadable nil)
  ;; True if reading the form was left before its end.
  (failed nil))

(defun reading-position (reading)
  "The position in the text of the next character to read."
  (+ (reading-base reading) (tracking-stream-position (reading-stream reading))))

(defun reopen (reading position)
  "Continues reading at POSITION of the text, with a new stream."
  (when (reading-stream reading) (close (reading-stream reading)))
  (let ((subforms (reading-subforms reading)))
    (setf (reading-base reading) position
          (reading-stream reading)
          (open-source (reading-file reading) (check-text (reading-check reading)) position
                       (check-path (reading-check reading))
                       (lambda (start end object)
                         ;; The reader also passes :RESET as START, after a comment within a form.
                         ;; Such a call is ignored.
                         (when (and (integerp start) (not *read-suppress*))
                           (vector-push-extend (+ position start) subforms)
                           (vector-push-extend (+ position end) subforms)
                           (vector-push-extend object subforms)))
                       (reading-first reading)))))

;;; Forms that cannot be read

(defun reader-finding (check start end code message condition &optional follows)
  "Reports that the text from START to END cannot be read because of CONDITION. FOLLOWS is true if
  an earlier name in the form is unknown, so that the finding may be only a consequence."
  (report-finding check (make-finding :start start :end (max end (1+ start)) :severity :error :code code :message message :follows follows
                                      :condition (type-name-for-user condition)
                                      :form (collapse-space (let* ((text (check-text check))
                                                                   (end (min (end-of-line text (check-form-start check))
                                                                             (+ (check-form-start check) 77))))
                                                              (string-upcase (subseq text (check-form-start check) (max end (check-form-start check))))))
                                      :toplevel (cons (check-form-start check) (max end (1+ start)))
                                      :data (and (typep condition 'package-error)
                                                 (list "package" (ignore-errors (let ((p (package-error-package condition)))
                                                                                  (if (packagep p) (package-name p) (string p)))))))))

(defun package-message (check condition)
  "The message for CONDITION, an error in a package prefix. The first message for the same arguments
  is kept and returned each time, although the symbol is made known so that reading can continue."
  (let ((key (and (typep condition 'simple-condition) (condition-arguments condition))))
    (or (gethash key (check-reader-messages check))
        (setf (gethash key (check-reader-messages check)) (condition-report condition)))))

(defun report-package-error (reading condition)
  "Reports an unknown package or symbol in a token."
  (let* ((check (reading-check reading))
         (unknown (not (packagep (package-error-package condition))))
         (span (token-around (check-text check) (reading-position reading) :delimiter t)))
    (when unknown (setf (check-unknown-packages check) t))
    (reader-finding check (car span) (cdr span) (if unknown "unknown-package" "unknown-symbol")
                    (package-message check condition) condition)))

(defun report-reader-error (reading condition)
  "Reports CONDITION, a failure to read that is no package error."
  (let* ((check (reading-check reading))
         (text (check-text check))
         (follows (reading-unreadable reading))
         (position (min (length text) (reading-position reading))))
    (cond ((typep condition 'end-of-file)
           (let ((start (unclosed-construct text (check-form-start check))))
             (reader-finding check start (min (length text) (1+ start)) "end-of-file"
                             (format nil "end of file: the ~A that begins here never ends"
                                     (case (char text (min start (1- (length text))))
                                       (#\( "list") (#\" "string") (#\| "symbol") (#\# "comment") (t "form")))
                             condition)))
          (t
           (let* ((evaluated (read-eval-place reading text))
                  (span (or evaluated (token-around text position)))
                  (message (condition-report condition)))
             (cond ((and (not *read-eval*) (search "*READ-EVAL*" message))
                    (reader-finding check (car span) (cdr span) "read-eval"
                                    "#. is refused here: it would run code while the text is read." condition))
                   ((and (confinement-refusal-p condition) (check-confined check))
                    (reader-finding check (car span) (cdr span) "confined" (confined-message message condition) condition))
                   (t
                    (reader-finding check (car span) (cdr span) (if evaluated "read-eval" "reader-error") message condition follows))))))))

(defun read-eval-place (reading text)
  "The span (START . END) of the #. form that was read last in TEXT; NIL when the last subform that
  was read is not one."
  (let* ((subforms (reading-subforms reading)) (n (length subforms)))
    (when (>= n 3)
      (let ((start (aref subforms (- n 3))) (end (aref subforms (- n 2))))
        (when (and (<= 2 start) (string= "#." text :start2 (- start 2) :end2 start)
                   (<= end (reading-position reading) (1+ end)))
          (cons (- start 2) end))))))

;;; Reading a form

(define-condition form-out-of-time (serious-condition)
  ((seconds :initarg :seconds :reader form-seconds))
  (:report (lambda (condition stream)
             (format stream "This form was left after ~,1F s, so that the others are still checked. Is there a macro that never ends?"
                     (form-seconds condition))))
  (:documentation "Signalled when a form takes too long; see CALL-WITH-FORM-TIMEOUT. The type is no
  subtype of ERROR, so that code that ignores errors does not ignore this condition."))

(define-global *check-end* nil "The internal real time at which the copy should have finished,
  somewhat before the host ends it. NIL means no limit.")

(defun set-check-end (seconds)
  "Sets *CHECK-END* in a copy that the host ends after SECONDS."
  (setf *check-end* (+ (get-internal-real-time) (round (* 9/10 seconds internal-time-units-per-second)))))

(defvar *form-limit* nil "The maximum number of seconds for a form, or NIL for no such maximum;
  see CALL-WITH-FORM-TIMEOUT.")

(defconstant +definition-limit+ 3 "The maximum number of seconds for a system definition in the
  search for a file's system.")

(defun call-with-form-timeout (function)
  "Calls FUNCTION. Signals FORM-OUT-OF-TIME when it takes three quarters of the time that remains
  until *CHECK-END*, or *FORM-LIMIT* seconds if that is less. Without *CHECK-END*, nothing is
  limited."
  (if *check-end*
      (let* ((left (/ (- *check-end* (get-internal-real-time)) internal-time-units-per-second))
             (most (max 1/10 (* 3/4 left)))
             (seconds (if *form-limit* (min *form-limit* most) most)))
        (call-with-alarm seconds (lambda () (error 'form-out-of-time :seconds seconds)) function))
      (funcall function)))

(defun call-guarded (function on-failure &optional (where (constantly nil)))
  "Calls FUNCTION and returns its values. If FUNCTION does not return, because of an unhandled
  condition, a throw or the ABORT restart, calls ON-FAILURE with two arguments and returns NIL. The
  arguments are the condition, or NIL if there was none, and the value of WHERE, which was called
  where the condition was signalled, or NIL."
  (let ((failure nil) (place nil) (done nil) (values nil))
    (block guarded
      (unwind-protect
           (let ((sb-ext:*invoke-debugger-hook*
                   (lambda (condition hook)
                     (declare (ignore hook))
                     (setf failure condition
                           place (handler-case (funcall where) (error () nil)))
                     (return-from guarded)))
                 (*debugger-hook* nil))
             (restart-case
                 (progn (setf values (multiple-value-list (call-with-form-timeout function)))
                        (setf done t))
               (abort () :report "Leave this form.")))
        ;; A throw to a catch tag outside of FUNCTION is also stopped here.
        (unless done (return-from guarded))))
    (cond (done (values-list values))
          (t (funcall on-failure failure place) nil))))

(defun read-one (reading)
  "Reads the next form. Two values: the form, and :FORM; or, at the end of the text, any object and
  :END; or, when the form cannot be read, which is then reported, any object and :UNREADABLE."
  (let* ((check (reading-check reading))
         (stream (reading-stream reading))
         (state :unreadable) (form nil) (unlocked '()))
    (setf (reading-unreadable reading) nil
          (reading-failed reading) nil
          (fill-pointer (reading-subforms reading)) 0
          (tracking-stream-form-start stream) nil)
    (call-guarded
     (lambda ()
       (handler-bind ((error (lambda (condition)
                               ;; The CONTINUE restart makes the symbol known. The rest of the form
                               ;; can then be read, and its end is found.
                               (let ((continue (and (typep condition reader-package-error-type)
                                                    (eq (stream-error-stream condition) stream)
                                                    (find-restart 'continue condition))))
                                 (when continue
                                   (report-package-error reading condition)
                                   (setf (reading-unreadable reading) t)
                                   (let ((package (package-error-package condition)))
                                     (when (and (packagep package) (sb-ext:package-locked-p package))
                                       (sb-ext:unlock-package package)
                                       (push package unlocked)))
                                   (invoke-restart continue))))))
         (setf form (let ((*read-suppress* nil)) ; also where the text has set it
                      (read-preserving-whitespace stream nil stream))
               state (cond ((eq form stream) :end)
                           ((reading-unreadable reading) :unreadable)
                           (t :form)))))
     (lambda (condition where)
       (declare (ignore where))
       (setf (reading-failed reading) t)
       (cond ((null condition)
              (reader-finding check (check-form-start check) (1+ (check-form-start check)) "reader-error"
                              "Reading this form was left by a THROW or ABORT." (make-condition 'simple-error :format-control "")))
             ((typep condition reader-package-error-type) (report-package-error reading condition))
             (t (report-reader-error reading condition)))))
    (mapc #'sb-ext:lock-package unlocked)
    (values form state)))

(defun skip-unreadable (reading start)
  "Continues reading after the form that begins at START and could not be read."
  (let* ((check (reading-check reading))
         (text (check-text check))
         (failed-at (min (length text) (max (1+ start) (reading-position reading)))))
    (when (reading-failed reading)      ; else it was read to its end
      (if (char= (char text (min start (1- (length text)))) #\))
          (reopen reading (1+ start))
          (let ((end (progn
                       (reopen reading start)
                       (call-guarded (lambda ()
                                       (let ((*read-suppress* t) (*read-eval* nil))
                                         (read-preserving-whitespace (reading-stream reading) t))
                                       (reading-position reading))
                                     (constantly nil)))))
            (cond ((and end (>= end failed-at)))
                  ((let ((end (form-end text start)))
                     (and end (>= end failed-at) (progn (reopen reading end) t))))
                  ((let ((next (next-toplevel text failed-at)))
                     (and next (progn (reopen reading next) t))))
                  (t (reopen reading (length text)))))))
    (note-unseen-name check start)))

(defun note-unseen-name (check start)
  "Remembers the name that the form at START, which the compiler does not see, would define."
  (let ((token (definition-name (check-text check) start)))
    (when token (setf (gethash (plain-name token) (check-unseen-names check)) t))))
