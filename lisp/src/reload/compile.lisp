;;;; Compiles all of a text before any of it is loaded.

(in-package :consort)

(define-condition reload-failed (error)
  ((kind :initarg :kind :reader failure-kind)
   (message :initarg :message :reader failure-message)
   (file :initarg :file :initform nil :reader failure-file)
   (line :initarg :line :initform nil :reader failure-line)
   (column :initarg :column :initform nil :reader failure-column)
   (unreadable :initarg :unreadable :initform nil :reader failure-unreadable))
  (:documentation "Signalled when a reload does not take place. KIND is `data.type` of the
  contract's error object. UNREADABLE is true if the text cannot be read, so that it cannot be
  loaded anyway.")
  (:report (lambda (condition stream) (write-string (failure-message condition) stream))))

(defvar *load-anyway* nil
  "True if forms that do not compile are loaded nevertheless. They signal an error when they run.
  Bound by each reload.")
(defvar *passed-over* '() "The failures of such forms, newest first.")

(defun failure-text (failure)
  "The message of FAILURE after its place."
  (format nil "~@[~A:~]~@[~D:~]~@[~D:~]~:[~; ~]~A" (failure-file failure) (failure-line failure) (failure-column failure)
          (or (failure-file failure) (failure-line failure)) (failure-message failure)))

(defun fail-unless-anyway (failure)
  "Signals FAILURE, a RELOAD-FAILED, unless the failed form is loaded nevertheless."
  (if *load-anyway*
      (pushnew failure *passed-over* :key #'failure-text :test #'string=)
      (error failure)))

(defun fail-reload (kind control &rest arguments)
  (error 'reload-failed :kind kind :message (with-terse-printing () (apply #'format nil control arguments))))

;;; The text, form by form. It is split without reading it, so that nothing is interned before it is
;;; known that all of it can be compiled.

(defun split-forms (text)
  "The pieces of TEXT, a list of (START . END). Each is one top-level form with the block comments
  before it. If the text cannot be read to its end, the last piece is its rest."
  (let ((in (make-string-input-stream text)) (pieces '()))
    (handler-case
        (let ((*read-suppress* t))
          (loop
            (let ((start (skip-blanks text (file-position in))))
              (file-position in start)
              (when (eq (read in nil in) in) (return))
              (push (cons start (file-position in)) pieces))))
      (error () ; the compiler reports the error
        (let ((start (if pieces (cdr (first pieces)) 0)))
          (push (cons (skip-blanks text start) (length text)) pieces))))
    (nreverse pieces)))

(defun blanks-like (text)
  "TEXT with all characters except line ends replaced by blanks, so that text after it keeps its
  place."
  (substitute-if #\Space (lambda (char) (char/= char #\Newline)) text))

(defun file-head (pathname line)
  "Returns blanks in the shape of the text of the file before LINE. If the file has fewer lines or
  cannot be read, as many empty lines."
  (let ((offset (and pathname (line-offset pathname line))))
    (if offset
        (with-open-file (in pathname :external-format '(:utf-8 :replacement #\?))
          (let* ((head (make-string offset)) (count (read-sequence head in)))
            (blanks-like (subseq head 0 count))))
        (make-string (1- line) :initial-element #\Newline))))

;;; Messages of the compiler

(defvar *complaint* nil "The first message of the compiler that makes the compilation fail: a list
  of the condition, the file's name, the line and the column.")

(defvar *compiling* nil "True if this thread compiles for a reload.")

(defun place-in-file (file octets)
  "A list of the line and column, 1-based, of the first text in FILE after that many OCTETS, or
  NIL."
  (ignore-errors
   (multiple-value-bind (text format) (file-text file)
     (let* ((at (min (skip-blanks text (octet-index text format octets)) (length text)))
            (break (position #\Newline text :end at :from-end t)))
       (list (1+ (count #\Newline text :end at)) (- at (or break -1)))))))

(defun place-of-form ()
  "A list of the line and column, 1-based, in the file being compiled, of the top-level form that is
  compiled now, or NIL."
  (ignore-errors
   (let ((positions (file-info-positions (source-info-file current-source-info))))
     (place-in-file *compile-file-truename* (aref positions (1- (length positions)))))))

(defun note-complaint (condition)
  (when (and *compile-file-truename* (null *complaint*)
             (typep condition '(or (and warning (not style-warning)) reader-error end-of-file)))
    (setf *complaint* (list* condition (sb-ext:native-namestring *compile-file-truename*) (place-of-form)))))

(defun note-compiler-error (condition)
  "Like NOTE-COMPLAINT, for what the compiler itself reports as an error: in a macro, in a special
  form, or while reading."
  (when (and *compiling* *compile-file-truename* (null *complaint*))
    (setf *complaint* (list* condition (sb-ext:native-namestring *compile-file-truename*) (place-of-form)))))

(observe-compiler-errors 'note-compiler-error)

(defvar *load-again* nil "True if the file that is being loaded changed a structure.")

(defun call-loading (load)
  "Calls LOAD, which loads one file. Calls it twice if it changes a structure, because the code that
  was loaded before SBCL took the new layout has the old one."
  (let ((*load-again* nil))
    (funcall load)
    (when *load-again*
      (funcall load))))

;;; Libraries have methods on LOAD-OP, COMPILE-OP and CL-SOURCE-FILE. For example, asdf-flv, which
;;; Debian's FiveAM loads, has the first two. Methods of Consort's on the same classes would be
;;; replaced by theirs.

(defmethod asdf:perform :around ((operation asdf/lisp-action:basic-load-op) (component asdf:cl-source-file))
  (check-allowed (asdf:component-pathname component))
  (if *compiling*
      (call-loading (lambda () (call-next-method)))
      (call-next-method)))

(defmethod asdf:perform :around ((operation asdf/lisp-action:basic-compile-op) (component asdf:cl-source-file))
  (let ((pathname (asdf:component-pathname component)))
    (check-allowed pathname)
    (call-recording-content pathname (lambda () (call-next-method)))))

(defun settle-reload (condition)
  "Lets a definition replace an old one that it cannot coexist with: a structure of another layout,
  or a constant of another value. Invokes CONTINUE for CONDITION, if it is about such a definition."
  (when (or (typep condition 'sb-ext:defconstant-uneql)
            (find "RECKLESSLY-CONTINUE" (compute-restarts condition) :key #'restart-name :test #'string=))
    (let ((restart (find-restart 'continue condition)))
      (when restart
        (unless (typep condition 'sb-ext:defconstant-uneql)
          (setf *load-again* t))
        (invoke-restart restart)))))

(defun muffle-redefinition (warning)
  "Muffles WARNING if it is about a redefinition or a changed layout, since the report contains
  these. Warnings about packages are kept in *VARIANCES*."
  (when (typep warning package-variance-type)
    (pushnew (format nil "package ~A" (substitute #\Space #\Newline (condition-message warning))) *variances* :test #'string=))
  (when (and (find-restart 'muffle-warning warning)
             (or (typep warning redefinition-warning-type)
                 (typep warning package-variance-type)
                 (and (typep warning 'simple-condition)
                      (let ((words (condition-message warning))) (some (lambda (stale) (search stale words)) *stale-words*)))))
    (muffle-warning warning)))

(defun call-compiling (function)
  "Calls FUNCTION, which compiles and loads. Warnings about redefinitions are muffled, since the
  report contains these."
  (let ((*complaint* nil) (*compiling* t))
    (handler-bind ((warning #'muffle-redefinition)
                   (error #'settle-reload)
                   (condition #'note-complaint))
      (with-compilation-unit ()
        (prog1 (call-replacing-in-place function)
          (loop for (name file offset) in (undefined-variable-uses)
                do (fail-undefined name (and file (sb-ext:native-namestring file)) (and file offset (place-in-file file offset)))))))))

(defun fail-undefined (name file place)
  (let ((message (format nil "Undefined variable: ~A" (with-terse-printing () (prin1-to-string name)))))
    ;; A variable that was passed over is found again at the end of the reload.
    (unless (find message *passed-over* :key #'failure-message :test #'string=)
      (fail-unless-anyway
       (make-condition 'reload-failed :kind "COMPILATION_ERROR" :message message
                                      :file file :line (first place) :column (second place))))))

(defun fail-compilation (file &optional (say "it could not be compiled") unreadable)
  "Signals that the compilation failed. FILE is the origin of the text, if that is not the file that
  was compiled. UNREADABLE is true if the text is known to be unreadable."
  (destructuring-bind (&optional condition compiled line column) *complaint*
    (fail-unless-anyway
     (make-condition 'reload-failed :kind "COMPILATION_ERROR"
                                    :message (cond ((typep condition 'condition)
                                                    (condition-message (or (and (typep condition compiler-error-type)
                                                                                (ignore-errors (encapsulated-condition condition)))
                                                                           condition)))
                                                   (condition (princ-to-string condition))
                                                   (t say))
                                    :file (or file compiled) :line line :column column
                                    :unreadable (or unreadable (typep condition '(or reader-error end-of-file)))))))

(defun scratch-template ()
  "Returns the template of scratch directories, for mkdtemp. They are in a directory that is removed
  with the host, even if this image is killed."
  (concatenate 'string (or *work-directory* (string-right-trim "/" (sb-ext:native-namestring (uiop:temporary-directory)))) "/consort-XXXXXX"))

(defun call-with-scratch-directory (function)
  "Calls FUNCTION with the name of a directory that is deleted afterwards."
  (let ((directory (concatenate 'string (sb-posix:mkdtemp (scratch-template)) "/")))
    (unwind-protect (funcall function directory)
      (uiop:delete-directory-tree (sb-ext:parse-native-namestring directory) :validate t :if-does-not-exist :ignore))))

(defun package-after (text package)
  "The package that is current after the form TEXT, which was compiled in PACKAGE."
  (let ((*package* package))
    (handler-case (package-after-form (let ((*read-eval* nil)) (read-from-string text)) package)
      (error () package))))

(defun package-after-form (form package)
  "The package that is current after the top-level FORM, which was compiled in PACKAGE, as far as it
  is known without the compiler. The forms that are top-level forms within it count; the expansions
  of macros do not."
  (flet ((after-all (forms)
           (dolist (each forms package) (setf package (package-after-form each package)))))
    (case (and (consp form) (first form))
      (in-package (find-package-named (string (second form))))
      ((progn locally) (after-all (rest form)))
      (eval-when (if (intersection '(:compile-toplevel compile) (second form)) (after-all (cddr form)) package))
      (t package))))

(defun mark-end (head text)
  "HEAD, blanks, with an atom at its end, so that for the compiler, TEXT, the form after it, begins
  where the form before it ends. A blank stays between the two if they would otherwise be one symbol
  (`0#+sbcl`)."
  (let ((end (- (length head) (if (find (char text 0) "(\"'`,;") 1 2))))
    (if (minusp end)
        head
        (substitute #\0 #\Space head :test (constantly t) :start end :end (1+ end)))))

(defun place-after (head)
  "A list of the line and column, 1-based, of the place after HEAD."
  (list (1+ (count #\Newline head)) (- (length head) (or (position #\Newline head :from-end t) -1))))

(defvar *missing-variables* '() "The undefined variables that the forms of a text use, each with its
  first use: lists of name, file, line and column.")

(defun note-missing-variable (file place)
  (loop for (name) in (undefined-variable-uses)
        unless (assoc name *missing-variables*)
          do (push (list* name file place) *missing-variables*)))

(defun check-missing-variables ()
  "Fails if the text uses a variable that it does not define either."
  (loop for (name) in (undefined-variable-uses)
        for use = (assoc name *missing-variables*)
        do (fail-undefined name (second use) (cddr use))))

(defconstant +evaluated-source-length+ 200000 "The maximum number of characters of an evaluated or
  compiled form whose text is kept.")

(defun compile-piece (text head number directory file package)
  "Compiles TEXT, which comes after HEAD, a string of blanks, in PACKAGE. Returns two values: the
  fasl, and the package that is current after TEXT."
  (let* ((source (format nil "~A~D.lisp" directory number))
         (after nil)
         (*note-package* (lambda (package) (setf after package)))
         (*package* package)
         (*complaint* nil))
    (with-open-file (out source :direction :output :external-format :utf-8)
      (write-string (mark-end head text) out)
      (write-string text out)
      (terpri out))
    (multiple-value-bind (fasl warnings failed)
        (with-compilation-unit (:source-namestring (or file "")
                                :source-plist (when file
                                                (list :consort-file file :consort-position (length head)
                                                      :consort-text (and (<= (length text) +evaluated-source-length+) (without-end-blanks text)))))
          (let ((*error-output* (make-broadcast-stream)))
            (compile-file source :external-format :utf-8 :verbose nil :print nil)))
      (declare (ignore warnings))
      (when (or failed (null fasl))
        (let ((*complaint* (and *complaint* (list* (first *complaint*) nil (place-after head))))
              (*load-anyway* (and fasl *load-anyway*)))
          (fail-compilation file "it could not be compiled" (null fasl))))
      (note-missing-variable file (place-after head))
      (values fasl (or after (package-after text package))))))

(defun compile-forms-of-text (text directory package file line)
  "Compiles the forms of TEXT, the first of which is in FILE, a name or NIL, at LINE. Returns a list
  of (FASL PACKAGE FILE FORM), where FORM is the text. Nothing is loaded, but compile-time side
  effects of the forms take place."
  (let ((before (file-head (and file (sb-ext:parse-native-namestring file)) line)) (number 0) (*missing-variables* '()))
    (prog1 (loop for (start . end) in (split-forms text)
                 for piece = (subseq text start end)
                 for head = (concatenate 'string before (blanks-like (subseq text 0 start)))
                 collect (multiple-value-bind (fasl after) (compile-piece piece head (incf number) directory file package)
                           (list fasl (shiftf package after) file piece)))
      (check-missing-variables))))

(defun call-compiling-as (how function)
  "Calls FUNCTION, which compiles and loads a text as HOW, the parameters of `compile-string`,
  specifies."
  (setf *load-anyway* (param how "anyway" 'boolean :default nil)) ; also at the end of the reload
  (if (param how "debug" 'boolean :default nil)
      (with-compilation-unit (:policy '(optimize (debug 3)))
        (funcall function))
      (funcall function)))

(declaim (ftype function call-replacing-form))
(defun load-fasls (fasls)
  "Loads FASLS, which are from COMPILE-FORMS-OF-TEXT."
  (loop for (fasl package file form) in fasls
        do (let ((*package* package) (fasl fasl))
             (call-replacing-form file (without-end-blanks form) (lambda () (call-loading (lambda () (load fasl))))))))
