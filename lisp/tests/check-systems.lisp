;;;; Files of systems that are not loaded, and whole systems.
;;;;
;;;;   sbcl --noinform --non-interactive --no-userinit --load lisp/tests/check-systems.lisp

(load (merge-pathnames "check-support.lisp" *load-truename*))

(in-package :consort)

(defvar *shop* (uiop:native-namestring (merge-pathnames "../../tests/fixtures/shop/" *tests-directory*)))

(defun in-shop (name) (concatenate 'string *shop* name))

(defun told (lines)
  "Returns the diagnostics in LINES: (file line code) for each diagnostic, sorted."
  (sort (loop for line in lines
              for diagnostic = (field line "diagnostic")
              when diagnostic
                collect (format nil "~@[~A ~]~D ~A" (let ((file (field line "file"))) (and file (file-namestring file)))
                                (aref (field diagnostic "span") 0) (field diagnostic "code")))
        #'string<))

(defun done (lines) (loop for line in lines thereis (field line "done")))

(defun at (file text)
  "Where TEXT is in the shop's FILE, as a string."
  (princ-to-string (search text (slurp (in-shop file)))))

(defun expect-reported (name lines &rest expected)
  (let ((told (told lines)))
    (expect (equal told (sort (copy-list expected) #'string<)) (format nil "~A: ~S, not ~S" name told expected))))

;;; A file

(test "unloaded-system"
  (let ((lines (check-lines (slurp (in-shop "report.lisp")) :path (in-shop "report.lisp") :asd-files (list (in-shop "shop.asd")))))
    (expect-reported "a file of a system that is not loaded" lines
                     (format nil "~A system-not-loaded" (at "report.lisp" "(in-package"))
                     (format nil "~A malformed-binding" (at "report.lisp" "(a 1 2)")))
    (expect (equal (field (done lines) "unloaded_system") "shop") "the system is named")))

(test "unknown-macro"
  (let ((lines (check-lines (format nil "(in-package :cl-user)~%(define-prices *prices* (\"tea\" 3) (\"cup\" 5))~%(defun f () (let ((a 1 2)) a))")
                            :path (in-shop "report.lisp") :asd-files (list (in-shop "shop.asd")))))
    (expect-reported "what an unknown macro of it is called with" lines "0 system-not-loaded" "85 malformed-binding")))

(test "no-call"
  (let ((lines (check-lines "(defun f () (list (\"tea\" 3)))" :path (in-shop "report.lisp") :asd-files (list (in-shop "shop.asd")))))
    (expect-reported "a list that is no call, where all names are known" lines "18 illegal-call")))

(defun call-with-workshop (function)
  "Call FUNCTION with the native names of a directory and of its workshop.asd, where a system of the
  same name is installed elsewhere."
  (let* ((root (uiop:ensure-directory-pathname (fresh-directory)))
         (here (merge-pathnames "here/" root)) (installed (merge-pathnames "installed/" root))
         (asdf:*central-registry* (list installed)))
    (unwind-protect
         (progn
           (dolist (place (list here installed))
             (ensure-directories-exist place)
             (with-open-file (asd (merge-pathnames "workshop.asd" place) :direction :output)
               (format asd "(defpackage :workshop-tests (:nicknames :wt) (:use :cl))~@
                            (asdf:defsystem \"workshop\" :components ((:file \"work\")))~@
                            (asdf:defsystem \"workshop/tests\" :depends-on (\"workshop\") :components ((:file \"tests\")))~%")))
           (flet ((name (file) (uiop:native-namestring (merge-pathnames file here))))
             (funcall function #'name)))
      (uiop:delete-directory-tree root :validate t))))

(test "installed-elsewhere"
  (call-with-workshop
   (lambda (name)
     (dolist (file '("work.lisp" "tests.lisp"))
       (let ((lines (check-lines (format nil "(in-package :wt)~%(deftest f (\"a\" 1) #@(2))~%(defmacro m () (no-such-function))~%(defun g () (m) (let ((a 1 2)) a))")
                                 :path (funcall name file) :asd-files (list (funcall name "workshop.asd")))))
         (expect-reported (format nil "~A of a system that is installed, too, with a package that only its definition makes" file) lines
                          "0 system-not-loaded" "100 malformed-binding"))))))

(test "no-definition"
  (let ((lines (check-lines (slurp (in-shop "stock.lisp")) :path (in-shop "stock.lisp"))))
    (expect-reported "without its definition" lines
                     (format nil "~A unknown-package" (at "stock.lisp" ":shop")))))

(test "no-system-has-it"
  (let ((lines (check-lines "(defun f () (no-such-function))" :path (in-shop "elsewhere.lisp") :asd-files (list (in-shop "shop.asd")))))
    (expect-reported "a file that no system has" lines "13 undefined-function")
    (expect (null (field (done lines) "unloaded_system")) "no system is named")))

;;; Forms that cannot be read, behind a name that is not known

(test "skipped-forms"
  (loop for (text end) in '(("(a (b) c) d" 9) ("  ; (x)
 #| ( |# (a) b" 20) ("#+#.(if a b) (c \")\" #\\) |)| \\) #|)|# ; )
) d" 42) ("#.(a) b" 5) ("'#'x y" 4) ("`(,@(a) ,b) c" 11) ("#(1 2) 3" 6) ("#$x y" 3) ("#1=(a #1#) b" 10) ("a|b c|d e" 7) ("#\\( (b)" 3)
                            ("\"a\\\"b\" c" 6) ("(a (b)" nil) (") a" nil) ("" nil))
        do (expect (eql (form-end (coerce text 'text) 0) end) (format nil "the end of ~S is ~S" text (form-end (coerce text 'text) 0))))
  (let ((lines (check-lines (format nil "(in-package :no-such-shop)
(defun f (x) (ccl::open-it x #$anyAddress
                           :type (car x)) (g x))
(defun g (y)
  (list #+#.(swank/backend:with-symbol 'make-operation 'asdf)
(car y)
        #-#.(swank/backend:with-symbol 'make-operation 'asdf) (cdr y)))
#+#.(if (find-package :no-such) '(:and) '(:nothing-else (of-this)))
(defun k () (list #.(shop::at-once 1)
(list 2)) 3)
(define-way name-of (function) (list function))
(defun h () (let ((a 1 2)) a))")
                            :path (in-shop "elsewhere.lisp") :asd-files (list (in-shop "shop.asd")))))
    (expect-reported "what follows in a form" lines "0 no-system" "458 malformed-binding")))

(test "broken-definition"
  (let ((lines (check-lines "(defun f () (no-such-function))" :path (in-shop "report.lisp") :asd-files (list (in-shop "no-such.asd") (in-shop "money.lisp")))))
    (expect-reported "definitions that cannot be loaded" lines "13 undefined-function")))

;;; A system

(defun check-shop (&key only)
  (check-lines "" :runner 'check-system-in-copy
                  :more (list "asd" (in-shop "shop.asd") "only" (map 'vector #'in-shop only))))

(test "whole-system"
  (let ((lines (check-shop)))
    (expect-reported "a whole system" lines
                     (format nil "stock.lisp ~A undefined-variable" (at "stock.lisp" "itm"))
                     (format nil "report.lisp ~A malformed-binding" (at "report.lisp" "(a 1 2)"))
                     (format nil "report.lisp ~A wrong-argument-count" (at "report.lisp" "(add \"apple\")"))
                     (format nil "report.lisp ~A undefined-function" (at "report.lisp" "missing-function")))
    (expect (equal (loop for line in lines
                         when (and (field line "file") (not (field line "diagnostic"))) collect (file-namestring (field line "file")))
                   '("money.lisp" "package.lisp" "stock.lisp" "report.lisp"))
            "the files come in order")
    (expect (done lines) "the check of the system is done")))

(test "one-file"
  (expect-reported "one file of a system" (check-shop :only '("stock.lisp"))
                   (format nil "stock.lisp ~A undefined-variable" (at "stock.lisp" "itm"))))

(test "a-pipe-as-a-component"
  (let ((directory (fresh-directory)))
    (unwind-protect
         (flet ((name (file) (concatenate 'string directory file)))
           (with-open-file (asd (name "pipes.asd") :direction :output)
             (write-string "(asdf:defsystem \"pipes\" :components ((:file \"pipe\")))" asd))
           (sb-posix:mkfifo (name "pipe.lisp") #o600)
           (let ((lines (check-lines "" :runner 'check-system-in-copy :more (list "asd" (name "pipes.asd")))))
             (expect (search "is no regular file" (princ-to-string lines)) (format nil "a pipe is told, and not read: ~S" lines))
             (expect (done lines) "the check of a system with a pipe is done")))
      (delete-directory directory))))

(test "mistakes-in-asdf-settings"
  (let ((asdf:*central-registry* :nothing))
    (expect-reported "with a central registry that is no list" (check-lines "(defun f () (no-such-function))") "13 undefined-function"))
  (dolist (setting '("CL_SOURCE_REGISTRY" "ASDF_OUTPUT_TRANSLATIONS"))
    (dolist (value '("(:source-registry (:nonsense 1))" "(:x"))
      (unwind-protect
           (progn (sb-posix:setenv setting value 1)
                  (asdf:clear-configuration)
                  (expect-reported (format nil "with ~A ~A" setting value) (check-lines "(defun f () (no-such-function))") "13 undefined-function"))
        (sb-posix:unsetenv setting)
        (asdf:clear-configuration)))))

(test "not-a-definition"
  (let ((lines (check-lines "" :runner 'check-system-in-copy :more (list "asd" (in-shop "money.lisp")))))
    (expect-reported "what is no system definition" lines "money.lisp 0 system-failed")))

;;; The same with the system loaded

(test "loaded-system"
  (call-with-scratch
   (lambda (directory)
     (asdf:load-asd (in-shop "shop.asd"))
     (asdf:initialize-output-translations `(:output-translations (t (,directory :**/ :*.*.*)) :ignore-inherited-configuration :disable-cache))
     (handler-bind ((warning #'muffle-warning))
       (let ((*error-output* (make-broadcast-stream)) (*standard-output* (make-broadcast-stream)) (uiop:*compile-file-failure-behaviour* :warn))
         (asdf:load-system "shop")))))

  (let ((lines (check-lines (slurp (in-shop "report.lisp")) :path (in-shop "report.lisp") :asd-files (list (in-shop "shop.asd")))))
    (expect-reported "a file of a loaded system" lines
                     (format nil "~A malformed-binding" (at "report.lisp" "(a 1 2)"))
                     (format nil "~A wrong-argument-count" (at "report.lisp" "(add \"apple\")"))
                     (format nil "~A undefined-function" (at "report.lisp" "missing-function"))))

  (expect-reported "a loaded system, one file" (check-shop :only '("stock.lisp"))
                   (format nil "stock.lisp ~A undefined-variable" (at "stock.lisp" "itm"))))

(finish-tests "systems")
