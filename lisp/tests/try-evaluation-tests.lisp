;;;; An evaluation that is tried in a copy first: which parts of the image it would have changed,
;;;; and what was refused. Nothing of it is kept.

(in-package :consort)

(defparameter *here-already* "
(defpackage :shop (:use :cl)) (in-package :shop)
(defvar *prices* (make-hash-table :test 'equal)) (setf (gethash \"tea\" *prices*) 3)
(defstruct item (name \"tea\") (weight 1.5d0)) (defvar *item* (make-item))
(defclass cart () ((items :initform '() :accessor items))) (defvar *cart* (make-instance 'cart))
(defvar *buffer* (make-array 4 :element-type '(unsigned-byte 8) :initial-element 0))
(defvar *count* 0) (let ((hidden 0)) (defun hidden () hidden) (defun hide (x) (setf hidden x)))
(defun total () (loop for price being the hash-values of *prices* sum price))
(in-package :cl-user)")

(defun tried-in-copy (image code &rest params)
  "The result of CODE tried in a copy of IMAGE, in the package SHOP."
  (let ((lines (apply #'checked-with image "eval-in-copy" "work" "try-evaluation" "code" code "session" "main" "package" "SHOP" "confine" :true
                      (append params '("timeout" 60)))))
    (field (find-if (lambda (line) (field line "answer")) lines) "answer")))

(deftest tried-first
  (with-image (image)
    (prepare image *here-already*)
    ;; One copy for several that neither fail nor change anything.
    (dolist (code '("(let ((fresh-name 1)) (list fresh-name :fresh-keyword 'fresh-symbol))"
                    "(progn (+ 1 2) (total) (length (apropos-list \"TOTAL\"))
                            (mapcar (lambda (x) (* x 1.5d0)) '(1 2)) (documentation 'car 'function) (gethash \"tea\" *prices*) (items *cart*)
                            (print (item-weight *item*)) (with-output-to-string (s) (describe 'total s))
                            (macroexpand '(when a b)) (setf * 7) (random 10) (with-open-file (s \"/etc/passwd\") (read-line s) t))"
                    "(car 1)" "(error \"told\")"))
      (let ((tried (tried-in-copy image code)))
        (is-when code equalp '(:true #() #()) (list (field tried "compared") (field tried "changed") (field tried "refusals")))
        (is-when code equal (if (or (search "(car 1)" code) (search "told" code)) "error" "ok") (field tried "status"))))
    (loop for (code part) in '(("(defun made () 1)" "functions") ("(defparameter *made* 1)" "variables") ("(incf *count*)" "variables")
                               ("(setf (gethash \"tea\" *prices*) 4)" "variables") ("(setf (item-weight *item*) 2.5d0)" "variables")
                               ("(push 1 (items *cart*))" "variables") ("(setf (aref *buffer* 1) 1)" "variables")
                               ("(defclass made () ())" "classes") ("(defmethod items ((x integer)) x)" "methods")
                               ("(intern \"MADE-NOW\")" "symbols") ("(push :made *features*)" "session")
                               ("(setf *print-base* 2)" "session") ("(set-macro-character #\\! (lambda (s c) s c nil))" "session")
                               ("(setf (get 'total 'made) t)" "properties") ("(defpackage :made)" "packages") ("(fmakunbound 'total)" "functions")
                               ("(declaim (inline total))" "compiler") ("(trace total)" "process")
                               ("(sb-posix:setenv \"MADE\" \"1\" 1)" "process") ("(sb-posix:chdir \"/\")" "process"))
          do (let ((tried (tried-in-copy image code)))
               (is-when code equal :true (field tried "compared"))
               (is-when code equal t (and (find part (field tried "changed") :test #'string=) t))))
    ;; Also refusals that the code handles itself.
    (dolist (code '("(ignore-errors (open \"/tmp/made\" :direction :output))" "(sb-ext:run-program \"/bin/true\" '())"
                    "(handler-case (sb-posix:kill (sb-posix:getppid) 0) (error () nil))"))
      (is-when code equal t (plusp (length (field (tried-in-copy image code) "refusals")))))
    ;; A file that our own look at a value's definition may not read is no refusal of the code's.
    (let ((file (write-file "home/.ssh/hidden.lisp" "(defclass hidden-class () ()) (defvar *hidden* (make-instance 'hidden-class))")))
      (evaluated image (format nil "(load ~S)" file))
      (let ((tried (tried-in-copy image "(inspect cl-user::*hidden*)")))
        (is equalp #() (field tried "refusals"))
        (ok (text-contains "defined: class" (path tried "stdout" "text"))))
      (delete-file file))
    (is equal "timeout" (field (tried-in-copy image "(loop)" "timeout" 1) "status"))
    (is equal "(0 3)" (first-value image "(list shop::*count* (gethash \"tea\" shop::*prices*))"))))

(deftest the-alarm-of-a-copy-that-comes-when-the-code-has-ended
  (with-image (image)
    (prepare image "(sb-int:encapsulate 'consort::call-with-alarm 'late (lambda (call seconds alarm function) (declare (ignore call seconds))
                                                                          (prog1 (funcall function) (funcall alarm))))")
    (is string= "(\"ok\" NIL)"
        (first-value image "(let ((outcome (consort::outcome-in-copy (consort::object \"session\" \"s\" \"timeout\" 5) 'consort::settings-of-session
                                                                     (lambda (evaluation timeout) (consort::evaluate evaluation \"1\" :deadline timeout)))))
                              (list (consort::field outcome \"status\") (consort::field outcome \"error\")))"))))

(defun answer-of-copy (image work &rest params)
  "The answer of a confined copy of IMAGE that does WORK, in CL-USER."
  (let ((lines (apply #'checked-with image "eval-in-copy" "work" work "session" "main" "package" "COMMON-LISP-USER" "confine" :true params)))
    (field (find-if (lambda (line) (field line "answer")) lines) "answer")))

(deftest a-refusal-is-named-as-the-cause-of-its-error-alone
  (with-image (image)
    (loop for (code named) in '(("(open \"/tmp/made\" :direction :output)" t)
                                ("(handler-case (open \"/tmp/made\" :direction :output) (error (c) (error \"Not saved: ~A\" c)))" t)
                                ("(progn (let ((*debugger-hook* (lambda (c h) (declare (ignore c h)) (throw :out nil))))
                                            (catch :out (open \"/tmp/made\" :direction :output)))
                                          (error \"another\"))" nil))
          do (let ((message (path (answer-of-copy image "evaluate" "code" code "timeout" 60) "error" "message")))
               (is-when code equal named (text-contains "which is confined" message))))))

(deftest comparisons-of-expansions
  (with-image (image)
    (prepare image "(defmacro endless () (loop))")
    (flet ((compared (code variant seconds)
             (answer-of-copy image "compare-expansions" "code" code "old" "a" "new" "b" "variants" (vector variant) "timeout" seconds)))
      (is eq :true (path (compared "(let ((a 1)) (setq a 2))" "(let ((b 1)) (setq b 2))" 60) "variants" 0 "same"))
      (is eq :false (path (compared "(let ((a 1) c) (setq a 2))" "(let ((b 1) c) (setq b 2 c 3))" 60) "variants" 0 "same"))
      (is equal "TIMEOUT" (path (compared "(endless)" "(endless)" 1) "error" "type"))
      (is equal "TIMEOUT" (path (compared "(list 1)" "(endless)" 1) "error" "type")))))
