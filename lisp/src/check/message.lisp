;;;; Readable forms of SBCL's messages: on one line, without the addresses of objects, descriptions
;;;; of streams, and references to manuals.

(in-package :consort)

(defun find-words (words text &optional (start 0))
  "Returns the first position of WORDS in TEXT that is not before START, or NIL if there is none.
  Used instead of SEARCH for speed, because each message is searched for many strings."
  (declare (type text words text) (type fixnum start) (optimize speed))
  (let ((first (char words 0)) (length (length words)) (end (length text)))
    (loop for at of-type (or null fixnum) = (position first text :start (min start end)) then (position first text :start (1+ at))
          while at
          when (and (<= (+ at length) end)
                    (loop for i of-type fixnum from 1 below length
                          always (char= (char words i) (char text (+ at i)))))
            return at)))

(defun as-text (string)
  "STRING as an object of the type TEXT, copied only if it has another type."
  (if (typep string 'text) string (coerce string 'text)))

(defun collapse-space (string &aux (text (as-text string)))
  "STRING without leading and trailing white space, and with each run of white space that contains a
  line break replaced by one space. Other white space stays."
  (with-output-to-string (out)
    (let ((i 0) (length (length text)) (started nil))
      (flet ((blank-p (c) (member c '(#\Space #\Tab #\Newline #\Return #\Page))))
        (loop while (< i length)
              do (if (blank-p (char text i))
                     (let* ((end (or (position-if-not #'blank-p text :start i) length))
                            (break (find-if (lambda (c) (member c '(#\Newline #\Return))) text :start i :end end)))
                       (when (and started (< end length))
                         (write-string (if break " " (subseq text i end)) out))
                       (setf i end))
                     (progn (setf started t)
                            (write-char (char text i) out)
                            (incf i))))))))

(defun drop-addresses (string &aux (text (as-text string)))
  "STRING without the addresses of unreadable objects, such as \" {1001A2B3C3}\" before a \">\"."
  (with-output-to-string (out)
    (loop with i = 0
          for open = (find-words (load-time-value (as-text " {")) text i)
          for close = (and open (position #\} text :start open))
          do (cond ((null open) (write-string text out :start i) (return))
                   ((and close
                         (> (- close open) 6)
                         (loop for j from (+ open 2) below close always (digit-char-p (char text j) 16))
                         (< (1+ close) (length text))
                         (char= (char text (1+ close)) #\>))
                    (write-string text out :start i :end open)
                    (setf i (1+ close)))
                   (t (write-string text out :start i :end (+ open 2))
                      (setf i (+ open 2)))))))

(defun drop-noise (text)
  "TEXT without SBCL's advice about *BREAK-ON-SIGNALS*, its descriptions of streams, and the
  position in a stream at the end of a reader error's message."
  (macrolet ((place (words &optional (start 0)) `(find-words (load-time-value (as-text ,words)) text ,start)))
    (let ((advice (place " Use *BREAK-ON-SIGNALS* to intercept.")))
      (when advice
        (setf text (concatenate 'text (subseq text 0 advice) (subseq text (+ advice 37))))))
    (let ((stream (place " on #<")))
      (when stream
        (let ((end (position #\> text :start stream)))
          (when end
            (setf text (concatenate 'text (subseq text 0 stream) (subseq text (1+ end))))))))
    (let ((stream (place "Stream: #<")))
      (when stream (setf text (as-text (string-right-trim " ," (subseq text 0 stream))))))
    (let ((line (place " Line: ")))
      (when (and line (place ", Column: " line) (place ", File-Position: " line))
        (setf text (subseq text 0 line)))))
  (as-text (string-trim " " text)))

(defun condition-report (condition &optional (package *package*))
  "Returns the report of CONDITION as readable text on one line. Symbols are printed as they are
  when PACKAGE is the current package."
  ;; SBCL's own report of this condition prints amounts of memory that are available only while the
  ;; condition is being signalled.
  (when (and (internal-p 'heap-exhausted) (typep condition heap-exhausted))
    (return-from condition-report (as-text "Heap exhausted: this takes more memory than there is.")))
  (let ((text (handler-case
                  (let ((*package* package) (*print-pretty* t) (*print-right-margin* 100000) (*print-length* 10) (*print-level* 5)
                        (*print-lines* nil) (*print-circle* nil) (*print-readably* nil))
                    (with-internals ((print-condition-references nil))
                      (princ-to-string condition)))
                (error () (format nil "A ~(~A~) that cannot be printed." (type-of condition))))))
    (drop-prefix (drop-noise (as-text (drop-addresses (collapse-space text)))) package)))

(defun drop-prefix (text package)
  "TEXT without the prefix NAME:: of PACKAGE. In some messages SBCL prints this prefix even if
  PACKAGE is the current package."
  (let ((prefix (concatenate 'text (package-name package) "::")))
    (unless (find-words prefix text) (return-from drop-prefix text))
    (with-output-to-string (out)
      (loop with start = 0
            for found = (find-words prefix text start)
            do (write-string text out :start start :end found)
            while found
            do (setf start (+ found (length prefix)))))))

(defun type-name-for-user (condition)
  "The name of CONDITION's class as it is printed when CL-USER is the current package."
  (let ((*package* (user-package)) (*print-pretty* nil) (*print-readably* nil))
    (prin1-to-string (class-name (class-of condition)))))

(defun abbreviate (form &optional (limit 80))
  "FORM printed on one line, with symbols in upper case, cut to at most LIMIT characters.
  \"(...)\" if FORM cannot be printed."
  (let ((text (handler-case
                  (let ((*print-pretty* t) (*print-right-margin* 100000) (*print-lines* nil) (*print-length* 12) (*print-level* 6) (*print-case* :upcase) (*print-readably* nil)
                        (*print-circle* nil) (*print-base* 10) (*print-radix* nil))
                    (collapse-space (drop-addresses (write-to-string form :escape t))))
                (error () "(...)"))))
    (if (> (length text) limit)
        (concatenate 'string (subseq text 0 (- limit 3)) "...")
        text)))
