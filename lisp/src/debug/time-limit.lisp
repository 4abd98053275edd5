;;;; A limit on the time that the user's code may take while a lock of ours is held, and the
;;;; definitions that passed it when breakpoints were set.

(in-package :consort)

(defconstant +definition-time+ 30
  "Seconds that breakpoints in one definition may take, when the request does not say.")

(defstruct (time-limit (:conc-name limit-) (:constructor make-time-limit (thread)))
  "A limit on the time of THREAD. This object is the tag of the THROW by which THREAD leaves its
  work. OVER is true once the time is up or the function is done. WHY says who held the compiler's
  lock then, NIL for nobody. INTERRUPTION is what was last sent."
  (thread nil :read-only t)
  (over nil)
  (why nil)
  (interruption nil))

(defvar *time-limit* nil "The limit that this thread is under.")

(defun compiler-held-elsewhere (thread)
  "Describes the thread other than THREAD that holds the compiler's lock; NIL for none."
  (let ((owner (and (typep world-lock 'sb-thread:mutex) (sb-thread:mutex-owner world-lock))))
    (and owner (not (eq owner thread)) (holding-words world-lock))))

(defun pass-limit (limit)
  "Has the thread of LIMIT leave what it does. Clean-up forms that go on for half a second are left
  too."
  (unless (limit-over limit)
    (unless (limit-interruption limit)
      (setf (limit-why limit) (compiler-held-elsewhere (limit-thread limit))))
    (let ((before (limit-interruption limit)))
      (unless (and before (interruption-under-way-p before))
        (setf (limit-interruption limit)
              (interrupt-outside-foreign-code (limit-thread limit)
                                              (lambda () (when (eq *time-limit* limit) (throw limit limit)))))))
    (schedule *deadlines* 0.5d0 (lambda () (pass-limit limit)))))

(defun call-within (seconds function late)
  "Returns the value of FUNCTION. After SECONDS FUNCTION is left, and LATE is called with a
  description of the holder of the compiler's lock, or NIL, and gives the value."
  (let* ((limit (make-time-limit sb-thread:*current-thread*))
         (timer (schedule *deadlines* seconds (lambda () (pass-limit limit))))
         (value (unwind-protect
                     (catch limit
                       (let ((*time-limit* limit)) (values (funcall (the function function)))))
                  (setf (limit-over limit) t)
                  (cancel *deadlines* timer))))
    (if (eq value limit) (funcall (the function late) (limit-why limit)) value)))

;;; Definitions that took too long. They are not tried again each time that code was evaluated.

(define-global *late-definitions* '()
  "(OWNER FILE KEY MESSAGE) of each definition that breakpoints could not be put into in time. KEY is
  its text, or the name in a request without a file; a list of that, a condition and a log message
  where one of those took the time. Replaced under *PROBES-LOCK*.")

(defun late-message (what seconds holder)
  "WHAT: the definition, in words. HOLDER: who held the compiler's lock, in words, or NIL."
  (if holder
      (format nil "Not set: putting breakpoints into ~A was given up after ~A, because ~A. Set it again when that has ended" what (seconds-text seconds) holder)
      (format nil "Not set: putting breakpoints into ~A took longer than ~A and was stopped. A macro or reader macro in it, or the breakpoint's condition ~
                   or log message, may not end. Correct that, then remove the breakpoint and set it again, or evaluate the definition"
              what (seconds-text seconds))))

(defun late-definition (owner file key)
  "Returns the message of the definition KEY that was too late for OWNER; NIL for none."
  (fourth (find-if (lambda (late) (and (equal (first late) owner) (equal (second late) file) (equal (third late) key))) *late-definitions*)))

(defun note-late-definition (owner file key message)
  (push (list owner file key message) *late-definitions*))

(defun definition-of-key (key)
  (if (consp key) (first key) key))

(defun keep-late-definitions (owner file keys)
  "Forgets the definitions in FILE that were too late for OWNER, but for KEYS."
  (setf *late-definitions*
        (remove-if (lambda (late)
                     (and (equal (first late) owner) (equal (second late) file) (not (member (definition-of-key (third late)) keys :test #'equal))))
                   *late-definitions*)))

(defun forget-late-definition (text)
  "TEXT was evaluated: breakpoints in it may be tried again."
  (when *late-definitions*
    (setf *late-definitions* (remove text *late-definitions* :key (lambda (late) (definition-of-key (third late))) :test #'equal))))
