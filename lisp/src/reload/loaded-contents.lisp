;;;; The contents of source files when they were compiled or loaded in this image. SBCL keeps with a
;;;; definition the second in which its file was last written. Another text can have the same
;;;; second, if it replaced the first one within that second, or if its time was set.

(in-package :consort)

(defconstant +source-limit+ 16000000 "The maximum number of octets of a source file that is read.")
(defconstant +contents-kept+ 50000 "The maximum number of contents that are kept. None is removed
  for a newer one.")

(define-global *loaded-contents* (make-hash-table :test #'equal :synchronized t)
  "Maps (NAME . WRITTEN), the native true name of a file and the Unix time in seconds of its last
  write, to the SHA-256 of its content that was last loaded, or to NIL if that is not known.")

(define-global *last-loaded* (make-hash-table :test #'equal :synchronized t)
  "Maps the native true name of a source file to the SHA-256 of its content that was last loaded.")

(defvar *before-loads* nil
  "While a session evaluates: a list of one element. It is the snapshot from before the session
  first loaded a file whose other text had been loaded; NIL until then.")

(define-global *compiled-contents* (make-hash-table :test #'equal :synchronized t)
  "Maps the facts of a fasl that was compiled in this image to the SOURCE-STATE that its source had
  then.")

(defun keep-content (key content table)
  (when (or (nth-value 1 (gethash key table)) (< (hash-table-count table) +contents-kept+))
    (setf (gethash key table) content)))

(defun note-loaded (name state known)
  "Records that the source file NAME was loaded. KNOWN is true if the loaded content is that of
  STATE."
  (keep-content name (file-state-digest state) *last-loaded*)
  (keep-content (cons name (second (file-state-facts state))) (and known (file-state-digest state)) *loaded-contents*))

(declaim (ftype function take-snapshot))
(defun note-before-load (name state)
  "Takes the snapshot of *BEFORE-LOADS* if it was not taken yet and the source file NAME, now in
  STATE, was loaded with another text before."
  (let ((last (gethash name *last-loaded*)))
    (when (and *before-loads* (null (first *before-loads*)) last (not (equal last (file-state-digest state))))
      (setf (first *before-loads*) (take-snapshot)))))

(defun content-loaded (name written)
  "The SHA-256 of the content that was last loaded of the file NAME as written at WRITTEN; NIL if it
  is not known."
  (values (gethash (cons name written) *loaded-contents*)))

(defun times-of-file (name)
  "Two values about the file NAME, in nanoseconds of Unix time, which only the system sets. The
  first is the time when the file, or a fact about it, was last changed, in whole seconds if the
  system does not report more. The second is the time when the file was made, or NIL if the system
  does not report it."
  #+linux
  (let ((octets (sb-ext:string-to-octets name :null-terminate t))
        (facts (make-array 32 :element-type '(unsigned-byte 64) :initial-element 0))
        (here (ldb (byte 64 0) -100)) (change #x80) (birth #x800))
    ;; struct statx begins with the mask of the fields that it has. A time consists of 64 bits of
    ;; seconds and 32 bits of nanoseconds.
    (flet ((time-at (octet)
             (let ((word (floor octet 8)))
               (+ (* 1000000000 (aref facts word)) (ldb (byte 32 0) (aref facts (1+ word)))))))
      (with-pinned-objects (octets facts)
        (when (and *machine*
                   (zerop (system-call (number-here '(statx 332 291)) here (sap-integer (vector-sap octets)) 0
                                       (logior change birth) (sap-integer (vector-sap facts)))))
          (return-from times-of-file
            (values (time-at 96) (and (logtest birth (ldb (byte 32 0) (aref facts 0))) (time-at 80))))))))
  (values (* 1000000000 (third (file-facts name))) nil))

(defun change-time (name)
  (values (times-of-file name)))

(defconstant +tick+ 20000000
  "A number of nanoseconds greater than the step of the kernel's clock for files. Two changes within
  that time can have the same time.")

(defun settled-change-time (name)
  "The CHANGE-TIME of the file NAME if every later change will have another one. Waits for that if
  the file was just written. NIL if it was written within the last second and the system reports
  only whole seconds."
  (loop repeat 8
        do (let ((time (change-time name)))
             (multiple-value-bind (second microsecond) (sb-ext:get-time-of-day)
               (when (< (+ time (if (zerop (mod time 1000000000)) 1000000000 +tick+))
                        (+ (* 1000000000 second) (* 1000 microsecond)))
                 (return time))))
           (sleep 0.005)))

(defstruct (source-state (:include file-state) (:constructor make-source-state (digest facts second change)))
  "The FILE-STATE of a source file, with the SETTLED-CHANGE-TIME of the file before it was read."
  (change nil :type (or null integer)))

(defun state-of-source (name)
  "The SOURCE-STATE of the source file NAME; NIL if the file cannot be read or is too long."
  (let ((facts (and name (not *in-copy*) (ignore-errors (file-facts name)))))
    (when (and facts (<= (first facts) +source-limit+))
      (let* ((change (ignore-errors (settled-change-time name))) (state (state-of-file name)))
        (and state
             (make-source-state (file-state-digest state) (file-state-facts state) (file-state-second state) change))))))

(defun unchanged-since-p (name state)
  "Returns true if nothing has written the source file NAME since it had the SOURCE-STATE STATE, not
  even the same text."
  (and (source-state-change state)
       (ignore-errors
        (and (equal (file-facts name) (file-state-facts state)) (eql (change-time name) (source-state-change state))))))

(defun facts-of-content (facts)
  "Returns those of the FILE-FACTS of a file that do not change with its permissions or names."
  (destructuring-bind (size written changed inode) facts
    (declare (ignore changed))
    (list size written inode)))

(defun written-since-p (name state)
  "Returns true if it is known that something has written the source file NAME since it had the
  SOURCE-STATE STATE. A change of its permissions or of the number of its names is no such write."
  (ignore-errors
   (cond ((not (equal (facts-of-content (file-facts name)) (facts-of-content (file-state-facts state)))) t)
         ((and (source-state-change state) (/= (change-time name) (source-state-change state)))
          (not (same-content-p name state))))))

(defun facts-of-fasl (fasl)
  "Returns those facts about the file FASL, a native name, that do not change when it is moved."
  (facts-of-content (file-facts fasl)))

(defun note-compiled (fasl name before)
  "Records that FASL was compiled from the source file NAME, which had the SOURCE-STATE BEFORE before
  that. If it was written since, nothing is known of FASL, not even what was known of an earlier file
  with the same facts."
  (ignore-errors
   (let ((facts (facts-of-fasl (native-true-name fasl))))
     (if (unchanged-since-p name before)
         (keep-content facts before *compiled-contents*)
         (remhash facts *compiled-contents*)))))

(defun with-directory (file)
  "FILE, an argument of LOAD or COMPILE-FILE, with the directory of *DEFAULT-PATHNAME-DEFAULTS*."
  (if (streamp file) file (ignore-errors (merge-pathnames file))))

(defun call-noting-compilation (source function &aux (source (with-directory source)))
  "Calls FUNCTION, which compiles the file SOURCE and returns the name of the fasl. Records the
  source's content with the fasl."
  (multiple-value-bind (name before)
      (with-own-settings () (let ((name (native-true-name source))) (values name (state-of-source name))))
    (let ((values (multiple-value-list (funcall (the function function)))))
      (when before (with-own-settings () (note-compiled (first values) name before)))
      (values-list values))))

(defun compiled-content (fasl name)
  "Two values: the SOURCE-STATE of the source file NAME of FASL, a native name, and true if FASL was
  compiled from that content. That is known if FASL was compiled here, or if NAME was last changed
  before FASL was made, since the compiler makes the fasl before it reads the source. If the system
  does not report when FASL was made, the time when FASL was changed is used."
  (let ((here (ignore-errors (gethash (facts-of-fasl fasl) *compiled-contents*)))
        (now (state-of-source name)))
    (cond (here (values here t))
          (now (values now (ignore-errors
                            (multiple-value-bind (changed made) (times-of-file fasl)
                              (< (change-time name) (or made changed)))))))))

(declaim (ftype function fasl-p file-to-load source-of-fasl))
(defun content-to-load (file)
  "Three values about FILE, an argument of LOAD: the native true name of its source; that file's
  SOURCE-STATE; and, for a fasl, true if it was compiled from that content, otherwise :SOURCE. NIL
  if there is no such file."
  (let* ((path (and (not *in-copy*)
                    (if (typep file 'file-stream) (ignore-errors (probe-file (pathname file))) (file-to-load file))))
         (fasl (and path (not (irregular-p path)) (ignore-errors (fasl-p path))))
         (name (native-true-name (if fasl (ignore-errors (source-of-fasl path)) path))))
    (if (and name fasl)
        (multiple-value-bind (state compiled) (compiled-content (sb-ext:native-namestring path) name)
          (values name state compiled))
        (values name (state-of-source name) :source))))

(defun call-noting-load (file function &aux (file (with-directory file)))
  "Calls FUNCTION, which loads FILE, an argument of LOAD, and records the content of its source. If
  the load is left early, the image has only a part of the content, which then counts as unknown."
  (multiple-value-bind (name before from) (with-own-settings () (content-to-load file))
    (when before (with-own-settings () (note-before-load name before)))
    (let ((completed nil))
      (unwind-protect (multiple-value-prog1 (funcall (the function function))
                        (setf completed t))
        (when before
          (with-own-settings ()
            (note-loaded name before
                         (and completed
                              (if (eq from :source) (unchanged-since-p name before) from)))))))))
