;;;; Between forms and text: reads with the place of every list, and prints expansions.

(in-package :consort)

;;; Reading

(defstruct (place (:constructor make-place (start end list)))
  "A LIST that was read, and its span in the text."
  (start 0 :type fixnum) (end 0 :type fixnum) list)

(defun read-unreadable (stream char count)
  "Reads text that was printed as #<...> as a symbol of no package, so that the rest can be read."
  (declare (ignore char count))
  (loop with depth = 1
        for next = (read-char stream t nil t)
        do (case next (#\< (incf depth)) (#\> (decf depth)))
        until (zerop depth))
  (make-symbol "UNREADABLE"))

(defun read-placing (text start &key printed)
  "Reads the first form of TEXT from START on. Returns the form, its end, and the PLACEs of the
  lists in it. PRINTED is true for text that Consort printed. Uninterned symbols of one name are
  then the same symbol, and #<...> is no error."
  (let* ((in (make-string-input-stream text start))
         (*readtable* (copy-readtable *readtable*))
         (places '())
         (open (get-macro-character #\()))
    (set-macro-character #\( (lambda (stream char)
                               (let* ((from (1- (file-position stream)))
                                      (object (funcall open stream char)))
                                 (when (and (consp object) (eq stream in))
                                   (push (make-place (+ start from) (+ start (file-position stream)) object) places))
                                 object)))
    (when printed
      (let ((names (make-hash-table :test #'equal))
            (uninterned (get-dispatch-macro-character #\# #\:)))
        (set-dispatch-macro-character #\# #\< #'read-unreadable)
        (set-dispatch-macro-character #\# #\: (lambda (stream char count)
                                                (let ((symbol (funcall uninterned stream char count)))
                                                  (if (symbolp symbol)
                                                      (or (gethash (symbol-name symbol) names)
                                                          (setf (gethash (symbol-name symbol) names) symbol))
                                                      symbol))))))
    (let ((form (read-preserving-whitespace in)))
      (values form (+ start (file-position in)) places))))

(defun lists-at (places offset)
  "Returns those of PLACES that contain or touch OFFSET. The one that is meant is first: one that
  begins there, or otherwise the innermost."
  (let ((around (remove-if-not (lambda (place) (<= (place-start place) offset (place-end place))) places)))
    (flet ((size (place) (- (place-end place) (place-start place))))
      (stable-sort (sort around #'< :key #'size)
                   (lambda (a b) (and (= (place-start a) offset) (/= (place-start b) offset)))))))

(defun counterpart (list whole other)
  "Returns the part of OTHER at the place that LIST has in WHOLE. OTHER is what WHOLE was read back
  as or printed from. NIL if the two differ on the way. Both may be circular."
  (let ((visited (make-hash-table :test #'eq)))
    (labels ((look (part there)
               (when (eq part list) (return-from counterpart there))
               (loop while (and (consp part) (consp there) (not (gethash part visited)))
                     do (setf (gethash part visited) t)
                        (let ((inner (pop part)) (inner-there (pop there)))
                          (when (consp inner) (look inner inner-there))))))
      (look whole other)
      nil)))

(defun replaced (old new tree)
  "TREE, which may be circular, with the list OLD itself replaced by NEW. Parts that do not contain
  it are shared."
  (let ((visited (make-hash-table :test #'eq)))
    (labels ((change (part)
               (if (eq part old)
                   new
                   (loop for rest = part then (cdr rest)
                         while (and (consp rest) (not (gethash rest visited)))
                         do (setf (gethash rest visited) t)
                            (let ((changed (change (car rest))))
                              (unless (eql changed (car rest))
                                (return (append (ldiff part rest) (cons changed (cdr rest))))))
                         finally (return part)))))
      (change tree))))

;;; Printing

(defun circular-p (object)
  "Returns true if printing OBJECT, code, would never end because OBJECT contains itself, perhaps in
  a vector or after a comma."
  (let ((open (make-hash-table :test #'eq)) (done (make-hash-table :test #'eq)))
    (labels ((visit (part)
               (let ((chain '()))
                 (flet ((enter ()
                          (when (gethash part open) (return-from circular-p t))
                          (setf (gethash part open) t)
                          (push part chain)))
                   (loop until (gethash part done)
                         do (cond ((consp part) (enter) (visit (car part)) (setf part (cdr part)))
                                  ((backquoted-p part) (enter) (setf part (comma-expression part)))
                                  ((simple-vector-p part) (enter) (map nil #'visit part) (return))
                                  (t (return)))))
                 (dolist (entered chain) (setf (gethash entered done) t) (remhash entered open)))))
      (visit object)
      nil)))

(defun map-leaves (function tree &key once)
  "Calls FUNCTION with each atom of TREE, including those in vectors and after commas. If ONCE, no
  part is visited twice, and TREE may be circular."
  (let ((visited (and once (make-hash-table :test #'eq))))
    (labels ((new-p (part)
               (cond ((null visited) t)
                     ((gethash part visited) nil)
                     (t (setf (gethash part visited) t))))
             (visit (part)
               (loop (cond ((or (consp part) (backquoted-p part))
                            (unless (new-p part) (return))
                            (if (consp part)
                                (progn (visit (car part)) (setf part (cdr part)))
                                (setf part (comma-expression part)))
                            (when (null part) (return)))
                           ((simple-vector-p part)
                            (when (new-p part) (map nil #'visit part))
                            (return))
                           (t (funcall function part)
                              (return))))))
      (visit tree))))

(defun uninterned-p (object)
  "Returns true if OBJECT is a symbol of no package."
  (and (symbolp object) object (null (symbol-package object))))

(defun with-symbols (tree function)
  "TREE, which is not circular, with each symbol that MAP-LEAVES finds in it replaced by FUNCTION's
  value for it. Unchanged parts are shared."
  (labels ((change-list (list)
             (let ((copy (list nil)) (same t))
               (flet ((changed (part)
                        (let ((new (change part)))
                          (unless (eql new part) (setf same nil))
                          new)))
                 (loop with tail = copy
                       for rest = list then (cdr rest)
                       while (consp rest) do (setf tail (setf (cdr tail) (list (changed (car rest)))))
                       finally (setf (cdr tail) (changed rest))))
               (if same list (cdr copy))))
           (change (object)
             (cond ((consp object) (change-list object))
                   ((backquoted-p object)
                    (let* ((old (comma-expression object)) (new (change old)))
                      (if (eql new old) object (make-comma new (comma-kind object)))))
                   ((simple-vector-p object)
                    (let ((new (map 'simple-vector #'change object)))
                      (if (every #'eql new object) object new)))
                   ((and object (symbolp object)) (funcall function object))
                   (t object))))
    (change tree)))

(defun named-apart (form)
  "FORM with each symbol of no package that occurs in it more than once replaced by a new symbol of
  *PACKAGE*, so that the occurrences are still the same symbol after they are printed and read.
  Second value: a list of an object in FORM that cannot be written as text, or NIL."
  (let ((counts (make-hash-table :test #'eq)) (names (make-hash-table :test #'eq))
        (numbers (make-hash-table :test #'equal)) ; the last number of each base
        (unreadable nil))
    (map-leaves (lambda (leaf)
                  (cond ((uninterned-p leaf) (incf (gethash leaf counts 0)))
                        ((typep leaf '(or symbol number character string bit-vector pathname)))
                        ((ignore-errors (eql 0 (search "#<" (prin1-to-string leaf)))) (setf unreadable (list leaf)))))
                form)
    (flet ((name (symbol)
             (or (gethash symbol names)
                 (setf (gethash symbol names)
                       (let* ((stem (string-right-trim "-" (string-right-trim "0123456789" (symbol-name symbol))))
                              (base (if (string= stem "") "G" stem)))
                         (loop for name = base then (format nil "~A-~D" base (incf (gethash base numbers 0)))
                               unless (find-symbol name *package*)
                                 return (intern name *package*)))))))
      (values (with-symbols form (lambda (symbol) (if (> (gethash symbol counts 0) 1) (name symbol) symbol)))
              unreadable))))

(defconstant +right-margin+ 80 "The right margin of printed code, in columns.")

(defun code-text (form &key (column 0) (limit +text-limit+) dispatch)
  "FORM as a person writes it, pretty, in lower case and as seen from *PACKAGE*, for insertion at
  COLUMN, 0-based. Second value: the number of omitted characters. DISPATCH, if given, is used
  instead of the standard's pprint dispatch table."
  (let* ((readtable *readtable*)
         (package *package*)
         (clipped (with-standard-io-syntax
                    (let ((*readtable* readtable) (*package* package)
                          (*print-readably* nil) (*print-pretty* t) (*print-case* :downcase)
                          (*print-circle* (circular-p form))
                          (*print-pprint-dispatch* (or dispatch *print-pprint-dispatch*))
                          (*print-right-margin* (+ +right-margin+ (ash column -1)))
                          (indentation (make-string column :initial-element #\Space)))
                      (print-safely form (+ limit column)
                                    (lambda (form stream)
                                      (write-string indentation stream)
                                      (prin1 form stream)))))))
    (values (subseq (text-of clipped) (min column (length (text-of clipped)))) (field clipped "omitted"))))
