;;;; A test harness of a page, and the host's side of the link: images to test, over real descriptors.

(in-package :consort)

(defvar *passed* 0)
(defvar *failed* 0)
(defvar *tests* '() "Names and functions, newest first.")

(defmacro deftest (name &body body)
  "A test: BODY with checks."
  `(push (cons ',name (lambda () ,@body)) *tests*))

(defun note-check (passed form control &rest arguments)
  (cond (passed (incf *passed*))
        (t (incf *failed*)
           (format t "~&FAILED ~S~%  ~?~%" form control arguments))))

(defmacro is (test expected actual)
  "Check that ACTUAL is EXPECTED under TEST."
  `(let ((expected ,expected) (actual ,actual))
     (note-check (,test expected actual) ',actual "expected ~S, got ~S" expected actual)))

(defmacro ok (form)
  "Check that FORM is true."
  `(note-check ,form ',form "is false"))

(defmacro signals (type form)
  "Check that FORM signals a TYPE."
  `(note-check (handler-case (progn ,form nil) (,type () t)) ',form "did not signal ~S" ',type))

(defun run-tests ()
  "Run every test; the process's exit code."
  (loop for (name . function) in (reverse *tests*)
        do (format t "~&~(~A~)~%" name)
           (finish-output)
           (let ((begun (get-internal-real-time)))
             (handler-case (funcall function)
               (serious-condition (condition)
                 (incf *failed*)
                 (format t "~&FAILED ~A: ~A: ~A~%" name (type-of condition) condition)))
             (let ((seconds (/ (- (get-internal-real-time) begun) internal-time-units-per-second 1.0)))
               (when (> seconds 5) ; where the time goes
                 (format t "~&  ~,1F s~%" seconds)))))
  (format t "~&~D passed, ~D failed~%" *passed* *failed*)
  (if (and (zerop *failed*) (plusp *passed*)) 0 1))

;;; Images

(defvar *scratch* (concatenate 'string (sb-ext:posix-getenv "CONSORT_TEST_SCRATCH") "/"))
(defvar *sbcl* (sb-ext:posix-getenv "CONSORT_TEST_SBCL"))

(defstruct image process socket stream (id 0) (events '()) ready)

(defun core-command (&optional (heap 1024))
  (format nil "~A --core ~Aconsort.core --noinform --dynamic-space-size ~D --disable-ldb --end-runtime-options" *sbcl* *scratch* heap))

(defun fasl-command ()
  (format nil "~A --noinform --no-sysinit --no-userinit --disable-debugger --load ~Aconsort.fasl --eval '(consort:main)'" *sbcl* *scratch*))

(defun start-image (&key (command (core-command)))
  "An image that is ready. The shell moves the link, which RUN-PROGRAM can only pass as descriptor 0, to where the host would have it."
  (multiple-value-bind (ours theirs) (socket-pair)
    (let* ((their-stream (sb-sys:make-fd-stream theirs :input t :element-type '(unsigned-byte 8)))
           (process (sb-ext:run-program "/bin/sh" (list "-c" (format nil "exec 9<&0 </dev/null; CONSORT_FD=9 exec ~A" command))
                                        :input their-stream :output (concatenate 'string *scratch* "out") :error (concatenate 'string *scratch* "err")
                                        :if-output-exists :append :if-error-exists :append :wait nil))
           (image (make-image :process process :socket ours
                              :stream (sb-sys:make-fd-stream ours :input t :output t :external-format :utf-8 :buffering :full :timeout 120))))
      (close their-stream)
      (setf (image-ready image) (receive image))
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

(defun receive (image)
  "The next frame; :EOF at the end."
  (let ((line (read-line (image-stream image) nil :eof)))
    (if (eq line :eof)
        :eof
        (parse-json (sb-ext:string-to-octets line :external-format :utf-8)))))

(defun send-line (image line)
  (write-line line (image-stream image))
  (finish-output (image-stream image)))

(defun send (image op &rest fields)
  "Send a request; its id."
  (let ((id (incf (image-id image))))
    (multiple-value-bind (octets end) (json-octets (object "id" id "op" op "params" (cons :object fields)))
      (send-line image (sb-ext:octets-to-string octets :end end :external-format :utf-8)))
    id))

(defun wait-for (image id)
  "The answer to request ID; events before it are kept."
  (loop
    (let ((frame (receive image)))
      (cond ((eq frame :eof) (error "The image is gone"))
            ((field frame "event") (push frame (image-events image)))
            ((equal (field frame "id") id) (return frame))
            (t (push frame (image-events image)))))))

(defun call (image op &rest fields)
  (wait-for image (apply #'send image op fields)))

(defun eval-id (image code &key (session "s") (timeout 60) package stream timing origin)
  (apply #'send image "eval" "session" session "code" code "capture_time" (bool timing) "timeout" timeout "stream" (bool stream)
         (append (when package (list "package" package)) (when origin (list "origin" origin)))))

(defun evaluated (image code &rest keys)
  "The outcome of evaluating CODE; for an error frame, that."
  (let ((frame (wait-for image (apply #'eval-id image code keys))))
    (field frame "result" frame)))

(defun path (object &rest path)
  "What is at PATH, names and indices, in OBJECT."
  (dolist (step path object)
    (setf object (if (stringp step)
                     (and (object-p object) (field object step))
                     (and (vectorp object) (< step (length object)) (aref object step))))))

(defun first-value (image code &rest keys)
  (path (apply #'evaluated image code keys) "values" 0 "text"))

(defun error-type (image code &rest keys)
  (path (apply #'evaluated image code keys) "error" "type"))

(defun status-of (image code &rest keys)
  (path (apply #'evaluated image code keys) "status"))

(defun event-named (image name)
  (find name (image-events image) :key (lambda (event) (field event "event")) :test #'equal))

(defun await-event (image name)
  "The first event of that NAME, waited for."
  (loop (or (event-named image name)
            (push (receive image) (image-events image)))
        (let ((event (event-named image name)))
          (when event (return event)))))

(defun stop-image (image)
  "Close the link and wait for the image to leave; its exit code."
  (close (image-stream image))
  (sb-ext:process-wait (image-process image))
  (sb-ext:process-exit-code (image-process image)))

(defmacro with-image ((image &rest options) &body body)
  `(let ((,image (start-image ,@options)))
     (unwind-protect (progn ,@body)
       (when (sb-ext:process-alive-p (image-process ,image))
         (stop-image ,image)))))

(defun text-contains (part text)
  (and (stringp text) (search part text) t))
