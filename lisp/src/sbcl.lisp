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

(defmacro define-global (name value documentation)
  "Define a variable that threads share and nobody binds. Unlike SB-EXT:DEFGLOBAL, VALUE is not evaluated at compile time."
  `(progn
     (declaim (sb-ext:global ,name))
     (setf (documentation ',name 'variable) ,documentation)
     (unless (boundp ',name)
       (setf ,name ,value))))

;;; Interrupts (sys: code/target-signal.lisp, code/target-thread.lisp)

(define-internal without-interrupts :macro "interrupting an evaluation" ("SB-SYS" "WITHOUT-INTERRUPTS"))
(define-internal with-local-interrupts :macro "interrupting an evaluation" ("SB-SYS" "WITH-LOCAL-INTERRUPTS"))
(define-internal with-interrupts :macro "interrupting a thread" ("SB-SYS" "WITH-INTERRUPTS"))
(define-internal interactive-interrupt :symbol "interrupting a thread" ("SB-SYS" "INTERACTIVE-INTERRUPT"))
(define-internal ephemeral-thread-p :function "leaving the system's own threads out of a list" ("SB-THREAD" "THREAD-EPHEMERAL-P"))
(define-internal enable-interrupt :function "leaving on SIGTERM" ("SB-SYS" "ENABLE-INTERRUPT"))

(defmacro with-lock ((mutex) &body body)
  "BODY with MUTEX held and interrupts off, so that nobody unwinds out of it. Only for short work that does not run user code."
  `(without-interrupts (sb-thread:with-mutex (,mutex) ,@body)))

;;; Descriptors. read(2) and write(2) without the copies and locks of streams; EINTR is tried again.

(define-internal vector-sap :macro "reading and writing the link" ("SB-SYS" "VECTOR-SAP"))
(define-internal sap-advance :macro "reading and writing the link" ("SB-SYS" "SAP+"))
(define-internal with-pinned-objects :macro "reading and writing the link" ("SB-SYS" "WITH-PINNED-OBJECTS"))
(define-internal wait-until-fd-usable :function "answering while the host does not read" ("SB-SYS" "WAIT-UNTIL-FD-USABLE"))

(defun read-octets (fd octets start end)
  "Read once from FD into OCTETS: how many came, 0 at the end of file, and NIL with errno when it failed."
  (declare (type (simple-array (unsigned-byte 8) (*)) octets) (type (unsigned-byte 31) fd) (type (unsigned-byte 62) start end))
  (loop
    (let ((count (with-pinned-objects (octets)
                   (sb-alien:alien-funcall
                    (sb-alien:extern-alien "read" (function sb-alien:long sb-alien:int sb-sys:system-area-pointer sb-alien:unsigned-long))
                    fd (sap-advance (vector-sap octets) start) (- end start)))))
      (unless (minusp count)
        (return count))
      (let ((errno (sb-alien:get-errno)))
        (unless (= errno sb-posix:eintr)
          (return (values nil errno)))))))

(defun write-octets (fd octets start end)
  "Write OCTETS to FD, all of them: true, or NIL and errno when it failed."
  (declare (type (simple-array (unsigned-byte 8) (*)) octets) (type (unsigned-byte 31) fd) (type (unsigned-byte 62) start end))
  (loop while (< start end)
        do (let ((count (with-pinned-objects (octets)
                          (sb-alien:alien-funcall
                           (sb-alien:extern-alien "write" (function sb-alien:long sb-alien:int sb-sys:system-area-pointer sb-alien:unsigned-long))
                           fd (sap-advance (vector-sap octets) start) (- end start)))))
             (if (minusp count)
                 (let ((errno (sb-alien:get-errno)))
                   (unless (= errno sb-posix:eintr)
                     (return-from write-octets (values nil errno))))
                 (incf start count))))
  t)

(defun leave (code)
  "End the process at once by _exit(2): no hook runs, no thread is waited for, no buffer is flushed."
  (sb-alien:alien-funcall (sb-alien:extern-alien "_exit" (function sb-alien:void sb-alien:int)) code)
  (loop))

;;; Refusing to exit. What is refused is refused in every thread: the image is shared.

(define-internal encapsulate :function "refusing (sb-ext:exit)" ("SB-INT" "ENCAPSULATE"))
(define-internal os-exit :symbol "refusing (sb-ext:exit)" ("SB-EXT" "OS-EXIT") ("SB-SYS" "OS-EXIT") ("SB-IMPL" "OS-EXIT"))

