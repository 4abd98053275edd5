;;;; Functions in variables, initial forms of classes and conditions, and tests of frameworks that
;;;; an evaluated form with breakpoints has made, and that others have replaced since.

(in-package :consort)

(defconstant +parts-with-functions+ 1000 "The maximum number of parts of a value that are searched for functions.")

(defun code-of-unit-p (value unit)
  "Returns true if VALUE is a function with the code of UNIT."
  (and (functionp value) (member unit (function-constants value) :test #'eq) t))

(defun holds-code-p (value unit if-many)
  "Returns true if VALUE is a function with the code of UNIT, or has one among its parts. Returns
  IF-MANY if that is unknown, because there are too many parts or some cannot be examined. Runs no
  code of the user's, and takes no lock of the parts."
  (let ((seen (make-hash-table :test #'eq)) (looked 0) (unsure nil))
    (labels ((new-p (part)
               (and (null (gethash part seen)) (setf (gethash part seen) t)))
             (look (part)
               (when (> (incf looked) +parts-with-functions+) (return-from holds-code-p if-many))
               (if (obsolete-p part)
                 (setf unsure t)
                 (typecase part
                   (function (when (code-of-unit-p part unit) (return-from holds-code-p t)))
                   (cons (loop for tail = part then (cdr tail)
                               while (and (consp tail) (new-p tail))
                               do (look (car tail))
                               finally (when (atom tail) (look tail))))
                   (simple-vector (when (new-p part) (map nil #'look part)))
                   (hash-table (cond ((sb-ext:hash-table-synchronized-p part) (setf unsure t))
                                     ((new-p part)
                                      (maphash (lambda (key value) (declare (ignore key)) (look value)) part))))
                   ((or standard-object structure-object)
                    (when (and (not (part-of-core-p (class-of part))) (new-p part))
                      (dolist (slot (slots-of part))
                        (multiple-value-bind (value bound) (stored-slot part slot)
                          (when (eq bound t) (look value))))))))))
      (look value)
      (and unsure if-many))))

(defun variable-set (list)
  "The variable that LIST, a form, defines or sets; NIL for other forms, also for those that add to
  the value of a variable. A function that is removed from a queue may still be used."
  (let ((name (and (or (definer-p list) (eq (first list) 'setf)) (second list))))
    (and name (symbolp name) (not (keywordp name)) name)))

(defun value-made (unit list span)
  "The MADE-DEFINITION of the variable that LIST, in the form of UNIT at SPAN, defines or sets, if
  its value is or has functions with the code of UNIT; NIL otherwise."
  (let* ((name (variable-set list))
         (value (and name (ignore-errors (global-value name))))
         (queue (and (consp value) (sb-ext:make-weak-pointer value))))
    (flet ((taken-from-p (now)
             ;; A function that was removed from a list may still be used.
             (and queue
                  (let ((list (sb-ext:weak-pointer-value queue)))
                    (or (null list) (and (proper-list-p list) (tailp now list)))))))
      (when (holds-code-p value unit nil)
        ;; The code of the form may set the variable to another of its functions. UNIT stands for
        ;; the value, which is not kept alive.
        (make-made-definition name
                              (lambda ()
                                (let ((now (ignore-errors (global-value name))))
                                  (and (or (holds-code-p now unit t) (taken-from-p now)) unit)))
                              unit span)))))

(defun functions-of-class (name)
  "The functions of the initial forms that the class NAME has now, each after its key: (:SLOT NAME)
  or (:DEFAULT-INITARGS NAME)."
  (let ((class (find-class name nil)))
    (when class
      (append (loop for slot in (sb-mop:class-direct-slots class)
                    collect (cons (list :slot (sb-mop:slot-definition-name slot)) (sb-mop:slot-definition-initfunction slot)))
              (loop for (key nil function) in (sb-mop:class-direct-default-initargs class)
                    collect (cons (list :default-initargs key) function))))))

(defun functions-of-condition (name)
  "Returns what FUNCTIONS-OF-CLASS returns, for the condition class NAME; also the function of its
  report, with the key (:REPORT)."
  (when (every #'internal-p '(find-classoid condition-slot-name condition-slot-initfunction))
    (append (loop for slot in (classoid-part name classoid-slots)
                  collect (cons (list :slot (condition-slot-name slot)) (condition-slot-initfunction slot)))
            (loop for (key nil function) in (classoid-part name classoid-initargs)
                  collect (cons (list :default-initargs key) function))
            (list (cons '(:report) (classoid-part name classoid-report))))))

(defun initial-forms-made (unit list)
  "The MADE-DEFINITIONs of the initial forms of slots and initargs, and of the report, with the code
  of UNIT, of the class or condition that LIST, in the form of UNIT, defines."
  (let ((name (second list))
        (functions (case (first list) (defclass #'functions-of-class) (define-condition #'functions-of-condition))))
    (when (and functions name (symbolp name) (proper-list-p list))
      (loop for (key . function) in (funcall functions name)
            when (code-of-unit-p function unit)
              collect (let ((key key) (functions functions))
                        (flet ((option-p (option)
                                 (and (consp option) (eq (first option) (if (eq (first key) :slot) (second key) (first key))))))
                          (make-made-definition name (lambda () (cdr (assoc key (funcall functions name) :test #'equal)))
                                                function
                                                (gethash (find-if #'option-p (if (eq (first key) :slot)
                                                                                  (and (proper-list-p (fourth list)) (fourth list))
                                                                                  (nthcdr 4 list)))
                                                         (unit-places unit)))))))))

(defun finder-of-test (unit list)
  "For LIST, in the form of UNIT, that defines a test of FiveAM, Parachute or Rove: a function that
  returns that test as it is now, and the test's name. NIL otherwise."
  (flet ((definer-p (package name) (let ((symbol (framework-symbol package name))) (and symbol (eq (first list) symbol)))))
    (let ((name (if (consp (second list)) (first (second list)) (second list))) (package (unit-package unit)))
      (cond ((or (definer-p :fiveam "TEST") (definer-p :fiveam "DEF-TEST"))
             (values (lambda () (call-framework :fiveam "GET-TEST" name)) name))
            ((definer-p :parachute "DEFINE-TEST")
             (values (lambda ()
                       (find (string name) (call-framework :parachute "PACKAGE-TESTS" package)
                             :test #'string= :key (lambda (test) (string (call-framework :parachute "NAME" test)))))
                     name))
            ((definer-p :rove "DEFTEST")
             (values (lambda () (call-framework :rove/core/suite/package "GET-TEST" name)) name))))))

(defun test-made (unit list span)
  "The MADE-DEFINITION of the test that LIST, in the form of UNIT at SPAN, defines; NIL if it defines
  none."
  (multiple-value-bind (current name) (finder-of-test unit list)
    (flet ((now () (ignore-errors (funcall (the function current)))))
      (let ((test (and current (now))))
        (and test (make-made-definition name #'now test span))))))

(defun values-and-tests-made (unit)
  "The MADE-DEFINITIONs of functions in variables, of initial forms and of tests that the form of
  UNIT has made."
  (loop for list being the hash-keys of (unit-places unit) using (hash-value span)
        when (and (consp list) (symbolp (first list)) (consp (cdr list)))
          append (or (initial-forms-made unit list)
                     (let ((made (or (value-made unit list span) (test-made unit list span))))
                       (and made (list made))))))
