;;;; (STEP FORM) in text that is evaluated for debugging. The functions of debug-tests.lisp,
;;;; form-frames-tests.lisp and probes-tests.lisp are used.

(in-package :consort)

(defun end-of-evaluation (image stop how id)
  "Leaves STOP by the step HOW, after which the evaluation ID ends; returns what it gives."
  (is string= "sent" (path (on-stop image "debug-step" stop "how" how) "result" "status"))
  (outcome-text image id))

(deftest step-stops-in-the-function-that-is-called
  (with-probed (image file text)
    (multiple-value-bind (stop id) (stopped-at image "(step (probed::square 5))")
      (is string= "step" (path stop "reason"))
      (is string= file (path stop "at" "file"))
      (is string= "(* x x)" (span-text (path stop "at") text))
      (is equal '(("X" . "5")) (locals-at image stop))
      (is equal '("PROBED::SQUARE" "top-level form") (frame-names image stop))
      (is string= "30" (in-frame image stop 0 "(* 6 x)"))
      (is string= "25" (end-of-evaluation image stop "over" id)))
    ;; Methods too; a step goes on from there.
    (multiple-value-bind (stop id) (stopped-at image "(list (step (probed::area (make-instance 'probed::thing :size 2))))")
      (is string= "(make-instance 'probed::thing :size 2)" (text-at-moment stop "(list (step (probed::area (make-instance 'probed::thing :size 2))))"))
      (let ((into (stepped image (stepped image stop "over") "into")))
        (is string= file (path into "at" "file"))
        (is string= "(9)" (went-on image into id))))
    ;; A definition that had probes for this only is plain again.
    (eventually (string= "NIL" (first-value image "(find-if #'consort::unit-p (consort::function-constants #'probed::square))")))))

(defun text-at-moment (stop code)
  (and (null (path-if-any stop "at" "file"))
       (span-text (path stop "at") code)))

(deftest step-stops-at-the-form-itself
  (with-probed (image file text)
    (let ((code "(let ((k 3))
  (list k (step (+ k (probed::square 2)))))"))
      (multiple-value-bind (stop id) (stopped-at image code)
        (is string= "step" (path stop "reason"))
        (is string= "(+ k (probed::square 2))" (text-at-moment stop code))
        (is = id (path stop "at" "evaluation"))
        (is string= "3" (cdr (assoc "K" (locals-at image stop) :test #'string=)))
        (is equal '("top-level form") (frame-names image stop))
        (let* ((argument (stepped image stop "into"))
               (into (stepped image argument "into"))
               (after (stepped image into "out")))
          (is string= "(probed::square 2)" (text-at-moment argument code))
          (is string= "(* x x)" (span-text (path into "at") text))
          (is string= "(probed::square 2)" (text-at-moment after code))
          (is eq :true (path after "at" "after"))
          (is string= "4" (path after "at" "value"))
          (is string= "(3 7)" (went-on image after id)))))
    ;; A function whose source is not known; all values; a form in a file.
    (prepare image "(defun cl-user::unknown (x) (values (list x) :second))" :session "others")
    (multiple-value-bind (stop id) (stopped-at image "1 (multiple-value-list (step (unknown 1)))")
      (is string= "(unknown 1)" (text-at-moment stop "1 (multiple-value-list (step (unknown 1)))"))
      (is string= "((1) :SECOND)" (end-of-evaluation image stop "over" id)))
    (let* ((text (format nil "(list 1)~%~%(step (list (unknown 2)))~%"))
           (file (write-file "stepped.lisp" text)))
      (multiple-value-bind (stop id) (stopped-at image "(step (list (unknown 2)))" :origin (object "file" file "line" 3 "column" 1))
        (is string= file (path stop "at" "file"))
        (is string= "(list (unknown 2))" (span-text (path stop "at") text))
        (is equalp #(3 7 3 25) (path stop "at" "position"))
        (is equalp #(3 7 3 25) (path (frames-of image stop) 0 "place" "position"))
        (is string= "((2))" (went-on image stop id))))
    ;; An abort ends it, as at any step.
    (multiple-value-bind (stop id) (stopped-at image "(step (list (unknown 2)))")
      (on-stop image "debug-abort" stop)
      (is string= "INTERRUPTED" (outcome-text image id)))))

(deftest steps-of-variables-and-of-macros
  (with-probed (image file text)
    (loop for (code at value) in '(("(let ((k 3)) (list (step k)))" "(step k)" "(3)")
                                   ("(step 'it)" "'it" "IT")
                                   ("(let ((f #'1+)) (funcall (step (lambda (x) (funcall f x))) 4))" "(lambda (x) (funcall f x))" "5")
                                   ("(macrolet ((m (form) (list 'step form))) (list (m (+ 1 2))))" "(+ 1 2)" "(3)")
                                   ("(macrolet ((when-let (name form &body body) `(let ((,name ,form)) (when ,name ,@body)))) (step (when-let y (+ 1 2) (list y))))"
                                    "(when-let y (+ 1 2) (list y))" "(3)")
                                   ("(macrolet ((m (form) `(step (list ,form 1)))) (list (m 2)))" "(macrolet ((m (form) `(step (list ,form 1)))) (list (m 2)))" "((2 1))"))
          do (multiple-value-bind (stop id) (stopped-at image code)
               (is-when code string= at (text-at-moment stop code))
               (is-when code string= value (went-on image stop id))))
    ;; A function that is called by what a macro makes.
    (multiple-value-bind (stop id) (stopped-at image "(macrolet ((m (n) `(step (probed::square ,n)))) (list (m 3)))")
      (is string= "(* x x)" (span-text (path stop "at") text))
      (is string= "(9)" (went-on image stop id)))
    ;; A hook of the program's around the one that it finds.
    (let ((hook "(setf *hooked* 0 *macroexpand-hook* (let ((outer *macroexpand-hook*)) (lambda (expander form environment) (incf *hooked*) (funcall outer expander form environment))))"))
      (prepare image "(defvar *hooked*)" :session "others")
      (outcome-text image (debug-id image hook :session "hooked"))
      (multiple-value-bind (stop id) (stopped-at image "(when t (step (list 1)))" :session "hooked")
        (is string= "(list 1)" (text-at-moment stop "(when t (step (list 1)))"))
        (is string= "(1)" (went-on image stop id)))
      (is string= "T" (outcome-text image (debug-id image "(plusp *hooked*)" :session "hooked"))))
    ;; One that passes on a form of its own making, left by an earlier evaluation.
    (let ((hook "(let ((outer *macroexpand-hook*))
                   (setf *macroexpand-hook* (lambda (expander form environment) (when (equal form '(inner)) (incf *hooked*)) (funcall outer expander (copy-tree form) environment)))
                   (setf *hooked* 0))"))
      (is string= "0" (outcome-text image (debug-id image hook :session "copying")))
      (multiple-value-bind (stop id) (stopped-at image "(when t (step (list 1)))" :session "copying")
        (is string= "(when t (step (list 1)))" (text-at-moment stop "(when t (step (list 1)))"))
        (is string= "(1)" (went-on image stop id)))
      ;; The hook is called for what an expander expands too.
      (is string= "2" (outcome-text image (debug-id image "(macrolet ((inner () 2) (outer (&environment e) (macroexpand-1 '(inner) e))) (outer))" :session "copying")))
      (is string= "T" (outcome-text image (debug-id image "(plusp *hooked*)" :session "copying"))))
    ;; Code at a stop.
    (multiple-value-bind (outer id) (stopped-at image "(list (probed::square 2) (break))")
      (let* ((work (send image "debug-eval" "stop" (path outer "stop") "frame" 0 "code" "(step (probed::square 6))" "debug" :true))
             (inner (await-event image "stopped" :which (lambda (events) (find-if (lambda (event) (> (path event "stop") (path outer "stop"))) events)))))
        (is string= "(* x x)" (span-text (path inner "at") text))
        (on-stop image "debug-continue" inner)
        (is string= "36" (path (answer image work) "result" "values" 0 "text")))
      (is string= "(4 NIL)" (went-on image outer id)))
    ;; A macro that is defined where it stops, used later.
    (outcome-text image (debug-id image "(defmacro cl-user::stepping-square (n) `(step (probed::square ,n)))"))
    (multiple-value-bind (stop id) (stopped-at image "(list (cl-user::stepping-square 4))")
      (is string= "(* x x)" (span-text (path stop "at") text))
      (is string= "(16)" (went-on image stop id)))))

(deftest step-where-nothing-stops
  (with-probed (image file text)
    (flet ((plain (code)
             (let ((outcome (evaluated image code)))
               (is-when code string= "" (path outcome "stdout" "text"))
               (is-when code string= "" (path outcome "stderr" "text"))
               (is-when code equalp #() (path outcome "warnings"))
               (path outcome "values" 0 "text"))))
      (is string= "25" (plain "(step (probed::square 5))"))
      ;; A function that steps, defined where it would stop.
      (is string= "STEPS" (outcome-text image (debug-id image "(defun steps (x) (list (step (probed::square x))))")))
      (is string= "(4)" (plain "(steps 2)"))
      (multiple-value-bind (stop id) (stopped-at image "(steps 3)")
        (is string= file (path stop "at" "file"))
        (is string= "(9)" (went-on image stop id)))
      ;; A file that is compiled meanwhile has SBCL's STEP.
      (let ((file (write-file "steps-in-a-file.lisp" "(defun cl-user::of-file (x) (list (step (probed::square x))))")))
        (is string= "((4))"
            (outcome-text image (debug-id image (format nil "(progn (load (compile-file ~S :output-file ~S)) (list (funcall 'of-file 2)))"
                                                        file (concatenate 'string *scratch* "steps-in-a-file.fasl"))))))
      ;; Data is as it was read.
      (is string= "(STEP (CAR X))" (outcome-text image (debug-id image "(list 'step '(car x))"))))))
