;;;; Frames of stopped programs: their variables, code that is evaluated in them, and their places.
;;;; The functions of debug-tests.lisp are used.

(in-package :consort)

(deftest locals-and-the-compiler
  (with-image (image)
    (prepare image "(defun fails (x) (error \"boom ~A\" x))
                    (defun forgetful (a) (let ((b (list a))) (when (> a 2) (setf b (list (fails b)))) (list b)))
                    (defun fast (a) (declare (optimize (speed 3) (debug 0) (safety 0))) (list (fails a)))
                    (setf *print-length* 2)")
    (multiple-value-bind (stop id) (stopped-at image "(let ((k (list 1 2 3))) (list (forgetful 4) k))")
      (let ((forgetful (frame-number image stop "FORGETFUL")))
        (is string= "4" (path (local-in image stop forgetful "A") "value" "text"))
        (ok (text-contains "not kept by the compiler" (path (local-in image stop forgetful "B") "missing"))))
      ;; Text that is evaluated for debugging keeps its own.
      (is string= "(1 2 3)" (path (local-in image stop (frame-number image stop "top-level form") "K") "value" "text"))
      (on-stop image "debug-abort" stop)
      (answer image id))
    (multiple-value-bind (stop id) (stopped-at image "(list (fast 1))")
      (let ((frame (frame-number image stop "FAST")))
        (is eq :false (path (aref (frames-of image stop) frame) "unwindable"))
        (is string= "not-unwindable" (path (on-stop image "debug-return" stop "frame" frame) "error" "kind"))
        (is string= "not-unwindable" (path (on-stop image "debug-restart-frame" stop "frame" frame) "error" "kind")))
      (on-stop image "debug-abort" stop)
      (answer image id))
    ;; A form's declamations are kept; those that evaluation for debugging adds are not.
    (prepare image "(declaim (optimize (debug 1) (safety 1)))")
    (is string= "(2 3)" (outcome-text image (debug-id image "(declaim (optimize (safety 3))) (list (second (assoc 'debug (sb-c::policy-to-decl-spec sb-c::*policy*))) (second (assoc 'safety (sb-c::policy-to-decl-spec sb-c::*policy*))))")))
    (is string= "(1 3)" (first-value image "(list (second (assoc 'debug (sb-c::policy-to-decl-spec sb-c::*policy*))) (second (assoc 'safety (sb-c::policy-to-decl-spec sb-c::*policy*))))"))))

(deftest locals-are-set
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(let ((k (list 1 2 3)) (n 7)) (list (fails k) k n))")
      (let ((frame (frame-number image stop "top-level form")))
        (flet ((set-to (name code) (on-stop image "debug-set" stop "frame" frame "name" name "code" code)))
          (is string= "(1 2 3 :MORE)" (path (set-to "K" "(append k '(:more))") "result" "values" 0 "text"))
          (is string= "(1 2 3 :MORE)" (path (local-in image stop frame "K") "value" "text"))
          (ok (text-contains "no variable" (path (set-to "Z" "1") "error" "message")))
          (is string= "DIVISION-BY-ZERO" (path (set-to "K" "(/ 1 0)") "result" "error" "type"))))
      (restarted image stop "USE-OTHER" "arguments" (vector "1"))
      (is string= "((:USED 1) (1 2 3 :MORE) 7)" (outcome-text image id)))))

;;; A local function that lives as long as its parent's frame has the parent's variables by a
;;; pointer to that frame, which must not be overwritten.
(deftest locals-of-a-parent-are-set
  (with-debugged (image)
    (let ((adding "(defun adding (n) (let ((k 0)) (flet ((add (z) (incf k z) (fails z) k)) (add n) (add n) (list k))))"))
      (multiple-value-bind (stop id) (stopped-at image (format nil "~A (adding 3)" adding))
        (let ((frame (frame-number image stop "(FLET ADD :IN ADDING)")))
          (is string= "3" (path (local-in image stop frame "K") "value" "text"))
          (is string= "100" (path (on-stop image "debug-set" stop "frame" frame "name" "K" "code" "100") "result" "values" 0 "text"))
          (is string= "100" (path (local-in image stop frame "K") "value" "text"))
          (is string= "100" (path (local-in image stop (frame-number image stop "ADDING") "K") "value" "text")))
        (restarted image stop "PLAINLY")
        (let ((stop (stop-of-id image id 1)))
          ;; So has code in the frame: SETF, and macros that come to it.
          (is string= "51" (in-frame image stop (frame-number image stop "(FLET ADD :IN ADDING)") "(progn (setf k 50) (incf k))"))
          (restarted image stop "PLAINLY"))
        (is string= "(51)" (outcome-text image id))))
    (multiple-value-bind (stop id) (stopped-at image "(defun pushing (n) (let ((k (list 0))) (labels ((add (z) (when (plusp z) (push z k) (fails z) (add (1- z))))) (add n) (list k)))) (pushing 2)")
      (let ((frame (frame-number image stop "(LABELS ADD :IN PUSHING)")))
        (is string= "(100)" (path (on-stop image "debug-set" stop "frame" frame "name" "K" "code" "(list 100)") "result" "values" 0 "text")))
      (restarted image stop "PLAINLY")
      (restarted image (stop-of-id image id 1) "PLAINLY")
      (is string= "((1 100))" (outcome-text image id)))
    ;; One whose function outlives the frame has a cell of its own.
    (multiple-value-bind (stop id) (stopped-at image "(defun counter (k) (list (lambda (z) (incf k z) (fails z) k) (lambda () k))) (let ((c (counter 1))) (funcall (first c) 2) (list (funcall (second c))))")
      (let ((frame (frame-number image stop "(LAMBDA (Z) :IN COUNTER)")))
        (is string= "8" (path (on-stop image "debug-set" stop "frame" frame "name" "K" "code" "(+ k 5)") "result" "values" 0 "text")))
      (restarted image stop "PLAINLY")
      (is string= "(8)" (outcome-text image id)))))

