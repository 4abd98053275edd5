;;;; Methods and generic functions that are replaced while other threads call them.

(in-package :consort)

(defun replaced (image function code &rest more)
  "The outcome of replacing FUNCTION by CODE; the kind of the refusal when it was refused, or
  failed."
  (let ((frame (apply #'call image "replace-function" "function" function "code" code more)))
    (or (path-if-any frame "error" "kind") (path-if-any frame "result" "failure" "type") (path frame "result"))))

(deftest method-replaced-by-its-definition
  (with-image (image)
    (compile-string image "(defpackage :hm (:use :cl)) (in-package :hm)
(defclass task () ((state :initform :idle :accessor state))) (defclass sub (task) ())
(defgeneric run (task &key verbose) (:documentation \"old\") (:method ((task task) &key verbose) (list :task verbose)))
(defmethod run :around ((task task) &key verbose) (declare (ignore verbose)) (cons :around (call-next-method)))
(defmethod run ((task (eql :go)) &key verbose) (list :go verbose)) (defmethod run ((task (eql 'sub)) &key verbose) (list :sub verbose))
(defgeneric (setf place) (new x)) (defmethod (setf place) (new (x integer)) (list new x))
(defmethod print-object ((x sub) stream) (write-string \"old\" stream)) (defun plain (x) x) (defvar *key* :go)")
    (flet ((value (code) (first-value image (format nil "(let ((*package* (find-package :hm))) ~A)" code))))
      ;; Primary, qualified, EQL, in a DEFGENERIC, with other names of parameters; a setf function;
      ;; a function of the system's.
      (loop for (function code name probe expected)
              in '(("hm::run" "(defmethod run ((job task) &key verbose) (list :new verbose))" "method (HM::RUN (HM::TASK))"
                    "(hm::run (make-instance 'hm::task) :verbose 1)" "(:AROUND :NEW 1)")
                   ("hm::run" "(defmethod run :around ((it task) &key verbose) verbose (list* :outer (call-next-method)))" "method (HM::RUN :AROUND (HM::TASK))"
                    "(hm::run (make-instance 'hm::sub) :verbose 1)" "(:OUTER :NEW 1)")
                   ("hm::run" "(defmethod run ((task (eql :go)) &key verbose) (list :went verbose))" "method (HM::RUN ((EQL :GO)))"
                    "(hm::run :go)" "(:WENT NIL)")
                   ("hm::run" "(defmethod run ((x (eql *key*)) &key verbose) (list :key verbose))" "method (HM::RUN ((EQL :GO)))"
                    "(hm::run :go)" "(:KEY NIL)")
                   ("hm::run" "(defmethod run ((x (eql 'sub)) &key verbose) (list :symbol verbose))" "method (HM::RUN ((EQL HM::SUB)))"
                    "(hm::run 'hm::sub)" "(:SYMBOL NIL)")
                   ("(setf hm::place)" "(defmethod (setf place) (value (n integer)) (list :set value n))" "method ((SETF HM::PLACE) (T INTEGER))"
                    "(setf (hm::place 2) 1)" "(:SET 1 2)")
                   ("hm::state" "(defmethod state ((task task)) :always)" "method (HM::STATE (HM::TASK))"
                    "(hm::state (make-instance 'hm::task))" ":ALWAYS"))
            do (let ((outcome (replaced image function code)))
                 (ok (reloaded-p outcome))
                 (ok (or (listed outcome "redefined" name) (listed outcome "new" name)))
                 (is equal expected (value probe))))
      (ok (reloaded-p (replaced image "cl:print-object" "(defmethod print-object ((it sub) out) (write-string \"printed\" out))" "package" "HM")))
      (is equal "\"printed\"" (value "(princ-to-string (make-instance 'hm::sub))"))
      ;; The generic function itself: what was defined apart is kept, what stood in it is as it says
      ;; now.
      (let ((outcome (replaced image "hm::run" "(defgeneric run (object &key verbose) (:documentation \"new\") (:method ((task integer) &key verbose) (list :integer verbose)))")))
        (ok (reloaded-p outcome))
        (ok (listed outcome "redefined" "generic function HM::RUN"))
        (ok (listed outcome "new" "method (HM::RUN (INTEGER))")))
      (is equal "((:OUTER :NEW NIL) (:KEY NIL) (:INTEGER 1) \"new\")"
          (value "(list (hm::run (make-instance 'hm::task)) (hm::run :go) (hm::run 1 :verbose 1) (documentation #'hm::run t))"))
      (let ((outcome (undo image)))
        (is equalp #() (path outcome "not_undone")))
      (is equal "((:OUTER :NEW NIL) (:KEY NIL) NIL \"old\")"
          (value "(list (hm::run (make-instance 'hm::task)) (hm::run :go) (ignore-errors (hm::run 1)) (documentation #'hm::run t))"))
      (loop for (function code kind)
              in '(("hm::run" "(defmethod run ((task string) &key verbose) verbose)" "METHOD_NOT_FOUND")
                   ("hm::run" "(defmethod run :before ((task task) &key verbose) verbose)" "METHOD_NOT_FOUND")
                   ("hm::run" "(defmethod run ((task (eql :stop)) &key verbose) verbose)" "METHOD_NOT_FOUND")
                   ("hm::run" "(defmethod run ((task task) other &key verbose) (list other verbose))" "WRONG_DEFINITION")
                   ("hm::run" "(defgeneric run (task other))" "WRONG_DEFINITION")
                   ("hm::run" "(defmethod state ((task task)) 1)" "wrong-definition")
                   ("hm::run" "(defun run (task) task)" "wrong-definition") ("hm::run" "(defmacro run (task) task)" "wrong-definition")
                   ("hm::plain" "(defmethod plain (x) x)" "wrong-definition") ("hm::plain" "(defgeneric plain (x))" "wrong-definition")
                   ("hm::run" "(defmethod run ((task task) &key verbose) (+ verbose nowhere))" "COMPILATION_ERROR"))
            do (is equal kind (replaced image function code)))
      (is equal "((:OUTER :NEW NIL) (:KEY NIL))" (value "(list (hm::run (make-instance 'hm::task)) (hm::run :go))"))
      ;; Back to the first, one after another.
      (loop until (equal "nothing-to-undo" (path-if-any (call image "undo-reload") "error" "kind"))
            do (ok t))
      (is equal "NIL" (value "(fboundp 'hm::run)")))))

(deftest method-replacement-is-atomic
  ;; On a busy machine the callers may fill a small heap before a collection has stopped them.
  (with-image (image :command (core-command 4096))
    (prepare image *callers*)
    (flet ((code (i)
             ;; Other names of parameters each time; one method in the DEFGENERIC, and another one
             ;; that comes and goes.
             (format nil "(defgeneric torn (a ~[b~;c~;d~]) (:method ((x symbol) y) (list ~D ~D y)) ~[(:method ((x string) y) y)~;~])
(defmethod torn ((x~D integer) y) (let ((i ~D)) (list i i y)))
(defmethod torn ((x (eql 7)) z~D) (let ((i ~D)) (list i i z~D)))
(defmethod torn :around ((x~D integer) y) (call-next-method))
(defclass thing () ((part :initform 1 :accessor part) ~[~;(other :initform 2 :accessor other)~]))"
                     (mod i 3) i i (mod i 2) i i i i i i (mod i 2))))
      (compile-string image (code 0))
      (compile-string image "(defvar *thing* (make-instance 'thing))
(defun probe () (flet ((whole (values) (destructuring-bind (a b c) values (and (eql a b) (eql c :y)))))
  (and (whole (torn :symbol :y)) (whole (torn 1 :y)) (whole (torn 7 :y)) (whole (torn (expt 10 30) :y)) (eql 1 (part *thing*)))))")
      (prepare image "(start-callers 'probe)")
      (loop for i from 1 to 50
            do (unless (reloaded-p (compile-string image (code i)))
                 (is eql :reloaded i)))
      (loop for i from 1 to 25
            do (unless (reloaded-p (replaced image "torn" (format nil "(defmethod torn ((p~D integer) y) (let ((i ~D)) (list i i y)))" i i)))
                 (is eql :replaced i)))
      (dotimes (i 20)
        (unless (eq :true (path (undo image) "reloaded"))
          (is eql :undone i)))
      ;; A load that fails is put back at no cost to them either.
      (dotimes (i 10)
        (is eq :false (path (compile-string image (concatenate 'string (code i) " (error \"at the end\")")) "reloaded")))
      (is equal "NIL" (first-value image "(stop-callers)")))))
