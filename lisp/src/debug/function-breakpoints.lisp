;;;; Breakpoints at functions, which are given by name.

(in-package :consort)

(defun of-system-p (name)
  "Returns true if the function NAME is one of SBCL's own."
  (let ((package (symbol-package (if (consp name) (second name) name))))
    (and package
         (lisp-package-p package)
         (part-of-core-p (or (and (symbolp name) (macro-function name)) (fdefinition name))))))

(defun function-named (text)
  "The function name that TEXT stands for in the image."
  (let ((name (ignore-errors (parse-function-name text (user-package)))))
    (unless (and name (fboundp name))
      (refuse-probe "There is no function ~A in the image" text))
    (when (and (symbolp name) (special-operator-p name))
      (refuse-probe "~A is a special operator" text))
    (when (typep (fdefinition name) 'generic-function)
      (refuse-probe "~A is a generic function: set a breakpoint in its methods" text))
    (when (of-system-p name)
      (refuse-probe "~A is a function of SBCL itself, in which there are no breakpoints: set one where it is called" text))
    name))

(defun piece-of-loaded (definition)
  "Four values: the file that DEFINITION, a function or a method, was loaded from, its text, the
  pieces of that, and the one that made DEFINITION."
  (multiple-value-bind (file loaded) (loaded-source definition)
    (let ((text (and file (text-of-file file nil))))
      (unless text (refuse-probe "The image knows no file that ~S was made from" definition))
      (let* ((pieces (toplevel-pieces text))
             (piece (and loaded (find-if (lambda (piece) (string= loaded text :start2 (car piece) :end2 (cdr piece))) pieces))))
        (unless piece (refuse-probe "The file ~A was changed since ~S was loaded from it. Evaluate its definition, or load the file" file definition))
        (values file text pieces piece)))))

(defun unit-with (definition)
  "The unit whose code is in place as DEFINITION, a function or a method; NIL if there is none."
  (find-if (lambda (unit) (and (eq (unit-state unit) :in-place) (eq (unit-new unit) definition))) *units*))

(defun unit-of-loaded (definition)
  "The unit of DEFINITION, a function or a method. If none is in place, one is made from the text
  that DEFINITION was loaded from. *PROBES-LOCK* is held."
  (or (unit-with definition)
      (let ((unit (multiple-value-call #'ensure-unit (piece-of-loaded definition))))
        (when (eq (unit-kind unit) :evaluated)
          (refuse-probe "~S was made by another kind of form than DEFUN, DEFMETHOD or DEFMACRO: set the breakpoint in its text" definition))
        unit)))

(declaim (ftype function await-evaluation refuse-replaced span-of-definition))
(defun site-of-function (unit name)
  "The first site in the body of the function NAME, which the evaluated form of UNIT defines."
  (let* ((span (or (span-of-definition unit name nil)
                   (refuse-probe "The form that has made ~S does not show its definition: set the breakpoint in the text" name)))
         (list (loop for list being the hash-keys of (unit-places unit) using (hash-value place)
                     when (equal place span) return list))
         (lambda-list (gethash (find-if #'listp (cddr list)) (unit-places unit)))
         (start (if lambda-list (cdr lambda-list) (1+ (car span))))
         (best nil))
    (loop for site across (unit-sites unit)
          when (and (<= start (site-start site)) (<= (site-end site) (cdr span))
                    (or (null best) (< (site-start site) (site-start best))
                        (and (= (site-start site) (site-start best)) (> (site-end site) (site-end best)))))
            do (setf best site))
    (or best (refuse-probe "~S has no form to stop at" name))))

(defun locate-function (owner point)
  "The unit and the site of the function that POINT of OWNER names. If the function was made by a
  form that is not replaced without a request, POINT waits until that form is evaluated."
  (let* ((name (function-named (param point "name" 'string)))
         (definition (or (and (symbolp name) (macro-function name)) (fdefinition name)))
         (span (list :function name))
         (unit (or (unit-with definition)
                   (multiple-value-bind (file text pieces piece) (piece-of-loaded definition)
                     (flet ((await () (await-evaluation owner file text piece span point "")))
                       (let ((unit (handler-case (ensure-unit file text pieces piece)
                                     (not-yet-probed ()
                                       (await)
                                       (signal-refusal 'not-yet-probed
                                                       "~S was made by ~A, which is no DEFUN, DEFMETHOD or DEFMACRO: evaluate that form in the editor. The breakpoint is in force from then on"
                                                       (list name (words-of-piece file text piece)))))))
                         ;; The breakpoint also waits for the next evaluation of the form.
                         (when (eq (unit-kind unit) :evaluated) (await))
                         unit))))))
    (if (eq (unit-kind unit) :evaluated)
        (let ((site (site-of-span unit span)))
          (refuse-replaced unit site)
          (values unit site))
        (values unit (or (site-on-line unit 0 0) (refuse-probe "~S has no form to stop at" (unit-name unit)))))))

(defun set-function-breakpoints (owner points timeout)
  "Makes POINTS the breakpoints of OWNER at functions, in place of all earlier ones."
  (call-setting-breakpoints owner ""
                            (lambda (point) (locate-function owner point))
                            (lambda (point) (field point "name"))
                            (lambda (point) (format nil "the function ~A" (field point "name")))
                            points timeout))
