;;;; SBCL's internals that the checker needs (check/).

(in-package :consort)

(define-internal encapsulated-condition :function "checking" ("SB-INT" "ENCAPSULATED-CONDITION"))
(define-internal compiler-error-type :symbol "checking" ("SB-C" "COMPILER-ERROR"))

;; Reading: the stream that reports where every object that it reads begins and ends.
(define-internal tracking-stream-class :symbol "exact positions" ("SB-INT" "FORM-TRACKING-STREAM"))
(define-internal tracking-stream-observer :place "exact positions" ("SB-IMPL" "FORM-TRACKING-STREAM-OBSERVER"))
(define-internal tracking-stream-form-start :place "exact positions" ("SB-IMPL" "FORM-TRACKING-STREAM-FORM-START-CHAR-POS"))
(define-internal tracking-stream-position :function "exact positions"
  ("SB-IMPL" "FORM-TRACKING-STREAM-CURRENT-CHAR-POS")        ; 2.5
  ("SB-IMPL" "FORM-TRACKING-STREAM-INPUT-CHAR-POS"))
(define-internal make-fd-stream :function "checking without Landlock" ("SB-SYS" "MAKE-FD-STREAM"))
(define-internal stream-descriptor :function "checking" ("SB-SYS" "FD-STREAM-FD"))
(define-internal stream-file-name :place "checking" ("SB-IMPL" "FD-STREAM-PATHNAME"))
(define-internal reader-package-error-type :symbol "reading after an unknown package"
  ("SB-INT" "SIMPLE-READER-PACKAGE-ERROR") ("SB-KERNEL" "SIMPLE-READER-PACKAGE-ERROR"))
(define-internal comma-p :function "positions in backquotes" ("SB-INT" "COMMA-P") ("SB-IMPL" "COMMA-P"))
(define-internal comma-expression :function "positions in backquotes" ("SB-INT" "COMMA-EXPR") ("SB-IMPL" "COMMA-EXPR"))
(define-internal comma-kind :function "other names in backquotes" ("SB-INT" "COMMA-KIND") ("SB-IMPL" "COMMA-KIND"))
(define-internal make-comma :function "other names in backquotes, places of frames" ("SB-INT" "UNQUOTE") ("SB-IMPL" "UNQUOTE"))

;; COMPILE-FILE's loop over the forms of a file.
(define-internal do-forms-name :symbol "checking" ("SB-C" "%DO-FORMS-FROM-INFO"))
(define-internal source-info-file :function "checking" ("SB-C" "SOURCE-INFO-FILE-INFO"))
(define-internal source-info-stream :place "checking" ("SB-C" "SOURCE-INFO-STREAM"))
(define-internal file-info-subforms :function "checking" ("SB-C" "FILE-INFO-SUBFORMS"))
(define-internal file-info-truename :place "checking" ("SB-C" "FILE-INFO-%TRUENAME") ("SB-C" "FILE-INFO-TRUENAME"))
(define-internal file-info-pathname :function "checking" ("SB-C" "FILE-INFO-PATHNAME"))
(define-internal current-source-info :variable "checking" ("SB-C" "*SOURCE-INFO*"))

;; The compiler's message and its place.
(define-internal find-error-context :function "exact positions" ("SB-C" "FIND-ERROR-CONTEXT"))
(define-internal error-context-form :function "exact positions" ("SB-C" "COMPILER-ERROR-CONTEXT-ORIGINAL-FORM"))
(define-internal error-context-path :function "exact positions" ("SB-C" "COMPILER-ERROR-CONTEXT-ORIGINAL-SOURCE-PATH"))

;; The kind of condition, for its code.
(define-internal type-warning-type :symbol "codes of findings" ("SB-INT" "TYPE-WARNING") ("SB-KERNEL" "TYPE-WARNING"))
(define-internal type-style-warning-type :symbol "codes of findings" ("SB-INT" "TYPE-STYLE-WARNING") ("SB-KERNEL" "TYPE-STYLE-WARNING"))
(define-internal constant-modified-type :symbol "codes of findings" ("SB-INT" "CONSTANT-MODIFIED"))
(define-internal duplicate-case-key-type :symbol "codes of findings"
  ("SB-IMPL" "DUPLICATE-CASE-KEY-WARNING") ("SB-INT" "DUPLICATE-CASE-KEY-WARNING"))
