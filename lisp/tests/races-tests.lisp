;;;; Two threads that come to the same state at once: nothing is lost, and nothing done twice. A
;;;; function of ours is wrapped so that one thread stands still in the middle of what it does.
;;;; Where many call it, the image is not started from a core, in which these calls are linked
;;;; (src/sbcl/encapsulation.lisp).

(in-package :consort)

(defun source-of (file start)
  "Returns the text of the definition in FILE of lisp/src that begins with START."
  (let* ((text (uiop:read-file-string (merge-pathnames (concatenate 'string "../src/" file) cl-user::*tests-directory*)))
         (at (search start text)))
    (subseq text at (search (format nil "~%~%") text :start2 at))))

(defun replacing (old new text)
  "Returns TEXT with NEW in place of each OLD."
  (let ((at (search old text)))
    (if at
        (concatenate 'string (subseq text 0 at) new (replacing old new (subseq text (+ at (length old)))))
        text)))

(defun output-of-images ()
  "Returns what images have written to their standard output."
  (uiop:read-file-string (concatenate 'string *scratch* "out") :external-format :utf-8))

(defparameter *beside* "
(defun waits-for-ours-p (thread)
  (let ((lock (consort::waited-for thread)))
    (and (typep lock 'sb-thread:mutex) (eql 0 (search \"consort\" (sb-thread:mutex-name lock))))))
(defun beside (function)
  \"Calls FUNCTION in a new thread; returns that when it has ended, or waits for a lock of ours.\"
  (let ((thread (sb-thread:make-thread function)))
    (loop while (and (sb-thread:thread-alive-p thread) (not (waits-for-ours-p thread))) do (sleep 0.01))
    thread))
(defun wrap (name function) (sb-int:encapsulate name 'race function))
(defun unwrap (name) (sb-int:unencapsulate name 'race))"
  "What the tests here evaluate first.")

;;; Output

(deftest output-of-a-thread-while-its-evaluation-ends
  ;; The thread has found the evaluation that its output is shown with, and writes when that was
  ;; answered.
  (with-image (image)
    (let ((mark (concatenate 'string *scratch* "answered")))
      (prepare image (concatenate 'string *beside* "(defvar *found* nil)"))
      (prepare image (format nil "(wrap 'consort::sole-capture
                                        (lambda (sole-capture &rest arguments)
                                          (let ((found (apply sole-capture arguments)))
                                            (when (and found (equal (sb-thread:thread-name sb-thread:*current-thread*) \"late\"))
                                              (setf *found* t)
                                              (loop until (probe-file ~S) do (sleep 0.01)))
                                            found)))"
                             mark))
      (let ((outcome (evaluated image "(progn (sb-thread:make-thread (lambda () (write-string \"written late\")) :name \"late\") (loop until *found* do (sleep 0.01)))")))
        (is string= "" (path outcome "stdout" "text")))
      (write-file "answered" "")
      (thread-gone image "late")
      (delete-file mark)
      (ok (text-contains "written late" (output-of-images))))))

(deftest output-to-the-stream-of-an-evaluation-that-has-ended
  (with-image (image)
    (prepare image "(defvar *go* (sb-thread:make-semaphore))")
    (loop for (stream name) in '(("*standard-output*" "late-out") ("*error-output*" "late-err"))
          do (prepare image (format nil "(let ((out ~A)) (sb-thread:make-thread (lambda () (sb-thread:wait-on-semaphore *go*) (format out \"to a stream ~A~~%\")) :name ~S))" stream name name))
             ;; The output is shown with the evaluation that runs by then.
             (let ((outcome (evaluated image (format nil "(progn (sb-thread:signal-semaphore *go*)
                                                                 (loop while (find ~S (sb-thread:list-all-threads) :key #'sb-thread:thread-name :test #'equal) do (sleep 0.01)))"
                                                      name))))
               (ok (text-contains (concatenate 'string "to a stream " name)
                                  (path outcome (if (string= stream "*error-output*") "stderr" "stdout") "text")))))))

(deftest output-to-the-stream-of-a-test-that-has-ended
  (with-image (image)
    (let ((outcome (evaluated image "(let* ((out nil)
                                            (case (consort::make-test-case \"writes\" '() (lambda () (setf out *standard-output*) (write-string \"in time\") (values \"passed\" 1 '()))))
                                            (result (consort::run-case case '())))
                                       (write-string \"too late\" out)
                                       (consort::field (consort::field result \"output\") \"text\"))")))
      (is string= "\"in time\"" (path outcome "values" 0 "text"))
      (is string= "too late" (path outcome "stdout" "text")))))

(deftest output-of-threads-that-write-at-once
  (with-image (image)
    (prepare image "(defvar *go* nil)
                    (defun writes (name) (sb-thread:make-thread (lambda () (loop until *go* do (sb-thread:thread-yield))
                                                                   (dotimes (i 20000) (write-string name)))
                                                                :name \"writes\"))
                    (writes \"<at once a>\") (writes \"<at once b>\")")
    ;; Two evaluations run, so it is shown with none.
    (prepare image "(sb-thread:make-thread (lambda () (loop until (null consort::*running*)) (setf *go* t)) :name \"writes\")")
    (thread-gone image "writes")
    (let ((text (output-of-images)))
      (dolist (line '("<at once a>" "<at once b>"))
        (is = 20000 (loop for at = (search line text) then (search line text :start2 (1+ at))
                          while at count t))))))

(deftest output-to-a-descriptor-that-is-not-waited-for
  ;; Another program may share it.
  (with-image (image)
    (is string= "(200000 T)"
        (first-value image "(multiple-value-bind (in out) (sb-posix:pipe)
                              (sb-posix:fcntl out sb-posix:f-setfl sb-posix:o-nonblock)
                              (let* ((writer (sb-thread:make-thread (lambda ()
                                               (multiple-value-prog1 (consort::write-octets out (make-array 200000 :element-type '(unsigned-byte 8) :initial-element 1) 0 200000)
                                                 (sb-posix:close out)))))
                                     (count (with-open-stream (stream (sb-sys:make-fd-stream in :element-type '(unsigned-byte 8)))
                                              (loop while (read-byte stream nil) count t))))
                                (list count (sb-thread:join-thread writer))))"))))

(deftest output-while-that-of-code-in-a-frame-is-read
  (with-image (image)
    (prepare image *beside*)
    (is string= "\"first second\""
        (first-value image "(let ((capture (consort::make-capture)) (thread nil))
                              (write-string \"before\" capture)
                              (wrap 'consort::last-characters
                                    (lambda (last-characters &rest arguments)
                                      (unless thread (setf thread (beside (lambda () (write-string \"late\" capture)))))
                                      (apply last-characters arguments)))
                              (write-string \"first second\" capture)
                              (unwind-protect (consort::field (cons :object (rest (consort::captured-since capture 6))) \"text\")
                                (unwrap 'consort::last-characters)))"))))

;;; Answers

(deftest answers-that-wait-are-not-overtaken
  (with-image (image :command (fasl-command))
    (prepare image (concatenate 'string *beside* "(defvar *posting* nil) (defvar *go* nil)"))
    (prepare image "(wrap 'consort::write-frame
                          (lambda (write-frame &rest arguments)
                            (when (equal (sb-thread:thread-name sb-thread:*current-thread*) \"consort poster\")
                              (setf *posting* t)
                              (loop until *go* do (sleep 0.01)))
                            (apply write-frame arguments)))")
    (let* ((mark (concatenate 'string *scratch* "link-is-held"))
           (holding (eval-id image (format nil "(sb-thread:with-mutex (consort::*link-lock*) (close (open ~S :direction :output)) (loop until *posting* do (sleep 0.01)))" mark))))
      (eventually (probe-file mark))
      (delete-file mark)
      ;; The poster has the first answer and has not written it when the second one is given.
      (let ((first (send image "status")))
        (answer image holding)
        (let ((second (send image "status")))
          (prepare image "(setf *go* t)" :session "others")
          (flet ((came (id) (position id (reverse (image-answers image)) :key (lambda (frame) (field frame "id")) :test #'equal)))
            (loop until (and (came first) (came second)) do (receive image "both answers"))
            (ok (< (came first) (came second)))))))))

(deftest a-thread-that-is-ended-when-it-has-answered
  (with-image (image :command (fasl-command))
    (prepare image (concatenate 'string *beside* "(defvar *id* nil)"))
    (prepare image "(wrap 'consort::send-frame
                          (lambda (send-frame frame)
                            (funcall send-frame frame)
                            (when (and *id* (eql *id* (consort::field frame \"id\")))
                              (setf *id* nil)
                              (sb-thread:interrupt-thread sb-thread:*current-thread* #'sb-thread:abort-thread))))"
             :session "others")
    (flet ((answered-once-p (id)
             (settle image)
             (not (find id (image-answers image) :key (lambda (frame) (field frame "id")) :test #'equal))))
      (let ((id (+ 2 (image-id image))))
        (prepare image (format nil "(setf *id* ~D)" id) :session "others")
        (is = id (eval-id image "(+ 1 2)"))
        (is string= "3" (path (answer image id) "result" "values" 0 "text"))
        ;; Another thread goes on with the session.
        (is string= "4" (first-value image "(+ 2 2)"))
        (ok (answered-once-p id)))
      (let* ((reference (reference-to image "'car" :session "others"))
             (id (+ 2 (image-id image))))
        (prepare image (format nil "(setf *id* ~D)" id) :session "others")
        (is = id (send image "inspect-describe" "reference" reference))
        (is string= "ok" (path (answer image id) "result" "status"))
        (thread-gone image "consort inspect-describe")
        (ok (answered-once-p id))))))

;;; Stops

(deftest a-comparison-keeps-the-stops-of-both-values
  (with-debugged (image)
    (prepare image (concatenate 'string *beside* "(defvar *comparing* nil) (defvar *kept* nil)") :session "others")
    (prepare image "(wrap 'consort::comparison-json
                          (lambda (comparison-json &rest arguments)
                            (let ((stop (first consort::*stops*)))
                              (setf *comparing* t)
                              (loop until (or (eq (consort::stopped-state stop) :left)
                                              (eq (consort::waited-for (consort::stopped-thread stop)) (consort::stopped-reading stop)))
                                    do (sleep 0.01))
                              (setf *kept* (not (eq (consort::stopped-state stop) :left)))
                              (apply comparison-json arguments))))"
             :session "others")
    (flet ((stop-with (list session)
             (stopped-at image (format nil "(let ((one ~A)) (fails one) one)" list) :session session))
           (reference (stop) (path (local-in image stop 1 "ONE") "value" "reference")))
      (multiple-value-bind (one one-id) (stop-with "(list 1 (list 2))" "one")
        (multiple-value-bind (other other-id) (stop-with "(list 1 (vector 3))" "other")
          (let ((comparing (send image "inspect-compare" "reference" (reference one) "other" (reference other))))
            (eventually (string= "T" (first-value image "*comparing*" :session "others")))
            (restarted image other "PLAINLY")
            (let ((difference (path (answer image comparing) "result" "differences" 0)))
              (is string= "T" (first-value image "*kept*" :session "others"))
              (left image other)
              (ok (outcome-text image other-id))
              ;; Each value found belongs to its own stop.
              (is string= "not-found" (path (call image "inspect" "reference" (path difference "other" "reference")) "error" "kind"))
              (is equalp '(("0" "2")) (part-texts (inspected-page image (path difference "one" "reference"))))
              (restarted image one "PLAINLY")
              (ok (outcome-text image one-id)))))))))

(deftest a-request-to-a-stop-that-is-interrupted-as-it-is-answered
  (with-debugged (image :command (fasl-command))
    (prepare image (concatenate 'string *beside* "(defvar *ended* nil)") :session "others")
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (prepare image "(wrap 'consort::send-result
                            (lambda (send-result &rest arguments)
                              (let ((work consort::*current-work*))
                                (when (and work (not *ended*))
                                  (setf *ended* t)
                                  (let ((interruption (consort::end-work consort::*current-stop* work \"interrupted\")))
                                    (loop while (and sb-sys:*interrupts-enabled* (not (eq (consort::interruption-state interruption) :over)))))))
                              (apply send-result arguments)))"
               :session "others")
      (let ((first (send image "debug-eval" "stop" (path stop "stop") "frame" 0 "code" "(+ 1 2)")))
        (is string= "7" (in-frame image stop 0 "(+ 3 4)"))
        (is string= "T" (first-value image "*ended*" :session "others"))
        (is string= "3" (path (find first (image-answers image) :key (lambda (frame) (field frame "id")) :test #'equal) "result" "values" 0 "text")))
      (restarted image stop "PLAINLY")
      (ok (outcome-text image id)))))

(deftest frozen-failures-that-are-made-at-once
  (with-image (image)
    (prepare image (concatenate 'string *beside* "(defvar *there* (list 0))"))
    (prepare image "(wrap 'consort::may-freeze-p (constantly t))
                    (wrap 'consort::fork-frozen
                          (lambda (fork-frozen)
                            (declare (ignore fork-frozen))
                            (sb-ext:atomic-incf (car *there*))
                            (loop while (< (car *there*) 2) do (sleep 0.01))
                            (sb-ext:process-pid (sb-ext:run-program \"/bin/sleep\" '(\"1000\") :wait nil))))
                    (defun freeze ()
                      (consort::freeze-failure (consort::make-evaluation 0 \"s\") (make-condition 'simple-error :format-control \"x\") (consort::object \"keep\" 1)))")
    (is string= "1" (first-value image "(progn (mapc #'sb-thread:join-thread (list (sb-thread:make-thread #'freeze) (sb-thread:make-thread #'freeze)))
                                               (length consort::*frozen*))"))
    (prepare image "(consort::end-frozen 0)")))

;;; Breakpoints

(deftest definitions-that-were-too-slow-are-forgotten-and-noted-at-once
  (with-image (image)
    (prepare image *beside*)
    (is string= "(\"slow\")"
        (first-value image "(let ((thread nil))
                              (setf consort::*timed-out-definitions* (list (list \"owner\" \"file\" \"evaluated\" \"message\")))
                              (wrap 'consort::definition-of-key
                                    (lambda (definition-of-key key)
                                      (unless thread
                                        (setf thread (beside (lambda () (consort::note-timed-out-definition \"owner\" \"file\" \"slow\" \"message\")))))
                                      (funcall definition-of-key key)))
                              (consort::forget-timed-out-definition \"evaluated\")
                              (sb-thread:join-thread thread)
                              (mapcar #'third consort::*timed-out-definitions*))"))))

(deftest definitions-that-are-made-anew-while-breakpoints-are-put-into-them
  (with-probed (image file text)
    (prepare image *beside*)
    (loop for (part anew call value) in '(("(* x x)" "(defun square (x) (list :anew x))" "(square 3)" "(:ANEW 3)")
                                          ("(cons (first form)" "(defmacro swapped (form) (list 'quote (list :anew form)))" "(swapped (a b))" "(:ANEW (A B))")
                                          ("(with-slots" "(defmethod area ((thing thing) &key (scale 1)) (list :anew scale))" "(area (make-instance 'thing))" "(:ANEW 1)"))
          do (prepare image (format nil "(wrap 'consort::compile-unit (lambda (compile-unit unit) (unwrap 'consort::compile-unit) (let ((*package* (find-package :probed))) (eval (read-from-string ~S))) (funcall compile-unit unit)))" anew))
             (let ((answers (points-set image file text (list part))))
               (is-when part eq :false (path answers 0 "verified"))
               (is-when part equal t (text-contains "defined anew" (path answers 0 "message"))))
             (is-when part string= value (first-value image call :package "PROBED"))
             (points-set image file text)
             (is-when part string= value (first-value image call :package "PROBED")))))

(deftest hits-by-two-threads-are-all-counted
  (with-probed (image file text)
    (points-set image file text '("(square i)" "hit" ">1000000000"))
    (started image "(defvar *go* nil)
                    (defun runs () (sb-thread:make-thread (lambda () (loop until *go* do (sb-thread:thread-yield)) (probed::sum-to 300000))))
                    (let ((threads (list (runs) (runs))))
                      (setf *go* t)
                      (mapc #'sb-thread:join-thread threads))")
    (is string= "600000" (first-value image "(consort::breakpoint-hits (first consort::*breakpoints*))"))))

;;; The next call

(deftest a-call-that-asks-for-an-earlier-recording
  ;; Between the look at the recording and the claim, the function is made ready anew; after the
  ;; claim the wait is ended.
  (with-called (image file)
    (let ((id (awaiting image "called::total")))
      (prepare image (format nil "(defvar *it* nil) (defvar *claimed* nil)
        (defun ready-again ()
          (setf *it* consort::*awaited*)
          (sb-thread:with-mutex (consort::*probes-lock*) (consort::prepare-awaited *it* '() '(~S) 10)))
        (defun end-it () (sb-thread:with-mutex (consort::*probes-lock*) (consort::end-awaited \"the test ends it\")))
        (defmacro slow-swap (&rest arguments)
          `(progn (unless *it* (ready-again))
                  (prog1 (sb-ext:compare-and-swap ,@arguments)
                    (unless *claimed* (setf *claimed* t) (end-it)))))"
                             *scratch*))
      (prepare image (replacing "sb-ext:compare-and-swap" "cl-user::slow-swap" (source-of "debug/next-call.lisp" "(defun claim-call")) :package "CONSORT")
      (is string= "(T 12 :ENDED)" (first-value image "(let ((total (called::total '(1 2 3)))) (list *claimed* total (consort::awaited-state *it*)))" :package "CL-USER"))
      (call image "interrupt" "target" id)
      (is string= "interrupted" (path (answer image id) "error" "kind"))
      (plain-p image))))

(deftest a-method-that-is-defined-anew-while-it-is-made-ready-for-a-recording
  (with-called (image file)
    (prepare image *beside*)
    (prepare image "(wrap 'consort::compile-recorded
                          (lambda (compile-recorded unit)
                            (when (and (eq (consort::unit-kind unit) :method) (null (method-qualifiers (consort::unit-old unit))))
                              (unwrap 'consort::compile-recorded)
                              (let ((*package* (find-package :called))) (eval (read-from-string \"(defmethod pay ((cart cart) (by integer)) (list :anew by))\"))))
                            (funcall compile-recorded unit)))")
    (let ((id (awaiting image "called::pay")))
      (is string= "(:PAID (:ANEW 3))" (first-value image "(called::pay (make-instance 'called::cart :items '(1 2)) 3)"))
      (answer image id)
      (is string= "(:PAID (:ANEW 4))" (first-value image "(called::pay (make-instance 'called::cart :items '(1 2)) 4)"))
      (plain-p image))))

(deftest a-call-that-returns-while-its-recording-is-ended
  (with-called (image file)
    (prepare image (concatenate 'string *beside* "(defvar *go* nil) (defvar *ended* nil)"))
    (let ((id (awaiting image "called::price")))
      (prepare image "(wrap 'consort::keep-results
                            (lambda (keep-results &rest arguments)
                              (let ((it consort::*awaited*))
                                (when (and it (not *ended*) (eq (consort::awaited-outcome it) :returned))
                                  (setf *ended* t)
                                  (consort::close-awaited it)
                                  (loop until (or *go* (not (eq (consort::awaited-state it) :done))) do (sleep 0.01)))
                                (apply keep-results arguments))))
                      (defvar *thread* (sb-thread:make-thread (lambda () (called::price 3))))")
      (with-recorded-call (link answer image id)
        (is string= "6" (recorded-value answer)))
      (is string= "(6 T)" (first-value image "(progn (setf *go* t) (list (sb-thread:join-thread *thread*) *ended*))"))
      (plain-p image))))

(deftest threads-of-handlers-that-are-started-at-once
  ;; As after a time in which the system made no thread.
  (with-image (image)
    (prepare image "(sb-ext:defglobal *place* nil)
                    (sb-ext:defglobal *starts* '())
                    (sb-ext:defglobal *ready* (list 0))
                    (sb-ext:defglobal *calling* (list 0))
                    (sb-ext:defglobal *idle* (sb-thread:make-semaphore))
                    (defun wait-idle () (sb-ext:atomic-incf (car *calling*)) (sb-thread:wait-on-semaphore *idle*))
                    (defun start-together (count)
                      (let ((go nil) (function (pop *starts*)))
                        (setf *ready* (list 0))
                        (let ((threads (loop repeat count collect (sb-thread:make-thread (lambda ()
                                                                                            (sb-ext:atomic-incf (car *ready*))
                                                                                            (loop until go)
                                                                                            (funcall function))))))
                          (loop until (= count (car *ready*)) do (sb-thread:thread-yield))
                          (setf go t)
                          (loop until (<= (count-if #'sb-thread:thread-alive-p threads) (max 1 (car *calling*))) do (sb-thread:thread-yield)))
                        (prog1 (car *calling*) (setf *calling* (list 0) *place* nil))))")
    (is equal (format nil "~A" (make-list 10 :initial-element 1))
        (first-value image "(let ((counts '()))
                              (dotimes (i 10 counts)
                                (sb-int:encapsulate 'consort::start-thread-soon 'kept (lambda (start name function) (declare (ignore start name)) (push function *starts*)))
                                (consort::keep-calling '*place* #'wait-idle)
                                (sb-int:unencapsulate 'consort::start-thread-soon 'kept)
                                (push (start-together 16) counts)))"))))
