;;;; Encapsulations that the user's code makes of functions of the system (SB-INT:ENCAPSULATE,
;;;; TRACE). They apply to the user's code and not to the work of Consort, which reads, compiles,
;;;; evaluates and prints for every session. One that an evaluation makes applies only in its
;;;; session. One of a loaded file, and a trace, apply in all of the user's code.

(in-package :consort)

(defun named-as-own-p (thread)
  "Returns true if THREAD has a name as Consort gives its threads. This also works where the thread
  begins and ends, outside its bindings."
  (let ((name (sb-thread:thread-name thread)))
    (and (stringp name) (eql 0 (search "consort " name)))))

(defun holds-for-users-code-p (session)
  "Returns true if an encapsulation that SESSION made applies to the caller. SESSION is NIL for one
  that applies in all sessions."
  (and *users-code*
       ;; The functions that are called here may be encapsulated too.
       (let ((*users-code* nil) (evaluation *evaluation*))
         (if evaluation
             (or (null session) (equal session (evaluation-session evaluation)) (equal session (evaluation-starter evaluation)))
             (not (or *own-thread* (sb-thread:main-thread-p) (named-as-own-p sb-thread:*current-thread*)))))))

(defun function-of-system-p (name)
  "Returns true if NAME is a function that came with the system and is none of Consort's."
  (let ((symbol (if (consp name) (second name) name)))
    (and (symbolp symbol)
         (fboundp name)
         (not (eq (symbol-package symbol) (load-time-value (find-package "CONSORT"))))
         (part-of-core-p (fdefinition name)))))

(defun synchronizes-p (name)
  "Returns true if NAME is a function of mutexes, semaphores or condition variables. The runtime
  calls these in all threads, with its locks held."
  (and (symbolp name)
       (eq (symbol-package name) (load-time-value (find-package "SB-THREAD")))
       (some (lambda (word) (search word (symbol-name name))) '("MUTEX" "SEMAPHORE" "LOCK" "CONDITION" "WAITQUEUE" "FUTEX"))))

(defun encapsulating-session (type)
  "The session in which an encapsulation of TYPE that is made now applies; NIL for all sessions."
  (and (not (eq type 'trace))
       (null *load-truename*)
       *evaluation*
       (or (evaluation-session *evaluation*) (evaluation-starter *evaluation*))))

(defun warn-of-encapsulation (name session)
  "Warns that the encapsulation of NAME, which SESSION makes, does not apply to Consort."
  (warn "The encapsulation of ~S applies only to the code of this session: Consort and other sessions bypass it." name)
  session)

(defun installed-by-user-p (function)
  "Returns true if the user's code, which may be a macro or a function that the reader calls,
  installs FUNCTION."
  (and *serves-host* (or *users-code* (in-user-code-p)) (functionp function) (not (part-of-core-p function))))

(defun limit-encapsulations ()
  "From now on, encapsulations that the user's code makes of the system's functions apply only to
  the user's code. The compiler, when it is called to evaluate, counts as Consort's."
  (when (internal-p 'encapsulate-name)
    (encapsulate encapsulate-name 'consort
                 (lambda (encapsulate name type function &rest more)
                   (declare (function encapsulate))
                   (when (and *serves-host* (or *users-code* (in-user-code-p)) (synchronizes-p name))
                     (error "The encapsulation of ~S is refused: the runtime calls it with its locks held. Encapsulate a function of your own that calls it." name))
                   (if (not (and (installed-by-user-p function) (function-of-system-p name)))
                       (apply encapsulate name type function more)
                       (let ((session (encapsulating-session type)) (function function))
                         (prog1 (apply encapsulate name type
                                       (lambda (basic &rest arguments)
                                         (declare (function basic function))
                                         (if (holds-for-users-code-p session)
                                             (apply function basic arguments)
                                             (apply basic arguments)))
                                       more)
                           (when session (warn-of-encapsulation name session))))))))
  (when (internal-p 'compile-in-environment)
    (encapsulate compile-in-environment 'consort
                 (lambda (compile &rest arguments)
                   (declare (function compile))
                   (let ((*users-code* (and *users-code* (not *serves-host*))))
                     (apply compile arguments))))))
