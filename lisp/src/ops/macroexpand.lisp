;;;; `macroexpand`: the expansion of the macros of a form, made in a confined copy of the image,
;;;; which sends it to the host and ends. Side effects of the macros change only the copy.

(in-package :consort)

(define-condition no-form-at-place (error)
  ((message :initarg :message :reader no-form-at-place-message))
  (:documentation "Signalled if there is no form at the place of the form to expand.")
  (:report (lambda (condition stream) (write-string (no-form-at-place-message condition) stream))))

(defun form-sought (form places offset)
  "Three values: the form at OFFSET of the text from which FORM was read with PLACES, its
  environment, and its PLACE. If no list there is evaluated, the innermost evaluated list around
  it."
  (let ((candidates (lists-at places offset)))
    (unless candidates
      (error 'no-form-at-place :message "There is no list at this place. Put the cursor on the form that is to be expanded."))
    (multiple-value-bind (found environment) (environments-of (mapcar #'place-list candidates) form nil)
      (let ((found (or found
                       ;; In the arguments of a macro that takes them apart, or in data, only the
                       ;; outermost form is known to be code.
                       (error 'no-form-at-place :message "This form is not evaluated as it is written: it is data, or an argument that its macro does not put into the expansion."))))
        (values found environment (find found candidates :key #'place-list :test #'eq))))))

(defun form-meant (form places params)
  "Three values: the form to expand of the text from which FORM was read with PLACES, its
  environment and its place. If PARAMS have the two offsets `within`, only lists between these
  count, and the macro call around the offset is taken, if there is one."
  (let ((offset (field params "offset" :null)) (within (field params "within" :null)))
    (cond ((not (integerp offset)) (values form nil (find form places :key #'place-list :test #'eq)))
          ((not (vectorp within)) (form-sought form places offset))
          (t (let ((places (remove-if-not (lambda (place) (<= (aref within 0) (place-start place) (place-end place) (aref within 1))) places)))
               (multiple-value-bind (call environment place) (macro-call-around form places offset)
                 (if call (values call environment place) (form-sought form places offset))))))))

(defun offset-at (text line column unit)
  "The offset of the character of TEXT at LINE and COLUMN, 0-based. UNIT, an encoding's name, is the
  unit of columns."
  (let ((start (loop with start = 0
                     repeat line
                     do (setf start (1+ (or (position #\Newline text :start start) (return (length text)))))
                     finally (return start))))
    (loop for offset from start below (length text)
          for code = (char-code (char text offset))
          until (or (<= column 0) (= code 10))
          do (decf column (cond ((string= unit "utf-8") (cond ((< code #x80) 1) ((< code #x800) 2) ((< code #x10000) 3) (t 4)))
                                ((and (string= unit "utf-16") (>= code #x10000)) 2)
                                (t 1)))
          finally (return offset))))

(defun stepped (form environment line column unit)
  "FORM with the macro call that is at LINE and COLUMN of its text expanded once."
  (multiple-value-bind (printed end places) (read-placing (code-text form) 0 :printed t)
    (declare (ignore end))
    (let* ((candidates (loop for place in (lists-at places (offset-at (code-text form) line column unit))
                             for there = (counterpart (place-list place) printed form)
                             when there collect there))
           (found (and candidates (multiple-value-list (environments-of candidates form environment)))))
      (unless (first found)
        (error 'no-form-at-place :message "There is no form at this place of the expansion that is evaluated as it is written."))
      (replaced (first found) (expand-once (first found) (second found)) form))))

(defun column-of (text offset first-column)
  "The column of OFFSET in TEXT, whose first character is at FIRST-COLUMN. 0 if FIRST-COLUMN is no
  number, since the column then does not matter."
  (if (integerp first-column)
      (let ((newline (position #\Newline text :end offset :from-end t)))
        (if newline (- offset newline 1) (+ offset first-column)))
      0))

(defun expansion-facts (params)
  "The JSON of the answer: the form at `offset` of `text`, or the first one, expanded; or the macro
  calls in the first one."
  (let* ((text (field params "text"))
         (how (field params "how"))
         (whole (eq (field params "whole") :true))
         (calls (equal how "calls"))
         (*expansions* 0)
         (*gensym-counter* 1))
    (multiple-value-bind (form end places) (read-placing text 0 :printed (eq (field params "printed") :true))
      (multiple-value-bind (target environment place)
          (if calls (values form nil nil) (form-meant form places params))
        (setf *expansions* 0)
        (let* ((expansion (cond (calls target)
                                ((equal how "compiler") (compiler-expanded target environment))
                                (t (expanded target environment (equal how "full")))))
               (expanded (plusp *expansions*))
               (result (if whole (replaced target expansion form) expansion))
               (unreadable nil))
          (loop for step across (field params "steps" #())
                do (setf result (stepped result (if whole nil environment) (aref step 0) (aref step 1) (field params "unit" "utf-32"))
                         expanded (plusp *expansions*)))
          (when (vectorp (field params "within" :null))
            (unless (circular-p result)
              (setf result (distinctly-named result form))))
          (when (eq (field params "writable") :true)
            (unless (circular-p result)
              (setf (values result unreadable) (named-apart result))))
          (multiple-value-bind (words omitted)
              (code-text result :column (if place (column-of text (place-start place) (field params "column" :null)) 0))
            (object "form" (abbreviate target)
                    "expansion" words
                    "omitted" omitted
                    "expanded" (bool expanded)
                    "writable" (bool (and (null unreadable) (zerop omitted) (not (circular-p result))))
                    "span" (if place (span-json (place-start place) (place-end place)) (span-json 0 end))
                    "calls" (if calls (macro-call-spans form places) #())
                    "more" (bool (< (skip-blanks text end) (length text))))))))))

;;; Errors as data

(defun expansion-error (stage kind message)
  (object "error" (object "stage" stage "type" kind "message" message)))

(defun expansion-failure (condition params)
  "The JSON of the answer if CONDITION ended the work. CONDITION is NIL for a THROW or ABORT."
  (let ((refused (and condition (confinement-refusal-p condition) (confined-p params))))
    (cond ((null condition) (expansion-error "expand" "ABORT" "A macro left its expansion by a THROW or ABORT."))
          ((typep condition 'no-form-at-place) (expansion-error "place" "NO-FORM" (no-form-at-place-message condition)))
          ((typep condition 'form-out-of-time)
           (expansion-error "expand" "TIMEOUT" (format nil "The expansion was stopped after ~,1F s. Is there a macro that never ends?" (form-seconds condition))))
          ((typep condition 'end-of-file)
           (expansion-error "read" "END-OF-FILE" (condition-message condition)))
          ((and (typep condition reader-package-error-type) (not (packagep (package-error-package condition))))
           (expansion-error "package" "PACKAGE-ERROR" (format nil "Package ~A not found" (package-error-package condition))))
          ((typep condition 'reader-error) (expansion-error "read" (condition-type condition) (condition-report condition)))
          (refused (expansion-error "expand" (condition-type condition) (confined-message (condition-report condition) condition)))
          ((typep condition 'storage-condition)
           (expansion-error "expand" (condition-type condition) "The stack or the heap was exhausted. Is there a macro that never ends?"))
          (t (expansion-error "expand" (condition-type condition) (condition-message condition))))))

(defun expand-in-copy (params)
  "Does the work of the copy: everything after the fork."
  (let* ((report (begin-in-copy params))
         (*package* (or (find-package (field params "package" "COMMON-LISP-USER")) (user-package)))
         (*readtable* *readtable*)
         (failure nil)
         (answer (multiple-value-bind (confined why) (confine-copy params report)
                   (if confined
                       (call-guarded (lambda () (expansion-facts params))
                                     (lambda (condition where)
                                       (declare (ignore where))
                                       (setf failure (expansion-failure condition params))))
                       (expansion-error "confine" "UNCONFINED" (finding-message (cannot-confine why)))))))
    (send-line report (object "answer" (or failure answer)))
    (report-done report '())))

(define-operation "macroexpand" :thread (id params)
  (param params "text" 'string)
  (param params "steps" 'vector :default #())
  (let* ((package (param params "package" 'string :default "COMMON-LISP-USER"))
         (params (list* :object "package" (package-name (find-package-named package)) (rest params))))
    (check-check-params params)
    (answer-from-copy id params 'expand-in-copy)))
