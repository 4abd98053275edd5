;;;; A checkpoint: a process that waits before a form of the text. It forks processes that check an
;;;; edit of a later form, or that wait before a later form.

(in-package :consort)

(declaim (ftype function before-form-of-edit after-form-of-edit before-form-of-mover after-form-of-mover))

(defun await-fork (chain next)
  "Waits as a checkpoint, and forks whenever the keeper requests it. Returns only in a process that
  was forked. NEXT is the process id of the next process in the chain; NIL in the last."
  (let ((reader (chain-reader chain)))
    (loop
      (let ((message (next-message reader)))
        (cond ((null message) (exit-process 0))
              ((field message "quit")
               ;; The processes end from the last to the first, so that each is reaped by its
               ;; parent.
               (when next (wait-for-copy next))
               (exit-process 0))
              ((field message "fork")
               (let ((pid (chain-fork chain)))
                 (cond ((null pid) (send-to-keeper chain "reaped" -1))
                       ((zerop pid) (return))
                       (t
                        (multiple-value-bind (code signal) (wait-for-copy pid)
                          ;; The process that has ended has handled the input that was read ahead
                          ;; before the fork.
                          (setf reader (make-line-reader (line-reader-fd reader))
                                (chain-reader chain) reader)
                          (send-to-keeper chain "reaped" (or code signal -1))))))))))))

(defun begin-work (chain)
  "Waits, in a process that a checkpoint has forked, for the order that assigns its work."
  (let* ((message (next-message (chain-reader chain)))
         (edit (and message (field message "edit")))
         (target (and message (field message "move"))))
    ;; Findings go to the keeper, and nothing goes to the host.
    (setf (check-emit (chain-check chain)) (constantly nil)
          (check-at (chain-check chain)) (constantly nil))
    ;; A collection would write to, and so copy, pages that the processes share.
    (when (room-left-p +free-run+) (defer-collection +free-run+))
    (cond (edit
           (unless (forbid-fork) (exit-process 70))
           (setf (chain-role chain) :grandchild
                 (chain-edit chain) edit)
           (set-check-end (chain-deadline chain)))
          (target
           (setf (chain-role chain) :mover
                 (chain-target chain) target)
           (set-check-end (chain-deadline chain)))
          (t (exit-process 0)))))

(defun wait-as-checkpoint (chain next)
  "Waits as a checkpoint from now on. Returns only in a process that was forked for work."
  (setf (chain-role chain) :checkpoint
        *check-end* nil)
  (stop-alarms)
  (close-report)
  (await-fork chain next)
  (begin-work chain))

(defun make-next-checkpoint (chain)
  "Forks, if the system allows that. The parent becomes a checkpoint, and the child continues as the
  runner. Returns true only in a process that the checkpoint forked for work."
  (let ((pipe (new-pipe)) (parent (sb-posix:getpid)) (pid (chain-fork chain)))
    (cond ((null pid) nil)
          ((plusp pid)
           (setf (chain-reader chain) (make-line-reader (pipe-reader pipe)))
           (wait-as-checkpoint chain pid)
           t)
          (t
           (push (make-checkpoint (chain-index chain) parent pipe) (chain-checkpoints chain))
           nil))))

(defun checkpoint-due-p (chain start)
  "Returns true if a checkpoint is to be made before the form that begins at START."
  (and (< start (length (check-text (chain-check chain))))
       (< (length (chain-checkpoints chain)) (chain-limit chain))
       (or (null (chain-checkpoints chain))
           ;; The run time of this process is counted from the fork that made the last checkpoint.
           (>= (/ (get-internal-run-time) internal-time-units-per-second) (chain-spacing chain)))))

(defun begin-form-record (chain)
  (setf (chain-uses-before chain) (check-undefined (chain-check chain)))
  (begin-recording (chain-recorder chain)))

(defun before-form-of-chain (chain start)
  "The hook before each form. Reading the form begins at START. Returns the offset at which reading
  the next form begins."
  (let ((start (ecase (chain-role chain)
                 (:runner
                  (if (and (checkpoint-due-p chain start)
                           (progn (flush-report (chain-report chain)) (make-next-checkpoint chain)))
                      (begin-role chain start)
                      start))
                 (:mover (before-form-of-mover chain start))
                 (:grandchild (before-form-of-edit chain start)))))
    (begin-form-record chain)
    start))

(defun begin-role (chain start)
  "Begins the work for which this process was forked. Returns the offset at which reading the next
  form begins."
  (ecase (chain-role chain)
    (:mover
     (reopen *reading* start)           ; the runner shares the file offset
     (before-form-of-mover chain start))
    (:grandchild (begin-edit chain))))

