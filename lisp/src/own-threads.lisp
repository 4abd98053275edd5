;;;; Threads of Consort that the user's code may not end or interrupt: without them the next request
;;;; would not be answered. What ends or interrupts all threads, as programs do with those that they
;;;; have left behind, goes past them.

(in-package :consort)

(define-condition own-thread-interrupted (sb-thread:interrupt-thread-error)
  ((name :initarg :name :reader own-thread-name))
  (:documentation
   "The user's code wanted to interrupt a thread of Consort's. A subtype of the error about threads
   that have ended, which code that interrupts all threads must expect.")
  (:report (lambda (condition stream)
             (format stream "INTERRUPT-THREAD is refused for the thread ~S: it is Consort's, and every session of the image needs it. ~
                             Interrupt the threads that your own code has made."
                     (own-thread-name condition)))))

(defun kept-from-user-p (thread)
  "Returns true if THREAD is one of ours that is not this one, and the call that would end or
  interrupt it does not come from Consort or a timer."
  (and (not *interrupts-any-thread*)
       (not *in-copy*)
       (typep thread 'sb-thread:thread)
       (sb-thread:thread-alive-p thread)
       (not (eq thread sb-thread:*current-thread*))
       (own-thread-p thread)))

(defun runs-user-code-p (thread)
  "Returns true if THREAD, one of ours, is in an evaluation."
  (some (lambda (evaluation)
          (and (eq (evaluation-thread evaluation) thread) (eq (evaluation-state evaluation) :running)))
        *running*))

(defparameter *threads-were-kept*
  "TERMINATE-THREAD left the threads of Consort running: every session of the image needs them. Other threads were ended."
  "The warning in the evaluation that wanted to end some.")

(defun warn-that-threads-were-kept ()
  "Warns once in an evaluation: there are several such threads."
  (unless (and *evaluation*
               (find *threads-were-kept* (evaluation-warnings *evaluation*) :key (lambda (warning) (field warning "message")) :test #'equal))
    (warn "~A" *threads-were-kept*)))

(defun keep-own-threads ()
  "From now on, the user's code cannot end or interrupt threads of ours, but for one in which an
  evaluation runs, which it can interrupt."
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
