;;;; Definitions with probes: found in a file's text, compiled, put in the place of the plain ones
;;;; and taken out again.
;;;;
;;;; The plain definition is kept as it is and comes back as the same object. A text is taken only
;;;; when the definition in the image was made of just that.

(in-package :consort)

(define-global *units* '() "The units that there are. The list is replaced under *PROBES-LOCK*, never changed.")
(define-global *probes-lock* (sb-thread:make-mutex :name "consort probes") "Held while units are made, put in place and taken out.")

;;; The text that a definition was made of

(defconstant +evaluated-sources+ 3000 "Texts of evaluated forms that are kept.")
(define-global *evaluated-sources* (make-hash-table :test #'equal :synchronized t)
  "By (FILE . OFFSET): the text of the form that was last evaluated from there.")

(defun note-evaluated-source (text start end origin)
  "Keeps the text of the form that is about to be evaluated from ORIGIN."
  (when (<= (- end start) +evaluated-source-length+)
    (when (>= (hash-table-count *evaluated-sources*) +evaluated-sources+)
      (clrhash *evaluated-sources*))
    (let ((form (without-end-blanks (subseq text start end))))
      (setf (gethash (cons (source-file (origin-source origin)) (+ start (origin-offset origin))) *evaluated-sources*) form)
      (forget-late-definition form))))

(defun form-text-at (text start)
  "The text of the form at START of TEXT, or NIL."
  (handler-case
      (let* ((rest (subseq text start)) (in (make-string-input-stream rest)) (*read-suppress* t))
        (read-preserving-whitespace in)
        (subseq rest 0 (file-position in)))
    (error () nil)))

(defun loaded-source (object)
  "The file that OBJECT, a function or method, was made from, and the text of its form as it was
  then; NIL for what is not known."
  (let* ((source (ignore-errors (sb-introspect:find-definition-source object)))
         (source (if (and (typep object 'standard-method) source (not (getf (sb-introspect:definition-source-plist source) :consort-position)))
                     ;; The method itself does not know when its file was written; its function
                     ;; does.
                     (ignore-errors (sb-introspect:find-definition-source (fast-method-function (sb-mop:method-function object))))
                     source))
         (place (cons :object (and source (source-place source))))
         (file (field place "file"))
         (offset (let ((offset (field place "offset"))) (and (integerp offset) offset)))
         (number (let ((number (field place "form"))) (and (integerp number) number)))
         (written (let ((written (field place "written"))) (and (integerp written) written))))
    (cond ((null file) nil)
          ;; Compiled by a reload. The text goes with the definition, which an undo may bring back.
          ((getf (sb-introspect:definition-source-plist source) :consort-text)
           (values file (getf (sb-introspect:definition-source-plist source) :consort-text)))
          ((getf (sb-introspect:definition-source-plist source) :consort-position)
           (values file (and offset (gethash (cons file offset) *evaluated-sources*))))
          (t (let* ((text (and written (text-of-file file written)))
                    (start (and text (or offset (and number (form-start text number))))))
               (values file (and start (form-text-at text (skip-blanks text start)))))))))

(defun one-file-p (file other)
  (or (equal file other)
      (equal (ignore-errors (truename (sb-ext:parse-native-namestring file)))
             (or (ignore-errors (truename (sb-ext:parse-native-namestring other))) :none))))

(defun check-loaded (object name file text)
  "Refuses unless OBJECT, the definition NAME in the image, was made from TEXT in FILE."
  (multiple-value-bind (from loaded) (loaded-source object)
    (cond ((null from)
           (refuse-probe "The image does not know which text ~A was made from. Evaluate its definition in this file, or load the file" name))
          ((not (one-file-p from file))
           (refuse-probe "~A was last defined in ~A. Evaluate its definition in this file to stop here" name from))
          ((null loaded)
           (refuse-probe "The file was changed since ~A was loaded from it. Evaluate its definition, or load the file" name))
          ((string/= loaded text)
           (refuse-probe "~A in the image was made from another text than this. Evaluate its definition, or load the file" name)))))

;;; The definitions that a form makes

(defun unit-definition (form)
  "The kind of what FORM defines, its name, and what stands for it in the image now. Refuses what
  breakpoints cannot be in."
  (flet ((defined (kind name object)
           (values kind name
                   (or object
                       (refuse-probe "~S is not defined in the image yet. Evaluate its definition, or load the file" name)))))
    (let ((definer (and (consp form) (proper-list-p form) (first form)))
          (name (and (consp form) (proper-list-p form) (second form))))
      (case definer
        (defun (defined :function name (and (fboundp name) (not (and (symbolp name) (macro-function name))) (fdefinition name))))
        (defmacro (defined :macro name (and (symbolp name) (macro-function name))))
        (defmethod
         (let ((generic (and (fboundp name) (fdefinition name))))
           (multiple-value-bind (qualifiers lambda-list required) (method-parts form)
             (declare (ignore lambda-list))
             (let ((specializers (mapcar #'parameter-specializer required)))
               (defined :method name (and (typep generic 'generic-function) (notany #'null specializers)
                                          (find-method generic qualifiers specializers nil)))))))
        (t (refuse-probe "There can be breakpoints in DEFUN, DEFMETHOD and DEFMACRO, not in ~A" (if definer (format nil "~S" definer) "this")))))))

(defun current-definition (unit)
  "Returns the image's definition for UNIT."
  (handler-case (nth-value 2 (unit-definition (unit-form unit)))
    (error () nil)))

;;; Compiling

(defun evaluated-form (unit)
  "Returns the form that the compiler is given for UNIT."
  (let ((form (unit-form unit)))
    (ecase (unit-kind unit)
      (:function
       (destructuring-bind (lambda-list &rest body) (cddr form)
         (multiple-value-bind (forms preamble) (split-body body t)
           (let ((name (unit-name unit)))
             `(function (,named-lambda-name ,name ,(probing-lambda-list lambda-list)
                         ,@preamble (block ,(if (consp name) (second name) name) ,@(probing-all forms t))))))))
      (:method
       (let ((at (position-if #'listp form :start 2)))
         (append (subseq form 0 at) (probing-function (nthcdr at form)))))
      (:macro
       (destructuring-bind (name lambda-list &rest body) (rest form)
         `(function (lambda ,@(probing-function (rest (sb-cltl2:parse-macro name lambda-list body))))))))))

(defun compile-unit (unit)
  "Compiles the definition of UNIT with probes. A method is then in place already. What the compiler
  says of it was said of the plain definition."
  (let ((*unit* unit) (*package* (unit-package unit)))
    (setf (unit-evaluated unit) (evaluated-form unit))
    (setf (unit-new unit)
          (handler-bind ((warning #'muffle-warning)
                         (sb-ext:compiler-note #'muffle-warning))
            (call-replacing-in-place
             (lambda ()
               (call-printing-without-probes
                (lambda ()
                  (eval-in-source (unit-evaluated unit) (unit-start unit) (make-source (sb-ext:parse-native-namestring (unit-file unit))))))))))))

(defun put-definition (unit definition)
  "Has DEFINITION, of UNIT, be what callers get."
  (ecase (unit-kind unit)
    (:function (exchange-function (unit-name unit) definition))
    (:macro (setf (macro-function (unit-name unit)) definition))
    (:method
     (handler-bind ((warning #'muffle-warning))
       (call-replacing-in-place (lambda () (add-method (fdefinition (unit-name unit)) definition)))))))

(defun note-in-place (unit)
  "UNIT's definition with probes is called. Interrupts are off."
  (setf (unit-state unit) :in-place)
  (unless (member unit *units* :test #'eq) (setf *units* (cons unit *units*)))
  (flag-for-steps unit)
  (world-changed))

(defun note-added-method (unit)
  "Notes that UNIT is in place if it is a method that was added before its thread was interrupted."
  (when (eq (unit-kind unit) :method)
    (let* ((old (unit-old unit))
           (method (find-method (fdefinition (unit-name unit)) (method-qualifiers old) (sb-mop:method-specializers old) nil)))
      (when (and method (not (eq method old)) (member unit (function-constants (fast-method-function (sb-mop:method-function method))) :test #'eq))
        (setf (unit-new unit) method)
        (note-in-place unit)))))

(defun put-in-place (unit)
  "Has UNIT's definition with probes be called. *PROBES-LOCK* is held. Where this is left by an
  interruption, the plain one is called, or UNIT is among those that are known to be in place."
  (unless (eq (unit-state unit) :in-place)
    (let ((method (eq (unit-kind unit) :method)))
      (unwind-protect
           (progn
             (cond ((null (unit-new unit)) (compile-unit unit))
                   (method (put-definition unit (unit-new unit))))
             (without-interrupts
               (unless method (put-definition unit (unit-new unit)))
               (note-in-place unit)))
        (unless (eq (unit-state unit) :in-place)
          (without-interrupts (note-added-method unit)))))))

(defun take-out (unit)
  "Has the plain definition of UNIT be called again, the very same one, unless somebody has defined
  it anew."
  (when (eq (unit-state unit) :in-place)
    (cond ((not (eq (current-definition unit) (unit-new unit)))
           (setf (unit-state unit) :lost))
          ((eq (unit-kind unit) :method)
           (put-definition unit (unit-old unit))
           (setf (unit-state unit) :out))
          (t
           (without-interrupts
             (put-definition unit (unit-old unit))
             (setf (unit-state unit) :out))))
    (world-changed)))

(defun unit-lost-p (unit)
  "Returns true if what UNIT defines was defined anew by somebody else."
  (not (eq (current-definition unit) (if (eq (unit-state unit) :in-place) (unit-new unit) (unit-old unit)))))

(declaim (ftype function end-awaited free-recorded-methods))
(defun take-out-all ()
  "Puts plain definitions in place before hot reload compares what there is."
  (sb-thread:with-mutex (*probes-lock*)
    (end-awaited "code was reloaded")
    (setf *late-definitions* '())
    (mapc #'take-out *units*)))

;;; Finding

(defun toplevel-pieces (text)
  "The top-level forms of TEXT, a list of (START . END), without the blanks behind them."
  (loop for (start . end) in (split-forms text)
        for last = (position-if-not (lambda (char) (member char '(#\Space #\Newline #\Tab #\Return #\Page))) text :start start :end end :from-end t)
        when last collect (cons start (1+ last))))

(defun package-before (text pieces piece &optional (first (user-package)))
  "The package that the PIECE of TEXT is read in, which is in the package FIRST at its beginning."
  (let ((package first))
    (loop for each in pieces
          until (eq each piece)
          do (let ((start (car each)))
               (when (char= (char text start) #\()
                 (multiple-value-bind (head end) (split-token text (1+ start))
                   (when (string-equal "in-package" (subseq head (1+ (or (position #\: head :from-end t) -1))))
                     (let ((name (string-right-trim ")" (split-token text end))))
                       (setf package (or (package-called name)
                                         (refuse-probe "There is no package ~A in the image. Load the file first" name)))))))))
    package))

(defun line-and-column (text offset &optional (start 0) (line 1) (column 1))
  "The line and the column, both from 1, of the character OFFSET of TEXT, in UTF-16 code units,
  counted from START, which is at LINE and COLUMN."
  (loop for index from start below offset
        for char = (char text index)
        do (cond ((char= char #\Newline) (incf line) (setf column 1))
                 (t (incf column (if (> (char-code char) #xFFFF) 2 1)))))
  (values line column))

(defun place-unit (unit text start)
  "Notes that the text of UNIT begins at START of its file's TEXT."
  (multiple-value-bind (line column) (line-and-column text start)
    (setf (unit-start unit) start (unit-line unit) line (unit-column unit) column)))

(defun make-unit-of (file text piece package &key (loaded t))
  "The unit of the PIECE of TEXT. LOADED: it is refused unless the definition in the image was
  made of just that."
  (let ((own (subseq text (car piece) (cdr piece))))
    (multiple-value-bind (form end places) (let ((*package* package)) (read-placing own 0))
      (declare (ignore end))
      (multiple-value-bind (kind name object) (unit-definition form)
        (when loaded (check-loaded object (second form) file own))
        (let ((unit (make-unit file package own form
                               (let ((table (make-hash-table :test #'eq)))
                                 (dolist (place places table)
                                   (setf (gethash (place-list place) table) (cons (place-start place) (place-end place))))))))
          (setf (unit-kind unit) kind (unit-name unit) name (unit-old unit) object)
          unit)))))

(defun ensure-unit (file text pieces piece)
  "The unit of the PIECE of TEXT, which is FILE's, in place. *PROBES-LOCK* is held."
  (unless (can-probe-p)
    (refuse-probe "This SBCL lacks what breakpoints take"))
  (free-recorded-methods)
  (let* ((package (package-before text pieces piece))
         (known (find-if (lambda (unit)
                           (and (one-file-p (unit-file unit) file) (eq (unit-package unit) package)
                                (string= (unit-text unit) text :start2 (car piece) :end2 (cdr piece))
                                (not (eq (unit-state unit) :lost))
                                (not (unit-lost-p unit))))
                         *units*))
         (unit (or known (make-unit-of file text piece package))))
    (place-unit unit text (car piece))
    (put-in-place unit)
    unit))

;;; Places

(defun unit-span-fields (unit span)
  "The JSON fields of the place SPAN, (START . END), in UNIT's text."
  (destructuring-bind (start . end) span
    (multiple-value-bind (line column) (line-and-column (unit-text unit) start 0 (unit-line unit) (unit-column unit))
      (multiple-value-bind (end-line end-column) (line-and-column (unit-text unit) end start line column)
        (list* "file" (unit-file unit)
               "position" (vector line column end-line end-column)
               (span-fields (+ (unit-start unit) start) (+ (unit-start unit) end)))))))

(defun site-span (site)
  (cons (site-start site) (site-end site)))

(defun frame-unit (frame)
  "The unit that the function of FRAME was compiled with, or NIL."
  (and *units* (find-if #'unit-p (function-constants (frame-function frame)))))

(defun probed-place (frame)
  "The JSON fields of the place of FRAME, whose function has probes; NIL otherwise."
  (let* ((unit (frame-unit frame))
         (number (and unit (frame-form-number frame)))
         (lists (and number (ignore-errors (lists-on-path (unit-evaluated unit) number))))
         (list (find-if (lambda (list) (gethash list (unit-places unit))) lists)))
    (and list (unit-span-fields unit (gethash list (unit-places unit))))))
