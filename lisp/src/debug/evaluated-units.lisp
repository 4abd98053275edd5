;;;; Breakpoints in top-level forms that are no definitions of their own kind: tests, the values of
;;;; variables, definitions within PROGN or LET or made by the program's macros, plain calls. Such a
;;;; form cannot be put in place of another unasked, for to evaluate it may do anything. So the
;;;; breakpoints wait until the form is evaluated for debugging, and it is evaluated with probes
;;;; then. It stops at once, and so does, later, all code that it made, until the form is evaluated
;;;; anew.

(in-package :consort)

(defconstant +evaluated-units+ 200 "The maximum number of evaluated forms with probes that are known, the newest.")

(define-global *evaluated-units* '() "The units of kind :EVALUATED, newest first. The list is replaced under *PROBES-LOCK*.")

(defstruct (waiting-point (:conc-name waiting-) (:constructor make-waiting-point (owner file text place span point)))
  "POINT, a breakpoint that OWNER wants in the form TEXT of FILE, once that is evaluated. PLACE:
  where TEXT begins in FILE, a list of offset, line and column. SPAN: what SITE-OF-SPAN takes."
  (owner "" :read-only t) (file "" :read-only t) (text "" :read-only t) (place nil :read-only t) (span nil :read-only t) (point nil :read-only t))

(define-global *waiting-points* '() "The WAITING-POINTs. The list is replaced under *PROBES-LOCK*.")

(defun forget-waiting-points (owner file)
  "Takes out the breakpoints of OWNER in FILE that wait. *PROBES-LOCK* is held."
  (setf *waiting-points*
        (remove-if (lambda (waiting) (and (string= (waiting-owner waiting) owner) (string= (waiting-file waiting) file))) *waiting-points*)))

(defun await-evaluation (owner file text piece span point)
  "Has POINT of OWNER wait for the evaluation of the form at PIECE of TEXT, the text of FILE."
  (let ((place (cons (car piece) (multiple-value-list (line-and-column text (car piece))))))
    (push (make-waiting-point owner file (subseq text (car piece) (cdr piece)) place span point) *waiting-points*)))

(defun evaluated-unit (file text pieces piece)
  "The unit of the form at PIECE of TEXT if it was evaluated with probes, or NIL."
  (let ((found (find-if (lambda (unit)
                          (and (eq (unit-state unit) :in-place)
                               (same-native-file-p (unit-file unit) file)
                               (string= (unit-text unit) text :start2 (car piece) :end2 (cdr piece))))
                        *evaluated-units*)))
    (when (and found (eq (unit-package found) (package-before text pieces piece)))
      found)))

;;; The code

(defvar *finding-sites* nil "True while a form is compiled only to know its probes.")

(defun framework-test-p (form)
  "Returns true if FORM defines a test of FiveAM, whose body is kept as data."
  (and (member (first form) (list (framework-symbol :fiveam "TEST") (framework-symbol :fiveam "DEF-TEST")))
       (consp (rest form))))

(defun probing-test (form)
  "FORM, which defines a test of FiveAM, with probes in its body, which is compiled later, wherever
  that is; while sites are found, that body as code."
  (let* ((options-apart (eq (first form) (framework-symbol :fiveam "DEF-TEST")))
         (options (if options-apart (third form) (and (consp (second form)) (rest (second form)))))
         (head (subseq form 0 (min (if options-apart 3 2) (length form))))
         (fixture (and (proper-list-p options) (evenp (length options)) (getf options :fixture))))
    (multiple-value-bind (forms preamble) (split-body (nthcdr (length head) form) t)
      (let ((probing (mapcar (lambda (form)
                               (if (consp form) `(sb-cltl2:compiler-let ((*unit* ,*unit*)) (probe ,form nil)) form))
                             forms)))
        (cond ((not *finding-sites*) `(,@head ,@preamble ,@probing))
              (fixture `(function (lambda () (,(framework-symbol :fiveam "WITH-FIXTURE") ,@(if (consp fixture) (list (first fixture) (rest fixture)) (list fixture nil))
                                              ,@probing))))
              (t `(function (lambda () ,@(remove-if #'stringp preamble) ,@probing))))))))

(defun probing-method (form from)
  "FORM, a DEFMETHOD or an option :METHOD, whose qualifiers or lambda list are at FROM, with probes."
  (let ((at (position-if #'listp form :start from)))
    (if (and at (listp (nth at form)))
        (append (subseq form 0 at) (probing-function (nthcdr at form)))
        form)))

(defun probing-definition (form)
  "FORM, a call of a macro, with probes in the parts whose evaluation its expansion does not show;
  FORM itself where there are none."
  (case (first form)
    (defmethod (probing-method form 2))
    (defgeneric
     (append (subseq form 0 (min 3 (length form)))
             (mapcar (lambda (option) (if (and (consp option) (eq (first option) :method) (proper-list-p option)) (probing-method option 1) option))
                     (nthcdr 3 form))))
    (t (if (framework-test-p form) (probing-test form) form))))

(defun defines-p (form)
  "Returns true if FORM is taken for a definition: nobody wants to stop at the form itself."
  (or (definer-p form) (framework-test-p form)))

(defmacro top-probe (form &environment environment)
  "FORM, a top-level form, with probes; its parts are top-level forms as before."
  (flet ((each (forms) (mapcar (lambda (form) `(top-probe ,form)) forms)))
    (if (not (and (consp form) (proper-list-p form) (symbolp (first form))))
        (probing form t)
        (destructuring-bind (operator &rest arguments) form
          (cond ((eq operator 'progn) `(progn ,@(each arguments)))
                ((and (eq operator 'eval-when) arguments) `(eval-when ,(first arguments) ,@(each (rest arguments))))
                ((and (member operator '(macrolet symbol-macrolet)) arguments)
                 (multiple-value-bind (forms preamble) (split-body (rest arguments))
                   `(,operator ,(first arguments) ,@preamble ,@(each forms))))
                ((eq operator 'locally)
                 (multiple-value-bind (forms preamble) (split-body arguments)
                   `(locally ,@preamble ,@(each forms))))
                ((or (special-operator-p operator) (not (macro-function operator environment))) (probing form t))
                (t (let* ((prepared (probing-definition form))
                          (inside (cond ((not (eq (first prepared) (first form))) prepared)
                                        ((eq (first form) 'defmethod) prepared)
                                        (t `(top-probe ,(macroexpand-1 prepared environment))))))
                     (note-same-place form inside)
                     (if (or (defines-p form) (not (probed-p form)))
                         inside
                         (let* ((variables (variables-in-scope environment)) (number (site-number form variables)))
                           `(progn ,(probe-code *unit* number `(before-form ,*unit* ,number ,@variables))
                                   ,inside))))))))))

;;; Evaluating

(defun forget-evaluated-units (test)
  "Notes that the code of the evaluated units for which TEST returns true may not be what runs."
  (when (find-if test *evaluated-units*)
    (dolist (unit (remove-if-not test *evaluated-units*))
      (setf (unit-state unit) :lost))
    (setf *evaluated-units* (remove :lost *evaluated-units* :key #'unit-state))))

(defun forget-evaluated-form (known text)
  "The form TEXT of KNOWN is evaluated anew: code that was made of it before is replaced."
  (when *evaluated-units*
    (let ((file (evaluated-file known)))
      (forget-evaluated-units (lambda (unit)
                                (and file
                                     (string= (unit-text unit) text)
                                     (same-native-file-p (unit-file unit) file)))))))

(defun forget-evaluated-file (file)
  "FILE was loaded: code that was made of forms in the source of that name is replaced."
  (when *evaluated-units*
    (let ((name (ignore-errors (pathname-name file))))
      (forget-evaluated-units (lambda (unit)
                                (equal name (pathname-name (sb-ext:parse-native-namestring (unit-file unit)))))))))

(defun find-sites (unit)
  "Compiles the form of UNIT, without running it, so that its probes are known before it runs."
  (handler-case (call-printing-without-probes (lambda () (let ((*finding-sites* t)) (compile-quietly `(lambda () (top-probe ,(unit-form unit)))))))
    (error () nil)))

(defun points-waiting-for (text file session)
  "The WAITING-POINTs for the form TEXT, of FILE. Where FILE is NIL, as in a console, those that
  SESSION, an agent's, has set itself."
  (remove-if-not (lambda (waiting)
                   (and (string= (waiting-text waiting) text)
                        (if file
                            (same-native-file-p (waiting-file waiting) file)
                            (equal (waiting-owner waiting) session))))
                 *waiting-points*))

(defun unit-to-evaluate (form known text waiting)
  "A unit of FORM, the form TEXT of KNOWN, for which there are WAITING-POINTs; NIL if its places
  are not known."
  (let ((places (places-in-form form known)) (start (evaluated-start known)))
    (when places
      (let ((unit (make-unit (waiting-file waiting) (live-package *package*) text form places)))
        (loop for list being the hash-keys of places using (hash-value place)
              do (setf (gethash list places) (cons (- (car place) start) (- (cdr place) start))))
        (destructuring-bind (offset line column) (waiting-place waiting)
          (setf (unit-start unit) offset (unit-line unit) line (unit-column unit) column))
        (setf (unit-kind unit) :evaluated
              (unit-name unit) (if (and (consp (rest form)) (symbolp (second form))) (second form) (first form))
              (unit-state unit) :in-place)
        unit))))

(defun put-in-force (unit waiting)
  "Makes the breakpoints of WAITING those of UNIT, which is about to be evaluated, and tells the
  host. Returns false if others set breakpoints for longer than two seconds."
  (sb-thread:with-mutex (*probes-lock* :timeout 2)
    (let ((made '()))
      (dolist (each waiting)
        (handler-case
            (push (breakpoint-for (waiting-owner each) (waiting-file each) (waiting-point each) unit (site-of-span unit (waiting-span each)) '()) made)
          (error () nil)))
      (without-interrupts
        (setf *evaluated-units* (cons unit (loop for other in *evaluated-units* repeat (1- +evaluated-units+) collect other))
              *units* (cons unit *units*)
              *breakpoints* (append *breakpoints* (nreverse made))))
      (flag-breakpoints unit)
      (flag-for-steps unit))
    t))

(defun call-with-breakpoints (function form known end)
  "Calls FUNCTION with the form that is to be evaluated for FORM, which was read from KNOWN up to
  END: FORM itself, or FORM with probes if breakpoints wait for it."
  (if (or (atom form) (not (or *waiting-points* *evaluated-units*)))
      (funcall (the function function) form)
      (let* ((text (without-end-blanks (subseq (evaluated-text known) (evaluated-start known) end)))
             (waiting (points-waiting-for text (evaluated-file known) (evaluation-session *evaluation*)))
             (unit (and waiting (can-probe-p) (not *in-copy*) (unit-to-evaluate form known text (first waiting)))))
        (forget-evaluated-form known text)
        (if (null unit)
            (funcall (the function function) form)
            (let ((*unit* unit))
              (find-sites unit)
              (if (put-in-force unit waiting)
                  (progn
                    (report-changed (mapcar (lambda (each) (cons (waiting-owner each) (waiting-file each))) waiting))
                    (funcall (the function function) `(top-probe ,form)))
                  (funcall (the function function) form)))))))
