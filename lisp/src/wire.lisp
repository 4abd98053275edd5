;;;; The link to the host: frames out under one lock, lines in. docs/wire.md.

(in-package :consort)

(defconstant +protocol+ 1 "The version of docs/wire.md that this image speaks.")
(defconstant +frame-limit+ (* 64 1024 1024) "The largest frame, in bytes.")
(defconstant +small-frame+ 8192 "A frame that fits into a socket's buffer when the kernel says there is room.")

(declaim (type (or null (unsigned-byte 31)) *link*))
(define-global *link* nil "The descriptor of the link; NIL in an image that does not serve.")
(define-global *link-lock* (sb-thread:make-mutex :name "consort link") "Held while a frame is written.")

(defun write-frame (octets end)
  "Writes a whole frame. Without a host there is nothing left to do: the image leaves."
  (leave-if-forked)
  (with-lock (*link-lock*)
    (unless (write-octets *link* octets 0 end)
      (leave-with-programs))))

(define-global *instead-of-link* nil
  "In a process that has no link (debug/attempt.lisp): the function that is given each frame.")

(defun send-frame (value)
  "Sends VALUE as one frame; waits while the host does not read. A frame above the limit becomes an
  error of the same id."
  (when *instead-of-link*
    (return-from send-frame (funcall (the function *instead-of-link*) value)))
  (when (and (field value "event") (forked-p)) ; its work goes on
    (return-from send-frame nil))
  (multiple-value-bind (octets end) (json-line value)
    (if (<= end +frame-limit+)
        (write-frame octets end)
        (send-error (field value "id" :null) "internal" "The answer is larger than a frame may be (64 MiB)"))))

(defun send-result (id result)
  "Answers request ID."
  (send-frame (object "id" id "result" result)))

(defun send-error (id kind message)
  "Answers request ID (or :NULL) with an error of docs/wire.md."
  (send-frame (object "id" id "error" (object "kind" kind "message" message))))

(defun send-event (name &rest fields)
  "Sends an event; FIELDS as in OBJECT."
  (send-frame (list* :object "event" name fields)))

(defvar *own-thread* nil "Bound to true in the threads that Consort started, and not in those that user code started.")

