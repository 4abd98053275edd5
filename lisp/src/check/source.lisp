;;;; The text of a check, as a stream that reports the position of every object that is read from
;;;; it, and searches in the text that do not use the reader.

(in-package :consort)

(deftype text () "A text that is checked." '(simple-array character (*)))

(defun blank (text spans)
  "A copy of TEXT with spaces in place of the characters in SPANS, conses (START . END). Line breaks
  and page breaks stay."
  (let ((copy (copy-seq text)))
    (loop for (start . end) in spans
          do (loop for i from (max 0 start) below (min end (length copy))
                   unless (member (char copy i) '(#\Newline #\Return #\Page))
                     do (setf (char copy i) #\Space)))
    copy))

(defun write-source (text path)
  "Writes TEXT to the file PATH, in UTF-8, and returns PATH. An existing file is replaced."
  (with-open-file (out path :direction :output :if-exists :supersede :external-format :utf-8)
    (write-string text out))
  path)

(defun utf-8-length (text end &optional (start 0))
  "The number of bytes that the characters of TEXT from START to END take in UTF-8."
  (declare (type text text) (type fixnum start end) (optimize speed))
  (loop for i of-type fixnum from start below end
        for code = (char-code (char text i))
        sum (cond ((< code #x80) 1) ((< code #x800) 2) ((< code #x10000) 3) (t 4)) of-type fixnum))

(defun open-source (path text offset name observer &optional (first 0))
  "Opens the file PATH, which contains the characters of TEXT from the offset FIRST on, and returns
  a stream that begins at the offset OFFSET of TEXT. The stream calls OBSERVER with the start and
  the end of each object that is read, counted from OFFSET, and the object. If NAME is not NIL, it
  is the stream's file name."
  (let ((stream (open path :external-format :utf-8 :class tracking-stream-class)))
    (unless (= offset first)
      (sb-posix:lseek (stream-descriptor stream) (utf-8-length text offset first) sb-posix:seek-set))
    (when name (setf (stream-file-name stream) name))
    (setf (tracking-stream-observer stream) observer)
    stream))

(defun definer-p (form)
  "Returns true if FORM is a list whose operator has a name that begins with DEF and is no function
  here, so that it probably defines something. A function gets the value of its first argument, and
  no name."
  (and (consp form)
       (symbolp (car form))
       (eql 0 (search "DEF" (symbol-name (car form))))
       (or (not (fboundp (car form)))
           (special-operator-p (car form))
           (and (macro-function (car form)) t))))

;;; Searches in the text, in the standard syntax

(defun delimiter-p (char)
  "Returns true if CHAR ends a token in the standard syntax."
  (find char '(#\Space #\Tab #\Newline #\Return #\Page #\Linefeed #\( #\) #\" #\' #\` #\, #\;)))

(defun token-around (text position &key (delimiter nil))
  "The span (START . END) of the token or macro character that ends at POSITION or, if white space
  precedes POSITION, that ends before the white space. DELIMITER is true if the reader may also have
  read the delimiter after the token; the span is then that of the token."
  (declare (type text text))
  (let* ((length (length text))
         (at (max 0 (1- (min position length)))))
    (flet ((blank-p (i) (member (char text i) '(#\Space #\Tab #\Newline #\Return #\Page))))
      (when (zerop length) (return-from token-around (cons 0 0)))
      (loop while (and (plusp at) (blank-p at)) do (decf at))
      (when (and delimiter (plusp at) (delimiter-p (char text at)) (not (delimiter-p (char text (1- at)))))
        (decf at))
      (if (delimiter-p (char text at))
          (cons at (1+ at))
          (cons (let ((before (position-if #'delimiter-p text :end at :from-end t))) (if before (1+ before) 0))
                (or (position-if #'delimiter-p text :start at) length))))))

(defun end-of-line (text position)
  "Returns the position of the first line break at or after POSITION, or the length of TEXT."
  (declare (type text text))
  (or (position-if (lambda (c) (member c '(#\Newline #\Return))) text :start (min position (length text))) (length text)))

(defun next-toplevel (text position)
  "Returns the start of the next line after POSITION that begins with an open parenthesis, or NIL."
  (declare (type text text))
  (loop for newline = (position-if (lambda (c) (member c '(#\Newline #\Return))) text :start (min position (length text)))
          then (position-if (lambda (c) (member c '(#\Newline #\Return))) text :start (1+ newline))
        while newline
        when (and (< (1+ newline) (length text)) (char= (char text (1+ newline)) #\())
          return (1+ newline)))

(defun skip-comments (text position)
  "The position of the first character at or after POSITION that is neither white space nor in a
  comment, or the length of TEXT if there is none."
  (declare (type text text))
  (flet ((at-p (delimiter)
           (let ((end (+ position 2)))
             (and (<= end (length text)) (string= delimiter text :start2 position :end2 end)))))
    (loop
      (setf position (skip-blanks text position))
      (unless (at-p "#|") (return position))
      (loop with depth = 0
            do (cond ((at-p "#|") (incf depth) (incf position 2))
                     ((at-p "|#") (decf depth) (incf position 2))
                     (t (incf position)))
            until (or (zerop depth) (>= position (length text)))))))

(defun definition-name (text start)
  "Returns the name that the form at START of TEXT probably defines, as written, and the start and
  the end of the name in TEXT. For (defun foo ...) the name is \"foo\". NIL if there is no
  name, or if the operator's name does not contain DEF or is DEF alone."
  (declare (type text text))
  (let ((length (length text)))
    (flet ((skip (p) (skip-blanks text p))
           (end (p) (or (position-if #'delimiter-p text :start p) length)))
      (when (and (< start length) (char= (char text start) #\())
        (let* ((head (skip (1+ start)))
               (head-end (end head))
               (name (skip head-end)))
          (when (and (> (- head-end head) 3)
                     (search "def" text :start2 head :end2 head-end :test #'char-equal)
                     (< name length))
            (when (char= (char text name) #\() ; (defstruct (foo ...)), (defun (setf foo) ...)
              (setf name (skip (1+ name)))
              (when (and (< (+ name 4) length) (string-equal "setf" (subseq text name (end name))))
                (setf name (skip (end name)))))
            (let ((name-end (end name)))
              (when (< name name-end)
                (values (subseq text name name-end) name name-end)))))))))

(defun definitions-between (text start end)
  "The positions from START up to END at which lines of TEXT begin with an open parenthesis and DEF.
  START counts as the beginning of a line."
  (declare (type text text))
  (loop for at = (if (and (< start (length text)) (char= (char text start) #\()) start (next-toplevel text start))
          then (next-toplevel text at)
        while (and at (< at end))
        when (let ((word (+ at 4))) (and (<= word (length text)) (string-equal "(def" text :start2 at :end2 word)))
          collect at))

(defun next-in-package (text position)
  "Returns the start of the next line after POSITION that begins with an IN-PACKAGE, or the end of
  TEXT."
  (declare (type text text))
  (loop for at = (next-toplevel text position) then (next-toplevel text at)
        while at
        when (let ((end (+ at 11))) (and (<= end (length text)) (string-equal "(in-package" text :start2 at :end2 end)))
          return at
        finally (return (length text))))

(defun plain-name (token)
  "TOKEN without a package prefix, in upper case."
  (string-upcase (subseq token (1+ (or (position #\: token :from-end t) -1)))))

(defun unclosed-construct (text start)
  "Returns the start of the construct from START on that has no end in TEXT: a string, a block
  comment or a |name|; otherwise the outermost list that is open at the end of TEXT; otherwise
  START."
  (declare (type text text))
  (let ((opens '()) (i start) (length (length text)))
    (flet ((skip-to (char from)
             (loop (cond ((>= from length) (return nil))
                         ((char= (char text from) #\\) (incf from 2))
                         ((char= (char text from) char) (return (1+ from)))
                         (t (incf from))))))
      (loop while (< i length)
            do (case (char text i)
                 (#\( (push i opens) (incf i))
                 (#\) (pop opens) (incf i))
                 (#\; (setf i (end-of-line text i)))
                 (#\\ (incf i 2))
                 ((#\" #\|) (setf i (or (skip-to (char text i) (1+ i)) (return-from unclosed-construct i))))
                 (#\# (case (and (< (1+ i) length) (char text (1+ i)))
                        (#\\ (incf i 3))
                        (#\| (let ((depth 0) (from i))
                               (loop (cond ((>= (1+ i) length) (return-from unclosed-construct from))
                                           ((string= "#|" text :start2 i :end2 (+ i 2)) (incf depth) (incf i 2))
                                           ((string= "|#" text :start2 i :end2 (+ i 2)) (incf i 2)
                                            (when (zerop (decf depth)) (return)))
                                           (t (incf i))))))
                        (t (incf i))))
                 (t (incf i))))
      (or (first (last opens)) start))))

(defun form-end (text start)
  "The end of the first form at or after START of TEXT, in the standard syntax; NIL if the form has
  no end in TEXT, or if there is no form."
  (declare (type text text))
  (let ((length (length text)))
    (labels ((at (i) (and (< i length) (char text i)))
             (behind (char i)
               (loop (cond ((>= i length) (return nil))
                           ((char= (char text i) #\\) (incf i 2))
                           ((char= (char text i) char) (return (1+ i)))
                           (t (incf i)))))
             (token-end (i)
               (loop (cond ((null i) (return nil))
                           ((or (>= i length) (delimiter-p (char text i))) (return (min i length)))
                           ((char= (char text i) #\\) (incf i 2))
                           ((char= (char text i) #\|) (setf i (behind #\| (1+ i))))
                           (t (incf i)))))
             (list-end (i)
               (loop with depth = 0
                     while (and i (< i length))
                     do (setf i (case (char text i)
                                  (#\( (incf depth) (1+ i))
                                  (#\) (when (zerop (decf depth)) (return (1+ i))) (1+ i))
                                  (#\; (end-of-line text i))
                                  (#\\ (+ i 2))
                                  ((#\" #\|) (behind (char text i) (1+ i)))
                                  (#\# (case (at (1+ i))
                                         (#\\ (+ i 3))
                                         (#\| (skip-comments text i))
                                         (t (1+ i))))
                                  (t (1+ i))))))
             (dispatched (i)
               (let ((sub (position-if-not #'digit-char-p text :start i)))
                 (case (and sub (char text sub))
                   ((nil #\)) nil)
                   ((#\+ #\-) (let ((feature (form-behind (1+ sub)))) (and feature (form-behind feature))))
                   (#\( (list-end sub))
                   (#\\ (token-end (+ sub 2)))
                   (#\# (1+ sub))
                   (t (form-behind (1+ sub))))))
             (form-behind (i)
               (let ((i (skip-comments text i)))
                 (case (at i)
                   ((nil #\)) nil)
                   (#\( (list-end i))
                   (#\" (behind #\" (1+ i)))
                   ((#\' #\`) (form-behind (1+ i)))
                   (#\, (form-behind (if (member (at (1+ i)) '(#\@ #\.)) (+ i 2) (1+ i))))
                   (#\# (dispatched (1+ i)))
                   (t (token-end i))))))
      (form-behind start))))
