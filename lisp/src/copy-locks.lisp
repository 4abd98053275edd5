;;;; The locks that a copy of the image inherits, in the state that they have at the fork. A copy
;;;; has one thread, so it would wait for ever for a lock that another thread of the image held. A
;;;; fork therefore waits until no other thread holds a lock of the runtime. All other locks, such
;;;; as those of user code, are not waited for: a copy that would have to wait for one exits.

(in-package :consort)

(defun every-lock ()
  "Every mutex of this image."
  (map-heap :all :type instance-widetag :test (lambda (object) (typep object 'sb-thread:mutex))))

(define-global *runtime-locks* (coerce (every-lock) 'simple-vector)
  "A vector of the locks that a fork waits for: the 500 to 900 mutexes in the heap when this file
  is loaded, and those that are added later. Most are the runtime's. They are found in the heap
  because their names depend on the version of SBCL.")

(defun add-runtime-locks (locks)
  "Adds the mutexes among the objects LOCKS to the locks that a fork waits for."
  (setf *runtime-locks* (coerce (union (remove-if-not (lambda (value) (typep value 'sb-thread:mutex)) locks)
                                       (coerce *runtime-locks* 'list))
                                'simple-vector)))

(defun own-lock-p (lock)
  "Returns true if LOCK is one of Consort's own (by its name), which are held only briefly."
  (let ((name (sb-thread:mutex-name lock)))
    (and (stringp name) (eql 0 (search "consort" name)))))

(define-global *table-variables* '()
  "The variables of SBCL whose values are hash tables or vectors that contain hash tables.")

(defun tables-of (value)
  "A sequence of the hash tables of VALUE: VALUE itself if it is one, or those among its elements if
  it is a simple vector. NIL for other values."
  (typecase value
    (hash-table (list value))
    (simple-vector (remove-if-not #'hash-table-p value))))

(defun note-table-variables ()
  "Sets *TABLE-VARIABLES*. The variables are kept and not the tables, because SBCL replaces some
  tables when a core is saved, such as that of all pathnames. A new table has a new lock."
  (let ((found '()))
    (dolist (package (remove-if-not #'sb-ext:package-locked-p (list-all-packages)))
      (do-symbols (symbol package)
        (when (and (eq (symbol-package symbol) package) (not (keywordp symbol)) (boundp symbol)
                   (some #'hash-table-p (tables-of (symbol-value symbol))))
          (push symbol found))))
    (setf *table-variables* found)))

(defun locks-of-tables ()
  "The locks of the hash tables that the *TABLE-VARIABLES* have now."
  (and (internal-p 'table-lock)
       (loop for variable in *table-variables*
             nconc (map 'list (lambda (table) (table-lock table)) (tables-of (and (boundp variable) (symbol-value variable)))))))

(defun note-locks-before-saving ()
  "Adds the locks that SBCL has made while Consort's sources were loaded. Consort's own locks are
  not added: a thread may hold one of them while it waits for the compiler's lock."
  (note-table-variables)
  (add-runtime-locks (locks-of-tables))
  (add-runtime-locks (remove-if #'own-lock-p (every-lock))))

(defun note-locks-of-process ()
  "Adds the locks that SBCL replaces when a core is saved or a process starts from a core, such as
  the one that is held while a thread is made. The locks that they replace stay on the list; no
  thread holds them."
  (unless *table-variables* (note-table-variables)) ; this process was not started from a core
  (add-runtime-locks (append (and (internal-p 'variables-of-process)
                                  (map 'list #'symbol-value (remove-if-not #'boundp variables-of-process)))
                             (and (internal-p 'thread-session-lock) (list (thread-session-lock thread-session)))
                             (locks-of-tables))))

(declaim (inline held-by-another-p))
(defun held-by-another-p (lock self)
  "Returns true if a thread holds LOCK that is not SELF and does not wait in a stop. A thread that
  waits in a stop held its locks while it called user code, so the data that they guard is in a
  state that user code may find."
  (and (lock-held-p lock)
       (let ((owner (sb-thread:mutex-owner lock)))
         (not (or (eq owner self) (and owner (thread-waiting-p owner)))))))

(defun held-runtime-lock ()
  "A lock of the runtime for which a fork has to wait now; NIL if there is none. Does not allocate."
  (let ((locks *runtime-locks*) (self sb-thread:*current-thread*))
    (declare (simple-vector locks))
    (loop for lock across locks
          when (held-by-another-p lock self) return lock)))

(defun held-runtime-locks ()
  "All locks of the runtime for which a fork has to wait now. Consort's own are left out unless
  there is no other, because they are held only briefly and explain no long wait."
  (let* ((self sb-thread:*current-thread*)
         (held (remove-if-not (lambda (lock) (held-by-another-p lock self)) (coerce *runtime-locks* 'list))))
    (or (remove-if #'own-lock-p held) held)))

(defun free-locks-of-stopped ()
  "Frees, in a copy, the runtime's locks that threads of the image held which waited in a stop. The
  copy does not have these threads."
  (let ((locks *runtime-locks*) (self sb-thread:*current-thread*))
    (declare (simple-vector locks))
    (loop for lock across locks
          when (and (lock-held-p lock) (not (eq (sb-thread:mutex-owner lock) self)))
            do (free-lock lock))))

;;; In a copy

(defconstant +locked-out+ 71 "The exit code of a copy that would have waited for ever for a lock.")

(define-global *report-leaving* nil
  "In a copy: a function that tells the host why the copy exits. Its arguments are the name of a
  field and a string, its value. NIL if there is no connection to tell it by, or if it was called.")

(defun holder-gone-p (lock)
  "Returns true if LOCK is held by a thread that this process, a copy, does not have."
  (let ((owner (sb-thread:mutex-owner lock)))
    (cond ((typep owner 'sb-thread:thread) nil)
          (owner t)
          ;; No owner is recorded: the holder had just taken the lock when the image was copied.
          (t (and (lock-held-p lock) (null (rest (sb-thread:list-all-threads))))))))

(defun leave-locked-out (lock)
  "Tells the host that this copy would wait for LOCK for ever, and exits with code +LOCKED-OUT+."
  (let ((tell (shiftf *report-leaving* nil)))
    (when tell (funcall (the function tell) "locked" (princ-to-string (or (sb-thread:mutex-name lock) "without a name")))))
  (exit-process +locked-out+))

(defun leave-when-locked-out (wait lock timeout &rest more)
  "Calls WAIT, SBCL's own function that waits for LOCK, with the other arguments. A copy that would
  wait for ever exits instead. TIMEOUT is NIL if there is none. The last of MORE is true if there is
  a deadline."
  (declare (function wait) (dynamic-extent more))
  (when (and *in-copy* (null timeout) (not (first (last more))) (holder-gone-p lock))
    (leave-locked-out lock))
  (apply wait lock timeout more))

(when (and (internal-p 'wait-for-lock) (internal-p '%encapsulate))
  (encapsulate wait-for-lock 'consort-copies #'leave-when-locked-out))
