;;;; The texts of forms that were evaluated from a file. By them, frames and breakpoints can tell
;;;; whether the file still contains the form. The newest texts are kept. For older forms only a
;;;; hash is kept. If it shows that the file still contains the form, the text is read from the
;;;; file.

(in-package :consort)

(defconstant +evaluated-sources+ 3000 "The maximum number of kept texts of evaluated forms.")
(defconstant +hashed-sources+ 30000 "The maximum number of evaluated forms that are known, with their text or without.")

(defstruct (evaluated-source (:conc-name evaluated-source-) (:constructor make-evaluated-source (text length hash serial)))
  "An evaluated form: its TEXT, NIL once it is no longer kept, its LENGTH and its HASH. SERIAL is
  the number of forms that were noted before it."
  text (length 0 :type index :read-only t) (hash 0 :type unsigned-byte :read-only t) (serial 0 :type unsigned-byte :read-only t))

(define-global *evaluated-sources* (make-hash-table :test #'equal :synchronized t)
  "The EVALUATED-SOURCE of the form that was last evaluated from a place; the key is (FILE . OFFSET).")
(define-global *evaluated-serial* (list 0) "The number of evaluated forms that were noted so far.")

(defun forget-older-sources (serial)
  "Forgets the texts, and later the hashes, of sources that were noted long before SERIAL."
  (let ((last-text (- serial (floor +evaluated-sources+ 2))) (last (- serial (floor +hashed-sources+ 2))))
    (sb-ext:with-locked-hash-table (*evaluated-sources*)
      (maphash (lambda (key source)
                 (cond ((< (evaluated-source-serial source) last) (remhash key *evaluated-sources*))
                       ((< (evaluated-source-serial source) last-text) (setf (evaluated-source-text source) nil))))
               *evaluated-sources*))))

(defun note-evaluated-source (text start end origin)
  "Keeps the form from START to END of TEXT, which is about to be evaluated. TEXT begins at ORIGIN
  in its file."
  (when (<= (- end start) +evaluated-source-length+)
    (let ((form (without-end-blanks (subseq text start end)))
          (serial (sb-ext:atomic-incf (car *evaluated-serial*))))
      (setf (gethash (cons (source-file (origin-source origin)) (+ start (origin-offset origin))) *evaluated-sources*)
            (make-evaluated-source form (length form) (sxhash form) serial))
      (when (zerop (mod (1+ serial) (floor +evaluated-sources+ 2)))
        (forget-older-sources serial))
      (forget-timed-out-definition form))))

(defun evaluated-source-at (file offset &key certain)
  "The text of the form that was last evaluated from OFFSET of FILE, a native name; NIL if it is not
  known. With CERTAIN, NIL also if only a hash shows that the text in the file is that form."
  (let* ((source (gethash (cons file offset) *evaluated-sources*))
         (end (and source (+ offset (evaluated-source-length source)))))
    (and source
         (or (evaluated-source-text source)
             (let ((now (and (not certain) (values (text-of-file file nil)))))
               (and now (<= end (length now))
                    (let ((form (subseq now offset end)))
                      (and (= (sxhash form) (evaluated-source-hash source)) form))))))))
