;;;; Hot reload: `compile-string`, `compile-texts`, `replace-function`, `load-fasl`,
;;;; `reload-package`, `reload-system`, `undo-reload`. Each first compiles and then changes
;;;; definitions. If it fails, its changes are undone. The changes are reported, and can be undone
;;;; later.

(in-package :consort)

(define-global *reload-lock* (sb-thread:make-mutex :name "consort reload")
  "Held by a reload, so that there is only one at a time.")

(defun failure-object (failure)
  (object "type" (failure-kind failure)
          "message" (failure-message failure)
          "file" (or-null (let ((file (failure-file failure))) (and file (string/= file "") file)))
          "line" (or-null (failure-line failure))
          "column" (or-null (failure-column failure))
          "unreadable" (bool (failure-unreadable failure))))

(defun call-reload (id what work)
  "Calls WORK, which compiles and loads, and returns the names of the files that it loaded as whole
  files. Returns the JSON of ReloadOutcome. WHAT describes the work in a few words."
  (let ((report nil) (failure nil) (notes '()) (recorded nil))
    (flet ((compare (before &optional (call #'call-without-probes))
             ;; Breakpoints may have been set meanwhile, also in definitions that are not reloaded.
             (let ((after (funcall call #'take-snapshot)))
               (multiple-value-call #'values after (compare-snapshots before after)))))
      (multiple-value-bind (how outcome)
          (evaluate-alone
           id
           (lambda ()
             (sb-thread:with-mutex (*reload-lock*)
               (let ((before (call-without-probes #'take-snapshot)) (times (operation-times)) (done nil)
                     (*variances* '()) (*load-anyway* nil) (*passed-over* '()))
                 (unwind-protect
                      (handler-case
                          (let ((files (call-compiling work)))
                            (multiple-value-bind (after changes symbol-differences generic-differences package-differences) (compare before)
                              (setf report (report-of what files before after changes symbol-differences))
                              (when (or symbol-differences generic-differences package-differences)
                                (setf recorded t)
                                (remember-reload (make-reload what symbol-differences generic-differences package-differences
                                                              (times-without files times)))))
                            (setf done t))
                        (reload-failed (condition)
                          (setf failure condition)))
                   (unless done
                     (without-interrupts
                       (multiple-value-bind (after changes symbol-differences generic-differences package-differences)
                           (compare before #'call-without-probes-in-time)
                         (declare (ignore after changes))
                         (setf notes (undo-differences symbol-differences generic-differences package-differences times))))))
                 (values)))))
        (append outcome
                (list "reloaded" (bool (and (eq how :ok) report))
                      "report" (or-null report)
                      "failure" (if failure (failure-object failure) :null)
                      "recorded" (bool recorded)
                      "not_undone" (coerce notes 'vector)
                      "undoable" (length *reloads*)))))))

(defun reload-package-param (params)
  (let ((name (param params "package" 'string :default nil)))
    (if name (find-package-named name) (user-package))))

(define-operation "compile-string" :thread (id params)
  (let ((code (param params "code" 'string))
        (package (reload-package-param params))
        (file (param params "file" 'string :default nil))
        (line (param params "line" '(integer 1) :default 1)))
    (call-reload id (format nil "code~@[ of ~A~]" file)
                 (lambda ()
                   (call-compiling-as
                    params
                    (lambda ()
                      (call-with-scratch-directory
                       (lambda (directory)
                         (load-fasls (compile-forms-of-text code directory package file line))))))
                   '()))))

;;; Several texts, as one reload

(define-operation "compile-texts" :thread (id params)
  ;; Each text is loaded before the next is compiled, because a later text may need definitions of
  ;; an earlier one.
  (let ((texts (map 'list
                    (lambda (text)
                      (list (param text "code" 'string)
                            (reload-package-param text)
                            (param text "file" 'string :default nil)
                            (param text "line" '(integer 1) :default 1)))
                    (param params "texts" 'vector))))
    (call-reload id (param params "what" 'string)
                 (lambda ()
                   (loop for (code package file line) in texts
                         do (call-with-scratch-directory
                             (lambda (directory)
                               (load-fasls (compile-forms-of-text code directory package file line)))))
                   '()))))

;;; Replacing a function

(defun parse-symbol (token package)
  "The symbol that TOKEN names if read in PACKAGE. Nothing is interned."
  (let* ((colon (position #\: token)) (last (and colon (position #\: token :from-end t)))
         (home (cond ((null colon) package) ((zerop colon) (find-package "KEYWORD")) (t (find-package-named (subseq token 0 colon)))))
         (name (if last (subseq token (1+ last)) token)))
    (if (and (> (length name) 1) (char= (char name 0) #\|) (char= (char name (1- (length name))) #\|))
        (find-symbol (subseq name 1 (1- (length name))) home)
        (or (find-symbol (string-upcase name) home)))))

(defun split-token (text start)
  "Two values: the token or list of TEXT at START, and its end."
  (let ((start (skip-blanks text start)))
    (if (and (< start (length text)) (char= (char text start) #\())
        (let ((end (position #\) text :start start)))
          (values (subseq text start (if end (1+ end) (length text))) (or end (length text))))
        (let ((end (or (position-if (lambda (char) (find char '(#\Space #\Newline #\Tab #\Return #\Page #\( #\) #\; #\"))) text :start start)
                       (length text))))
          (values (subseq text start end) end)))))

(defun parse-function-name (text package)
  "The function name in TEXT: a symbol or (SETF symbol). NIL if there is no such symbol."
  (let ((text (string-left-trim " '#" (string-trim '(#\Space #\Newline #\Tab #\') text)))) ; COUNT# is a name
    (if (and (plusp (length text)) (char= (char text 0) #\())
        (multiple-value-bind (head end) (split-token text 1)
          (let ((symbol (parse-symbol (split-token (substitute #\Space #\) text) end) package)))
            (and (string-equal head "setf") symbol `(setf ,symbol))))
        (parse-symbol text package))))

(defun definers-of (function)
  "Two values: the operators of definitions that may replace the definition of FUNCTION, and a
  description of its kind."
  (cond ((and (symbolp function) (macro-function function)) (values '(defmacro) "a macro"))
        ((typep (fdefinition function) 'generic-function) (values '(defgeneric defmethod) "a generic function"))
        (t (values '(defun) "a function"))))

(defun check-replaceable (name function code package)
  "Refuses to replace FUNCTION, which is called NAME, by CODE, unless CODE is a single definition of
  the same kind. Returns the defining operator."
  (let ((pieces (split-forms code)))
    (unless (and pieces (null (rest pieces)))
      (refuse "wrong-definition" "new_code must be exactly one definition, of ~A; it has ~D forms. code_compile_string takes any number." name (length pieces)))
    (unless (and function (fboundp function))
      (refuse "function-not-found" "There is no function ~A to replace. code_compile_string defines new ones." name))
    (when (or (special-operator-p (if (consp function) 'car function)) (typep (if (consp function) 'car function) '(or keyword null)))
      (refuse "not-replaceable" "~A is a special operator and cannot be replaced" name))
    (multiple-value-bind (head end) (split-token code (1+ (car (first pieces))))
      (multiple-value-bind (definers word) (definers-of function)
        (let ((definer (parse-symbol head package))
              (defined (parse-function-name (split-token code end) package)))
          (unless (member definer definers)
            (refuse "wrong-definition" "~A is ~A: new_code must be its ~{~A~^ or one ~}, not ~:[something else~;~:*~A~]. To make it something else, unbind it by ~
                                        evaluating (fmakunbound '~A); code_compile_string defines it then"
                    name word definers head name))
          (unless (equal defined function)
            (refuse "wrong-definition" "new_code must define ~A, not ~A" name (split-token code end)))
          definer)))))

;;; Methods of a generic function

(defun read-definition (code package)
  "The form of CODE, which was compiled in PACKAGE."
  (let ((*package* package)) (read-from-string code)))

(defun literal-value (form)
  "The value of FORM, if it is known without an evaluation. Second value: true if it is known."
  (cond ((consp form)
         (if (and (eq (first form) 'quote) (consp (rest form))) (values (second form) t) (values nil nil)))
        ((symbolp form) (if (constantp form) (values (symbol-value form) t) (values nil nil)))
        (t (values form t))))

(defun parameter-specializer (parameter &key (evaluate t))
  "Returns the specializer of a required PARAMETER of a DEFMETHOD; NIL for a class that does not
  exist, and for a specializer that is unknown. Without EVALUATE, the object of an EQL specializer
  is known only if it is written as a literal."
  (let ((specializer (if (consp parameter) (second parameter) t)))
    (cond ((typep specializer 'sb-mop:specializer) specializer)
          ((symbolp specializer) (find-class specializer nil))
          ((and (consp specializer) (eq (first specializer) 'eql))
           (multiple-value-bind (object known) (literal-value (second specializer))
             (cond (known (sb-mop:intern-eql-specializer object))
                   (evaluate (sb-mop:intern-eql-specializer (eval (second specializer))))))))))

(defun method-parts (form)
  "Three values: the qualifiers, the lambda list and the required parameters of the DEFMETHOD FORM."
  (let* ((rest (cddr form)) (at (position-if #'listp rest)) (lambda-list (nth at rest)))
    (values (subseq rest 0 at) lambda-list
            (ldiff lambda-list (member-if (lambda (parameter) (member parameter lambda-list-keywords)) lambda-list)))))

(defun check-method (function form)
  "Fails unless the method that the DEFMETHOD FORM defines exists in FUNCTION, a generic function."
  (multiple-value-bind (qualifiers lambda-list required) (method-parts form)
    (let ((name (definition-name-text (sb-mop:generic-function-name function))))
      (unless (congruent-p lambda-list (sb-mop:generic-function-lambda-list function))
        (fail-reload "WRONG_DEFINITION" "The lambda list ~S does not fit that of the generic function ~A, ~S; nothing was changed"
                     (mapcar (lambda (parameter) (if (member parameter required) (if (consp parameter) (first parameter) parameter) parameter)) lambda-list)
                     name (sb-mop:generic-function-lambda-list function)))
      (let ((specializers (mapcar #'parameter-specializer required)))
        (unless (and (notany #'null specializers) (find-method function qualifiers specializers nil))
          (let ((methods (mapcar (lambda (method) (definition-name-text (method-name function method))) (sb-mop:generic-function-methods function))))
            (fail-reload "METHOD_NOT_FOUND" "There is no method ~A to replace~:[~; (there are ~:*~{~A~^, ~}~:[~;, ...~])~]. code_compile_string defines new ones."
                         (definition-name-text `(,(sb-mop:generic-function-name function) ,@qualifiers
                                                 ,(mapcar (lambda (parameter) (if (consp parameter) (second parameter) t)) required)))
                         (subseq methods 0 (min 20 (length methods))) (> (length methods) 20))))))))

(defun check-generic (function form)
  "Fails unless the DEFGENERIC FORM can keep the methods of FUNCTION, a generic function."
  (unless (or (null (sb-mop:generic-function-methods function))
              (congruent-p (third form) (sb-mop:generic-function-lambda-list function)))
    (let ((name (definition-name-text (sb-mop:generic-function-name function))))
      (fail-reload "WRONG_DEFINITION" "The methods of ~A take ~S and cannot be kept with ~S; nothing was changed. Unbind it by evaluating (fmakunbound '~A), and define ~
                                       it and its methods with code_compile_string"
                   name (sb-mop:generic-function-lambda-list function) (third form) name))))

(define-operation "replace-function" :thread (id params)
  (let* ((name (param params "function" 'string))
         (code (param params "code" 'string))
         (file (param params "file" 'string :default nil))
         (line (param params "line" '(integer 1) :default 1))
         (home (reload-package-param params))
         (function (parse-function-name name home))
         ;; If the caller gives no package, the code is read in the function's home package.
         (package (if (param params "package" 'string :default nil)
                      home
                      (or (and function (symbol-package (if (consp function) (second function) function))) home)))
         (package (if (system-package-p package) home package))
         (definer (check-replaceable name function code package)))
    (call-reload id (format nil "~:[the function~;a method of~] ~A" (eq definer 'defmethod) (definition-name-text function))
                 (lambda ()
                   (call-with-scratch-directory
                    (lambda (directory)
                      (let ((fasls (compile-forms-of-text code directory package file line)))
                        (case definer
                          (defmethod (check-method (fdefinition function) (read-definition code package)))
                          (defgeneric (check-generic (fdefinition function) (read-definition code package))))
                        (load-fasls fasls))))
                   '()))))

;;; Files

(defun fasl-p (path)
  "Returns true if the file at PATH is a fasl, by its first line, or by the second line if it is a
  script."
  (with-open-file (in path :external-format :latin-1)
    (let* ((head (make-string 300)) (count (read-sequence head in)))
      (or (eql 0 (search "# FASL" head :end2 count))
          (and (eql 0 (search "#!" head :end2 count))
               (eql (search "# FASL" head :end2 count) (1+ (or (position #\Newline head :end count) count))))))))

(defun stream-octets (in)
  "All octets of the binary file stream IN. IN is then at its start again."
  (let ((octets (make-array (file-length in) :element-type '(unsigned-byte 8))))
    (read-sequence octets in)
    (file-position in 0)
    octets))

(defun call-with-fasl (pathname work)
  "Calls WORK with a binary stream of the file."
  (with-open-file (in pathname :element-type '(unsigned-byte 8))
    (funcall work in)))

(define-operation "load-fasl" :thread (id params)
  (let* ((path (param params "path" 'string)) (pathname (sb-ext:parse-native-namestring path)) (digest (param params "digest" 'string :default nil)))
    (unless (probe-file pathname)
      (refuse "file-not-found" "File ~A not found" path))
    (unless (ignore-errors (fasl-p pathname))
      (refuse "not-a-fasl" "~A is no compiled file of SBCL" path))
    ;; The file is read before the request waits for its turn, and compared then: other code may run
    ;; meanwhile and replace the file that was allowed.
    (let ((asked (call-with-fasl pathname #'stream-octets)))
      (call-reload id (format nil "the file ~A" path)
                   (lambda ()
                     (call-with-fasl
                      pathname
                      (lambda (in)
                        (unless (if digest (equal (digest-of-octets (stream-octets in)) digest) (equalp (stream-octets in) asked))
                          (fail-reload "FILE_CHANGED" "~A is not the file that was to be loaded: it was changed since. Nothing was loaded. Load it again" path))
                        (call-loading (lambda ()
                                        (file-position in 0)
                                        (load in)))))
                     '())))))

(define-operation "reload-sources" :interruptible (id params)
  ;; This is requested before a person is asked, so nothing is loaded, and no code of the user's
  ;; runs.
  (let ((package (param params "package" 'string :default nil))
        (system (let ((name (param params "system" 'string :default nil))) (and name (string-downcase name))))
        (asd-files (map 'list #'sb-ext:parse-native-namestring (param params "asd_files" 'vector :default #()))))
    (object "loaded" (bool (and system (nothing-to-load-p system asd-files)))
            "files" (coerce (if package
                                (let ((package (find-package-named package)))
                                  (package-files (if (param params "recursive" 'boolean :default nil) (packages-using package) (list package)) (take-snapshot)))
                                (known-system-files system))
                            'vector))))

(define-operation "reload-package" :thread (id params)
  (let* ((package (find-package-named (param params "package" 'string)))
         (recursive (param params "recursive" 'boolean :default nil))
         (allowed (allowed-param params))
         (packages (if recursive (packages-using package) (list package))))
    (when (system-package-p package)
      (refuse "not-reloadable" "The package ~A is a part of the system that runs Consort and is not reloaded" (package-name package)))
    (call-reload id (format nil "the package ~A" (package-name package))
                 (lambda (&aux (*allowed* allowed))
                   (let ((pairs (in-load-order (package-files packages (take-snapshot)))))
                     (unless pairs
                       (fail-reload "NO_SOURCE" "No file is known in which the symbols of ~A are defined" (package-name package)))
                     (reload-files id pairs)
                     (mapcar #'car pairs))))))

(define-operation "reload-system" :thread (id params)
  (let ((system (string-downcase (param params "system" 'string)))
        (asd-files (map 'list #'sb-ext:parse-native-namestring (param params "asd_files" 'vector :default #())))
        (force (param params "force" 'boolean :default nil))
        (allowed (allowed-param params)))
    (call-reload id (format nil "the system ~A" system)
                 (lambda (&aux (*allowed* allowed))
                   (let ((performed '()))
                     (check-allowed-systems)
                     (handler-case
                         (call-with-asd-files
                          asd-files
                          (lambda ()
                            (find-system-in id system asd-files)
                            (let* ((report (progress-reporter id (if force nil (planned-actions system))))
                                   (*progress* (lambda (operation component)
                                                 (when (and (typep operation 'asdf:load-op) (typep component 'asdf:cl-source-file))
                                                   (let ((true (ignore-errors (probe-file (asdf:component-pathname component)))))
                                                     (when true (push (sb-ext:native-namestring true) performed))))
                                                 (funcall report operation component))))
                              (asdf:load-system system :force force))))
                       (uiop:compile-file-error () (fail-compilation nil (format nil "the system ~A could not be compiled" system)))
                       (asdf:missing-component (condition)
                         (error 'reload-failed :kind "SYSTEM_NOT_FOUND" :message (condition-message condition))))
                     (reverse performed))))))

;;; Undo

(define-operation "undo-reload" :thread (id params)
  (let ((undone nil) (notes '()))
    (unless *reloads*
      (refuse "nothing-to-undo" "There is no reload to undo"))
    (multiple-value-bind (how outcome)
        (evaluate-alone id (lambda ()
                             (sb-thread:with-mutex (*reload-lock*)
                               (let ((reload (pop *reloads*)))
                                 (when reload
                                   (let ((before (call-without-probes #'take-snapshot)))
                                     (setf notes (undo-differences (reload-symbol-differences reload) (reload-generic-differences reload)
                                                                   (reload-package-differences reload) (reload-times reload)))
                                     (let ((after (call-without-probes #'take-snapshot)))
                                       (multiple-value-bind (changes symbol-differences) (compare-snapshots before after)
                                         (setf undone (report-of (reload-what reload) '() before after changes symbol-differences))))))
                                 (values)))))
      (append outcome
              (list "reloaded" (bool (and (eq how :ok) undone))
                    "report" (or-null undone)
                    "failure" :null
                    "not_undone" (coerce notes 'vector)
                    "undoable" (length *reloads*))))))
