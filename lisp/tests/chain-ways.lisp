;;;; The ways in which an edited form reaches what is found in others, one small text each: what a
;;;; chain says of the edits against whole checks.

(load (merge-pathnames "chain-support.lisp" *load-truename*))

(in-package :consort)

(defparameter *ways*
  '(("what a package has"
     "(defpackage :way (:use :cl) (:export #:f))
(in-package :way)
(defun f (a) a)
(defun g () (way:f 1 2))
(defun h (x) (if x (car x)))
"
     ("(:export #:f)" "(:export #:g)") ("(:use :cl)" "(:use)") ("(:use :cl)" "(:use :cl) (:shadow #:car)") ("(defpackage :way" "(defpackage :ways"))
    ("the value of a constant"
     "(defconstant +n+ 5)
(defmacro m () 5)
(defconstant +m+ (m))
(defun f () (+ +n+ 1))
(defun g () (+ +m+ 1))
"
     ("+n+ 5" "+n+ :five") ("(defmacro m () 5)" "(defmacro m () :five)") ("(defconstant +n+ 5)" ""))
    ("code that is run by the reader"
     "(defmacro m () 5)
(defun f () (+ #.(m) 1))
(defun g () (car #.(m)))
"
     ("(defmacro m () 5)" "(defmacro m () :five)") ("(defmacro m () 5)" "(defmacro mm () 5)") ("(defmacro m () 5)" "(defmacro m () (list 'quote (list 1)))"))
    ("state that code at compile time keeps, as other forms make it"
     "(defvar *seen*)
(defmacro name-of (x) `',x)
(eval-when (:compile-toplevel :load-toplevel :execute)
  (setf *seen* (list (name-of a))))
(defmacro if-seen (x then else) (if (member x *seen*) then else))
(defun f () (if-seen a (car 1) (cdr 2)))
"
     ("name-of (x) `',x)" "name-of (x) `'b)") ("(name-of a)" "(name-of b)") ("name-of (x)" "name-off (x)"))
    ("conditions that are handled while compiling"
     "(declaim (sb-ext:muffle-conditions sb-ext:compiler-note))
(defun f (x) (let ((y 1)) x))
(defun g (x) (let ((y 1)) x))
"
     ("sb-ext:compiler-note" "style-warning") ("muffle-conditions sb-ext:compiler-note" "muffle-conditions warning"))
    ("what a defining macro defines"
     "(defmacro define-thing (name args) `(defun ,name ,args (list ,@args)))
(define-thing one (a))
(defun two (a b) (one a b))
(define-thing three (a))
(defun four () (three 1))
"
     ("one (a)" "three (a)") ("one (a)" "one (a b)") ("three (a)" "one (a)") ("`(defun ,name ,args" "`(defun ,name (x ,@args)") ("define-thing one (a)" "define-thing four (a)"))
    ("declared functions that are defined twice"
     "(declaim (inline f g) (ftype (function (t) t) f g))
(defvar *first* 1)
(defun f (x) x)
(defun g (x) x)
(defun h (x) (g x))
"
     ("(defvar *first* 1)
(defun f (x) x)
(defun g (x) x)" "(defvar *second* 1)
(defun f (x) x)
(defun g (x) x)
(defun g (x) x)") ("ftype (function (t) t) f g))
(defvar *first* 1)
(defun f (x) x)
(defun g (x) x)" "ftype (function (t) t) g f))
(defvar *first* 1)
(defun f (x) x)
(defun g (x) x)
(defun g (x) x)"))
    ("names that macros make up"
     "(defmacro with-it (&body body) (let ((it (gensym \"IT\"))) `(let ((,it 1)) ,@body)))
(defun f () (with-it (list 1)))
(defmacro other (x) (let ((y (gensym)) (z (gensym))) `(let ((,y ,x) (,z 2)) (list ,y ,z))))
(defun g () (other 1))
(defun h () (with-it (list 2)))
"
     ("(defun g () (other 1))" "(defun g () (other (other 1)))") ("(gensym \"IT\")" "(gensym \"THAT\")") ("(list 1)" "(with-it 2)"))
    ("structures and what includes them"
     "(defstruct base (x 0 :type fixnum))
(defstruct (derived (:include base (x 1))) (y 'a :type symbol))
(defun f (d) (declare (type derived d)) (car (derived-x d)))
(defun g () (make-derived :x 'b :y 2))
(defun h (b) (setf (base-x b) \"s\"))
"
     ("x 0 :type fixnum" "x 0 :type (or fixnum list)") ("x 0 :type fixnum" "xx 0 :type fixnum") ("y 'a :type symbol" "y 0 :type integer") ("(:include base (x 1))" "(:include base)")
     ("defstruct base" "defstruct basis") ("(defun h (b)" "(defstruct base (q 1))
(defun h (b)") ("(defun f (d)" "(defstruct (base (:include derived)) (q 1))
(defun f (d)"))
    ("types, and types of them"
     "(deftype small () '(integer 0 9))
(deftype smalls () '(or small (cons small)))
(declaim (ftype (function (smalls) small) take))
(defun take (x) (if (consp x) (car x) x))
(defun f () (take 10))
(defun g () (car (take 1)))
(defvar *s* 1)
(declaim (type small *s*))
(defun h () (setf *s* 12))
"
     ("0 9" "0 19") ("(smalls) small" "(smalls) list") ("'(integer 0 9)" "'symbol") ("(type small *s*)" "(type list *s*)"))
    ("symbol macros, special variables, constants by proclamation"
     "(define-symbol-macro it (car 1))
(defun f () it)
(defvar *v*)
(defun g () (let ((*v* 1)) (f)))
(declaim (sb-ext:global **w**))
(defun h () (list **w** it))
"
     ("(car 1)" "(car '(1))") ("define-symbol-macro it" "define-symbol-macro that") ("(defvar *v*)" "") ("(defvar *v*)" "(defconstant *v* 1)") ("(declaim (sb-ext:global **w**))" ""))
    ("functions in line, and what is in their bodies"
     "(defmacro m (x) `(car ,x))
(declaim (inline first-of))
(defun first-of (x) (m x))
(defun f () (first-of 1))
(define-compiler-macro second-of (&whole form x) (if (constantp x) '(car 2) form))
(defun second-of (x) (cadr x))
(defun g () (second-of 3))
(defun (setf second-of) (new x) (setf (cadr x) new))
(defun h () (setf (second-of 1 2) 3))
"
     ("`(car ,x)" "`(list ,x)") ("(defun first-of (x) (m x))" "(defun first-of (x y) (m x) y)") ("'(car 2)" "''(2)") ("(declaim (inline first-of))" "(declaim (notinline first-of))")
     ("(new x)" "(new x y)") ("(defun (setf second-of)" "(defun (setf third-of)"))
    ("conditions, and those that inherit from them"
     "(define-condition top (error) ())
(define-condition middle (top) ())
(define-condition other (error) ())
(define-condition low (middle) ((why :reader why :initarg :why)))
(defun f (c) (why c 1))
"
     ("define-condition other (error)" "define-condition top (warning)") ("define-condition other (error)" "define-condition middle (warning)")
     ("top (error) ()" "top (error) ((x :reader x))")
     ("define-condition middle (top)" "define-condition middel (top)"))
    ("classes, generic functions and methods"
     "(defclass shape () ((area :accessor area :initarg :area :type real)))
(defclass square (shape) ())
(defgeneric scale (shape by &key unit))
(defmethod scale ((shape square) by &key unit) (list shape by unit))
(defun f (s) (scale s 1 :unit 2 :other 3))
(defun g (s) (scale s))
(defmethod print-object ((s square) stream) (area s stream))
(define-condition oops (error) ((why :reader why)))
(defun h () (handler-case (f 1) (oops (c) (why c 1))))
"
     ("by &key unit))" "&key unit))") ("by &key unit) (list" "by &key unit other) (list") (":accessor area" ":accessor size") ("defclass square (shape)" "defclass rectangle (shape)") (":reader why" ":reader reason")
     ("define-condition oops" "define-condition ooops") ("(defgeneric scale (shape by &key unit))" ""))
    ("policy, and what is a definition inside another"
     "(declaim (optimize (speed 1)))
(defun f (x) (declare (type fixnum x)) (+ x 1))
(progn (defun inside (a) a) (defvar *inside* 1))
(let ((c 0)) (defun counter (by) (incf c by)))
(defun g () (inside) (counter))
(macrolet ((def (name) `(defun ,name (x) (car x)))) (def one) (def two))
(defun h () (one) (two 1 2))
"
     ("(speed 1)" "(speed 3)") ("inside (a) a)" "inside (a b) (list a b))") ("counter (by)" "count-up (by)") ("(def two)" "(def three)") ("(def one) (def two)" "(def h) (def one) (def two)") ("(x) (car x)" "(x y) (car x)"))
    ("functions that are called when other code is compiled"
     "(eval-when (:compile-toplevel :load-toplevel :execute)
  (defun helper (x) (list 'car x)))
(defmacro m (x) (helper x))
(defun f () (m 1))
(eval-when (:compile-toplevel) (defmacro only-now () '(cdr 1)))
(defun g () (only-now))
"
     ("(list 'car x)" "(list 'list x)") ("(defun helper (x)" "(defun helper (x y)") ("'(cdr 1)" "'(cdr nil)") ("(defun helper" "(defun helpers"))
    ("syntax that the text itself changes"
     "(eval-when (:compile-toplevel :load-toplevel :execute)
  (setf *readtable* (copy-readtable))
  (set-macro-character #\\! (lambda (stream char) (declare (ignore char)) (list 'car (read stream t nil t)))))
(defun f (x) !x)
(defun g () !1)
(eval-when (:compile-toplevel :load-toplevel :execute) (setf *readtable* (copy-readtable nil)))
(defun h (!x) !x)
"
     ("'car" "'cadr") ("'car" "'list") ("#\\!" "#\\?") ("(copy-readtable nil)" "*readtable*"))
    ("features"
     "(eval-when (:compile-toplevel :load-toplevel :execute) (pushnew :way-one *features*))
#+way-one (defun f () (car 1))
#-way-one (defun f (x) (cdr 2))
(defun g () (f 1))
"
     (":way-one *features*" ":way-two *features*") ("#-way-one" "#+way-one") ("#+way-one (defun" "#+way-two (defun")))
  "((what text (old new)...)...)")

(defun text-with (text old new)
  "TEXT with the first OLD as NEW."
  (let ((at (or (search old text) (error "no ~S" old))))
    (concatenate 'text (subseq text 0 at) new (subseq text (+ at (length old))))))

(defun test-way (what text edits)
  "Compare what a chain says of the EDITS of TEXT with whole checks."
  (let* ((text (coerce text 'text)) (chain (start-chain text :spacing 0)))
    (expect chain (format nil "~A: a chain stands" what))
    (when chain
      (loop for (old new) in edits
            for edited = (text-with text old new)
            for final = (ask-chain chain edited)
            do (multiple-value-bind (missing extra) (if (listp final) (compare-with-whole final edited) (values nil nil))
                 (expect (not (or missing extra (eq final :ended)))
                         (format nil "~A: ~S for ~S: missing ~S, extra ~S" what new old missing extra))))
      (stop-chain chain))))
