;;;; Steps of a macro expansion in a text: the macro call that a place in it means, all macro calls
;;;; in it, and names with which an expansion can replace the call and be read back.

(in-package :consort)

(defun macro-call-p (form environment)
  "Returns true if FORM, a list, is a macro call in ENVIRONMENT."
  (and (symbolp (first form)) (macro-function (first form) environment) t))

(defun standard-definer-p (form)
  "Returns true if FORM is a definition by a macro of the standard."
  (and (definer-p form)
       (eq (symbol-package (first form)) (load-time-value (find-package "COMMON-LISP")))))

(defun macro-call-around (form places offset)
  "Three values: the macro call that is meant at OFFSET of the text from which FORM was read, its
  environment and its place. The call is the form there, or otherwise the nearest of PLACES around
  it that is no definition. NIL if there is none."
  (let* ((candidates (lists-at places offset))
         (environments (environments-in (mapcar #'place-list candidates) form nil))
         (inside nil))
    (dolist (place candidates nil)
      (let ((list (place-list place)))
        (multiple-value-bind (environment evaluated) (gethash list environments)
          (when evaluated
            (when (and (macro-call-p list environment) (not (and inside (standard-definer-p list))))
              (return (values list environment place)))
            (setf inside t)))))))

(defun macro-call-spans (form places)
  "The spans of the macro calls in the text from which FORM was read with PLACES, as JSON, in the
  order of the text."
  (let ((environments (environments-in (mapcar #'place-list places) form nil)))
    (flet ((call-p (place)
             (multiple-value-bind (environment evaluated) (gethash (place-list place) environments)
               (and evaluated (macro-call-p (place-list place) environment)))))
      (map 'vector (lambda (place) (span-json (place-start place) (place-end place)))
           (sort (remove-if-not #'call-p places) #'< :key #'place-start)))))

(defun distinctly-named (expansion form)
  "EXPANSION, which is not circular, with other names for those symbols of no package whose names
  other symbols in it or in FORM have. After it is printed and read, the symbols still differ."
  (let ((taken (make-hash-table :test #'equal)) (names (make-hash-table :test #'eq))
        (numbers (make-hash-table :test #'equal))) ; the last number of each base
    (flet ((name (symbol)
             (or (gethash symbol names)
                 (let ((base (string-right-trim "0123456789" (symbol-name symbol))))
                   (loop for name = (symbol-name symbol) then (format nil "~A~D" base (incf (gethash base numbers 0)))
                         for other = (gethash name taken)
                         until (or (null other) (eq other symbol))
                         finally (let ((named (if (string= name (symbol-name symbol)) symbol (make-symbol name))))
                                   (setf (gethash name taken) named
                                         (gethash symbol names) named)
                                   (return named)))))))
      (map-leaves (lambda (leaf)
                    (when (uninterned-p leaf) (setf (gethash (symbol-name leaf) taken) leaf)))
                  form :once t)
      (with-symbols expansion (lambda (symbol) (if (uninterned-p symbol) (name symbol) symbol))))))
