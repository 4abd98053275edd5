;;;; Breakpoints and steps: definitions with probes do what they did, and what is evaluated for
;;;; debugging stops in them.

(in-package :consort)

(defparameter *probed-text* "(defpackage :probed (:use :cl))
(in-package :probed)
(defmacro twice (form) `(+ ,form ,form))
(defun square (x)
  (* x x))
(defun sum-to (n)
  (let ((sum 0))
    (loop for i from 1 to n
          do (setf sum (+ sum
                          (square i))))
    (when (> sum 10)
      (setf sum (- sum 1)))
    (list sum)))
(defun shout (list)
  (mapcar (lambda (s) (string-upcase (string s))) list))
(defun use-macros (k)
  (macrolet ((inc (place) `(setf ,place (1+ ,place))))
    (symbol-macrolet ((double (* 2 k)))
      (inc k)
      (list double (twice (square k))))))
(defun count-down (n)
  (if (zerop n)
      :done
      (count-down (- n 1))))
(defclass thing () ((size :initarg :size :accessor size)))
(defgeneric area (thing &key scale))
(defmethod area ((thing thing) &key (scale (square 1)))
  (with-slots (size) thing
    (setf size (+ size 1))
    (* scale (square size))))
(defun both (a &optional (b (square a)))
  (multiple-value-bind (q r) (floor b 4)
    (values (list a b) q r)))
