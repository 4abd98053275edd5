;;;; Breakpoints and recordings in files whose octets are not their characters, and whose packages
;;;; are selected in odd ways.

(in-package :consort)

(defun write-encoded-file (name text format)
  "Writes a file of the scratch directory as FORMAT; returns its path."
  (let ((path (concatenate 'string *scratch* name)))
    (with-open-file (out path :direction :output :if-exists :supersede :element-type '(unsigned-byte 8))
      (write-sequence (sb-ext:string-to-octets text :external-format format) out))
    path))

(defun with-returns (text)
  "TEXT with lines that end as those of Windows do."
  (with-output-to-string (out)
    (loop for char across text
          do (when (char= char #\Newline) (write-char #\Return out))
             (write-char char out))))

(defparameter *text-behind-umlauts* (format nil "(in-package :cl-user)
(defvar *first* ~S)
(defun behind (x)
  (list x))
(defgeneric behind-too (x))
(defmethod behind-too ((x integer))
  (list x x))
" (map 'string #'code-char '(246 246 246 8364 128512 128512))))

(defun loads-of (file format)
  "Codes that load FILE, which has the external FORMAT, from its text and compiled."
  (list (format nil "(load ~S :external-format ~S)" file format)
        (format nil "(load (compile-file ~S :external-format ~S :output-file ~S))" file format (concatenate 'string file ".fasl"))))

(deftest breakpoints-behind-text-that-is-not-ascii
  (with-image (image)
    (loop for (name text format) in (list (list "utf-8.lisp" *text-behind-umlauts* :utf-8)
                                          (list "crlf.lisp" (with-returns *text-behind-umlauts*) :utf-8)
                                          (list "latin-1.lisp" (remove-if (lambda (char) (> (char-code char) 255)) *text-behind-umlauts*) :latin-1))
          for file = (write-encoded-file name text format)
          do (dolist (code (loads-of file format))
               (prepare image code)
               (let ((answers (points-set image file text '("(list x)") '("(list x x)"))))
                 (is-when code equal '(nil nil) (map 'list (lambda (answer) (path-if-any answer "message")) answers))
                 (is-when code equal '("(list x)" "(list x x)") (map 'list (lambda (answer) (span-text answer text)) answers)))
               (multiple-value-bind (stop id) (stopped-at image "(behind 1)")
                 (is equal "(list x)" (span-text (path (frames-of image stop) 0 "place") text))
                 (is string= "(1)" (went-on image stop id)))
               (points-set image file text)
               (is-when code eq :true
                        (path (call image "debug-function-breakpoints" "owner" "test" "points" (vector (object "id" 1 "name" "cl-user::behind")))
                              "result" "breakpoints" 0 "verified"))
               (call image "debug-function-breakpoints" "owner" "test" "points" #())))))

(deftest recordings-behind-text-that-is-not-ascii
  (with-image (image)
    (let ((file (write-encoded-file "recorded-utf-8.lisp" *text-behind-umlauts* :utf-8)))
      (dolist (code (loads-of file :utf-8))
        (prepare image code)
        (with-recording (link answer image "code" "(behind 1)")
          (is-when code equalp #("BEHIND") (path answer "definitions"))
          (is equal '("=> (1)") (rows-of (ask-recording link "values" "text" "(list x)"))))))))

(deftest places-behind-text-that-is-not-ascii
  (with-image (image)
    (let* ((text (concatenate 'string *text-behind-umlauts* "(defun fails-behind (x)
  (list (error \"no ~A\" x)))
"))
           (file (write-encoded-file "places-utf-8.lisp" text :utf-8)))
      (prepare image (first (loads-of file :utf-8)))
      ;; SBCL's place is the end of the form before.
      (is = (1- (search "(defun behind" text))
          (path (find "function" (path (call image "symbol" "name" "behind" "package" "CL-USER") "result" "definitions")
                      :key (lambda (definition) (path definition "kind")) :test #'string=)
                "offset"))
      (is equal "(error \"no ~A\" x)"
          (let ((stop (stopped-at image "(fails-behind 1)")))
            (span-text (path (find "FAILS-BEHIND" (frames-of image stop) :key (lambda (frame) (path frame "name")) :test #'text-contains) "place") text))))))

(defparameter *packages-selected*
  '("(in-package \"SEL1\")" "(in-package #:sel2)" "#+sbcl (in-package :sel3)" "(in-package #| c |# :sel4)" "(cl:in-package :sel5)"
    "(eval-when (:compile-toplevel :load-toplevel :execute)
  (in-package :sel6))" "(progn (defvar *n* 1) (in-package |SEL7|))" "(in-package cl-user::sel8)" "#| c |# (in-package :|sel9|) ; c"
    "(in-package
   ; c
   sel10)" "#-sbcl (in-package :no-such)" "'(in-package :no-such)")
  "Forms that select a package, each its own but for the last two.")

(deftest breakpoints-in-packages-that-are-selected-in-odd-ways
  (with-image (image)
    (let* ((packages '("SEL1" "SEL2" "SEL3" "SEL4" "SEL5" "SEL6" "SEL7" "SEL8" "sel9" "SEL10" "SEL10" "SEL10"))
           (text (format nil "~{(cl:defpackage ~S (:use :cl))~%~}~{~A~%~}"
                         (remove-duplicates packages :test #'string=)
                         (loop for form in *packages-selected* for number from 1
                               append (list form (format nil "(defun odd~D (x)~%  (list x ~:*~D))" number)))))
           (file (write-file "odd-packages.lisp" text)))
      (prepare image (format nil "(load ~S)" file))
      (is equal packages
          (loop for answer across (apply #'points-set image file text (loop for number from 1 to (length packages) collect (list (format nil "(list x ~D)" number))))
                for number from 1
                for package in packages
                collect (if (eq :true (path answer "verified")) package (path answer "message"))))
      (multiple-value-bind (stop id) (stopped-at image "(sel8::odd8 1)")
        (is string= "#<PACKAGE \"SEL8\">" (in-frame image stop 0 "*package*"))
        (is string= "(1 8)" (went-on image stop id))))))

(deftest no-breakpoints-in-functions-of-the-system
  (with-image (image)
    (ok (text-contains "of SBCL itself"
                       (path (call image "debug-function-breakpoints" "owner" "test" "points" (vector (object "id" 1 "name" "print")))
                             "result" "breakpoints" 0 "message")))))

(deftest messages-of-a-reload-behind-text-that-is-not-ascii
  (with-image (image)
    (let ((file (write-encoded-file "reloaded-utf-8.lisp" "(defpackage :hru (:use :cl)) (in-package :hru) (defun f () 1)" :utf-8)))
      (prepare image (format nil "(load ~S)" file))
      (write-encoded-file "reloaded-utf-8.lisp"
                          (format nil "(defpackage :hru (:use :cl)) (in-package :hru)~%(defvar *first* \"~A\")~%(defun f () (+ nowhere 1))~%~%(defun g () 1)~%~%"
                                  (make-string 40 :initial-element (code-char 246)))
                          :utf-8)
      (is equal (list file 3 1)
          (let ((outcome (outcome-of image "reload-package" "package" "hru")))
            (list (path outcome "failure" "file") (path outcome "failure" "line") (path outcome "failure" "column")))))))

(deftest packages-that-a-reloaded-text-enters-by-a-macro
  (with-image (image)
    (prepare image "(defpackage :pa (:use :cl)) (defpackage :pb (:use :cl)) (defmacro enter (name) `(in-package ,name))")
    (ok (reloaded-p (compile-string image "(in-package :cl-user)
(enter :pa)
(defun in-pa () 'here)
(progn (cl-user::enter :pb))
(defun in-pb () 'here)
(eval-when (:compile-toplevel :load-toplevel :execute) (setf *package* (find-package :cl-user)))
(defun in-user () 'here)")))
    (is equal "(PA::HERE PB::HERE HERE)" (first-value image "(list (pa::in-pa) (pb::in-pb) (in-user))"))))
