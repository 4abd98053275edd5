;;;; The inspector: parts of values by reference, a page at a time, without running the user's code
;;;; and keeping nothing alive.

(in-package :consort)

(defun reference-to (image code &rest keys)
  "Evaluates CODE; returns the reference to its first value."
  (let ((id (apply #'debug-id image code keys)))
    (path (answer image id) "result" "references" 0)))

(defun inspected-page (image reference &rest fields)
  "Returns the result of inspecting, or the answer when it is an error."
  (result-or-error (apply #'call image "inspect" "reference" reference fields)))

(defun part-texts (page)
  "Returns (LABEL TEXT) of the parts of PAGE; with keys, (LABEL KEY TEXT)."
  (map 'list (lambda (part)
               (append (list (path part "label"))
                       (let ((key (path-if-any part "key" "text"))) (and key (list key)))
                       (list (path part "value" "text"))))
       (path page "parts")))

(deftest inspects-values
  (with-image (image)
    (flet ((parts (code &rest fields) (part-texts (apply #'inspected-page image (reference-to image code) fields)))
           (facts (code) (let ((page (inspected-page image (reference-to image code))))
                           (list (path page "kind") (path page "total") (path-if-any page "note")))))
      (is equalp '(("0" "1") ("1" "(A B)") ("2" "\"c\"")) (parts "(list 1 '(a b) \"c\")"))
      (is equalp '(("0" "1") ("tail" "2")) (parts "(cons 1 2)"))
      (is equalp '("list" 3 nil) (facts "(list 1 2 3)"))
      (is equalp "It is circular." (third (facts "(let ((l (list 1 2 3))) (setf (cdddr l) l) l)")))
      (is equalp '(("9999998" "0") ("9999999" "7"))
          (parts "(let ((v (make-array 10000000 :element-type '(unsigned-byte 8)))) (setf (aref v 9999999) 7) (defvar *v* v) v)" "start" 9999998 "count" 100))
      (is equalp '(("0 0" "1") ("0 1" "2") ("1 0" "3") ("1 1" "4")) (parts "(defvar *a* #2a((1 2) (3 4))) *a*"))
      (is equalp '(("0" ":K" "1")) (parts "(defvar *h* (let ((h (make-hash-table))) (setf (gethash :k h) 1) h)) *h*"))
      (is equalp '(("0" "6")) (parts "(defvar *f* (let ((n 5)) (lambda () (incf n)))) (funcall *f*) *f*"))
      (is equalp '(("X" "1") ("Y" "2.5d0")) (parts "(defstruct point x (y 2.5d0 :type double-float)) (defvar *p* (make-point :x 1)) *p*"))
      (is string= "unbound" (second (find "value" (parts "'unbound-name") :key #'first :test #'string=)))
      (is equal "package" (first (facts "(find-package \"COMMON-LISP\")")))
      (is = 5 (length (parts "(find-package \"COMMON-LISP\")" "start" 100 "count" 5)))
      (dolist (code '("sb-thread:*current-thread*" "(find-class 'point)" "#'print-object" "*standard-output*" "*random-state*" "#'car"
                      "(make-condition 'simple-error :format-control \"x\")" "(sb-ext:make-weak-pointer 'x)"))
        (ok (stringp (first (facts code)))))
      ;; Nothing to see in.
      (is equal 0 (reference-to image "17"))
      (is string= "bad-params" (path (call image "inspect" "reference" 0) "error" "kind"))
      (is string= "not-found" (path (call image "inspect" "reference" 999999) "error" "kind")))))

(deftest parts-are-set
  (with-image (image)
    (flet ((set-part (code part value)
             (let ((answer (result-or-error (call image "inspect-set" "reference" (reference-to image code) "part" part "code" value))))
               (or (path-if-any answer "values" 0 "text") (path-if-any answer "message") (path-if-any answer "error" "message") answer)))
           (now (code) (first-value image code)))
      (prepare image "(defvar *l* (list 1 2 3)) (defvar *d* (cons 1 2)) (defvar *a* (make-array 2 :element-type 'fixnum :initial-element 0))
                      (defvar *h* (let ((h (make-hash-table))) (setf (gethash :k h) 1) h)) (defstruct point x (y 2.5d0 :type double-float))
                      (defvar *p* (make-point :x 1)) (defclass c () ((s :initform 1))) (defvar *c* (make-instance 'c))")
      (is string= "42" (set-part "*l*" 1 "(* 6 7)"))
      (is string= "(1 42 3)" (now "*l*"))
      (set-part "*d*" 1 ":tail")
      (is string= "(1 . :TAIL)" (now "*d*"))
      (set-part "*a*" 1 "(1+ (length *))")
      (is string= "#(0 3)" (now "*a*"))
      (ok (text-contains "of type fixnum" (set-part "*a*" 0 ":no")))
      (set-part "*h*" 0 "(list :v)")
      (is string= "(:V)" (now "(gethash :k *h*)"))
      (set-part "*p*" 0 "'new")
      (is string= "NEW" (now "(point-x *p*)"))
      (ok (text-contains "of type double-float" (set-part "*p*" 1 "1")))
      (set-part "*c*" 0 "'(1 2)")
      (is string= "(1 2)" (now "(slot-value *c* 's)"))
      (ok (text-contains "cannot be set" (set-part "#'car" 0 "1")))
      (ok (text-contains "DIVISION-BY-ZERO" (set-part "*l*" 0 "(/ 1 0)")))
      (is string= "(1 42 3)" (now "*l*")))))

(deftest inspecting-runs-no-code
  (with-image (image)
    (prepare image "(defvar *ran* 0)
                    (defclass evil () ((a :initform 1) (b :initarg :b) (c :allocation :class :initform 3)))
                    (defmethod print-object ((e evil) stream) (incf *ran*) (loop))
                    (defmethod slot-unbound (class (e evil) name) (incf *ran*) (error \"no\"))
                    (defmethod sb-mop:slot-value-using-class :before (class (e evil) slot) (incf *ran*))
                    (defvar *evil* (make-instance 'evil))
                    (defclass later () (a)) (defvar *later* (make-instance 'later))
                    (defmethod update-instance-for-redefined-class :before ((x later) added discarded plist &key) (incf *ran*))
                    (defvar *both* (list *evil* *later*))
                    (defclass later () (a b)) (setf *ran* 0)")
    (let* ((list (inspected-page image (path (inspected-page image (reference-to image "(let ((both *both*)) (defvar *closure* (lambda () both)) *closure*)"))
                                              "parts" 0 "value" "reference")))
           (evil (inspected-page image (path list "parts" 0 "value" "reference")))
           (later (inspected-page image (path list "parts" 1 "value" "reference"))))
      (is equalp '(("A" "1") ("B" "unbound") ("C" "3")) (part-texts evil))
      (is eq :true (path evil "parts" 1 "missing"))
      (is string= "#<EVIL>" (path evil "value" "text"))
      (is string= "obsolete instance" (path later "kind")))
    (is string= "0" (first-value image "*ran*"))))

(deftest references-keep-nothing-alive
  (with-image (image)
    ;; Each is a value of an evaluation in a session that is closed, so nothing else holds it.
    (let ((references (loop for i below 20
                            for session = (format nil "s~D" i)
                            collect (reference-to image "(make-array 1000)" :session session)
                            do (call image "close-session" "session" session))))
      (evaluated image "(labels ((churn (n) (if (plusp n) (+ 1 (churn (1- n))) 0))) (churn 1000)) (sb-ext:gc :full t)")
      (ok (eventually (progn
                        (evaluated image "(sb-ext:gc :full t)")
                        (> (count-if (lambda (reference) (equal "not-found" (path-if-any (call image "inspect" "reference" reference) "error" "kind"))) references)
                           15)))))
    ;; The objects of a stop are there while the stop is, and not after.
    (multiple-value-bind (stop id) (stopped-at image "(let ((k (list 1 2 3))) (list (cerror \"Go on.\" \"x\") k))")
      (let ((reference (path (local-in image stop (frame-number image stop "top-level form") "K") "value" "reference")))
        (evaluated image "(sb-ext:gc :full t)" :session "other")
        (is equalp '(("0" "1") ("1" "2") ("2" "3")) (part-texts (inspected-page image reference)))
        (on-stop image "debug-abort" stop)
        (answer image id)
        (left image stop)
        (is string= "not-found" (path (call image "inspect" "reference" reference) "error" "kind"))))))

(deftest inspect-prints-parts
  (with-image (image)
    (labels ((lines-of (text) (mapcar (lambda (line) (string-trim " " line)) (uiop:split-string (string-right-trim '(#\Newline) text) :separator '(#\Newline))))
             (printed (code) (path (result-or-error (call image "eval" "session" "s" "code" code "capture_time" :false "timeout" *patience* "stream" :false)) "stdout" "text")))
      (is string= "(1 (A) \"c\")
  list, 3 parts
  0: 1
  1: (A)
  2: \"c\"
" (printed "(inspect (list 1 '(a) \"c\"))"))
      (is string= "\"abc\"
  string, 3 characters
" (printed "(inspect \"abc\")"))
      (is string= "0: :K => 1" (third (lines-of (printed "(let ((h (make-hash-table))) (setf (gethash :k h) 1) (inspect h))"))))
      (is string= "... 99900 more: inspect a part of it, such as (subseq list 100)"
          (first (last (lines-of (printed "(inspect (make-array 100000))")))))
      ;; A program's own inspector is called.
      (is string= "mine" (printed "(progn (setf sb-impl::*inspect-fun* (lambda (object in out) (declare (ignore object in)) (princ \"mine\" out))) (inspect 1))")))))

(defun result-of (image operation &rest fields)
  "Returns the result of OPERATION, or the answer when it is an error."
  (result-or-error (apply #'call image operation fields)))

(deftest values-are-tables
  (with-image (image)
    (prepare image "(defclass good () ((name :initarg :name) (price :initarg :price :initform 1)))
                    (defvar *plists* (list '(:name \"a\" :price 1) '(:price 2 :size (3 4)) 7))
                    (defvar *goods* (vector (make-instance 'good :name \"a\") (make-instance 'good)))
                    (defvar *h* (let ((h (make-hash-table))) (setf (gethash :k h) (list 1 2)) h))")
    (flet ((table (code &rest fields)
             (let ((table (apply #'result-of image "inspect-table" "reference" (reference-to image code) fields)))
               (list* (path table "total") (path table "columns")
                      (map 'list (lambda (row) (cons (path row "label") (map 'list (lambda (cell) (if (eq cell :null) nil (path cell "text"))) (path row "cells"))))
                           (path table "rows"))))))
      (is equalp '(3 #("NAME" "PRICE" "SIZE" "value") ("0" "\"a\"" "1" nil nil) ("1" nil "2" "(3 4)" nil) ("2" nil nil nil "7")) (table "*plists*"))
      (is equalp '(3 #("PRICE" "SIZE") ("1" "2" "(3 4)")) (table "*plists*" "start" 1 "count" 1))
      (is equalp '(2 #("NAME" "PRICE") ("0" "\"a\"" "1") ("1" "unbound" "1")) (table "*goods*"))
      (is equalp '(1 #("0" "1") (":K" "1" "2")) (table "*h*"))
      (is equalp '(2 #("0" "1" "2") ("0" "1" "2" "3") ("1" "4" "5" "6")) (table "(defvar *a* #2a((1 2 3) (4 5 6))) *a*"))
      (is string= "no-table" (path (call image "inspect-table" "reference" (reference-to image "#'car")) "error" "kind")))))

(deftest values-are-compared
  (with-image (image)
    (prepare image "(defvar *ran* 0) (defclass good () ((name :initarg :name) (tags :initarg :tags)))
                    (defmethod print-object ((good good) stream) (incf *ran*) (format stream \"good\"))
                    (defvar *a* (make-instance 'good :name \"a\" :tags (list 1 2 (list :x 3))))
                    (defvar *b* (make-instance 'good :name (copy-seq \"a\") :tags (list 1 5 (list :x 4) 9)))
                    (defvar *h* (let ((h (make-hash-table :test 'equal))) (setf (gethash \"k\" h) 1 (gethash \"l\" h) 2) h))
                    (defvar *i* (let ((h (make-hash-table :test 'equal))) (setf (gethash \"k\" h) 3 (gethash \"m\" h) 4) h))
                    (defvar *c* (let ((l (list 1 2))) (setf (cddr l) l) l)) (defvar *d* (let ((l (list 1 2))) (setf (cddr l) l) l))
                    (defvar *long* (make-list 5000 :initial-element 1)) (defvar *longer* (make-list 5001 :initial-element 1))")
    (flet ((differences (one other)
             (let ((answer (result-of image "inspect-compare" "reference" (reference-to image one) "other" (reference-to image other))))
               (values (map 'list (lambda (found)
                                    (list (coerce (path found "path") 'list) (path found "one" "text") (path found "other" "text")))
                            (path answer "differences"))
                       (path answer "partial")))))
      (is equal '((("TAGS" "1") "2" "5") (("TAGS" "2" "1") "3" "4") (("TAGS" "3") "not there" "9")) (differences "*a*" "*b*"))
      (is equal '() (differences "*a*" "*a*"))
      (is equal '((("\"k\"") "1" "3") (("\"l\"") "2" "not there") (("\"m\"") "not there" "4")) (differences "*h*" "*i*"))
      (is equal '() (differences "*c*" "*d*"))
      (is equal '((() "(1 2 (:X 3))" "\"b\"")) (differences "(slot-value *a* 'tags)" "(defvar *s* (copy-seq \"b\")) *s*"))
      (is eq :true (nth-value 1 (differences "*long*" "*longer*")))
      ;; Their references are there: only the comparison runs from here on.
      (let ((one (reference-to image "*a*")) (other (reference-to image "*b*")))
        (prepare image "(setf *ran* 0)")
        (is = 3 (length (path (result-of image "inspect-compare" "reference" one "other" other) "differences")))
        (is string= "0" (first-value image "*ran*"))))))

(deftest code-is-evaluated-on-a-value
  (with-image (image)
    (prepare image "(defvar *l* (list 1 2 3))")
    (flet ((on (code) (result-of image "inspect-eval" "reference" (reference-to image "*l*") "code" code)))
      (let ((answer (on "(print :seen) (list (length *) *)")))
        (is string= "(3 (1 2 3))" (path answer "values" 0 "text"))
        (is equalp '(("0" "3") ("1" "(1 2 3)")) (part-texts (inspected-page image (path answer "values" 0 "reference")))))
      (is string= "DIVISION-BY-ZERO" (path (on "(/ (length *) 0)") "error" "type"))
      (is string= "error" (path (on "(car") "status"))
      (is string= "not-found" (path (call image "inspect-eval" "reference" 999999 "code" "*") "error" "kind")))))

(deftest results-have-references-when-asked-for
  (with-image (image)
    (flet ((references (&rest fields)
             (path-if-any (apply #'call image "eval" "session" "s" "code" "(values (list 1) 2)" fields) "result" "references")))
      (is equal nil (references))
      (let ((found (references "refer" :true)))
        (is = 2 (length found))
        (is = 0 (aref found 1))
        (is equalp '(("0" "1")) (progn (prepare image "(defvar *kept* *)" :session "s") (part-texts (inspected-page image (aref found 0)))))))))
