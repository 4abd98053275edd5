;;;; Breakpoints in top-level forms other than single definitions: tests, the values of variables,
;;;; definitions within PROGN or LET or made by the program's macros, plain calls. Such a form
;;;; cannot be replaced without a request, because its evaluation may do anything. Its breakpoints
;;;; wait until the form is evaluated for debugging. The form is then evaluated with probes. This
;;;; evaluation stops at the breakpoints, and so does later all code that the form has made, until
;;;; the form is evaluated anew.

(in-package :consort)

(defconstant +evaluated-units+ 200 "The maximum number of evaluated forms with probes that are known, the newest.")

(define-global *evaluated-units* '() "The units of kind :EVALUATED, newest first. The list is replaced atomically: loads do so, and a
  reload holds *PROBES-LOCK* meanwhile.")

(defstruct (waiting-point (:conc-name waiting-) (:constructor make-waiting-point (owner set-in file text place span point)))
  "POINT, a breakpoint that OWNER wants in the form TEXT of FILE, once the form is evaluated. PLACE
  is where TEXT begins in FILE: a list of offset, line and column. SPAN is as in SITE-OF-SPAN.
  SET-IN is FILE, or the empty string for a breakpoint at a function."
  (owner "" :read-only t) (set-in "" :read-only t) (file "" :read-only t) (text "" :read-only t) (place nil :read-only t) (span nil :read-only t) (point nil :read-only t))

(define-global *waiting-points* '() "The WAITING-POINTs. The list is replaced under *PROBES-LOCK*.")

(defvar *points-to-wait* '() "The WAITING-POINTs of the breakpoints that this thread sets.")

(defun replace-waiting-points (owner file)
  "Makes *POINTS-TO-WAIT* the breakpoints of OWNER in FILE that wait. *PROBES-LOCK* is held."
  (setf *waiting-points*
        (append *points-to-wait*
                (remove-if (lambda (waiting) (and (string= (waiting-owner waiting) owner) (string= (waiting-set-in waiting) file)))
                           *waiting-points*))))

(defun await-evaluation (owner file text piece span point &optional (set-in file))
  "Makes POINT of OWNER, which is set in SET-IN, wait for the evaluation of the form at PIECE of
  TEXT, the text of FILE."
  (let ((place (cons (car piece) (multiple-value-list (line-and-column text (car piece))))))
    (push (make-waiting-point owner set-in file (subseq text (car piece) (cdr piece)) place span point) *points-to-wait*)))

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
  "FORM, which defines a test of FiveAM, with probes in its body. The body is compiled later,
  possibly elsewhere. While sites are found, a function with that body instead."
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

(declaim (ftype function note-name-defined definitions-made values-and-tests-made))
(defun probing-definition (form)
  "FORM, a call of a macro, with probes in the parts whose evaluation its expansion does not show;
  FORM itself where there are none."
  (case (first form)
    (defmethod
     (note-name-defined (second form))
     (probing-method form 2))
    (defgeneric
     (append (subseq form 0 (min 3 (length form)))
             (mapcar (lambda (option) (if (and (consp option) (eq (first option) :method) (proper-list-p option)) (probing-method option 1) option))
                     (nthcdr 3 form))))
    (t (if (framework-test-p form) (probing-test form) form))))

(defun defines-p (form)
  "Returns true if FORM counts as a definition, so that the program does not stop at FORM itself."
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
                                        (t `(top-probe ,(expanded-once prepared environment))))))
                     (note-same-place form inside)
                     (if (or (defines-p form) (not (probed-p form)))
                         inside
                         (let* ((variables (variables-in-scope environment)) (number (site-number form variables)))
                           `(progn ,(probe-code *unit* number `(before-form ,*unit* ,number ,@variables))
                                   ,inside))))))))))

;;; Code that is replaced

(defun keeps-value-p (form)
  "Returns true if FORM defines a variable that has a value already, and does not change the value."
  (and (consp form)
       (member (first form) '(defvar sb-ext:defglobal sb-ext:define-load-time-global))
       (consp (rest form))
       (symbolp (second form))
       (boundp (second form))))

(defun forget-units (units)
  "Notes that other code may now run in place of the code of the evaluated UNITS."
  (when units
    (dolist (unit units) (setf (unit-state unit) :lost))
    (sb-ext:atomic-update (symbol-value '*evaluated-units*) (lambda (known) (remove :lost known :key #'unit-state)))))

(defun units-of-form (file text)
  "The evaluated units of the form TEXT of FILE, a native namestring, whose code is replaced if that
  form is evaluated now."
  (and file
       (remove-if-not (lambda (unit)
                        (and (string= (unit-text unit) text)
                             (same-native-file-p (unit-file unit) file)
                             (not (keeps-value-p (unit-form unit)))))
                      *evaluated-units*)))

(defun call-replacing-form (file text function)
  "Calls FUNCTION, which evaluates the form TEXT of FILE, a native namestring or NIL. When FUNCTION
  returns, the code that earlier evaluations of the form have made counts as replaced. If FUNCTION
  is left otherwise, that code still counts as the code that runs."
  (let ((units (units-of-form file text)))
    (multiple-value-prog1 (funcall (the function function))
      (forget-units units))))

(defun text-of-form (known end)
  "The text of the form that was read from KNOWN up to END."
  (without-end-blanks (subseq (evaluated-text known) (evaluated-start known) end)))

(defun call-replacing-evaluated (known end function)
  "Calls CALL-REPLACING-FORM for the form of KNOWN that ends at END, which is evaluated without
  probes."
  (if (and *evaluated-units* (evaluated-origin known))
      (call-replacing-form (evaluated-file known) (text-of-form known end) function)
      (funcall (the function function))))

(defun source-of-fasl (file)
  "The name of the source that the fasl FILE was compiled from, as its first lines tell it; NIL for
  another file."
  (with-open-file (in file :external-format :latin-1)
    (loop repeat 3
          for line = (read-line in nil "")
          for start = (search "compiled from \"" line)
          when start return (let ((*read-eval* nil)) (values (read-from-string line nil nil :start (position #\" line)))))))

(defun file-to-load (file)
  "The true name of the file that LOAD reads when it is given FILE; NIL for a stream, or when there is
  none."
  (and (not (streamp file))
       (ignore-errors (or (probe-file file)
                          (some (lambda (type) (probe-file (make-pathname :type type :defaults file))) '("fasl" "lisp"))))))

(defun units-of-file (file)
  "The evaluated units whose code is replaced if FILE, an argument of LOAD, is loaded. A fasl whose
  source does not exist counts as compiled from a source of the same name in a directory of the same
  name."
  (let ((path (and *evaluated-units* (file-to-load file))))
    (when (and path (pathname-name path))
      (let* ((source (ignore-errors (source-of-fasl path)))
             (true (if source (ignore-errors (and (uiop:absolute-pathname-p source) (truename source))) path)))
        (flet ((same-p (name)
                 (let ((of-unit (sb-ext:parse-native-namestring name)))
                   (if true
                       (equal true (ignore-errors (truename of-unit)))
                       (and (equal (pathname-name path) (pathname-name of-unit))
                            (equal (last (pathname-directory path)) (last (pathname-directory of-unit))))))))
          (remove-if-not #'same-p *evaluated-units* :key #'unit-file))))))

;;; Evaluating

(defun find-sites (unit)
  "Compiles the form of UNIT, without running it, so that its probes are known before it runs."
  (handler-case (call-printing-without-probes (lambda () (let ((*finding-sites* t)) (compile-quietly `(lambda () (top-probe ,(unit-form unit)))))))
    (error () nil)))

(defun points-waiting-for (text file session)
  "The WAITING-POINTs for the form TEXT of FILE. If FILE is NIL, as in a console, those that
  SESSION, an agent's session, has set itself."
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

(defun points-made (unit waiting)
  "The breakpoints of WAITING in UNIT. Their conditions and messages are the user's code: those that
  are not compiled in time go on waiting."
  (let ((made '()))
    (dolist (each waiting (nreverse made))
      (let ((breakpoint (call-with-time-limit +default-breakpoint-seconds+
                                     (lambda ()
                                       (handler-case
                                           (breakpoint-for (waiting-owner each) (waiting-set-in each) (waiting-point each)
                                                           unit (site-of-span unit (waiting-span each)) '())
                                         (error () nil)))
                                     (constantly :late))))
        (case breakpoint
          ((nil))
          (:late (return (nreverse made)))
          (t (push breakpoint made)))))))

(defun put-in-force (unit breakpoints)
  "Makes BREAKPOINTS those of UNIT, which is about to be evaluated. Returns false if others set
  breakpoints for longer than two seconds."
  (sb-thread:with-mutex (*probes-lock* :timeout 2)
    (without-interrupts
      (sb-ext:atomic-update (symbol-value '*evaluated-units*)
                            (lambda (known) (cons unit (loop for other in known repeat (1- +evaluated-units+) collect other))))
      (setf *units* (cons unit *units*)
            *breakpoints* (append *breakpoints* breakpoints)))
    (flag-breakpoints unit)
    (flag-for-steps unit)
    t))

(defun withdraw-unit (unit)
  "Removes the breakpoints of UNIT, whose evaluation has not reached its end. If others set
  breakpoints for longer than two seconds, a helper does it after them."
  (forget-units (list unit))
  (flet ((withdraw ()
           (without-interrupts (setf *breakpoints* (remove unit *breakpoints* :key #'breakpoint-unit)))
           (flag-breakpoints unit)
           t))
    (unless (sb-thread:with-mutex (*probes-lock* :timeout 2) (withdraw))
      (call-in-helper (lambda () (sb-thread:with-mutex (*probes-lock*) (withdraw)))))))

(defun report-waiting (waiting)
  "Asks the host to set the breakpoints of WAITING anew."
  (report-changed (mapcar (lambda (each) (cons (waiting-owner each) (waiting-set-in each))) waiting)))

(defun call-with-unit (unit waiting function)
  "Calls FUNCTION, which evaluates the form of UNIT with probes. The breakpoints of WAITING are in
  force from now on, unless the evaluation is left. Returns FUNCTION's values; or calls it with NIL
  when the breakpoints cannot be put in force."
  (let ((*unit* unit) (done nil))
    (find-sites unit)
    (if (not (put-in-force unit (points-made unit waiting)))
        (funcall (the function function) nil)
        (unwind-protect
             (multiple-value-prog1 (progn (report-waiting waiting)
                                          (funcall (the function function) t))
               (setf (unit-made unit) (with-own-settings () (ignore-errors (append (definitions-made unit) (values-and-tests-made unit))))
                     done t))
          (unless done
            (withdraw-unit unit)
            (report-waiting waiting))))))

(defun call-with-breakpoints (function form known end)
  "Calls FUNCTION with the form that is to be evaluated for FORM, which was read from KNOWN up to
  END: FORM itself, or FORM with probes if breakpoints wait for it."
  (if (or (atom form) (not (or *waiting-points* *evaluated-units*)))
      (funcall (the function function) form)
      (let* ((text (text-of-form known end))
             (waiting (and (not (keeps-value-p form)) (points-waiting-for text (evaluated-file known) (evaluation-session *evaluation*))))
             (unit (and waiting (can-probe-p) (not *in-copy*) (unit-to-evaluate form known text (first waiting)))))
        (call-replacing-form (if waiting (waiting-file (first waiting)) (evaluated-file known)) text
                             (lambda ()
                               (if unit
                                   (call-with-unit unit waiting
                                                   (lambda (probing) (funcall (the function function) (if probing `(top-probe ,form) form))))
                                   (funcall (the function function) form)))))))