(defun on-stack (n)
  (let ((list (list n n)))
    (declare (dynamic-extent list))
    (reduce #'+ list)))
(defun careful (x)
  (handler-case (unwind-protect (if (minusp x) (error \"negative\") (values x (- x))) (square 2))
    (error (e) (princ-to-string e))))
(defun outer (list)
  (flet ((inner (x) (labels ((more (y) (if (> y 100) y (more (* y 2))))) (more x))))
    (loop for x in list collect (inner x))))
(defvar *go-on* t)
(defun spin (n)
  (loop while *go-on* do (square n))
  (list :spun (square n)))
(defmacro swapped (form)
  (let ((arguments (rest form)))
    (cons (first form) (reverse arguments))))
")

(defun line-of (text part)
  "Returns the line, from 1, and the column on which PART begins in TEXT."
  (let ((at (search part text)))
    (values (1+ (count #\Newline text :end at))
            (- at (or (position #\Newline text :end at :from-end t) -1)))))

(defun points-set (image file text &rest points)
  "Sets POINTS, lists of a part of TEXT on whose line it is and further fields, as the breakpoints
  in FILE; returns the answers."
  (path (call image "debug-breakpoints" "owner" "test" "file" file "text" text
              "points" (coerce (loop for (part . fields) in points
                                     for id from 1
                                     collect (apply #'object "id" id "line" (if (stringp part) (line-of text part) part) fields))
                               'vector))
        "result" "breakpoints"))

(defun replace-in (text old new)
  "Returns TEXT with the first OLD in it replaced by NEW."
  (let ((at (search old text)))
    (concatenate 'string (subseq text 0 at) new (subseq text (+ at (length old))))))

(defun span-text (facts text)
  (subseq text (path facts "span" 0) (path facts "span" 1)))

(defmacro with-probed ((image file text) &body body)
  "BODY with an IMAGE into which the FILE of TEXT was loaded."
  `(with-image (,image)
     (let* ((,text *probed-text*)
            (,file (write-file "probed.lisp" ,text)))
       (prepare ,image (format nil "(load (compile-file ~S :output-file ~S))" ,file (concatenate 'string *scratch* "probed.fasl")) :session "others")
       ,@body)))

(defun stepped (image stop how)
  "Leaves STOP by a step; returns the next stop of the same evaluation."
  (let ((last (path stop "stop")))
    (is string= "sent" (path (on-stop image "debug-step" stop "how" how) "result" "status"))
    (await-event image "stopped" :id (path stop "id") :which (lambda (events) (find-if (lambda (event) (> (path event "stop") last)) events)))))

(defun locals-at (image stop)
  "Returns the locals of the innermost frame of STOP as (NAME . VALUE)."
  (map 'list (lambda (local) (cons (path local "name") (path local "value" "text")))
       (path (on-stop image "debug-locals" stop "frame" 0) "result" "locals")))

(defun went-on (image stop id)
  "Leaves STOP by CONTINUE; returns what the evaluation ID then gives."
  (is string= "sent" (path (on-stop image "debug-continue" stop) "result" "status"))
  (outcome-text image id))

(deftest probed-code-does-what-it-did
  (with-probed (image file text)
    (let* ((calls '("(sum-to 5)" "(shout '(a b))" "(use-macros 3)" "(count-down 1000000)" "(area (make-instance 'thing :size 2))"
                    "(area (make-instance 'thing :size 2) :scale 3)" "(multiple-value-list (both 7))" "(on-stack 4)" "(multiple-value-list (careful 3))"
                    "(careful -1)" "(outer '(1 70 200))"))
           (all (format nil "(list~{ ~A~})" calls))
           (plain (first-value image all :package "PROBED"))
           (kept (first-value image "(list (fdefinition 'sum-to) (fdefinition 'count-down) (find-method #'area '() (list (find-class 'thing))))" :package "PROBED"))
           (answers (points-set image file text '("(* x x)") '("(let ((sum 0))") '("(mapcar") '("(macrolet") '("(if (zerop") '("(with-slots") '("(multiple-value-bind")
                                '("(let ((list") '("(handler-case") '("(flet") '("(loop while"))))
      (is = 11 (count :true answers :key (lambda (answer) (path answer "verified"))))
      (is string= "(if (zerop n)
      :done
      (count-down (- n 1)))" (span-text (aref answers 4) text))
      ;; Not evaluated for debugging: nothing stops, as at BREAK nothing would.
      (is string= plain (first-value image all :package "PROBED"))
      (is string= "NIL" (first-value image (format nil "(equal ~S (prin1-to-string (list (fdefinition 'sum-to) (fdefinition 'count-down))))" kept) :package "PROBED"))
      (is equalp #() (points-set image file text))
      (is string= plain (first-value image all :package "PROBED"))
      ;; The very same functions and method are back.
      (is string= kept
          (first-value image "(list (fdefinition 'sum-to) (fdefinition 'count-down) (find-method #'area '() (list (find-class 'thing))))" :package "PROBED")))))

(deftest a-breakpoint-on-a-line
  (with-probed (image file text)
    (let ((answers (points-set image file text '("(square i)"))))
      (is string= "(square i)" (span-text (aref answers 0) text))
      (is equalp #(10 27 10 37) (path answers 0 "position"))
      (is equal file (path answers 0 "file")))
    (multiple-value-bind (stop id) (stopped-at image "(probed::sum-to 3)")
      (is string= "breakpoint" (path stop "reason"))
      (is string= "(square i)" (span-text (path stop "at") text))
      (is eq :false (path stop "at" "after"))
      (is = 1 (path stop "at" "breakpoints" 0 "id"))
      (is equal '("PROBED::SUM-TO") (map 'list (lambda (frame) (path frame "name")) (frames-of image stop)))
      (is string= "(square i)" (span-text (path (frames-of image stop) 0 "place") text))
      (is equalp #(10 27 10 37) (path (frames-of image stop) 0 "place" "position"))
      (is equal '("I" "N" "SUM") (sort (mapcar #'car (locals-at image stop)) #'string<))
      (is string= "1" (cdr (assoc "I" (locals-at image stop) :test #'string=)))
      ;; Code at the probe sees the variables, in the file's package.
      (is string= "103" (in-frame image stop 0 "(+ i n 99)"))
      (on-stop image "debug-continue" stop)
      (let ((second (stop-of-id image id 1)))
        (is string= "2" (in-frame image second 0 "i"))
        ;; The probe is taken out while the program is stopped there, which goes on.
        (is equalp #() (points-set image file text))
        (is string= "(13)" (went-on image second id))))))

(deftest columns-conditions-and-counts
  (with-probed (image file text)
    ;; The column picks a form on the line.
    (multiple-value-bind (line column) (line-of text "(string s)")
      (is string= "(string s)" (span-text (aref (points-set image file text (list line "column" column)) 0) text))
      (multiple-value-bind (stop id) (stopped-at image "(probed::shout '(a b))")
        (is equal '(("S" . "A")) (remove "LIST" (locals-at image stop) :key #'car :test #'string=))
        (points-set image file text)
        (is string= "(\"A\" \"B\")" (went-on image stop id))))
    (points-set image file text '("(square i)" "condition" "(and (= i 2) (= sum 1))"))
    (multiple-value-bind (stop id) (stopped-at image "(probed::sum-to 4)")
      (is string= "2" (in-frame image stop 0 "i"))
      (is string= "(29)" (went-on image stop id)))
    (points-set image file text '("(square i)" "hit" "3"))
    (multiple-value-bind (stop id) (stopped-at image "(probed::sum-to 5)")
      (is string= "3" (in-frame image stop 0 "i"))
      (is string= "(54)" (went-on image stop id)))
    (points-set image file text '("(square i)" "hit" "% 2" "condition" "(> i 1)"))
    (multiple-value-bind (stop id) (stopped-at image "(probed::sum-to 4)")
      (is string= "3" (in-frame image stop 0 "i"))
      (is string= "(29)" (went-on image stop id)))
    ;; A condition that fails is told of, and true.
    (points-set image file text '("(square i)" "condition" "(car i)"))
    (multiple-value-bind (stop id) (stopped-at image "(probed::sum-to 1)")
      (ok (text-contains "A breakpoint's condition failed: TYPE-ERROR" (path (await-event image "breakpoint-log") "text")))
      (is string= "(1)" (went-on image stop id)))
    (flet ((why (&rest fields) (path (points-set image file text (cons "(square i)" fields)) 0 "message")))
      (ok (text-contains "cannot be read" (why "condition" "(car")))
      (ok (text-contains "must be one form" (why "condition" "1 2")))
      (ok (text-contains "is not understood" (why "hit" "often")))
      (ok (text-contains "cannot be read" (why "log" "i is {(car i"))))))

(deftest a-log-message-does-not-stop
  (with-probed (image file text)
    (points-set image file text '("(square i)" "log" "i is {i}, sum {(* 10 sum)}."))
    (is string= "(5)" (first-value image "(probed::sum-to 2)"))
    (is equal '("i is 1, sum 0." "i is 2, sum 10.")
        (progn (await-event image "breakpoint-log" :which #'second)
               (mapcar (lambda (event) (path event "text")) (events image "breakpoint-log"))))
    (is string= "(5)" (outcome-text image (debug-id image "(probed::sum-to 2)")))
    (is equal '() (events image "stopped"))))

(deftest steps
  (with-probed (image file text)
    (points-set image file text '("(square i)" "condition" "(= i 2)") '("(* x x)" "condition" "(= x 77)"))
    (multiple-value-bind (stop id) (stopped-at image "(probed::sum-to 2)")
      (let ((over (stepped image stop "over")))
        (is string= "step" (path over "reason"))
        (is string= "(square i)" (span-text (path over "at") text))
        (is eq :true (path over "at" "after"))
        (is string= "4" (path over "at" "value"))
        (is string= "4" (cdr (assoc "=>" (locals-at image over) :test #'string=)))
        (is string= "5" (in-frame image over 0 "(+ * 1)"))
        (let ((next (stepped image over "over")))
          (is string= "5" (path next "at" "value"))
          (ok (eql 0 (search "(+ sum" (span-text (path next "at") text))))
          (is string= "(5)" (went-on image next id)))))
    (multiple-value-bind (stop id) (stopped-at image "(probed::sum-to 2)")
      (let ((into (stepped image stop "into")))
        (is string= "(* x x)" (span-text (path into "at") text))
        (is equal '("PROBED::SQUARE" "PROBED::SUM-TO") (map 'list (lambda (frame) (path frame "name")) (frames-of image into)))
        (is string= "(square i)" (span-text (path (frames-of image into) 1 "place") text))
        (let ((out (stepped image into "out")))
          (is string= "(square i)" (span-text (path out "at") text))
          (is string= "4" (path out "at" "value"))
          (is string= "(5)" (went-on image out id)))))
    ;; Over the end of what has probes: the evaluation just ends, and the next one does not step.
    (points-set image file text '("(* x x)"))
    (multiple-value-bind (stop id) (stopped-at image "(probed::square 3)")
      (on-stop image "debug-step" stop "how" "over")
      (is string= "9" (outcome-text image id)))
    (is string= "bad-params" (path (on-stop image "debug-step" (stopped-at image "(break)" :session "t") "how" "away") "error" "kind"))))

(deftest a-step-into-gives-the-callee-probes
  (with-probed (image file text)
    (points-set image file text '("(list :spun"))
    (first-value image "(setf probed::*go-on* nil)")
    (multiple-value-bind (stop id) (stopped-at image "(probed::spin 3)")
      (is string= "(list :spun (square n))" (span-text (path stop "at") text))
      ;; To the argument's own form, and from there into what it calls, which had no probes.
      (let ((argument (stepped image stop "into")))
        (is string= "(square n)" (span-text (path argument "at") text))
        (let ((into (stepped image argument "into")))
          (is string= "(* x x)" (span-text (path into "at") text))
          (is equal '(("X" . "3")) (locals-at image into))
          (is string= "(:SPUN 9)" (went-on image into id)))))
    ;; Methods too.
    (multiple-value-bind (line column) (line-of text "(* scale (square size))")
      (declare (ignore column))
      (points-set image file text (list line)))
    (first-value image "(defvar probed::*thing* (make-instance 'probed::thing :size 2))")
    (multiple-value-bind (stop id) (stopped-at image "(probed::area probed::*thing*)")
      (let* ((argument (stepped image stop "into"))
             (into (stepped image argument "into")))
        (is string= "(square size)" (span-text (path argument "at") text))
        (is string= "(* x x)" (span-text (path into "at") text))
        (is string= "9" (went-on image into id))))
    ;; A definition that had probes for a step only is plain again.
    (points-set image file text)
    (eventually (string= "NIL" (first-value image "(find-if #'consort::unit-p (consort::function-constants #'probed::square))")))))

(deftest other-threads-do-not-step-along
  (with-probed (image file text)
    (points-set image file text '("(square i)"))
    (multiple-value-bind (stop id) (stopped-at image "(probed::sum-to 1)")
      (on-stop image "debug-step" stop "how" "over")
      (let ((step (stop-of-id image id 1)))
        (is string= "(1)" (first-value image "(probed::sum-to 1)" :session "others"))
        (points-set image file text)
        (is string= "(1)" (went-on image step id))))
    (is = 2 (length (events image "stopped")))))

(deftest a-breakpoint-in-running-code-acts-at-once
  (with-probed (image file text)
    ;; A breakpoint elsewhere in the definition, so that the running code has probes already.
    (points-set image file text '("(list :spun" ))
    (let ((id (debug-id image "(probed::spin 3)")))
      (eventually (find id (path (call image "status") "result" "running") :key (lambda (each) (path each "id"))))
      (points-set image file text '("(list :spun") (multiple-value-bind (line column) (line-of text "(square n))
  (list") (list line "column" column)))
      (let ((stop (stop-of-id image id)))
        (is string= "(square n)" (span-text (path stop "at") text))
        (is equal '(("N" . "3")) (locals-at image stop))
        (points-set image file text)
        (first-value image "(setf probed::*go-on* nil)" :session "others")
        (is string= "(:SPUN 9)" (went-on image stop id))))))

(deftest methods-macros-and-defaults
  (with-probed (image file text)
    (flet ((stops-in (part call &optional (expected part))
             (multiple-value-bind (line column) (line-of text part)
               (let ((answers (points-set image file text (list line "column" column))))
                 (is-when part eq :true (path answers 0 "verified"))
                 (multiple-value-bind (stop id) (stopped-at image call :package "PROBED")
                   (is-when part string= expected (span-text (path stop "at") text))
                   (points-set image file text)
                   (went-on image stop id))))))
      (is string= "9" (stops-in "(square size)" "(area (make-instance 'thing :size 2))"))
      (is string= "9" (stops-in "(square 1)" "(area (make-instance 'thing :size 2))"))
      (is string= "(7 49)" (stops-in "(square a)" "(both 7)"))
      (is string= "(8 32)" (stops-in "(square k)" "(use-macros 3)"))
      (is string= "\"negative\"" (stops-in "(princ-to-string e)" "(careful -1)"))
      (is string= "(140)" (stops-in "(* y 2)" "(outer '(70))")))))

(deftest texts-that-are-not-loaded
  (with-probed (image file text)
    (flet ((why (text &rest point) (path (points-set image file text point) 0 "message")))
      (let ((edited (replace-in text "(square i)" "(square n)")))
        (ok (text-contains "was made from another text" (why edited "(square n)")))
        ;; A form that was moved unchanged is found where it is now.
        (let ((moved (format nil "~2%~A" (replace-in text "(* x x)" "(* x x x)"))))
          (is equalp #(12 27 12 37) (path (points-set image file moved '("(square i)")) 0 "position"))))
      (ok (text-contains "not in DEFVAR" (why text "(defvar *go-on*")))
      (ok (text-contains "is not defined" (why (format nil "~A(defun not-yet (x)~% (list x))~%" text) "(list x)")))
      (ok (text-contains "no line 500" (why text 500)))
      ;; Evaluated from the file: then that is the text.
      (let ((edited (replace-in text "(square i)" "(square (1+ i))")))
        (prepare image (subseq edited (search "(defun sum-to" edited) (search "(defun shout" edited))
                 :package "PROBED" :origin (object "file" file "line" (line-of text "(defun sum-to") "column" 1))
        (is eq :true (path (points-set image file edited '("(square (1+ i))")) 0 "verified"))
        (ok (text-contains "was made from another text" (why text "(square i)")))))))

(deftest a-definition-that-is-replaced-loses-its-breakpoint
  (with-probed (image file text)
    (points-set image file text '("(square i)"))
    (settle image)
    (is equal '() (events image "breakpoints-changed"))
    (prepare image "(in-package :probed) (defun sum-to (n) (list :new n))" :session "others")
    (is equal (list "test" file)
        (let ((changed (path (await-event image "breakpoints-changed") "changed" 0))) (list (path changed "owner") (path changed "file"))))
    (is string= "(:NEW 3)" (outcome-text image (debug-id image "(probed::sum-to 3)")))
    (points-set image file text)
    (is string= "(:NEW 3)" (first-value image "(probed::sum-to 3)"))))

(deftest breakpoints-in-macros
  (with-probed (image file text)
    (let ((part "(cons (first form)"))
      (is eq :true (path (points-set image file text (list part)) 0 "verified"))
      ;; The macro is expanded in the evaluation of its caller.
      (multiple-value-bind (stop id) (stopped-at image "(let ((k 7)) (probed::swapped (list k 2)))")
        (is string= "(cons (first form) (reverse arguments))" (span-text (path stop "at") text))
        (is equal '("ARGUMENTS" "FORM") (sort (mapcar #'car (locals-at image stop)) #'string<))
        (is string= "(K 2)" (in-frame image stop 0 "arguments"))
        (is string= "(2 7)" (went-on image stop id)))
      ;; An earlier expansion is as it was, and a check's copy does not stop.
      (points-set image file text)
      (is string= "(2 1)" (outcome-text image (debug-id image "(probed::swapped (list 1 2))"))))))

(deftest breakpoints-and-hot-reload
  (with-probed (image file text)
    (first-value image "(defvar *plain* #'probed::square)")
    (points-set image file text '("(* x x)"))
    (is string= "NIL" (first-value image "(eq *plain* #'probed::square)"))
    (flet ((probed-p () (string= "T" (first-value image "(and (find-if #'consort::unit-p (consort::function-constants #'probed::square)) t)"))))
      (ok (probed-p))
      ;; Replaced: the new definition has no probes, and its breakpoint is to be set again.
      (ok (reloaded-p (compile-string image "(in-package :probed) (defun square (x) (list :new x))")))
      (is string= "(:NEW 3)" (outcome-text image (debug-id image "(probed::square 3)")))
      (is equal (list "test" file)
          (let ((changed (path (await-event image "breakpoints-changed") "changed" 0))) (list (path changed "owner") (path changed "file"))))
      ;; Taken back: the plain definition, the very one.
      (ok (reloaded-p (undo image)))
      (is string= "T" (first-value image "(eq *plain* #'probed::square)"))
      (ok (not (probed-p)))
      (is eq :true (path (points-set image file text '("(* x x)")) 0 "verified"))
      (multiple-value-bind (stop id) (stopped-at image "(probed::square 3)")
        (is string= "9" (went-on image stop id)))
      (points-set image file text)
      (eventually (string= "T" (first-value image "(eq *plain* #'probed::square)"))))))

(deftest breakpoints-at-functions
  (with-probed (image file text)
    (flet ((set-at (&rest names)
             (path (call image "debug-function-breakpoints" "owner" "test"
                         "points" (map 'vector (lambda (name) (object "id" 7 "name" name)) names))
                   "result" "breakpoints")))
      (is string= "(* x x)" (span-text (aref (set-at "probed::square") 0) text))
      (multiple-value-bind (stop id) (stopped-at image "(probed::square 3)")
        (is = 7 (path stop "at" "breakpoints" 0 "id"))
        (is equalp #() (set-at))
        (is string= "9" (went-on image stop id)))
      (ok (text-contains "generic function" (path (set-at "probed::area") 0 "message")))
      (ok (text-contains "There is no function" (path (set-at "probed::no-such") 0 "message")))
      (is equal '((9 14 10 39) (9 24 10 38) (10 27 10 37))
          (sort (map 'list (lambda (each) (coerce (path each "position") 'list))
                     (path (call image "debug-breakpoint-locations" "file" file "text" text "line" 9 "end_line" 10) "result" "breakpoints"))
                #'< :key (lambda (place) (+ (* 100 (first place)) (second place))))))))
