;;;; `profile`: where time and memory went, of the profiled code's threads only. Profiled code works
;;;; until so many samples have come, however fast the machine is; what is judged are their shares.

(in-package :consort)

(defun profiled (image code &key (mode "cpu") (timeout *patience*) (session "s") (samples 1000) (interval 0.01) package)
  "Returns the answer to profiling CODE; for an error frame, that."
  (result-or-error (answer image (apply #'profile-id image code mode timeout session samples interval (when package (list "package" package))))))

(defun profile-id (image code mode timeout session samples interval &rest more)
  (apply #'send image "profile" "session" session "code" code "mode" mode "timeout" timeout "max_samples" samples "interval" interval more))

(defun stacks (answer)
  "Returns lists (COUNT NAME ...), outermost first."
  (let ((names (path answer "profile" "names")))
    (map 'list (lambda (stack)
                 (cons (path stack "count") (map 'list (lambda (index) (aref names index)) (path stack "frames"))))
         (path answer "profile" "stacks"))))

(defun samples (answer &optional (test (constantly t)))
  (reduce #'+ (remove-if-not test (stacks answer) :key #'rest) :key #'first))

(defun share (answer test)
  "Returns how many of a hundred samples have names, outermost first, that pass TEST."
  (/ (* 100 (samples answer test)) (max 1 (samples answer))))

(defun self (name) (lambda (names) (equal (first (last names)) name)))
(defun anywhere (name) (lambda (names) (member name names :test #'equal)))

(defparameter *ten-functions*
  "(defun burn (n) (declare (fixnum n)) (let ((s 0)) (declare (fixnum s)) (dotimes (i n s) (setf s (logxor i (logand s 1023))))))
   (macrolet ((cold (&rest names) `(progn ,@(loop for name in names collect `(defun ,name () (list ',name (random 10)))))))
     (cold c1 c2 c3 c4 c5 c6 c7 c8))
   (defun work () (burn 1000000) (c1) (c2) (c3) (c4) (c5) (c6) (c7) (c8))
   (defun sampled (n work) (loop do (funcall work) until (>= (consort::profile-count consort::*profiling*) n)))"
  "(SAMPLED N WORK) works until N samples have come.")

(deftest profile-a-hot-spot
  (with-image (image)
    (prepare image *ten-functions*)
    (let ((answer (profiled image "(progn (sampled 100 'work) (values :done 2))")))
      (is equal "ok" (path answer "status"))
      (is equal ":DONE" (path answer "values" 0 "text"))
      (ok (>= (samples answer) 50))
      (ok (> (share answer (self "BURN")) 80))
      (is equal '("WORK" "BURN") (last (rest (first (stacks answer))) 2))
      (ok (not (find-if (lambda (stack) (or (member "EVAL" stack :test #'equal) (find-if (lambda (name) (text-contains "CONSORT" name)) (rest stack))))
                        (stacks answer)))))))

(deftest profile-generic-arithmetic
  ;; Assembler routines have no frame; their callers are told all the same.
  (with-image (image)
    (prepare image *ten-functions*)
    (prepare image "(defun roots (n) (let ((s 0)) (dotimes (i n) (setf s (+ s (sqrt i)))) s)) (defun above () (list (roots 100000)))")
    (let ((answer (profiled image "(sampled 100 'above)")))
      (ok (>= (samples answer) 50))
      (ok (> (share answer (anywhere "ROOTS")) 90))
      (ok (> (share answer (anywhere "ABOVE")) 90)))))

(deftest profile-what-waits
  (with-image (image)
    (prepare image *ten-functions*)
    (prepare image "(defun waits () (sleep 0.1) 1)")
    (let ((cpu (profiled image "(dotimes (i 5) (waits))")) (time (profiled image "(sampled 100 'waits)" :mode "time")))
      ;; What is not waiting may be met by one timer.
      (ok (< (samples cpu (anywhere "WAITS")) 5))
      (ok (>= (samples time (anywhere "WAITS")) 50))
      (ok (> (share time (anywhere "WAITS")) 80)))))

(deftest profile-weighs-what-was-merged
  ;; Without interrupts the timer's expirations are merged into one signal, as they are for a thread
  ;; that waits for a processor. They count all the same.
  (with-image (image)
    (prepare image *ten-functions*)
    (prepare image "(defun thread-seconds () (multiple-value-bind (s n) (sb-unix::clock-gettime sb-unix::clock-thread-cputime-id) (+ s (/ n 1000000000))))
                    (defun real-seconds () (/ (get-internal-real-time) internal-time-units-per-second))
                    (defun masked (clock) (sb-sys:without-interrupts (loop with end = (1+ (funcall clock)) while (< (funcall clock) end) do (burn 1000))))")
    (loop for (mode code) in '(("cpu" "(masked 'thread-seconds)") ("time" "(masked 'real-seconds)"))
          ;; A second of that clock, of which a hundredth is one sample.
          do (let ((answer (profiled image code :mode mode)))
               (ok (>= (samples answer (anywhere "MASKED")) 90))
               (ok (> (share answer (anywhere "MASKED")) 50)))
             (is = 30 (samples (profiled image code :mode mode :samples 30))))
    (is equal "(2 0 0)" (first-value image "(list (consort::claim-weight (consort::make-profile :cpu 1/100 2) 5)
                                                  (consort::claim-weight (consort::make-profile :cpu 1/100 0) 1)
                                                  (let ((p (consort::make-profile :cpu 1/100 3))) (consort::claim-weight p 3) (consort::claim-weight p 1)))"))
    ;; A signal that no timer has sent is one sample.
    (is equal "(0 7 0)" (first-value image "(flet ((overrun (code overrun)
        (let ((info (make-array 16 :element-type '(unsigned-byte 64) :initial-element 0)))
          (setf (aref info 1) code (aref info 2) (ash overrun 32))
          (sb-sys:with-pinned-objects (info) (consort::timer-overrun (sb-sys:vector-sap info))))))
   (list (overrun 0 7) (overrun #xFFFFFFFE 7) (consort::timer-overrun (sb-sys:int-sap 0))))"))))

(deftest profile-allocation
  (with-image (image)
    (prepare image "(defun hog () (let ((all '())) (dotimes (i 400000 (length all)) (push (make-array 20) all)) (setf all nil)))
                      (defun modest () (dotimes (i 20000) (list i i i)))
                      (defun both () (hog) (modest))
                      (both)")
    (let* ((counted (parse-integer (first-value image "(let ((before (sb-ext:get-bytes-consed))) (hog) (- (sb-ext:get-bytes-consed) before))")))
           (answer (profiled image "(both)" :mode "alloc"))
           (bytes (path answer "profile" "bytes")))
      (ok (> (samples answer) 100))
      (ok (< (* 9/10 counted) (* bytes (share answer (anywhere "HOG")) 1/100) (* 11/10 counted)))
      (ok (member "HOG" (first (stacks answer)) :test #'equal))
      (ok (<= (samples (profiled image "(both)" :mode "alloc" :samples 50)) 50)))))

(deftest profile-the-code-s-threads-and-no-others
  (with-image (image)
    (prepare image *ten-functions*)
    (prepare image "(defvar *go* t) (defvar *other* (sb-thread:make-thread (lambda () (loop while *go* do (burn 1000000)))))" :session "other")
    (let ((waiting (profiled image "(sleep 0.5)"))
          (threads (profiled image "(progn (burn 1) (mapc #'sb-thread:join-thread (loop repeat 2 collect (sb-thread:make-thread (lambda () (sampled 100 'work))))) 1)")))
      (is = 0 (samples waiting (anywhere "BURN")))
      (ok (>= (samples threads (anywhere "WORK")) 50)))
    (evaluated image "(setf *go* nil) (sb-thread:join-thread *other*)")))

(deftest profile-what-fails
  (with-image (image)
    (prepare image *ten-functions*)
    (dolist (mode '("cpu" "time" "alloc"))
      (let ((failed (profiled image "(progn (burn 10000000) (error \"intentional error\"))" :mode mode)))
        (is equal "error" (path failed "status"))
        (is equal "SIMPLE-ERROR" (path failed "error" "type"))
        (is equal "intentional error" (path failed "error" "message")))
      (let ((endless (profiled image "(loop (list (burn 1000000)))" :mode mode :timeout 0.5)))
        (is equal "timeout" (path endless "status")))
      (is equal "ok" (path (profiled image "(work)" :mode mode) "status")))
    (ok (>= (samples (profiled image "(sampled 50 'work)")) 25))
    (is equal "bad-params" (path (profiled image "1" :mode "invalid") "error" "kind"))
    (is equal "package-not-found" (path (profiled image "1" :package "NO-SUCH") "error" "kind"))
    (is equal "END-OF-FILE" (path (profiled image "(car") "error" "type"))))

(deftest profile-one-at-a-time
  (with-image (image)
    (let ((first (profile-id image "(sleep 10000)" "time" *patience* "one" 1000 0.01)))
      (eventually (equal "T" (first-value image "(and consort::*profiling* t)" :session "two")))
      (is equal "busy" (path (profiled image "1" :session "two") "error" "kind"))
      (call image "interrupt" "target" first "reason" "cancel")
      (is equal "interrupted" (path (answer image first) "result" "status"))
      (is equal "ok" (path (profiled image "1" :session "two") "status")))))

(deftest profile-of-the-session
  (with-image (image)
    (evaluated image "(defpackage :of-mine (:use :cl)) (in-package :of-mine)")
    (is equal "OF-MINE" (path (profiled image "(defun mine () 1) (princ \"out\") (mine)") "package"))
    (is equal "(1 OF-MINE::MINE)" (first-value image "(list cl-user::* 'of-mine::mine)" :package "CL-USER"))
    (is equal "out" (path (profiled image "(princ \"out\")") "stdout" "text"))
    (is equal "OF-MINE" (path (profiled image "*package*" :package "CL-USER") "package"))))
