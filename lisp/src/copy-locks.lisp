;;;; The locks that a copy of the image inherits in the state of the moment: those of the runtime,
;;;; for which a fork waits until nobody holds them, and all others, which are not known. A copy has
;;;; one thread: where it would wait for a lock that another thread of the image held, it would wait
;;;; for ever, and so it leaves.

(in-package :consort)

(defun every-lock ()
  "Every mutex of this image."
  (map-heap :all :type instance-widetag :test (lambda (object) (typep object 'sb-thread:mutex))))

(define-global *runtime-locks* (coerce (every-lock) 'simple-vector)
  "The locks that a fork waits for: those of the runtime, 500 to 900 of them, whatever this version of SBCL calls them.")

(defun add-runtime-locks (locks)
  "Has a fork also wait for those of LOCKS that are mutexes."
  (setf *runtime-locks* (coerce (union (remove-if-not (lambda (value) (typep value 'sb-thread:mutex)) locks)
                                       (coerce *runtime-locks* 'list))
                                'simple-vector)))

(defun own-lock-p (lock)
  "Returns true if LOCK is one of this program's own, which are held for moments."
  (let ((name (sb-thread:mutex-name lock)))
    (and (stringp name) (eql 0 (search "consort" name)))))

(define-global *table-variables* '() "SBCL's own variables whose values are tables or vectors with tables in them.")

(defun tables-of (value)
  "The hash tables that VALUE is or has as elements."
  (typecase value
    (hash-table (list value))
    (simple-vector (remove-if-not #'hash-table-p value))))

(defun note-table-variables ()
  "Looks for SBCL's own tables. Some are made anew when a core is saved, such as that of all
  pathnames, and come with a lock that is used from then on."
  (let ((found '()))
    (dolist (package (remove-if-not #'sb-ext:package-locked-p (list-all-packages)))
      (do-symbols (symbol package)
        (when (and (eq (symbol-package symbol) package) (not (keywordp symbol)) (boundp symbol)
                   (some #'hash-table-p (tables-of (symbol-value symbol))))
          (push symbol found))))
    (setf *table-variables* found)))

(defun locks-of-tables ()
  "The locks of SBCL's own tables now."
  (and (internal-p 'table-lock)
       (loop for variable in *table-variables*
             nconc (map 'list (lambda (table) (table-lock table)) (tables-of (and (boundp variable) (symbol-value variable)))))))

(defun note-locks-before-saving ()
  "Adds the locks that SBCL has made while our own sources were loaded. Our own are none of the
  runtime's: some are held while the compiler's lock is waited for."
  (note-table-variables)
  (add-runtime-locks (locks-of-tables))
  (add-runtime-locks (remove-if #'own-lock-p (every-lock))))

(defun note-locks-of-process ()
  "Adds the locks that SBCL makes anew when a core is saved or a process starts from it, such as the
  one that is held while a thread is made. Those that were there before are nobody's."
  (unless *table-variables* (note-table-variables)) ; not from a core
  (add-runtime-locks (append (and (internal-p 'variables-of-process)
                                  (map 'list #'symbol-value (remove-if-not #'boundp variables-of-process)))
                             (and (internal-p 'thread-session-lock) (list (thread-session-lock thread-session)))
                             (locks-of-tables))))

(declaim (inline held-by-another-p))
(defun held-by-another-p (lock self)
  "Returns true if a thread other than SELF holds LOCK, and not one that waits in a stop. A stopped
  thread held its locks while it called user code, so other user code may find what they guard in
  that state."
  (and (lock-held-p lock)
       (let ((owner (sb-thread:mutex-owner lock)))
         (not (or (eq owner self) (and owner (thread-waiting-p owner)))))))

(defun held-runtime-lock ()
  "A lock of the runtime for which a fork has to wait now; NIL when there is none. Conses nothing."
  (let ((locks *runtime-locks*) (self sb-thread:*current-thread*))
    (declare (simple-vector locks))
    (loop for lock across locks
          when (held-by-another-p lock self) return lock)))

(defun held-runtime-locks ()
  "All locks of the runtime for which a fork has to wait now, without our own unless there is no
  other: a lock that stays held is not to be hidden by one that is held for a moment."
  (let* ((self sb-thread:*current-thread*)
         (held (remove-if-not (lambda (lock) (held-by-another-p lock self)) (coerce *runtime-locks* 'list))))
    (or (remove-if #'own-lock-p held) held)))

(defun free-locks-of-stopped ()
  "In a copy: frees the runtime's locks that were held by threads which waited in a stop, and which
  the copy does not have."
  (let ((locks *runtime-locks*) (self sb-thread:*current-thread*))
    (declare (simple-vector locks))
    (loop for lock across locks
          when (and (lock-held-p lock) (not (eq (sb-thread:mutex-owner lock) self)))
            do (free-lock lock))))

;;; In a copy

(defconstant +locked-out+ 71 "The exit code of a copy that would have waited for ever for a lock.")

(define-global *report-leaving* nil "In a copy: a function of a field's name and words that tells the host why the copy leaves; NIL when it cannot be told.")

(defun holder-gone-p (lock)
  "Returns true if LOCK is held by a thread that this process, a copy, does not have."
  (let ((owner (sb-thread:mutex-owner lock)))
    (cond ((typep owner 'sb-thread:thread) nil)
          (owner t)
          ;; The other thread was about to enter itself as the owner.
          (t (and (lock-held-p lock) (null (rest (sb-thread:list-all-threads))))))))

(defun leave-locked-out (lock)
  "Leaves this copy, which would wait for LOCK for ever, and tells why."
  (let ((tell (shiftf *report-leaving* nil)))
    (when tell (funcall (the function tell) "locked" (princ-to-string (or (sb-thread:mutex-name lock) "without a name")))))
  (exit-process +locked-out+))

(defun leave-when-locked-out (wait lock timeout &rest more)
  "Calls WAIT, SBCL's own function, with its arguments, except in a copy that would wait for ever,
  which leaves. The last of MORE is true if there is a deadline."
  (declare (function wait) (dynamic-extent more))
  (when (and *in-copy* (null timeout) (not (first (last more))) (holder-gone-p lock))
    (leave-locked-out lock))
  (apply wait lock timeout more))

(when (and (internal-p 'wait-for-lock) (internal-p '%encapsulate))
  (encapsulate wait-for-lock 'consort-copies #'leave-when-locked-out))
