;;;; JSON: a reader of UTF-8 octets and a writer of them. Nothing is interned, depth is limited, and
;;;; invalid input is a JSON-ERROR. The representation of each kind of value:
;;;; - object: (:object "key" value ...)
;;;; - array: a simple vector; a list is also written as an array
;;;; - true, false, null: :true, :false, :null
;;;; - string: a string
;;;; - integer: an integer
;;;; - other numbers: a double-float

(in-package :consort)

(deftype octets () '(simple-array (unsigned-byte 8) (*)))
(deftype index () `(integer 0 ,(1- array-dimension-limit)))

(defconstant +depth-limit+ 200 "The maximum depth of arrays and objects in input.")
(defconstant +digits-limit+ 2000 "The maximum number of digits of a number in input. More would take
  quadratic time.")
(defconstant +replacement+ #xFFFD "The replacement for a code point that UTF-8 cannot encode.")

(define-condition json-error (error)
  ((message :initarg :message :reader json-error-message)
   (position :initarg :position :reader json-error-position))
  (:documentation "Signalled for octets that are not JSON or that exceed a limit. POSITION counts
  octets from 0.")
  (:report (lambda (condition stream)
             (format stream "~A at byte ~D" (json-error-message condition) (json-error-position condition)))))

;;; Objects

(declaim (inline object))
(defun object (&rest keys-and-values)
  "A JSON object for writing: (object \"id\" 7 \"result\" ...)."
  (cons :object keys-and-values))

(defun object-p (value)
  "Returns true if VALUE is a JSON object."
  (and (consp value) (eq (car value) :object)))

(defun field (object key &optional default)
  "The value of KEY, a string, in OBJECT, which was read; DEFAULT if it is absent or null."
  (loop for (name value) on (cdr object) by #'cddr
        when (string= (the simple-string name) (the simple-string key))
          return (if (eq value :null) default value)
        finally (return default)))

(declaim (inline bool))
(defun bool (generalized-boolean)
  "The JSON of a boolean, for writing."
  (if generalized-boolean :true :false))

(declaim (inline or-null))
(defun or-null (value)
  "The JSON of VALUE, or null for NIL, for writing."
  (if (null value) :null value))

;;; Reader

(defstruct (json-input (:constructor make-json-input (octets position end)))
  (octets nil :type octets :read-only t)
  (position 0 :type index)
  (end 0 :type index :read-only t)
  (depth 0 :type fixnum))

(defun parse-json (octets &optional (start 0) (end (length octets)))
  "The single JSON value in OCTETS from START to END. Signals a JSON-ERROR if there is no such
  value, or if it is nested deeper than +DEPTH-LIMIT+."
  (let* ((input (make-json-input octets start end))
         (value (parse-value input)))
    (when (peek-octet input)
      (json-fail input "Something follows the value"))
    value))

(defun json-fail (input control &rest arguments)
  (error 'json-error :message (apply #'format nil control arguments) :position (json-input-position input)))

(declaim (inline next-octet))
(defun next-octet (input)
  "The octet at the position, or NIL at the end."
  (when (< (json-input-position input) (json-input-end input))
    (aref (json-input-octets input) (json-input-position input))))

(defun peek-octet (input)
  "Skips white space. Returns the octet that is then at the position, or NIL at the end."
  (declare (optimize speed) (type json-input input))
  (loop for octet = (next-octet input)
        while (and octet (or (= octet 32) (<= 9 octet 10) (= octet 13)))
        do (incf (json-input-position input))
        finally (return octet)))

(defun parse-value (input)
  (let ((octet (peek-octet input)))
    (case (and octet (code-char octet))
      (#\" (parse-string input))
      (#\{ (parse-nested input #'parse-object))
      (#\[ (parse-nested input #'parse-array))
      (#\t (parse-word input "true" :true))
      (#\f (parse-word input "false" :false))
      (#\n (parse-word input "null" :null))
      ((#\- #\0 #\1 #\2 #\3 #\4 #\5 #\6 #\7 #\8 #\9) (parse-number input))
      ((nil) (json-fail input "The text ends where a value should be"))
      (t (json-fail input "No value starts with the character ~S" (code-char octet))))))

(defun parse-nested (input parser)
  (declare (type function parser))
  (when (> (incf (json-input-depth input)) +depth-limit+)
    (json-fail input "Nested deeper than ~D" +depth-limit+))
  (incf (json-input-position input))
  (prog1 (funcall parser input)
    (decf (json-input-depth input))))

(defun parse-word (input word value)
  (declare (type simple-string word))
  (loop for char across word
        do (unless (eql (next-octet input) (char-code char))
             (json-fail input "~S was begun and not ended" word))
           (incf (json-input-position input)))
  value)

(defun parse-separator (input close)
  "Reads what follows an element. Returns true after CLOSE, and false after a comma."
  (let ((octet (peek-octet input)))
    (cond ((eql octet close) (incf (json-input-position input)) t)
          ((eql octet (char-code #\,)) (incf (json-input-position input)) nil)
          (t (json-fail input "A comma or ~S is missing" (code-char close))))))

(defun parse-array (input)
  (cond ((eql (peek-octet input) (char-code #\]))
         (incf (json-input-position input))
         (vector))
        (t (coerce (loop collect (parse-value input)
                         until (parse-separator input (char-code #\])))
                   'simple-vector))))

(defun parse-object (input)
  (cond ((eql (peek-octet input) (char-code #\}))
         (incf (json-input-position input))
         (object))
        (t (cons :object
                 (loop collect (if (eql (peek-octet input) (char-code #\"))
                                   (parse-string input)
                                   (json-fail input "A key must be a string"))
                       collect (progn
                                 (unless (eql (peek-octet input) (char-code #\:))
                                   (json-fail input "A colon is missing"))
                                 (incf (json-input-position input))
                                 (parse-value input))
                       until (parse-separator input (char-code #\})))))))

(defun parse-digits (input)
  "Two values: the integer in the digits at the position, and their number, which is at least one."
  (let ((value 0) (count 0))
    (declare (type fixnum count))
    (loop for octet = (next-octet input)
          while (and octet (<= 48 octet 57))
          do (setf value (+ (* 10 value) (- octet 48)))
             (incf (json-input-position input))
             (when (> (incf count) +digits-limit+)
               (json-fail input "A number of more than ~D digits" +digits-limit+)))
    (when (zerop count)
      (json-fail input "A digit is missing"))
    (values value count)))

(defun parse-number (input)
  (let* ((negative (when (eql (next-octet input) (char-code #\-))
                     (incf (json-input-position input))))
         (leading-zero (eql (next-octet input) (char-code #\0)))
         (exponent 0)
         (float nil))
    (multiple-value-bind (value digits) (parse-digits input)
      (when (and leading-zero (> digits 1))
        (json-fail input "A number with a leading zero"))
      (when (eql (next-octet input) (char-code #\.))
        (incf (json-input-position input))
        (multiple-value-bind (fraction places) (parse-digits input)
          (setf value (+ (* value (expt 10 places)) fraction)
                exponent (- places)
                float t)))
      (when (member (next-octet input) '(#.(char-code #\e) #.(char-code #\E)))
        (incf (json-input-position input))
        (let ((sign (next-octet input)))
          (when (member sign '(#.(char-code #\+) #.(char-code #\-)))
            (incf (json-input-position input)))
          (let ((power (parse-digits input)))
            (incf exponent (if (eql sign (char-code #\-)) (- power) power))
            (setf float t))))
      (let ((signed (if negative (- value) value)))
        (if float (decimal-to-double input signed exponent) signed)))))

(defun decimal-to-double (input value exponent)
  "VALUE times ten to the power EXPONENT. The result is zero for a number that is too small. Signals
  a JSON-ERROR for one that is too large."
  (let ((magnitude (+ exponent (floor (* (integer-length value) 30103) 100000)))) ; log 2; no float, which may overflow
    (cond ((or (zerop value) (< magnitude -330)) 0d0)
          ((> magnitude 309) (json-fail input "A number that is too large"))
          (t (handler-case (coerce (* value (expt 10 exponent)) 'double-float)
               (arithmetic-error () (if (minusp exponent) 0d0 (json-fail input "A number that is too large"))))))))

(defun string-end (input start)
  "Two values: the position of the string's closing quote, and true if there is only ASCII without
  escapes before it."
  (declare (optimize speed (safety 0)) (type json-input input) (type index start))
  (let ((octets (json-input-octets input))
        (end (json-input-end input))
        (plain t))
    (declare (type octets octets))
    (loop with position of-type index = start
          while (< position end)
          do (let ((octet (aref octets position)))
               (cond ((= octet 34) (return-from string-end (values position plain)))
                     ((= octet 92) (setf plain nil) (incf position))
                     ((or (> octet 127) (< octet 32)) (setf plain nil)))
               (incf position)))
    (locally (declare (optimize (speed 1) (safety 1)))
      (json-fail input "A string that is not ended"))))

(defun parse-string (input)
  "The string whose opening quote is at the position."
  (let ((start (1+ (json-input-position input)))
        (octets (json-input-octets input)))
    (declare (type index start) (type octets octets))
    (multiple-value-bind (end plain) (string-end input start)
      (declare (type index end))
      (let ((string (make-string (- end start))))
        (cond (plain
               (loop for i of-type index from start below end
                     for j of-type index from 0
                     do (setf (schar string j) (code-char (aref octets i)))))
              (t
               (setf (json-input-position input) start)
               (setf string (subseq string 0 (decode-string input end string)))))
        (setf (json-input-position input) (1+ end))
        string))))

(defun decode-string (input end string)
  "Fills STRING with the decoded characters from the position to END. Returns their number."
  (declare (optimize speed) (type json-input input) (type index end) (type (simple-array character (*)) string))
  (let ((octets (json-input-octets input))
        (fill 0))
    (declare (type octets octets) (type index fill))
    (loop while (< (json-input-position input) end)
          do (let ((octet (aref octets (json-input-position input))))
               (setf (schar string fill)
                     (code-char
                      (cond ((= octet 92) (decode-escape input end))
                            ((< octet 32) (json-fail input "A control character in a string"))
                            ((< octet 128) (incf (json-input-position input)) octet)
                            (t (decode-utf-8 input end octet)))))
               (incf fill)))
    fill))

(defun decode-utf-8 (input end first)
  "The code point of the UTF-8 sequence that begins with FIRST."
  (declare (type (unsigned-byte 8) first) (type index end))
  (let* ((octets (json-input-octets input))
         (start (json-input-position input))
         (length (cond ((<= #xC2 first #xDF) 2) ((<= #xE0 first #xEF) 3) ((<= #xF0 first #xF4) 4) (t 0)))
         (code (ldb (byte (max 0 (- 7 length)) 0) first)))
    (when (or (zerop length) (> (+ start length) end))
      (json-fail input "Not UTF-8"))
    (loop for i from (1+ start) below (+ start length)
          for octet = (aref octets i)
          do (unless (= (ldb (byte 2 6) octet) 2)
               (json-fail input "Not UTF-8"))
             (setf code (logior (ash code 6) (ldb (byte 6 0) octet))))
    (when (or (< code (ecase length (2 #x80) (3 #x800) (4 #x10000))) (>= code char-code-limit))
      (json-fail input "Not UTF-8"))
    (setf (json-input-position input) (+ start length))
    code))

(defun hex-escape (input end)
  "Reads the \\uXXXX at the position and returns its code unit. If there is none, returns NIL and
  the position stays."
  (let ((octets (json-input-octets input))
        (start (json-input-position input)))
    (when (and (<= (+ start 6) end)
               (= (aref octets start) 92)
               (= (aref octets (1+ start)) (char-code #\u)))
      (let ((unit 0))
        (loop for i from (+ start 2) below (+ start 6)
              for digit = (digit-char-p (code-char (aref octets i)) 16)
              do (unless digit
                   (json-fail input "A \\u escape needs four hexadecimal digits"))
                 (setf unit (+ (* 16 unit) digit)))
        (setf (json-input-position input) (+ start 6))
        unit))))

(defun decode-escape (input end)
  "The code point of the escape at the position. A surrogate without its other half stays
  unchanged."
  (let ((unit (hex-escape input end)))
    (cond ((null unit)
           (let* ((at (1+ (json-input-position input)))
                  (char (and (< at end) (code-char (aref (json-input-octets input) at))))
                  (code (case char
                          ((#\" #\\ #\/) (char-code char))
                          (#\b 8) (#\f 12) (#\n 10) (#\r 13) (#\t 9)
                          (t (json-fail input "An escape that JSON does not have")))))
             (setf (json-input-position input) (1+ at))
             code))
          ((<= #xD800 unit #xDBFF)
           (let* ((position (json-input-position input))
                  (low (hex-escape input end)))
             (cond ((and low (<= #xDC00 low #xDFFF))
                    (+ #x10000 (ash (- unit #xD800) 10) (- low #xDC00)))
                   (t (setf (json-input-position input) position)
                      unit))))
          (t unit))))

;;; Writer

(defstruct (json-output (:constructor make-json-output (&optional (size 1024) &aux (octets (make-array size :element-type '(unsigned-byte 8))))))
  (octets nil :type octets)
  (fill 0 :type index))

(defun reserve (output count)
  "Makes room for COUNT octets. Returns the array."
  (declare (type json-output output) (type index count))
  (let* ((octets (json-output-octets output))
         (needed (+ (json-output-fill output) count)))
    (if (<= needed (length octets))
        octets
        (setf (json-output-octets output)
              (replace (make-array (max needed (* 2 (length octets))) :element-type '(unsigned-byte 8))
                       octets :end2 (json-output-fill output))))))

(declaim (inline put-octet))
(defun put-octet (output octet)
  (declare (type json-output output) (type (unsigned-byte 8) octet))
  (setf (aref (the octets (reserve output 1)) (json-output-fill output)) octet)
  (incf (json-output-fill output)))

(defun put-ascii (output string)
  "Writes STRING, which is ASCII, without escapes."
  (declare (type simple-string string))
  (loop for char across string do (put-octet output (char-code char))))

(defun put-code (output code)
  "Writes the character with that CODE as part of a string."
  (declare (optimize speed (safety 0)) (type json-output output) (type (mod #.char-code-limit) code))
  (flet ((escape (char)
           (put-octet output 92)
           (put-octet output (char-code char))))
    (declare (inline escape))
    (cond ((or (= code 34) (= code 92)) (escape (code-char code)))
          ((< code 32)
           (case code
             (10 (escape #\n))
             (9 (escape #\t))
             (13 (escape #\r))
             (t (put-ascii output (if (< code 16) "\\u000" "\\u001"))
                (put-octet output (char-code (char "0123456789abcdef" (logand code 15)))))))
          ((< code #x80) (put-octet output code))
          ((< code #x800)
           (put-octet output (logior #xC0 (ash code -6)))
           (put-octet output (logior #x80 (ldb (byte 6 0) code))))
          ((<= #xD800 code #xDFFF) (put-code output +replacement+))
          ((< code #x10000)
           (put-octet output (logior #xE0 (ash code -12)))
           (put-octet output (logior #x80 (ldb (byte 6 6) code)))
           (put-octet output (logior #x80 (ldb (byte 6 0) code))))
          (t
           (put-octet output (logior #xF0 (ash code -18)))
           (put-octet output (logior #x80 (ldb (byte 6 12) code)))
           (put-octet output (logior #x80 (ldb (byte 6 6) code)))
           (put-octet output (logior #x80 (ldb (byte 6 0) code)))))))

(defconstant +piece+ 4096 "The number of characters of a string for which room is made at once.")

(defun put-string (output string)
  "Writes STRING as a JSON string."
  (declare (type json-output output))
  (put-octet output 34)
  (let ((string (coerce string 'simple-string)))
    (macrolet ((put-all (type)
                 `(locally (declare (optimize speed) (type ,type string))
                    (loop with start of-type index = 0
                          with length of-type index = (length string)
                          while (< start length)
                          do (let* ((end (min length (+ start +piece+)))
                                    (octets (reserve output (- end start)))
                                    (fill (json-output-fill output)))
                               (declare (type octets octets) (type index end fill))
                               ;; Most characters are written unchanged.
                               (setf start (loop for at of-type index from start below end
                                                 do (let ((code (char-code (schar string at))))
                                                      (unless (and (<= 32 code 126) (/= code 34) (/= code 92))
                                                        (return at))
                                                      (setf (aref octets fill) code)
                                                      (incf fill))
                                                 finally (return end))
                                     (json-output-fill output) fill)
                               (when (< start end)
                                 (put-code output (char-code (schar string start)))
                                 (incf start)))))))
      (etypecase string
        ((simple-array character (*)) (put-all (simple-array character (*))))
        (simple-base-string (put-all simple-base-string))
        (string (loop for char across string do (put-code output (char-code char)))))))
  (put-octet output 34))

