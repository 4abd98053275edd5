;;;; The only file that names SBCL's internal packages. Every internal name is looked up when this file is compiled and loaded
;;;; (always by the SBCL that will run it) and given a name of ours; where SBCL has it no more, using ours signals
;;;; MISSING-INTERNAL, which says what is lost, and INTERNAL-P is false.

(in-package :consort)

;;; The guard

(define-condition missing-internal (error)
  ((name :initarg :name :reader missing-internal-name)
   (feature :initarg :feature :reader missing-internal-feature))
  (:documentation "This SBCL lacks an internal that a feature stands on.")
  (:report (lambda (condition stream)
             (format stream "~A ~A has no ~A: ~A does not work with it. Please report this, with the version."
                     (lisp-implementation-type) (lisp-implementation-version)
                     (missing-internal-name condition) (missing-internal-feature condition)))))

(defun missing-internal (name feature)
  "Signal that this SBCL lacks NAME, and so FEATURE."
  (error 'missing-internal :name name :feature feature))

(eval-when (:compile-toplevel :load-toplevel :execute)
  (defun find-internal (kind candidates)
    "The first symbol of CANDIDATES, a list of (PACKAGE NAME), that this SBCL defines as a KIND; NIL when none is."
    (loop for (package-name name) in candidates
          for package = (find-package package-name)
          for symbol = (and package (find-symbol name package))
          when (and symbol
                    (ecase kind
                      (:function (and (fboundp symbol) (not (macro-function symbol))))
                      ((:macro :place) (fboundp symbol))
                      (:variable (boundp symbol))
                      (:type (sb-ext:valid-type-specifier-p symbol))
                      (:symbol t)))
            return symbol)))

(defmacro define-internal (name kind feature &rest candidates)
  "Give NAME to an internal of SBCL: the first of CANDIDATES, each (PACKAGE SYMBOL), both strings. FEATURE is what is lost without it.
KIND is one of
  :function  NAME becomes a function, the very same one;
  :macro     (NAME ...) is a call of the macro, also as a place of SETF (so this also serves for a function with a SETF);
  :place     the same as :macro, to be used for what is an accessor;
  :variable  NAME is a symbol macro for the special variable or constant; bind it with WITH-INTERNALS, never with LET;
  :type      NAME is a type specifier;
  :symbol    NAME is a symbol macro for the quoted symbol itself."
  (let* ((symbol (find-internal kind candidates))
         (wanted (format nil "~{~A:~A~}" (first candidates)))
         (absent `(missing-internal ,wanted ,feature)))
    `(progn
       (eval-when (:compile-toplevel :load-toplevel :execute)
         (setf (get ',name 'internal) ',symbol))
       ,(ecase kind
          (:function
           `(progn
              (declaim (ftype function ,name))
              (setf (fdefinition ',name)
                    ,(if symbol
                         `(fdefinition ',symbol)
                         `(lambda (&rest arguments) (declare (ignore arguments)) ,absent)))))
          ((:macro :place)
           (if symbol
               `(defmacro ,name (&rest arguments) `(,',symbol ,@arguments))
               `(defmacro ,name (&rest arguments) (declare (ignore arguments)) ',absent)))
          (:variable `(define-symbol-macro ,name ,(or symbol absent)))
          (:type `(deftype ,name () ',symbol))
          (:symbol `(define-symbol-macro ,name ,(if symbol `',symbol absent))))
       ',name)))

(defun internal-p (name)
  "Whether this SBCL has what DEFINE-INTERNAL called NAME."
  (and (get name 'internal) t))

(defmacro with-internals (bindings &body body)
  "Bind internal variables, ((NAME VALUE) ...), around BODY. Those that this SBCL lacks are passed over."
  `(progv (remove nil (list ,@(loop for (name) in bindings collect `(get ',name 'internal))))
       (loop for symbol in (list ,@(loop for (name) in bindings collect `(get ',name 'internal)))
             for value in (list ,@(mapcar #'second bindings))
             when symbol collect value)
     ,@body))


;;; The checker (check/)

(define-internal encapsulate-function :function "checking" ("SB-INT" "ENCAPSULATE"))
(define-internal encapsulated-condition :function "checking" ("SB-INT" "ENCAPSULATED-CONDITION"))
(define-internal compiler-error-type :symbol "checking" ("SB-C" "COMPILER-ERROR"))

;; Reading: the stream that tells where every object it reads begins and ends.
(define-internal tracking-stream-class :symbol "exact positions" ("SB-INT" "FORM-TRACKING-STREAM"))
(define-internal tracking-stream-observer :place "exact positions" ("SB-IMPL" "FORM-TRACKING-STREAM-OBSERVER"))
(define-internal tracking-stream-form-start :place "exact positions" ("SB-IMPL" "FORM-TRACKING-STREAM-FORM-START-CHAR-POS"))
(define-internal tracking-stream-position :function "exact positions"
  ("SB-IMPL" "FORM-TRACKING-STREAM-CURRENT-CHAR-POS")        ; 2.5
  ("SB-IMPL" "FORM-TRACKING-STREAM-INPUT-CHAR-POS"))
(define-internal stream-descriptor :function "checking" ("SB-SYS" "FD-STREAM-FD"))
(define-internal stream-file-name :place "checking" ("SB-IMPL" "FD-STREAM-PATHNAME"))
(define-internal reader-package-error-type :symbol "reading after an unknown package"
  ("SB-INT" "SIMPLE-READER-PACKAGE-ERROR") ("SB-KERNEL" "SIMPLE-READER-PACKAGE-ERROR"))
(define-internal comma-p :function "positions in backquotes" ("SB-INT" "COMMA-P") ("SB-IMPL" "COMMA-P"))
(define-internal comma-expression :function "positions in backquotes" ("SB-INT" "COMMA-EXPR") ("SB-IMPL" "COMMA-EXPR"))

;; COMPILE-FILE's loop over the forms of a file.
(define-internal do-forms-name :symbol "checking" ("SB-C" "%DO-FORMS-FROM-INFO"))
(define-internal source-info-file :function "checking" ("SB-C" "SOURCE-INFO-FILE-INFO"))
(define-internal source-info-stream :place "checking" ("SB-C" "SOURCE-INFO-STREAM"))
(define-internal file-info-forms :function "checking" ("SB-C" "FILE-INFO-FORMS"))
(define-internal file-info-positions :function "checking" ("SB-C" "FILE-INFO-POSITIONS"))
(define-internal file-info-subforms :function "checking" ("SB-C" "FILE-INFO-SUBFORMS"))
(define-internal file-info-truename :place "checking" ("SB-C" "FILE-INFO-%TRUENAME") ("SB-C" "FILE-INFO-TRUENAME"))
(define-internal file-info-pathname :function "checking" ("SB-C" "FILE-INFO-PATHNAME"))
(define-internal current-source-info :variable "checking" ("SB-C" "*SOURCE-INFO*"))

;; What the compiler says and where it is.
(define-internal find-error-context :function "exact positions" ("SB-C" "FIND-ERROR-CONTEXT"))
(define-internal error-context-form :function "exact positions" ("SB-C" "COMPILER-ERROR-CONTEXT-ORIGINAL-FORM"))
(define-internal error-context-path :function "exact positions" ("SB-C" "COMPILER-ERROR-CONTEXT-ORIGINAL-SOURCE-PATH"))
(define-internal find-source-root :function "exact positions" ("SB-C" "FIND-SOURCE-ROOT"))
(define-internal print-compiler-message-name :symbol "checking" ("SB-C" "PRINT-COMPILER-MESSAGE"))
(define-internal warning-handler-name :symbol "checking" ("SB-C" "COMPILER-WARNING-HANDLER"))
(define-internal style-warning-handler-name :symbol "checking" ("SB-C" "COMPILER-STYLE-WARNING-HANDLER"))
(define-internal note-undefined-name :symbol "undefined names" ("SB-C" "NOTE-UNDEFINED-REFERENCE"))
(define-internal summarize-name :symbol "undefined names" ("SB-C" "SUMMARIZE-COMPILATION-UNIT"))
(define-internal undefined-warnings-name :symbol "undefined names" ("SB-C" "*UNDEFINED-WARNINGS*"))
(define-internal undefined-warning-name :function "undefined names" ("SB-C" "UNDEFINED-WARNING-NAME"))
(define-internal undefined-warning-kind :function "undefined names" ("SB-C" "UNDEFINED-WARNING-KIND"))

;; What an earlier load of the same file left behind.
(define-internal redefinition-warning-type :symbol "checking" ("SB-KERNEL" "REDEFINITION-WARNING"))
(define-internal redefinition-name :function "checking" ("SB-KERNEL" "REDEFINITION-WARNING-NAME"))
(define-internal duplicate-definition-type :symbol "checking" ("SB-INT" "DUPLICATE-DEFINITION") ("SB-KERNEL" "DUPLICATE-DEFINITION"))
(define-internal duplicate-definition-name :function "checking"
  ("SB-INT" "DUPLICATE-DEFINITION-NAME") ("SB-KERNEL" "DUPLICATE-DEFINITION-NAME"))
(define-internal package-variance-type :symbol "checking" ("SB-INT" "PACKAGE-AT-VARIANCE") ("SB-KERNEL" "PACKAGE-AT-VARIANCE"))
(define-internal print-condition-references :variable "clean messages" ("SB-INT" "*PRINT-CONDITION-REFERENCES*"))

;;; Copying the image (copy.lisp)

(define-internal without-collecting :macro "copying the image" ("SB-SYS" "WITHOUT-GCING"))
(define-internal map-heap :function "copying the image" ("SB-VM" "LIST-ALLOCATED-OBJECTS"))
(define-internal instance-widetag :variable "copying the image" ("SB-VM" "INSTANCE-WIDETAG"))
(define-internal mutex-state :function "copying the image" ("SB-THREAD" "MUTEX-%STATE") ("SB-THREAD" "MUTEX-STATE"))
(define-internal foreign-symbol-address :function "copying the image" ("SB-SYS" "FIND-FOREIGN-SYMBOL-ADDRESS"))
(define-internal primitive-thread :function "copying the image" ("SB-THREAD" "THREAD-PRIMITIVE-THREAD"))
(define-internal thread-next-slot :variable "copying the image" ("SB-VM" "THREAD-NEXT-SLOT"))
(define-internal thread-previous-slot :variable "copying the image" ("SB-VM" "THREAD-PREV-SLOT"))
(define-internal word-bytes :variable "copying the image" ("SB-VM" "N-WORD-BYTES"))
(define-internal all-threads :variable "copying the image" ("SB-THREAD" "*ALL-THREADS*"))
(define-internal avl-insert :function "copying the image" ("SB-THREAD" "AVL-INSERT"))
(define-internal joinable-threads :variable "copying the image" ("SB-THREAD" "*JOINABLE-THREADS*"))
(define-internal finalizer-thread :variable "copying the image" ("SB-IMPL" "*FINALIZER-THREAD*"))
(define-internal world-lock :variable "copying the image" ("SB-KERNEL" "**WORLD-LOCK**") ("SB-C" "**WORLD-LOCK**"))
(define-internal int-sap :macro "copying the image" ("SB-SYS" "INT-SAP"))
(define-internal sap-32 :place "copying the image" ("SB-SYS" "SAP-REF-32"))
(define-internal sap-word :place "copying the image" ("SB-SYS" "SAP-REF-WORD"))
(define-internal system-message :function "copying the image" ("SB-INT" "STRERROR"))
(define-internal sap-integer :macro "confining a copy" ("SB-SYS" "SAP-INT"))

;; Every use of an undefined function, from the compiler's own graph of the code: it tells only of the first.
(define-internal compile-toplevel-name :symbol "every use of an undefined function" ("SB-C" "COMPILE-TOPLEVEL"))
(define-internal ir1-namespace :symbol "every use of an undefined function" ("SB-C" "*IR1-NAMESPACE*"))
(define-internal free-functions :function "every use of an undefined function" ("SB-C" "FREE-FUNS"))
(define-internal leaf-references :function "every use of an undefined function" ("SB-C" "LEAF-REFS"))
(define-internal node-source-path :function "every use of an undefined function" ("SB-C" "NODE-SOURCE-PATH"))
(define-internal original-source-path :function "every use of an undefined function" ("SB-C" "SOURCE-PATH-ORIGINAL-SOURCE"))

(defun undefined-warnings ()
  "What the compiler has met in this compilation unit and found undefined."
  (and (boundp undefined-warnings-name) (symbol-value undefined-warnings-name)))

(defun forget-undefined-warnings ()
  "Keep the compiler from telling of them itself."
  (when (boundp undefined-warnings-name)
    (setf (symbol-value undefined-warnings-name) '())))

(defun paths-of-references (function-name)
  "The source path, innermost first, of every place in the code being compiled now that refers to the global FUNCTION-NAME."
  (let ((leaf (and (boundp ir1-namespace) (gethash function-name (free-functions (symbol-value ir1-namespace))))))
    (and leaf (mapcar (lambda (node) (original-source-path (node-source-path node))) (leaf-references leaf)))))

;; Whether code asks for speed above all, by the policy in force where the compiler is.
(define-internal policy-quality :function "notes where code asks for speed" ("SB-C" "POLICY-QUALITY"))
(define-internal lexenv-policy :function "notes where code asks for speed" ("SB-C" "LEXENV-POLICY"))
(define-internal node-lexenv :function "notes where code asks for speed" ("SB-C" "NODE-LEXENV"))
(define-internal node-type :type "notes where code asks for speed" ("SB-C" "NODE"))
(define-internal lexenv-name :symbol "notes where code asks for speed" ("SB-C" "*LEXENV*"))
(define-internal error-context :symbol "notes where code asks for speed" ("SB-C" "*COMPILER-ERROR-CONTEXT*"))

(defun speed-wanted-p ()
  "Whether the code that the compiler is at is to be faster rather than anything else."
  (let* ((context (symbol-value error-context))
         (lexenv (cond ((typep context 'node-type) (node-lexenv context))
                       ((boundp lexenv-name) (symbol-value lexenv-name))))
         (policy (and lexenv (lexenv-policy lexenv))))
    (when policy
      (let ((speed (policy-quality policy 'speed)))
        (and (> speed 1)
             (loop for other in '(safety debug space compilation-speed)
                   always (> speed (policy-quality policy other))))))))
