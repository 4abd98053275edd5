;;;; The texts of files in which definitions, frames and breakpoints have their places.

(in-package :consort)

(defconstant +source-limit+ 16000000 "Characters of a file that are read.")

;;; SBCL completes the class of this at the first call, which would count as a change of the image.
(sb-posix:stat "/")

;;; SBCL's places in files count octets. A file that is not UTF-8 is read as Latin-1, so that each
;;; of its octets is a character.

(defun text-of-octets (octets end)
  "Two values: the text of OCTETS up to END, and :UTF-8 or :LATIN-1, as which they were read."
  ;; A character that END cuts in two is left out.
  (let ((cut (if (< end (length octets))
                 (or (position-if-not (lambda (octet) (= #x80 (logand octet #xC0))) octets :end (1+ end) :from-end t) end)
                 end)))
    (handler-case (values (sb-ext:octets-to-string octets :end cut :external-format :utf-8) :utf-8)
      (error () (values (sb-ext:octets-to-string octets :end end :external-format :latin-1) :latin-1)))))

(defun file-text (file)
  "Two values: the text of the first +SOURCE-LIMIT+ octets of FILE, a pathname, and :UTF-8 or
  :LATIN-1, as which it was read. NIL when it is no regular file, such as a pipe, on which a read
  may wait. Signals the errors of the file system."
  (when (irregular-p file)
    (return-from file-text nil))
  (with-open-file (stream file :element-type '(unsigned-byte 8))
    (let* ((size (min (file-length stream) +source-limit+))
           ;; One octet more tells whether the limit cuts a character in two.
           (octets (make-array (1+ size) :element-type '(unsigned-byte 8)))
           (read (read-sequence octets stream)))
      (text-of-octets (if (> read size) octets (subseq octets 0 read)) (min read size)))))

(defun octet-index (text format octets)
  "The index of the character of TEXT before which there are OCTETS octets in its file, which was
  read as FORMAT; the length of TEXT if it has not so many."
  (declare (type (unsigned-byte 62) octets))
  (if (eq format :latin-1)
      (min octets (length text))
      (let ((text (coerce text '(simple-array character (*)))) (before 0))
        (declare (type (simple-array character (*)) text) (type (unsigned-byte 62) before) (optimize speed))
        (dotimes (index (length text) (length text))
          (when (>= before octets) (return index))
          (let ((code (char-code (char text index))))
            (incf before (cond ((< code #x80) 1) ((< code #x800) 2) ((< code #x10000) 3) (t 4))))))))

(define-global *file-texts* '() "(FILE WRITTEN TEXT READ FORMAT) of the files that were read last, newest first.")

(defun text-of-file (file written)
  "Two values: the text of FILE, if it was last written at WRITTEN, a Unix time in seconds, or
  WRITTEN is NIL, and the format as which it was read. NIL otherwise, and when the file cannot be
  read."
  (let ((now (ignore-errors (- (file-write-date (sb-ext:parse-native-namestring file)) +unix-epoch+))))
    (when (and now (or (null written) (eql now written)))
      (let ((known (find file *file-texts* :key #'first :test #'string=)))
        ;; Times of files are whole seconds: a file that was read in the second of its last write
        ;; may have changed since.
        (if (and known (eql (second known) now) (> (fourth known) (1+ now)))
            (values (third known) (fifth known))
            (multiple-value-bind (text format) (ignore-errors (file-text (sb-ext:parse-native-namestring file)))
              (when text
                (setf *file-texts* (list* (list file now text (floor (now-ms) 1000) format) (loop for entry in *file-texts* repeat 7
                                                                            unless (string= (first entry) file) collect entry)))
                (values text format))))))))

(defun character-offset (file written octets)
  "The index of the character of FILE before which there are OCTETS octets. If FILE was not last
  written at WRITTEN, or cannot be read, OCTETS, which is right for ASCII."
  ;; Not with the user's *BREAK-ON-SIGNALS*: see LINE-OF.
  (multiple-value-bind (text format) (with-own-settings () (text-of-file file written))
    (if text (octet-index text format octets) octets)))
