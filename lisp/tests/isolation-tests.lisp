;;;; Isolation: settings and redefinitions of one session stay its own; other sessions, lookups and
;;;; checks go on as before.

(in-package :consort)

;;; A check, as the host asks for one

(defun call-with-check-directory (function)
  "Calls FUNCTION with the name of a fresh directory below the scratch directory, which is deleted
  afterwards."
  (let ((name (format nil "~Acheck-~36R/" *scratch* (random (expt 36 8) (make-random-state t)))))
    (ensure-directories-exist name)
    (unwind-protect (funcall function name)
      (uiop:delete-directory-tree (uiop:ensure-directory-pathname name) :validate t))))

(defun lines-of-copy (listener)
  "Returns each line, read, that the copy sends which connects to LISTENER."
  (unless (sb-sys:wait-until-fd-usable (sb-bsd-sockets:socket-file-descriptor listener) :input *patience* nil)
    (abort-test "No copy connected in ~D s" *patience*))
  (let* ((socket (sb-bsd-sockets:socket-accept listener))
         (stream (sb-bsd-sockets:socket-make-stream socket :input t :external-format :utf-8 :timeout *patience*)))
    (unwind-protect (loop for line = (read-line stream nil)
                          while line
                          collect (parse-json (sb-ext:string-to-octets line :external-format :utf-8)))
      (close stream))))

