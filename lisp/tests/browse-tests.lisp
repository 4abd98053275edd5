;;;; `packages`, `package-symbols`, `threads`, `interrupt-thread`, `kill-thread`.

(in-package :consort)

(defun thread-told (image name)
  "What `threads` tells of the thread of that NAME; NIL."
  (find name (coerce (path (call image "threads") "result" "threads") 'list)
        :key (lambda (thread) (field thread "name")) :test #'equal))

(deftest packages-and-their-symbols
  (with-image (image)
    (evaluated image "(defpackage :browse (:use :cl) (:nicknames :br) (:export #:shown #:empty))")
    (evaluated image "(defun browse::shown () 1) (defvar browse::*hidden* 2) 'browse::nothing" )
    (let* ((all (coerce (path (call image "packages") "result" "packages") 'list))
           (browse (find "BROWSE" all :key (lambda (one) (field one "name")) :test #'equal)))
      (is equal 2 (field browse "exports"))
      (is eq :true (field browse "own"))
      (dolist (name '("COMMON-LISP" "SB-IMPL" "ASDF/INTERFACE" "CONSORT" "KEYWORD"))
        (is eq :false (field (find name all :key (lambda (one) (field one "name")) :test #'equal) "own" :false))))
    (let ((answer (path (call image "package-symbols" "name" "BROWSE") "result")))
      (is equal '("*HIDDEN*" "EMPTY" "SHOWN") (map 'list (lambda (one) (field one "name")) (field answer "symbols")))
      (is equal '("function") (coerce (field (elt (field answer "symbols") 2) "kinds") 'list)))
    (is equal "package-not-found" (path (call image "package-symbols" "name" "no-such") "error" "kind"))))

(deftest threads-are-told-of-and-end
  (with-image (image)
    (evaluated image "(defvar *made* (list (sb-thread:make-thread (lambda () (loop (sleep 1))) :name \"mine\")
                                           (sb-thread:make-thread (lambda () (loop (sleep 1))) :name \"other\")))")
    (let ((mine (thread-told image "mine")))
      (is equal "user" (field mine "kind"))
      (is equal "mine" (path (call image "kill-thread" "number" (field mine "number")) "result" "name"))
      (evaluated image "(sb-thread:join-thread (first *made*) :default nil :timeout 10)")
      (ok (null (thread-told image "mine")))
      (is equal "not-found" (path (call image "kill-thread" "number" (field mine "number")) "error" "kind")))
    (call image "interrupt-thread" "number" (field (thread-told image "other") "number"))
    (is equal "other" (field (await-event image "thread-error") "thread"))
    (ok (find "system" (coerce (path (call image "threads") "result" "threads") 'list)
              :key (lambda (thread) (field thread "kind")) :test #'equal))))
