;;;; The link to the host (docs/wire.md): frames are written under one lock, and lines are read.

(in-package :consort)

(defconstant +protocol+ 1 "The version of docs/wire.md that this image implements.")
(defconstant +frame-limit+ (* 64 1024 1024) "The maximum size of a frame, in bytes.")
(defconstant +small-frame+ 8192 "The size in bytes up to which a frame fits into a socket's buffer
  when the kernel reports that there is room.")

(declaim (type (or null (unsigned-byte 31)) *link*))
(define-global *link* nil "The descriptor of the link; NIL in an image that does not serve.")
(define-global *link-lock* (sb-thread:make-mutex :name "consort link") "Held while a frame is written.")

(defun write-frame (octets end)
  "Writes a whole frame. If the host is gone, the image ends, because nothing is left to do."
  (leave-if-forked)
  (with-lock (*link-lock*)
    (unless (write-octets *link* octets 0 end)
      (leave-with-programs))))

(define-global *instead-of-link* nil
  "In a process that has no link (debug/attempt.lisp): the function that receives each frame.")

(defun send-frame (value)
  "Sends VALUE as one frame. Waits while the host does not read. A frame above the limit is replaced
  by an error with the same id."
  (when *instead-of-link*
    (return-from send-frame (funcall (the function *instead-of-link*) value)))
  (when (and (field value "event") (forked-p)) ; the work of the process continues
    (return-from send-frame nil))
  (multiple-value-bind (octets end) (json-line value)
    (if (<= end +frame-limit+)
        (write-frame octets end)
        (send-error (field value "id" :null) "internal" "The answer is larger than a frame may be (64 MiB)"))))

(defun send-result (id result)
  "Answers the request ID."
  (send-frame (object "id" id "result" result)))

(defun send-error (id kind message)
  "Answers the request ID (or :NULL) with an error of docs/wire.md."
  (send-frame (object "id" id "error" (object "kind" kind "message" message))))

(defun send-event (name &rest fields)
  "Sends an event. FIELDS are as in OBJECT."
  (send-frame (list* :object "event" name fields)))

(defvar *own-thread* nil "True in the threads that Consort started, and not in those that user code
  started.")

(defun start-thread (name function &rest arguments)
  "Starts a thread of Consort's, with its own settings. Returns the thread."
  (sb-thread:make-thread (lambda (&aux (*own-thread* t))
                           (restore-stack-guards)
                           ;; In a signal handler, deferrable signals are blocked, and new threads
                           ;; inherit that.
                           (when (internal-p 'unblock-deferrable-signals) (unblock-deferrable-signals))
                           (unwind-protect (with-own-settings () (apply function arguments))
                             (restore-stack-guards)))
                         :name name))

;;; Making a thread takes a lock of the runtime. A user's thread may hold it for ever, and the
;;; dispatcher must not wait for it, so another thread waits.

(defstruct (start (:constructor make-start (function tell tell-refused)))
  "A thread that is to be started by FUNCTION. TELL is called instead if a thread holds the lock that
  making a thread takes, and TELL-REFUSED if the system makes no thread. Where one is NIL, the start
  waits."
  (function nil :type function :read-only t)
  (tell nil :read-only t)
  (tell-refused nil :read-only t))

(define-global *starts* '() "The starts that wait for the starter, newest first.")
(define-global *starts-lock* (sb-thread:make-mutex :name "consort starts") "Held while *STARTS* changes.")
(define-global *starts-wanted* (sb-thread:make-semaphore :name "consort starts")
  "Signalled after an element was added to *STARTS*.")
(defconstant +start-pause+ 0.2 "The time in seconds after which the starter tries again to make a
  thread that the system refused. The system does not announce that it can make threads again.")

(defun start-all ()
  "The work of the starter, a thread. Starts the threads in *STARTS*, oldest first. While no thread
  can be made, calls the functions that report that."
  (loop
    (if *starts*
        ;; As in RUN-TIMERS.
        (without-interrupts (sb-thread:wait-on-semaphore *starts-wanted* :timeout +start-pause+))
        ;; A process that becomes a copy ends this thread.
        (sb-thread:wait-on-semaphore *starts-wanted*))
    (loop while *starts*
          do (let ((obstacle (obstacle-to-threads)))
               (cond (obstacle (report-unstarted #'start-tell obstacle))
                     ((not (start-oldest))
                      (report-unstarted #'start-tell-refused :refused)
                      (return)))))))

(defun start-oldest ()
  "Starts the oldest of *STARTS*, removes it and returns true. Returns NIL if the system makes no
  thread."
  (let ((oldest (with-lock (*starts-lock*) (first (last *starts*)))))
    (when (handler-case (funcall (start-function oldest))
            (error () nil))             ; it is kept, or reported
      (remove-starts (list oldest))
      t)))

(defun remove-starts (starts)
  (with-lock (*starts-lock*)
    (setf *starts* (remove-if (lambda (start) (member start starts :test #'eq)) *starts*))))

(defun report-unstarted (tell obstacle)
  "Removes from *STARTS* those elements whose TELL, a reader, is a function, and calls these
  functions with OBSTACLE, oldest first."
  (let ((told (remove nil *starts* :key tell)))
    (remove-starts told)
    (dolist (start (reverse told))
      (funcall (the function (funcall (the function tell) start)) obstacle))))

(defun can-start-thread-p ()
  "Returns true if a thread can be made now, as far as that is known without waiting."
  (and (null *starts*)
       (not (and (internal-p 'make-thread-lock) (lock-held-p make-thread-lock)))))

(defun start-thread-if-possible (name function &rest arguments)
  "Like START-THREAD. Returns NIL if no thread can be made now. Never waits."
  (and (can-start-thread-p)
       (handler-case (apply #'start-thread name function arguments)
         (error (condition)
           (when *in-copy* (error condition)))))) ; which has no starter that could try again

(defun start-or-leave (tell tell-refused name function arguments)
  "Starts a thread, or leaves that to the starter if none can be made now. TELL and TELL-REFUSED are
  as in a START. Never waits. Returns true."
  (unless (apply #'start-thread-if-possible name function arguments)
    (let ((start (make-start (lambda () (apply #'start-thread name function arguments)) tell tell-refused)))
      (with-lock (*starts-lock*)
        (push start *starts*))
      (sb-thread:signal-semaphore *starts-wanted*)))
  t)

(defun start-thread-soon (name function &rest arguments)
  "Like START-THREAD, but never waits. Returns true. If no thread can be made, one is started once
  that is possible."
  (start-or-leave nil nil name function arguments))

(defun start-thread-or-report (tell name function &rest arguments)
  "Like START-THREAD-SOON. If something prevents the creation of threads, TELL, unless it is NIL, is
  called instead, in the starter: with a string that names the thread in the way, or with :REFUSED
  if the system makes no thread."
  (start-or-leave tell tell name function arguments))

(defun start-thread-unless-refused (tell name function &rest arguments)
  "Like START-THREAD-SOON. If the system makes no thread, TELL is called instead, in the starter,
  with :REFUSED."
  (start-or-leave nil tell name function arguments))

(defconstant +title-limit+ 100 "The maximum number of characters of a thread's name that are
  reported.")

(defun thread-title (thread)
  "The name of THREAD on one line, shortened, because a program may give it any name."
  (let ((name (sb-thread:thread-name thread)))
    (flet ((unseen-p (char)
             ;; control characters, characters that set the direction of text, line separators
             (member (sb-unicode:general-category char) '(:cc :cf :zl :zp))))
      (if (stringp name)
          (let ((start (subseq name 0 (min (length name) +title-limit+))))
            (concatenate 'string (substitute-if #\? #'unseen-p start) (if (> (length name) +title-limit+) "..." "")))
          "unnamed"))))

(defun own-thread-p (thread)
  "Returns true if THREAD is Consort's, or the one that serves the host, and not the user's."
  (or (sb-thread:main-thread-p thread)
      (eq thread sb-thread:*current-thread*)
      (not (sb-thread:thread-alive-p thread))
      (handler-case (sb-thread:symbol-value-in-thread '*own-thread* thread nil)
        (error () nil))))

;;; The dispatcher must continue to read, and so notice the end of the link, even if the host does
;;; not read. Another thread then sends its frames.

(define-global *outbox* '()
  "Frames, as (OCTETS . END), newest first, that wait for the poster. A frame stays until it is
  written, so that no later one overtakes it.")
(define-global *outbox-lock* (sb-thread:make-mutex :name "consort outbox")
  "Held while *OUTBOX* changes.")
(define-global *outbox-filled* (sb-thread:make-semaphore :name "consort outbox")
  "Counts the frames in *OUTBOX*.")
(defun post-all ()
  "Sends the frames that are put into *OUTBOX*. The thread is started with the image, because it may
  be impossible to make a thread once a frame waits."
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
  "The octets that came over the link. OCTETS from START to END are not yet taken. There is no
  newline before SCANNED."
  (fd 0 :type (unsigned-byte 31) :read-only t)
  (octets (make-array 65536 :element-type '(unsigned-byte 8)) :type octets)
  (start 0 :type index)
  (scanned 0 :type index)
  (end 0 :type index)
  (skipping nil))

(defun make-room (reader)
  "Makes room after END: moves the octets to the front, or makes a larger array."
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
  "Releases an array that one large frame needed, once it is empty."
  (when (and (= (line-reader-start reader) (line-reader-end reader))
             (> (length (line-reader-octets reader)) (* 1024 1024)))
    (setf (line-reader-octets reader) (make-array 65536 :element-type '(unsigned-byte 8))
          (line-reader-start reader) 0
          (line-reader-scanned reader) 0
          (line-reader-end reader) 0)))

(defun next-line (reader)
  "The next line, as three values: octets, start and end. They are valid until the next call. NIL at
  the end of the link. :TOO-LONG for a line above the limit, once all of it has come."
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