(defun after-form-of-chain (chain start end state)
  "The hook after each form that was read from START to END, and at the end of the text. STATE says
  whether the form could be read."
  (let ((recorder (chain-recorder chain)) (check (chain-check chain)))
    (cond ((eq state :end)
           (setf *form-recorder* nil)
           (ecase (chain-role chain)
             (:runner)
             (:grandchild (end-of-edited-text chain start))
             (:mover (exit-process 70))))
          (t
           (let ((record (make-record check recorder start end state (chain-uses-before chain))))
             (ecase (chain-role chain)
               (:runner
                (push record (chain-records chain))
                (pushnew *package* (chain-packages chain)))
               (:mover)
               (:grandchild
                (when (>= (chain-index chain) (field (chain-edit chain) "first"))
                  (send-to-keeper chain "form" (record-json record)))))
             (incf (chain-index chain)))))))

;;; The checkpoint that follows the edits

(defun before-form-of-mover (chain start)
  "Waits as a checkpoint if the target form is next. Returns the offset at which reading the next
  form begins."
  (loop while (and (eq (chain-role chain) :mover) (>= (chain-index chain) (chain-target chain)))
        do (setf (chain-reader chain) (make-line-reader (pipe-reader (chain-mover-pipe chain))))
           (send-to-keeper chain "parked" (chain-index chain))
           (wait-as-checkpoint chain nil))
  (if (eq (chain-role chain) :grandchild)
      (begin-edit chain)
      start))

;;; An edit

(defun spliced (text cut old-end insert)
  "TEXT with the characters from CUT to OLD-END replaced by INSERT."
  (declare (type text text insert) (type fixnum cut old-end) (optimize speed))
  (let ((new (make-string (+ (- (length text) (- old-end cut)) (length insert)))))
    (replace new text :end2 cut)
    (replace new insert :start1 cut)
    (replace new text :start1 (+ cut (length insert)) :start2 old-end)
    new))

(defun begin-edit (chain)
  "Replaces the old text by the new one, and continues to read where the next form began in the old
  text. Returns the offset at which reading the next form begins."
  (let* ((edit (chain-edit chain)) (check (chain-check chain)) (reading *reading*)
         (text (check-text check)) (octets (chain-octets chain))
         (start (field edit "start")) (cut (field edit "cut")) (old-end (field edit "old_end"))
         (insert (coerce (field edit "insert") 'text))
         (path (merge-pathnames (format nil "edit-~D.lisp" (sb-posix:getpid)) (check-scratch check))))
    (let* ((first (utf-8-length text start))
           (to-cut (+ first (utf-8-length text cut start)))
           (after (+ to-cut (utf-8-length text old-end cut)))
           (inserted (sb-ext:string-to-octets insert :external-format :utf-8))
           (descriptor (sb-posix:open path (logior sb-posix:o-wronly sb-posix:o-creat sb-posix:o-trunc) #o600)))
      (unless (and (write-octets descriptor octets first to-cut)
                   (write-octets descriptor (coerce inserted 'octets) 0 (length inserted))
                   (write-octets descriptor octets after (length octets)))
        (exit-process 70))
      (sb-posix:close descriptor))
    (setf (check-text check) (spliced text cut old-end insert)
          (reading-file reading) path
          (reading-first reading) start)
    (when (>= (check-forgotten-to check) old-end)
      (incf (check-forgotten-to check) (- (length insert) (- old-end cut))))
    (reopen reading start)
    (before-form-of-edit chain (skip-blanks (check-text check) start))))

(defun leave-edit (chain)
  (ignore-errors (sb-posix:unlink (reading-file *reading*)))
  (send-to-keeper chain "left" :true)
  (exit-process 0))

(defun await-order (chain)
  "Waits for the next order of the keeper: to continue up to another place, or to stop."
  (let* ((message (next-message (chain-reader chain)))
         (go-on (and message (field message "go"))))
    (cond (go-on (setf (chain-edit chain) (list* :object "until" (field message "until" :null) (rest (chain-edit chain)))))
          (t (leave-edit chain)))))

(defun before-form-of-edit (chain start)
  "The hook between two forms of an edited text, before the one that begins at START. At the end of
  the part that the keeper has ordered, asks the keeper whether to continue. Returns START."
  ;; Between two forms, a message can only be the order to stop.
  (when (message-waiting-p (chain-reader chain)) (leave-edit chain))
  (loop for until = (field (chain-edit chain) "until" :null)
        while (or (>= start (length (check-text (chain-check chain))))
                  (and (integerp until) (>= start until)))
        do (when (>= start (length (check-text (chain-check chain)))) (end-of-edited-text chain start))
           (send-to-keeper chain "boundary" start)
           (await-order chain))
  start)

(defun end-of-edited-text (chain start)
  "Reports to the keeper that the edited text has no form at or after START, and ends the process."
  (send-to-keeper chain "boundary" start "end" :true)
  (next-message (chain-reader chain))
  (leave-edit chain))
