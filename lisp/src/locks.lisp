;;;; Locks of the runtime that a user's thread may hold for ever: the description of a holder, and
;;;; waits for such locks with a time limit.

(in-package :consort)

(defun thread-words (thread)
  "A description of THREAD for people."
  (cond ((not (typep thread 'sb-thread:thread)) "a thread")
        ((null (sb-thread:thread-name thread)) "an unnamed thread")
        (t (format nil "the thread ~S" (thread-title thread)))))

(defun holding-words (lock)
  "Describes the holder of LOCK, a mutex of the runtime."
  (format nil "~A ~:[holds ~S of the runtime~;compiles or loads, or holds the compiler's lock~*~]"
          (thread-words (sb-thread:mutex-owner lock)) (eq lock world-lock) (sb-thread:mutex-name lock)))

(define-global *package-locks*
    (and (internal-p 'map-heap)
         (map-heap :all :type instance-widetag
                        :test (lambda (object)
                                (and (typep object 'sb-thread:mutex)
                                     (member (sb-thread:mutex-name object) '("package names" "Package Table Lock") :test #'equal)))))
  "The locks that listing all packages may take.")

(defconstant +look-patience+ 2 "The time in seconds for which a look-up waits for a lock of the
  runtime.")

(defun obstacle-to-threads ()
  "Waits until nobody holds the lock that making a thread takes. Returns a string that names the
  holder if that takes too long, and otherwise NIL."
  (when (and (internal-p 'make-thread-lock) (lock-held-p make-thread-lock))
    (if (sb-thread:grab-mutex make-thread-lock :timeout +look-patience+)
        (progn (sb-thread:release-mutex make-thread-lock) nil)
        (holding-words make-thread-lock))))

(defun await-package-locks ()
  "Waits until nobody holds a lock that listing packages takes. Refuses if that takes too long."
  (dolist (lock *package-locks*)
    (when (lock-held-p lock)
      (if (sb-thread:grab-mutex lock :timeout +look-patience+)
          (sb-thread:release-mutex lock)
          (refuse "busy" "Names cannot be looked up now: ~A. If that thread does not finish, interrupt what it runs, end it, or restart the image."
                  (holding-words lock))))))
