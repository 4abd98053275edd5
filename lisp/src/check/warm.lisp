;;;; A warm copy is forked and confined before there is a text to check, so that no check waits for
;;;; the fork, the confinement and the first page faults. It may be used only while the image is
;;;; unchanged: the host asks the image for `world`.

(in-package :consort)

(defun quiet-p ()
  "Returns true if only requests can change the image: no user code runs, except code that waits in
  a stop, and the user has no thread or timer."
  (and (every #'evaluation-waiting-p *running*)
       (null (sb-ext:list-all-timers))
       (null *timers-of-image*)
       (every #'own-thread-p (sb-thread:list-all-threads))))

(defun world-json (world)
  "The `world` of a copy or of the image, or null if it may change at any moment."
  (or-null (and (quiet-p) (= world (car *world*)) world)))

(define-operation "world" :dispatcher (id params)
  (let ((package (param params "package" 'string :default nil)))
    ;; A copy cannot refuse; after a null, the host asks the image, which refuses.
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
  "A text whose check runs most of the compiler; its names are of CONSORT.")

(defun warm-copy (scratch)
  "Checks *WARMING-TEXT*, so that the pages that every check changes are copied in advance. Never
  fails."
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
  before that. A collection changes pages of the image, which are then copied.")
(defconstant +room-step+ (* 4 1024 1024) "The octets of memory that are prepared between two tests
  of whether there is work.")

(defun advise-memory (from octets advice)
  "Gives the system ADVICE about the OCTETS of memory from the address FROM on. False if the system
  does not accept it."
  (zerop (call-c "madvise" sb-alien:int (sb-alien:unsigned-long from) (sb-alien:unsigned-long octets) (sb-alien:int advice))))

(defun allow-free-run ()
  "Lets this copy allocate for a while without a garbage collection, and has the system back the
  memory with large pages, each of which causes one page fault instead of 512. If either is
  impossible, the copy is only slower."
  (when (and (internal-p 'free-pointer) (room-left-p +free-run+))
    (defer-collection +free-run+)
    #+linux (advise-memory (sap-integer (free-pointer)) +free-run+ +madv-hugepage+)))

(defun room-left-p (octets)
  "Returns true if the free heap is large enough to prepare OCTETS of it."
  (< (* 4 octets) (- (sb-ext:dynamic-space-size) (dynamic-usage))))

(defun prepare-room (room asked-p)
  "Prepares ROOM octets of memory, step by step, until ASKED-P returns true."
  (when (and #+linux t #-linux nil (internal-p 'free-pointer) (room-left-p room))
    (let ((start (sap-integer (free-pointer))))
      (loop for done from 0 below room by +room-step+
            until (funcall asked-p)
            while (advise-memory (+ start done) +room-step+ +madv-populate-write+)))))

(defun await-text (params report)
  "Waits, warm, for the text. Returns PARAMS, preceded by the fields of the host's message. Leaves
  when the host closes the socket instead."
  (let* ((descriptor (report-descriptor report))
         (reader (make-line-reader descriptor)))
    (flet ((asked-p () (wait-until-fd-usable descriptor :input 0 nil)))
      (unless (asked-p) (warm-copy (scratch-directory params)))
      (prepare-room (field params "room" 0) #'asked-p))
    (multiple-value-bind (octets start end) (next-line reader)
      (unless (typep octets 'octets) (exit-process 0))
      (append (parse-json octets start end) (rest params)))))
