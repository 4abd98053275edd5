;;;; The host's side of the link: images to test, over real descriptors. Each frame that comes is
;;;; filed by its kind: events by name, answers by the id of their request; so no test depends on
;;;; the order in which they come.

(in-package :consort)

(defvar *scratch* (concatenate 'string (sb-ext:posix-getenv "CONSORT_TEST_SCRATCH") "/"))
(defvar *sbcl* (sb-ext:posix-getenv "CONSORT_TEST_SBCL"))
(defvar *debian-sources* "/usr/share/common-lisp/source/")

(defstruct image
  "EVENTS and ANSWERS are frames, newest first; of ANSWERS those that nobody has taken yet. COUNT is
  of all frames that came. REQUESTS are ids and operations, newest first."
  process socket stream (id 0) (events '()) (answers '()) (count 0) (requests '()) ready)

;;; Starting and ending

(defun core-command (&optional (heap 1024))
  (format nil "~A --core ~Aconsort.core --noinform --dynamic-space-size ~D --disable-ldb --end-runtime-options" *sbcl* *scratch* heap))

(defun fasl-command ()
  (format nil "~A --noinform --no-sysinit --no-userinit --disable-debugger --load ~Aconsort.fasl --eval '(consort:main)'" *sbcl* *scratch*))

(defun source-registry (debian)
  "Returns a configuration with which ASDF finds what is in DEBIAN, directories of Debian's Lisp
  sources, and nothing else on the machine."
  (with-standard-io-syntax
    (prin1-to-string `(:source-registry ,@(loop for name in debian collect `(:directory ,(concatenate 'string *debian-sources* name "/")))
                                        :ignore-inherited-configuration))))

(defun need-debian (directories)
  "Skips the running test unless all DIRECTORIES of Debian's Lisp sources are there."
  (dolist (name directories)
    (unless (probe-file (concatenate 'string *debian-sources* name "/"))
      (skip-test "~A~A is not there (Debian's package of the library is not installed)" *debian-sources* name))))

(defun start-image (&key (command (core-command)) debian)
  "Returns an image that is ready, in which ASDF finds the systems of DEBIAN, directories of
  Debian's Lisp sources. The shell moves the link, which RUN-PROGRAM can only pass as descriptor 0,
  to where the host would have it."
  (need-debian debian)
  (multiple-value-bind (ours theirs) (socket-pair)
    (let* ((their-stream (sb-sys:make-fd-stream theirs :input t :element-type '(unsigned-byte 8)))
           (process (sb-ext:run-program "/bin/sh" (list "-c" (format nil "exec 9<&0 </dev/null; CONSORT_FD=9 exec ~A" command))
                                        :environment (cons (concatenate 'string "CL_SOURCE_REGISTRY=" (source-registry debian))
                                                           (remove-if (lambda (entry) (eql 0 (search "CL_SOURCE_REGISTRY=" entry))) (sb-ext:posix-environ)))
                                        :input their-stream :output (concatenate 'string *scratch* "out") :error (concatenate 'string *scratch* "err")
                                        :if-output-exists :append :if-error-exists :append :wait nil))
           ;; Without :DUAL-CHANNEL-P, input that is buffered when something is written is thrown
           ;; away: the stream is taken for a file.
           (image (make-image :process process :socket ours
                              :stream (sb-sys:make-fd-stream ours :input t :output t :dual-channel-p t
                                                                  :external-format :utf-8 :buffering :full :timeout *patience*))))
      (close their-stream)
      (setf (image-ready image) (await-event image "ready"))
      image)))

(defun socket-pair ()
  (sb-alien:with-alien ((fds (array sb-alien:int 2)))
    (unless (zerop (sb-alien:alien-funcall
                    (sb-alien:extern-alien "socketpair" (function sb-alien:int sb-alien:int sb-alien:int sb-alien:int (* (array sb-alien:int 2))))
                    1 1 0 (sb-alien:addr fds)))
      (error "socketpair failed"))
    (dotimes (i 2)
      (sb-posix:fcntl (sb-alien:deref fds i) sb-posix:f-setfd 1))
    (values (sb-alien:deref fds 0) (sb-alien:deref fds 1))))

(defun stop-image (image)
  "Closes the link, waits for the image to leave and returns its exit code. An image that does not
  leave is killed, and the test ends."
  (close (image-stream image) :abort t)
  (let ((process (image-process image)))
    (handler-case (eventually (not (sb-ext:process-alive-p process)))
      (test-aborted ()
        (sb-ext:process-kill process sb-posix:sigkill)
        (sb-ext:process-wait process)
        (abort-test "The image did not leave in ~D s when its link was closed, and was killed" *patience*)))
    (sb-ext:process-exit-code process)))

(defmacro with-image ((image &rest options) &body body)
  `(let ((,image (start-image ,@options)))
     (unwind-protect (progn ,@body)
       (when (sb-ext:process-alive-p (image-process ,image))
         (stop-image ,image)))))

;;; Frames

(defun operation-of (image id)
  (or (cdr (assoc id (image-requests image) :test #'equal)) "unknown operation"))

(defun last-errors ()
  "Returns the end of what images have written to their standard error."
  (with-open-file (in (concatenate 'string *scratch* "err") :external-format :latin-1 :if-does-not-exist nil)
    (when (and in (plusp (file-length in)))
      (file-position in (max 0 (- (file-length in) 1000)))
      (format nil "~{~A~^~%    ~}" (loop for line = (read-line in nil) while line collect line)))))

(defun give-up (image what waited-for)
  "Ends the test, which waited for WAITED-FOR, because WHAT happened."
  (flet ((newest (frames) (loop for frame in frames repeat 5 collect (shown frame))))
    (abort-test "~A while the test waited for ~A.~%  ~D frames came. The newest events:~{~%    ~A~}~%  The newest answers that were not asked for:~{~%    ~A~}~@[~%  On standard error:~%    ~A~]"
                what waited-for (image-count image) (newest (image-events image)) (newest (image-answers image)) (last-errors))))

(defun receive (image waited-for)
  "Takes the next frame and files it. WAITED-FOR is told when none comes."
  (let ((line (handler-case (read-line (image-stream image) nil :eof)
                (sb-sys:io-timeout () (give-up image (format nil "No frame came for ~D s" *patience*) waited-for))
                (stream-error () :eof))))
    (when (eq line :eof)
      (eventually (not (sb-ext:process-alive-p (image-process image))))
      (give-up image (format nil "The image ended with code ~D" (sb-ext:process-exit-code (image-process image))) waited-for))
    (let ((frame (parse-json (sb-ext:string-to-octets line :external-format :utf-8))))
      (incf (image-count image))
      (cond ((not (object-p frame)) (abort-test "A frame that is no object came while the test waited for ~A: ~A" waited-for line))
            ((field frame "event") (push frame (image-events image)))
            (t (push frame (image-answers image)))))))

(defun send-line (image line)
  (write-line line (image-stream image))
  (finish-output (image-stream image)))

(defun send (image op &rest fields)
  "Sends a request; returns its id."
  (let ((id (incf (image-id image))))
    (push (cons id op) (image-requests image))
    (multiple-value-bind (octets end) (json-octets (object "id" id "op" op "params" (cons :object fields)))
      (send-line image (sb-ext:octets-to-string octets :end end :external-format :utf-8)))
    id))

(defun take-answer (image test waited-for)
  "Takes the oldest answer that passes TEST, and waits until there is one."
  (loop
    (let ((frame (find-if test (image-answers image) :from-end t)))
      (when frame
        (setf (image-answers image) (remove frame (image-answers image) :test #'eq :count 1))
        (return frame)))
    (receive image waited-for)))

(defun answer (image id)
  "Returns the answer to request ID, waited for."
  (take-answer image (lambda (frame) (equal (field frame "id") id))
               (format nil "the answer to request ~A (~A)" id (operation-of image id))))

(defun next-answer (image)
  "Returns the oldest answer that nobody has taken, whatever its id, waited for: a frame that could
  not be read has none."
  (take-answer image (constantly t) "any answer"))

(defun events (image name &key id)
  "Returns the events of that NAME that have come, oldest first; with ID, those for that request."
  (reverse (remove-if-not (lambda (event)
                            (and (equal (field event "event") name) (or (null id) (equal (field event "id") id))))
                          (image-events image))))

(defun await-event (image name &key id (which #'first))
  "Returns what WHICH returns of the events of that NAME, oldest first, and, with ID, for that
  request; waits until that is true."
  (loop
    (let ((found (funcall which (events image name :id id))))
      (when found (return found)))
    (receive image (format nil "an event ~S~@[ for request ~A~]" name id))))

(defun event-or-answer (image name id &optional (number 0))
  "Returns the event NUMBER of that NAME for request ID, waited for; NIL when the request is
  answered before it comes. For a request with a short time, in which a slow machine may not come
  so far."
  (loop
    (let ((event (nth number (events image name :id id))))
      (when event (return event)))
    (when (find id (image-answers image) :key (lambda (frame) (field frame "id")) :test #'equal)
      (answer image id)
      (return nil))
    (receive image (format nil "an event ~S for request ~A (~A), or its answer" name id (operation-of image id)))))

(defmacro in-time ((seconds first) form)
  "Returns the first true value of FORM, which takes SECONDS as its time: FIRST, and each time twice
  as much."
  `(loop for ,seconds = ,first then (* 2 ,seconds)
         thereis ,form
         when (> ,seconds *patience*)
           do (abort-test "~S did not become true in ~D s" ',form ,seconds)))

(defun await-text (image name text &rest keys)
  "Waits until the texts of the events of that NAME, joined, contain TEXT."
  (apply #'await-event image name
         :which (lambda (events) (text-contains text (format nil "~{~A~}" (mapcar (lambda (event) (field event "text")) events))))
         keys))

(defun settle (image)
  "Waits until all is here that the image sent before it reads this."
  (call image "status")
  nil)

;;; Requests

(defun call (image op &rest fields)
  "Returns the answer to a request."
  (answer image (apply #'send image op fields)))

(defun result-or-error (frame)
  "Returns the result of FRAME, an answer; the frame itself when it is an error."
  (setf *subject* frame)
  (field frame "result" frame))

(defun eval-id (image code &key (session "s") (timeout *patience*) package stream timing origin redefines whole)
  (apply #'send image "eval" "session" session "code" code "capture_time" (bool timing) "timeout" timeout "stream" (bool stream)
         (append (when package (list "package" package)) (when origin (list "origin" origin))
                 (when redefines (list "redefines" redefines)) (when whole (list "whole" :true)))))

(defun evaluated (image code &rest keys)
  "Returns the outcome of evaluating CODE; for an error frame, that."
  (result-or-error (answer image (apply #'eval-id image code keys))))

(defun prepare (image code &rest keys)
  "Evaluates CODE, without which the test cannot go on."
  (let ((outcome (apply #'evaluated image code keys)))
    (unless (equal (path-if-any outcome "status") "ok")
      (abort-test "~A~%  should be evaluated, and gives ~A" code (shown outcome)))))

(defun first-value (image code &rest keys)
  (path (apply #'evaluated image code keys) "values" 0 "text"))

(defun error-type (image code &rest keys)
  (path (apply #'evaluated image code keys) "error" "type"))

(defun status-of (image code &rest keys)
  (path (apply #'evaluated image code keys) "status"))

;;; Files

(defun write-file (name text)
  "Writes a file of the scratch directory; returns its path."
  (let* ((path (concatenate 'string *scratch* name)) (pathname (sb-ext:parse-native-namestring path)))
    (ensure-directories-exist pathname)
    (with-open-file (out pathname :direction :output :if-exists :supersede :external-format :utf-8)
      (write-string text out))
    path))
