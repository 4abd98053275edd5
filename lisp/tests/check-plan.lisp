;;;; The check of a system performs ASDF's plan of loading it: component classes, own methods,
;;;; dependencies of every kind, in ASDF's order. What is expected of each system here is what plain
;;;; ASDF told in a fresh SBCL. What makes ASDF stop is expected as a finding.
;;;;
;;;;   sbcl --noinform --non-interactive --no-userinit --load lisp/tests/check-plan.lisp

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defun reported-messages (lines)
  (loop for line in lines
        for diagnostic = (field line "diagnostic")
        when diagnostic collect (field diagnostic "message")))

(defvar *seen* '() "The names of the cases so far.")

(defun check-in (root name &key (confine t) more)
  "What the check of the system that the file NAME in ROOT defines tells, with MORE parameters."
  (check-lines "" :runner 'check-system-in-copy :confine confine :more (list* "asd" (concatenate 'string root name) more)
                  :asd-files (mapcar #'uiop:native-namestring (uiop:directory-files root "*.asd"))))

(defvar *confined* '(t nil) "True if each case is checked confined: with and without.")

(defun check-case (name system expected &rest files)
  "Expect the check of SYSTEM, which FILES define, to tell EXPECTED, files and codes; what it told."
  (assert (not (member name *seen* :test #'string=)))
  (push name *seen*)
  (test name
    (call-with-scratch
     (lambda (root)
       (apply #'write-files root files)
       (loop with lines
             for confine in *confined*
             do (setf lines (check-in root (concatenate 'string system ".asd") :confine confine))
                (let ((told (reported-codes lines)))
                  (expect (and (equal told (sort (copy-list expected) #'string<)) (loop for line in lines thereis (field line "done")))
                          (format nil "~:[~;confined: ~]~S, not ~S: ~S" confine told expected (reported-messages lines))))
             finally (return lines))))))

;;; Component classes and methods of the system's own

(check-case "a class whose load-op evaluates the file" "tables" '("user.lisp unused-variable")
            "tables.asd" "(defpackage :tables-system (:use :cl :asdf)) (in-package :tables-system)
(defclass table (source-file) ((type :initform \"tbl\")))
(defmethod perform ((o compile-op) (c table)) nil)
(defmethod perform ((o load-op) (c table))
  (with-open-file (in (component-pathname c))
    (let ((*package* (find-package :tables))) (loop for form = (read in nil) while form do (eval form)))))
(defsystem \"tables\" :serial t :components ((:file \"package\") (table \"rows\") (:file \"user\")))"
            "package.lisp" "(defpackage :tables (:use :cl))"
            "rows.tbl" "(defmacro row (x) `(list ,x)) (defun rows () 1)"
            "user.lisp" "(in-package :tables) (defun f (unused) (row (rows)))")

(check-case "a method on the prepare-op of a system" "c" '()
            "c.asd" "(defpackage :c-system (:use :cl :asdf)) (in-package :c-system)
(defsystem \"c\" :components ((:file \"one\")))
(defmethod perform :after ((o prepare-op) (s (eql (find-system \"c\")))) (pushnew :c-ready *features*))"
            "one.lisp" "#-c-ready (error \"not prepared\") (defpackage :c (:use :cl))")

(check-case "a method on the prepare-op of a file" "mgen" '()
            "mgen.asd" "(defsystem \"mgen\" :components
 ((:file \"one\" :perform (prepare-op :after (o c) (unless (find-package :mgen) (make-package :mgen :use '(:cl)))))))"
            "one.lisp" "(in-package :mgen) (defun f () 1)")

(check-case "a method on the load-op of a module" "modules" '()
            "modules.asd" "(defsystem \"modules\" :serial t :components
 ((:module \"m\" :pathname \"src/\" :components ((:file \"a\")) :perform (load-op :after (o c) (pushnew :m-loaded *features*)))
  (:file \"b\")))"
            "src/a.lisp" "(defpackage :modules (:use :cl)) (in-package :modules) (defun a () 1)"
            "b.lisp" "(in-package :modules) #-m-loaded (oops) (defun b () (a))")

(check-case "a method on the compile-op of a class of files" "stamped" '("one.lisp unused-variable" "two.lisp undefined-function")
            "stamped.asd" "(defpackage :stamped-system (:use :cl :asdf)) (in-package :stamped-system)
(defclass stamped (cl-source-file) ((type :initform \"lisp\")))
(defmethod perform :before ((o compile-op) (c stamped)) (pushnew :stamped *features*))
(defmethod perform :after ((o load-op) (c stamped)) (pushnew (intern (component-name c) :keyword) *features*))
(defsystem \"stamped\" :serial t :default-component-class stamped :components ((:file \"one\") (:file \"two\")))"
            "one.lisp" "#-stamped (error \"no\") (defpackage :stamped (:use :cl)) (in-package :stamped) (defun f (unused) 1)"
            "two.lisp" "(in-package :stamped) #+(or) (no) (defun g () #-#.(cl:quote :|one|) (oops) (nowhere))")

(check-case "a method on a static file" "static" '()
            "static.asd" "(defsystem \"static\" :serial t :components
 ((:file \"package\")
  (:static-file \"words.txt\" :perform (load-op :after (o c)
     (set (intern \"*WORDS*\" :static) (uiop:read-file-lines (component-pathname c)))
     (proclaim (list 'special (intern \"*WORDS*\" :static)))))
  (:file \"use\")))"
            "package.lisp" "(defpackage :static (:use :cl))"
            "words.txt" (format nil "one~%two~%")
            "use.lisp" "(in-package :static) (defun words () *words*) (assert (= 2 (length *words*)))")

(check-case "a class of defsystem-depends-on" "classy" '("b.lisp unused-variable")
            "classy.asd" "(defsystem \"classy\" :defsystem-depends-on (\"classes\") :class \"classes:noted-system\" :serial t
 :components ((:file \"a\") (\"classes:data-file\" \"numbers\") (:file \"b\")))"
            "classes.asd" "(defsystem \"classes\" :components ((:file \"classes\")))"
            "classes.lisp" "(defpackage :classes (:use :cl :asdf) (:export #:noted-system #:data-file)) (in-package :classes)
(defclass noted-system (system) ())
(defclass data-file (source-file) ((type :initform \"data\")))
(defmethod perform ((o compile-op) (c data-file)) nil)
(defmethod perform ((o load-op) (c data-file))
  (let ((names (uiop:read-file-forms (component-pathname c))))
    (dolist (name names) (let ((name name)) (setf (symbol-function (intern (string name) :classy)) (lambda () name))))))
(defmethod perform :after ((o prepare-op) (s noted-system)) (pushnew :noted *features*))"
            "a.lisp" "#-noted (error \"not noted\") (defpackage :classy (:use :cl))"
            "numbers.data" "one two"
            "b.lisp" "(in-package :classy) (defun f (unused) (list (one) (two)))")

(check-case "an operation of the system's own" "own-op" '()
            "own-op.asd" "(defpackage :own-op-system (:use :cl :asdf)) (in-package :own-op-system)
(defclass declare-op (non-propagating-operation) ())
(defmethod perform ((o declare-op) (c component)) (unless (find-package :own-op) (make-package :own-op :use '(:cl))))
(defsystem \"own-op\" :components ((:file \"one\" :in-order-to ((compile-op (declare-op \"two\")))) (:file \"two\" :depends-on (\"one\"))))"
            "one.lisp" "(in-package :own-op) (defun f () 1)"
            "two.lisp" "(in-package :own-op) (defun g () (f))")

(check-case "a file that is loaded as source" "sourced" '()
            "sourced.asd" "(defsystem \"sourced\" :components
 ((:file \"package\") (:file \"main\" :depends-on (\"package\") :in-order-to ((compile-op (load-source-op \"macros\"))))
  (:file \"macros\" :depends-on (\"package\"))))"
            "package.lisp" "(defpackage :sourced (:use :cl))"
            "macros.lisp" "(in-package :sourced) (defmacro twice (x) `(list ,x ,x))"
            "main.lisp" "(in-package :sourced) (defun f (y) (twice (1+ y)))")

;; If the kernel has no Landlock, a confined check writes no files.
(let ((*confined* '(nil)))
  (check-case "a compilation of the system's own" "compiled" '("after.lisp unused-variable")
            "compiled.asd" "(defpackage :compiled-system (:use :cl :asdf)) (in-package :compiled-system)
(defclass prefixed (cl-source-file) ())
(defmethod perform ((o compile-op) (c prefixed))
  (let ((made (merge-pathnames \"made.lisp\" (uiop:pathname-directory-pathname (first (output-files o c))))))
    (with-open-file (out made :direction :output :if-exists :supersede)
      (format out \"(defpackage :compiled (:use :cl)) (in-package :compiled)~%~A\" (uiop:read-file-string (component-pathname c))))
    (compile-file made :output-file (first (output-files o c)))))
(defsystem \"compiled\" :serial t :components ((prefixed \"bare\") (:file \"after\")))"
            "bare.lisp" "(defun f () 1) (defmacro m (x) x)"
            "after.lisp" "(in-package :compiled) (defun g (unused) (m (f)))"))

(check-case "around-compile" "around" '("one.lisp unused-variable")
            "around.asd" "(defpackage :around-system (:use :cl :asdf)) (in-package :around-system)
(defun with-double-floats (thunk) (let ((*read-default-float-format* 'double-float)) (funcall thunk)))
(defsystem \"around\" :around-compile \"around-system::with-double-floats\" :components ((:file \"one\")))"
            "one.lisp" "(defpackage :around (:use :cl)) (in-package :around) (assert (typep 1.5 'double-float)) (defun f (unused) 1)")

(check-case "an around-compile that is not defined" "astray" '("one.lisp load-failed")
            "astray.asd" "(defsystem \"astray\" :around-compile \"cl-user::not-there-at-all\" :components ((:file \"one\")))"
            "one.lisp" "(defpackage :astray (:use :cl)) (in-package :astray) (defun f (unused) 1)")

(check-case "an encoding" "coded" '("one.lisp unused-variable")
            "coded.asd" "(defsystem \"coded\" :encoding :utf-8 :pathname \"src\" :components ((:module \"deep\" :pathname \"\" :components ((:file \"one\" :pathname \"first/one\")))))"
            "src/first/one.lisp" "(defpackage :coded (:use :cl)) (in-package :coded) (defun größe (unbenützt) 1)")

(check-case "a method that loads another system that a later part depends on" "before" '("use.lisp unused-variable")
            "before.asd" "(defsystem \"before\" :depends-on (\"before/a\" \"before/b\"))
(defsystem \"before/a\" :components ((:file \"use\" :perform (prepare-op :after (o c) (asdf:load-system \"elsewhere\")))))
(defsystem \"before/b\" :depends-on (\"elsewhere\") :components ((:file \"last\")))"
            "elsewhere.asd" "(defsystem \"elsewhere\" :components ((:file \"there\")))"
            "there.lisp" "(defpackage :elsewhere (:use :cl) (:export #:e)) (in-package :elsewhere) (defun e () 1)"
            "use.lisp" "(defun use-it (x) (elsewhere:e))"
            "last.lisp" "(defun last-it () (elsewhere:e))")

(check-case "a method that loads a part by itself" "nested" '()
            "nested.asd" "(defsystem \"nested\" :serial t :depends-on (\"nested/base\") :components
 ((:module \"m\" :pathname \"\" :components ((:file \"one\")) :perform (load-op :after (o c) (asdf:load-system \"nested/base\")))
  (:file \"two\")))
(defsystem \"nested/base\" :components ((:file \"base\")))"
            "base.lisp" "(defpackage :nested (:use :cl)) (in-package :nested)
(eval-when (:compile-toplevel) (when (find-symbol \"COMPILED-ONCE\") (error \"compiled again\")) (intern \"COMPILED-ONCE\")) (defun f () 1)"
            "one.lisp" "(in-package :nested) (defun g () (f))"
            "two.lisp" "(in-package :nested) (defun h () (g))")

(check-case "a method that fails" "failing" '("failing.asd load-failed")
            "failing.asd" "(defsystem \"failing\" :serial t :components
 ((:module \"m\" :pathname \"\" :components ((:file \"one\")) :perform (load-op :after (o c) (error \"not so\")))
  (:file \"two\")))"
            "one.lisp" "(defpackage :failing (:use :cl))"
            "two.lisp" "(in-package :failing) (defun f () (lacking))")

(defparameter *broken* '("broken.asd" "(defpackage :broken-system (:use :cl :asdf)) (in-package :broken-system)
(defclass table (source-file) ((type :initform \"tbl\")))
(defmethod perform ((o compile-op) (c table)) nil)
(defmethod perform ((o load-op) (c table)) (with-open-file (in (component-pathname c)) (eval (read in))))
(defsystem \"broken\" :serial t :components ((:file \"package\") (table \"rows\") (:file \"user\")))"
                         "package.lisp" "(defpackage :broken (:use :cl))"
                         "rows.tbl" "(error \"no rows\")"
                         "user.lisp" "(in-package :broken) (defun f () (rows))"))

(apply #'check-case "a file of another class that fails" "broken" '("broken.asd load-failed") *broken*)

(test "only-another-file"
  (call-with-scratch
   (lambda (root)
     (apply #'write-files root *broken*)
     (let ((told (reported-codes (check-in root "broken.asd" :more (list "only" (vector (concatenate 'string root "user.lisp")))))))
       (expect (equal told '("broken.asd load-failed")) (format nil "it is told when only another file is asked about: ~S" told))))))

;; A file that does not load, when only the one behind it is asked about.
(loop for (name form code words) in '(("an error" "(error \"at load\")" "system-failed" "first.lisp is loaded before this file. Loading it failed: at load")
                                      ("an exit" "(sb-ext:exit)" "system-failed" "Loading it failed")
                                      ("a question" "(read-line)" "system-failed" "Loading it failed")
                                      ("a write" "(with-open-file (out \"/tmp/consort-written\" :direction :output :if-exists :supersede))" "system-not-loaded" "runs confined"))
      do (test (format nil "a file that is only loaded fails by ~A" name)
           (call-with-scratch
            (lambda (root)
              (write-files root
                           "two.asd" "(defsystem \"two\" :serial t :components ((:file \"first\") (:file \"second\")))"
                           "first.lisp" (format nil "(defpackage :two (:use :cl)) (in-package :two)~%~A~%(defmacro mac (x) x)" form)
                           "second.lisp" (format nil ";;; Second~%(in-package :two)~%(defun f () (mac (undefined)) *unbound*)"))
              (let* ((lines (check-in root "two.asd" :more (list "only" (vector (concatenate 'string root "second.lisp")))))
                     (told (diagnostics-of lines)))
                (expect (equal (reported-codes lines) (list (format nil "second.lisp ~A" code))) (format nil "it alone is told: ~S" (reported-messages lines)))
                (expect (and told (search words (field (first told) "message"))) (format nil "in these words: ~S" (reported-messages lines)))
                (expect (and told (equalp (field (first told) "span") #(11 28))) (format nil "on the first line: ~S" (mapcar (lambda (d) (field d "span")) told))))))))

(let ((files '("writer.asd" "(defsystem \"writer\" :serial t :components ((:file \"one\") (:file \"two\")))"
               "one.lisp" "(defpackage :writer (:use :cl)) (in-package :writer)
(with-open-file (out \"/tmp/consort-written\" :direction :output :if-exists :supersede)) (defun f () 1) (defpackage :writer-two (:use :cl))"
               "two.lisp" "(in-package :writer-two) (defun g () (writer::f)) (error \"for lack of it\")")))
  (let ((*confined* '(t)))
    (apply #'check-case "a file that writes when it is loaded" "writer" '("one.lisp system-not-loaded") files)
    (check-case "a dependency that writes when it is loaded" "user" '("user.asd system-not-loaded")
                "user.asd" "(defsystem \"user\" :depends-on (\"writer\") :components ((:file \"main\")))"
                "main.lisp" "(defpackage :main (:use :cl)) (in-package :main) (defun h () (writer:f))"
                "writer.asd" "(defsystem \"writer\" :components ((:file \"one\")))"
                "one.lisp" (second (member "one.lisp" files :test #'string=)))))

(check-case "a compilation that loads a system" "loading" '("one.lisp unused-variable")
            "loading.asd" "(defpackage :loading-system (:use :cl :asdf)) (in-package :loading-system)
(defclass helped (cl-source-file) ())
(defmethod perform :around ((o compile-op) (c helped)) (asdf:load-system \"helper\") (call-next-method))
(defsystem \"loading\" :serial t :components ((helped \"one\") (:file \"two\")))"
            "helper.asd" "(defsystem \"helper\" :components ((:file \"helper\")))"
            "helper.lisp" "(defpackage :helper (:use :cl)) (in-package :helper) (defmacro m (x) x)"
            "one.lisp" "(defpackage :loading (:use :cl :helper)) (in-package :loading) (defun f (unused) (helper::m 1))"
            "two.lisp" "(in-package :loading) (defun g () (f 1))")

;;; Files that are made

(defparameter *generator* "(defpackage :gen-system (:use :cl :asdf)) (in-package :gen-system)
(defclass made-file (cl-source-file) ()) (defclass make-op (downward-operation) ())
(defmethod input-files ((o make-op) (c made-file)) (list (component-pathname c)))
(defmethod output-files ((o make-op) (c made-file)) (list (make-pathname :type \"made\" :defaults (component-pathname c))))
(defmethod perform ((o make-op) (c made-file))
  ~A
  (with-open-file (out (first (output-files o c)) :direction :output :if-exists :supersede)
    (dolist (name (uiop:read-file-lines (component-pathname c)))
      (format out \"(in-package :gen) (defun ~~A () 1) (defmacro m-~~:*~~A () 1)~~%\" name))))
(defmethod input-files ((o compile-op) (c made-file)) (list (first (output-files 'make-op c))))
(defmethod component-depends-on ((o compile-op) (c made-file)) `((make-op ,c) ,@(call-next-method)))
(defsystem \"gen\" :serial t :components ((:file \"package\") (:made-file \"names\") (:file \"code\")))")

(let ((*confined* '(nil)))
  (loop for (name expected preface) in '(("text that is generated in Lisp" ("code.lisp unused-variable") "")
                                         ("text that a program generates" ("code.lisp unused-variable" "gen.asd system-not-loaded")
                                          "(uiop:run-program \"true\")"))
        do (check-case name "gen" expected
                       "gen.asd" (format nil *generator* preface)
                       "package.lisp" "(defpackage :gen (:use :cl))"
                       "names.lisp" (format nil "one~%two~%")
                       "code.lisp" "(in-package :gen) (defun f (unused) (list (one) (m-two)))")))

(defparameter *library* "(defpackage :lib-system (:use :cl :asdf)) (in-package :lib-system)
(defclass part (source-file) ((type :initform \"part\")))
(defmethod output-files ((o compile-op) (c part)) (list (make-pathname :type \"out\" :defaults (component-pathname c))))
(defmethod perform ((o compile-op) (c part)) (sb-ext:run-program \"/bin/cp\" (mapcar #'uiop:native-namestring (append (input-files o c) (output-files o c)))))
(defmethod perform ((o load-op) (c part)) (load (first (input-files o c))))
(defsystem \"lib\" :serial t :components ((:file \"package\") (part \"main\") (:file \"code\")))")

(defparameter *library-files* (list "lib.asd" *library*
                                    "package.lisp" "(defpackage :lib (:use :cl))"
                                    "main.part" "(in-package :lib) (defun lib () 1) (defmacro m () 1)"
                                    "code.lisp" "(in-package :lib) (defun f (unused) (list (lib) (m)))"))

(let ((*confined* '(t)))
  (apply #'check-case "a program that a confined check cannot run" "lib" '("code.lisp unused-variable" "lib.asd system-not-loaded")
         *library-files*))
(let ((*confined* '(nil)))
  (apply #'check-case "a program of a check that is not confined" "lib" '("code.lisp unused-variable") *library-files*))

;;; Dependencies

(defparameter *dep* '("dep.asd" "(defsystem \"dep\" :version \"0.2\" :components ((:file \"dep\")))"
                      "dep.lisp" "(defpackage :dep (:use :cl) (:export #:f #:m)) (in-package :dep) (defun f () 1) (defmacro m (x) x)"))

(check-case "in-order-to another file's load-op" "ordered" '()
            "ordered.asd" "(defsystem \"ordered\" :components
 ((:file \"main\" :in-order-to ((compile-op (load-op \"macros\")))) (:file \"macros\" :depends-on (\"pkg\")) (:file \"pkg\")))"
            "main.lisp" "(in-package :ordered) (defun f (x) (twice x))"
            "macros.lisp" "(in-package :ordered) (defmacro twice (x) `(list ,x ,x))"
            "pkg.lisp" "(defpackage :ordered (:use :cl))")

(apply #'check-case "in-order-to another system's load-op" "outward" '("main.lisp unused-variable")
       "outward.asd" "(defsystem \"outward\" :in-order-to ((prepare-op (load-op \"dep\"))) :components ((:file \"main\")))"
       "main.lisp" "(defpackage :outward (:use :cl :dep)) (in-package :outward) (defun g (unused) (m (f)))"
       *dep*)

(loop for (name spec) in '(("a feature" "(:feature :sbcl \"parts/core\")") ("a version" "(:version \"parts/core\" \"1\")")
                           ("both" "(:feature :sbcl (:version \"parts/core\" \"1\"))"))
      do (check-case (format nil "a part by ~A" name) "parts" '("core.lisp unused-variable")
                     "parts.asd" (format nil "(defsystem \"parts\" :depends-on (~A) :components ((:file \"top\")))
(defsystem \"parts/core\" :version \"1\" :components ((:file \"core\")))" spec)
                     "core.lisp" "(defpackage :parts (:use :cl)) (in-package :parts) (defun f (unused) 1)"
                     "top.lisp" "(in-package :parts) (defun g () (f 1))"))

(check-case "a package-inferred part by a feature" "inf" '("one.lisp unused-variable")
            "inf.asd" "(defsystem \"inf\" :class :package-inferred-system :depends-on ((:feature :sbcl \"inf/one\") (:feature :no-such-lisp \"inf/none\")))"
            "one.lisp" "(uiop:define-package :inf/one (:use :cl)) (in-package :inf/one) (defun f (unused) 1)")

(dolist (spec '("(:feature :sbcl (:version \"dep\" \"0.1\"))" "(:version \"dep\" \"0.2\")" "(:feature (:not :no-such-lisp) \"dep\")"))
  (apply #'check-case (format nil "a dependency ~A" spec) "specs" '("top.lisp unused-variable")
         "specs.asd" (format nil "(defsystem \"specs\" :depends-on (\"dep\" ~A (:feature :no-such-lisp \"no-such-system\")) :components ((:file \"top\")))" spec)
         "top.lisp" "(defpackage :specs (:use :cl :dep)) (in-package :specs) (defun g (unused) (m (f)))"
         *dep*))

(apply #'check-case "weak dependencies" "weak" '("top.lisp unused-variable")
       "weak.asd" "(defsystem \"weak\" :weakly-depends-on (\"dep\" \"no-such-at-all\") :components ((:file \"top\")))"
       "top.lisp" "(defpackage :weak (:use :cl :dep)) (in-package :weak) (defun g (unused) (m (f)))"
       *dep*)

(test "dependencies that are not there"
  (let ((lines (apply #'check-case "dependencies that are not there" "lacking" '("lacking.asd system-failed" "lacking.asd system-failed" "lacking.asd system-failed" "top.lisp unused-variable")
                      "lacking.asd" "(defsystem \"lacking\" :depends-on (\"no-such-system\" (:version \"dep\" \"7\") \"dep\") :components ((:file \"top\" :depends-on (\"nofile\"))))"
                      "top.lisp" "(defpackage :lacking (:use :cl :dep)) (in-package :lacking) (defun g (unused) (m (f)))"
                      *dep*)))
    (dolist (words '("\"no-such-system\", which it depends on, cannot be loaded" "does not match version 7" "\"nofile\", which the component \"top\" depends on"))
      (expect (some (lambda (message) (search words message)) (reported-messages lines)) (format nil "~A is told: ~S" words (reported-messages lines))))))

;; What follows from one that is not there.
(check-case "what follows from a dependency that is not there" "wanting" '("wanting.asd system-failed")
            "wanting.asd" "(defsystem \"wanting\" :depends-on (\"no-such-system\") :serial t :components ((:file \"package\") (:file \"macros\") (:file \"code\")))"
            "package.lisp" "(defpackage :wanting (:use :cl :of-no-such-system))"
            "macros.lisp" "(in-package :wanting) (defmacro m () (of-no-such-system)) (of-no-such-system:define x ((y)))"
            "code.lisp" "(in-package :wanting) (defun f (x) (m) (with-it ((x 1)) *it*)) (define-it it (x) x)")

(check-case "a circular dependency of files" "round" '("round.asd system-failed")
            "round.asd" "(defsystem \"round\" :components ((:file \"one\" :depends-on (\"two\")) (:file \"two\" :depends-on (\"one\"))))"
            "one.lisp" "(defun f () 1)" "two.lisp" "(defun g () 1)")

(check-case "a circular dependency of systems" "circle" '("circle.asd system-failed")
            "circle.asd" "(defsystem \"circle\" :depends-on (\"circle/b\") :components ((:file \"one\")))
(defsystem \"circle/b\" :depends-on (\"circle\") :components ((:file \"two\")))"
            "one.lisp" "(defun f () 1)" "two.lisp" "(defun g () 1)")

(check-case "a circular dependency of dependencies" "wheel" '("one.lisp unused-variable" "wheel.asd system-failed")
            "wheel.asd" "(defsystem \"wheel\" :depends-on (\"spoke\") :components ((:file \"one\")))"
            "spoke.asd" "(defsystem \"spoke\" :depends-on (\"rim\"))"
            "rim.asd" "(defsystem \"rim\" :depends-on (\"spoke\"))"
            "one.lisp" "(defun f (unused) 1)")

;;; Names over the files of a system

(check-case "a function whose form could not be read" "unread" '("one.lisp unknown-package" "two.lisp undefined-function")
            "unread.asd" "(defsystem \"unread\" :serial t :components ((:file \"one\") (:file \"two\")))"
            "one.lisp" "(defun f (x) (no-such-package:bar x))"
            "two.lisp" "(defun g () (list (f 2) (nowhere)))")

;;; Files that the person has made already, and a system that is loaded

(test "made-and-loaded"
  (call-with-scratch
   (lambda (root)
     (apply #'write-files root *library-files*)
     (let ((asdf:*central-registry* (list (uiop:ensure-directory-pathname root))))
       (asdf:initialize-output-translations `(:output-translations (t (,(uiop:ensure-directory-pathname (concatenate 'string root "fasls/")) :**/ :*.*.*))
                                                                   :ignore-inherited-configuration))
       (let ((made (asdf:apply-output-translations (concatenate 'string root "main.out"))))
         (ensure-directories-exist made)
         (uiop:copy-file (concatenate 'string root "main.part") made))
       (let ((told (reported-codes (check-in root "lib.asd"))))
         (expect (equal told '("code.lisp unused-variable")) (format nil "what a program has made is read: ~S" told)))
       (handler-bind ((warning #'muffle-warning)) (asdf:load-system "lib"))
       (write-files root
                    "main.part" "(error \"loaded again\")"
                    "package.lisp" "(error \"loaded again\")")
       (flet ((in-root (name) (concatenate 'string root name)))
         (let ((told (reported-codes (check-in root "lib.asd" :more (list "only" (vector (in-root "code.lisp")) "changed" (vector))))))
           (expect (equal told '("code.lisp unused-variable")) (format nil "a file of a loaded system: ~S" told))))))))

(finish-tests "plan")
