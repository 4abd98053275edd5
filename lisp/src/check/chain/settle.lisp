;;;; The findings of a text, computed from the records of its forms: the findings of each form, and
;;;; those that are known only at the end of the text, such as uses of names that no form defines.

(in-package :consort)

(defun undefined-uses (records)
  "The entries of RECORD-USES in RECORDS, in order, whose names are undefined at the end of the
  text. A name is undefined if its last use is in a later form than its last definition, or if it
  has no definition."
  (let ((defined (make-hash-table :test 'equal)) (used (make-hash-table :test 'equal)))
    (loop for record in records for index from 0
          do (loop for (kind key) in (record-defines record) do (setf (gethash (cons kind key) defined) index))
             (loop for (kind key) in (record-uses record) do (setf (gethash (cons kind key) used) index)))
    (loop for record in records
          append (remove-if-not (lambda (use)
                                  (let ((name (cons (first use) (second use))))
                                    (> (gethash name used) (gethash name defined -1))))
                                (record-uses record)))))

(defun untaken-keywords (records)
  "The entries of RECORD-KEYWORD-USES in RECORDS, in order, for which no method of the function in
  RECORDS accepts the keyword."
  (when (some #'record-keyword-uses records)
    (let ((taken (make-hash-table :test 'equal)))
      (dolist (record records)
        (loop for (key nil keywords) in (record-methods record)
              do (if (eq keywords t)
                     (setf (gethash key taken) t)
                     (dolist (keyword keywords) (setf (gethash (cons key keyword) taken) t)))))
      (loop for record in records
            append (remove-if (lambda (use) (or (gethash (first use) taken) (gethash (cons (first use) (second use)) taken)))
                              (record-keyword-uses record))))))

(defun findings-at-end (records withheld-names)
  "Returns the findings of RECORDS that are known only at the end of the text, each once. Uses of
  WITHHELD-NAMES, the names that withheld forms would define, give none."
  (let ((withheld-names (append withheld-names (loop for record in records when (record-unread-name record) collect it)))
        (lost (let ((last (first (last records)))) (and last (record-lost last))))
        (seen (make-hash-table :test 'equal)))
    (flet ((once (finding)
             (let ((key (list (finding-start finding) (finding-end finding) (finding-code finding) (finding-message finding))))
               (unless (or (gethash key seen) (and lost (meaningless-p finding)))
                 (setf (gethash key seen) t))))
           (in-order (findings) (sort findings #'< :key #'finding-start)))
      (remove-if-not
       #'once
       (append (in-order (loop for (nil nil words finding) in (undefined-uses records)
                               unless (member words withheld-names :test #'string=) collect finding))
               (in-order (mapcar #'third (untaken-keywords records))))))))

(defun settled-findings (check records withheld-names)
  "All findings of the text of CHECK, whose forms have RECORDS. WITHHELD-NAMES as in
  FINDINGS-AT-END. Also sets the system facts of CHECK if it has .asd files."
  (let* ((all (append (loop for record in records append (record-findings record))
                      (findings-at-end records withheld-names))))
    (if (null (check-asd-files check))
        all
        (let* ((told '())
               (this (copy-check check))
               (compiled (find-if #'record-compiled records))
               (in-package (find-if #'record-in-package records)))
          (setf (check-held this) '()
                (check-emit this) (lambda (finding) (push finding told))
                (check-first-span this) (and compiled (record-span compiled))
                (check-in-package-span this) (and in-package (record-span in-package)))
          (dolist (finding all)
            (if (or (name-finding-p finding) (doubtful-finding-p finding))
                (push finding (check-held this))
                (push finding told)))
          (settle-names this)
          (setf (check-system-facts check) (check-system-facts this))
          (nreverse told)))))
