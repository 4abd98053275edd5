;;;; The frame of an evaluated form. No function of the program is on the stack if the evaluator
;;;; itself calls the function that fails, as in `(error "x")`, or if a tail call has replaced the
;;;; frames of the form's code. Then the frame of CALL-WITH-FORM-FRAME (ops/eval.lisp) stands for
;;;; the form.

(in-package :consort)

(defun form-frame-named-p (name)
  "Returns true if a frame called NAME stands for an evaluated form."
  (eq name 'call-with-form-frame))

(defun form-frame-p (frame)
  (form-frame-named-p (frame-name frame)))

(defun program-frame-p (name)
  "Returns true if a frame called NAME belongs to the program, and not to Lisp or to Consort."
  (let ((symbol (frame-symbol (list name))))
    (not (or (internal-frame-p (list name))
             (and symbol (lisp-package-p (symbol-package symbol)))))))

(defun forms-evaluated-at (frame)
  "The forms that the evaluator is evaluating within the call of FRAME, which stands for a form,
  innermost first."
  (let ((forms '()))
    (loop for above = (frame-above frame) then (frame-above above)
          while above
          for name = (frame-name above)
          until (or (program-frame-p name) (member name *signalling-frames*))
          do (when (evaluator-frame-p (list name))
               (let ((arguments (nth-value 1 (frame-call above))))
                 (when (consp arguments) (push (first arguments) forms)))))
    forms))

(defun path-within (form part)
  "The path to PART, a list, in FORM, as in *EVALUATED-LISTS*; :NONE when it is not there."
  (let ((count 0))
    (labels ((look (list path depth)
               (when (eq list part) (return-from path-within path))
               (unless (or (> (incf count) +placed-conses+) (> depth +shape-depth+))
                 (loop for tail = list then (cdr tail)
                       for position from 0 below +placed-conses+
                       while (consp tail)
                       do (let ((part (without-comma (car tail))))
                            (when (consp part) (look part (cons position path) (1+ depth))))))))
      (when (consp form) (look form '() 0))
      :none)))

(defun atom-span (known)
  "The span of the atom that the text of KNOWN begins with."
  (handler-case
      (let ((input (shape-input-of known)))
        (read-shape input 0)
        (cons (evaluated-start known) (min (shape-at input) (shape-end input))))
    (error () nil)))

(defun form-frame-place (frame)
  "The JSON fields of the place of FRAME if it stands for a form; NIL otherwise."
  (when (form-frame-p frame)
    (destructuring-bind (function form known) (nth-value 1 (frame-call frame))
      (declare (ignore function))
      (flet ((fields (form span) (list* "form" (present form (user-package) :case :downcase) (and span (evaluated-span-fields known (car span) (cdr span))))))
        (loop for part in (append (ignore-errors (forms-evaluated-at frame)) (list form))
              for path = (path-within form part)
              unless (eq path :none)
                return (multiple-value-bind (span shape) (path-span known path)
                         (fields part (and span (same-operator-p part shape) span)))
              finally (return (fields form (and (atom form) (atom-span known)))))))))