(defun answer-or-copy (image id)
  "Waits until request ID is answered or its copy is made. Returns the answer; NIL when there is a
  copy."
  (loop
    (when (events image "copy" :id id)
      (return nil))
    (when (find id (image-answers image) :key (lambda (frame) (field frame "id")) :test #'equal)
      (return (answer image id)))
    (receive image (format nil "the copy of request ~A (~A) or its answer" id (operation-of image id)))))

(defun checked-with (image operation &rest more)
  "Returns the lines of the copy that OPERATION makes of IMAGE, and the code with which it left; the
  answer when it makes none."
  (call-with-check-directory
   (lambda (directory)
     (let ((listener (make-instance 'sb-bsd-sockets:local-socket :type :stream))
           (name (concatenate 'string directory "s")))
       (sb-bsd-sockets:socket-bind listener name)
       (sb-bsd-sockets:socket-listen listener 1)
       (unwind-protect
            (let ((id (apply #'send image operation "socket" name "token" "t" "scratch" directory (append more (list "deadline" *patience*)))))
              (or (answer-or-copy image id)
                  (let ((lines (lines-of-copy listener)))
                    (values lines (path (answer image id) "result" "exit")))))
         (sb-bsd-sockets:socket-close listener))))))

(defun codes-of (image text &rest more)
  "Returns the codes of the findings of a check of TEXT, or the kind of the error that was the
  answer."
  (multiple-value-bind (lines exit) (apply #'checked-with image "check" "text" text more)
    (if (object-p lines)
        (path lines "error" "kind")
        (if (and (eql exit 0) (find-if (lambda (line) (field line "done")) lines))
            (loop for line in lines
                  when (field line "diagnostic") collect (path line "diagnostic" "code"))
            :not-done))))

(defparameter *sound-text* "(defpackage :iso (:use :cl)) (in-package :iso)
(deftype small () '(integer 0 9))
(defun area (r) (* 3.5 r 10 #xA #.(+ 1 2)))
(defmacro twice (x) `(progn ,x ,x))
(defun f () (twice (area 2)) #+sbcl (area 1) #-sbcl (nope))
"
  "A text without a finding.")

(defparameter *unsound-text* (concatenate 'string *sound-text* "(defun g (unused) (nowhere 10))")
  "A text with two.")

(defun everything-works (image code)
  "Checks that sessions, lookups and checks go on as before after CODE was evaluated in the session
  `bad`."
  (macrolet ((works (expected actual) `(is-when (format nil "after ~A" code) equal ,expected ,actual)))
    (works "(1.5 10 ABC \"s\" (A . 10) 10 T)"
           (first-value image "(list 1.5 10 'abc \"s\" (read-from-string \"(a . 10)\") *read-base* (not (not (member :sbcl *features*))))" :session "good"))
    (works "SIMPLE-ERROR" (error-type image "(error \"on purpose ~A\" 10)" :session "good"))
    (works "on purpose 10" (path (evaluated image "(error \"on purpose ~A\" 10)" :session "good") "error" "message"))
    (works (format nil "~%10 X") (path (evaluated image "(print 10) (format t \"~A\" 'x)" :session "good") "stdout" "text"))
    (works "GOOD-FUNCTION" (first-value image "(defun good-function (x) (when x (list x)))" :session "good"))
    (works "(1.5 10 ABC)" (first-value image "(list 1.5 10 'abc)" :session "fresh"))
    (works t (stringp (path (evaluated image "(+ 1 2)" :session "bad") "status")))
    (works "mapcar" (path (call image "symbol" "name" "mapcar" "want" #("facts" "definitions" "elsewhere")) "result" "printed"))
    (works t (not (not (find "MAPCAR" (path (call image "complete" "text" "mapca" "limit" 10) "result" "items")
                             :key (lambda (item) (field item "name")) :test #'equal))))
    (works "function" (path (call image "symbol-kinds" "symbols" (vector (vector :null "CAR"))) "result" "kinds" 0 "operator"))
    (works :true (path (call image "macroexpand-plain" "text" "(when a b)") "result" "answer" "expanded"))
    (works t (integerp (path (call image "status") "result" "pid")))
    (works '() (codes-of image *sound-text*))
    (works '("undefined-function" "unused-variable") (sort (codes-of image *unsound-text*) #'string<))))

(defun breaks-nothing (&rest codes)
  "Checks for each of CODES, in an image of its own, that nothing else breaks."
  (dolist (code codes)
    (with-image (image)
      (evaluated image code :session "bad" :timeout 5) ; one that ends the evaluation itself is as good
      (everything-works image code))))

(deftest everything-works-to-begin-with
  (breaks-nothing "nil"))

(deftest a-session-sets-the-printer
  (breaks-nothing "(setf *print-base* 2 *print-radix* t)" "(setf *print-case* :downcase)" "(setf *print-readably* t)"
                  "(setf *print-length* 1 *print-level* 1 *print-lines* 1)" "(setf *print-escape* nil *print-gensym* nil *print-array* nil)"
                  "(setf *print-right-margin* 1 *print-miser-width* 100)"
                  "(set-pprint-dispatch 'cons (lambda (s x) (declare (ignore x)) (write-string \"broken\" s)) 100)
                   (set-pprint-dispatch 'symbol (lambda (s x) (declare (ignore x)) (error \"no ~A\" s)) 100)"))

(deftest a-session-sets-the-reader
  (breaks-nothing "(setf *read-base* 2)" "(setf *read-default-float-format* 'double-float)" "(setf *read-eval* nil)"
                  "(setf (readtable-case *readtable*) :preserve)"
                  "(set-macro-character #\\1 (lambda (s c) (declare (ignore s c)) (error \"no\")))"
                  "(set-macro-character #\\( (lambda (s c) (declare (ignore s c)) (error \"no\")))"
                  "(set-dispatch-macro-character #\\# #\\+ (lambda (s c n) (declare (ignore s c n)) (error \"no\")))"
                  "(set-syntax-from-char #\\) #\\a)" "(setf *readtable* (copy-readtable nil)) (set-macro-character #\\a (lambda (s c) s c (error \"no\")))"
                  "(setf *read-suppress* t)"))

(deftest a-session-sets-the-evaluator
  (breaks-nothing "(setf *break-on-signals* t)" "(setf *break-on-signals* 'error)"
                  "(setf *macroexpand-hook* (lambda (f form env) (declare (ignore f form env)) (error \"no\")))"
                  "(setf *debugger-hook* (lambda (c h) (declare (ignore h)) (error c)))"
                  "(setf sb-ext:*invoke-debugger-hook* nil *debugger-hook* nil)"
                  "(setf *gensym-counter* -1)" "(setf *random-state* nil)" "(makunbound '*print-base*)" "(makunbound '*gensym-counter*)"
                  "(setf *features* '())" "(setf *features* (remove :sbcl *features*))" "(push 17 *features*)"
                  "(setf sb-ext:*evaluator-mode* :interpret)" "(setf *compile-print* t *compile-verbose* t *load-print* t *load-verbose* t)"
                  "(setf *default-pathname-defaults* #p\"/nowhere/at/all/x.y\")" "(setf sb-ext:*muffled-warnings* t)"
                  "(declaim (optimize (sb-ext:inhibit-warnings 3)))" "(declaim (sb-ext:muffle-conditions warning error))"
                  "(declaim (sb-ext:disable-package-locks car))" "(setf *standard-output* (make-broadcast-stream) *error-output* *standard-output*)"))

(deftest a-thread-sets-the-global-values
  (flet ((global (code) (format nil "(sb-thread:join-thread (sb-thread:make-thread (lambda () ~A)))" code)))
    (apply #'breaks-nothing
           (mapcar #'global '("(setf *print-base* 2 *print-case* :downcase *print-readably* t)" "(setf *read-base* 2 *read-eval* nil)"
                              "(set-macro-character #\\( (lambda (s c) (declare (ignore s c)) (error \"no\")))"
                              "(setf *break-on-signals* t)" "(setf *macroexpand-hook* (lambda (f form env) (declare (ignore f form env)) (error \"no\")))"
                              "(setf *package* (find-package :keyword))" "(setf *features* '())"
                              "(setf *standard-output* (make-broadcast-stream) *error-output* *standard-output*)"
                              "(let ((closed (make-string-output-stream))) (close closed) (setf *standard-output* closed *error-output* closed *trace-output* closed))"
                              "(proclaim '(sb-ext:muffle-conditions warning))"
                              "(setf sb-ext:*invoke-debugger-hook* nil)" "(setf *gensym-counter* -1)" "(setf *random-state* nil)"
                              "(setf *default-pathname-defaults* #p\"/nowhere/at/all/x.y\")" "(setf sb-ext:*evaluator-mode* :interpret)"
                              "(setf sb-alien::*default-c-string-external-format* :utf-16le)")))))

(deftest packages-that-everybody-needs
  (breaks-nothing "(delete-package :cl-user)" "(let ((*package* (find-package :keyword))) (delete-package \"COMMON-LISP-USER\"))"
                  "(rename-package :cl-user :elsewhere)" "(sb-ext:without-package-locks (rename-package :cl :elsewhere))"
                  "(sb-ext:without-package-locks (delete-package :cl))"
                  "(sb-ext:without-package-locks (unintern 'list :cl))" "(sb-ext:without-package-locks (unexport '(list format) :cl))"
                  "(unuse-package :cl :cl-user)" "(unuse-package '(:sb-debug \"COMMON-LISP\"))" "(unuse-package :cl :consort)"
                  "(shadow '(\"LIST\") :cl-user)" "(shadow 'list)" "(shadowing-import (make-symbol \"CAR\") :cl-user)"
                  "(defpackage :cl-user (:use))" "(defpackage :cl-user (:use :cl) (:shadow \"LIST\"))"
                  "(defpackage :mine (:use :cl)) (unuse-package :cl :mine)" "(defpackage :mine (:use :cl)) (shadow '(\"LIST\") :mine)"
                  "(defpackage :mine (:use :cl)) (in-package :mine) (cl:delete-package :mine)"
                  "(defpackage :mine (:use :cl)) (in-package :mine) (rename-package :mine :other)"
                  "(in-package :keyword)" "(make-package :empty :use '()) (in-package :empty)")
  (with-image (image)
    (let ((outcome (evaluated image "(delete-package :cl-user)")))
      (is equal "error" (path outcome "status"))
      (ok (text-contains "every session" (path outcome "error" "message"))))))

(deftest methods-of-print-object
  (breaks-nothing "(defmethod print-object ((x t) stream) (declare (ignore stream)) (error \"no\"))"
                  "(defmethod print-object :around ((x t) stream) (write-string \"broken\" stream))"
                  "(sb-ext:without-package-locks (defmethod print-object ((x condition) stream) (write-string \"broken\" stream)))"
                  "(defmethod print-object ((x error) stream) (declare (ignore stream)) (error \"no\"))"
                  "(defmethod print-object :around ((x warning) stream) (declare (ignore stream)) (loop))"
                  "(defmethod print-object :around ((x symbol) stream) (declare (ignore stream)) (error \"no\"))"
                  "(defmethod print-object ((x list) stream) (write-string \"broken\" stream))"
                  "(defmethod print-object :around ((x integer) stream) (declare (ignore stream)) (loop))"
                  "(defmethod print-object :before ((x string) stream) (write-string \"broken\" stream))"
                  "(defmethod print-object :around ((x sequence) stream) (declare (ignore stream)) (error \"no\"))"
                  "(sb-ext:without-package-locks (remove-method #'print-object (find-method #'print-object '() (list (find-class 'condition) t))))"))

(deftest methods-of-the-systems-functions
  (breaks-nothing "(defmethod initialize-instance :around ((x t) &key) (error \"no\"))"
                  "(defmethod initialize-instance :after ((x standard-object) &key) (error \"no\"))"
                  "(defmethod shared-initialize :before ((x t) slots &key) (declare (ignore slots)) (error \"no\"))"
                  "(defmethod make-instance :around ((x t) &rest arguments) (declare (ignore arguments)) (loop))"
                  "(defmethod make-instance :around ((x symbol) &rest arguments) (declare (ignore arguments)) nil)"
                  "(defmethod allocate-instance :around ((x class) &key) (error \"no\"))"
                  "(defmethod sb-gray:stream-write-string :around ((s t) string &optional a b) (declare (ignore string a b)) (error \"no\"))"
                  "(defmethod sb-gray:stream-write-char :around ((s t) char) (declare (ignore char)) (error \"no\"))"
                  "(defmethod make-load-form :around ((x t) &optional environment) (declare (ignore environment)) (error \"no\"))")
  (with-image (image)
    (evaluated image "(defclass mine () ((a :initarg :a)))
                      (defmethod initialize-instance :after ((x mine) &key) (setf (slot-value x 'a) 2))
                      (defmethod documentation ((x t) (type (eql 'nothing))) \"words\")")
    (let ((outcome (evaluated image "(defmethod make-instance :around ((x t) &rest all) all)")))
      (ok (text-contains "methods on MAKE-INSTANCE for T were taken back" (path outcome "warnings" (1- (length (path outcome "warnings"))) "message"))))
    (is equal "(2 \"words\")" (first-value image "(list (slot-value (make-instance 'mine :a 1) 'a) (documentation 3 'nothing))"))))

(deftest methods-without-which-no-method-is-removed
  (with-image (image)
    (dolist (code '("(defmethod sb-mop:compute-discriminating-function :around ((gf t)) (error \"no\"))"
                    "(defmethod sb-mop:compute-effective-method :around ((gf standard-generic-function) combination methods) (error \"no\"))"
                    "(defmethod method-qualifiers :around ((m t)) (error \"no\"))"
                    "(defmethod class-name :before ((c t)) (error \"no\"))"
                    "(defmethod (setf sb-mop:generic-function-methods) :around (new (gf t)) (error \"no\"))"))
      (let ((outcome (evaluated image code :session "bad")))
        (is-when code equal "error" (path outcome "status"))
        (ok (text-contains "every session's generic functions" (path outcome "error" "message")))))
    (everything-works image "methods of the protocol")
    ;; One for a class of the user's.
    (is equal "1" (first-value image "(defclass mine (standard-generic-function) () (:metaclass sb-mop:funcallable-standard-class))
                                      (defmethod sb-mop:compute-discriminating-function :around ((gf mine)) (call-next-method))
                                      (defgeneric own (x) (:generic-function-class mine) (:method ((x integer)) x))
                                      (own 1)"))))

(deftest classes-of-the-standard
  (breaks-nothing "(sb-ext:without-package-locks (setf (find-class 'error) nil))" "(sb-ext:without-package-locks (setf (find-class 'hash-table) nil))"
                  "(sb-ext:without-package-locks (setf (find-class 'standard-object) (find-class 'cons)))"
                  "(sb-ext:without-package-locks (define-condition error () ()))"))

#+linux
(deftest the-signal-mask-of-a-thread
  (breaks-nothing "(let ((all (make-array 16 :element-type '(unsigned-byte 64) :initial-element (1- (ash 1 64)))))
                     (sb-sys:with-pinned-objects (all)
                       (sb-alien:alien-funcall
                        (sb-alien:extern-alien \"pthread_sigmask\" (function sb-alien:int sb-alien:int sb-sys:system-area-pointer sb-alien:unsigned-long))
                        0 (sb-sys:vector-sap all) 0)))")
  (with-image (image)
    (evaluated image "(sb-alien:alien-funcall (sb-alien:extern-alien \"pthread_sigmask\" (function sb-alien:int sb-alien:int sb-sys:system-area-pointer sb-alien:unsigned-long))
                        0 (sb-sys:vector-sap (make-array 16 :element-type '(unsigned-byte 64) :initial-element (1- (ash 1 64)))) 0)")
    (is equal "NIL" (first-value image "(sb-ext:gc)" :session "other"))))

(deftest the-handlers-of-signals
  (breaks-nothing "(sb-sys:enable-interrupt sb-posix:sigchld :ignore)" "(sb-sys:enable-interrupt sb-posix:sigchld :default)"
                  "(sb-sys:enable-interrupt sb-posix:sigalrm :ignore)" "(sb-sys:enable-interrupt sb-posix:sigpipe :default)"
                  ;; Waits for any child, as servers do that fork.
                  "(sb-thread:make-thread (lambda ()
                                            (sb-posix:waitpid (sb-ext:process-pid (sb-ext:run-program \"/bin/sleep\" '(\"600\") :wait nil)) sb-posix:wnohang)
                                            (loop (sb-posix:waitpid -1 0))))")
  (with-image (image)
    (evaluated image "(sb-sys:enable-interrupt sb-posix:sigalrm :ignore)")
    (is equal '("out-of-time") (codes-of image "(eval-when (:compile-toplevel) (loop))" "deadline" 1)))
  ;; The signal by which SBCL interrupts threads.
  (with-image (image)
    (evaluated image "(sb-sys:enable-interrupt sb-unix:sigurg :ignore)" :session "bad")
    (is equal "TIMEOUT" (error-type image "(loop)" :session "good" :timeout 0.1))
    (is equal "3" (first-value image "(+ 1 2)" :session "good"))))

(deftest the-state-of-the-process
  (breaks-nothing "(sb-posix:umask #o777)" "(sb-posix:chdir \"/\")"
                  "(let ((directory (sb-posix:mkdtemp (format nil \"~A/gone-XXXXXX\" (sb-posix:getenv \"TMPDIR\")))))
                     (sb-posix:chdir directory)
                     (sb-posix:rmdir directory))"))

(deftest operators-of-the-standard
  (breaks-nothing "(sb-ext:unlock-package :cl) (defun cl:format (&rest arguments) arguments)"
                  "(sb-ext:without-package-locks (defun cl:princ-to-string (x) x) (defun cl:find-package (x) x nil))"
                  "(sb-ext:without-package-locks (setf (fdefinition 'cl:intern) #'list (fdefinition 'cl:equal) (constantly nil)))"
                  "(sb-ext:without-package-locks (defmacro cl:when (&rest x) x nil))"
                  ;; Again, after it was given back.
                  "(sb-ext:without-package-locks (defmacro cl:when (&rest x) x nil))"
                  ;; One that is called through an encapsulation.
                  "(progn (trace cl:length) (sb-ext:without-package-locks (defun cl:length (x) x 0)) (untrace))"
                  "(sb-ext:without-package-locks (fmakunbound 'cl:prin1))"
                  "(sb-ext:without-package-locks (defun cl:compile-file (&rest x) x) (defun cl:read (&rest x) x nil))")
  (with-image (image)
    (let ((outcome (evaluated image "(sb-ext:without-package-locks (defun cl:ed (&rest x) x))")))
      (ok (text-contains "redefinition of ED was taken back" (path outcome "warnings" (1- (length (path outcome "warnings"))) "message"))))))

(deftest encapsulations-of-the-systems-functions
  (flet ((failing (name) (format nil "(sb-int:encapsulate '~A 'bad (lambda (&rest all) (declare (ignore all)) (error \"no\")))" name)))
    (apply #'breaks-nothing
           "(dolist (name '(sb-thread:release-mutex sb-thread:wait-on-semaphore sb-thread:signal-semaphore))
              (sb-int:encapsulate name 'bad (lambda (&rest all) (declare (ignore all)) (error \"no\"))))"
           ;; By what the reader and the compiler call, which is the user's too.
           (format nil "#.~A" (failing "read"))
           (format nil "(macrolet ((m () ~A nil)) (m))" (failing "find-package"))
           "(trace read :report (error \"no\"))" "(sb-int:encapsulate 'equal 'bad (lambda (&rest all) (declare (ignore all)) (loop)))"
           (mapcar #'failing '("read" "read-from-string" "prin1" "format" "princ-to-string" "write-string" "eval" "compile" "find-package" "intern" "error"
                               "sb-impl::output-object" "sb-c:compile-in-lexenv" "sb-impl::%simple-eval" "macroexpand-1" "sb-thread:make-thread")))
    ;; In the session itself the next evaluation works too, and can take it back.
    (with-image (image)
      (let ((outcome (evaluated image (failing "read"))))
        (ok (text-contains "encapsulation of READ" (path outcome "warnings" 0 "message"))))
      (evaluated image (failing "prin1"))
      (evaluated image (failing "sb-impl::output-object"))
      (is equal "(1 A)" (first-value image "(list 1 'a)"))
      (is equal "SIMPLE-ERROR" (error-type image "(prin1-to-string (read-from-string \"1\"))"))
      (is equal "1" (first-value image "(read-from-string \"1\")" :session "other"))
      (evaluated image "(sb-int:unencapsulate 'read 'bad)")
      (is equal "1" (first-value image "(read-from-string \"1\")")))
    ;; One of the user's own functions, one that a file makes, and a trace hold everywhere.
    (with-image (image)
      (let ((file (write-file "encapsulates.lisp" "(sb-int:encapsulate 'string-trim 'loaded (lambda (f &rest all) (list :loaded (apply f all))))")))
        (prepare image (format nil "(defun mine () 1) (sb-int:encapsulate 'mine 'm (lambda (f) (1+ (funcall f)))) (load ~S)" file))
        (prepare image "(trace string-left-trim)")
        (is equal "(2 (:LOADED \"a\"))" (first-value image "(list (mine) (string-trim \" \" \" a\"))" :session "other"))
        (ok (text-contains "STRING-LEFT-TRIM" (path (evaluated image "(string-left-trim \" \" \" a\")" :session "other") "stderr" "text")))))))

#+linux
(deftest what-the-users-code-has-called-in-any-thread
  ;; Handlers of signals, timers and hooks of collections that fail or never end.
  (dolist (fault '("(error \"no\")" "(loop)" "(sb-thread:abort-thread)"))
    (flet ((with-fault (control) (format nil control fault)))
      (breaks-nothing
       (with-fault "(progn (sb-sys:enable-interrupt sb-posix:sigusr1 (lambda (signal info context) (declare (ignore signal info context)) ~A))
                           (sb-posix:kill (sb-posix:getpid) sb-posix:sigusr1))")
       (with-fault "(progn (sb-ext:schedule-timer (sb-ext:make-timer (lambda () ~A) :thread nil) 0.01) (sleep 0.1))")
       (with-fault "(sb-ext:schedule-timer (sb-ext:make-timer (lambda () ~A)) 0.05)")
       (with-fault "(progn (push (lambda () ~A) sb-ext:*after-gc-hooks*) (sb-thread:join-thread (sb-thread:make-thread #'sb-ext:gc) :default nil :timeout 1))"))))
  (with-image (image)
    (prepare image "(defvar *came* nil)
                    (sb-sys:enable-interrupt sb-posix:sigusr1 (lambda (signal info context) (declare (ignore context))
                                                                (push (list signal (sb-sys:sap-ref-32 info 0) (sb-thread:main-thread-p)) *came*)))
                    (sb-posix:kill (sb-posix:getpid) sb-posix:sigusr1)")
    (ok (eventually (equal "((10 10 NIL))" (first-value image "*came*"))))
    (prepare image "(sb-sys:enable-interrupt sb-posix:sigusr1 (lambda (&rest all) (declare (ignore all)) (error \"in a handler\")))
                    (sb-posix:kill (sb-posix:getpid) sb-posix:sigusr1)")
    (is equal "in a handler" (path (await-event image "thread-error") "message"))
    (prepare image "(sb-sys:enable-interrupt sb-posix:sigusr1 (lambda (&rest all) (declare (ignore all)) (setf *came* :again)))
                    (sb-posix:kill (sb-posix:getpid) sb-posix:sigusr1)")
    (ok (eventually (equal ":AGAIN" (first-value image "*came*"))))))

#+linux
(deftest signals-that-nobody-sends-to-end-the-image
  (with-image (image)
    (let ((pid (path (call image "status") "result" "pid")))
      ;; SIGHUP SIGUSR1 SIGALRM SIGSTKFLT SIGXFSZ SIGVTALRM SIGIO SIGPWR, the first and the last
      ;; without a name, and SIGUSR2, by which SBCL stops its threads.
      (dolist (signal '(1 10 14 16 25 26 29 30 34 64 #+x86-64 12))
        (sb-posix:kill pid signal)
        (is-when signal equal "3" (first-value image "(+ 1 2)"))
        (is-when signal eql pid (path (call image "status") "result" "pid"))))
    (is equal ":COLLECTED" (first-value image "(progn (sb-ext:gc :full t) :collected)"))
    ;; A program's own handler is called.
    (prepare image "(defvar *came* nil)
                    (sb-sys:enable-interrupt sb-posix:sigvtalrm (lambda (signal info context) (declare (ignore info context)) (setf *came* signal)))
                    (sb-posix:kill (sb-posix:getpid) sb-posix:sigvtalrm)")
    (ok (eventually (equal "26" (first-value image "*came*"))))))

#+linux
(deftest handlers-that-end-their-thread
  ;; SIGUSR1 is waited for, SIGWINCH put off: a further one finds a thread each time.
  (with-image (image)
    (prepare image "(defvar *came* 0)")
    (let ((count 0))
      (dolist (signal '("sb-posix:sigusr1" "sb-posix:sigwinch"))
        (prepare image (format nil "(sb-sys:enable-interrupt ~A (lambda (&rest all) (declare (ignore all)) (incf *came*) (sb-thread:abort-thread)))" signal))
        (loop repeat 3
              do (incf count)
                 (prepare image (format nil "(sb-posix:kill (sb-posix:getpid) ~A)" signal))
                 (ok (eventually (equal (prin1-to-string count) (first-value image "*came*")))))))
    ;; Ended by other code while they wait.
    (prepare image "(dolist (thread (remove \"handlers\" (sb-thread:list-all-threads) :key #'sb-thread:thread-name :test-not #'equal))
                      (sb-thread:terminate-thread thread)
                      (sb-thread:join-thread thread :default nil))")
    (prepare image "(sb-posix:kill (sb-posix:getpid) sb-posix:sigusr1)")
    (ok (eventually (equal "7" (first-value image "*came*"))))))

#+linux
(deftest programs-have-the-signals-of-a-plain-sbcl
  (let* ((code "(with-output-to-string (out) (sb-ext:run-program \"/bin/grep\" '(\"-E\" \"Sig(Blk|Ign)\" \"/proc/self/status\") :output out))")
         (plain (with-output-to-string (out)
                  (sb-ext:run-program *sbcl* (list "--noinform" "--no-sysinit" "--no-userinit" "--disable-debugger" "--eval" (format nil "(prin1 ~A)" code) "--quit")
                                      :output out))))
    (with-image (image)
      (is equal plain (first-value image code))
      (prepare image "(dolist (signal '(10 28 34)) (sb-sys:enable-interrupt signal (lambda (&rest all) (declare (ignore all)))))")
      (is equal plain (first-value image code)))))

(deftest what-a-session-sets-stays-in-it
  (with-image (image)
    (evaluated image "(setf *print-base* 2 *read-base* 8 *print-case* :downcase) (push :mine *features*)
                      (set-macro-character #\\! (lambda (s c) (declare (ignore s c)) :bang)) (setf *break-on-signals* 'arithmetic-error)")
    (is equal "(:bang a 1000 arithmetic-error :mine)" (first-value image "(list ! 'a 10 *break-on-signals* (find :mine *features*))"))
    (is equal "(A 10 NIL NIL)" (first-value image "(list 'a 10 *break-on-signals* (find :mine *features*))" :session "other"))
    (evaluated image "(setf *break-on-signals* t)")
    (evaluated image "(setf *break-on-signals* nil)")
    (is equal "11" (first-value image "(+ 1 2)"))
    (is equal '() (codes-of image (concatenate 'string *sound-text* "#+mine (nowhere) (defun h () 'a)")))))

(deftest what-is-loaded-is-known-everywhere
  (let ((file (concatenate 'string *scratch* "pushes.lisp")))
    (with-open-file (out file :direction :output :if-exists :supersede)
      (format out "(pushnew :pushed-by-load *features*) (set-macro-character #\\! (lambda (s c) (declare (ignore s c)) :bang))
                   (setf *read-default-float-format* 'double-float)"))
    (with-image (image)
      (is equal "NIL" (first-value image "(find :pushed-by-load *features*)" :session "before"))
      (evaluated image (format nil "(load ~S)" file))
      (dolist (session '("s" "before" "after"))
        (is equal ":PUSHED-BY-LOAD" (first-value image "(find :pushed-by-load *features*)" :session session)))
      (is equal '("undefined-function") (codes-of image "#+pushed-by-load (defun k () (nowhere))")))
    ;; An init file: as in a plain REPL that has read it.
    (with-image (image)
      (call image "load-file" "path" file)
      (is equal "(:BANG 1.5)" (first-value image "(list ! 1.5d0)"))
      (is equal "(DOUBLE-FLOAT (SIMPLE-ARRAY T (*)))" (first-value image "(list (type-of 1.5) (second (list 1 '(simple-array t (*)))))"))
      (is equal '() (codes-of image "(in-package :cl-user) (defun k () (declare (optimize speed)) (the double-float 1.5))")))))

(deftest features-that-are-published-while-settings-are-made
  ;; None is lost to the session whose settings these are.
  (with-image (image)
    (prepare image "(defun publish (feature) (let ((*features* (cons feature *features*))) (consort::publish-features (rest *features*))))")
    (is string= "(:MEANWHILE)"
        (first-value image "(progn (sb-int:encapsulate 'consort::user-package 'publishing (lambda (package)
                                                                                            (sb-int:unencapsulate 'consort::user-package 'publishing)
                                                                                            (publish :meanwhile)
                                                                                            (funcall package)))
                              (let ((settings (consort::copy-of-settings)))
                                (consort::refresh-settings settings)
                                (intersection '(:meanwhile) (consort::setting settings '*features*))))"))
    (is string= "(:FIRST :SECOND)"
        (first-value image "(let ((settings (consort::copy-of-settings)))
                              (publish :first)
                              (sb-int:encapsulate 'consort::setting 'publishing (lambda (setting of symbol)
                                                                                  (when (and (eq of settings) (eq symbol '*features*))
                                                                                    (sb-int:unencapsulate 'consort::setting 'publishing)
                                                                                    (publish :second))
                                                                                  (funcall setting of symbol)))
                              (consort::refresh-settings settings)
                              (consort::refresh-settings settings)
                              (sort (intersection '(:first :second) (consort::setting settings '*features*)) #'string<))"))))
