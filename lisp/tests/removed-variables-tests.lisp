;;;; Variables of which the compiler kept nothing: they are listed, and code that uses one is told
;;;; why it cannot.

(in-package :consort)

(defparameter *removing-text* "(defpackage :removing (:use :cl))
(in-package :removing)
(defvar *special* 1)
(defun entry (given &key (other 2))
  (declare (optimize (debug 1)))
  (let* ((gone (length given))
         (*special* (+ gone other)))
    (dolist (each given)
      (multiple-value-bind (quotient rest) (floor each gone)
        (flet ((within (inner) (list inner (error \"no ~A\" each))))
          (print (within (+ quotient rest)) (make-broadcast-stream)))))
    (let ((later 3)) (list later))))
")

(deftest removed-variables-are-named
  (with-image (image)
    (let* ((text *removing-text*) (file (write-file "removing.lisp" text)))
      (dolist (code (list (format nil "(load (compile-file ~S :output-file ~S))" file (concatenate 'string file ".fasl"))
                          (format nil "(load ~S)" file)))
        (prepare image code)
        (multiple-value-bind (stop id) (stopped-at image "(removing::entry (list 1 2 3))")
          (declare (ignorable id))
          (let* ((frame (loop for each across (frames-of image stop) for number from 0
                              when (text-contains "WITHIN" (path each "name")) return number
                              finally (return (frame-number image stop "REMOVING::ENTRY"))))
                 (locals (path (on-stop image "debug-locals" stop "frame" frame) "result" "locals"))
                 (names (map 'list (lambda (local) (path local "name")) locals))
                 (missing (remove-if (lambda (local) (path-if-any local "value")) locals)))
            (is-when code equal '() (set-difference '("GIVEN" "OTHER" "GONE" "EACH" "QUOTIENT" "REST" "INNER") names :test #'string=))
            (is-when code equal '() (intersection '("LATER" "*SPECIAL*") names :test #'string=))
            (is-when code equal names (remove-duplicates names :test #'string=))
            (ok (find "(debug 3)" missing :key (lambda (local) (path local "missing")) :test #'text-contains))
            (loop for local across missing
                  do (ok (text-contains "not kept by the compiler" (path local "missing")))
                     (ok (text-contains "was not kept by the compiler"
                                        (path (on-stop image "debug-eval" stop "frame" frame "code" (format nil "(list ~A)" (path local "name")))
                                              "result" "error" "message")))
                     (when (text-contains "(debug 3)" (path local "missing"))
                       (ok (text-contains "was not kept by the compiler"
                                          (path (on-stop image "debug-set" stop "frame" frame "name" (path local "name") "code" "1") "error" "message")))))
            ;; One that there is not, and a special one.
            (ok (text-contains "unbound" (path (on-stop image "debug-eval" stop "frame" frame "code" "later") "result" "error" "message")))
            (is string= "5" (in-frame image stop frame "*special*"))
            ;; A binding of the code's own.
            (is string= "7" (in-frame image stop frame "(let ((gone 7)) gone)")))
          (on-stop image "debug-abort" stop)
          (answer image id))))))

(defparameter *scopes-text* "(defmacro binding ((name) &body body) `(let ((,name (list 1))) ,@body))
(defun scoped (a)
  (let* ((early (list a))
         (at (progn (let ((ended (list a))) (print ended (make-broadcast-stream)) (setf (car ended) 2))
                    (fails (car early))))
         (later (list at)))
    (flet ((within (parameter) (list (length parameter) parameter)))
      (list (within later) (let ((a (list 8))) (nreverse a)) later))))
(defun through-macro ()
  (list (binding (bound) (print bound (make-broadcast-stream)) (list (fails (car bound))))
        (let ((bound (list 2))) (nreverse bound))))
(defun counted (n)
  (list (let ((i (list 8))) (nreverse i)) (dotimes (i n (fails n)) (print i (make-broadcast-stream)))))
(defun keyed (&key ((:size size) 1))
  (let ((size (list size))) (print size (make-broadcast-stream)) (setf (car size) 2))
  (list (fails 1)))
")

(deftest variables-that-are-not-bound-at-the-place-are-not-listed
  (with-debugged (image)
    (let ((file (write-file "scopes.lisp" *scopes-text*)))
      (prepare image (format nil "(load (compile-file ~S))" file))
      (flet ((names-at (stop frame)
               (map 'list (lambda (local) (path local "name")) (path (on-stop image "debug-locals" stop "frame" frame) "result" "locals"))))
        (multiple-value-bind (stop id) (stopped-at image "(list (scoped 1))")
          (let ((frame (frame-number image stop "SCOPED")))
            (is equal '("A" "EARLY") (sort (names-at stop frame) #'string<))
            (dolist (name '("LATER" "ENDED"))
              (ok (text-contains "is not bound at this place"
                                 (path (on-stop image "debug-eval" stop "frame" frame "code" (format nil "(list ~A)" name)) "result" "error" "message")))
              (ok (text-contains "is not bound at this place"
                                 (path (on-stop image "debug-set" stop "frame" frame "name" name "code" "1") "error" "message")))))
          (on-stop image "debug-abort" stop)
          (answer image id))
        ;; What a macro binds there cannot be told by the text.
        (multiple-value-bind (stop id) (stopped-at image "(list (through-macro))")
          (is equal '("BOUND") (names-at stop (frame-number image stop "THROUGH-MACRO")))
          (on-stop image "debug-abort" stop)
          (answer image id))
        (loop for (code function name) in '(("(list (counted 2))" "COUNTED" "I") ("(list (keyed :size 3))" "KEYED" "SIZE"))
              do (multiple-value-bind (stop id) (stopped-at image code)
                   (ok (find name (names-at stop (frame-number image stop function)) :test #'string=))
                   (on-stop image "debug-abort" stop)
                   (answer image id)))))))

(deftest text-that-is-evaluated-for-debugging-keeps-what-debug-2-keeps
  (with-debugged (image)
    (let* ((stop (stopped-at image "(defun summed (items) (let ((sum 0)) (dolist (item items sum) (incf sum (length (fails item))))))
                                    (list (summed '(1 2)))"))
           (frame (frame-number image stop "SUMMED"))
           (item (find "ITEM" (path (on-stop image "debug-locals" stop "frame" frame) "result" "locals")
                       :key (lambda (local) (path local "name")) :test #'string=)))
      (ok (text-contains "(debug 3)" (path item "missing")))
      (ok (text-contains "was not kept by the compiler" (path (on-stop image "debug-eval" stop "frame" frame "code" "item") "result" "error" "message"))))))

(deftest code-at-a-stop-has-no-place-in-the-text-that-is-stopped
  (with-debugged (image)
    (let* ((text "(list (fails 1))")
           (file (write-file "stopped-text.lisp" text))
           (stop (stop-of-id image (debug-id image text :origin (object "file" file "line" 1 "column" 1)))))
      (nesting image stop "no-such-variable")
      (let ((frame (aref (frames-of image (stop-of-id image (path stop "id") 1)) 0)))
        (is string= "form at the stop" (path frame "name"))
        (is eq nil (path-if-any frame "place" "file"))))))
