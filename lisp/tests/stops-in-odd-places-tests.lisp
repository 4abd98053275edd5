;;;; Stops in odd places: while a form is read, while a macro is expanded, in inlined code, where
;;;; the stack is full, where a class is made, in methods.

(in-package :consort)

(defun frame-names (image stop)
  (map 'list (lambda (frame) (path frame "name")) (path (on-stop image "debug-frames" stop "count" 1000) "result" "frames")))

(deftest a-stop-while-a-form-is-read
  (with-image (image)
    (prepare image "(defun fetch (key) (restart-case (error \"no ~A\" key) (use-value (value) value)))")
    (let* ((id (debug-id image "(list :read #.(fetch :k))")) (stop (await-event image "stopped" :id id)))
      (is string= "no K" (path stop "condition" "message"))
      (ok (find "FETCH" (frame-names image stop) :test #'string=))
      (on-stop image "debug-restart" stop "index" 0 "name" "USE-VALUE" "arguments" (vector "42"))
      (is string= "(:READ 42)" (outcome-text image id)))))

(deftest restarts-of-a-stop-that-is-left-meanwhile
  ;; A request may find the stop, and read its restarts when the thread has left it and uses their
  ;; place on the stack for something else.
  (with-image (image)
    (prepare image *debugged-functions*)
    (multiple-value-bind (stop id) (stopped-at image "(outer 5)")
      (evaluated image "(defvar *stop* (first consort::*stops*))" :session "other")
      (on-stop image "debug-abort" stop)
      (answer image id)
      (evaluated image "(labels ((deep (n)
                                   (let ((values (make-array 100 :initial-element n)))
                                     (declare (dynamic-extent values))
                                     (if (plusp n) (+ (aref values 0) (deep (1- n))) 0))))
                          (deep 200))")
      (is string= "(:FOUND NIL)"
          (first-value image (format nil "(list (and (consort::restart-of *stop* (consort::object \"index\" ~D \"name\" \"USE-OTHER\")) :found)
                                                (consort::own-continue *stop*))"
                                     (restart-index stop "USE-OTHER"))
                       :session "other")))))

(deftest a-stop-while-a-macro-is-expanded
  (with-image (image)
    (prepare image "(defmacro of-kind (kind) (if (eq kind :bad) (restart-case (error \"no kind ~A\" kind) (use-value (value) value)) `(list ,kind)))")
    ;; The compiler handles the error, and the form fails where it would run.
    (let* ((id (debug-id image "(let ((x 1)) (list x (of-kind :bad)))")) (stop (await-event image "stopped" :id id)))
      (is string= "SB-INT:COMPILED-PROGRAM-ERROR" (path stop "condition" "type"))
      (on-stop image "debug-abort" stop)
      (is string= "error" (path (answer image id) "result" "status")))
    ;; Where errors are stopped at as they are signalled, it is the macro that stops.
    (call image "debug-break-on" "owner" "test" "types" (vector "error"))
    (let* ((id (debug-id image "(let ((x 1)) (list x (of-kind :bad)))")) (stop (await-event image "stopped" :id id)))
      (is string= "no kind BAD" (path stop "condition" "message"))
      (ok (some (lambda (name) (search "OF-KIND" name)) (frame-names image stop)))
      (let ((index (position "USE-VALUE" (path stop "restarts") :test #'equal :key (lambda (restart) (path-if-any restart "name")))))
        (on-stop image "debug-restart" stop "index" index "name" "USE-VALUE" "arguments" (vector ":instead")))
      (is string= "(1 :INSTEAD)" (outcome-text image id)))))

(deftest stops-beside-inlined-code
  (with-image (image)
    (let* ((text "(defpackage :inlined (:use :cl))
(in-package :inlined)
(declaim (inline half))
(defun half (x)
  (/ x 2))
(defun halves (list)
  (let ((sum 0))
    (dolist (x list sum)
      (incf sum (half x)))))
")
           (file (write-file "inlined.lisp" text)))
      (prepare image (format nil "(load (compile-file ~S :output-file ~S))" file (concatenate 'string *scratch* "inlined.fasl")) :session "others")
      ;; An error in the inlined copy is one of the function that has it.
      (let* ((id (debug-id image "(inlined::halves '(4 :odd))")) (stop (await-event image "stopped" :id id)))
        (ok (find "INLINED::HALVES" (frame-names image stop) :test #'string=))
        (is eq nil (find "INLINED::HALF" (frame-names image stop) :test #'string=))
        (on-stop image "debug-abort" stop)
        (is string= "error" (path (answer image id) "result" "status")))
      ;; A breakpoint is in the function, and not in copies of it that were made before.
      (is equalp #(:true) (map 'vector (lambda (answer) (path answer "verified")) (points-set image file text '("(/ x 2)"))))
      (is string= "3" (outcome-text image (debug-id image "(inlined::halves '(4 2))")))
      (let* ((id (debug-id image "(funcall 'inlined::half 8)")) (stop (await-event image "stopped" :id id)))
        (is string= "breakpoint" (path stop "reason"))
        (is string= "4" (went-on image stop id))))))

(deftest a-full-stack-is-reported-and-not-stopped-at
  (with-image (image)
    (prepare image "(defun deep (n) (list (deep (1+ n))))")
    (let* ((id (debug-id image "(deep 0)")) (outcome (path (answer image id) "result")))
      (is string= "error" (path outcome "status"))
      (ok (text-contains "EXHAUSTED" (path outcome "error" "type"))))
    ;; The next one stops as ever.
    (let* ((id (debug-id image "(car 1)")) (stop (await-event image "stopped" :id id)))
      (is string= "TYPE-ERROR" (path stop "condition" "type"))
      (on-stop image "debug-abort" stop)
      (is string= "error" (path (answer image id) "result" "status")))))

(deftest locals-of-a-method-are-those-of-its-text
  (with-image (image)
    (let* ((text "(defpackage :in-methods (:use :cl))
(in-package :in-methods)
(defclass thing () ((size :initarg :size)))
(defgeneric area (thing scale))
(defmethod area ((thing thing) scale)
  (list (slot-value thing 'size) scale))
(defmethod area :around ((thing thing) scale)
  (let ((found (call-next-method)))
    (list (slot-value thing 'size) found)))
")
           (file (write-file "in-methods.lisp" text)))
      (prepare image (format nil "(load (compile-file ~S :output-file ~S))" file (concatenate 'string *scratch* "in-methods.fasl")))
      (points-set image file text '("(list (slot-value thing 'size) scale)") '("(list (slot-value thing 'size) found)"))
      (multiple-value-bind (stop id) (stopped-at image "(in-methods::area (make-instance 'in-methods::thing :size 2) 3)")
        (is equal '("SCALE" "THING") (sort (mapcar #'car (locals-at image stop)) #'string<))
        (on-stop image "debug-continue" stop)
        (let ((around (stop-of-id image id 1)))
          (is equal '("FOUND" "SCALE" "THING") (sort (mapcar #'car (locals-at image around)) #'string<))
          (is string= "(2 (2 3))" (went-on image around id)))))))
