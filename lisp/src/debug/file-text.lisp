;;;; The texts of files in which definitions, frames and breakpoints have their places.

(in-package :consort)

(defconstant +source-limit+ 16000000 "Characters of a file that are read.")

;;; SBCL completes the class of this at the first call, which would count as a change of the image.
(sb-posix:stat "/")

(defun file-text (file)
  "The first +SOURCE-LIMIT+ characters of FILE, a pathname; NIL when it is no regular file, such as
  a pipe, on which a read may wait. Signals the errors of the file system."
  (when (irregular-p file)
    (return-from file-text nil))
  (with-open-file (stream file :external-format '(:utf-8 :replacement #\?))
    (let* ((text (make-string (min (file-length stream) +source-limit+)))
           (end (read-sequence text stream)))
      (subseq text 0 end))))

(define-global *file-texts* '() "(FILE WRITTEN TEXT READ) of the files that were read last, newest first.")

(defun text-of-file (file written)
  "The text of FILE, if it was last written at WRITTEN, a Unix time in seconds, or WRITTEN is NIL;
  NIL otherwise, and when the file cannot be read."
  (let ((now (ignore-errors (- (file-write-date (sb-ext:parse-native-namestring file)) +unix-epoch+))))
    (when (and now (or (null written) (eql now written)))
      (let ((known (find file *file-texts* :key #'first :test #'string=)))
        ;; Times of files are whole seconds: a file that was read in the second of its last write
        ;; may have changed since.
        (if (and known (eql (second known) now) (> (fourth known) (1+ now)))
            (third known)
            (let ((text (ignore-errors (file-text (sb-ext:parse-native-namestring file)))))
              (when text
                (setf *file-texts* (list* (list file now text (floor (now-ms) 1000)) (loop for entry in *file-texts* repeat 7
                                                                     unless (string= (first entry) file) collect entry))))
              text))))))
