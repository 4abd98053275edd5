;;;; Macro expansion, in real copies: what is expanded, in which environment, what is not, and that
;;;; nothing of it reaches the image.

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defpackage :expand-tests (:use :cl))

(defun answer-of (text &rest more)
  "The copy's answer about TEXT; MORE: parameters, names and values."
  (loop for line in (check-lines (coerce text 'text)
                                 :package (getf more :package "EXPAND-TESTS") :deadline (getf more :deadline *patience*)
                                 :runner 'expand-in-copy
                                 :more (loop for (name value) on more by #'cddr
                                             when (stringp name) collect name and collect value))
          thereis (field line "answer")))

(defun text-of-answer (answer)
  "Returns the expansion with white space made plain, or its error."
  (let ((expansion (field answer "expansion")))
    (if expansion
        (substitute #\Space #\Newline (collapse-space expansion))
        (list (field (field answer "error") "stage") (field (field answer "error") "message")))))

(defun squeezed (text)
  "TEXT with each run of white space one space."
  (with-output-to-string (out)
    (loop with blank = nil
          for char across text
          do (cond ((member char '(#\Space #\Newline)) (setf blank t))
                   (t (when blank (write-char #\Space out))
                      (setf blank nil)
                      (write-char char out))))))

(defun expect-expansion (text expected &rest more)
  "Expect that TEXT expands to EXPECTED: a text, or (:contains ...) with several, some of them (:not
  text)."
  (let* ((answer (apply #'answer-of text more))
         (got (let ((text (text-of-answer answer))) (if (stringp text) (squeezed text) text))))
    (expect (if (stringp expected)
                (equal got expected)
                (and (stringp got)
                     (loop for part in (rest expected)
                           always (if (stringp part) (search part got) (not (search (second part) got))))))
            (format nil "~A~%  should give~%~S~%  and gives~%~S" text expected got))
    answer))

(defun at (text)
  "TEXT without its ^, and where that was."
  (let ((at (position #\^ text)))
    (values (remove #\^ text) at)))

(defun expect-at (text expected &rest more)
  "As EXPECT-EXPANSION, of the form at the ^ in TEXT."
  (multiple-value-bind (text offset) (at text)
    (apply #'expect-expansion text expected "offset" offset more)))

(defmacro with-definitions ((&rest forms) &body body)
  `(progn (let ((*package* (find-package :expand-tests)) (*error-output* (make-broadcast-stream)))
            ,@(loop for form in forms collect `(eval (read-from-string ,form))))
          ,@body))

(defvar *not-to-be-written* (format nil "~Aexpand-~D" (uiop:native-namestring (uiop:temporary-directory)) (sb-posix:getpid)))

(with-definitions ("(defmacro twice (form) `(progn ,form ,form))"
                   "(defmacro fails () (error \"no ~A\" :way))"
                   "(defmacro endless () (loop))"
                   "(defmacro fresh () (let ((g (make-symbol \"G\")) (h (make-symbol \"H2\"))) `'(,g ,g ,h ,h ,(make-symbol \"I\"))))"
                   "(defmacro quoting () (let ((g (make-symbol \"LIMIT1\"))) `(let ((,g 1)) `(a ,,g ,@,g ,.,g #(c ,,g)) '#(,g (d . ,g)))))"
                   "(defmacro again () '(again))"
                   "(defmacro deeper () '(progn (deeper)))"
                   "(defvar *seen* 0)"
                   "(defmacro noting () (incf *seen*) (setf (get 'noting :seen) t) (intern \"NEW-HERE\" :expand-tests) (setf (fdefinition 'made-by-macro) #'car) 1)"
                   (format nil "(defmacro writing () (with-open-file (out ~S :direction :output) (print 1 out)))" *not-to-be-written*)
                   "(defmacro thrower () (throw 'nowhere 1))"
                   "(defmacro env-of (name &environment env) (if (macro-function name env) :macro :none))"
                   "(define-compiler-macro compiled-away (x) `(never ,x))"
                   "(define-compiler-macro declining (&whole form x) (declare (ignore x)) form)"
                   "(defmacro copying (form) (copy-tree `(progn ,form)))"
                   "(define-symbol-macro global-place (car *seen*))")

  ;; Single steps, and full expansion.
  (test "steps-and-all"
    (expect-expansion "(twice (twice 1))" "(progn (twice 1) (twice 1))")
    (expect-expansion "(twice (twice 1))" "(progn (progn 1 1) (progn 1 1))" "how" "full")
    (expect-expansion "(push item list)" '(:contains "(setq list (cons ") "how" "full")
    (expect-expansion "(when a (when b c))" '(:contains "(if a " "(when b c)" (:not "(if b")))
    (let ((answer (answer-of "(list (when a b))")))
      (expect (eq :false (field answer "expanded")) "a call of a function is no macro call"))
    (let ((answer (answer-of "(list (when a b))" "how" "full")))
      (expect (eq :true (field answer "expanded")) "but what is in it may be"))
    (expect-expansion "global-place" "(car *seen*)")
    (expect-expansion "(compiled-away 1)" "(compiled-away 1)" "how" "full"))

  (test "compiler-macros-and-format-controls"
    (flet ((compiled (text expected) (expect-expansion text expected "how" "compiler")))
      (compiled "(compiled-away 1)" "(never 1)")
      (compiled "(declining 1)" "(declining 1)")
      (compiled "(format t \"~A~%\" 1)" '(:contains "(format t #'(lambda " "(princ " "(write-char #\\Newline "))
      (compiled "(error \"no ~D\" x)" '(:contains "(error #'" " x)"))
      (compiled "(format t control 1)" '(:contains "(format t control 1)"))
      (compiled "(list 1)" "(list 1)")
      (compiled "(twice 1)" "(twice 1)"))
    (expect-at "(flet ((compiled-away (x) x)) (compiled-away^ 1))" "(compiled-away 1)" "how" "compiler")
    (expect-at "(list (compiled-away^ 1))" "(never 1)" "how" "compiler")
    (loop for (text expanded) in '(("(compiled-away 1)" :true) ("(declining 1)" :false) ("(list 1)" :false))
          do (expect (eq expanded (field (answer-of text "how" "compiler") "expanded"))
                     (format nil "~A is expanded or not: ~A" text expanded))))

  ;; Nothing that is data.
  (test "data"
    (expect-expansion "(list '(twice 1) '#(twice 1) (quote (when a b)) :key (function twice))" "(list '(twice 1) '#(twice 1) '(when a b) :key #'twice)" "how" "full")
    (expect-expansion "(case x ((when a) 1) (t (twice 2)))" '(:contains "'when" "(progn 2 2)" (:not "(twice")) "how" "full")
    (expect-expansion "(let ((twice 1) (when (twice 2))) (declare (type fixnum when)) twice)" "(let ((twice 1) (when (progn 2 2))) (declare (type fixnum when)) twice)" "how" "full")
    (expect-expansion "(tagbody twice (go twice) (twice 1))" "(tagbody twice (go twice) (progn 1 1))" "how" "full")
    (expect-expansion "(block when (return-from when (twice 1)))" "(block when (return-from when (progn 1 1)))" "how" "full")
    (expect-expansion "(the (or (twice) null) (twice 1))" "(the (or (twice) null) (progn 1 1))" "how" "full")
    (expect-expansion "(eval-when (:compile-toplevel) (twice 1))" "(eval-when (:compile-toplevel) (progn 1 1))" "how" "full")
    (expect-expansion "(locally (declare (twice 1)) (twice 1))" "(locally (declare (twice 1)) (progn 1 1))" "how" "full"))

  ;; Functions that hide macros, and macros that hide both.
  (test "functions-that-hide-macros"
    (expect-expansion "(flet ((twice (x) (twice x))) (twice 1))" "(flet ((twice (x) (progn x x))) (twice 1))" "how" "full")
    (expect-expansion "(labels ((twice (x) (twice x))) (twice 1))" "(labels ((twice (x) (twice x))) (twice 1))" "how" "full")
    (expect-expansion "(macrolet ((twice (x) `(list ,x))) (twice (twice 1)))" "(list (list 1))" "how" "full")
    (expect-expansion "(macrolet ((one () 1) (two () '(one))) (flet ((one () 2)) (list (one) (two))))" "(flet ((one () 2)) (list (one) (one)))" "how" "full")
    (expect-expansion "(macrolet ((a () 1)) (macrolet ((b () (+ (a) 1))) (b)))" "2" "how" "full")
    (expect-expansion "(macrolet ((a () 1)) (declare (optimize speed)) (a))" "(locally (declare (optimize speed)) 1)" "how" "full")
    (expect-expansion "(macrolet ((here () 1)) (list (env-of here) (env-of there) (flet ((here () 2)) (env-of here))))"
                      "(list :macro :none (flet ((here () 2)) :none))" "how" "full"))
  ;; Symbol macros, and variables that hide them.
  (test "symbol-macros"
    (expect-expansion "(symbol-macrolet ((p (car q))) (list p 'p (let ((p p)) p)))" "(list (car q) 'p (let ((p (car q))) p))" "how" "full")
    (expect-expansion "(symbol-macrolet ((p (car q))) (setq p 1 r p))" '(:contains "(sb-kernel:%rplaca q 1)" "(setq r (car q))" (:not "setf")) "how" "full")
    (expect-expansion "(symbol-macrolet ((p (car q))) (let* ((p 1) (r p)) (lambda (&optional (p p) (s p)) p)))"
                      "(let* ((p 1) (r p)) #'(lambda (&optional (p p) (s p)) p))" "how" "full")
    (expect-expansion "(symbol-macrolet ((p (car q))) (lambda (a &optional (b p bp) &key ((:c d) (twice p)) &aux (p 1) (e p)) \"doc\" (declare (ignore a)) (list p e)))"
                      '(:contains "&optional (b (car q) bp) &key ((:c d) (progn (car q) (car q))) &aux (p 1) (e p)" "\"doc\" (declare (ignore a))" "(list p e)") "how" "full")
    (expect-expansion "(with-slots (a) object (setf a (1+ a)))" '(:contains "(slot-value " "(let " (:not "with-slots") (:not "symbol-macrolet")) "how" "full"))

  ;; The standard's own.
  (test "standard-macros"
    (expect-expansion "(defun foo (x) (1+ x))" '(:contains "'foo" "(block foo (1+ x))" "%defun"))
    (expect-expansion "(loop for i from 1 to 10 collect (* i i))" '(:contains "(block nil" "(* i i)" "#:"))
    (expect-expansion "(loop for i from 1 to 10 collect (twice i))" '(:contains "(progn i i)" "(tagbody" (:not "(loop ") (:not "when ")) "how" "full")
    (expect-expansion "(setf (gethash a b) (twice 1))" '(:contains "puthash" "(progn 1 1)") "how" "full")
    (expect-expansion "(defmethod foo ((x integer)) (call-next-method) (twice x))" '(:contains "(progn x x)" "(flet ((call-next-method (" (:not "macrolet")) "how" "full")
    (expect-expansion "(defclass c () ((a :initform (twice 1))))" '(:contains "(progn 1 1)" "c") "how" "full")
    (expect-expansion "(defstruct s (a (twice 1)))" '(:contains "s") "how" "full")
    (expect-expansion "(handler-case (twice 1) (error () 2))" '(:contains "(progn 1 1)") "how" "full")
    (expect-expansion "(with-open-file (s \"test.txt\") (read s))" '(:contains "(open \"test.txt\")" "(close s" "unwind-protect" (:not "with-open-")) "how" "full")
    (expect-expansion "`(a ,(twice 1) ,@b)" '(:contains "(progn 1 1)" "'a") "how" "full")
    (expect-expansion "(twice `(a ,b))" "(progn `(a ,b) `(a ,b))")
    (expect-expansion "(twice #.(+ 1 2))" "(progn 3 3)")
    (expect-expansion "(twice \"a
b\")" '(:contains "\"a b\" \"a b\""))
    (expect-expansion "(twice #1=(car . #1#))" '(:contains "#1=(car . #1#)"))
    (expect-expansion "#1=(progn 1 . #1#)" '(:contains "#1=") "how" "full")
    (expect-expansion "(a . b)" "(a . b)" "how" "full")
    (expect-expansion "(sb-int:named-lambda \"x\" (a) (twice a))" '(:contains "(progn a a)") "how" "full"))

  ;; As the package sees it.
  (test "packages"
    (expect-expansion "(expand-tests::twice cl-user::x)" "(progn x x)" :package "COMMON-LISP-USER")
    (expect-expansion "(twice expand-tests::x)" "(twice expand-tests::x)" :package "COMMON-LISP-USER")
    (expect-expansion "(expand-tests::twice expand-tests::x)" "(progn expand-tests::x expand-tests::x)" :package "COMMON-LISP-USER"))

  ;; The form at a place, in its environment.
  (test "place"
    (expect-at "(defun f (x) (macrolet ((m (a) `(first ,a))) (when x (^m x))))" "(first x)")
    (expect-at "(defun f (x) (flet ((twice (y) y)) (^twice x)))" "(twice x)")
    (expect-at "(defun f (x) (symbol-macrolet ((p (car x))) (twice ^(setf p 1))))" '(:contains "rplaca x 1"))
    (expect-at "(defun f (x) (symbol-macrolet ((p (car x))) (twice ^(setf p 1))))" '(:contains "rplaca x 1") "how" "full")
    (expect-at "(let ((twice ^(twice 1))) twice)" "(progn 1 1)")
    (expect-at "(list '(twi^ce 1) 2)" "(list '(twice 1) 2)")
    (expect-at "(let ((a (twice 1)) (^b 2)) a)" "(let ((a (twice 1)) (b 2)) a)")
    (expect-at "#+sbcl (progn #-sbcl (no) ; (twice 0
 (list (twi^ce 1)))" "(progn 1 1)")
    (expect-at "(list \"(\" #\\( (twice^ 1))" "(progn 1 1)")
    (expect-at "(list (fails) (tw^ice 1))" "(progn 1 1)")
    (expect-at "(macrolet ((m ())) (list (fails) (tw^ice 1)))" "(progn 1 1)")
    (expect-at "(when a (tw^ice 1))" "(when a (progn 1 1))" "whole" :true)
    (expect-at "(list '#1=(a . #1#) (tw^ice 1))" "(list '#1=(a . #1#) (progn 1 1))" "whole" :true)
    (expect (equalp #(8 17) (field (answer-of "(when a (twice 1))" "offset" 10) "span")) "the span is the form's")
    ;; A macro that hands on a copy of its arguments: the form that stands for them is the macro
    ;; call.
    (expect-at "(copying (tw^ice 1))" "(progn (twice 1))"))

  ;; Steps into an expansion: each place is one of the text before it.
  (test "steps-into"
    (expect-expansion "(twice (twice (twice 1)))" "(progn (progn (twice 1) (twice 1)) (twice (twice 1)))" "steps" #(#(0 9)))
    (expect-expansion "(twice (when a (twice 1)))" '(:contains "(progn (if a " "(progn 1 1)" "(when a (twice 1)))") "steps" #(#(0 8) #(2 8)))
    (expect-at "(macrolet ((m () '(n)) (n () 7)) (list ^(m)))" "7" "steps" #(#(0 0)))
    (expect-expansion "(progn '#1=(a . #1#) (when x (twice 1)))" '(:contains "'#1=(a . #1#)" "(if x " "(twice 1)") "steps" #(#(0 21)))
    (expect-expansion "(twice 'a)" '(:contains "(progn 'a 'a)") "steps" #(#(0 0)))
    (expect (equal "place" (field (field (answer-of "(noting)" "steps" #(#(0 0))) "error") "stage")) "a step where there is no form is told")
    (expect (equal '(0 3 3 6 6 6) (loop for (line column unit) in '((0 0 "utf-8") (0 4 "utf-16") (0 6 "utf-8") (1 1 "utf-32") (1 90 "utf-32") (9 9 "utf-16"))
                                         collect (offset-at (format nil "a~C~Cb~%c" (code-char #x1F600) (code-char #xE9)) line column unit)))
            "places in the units of editors")
    ;; The printed expansion is a form again: without a package but of one name is the same.
    (expect-expansion "(macrolet ((#:m () 7)) (#:m))" "7" "how" "full" "printed" :true)
    (expect-expansion "(twice #<FUNCTION <a> {1}>)" '(:contains "unreadable") "printed" :true))

  ;; A step in a text: the macro call that is meant, what of it is told apart, and all of them.
  (test "macro-steps"
    (flet ((expect-step (text expected span &rest more)
             (multiple-value-bind (text offset) (at text)
               (let ((answer (apply #'expect-expansion text expected "offset" offset "within" (getf more :within (vector 0 (length text))) "printed" :true more)))
                 (expect (equalp span (field answer "span")) (format nil "~A: the span ~S" text (field answer "span")))))))
      (expect-step "(defun f (x) (twice (list ^x)))" "(progn (list x) (list x))" #(13 29))
      (expect-step "(defun f (x) (twice (list (twice ^x))))" "(progn x x)" #(26 35))
      (expect-step "(defun f (x) (list ^x))" "(list x)" #(13 21))
      (expect-step "(macrolet ((m (a) `(first ,a))) (m (list ^1)))" "(first (list 1))" #(32 44))
      (expect-step "(twice (progn (list ^1)))" "(list 1)" #(14 22) :within #(7 23))
      (expect (equal "place" (field (field (answer-of "(twice '(when a))" "offset" 14 "within" #(8 16)) "error") "stage")) "nothing larger than what is named")
      (expect-step "(twice '(when ^a))" "(progn '(when a) '(when a))" #(0 17))
      ;; Symbols of no package: of one name in the text, another in what is new.
      (expect-step "(let ((#:limit1 1)) (^dotimes (i #:limit1) (f)))" '(:contains "(f)" (:not "#:limit1 #:limit1")) #(20 46))
      (expect-step "(list #:g #:h2 (f^resh))" "'(#:g1 #:g1 #:h1 #:h1 #:i)" #(15 22))
      ;; Also in backquotes and in vectors.
      (expect-step "(list #:limit1 (quo^ting))" "(let ((#:limit2 1)) `(a ,#:limit2 ,@#:limit2 ,.#:limit2 #(c ,#:limit2)) '#(#:limit2 (d . #:limit2)))" #(15 24))
      ;; Data around the call that ends nowhere, or contains itself in a vector.
      (expect-step "(defun f (x) (when x '#1=(a #:g . #1#)) (list '#2=#(b #2# #:h1) (fr^esh)))" "'(#:g1 #:g1 #:h2 #:h2 #:i)" #(64 71))
      (expect-step "(twice '#1=#(a #1# ^))" '(:contains "#2=#(a #2#)") #(0 21))
      (flet ((calls (text) (map 'list (lambda (span) (subseq text (aref span 0) (aref span 1)))
                                (field (answer-of text "how" "calls" "printed" :true) "calls"))))
        (expect (equal '("(twice (when a 1))" "(when a 1)") (calls "(list (twice (when a 1)) '(twice 1) (car x))")) "the macro calls of a form")
        (expect (equal '("(when a)" "(fails)" "(when b)") (calls "(list (when a) (fails) (when b))")) "also behind one that fails")
        (expect (equal '() (calls "a")) "none in a name"))))

  ;; To be written down: what has no package and is there twice gets a name that is new; columns.
  (test "written"
    (expect-expansion "(loop repeat 3 do (f))" '(:contains (:not "#:")) "writable" :true)
    (expect-expansion "(list '#:once '#:once)" "(list '#:once '#:once)" "writable" :true)
    (expect-expansion "(quoting)" "(let ((limit 1)) `(a ,limit ,@limit ,.limit #(c ,limit)) '#(limit (d . limit)))" "writable" :true)
    (expect (equal "#1=#(a #1#)" (text-of-answer (answer-of "#1=#(a #1#)" "writable" :true))) "a vector that contains itself")
    (let ((answer (answer-of "(list
     (when a (let ((b 1)) (ccccccccccccccccccccccccc) (ccccccccccccccccccccccccccccc) (cccccccccccccccccccccccccccc))))" "column" 10 "offset" 11)))
      (expect (search (format nil "~%         (let") (concatenate 'string (field answer "expansion"))) (format nil "lines after the first are indented by the column: ~S" (field answer "expansion"))))
    (expect (eq :false (field (answer-of "(twice #.#'car)" "writable" :true) "writable")) "an object that no text stands for is told"))

  ;; Errors.
  (test "errors"
    (flet ((failed (text stage words &rest more)
             (let ((error (field (apply #'answer-of text more) "error")))
               (expect (and error (equal stage (field error "stage")) (search words (field error "message")))
                       (format nil "~A: ~S" text error)))))
      (failed "(twice" "read" "end of file on #<STRING-INPUT-STREAM>")
      (failed "" "read" "end of file")
      (failed ")" "read" "unmatched close parenthesis")
      (failed "(no-such-package:x)" "package" "Package NO-SUCH-PACKAGE not found")
      (failed "(cl:no-such-symbol)" "read" "NO-SUCH-SYMBOL")
      (failed "(fails)" "expand" "no WAY")
      (failed "(list (fails))" "expand" "no WAY" "how" "full")
      (failed "(thrower)" "expand" "")
      (failed "(loop for)" "expand" "LOOP")
      (failed "(endless)" "expand" "stopped after" :deadline 2)
      (failed "(again)" "expand" "stopped after" :deadline 2 "how" "full")
      (failed "(deeper)" "expand" "never ends" "how" "full")
      (failed "(writing)" "expand" "confined")
      (failed "'(a)  b" "place" "" "offset" 5)
      (expect (equal "SB-INT:SIMPLE-PROGRAM-ERROR" (field (field (answer-of "(loop for)" :package "COMMON-LISP-USER") "error") "type")) "the type is as CL-USER sees it")))

  ;; Side effects of a macro happen in the copy.
  (test "side-effects"
    (expect-expansion "(noting)" "1")
    (expect (eql 0 (symbol-value (find-symbol "*SEEN*" :expand-tests))) "a variable is as it was")
    (expect (null (symbol-plist (find-symbol "NOTING" :expand-tests))) "so are properties")
    (expect (null (find-symbol "NEW-HERE" :expand-tests)) "no symbol is made")
    (expect (not (fboundp (or (find-symbol "MADE-BY-MACRO" :expand-tests) 'none))) "and no function")
    (answer-of "(twice a-new-name)")
    (expect (null (find-symbol "A-NEW-NAME" :expand-tests)) "what is read is not interned")
    (answer-of "(writing)")
    (expect (null (probe-file *not-to-be-written*)) "no file is written")))

;; Four times the text takes four times as long.

(defun processor-time (function)
  "The least processor time, without the garbage collector's, that three calls of FUNCTION take, in
  seconds."
  (flet ((now () (- (get-internal-run-time) sb-ext:*gc-run-time*)))
    (loop repeat 3
          minimize (let ((start (now)))
                     (funcall function)
                     (/ (- (now) start) internal-time-units-per-second 1.0)))))

(defun expect-linear (what size prepared)
  "Expect that the function that PREPARED returns for a size takes linear time. What takes less than
  30 ms for four times SIZE is not quadratic. A step may be slower for the processor's cache; all
  steps are, when time is quadratic."
  (flet ((seconds (size) (processor-time (funcall prepared size))))
    (let ((slow (seconds (* 4 size))))
      (when (> slow 0.03)
        (let ((ratio (/ slow (max (seconds size) 1e-6))))
          (when (>= ratio 7)
            (setf ratio (min ratio (/ (seconds (* 16 size)) slow))))
          (expect (< ratio 7) (format nil "four times the ~A takes ~,1F times as long" what ratio)))))))

(test "linear"
  (let ((*package* (make-package :expand-tests-of-time :use '(:cl))))
    (unwind-protect
         (flet ((repeated (text size) (coerce (format nil "(list~V@{ ~A~:*~})" size text) 'text))
                (symbols (size) (loop repeat size collect (make-symbol "G1"))))
           (expect-linear "lists of a form that is searched for macro calls" 2000
                          (lambda (size)
                            (multiple-value-bind (form end places) (read-placing (repeated "(when a (f b))" size) 0 :printed t)
                              (declare (ignore end))
                              (lambda () (macro-call-spans form places)))))
           (expect-linear "symbols of one name in an expansion" 200
                          (lambda (size) (let ((symbols (symbols size))) (lambda () (distinctly-named symbols '())))))
           (expect-linear "symbols of one name in an expansion that is written down" 200
                          (lambda (size)
                            (let ((symbols (symbols size)))
                              (lambda ()
                                (named-apart (append symbols symbols))
                                (do-symbols (symbol *package*) (when (eq (symbol-package symbol) *package*) (unintern symbol))))))))
      (delete-package *package*))))

;; Without a copy: what that gives is what a copy gives, and nothing is left in the image.

(defun plain-answer (text &rest more)
  (let ((*package* (find-package :common-lisp-user)))
    (plain-expansion (apply #'object "text" text "package" "EXPAND-TESTS" more))))

(defun names-of-image ()
  "Returns the number of symbols and which packages there are."
  (let ((count 0))
    (do-all-symbols (symbol) (declare (ignorable symbol)) (incf count))
    (list count (length (list-all-packages)))))

(test "without-a-copy"
  (let ((before (names-of-image)) (plain 0))
    (dolist (text '("(loop for plain-i from 1 to 10 collect (* plain-i plain-i))" "(when plain-a (push 1 plain-b) \"str\" ':key)" "(setf (gethash plain-a plain-b) 1)"
                    "(incf (plain-place 1 2))" "(defun plain-f (plain-x &optional (y 1)) (1+ plain-x))" "(with-open-file (s \"test.txt\") (read s))" "(+ 1 2)" "(case plain-x (:test 1) ((nil) 2))"
                    "(dolist (plain-x '(1 2)) (print plain-x))" "(push item list)" "(cond ((plain-a) (plain-b)) (t 2))" "(handler-case (plain-f) (error (e) e))"
                    "(multiple-value-bind (plain-q r) (floor 1 2) (list r))" "plain-alone"))
      (dolist (how '("one" "full"))
        (let ((here (plain-answer text "how" how)) (there (answer-of text "how" how)))
          (when here
            (incf plain)
            (expect (equal (list (field here "form") (field here "expansion") (field here "expanded"))
                           (list (field there "form") (field there "expansion") (field there "expanded")))
                    (format nil "~A, ~A: here~%~A~%and in a copy~%~A" text how (field here "expansion") (field there "expansion"))))
          (when (string= how "one")
            (expect here (format nil "~A takes no copy" text))))))
    (expect (> plain 20) "most of them take no copy")
    (expect (equal before (names-of-image)) "no name is left behind")
    (expect (null (find-symbol "PLAIN-I" :expand-tests)) "what is read is not interned")))

;; Text whose reading may run code of the user's, or is more than this reader knows, takes a copy.
(test "takes-a-copy"
  (with-definitions ("(defmacro plain-macro () (incf *seen*))" "(deftype plain-type () (incf *seen*) 'integer)" "(defsetf plain-set (x) (v) (incf *seen*) `(list ,x ,v))"
                     "(define-symbol-macro plain-symbol-macro (plain-macro))" "(defclass plain-class () ())" "(defun (setf plain-setter) (v x) (list v x))")
    (dolist (text '("(plain-macro)" "(when (plain-macro) 1)" "(incf (plain-macro))" "(setf (plain-set 1) 2)" "(loop for x of-type plain-type from 1 collect x)" "(incf plain-symbol-macro)"
                    "(macrolet ((m () (incf *seen*))) (m))" "(defstruct plain-struct a)" "(defclass plain-class-2 () ())" "(when 1.5 2)" "(when #.(incf *seen*) 1)" "(when cl-user::x 1)"
                    "(when a ; b
 c)" "(when `(a) 1)" "(when |a| 1)" "(when a 1) (when b 2)" "(when a" ")" "(when :no-such-keyword-here 1)" "(handler-case 1 (plain-class () 2))" "(when 1/2 3)" "(in-package :cl-user)"
                    "(when (plain-setter 1) 2)" "(loop for)"))
      (dolist (how '("one" "full"))
        (expect (null (plain-answer text "how" how)) (format nil "~A takes a copy" text))))
    (let ((*macroexpand-hook* (lambda (&rest arguments) (apply #'funcall arguments))))
      (expect (null (plain-answer "(when a b)")) "so does all while there is a hook"))
    (unwind-protect
         (progn (set-macro-character #\! (lambda (stream char) (declare (ignore stream char)) 1) nil (setting *image-settings* '*readtable*))
                (expect (null (plain-answer "(when !a b)")) "or other syntax"))
      (set-syntax-from-char #\! #\a (setting *image-settings* '*readtable*)))
    (expect (eql 0 (symbol-value (find-symbol "*SEEN*" :expand-tests))) "and nothing of it ran")))

;;; Comparing

(defun compared (code old new variants)
  "For each of VARIANTS of CODE: T, :DATA, or why it does not mean the same."
  (let ((answer (comparison-of-expansions (object "code" code "old" old "new" new "variants" (coerce variants 'vector)) (find-package :expand-tests))))
    (map 'list (lambda (variant)
                 (cond ((eq (field variant "same") :false) (field variant "why"))
                       ((eq (field variant "data") :true) :data)
                       (t t)))
         (field answer "variants"))))

(test "comparing"
  (with-definitions ("(defmacro with-both ((one two) &body body) `(let ((,one 1) (,two 2)) ,@body))"
                     "(defmacro logged (name) `(list ',name ,name))"
                     "(defvar *special* 1)")
    (loop for (code old new . variants) in
          '(("(defun f (x) (let ((x (g x))) (h x)))" "x" "y"
             ("(defun f (y) (let ((x (g y))) (h x)))" . t)
             ("(defun f (x) (let ((y (g x))) (h y)))" . t)
             ("(defun f (y) (let ((y (g x))) (h y)))" . "x would no longer mean its binding")
             ("(defun f (x) (let ((y (g x))) (h x)))" . "x would no longer mean its binding"))
            ("(lambda (x y) (list x y))" "x" "y" ("(lambda (y y) (list y y))" . "x would no longer mean its binding"))
            ("(lambda (x) (list x y))" "x" "y" ("(lambda (y) (list y y))" . "y would then mean the local binding of that name"))
            ("(lambda (x) x)" "x" "*special*" ("(lambda (*special*) *special*)" . "*special* is a special variable or a constant"))
            ("(lambda (&key x) x)" "x" "y"
             ("(lambda (&key ((:x y))) y)" . t)
             ("(lambda (&key y) y)" . "the keyword of a parameter would change"))
            ("(with-both (x y) (list x y))" "y" "z" ("(with-both (x z) (list x z))" . t))
            ("(lambda (x) (logged x))" "x" "z" ("(lambda (z) (logged z))" . :data))
            ("(lambda (x) (check-type x integer) (dotimes (i x) (print i)))" "x" "z" ("(lambda (z) (check-type z integer) (dotimes (i z) (print i)))" . t))
            ("(loop named outer for x in '(1) when x collect x into l finally (return-from outer l))" "l" "z"
             ("(loop named outer for x in '(1) when x collect x into z finally (return-from outer z))" . t))
            ("(flet ((f (x) (return-from f x))) (declare (inline f)) (mapcar #'f (f 1)))" "f" "g"
             ("(flet ((g (x) (return-from g x))) (declare (inline g)) (mapcar #'g (g 1)))" . t)
             ("(flet ((g (x) (return-from f x))) (declare (inline g)) (mapcar #'g (g 1)))" . "f would no longer mean its binding"))
            ("(macrolet ((m (x) `(car ,x))) (m 1))" "m" "n" ("(macrolet ((n (x) `(car ,x))) (n 1))" . t))
            ("(defmethod plain-generic ((x integer) &key y) (declare (ignorable y)) (if (next-method-p) (call-next-method) x))" "x" "z"
             ("(defmethod plain-generic ((z integer) &key y) (declare (ignorable y)) (if (next-method-p) (call-next-method) z))" . t))
            ("(defmacro some-macro (x &body body) `(progn ,x ,@body))" "x" "z" ("(defmacro some-macro (z &body body) `(progn ,z ,@body))" . t))
            ("(restart-case (g) (use-it (v) :report \"use it\" (list v)) (other (w) :interactive (lambda () (list 1)) w))" "v" "z"
             ("(restart-case (g) (use-it (z) :report \"use it\" (list z)) (other (w) :interactive (lambda () (list 1)) w))" . t)
             ("(restart-case (g) (use-it (z) :report \"use it\" (list v)) (other (w) :interactive (lambda () (list 1)) w))"
              . "v would no longer mean its binding"))
            ("(lambda (x) (with-simple-restart (x \"~A\" x) (print x)))" "x" "z"
             ("(lambda (z) (with-simple-restart (x \"~A\" z) (print z)))" . t)
             ("(lambda (z) (with-simple-restart (x \"~A\" x) (print z)))" . "x would no longer mean its binding"))
            ("(lambda (x) (do ((x 0 (1+ x))) ((> x 3) x)))" "x" "z"
             ("(lambda (x) (do ((z 0 (1+ z))) ((> z 3) z)))" . t)
             ("(lambda (x) (do ((z 0 (1+ z))) ((> x 3) z)))" . "x would no longer mean its binding"))
            ("(lambda (x) (let ((x 1)) (unwind-protect (catch 'a (f x)) (f x))))" "x" "z"
             ("(lambda (x) (let ((z 1)) (unwind-protect (catch 'a (f z)) (f x))))" . "x would no longer mean its binding"))
            ("(tagbody again (when (f) (go again)))" "again" "z" ("(tagbody z (when (f) (go z)))" . t)))
          do (let ((got (compared code old new (mapcar #'car variants))))
               (expect (equal got (mapcar #'cdr variants)) (format nil "~A compares as ~S" code got))))
    (expect (search "end of file" (field (comparison-of-expansions (object "code" "(a" "old" "a" "new" "b" "variants" #()) nil) "failure"))
            "a form that cannot be read says so")))

(finish-tests "expansion")
