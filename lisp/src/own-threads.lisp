;;;; Threads of Consort that the user's code may not end or interrupt, because the next request
;;;; would otherwise not be answered. Code that ends or interrupts all threads, as programs do to
;;;; clean up, does not affect them.

(in-package :consort)

(define-condition own-thread-interrupted (sb-thread:interrupt-thread-error)
  ((name :initarg :name :reader own-thread-name))
  (:documentation
   "Signalled when the user's code tries to interrupt a thread of Consort's. This is a subtype of
   the error about threads that have ended, because code that interrupts all threads must expect
   that error.")
  (:report (lambda (condition stream)
             (format stream "INTERRUPT-THREAD is refused for the thread ~S: it is Consort's, and every session of the image needs it. ~
                             Interrupt the threads that your own code has made."
                     (own-thread-name condition)))))

(defun kept-from-user-p (thread)
  "Returns true if THREAD is one of Consort's and not this one, and the call that would end or
  interrupt it does not come from Consort or a timer."
  (and (not *interrupts-any-thread*)
       (not *in-copy*)
       (typep thread 'sb-thread:thread)
       (sb-thread:thread-alive-p thread)
       (not (eq thread sb-thread:*current-thread*))
       (own-thread-p thread)))

(defun runs-user-code-p (thread)
  "Returns true if THREAD, one of Consort's, is in an evaluation."
  (some (lambda (evaluation)
          (and (eq (evaluation-thread evaluation) thread) (eq (evaluation-state evaluation) :running)))
        *running*))

(defparameter *threads-were-kept*
  "TERMINATE-THREAD left the threads of Consort running: every session of the image needs them. Other threads were ended."
  "The warning in the evaluation that tried to end some of these threads.")

(defun warn-that-threads-were-kept ()
  "Warns only once in an evaluation, because there are several such threads."
  (unless (and *evaluation*
               (find *threads-were-kept* (evaluation-warnings *evaluation*) :key (lambda (warning) (field warning "message")) :test #'equal))
    (warn "~A" *threads-were-kept*)))

(defun keep-own-threads ()
  "From now on, the user's code cannot end or interrupt threads of Consort's. Only a thread in which
  an evaluation runs can be interrupted."
  (encapsulate 'sb-thread:interrupt-thread 'consort
               (lambda (interrupt-thread thread function)
                 (declare (function interrupt-thread))
                 (if (and (kept-from-user-p thread) (not (runs-user-code-p thread)))
                     (error 'own-thread-interrupted :thread thread :name (thread-title thread))
                     (funcall interrupt-thread thread function))))
  (encapsulate 'sb-thread:terminate-thread 'consort
               (lambda (terminate-thread thread)
                 (declare (function terminate-thread))
                 (if (kept-from-user-p thread)
                     (warn-that-threads-were-kept)
                     (funcall terminate-thread thread)))))
