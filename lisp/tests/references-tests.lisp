;;;; References to a name, also inside methods on the system's generic functions; the display of
;;;; lambda lists.

(in-package :consort)

(deftest references-inside-methods-of-the-system
  (with-image (image)
    (evaluated image "(defpackage :refs (:use :cl)) (in-package :refs)
      (defun helper (x) x)
      (defclass thing () ((a :initform 1)))
      (defclass out (sb-gray:fundamental-character-output-stream) ())
      (defmethod print-object ((x thing) stream) (helper stream))
      (defmethod initialize-instance :after ((x thing) &key) (helper x))
      (defmethod sb-gray:stream-write-char ((x out) char) (helper char))
      (defmethod (setf documentation) (new (x thing) (type (eql 't))) (helper new))
      (defun caller () (helper 1))
      (defgeneric own (x)) (defmethod own ((x thing)) (helper x))")
    (let ((references (path (call image "symbol" "name" "refs::helper" "want" #("references")) "result" "references")))
      (is equal '("caller" "initialize-instance" "own" "print-object" "setf documentation" "stream-write-char")
          (sort (loop for reference across references
                      for by = (field reference "by")
                      when (equal (field reference "kind") "calls")
                        collect (find-if (lambda (name) (search name by))
                                         '("caller" "initialize-instance" "own" "print-object" "setf documentation" "stream-write-char")))
                #'string<)))))

(deftest lambda-lists-without-the-systems-packages
  (with-image (image)
    (dolist (name '("make-hash-table" "open" "make-array" "sort" "read" "compile-file" "sb-ext:run-program" "sb-thread:make-thread" "print-object" "with-open-file"))
      (is-when name equal '()
               (remove-if-not (lambda (part) (search "::" part))
                              (coerce (path (call image "symbol" "name" name "want" #("facts")) "result" "facts" "lambda_list") 'list))))))

(deftest keywords-of-generic-functions
  (with-image (image)
    (let ((text "(defpackage :kw (:use :cl)) (in-package :kw)
(defgeneric gg (x &key a))
(defmethod gg ((x t) &key a) a)
(defun i () (gg 1 :types 2))
(defun j () (gg 1 :later 2))
(defmethod gg ((x string) &key a later) (list a later))
(defun || (x) x)
(defun k () (|| 1 2))"))
      (is equal '("unknown-keyword" "wrong-argument-count") (sort (codes-of image text) #'string<))
      (evaluated image text)
      (is equal '("unknown-keyword" "wrong-argument-count") (sort (codes-of image text) #'string<)))))

(deftest a-macro-with-the-name-of-a-type
  (with-image (image)
    (let ((text "(defpackage :rd (:use :cl)) (in-package :rd)
(defclass point () ()) (defmacro point (x) x)
(define-condition oops (error) ()) (defmacro oops (x) x)
(defstruct st a) (defmacro st (x) x)
(deftype ty () 'integer) (defmacro ty (x) x)
(defmacro early (x) x) (defclass early () ())
(defmacro early2 (x) x) (deftype early2 () 'integer)
(defvar *v* 1) (defmacro *v* (x) x)
(defmacro early3 (x) x) (defstruct early3 a)"))
      (is equal '() (codes-of image text))
      (evaluated image text)
      (is equal '() (codes-of image text))
      ;; A name that is there twice is found all the same.
      (let ((twice (concatenate 'string text " (defmacro point (y) y)")))
        (is equal '("duplicate-definition") (codes-of image twice))))))
