;;;; Streams that user code uses while it is evaluated: output that is kept up to a limit, and input
;;;; for which nobody is asked.

(in-package :consort)

(defconstant +text-limit+ 100000 "The maximum number of characters kept of an evaluation's standard
  output, of its error output, and of each value.")
(defconstant +chunk+ 4096 "The number of waiting characters at which streamed output is sent; less
  output is sent after a moment.")

(defclass consort-stream (sb-gray:fundamental-character-stream) ()
  (:documentation "A stream that user code cannot close, because others write to it too."))

(defmethod close ((stream consort-stream) &key abort)
  (declare (ignore abort))
  t)

;;; Captured output

(defclass capture (consort-stream sb-gray:fundamental-character-output-stream)
  ((lock :initform (sb-thread:make-mutex :name "consort capture") :reader capture-lock :type sb-thread:mutex)
   (head :initform (make-string 128) :accessor capture-head :type (simple-array character (*)))
   (tail :initform nil :accessor capture-tail :type (or null (simple-array character (*))))
   (total :initform 0 :accessor capture-total :type index)
   (column :initform 0 :accessor capture-column :type index)
   (limit :initform +text-limit+ :initarg :limit :reader capture-limit :type index)
   (on-excess :initform nil :initarg :on-excess :accessor capture-on-excess :type (or null function))
   (sink :initform nil :initarg :sink :accessor capture-sink :type (or null function))
   (waiting :initform nil :accessor capture-waiting :type (or null string))
   (kind :initform nil :initarg :kind :reader capture-kind :type symbol)
   (ended :initform nil :accessor capture-ended :type boolean))
  (:documentation "Keeps the first and the last half of LIMIT characters of the text that is written
  to it. TOTAL counts all characters. Any thread may write. ON-EXCESS is called once, by the thread
  that first exceeds twenty times the limit. SINK is called with pieces of text, in order, up to the
  limit, by the writing thread or by a timer (PASS-ON). KIND is STDOUT or STDERR in an evaluation or
  a test. Once that has ENDED, further text is treated like output of threads outside
  evaluations."))

(defun instance-of (class &rest initargs)
  "Returns a new instance of the class named CLASS, made without a constructor that is compiled for
  INITARGS. SBCL discards such constructors when a core is saved, and compiles them at their first
  use (pcl/ctor.lisp). That would wait for ever if user code then holds the compiler's lock."
  (declare (notinline make-instance))
  (apply #'make-instance class initargs))

(defun make-capture (&rest initargs)
  "Returns a new capture."
  (apply #'instance-of 'capture initargs))

(defmethod print-object ((stream capture) output)
  (write-string "#<output of an evaluation>" output))

(declaim (inline head-limit))
(defun head-limit (capture)
  (ash (the index (capture-limit capture)) -1))

(defun keep-head (capture string start end total)
  "Keeps the part of STRING from START to END that falls into the head. Returns the start of the
  rest."
  (declare (type index start end total) (type string string))
  (let* ((room (max 0 (- (head-limit capture) total)))
         (middle (min end (+ start room)))
         (needed (+ total (- middle start)))
         (head (capture-head capture)))
    (when (< start middle)
      (when (> needed (length head))
        (setf head (replace (make-string (min (head-limit capture) (max needed (* 2 (length head))))) head :end2 total)
              (capture-head capture) head))
      (replace head string :start1 total :start2 start :end2 middle))
    middle))

(defun keep-tail (capture string start end total)
  "Keeps STRING from START to END in the ring buffer of the last characters. Its first character is
  the character number TOTAL of all."
  (declare (type index start end total) (type string string))
  (let* ((size (- (the index (capture-limit capture)) (head-limit capture)))
         (ring (or (capture-tail capture) (setf (capture-tail capture) (make-string size))))
         (skip (max 0 (- (- end start) size))))
    (loop with from of-type index = (+ start skip)
          with at of-type index = (mod (+ (- total (head-limit capture)) skip) size)
          while (< from end)
          do (let ((count (min (- end from) (- size at))))
               (replace ring string :start1 at :start2 from :end2 (+ from count))
               (incf from count)
               (setf at (mod (+ at count) size))))))

(defun keep-string (capture string start end stream)
  "Adds STRING from START to END to the text that CAPTURE has kept, and sends it if STREAM. Must be
  called with the lock held. Returns the function that must be called because of excess output, or
  NIL."
  (declare (type index start end) (type string string))
  (let* ((total (capture-total capture))
         (after (+ total (- end start)))
         (middle (keep-head capture string start end total))
         (newline (position #\Newline string :start start :end end :from-end t)))
    (when (< middle end)
      (keep-tail capture string middle end (+ total (- middle start))))
    (setf (capture-total capture) after
          (capture-column capture) (if newline (- end newline 1) (+ (capture-column capture) (- end start))))
    (when (and stream (capture-sink capture))
      (pass-on-later capture (subseq string start end)))
    (when (and (capture-on-excess capture) (> after (* 20 (the index (capture-limit capture)))))
      (shiftf (capture-on-excess capture) nil))))

(defun write-to-capture (capture string start end &key (stream t))
  "Writes STRING from START to END to CAPTURE, and returns true. Returns NIL if its evaluation has
  ended. Unless STREAM, the text is kept and not sent."
  (let ((excess nil) (written nil))
    (with-lock ((capture-lock capture))
      (unless (capture-ended capture)
        (setf written t
              excess (keep-string capture string start end stream))))
    (when excess
      (funcall (the function excess)))
    written))

(declaim (ftype function write-shared))
(defun capture-string (capture string start end &key (stream t))
  "WRITE-TO-CAPTURE, or WRITE-SHARED if the evaluation has ended."
  (unless (write-to-capture capture string start end :stream stream)
    (write-shared (capture-kind capture) string start end)))

(defun capture-char (capture char)
  "Writes CHAR to CAPTURE. The common case makes no string."
  (declare (optimize speed) (type character char))
  (or (with-lock ((capture-lock capture))
        (let ((total (capture-total capture))
              (head (capture-head capture)))
          (declare (type index total) (type (simple-array character (*)) head))
          (when (and (< total (length head)) (not (capture-sink capture)) (not (capture-ended capture)))
            (setf (schar head total) char
                  (capture-total capture) (1+ total)
                  (capture-column capture) (if (char= char #\Newline) 0 (1+ (the index (capture-column capture)))))
            t)))
      (capture-string capture (string char) 0 1)))

(defmethod sb-gray:stream-write-char ((stream capture) char)
  (capture-char stream char)
  char)

(defmethod sb-gray:stream-write-string ((stream capture) string &optional (start 0) end)
  (capture-string stream string start (or end (length string)))
  string)

(defmethod sb-gray:stream-line-column ((stream capture))
  (capture-column stream))

(defmethod sb-gray:stream-terpri ((stream capture))
  (capture-char stream #\Newline)
  nil)

(defun echo (capture text)
  "Keeps TEXT, which a person typed, as a line of CAPTURE. It is not sent, because the person sees
  it already."
  (let ((line (concatenate 'string text '(#\Newline))))
    (capture-string capture line 0 (length line) :stream nil)))

(defun kept-characters (capture first)
  "The characters that were written to CAPTURE from the number FIRST on, all of which are kept. Must
  be called with the lock held."
  (let* ((split (head-limit capture))
         (size (- (capture-limit capture) split)))
    (declare (type index split size first))
    (coerce (loop for at of-type index from first below (the index (capture-total capture))
                  collect (if (< at split)
                              (schar (capture-head capture) at)
                              (schar (capture-tail capture) (mod (- at split) size))))
            'string)))

(defun last-characters (capture count)
  "The last COUNT characters that were written to CAPTURE, or all if there are fewer."
  (with-lock ((capture-lock capture))
    (kept-characters capture (max 0 (- (capture-total capture) count)))))

(defun clipped (text omitted)
  "The JSON of docs/wire.md for a text of which OMITTED characters were left out."
  (object "text" text "omitted" omitted))

(defun captured-since (capture before)
  "Returns the text that was written to CAPTURE after its first BEFORE characters, as JSON. If it is
  long, only its last characters are contained."
  (with-lock ((capture-lock capture))
    (let* ((total (capture-total capture))
           (count (- total before))
           (kept (min count (- (capture-limit capture) (head-limit capture))))
           (text (kept-characters capture (- total kept)))
           (omitted (- count kept)))
      (clipped (if (plusp omitted) (concatenate 'string (omission omitted) text) text) omitted))))

(defun captured (capture &optional at-least)
  "Returns the text that CAPTURE has kept, as JSON. AT-LEAST is true if writing was stopped, so that
  more would have come."
  (with-lock ((capture-lock capture))
    (let* ((total (capture-total capture))
           (head (subseq (capture-head capture) 0 (min total (head-limit capture))))
           (size (- (capture-limit capture) (head-limit capture)))
           (beyond (- total (length head)))
           (omitted (max 0 (- beyond size))))
      (cond ((zerop beyond) (clipped head 0))
            ((zerop omitted)
             (clipped (concatenate 'string head (subseq (capture-tail capture) 0 beyond)) 0))
            (t
             (let ((at (mod beyond size))
                   (ring (capture-tail capture)))
               (clipped (concatenate 'string head (omission omitted at-least) (subseq ring at) (subseq ring 0 at))
                        omitted)))))))

(defun omission (count &optional at-least)
  "The line that replaces COUNT omitted characters."
  (with-standard-io-syntax
    (format nil "~%...[~:[~;more than ~]~D characters left out]...~%" at-least count)))

;;; Streaming: a thread that writes much text sends it, and a timer sends the rest.

(defun pass-on-waiting (capture)
  "Sends the waiting text. Must be called with the lock held, so that pieces keep their order."
  (let ((text (shiftf (capture-waiting capture) nil))
        (sink (capture-sink capture)))
    (when (and text sink)
      (funcall sink text))))

(defun pass-on (capture)
  "Sends the text that waits to be streamed."
  (with-lock ((capture-lock capture))
    (pass-on-waiting capture)))

(defun end-capture (capture)
  "Sends the waiting text. From then on, CAPTURE, of an evaluation or a test, does not change."
  (with-lock ((capture-lock capture))
    (pass-on-waiting capture)
    (setf (capture-sink capture) nil
          (capture-ended capture) t)))

(defun pass-on-later (capture text)
  "Makes TEXT wait to be streamed. Must be called with the lock held."
  (let ((waiting (capture-waiting capture))
        (text (subseq text 0 (min (length text) (capture-limit capture)))))
    (setf (capture-waiting capture) (if waiting (concatenate 'string waiting text) text))
    (cond ((> (capture-total capture) (capture-limit capture))
           (pass-on-waiting capture)
           (setf (capture-sink capture) nil))
          ((> (length (capture-waiting capture)) +chunk+)
           (pass-on-waiting capture))
          ((null waiting)
           (schedule *flushes* 0.05d0 (lambda () (pass-on capture)))))))

;;; No input, and output that is not read

(defclass null-io (consort-stream sb-gray:fundamental-character-input-stream sb-gray:fundamental-character-output-stream) ()
  (:documentation "The stream behind *QUERY-IO*, *DEBUG-IO* and *STANDARD-INPUT* if nobody can be
  asked. It is at end of file at once, and drops its output."))

(defmethod print-object ((stream null-io) output)
  (write-string "#<no input: nobody is asked for it here>" output))

(defmethod sb-gray:stream-read-char ((stream null-io)) :eof)
(defmethod sb-gray:stream-unread-char ((stream null-io) char) (declare (ignore char)) nil)
(defmethod sb-gray:stream-read-char-no-hang ((stream null-io)) :eof)
(defmethod sb-gray:stream-listen ((stream null-io)) nil)
(defmethod sb-gray:stream-write-char ((stream null-io) char) char)
(defmethod sb-gray:stream-write-string ((stream null-io) string &optional start end) (declare (ignore start end)) string)
(defmethod sb-gray:stream-line-column ((stream null-io)) 0)

(define-global *null-io* (instance-of 'null-io)
  "The only stream of its kind.")

;;; Output of threads outside evaluations. It goes to the only evaluation that runs, and otherwise
;;; to descriptor 1 or 2.

(defclass shared-output (consort-stream sb-gray:fundamental-character-output-stream)
  ((kind :initarg :kind :reader shared-output-kind :documentation "STDOUT or STDERR."))
  (:documentation "The global *STANDARD-OUTPUT* or *ERROR-OUTPUT*."))

(defmethod print-object ((stream shared-output) output)
  (format output "#<shared ~(~A~)>" (shared-output-kind stream)))

(define-condition descriptor-lost (stream-error)
  ((errno :initarg :errno :reader descriptor-lost-errno))
  (:report (lambda (condition stream)
             (format stream "The image's output cannot be written (errno ~D)." (descriptor-lost-errno condition)))))

(defun write-to-descriptor (descriptor string start end)
  "Writes STRING from START to END to DESCRIPTOR. SBCL's streams of 1 and 2 are not used, because
  some of the text that several threads write to them at once is lost, and some is written twice."
  (let* ((text (substitute-if (code-char +replacement+) (lambda (char) (<= #xD800 (char-code char) #xDFFF)) (subseq string start end)))
         (octets (sb-ext:string-to-octets text :external-format :utf-8)))
    (multiple-value-bind (written errno) (write-octets descriptor octets 0 (length octets))
      (unless written
        (error 'descriptor-lost :errno errno :stream (if (eql descriptor 1) *standard-output* *error-output*))))))

(defun write-shared (kind string start end)
  "Writes STRING from START to END, output of KIND, to the destination of output of threads outside
  evaluations."
  (loop for capture = (sole-capture kind)
        while capture
        ;; The capture ends when its evaluation is no longer among those that run.
        do (when (write-to-capture capture string start end)
             (return-from write-shared nil)))
  (write-to-descriptor (ecase kind (stdout 1) (stderr 2)) string start end))

(defmethod sb-gray:stream-write-char ((stream shared-output) char)
  (write-shared (shared-output-kind stream) (string char) 0 1)
  char)

(defmethod sb-gray:stream-write-string ((stream shared-output) string &optional (start 0) end)
  (write-shared (shared-output-kind stream) string start (or end (length string)))
  string)

(defmethod sb-gray:stream-line-column ((stream shared-output))
  (let ((capture (sole-capture (shared-output-kind stream))))
    (if capture (capture-column capture) 0)))
