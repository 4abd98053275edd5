;;;; Step into: before a call, the functions that a form is about to call get probes, if their files
;;;; still have the texts from which they were loaded.

(in-package :consort)

(defconstant +callees-limit+ 10 "The maximum number of definitions to which a step gives probes.")

(defun callable-name-p (name)
  "Returns true if NAME is the name of a function of the program, and not of a macro."
  (let ((symbol (if (consp name) (second name) name)))
    (and symbol (symbolp symbol)
         (or (symbolp name) (and (eq (first name) 'setf) (null (cddr name))))
         (symbol-package symbol)
         (not (eq (symbol-package symbol) (load-time-value (find-package "COMMON-LISP"))))
         (not (member (symbol-package symbol) *internal-packages*))
         (fboundp name)
         (not (and (symbolp name) (or (macro-function name) (special-operator-p name)))))))

(defun names-called-by (form)
  "The names of the program's functions that FORM calls itself, or passes as arguments (#'NAME)."
  (when (proper-list-p form)
    (let ((place (and (eq (first form) 'setf) (second form))))
      (remove-if-not #'callable-name-p
                     (list* (first form)
                            (and (consp place) (list 'setf (first place)))
                            (loop for argument in (rest form)
                                  when (and (proper-list-p argument) (eq (first argument) 'function))
                                    collect (second argument)))))))

(defun site-around (unit site)
  "The innermost site of UNIT around SITE, or NIL."
  (let ((best nil))
    (loop for other across (unit-sites unit)
          when (and (<= (site-start other) (site-start site)) (>= (site-end other) (site-end site))
                    (not (eq (site-form other) (site-form site)))
                    (or (null best) (>= (site-start other) (site-start best))))
            do (setf best other))
    best))

(defun names-called-from (moment)
  "The names of the functions that may be called next after MOMENT: by its form, or by the form
  around that, which uses its value."
  (let* ((site (moment-site moment))
         (around (site-around (moment-unit moment) site)))
    (remove-duplicates (append (and (not (moment-after moment)) (names-called-by (site-form site)))
                               (and around (names-called-by (site-form around))))
                       :test #'equal)))

(defun definitions-called (name)
  "Returns a list of the function called NAME, or of the methods of a generic function of that
  name."
  (let ((function (fdefinition name)))
    (if (typep function 'generic-function) (sb-mop:generic-function-methods function) (list function))))

(defun probe-functions (names)
  "Gives probes to the functions NAMES. A step does not enter those that can have none. Returns true
  if there are functions, and all of them have probes."
  (let* ((*setting-breakpoints* t)
         (*for-agent* (and *evaluation* (session-of-agent-p (evaluation-session *evaluation*))))
         (definitions (mapcan (lambda (name) (copy-list (definitions-called name))) names))
         (units (loop for definition in definitions
                      repeat +callees-limit+
                      collect (handler-case (sb-thread:with-mutex (*probes-lock*) (unit-of-loaded definition))
                                (error () nil)))))
    (and units
         (notany #'null units)
         (null (nthcdr +callees-limit+ definitions)))))

(defun probe-callees (moment)
  "Gives probes to the functions that may be called next after MOMENT, as PROBE-FUNCTIONS does."
  (probe-functions (names-called-from moment)))