(define-internal local-argument-mismatch-type :symbol "codes of findings" ("SB-INT" "LOCAL-ARGUMENT-MISMATCH"))
(define-internal format-mismatch-type :symbol "codes of findings" ("SB-INT" "FORMAT-ARGS-MISMATCH") ("SB-KERNEL" "FORMAT-ARGS-MISMATCH"))
(define-internal lambda-list-error-type :symbol "codes of findings" ("SB-KERNEL" "DEFMACRO-LAMBDA-LIST-BIND-ERROR"))
(define-internal argument-count-error-type :symbol "codes of findings" ("SB-KERNEL" "ARG-COUNT-ERROR"))
(define-internal optional-and-key-type :symbol "codes of findings" ("SB-KERNEL" "&OPTIONAL-AND-&KEY-IN-LAMBDA-LIST"))
;; The system's message in an error about a file.
(define-internal file-error-type :symbol "telling what confinement refused" ("SB-INT" "SIMPLE-FILE-ERROR") ("SB-KERNEL" "SIMPLE-FILE-ERROR"))
(define-internal file-error-message :function "telling what confinement refused"
  ("SB-KERNEL" "SIMPLE-FILE-ERROR-MESSAGE") ("SB-INT" "SIMPLE-FILE-ERROR-MESSAGE") ("SB-IMPL" "SIMPLE-FILE-ERROR-MESSAGE"))
