;;;; Uses of undefined names. Each use is recorded during the compilation, and reported at the end
;;;; of the compilation unit if the name is still undefined then.

(in-package :consort)

(defun undefined-now-p (name kind)
  "Returns true if the compiler has recorded NAME as an undefined name of KIND."
  (some (lambda (warning)
          (and (eq (undefined-warning-kind warning) kind)
               (equal (undefined-warning-name warning) name)))
        (undefined-warnings)))

(defun name-for-user (name)
  "NAME, of a function, variable or type, printed as in the current package."
  (let ((*print-pretty* nil) (*print-readably* nil)) (prin1-to-string name)))

(defun undefined-finding (check name kind place)
  "The finding that NAME of KIND (:FUNCTION, :VARIABLE or :TYPE) is undefined. PLACE is the span
  (START . END) of the use."
  (let ((label (ecase kind (:function "function") (:variable "variable") (:type "type")))
        (symbol (if (consp name) (find-if #'symbolp (reverse name)) name)))
    (new-finding check (car place) (cdr place) :warning
                 (format nil "undefined-~A" label)
                 (format nil "Undefined ~A: ~A" label (name-for-user name))
                 :condition (if (eq kind :variable) "WARNING" "STYLE-WARNING")
                 :data (list "symbol" (and symbol (symbol-name symbol))))))

(defun note-undefined-use (check name kind)
  "Records the use of NAME, which is undefined so far, at the compiler's present place. For
  functions this record is tentative: NOTE-FUNCTION-USES replaces it by records of all uses."
  (multiple-value-bind (form span cons) (locate-context check)
    (let ((place (or (undefined-place check form cons name kind)
                     (and (not (eq form (check-form check)))
                          (undefined-place check (check-form check) nil name kind))
                     span)))
      (unless (check-lost-package check)
        (push (make-undefined-use name kind (undefined-finding check name kind place) t (check-form-start check))
              (check-undefined check))))))

(defun function-place (check name path)
  "Returns the span of the function's NAME at PATH, a source path of the compiler."
  (multiple-value-bind (form span cons) (locate-trail check (path-trail path))
    (flet ((head (list) (car-span check list)))
      (cond ((not (consp form)) span)
            ((equal (uncomma (car form)) name) (head form))
            ((and (eq (car form) 'function) (consp (cdr form)) (equal (uncomma (second form)) name))
             (or (head (cdr form)) span))
            (t (or (undefined-place check form cons name :function) span))))))

(defun note-function-uses (check)
  "Records every use of undefined functions in the code that the compiler has just converted to its
  intermediate representation."
  (dolist (warning (undefined-warnings))
    (when (eq (undefined-warning-kind warning) :function)
      (let* ((name (undefined-warning-name warning))
             (paths (paths-of-references name))
             (start (check-form-start check)))
        (when (and paths (not (check-lost-package check)))
          (setf (check-undefined check)
                (delete-if (lambda (use)
                             (and (undefined-use-tentative use) (= start (undefined-use-form-start use))
                                  (eq :function (undefined-use-kind use)) (equal name (undefined-use-name use))))
                           (check-undefined check)))
          (dolist (path paths)
            (push (make-undefined-use name :function (undefined-finding check name :function (function-place check name path))
                                      nil start)
                  (check-undefined check))))))))

;;; Keywords in calls of generic functions. These are checked at the end of the compilation unit,
;;; because later methods may accept further keywords.

(defun note-keyword-use (check name keywords)
  "Records a call of the generic function NAME with KEYWORDS, which the function does not accept so
  far."
  (multiple-value-bind (form span) (locate-context check)
    (dolist (keyword keywords)
      (let ((place (or (and (consp form) (unused-place check (places check form keyword :from (cdr form)) (list :keyword keyword)))
                       span)))
        (push (list name keyword
                    (new-finding check (car place) (cdr place) :style-warning "unknown-keyword"
                                 (format nil "~A is not a known argument keyword." (name-for-user keyword))
                                 :condition "STYLE-WARNING" :data (list "keyword" (symbol-name keyword))))
              (check-keyword-uses check))
        (when *form-recorder* (note-keywords *form-recorder* (first (check-keyword-uses check))))))))

(defun method-takes-keyword-p (name keyword)
  "Returns true if a method that the image has on the generic function NAME accepts KEYWORD."
  (let ((function (and (fboundp name) (fdefinition name))))
    (and (typep function 'generic-function)
         (some (lambda (method)
                 (let ((lambda-list (sb-mop:method-lambda-list method)))
                   (or (member '&allow-other-keys lambda-list)
                       (member keyword (keyword-parameters lambda-list)))))
               (sb-mop:generic-function-methods function)))))

(defun take-unknown-keywords (check)
  "Removes the recorded uses of keywords from CHECK. Returns the findings for keywords that their
  generic functions still do not accept, in the order of the text."
  (sort (loop for (name keyword finding) in (reverse (shiftf (check-keyword-uses check) '()))
              when (handler-case (and (unknown-keyword-p name keyword) (not (method-takes-keyword-p name keyword)))
                     (error () nil))
                collect finding)
        #'< :key #'finding-start))

(defun unseen-name-p (checks name)
  "Returns true if a form that the compiler does not see, in a text of CHECKS, seems to define NAME.
  Such a form was withheld or could not be read."
  (let ((symbol (if (consp name) (car (last name)) name)))
    (and (symbolp symbol)
         (some (lambda (check) (gethash (symbol-name symbol) (check-unseen-names check))) checks))))

(defun take-undefined (check checks)
  "Removes the recorded uses of undefined names from CHECK. Returns the findings for names that are
  still undefined, in the order of the text. CHECKS are all checks of the compilation unit."
  (let ((uses (reverse (check-undefined check))))
    (setf (check-undefined check) '())
    (sort (loop for use in uses
                for name = (undefined-use-name use)
                when (and (undefined-now-p name (undefined-use-kind use)) (not (unseen-name-p checks name)))
                  collect (undefined-use-finding use))
          #'< :key #'finding-start)))
