;;;; SHA-256 (FIPS 180-4), by which the host specifies the contents of files that may be loaded.
;;;; SBCL's contribs have only MD5, for which two files with the same digest can be made.

(in-package :consort)

(deftype word () '(unsigned-byte 32))
(deftype words () '(simple-array (unsigned-byte 32) (*)))

(defun first-primes (count)
  (loop with primes = '()
        for n from 2
        until (= (length primes) count)
        do (unless (some (lambda (prime) (zerop (mod n prime))) primes)
             (setf primes (append primes (list n))))
        finally (return primes)))

(defun integer-cube-root (n)
  (let ((low 0) (high (ash 1 (ceiling (integer-length n) 3))))
    (loop while (< low high)
          do (let ((middle (ceiling (+ low high) 2)))
               (if (<= (expt middle 3) n) (setf low middle) (setf high (1- middle)))))
    low))

(defun words-of (numbers)
  "A vector of the lowest 32 bits of each of NUMBERS."
  (map '(simple-array (unsigned-byte 32) (*)) (lambda (number) (ldb (byte 32 0) number)) numbers))

(define-global *digest-constants* (words-of (mapcar (lambda (prime) (integer-cube-root (ash prime 96))) (first-primes 64)))
  "The first 32 bits of the fractional parts of the cube roots of the first 64 primes.")
(define-global *digest-start* (words-of (mapcar (lambda (prime) (isqrt (ash prime 64))) (first-primes 8)))
  "The first 32 bits of the fractional parts of the square roots of the first 8 primes.")

(declaim (inline rotated))
(defun rotated (word count)
  (declare (type word word) (type (integer 1 31) count))
  (logior (ash word (- count)) (ldb (byte 32 0) (ash word (- 32 count)))))

(defun digest-block (state schedule octets start)
  "Updates STATE with the block of 64 octets from START. SCHEDULE is a buffer of 64 words."
  (declare (type words state schedule) (type (simple-array (unsigned-byte 8) (*)) octets) (type (unsigned-byte 40) start) (optimize speed)
           (sb-ext:muffle-conditions sb-ext:compiler-note))
  (let ((constants *digest-constants*))
    (declare (type words constants))
    (dotimes (i 16)
      (let ((at (+ start (* 4 i))))
        (setf (aref schedule i) (logior (ash (aref octets at) 24) (ash (aref octets (+ at 1)) 16) (ash (aref octets (+ at 2)) 8) (aref octets (+ at 3))))))
    (loop for i of-type (unsigned-byte 8) from 16 below 64
          do (let ((a (aref schedule (- i 15))) (b (aref schedule (- i 2))))
               (setf (aref schedule i)
                     (ldb (byte 32 0) (+ (aref schedule (- i 16)) (logxor (rotated a 7) (rotated a 18) (ash a -3))
                                         (aref schedule (- i 7)) (logxor (rotated b 17) (rotated b 19) (ash b -10)))))))
    (let ((a (aref state 0)) (b (aref state 1)) (c (aref state 2)) (d (aref state 3)) (e (aref state 4)) (f (aref state 5)) (g (aref state 6)) (h (aref state 7)))
      (declare (type word a b c d e f g h))
      (dotimes (i 64)
        (let* ((one (ldb (byte 32 0) (+ h (logxor (rotated e 6) (rotated e 11) (rotated e 25)) (logxor (logand e f) (logandc1 e g))
                                        (aref constants i) (aref schedule i))))
               (two (ldb (byte 32 0) (+ (logxor (rotated a 2) (rotated a 13) (rotated a 22)) (logxor (logand a b) (logand a c) (logand b c))))))
          (declare (type word one two))
          (setf h g g f f e e (ldb (byte 32 0) (+ d one)) d c c b b a a (ldb (byte 32 0) (+ one two)))))
      (loop for value of-type word in (list a b c d e f g h)
            for i of-type (unsigned-byte 8) from 0
            do (setf (aref state i) (ldb (byte 32 0) (+ (aref state i) value)))))))

(defun digest-of-octets (octets)
  "The SHA-256 of OCTETS, in lower-case hexadecimal digits."
  (declare (type (simple-array (unsigned-byte 8) (*)) octets))
  (let* ((length (length octets)) (whole (* 64 (floor length 64))) (state (copy-seq *digest-start*))
         (schedule (make-array 64 :element-type '(unsigned-byte 32)))
         (end (make-array (if (< (- length whole) 56) 64 128) :element-type '(unsigned-byte 8) :initial-element 0)))
    (loop for start from 0 below whole by 64 do (digest-block state schedule octets start))
    (replace end octets :start2 whole)
    (setf (aref end (- length whole)) 128)
    (dotimes (i 8) (setf (aref end (- (length end) i 1)) (ldb (byte 8 (* 8 i)) (* 8 length))))
    (loop for start from 0 below (length end) by 64 do (digest-block state schedule end start))
    (with-standard-io-syntax (format nil "~(~{~8,'0X~}~)" (coerce state 'list)))))

(defun digest-of-file (pathname)
  "The SHA-256 of the content of the file; NIL if it cannot be read."
  (ignore-errors
   (ensure-regular pathname)
   (with-open-file (in pathname :element-type '(unsigned-byte 8)) (digest-of-octets (stream-octets in)))))

;;; Files that may be loaded

(defstruct (allowed (:constructor make-allowed (files within &optional asked)))
  "The contents about which a person was asked. FILES maps true names to digests. Other files below
  WITHIN, the workspace, may not be loaded. If ASKED, the Unix time of the question in seconds, is
  given, those of them may be loaded that have not changed since."
  (files nil :type hash-table) (within "" :type string) (asked nil :type (or null integer)))

(defvar *allowed* nil "The contents that this thread's load or reload may load; NIL for any.")

(defun allowed-param (params)
  "Returns the parameter `allowed`, parsed, or NIL."
  (let ((allowed (param params "allowed" 'cons :default nil)))
    (when (object-p allowed)
      (let ((files (make-hash-table :test #'equal)))
        (map nil (lambda (pair) (setf (gethash (aref pair 0) files) (aref pair 1))) (param allowed "files" 'vector))
        (make-allowed files (param allowed "within" 'string) (param allowed "asked" 'integer :default nil))))))

(defun untouched-since-p (name within second)
  "Returns true if nothing has happened since SECOND of Unix time to the file NAME below WITHIN, a
  directory's name with its slash, nor to the directories and links between them. One that replaces
  another has a new time of change, which only the system sets."
  (loop for end = (length name) then (position #\/ name :end end :from-end t)
        while (and end (>= end (length within)))
        always (< (sb-posix:stat-ctime (sb-posix:lstat (subseq name 0 end))) second)))

(defun check-allowed (pathname)
  "Fails if the content of the file is not allowed."
  (let ((true (and *allowed* (ignore-errors (probe-file pathname)))))
    (when true
      (let* ((name (sb-ext:native-namestring true)) (digest (gethash name (allowed-files *allowed*)))
             (within (allowed-within *allowed*)) (asked (allowed-asked *allowed*))
             ;; A link in the workspace belongs to the workspace, wherever it points now.
             (names (remove-if-not (lambda (name) (eql (mismatch within name) (length within)))
                                   (adjoin name (list (sb-ext:native-namestring (translate-logical-pathname pathname))) :test #'string=))))
        (cond (digest
               (unless (equal digest (digest-of-file true))
                 (fail-reload "FILE_CHANGED" "~A was changed since it was allowed. Call again for a new decision" name)))
              ((null names))
              (asked
               (unless (ignore-errors (every (lambda (name) (untouched-since-p name within asked)) names))
                 (fail-reload "FILE_CHANGED" "~A was changed, moved or made since a person was asked. Call again for a new decision" name)))
              (t
               (fail-reload "FILE_CHANGED" "~A was not among the files that were allowed: it is new, or of another system, which load-system loads first. Call again for a new decision"
                            name)))))))

(defun call-allowing (allowed function)
  "Calls FUNCTION, which loads systems. Only ALLOWED contents may be loaded, or any file if ALLOWED
  is NIL."
  (let ((*allowed* allowed))
    (check-allowed-systems)
    (funcall function)))

(defun check-allowed-systems ()
  "CHECK-ALLOWED for all allowed files that define systems, because ASDF may read them at any time."
  (when *allowed*
    (loop for name being the hash-keys of (allowed-files *allowed*)
          do (when (uiop:string-suffix-p name ".asd") (check-allowed (sb-ext:parse-native-namestring name))))))
