;;;; Copies that macros make of their forms. The expansion of a macro with a code walker of its own,
;;;; such as ITERATE, has lists that are EQUAL to the lists that were read, but not EQ. This
;;;; equality gives the copies their places, so that they can have probes.

(in-package :consort)

(defconstant +compared-conses+ 50000 "The maximum number of conses of a macro call, or of its expansion, that are compared.")

(defun lists-within (form)
  "The lists in FORM, outer ones first, each once, in order; second value: true if FORM is a tree
  that was searched to its end."
  (let ((seen (make-hash-table :test #'eq)) (lists '()) (tree t))
    (labels ((visit (list depth)
               (push list lists)
               (loop for tail = list then (cdr tail)
                     while (consp tail)
                     do (when (or (gethash tail seen) (> (hash-table-count seen) +compared-conses+) (> depth +shape-depth+))
                          (setf tree nil)
                          (return))
                        (setf (gethash tail seen) t)
                        (let ((part (without-comma (car tail))))
                          (when (consp part)
                            (if (gethash part seen) (setf tree nil) (visit part (1+ depth))))))))
      (when (consp form) (visit form 0)))
    (values (nreverse lists) tree)))

(defun copies-of (form expansion places)
  "An association of lists in EXPANSION, the expansion of the macro call FORM, with the lists in
  FORM of which they are copies. PLACES has the lists that were read. The copies of several equal
  lists are matched in order; if the number of copies differs, none is matched."
  (multiple-value-bind (read tree) (lists-within form)
    (let ((read (remove-if-not (lambda (list) (gethash list places)) (rest read))))
      (when (and tree read)           ; EQUAL terminates for a tree
        (let* ((made (lists-within expansion))
               (left-out (set-difference read made :test #'eq))
               (by-likeness (make-hash-table :test #'equal)))
          (dolist (list read)           ; (LISTS . COPIES), the last ones first
            (when (member list left-out :test #'eq) (push list (car (or (gethash list by-likeness) (setf (gethash list by-likeness) (list '())))))))
          (when left-out
            (dolist (list made)
              (let ((like (and (not (gethash list places)) (gethash list by-likeness))))
                (when like (push list (cdr like)))))
            (loop for (lists . copies) being the hash-values of by-likeness
                  append (cond ((null (rest lists)) (loop for copy in copies collect (cons copy (first lists))))
                               ((= (length lists) (length copies)) (mapcar #'cons copies lists))))))))))
