;;;; Read files with SBCL's own reader and print where each top-level object begins and ends, for
;;;; scanner_agrees.rs.
;;;;
;;;; Standard input: one path a line. Standard output: one line of JSON for each path, in order:
;;;;   [[start, end], ...]            in characters; guards (#+ #-) and comments before an object
;;;;                                  are not part of it
;;;;   "message"                      the reader refused the file
;;;; Files are read as UTF-8, and as Latin-1 when they are not.
;;;;
;;;; *READ-SUPPRESS* lets unknown packages pass; where objects end does not depend on it. Guards are
;;;; read by our own macro, as SBCL's would stop at features of other Lisps ((:VERSION>= 9)); what
;;;; cannot be told is absent.

(defvar *skipped*) ; start -> end of comments and guards, and of the datum after a guard that is false

(defun presentp (feature)
  (flet ((test () (mapcar #'presentp (rest feature))))
    (cond ((symbolp feature) (member feature *features*))
          ((atom feature) nil)
          ((string= (first feature) "NOT") (notany #'identity (test)))
          ((string= (first feature) "AND") (every #'identity (test)))
          ((string= (first feature) "OR") (some #'identity (test))))))

(defun feature-present-p (stream)
  (let ((start (file-position stream)))
    (handler-case
        (presentp (let ((*package* (find-package '#:keyword)) (*read-suppress* nil))
                    (read stream t nil t)))
      (error ()
        (file-position stream start)
        (let ((*read-suppress* t))
          (read stream t nil t))
        nil))))

(defun read-guard (stream sub-char argument)
  (declare (ignore argument))
  (let ((start (- (file-position stream) 2)))
    (unless (eq (char= sub-char #\+) (and (feature-present-p stream) t))
      (let ((*read-suppress* t))
        (read stream t nil t)))
    (setf (gethash start *skipped*) (file-position stream))
    (values)))

(defun recording (function width)
  "FUNCTION, a macro function that makes no object, with where it began (WIDTH characters before) and ended put on record."
  (lambda (stream &rest arguments)
    (let ((start (- (file-position stream) width)))
      (apply function stream arguments)
      (setf (gethash start *skipped*) (file-position stream))
      (values))))

(defvar *recording-readtable*
  (let ((readtable (copy-readtable nil)))
    (set-dispatch-macro-character #\# #\+ #'read-guard readtable)
    (set-dispatch-macro-character #\# #\- #'read-guard readtable)
    (set-dispatch-macro-character #\# #\| (recording (get-dispatch-macro-character #\# #\|) 2) readtable)
    (set-macro-character #\; (recording (get-macro-character #\;) 1) nil readtable)
    readtable))

(defun object-start (text start)
  "Where the object that was read from START on begins: behind white space and what was skipped."
  (loop for at = (position-if-not (lambda (char) (find char '(#\Space #\Tab #\Newline #\Return #\Page #\Rubout))) text :start start)
        while at
        do (setf start (gethash at *skipped*))
           (unless start (return at))))

(defun spans (text)
  (let ((*read-suppress* t) (*readtable* *recording-readtable*) (*skipped* (make-hash-table)))
    (with-input-from-string (stream text)
      (loop with eof = '#:eof
            for start = (file-position stream)
            until (eq eof (read-preserving-whitespace stream nil eof))
            ;; With *READ-SUPPRESS* the end of the text may read as NIL.
            for object = (object-start text start)
            while object
            collect (list object (file-position stream))))))

(defun file-text (path)
  (let ((octets (with-open-file (in path :element-type '(unsigned-byte 8))
                  (let ((octets (make-array (file-length in) :element-type '(unsigned-byte 8))))
                    (read-sequence octets in)
                    octets))))
    (handler-case (sb-ext:octets-to-string octets :external-format :utf-8)
      (error () (sb-ext:octets-to-string octets :external-format :latin-1)))))

(defun quoted (condition)
  "CONDITION's text as a JSON string."
  (with-output-to-string (out)
    (write-char #\" out)
    (loop for char across (princ-to-string condition)
          do (cond ((find char "\"\\") (format out "\\~C" char))
                   ((< (char-code char) 32) (write-char #\Space out))
                   (t (write-char char out))))
    (write-char #\" out)))

(defun main ()
  (loop for path = (read-line *standard-input* nil)
        while path
        do (handler-case (format t "[~{[~{~D,~D~}]~^,~}]~%" (spans (file-text (sb-ext:parse-native-namestring path))))
             (error (condition)
               (format t "~A~%" (quoted condition))))))

(main)
