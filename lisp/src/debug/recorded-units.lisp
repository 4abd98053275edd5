;;;; Recorded definitions: definitions that a recorded form calls, compiled with probes that record.
;;;; In a copy of the image they replace the plain ones; for the image itself see next-call.lisp.
;;;;
;;;; A recorded function is called through a function that records the call, so its tail calls are
;;;; no longer tail calls. If calls nest deeper than +RECORDED-DEPTH+, the plain function is called.
;;;; In local functions tail calls stay tail calls, and no value is recorded for them.

(in-package :consort)

(defconstant +recorded-definitions+ 60 "The maximum number of definitions recorded where none are
  named.")

;;; Code

(defun standard-call-p (form)
  "Returns true if FORM calls a function of the standard that calls no other in tail position."
  (let ((operator (car form)))
    (and (symbolp operator)
         (eq (symbol-package operator) (load-time-value (find-package "COMMON-LISP")))
         (fboundp operator)
         (not (macro-function operator))
         (not (special-operator-p operator))
         (not (member operator '(funcall apply))))))

(defun make-recorded-units ()
  (make-array 10 :adjustable t :fill-pointer 0))

(defvar *recorded-units* (make-recorded-units) "The units of the recording in this process, a copy
  of the image, or of the recording that is being prepared.")
(defconstant +site-bits+ 12 "The number of low bits for the number of a unit's probe. The bits above
  have the number of the unit.")

(defun site-of-number (number)
  "The unit and the site of the probe NUMBER, a number that recorded code contains."
  (let ((unit (aref *recorded-units* (ash number (- +site-bits+)))))
    (values unit (aref (unit-sites unit) (ldb (byte +site-bits+ 0) number)))))

(defun call-writing-recording-probes (unit function)
  "Calls FUNCTION, which compiles UNIT, so that its probes record."
  (let* ((index (vector-push-extend unit *recorded-units*))
         (*unit* unit)
         (*probe-writer* (lambda (form inside tail number variables)
                           (recording-probe form inside tail (logior (ash index +site-bits+) number) variables))))
    (handler-bind ((warning #'muffle-warning)
                   (sb-ext:compiler-note #'muffle-warning))
      (call-printing-without-probes function))))

(defun recording-probe (form inside tail number variables)
  "The code of the probe NUMBER, which records."
  (flet ((quietly (call) `(locally (declare (sb-ext:muffle-conditions warning sb-ext:compiler-note)) ,call)))
    (let ((before (quietly `(record-before ,number ,@variables))) (value (gensym "VALUE")))
      (cond ((null tail)
             `(progn ,before
                     (let ((,value ,inside))
                       ,(quietly `(record-value ,number ,value ,@variables))
                       ,value)))
            ((or (eq tail :all) (standard-call-p form))
             `(progn ,before
                     (let ((,value (multiple-value-list ,inside)))
                       ,(quietly `(record-values ,number ,value ,@variables))
                       (values-list ,value))))
            (t `(progn ,before ,inside))))))

(defun parameter-variables (lambda-list)
  "The variables that LAMBDA-LIST, of a method or a function, binds, in their order."
  (let ((required t) (variables '()))
    (dolist (item lambda-list (nreverse variables))
      (cond ((member item lambda-list-keywords) (setf required nil))
            ((symbolp item) (push item variables))
            (required (push (first item) variables))
            (t (push (if (consp (first item)) (second (first item)) (first item)) variables))))))

(defun recording-form (unit)
  "The form that the compiler is given for UNIT."
  (let ((form (unit-form unit)) (name (unit-name unit)))
    (ecase (unit-kind unit)
      (:form `(lambda () ,(probing form :all)))
      (:function
       (destructuring-bind (lambda-list &rest body) (cddr form)
         (multiple-value-bind (forms preamble) (split-body body t)
           ;; Named differently from the function: otherwise the compiler would compile recursive
           ;; calls as direct ones.
           `(function (,named-lambda-name (recorded ,name) ,(probing-lambda-list lambda-list)
                       ,@preamble (block ,(if (consp name) (second name) name) ,@(probing-all forms :all)))))))
      (:method
       (let ((at (position-if #'listp form :start 2)))
         (destructuring-bind (lambda-list &rest body) (nthcdr at form)
           (multiple-value-bind (forms preamble) (split-body body t)
             (let ((block (if (consp name) (second name) name)))
               `(,@(subseq form 0 at) ,(probing-lambda-list lambda-list)
                 ,@preamble
                 (if (recording-call-p)
                     (record-call ,unit (list ,@(parameter-variables lambda-list))
                                  (lambda () (block ,block ,@(probing-all forms :all))))
                     ;; The plain body, in which calls in tail position stay tail calls.
                     (block ,block ,@forms)))))))))))

(defun compile-recorded (unit)
  "Compiles the definition of UNIT so that it is recorded. For a method, this also installs it."
  (let* ((*package* (unit-package unit))
         (source (make-source (sb-ext:parse-native-namestring (unit-file unit)))))
    (setf (unit-new unit)
          (call-writing-recording-probes
           unit
           (lambda ()
             (let ((form (recording-form unit)))
               (call-replacing-in-place (lambda () (eval-in-source form (unit-start unit) source)))))))))

(defun compile-recording (unit)
  "Compiles the definition of UNIT so that it is recorded, and replaces the plain one by it."
  (let ((new (compile-recorded unit)) (plain (unit-old unit)))
    (when (eq (unit-kind unit) :function)
      (exchange-function (unit-name unit)
                         (lambda (&rest arguments)
                           (if (recording-call-p)
                               (record-call unit arguments (lambda () (apply (the function new) arguments)))
                               (apply (the function plain) arguments)))))))

;;; The form itself

(defun top-level-only-p (form)
  "Returns true if the list FORM must be evaluated as a top-level form."
  (or (member (car form) '(progn eval-when locally macrolet symbol-macrolet in-package declaim))
      (definer-p form)))

(defun unit-of-form (text start end form places file line column)
  "The unit of FORM, which was read with PLACES from START to END of TEXT. TEXT begins at LINE and
  COLUMN of FILE."
  (let ((unit (make-unit file *package* (subseq text start end) form
                         (let ((table (make-hash-table :test #'eq)))
                           (dolist (place places table)
                             (setf (gethash (place-list place) table) (cons (- (place-start place) start) (- (place-end place) start))))))))
    (setf (unit-kind unit) :form (unit-name unit) 'form)
    (multiple-value-bind (line column) (line-and-column text start 0 line column)
      (setf (unit-start unit) start (unit-line unit) line (unit-column unit) column))
    unit))

(defun function-of-form (unit)
  (call-writing-recording-probes unit (lambda () (compile nil (recording-form unit)))))

(defun evaluate-recorded (text file line column)
  "Reads and evaluates the forms of TEXT, which begins at LINE and COLUMN of FILE, and records them.
  Returns the values of the last one."
  (let ((at 0) (values '()) (text (coerce text 'simple-string)))
    (loop
      (let ((start (skip-blanks text at)))
        (when (>= start (length text)) (return (values-list values)))
        (multiple-value-bind (form end places) (read-placing text start)
          (setf at end
                values (multiple-value-list
                        (if (or (atom form) (top-level-only-p form))
                            (eval form)
                            (let* ((unit (unit-of-form text start end form places file line column))
                                   (function (function-of-form unit)))
                              (record-call unit '() function))))))))))

;;; The definitions to record

(defun symbols-in (form)
  "The symbols of FORM that may be names of functions, and (SETF NAME), in their order."
  (let ((found '()) (left 20000))
    (labels ((walk (part)
               (cond ((minusp (decf left)))
                     ((consp part)
                      (when (and (eq (car part) 'setf) (consp (cdr part)) (consp (cadr part)) (symbolp (caadr part)))
                        (pushnew (list 'setf (caadr part)) found :test #'equal))
                      (loop for tail = part then (cdr tail)
                            while (and (consp tail) (plusp left))
                            do (walk (car tail))
                            finally (when (and tail (symbolp tail)) (walk tail))))
                     ((and (internal-p 'comma-p) (comma-p part)) (walk (comma-expression part)))
                     ((and part (symbolp part)) (pushnew part found :test #'equal)))))
      (walk form))
    (remove-if-not #'callable-name-p (nreverse found))))

(defun unit-of-definition (definition directories)
  "The unit of DEFINITION, a function or method whose text is below one of DIRECTORIES; NIL if its
  text is not known."
  (handler-case
      (multiple-value-bind (file loaded) (loaded-source definition)
        (when (and file loaded
                   (or (eq directories :all) (some (lambda (directory) (prefix-p directory file)) directories)))
          (let* ((text (text-of-file file nil))
                 (pieces (and text (toplevel-pieces text)))
                 (piece (find-if (lambda (piece) (string= loaded text :start2 (car piece) :end2 (cdr piece))) pieces)))
            (when piece
              (let ((unit (make-unit-of file text piece (package-before text pieces piece))))
                (unless (eq (unit-kind unit) :macro)
                  (place-unit unit text (car piece))
                  unit))))))
    (error () nil)))

(defun record-definitions (names directories &key (limit +recorded-definitions+) (until nil) (follow t) (anywhere '()) (install #'compile-recording))
  "Compiles the functions NAMES so that they are recorded. If FOLLOW, does the same with the
  functions that they call, the nearest first. The text of a function must be below DIRECTORIES,
  unless ANYWHERE names the function. Ends at LIMIT definitions, or at UNTIL, a time of NOW-MS.
  INSTALL installs a unit. Returns the units, and the number of names that were not examined."
  (let ((units '()) (seen (make-hash-table :test #'equal)) (queue (copy-list names)))
    (dolist (name queue) (setf (gethash name seen) t))
    (loop while (and queue (< (length units) limit) (or (null until) (< (now-ms) until)))
          do (let ((name (pop queue)))
               (dolist (definition (ignore-errors (definitions-called name)))
                 (let ((unit (unit-of-definition definition (if (member name anywhere :test #'equal) :all directories))))
                   (when (and unit (handler-case (progn (funcall install unit) t) (error () nil)))
                     (push unit units)
                     (when follow
                       (let ((more (remove-if (lambda (name) (gethash name seen)) (symbols-in (unit-form unit)))))
                         (dolist (name more) (setf (gethash name seen) t))
                         (setf queue (append queue more)))))))))
    (values (nreverse units) (length queue))))
