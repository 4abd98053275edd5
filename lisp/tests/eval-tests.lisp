;;;; `eval` as docs/wire.md and the evaluate-lisp contract have it.

(in-package :consort)

(deftest entering-a-package-leaves-the-history
  (with-image (image)
    (prepare image "(defpackage :entered (:use :cl)) (list 1 2)")
    (let ((entered (evaluated image "(consort::enter-package \"ENTERED\")")))
      (is equal "ENTERED" (path entered "package"))
      (is equalp #() (path entered "values")))
    (is equal '("(1 2)" "ENTERED") (list (first-value image "*") (path (evaluated image "(consort::enter-package nil)") "package")))
    (is equal ":MISSING" (first-value image "(consort::enter-package \"NO-SUCH\")"))
    (is equal "(1 2)" (first-value image "*"))))

(deftest core-ready
  (with-image (image)
    (let ((ready (image-ready image)))
      (is equal "ready" (path ready "event"))
      (is equal 1 (path ready "protocol"))
      (is equal (sb-ext:process-pid (image-process image)) (path ready "pid"))
      (is = 32 (length (path ready "image"))))
    (is equal 0 (stop-image image))))

(deftest the-environment-of-the-start
  (with-image (image :command (concatenate 'string "env -u XDG_CACHE_HOME -u ASDF_OUTPUT_TRANSLATIONS HOME=/nowhere/at-all " (core-command)))
    (is equal "T" (first-value image "(and (search \"/nowhere/at-all/\" (namestring (asdf:apply-output-translations \"/x/y.fasl\"))) t)"))))

(deftest fasl-serves-too
  (with-image (image :command (fasl-command))
    (is equal "ready" (path (image-ready image) "event"))
    (is equal "3" (first-value image "(+ 1 2)"))
    (is equal 0 (stop-image image))))

(deftest a-package-that-the-code-names-is-missing
  (with-image (image)
    (is equal "package-not-found" (path (call image "eval" "code" "(in-package :no-such)" "session" "s" "requires" "NO-SUCH") "error" "kind"))
    (is equal "COMMON-LISP" (path (call image "eval" "code" "(in-package :cl)" "session" "s" "requires" "COMMON-LISP") "result" "package"))))

(deftest values-and-history
  (with-image (image)
    (let ((outcome (evaluated image "1 2 (values 1 \"two\" :three)")))
      (is equal "ok" (path outcome "status"))
      (is equalp #("1" "\"two\"" ":THREE") (map 'vector (lambda (value) (path value "text")) (path outcome "values")))
      (is equal "COMMON-LISP-USER" (path outcome "package")))
    (is equal "((1 \"two\" :THREE) (2) (1))" (first-value image "(list / // ///)"))
    (is equal "(((1 \"two\" :THREE) (2) (1)) 1 2)" (first-value image "(list * ** ***)"))
    (is equal "((LIST * ** ***) (LIST / // ///) (VALUES 1 \"two\" :THREE))" (first-value image "(list + ++ +++)"))
    (is equal "(LIST 5 -)" (first-value image "(progn -) (second (list 5 '(list 5 -)))"))
    (is equalp #() (path (evaluated image "(values)") "values"))
    (is equalp #() (path (evaluated image "; nothing") "values"))
    (is equal "NIL" (first-value image "*" :session "another"))
    (ok (> 110 (length (path (evaluated image "(values-list (make-list 5000))") "values"))))))

(deftest packages
  (with-image (image)
    (evaluated image "(defpackage :tests-one (:use :cl)) (in-package :tests-one) (defun f () 'x)")
    (is equal "TESTS-ONE" (path (evaluated image "1") "package"))
    (is equal "X" (first-value image "(f)"))
    (is equal "TESTS-ONE::X" (first-value image "(tests-one::f)" :package "CL-USER"))
    (is equal "X" (first-value image "(f)" :package "tests-one" :session "b"))
    (is equal "COMMON-LISP-USER" (path (evaluated image "1" :session "b") "package"))
    (let ((answer (evaluated image "(defvar *read-p* t)" :package "no-such")))
      (is equal "package-not-found" (path answer "error" "kind"))
      (is equal "Package no-such not found" (path answer "error" "message")))
    (is equal "NIL" (first-value image "(find-symbol \"*READ-P*\")"))
    (is equal "T" (first-value image "(delete-package :tests-one)" :package "TESTS-ONE"))
    (is equal "COMMON-LISP-USER" (path (evaluated image "1") "package"))
    (is equal "error" (status-of image "(setq *package* nil)"))
    (is equal "#<PACKAGE \"COMMON-LISP-USER\">" (first-value image "*package*"))))

(deftest printing-values
  (with-image (image)
    (is equal "#1=(1 . #1#)" (first-value image "(let ((x (list 1))) (setf (cdr x) x))"))
    (ok (text-contains "...)" (first-value image "(make-list 1000)")))
    (is equal "((((((((((#))))))))))" (first-value image "(let (x) (dotimes (i 30 x) (setf x (list x))))"))
    (is equal (format nil "\"~C\"" (code-char #xFFFD)) (first-value image "(string (code-char #xd800))"))
    (is equal "|a b|" (first-value image "'|a b|"))
    (is equal "BAD" (first-value image "(defclass bad () ()) (defmethod print-object ((x bad) stream) (error \"no\")) (class-name (find-class 'bad))"))
    (ok (text-contains "cannot be printed" (first-value image "(make-instance 'bad)")))
    (let ((value (path (evaluated image "(make-string 10000000 :initial-element #\\x)") "values" 0)))
      (is = 9900000 (path value "omitted"))
      (ok (< (length (path value "text")) 101000))
      (ok (text-contains "[9900000 characters left out]" (path value "text"))))
    (let ((value (path (evaluated image "(make-array '(40 40 40 40) :initial-element :element)") "values" 0)))
      (ok (plusp (path value "omitted")))
      (ok (< (length (path value "text")) 101000)))))

(deftest printing-values-whole
  (with-image (image)
    (flet ((whole (code &optional (index 0)) (path (evaluated image code :whole t) "values" index)))
      (is equal (format nil "(~{~D~^ ~})" (loop for i below 1000 collect i)) (path (whole "(loop for i below 1000 collect i)") "text"))
      (is = 61 (length (path (whole "(let (x) (dotimes (i 29 x) (setf x (list x))))") "text")))
      (is equal "'X" (path (whole "''x") "text"))
      (is = 300002 (length (path (whole "(make-string 300000 :initial-element #\\x)") "text")))
      ;; There is an end, which all values share.
      (is = 500000 (path (whole "(make-string 4500000 :initial-element #\\x)") "omitted"))
      (is = 500000 (path (whole "(values 1 (make-string 2500000 :initial-element #\\x))" 1) "omitted")))))

(deftest output
  (with-image (image)
    (let ((outcome (evaluated image "(format t \"out~%\") (format *error-output* \"err\") (format *trace-output* \"trace\") (print 1 *debug-io*) (write 2 :stream *query-io*) 3")))
      (is equal (format nil "out~%") (path outcome "stdout" "text"))
      (is equal "errtrace" (path outcome "stderr" "text"))
      (is equal "3" (path outcome "values" 0 "text")))
    (is equal (format nil "a~%b") (path (evaluated image "(princ #\\a) (fresh-line) (fresh-line) (princ #\\b) (values)") "stdout" "text"))
    (let ((outcome (evaluated image "(dotimes (i 100000) (format t \"line ~D of a hundred characters or so, as many as make ten megabytes when printed often~%\" i))")))
      (is equal "ok" (path outcome "status"))
      (ok (plusp (path outcome "stdout" "omitted")))
      (ok (< (length (path outcome "stdout" "text")) 101000))
      (ok (text-contains "line 0 of" (path outcome "stdout" "text")))
      (ok (text-contains "line 99999 of" (path outcome "stdout" "text"))))
    (is equal "from a thread" (path (evaluated image "(sb-thread:join-thread (sb-thread:make-thread (lambda () (princ \"from a thread\"))))") "stdout" "text"))
    (is equal (format nil "child~%") (path (evaluated image "(sb-ext:run-program \"/bin/echo\" '(\"child\") :output *standard-output*)") "stdout" "text"))
    (is equal "END-OF-FILE" (error-type image "(read-line)"))
    (is equal "END-OF-FILE" (error-type image "(read)"))
    (is equal "END-OF-FILE" (error-type image "(y-or-n-p)"))
    (is equal ":EOF" (first-value image "(read-char *query-io* nil :eof)"))
    (evaluated image "(close *standard-output*) (close *standard-input*) (setf *standard-output* (make-broadcast-stream))")
    (is equal "still" (path (evaluated image "(princ \"still\")") "stdout" "text"))))

(deftest streaming
  (with-image (image)
    (evaluated image "(defvar *go-on* (sb-thread:make-semaphore))")
    ;; The evaluation waits until what it has said is here.
    (let ((id (eval-id image "(progn (princ \"first\") (sb-thread:wait-on-semaphore *go-on*) (princ \"second\" *error-output*) (sb-thread:wait-on-semaphore *go-on*)
                                (dotimes (i 5000) (princ 'abcdefghij)))"
                       :stream t)))
      (flet ((said (text)
               (await-text image "output" text :id id)
               (evaluated image "(sb-thread:signal-semaphore *go-on*)" :session "other")))
        (said "first")
        (said "second"))
      (let* ((answer (answer image id))
             (events (events image "output" :id id)))
        (is equal events (events image "output"))
        (is equal "first" (path (first events) "text"))
        (is equal "stdout" (path (first events) "stream"))
        (is equal "stderr" (path (second events) "stream"))
        (is equal (path answer "result" "stdout" "text")
            (format nil "~{~A~}" (loop for event in events when (equal (path event "stream") "stdout") collect (path event "text"))))))))

(deftest warnings
  (with-image (image)
    (let ((outcome (evaluated image "(warn \"careful ~D\" 1) (warn 'style-warning) (defun f (x) (undefined-thing)) (define-condition mine (warning) ()) (warn 'mine) 5")))
      (is equal "5" (path outcome "values" 0 "text"))
      (is equalp #("WARNING" "STYLE-WARNING" "STYLE-WARNING" "STYLE-WARNING" "MINE") (map 'vector (lambda (warning) (path warning "type")) (path outcome "warnings")))
      (is equal "careful 1" (path outcome "warnings" 0 "message"))
      (is equal "" (path outcome "stderr" "text")))
    (is equalp #() (path (evaluated image "(signal 'warning) (handler-bind ((warning #'muffle-warning)) (warn \"x\"))") "warnings"))
    (is = 201 (length (path (evaluated image "(dotimes (i 1000) (warn \"again\"))") "warnings")))
    ;; Consort's own are always reported, and are none of those left out.
    (let ((warnings (path (evaluated image "(dotimes (i 300) (warn \"again\")) (defmethod make-instance :around ((x t) &rest all) all)") "warnings")))
      (ok (find-if (lambda (warning) (text-contains "were taken back" (path warning "message"))) warnings))
      (is equal (format nil "~D more warnings were left out" (- 301 (1- (length warnings)))) (path warnings (1- (length warnings)) "message")))
    (let ((file (write-file "warns.lisp" "(defun g () (undefined-thing-2) undefined-variable-2)")))
      (is equal "(T T)" (first-value image (format nil "(rest (multiple-value-list (compile-file ~S)))" file))))))

(defun frame-texts (outcome)
  (map 'list (lambda (frame) (path frame "text")) (path outcome "error" "backtrace")))

(deftest errors
  (with-image (image)
    (let ((outcome (evaluated image "(defun inner (x) (car x)) (defun outer (x) (1+ (inner x))) (princ \"before\") (outer 5)")))
      (is equal "error" (path outcome "status"))
      (is equal "TYPE-ERROR" (path outcome "error" "type"))
      (is equal "before" (path outcome "stdout" "text"))
      (is equal "(INNER 5)" (path outcome "error" "backtrace" 0 "text"))
      (is equal "(OUTER 5)" (path outcome "error" "backtrace" 1 "text"))
      (is = 2 (length (path outcome "error" "backtrace"))))
    ;; An erring call in tail position leaves no frame but the signalling function's own.
    (is equal "(ERROR \"x\")" (path (evaluated image "(error \"x\")") "error" "backtrace" 0 "text"))
    (let ((outcome (evaluated image "(outer 1 2 3)")))
      (is equal "SB-INT:SIMPLE-PROGRAM-ERROR" (path outcome "error" "type")))
    (let ((outcome (evaluated image "(+ 1 2) (list 1")))
      (is equal "END-OF-FILE" (path outcome "error" "type"))
      (is equal "end of file on #<STRING-INPUT-STREAM>" (path outcome "error" "message"))
      (is equalp '("(READ)") (frame-texts outcome)))
    ;; Nor is there a frame of a function that does not exist.
    (is equalp '("(EVAL (NO-SUCH-FUNCTION 1))") (frame-texts (evaluated image "(no-such-function 1)")))
    (is equalp '("(EVAL NO-SUCH-VARIABLE)") (frame-texts (evaluated image "no-such-variable")))
    (is equal "3" (first-value image "*"))
    (ok (not (text-contains "{" (path (evaluated image "nope::x") "error" "message"))))
    (is equal "UNBOUND-VARIABLE" (error-type image "unbound-thing"))
    (is equal "DIVISION-BY-ZERO" (error-type image "(/ 10 0)"))
    (is equal "7" (first-value image "(signal 'error) (signal 'serious-condition) 7"))
    (is equal "TIMEOUT" (error-type image "(error 'sb-ext:timeout)"))
    (is equal "TIMEOUT" (error-type image "(sb-ext:with-timeout 0.05 (sleep 10000))"))
    (is equal "SB-SYS:INTERACTIVE-INTERRUPT" (error-type image "(error 'sb-sys:interactive-interrupt)"))
    (is equal "SIMPLE-CONDITION" (error-type image "(break)"))
    (is equal "SIMPLE-ERROR" (error-type image "(invoke-debugger (make-condition 'simple-error :format-control \"x\"))"))
    (is equal "ABORT" (error-type image "(abort)"))
    (is equal "SIMPLE-ERROR" (error-type image "(let ((sb-ext:*invoke-debugger-hook* nil)) (error \"deep\"))"))
    (is equal "nested" (path (evaluated image "(let ((*debugger-hook* (lambda (c h) (declare (ignore c h)) (error \"nested\")))) (error \"x\"))") "error" "message"))
    (is equal "42" (first-value image "(let ((*debugger-hook* (lambda (c h) (declare (ignore c h)) (throw 'out 42)))) (catch 'out (error \"x\")))"))
    (is equal "ok" (status-of image "(sb-ext:disable-debugger)"))
    (is equal "SIMPLE-ERROR" (error-type image "(error \"after\")"))
    (ok (text-contains "cannot be printed" (path (evaluated image "(define-condition bad-report (error) () (:report (lambda (c s) (declare (ignore c s)) (error \"no\")))) (error 'bad-report)") "error" "message")))
    (ok (>= 20 (length (path (evaluated image "(defun deep (n) (if (zerop n) (error \"bottom\") (1+ (deep (1- n))))) (deep 100)") "error" "backtrace"))))))

(deftest errors-name-what-may-be-meant
  (with-image (image)
    (evaluated image "(defpackage :near (:use :cl) (:export #:price)) (defun near:price (x) x) (defun near::prices () 1) (defvar near::*stock* 1)
                      (defun (setf near::amount) (new x) (list new x))")
    (flet ((suggested (code &rest options)
             (let* ((message (path (apply #'evaluated image code options) "error" "message"))
                    (at (search " Did you mean " message)))
               (and at (subseq message at)))))
      (is equal " Did you mean LENGTH?" (suggested "(lenght '(1))"))
      (is equal " Did you mean *PRINT-BASE*?" (suggested "*prnt-base*"))
      (is equal " Did you mean NEAR:PRICE?" (suggested "(near::prise 1)"))
      (is equal " Did you mean NEAR:PRICE or NEAR::PRICES?" (suggested "(near::pricex 1)"))
      (is equal " Did you mean NEAR::*STOCK*?" (suggested "*stocks*" :package "NEAR"))
      (is equal " Did you mean (SETF NEAR::AMOUNT)?" (suggested "(funcall #'(setf near::amuont) 1 2)"))
      ;; Nothing is like it, or only as another kind of name; a symbol without a package.
      (dolist (code '("(no-such-function 1)" "no-such-variable" "lenght" "(*prnt-base*)" "(funcall '#:lenght 1)" "(/ 1 0)"))
        (is equal nil (suggested code)))
      (is equal "LENGHT" (first-value image "(handler-case (lenght 1) (undefined-function (it) (cell-error-name it)))")))
    ;; A stop says it too.
    (multiple-value-bind (stop id) (stopped-at image "(lenght 1)")
      (ok (text-contains "Did you mean LENGTH?" (path stop "condition" "message")))
      (on-stop image "debug-abort" stop)
      (is string= "UNDEFINED-FUNCTION" (outcome-text image id)))))

(defun frame-facts (outcome &rest names)
  "The members NAMES of each frame of OUTCOME's backtrace."
  (map 'list (lambda (frame) (mapcar (lambda (name) (path-if-any frame name)) names)) (path outcome "error" "backtrace")))

(deftest frames-are-data
  (with-image (image)
    (let* ((file (write-file "stack.lisp" "(in-package :cl-user)

(defun innermost (x)
  (list :not-in-tail-position
        (car x)))

(defgeneric method-with-error (thing stream) (:method ((thing t) stream) stream))
(defmethod method-with-error :around ((thing integer) stream)
  (list stream
        (flet ((locally-called (y) (list (innermost y))))
          (declare (notinline locally-called))
          (locally-called thing))))
"))
           (outcome (progn (evaluated image (format nil "(load (compile-file ~S))" file))
                           (evaluated image "(list (method-with-error 5 (make-string 5000 :initial-element #\\x)))")))
           (frames (frame-facts outcome "name" "role" "file" "line")))
      (is equalp `("INNERMOST" "program" ,file 5) (find "INNERMOST" frames :key #'first :test #'equal))
      (is equalp `("METHOD-WITH-ERROR" "program" ,file 10) (find "METHOD-WITH-ERROR" frames :key #'first :test #'equal))
      (let ((method (find-if (lambda (frame) (path-if-any frame "method")) (path outcome "error" "backtrace"))))
        (is equal ":AROUND (INTEGER T)" (path method "method"))
        (ok (every (lambda (argument) (< (length argument) 300)) (path method "args"))))
      (is equalp #("5") (path (evaluated image "(list (innermost 5))") "error" "backtrace" 0 "args"))
      ;; A file that was changed is not the one that the frame is of.
      (write-file "stack.lisp" "(in-package :cl-user)")
      (evaluated image (format nil "(sb-posix:utimes ~S 1000 1000)" file))
      (is equalp `("INNERMOST" ,file nil)
          (find "INNERMOST" (frame-facts (evaluated image "(list (innermost 5))") "name" "file" "line") :key #'first :test #'equal)))
    ;; The role of a frame.
    (is equalp '(("ERROR" "signal")) (subseq (frame-facts (evaluated image "(error \"x\")") "name" "role") 0 1))
    (is equalp '(("EVAL" "standard")) (frame-facts (evaluated image "no-such-variable") "name" "role"))
    (evaluated image "(defun (setf frame-place) (new x) (list (error \"x\") new x))")
    (ok (find '("(SETF FRAME-PLACE)" "program") (frame-facts (evaluated image "(list (setf (frame-place 1) 2))") "name" "role") :test #'equalp))
    (let ((many (evaluated image "(defun many (a b c d e f g h i j k l) (list (error \"x\") a b c d e f g h i j k l)) (list (many 1 2 3 4 5 6 7 8 9 10 11 12))")))
      (is = 10 (length (path (find "MANY" (path many "error" "backtrace") :key (lambda (frame) (path-if-any frame "name")) :test #'equal) "args"))))
    ;; A call that leaves no frame.
    (is equal "/" (path (evaluated image "(defun divide (x) (/ 1 x)) (divide 0)") "error" "operation"))
    (is equal "NO-SUCH-FUNCTION" (path (evaluated image "(no-such-function 1)") "error" "operation"))
    (is equal nil (path-if-any (evaluated image "(car 1)") "error" "operation"))))

(deftest code-that-cannot-be-read
  (with-image (image)
    (flet ((unread (code) (path-if-any (path (evaluated image code) "error") "unread")))
      (is equal '(13 6 18 16)
          (mapcar #'unread '("(list 1) (+ 1" "(+ 1))" "(no-such-package:f)" "(cl:no-such-name)")))
      ;; Text that the code itself reads is another.
      (is eq nil (unread "(read-from-string \"(\")"))
      (is eq nil (unread "#.(read-from-string \"(\")")))))

(deftest exits-refused
  (with-image (image)
    (dolist (code '("(sb-ext:exit)" "(sb-ext:quit)" "(sb-ext:exit :abort t)" "(uiop:quit)" "(sb-ext:exit :code 3)"
                    "(sb-ext:save-lisp-and-die \"/nowhere/x\")"))
      (is equal "CONSORT:EXIT-REFUSED" (error-type image code)))
    (is equal ":REFUSED" (first-value image "(sb-thread:join-thread (sb-thread:make-thread (lambda () (exit))) :default :refused)"))
    (is equal "CONSORT:EXIT-REFUSED" (path (await-event image "thread-error") "type"))
    (is equal "3" (first-value image "(+ 1 2)"))))

(deftest functions-replaced-in-the-core
  (with-image (image)
    ;; Their first encapsulation rewrites the calls that SBCL has linked, if it links any: not at
    ;; each start.
    (is equal "NIL" (first-value image "(remove-if (lambda (name)
                                                     (or (not (find-symbol \"REMOVE-STATIC-LINKS\" \"SB-VM\"))
                                                         (consort::part-of-core-p (sb-kernel:fdefn-fun (sb-int:find-fdefn name)))))
                                                   '(load compile-file exit gc delete-package
                                                     sb-thread:make-thread sb-thread:interrupt-thread))"))
    ;; The prefix of the locked write is there again, where this SBCL has that write.
    (is equal "T" (first-value image "(eq (and (find-symbol \"REMOVE-STATIC-LINKS\" \"SB-VM\") t)
                                          (and (consort::lock-prefix-of-links) t))"))))

(deftest exported-functions-have-no-links-to-rewrite
  (with-image (image)
    (is equal "NIL" (first-value image "(when (find-symbol \"REMOVE-STATIC-LINKS\" \"SB-VM\")
                                          (loop for symbol being the external-symbols of :cl
                                                when (and (fboundp symbol)
                                                          (sb-int:find-fdefn symbol)
                                                          (funcall (find-symbol \"FDEFN-HAS-STATIC-CALLERS\" \"SB-VM\") (sb-int:find-fdefn symbol)))
                                                  collect symbol))"))))

(deftest timing
  (with-image (image)
    (let ((timing (path (evaluated image "(sleep 0.05) (make-array 1000000)" :timing t) "timing")))
      (ok (>= (path timing "real_ms") 50))
      (ok (>= (path timing "bytes") 8000000))
      (ok (realp (path timing "run_ms")))
      (ok (realp (path timing "gc_ms"))))
    (is eq nil (path-if-any (evaluated image "1") "timing"))))

(deftest definitions-are-found
  (with-image (image)
    (let* ((file (concatenate 'string *scratch* "origin.lisp"))
           (head (format nil ";; a line~%(in-package :cl-user)~%~%"))
           (body (format nil "(defun found-function (x)~%  x)~%~%;; comment (with paren~%(defmacro found-macro (y)~%  y)~%(defvar *found-variable* 3)~%(defclass found-class () ())~%"))
           (text (concatenate 'string head body)))
      (write-file "origin.lisp" text)
      (is equal "ok" (status-of image body :origin (object "file" file "line" 4 "column" 1)))
      (loop for (name kind start offset-known) in '(("found-function" ":function" "(defun" t) ("found-macro" ":macro" "(defmacro" t)
                                                    ("*found-variable*" ":variable" "(defvar" nil) ("found-class" ":class" "(defclass" nil))
            for position = (search start text)
            for found = (first-value image (format nil "(let ((s (first (sb-introspect:find-definition-sources-by-name '~A ~A)))) (list (namestring (sb-introspect:definition-source-pathname s)) (or (sb-introspect:definition-source-character-offset s) :none) (getf (sb-introspect:definition-source-plist s) :consort-position) (equal (getf (sb-introspect:definition-source-plist s) :consort-file) ~S)))" name kind file))
            do (is equal (with-standard-io-syntax (prin1-to-string (list file (if offset-known position :none) position t)))
                   (remove #\Newline found))))))

(deftest a-file-that-an-evaluation-loads-again
  (with-image (image)
    (let ((macros "(defmacro twice (x) `(* 2 ,x)) (defun plain () 1)"))
      (flet ((loaded (text)
               (let ((file (write-file "loaded-again.lisp" text)))
                 (evaluated image (format nil "(load ~S)" file)))))
        (loaded macros)
        (prepare image "(defun uses () (twice (plain)))")
        (is eq nil (path-if-any (loaded macros) "stale"))
        (is equalp #("function COMMON-LISP-USER::USES expanded COMMON-LISP-USER::TWICE")
            (path (loaded "(defmacro twice (x) `(+ ,x ,x)) (defun plain () 1)") "stale"))
        (prepare image "(defun uses () (twice (plain)))")
        (is eq nil (path-if-any (loaded "(defmacro twice (x) `(+ ,x ,x)) (defun plain () 1)") "stale"))))))
