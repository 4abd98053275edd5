;;;; SBCL's messages, made readable: on one line, without addresses, stream names or references.

(in-package :consort)

(defun find-words (words text &optional (start 0))
  "Returns the position of WORDS in TEXT, from START on, or NIL. Faster than SEARCH, because each
  message is searched for many words."
  (declare (type text words text) (type fixnum start) (optimize speed))
  (let ((first (char words 0)) (length (length words)) (end (length text)))
    (loop for at of-type (or null fixnum) = (position first text :start (min start end)) then (position first text :start (1+ at))
          while at
          when (and (<= (+ at length) end)
                    (loop for i of-type fixnum from 1 below length
                          always (char= (char words i) (char text (+ at i)))))
            return at)))

(defun as-text (string)
  "STRING as a TEXT."
  (if (typep string 'text) string (coerce string 'text)))

(defun collapse-space (string &aux (text (as-text string)))
  "STRING, trimmed, in which each run of white space with a line break is replaced by one space."
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
  "STRING without the \" {1001A2B3C3}\" in unreadable objects."
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
  "TEXT without SBCL's advice to users of its terminal and its descriptions of streams."
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
  "Returns the report of CONDITION, cleaned, with symbols as PACKAGE sees them."
  ;; The context of the signal has been left, and with it the figures of SBCL's own report.
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
  "TEXT with the prefix of PACKAGE dropped, which SBCL prints even where that is the current one."
  (let ((prefix (concatenate 'text (package-name package) "::")))
    (unless (find-words prefix text) (return-from drop-prefix text))
    (with-output-to-string (out)
      (loop with start = 0
            for found = (find-words prefix text start)
            do (write-string text out :start start :end found)
            while found
            do (setf start (+ found (length prefix)))))))

(defun type-name-for-user (condition)
  "The name of CONDITION's type as CL-USER prints it."
  (let ((*package* (user-package)) (*print-pretty* nil) (*print-readably* nil))
    (prin1-to-string (class-name (class-of condition)))))

(defun abbreviate (form &optional (limit 80))
  "FORM on one line, in upper case, of at most LIMIT characters."
  (let ((text (handler-case
                  (let ((*print-pretty* t) (*print-right-margin* 100000) (*print-lines* nil) (*print-length* 12) (*print-level* 6) (*print-case* :upcase) (*print-readably* nil)
                        (*print-circle* nil) (*print-base* 10) (*print-radix* nil))
                    (collapse-space (drop-addresses (write-to-string form :escape t))))
                (error () "(...)"))))
    (if (> (length text) limit)
        (concatenate 'string (subseq text 0 (- limit 3)) "...")
        text)))
