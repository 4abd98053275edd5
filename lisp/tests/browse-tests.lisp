;;;; `packages`, `package-symbols`, `threads`, `interrupt-thread`, `kill-thread`.

(in-package :consort)

(defun reported-thread (image name)
  "Returns what `threads` tells of the thread of that NAME; NIL when there is none."
  (find name (path (call image "threads") "result" "threads")
        :key (lambda (thread) (path-if-any thread "name")) :test #'equal))

(deftest packages-and-their-symbols
  (with-image (image)
    (evaluated image "(defpackage :browse (:use :cl) (:nicknames :br) (:export #:shown #:empty))")
    (evaluated image "(defun browse::shown () 1) (defvar browse::*hidden* 2) 'browse::nothing" )
    (let* ((all (coerce (path (call image "packages") "result" "packages") 'list))
           (browse (find "BROWSE" all :key (lambda (one) (path one "name")) :test #'equal)))
      (is equal 2 (path browse "exports"))
      (is eq :true (path browse "own"))
      (dolist (name '("COMMON-LISP" "SB-IMPL" "ASDF/INTERFACE" "CONSORT" "KEYWORD"))
        (is eq :false (field (find name all :key (lambda (one) (path one "name")) :test #'equal) "own" :false))))
    (let ((answer (path (call image "package-symbols" "name" "BROWSE") "result")))
      (is equal '("*HIDDEN*" "EMPTY" "SHOWN") (map 'list (lambda (one) (path one "name")) (path answer "symbols")))
      (is equal '("function") (coerce (path (elt (path answer "symbols") 2) "kinds") 'list)))
    (is equal "package-not-found" (path (call image "package-symbols" "name" "no-such") "error" "kind"))))

(deftest manuals-of-packages-and-systems
  (with-image (image)
    (evaluated image "(defpackage :browse (:use :cl) (:nicknames :br) (:documentation \"To look at.\") (:export #:shown #:empty))")
    (evaluated image "(defun browse::shown (x &optional (y 1)) \"Shows X.\" (list x y))")
    (flet ((manual (name) (path (call image "manual" "name" name) "result" "packages")))
      (let ((browse (path (manual "br") 0)))
        (is string= "BROWSE" (path browse "name"))
        (is string= "To look at." (path browse "documentation"))
        (is = 2 (path browse "count"))
        (is equal '("EMPTY" "SHOWN") (map 'list (lambda (one) (path one "name")) (path browse "exports")))
        (is string= "(x &optional (y 1))" (path browse "exports" 1 "lambda_list"))
        (is string= "Shows X." (path browse "exports" 1 "kinds" 0 "documentation")))
      ;; The packages of a system are those that its files define.
      (write-file "manual/pages.lisp" "(defpackage :pages-a (:use :cl) (:export #:a)) (defpackage :pages-b (:use :cl))")
      (let ((asd (write-file "manual/pages.asd" "(asdf:defsystem \"pages\" :components ((:file \"pages\")))")))
        (evaluated image (format nil "(progn (asdf:load-asd ~S) (asdf:load-system \"pages\"))" asd)))
      (is equal '("PAGES-A" "PAGES-B") (map 'list (lambda (one) (path one "name")) (manual "pages")))
      (is equal "not-found" (path (call image "manual" "name" "no-such") "error" "kind")))))

(deftest threads-are-told-of-and-end
  (with-image (image)
    (evaluated image "(defvar *made* (list (sb-thread:make-thread (lambda () (loop (sleep 1))) :name \"mine\")
                                           (sb-thread:make-thread (lambda () (loop (sleep 1))) :name \"other\")))")
    (let ((mine (reported-thread image "mine")))
      (is equal "user" (path mine "kind"))
      (is equal "mine" (path (call image "kill-thread" "number" (path mine "number")) "result" "name"))
      ;; A thread that has ended is listed a little longer.
      (ok (eventually (null (reported-thread image "mine"))))
      (is equal "not-found" (path (call image "kill-thread" "number" (path mine "number")) "error" "kind")))
    (call image "interrupt-thread" "number" (path (reported-thread image "other") "number"))
    (is equal "other" (path (await-event image "thread-error") "thread"))
    (ok (find "system" (coerce (path (call image "threads") "result" "threads") 'list)
              :key (lambda (thread) (path thread "kind")) :test #'equal))))

(deftest names-of-threads-are-one-short-line
  (with-image (image)
    (evaluated image "(flet ((start (name) (sb-thread:make-thread (lambda () (loop (sleep 1))) :name name)))
                        (start (format nil \"two~%lines~C[31m\" (code-char 27)))
                        (start (make-string 5000 :initial-element #\\x)))")
    (let ((long (concatenate 'string (make-string 100 :initial-element #\x) "...")))
      (ok (reported-thread image "two?lines?[31m"))
      (ok (reported-thread image long))
      (dolist (name (list "two?lines?[31m" long))
        (is-when name equal name (path (find name (path (call image "thread-states") "result" "threads")
                                             :key (lambda (thread) (path thread "name")) :test #'equal)
                                       "name"))
        (is equal name (path (call image "kill-thread" "number" (path (reported-thread image name) "number")) "result" "name"))))))