(defun start-thread (name function &rest arguments)
  "Starts a thread of ours, with our own settings. Returns it."
  (sb-thread:make-thread (lambda (&aux (*own-thread* t))
                           (restore-stack-guards)
                           ;; In a signal's handler they are blocked, and new threads inherit that.
                           (when (internal-p 'unblock-deferrable-signals) (unblock-deferrable-signals))
                           (unwind-protect (with-own-settings () (apply function arguments))
                             (restore-stack-guards)))
                         :name name))

;;; To make a thread takes a lock of the runtime. A user's thread may hold it for ever, and the
;;; dispatcher must not wait for it: then another thread waits.

(define-global *starts* '()
  "What waits for the starter, newest first: a function that starts a thread, and one that tells why
  none is started instead, or NIL.")
(define-global *starts-lock* (sb-thread:make-mutex :name "consort starts") "Held while *STARTS* changes.")
(define-global *starts-wanted* (sb-thread:make-semaphore :name "consort starts") "Counts what is in *STARTS*.")

(defun start-all ()
  "The work of the starter, a thread: starts what is in *STARTS*, the oldest first. While no thread
  can be made, tells those that can be told."
  (loop
    (sb-thread:wait-on-semaphore *starts-wanted*)
    (loop for obstacle = (obstacle-to-threads)
          while obstacle
          do (dolist (tell (take-unreported))
               (funcall (the function tell) obstacle)))
    (let ((oldest (with-lock (*starts-lock*)
                    (prog1 (first (last *starts*))
                      (setf *starts* (nbutlast *starts*))))))
      (when oldest
        (funcall (the function (car oldest)))))))

(defun take-unreported ()
  "Takes those out of *STARTS* that can be told why they do not start. Returns the functions that
  tell them, the oldest first."
  (with-lock (*starts-lock*)
    (let ((told (remove nil *starts* :key #'cdr)))
      (setf *starts* (remove nil *starts* :key #'cdr :test-not #'eq))
      (reverse (mapcar #'cdr told)))))

(defun can-start-thread-p ()
  "Returns true if a thread can be made now, as far as can be told without waiting."
  (and (null *starts*)
       (not (and (internal-p 'make-thread-lock) (lock-held-p make-thread-lock)))))

(defun start-thread-soon (name function &rest arguments)
  "START-THREAD, without ever waiting. Returns true."
  (apply #'start-thread-or-report nil name function arguments))

(defun start-thread-or-report (tell name function &rest arguments)
  "START-THREAD-SOON. When somebody keeps threads from being made, TELL, unless it is NIL, is called
  with a string that says who, instead."
  (if (can-start-thread-p)
      (apply #'start-thread name function arguments)
      (progn
        (with-lock (*starts-lock*)
          (push (cons (lambda () (apply #'start-thread name function arguments)) tell) *starts*))
        (sb-thread:signal-semaphore *starts-wanted*)))
  t)

(defconstant +title-limit+ 100 "Characters of a thread's name that are told.")

(defun thread-title (thread)
  "The name of THREAD on one line, shortened: a program may give it any."
  (let ((name (sb-thread:thread-name thread)))
    (flet ((unseen-p (char)
             ;; control characters, those that set the direction of text, separators of lines
             (member (sb-unicode:general-category char) '(:cc :cf :zl :zp))))
      (if (stringp name)
          (let ((start (subseq name 0 (min (length name) +title-limit+))))
            (concatenate 'string (substitute-if #\? #'unseen-p start) (if (> (length name) +title-limit+) "..." "")))
          "unnamed"))))

(defun own-thread-p (thread)
  "Returns true if THREAD is Consort's, or the one that serves, and not the user's."
  (or (sb-thread:main-thread-p thread)
      (eq thread sb-thread:*current-thread*)
      (not (sb-thread:thread-alive-p thread))
      (handler-case (sb-thread:symbol-value-in-thread '*own-thread* thread nil)
        (error () nil))))

;;; The dispatcher must go on reading, and so see the end of the link, when the host does not read:
;;; its frames are then sent by another thread.

(define-global *outbox* '()
  "Frames, as (octets . end), newest first, that wait for the poster. One stays until it is written,
  so that no later one overtakes it.")
(define-global *outbox-lock* (sb-thread:make-mutex :name "consort outbox")
  "Held while the outbox changes.")
(define-global *outbox-filled* (sb-thread:make-semaphore :name "consort outbox")
  "Counts what is in the outbox.")
(defun post-all ()
  "Sends what is put into the outbox. The poster is started with the image: once a frame waits, it
  may be impossible to make a thread."
  (loop
    (sb-thread:wait-on-semaphore *outbox-filled*)
    (destructuring-bind (octets . end) (with-lock (*outbox-lock*) (first (last *outbox*)))
      (write-frame octets end))
    (with-lock (*outbox-lock*) (setf *outbox* (butlast *outbox*)))))

(defun post-frame (value)
  "Sends VALUE as one frame without ever waiting for the host. Only the dispatcher calls this."
  (multiple-value-bind (octets end) (json-line value)
    (let ((sent nil))
      (when (and (null *outbox*) (<= end +small-frame+))
        (without-interrupts
          (sb-thread:with-mutex (*link-lock* :wait-p nil)
            (when (wait-until-fd-usable *link* :output 0 nil)
              (unless (write-octets *link* octets 0 end)
                (leave-with-programs))
              (setf sent t)))))
      (unless sent
        (with-lock (*outbox-lock*)
          (push (cons octets end) *outbox*))
        (sb-thread:signal-semaphore *outbox-filled*)))))

;;; Lines in

(defstruct (line-reader (:constructor make-line-reader (fd)))
  "The octets that came over the link: OCTETS from START to END are not yet taken; up to SCANNED
  there is no newline."
  (fd 0 :type (unsigned-byte 31) :read-only t)
  (octets (make-array 65536 :element-type '(unsigned-byte 8)) :type octets)
  (start 0 :type index)
  (scanned 0 :type index)
  (end 0 :type index)
  (skipping nil))

(defun make-room (reader)
  "Makes room after END: by moving what is there to the front, or by a larger array."
  (let* ((octets (line-reader-octets reader))
         (start (line-reader-start reader))
         (end (line-reader-end reader))
         (target (if (> (- end start) (ash (length octets) -1))
                     (make-array (* 2 (length octets)) :element-type '(unsigned-byte 8))
                     octets)))
    (replace target octets :start2 start :end2 end)
    (setf (line-reader-octets reader) target
          (line-reader-start reader) 0
          (line-reader-scanned reader) (- (line-reader-scanned reader) start)
          (line-reader-end reader) (- end start))))

(defun newline-position (octets start end)
  (declare (optimize speed) (type octets octets) (type index start end))
  (loop for position of-type index from start below end
        when (= (aref octets position) 10)
          return position))

(defun shrink (reader)
  "Lets go of an array that one large frame needed, once it is empty."
  (when (and (= (line-reader-start reader) (line-reader-end reader))
             (> (length (line-reader-octets reader)) (* 1024 1024)))
    (setf (line-reader-octets reader) (make-array 65536 :element-type '(unsigned-byte 8))
          (line-reader-start reader) 0
          (line-reader-scanned reader) 0
          (line-reader-end reader) 0)))

(defun next-line (reader)
  "The next line: octets, start and end, valid until the next call. At the end of the link NIL; for
  a line above the limit :TOO-LONG, when it has passed."
  (shrink reader)
  (loop
    (let ((newline (newline-position (line-reader-octets reader) (line-reader-scanned reader) (line-reader-end reader)))
          (start (line-reader-start reader)))
      (when newline
        (setf (line-reader-start reader) (1+ newline)
              (line-reader-scanned reader) (1+ newline))
        (if (shiftf (line-reader-skipping reader) nil)
            (return :too-long)
            (return (values (line-reader-octets reader) start newline))))
      (setf (line-reader-scanned reader) (line-reader-end reader))
      (when (> (- (line-reader-end reader) start) +frame-limit+)
        (setf (line-reader-skipping reader) t))
      (when (line-reader-skipping reader)
        (setf (line-reader-start reader) (line-reader-end reader)))
      (when (= (line-reader-end reader) (length (line-reader-octets reader)))
        (make-room reader))
      (let ((count (read-octets (line-reader-fd reader) (line-reader-octets reader) (line-reader-end reader)
                                (length (line-reader-octets reader)))))
        (when (or (null count) (zerop count))
          (return nil))
        (incf (line-reader-end reader) count)))))
