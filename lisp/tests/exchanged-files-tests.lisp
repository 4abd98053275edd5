;;;; Files that were exchanged since they were loaded, for others of the same size and with the same
;;;; time of modification.

(in-package :consort)

(defparameter *exchanged-text* "(in-package :cl-user)
(defun exchanged (x)
  (list x :the-text-that-was-loaded-from-my-file))
")
(defparameter *text-after-exchange* "(in-package :cl-user)
(defun exchanged (x)
  (list x (macrolet ((m () (push 1 *ran*))) (m))))
")

(defun answer-to-point (image owner file text)
  "The answer to a breakpoint of OWNER in the function of *EXCHANGED-TEXT*: its message, or :SET."
  (let ((answer (path (call image "debug-breakpoints" "owner" owner "file" file "text" text "points" (vector (object "id" 1 "line" 3)))
                      "result" "breakpoints" 0)))
    (prog1 (or (path-if-any answer "message") :set)
      (call image "debug-breakpoints" "owner" owner "file" file "text" text "points" #()))))

(defun ways-to-load (file fasl)
  "Codes that load FILE: its text, and what is compiled of it now or was before."
  (list (format nil "(load ~S)" file)
        (format nil "(load (compile-file ~S :output-file ~S))" file fasl)
        (format nil "(load ~S)" fasl)
        (format nil "(with-open-file (in ~S :element-type '(unsigned-byte 8)) (load in))" fasl)))

(deftest a-breakpoint-in-a-file-that-was-exchanged-within-the-second-is-refused
  (let ((file (concatenate 'string *scratch* "exchanged.lisp"))
        (fasl (concatenate 'string *scratch* "exchanged.fasl")))
    (dolist (way (ways-to-load file fasl))
      (write-in-the-same-second "exchanged.lisp" *exchanged-text*)
      ;; As ASDF makes it: in a file of its own. One that is written over has an older time.
      (when (probe-file fasl) (delete-file fasl))
      (with-image (image) (prepare image (format nil "(compile-file ~S :output-file ~S)" file fasl)))
      (with-image (image)
        (prepare image (format nil "(defvar *ran* '()) ~A" way))
        (is-when way eq :set (answer-to-point image "mcp-1" file *exchanged-text*))
        (is-when way eq :set (answer-to-point image "test" file *exchanged-text*))
        (write-in-the-same-second "exchanged.lisp" *text-after-exchange*)
        (dolist (owner '("mcp-1" "test"))
          (ok (text-contains "was changed since" (answer-to-point image owner file *text-after-exchange*))))
        (let ((refused (path (call image "await-call" "session" "mcp-1" "function" "exchanged" "wait" *patience* "timeout" *patience* "within" (vector *scratch*))
                             "error")))
          (is-when way equal "not-recordable" (path refused "kind")))
        (is-when way string= "NIL" (first-value image "*ran*"))
        ;; The text that was loaded is back.
        (write-in-the-same-second "exchanged.lisp" *exchanged-text*)
        (is-when way eq :set (answer-to-point image "mcp-1" file *exchanged-text*))))))

(deftest an-agents-breakpoint-needs-a-text-that-is-known-to-be-the-loaded-one
  (let* ((file (write-in-the-same-second "unknown.lisp" *exchanged-text*))
         (fasl (concatenate 'string *scratch* "unknown.fasl")))
    (with-image (image) (prepare image (format nil "(compile-file ~S :output-file ~S)" file fasl)))
    ;; Written after it was compiled, and before this image was there.
    (write-in-the-same-second "unknown.lisp" *exchanged-text*)
    (with-image (image)
      (prepare image (format nil "(load ~S)" fasl))
      (ok (text-contains "it is not known what was loaded" (answer-to-point image "mcp-1" file *exchanged-text*)))
      (is eq :set (answer-to-point image "test" file *exchanged-text*))
      (prepare image (format nil "(load ~S)" file))
      (is eq :set (answer-to-point image "mcp-1" file *exchanged-text*)))))

(deftest of-a-fasl-whose-source-was-exchanged-while-it-was-compiled-nothing-is-known
  (let* ((file (write-in-the-same-second "exchanged-in-between.lisp" *exchanged-text*))
         (fasl (concatenate 'string *scratch* "exchanged-in-between.fasl")))
    (with-image (image)
      (prepare image (format nil "(compile-file ~S :output-file ~S)
                                  (defvar *before* (consort::state-of-source (consort::native-true-name ~:*~:*~S)))" file fasl))
      (flet ((known (code)
               (first-value image (format nil "(progn ~A (and (gethash (consort::facts-of-fasl (consort::native-true-name ~S)) consort::*compiled-contents*) t))" code fasl))))
        (is string= "T" (known ""))
        ;; A second fasl with the facts of the first.
        (write-in-the-same-second "exchanged-in-between.lisp" *text-after-exchange*)
        (is string= "NIL" (known (format nil "(consort::note-compiled ~S (consort::native-true-name ~S) *before*)" fasl file)))))))

(deftest after-a-load-that-failed-it-is-not-known-what-was-loaded
  (with-image (image)
    (let ((file (write-in-the-same-second "several.lisp" *exchanged-text*)))
      (prepare image (format nil "(load ~S)" file))
      ;; The function stays from the first text.
      (write-in-the-same-second "several.lisp" (format nil "(error \"no\")~%~A" *exchanged-text*))
      (is equal "error" (status-of image (format nil "(load ~S)" file)))
      (write-in-the-same-second "several.lisp" *exchanged-text*)
      (ok (text-contains "it is not known what was loaded" (answer-to-point image "mcp-1" file *exchanged-text*)))
      (prepare image (format nil "(load ~S)" file))
      (is eq :set (answer-to-point image "mcp-1" file *exchanged-text*))
      ;; What is compiled and not loaded is not in the image.
      (write-in-the-same-second "several.lisp" *text-after-exchange*)
      (prepare image (format nil "(defvar *ran* '()) (compile-file ~S :output-file ~S) (setf *ran* '())" file (concatenate 'string *scratch* "several.fasl")))
      (ok (text-contains "was changed since" (answer-to-point image "mcp-1" file *text-after-exchange*)))
      (is string= "NIL" (first-value image "*ran*")))))

(deftest a-text-that-was-exchanged-for-an-instant-is-not-taken-for-the-loaded-one
  (dolist (way '("(load ~S)" "(load (compile-file ~S))"))
    (let* ((swap "(eval-when (:compile-toplevel :load-toplevel :execute)
  (let* ((name (or *compile-file-truename* *load-truename*)) (time (sb-posix:stat-mtime (sb-posix:stat name))))
    (with-open-file (out name :direction :output :if-exists :overwrite) (write-string \"(\" out))
    (sb-posix:utimes name time time)))
")
           (file (write-in-the-same-second "instant.lisp" (concatenate 'string *exchanged-text* swap))))
      ;; A form of the file writes one of its characters again: the text at the end is that at the
      ;; start, and need not be the one that was read.
      (with-image (image)
        (prepare image (format nil way file))
        (ok (text-contains "it is not known what was loaded"
                           (answer-to-point image "mcp-1" file (concatenate 'string *exchanged-text* swap))))
        (is-when way eq :set (answer-to-point image "test" file (concatenate 'string *exchanged-text* swap)))))))

(deftest a-reload-says-that-a-file-was-written-while-it-was-compiled
  (flet ((text (value &optional writes)
           (format nil "(in-package :written)~%(defun value () ~D)~%~@[#.(progn ~A nil)~]~%" value writes)))
    (let ((file (concatenate 'string *scratch* "written/file.lisp"))
          (asd (write-file "written/written.asd" "(defsystem \"written\" :components ((:file \"file\")))")))
      ;; A file of a system, and one of none.
      (loop for request in (list (list "reload-system" "system" "written" "asd_files" (vector asd))
                                 (list "reload-package" "package" "written"))
            do (with-image (image)
                 (write-file "written/file.lisp" (text 1))
                 (prepare image (format nil "(defpackage :written (:use :cl)) (load ~S)" file))
                 (write-file "written/file.lisp"
                             (text 2 (format nil "(with-open-file (out ~S :direction :output :if-exists :supersede) (write-string ~S out))"
                                             file (text 3))))
                 (loop for (told value) in '((t "2") (nil "3"))
                       do (let ((outcome (apply #'outcome-of image request)))
                            (ok (reloaded-p outcome))
                            (is eq told (loop for warning across (path outcome "warnings")
                                                thereis (text-contains (format nil "~A was written while it was compiled" file)
                                                                       (path warning "message"))))
                            (is equal value (first-value image "(written::value)")))))))))
