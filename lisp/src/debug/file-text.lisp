;;;; The texts of the files that places of definitions, frames and breakpoints refer to.

(in-package :consort)

;;; SBCL finalizes this structure's class at the first call, which would count as a change of the
;;; image.
(sb-posix:stat "/")

;;; SBCL's places in files count octets. A file that is not UTF-8 is read as Latin-1, so that each
;;; of its octets is a character.

(defun text-of-octets (octets end)
  "Two values: the text of OCTETS up to END, and the format as which they were read, :UTF-8 or
  :LATIN-1."
  ;; A character that END cuts in two is left out.
  (let ((cut (if (< end (length octets))
                 (or (position-if-not (lambda (octet) (= #x80 (logand octet #xC0))) octets :end (1+ end) :from-end t) end)
                 end)))
    (handler-case (values (sb-ext:octets-to-string octets :end cut :external-format :utf-8) :utf-8)
      (error () (values (sb-ext:octets-to-string octets :end end :external-format :latin-1) :latin-1)))))

(defun octets-of-file (file)
  "Two values: the first +SOURCE-LIMIT+ octets of FILE, a pathname, perhaps with one more, and
  whether they are the whole file. NIL if FILE is not a regular file; a read of a pipe, for example,
  could wait. Signals the errors of the file system."
  (when (irregular-p file)
    (return-from octets-of-file nil))
  (with-open-file (stream file :element-type '(unsigned-byte 8))
    (let* ((size (min (file-length stream) +source-limit+))
           ;; One octet more shows whether the limit cuts a character in two.
           (octets (make-array (1+ size) :element-type '(unsigned-byte 8)))
           (read (read-sequence octets stream)))
      (values (if (> read size) octets (subseq octets 0 read)) (<= read size)))))

(defun file-text (file)
  "Two values: the text of the first +SOURCE-LIMIT+ octets of FILE, a pathname, and the format as
  which it was read, :UTF-8 or :LATIN-1. NIL if FILE is not a regular file. Signals the errors of
  the file system."
  (multiple-value-bind (octets whole) (octets-of-file file)
    (and octets (text-of-octets octets (if whole (length octets) (1- (length octets)))))))

(defun octet-index (text format octets)
  "The index of the character of TEXT that is preceded by OCTETS octets in its file, which was read
  as FORMAT; the length of TEXT if it has fewer octets."
  (declare (type (unsigned-byte 62) octets))
  (if (eq format :latin-1)
      (min octets (length text))
      (let ((text (coerce text '(simple-array character (*)))) (before 0))
        (declare (type (simple-array character (*)) text) (type (unsigned-byte 62) before) (optimize speed))
        (dotimes (index (length text) (length text))
          (when (>= before octets) (return index))
          (let ((code (char-code (char text index))))
            (incf before (cond ((< code #x80) 1) ((< code #x800) 2) ((< code #x10000) 3) (t 4))))))))

(defstruct (known-text (:constructor make-known-text (file facts second text format digest)))
  "The TEXT of FILE, a native name, read as FORMAT, and the SHA-256 of its octets, or NIL if only a
  part was read. FACTS and SECOND are as in a FILE-STATE."
  (file "" :type string) (facts '() :type list) (second 0 :type integer)
  (text "" :type string) format digest)

(define-global *file-texts* '() "The KNOWN-TEXT of each of the files that were read last, newest first.")

(defun text-now (file)
  "The KNOWN-TEXT of FILE, a native name, as it is now; NIL when it cannot be read."
  (let* ((second (unix-second))
         (facts (ignore-errors (file-facts file)))
         (known (and facts (find file *file-texts* :key #'known-text-file :test #'string=))))
    (cond ((null facts) nil)
          ;; Times of files are whole seconds: a file that was read in the second of its last change
          ;; may have changed since.
          ((and known (equal facts (known-text-facts known)) (< (third facts) (known-text-second known))) known)
          (t
           (multiple-value-bind (octets whole) (ignore-errors (octets-of-file (sb-ext:parse-native-namestring file)))
             (when octets
               (multiple-value-bind (text format) (text-of-octets octets (if whole (length octets) (1- (length octets))))
                 (let ((new (make-known-text file facts second text format (and whole (digest-of-octets octets)))))
                   (setf *file-texts* (cons new (loop for entry in *file-texts* repeat 7
                                                      unless (string= (known-text-file entry) file) collect entry)))
                   new))))))))

(defun text-of-file (file written &key certain)
  "Two values: the text of FILE and the format as which it was read, if the text is the one that was
  loaded when the file had the time WRITTEN (a Unix time in seconds), or if WRITTEN is NIL. NIL
  otherwise, and if the file cannot be read. With CERTAIN, also NIL if only the times show that the
  text is the same."
  (let* ((now (text-now file))
         (loaded (and now written (content-loaded (native-true-name (sb-ext:parse-native-namestring file)) written))))
    (when (and now
               (or (null written)
                   (and (eql written (second (known-text-facts now)))
                        (if loaded (equal loaded (known-text-digest now)) (not certain)))))
      (values (known-text-text now) (known-text-format now)))))

(defun character-offset (file written octets)
  "The index of the character of FILE that is preceded by OCTETS octets. If FILE was not last
  written at WRITTEN, or cannot be read, OCTETS itself, which is right for ASCII."
  ;; Not with the user's *BREAK-ON-SIGNALS*: see LINE-OF.
  (multiple-value-bind (text format) (with-own-settings () (text-of-file file written))
    (if text (octet-index text format octets) octets)))