(defun refuse-exits (refuse)
  "From now on, whoever calls a function of SBCL that ends the process calls REFUSE instead."
  (dolist (name (list 'sb-ext:exit 'sb-ext:quit 'sb-ext:save-lisp-and-die os-exit))
    (when (fboundp name)
      (encapsulate name 'consort (lambda (function &rest arguments)
                                   (declare (ignore function arguments))
                                   (funcall refuse name))))))

;;; Where a definition was made (compiler/main.lisp, code/debug-info.lisp): a source that is read like a file that LOAD reads.

(define-internal make-source-info :function "finding what was evaluated from a file" ("SB-C" "MAKE-SOURCE-INFO"))
(define-internal make-file-info :function "finding what was evaluated from a file" ("SB-C" "MAKE-FILE-INFO"))
(define-internal file-info-forms :function "finding what was evaluated from a file" ("SB-C" "FILE-INFO-FORMS"))
(define-internal file-info-positions :function "finding what was evaluated from a file" ("SB-C" "FILE-INFO-POSITIONS"))
(define-internal file-info-%truename :function "finding what was evaluated from a file" ("SB-C" "FILE-INFO-%TRUENAME")) ; not in 2.2.9
(define-internal *source-info* :symbol "finding what was evaluated from a file" ("SB-C" "*SOURCE-INFO*"))
(define-internal *source-paths* :symbol "finding what was evaluated from a file" ("SB-C" "*SOURCE-PATHS*"))
(define-internal *source-plist* :symbol "finding what was evaluated from a file" ("SB-C" "*SOURCE-PLIST*"))
(define-internal find-source-paths :function "finding what was evaluated from a file" ("SB-C" "FIND-SOURCE-PATHS"))
(define-internal eval-tlf :function "finding what was evaluated from a file" ("SB-EXT" "EVAL-TLF") ("SB-INT" "EVAL-TLF") ("SB-IMPL" "EVAL-TLF"))

(defstruct (source (:constructor %make-source (file info file-info)))
  "A text from a file that is being evaluated form by form."
  (file "" :type string :read-only t)
  (info nil :read-only t)
  (file-info nil :read-only t))

(defun make-source (pathname)
  "A source whose forms are found in PATHNAME."
  (let ((file-info (make-file-info (if (internal-p 'file-info-%truename) :%truename :truename) pathname
                                   :pathname pathname
                                   :write-date (ignore-errors (file-write-date pathname)))))
    (%make-source (namestring pathname) (make-source-info :file-info file-info) file-info)))

(defun eval-in-source (form position source)
  "Evaluate FORM, whose first character is at POSITION in SOURCE's file, 0-based, so that what it defines is found there.
Functions remember the character offset. Variables, classes and methods only remember the number of the form, which is not the file's own here: so
the definition source's plist has :CONSORT-FILE (when it is not the definition's own file, ignore it) and :CONSORT-POSITION."
  (let* ((file-info (source-file-info source))
         (index (vector-push-extend form (file-info-forms file-info))))
    (vector-push-extend position (file-info-positions file-info))
    (progv (list *source-info* *source-paths* *source-plist*)
        (list (source-info source)
              (make-hash-table :test 'eq)
              (list :consort-file (source-file source) :consort-position position))
      (find-source-paths form index)
      (eval-tlf form index))))

;;; What the system itself prints to, and the frames that belong to it

(define-internal *stdout* :variable "showing what threads print" ("SB-SYS" "*STDOUT*") ("SB-IMPL" "*STDOUT*"))
(define-internal *stderr* :variable "showing what threads print" ("SB-SYS" "*STDERR*") ("SB-IMPL" "*STDERR*"))

(define-internal %invoke-debugger :symbol "ending evaluations whose code unset the debugger's hook" ("SB-DEBUG" "%INVOKE-DEBUGGER"))

(defun replace-debugger (debugger)
  "From now on, where the debugger would talk to a terminal, DEBUGGER is called with the condition and NIL."
  (when (internal-p '%invoke-debugger)
    (encapsulate %invoke-debugger 'consort (lambda (function condition)
                                             (declare (ignore function))
                                             (funcall debugger condition nil)))))

(defvar *internal-packages*
  (remove nil (mapcar #'find-package '("CONSORT" "SB-KERNEL" "SB-IMPL" "SB-INT" "SB-SYS" "SB-DEBUG" "SB-DI" "SB-VM" "SB-C" "SB-UNIX" "SB-FORMAT"
                                       "SB-PRETTY" "SB-BIGNUM" "SB-LOOP" "SB-FASL")))
  "Packages whose functions' frames are not shown, nor those of functions internal to any other package of SBCL.")

(defvar *signalling-frames* '(error cerror break signal warn invoke-debugger)
  "Functions whose frames are shown above the place of an error only where that place called them itself.")

(defvar *evaluator-frames*
  (cons 'eval (loop for (package name) in '(("SB-IMPL" "%SIMPLE-EVAL") ("SB-IMPL" "SIMPLE-EVAL-IN-LEXENV") ("SB-IMPL" "EVAL-TLF")
                                            ("SB-IMPL" "SIMPLE-EVAL-PROGN-BODY") ("SB-IMPL" "EVAL-IN-LEXENV"))
                    for symbol = (find-symbol name package)
                    when symbol collect symbol))
  "Functions of the evaluator.")

(define-internal map-backtrace :function "backtraces of stack exhaustion" ("SB-DEBUG" "MAP-BACKTRACE"))
(define-internal %frame-debug-function :function "backtraces of stack exhaustion" ("SB-DI" "FRAME-DEBUG-FUN"))
(define-internal %debug-function-name :function "backtraces of stack exhaustion" ("SB-DI" "DEBUG-FUN-NAME"))

(defun frame-function-name (frame)
  "The name of the function of FRAME, as MAP-BACKTRACE gives it."
  (%debug-function-name (%frame-debug-function frame)))

(define-internal find-foreign-symbol-address :function "surviving the exhaustion of stacks" ("SB-SYS" "FIND-FOREIGN-SYMBOL-ADDRESS"))
(define-internal int-sap :macro "surviving the exhaustion of stacks" ("SB-SYS" "INT-SAP"))

(defun restore-stack-guards ()
  "Put the guard pages of this thread's stack as they are in a new one. To be called where a thread of ours begins and where it ends, at
little depth. When a stack is exhausted SBCL opens the guard page, closes the one before it, and undoes this when the stack is as deep again.
If the thread ends before, the next thread on that memory has neither guard nor room: the runtime ends the process, or a stack grows past its
end (runtime: interrupt.c, handle_guard_page_triggered; thread.c, init_new_thread)."
  (flet ((protect (page protected)
           (let ((address (find-foreign-symbol-address page)))
             (when address
               (sb-alien:alien-funcall (sb-alien:sap-alien (int-sap address)
                                                           (function sb-alien:void sb-alien:int sb-alien:unsigned-long))
                                       protected 0))))) ; 0: of the current thread
    (protect "protect_control_stack_return_guard_page" 0)
    (protect "protect_control_stack_guard_page" 1)))

(define-internal stack-exhausted :symbol "reporting stack exhaustion" ("SB-KERNEL" "CONTROL-STACK-EXHAUSTED") ("SB-SYS" "CONTROL-STACK-EXHAUSTED"))

;;; The process

(define-internal dynamic-usage :function "stopping evaluations before the heap is full" ("SB-KERNEL" "DYNAMIC-USAGE"))

;;; Room for the collector (code/gc.lisp, runtime/gencgc-internal.h): it copies small objects, so it needs as much free room as they take.

(define-internal free-pointer :function "having memory ready for a check" ("SB-KERNEL" "DYNAMIC-SPACE-FREE-POINTER"))
(define-internal page-bytes :variable "stopping evaluations before the heap is full" ("SB-VM" "GENCGC-PAGE-BYTES") ("SB-VM" "GENCGC-CARD-BYTES"))

(defun movable-bytes ()
  "About how many bytes the next few collections may have to copy: small objects of the three youngest generations."
  (declare (optimize speed (safety 0)))
  (let ((table (sb-alien:extern-alien "page_table" sb-sys:system-area-pointer)) ; of (start u32, words u16, type u8, generation s8)
        (pages 0))
    (declare (type fixnum pages))
    (dotimes (page (the (unsigned-byte 40) (sb-alien:extern-alien "next_free_page" sb-alien:long)))
      (let ((type (sb-sys:sap-ref-8 table (+ (* 8 page) 6)))
            (generation (sb-sys:signed-sap-ref-8 table (+ (* 8 page) 7))))
        (when (and (<= 1 (logand type 31) 15) ; in use, and not one object of its own
                   (<= 0 generation 2))
          (incf pages))))
    (the fixnum (* pages (the (unsigned-byte 20) page-bytes)))))

(defun line-buffer-stdout ()
  "Have what foreign code prints by stdio seen line by line, not when four kilobytes are full."
  #+linux
  (let ((address (sb-sys:find-foreign-symbol-address "stdout")))
    (when address
      (sb-alien:alien-funcall
       (sb-alien:extern-alien "setvbuf" (function sb-alien:int sb-sys:system-area-pointer sb-alien:unsigned-long sb-alien:int sb-alien:unsigned-long))
       (sb-sys:sap-ref-sap (sb-sys:int-sap address) 0) 0 1 0)))) ; _IOLBF

(defun prepare-signals ()
  "SIGTERM ends the image, as it does any process; SIGINT is the terminal's and is not for an image that the host owns."
  (enable-interrupt sb-posix:sigterm :default)
  (enable-interrupt sb-posix:sigint :ignore))

;;; What a fingerprint looks at

(define-internal call-with-each-info :function "the compiler's part of fingerprints" ("SB-INT" "CALL-WITH-EACH-INFO") ("SB-IMPL" "CALL-WITH-EACH-INFO")
  ("SB-C" "CALL-WITH-EACH-INFO"))
(define-internal *info-types* :variable "the compiler's part of fingerprints" ("SB-INT" "*INFO-TYPES*") ("SB-IMPL" "*INFO-TYPES*") ("SB-C" "*INFO-TYPES*"))
(define-internal meta-info-kind :function "the compiler's part of fingerprints" ("SB-INT" "META-INFO-KIND") ("SB-IMPL" "META-INFO-KIND") ("SB-C" "META-INFO-KIND"))
(define-internal class-layout :function "the classes' part of fingerprints" ("SB-PCL" "CLASS-WRAPPER"))

(defun map-symbol-info (function symbol)
  "Call FUNCTION with a number that tells the kind and the value of each thing the compiler's database has on SYMBOL and on names made from
it, such as (SETF SYMBOL), but for how often it was called in what was compiled."
  (call-with-each-info (lambda (name kind value)
                         (unless (let ((type (svref *info-types* kind))) ; none for what is not of a kind, such as the function itself
                                   (and type (string= (meta-info-kind type) "EMITTED-FULL-CALLS")))
                           (funcall function (logxor kind (if (symbolp name) 0 (sxhash (prin1-to-string name)))) value)))
                       symbol))

(defun system-symbol-p (symbol)
  "Whether SYMBOL is of SBCL itself."
  (let ((package (symbol-package symbol)))
    (and package (sb-ext:package-locked-p package))))

(defparameter *moving-internals*
  '("*CODE-SERIALNO*" "*COMPILE-ELAPSED-TIME*" "*COMPILE-FILE-ELAPSED-TIME*" "*EVAL-CALLS*" "*GC-EPOCH*" "*N-BYTES-FREED-OR-PURIFIED*" "*TYPE-CACHE-NONCE*"
    "*IMMOBILE-CODEBLOB-TREE*" "*DYNSPACE-CODEBLOB-TREE*" "*STORE-BARRIERS-EMITTED*" "*STORE-BARRIERS-POTENTIALLY-EMITTED*"
    "*CODE-ALLOC-COUNT*" "*PACKAGE-NAMES-COOKIE*" "*GC-REAL-TIME*" "*RUN-GC-HOOKS*" "*FINALIZERS-TRIGGERED*" "*FINALIZER-THREAD*"
    "*UNCOMPACTED-FUN-MAPS*" "*COMPILED-DEBUG-FUNS*" "*STARTING-THREADS*" "*JOINABLE-THREADS*" "*ALL-THREADS*" "*AVAILABLE-BUFFERS*")
  "Names of internal variables whose values change without anybody having changed anything.")