(deftest code-in-a-frame-sets-safely
  (with-debugged (image)
    (multiple-value-bind (stop id) (stopped-at image "(defun mixed (list n &rest more) (let ((found nil)) (fails n) (list list n more found)))
                                                      (defvar *later* nil) (mixed '(1) 7 8 9)")
      (let ((frame (frame-number image stop "MIXED")))
        (flet ((code (code) (in-frame image stop frame code)))
          ;; As by `debug-set`: no other type of number, which the compiler may rely on.
          (ok (text-contains "N is of type fixnum now" (path (code "(setf n \"a\")") "result" "error" "message")))
          (is string= "7" (code "n"))
          (is string= "12" (code "(setf found 12)"))
          (is string= "(2 1)" (code "(push 2 list)"))
          (is string= "(8 9)" (code "more"))
          ;; The count of the arguments is a variable without a name.
          (ok (text-contains "no variable" (path (on-stop image "debug-set" stop "frame" frame "name" "NIL" "code" "100000") "error" "message")))
          (is eq nil (local-in image stop frame "NIL"))
          ;; A closure made there does not touch the stack when that is another's.
          (code "(setf *later* (lambda (x) (setf n x)))")))
      (restarted image stop "PLAINLY")
      (is string= "((2 1) 7 (8 9) 12)" (outcome-text image id)))
    (ok (text-contains "only while the code in that frame runs" (path (evaluated image "(funcall *later* 5)") "error" "message")))))

(defun place-text (frame text)
  "Returns what is at the place of FRAME in TEXT."
  (let ((span (path frame "place" "span")))
    (subseq text (aref span 0) (aref span 1))))

(deftest places-in-evaluated-text
  (with-debugged (image)
    (let* ((text "; a comment
(defun from-text (q)
  \"Text (with parentheses.\"
  (let ((r `(,@(list q) #\\( 2)))
    #+no-such-feature (not this)
    (list '(fails) #'car (if r (fails q) 0))))

(let ((k 8)) (list k (from-text (1+ k))))")
           (id (debug-id image text))
           (frames (frames-of image (stop-of-id image id))))
      (is string= "(fails q)" (place-text (aref frames 1) text))
      (is string= "(from-text (1+ k))" (place-text (aref frames 2) text))
      (is = id (path (aref frames 1) "place" "evaluation"))
      (is string= "(fails q)" (path (aref frames 1) "place" "form"))
      (call image "interrupt" "target" id)
      (answer image id)
      ;; The definitions that it made have their places from then on.
      (let* ((again (debug-id image "(from-text 3)"))
             (frames (frames-of image (stop-of-id image again))))
        (is string= "(fails q)" (place-text (aref frames 1) text))
        (is = id (path (aref frames 1) "place" "evaluation"))))))

(deftest places-in-files
  (with-debugged (image)
    (let* ((text (format nil "(in-package :cl-user)~%#+no-such-feature (defun not-there () 1)~%~%(defun from-file (q)~%  (let ((r 1)) (list r (fails q))))~%~
                              (defmethod from-method ((q integer)) (list (from-file (1+ q))))~%"))
           (file (write-file "debugged.lisp" text)))
      (prepare image (format nil "(load (compile-file ~S :output-file ~S))" file (concatenate 'string *scratch* "debugged.fasl")) :session "others")
      (multiple-value-bind (stop id) (stopped-at image "(list (from-method 9))")
        (let ((frames (frames-of image stop)))
          (is string= "(fails q)" (place-text (aref frames 1) text))
          (is string= file (path (aref frames 1) "place" "file"))
          (is string= "(from-file (1+ q))" (place-text (aref frames 2) text)))
        (on-stop image "debug-abort" stop)
        (answer image id))
      ;; The origin of a text that is a part of a file.
      (let* ((part "(let ((k 1)) (list k (fails k)))")
             (id (debug-id image part :origin (object "file" file "line" 4 "column" 1)))
             (place (path (aref (frames-of image (stop-of-id image id)) 1) "place"))
             (start (search "(defun from-file" text)))
        (is string= file (path place "file"))
        (is equalp (vector (+ start (search "(fails k)" part)) (+ start (search "(fails k)" part) 9)) (path place "span"))
        (call image "interrupt" "target" id)
        (answer image id))
      ;; The editor's text need not be the file's, which has fewer lines.
      (let* ((part (format nil "(let ((k 1))~%  (list \"~C\" (fails k)))" (code-char #x1f600)))
             (id (debug-id image part :origin (object "file" file "line" 400 "column" 3)))
             (place (path (aref (frames-of image (stop-of-id image id)) 1) "place")))
        (is equalp #(401 14 401 23) (path place "position"))
        (call image "interrupt" "target" id)
        (answer image id))
      ;; A file that has changed since.
      (prepare image (format nil "(with-open-file (out ~S :direction :output :if-exists :append) (terpri out)) (sb-posix:utime ~:*~S 0 0)" file) :session "others")
      (multiple-value-bind (stop id) (stopped-at image "(list (from-method 9))")
        (let* ((frame (aref (frames-of image stop) 1)) (place (path frame "place")))
          (is eq :true (path place "changed"))
          (is eq nil (path-if-any place "span"))
          (is equal '("function" "from-file") (list (path frame "definition" "kind") (path frame "definition" "name"))))
        (on-stop image "debug-abort" stop)
        (answer image id)))))

(deftest several-variables-of-one-name
  (with-debugged (image)
    (multiple-value-bind (stop id)
        (stopped-at image "(defun shadows (x) (let ((x (list x))) (let ((x (list x 2)) (y 3)) (fails y) (setf (get 'inner 'x) (list x y))) (setf (get 'middle 'x) x)) (list x)) (shadows 1)")
      (let ((frame (frame-number image stop "SHADOWS")))
        (flet ((set-to (name code) (on-stop image "debug-set" stop "frame" frame "name" name "code" code))
               (all () (map 'list (lambda (local) (list (path local "name") (path-if-any local "value" "text")))
                            (path (on-stop image "debug-locals" stop "frame" frame) "result" "locals"))))
          ;; The innermost one first.
          (is equal '("((1) 2)" "(1)" "1") (loop for (name value) in (all) when (eql 0 (search "X" name)) collect value))
          (is equal "3" (second (find "Y" (all) :key #'first :test #'string=)))
          (ok (text-contains "Say which: X#" (path (set-to "X" "7") "error" "message")))
          (is string= "7" (path (set-to (first (find "1" (all) :key #'second :test #'equal)) "7") "result" "values" 0 "text"))
          (is string= "(:MINE)" (path (set-to (first (find "(1)" (all) :key #'second :test #'equal)) "'(:mine)") "result" "values" 0 "text"))))
      (restarted image stop "USE-OTHER" "arguments" (vector "1"))
      (is string= "(7)" (outcome-text image id)))))

(defun loaded-part (answer number)
  "The part of the form that was loaded at which the frame NUMBER of ANSWER, a page of frames, is,
  and the form."
  (let* ((place (path answer "frames" number "place")) (start (path place "loaded" "start"))
         (form (path answer "texts" (path place "loaded" "text"))))
    (list (subseq form (- (path place "span" 0) start) (- (path place "span" 1) start)) form)))

(deftest frames-have-the-forms-that-were-loaded
  (with-debugged (image)
    (let* ((form (format nil "(defun of-form (q)~%  (let ((r 1))~%    (list r (fails q))))"))
           (text (format nil "(in-package :cl-user)~%~A~%" form))
           (file (write-file "forms-of-files.lisp" text)))
      (flet ((part (&optional (number 1))
               (multiple-value-bind (stop id) (stopped-at image "(list (of-form 9))")
                 (let ((answer (path (on-stop image "debug-frames" stop "count" 5) "result")))
                   (on-stop image "debug-abort" stop)
                   (answer image id)
                   (values (loaded-part answer number) (path-if-any answer "frames" number "place" "changed")))))
             (change (text)
               (write-file "forms-of-files.lisp" text)))
        (prepare image (format nil "(load ~S)" file) :session "others")
        (is equal (list "(fails q)" form) (part))
        ;; Evaluated without a debugger, and reloaded; the file has other text at that place then.
        (prepare image form :session "others" :origin (object "file" file "line" 2 "column" 1))
        (is equal (list (list "(fails q)" form) nil) (multiple-value-list (part)))
        (change (format nil ";~A" text))
        (is equal (list (list "(fails q)" form) :true) (multiple-value-list (part)))
        (change text)
        (call image "compile-string" "code" form "package" "COMMON-LISP-USER" "file" file "line" 2)
        (is equal (list (list "(fails q)" form) nil) (multiple-value-list (part)))
        (change (format nil ";~A" text))
        (is equal (list (list "(fails q)" form) :true) (multiple-value-list (part)))
        ;; Many forms were evaluated since then, of which only the newest have their texts kept.
        (change text)
        (prepare image form :session "others" :origin (object "file" file "line" 2 "column" 1))
        (prepare image "(let ((source (consort::make-source #p\"/no/such.lisp\")))
                          (dotimes (i 4000) (consort::note-evaluated-source \"(list 1)\" 0 8 (consort::make-origin source (* 10 i) 1 1))))"
                 :session "others")
        (is equal (list (list "(fails q)" form) nil) (multiple-value-list (part)))))))
