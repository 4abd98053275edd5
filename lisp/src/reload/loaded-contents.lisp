;;;; The contents of source files when they were compiled or loaded in this image. With a definition
;;;; SBCL keeps the second in which its file was last written, which another text can have too: one
;;;; that took the place of the first within that second, or whose time was set.

(in-package :consort)

(defconstant +source-limit+ 16000000 "Octets of a source file that are read.")
(defconstant +contents-kept+ 50000 "The maximum number of contents that are kept; none is dropped for a newer one.")

(define-global *loaded-contents* (make-hash-table :test #'equal :synchronized t)
  "From (NAME . WRITTEN), the native true name of a file and the Unix time in seconds of its last
  write, to the SHA-256 of what was loaded of it last; NIL when that is not known.")

(define-global *compiled-contents* (make-hash-table :test #'equal :synchronized t)
  "From the facts of a fasl that was compiled in this image to the FILE-STATE of its source then.")

(defun keep-content (key content table)
  (when (or (nth-value 1 (gethash key table)) (< (hash-table-count table) +contents-kept+))
    (setf (gethash key table) content)))

(defun note-loaded (name state known)
  "Records that the source file NAME was loaded, whose content is that of STATE, or is not known."
  (keep-content (cons name (second (file-state-facts state))) (and known (file-state-digest state)) *loaded-contents*))

(defun content-loaded (name written)
  "The SHA-256 of what was loaded of the file NAME as it was last written at WRITTEN; NIL when it is
  not known."
  (values (gethash (cons name written) *loaded-contents*)))

(defun state-of-source (name)
  "The FILE-STATE of the source file NAME; NIL when it cannot be read or is too long."
  (let ((facts (and name (not *in-copy*) (ignore-errors (file-facts name)))))
    (and facts (<= (first facts) +source-limit+) (state-of-file name))))

(defun same-digest-p (state other)
  (and state other (equal (file-state-digest state) (file-state-digest other))))

(defun change-time (name)
  "The time at which the file NAME, or a fact about it, was last changed, in nanoseconds of Unix time;
  in whole seconds where the system does not tell more. Only the system sets it."
  (or #+linux
      (let ((octets (sb-ext:string-to-octets name :null-terminate t))
            (facts (make-array 32 :element-type '(unsigned-byte 64) :initial-element 0)))
        (with-pinned-objects (octets facts)
          (let ((here (ldb (byte 64 0) -100)) (change #x80))
            (when (and *machine*
                       (zerop (system-call (number-here '(statx 332 291)) here (sap-integer (vector-sap octets)) 0 change
                                           (sap-integer (vector-sap facts)))))
              ;; struct statx has the time at 96: 64 bits of seconds, 32 of nanoseconds.
              (+ (* 1000000000 (aref facts 12)) (ldb (byte 32 0) (aref facts 13)))))))
      (* 1000000000 (third (file-facts name)))))

(defun facts-of-fasl (fasl)
  "Returns facts about the file FASL, a native name, that moving it does not change."
  (destructuring-bind (size written changed inode) (file-facts fasl)
    (declare (ignore changed))
    (list size written inode)))

(defun note-compiled (fasl name before)
  "Records that FASL was compiled from the source file NAME, which had the FILE-STATE BEFORE before
  that, unless it has changed since."
  (when (same-digest-p before (current-state name before))
    (ignore-errors (keep-content (facts-of-fasl (native-true-name fasl)) before *compiled-contents*))))

(defun with-directory (file)
  "FILE, what LOAD or COMPILE-FILE is given, with the directory of *DEFAULT-PATHNAME-DEFAULTS*."
  (if (streamp file) file (ignore-errors (merge-pathnames file))))

(defun call-noting-compilation (source function &aux (source (with-directory source)))
  "Calls FUNCTION, which compiles the file SOURCE and returns the name of the fasl, and records the
  source's content with that."
  (multiple-value-bind (name before)
      (with-own-settings () (let ((name (native-true-name source))) (values name (state-of-source name))))
    (let ((values (multiple-value-list (funcall (the function function)))))
      (when before (with-own-settings () (note-compiled (first values) name before)))
      (values-list values))))

(defun compiled-content (fasl name)
  "Two values: the FILE-STATE of the source file NAME of FASL, a native name, and whether that is what
  FASL was compiled from: it was compiled here, or NAME was last changed before FASL was."
  (let ((here (ignore-errors (gethash (facts-of-fasl fasl) *compiled-contents*)))
        (now (state-of-source name)))
    (cond (here (values here t))
          (now (values now (ignore-errors (< (change-time name) (change-time fasl))))))))

(declaim (ftype function fasl-p file-to-load source-of-fasl))
(defun content-to-load (file)
  "Three values about FILE, what LOAD is given: the native true name of its source, that file's
  FILE-STATE, and for a fasl whether that is what it was compiled from, else :SOURCE. NIL where there
  is no such file."
  (let* ((path (and (not *in-copy*)
                    (if (typep file 'file-stream) (ignore-errors (probe-file (pathname file))) (file-to-load file))))
         (fasl (and path (not (irregular-p path)) (ignore-errors (fasl-p path))))
         (name (native-true-name (if fasl (ignore-errors (source-of-fasl path)) path))))
    (if (and name fasl)
        (multiple-value-bind (state compiled) (compiled-content (sb-ext:native-namestring path) name)
          (values name state compiled))
        (values name (state-of-source name) :source))))

(defun call-noting-load (file function &aux (file (with-directory file)))
  "Calls FUNCTION, which loads FILE, what LOAD is given, and records the content of its source. When
  it is left early, the image has a part of it."
  (multiple-value-bind (name before from) (with-own-settings () (content-to-load file))
    (let ((completed nil))
      (unwind-protect (multiple-value-prog1 (funcall (the function function))
                        (setf completed t))
        (when before
          (with-own-settings ()
            (note-loaded name before
                         (and completed
                              (if (eq from :source) (same-digest-p before (current-state name before)) from)))))))))