(defun moving-internal-p (symbol)
  "Whether SYMBOL, of SBCL itself, is such a variable, or a cache."
  (let ((name (symbol-name symbol)))
    (and (system-symbol-p symbol)
         (or (member name *moving-internals* :test #'string=)
             (search "-CACHE-VECTOR*" name)))))

;;; The checker (check/)

(define-internal encapsulated-condition :function "checking" ("SB-INT" "ENCAPSULATED-CONDITION"))
(define-internal compiler-error-type :symbol "checking" ("SB-C" "COMPILER-ERROR"))

;; Reading: the stream that tells where every object it reads begins and ends.
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

;; COMPILE-FILE's loop over the forms of a file.
(define-internal do-forms-name :symbol "checking" ("SB-C" "%DO-FORMS-FROM-INFO"))
(define-internal source-info-file :function "checking" ("SB-C" "SOURCE-INFO-FILE-INFO"))
(define-internal source-info-stream :place "checking" ("SB-C" "SOURCE-INFO-STREAM"))
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
(define-internal same-file-redefinition-type :symbol "checking" ("SB-INT" "SAME-FILE-REDEFINITION-WARNING"))
(define-internal duplicate-definition-name :function "checking"
  ("SB-INT" "DUPLICATE-DEFINITION-NAME") ("SB-KERNEL" "DUPLICATE-DEFINITION-NAME"))
(define-internal handler-clusters :variable "checking" ("SB-KERNEL" "*HANDLER-CLUSTERS*"))
(define-internal initial-handler-clusters :variable "checking" ("SB-KERNEL" "**INITIAL-HANDLER-CLUSTERS**"))
(define-internal package-variance-type :symbol "checking" ("SB-INT" "PACKAGE-AT-VARIANCE") ("SB-KERNEL" "PACKAGE-AT-VARIANCE"))
(define-internal info :macro "checking a text that is loaded" ("SB-INT" "INFO"))
(define-internal specifier-type :function "checking a text that is loaded" ("SB-KERNEL" "SPECIFIER-TYPE"))
(define-internal clear-info :macro "checking a text that is loaded" ("SB-INT" "CLEAR-INFO"))

(defun forget-function-type (name)
  "Make the compiler forget what it took from the definition of the function NAME: it knows of none now. What was proclaimed stays, and
calling it goes on as before."
  (when (member (info :function :where-from name) '(:defined :defined-method))
    (unless (info :function :source-transform name) ; of a structure
      (setf (info :function :type name) (specifier-type 'function)) ; without one it looks at the function itself
      (clear-info :function :inlining-data name)
      (setf (info :function :where-from name) :assumed))))

(define-internal print-condition-references :variable "clean messages" ("SB-INT" "*PRINT-CONDITION-REFERENCES*"))

;;; Copying the image (copy.lisp)

(define-internal without-collecting :macro "copying the image" ("SB-SYS" "WITHOUT-GCING"))
(define-internal map-heap :function "copying the image" ("SB-VM" "LIST-ALLOCATED-OBJECTS"))
(define-internal instance-widetag :variable "copying the image" ("SB-VM" "INSTANCE-WIDETAG"))
(define-internal mutex-state :function "copying the image" ("SB-THREAD" "MUTEX-%STATE") ("SB-THREAD" "MUTEX-STATE"))
(define-internal primitive-thread :function "copying the image" ("SB-THREAD" "THREAD-PRIMITIVE-THREAD"))
(define-internal thread-next-slot :variable "copying the image" ("SB-VM" "THREAD-NEXT-SLOT"))
(define-internal thread-previous-slot :variable "copying the image" ("SB-VM" "THREAD-PREV-SLOT"))
(define-internal word-bytes :variable "copying the image" ("SB-VM" "N-WORD-BYTES"))
(define-internal all-threads :variable "copying the image" ("SB-THREAD" "*ALL-THREADS*"))
(define-internal avl-insert :function "copying the image" ("SB-THREAD" "AVL-INSERT"))
(define-internal joinable-threads :variable "copying the image" ("SB-THREAD" "*JOINABLE-THREADS*"))
(define-internal finalizer-thread :variable "copying the image" ("SB-IMPL" "*FINALIZER-THREAD*"))
(define-internal world-lock :variable "copying the image" ("SB-KERNEL" "**WORLD-LOCK**") ("SB-C" "**WORLD-LOCK**"))
(define-internal sap-32 :place "copying the image" ("SB-SYS" "SAP-REF-32"))
(define-internal sap-word :place "copying the image" ("SB-SYS" "SAP-REF-WORD"))
(define-internal restart-clusters :variable "leaving the image's handlers behind" ("SB-KERNEL" "*RESTART-CLUSTERS*"))
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

;;; What is known of symbols (symbols/)

(define-internal function-xrefs :function "finding references" ("SB-KERNEL" "%SIMPLE-FUN-XREFS"))
(define-internal map-packed-xrefs :function "finding references" ("SB-C" "MAP-PACKED-XREF-DATA"))
(define-internal method-fast-function :function "finding references in methods" ("SB-PCL" "SAFE-METHOD-FAST-FUNCTION"))
(define-internal underlying-function :function "finding references" ("SB-KERNEL" "%FUN-FUN"))
(define-internal function-code :function "finding references" ("SB-KERNEL" "FUN-CODE-HEADER"))
(define-internal code-entries :function "finding references" ("SB-KERNEL" "CODE-N-ENTRIES"))
(define-internal code-entry :function "finding references" ("SB-KERNEL" "%CODE-ENTRY-POINT"))
(define-internal function-definition-source :function "finding references" ("SB-INTROSPECT" "FIND-FUNCTION-DEFINITION-SOURCE"))
(define-internal unparse-specializers :function "naming methods" ("SB-PCL" "UNPARSE-SPECIALIZERS"))

(defun variable-kind (symbol)
  "What the compiler takes SYMBOL for as a variable: :SPECIAL, :GLOBAL, :CONSTANT, :MACRO, :ALIEN, :UNKNOWN."
  (info :variable :kind symbol))

(defun type-expander-p (symbol)
  "Whether SYMBOL was defined by DEFTYPE."
  (and (info :type :expander symbol) t))

(defun setf-expander-function (symbol)
  "What DEFSETF or DEFINE-SETF-EXPANDER made of SYMBOL: a function, something else that is true, or NIL."
  (let ((expander (info :setf :expander symbol)))
    (if (and (consp expander) (functionp (cdr expander))) (cdr expander) expander)))

(defun map-function-xrefs (function simple-function)
  "Call FUNCTION with the kind, as :CALLS, and the name of all that the code of SIMPLE-FUNCTION refers to."
  (let ((xrefs (function-xrefs simple-function)))
    (when xrefs
      (map-packed-xrefs (lambda (kind name form-number)
                          (declare (ignore form-number))
                          (funcall function kind name))
                        xrefs))))
;;; Reloading (reload/): what a name stands for in the compiler's database, what code was made from, and methods replaced in one store.

(define-internal set-info-value :function "undoing a reload" ("SB-INT" "SET-INFO-VALUE"))
(define-internal clear-info-values :function "undoing a reload" ("SB-INT" "CLEAR-INFO-VALUES"))
(define-internal meta-info-category :function "undoing a reload" ("SB-IMPL" "META-INFO-CATEGORY") ("SB-INT" "META-INFO-CATEGORY"))
(define-internal definition-source-slot :symbol "undoing a reload" ("SB-PCL" "SOURCE"))
(define-internal initial-methods-slot :symbol "undoing a reload" ("SB-PCL" "INITIAL-METHODS"))
(define-internal fast-method-function :function "finding stale callers" ("SB-PCL" "%METHOD-FUNCTION-FAST-FUNCTION"))
(define-internal generic-function-lock :function "replacing methods that other threads call" ("SB-PCL" "GF-LOCK"))
(define-internal set-methods :symbol "replacing methods that other threads call" ("SB-PCL" "GENERIC-FUNCTION-METHODS"))
(define-internal set-method-function :symbol "replacing methods that other threads call" ("SB-PCL" "METHOD-GENERIC-FUNCTION"))

(define-internal remove-slot-accessors :symbol "replacing accessors that other threads call" ("SB-PCL" "REMOVE-SLOT-ACCESSORS"))

(defun put-method-in-place (generic-function new old)
  "Have NEW stand where the method OLD of GENERIC-FUNCTION stands, in one store. What is decided by the old list of methods goes on to be called until
SBCL's own method of ADD-METHOD, which is to be called next, has it decided anew; by itself that removes OLD first, and a caller in between finds no method."
  (without-interrupts
    (sb-thread:with-recursive-lock ((generic-function-lock generic-function))
      (funcall (fdefinition `(setf ,set-methods))
               (cons new (remove old (sb-mop:generic-function-methods generic-function)))
               generic-function)
      (funcall (fdefinition `(setf ,set-method-function)) nil old)
      (dolist (specializer (sb-mop:method-specializers old))
        (sb-mop:remove-direct-method specializer old)))))

(defun observe-compiler-errors (observe)
  "From now on OBSERVE is called with each error that the compiler reports, a condition or a string, where it reports it."
  (when (internal-p 'print-compiler-message-name)
    (encapsulate print-compiler-message-name 'consort-reload
                 (lambda (function stream control arguments &rest more)
                   (when (and (stringp control) (search "caught ERROR" control))
                     (funcall observe (first arguments)))
                   (apply function stream control arguments more)))))

(define-global *replace-in-place-p* (constantly nil) "Called to know whether a method that this thread adds takes the place of another in one store.")

(defun replace-methods-in-place (wanted-p)
  "From now on, where WANTED-P returns true, a method that takes the place of another does so at no moment when there is neither."
  (setf *replace-in-place-p* wanted-p))

;;; A method and not an encapsulation of REAL-ADD-METHOD: that function itself is the function of ADD-METHOD's one method (pcl/boot.lisp,
;;; *!GENERIC-FUNCTION-FIXUPS*), so nothing calls it by its name.
(defmethod add-method :around ((generic-function standard-generic-function) (method standard-method))
  (when (and (funcall *replace-in-place-p*) (null (sb-mop:method-generic-function method))
             (internal-p 'generic-function-lock) (internal-p 'set-methods) (internal-p 'set-method-function))
    (let ((old (find-method generic-function (method-qualifiers method) (sb-mop:method-specializers method) nil)))
      (when (and old (equal (sb-mop:method-lambda-list old) (sb-mop:method-lambda-list method)))
        (put-method-in-place generic-function method old))))
  (call-next-method))

(defun defer-removed-accessors (wanted-p note)
  "From now on, where WANTED-P returns true, a class that is defined again keeps its old accessors until it has its new ones: NOTE is called with the class
and its old slots."
  (when (internal-p 'remove-slot-accessors)
    (encapsulate remove-slot-accessors 'consort
                 (lambda (function class slots)
                   (if (funcall wanted-p)
                       (funcall note class slots)
                       (funcall function class slots))))))

(defun info-kinds (name)
  "What the compiler's database has on the symbol NAME and on names made from it: a list of (NAME NUMBER CATEGORY KIND VALUE), without what is no part of a
definition: the function itself, how often it was called, what is assumed of it."
  (let ((result '()))
    (call-with-each-info (lambda (name number value)
                           (let ((meta (svref *info-types* number)))
                             (when (and meta (not (eql meta 0)))
                               (let ((kind (meta-info-kind meta)))
                                 (unless (member kind '(:emitted-full-calls :definition :assumed-type :forward-references :package :wired-tls
                                                        :classoid-cell :compiler-layout :builtin))
                                   (push (list name number (meta-info-category meta) kind value) result))))))
                         name)
    result))

(define-internal undefined-warning-contexts :function "where a reload's undefined variables are" ("SB-C" "UNDEFINED-WARNING-WARNINGS"))
(define-internal context-file-name :function "where a reload's undefined variables are" ("SB-C" "COMPILER-ERROR-CONTEXT-FILE-NAME"))
(define-internal context-file-position :function "where a reload's undefined variables are" ("SB-C" "COMPILER-ERROR-CONTEXT-FILE-POSITION"))

(defun undefined-variable-use ()
  "Of the variables that this compilation unit uses and nobody defined, the first: its name, and the file and the offset of a form that uses it, if known."
  (let ((warning (find :variable (undefined-warnings) :key #'undefined-warning-kind :from-end t)))
    (when warning
      (let ((context (first (ignore-errors (undefined-warning-contexts warning)))))
        (values (undefined-warning-name warning)
                (ignore-errors (context-file-name context))
                (ignore-errors (context-file-position context)))))))

(defun code-of (function)
  "The code that FUNCTION is part of, or NIL."
  (ignore-errors (function-code (underlying-function function))))

(defun map-code-uses (function code)
  "Call FUNCTION with :CALLS or :MACROEXPANDS and a name for each function called, or inlined, and macro expanded in CODE."
  (dotimes (i (code-entries code))
    (map-function-xrefs (lambda (kind name)
                          (when (member kind '(:calls :macroexpands)) (funcall function kind name)))
                        (code-entry code i))))

(define-internal structure-description :function "undoing a reload" ("SB-KERNEL" "FIND-DEFSTRUCT-DESCRIPTION"))
(define-internal structure-constructors :function "undoing a reload" ("SB-KERNEL" "DD-CONSTRUCTORS"))
(define-internal structure-copier :function "undoing a reload" ("SB-KERNEL" "DD-COPIER-NAME"))
(define-internal structure-predicate :function "undoing a reload" ("SB-KERNEL" "DD-PREDICATE-NAME"))
(define-internal structure-slots :function "undoing a reload" ("SB-KERNEL" "DD-SLOTS"))
(define-internal slot-accessor :function "undoing a reload" ("SB-KERNEL" "DSD-ACCESSOR-NAME"))

(defun structure-names (name)
  "The functions that the definition of the structure NAME made."
  (let ((description (ignore-errors (structure-description name))))
    (when description
      (append (mapcar (lambda (constructor) (if (consp constructor) (car constructor) constructor)) (structure-constructors description))
              (list (structure-copier description) (structure-predicate description))
              (mapcar #'slot-accessor (structure-slots description))))))
;;; Special operators of SBCL's own, and what else stands for a function (expand/)

(define-internal the* :symbol "expanding every macro in a form" ("SB-KERNEL" "THE*"))
(define-internal truly-the :symbol "expanding every macro in a form" ("SB-EXT" "TRULY-THE"))
(define-internal with-source-form :symbol "expanding every macro in a form" ("SB-C" "WITH-SOURCE-FORM"))
(define-internal named-lambda :symbol "expanding every macro in a form" ("SB-INT" "NAMED-LAMBDA"))
;;; Profiling (profile/): the stack of an interrupted thread, and what SB-SPROF has gathered

(define-internal unencapsulate :function "profiling threads that the code starts" ("SB-INT" "UNENCAPSULATE"))
(define-internal context-pc :function "profiling" ("SB-VM" "CONTEXT-PC"))
(define-internal context-register :function "profiling" ("SB-VM" "CONTEXT-REGISTER"))
(define-internal stack-register :variable "profiling" ("SB-VM" "RSP-OFFSET"))
(define-internal frame-register :variable "profiling" ("SB-VM" "RBP-OFFSET"))
(define-internal thread-slot :macro "profiling" ("SB-VM" "CURRENT-THREAD-OFFSET-SAP"))
(define-internal stack-end-slot :variable "profiling" ("SB-VM" "THREAD-CONTROL-STACK-END-SLOT"))
(define-internal code-from-pc :function "profiling" ("SB-DI" "CODE-HEADER-FROM-PC"))
(define-internal code-start :function "profiling" ("SB-KERNEL" "CODE-INSTRUCTIONS"))
(define-internal debug-function-at :function "profiling" ("SB-DI" "DEBUG-FUN-FROM-PC"))
(define-internal assembler-routines :variable "profiling" ("SB-FASL" "*ASSEMBLER-ROUTINES*") ("SB-KERNEL" "*ASSEMBLER-ROUTINES*"))
(define-internal assembler-routine-at :function "profiling" ("SB-DISASSEM" "FIND-ASSEMBLER-ROUTINE"))
(define-internal foreign-symbol-at :function "profiling" ("SB-SYS" "SAP-FOREIGN-SYMBOL") ("SB-IMPL" "SAP-FOREIGN-SYMBOL"))
(define-internal sprof-samples :variable "profiling allocation" ("SB-SPROF" "*SAMPLES*"))
(define-internal sprof-vector :place "profiling allocation" ("SB-SPROF" "SAMPLES-VECTOR"))
(define-internal sprof-gathered :function "profiling allocation" ("SB-SPROF" "CONVERT-RAW-DATA"))
(define-internal map-sprof-trace :function "profiling allocation" ("SB-SPROF" "MAP-TRACE-PC-LOCS"))
(define-internal sprof-mode :variable "profiling allocation" ("SB-SPROF" "*PROFILING*"))
(define-internal debug-function-type :type "profiling allocation" ("SB-DI" "COMPILED-DEBUG-FUN"))
(define-internal code-type :type "profiling allocation" ("SB-KERNEL" "CODE-COMPONENT"))

(defun signal-context (sap)
  "What a signal's handler was given as its third argument, as CONTEXT-PC and CONTEXT-REGISTER want it."
  (sb-alien:sap-alien sap (* sb-sys:os-context-t)))
