;;;; Stops of many kinds: restarts of every sort, conditions and restarts whose reports fail, hooks
;;;; of the program's own, code in a frame that leaves, unboxed variables, threads of the system.

(in-package :consort)

(defun restart-names (stop)
  (map 'list (lambda (restart) (path-if-any restart "name")) (path stop "restarts")))

(deftest restarts-of-many-kinds
  (with-image (image)
    (flet ((after (code restart &rest fields)
             (multiple-value-bind (stop id) (stopped-at image code)
               (is string= "sent" (path (apply #'restarted image stop restart fields) "result" "status"))
               (outcome-text image id))))
      ;; An interactive one of which a handler knows.
      (is string= "(:PICKED 42)"
          (after "(handler-bind ((error (lambda (c) (compute-restarts c) nil)))
                    (restart-case (error \"x\") (pick (v) :interactive (lambda () (format *query-io* \"which? \") (list (eval (read *query-io*)))) (list :picked v))))"
                 "PICK" "input" "(* 6 7)"))
      ;; One that asks by Y-OR-N-P.
      (is string= "(:SURE T)"
          (after "(restart-case (error \"x\") (sure (v) :interactive (lambda () (list (y-or-n-p \"Sure?\"))) (list :sure v)))" "SURE" "input" (format nil "y~%")))
      (is string= "(NIL T)" (after "(multiple-value-list (with-simple-restart (skip \"Skip ~A.\" 1) (error \"x\")))" "SKIP"))
      (is string= "(:A 5)" (after "(let ((a \"no\")) (check-type a integer) (list :a a))" "STORE-VALUE" "arguments" #("5")))
      (is string= ":TWO" (after "(let ((a 5)) (ccase a (1 :one) (2 :two)))" "STORE-VALUE" "arguments" #("2")))
      (is string= ":AFTER" (after "(progn (cerror \"Go on.\" \"x\") :after)" "CONTINUE"))
      ;; The warning that is stopped at is muffled.
      (is string= ":AFTER" (after "(let ((*break-on-signals* 'warning)) (warn \"w\") :after)" "MUFFLE-WARNING"))
      (is string= "(1 :RETRIED)"
          (after "(let ((n 0)) (loop (restart-case (if (plusp n) (return (list n :retried)) (error \"x\")) (again () (incf n)))))" "AGAIN"))
      ;; The last one of a name is not the first.
      (is string= "(:OUTER (:INNER 1))"
          (after "(restart-case (list :outer (restart-case (error \"x\") (same (v) (list :inner v)))) (same (v) (list :outer-restart v)))" "SAME" "arguments" #("1"))))
    ;; A restart of another condition, and one that is not to be seen.
    (multiple-value-bind (stop id) (stopped-at image "(restart-case (restart-case (error \"x\") (never () :test (lambda (c) (declare (ignore c)) nil) :never) (warned () :test (lambda (c) (typep c 'warning)) 1))
                                                        (ever () :test (lambda (c) (typep c 'error)) :ever))")
      (is equal '("EVER" "ABORT") (restart-names stop))
      (restarted image stop "EVER")
      (is string= ":EVER" (outcome-text image id)))))

(deftest a-restart-that-cannot-read
  ;; The restart fails where it asks; to abort that is to be back at the stop.
  (with-image (image)
    (multiple-value-bind (stop id) (stopped-at image "(restart-case (error \"x\") (pick (v) :interactive (lambda () (list (read *query-io*))) (list :picked v)))")
      (restarted image stop "PICK" "input" "(1 2")
      (let ((inner (stop-of-id image id 1)))
        (is string= "END-OF-FILE" (path inner "condition" "type"))
        (is = 2 (path inner "level"))
        (on-stop image "debug-abort" inner)
        (let ((again (stop-of-id image id 2)))
          (is string= "x" (path again "condition" "message"))
          (restarted image again "PICK" "input" "7")
          (is string= "(:PICKED 7)" (outcome-text image id)))))))

(deftest reports-that-fail
  (with-image (image)
    (prepare image "(define-condition dumb (error) () (:report (lambda (c s) (declare (ignore c s)) (error \"no report\"))))
                    (defclass mute () ())
                    (defmethod print-object ((m mute) stream) (declare (ignore stream)) (error \"not printed\"))")
    (multiple-value-bind (stop id) (stopped-at image "(let ((m (make-instance 'mute))) (restart-case (error 'dumb) (bad () :report (lambda (s) (declare (ignore s)) (error \"no report\")) (list m 1))))")
      (is string= "DUMB" (path stop "condition" "type"))
      (ok (stringp (path stop "condition" "message")))
      (is equal '("BAD" "ABORT") (restart-names stop))
      (ok (text-contains "MUTE" (path (local-in image stop 0 "M") "value" "text")))
      (ok (stringp (in-frame image stop 0 "m")))
      (restarted image stop "BAD")
      (is string= "ok" (path (answer image id) "result" "status")))
    ;; A value of a frame whose printing fails in PRINT itself is code's own error.
    (multiple-value-bind (stop id) (stopped-at image "(let ((m (make-instance 'mute))) (cerror \"Go on.\" \"x ~A\" m) m)")
      (is string= "SIMPLE-ERROR" (path stop "condition" "type"))
      (is string= "SIMPLE-ERROR" (path (on-stop image "debug-eval" stop "frame" 0 "code" "(princ-to-string m)") "result" "error" "type"))
      (on-stop image "debug-abort" stop)
      (is string= "error" (path (answer image id) "result" "status")))))

(deftest debugger-hooks-of-a-program
  (with-image (image)
    ;; INVOKE-DEBUGGER itself.
    (multiple-value-bind (stop id) (stopped-at image "(restart-case (invoke-debugger (make-condition 'simple-error :format-control \"direct\")) (use-value (v) v))")
      (is string= "direct" (path stop "condition" "message"))
      (restarted image stop "USE-VALUE" "arguments" #("3"))
      (is string= "3" (outcome-text image id)))
    (multiple-value-bind (stop id) (stopped-at image "(let ((seen nil)) (restart-case (let ((*debugger-hook* (lambda (c hook) (declare (ignore c hook)) (setf seen t)))) (error \"x\")) (plainly () (list :seen seen))))")
      (restarted image stop "PLAINLY")
      (is string= "(:SEEN T)" (outcome-text image id)))
    (is string= ":HOOKED" (outcome-text image (debug-id image "(block nil (let ((*debugger-hook* (lambda (c hook) (declare (ignore c hook)) (return :hooked)))) (error \"x\")))")))
    (is string= ":HOOKED" (outcome-text image (debug-id image "(block nil (let ((sb-ext:*invoke-debugger-hook* (lambda (c hook) (declare (ignore c hook)) (return :hooked)))) (error \"x\")))")))
    ;; A hook that fails is a stop at its own error.
    (multiple-value-bind (stop id) (stopped-at image "(restart-case (let ((*debugger-hook* (lambda (c hook) (declare (ignore c hook)) (error \"the hook\")))) (error \"x\")) (plainly () 1))")
      (is string= "the hook" (path stop "condition" "message"))
      (restarted image stop "PLAINLY")
      (is string= "1" (outcome-text image id)))
    ;; Handlers that fail in turn, and one that calls itself for ever.
    (multiple-value-bind (stop id) (stopped-at image "(restart-case (handler-bind ((error (lambda (c) (unless (search \"again\" (princ-to-string c)) (error \"again ~A\" c))))) (error \"x\")) (plainly () 1))")
      (is string= "again x" (path stop "condition" "message"))
      (restarted image stop "PLAINLY")
      (is string= "1" (outcome-text image id)))
    (let ((id (debug-id image "(labels ((fail (c) (declare (ignore c)) (handler-bind ((error #'fail)) (error \"more\")))) (handler-bind ((error #'fail)) (error \"x\")))")))
      (on-stop image "debug-abort" (stop-of-id image id)) ; SBCL says that errors are nested too deep
      (is string= "error" (path (answer image id) "result" "status")))
    (is string= "3" (first-value image "(+ 1 2)"))))

(deftest code-in-a-frame-that-leaves
  (with-debugged (image)
    (flet ((after (code)
             (multiple-value-bind (stop id) (stopped-at image "(catch 'out (list :all (outer 5)))")
               (let ((answer (on-stop image "debug-eval" stop "frame" 0 "code" code)))
                 (is string= "left" (path answer "result" "status"))
                 (left image stop)
                 (outcome-text image id)))))
      (is string= "(:ALL (:OUTER (:INNER :PLAIN 5) 5))" (after "(invoke-restart 'plainly)"))
      (is string= "(:ALL (:OUTER (:INNER (:USED 9) 5) 5))" (after "(invoke-restart 'use-other 9)"))
      (is string= ":THROWN" (after "(throw 'out :thrown)"))
      (is string= "ABORT" (after "(abort)")))
    ;; Code that would end the image or its threads.
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (ok (text-contains "EXIT-REFUSED" (path (on-stop image "debug-eval" stop "frame" 0 "code" "(sb-ext:exit :abort t)") "result" "error" "type")))
      (is string= "10" (in-frame image stop 0 "c"))
      (is string= "CONTROL-STACK-EXHAUSTED"
          (let ((type (path (on-stop image "debug-eval" stop "frame" 0 "code" "(labels ((deep (n) (1+ (deep n)))) (deep 1))") "result" "error" "type")))
            (subseq type (1+ (or (position #\: type :from-end t) -1)))))
      (is string= "10" (in-frame image stop 0 "c"))
      (restarted image stop "PLAINLY")
      (is string= "(:OUTER (:INNER :PLAIN 5) 5)" (outcome-text image id)))
    ;; Code that ends the thread ends its evaluation.
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (on-stop image "debug-eval" stop "frame" 0 "code" "(sb-thread:abort-thread)")
      (left image stop)
      (is string= "error" (path (answer image id) "result" "status")))
    (is string= "3" (first-value image "(+ 1 2)" :session "s"))))

(deftest unboxed-variables
  (with-image (image)
    (let ((file (write-file "unboxed.lisp" "(defpackage :unboxed (:use :cl)) (in-package :unboxed)
(defun half (x w) (declare (double-float x) (type (unsigned-byte 64) w) (optimize (debug 2)))
  (let ((y (* x 2d0)) (z (complex x 1d0)) (c (complex (coerce x 'single-float) 2.5f0)) (f (coerce x 'single-float)))
    (declare (double-float y) (single-float f) (type (complex double-float) z) (type (complex single-float) c))
    (restart-case (error \"at ~A\" (list y z f w c)) (go-on () (list (/ y 4) f w (realpart z) c)))))
(defun fast (x y) (declare (double-float x y) (optimize (speed 3) (debug 0) (safety 0)))
  (let ((z (+ x y))) (declare (double-float z)) (restart-case (error \"fast\") (go-on () z))))
")))
      (prepare image (format nil "(load (compile-file ~S :output-file ~S))" file (concatenate 'string *scratch* "unboxed.fasl")) :session "others")
      (multiple-value-bind (stop id) (stopped-at image "(unboxed::half 3d0 #xffffffffffffff00)")
        (let ((frame (frame-number image stop "UNBOXED::HALF")))
          (flet ((value (name) (path (local-in image stop frame name) "value" "text"))
                 (set-to (name code) (on-stop image "debug-set" stop "frame" frame "name" name "code" code)))
            (is string= "6.0d0" (value "Y"))
            (is string= "3.0" (value "F"))
            (is string= "18446744073709551360" (value "W"))
            (is string= "#C(3.0 2.5)" (value "C"))
            ;; SBCL would show, and set, what stands beside it.
            (ok (text-contains "not kept" (path (local-in image stop frame "Z") "missing")))
            (ok (text-contains "cannot read" (path (on-stop image "debug-eval" stop "frame" frame "code" "z") "result" "error" "message")))
            (is string= "not-settable" (path (set-to "Z" "#C(1d0 1d0)") "error" "kind"))
            (is string= "(12.0d0 3.0)" (in-frame image stop frame "(list (* 2 y) f)"))
            (is string= "ok" (path (set-to "Y" "8d0") "result" "status"))
            (is string= "8.0d0" (value "Y"))
            (is string= "not-settable" (path (set-to "Y" "8f0") "error" "kind"))
            (is string= "not-settable" (path (set-to "W" "-1") "error" "kind"))
            (is string= "8.0d0" (value "Y"))))
        (restarted image stop "UNBOXED::GO-ON")
        (is string= "(2.0d0 3.0 18446744073709551360 3.0d0 #C(3.0 2.5))" (outcome-text image id)))
      (multiple-value-bind (stop id) (stopped-at image "(unboxed::fast 1d0 2d0)")
        (ok (result-of image "debug-locals" "stop" (path stop "stop") "frame" 0))
        (restarted image stop "UNBOXED::GO-ON")
        (is string= "3.0d0" (outcome-text image id))))))

(deftest threads-of-the-system-do-not-stop
  (with-image (image)
    ;; A timer's thread is started by the system's, a finalizer is run by another.
    (prepare image "(defvar *done* nil)")
    (is string= ":SET" (outcome-text image (debug-id image "(progn (sb-ext:schedule-timer (sb-ext:make-timer (lambda () (setf *done* t) (error \"in a timer\")) :thread t) 0.01) :set)")))
    (eventually (string= "T" (first-value image "*done*" :session "others")))
    (is string= ":SET" (outcome-text image (debug-id image "(progn (sb-ext:finalize (make-array 10) (lambda () (error \"in a finalizer\")) :dont-save t) (sb-ext:gc :full t) :set)")))
    (settle image)
    (is equalp #() (path (call image "debug-stops") "result" "stops"))
    (is string= "3" (first-value image "(+ 1 2)"))))

(deftest variables-of-one-name-in-two-packages-are-not-confused
  (with-image (image)
    (prepare image "(defpackage :one-a (:use)) (defpackage :one-b (:use))" :session "others")
    (let ((code "(let ((one-a::x (list 1)) (one-b::x (list 2))) (restart-case (error \"e\") (go-on () (list one-a::x one-b::x))))"))
      (multiple-value-bind (stop id) (stopped-at image code)
        (let* ((frame (loop for number from 0 below 20
                            for locals = (path-if-any (on-stop image "debug-locals" stop "frame" number) "result" "locals")
                            when (= 2 (count "X" locals :key (lambda (local) (path local "name")) :test #'string=)) return number))
               (answer (and frame (on-stop image "debug-set" stop "frame" frame "name" "X" "code" "(list 3)"))))
          (ok frame)
          (is string= "not-settable" (path answer "error" "kind"))
          (ok (text-contains "ONE-A::X, ONE-B::X" (path answer "error" "message")))
          (is string= "(3)" (in-frame image stop frame "(setf one-b::x (list 3))")))
        (restarted image stop "GO-ON")
        (is string= "((1) (3))" (outcome-text image id))))))
