;;;; The check of a system goes by ASDF's own plan: what is loaded is not compiled again, a system's
;;;; own methods count, parts for other Lisps are left out.
;;;;
;;;;   sbcl --noinform --non-interactive --no-userinit --load lisp/tests/check-dependencies.lisp

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defun path-code (line) (field (field line "diagnostic") "code"))

(defun check-tree (asd &optional system)
  (check-lines "" :runner 'check-system-in-copy :asd-files (list asd)
                  :more (append (list "asd" asd) (when system (list "system" system)))))

(test "plan"
  (call-with-scratch
   (lambda (root)
     (write-files root
                  "dep/dep.asd" "(defsystem \"dep\" :components ((:file \"dep\")))"
                  "dep/dep.lisp" "(defpackage :dep (:use :cl) (:export #:of-dep)) (in-package :dep)
                                (eval-when (:compile-toplevel) (when (find-symbol \"COMPILED-ONCE\" :keyword) (error \"compiled again\")))
                                (defun of-dep (x) x)"
                  "top.asd" "(defsystem \"top\" :depends-on (\"dep\" (:feature :no-such-lisp \"no-such-system\") (:feature :sbcl \"sb-posix\"))
                             :components ((:file \"top\")))"
                  "top.lisp" "(defpackage :top (:use :cl :dep)) (in-package :top) (defun g () (of-dep 1) (sb-posix:getpid) (nowhere))"
                  "sb-posix.asd" "(defsystem \"sb-posix\" :components ((:file \"not-there\")))"
                  "own.asd" "(defpackage :own-system (:use :cl :asdf)) (in-package :own-system)
                           (defclass example (cl-source-file) ())
                           (defmethod perform ((o compile-op) (c example)) nil)
                           (defmethod perform ((o load-op) (c example)) nil)
                           (defclass loud (cl-source-file) ())
                           (defmethod perform :around ((o load-op) (c loud)) (let ((*features* (cons :loud *features*))) (call-next-method)))
                           (defsystem \"own\" :serial t :components ((example \"demo\") (loud \"loud\") (:file \"main\")))"
                  "demo.lisp" "(in-package :no-package-at-all) (nothing)"
                  "loud.lisp" "(defpackage :loud (:use :cl)) (in-package :loud) (defun f () 1)
                             (defvar *loud* (if (member :loud *features*) 1 (error \"not loaded by its method\")))"
                  "main.lisp" "(in-package :loud) (defun g () (f) (undefined-one))"
                  "bad.asd" "(defsystem \"bad\" :serial t :components ((:file \"one\") (:file \"two\")))"
                  "one.lisp" "(defpackage :bad (:use :cl)) (in-package :bad) (defun early () 1) (error \"cannot be loaded\") (defmacro late (x) `(progn ,x))
                            (defpackage :bad-two (:use :cl))"
                  "two.lisp" "(in-package :bad-two) (defun h () (late (1 2)))")
     (flet ((in-root (name) (concatenate 'string root name)))
       (let ((asdf:*central-registry* (list (uiop:ensure-directory-pathname (in-root "dep/")))))
         (expect (equal (reported-codes (check-tree (in-root "top.asd"))) '("top.lisp undefined-function")) "dependencies, other Lisps', a contrib's name"
                 )
         (asdf:initialize-output-translations `(:output-translations (t (,(uiop:ensure-directory-pathname (in-root "fasls/")) :**/ :*.*.*))
                                                                     :ignore-inherited-configuration))
         (handler-bind ((warning #'muffle-warning)) (asdf:load-system "dep"))
         (intern "COMPILED-ONCE" :keyword)
         (expect (equal (reported-codes (check-tree (in-root "top.asd"))) '("top.lisp undefined-function")) "a loaded dependency is not compiled again"))
       (expect (equal (reported-codes (check-tree (in-root "own.asd"))) '("main.lisp undefined-function")) "a system's own methods")
       (expect (equal (reported-codes (check-tree (in-root "bad.asd"))) '("one.lisp load-failed")) "what follows a file that cannot be loaded")))))

;;; Systems that have their files compiled in ways of their own: whole, and a file with the system
;;; loaded

(test "own-compilation"
  (call-with-scratch
   (lambda (root)
     (flet ((in-root (name) (concatenate 'string root name)))
       (write-files root
                    "way.asd" "(defpackage :way-system (:use :cl :asdf)) (in-package :way-system)
                             (defclass quiet (cl-source-file) ())
                             (defmethod perform :around ((o compile-op) (c quiet))
                               (handler-bind ((style-warning #'muffle-warning) (sb-ext:compiler-note #'muffle-warning)) (call-next-method)))
                             (defclass braced (cl-source-file) ())
                             (defmethod perform :around ((o compile-op) (c braced))
                               (let ((*readtable* (copy-readtable nil)))
                                 (set-macro-character #\\{ (lambda (stream char) (declare (ignore char)) (cons 'list (read-delimited-list #\\} stream t))))
                                 (set-macro-character #\\} (get-macro-character #\\)))
                                 (call-next-method)))
                             (defsystem \"way\" :serial t :components ((quiet \"quiet\") (braced \"braced\") (:file \"plain\")))"
                    "quiet.lisp" "(defpackage :way (:use :cl)) (in-package :way)
                                (defun f (unused) (declare (optimize speed)) (lambda (x) (+ x x))) (defun g () (car 1))"
                    "braced.lisp" "(in-package :way) (defun h () {1 2}) (defun i (unused) 1)"
                    "plain.lisp" "(in-package :way) (defun j (unused) 1)")
       (flet ((check-file (name)
                (loop for line in (check-lines (slurp (in-root name)) :path (in-root name) :asd-files (list (in-root "way.asd")) :confine nil)
                      when (field line "diagnostic") collect (path-code line))))
         (expect (equal (reported-codes (check-tree (in-root "way.asd"))) '("braced.lisp unused-variable" "plain.lisp unused-variable" "quiet.lisp type-conflict"))
                 (format nil "a system's own ways: ~S" (reported-codes (check-tree (in-root "way.asd")))))
         (asdf:load-asd (in-root "way.asd"))
         (asdf:initialize-output-translations `(:output-translations (t (,(uiop:ensure-directory-pathname (in-root "fasls/")) :**/ :*.*.*))
                                                                     :ignore-inherited-configuration))
         (handler-bind ((warning #'muffle-warning)) (let ((uiop:*compile-file-failure-behaviour* :warn)) (asdf:load-system "way")))
         (loop for (name . codes) in '(("quiet.lisp" "type-conflict") ("braced.lisp" "unused-variable") ("plain.lisp" "unused-variable"))
               do (expect (equal (check-file name) codes) (format nil "~A as its system has it compiled: ~S" name (check-file name)))))))))

;;; A package-inferred system of the workspace

(test "package-inferred"
  (call-with-scratch
   (lambda (root)
     (flet ((in-root (name) (concatenate 'string root name)))
       (write-files root
                    "inferred.asd" "(defsystem \"inferred\" :class :package-inferred-system :depends-on (\"inferred/two\"))"
                    "one.lisp" "(uiop:define-package :inferred/one (:use :cl) (:export #:f)) (in-package :inferred/one) (defun f () 1)"
                    "two.lisp" "(uiop:define-package :inferred/two (:use :cl :inferred/one)) (in-package :inferred/two) (defun g (unused) (f))")
       (expect (equal (reported-codes (check-tree (in-root "inferred.asd"))) '("two.lisp unused-variable"))
               (format nil "its check: ~S" (reported-codes (check-tree (in-root "inferred.asd")))))
       (let ((lines (check-lines (slurp (in-root "two.lisp")) :path (in-root "two.lisp") :asd-files (list (in-root "inferred.asd")))))
         (expect (equal (loop for line in lines when (field line "diagnostic") collect (path-code line)) '("system-not-loaded"))
                 (format nil "the system of one of its files is known: ~S" lines))
         (expect (equal (field (field (first (last lines)) "done") "unloaded_system") "inferred/two") "that system is named"))
       (let ((lines (check-lines "" :runner 'check-system-in-copy :asd-files (list (in-root "inferred.asd"))
                                    :more (list "system" "inferred/two" "only" (vector (in-root "two.lisp"))))))
         (expect (equal (reported-codes lines) '("two.lisp unused-variable"))
                 (format nil "that file with its system: ~S" (remove nil (mapcar (lambda (line) (field line "diagnostic")) lines)))))
       (call-with-asd-files (list (pathname (in-root "inferred.asd")))
                            (lambda ()
                              (expect (typep (ignore-errors (asdf:find-system "inferred/two")) 'asdf:package-inferred-system)
                                      "its parts are found")))))))

;;; A loaded dependency whose definition loads a system itself

(test "definition-loads-system"
  (call-with-scratch
   (lambda (root)
     (flet ((in-root (name) (concatenate 'string root name)))
       (write-files root
                    "used/first.asd" "(defsystem \"first\" :version \"1.2\" :components ((:file \"first\") (:static-file \"first.asd\")))"
                    "used/first.lisp" "(defpackage :first-one (:use :cl)) (in-package :first-one)
                                     (eval-when (:compile-toplevel) (when (find-symbol \"FIRST-COMPILED\" :keyword) (error \"compiled again\")))"
                    "used/second.asd" "(asdf:load-system \"first\") (defsystem \"second\" :depends-on ((:version \"first\" \"1.0\")) :components ((:file \"second\")))"
                    "used/second.lisp" "(defpackage :second-one (:use :cl) (:export #:f)) (in-package :second-one)
                                      (eval-when (:compile-toplevel) (when (find-symbol \"FIRST-COMPILED\" :keyword) (error \"compiled again\")))
                                      (defun f () 1)"
                    "fourth.asd" "(defsystem \"fourth\" :depends-on (\"first\") :components ((:file \"fourth\")))"
                    "fourth.lisp" "(defpackage :fourth-one (:use :cl :first-one)) (in-package :fourth-one) (defun g () (nowhere))"
                    "third.asd" "(defsystem \"third\" :depends-on ((:version \"first\" \"1.1\") \"second\") :components ((:file \"third\")))"
                    "third.lisp" "(defpackage :third-one (:use :cl :second-one)) (in-package :third-one) (defun g () (f) (nowhere))")
       (let ((asdf:*central-registry* (list (uiop:ensure-directory-pathname (in-root "used/")))))
         (asdf:initialize-output-translations `(:output-translations (t (,(uiop:ensure-directory-pathname (in-root "fasls/")) :**/ :*.*.*))
                                                                     :ignore-inherited-configuration))
         (handler-bind ((warning #'muffle-warning)) (asdf:load-system "second"))
         (intern "FIRST-COMPILED" :keyword)
         (expect (equal (reported-codes (check-tree (in-root "third.asd"))) '("third.lisp undefined-function"))
                 (format nil "it is not compiled again: ~S" (reported-codes (check-tree (in-root "third.asd")))))
         ;; Not loaded, with fasls where only ASDF's configuration says.
         (asdf:clear-system "first")
         (let ((told (reported-codes (check-lines "" :runner 'check-system-in-copy :asd-files (list (in-root "fourth.asd")) :read (list (in-root "used/"))
                                                     :more (list "asd" (in-root "fourth.asd"))))))
           (expect (equal told '("fourth.lisp undefined-function")) (format nil "the fasls of the person are read: ~S" told))))))))

;;; A dependency that depends on a secondary system of its own file, as cl+ssl does

(test "secondary-of-a-dependency"
  (call-with-scratch
   (lambda (root)
     (flet ((in-root (name) (concatenate 'string root name)))
       (write-files root
                    "ring/ring.asd" "(defsystem \"ring\" :depends-on (\"ring/config\") :components ((:file \"ring\")))
(defsystem \"ring/config\" :components ((:file \"config\")))"
                    "ring/config.lisp" "(defpackage :ring-config (:use :cl) (:export #:f)) (in-package :ring-config) (defun f () 1)"
                    "ring/ring.lisp" "(defpackage :ring (:use :cl :ring-config) (:export #:g)) (in-package :ring) (defun g () (f))"
                    "top.asd" "(defsystem \"top\" :depends-on (\"ring\") :components ((:file \"top\")))"
                    "top.lisp" "(defpackage :top (:use :cl :ring)) (in-package :top) (defun h () (g) (nowhere))")
       (let ((asdf:*central-registry* (list (uiop:ensure-directory-pathname (in-root "ring/")))))
         (expect (equal (reported-codes (check-lines "" :runner 'check-system-in-copy :asd-files (list (in-root "top.asd"))
                                                        :more (list "asd" (in-root "top.asd"))))
                        '("top.lisp undefined-function"))))))))

;;; A newer ASDF among the installed systems

(test "newer-asdf"
  (call-with-scratch
   (lambda (root)
     (flet ((in-root (name) (concatenate 'string root name)))
       (write-files root
                    "asdf/asdf.asd" "(defsystem \"asdf\" :version \"99.1\" :components ((:file \"newer\")))"
                    "asdf/version.lisp-expr" "\"99.1\""
                    "asdf/newer.lisp" (format nil "(eval-when (:compile-toplevel :load-toplevel :execute)
                                                  (with-open-file (out ~S :direction :output :if-exists :supersede) (write-line \"1\" out)))" (in-root "newer"))
                    "needed/needed.asd" "(defsystem \"needed\" :depends-on (\"asdf\") :components ((:file \"needed\")))"
                    "needed/needed.lisp" "(defpackage :needed (:use :cl) (:export #:f)) (in-package :needed) (defun f () 1)"
                    "top.asd" "(defsystem \"top\" :depends-on (\"needed\" (:version \"asdf\" \"3.0\") \"uiop\") :components ((:file \"top\")))"
                    "top.lisp" "(defpackage :top (:use :cl :needed)) (in-package :top) (defun g () (f) (nowhere))")
       (let ((asdf:*central-registry* (list (uiop:ensure-directory-pathname (in-root "asdf/")) (uiop:ensure-directory-pathname (in-root "needed/")))))
         (expect (equal (reported-codes (check-lines "" :runner 'check-system-in-copy :confine nil :more (list "asd" (in-root "top.asd"))))
                        '("top.lisp undefined-function"))
                 "a system whose dependencies need ASDF")
         (expect (equal (loop for line in (check-lines "(in-package :top) (nowhere)" :path (in-root "top.lisp") :confine nil
                                                                                    :asd-files (list (in-root "top.asd")))
                              when (field line "diagnostic") collect (path-code line))
                        '("system-not-loaded"))
                 "one file of it")
         (expect (equal (sort (loop for line in (check-lines "(defpackage :one (:use :cl) (:export #:same)) (defpackage :two (:use :cl) (:export #:same))
(defpackage :both (:use :one :two)) (defpackage :option (:use :cl) (:bogus 1)) (defpackage :far (:use :cl :far-away))"
                                                             :path (in-root "top.lisp") :confine nil :asd-files (list (in-root "top.asd")))
                                    when (field line "diagnostic") collect (path-code line))
                              #'string<)
                        '("compile-time-error" "macro-expansion" "system-not-loaded"))
                 "a package definition that is wrong whatever is loaded")
         (expect (not (probe-file (in-root "newer"))) "the newer ASDF is not compiled"))))))

;;; Files of which Lisp text is generated, as CFFI-GROVEL does it

(test "generated-text"
  (call-with-scratch
   (lambda (root)
     (flet ((in-root (name) (concatenate 'string root name)))
       (write-files root
                    "gen.asd" "(defpackage :gen-system (:use :cl :asdf)) (in-package :gen-system)
(defclass made-file (cl-source-file) ()) (defclass make-op (downward-operation) ())
(defmethod input-files ((o make-op) (c made-file)) (list (component-pathname c)))
(defmethod output-files ((o make-op) (c made-file)) (list (make-pathname :type \"made\" :defaults (component-pathname c))))
(defmethod perform ((o make-op) (c made-file)) (error \"a program was run\"))
(defmethod input-files ((o compile-op) (c made-file)) (list (first (output-files 'make-op c))))
(defmethod component-depends-on ((o compile-op) (c made-file)) `((make-op ,c) ,@(call-next-method)))
(defsystem \"gen\" :serial t :components ((:file \"package\") (:made-file \"made\") (:file \"code\") (:file \"more\")))"
                    "package.lisp" "(defpackage :gen (:use :cl)) (in-package :gen) (defun before () (nowhere))"
                    "made.lisp" "(include \"errno.h\") (constant (size \"SIZE\") :type integer) (if)"
                    "code.lisp" "(in-package :gen) (defun after () (list (made-function) #.made-value)) (made-macro (x 1))"
                    "more.lisp" "(in-package :gen) (defun again (y) (made-function))")
       (let ((told (reported-codes (check-lines "" :runner 'check-system-in-copy :confine nil :more (list "asd" (in-root "gen.asd"))))))
         (expect (equal (sort told #'string<) '("gen.asd system-not-loaded" "more.lisp unused-variable" "package.lisp undefined-function"))
                 (format nil "what is generated is not checked, and what lacks it is not told: ~S" told)))))))

;;; A file in a workspace with many definitions

(test "one-file"
  (call-with-scratch
   (lambda (root)
     (flet ((in-root (name) (concatenate 'string root name))
            (codes (lines) (loop for line in lines when (field line "diagnostic") collect (path-code line))))
       (write-files root
                    "mine.asd" "(defsystem \"mine\" :components ((:file \"mine\") (:file \"for-others\" :if-feature :no-such-lisp)
                                                         (:module \"sub\" :components ((:file \"deep\")))))"
                    "mine.lisp" "(in-package :mine-package) (f)"
                    "sub/deep.lisp" "(in-package :mine-package) (f)"
                    "for-others.lisp" "(in-package :no-such-lisp-package) (f)"
                    "alone.lisp" "(in-package :package-of-no-system) (f)"
                    "prefix.lisp" "(in-package :cl-user) (defun f () (no-such-function)) (defun g () (no-such-package:f))"
                    "syntax.lisp" "(defpackage :syntax-of-no-system (:use :cl :package-of-no-system)) (in-package :syntax-of-no-system) (in-readtable :curly)
(defun f (list) (mapcar [{list :name} #'intern #'string-upcase {getf _ :name}] list))")
       (dotimes (i 20)
         (write-files root
                      (format nil "d~D/other~D.asd" i i)
                      (format nil "(with-open-file (out ~S :direction :output :if-exists :append :if-does-not-exist :create) (write-line \"~D\" out))
                                 (error \"read\")"
                              (in-root "read") i)))
       (let ((asd-files (append (loop for i below 20 collect (in-root (format nil "d~D/other~D.asd" i i))) (list (in-root "mine.asd")))))
         (flet ((check (name)
                  (codes (check-lines (slurp (in-root name)) :path (in-root name) :asd-files asd-files :confine nil))))
           (expect (equal (check "mine.lisp") '("system-not-loaded")) "a file of a system that is not loaded")
           (expect (equal (check "sub/deep.lisp") '("system-not-loaded")) "a file of it in a directory below")
           (expect (equal (check "for-others.lisp") '("not-for-this-lisp")) "a file for another Lisp")
           (expect (equal (check "alone.lisp") '("no-system")) "a file of no system")
           (expect (equal (sort (check "prefix.lisp") #'string<) '("undefined-function" "unknown-package"))
                   (format nil "an unknown prefix holds nothing back: ~S" (check "prefix.lisp")))
           (expect (equal (check "syntax.lisp") '("no-system")) (format nil "a file of no system, in a syntax of its own: ~S" (check "syntax.lisp")))
           (expect (not (probe-file (in-root "read"))) "definitions that cannot have the file are not loaded")))))))

(test "definition-that-never-ends"
  (call-with-scratch
   (lambda (root)
     (flet ((in-root (name) (concatenate 'string root name)))
       (write-files root
                    "endless.asd" "(defsystem \"endless\" :components ((:file \"work\"))) (loop)"
                    "work.lisp" "(defun f () (no-such-function)) (defun g (x) (+ x \"a\"))")
       (let ((told (diagnostics-of (check-lines (slurp (in-root "work.lisp")) :path (in-root "work.lisp") :asd-files (list (in-root "endless.asd"))))))
         (expect (equal (mapcar (lambda (one) (field one "code")) told) '("no-system" "type-conflict")) (format nil "names are held back: ~S" told))
         (expect (search "endless.asd was left after 3.0 s" (field (first told) "message")) "the message names the definition"))))))

(finish-tests "dependencies")
