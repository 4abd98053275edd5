;;;; The changes that a form makes to the compiler's knowledge, by name, and the names that the
;;;; compiler looks up for the form. Every write to the database of names goes through one function
;;;; of SBCL. An entry there is replaced, never changed. Therefore the old entry is kept at a form's
;;;; first write, and compared after the form.

(in-package :consort)

(defstruct (form-recorder (:conc-name recording-))
  "The unfinished record of the form that is being compiled, and the data of earlier forms that the
  record needs."
  ;; Of all forms so far: symbol -> (main . assumed) after the last form that changed the symbol.
  (digests (make-hash-table :test 'eq) :read-only t)
  ;; Of all forms so far: symbol -> digest of the last form that stored a value without a digest for
  ;; it.
  (tags (make-hash-table :test 'eq) :read-only t)
  ;; Of the form that is being compiled:
  (touched (make-hash-table :test 'eq)) ; symbol -> its entry before
  (mentions (make-hash-table :test 'eq)) ; symbols that occur in the form and its expansions
  (walked (make-hash-table :test 'eq))  ; conses that were visited
  (defined '())                         ; (kind . name)
  (methods '())                         ; (generic-function qualifiers specializers lambda-list)
  (opaque nil)                          ; code other than SBCL's own ran at compile time
  (findings '())
  (keyword-uses '()))

(defun begin-recording (recorder)
  "Begins the record of the next form."
  (clrhash (recording-touched recorder))
  (setf (recording-mentions recorder) (make-hash-table :test 'eq)
        (recording-walked recorder) (make-hash-table :test 'eq)
        (recording-defined recorder) '()
        (recording-methods recorder) '()
        (recording-opaque recorder) nil
        (recording-findings recorder) '()
        (recording-keyword-uses recorder) '()
        *form-recorder* recorder))

(defun root-symbol (name)
  "The symbol in whose entry the knowledge of NAME is kept. NAME is a symbol, or a list like (setf
  f) or (method (setf f) (t t)). NIL when there is none."
  (loop while (consp name) do (setf name (and (consp (cdr name)) (second name))))
  (and (symbolp name) name))

;;; Noting

(defun note-finding (recorder finding)
  "Adds FINDING to the form's record."
  (push finding (recording-findings recorder)))

(defun note-keywords (recorder use)
  "Adds USE to the form's record. USE is a list of a generic function, a keyword that no method of
  it accepts so far, and the finding that is reported if none ever does."
  (push use (recording-keyword-uses recorder)))

(defun note-touched (symbol)
  "Keeps the entry of SYMBOL, which is about to be replaced, unless the form has written to it
  before."
  (let ((recorder *form-recorder*))
    (when recorder
      (let ((touched (recording-touched recorder)))
        (unless (nth-value 1 (gethash symbol touched))
          (setf (gethash symbol touched) (symbol-infos symbol)))))))

(defparameter *evaluations-of-definitions*
  '("%COMPILER-DEFUN" "%COMPILER-DEFVAR" "COMPILE-OR-LOAD-DEFGENERIC" "%COMPILER-DEFCLASS" "%COMPILER-DEFMACRO" "%DEFMACRO" "%PROCLAIM"
    "%DEFSETF" "%DEFINE-COMPILER-MACRO" "%DEFTYPE" "%DEFSTRUCT-PACKAGE-LOCKS" "%COMPILER-DEFSTRUCT" "%DEFSTRUCT"
    "%DEFINE-SYMBOL-MACRO" "%COMPILER-DEFINE-SYMBOL-MACRO")
  "Operators that the standard's own definitions evaluate at compile time. All of their effects are
  in the database of names. DEFPACKAGE, DEFCONSTANT and DEFINE-CONDITION are not among them: the
  symbols of a package and the value of a constant are kept elsewhere, and the class of a condition
  changes the classes that inherit from it.")

(defun evaluation-of-definition-p (form)
  "Returns true if FORM, which is evaluated at compile time, is part of a definition of the
  standard."
  (and (consp form)
       (case (car form)
         (progn (every #'evaluation-of-definition-p (cdr form)))
         (setq (eq (second form) '*package*))
         (t (and (symbolp (car form))
                 (system-symbol-p (car form))
                 (member (symbol-name (car form)) *evaluations-of-definitions* :test #'string=)
                 t)))))

(defun hook-compiler ()
  "Makes SBCL's compiler note changes of its knowledge from now on, while a form is recorded. This
  is a part of the build, like HOOK."
  (encapsulate update-symbol-info-name 'consort-chain
               (lambda (original symbol update)
                 (declare (type function original))
                 (note-touched symbol)
                 (funcall original symbol update)))
  (encapsulate note-name-defined-name 'consort-chain
               (lambda (original name kind)
                 (declare (type function original))
                 (when *form-recorder*
                   (pushnew (cons kind name) (recording-defined *form-recorder*) :test #'equal))
                 (funcall original name kind)))
  (encapsulate eval-compile-toplevel-name 'consort-chain
               (lambda (original body path)
                 (declare (type function original))
                 (when (and *form-recorder* (notevery #'evaluation-of-definition-p body))
                   (setf (recording-opaque *form-recorder*) t))
                 (funcall original body path))))

(when (chain-internals-p)
  (hook-compiler))

(defun system-owned-p (symbol)
  "Returns true if SYMBOL belongs to a package of SBCL itself, so that the compiler's knowledge of
  it does not change. A lock on the package is no sign of that."
  (let ((package (symbol-package symbol)))
    (and package (package-of-system-p package))))

(defun note-mentions (recorder form)
  "Notes the symbols in FORM, which is being compiled, and those in their inline expansions. Also
  notes the methods that FORM declares."
  (let ((mentions (recording-mentions recorder)) (walked (recording-walked recorder)))
    (labels ((walk (object)
               (typecase object
                 (symbol (unless (or (null object) (gethash object mentions))
                           (setf (gethash object mentions) t)
                           (unless (system-owned-p object)
                             (let ((inline (ignore-errors (inline-expansion object))))
                               (when (consp inline) (walk inline))))))
                 (cons (when (and (eq (car object) method-declaration) (consp (cdr object)) (listp (cddr object)))
                         (pushnew (rest object) (recording-methods recorder) :test #'equal))
                  (loop while (and (consp object) (not (gethash object walked)))
                        do (setf (gethash object walked) t)
                           (walk (car object))
                           (setf object (cdr object))
                        finally (when (and object (atom object)) (walk object))))
                 (simple-vector (map nil #'walk object))
                 (t (when (comma-p object) (walk (comma-expression object)))))))
      (walk form))))

(defun call-noting-mentions (recorder form function)
  "Calls FUNCTION, which compiles FORM, and notes the names that FORM and its expansions mention."
  (note-mentions recorder form)
  (let* ((outer *macroexpand-hook*)
         (*macroexpand-hook* (lambda (expander form environment)
                               (let ((expansion (funcall outer expander form environment)))
                                 (note-mentions recorder expansion)
                                 expansion))))
    (funcall function)))

;;; Comparing

(define-global *ignored-infos*
    (and (chain-internals-p)
         (info-numbers (lambda (category kind)
                         (or (member category '(:source-location :random-documentation))
                             (member kind '(:documentation :source-location :definition :emitted-full-calls))))))
  "The numbers of the kinds of information on which no other form's findings depend.")

(define-global *assumed-type-infos*
    (and (chain-internals-p) (info-numbers (lambda (category kind) (declare (ignore category)) (eq kind :assumed-type))))
  "The numbers of the information that is assumed of undefined functions from their calls.")

(defun map-infos (function infos symbol)
  "Calls FUNCTION with the name, the number and the value of each piece of information in INFOS, the
  entry of SYMBOL, except *IGNORED-INFOS*. The name is NIL for SYMBOL itself, otherwise the operator
  of a list like (setf f)."
  (unless (member infos '(nil 0))
    (call-with-packed-infos (lambda (name number value)
                           (unless (member number *ignored-infos*)
                             (funcall function (if (symbolp name) nil (car name)) number value)))
                         infos symbol)))

(defun digests-of-infos (recorder infos symbol)
  "Two digests of INFOS, the entry of SYMBOL: of all information but the types that were assumed
  from calls, and of these types. Returns a cons."
  (let ((main 1) (assumed 1))
    (map-infos (lambda (name number value)
                 (let ((digest (mix-digest (mix-digest (symbol-digest name) number)
                                           (if (plain-object-p value) (object-digest value) (gethash symbol (recording-tags recorder) 1)))))
                   (if (member number *assumed-type-infos*)
                       (setf assumed (mix-digest assumed digest))
                       (setf main (mix-digest main digest)))))
               infos symbol)
    (cons main assumed)))

(defun new-opaque-value-p (before after symbol)
  "Returns true if the entry AFTER of SYMBOL has a value without a digest that BEFORE does not
  have."
  (let ((old '()))
    (map-infos (lambda (name number value) (declare (ignore name number)) (push value old)) before symbol)
    (map-infos (lambda (name number value)
                 (declare (ignore name number))
                 (unless (or (plain-object-p value) (member value old)) (return-from new-opaque-value-p t)))
               after symbol)
    nil))

(defun take-effects (recorder digest)
  "Returns the changes by the form with this DIGEST: a list of (symbol main-before assumed-before
  main-after assumed-after opaque). OPAQUE is true if the entry has a value without a digest. Such a
  value is represented by the digest of the form that stored it."
  (let ((digests (recording-digests recorder)) (tags (recording-tags recorder)) (effects '()))
    (maphash (lambda (symbol before)
               (let* ((after (symbol-infos symbol))
                      ;; An assumed type is changed in place before it is stored, so the entry
                      ;; before the form no longer has the earlier type.
                      (old (or (gethash symbol digests) (digests-of-infos recorder before symbol))))
                 (when (new-opaque-value-p before after symbol) (setf (gethash symbol tags) digest))
                 (let ((new (digests-of-infos recorder after symbol)))
                   (unless (equal old new)
                     (setf (gethash symbol digests) new)
                     (push (list symbol (car old) (cdr old) (car new) (cdr new) (and (gethash symbol tags) t)) effects)))))
             (recording-touched recorder))
    effects))

(defun global-digest (check)
  "A digest of the state that affects the compilation of a form and does not belong to a name."
  (object-digest (list (package-name *package*) (and (check-lost-package check) t) (policy-in-force) handled-conditions
                       disabled-package-locks *features* (readtable-case *readtable*))))
