;;;; A limit on the time that the user's code may take while a lock of Consort's is held, and
;;;; the definitions that exceeded it when breakpoints were set.

(in-package :consort)

(defconstant +default-breakpoint-seconds+ 30
  "The time in seconds that breakpoints in one definition may take if the request does not specify
  one.")

(defstruct (time-limit (:conc-name limit-) (:constructor make-time-limit (thread)))
  "A limit on the time of THREAD. This object is the tag of the THROW by which THREAD leaves its
  work. OVER is true once the function was left, by return or by throw; the limit then has no
  effect. HOLDER describes the holder of the compiler's lock when the time was up; NIL if there was
  none. INTERRUPTION is the interruption that was sent last."
  (thread nil :read-only t)
  (over nil)
  (holder nil)
  (interruption nil))

(defvar *time-limit* nil "The limit that this thread is under.")

(defun compiler-held-elsewhere (thread)
  "Describes the thread other than THREAD that holds the compiler's lock; NIL for none."
  (let ((owner (and (typep world-lock 'sb-thread:mutex) (sb-thread:mutex-owner world-lock))))
    (and owner (not (eq owner thread)) (holding-words world-lock))))

(defun enforce-limit (limit)
  "Makes the thread of LIMIT throw to it. Repeats this every half second while clean-up forms delay
  it."
  (unless (limit-over limit)
    (unless (limit-interruption limit)
      (setf (limit-holder limit) (compiler-held-elsewhere (limit-thread limit))))
    (let ((before (limit-interruption limit)))
      (unless (and before (interruption-under-way-p before))
        (setf (limit-interruption limit)
              (interrupt-outside-foreign-code (limit-thread limit)
                                              (lambda () (when (eq *time-limit* limit) (throw limit limit)))))))
    (schedule *deadlines* 0.5d0 (lambda () (enforce-limit limit)))))

(defun call-with-time-limit (seconds function on-timeout)
  "Returns the value of FUNCTION. After SECONDS, FUNCTION is left, and the value is that of
  ON-TIMEOUT, which is called with a description of the holder of the compiler's lock, or NIL."
  (let* ((limit (make-time-limit sb-thread:*current-thread*))
         (timer (schedule *deadlines* seconds (lambda () (enforce-limit limit))))
         (value (unwind-protect
                     (catch limit
                       (let ((*time-limit* limit)) (values (funcall (the function function)))))
                  (setf (limit-over limit) t)
                  (cancel *deadlines* timer))))
    (if (eq value limit) (funcall (the function on-timeout) (limit-holder limit)) value)))

;;; Definitions that took too long. They are not tried again each time that code was evaluated.

(define-global *timed-out-definitions* '()
  "(OWNER FILE KEY MESSAGE) of each definition that breakpoints could not be put into in time. KEY is
  the definition's text, or its name in a request without a file. If the breakpoint's condition or
  log message may have taken the time, KEY is (TEXT-OR-NAME CONDITION LOG-MESSAGE). Replaced under
  *TIMED-OUT-LOCK*.")
(define-global *timed-out-lock* (sb-thread:make-mutex :name "consort definitions that took too long")
  "Held while *TIMED-OUT-DEFINITIONS* is replaced. Evaluations do so, and must not wait for
  *PROBES-LOCK*.")

(defun timeout-message (what seconds holder)
  "Returns the message of a breakpoint that was not set in time. WHAT is the definition, in words.
  HOLDER is the holder of the compiler's lock, in words, or NIL."
  (if holder
      (format nil "Not set: putting breakpoints into ~A was given up after ~A, because ~A. Set it again when that has ended" what (seconds-text seconds) holder)
      (format nil "Not set: putting breakpoints into ~A took longer than ~A and was stopped. A macro or reader macro in it, or the breakpoint's condition ~
                   or log message, may not end. Correct that, then remove the breakpoint and set it again, or evaluate the definition"
              what (seconds-text seconds))))

(defun timed-out-definition-message (owner file key)
  "Returns the message of the definition KEY that timed out for OWNER; NIL for none."
  (fourth (find-if (lambda (entry) (and (equal (first entry) owner) (equal (second entry) file) (equal (third entry) key))) *timed-out-definitions*)))

(defun note-timed-out-definition (owner file key message)
  (with-lock (*timed-out-lock*)
    (push (list owner file key message) *timed-out-definitions*)))

(defun definition-of-key (key)
  (if (consp key) (first key) key))

(defun retain-timed-out-definitions (owner file keys)
  "Keeps only those of KEYS among the definitions in FILE that timed out for OWNER."
  (with-lock (*timed-out-lock*)
    (setf *timed-out-definitions*
          (remove-if (lambda (entry)
                       (and (equal (first entry) owner) (equal (second entry) file) (not (member (definition-of-key (third entry)) keys :test #'equal))))
                     *timed-out-definitions*))))

(defun forget-timed-out-definition (text)
  "Notes that TEXT was evaluated, so that breakpoints in it may be tried again."
  (when *timed-out-definitions*
    (with-lock (*timed-out-lock*)
      (setf *timed-out-definitions* (remove text *timed-out-definitions* :key (lambda (entry) (definition-of-key (third entry))) :test #'equal)))))

(defun forget-timed-out-definitions ()
  (when *timed-out-definitions*
    (with-lock (*timed-out-lock*) (setf *timed-out-definitions* '()))))
