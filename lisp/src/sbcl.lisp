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
