;;;; A warm copy is forked and confined before there is a text to check, so that no check waits for
;;;; the fork, the confinement and the first page faults. The host uses a warm copy only if the
;;;; image has not changed since the fork. To find out, it compares the image's `world`, a number
;;;; that changes with the image, with that of the copy.

(in-package :consort)

(defun quiet-p ()
  "Returns true if only requests can change the image: no user code runs, except code that waits in
  a stop, and the user has no thread or timer."
  (and (every #'evaluation-waiting-p *running*)
       (null (sb-ext:list-all-timers))
       (null *timers-of-image*)
       (every #'own-thread-p (sb-thread:list-all-threads))))

(defun world-json (world)
  "WORLD, a value of the counter *WORLD*, as JSON; null if the counter has changed since, or if the
  image may change without a request."
  (or-null (and (quiet-p) (= world (car *world*)) world)))

(define-operation "world" :dispatcher (id params)
  (let ((package (param params "package" 'string :default nil)))
    ;; A warm copy cannot report that the package does not exist. After a null, the host asks for
    ;; the check itself, and the image reports it.
    (object "world" (if (or (null package) (package-called package))
                        (world-json (car *world*))
                        :null))))

;;; In the copy

(defparameter *warming-text*
  (coerce "(in-package :consort)
(defmacro warming-macro (place &body body) `(let ((place ,place)) (declare (ignorable place)) ,@body))
(defun warming-function (list &key (test #'eql) (count 1))
  \"As good as any.\"
  (declare (type fixnum count))
  (let ((table (make-hash-table :test 'equal)))
    (flet ((note (item) (incf (gethash item table 0) count)))
      (loop for item in list do (when (funcall test item item) (note item))))
    (handler-case (warming-macro table (format nil \"~A~%\" (hash-table-count place)))
      (error (condition) (princ-to-string condition)))))
" 'text)
  "A text whose check runs most of the compiler. Its symbols are in the package CONSORT.")

(defun warm-copy (scratch)
  "Checks *WARMING-TEXT*, so that the memory pages that every check writes to are copied in advance.
  Ignores errors. SCRATCH is the copy's scratch directory."
  (let ((directory (merge-pathnames "warm/" scratch)))
    (handler-case
        (with-standard-io-syntax
          (ensure-directories-exist directory)
          (set-check-end 5)
          (with-checks ()
            (run-check (make-check :text *warming-text* :scratch directory :confined t)))
          (uiop:delete-directory-tree directory :validate t))
      (error () nil)))
  (setf *check-end* nil))

(defconstant +madv-hugepage+ 14)
(defconstant +madv-nohugepage+ 15)
(defconstant +madv-populate-write+ 23)
(defconstant +free-run+ (* 128 1024 1024)
  "The number of octets that a copy allocates before its first garbage collection. Most copies end
  before that. A collection writes to pages that are shared with the image, and the system must then
  copy these.")
(defconstant +room-step+ (* 4 1024 1024)
  "The octets of memory that PREPARE-ROOM populates between two calls of its ASKED-P.")

(defun advise-memory (from octets advice)
  "Calls madvise(2) with ADVICE for the OCTETS of memory from the address FROM on. Returns false if
  the call fails."
  (zerop (call-c "madvise" sb-alien:int (sb-alien:unsigned-long from) (sb-alien:unsigned-long octets) (sb-alien:int advice))))

(defun allow-free-run ()
  "Lets this copy allocate +FREE-RUN+ octets without a garbage collection, and asks the system to
  use huge pages for that memory: each causes one page fault instead of 512. If either is
  impossible, the copy works, but is slower."
  (when (and (internal-p 'free-pointer) (room-left-p +free-run+))
    (defer-collection +free-run+)
    #+linux (advise-memory (sap-integer (free-pointer)) +free-run+ +madv-hugepage+)))

(defun room-left-p (octets)
  "Returns true if more than four times OCTETS of the heap are free."
  (< (* 4 octets) (- (sb-ext:dynamic-space-size) (dynamic-usage))))

(defun prepare-room (room asked-p)
  "Populates the next ROOM octets of the free heap with memory pages, step by step, until ASKED-P
  returns true or the system refuses. Does nothing on systems other than Linux."
  (when (and #+linux t #-linux nil (internal-p 'free-pointer) (room-left-p room))
    (let ((start (sap-integer (free-pointer))))
      (loop for done from 0 below room by +room-step+
            until (funcall asked-p)
            while (advise-memory (+ start done) +room-step+ +madv-populate-write+)))))

(defun await-text (params report)
  "Warms this copy, and waits until the host sends the text. Returns the fields of the host's
  message followed by those of PARAMS. Exits if the host closes the socket instead."
  (let* ((descriptor (report-descriptor report))
         (reader (make-line-reader descriptor)))
    (flet ((asked-p () (wait-until-fd-usable descriptor :input 0 nil)))
      (unless (asked-p) (warm-copy (scratch-directory params)))
      (prepare-room (field params "room" 0) #'asked-p))
    (multiple-value-bind (octets start end) (next-line reader)
      (unless (typep octets 'octets) (exit-process 0))
      (append (parse-json octets start end) (rest params)))))