;;; The control string of a format control that is not itself a string.
(define-internal control-string :function "codes of findings" ("SB-FORMAT" "FMT-CONTROL-STRING"))
(defun typep-internal (object name)
  "Returns true if OBJECT is of the type that DEFINE-INTERNAL called NAME; false if this SBCL has no
  such type."
  (and (internal-p name) (typep object (get name 'internal))))

(define-internal find-source-root :function "exact positions" ("SB-C" "FIND-SOURCE-ROOT"))
(define-internal print-compiler-message-name :symbol "checking" ("SB-C" "PRINT-COMPILER-MESSAGE"))
(define-internal warning-handler-name :symbol "checking" ("SB-C" "COMPILER-WARNING-HANDLER"))
(define-internal style-warning-handler-name :symbol "checking" ("SB-C" "COMPILER-STYLE-WARNING-HANDLER"))
(define-internal note-undefined-name :symbol "undefined names" ("SB-C" "NOTE-UNDEFINED-REFERENCE"))
(define-internal summarize-name :symbol "undefined names" ("SB-C" "SUMMARIZE-COMPILATION-UNIT"))
(define-internal undefined-warnings-name :symbol "undefined names" ("SB-C" "*UNDEFINED-WARNINGS*"))
(define-internal undefined-warning-name :function "undefined names" ("SB-C" "UNDEFINED-WARNING-NAME"))
(define-internal undefined-warning-kind :function "undefined names" ("SB-C" "UNDEFINED-WARNING-KIND"))

;; Marks that an earlier load of the same file has left.
(define-internal redefinition-warning-type :symbol "checking" ("SB-KERNEL" "REDEFINITION-WARNING"))
(define-internal redefinition-name :function "checking" ("SB-KERNEL" "REDEFINITION-WARNING-NAME"))
(define-internal duplicate-definition-type :symbol "checking" ("SB-INT" "DUPLICATE-DEFINITION") ("SB-KERNEL" "DUPLICATE-DEFINITION"))
(define-internal same-file-redefinition-type :symbol "checking" ("SB-INT" "SAME-FILE-REDEFINITION-WARNING"))
(define-internal duplicate-definition-name :function "checking"
  ("SB-INT" "DUPLICATE-DEFINITION-NAME") ("SB-KERNEL" "DUPLICATE-DEFINITION-NAME"))
(define-internal recklessly-continue :symbol "checking a structure whose slots have changed" ("SB-KERNEL" "RECKLESSLY-CONTINUE"))
(define-internal handler-clusters :variable "checking" ("SB-KERNEL" "*HANDLER-CLUSTERS*"))
(define-internal initial-handler-clusters :variable "checking" ("SB-KERNEL" "**INITIAL-HANDLER-CLUSTERS**"))
(define-internal package-variance-type :symbol "checking" ("SB-INT" "PACKAGE-AT-VARIANCE") ("SB-KERNEL" "PACKAGE-AT-VARIANCE"))
(define-internal info :macro "checking a text that is loaded" ("SB-INT" "INFO"))
(define-internal specifier-type :function "checking a text that is loaded" ("SB-KERNEL" "SPECIFIER-TYPE"))
(define-internal clear-info :macro "checking a text that is loaded" ("SB-INT" "CLEAR-INFO"))

(defun forget-function-type (name)
  "Makes the compiler forget its entries from the definition of the function NAME, as if there were
  none. Proclamations stay, and the function can be called as before."
  (when (member (info :function :where-from name) '(:defined :defined-method))
    (unless (info :function :source-transform name) ; of a structure
      ;; Without a type, the compiler would use that of the function itself.
      (setf (info :function :type name) (specifier-type 'function))
      (clear-info :function :inlining-data name)
      (setf (info :function :where-from name) :assumed))))

(define-internal print-condition-references :variable "clean messages" ("SB-INT" "*PRINT-CONDITION-REFERENCES*"))

;; Every use of an undefined function, from the compiler's own graph of the code, because the
;; compiler reports only the first use.
(define-internal compile-toplevel-name :symbol "every use of an undefined function" ("SB-C" "COMPILE-TOPLEVEL"))
(define-internal compile-toplevel-lambdas-name :symbol "exact positions in top-level calls" ("SB-C" "COMPILE-TOPLEVEL-LAMBDAS"))
(define-internal ir1-namespace :symbol "every use of an undefined function" ("SB-C" "*IR1-NAMESPACE*"))
(define-internal free-functions :function "every use of an undefined function" ("SB-C" "FREE-FUNS"))
(define-internal leaf-references :function "every use of an undefined function" ("SB-C" "LEAF-REFS"))
(define-internal node-source-path :function "every use of an undefined function" ("SB-C" "NODE-SOURCE-PATH"))
(define-internal original-source-path :function "every use of an undefined function" ("SB-C" "SOURCE-PATH-ORIGINAL-SOURCE"))

(define-internal note-key-mismatch-name :symbol "unknown keywords in calls of generic functions" ("SB-C" "NOTE-KEY-ARG-MISMATCH"))
(define-internal generic-function-type :function "unknown keywords in calls of generic functions" ("SB-PCL" "COMPUTE-GF-FTYPE"))
(define-internal function-type-p :function "unknown keywords in calls of generic functions" ("SB-KERNEL" "FUN-TYPE-P"))
(define-internal type-allows-keys-p :function "unknown keywords in calls of generic functions" ("SB-KERNEL" "FUN-TYPE-ALLOWP"))
(define-internal type-keywords :function "unknown keywords in calls of generic functions" ("SB-KERNEL" "FUN-TYPE-KEYWORDS"))
(define-internal keyword-name :function "unknown keywords in calls of generic functions" ("SB-KERNEL" "KEY-INFO-NAME"))

(defun unknown-keyword-p (name keyword)
  "Returns true if the generic function NAME, with its current methods, does not accept KEYWORD."
  (let ((type (generic-function-type name)))
    (and (function-type-p type)
         (not (type-allows-keys-p type))
         (not (find keyword (type-keywords type) :key #'keyword-name)))))

(defun undefined-warnings ()
  "Returns the undefined names that the compiler has met in this compilation unit."
  (and (boundp undefined-warnings-name) (symbol-value undefined-warnings-name)))

(defun forget-undefined-warnings ()
  "Removes the undefined names that the compiler has met, so that it does not report them itself."
  (when (boundp undefined-warnings-name)
    (setf (symbol-value undefined-warnings-name) '())))

(defun paths-of-references (function-name)
  "The source path, innermost first, of every place in the code being compiled now that refers to
  the global function FUNCTION-NAME."
  (let ((leaf (and (boundp ir1-namespace) (gethash function-name (free-functions (symbol-value ir1-namespace))))))
    (and leaf (mapcar (lambda (node) (original-source-path (node-source-path node))) (leaf-references leaf)))))

;; Whether code asks for speed above all, by the policy in force at the place that the compiler
;; compiles.
(define-internal policy-quality :function "notes where code asks for speed" ("SB-C" "POLICY-QUALITY"))
(define-internal lexenv-policy :function "notes where code asks for speed" ("SB-C" "LEXENV-POLICY"))
(define-internal node-lexenv :function "notes where code asks for speed" ("SB-C" "NODE-LEXENV"))
(define-internal node-type :type "notes where code asks for speed" ("SB-C" "NODE"))
(define-internal lexenv-name :symbol "notes where code asks for speed" ("SB-C" "*LEXENV*"))
(define-internal error-context :symbol "notes where code asks for speed" ("SB-C" "*COMPILER-ERROR-CONTEXT*"))

(defun speed-wanted-p ()
  "Returns true if speed has the highest priority in the code that is compiled now."
  (let* ((context (symbol-value error-context))
         (lexenv (cond ((typep context 'node-type) (node-lexenv context))
                       ((boundp lexenv-name) (symbol-value lexenv-name))))
         (policy (and lexenv (lexenv-policy lexenv))))
    (when policy
      (let ((speed (policy-quality policy 'speed)))
        (and (> speed 1)
             (loop for other in '(safety debug space compilation-speed)
                   always (> speed (policy-quality policy other))))))))