(defun put-integer (output integer)
  "Writes INTEGER in decimal, whatever *PRINT-BASE* is."
  (when (minusp integer)
    (put-octet output 45))
  (if (typep integer 'fixnum)
      (let ((digits (make-string 20 :element-type 'base-char))
            (start 20))
        (declare (dynamic-extent digits) (type (mod 21) start))
        (loop with rest of-type (integer 0 #.(1+ most-positive-fixnum)) = (abs integer)
              do (multiple-value-bind (quotient digit) (floor rest 10)
                   (setf (schar digits (decf start)) (code-char (+ 48 digit))
                         rest quotient))
              until (zerop rest))
        (loop for i from start below 20 do (put-octet output (char-code (schar digits i)))))
      (put-ascii output (with-standard-io-syntax (princ-to-string (abs integer))))))

(defun put-float (output float)
  "Writes FLOAT. One that JSON cannot represent is written as null."
  (put-ascii output
             (if (or (sb-ext:float-infinity-p float) (sb-ext:float-nan-p float))
                 "null"
                 (coerce (with-standard-io-syntax
                           (let ((*read-default-float-format* 'double-float))
                             (prin1-to-string (coerce float 'double-float))))
                         'simple-string))))

(defun put-sequence (output open close elements put)
  (declare (type function put))
  (put-octet output (char-code open))
  (let ((first t))
    (map nil (lambda (element)
               (if first (setf first nil) (put-octet output 44))
               (funcall put element))
         elements))
  (put-octet output (char-code close)))

(defun put-object (output keys-and-values)
  (put-octet output 123)
  (loop for (key value . more) on keys-and-values by #'cddr
        do (put-string output key)
           (put-octet output 58)
           (put-json output value)
           (when more (put-octet output 44)))
  (put-octet output 125))

(defun put-json (output value)
  "Writes VALUE to OUTPUT, a JSON-OUTPUT. NIL is the empty array."
  (etypecase value
    (string (put-string output value))
    (integer (put-integer output value))
    ((eql :true) (put-ascii output "true"))
    ((eql :false) (put-ascii output "false"))
    ((eql :null) (put-ascii output "null"))
    (float (put-float output value))
    (ratio (put-float output (coerce value 'double-float)))
    ((cons (eql :object)) (put-object output (cdr value)))
    ((or list vector)
     (put-sequence output #\[ #\] value (lambda (element) (put-json output element))))))

(defun json-octets (value)
  "VALUE as JSON. Two values: an array of octets, and the number of its octets that are used."
  (let ((output (make-json-output)))
    (put-json output value)
    (values (json-output-octets output) (json-output-fill output))))

(defun json-line (value)
  "VALUE as one line of JSON. Two values as from JSON-OCTETS."
  (let ((output (make-json-output)))
    (put-json output value)
    (put-octet output 10)
    (values (json-output-octets output) (json-output-fill output))))
