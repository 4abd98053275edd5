;;;; `status`: facts about the image. It answers while Lisp loops, so nothing here takes a lock that
;;;; user code may hold.

(in-package :consort)

(defun milliseconds-since (moment)
  (round (* 1000 (- (get-internal-real-time) moment)) internal-time-units-per-second))

(define-global *systems* '() "The names of the loaded systems when ASDF was last asked.")

(defun ask-for-systems ()
  "Asks ASDF for the loaded systems. Its generic functions may wait for the compiler's lock."
  (setf *systems* (sort (copy-list (asdf:already-loaded-systems)) #'string<)))

(define-global *systems-thread* nil "The thread that last asked ASDF for the loaded systems.")

(defun systems-soon ()
  "Returns the names of the loaded systems, or the last known names if ASDF does not answer within a
  tenth of a second. While one thread waits for ASDF, no other is started. Only the dispatcher calls
  this."
  (unless (and *systems-thread* (sb-thread:thread-alive-p *systems-thread*))
    (when (setf *systems-thread* (start-thread-if-possible "consort systems" (lambda () (ignore-errors (ask-for-systems)))))
      (sb-thread:join-thread *systems-thread* :timeout 0.1 :default nil)))
  *systems*)

(defun running-facts ()
  (loop for evaluation in *running*
        collect (object "id" (evaluation-id evaluation)
                        "session" (or-null (evaluation-session evaluation))
                        "ms" (milliseconds-since (evaluation-started evaluation))
                        "stopped" (bool (evaluation-stop evaluation)))))

(define-operation "status" :dispatcher (id params)
  (object "pid" (sb-posix:getpid)
          "image" *image-id*
          "lisp" (lisp-version)
          "dynamic_usage" (dynamic-usage)
          "dynamic_space_size" (sb-ext:dynamic-space-size)
          "uptime_ms" (milliseconds-since *started*)
          "systems" (systems-soon)
          "running" (running-facts)
          "stops" (map 'vector #'stop-json (reverse *stops*))
          "features" (image-features)))
