;;;; Moments: where a thread is at a probe, with the values that were passed there.

(in-package :consort)

(defstruct (moment (:constructor make-moment (unit site after value values frame breakpoints)))
  "The moment at which a thread stopped at a probe: at SITE of UNIT, AFTER it gave VALUE or before.
  VALUES are of the site's variables, FRAME its function's frame pointer."
  (unit nil :read-only t) (site nil :read-only t) (after nil :read-only t) (value nil :read-only t) (values '() :type list :read-only t)
  (frame 0 :type (unsigned-byte 62) :read-only t) (breakpoints '() :type list :read-only t))

(defun moment-variables (moment)
  "The variables in scope, as FRAME-VARIABLES has them; after a form, its value comes first."
  (append (and (moment-after moment) (list (list '=> t (moment-value moment))))
          (loop for name in (site-variables (moment-site moment))
                for value in (moment-values moment)
                collect (list name t value))))

(defun function-of-variables (forms site)
  "Compiles a function with the body FORMS whose parameters are SITE's variables."
  (let ((names (site-variables site)))
    (handler-bind ((warning #'muffle-warning)
                   (sb-ext:compiler-note #'muffle-warning))
      (compile nil `(lambda ,names (declare (ignorable ,@names)) ,@forms)))))

(defun values-at-moment (forms moment)
  "The values of FORMS where MOMENT's variables are what they are; * is the value of the form that
  the program has just left."
  (let ((function (function-of-variables forms (moment-site moment)))
        (* (if (moment-after moment) (moment-value moment) *)))
    (multiple-value-list (apply function (moment-values moment)))))
