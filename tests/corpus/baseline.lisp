;;;; Plain SBCL and ASDF on one system, for `make corpus`: what the compiler says of each file, as
;;;; lines of JSON.
;;;;
;;;;   CORPUS_SYSTEM=NAME CORPUS_OUTPUT=FILE sbcl --noinform --no-sysinit --no-userinit \
;;;;     --non-interactive --load tests/corpus/baseline.lisp
;;;;
;;;; The systems that SYSTEM depends on are loaded first; then it is compiled with :FORCE. A line is
;;;; a condition (file, form, severity, message, package), a file (file, forms: the bytes at which
;;;; its top-level forms begin), or the time.

(require :asdf)

(defpackage :consort-corpus (:use :cl))
(in-package :consort-corpus)

(defvar *out*)
(defvar *recording* 0 "Internal time units that recording took, which compiling alone would not take.")
(defvar *measuring* nil "Whether it is the system itself that is compiled, and not those it depends on.")
(defvar *summarizing* nil "Whether the compiler tells of undefined names, which are taken from its own list.")

(defun write-json (value)
  (etypecase value
    (string (write-char #\" *out*)
            (loop for c across value
                  do (cond ((find c "\"\\") (format *out* "\\~C" c))
                           ((or (< (char-code c) 32) (< 126 (char-code c)))
                            (let ((code (char-code c)))
                              (if (< code #x10000)
                                  (format *out* "\\u~4,'0X" code)
                                  (multiple-value-bind (high low) (floor (- code #x10000) #x400)
                                    (format *out* "\\u~4,'0X\\u~4,'0X" (+ #xD800 high) (+ #xDC00 low))))))
                           (t (write-char c *out*))))
            (write-char #\" *out*))
    (real (format *out* "~A" value))
    (null (format *out* "null"))
    (list (format *out* "[")
     (loop for (item . more) on value do (write-json item) (when more (format *out* ",")))
     (format *out* "]"))))

(defun line (&rest keys-and-values)
  (format *out* "{")
  (loop for (key value . more) on keys-and-values by #'cddr
        do (format *out* "\"~A\":" key) (write-json value) (when more (format *out* ",")))
  (format *out* "}~%"))

(defmacro without-counting (&body body)
  `(let ((start (get-internal-real-time)))
     (unwind-protect (progn ,@body)
       (incf *recording* (- (get-internal-real-time) start)))))

(defun words (condition)
  (handler-case
      (let ((*print-pretty* t) (*print-right-margin* 100000) (*print-length* 10) (*print-level* 5) (*print-lines* nil)
            (*print-circle* nil) (*print-readably* nil) (sb-int:*print-condition-references* nil))
        (princ-to-string condition))
    (error () "cannot be printed")))

(defun form-of (context)
  "The number of the top-level form that the compiler is at."
  (let ((path (and context (sb-c::compiler-error-context-original-source-path context))))
    (or (and path (car (last path)))
        (let ((info (and (boundp 'sb-c::*source-info*) sb-c::*source-info*)))
          (and info (1- (fill-pointer (sb-c::file-info-forms (sb-c::source-info-file-info info)))))))))

(defun context-now ()
  (ignore-errors (sb-c::find-error-context nil)))

(defun file-of (context)
  "The name of the file that the compiler is at. At the end of a compilation unit only CONTEXT has it."
  (let ((file (or *compile-file-truename*
                  (and context (ignore-errors (truename (sb-c::compiler-error-context-file-name context)))))))
    (and file (sb-ext:native-namestring file))))

(defun record (severity condition)
  (when *measuring*
    (without-counting
      (let* ((context (if *summarizing* (and (boundp 'sb-c::*compiler-error-context*) sb-c::*compiler-error-context*) (context-now)))
             (file (file-of (and (typep context 'sb-c::compiler-error-context) context)))
             (words (words condition)))
        (unless (or (null file) (and *summarizing* (or (eql 0 (search "undefined " words)) (search "is undefined, and its name is reserved" words))))
          (line "file" file "form" (form-of context) "severity" severity "message" words "package" (package-name *package*)))))))

(defun observe (condition)
  (typecase condition
    (sb-c:compiler-error (record "error" (sb-int:encapsulated-condition condition)))
    (sb-c::input-error-in-compile-file (record "error" condition))
    (sb-ext:compiler-note (record "note" condition))
    (style-warning (when (find-restart 'muffle-warning condition) (record "style-warning" condition)))
    (warning (when (find-restart 'muffle-warning condition) (record "warning" condition)))))

(defun tell-undefined ()
  (dolist (undefined sb-c::*undefined-warnings*)
    (dolist (context (sb-c::undefined-warning-warnings undefined))
      (let ((file (sb-c::compiler-error-context-file-name context)))
        (line "file" (or (ignore-errors (sb-ext:native-namestring (truename file))) "")
              "form" (form-of context) "severity" "warning" "package" ""
              "message" (let ((*package* (find-package :keyword)))
                          (format nil "Undefined ~(~A~): ~S" (sb-c::undefined-warning-kind undefined)
                                  (sb-c::undefined-warning-name undefined))))))))

(setf sb-c::*undefined-warning-limit* nil)

(sb-int:encapsulate 'sb-c::summarize-compilation-unit 'consort-corpus
                    (lambda (original &rest arguments)
                      (when *measuring* (without-counting (tell-undefined)))
                      (let ((*summarizing* t)) (apply original arguments))))

(sb-int:encapsulate 'sb-c::sub-compile-file 'consort-corpus
                    (lambda (original info &rest arguments)
                      (multiple-value-prog1 (apply original info arguments)
                        (when *measuring*
                          (without-counting
                            (let ((file (sb-c::source-info-file-info info)))
                              (line "file" (sb-ext:native-namestring (truename (sb-c::file-info-pathname file)))
                                    "forms" (coerce (sb-c::file-info-positions file) 'list))))))))

(defun dependencies (system)
  (loop for spec in (append (asdf:system-defsystem-depends-on system) (asdf:system-depends-on system))
        for dependency = (asdf/find-component:resolve-dependency-spec system spec)
        when dependency collect dependency))

(defun parts (system)
  "SYSTEM and the systems of its definition that it depends on."
  (let ((seen '()))
    (labels ((walk (system)
               (unless (member system seen)
                 (push system seen)
                 (dolist (dependency (dependencies system))
                   (when (string= (asdf:primary-system-name dependency) (asdf:primary-system-name (first (last seen))))
                     (walk dependency))))))
      (walk system))
    seen))

(defun load-dependencies (system)
  "Load all that SYSTEM depends on but for its own parts."
  (let ((parts (parts system)))
    (handler-bind ((warning #'muffle-warning))
      (dolist (part parts)
        (dolist (dependency (dependencies part))
          (unless (member dependency parts) (asdf:load-system dependency)))))))

(defun silently (function)
  (let* ((nowhere (make-broadcast-stream)) (*standard-output* nowhere) (*error-output* nowhere) (*trace-output* nowhere))
    (funcall function)))

(defconstant +small+ 2 "Seconds: what takes less is compiled three times.")

(defun compile-timed (system)
  "Compile SYSTEM; the seconds that it took, and those of the processor, without those of recording."
  (setf *recording* 0)
  (let ((start (get-internal-real-time)) (processor (get-internal-run-time)))
    (handler-bind ((condition #'observe))
      (asdf:compile-system system :force (mapcar #'asdf:component-name (parts system))))
    (flet ((seconds (units) (/ (round units (/ internal-time-units-per-second 1000)) 1000.0)))
      (list (seconds (- (get-internal-real-time) start *recording*))
            (seconds (- (get-internal-run-time) processor *recording*))))))

(defun compile-and-tell (name)
  (let* ((*package* (find-package "COMMON-LISP-USER"))
         (system (asdf:find-system name)))
    (load-dependencies system)
    (setf *measuring* t)
    (let ((times (list (compile-timed system))))
      (setf *measuring* nil)
      ;; Small ones again, and the least counts: all else that the machine does only adds.
      (when (< (second (first times)) +small+)
        (loop repeat 2
              do (let ((again (handler-case (compile-timed system) (error () nil))))
                   (when again (push again times)))))
      (line "seconds" (reduce #'min times :key #'first)
            "processor" (reduce #'min times :key #'second)))))

(with-open-file (*out* (sb-ext:posix-getenv "CORPUS_OUTPUT") :direction :output :if-exists :supersede :external-format :utf-8)
  (handler-case (silently (lambda () (compile-and-tell (sb-ext:posix-getenv "CORPUS_SYSTEM"))))
    (error (condition) (line "failed" (words condition)))))
