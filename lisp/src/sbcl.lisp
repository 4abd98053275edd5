;;;; With sbcl/, the only file that names SBCL's internal packages; a test checks that
;;;; (tests/run.sh). This file has what all other files need, and sbcl/ has what one area needs.
;;;; Every internal name is looked up when its file is compiled and loaded, always by the SBCL that
;;;; will run it, and gets a name of Consort's. If SBCL no longer has it, INTERNAL-P is false, and a
;;;; use of Consort's name signals MISSING-INTERNAL, which names the lost feature.

(in-package :consort)

;;; The guard

(define-condition missing-internal (error)
  ((name :initarg :name :reader missing-internal-name)
   (feature :initarg :feature :reader missing-internal-feature))
  (:documentation "Signalled if this SBCL lacks an internal that a feature needs.")
  (:report (lambda (condition stream)
             (format stream "~A ~A has no ~A: ~A does not work with it. Please report this, with the version."
                     (lisp-implementation-type) (lisp-implementation-version)
                     (missing-internal-name condition) (missing-internal-feature condition)))))

(defun missing-internal (name feature)
  "Signals that this SBCL lacks NAME, and so FEATURE."
  (error 'missing-internal :name name :feature feature))

(eval-when (:compile-toplevel :load-toplevel :execute)
  (defun find-internal (kind candidates)
    "The first symbol of CANDIDATES, a list of (PACKAGE NAME), that this SBCL defines as a KIND; NIL
    if there is none."
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
  "Gives NAME to an internal of SBCL: the first of CANDIDATES, each (PACKAGE SYMBOL), both strings.
  FEATURE is lost without it. KIND is one of:
  - :FUNCTION: NAME becomes the same function;
  - :MACRO: (NAME ...) is a call of the macro, also as a place of SETF (so this also serves for a
    function with a SETF);
  - :PLACE: the same as :MACRO, for an accessor;
  - :VARIABLE: NAME is a symbol macro for the special variable or constant; it must be bound with
    WITH-INTERNALS, never with LET;
  - :TYPE: NAME is a type specifier;
  - :SYMBOL: NAME is a symbol macro for the quoted symbol itself."
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
  "Returns true if this SBCL has the internal that DEFINE-INTERNAL called NAME."
  (and (get name 'internal) t))

(defmacro with-internals (bindings &body body)
  "Binds internal variables, ((NAME VALUE) ...), around BODY. Variables that this SBCL lacks are
  left out."
  `(progv (remove nil (list ,@(loop for (name) in bindings collect `(get ',name 'internal))))
       (loop for symbol in (list ,@(loop for (name) in bindings collect `(get ',name 'internal)))
             for value in (list ,@(mapcar #'second bindings))
             when symbol collect value)
     ,@body))

(defmacro define-global (name value documentation)
  "Defines a variable that threads share and that is never bound. Unlike with SB-EXT:DEFGLOBAL,
  VALUE is not evaluated at compile time."
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
(define-internal thread-os-tid :function "telling how much of a processor a thread takes" ("SB-THREAD" "THREAD-OS-TID"))
(define-internal thread-waiting-for :function "telling which lock a thread waits for" ("SB-THREAD" "THREAD-WAITING-FOR"))
(define-internal active-processes :variable "ending the programs that the image has started" ("SB-IMPL" "*ACTIVE-PROCESSES*"))
(define-internal enable-interrupt :function "leaving on SIGTERM" ("SB-SYS" "ENABLE-INTERRUPT"))
(define-internal interruption-handler :function "interrupting after code has replaced the handler" ("SB-UNIX" "SIGURG-HANDLER"))
(define-internal alarm-handler :function "alarms in a copy of an image whose code has replaced the handler" ("SB-UNIX" "SIGALRM-HANDLER"))
(define-internal interruption-signal :variable "interrupting after code has replaced the handler" ("SB-UNIX" "SIGURG"))

(defvar *users-code* t
  "True while the user's code runs, to which its encapsulations of the system's functions apply.")

(defmacro with-lock ((mutex) &body body)
  "Runs BODY with MUTEX held and interrupts off, so that nothing unwinds out of it. Only for short
  work that does not run user code."
  `(without-interrupts (let ((*users-code* nil)) (sb-thread:with-mutex (,mutex) ,@body))))

;;; Locks of the runtime (code/target-thread.lisp)

(define-internal mutex-state :function "copying the image" ("SB-THREAD" "MUTEX-%STATE") ("SB-THREAD" "MUTEX-STATE"))
(define-internal make-thread-lock :variable "answering while no thread can be made" ("SB-THREAD" "*MAKE-THREAD-LOCK*"))

(defconstant +lock-bits+ 3 "The bits of a mutex's state that mean that it is held. Newer SBCLs have
  other bits beside them.")

(declaim (inline lock-held-p))
(defun lock-held-p (lock)
  "Returns true if a thread holds LOCK. The state is read, not the owner, because a lock that was
  just taken has no owner yet."
  (plusp (logand +lock-bits+ (mutex-state lock))))

;;; Descriptors: read(2) and write(2) without the copies and locks of streams. After EINTR they are
;;; called again.

(define-internal vector-sap :macro "reading and writing the link" ("SB-SYS" "VECTOR-SAP"))
(define-internal sap-advance :macro "reading and writing the link" ("SB-SYS" "SAP+"))
(define-internal with-pinned-objects :macro "reading and writing the link" ("SB-SYS" "WITH-PINNED-OBJECTS"))
(define-internal wait-until-fd-usable :function "answering while the host does not read" ("SB-SYS" "WAIT-UNTIL-FD-USABLE"))

(defun read-octets (fd octets start end)
  "Reads once from FD into OCTETS. Returns the number of octets, which is 0 at the end of file, or
  NIL and errno if the call failed."
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
  "Writes all OCTETS to FD. Returns true, or NIL and errno if a call failed. A program that shares
  FD may have made it non-blocking."
  (declare (type (simple-array (unsigned-byte 8) (*)) octets) (type (unsigned-byte 31) fd) (type (unsigned-byte 62) start end))
  (loop while (< start end)
        do (let ((count (with-pinned-objects (octets)
                          (sb-alien:alien-funcall
                           (sb-alien:extern-alien "write" (function sb-alien:long sb-alien:int sb-sys:system-area-pointer sb-alien:unsigned-long))
                           fd (sap-advance (vector-sap octets) start) (- end start)))))
             (if (minusp count)
                 (let ((errno (sb-alien:get-errno)))
                   (cond ((= errno sb-posix:eintr))
                         ((= errno sb-posix:eagain) (wait-until-fd-usable fd :output nil nil))
                         (t (return-from write-octets (values nil errno)))))
                 (incf start count))))
  t)

(defun exit-process (code)
  "Ends the process at once by _exit(2). No hook runs, no thread is awaited, and no buffer is
  flushed."
  (sb-alien:alien-funcall (sb-alien:extern-alien "_exit" (function sb-alien:void sb-alien:int)) code)
  (loop))

;;; Calls that end the process are refused in every thread, because the image is shared.

(define-internal os-exit :symbol "refusing (sb-ext:exit)" ("SB-EXT" "OS-EXIT") ("SB-SYS" "OS-EXIT") ("SB-IMPL" "OS-EXIT"))

(define-global *serves-host* nil "True once this process is an image that serves a host; also true
  in its copies.")

(defun refuse-exits (refuse)
  "From now on, calls of SBCL's functions that end the process call REFUSE instead, with the
  function's name and its arguments, if the process serves a host."
  (dolist (name (list 'sb-ext:exit 'sb-ext:quit 'sb-ext:save-lisp-and-die os-exit))
    (when (fboundp name)
      (encapsulate name 'consort (lambda (function &rest arguments)
                                   (declare (function function))
                                   (if *serves-host*
                                       (apply refuse name arguments)
                                       (apply function arguments)))))))

;;; Calls by which the image would lose a package that everything needs are refused.

(defun refuse-package-loss (names refuse)
  "From now on, some calls call REFUSE instead, with the name of the function and of the package.
  These are calls that delete or rename one of the packages NAMES, that make one no longer use
  COMMON-LISP or see a name of it, or that remove a symbol from COMMON-LISP."
  (let ((packages (mapcar #'find-package names)) (common-lisp (find-package "COMMON-LISP")))
    (labels ((kept-package (designator)
               (find (ignore-errors (find-package designator)) packages))
             (elements (list-or-one)
               (if (listp list-or-one) list-or-one (list list-or-one)))
             (visible-p (name package)
               "Returns true if NAME in PACKAGE is the symbol of COMMON-LISP, which PACKAGE uses."
               (multiple-value-bind (symbol status) (find-symbol name package)
                 (and (eq status :inherited) (eq symbol (find-symbol name common-lisp)))))
             (loses-symbols-p (names &optional (designator *package*) &rest more)
               (declare (ignore more))
               (let ((package (kept-package designator)))
                 (and package (some (lambda (name) (and (typep name '(or string character symbol)) (visible-p (string name) package))) (elements names))
                      package)))
             (loses-definitions-p (symbols &optional (designator *package*) &rest more)
               ;; Libraries make a package see their own definitions instead of COMMON-LISP's.
               (declare (ignore more))
               (loses-symbols-p (remove-if (lambda (symbol)
                                             (or (not (symbolp symbol)) (fboundp symbol) (boundp symbol)
                                                 (not (fboundp (find-symbol (symbol-name symbol) common-lisp)))))
                                           (elements symbols))
                                designator))
             (loses-use-p (unused &optional (designator *package*) &rest more)
               (declare (ignore more))
               (let ((package (kept-package designator)))
                 (and package (member common-lisp (package-use-list package))
                      (find common-lisp (elements unused) :key (lambda (one) (ignore-errors (find-package one))))
                      package)))
             (loses-own-symbols-p (symbols &optional (designator *package*))
               (let ((package (kept-package designator)))
                 (and (eq package common-lisp)
                      (some (lambda (symbol) (and (symbolp symbol) (eq symbol (find-symbol (symbol-name symbol) common-lisp))))
                            (elements symbols))
                      package)))
             ;; NIL is a symbol as an argument of UNINTERN, not a list.
             (loses-own-symbol-p (symbol &optional (designator *package*))
               (loses-own-symbols-p (list symbol) designator))
             (loses-itself-p (designator &rest more)
               (let ((package (kept-package designator)))
                 ;; The package's own name is no nickname.
                 (and package (not (and more (equal (string (first more)) (package-name package))))
                      package))))
      (loop for (name . loss) in (list (cons 'delete-package #'loses-itself-p) (cons 'rename-package #'loses-itself-p)
                                       (cons 'unuse-package #'loses-use-p) (cons 'unintern #'loses-own-symbol-p) (cons 'unexport #'loses-own-symbols-p)
                                       (cons 'shadow #'loses-symbols-p) (cons 'shadowing-import #'loses-definitions-p))
            do (let ((name name) (loss loss))
                 (declare (function loss))
                 (encapsulate name 'consort
                              (lambda (function &rest arguments)
                                (declare (function function))
                                (let ((lost (and arguments (apply loss arguments))))
                                  (if lost
                                      (funcall refuse name (package-name lost))
                                      (apply function arguments))))))))))

;;; New definitions of a standard condition are refused, because they change it in place
;;; (code/target-error.lisp).

(define-internal define-condition-name :symbol "keeping the standard's conditions" ("SB-KERNEL" "%DEFINE-CONDITION"))

(defun refuse-standard-conditions (refuse)
  "From now on, a definition of a standard condition calls REFUSE instead, with its name, if the
  process serves a host."
  (when (internal-p 'define-condition-name)
    (let ((common-lisp (find-package "COMMON-LISP")))
      (encapsulate define-condition-name 'consort
                   (lambda (function name &rest arguments)
                     (declare (function function))
                     (if (and *serves-host* (eq (symbol-package name) common-lisp))
                         (funcall refuse name)
                         (apply function name arguments)))))))

;;; The source of a definition (compiler/main.lisp, code/debug-info.lisp), which is read like a file
;;; that LOAD reads.

(define-internal make-source-info :function "finding what was evaluated from a file" ("SB-C" "MAKE-SOURCE-INFO"))
(define-internal make-file-info :function "finding what was evaluated from a file" ("SB-C" "MAKE-FILE-INFO"))
(define-internal file-info-forms :function "finding what was evaluated from a file" ("SB-C" "FILE-INFO-FORMS"))
(define-internal file-info-positions :function "finding what was evaluated from a file" ("SB-C" "FILE-INFO-POSITIONS"))
;;; Not in SBCL 2.2.9.
(define-internal file-info-%truename :function "finding what was evaluated from a file" ("SB-C" "FILE-INFO-%TRUENAME"))
(define-internal *source-info* :symbol "finding what was evaluated from a file" ("SB-C" "*SOURCE-INFO*"))
(define-internal *source-paths* :symbol "finding what was evaluated from a file" ("SB-C" "*SOURCE-PATHS*"))
(define-internal *source-plist* :symbol "finding what was evaluated from a file" ("SB-C" "*SOURCE-PLIST*"))
(define-internal find-source-paths :function "finding what was evaluated from a file" ("SB-C" "FIND-SOURCE-PATHS"))
(define-internal eval-tlf :function "finding what was evaluated from a file" ("SB-EXT" "EVAL-TLF") ("SB-INT" "EVAL-TLF") ("SB-IMPL" "EVAL-TLF"))

(defstruct (source (:constructor %make-source (file info file-info)))
  "A text from a file that is evaluated form by form."
  (file "" :type string :read-only t)
  (info nil :read-only t)
  (file-info nil :read-only t))

(defun make-source (pathname)
  "A source whose forms are found in PATHNAME."
  (let ((file-info (make-file-info (if (internal-p 'file-info-%truename) :%truename :truename) pathname
                                   :pathname pathname
                                   :write-date (ignore-errors (file-write-date pathname)))))
    (%make-source (namestring pathname) (make-source-info :file-info file-info) file-info)))

(defun eval-in-source (form position source &optional (evaluated form))
  "Evaluates FORM, or EVALUATED, which was made from it, so that its definitions are found in
  SOURCE's file, in which the first character of FORM is at POSITION, 0-based. Functions remember
  the character offset. Variables, classes and methods remember only the number of the form, which
  here is not the number in the file. The plist of the definition source therefore has
  :CONSORT-FILE, which is ignored if it is not the definition's own file, and :CONSORT-POSITION."
  (let* ((file-info (source-file-info source))
         (index (vector-push-extend form (file-info-forms file-info))))
    (vector-push-extend position (file-info-positions file-info))
    (progv (list *source-info* *source-paths* *source-plist*)
        (list (source-info source)
              (make-hash-table :test 'eq)
              (list :consort-file (source-file source) :consort-position position))
      (find-source-paths form index)
      (eval-tlf evaluated index))))

;;; The policy that DECLAIM sets for all code that is compiled later (compiler/policy.lisp)

(define-internal policy-name :symbol "sessions with a compilation policy of their own" ("SB-C" "*POLICY*"))

;;; The conditions that DECLAIM makes the compiler muffle, and the package locks that it disables,
;;; for all code that is compiled later (compiler/ir1-translators.lisp, code/target-package.lisp)

(define-internal handled-conditions-name :symbol "sessions with muffled conditions of their own" ("SB-C" "*HANDLED-CONDITIONS*"))
(define-internal disabled-package-locks-name :symbol "sessions with disabled package locks of their own" ("SB-C" "*DISABLED-PACKAGE-LOCKS*"))

;;; SBCL's own systems

(define-internal sbcl-directory :function "preferring SBCL's own contribs" ("SB-INT" "SBCL-HOMEDIR-PATHNAME"))

(defun contrib-p (name)
  "Returns true if this SBCL comes with a system NAME of its own. No system of that name in a
  workspace may replace it."
  (and (internal-p 'sbcl-directory)
       (eql 0 (search "sb-" name))
       (let ((directory (sbcl-directory)))
         (and directory
              (probe-file (merge-pathnames (format nil "contrib/~A.fasl" name) directory))
              t))))

;;; Objects that came with the core

(define-internal generation-of :function "telling the system's own objects" ("SB-KERNEL" "GENERATION-OF"))
(define-internal oldest-generation :variable "telling the system's own objects" ("SB-VM" "+PSEUDO-STATIC-GENERATION+"))

(defun part-of-core-p (object)
  "Returns true if OBJECT came with the core, as part of SBCL or Consort, and was not made or loaded
  since."
  (or (not (internal-p 'generation-of))
      (not (internal-p 'oldest-generation))
      (let ((generation (generation-of object)))
        (or (null generation) (>= generation oldest-generation)))))

;;; The report that a condition's definition gives it (code/target-error.lisp)

(define-internal condition-reporter :function "telling errors while a user's PRINT-OBJECT method is for every condition" ("SB-KERNEL" "CONDITION-CLASSOID-REPORT"))
(define-internal classoid-precedence :function "telling errors while a user's PRINT-OBJECT method is for every condition" ("SB-KERNEL" "CONDITION-CLASSOID-CPL"))
(define-internal classoid-of :function "telling errors while a user's PRINT-OBJECT method is for every condition" ("SB-KERNEL" "CLASSOID-OF"))

(defun report-condition (condition stream)
  "Makes CONDITION report itself to STREAM without PRINT-OBJECT."
  (let ((*print-escape* nil))
    (funcall (some #'condition-reporter (classoid-precedence (classoid-of condition))) condition stream)))

;;; The debugger, and the frames that belong to the system

(define-internal %invoke-debugger :symbol "ending evaluations whose code unset the debugger's hook" ("SB-DEBUG" "%INVOKE-DEBUGGER"))

(defun replace-debugger (debugger)
  "From now on, where the debugger would use a terminal, DEBUGGER is called with the condition and
  NIL, if the process serves a host."
  (when (internal-p '%invoke-debugger)
    (encapsulate %invoke-debugger 'consort (lambda (function condition)
                                             (declare (function function))
                                             (if *serves-host*
                                                 (funcall debugger condition nil)
                                                 (funcall function condition))))))

(defvar *internal-packages*
  (remove nil (mapcar #'find-package '("CONSORT" "SB-KERNEL" "SB-IMPL" "SB-INT" "SB-SYS" "SB-DEBUG" "SB-DI" "SB-VM" "SB-C" "SB-UNIX" "SB-FORMAT"
                                       "SB-PRETTY" "SB-BIGNUM" "SB-LOOP" "SB-FASL")))
  "The packages for whose functions no frames are shown. Functions internal to any other package of
  SBCL are not shown either.")

(defvar *signalling-frames* '(error cerror break signal warn invoke-debugger)
  "Functions whose frames are shown above the place of an error only if that place called them
  itself.")

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
  "The name of the function of FRAME, a frame from MAP-BACKTRACE."
  (%debug-function-name (%frame-debug-function frame)))

(define-internal find-foreign-symbol-address :function "surviving the exhaustion of stacks" ("SB-SYS" "FIND-FOREIGN-SYMBOL-ADDRESS"))
(define-internal int-sap :macro "surviving the exhaustion of stacks" ("SB-SYS" "INT-SAP"))

(define-global *foreign-addresses* '() "The addresses of foreign symbols that were looked up in this
  process, by name.")

(defun foreign-address (name)
  "The address of the foreign symbol NAME, or NIL. It is looked up only once. The dynamic linker
  takes a lock for that, and a copy of the image that was made while another thread held the lock
  would wait for ever."
  (let ((known (assoc name *foreign-addresses* :test #'string=)))
    (if known
        (cdr known)
        (let ((address (find-foreign-symbol-address name)))
          ;; No lock is needed: an entry that is lost to another thread's update is looked up again.
          (setf *foreign-addresses* (acons name address *foreign-addresses*))
          address))))

(defun look-up-foreign-addresses ()
  "Looks up the addresses that Consort's threads and copies need. Must be called when the process
  begins, because addresses in a saved core are those of another process."
  (setf *foreign-addresses* '())
  (mapc #'foreign-address '("auto_gc_trigger" "protect_control_stack_return_guard_page" "protect_control_stack_guard_page")))

(defun restore-stack-guards ()
  "Sets the guard pages of this thread's stack to their initial state. Must be called where a thread
  of Consort's begins and where it ends, with few frames on the stack. When a stack is exhausted,
  SBCL opens the guard page and closes the one before it. It reverts this when the depth of the
  stack has decreased to that page. If the thread ends earlier, the next thread on that memory has
  neither guard nor room: the runtime ends the process, or a stack grows past its end (runtime:
  interrupt.c, handle_guard_page_triggered; thread.c, init_new_thread)."
  (flet ((protect (page protected)
           (let ((address (foreign-address page)))
             (when address
               (sb-alien:alien-funcall (sb-alien:sap-alien (int-sap address)
                                                           (function sb-alien:void sb-alien:int sb-alien:unsigned-long))
                                       protected 0))))) ; 0: of the current thread
    (protect "protect_control_stack_return_guard_page" 0)
    (protect "protect_control_stack_guard_page" 1)))

(define-internal heap-exhausted :symbol "reporting heap exhaustion" ("SB-KERNEL" "HEAP-EXHAUSTED-ERROR"))
(define-internal stack-exhausted :symbol "reporting stack exhaustion" ("SB-KERNEL" "CONTROL-STACK-EXHAUSTED") ("SB-SYS" "CONTROL-STACK-EXHAUSTED"))

;;; The process

(defun line-buffer-stdout ()
  "Makes output of foreign code by stdio visible line by line, not only after four kilobytes."
  #+linux
  (let ((address (sb-sys:find-foreign-symbol-address "stdout")))
    (when address
      (sb-alien:alien-funcall
       (sb-alien:extern-alien "setvbuf" (function sb-alien:int sb-sys:system-area-pointer sb-alien:unsigned-long sb-alien:int sb-alien:unsigned-long))
       (sb-sys:sap-ref-sap (sb-sys:int-sap address) 0) 0 1 0))) ; _IOLBF
  nil)

(defun restore-interruption-handler ()
  "Restores SBCL's handler of the signal by which threads are interrupted, whatever code has set."
  (when (and (internal-p 'interruption-handler) (internal-p 'interruption-signal))
    (enable-interrupt interruption-signal #'interruption-handler)))

(defun restore-alarm-handler ()
  "Restores SBCL's handler of SIGALRM, by which its timers run, whatever code has set."
  (when (internal-p 'alarm-handler)
    (enable-interrupt sb-posix:sigalrm #'alarm-handler)))

(defun prepare-signals ()
  "Makes SIGTERM end the image, as it ends any process. SIGINT comes from a terminal and is ignored
  in an image that the host owns."
  (enable-interrupt sb-posix:sigterm :default)
  ;; Programs that the image starts would inherit :IGNORE.
  (enable-interrupt sb-posix:sigint (lambda (signal info context) (declare (ignore signal info context))))
  #+linux (block-awaited-signals)
  ;; The finalizers' thread began earlier, so it is started again.
  #+linux (when (and (internal-p 'stop-finalizer-thread) (internal-p 'start-finalizer-thread))
            (stop-finalizer-thread)
            (start-finalizer-thread)))
