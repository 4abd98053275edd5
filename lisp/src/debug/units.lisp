;;;; Units, which are definitions with probes: a definition is found in a file's text, compiled with
;;;; probes, and installed in place of the plain one. The plain definition is kept, and the same
;;;; object is installed again later. A unit is made from a text only if the definition in the image
;;;; was compiled from exactly that text.

(in-package :consort)

(define-global *units* '() "All units. The list is replaced under *PROBES-LOCK*, never modified.")
(define-global *probes-lock* (sb-thread:make-mutex :name "consort probes")
  "Held while units are made, installed and removed.")

(defvar *for-agent* nil
  "True while a text is read for an agent. The agent may have written the text, so reading runs none
  of its code, and only text that is known to have been loaded is compiled.")

;;; The text from which a definition was compiled

(defun form-text-at (text start)
  "The text of the form that begins at START of TEXT; NIL if it cannot be read."
  (handler-case
      (let* ((rest (subseq text start)) (in (make-string-input-stream rest)) (*read-suppress* t))
        (read-preserving-whitespace in)
        (subseq rest 0 (file-position in)))
    (error () nil)))

(defun loaded-source (object)
  "Two values: the file from which OBJECT, a function or method, was compiled, and the text of its
  form at that time. Each is NIL if it is not known."
  (let* ((source (ignore-errors (sb-introspect:find-definition-source object)))
         (source (if (and (typep object 'standard-method) source (not (getf (sb-introspect:definition-source-plist source) :consort-position)))
                     ;; Only the source of the method's function has the write date of the file.
                     (ignore-errors (sb-introspect:find-definition-source (fast-method-function (sb-mop:method-function object))))
                     source))
         (place (cons :object (and source (source-place source))))
         (file (field place "file"))
         (offset (let ((offset (field place "offset"))) (and (integerp offset) offset)))
         (number (let ((number (field place "form"))) (and (integerp number) number)))
         (written (let ((written (field place "written"))) (and (integerp written) written))))
    (cond ((null file) nil)
          ;; Compiled by a reload. The text is part of the definition's source, so it is also right
          ;; after an undo has restored the definition.
          ((getf (sb-introspect:definition-source-plist source) :consort-text)
           (values file (getf (sb-introspect:definition-source-plist source) :consort-text)))
          ((getf (sb-introspect:definition-source-plist source) :consort-position)
           (values file (and offset (evaluated-source-at file offset :certain *for-agent*))))
          (t (let* ((text (and written (text-of-file file written :certain *for-agent*)))
                    (start (and text (or offset (and number (form-start text number))))))
               (values file (and start (form-text-at text (skip-blanks text start)))))))))

(defun same-native-file-p (file other)
  "Returns true if the native namestrings FILE and OTHER name the same file."
  (or (equal file other)
      (equal (ignore-errors (truename (sb-ext:parse-native-namestring file)))
             (or (ignore-errors (truename (sb-ext:parse-native-namestring other))) :none))))

(defun check-loaded (object name file text)
  "Signals a refusal unless OBJECT, the definition of NAME in the image, was compiled from TEXT in
  FILE."
  (multiple-value-bind (from loaded) (loaded-source object)
    (cond ((null from)
           (refuse-probe "The image does not know which text ~A was made from. Evaluate its definition in this file, or load the file" name))
          ((not (same-native-file-p from file))
           (refuse-probe "~A was last defined in ~A. Evaluate its definition in this file to stop here" name from))
          ((and (null loaded) *for-agent*)
           (refuse-probe "The file was changed since ~A was loaded from it, or it is not known what was loaded. Load the file again, or evaluate the definition" name))
          ((null loaded)
           (refuse-probe "The file was changed since ~A was loaded from it. Evaluate its definition, or load the file" name))
          ((string/= loaded text)
           (refuse-probe "~A in the image was made from another text than this. Evaluate its definition, or load the file" name)))))

;;; The definition that a form makes

(defun refuse-before-evaluation (form)
  "Signals a refusal of breakpoints in FORM, a top-level form that is not replaced unasked."
  (let ((definer (if (consp form) (first form) form)))
    (when (or (atom form) (member definer '(in-package defpackage declaim proclaim)))
      (refuse-probe "There is no form to stop at in this one"))
    (signal-refusal 'not-yet-probed
                    "Evaluate this ~A form in the editor: a breakpoint in a form that is no DEFUN, DEFMETHOD or DEFMACRO is in force from then on. ~
                     It stops while the form is evaluated, and whenever code that the form has made runs~@[. ~A~]"
                    (list (if (symbolp definer) (prin1-to-string definer) "")
                          (cond ((member definer '(defvar sb-ext:defglobal)) "The value of a variable that has one already is not made again")
                                ((member definer '(deftype define-compiler-macro define-setf-expander defsetf define-modify-macro define-method-combination))
                                 "It runs while code that uses it is compiled"))))))

(defun unit-definition (form)
  "Three values about the definition FORM: its kind (:FUNCTION, :MACRO or :METHOD), its name, and
  the current function or method in the image. Signals a refusal for other forms, and if there is no
  such definition in the image."
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
             (let ((specializers (mapcar (lambda (parameter) (parameter-specializer parameter :evaluate (not *for-agent*))) required)))
               (defined :method name (and (typep generic 'generic-function) (notany #'null specializers)
                                          (find-method generic qualifiers specializers nil)))))))
        (t (refuse-before-evaluation form))))))

(defun current-definition (unit)
  "The current function or method in the image that the definition of UNIT makes; NIL if there is
  none."
  (when (eq (unit-kind unit) :evaluated) ; a unit that is never replaced unasked
    (return-from current-definition nil))
  (handler-case (nth-value 2 (unit-definition (unit-form unit)))
    (error () nil)))

;;; Compiling

(defun evaluated-form (unit)
  "The form that is compiled for UNIT. Its value is the definition with probes."
  (let ((form (unit-form unit)))
    (ecase (unit-kind unit)
      (:function
       (destructuring-bind (lambda-list &rest body) (cddr form)
         (multiple-value-bind (forms preamble) (split-body (body-with-entry body) t)
           (let ((name (unit-name unit)))
             `(function (,named-lambda-name ,name ,(probing-lambda-list lambda-list)
                         ,@preamble (block ,(if (consp name) (second name) name) ,@(probing-all forms t))))))))
      (:method
       (let ((at (position-if #'listp form :start 2)))
         (append (subseq form 0 at) (probing-function (cons (nth at form) (body-with-entry (nthcdr (1+ at) form)))))))
      (:macro
       (destructuring-bind (name lambda-list &rest body) (rest form)
         `(function (lambda ,@(probing-function (rest (sb-cltl2:parse-macro name lambda-list (body-with-entry body)))))))))))

(defun compile-unit (unit)
  "Compiles the definition of UNIT with probes. For a method, this also installs it. Warnings are
  muffled, since the plain definition had the same."
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

(defun install-definition (unit definition)
  "Makes DEFINITION, the plain one of UNIT or the one with probes, the one that is called."
  (ecase (unit-kind unit)
    (:function (exchange-function (unit-name unit) definition))
    (:macro (setf (macro-function (unit-name unit)) definition))
    (:method
     (handler-bind ((warning #'muffle-warning))
       (call-replacing-in-place (lambda () (add-method (fdefinition (unit-name unit)) definition)))))))

(defun check-not-replaced (unit)
  "Signals a refusal unless the definition in the image is the one that UNIT was made for. Another
  thread may have defined it anew while UNIT was compiled."
  (unless (eq (current-definition unit) (unit-old unit))
    (refuse-probe "~S was defined anew meanwhile. Try again" (unit-name unit))))

(defun call-unless-replaced (unit function)
  "Calls FUNCTION, which installs another method in place of UNIT's. Refuses just before that if
  there is a new method already."
  (let ((*before-replacement* (lambda () (check-not-replaced unit))))
    (funcall (the function function))))

(defun note-in-place (unit)
  "Notes that UNIT's definition with probes is installed. Must be called with interrupts off."
  (setf (unit-state unit) :in-place)
  (unless (member unit *units* :test #'eq) (setf *units* (cons unit *units*)))
  (flag-for-steps unit)
  (world-changed))

(defun note-added-method (unit)
  "Notes that UNIT is in place if it is a method that was added before this thread was interrupted."
  (when (eq (unit-kind unit) :method)
    (let* ((old (unit-old unit))
           (method (find-method (fdefinition (unit-name unit)) (method-qualifiers old) (sb-mop:method-specializers old) nil)))
      (when (and method (not (eq method old)) (member unit (function-constants (fast-method-function (sb-mop:method-function method))) :test #'eq))
        (setf (unit-new unit) method)
        (note-in-place unit)))))

(defun put-in-place (unit)
  "Installs UNIT's definition with probes. Must be called with *PROBES-LOCK* held. After an
  interruption, either the plain definition is installed, or UNIT is noted as in place."
  (unless (eq (unit-state unit) :in-place)
    (let ((method (eq (unit-kind unit) :method)))
      (unwind-protect
           (progn
             (call-unless-replaced unit
                                   (lambda ()
                                     (cond ((null (unit-new unit)) (compile-unit unit))
                                           (method (install-definition unit (unit-new unit))))))
             (without-interrupts
               (unless method
                 (check-not-replaced unit)
                 (install-definition unit (unit-new unit)))
               (note-in-place unit)))
        (unless (eq (unit-state unit) :in-place)
          (without-interrupts (note-added-method unit)))))))

(defun take-out (unit)
  "Installs the plain definition of UNIT again, the same object as before, unless the definition was
  replaced meanwhile."
  (when (and (eq (unit-state unit) :in-place) (not (eq (unit-kind unit) :evaluated)))
    (cond ((not (eq (current-definition unit) (unit-new unit)))
           (setf (unit-state unit) :lost))
          ((eq (unit-kind unit) :method)
           (install-definition unit (unit-old unit))
           (setf (unit-state unit) :out))
          (t
           (without-interrupts
             (install-definition unit (unit-old unit))
             (setf (unit-state unit) :out))))
    (world-changed)))

(defun unit-lost-p (unit)
  "Returns true if the definition of UNIT in the image was replaced by another."
  (not (eq (current-definition unit) (if (eq (unit-state unit) :in-place) (unit-new unit) (unit-old unit)))))

(declaim (ftype function end-awaited free-recorded-methods))
(defun call-without-probes (function)
  "Installs all plain definitions again and calls FUNCTION, by which a hot reload examines
  definitions. No probes are installed meanwhile."
  (sb-thread:with-recursive-lock (*probes-lock*)
    (end-awaited "code was reloaded")
    (forget-timed-out-definitions)
    (mapc #'take-out *units*)
    (funcall function)))

(defun call-without-probes-in-time (function)
  "Like CALL-WITHOUT-PROBES, for a thread that cannot be interrupted. If other threads hold
  *PROBES-LOCK* for longer than two seconds, FUNCTION is called nevertheless."
  (let ((in-time (sb-thread:with-mutex (*probes-lock* :timeout 2)
                   (list (call-without-probes function)))))
    (if in-time (first in-time) (funcall function))))

(defun take-out-all ()
  "Installs all plain definitions again."
  (call-without-probes (constantly nil)))

;;; Finding the definition in a text

(defun toplevel-pieces (text)
  "The places of the top-level forms of TEXT without trailing white space, as a list of (START .
  END). Such a place is called a piece."
  (loop for (start . end) in (split-forms text)
        for last = (position-if-not (lambda (char) (member char '(#\Space #\Newline #\Tab #\Return #\Page))) text :start start :end end :from-end t)
        when last collect (cons start (1+ last))))

(defun shape-name (token)
  "The name in TOKEN, a symbol or string as it is in a shape, without its package. A name between
  bars or quotes is kept as it is, and any other is upper-cased. NIL for any other token."
  (flet ((inside (start) (remove #\\ (subseq token start (1- (length token))))))
    (let ((end (1- (length token))))
      (cond ((minusp end) nil)
            ((char= (char token 0) #\") (inside 1))
            ((and (plusp end) (char= (char token end) #\|))
             (let ((bar (position #\| token :end end :from-end t))) (and bar (inside (1+ bar)))))
            ((and (char= (char token 0) #\#) (not (eql 0 (search "#:" token)))) nil)
            (t (string-upcase (subseq token (1+ (or (position #\: token :from-end t) -1)))))))))

(defun packages-selected (shape)
  "The designators of the packages that the top-level form SHAPE selects, as texts, in order."
  (when (and (consp shape) (listp (cdr shape)) (stringp (first shape)))
    (let ((operator (shape-name (first shape))))
      (flet ((within (forms) (loop for form in forms append (packages-selected form))))
        (cond ((equal operator "IN-PACKAGE") (and (stringp (second shape)) (list (second shape))))
              ((member operator '("PROGN" "LOCALLY") :test #'equal) (within (rest shape)))
              ((member operator '("EVAL-WHEN" "WITH-COMPILATION-UNIT") :test #'equal) (within (cddr shape))))))))

(defun package-designated (text from)
  "The package that TEXT, a designator in a source, names where FROM is current, or NIL."
  (let ((name (shape-name text)) (*package* from))
    (and name (find-package name))))

(defun selections-of-packages (text)
  "The places in TEXT of words that may select a package."
  (let ((text (coerce text '(simple-array character (*)))) (places '()))
    (declare (type (simple-array character (*)) text) (optimize speed))
    (dotimes (index (max 0 (- (length text) 9)) (nreverse places))
      (when (and (char-equal #\i (schar text index)) (string-equal "in-package" text :start2 index :end2 (+ index 10)))
        (push index places)))))

(define-global *selections* (cons "" '())
  "The last text that KNOWN-SELECTIONS was called with, and its SELECTIONS-OF-PACKAGES.")

(defun known-selections (text)
  "SELECTIONS-OF-PACKAGES of TEXT. The last result is kept, since this is called once for each
  definition of a text."
  (let ((known *selections*))
    (cdr (if (eq text (car known)) known (setf *selections* (cons text (selections-of-packages text)))))))

(defun package-before (text pieces piece &optional (first (user-package)))
  "The package in which the form at PIECE, one of PIECES of TEXT, is read. FIRST is the package at
  the beginning of TEXT."
  (let ((package first) (selections (known-selections text)) (text (coerce text 'simple-string)))
    (loop for each in pieces
          for (start . end) = each
          until (eq each piece)
          do (loop while (and selections (< (first selections) start)) do (pop selections))
          when (and selections (< (first selections) end))
            do (dolist (name (packages-selected (handler-case (read-shape (make-shape-input text start end) 0)
                                                  (error () nil))))
                 (setf package (or (package-designated name package)
                                   (refuse-probe "There is no package ~A in the image. Load the file first" name)))))
    package))

(defun line-and-column (text offset &optional (start 0) (line 1) (column 1))
  "Two values: the line and the column of the character at OFFSET of TEXT. Both count from 1, the
  column in UTF-16 code units. Counting begins at START, which is at LINE and COLUMN."
  (loop for index from start below offset
        for char = (char text index)
        do (cond ((char= char #\Newline) (incf line) (setf column 1))
                 (t (incf column (if (> (char-code char) #xFFFF) 2 1)))))
  (values line column))

(defun place-unit (unit text start)
  "Notes that the definition of UNIT begins at START of TEXT, the text of its file."
  (multiple-value-bind (line column) (line-and-column text start)
    (setf (unit-start unit) start (unit-line unit) line (unit-column unit) column)))

(defun session-of-agent-p (session)
  "Returns true if SESSION, the name of a session or of an owner of breakpoints, belongs to an
  agent."
  (and session (eql 0 (search "mcp-" session))))

(defun make-unit-of (file text piece package &key (loaded t))
  "A new unit of the definition at PIECE of TEXT. If LOADED, signals a refusal unless the definition
  in the image was compiled from exactly that text."
  (let ((own (subseq text (car piece) (cdr piece))))
    (multiple-value-bind (form end places) (let ((*package* package) (*read-eval* (and *read-eval* (not *for-agent*))))
                                            (read-placing own 0))
      (declare (ignore end))
      (multiple-value-bind (kind name object) (unit-definition form)
        (when loaded (check-loaded object (second form) file own))
        (let ((unit (make-unit file package own form
                               (let ((table (make-hash-table :test #'eq)))
                                 (dolist (place places table)
                                   (setf (gethash (place-list place) table) (cons (place-start place) (place-end place))))))))
          (setf (unit-kind unit) kind (unit-name unit) name (unit-old unit) object)
          unit)))))

(declaim (ftype function evaluated-unit))
(defun ensure-unit (file text pieces piece)
  "The unit of the definition at PIECE of TEXT, the text of FILE. The unit is put in place. Must be
  called with *PROBES-LOCK* held. Signals a refusal if the definition can have no probes."
  (unless (can-probe-p)
    (refuse-probe "This SBCL lacks internals that breakpoints need"))
  (free-recorded-methods)
  (let* ((package (package-before text pieces piece))
         (known (find-if (lambda (unit)
                           (and (same-native-file-p (unit-file unit) file) (eq (unit-package unit) package)
                                (string= (unit-text unit) text :start2 (car piece) :end2 (cdr piece))
                                (not (eq (unit-state unit) :lost))
                                (not (unit-lost-p unit))))
                         *units*))
         (unit (or known (evaluated-unit file text pieces piece) (make-unit-of file text piece package))))
    (place-unit unit text (car piece))
    (if (eq (unit-kind unit) :evaluated)
        (unless (member unit *units* :test #'eq) (setf *units* (cons unit *units*)))
        (put-in-place unit))
    unit))

;;; Places

(defun unit-span-fields (unit span)
  "The JSON fields of the place SPAN, (START . END), in UNIT's text."
  (destructuring-bind (start . end) span
    (when (unit-known unit)
      (return-from unit-span-fields (evaluated-span-fields (unit-known unit) start end)))
    (multiple-value-bind (line column) (line-and-column (unit-text unit) start 0 (unit-line unit) (unit-column unit))
      (multiple-value-bind (end-line end-column) (line-and-column (unit-text unit) end start line column)
        (list* "file" (unit-file unit)
               "position" (vector line column end-line end-column)
               (span-fields (+ (unit-start unit) start) (+ (unit-start unit) end)))))))

(defun unit-loaded-fields (unit)
  "The JSON fields of the form of UNIT, if its text has a place in a file."
  (unless (unit-known unit)
    (loaded-fields (unit-text unit) 0 (length (unit-text unit)) (unit-start unit))))

(defun site-span (site)
  "The place of SITE in its unit's text, (START . END)."
  (cons (site-start site) (site-end site)))

(defun frame-unit (frame)
  "The unit with which the function of FRAME was compiled, or NIL."
  (and *units* (find-if (lambda (constant) (and (unit-p constant) (not (unit-known constant)) (not (eq (unit-kind constant) :evaluated)))) (function-constants (frame-function frame)))))

(defun probed-place (frame)
  "The JSON fields of the place of FRAME, if its function has probes; otherwise NIL."
  (let* ((unit (frame-unit frame))
         (number (and unit (frame-form-number frame)))
         (lists (and number (ignore-errors (lists-on-path (unit-evaluated unit) number))))
         (list (find-if (lambda (list) (gethash list (unit-places unit))) lists)))
    (and list (append (unit-span-fields unit (gethash list (unit-places unit))) (unit-loaded-fields unit)))))
