;;;; Copies of an image whose other threads compile, intern, fill tables, collect, start threads and
;;;; use the C library's memory: each must give every condition.
;;;;
;;;;   sbcl --noinform --non-interactive --no-userinit --load lisp/tests/check-copies.lisp
;;;;
;;;; CONSORT_COPIES says how many copies are made (50 when it does not).

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defvar *stop* nil)

(defun busy-thread (name work)
  "A thread that does WORK again and again."
  (sb-thread:make-thread (lambda () (loop until *stop* for i from 0 do (funcall work i))) :name name))

(defun busy-threads ()
  (list (busy-thread "compiling" (lambda (i) (handler-bind ((warning #'muffle-warning)) (compile nil `(lambda (x) (list x ,i (1+ x)))))))
        (busy-thread "interning" (lambda (i) (intern (format nil "SYMBOL-~D" (mod i 5000)) "COMMON-LISP-USER")))
        (busy-thread "filling" (let ((table (make-hash-table :test 'equal)))
                                 (lambda (i) (setf (gethash (list (mod i 10000)) table) (make-string 100)))))
        ;; Both hold locks of the C library, which its own fork would wait for with the world
        ;; stopped.
        (busy-thread "allocating" (lambda (i) (mapc #'sb-alien:free-alien
                                                    (loop for size from 1000 by 700 repeat 50 collect (sb-alien:make-alien char (+ size (mod i 7)))))))
        (busy-thread "starting" (lambda (i) (sb-thread:join-thread (sb-thread:make-thread (lambda () i)))))
        (busy-thread "collecting" (lambda (i) (sb-ext:gc :full (zerop (mod i 20))) (sleep 0.02)))))

(defparameter *text*
  (coerce (format nil "~{~A~%~}"
                  (loop for i below 60
                        collect (format nil "(defmacro m~D (x) `(list ,x ,~D))~%(defun f~:*~D (a b) (let ((c (m~:*~D a))) (undefined-~:*~D b)))" i i)))
          'text))

(test "busy-threads"
  (let* ((threads (progn (check-lines "(defun warm-up ())") nil))
         (expected (length (diagnostics-of (check-lines *text*))))
         (count (parse-integer (or (sb-posix:getenv "CONSORT_COPIES") "50")))
         (wrong 0))
    (setf threads (busy-threads))
    (unwind-protect
         (loop repeat count
               do (multiple-value-bind (lines code signal) (check-lines *text*)
                    (unless (and (eql code 0) (null signal) (= expected (length (diagnostics-of lines)))
                                 (loop for line in lines thereis (field line "done")))
                      (incf wrong)
                      (format t "~&code ~A, signal ~A, ~D diagnostics, not ~D~%" code signal (length (diagnostics-of lines)) expected))))
      (setf *stop* t)
      (mapc #'sb-thread:join-thread threads))
    (expect (= expected 120) (format nil "two conditions a definition: ~D" expected))
    (expect (zerop wrong) (format nil "~D of ~D copies went wrong" wrong count))))

;; A lock that stays held gives COPY-BUSY, not a wait for ever.
(test "held-lock"
  (let* ((go-on (sb-thread:make-semaphore)) (held (sb-thread:make-semaphore))
         (holder (sb-thread:make-thread (lambda ()
                                          (call-with-world-lock (lambda () (sb-thread:signal-semaphore held) (sb-thread:wait-on-semaphore go-on))
                                                                (+ (get-internal-real-time) (* *patience* internal-time-units-per-second)))))))
    (sb-thread:wait-on-semaphore held)
    (expect (eq :busy (handler-case (call-in-copy (lambda ()) :patience 0.3) (copy-busy () :busy))) "the compiler's lock held")
    (sb-thread:signal-semaphore go-on)
    (sb-thread:join-thread holder)))

;; The end of a copy is reported.
(test "ends"
  (flet ((ending (function) (multiple-value-list (wait-for-copy (call-in-copy function :patience *patience*)))))
    (expect (equal (ending (lambda ())) '(0 nil)) "a copy that returns")
    (expect (equal (ending (lambda () (error "no"))) '(70 nil)) "a copy that fails")
    (expect (equal (ending (lambda () (throw 'nowhere nil))) '(70 nil)) "a copy that throws")
    (expect (equal (ending (lambda () (sb-posix:kill (sb-posix:getpid) sb-posix:sigkill))) (list nil sb-posix:sigkill)) "a copy that is killed")
    (expect (equal (ending (lambda () (sb-ext:gc :full t) (make-array 10000000) (sb-ext:gc))) '(0 nil)) "a copy collects garbage")
    ;; A timer of the image runs in no copy and stops no alarm of one; but it may change the image,
    ;; so that a copy does not stay current.
    (flet ((quiet () (ending (lambda () (exit-process (if (quiet-p) 3 4)))))
           (alarm () (ending (lambda () (call-with-alarm 1/100 (lambda () (exit-process 5)) (lambda () (loop)))))))
      (expect (equal (quiet) '(3 nil)) "a copy of an image at rest")
      (let ((timer (sb-ext:make-timer (lambda () (exit-process 6)))))
        (sb-ext:schedule-timer timer 3600)
        (expect (equal (quiet) '(4 nil)) "a copy of an image with a timer")
        (expect (equal (alarm) '(5 nil)) "an alarm in a copy of an image with a timer")
        (sb-ext:unschedule-timer timer))
      (expect (equal (quiet) '(3 nil)) "a copy of an image whose timer is over"))))

;; Each form is told of, also one that cannot be read behind a comment, so that the host can
;; count.
(test "unreadable-forms"
  (flet ((told (text) (let ((lines (check-lines (coerce text 'text))))
                        (list (remove-duplicates (loop for line in lines
                                                       for at = (field line "at")
                                                       when at collect (aref at 0)))
                              (loop for line in lines thereis (and (field line "done") (field (field line "done") "read")))))))
    (expect (equal (told "(list 1) #| c #| d |# |# (nowhere::f 1) ; e") '((0 25) 2)) "an unreadable form behind a comment")
    (expect (equal (told "#+nope (a) (nowhere::f 1)") '((0) 1)) "an unreadable form behind a guard")))

;; An answer that is too long for a line is cut, and says so.
(test "long-answer"
  (let* ((answer (object "values" (loop repeat 30 collect (clipped (make-string 100000 :initial-element #\a) 7))
                         "n" 5 "more" (loop repeat 200000 collect "b")))
         (cut (multiple-value-bind (octets end) (fitting-line answer 1000000)
                (expect (<= end 1000000) "a long answer fits")
                (parse-json octets 0 end)))
         (first (aref (field cut "values") 0)))
    (expect (and (= 30 (length (field cut "values"))) (= 5 (field cut "n"))) "what is short stays")
    (expect (and (search "characters left out" (field first "text")) (> (field first "omitted") 7)) "a cut text says so")
    (expect (search "more left out" (aref (field cut "more") (1- (length (field cut "more"))))) "a cut list says so")
    (let ((short (object "values" (list (clipped "x" 0)))))
      (expect (equalp (multiple-value-list (fitting-line short 1000)) (multiple-value-list (json-line short))) "a short answer is as it was"))))

;; A kernel that has Landlock and does not apply it: nothing runs. It refuses a seventeenth
;; domain.
(test "landlock-that-fails"
  (when (plusp (landlock-abi))
    (flet ((nested (params)
             (call-c "prctl" sb-alien:int (sb-alien:int +pr-set-no-new-privileges+) (sb-alien:unsigned-long 1)
                     (sb-alien:unsigned-long 0) (sb-alien:unsigned-long 0) (sb-alien:unsigned-long 0))
             (let ((report (begin-in-copy params)))
               (expect (loop repeat 20 thereis (null (confine-files (sb-ext:native-namestring (scratch-directory params)) (readable-names params))))
                       "Landlock fails in the end")
               (multiple-value-call #'finish-check (check-of-params params report nil (field params "text")) report (confine-copy params report)))))
      (let ((found (diagnostics-of (check-lines (coerce "(eval-when (:compile-toplevel) (error \"it ran\"))" 'text) :runner #'nested))))
        (expect (and (equal '("cannot-confine") (mapcar (lambda (d) (field d "code")) found))
                     (search "Landlock" (field (first found) "message")))
                (format nil "nothing runs where Landlock fails: ~S" (mapcar (lambda (d) (field d "message")) found)))))))

(finish-tests "copies")
