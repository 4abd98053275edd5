;;;; Stops of a form that is evaluated, where no function of the program's is on the stack: there is
;;;; a frame for the form. The functions of debug-tests.lisp and stops-in-odd-places-tests.lisp are
;;;; used.

(in-package :consort)

(defun text-at (frame text)
  "The part of TEXT that FRAME is at."
  (let ((span (path-if-any frame "place" "span")))
    (and span (subseq text (aref span 0) (aref span 1)))))

(defun end-stop (image stop id)
  (on-stop image "debug-abort" stop)
  (answer image id))

(deftest a-stop-in-a-form-alone-has-a-frame
  (with-image (image)
    (prepare image "(defpackage :alone (:use :cl)) (define-condition alone::noted (condition) ())")
    (call image "debug-break-on" "owner" "test" "types" (vector "alone::noted"))
    (loop for (code names at) in '(("(error \"x\")" ("top-level form") "(error \"x\")")
                                   ("(break)" ("top-level form") "(break)")
                                   ("(signal 'alone::noted)" ("top-level form") "(signal 'alone::noted)")
                                   ("(car 1)" ("CAR" "top-level form") "(car 1)")
                                   ("1 (progn 2 (error \"y\") 3)" ("top-level form") "(error \"y\")")
                                   ("(progn (list 1 (when t (break))))" ("top-level form") "(break)")
                                   ("(unless nil (error \"z\"))" ("top-level form") "(error \"z\")")
                                   ("(let ((x 1)) (error \"x\") x)" ("top-level form") "(error \"x\")")
                                   ("(let ((x 1)) (list x) (error \"x\"))" ("top-level form") "(error \"x\")")
                                   (" ; a comment
   unbound-here" ("top-level form") "unbound-here"))
          do (multiple-value-bind (stop id) (stopped-at image code)
               (let ((frames (frames-of image stop)))
                 (is-when code equal names (map 'list (lambda (frame) (path frame "name")) frames))
                 (let ((frame (aref frames (1- (length frames)))))
                   (is-when code string= at (or (text-at frame code) "nowhere"))
                   (is-when code eq :false (path frame "system"))
                   (is-when code string= "3" (in-frame image stop (path frame "number") "(+ 1 2)"))))
               (end-stop image stop id)))))

(deftest the-frame-of-a-form-can-be-used
  (with-image (image)
    (prepare image "(defvar *fails* t) (defun ends () (break))" :session "others")
    ;; The frame has no variables, and none is set.
    (multiple-value-bind (stop id) (stopped-at image "(when *fails* (error \"x\"))")
      (is equalp #() (path (on-stop image "debug-locals" stop "frame" 0) "result" "locals"))
      (ok (text-contains "no variable" (path (on-stop image "debug-set" stop "frame" 0 "name" "CONSORT::FORM" "code" "1") "error" "message")))
      (is string= "(:MINE)" (in-frame image stop 0 "(list :mine)"))
      (is string= "DIVISION-BY-ZERO" (path (on-stop image "debug-eval" stop "frame" 0 "code" "(/ 1 0)") "result" "error" "type"))
      ;; To restart it is to evaluate the form again.
      (on-stop image "debug-eval" stop "frame" 0 "code" "(setf *fails* nil)")
      (is string= "sent" (path (on-stop image "debug-restart-frame" stop "frame" 0) "result" "status"))
      (is string= "NIL" (outcome-text image id)))
    (multiple-value-bind (stop id) (stopped-at image "(error \"x\") :next")
      (is string= "sent" (path (on-stop image "debug-return" stop "frame" 0 "code" ":instead") "result" "status"))
      (is string= ":NEXT" (outcome-text image id)))
    (multiple-value-bind (stop id) (stopped-at image "(progn (error \"x\") 1)")
      (on-stop image "debug-return" stop "frame" 0 "code" ":instead")
      (is string= ":INSTEAD" (outcome-text image id)))
    ;; A function whose call in tail position left nothing of it.
    (multiple-value-bind (stop id) (stopped-at image "(ends)")
      (ok (intersection '("ENDS" "top-level form") (frame-names image stop) :test #'string=))
      (end-stop image stop id))
    ;; Where the program's functions are on the stack, the frames are unchanged.
    (multiple-value-bind (stop id) (stopped-at image "(defun fails-alone () (error \"x\")) (fails-alone)")
      (is equal '("FAILS-ALONE") (frame-names image stop))
      (end-stop image stop id))))

(deftest a-form-of-a-file-has-a-frame
  (with-image (image)
    (let* ((text (format nil ";;;; A file.~%(list 1)~%~%(progn~%  (list 2)~%  (error \"é x\"))~%"))
           (file (write-file "alone.lisp" text))
           (code (subseq text (search "(progn" text))))
      (multiple-value-bind (stop id) (stopped-at image code :origin (object "file" file "line" 4 "column" 1))
        (let ((frame (aref (frames-of image stop) 0)))
          (is string= "top-level form" (path frame "name"))
          (is string= file (path frame "place" "file"))
          (is string= "(error \"é x\")" (or (text-at frame text) "nowhere"))
          (is equalp #(6 3 6 16) (path frame "place" "position")))
        (end-stop image stop id)))))
