;;;; The state of the threads: the share of a processor that each uses, the lock that it waits for,
;;;; the holder of that lock, and its frames.

(in-package :consort)

(defconstant +sampling-time+ 0.1 "The time in seconds over which processor time is measured.")
(defconstant +ticks-per-second+ 100 "The number of units in a second in which Linux reports
  processor time to programs, whatever its own clock.")
(defconstant +stack-time+ 3 "The time in seconds within which a thread must report its frames.")

(defun thread-ticks (thread)
  "Two values: the processor time of THREAD in the system's ticks, and the letter of its state. NIL
  if the system does not report them."
  (let ((id (and (internal-p 'thread-os-tid) (ignore-errors (thread-os-tid thread)))))
    (when (and (integerp id) (plusp id))
      (ignore-errors
       (let* ((line (with-open-file (in (format nil "/proc/self/task/~D/stat" id) :external-format :latin-1) (read-line in)))
              ;; The name, in parentheses, may contain any character.
              (fields (remove "" (uiop:split-string (subseq line (1+ (position #\) line :from-end t))) :separator " ") :test #'string=)))
         (values (+ (parse-integer (nth 11 fields)) (parse-integer (nth 12 fields)))
                 (char (first fields) 0)))))))

(defun waited-for (thread)
  "Two values: the object that THREAD waits for, or NIL; and true if that is a condition variable
  and not a lock."
  (let ((object (and (internal-p 'thread-waiting-for) (ignore-errors (thread-waiting-for thread)))))
    (when (consp object) (setf object (cdr object)))
    (typecase object
      (sb-thread:mutex (values object nil))
      (sb-thread:waitqueue (values object t)))))

(defun lock-title (lock)
  (let ((name (ignore-errors (typecase lock
                               (sb-thread:mutex (sb-thread:mutex-name lock))
                               (t (sb-thread:waitqueue-name lock))))))
    (if (stringp name) name "unnamed")))

(define-operation "thread-states" :helper (id params)
  (let* ((threads (reverse (remove sb-thread:*current-thread* (remove-if #'ephemeral-thread-p (sb-thread:list-all-threads)))))
         (entries (number-threads threads))
         (before (mapcar (lambda (entry) (thread-ticks (cdr entry))) entries))
         (begun (now-ms)))
    (sleep +sampling-time+)
    (let ((seconds (/ (max 1d0 (- (now-ms) begun)) 1000d0)) (tick +ticks-per-second+))
      (object "threads"
              (loop for (number . thread) in entries
                    for first in before
                    for (ticks letter) = (multiple-value-list (thread-ticks thread))
                    for (lock condition) = (multiple-value-list (waited-for thread))
                    for evaluation = (evaluation-in thread)
                    for owner = (and lock (not condition) (ignore-errors (sb-thread:mutex-owner lock)))
                    when (sb-thread:thread-alive-p thread)
                      collect (object "number" number
                                      "name" (thread-title thread)
                                      "kind" (cond (evaluation "evaluation") ((own-thread-p thread) "system") (t "user"))
                                      "ms" (if evaluation (milliseconds-since (evaluation-started evaluation)) :null)
                                      "state" (cond (condition "waits to be notified")
                                                    (lock "waits for a lock")
                                                    ((eql letter #\R) "runs")
                                                    ((eql letter #\D) "waits for a device")
                                                    (letter "sleeps or waits for input")
                                                    (t "unknown"))
                                      "processor" (if (and first ticks) (min 1d0 (/ (- ticks first) tick seconds)) :null)
                                      "waits_for" (if lock (lock-title lock) :null)
                                      "held_by" (if (typep owner 'sb-thread:thread)
                                                    (or (car (rassoc owner entries :test #'eq)) :null)
                                                    :null)))))))

(defun frame-place (frame)
  "The JSON fields of the place of the definition to which FRAME, (NAME ARG ...), belongs."
  (let* ((name (first frame))
         (symbol (frame-symbol frame))
         (function (ignore-errors (cond ((and (consp name) (eq (first name) 'setf)) (fdefinition name))
                                        ((and symbol (fboundp symbol)) (or (macro-function symbol) (fdefinition symbol)))))))
    (when function
      (ignore-errors (source-place (sb-introspect:find-definition-source function))))))

(defun frame-object (frame)
  (list* :object "call" (frame-text frame)
                 "name" (let ((symbol (frame-symbol frame))) (if symbol (present symbol (find-package "COMMON-LISP-USER")) :null))
                 (frame-place frame)))

(defun frames-of-thread (thread)
  "The JSON of each frame of THREAD that is of interest. Refuses if the thread does not answer in
  time."
  (let ((done (sb-thread:make-semaphore)) (frames '()))
    (flet ((look ()
             ;; If there are no frames of a program's functions, the first frames of any kind.
             (setf frames (or (current-calls) (ignore-errors (first-frames (sb-debug:list-backtrace :count 60)))))
             (sb-thread:signal-semaphore done)))
      ;; Reading the stack may allocate with malloc, and the thread may just be in malloc.
      (unless (interrupt-outside-foreign-code thread #'look)
        (refuse "not-found" "The thread has ended")))
    (unless (sb-thread:wait-on-semaphore done :timeout +stack-time+)
      (refuse "busy" "The thread does not let itself be interrupted now, so nobody can tell where it is. Try again."))
    (mapcar #'frame-object frames)))

(define-operation "thread-stack" :thread (id params)
  (let* ((number (param params "number" '(integer 1)))
         (thread (cdr (assoc number *thread-numbers*))))
    (cond ((or (null thread) (not (sb-thread:thread-alive-p thread)))
           (refuse "not-found" "There is no thread ~D any more" number))
          ((and (own-thread-p thread) (not (evaluation-in thread)))
           (refuse "bad-params" "The thread ~A is Consort's own" (thread-title thread)))
          (t (object "name" (thread-title thread) "frames" (frames-of-thread thread) "features" (feature-names))))))
