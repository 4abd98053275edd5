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
(define-internal with-source-paths :macro "finding what was evaluated from a file" ("SB-C" "WITH-SOURCE-PATHS"))
(define-internal find-source-paths :function "finding what was evaluated from a file" ("SB-C" "FIND-SOURCE-PATHS"))
(define-internal eval-tlf :function "finding what was evaluated from a file" ("SB-EXT" "EVAL-TLF") ("SB-INT" "EVAL-TLF") ("SB-IMPL" "EVAL-TLF"))

(defstruct (source (:constructor %make-source (info file-info)))
  "A text from a file that is being evaluated form by form."
  (info nil :read-only t)
  (file-info nil :read-only t))

(defun make-source (pathname)
  "A source whose forms are found in PATHNAME."
  (let ((file-info (make-file-info (if (internal-p 'file-info-%truename) :%truename :truename) pathname
                                   :pathname pathname
                                   :write-date (ignore-errors (file-write-date pathname)))))
    (%make-source (make-source-info :file-info file-info) file-info)))

(defun eval-in-source (form position source)
  "Evaluate FORM, whose first character is at POSITION in SOURCE's file, 0-based, so that what it defines is found there."
  (let* ((file-info (source-file-info source))
         (index (vector-push-extend form (file-info-forms file-info))))
    (vector-push-extend position (file-info-positions file-info))
    (progv (list *source-info*) (list (source-info source))
      (with-source-paths
        (find-source-paths form index)
        (eval-tlf form index)))))

;;; What the system itself prints to, and the frames that belong to it

(define-internal *stdout* :variable "showing what threads print" ("SB-SYS" "*STDOUT*") ("SB-IMPL" "*STDOUT*"))
(define-internal *stderr* :variable "showing what threads print" ("SB-SYS" "*STDERR*") ("SB-IMPL" "*STDERR*"))

(defun named (&rest names)
  "The symbols that exist of NAMES, each \"PACKAGE:SYMBOL\"."
  (loop for name in names
        for colon = (position #\: name)
        for package = (find-package (subseq name 0 colon))
        for symbol = (and package (find-symbol (subseq name (1+ colon)) package))
        when symbol collect symbol))

(defvar *evaluator-frames*
  (named "COMMON-LISP:EVAL" "SB-IMPL:%SIMPLE-EVAL" "SB-INT:SIMPLE-EVAL-IN-LEXENV" "SB-IMPL:SIMPLE-EVAL-IN-LEXENV" "SB-EXT:EVAL-TLF"
         "SB-INT:EVAL-TLF" "SB-IMPL:EVAL-TLF" "SB-IMPL:EVAL-IN-LEXENV" "SB-KERNEL:EVAL-IN-LEXENV" "SB-IMPL:SIMPLE-EVAL-PROGN-BODY"
         "SB-IMPL:SIMPLE-EVAL-LOCALLY")
  "Names of frames of the evaluator: never shown.")

(defvar *signalling-frames*
  (named "COMMON-LISP:ERROR" "COMMON-LISP:CERROR" "COMMON-LISP:BREAK" "COMMON-LISP:WARN" "COMMON-LISP:SIGNAL" "COMMON-LISP:INVOKE-DEBUGGER"
         "SB-KERNEL:INTERNAL-ERROR" "SB-KERNEL:%BREAK" "SB-IMPL:%BREAK" "SB-SYS:INTERACTIVE-INTERRUPT" "SB-KERNEL:CONTROL-STACK-EXHAUSTED-ERROR"
         "SB-KERNEL:HEAP-EXHAUSTED-ERROR" "SB-KERNEL:UNDEFINED-FUN-ERROR-HANDLER" "SB-KERNEL:INVALID-ARG-COUNT-ERROR"
         "SB-DEBUG:RUN-HOOK" "SB-DEBUG:%INVOKE-DEBUGGER" "SB-INT:SIMPLE-READER-ERROR" "SB-KERNEL:READER-EOF-ERROR"
         "SB-IMPL:READER-EOF-ERROR" "SB-INT:SIMPLE-PROGRAM-ERROR" "SB-KERNEL:%SIGNAL")
  "Names of frames between the place of an error and the handler: not shown at the top.")

(define-internal map-backtrace :function "backtraces of stack exhaustion" ("SB-DEBUG" "MAP-BACKTRACE"))
(define-internal %frame-debug-function :function "backtraces of stack exhaustion" ("SB-DI" "FRAME-DEBUG-FUN"))
(define-internal %debug-function-name :function "backtraces of stack exhaustion" ("SB-DI" "DEBUG-FUN-NAME"))

(defun frame-function-name (frame)
  "The name of the function of FRAME, as MAP-BACKTRACE gives it."
  (%debug-function-name (%frame-debug-function frame)))

(define-internal stack-exhausted :symbol "reporting stack exhaustion" ("SB-KERNEL" "CONTROL-STACK-EXHAUSTED") ("SB-SYS" "CONTROL-STACK-EXHAUSTED"))

;;; The process

(define-internal dynamic-usage :function "stopping evaluations before the heap is full" ("SB-KERNEL" "DYNAMIC-USAGE"))

(defun prepare-signals ()
  "SIGTERM ends the image, as it does any process; SIGINT is the terminal's and is not for an image that the host owns."
  (enable-interrupt sb-posix:sigterm :default)
  (enable-interrupt sb-posix:sigint :ignore))
