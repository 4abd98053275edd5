;;;; Two values compared, part by part, without running the user's code.

(in-package :consort)

(defconstant +differences-limit+ 100 "The maximum number of differences in an answer.")
(defconstant +compared-limit+ 20000 "The maximum number of pairs of values that are compared.")
(defconstant +compared-parts+ 1000 "The maximum number of parts of one value that are compared.")

(defstruct (comparison (:constructor make-comparison ()))
  "The state of a comparison. DIFFERENCES has those found, newest first, each (PATH ONE OTHER). PATH
  has the labels of parts, the innermost first. ONE and OTHER are each (VALUE), or a string that
  says why there is no value. LEFT is the number of pairs that may still be compared. SEEN has the
  pairs that were compared. PARTIAL is true if the values were not compared as a whole."
  (differences '() :type list)
  (left +compared-limit+ :type fixnum)
  (seen (make-hash-table :test #'eq) :type hash-table :read-only t)
  (partial nil))

(defun add-difference (comparison path one other)
  (if (< (length (comparison-differences comparison)) +differences-limit+)
      (push (list path one other) (comparison-differences comparison))
      (setf (comparison-partial comparison) t)))

(defun seen-p (comparison one other)
  "Returns true if ONE and OTHER were compared before; otherwise notes the pair."
  (let ((seen (comparison-seen comparison)))
    (or (member other (gethash one seen) :test #'eq)
        (progn (push other (gethash one seen)) nil))))

(defun compared-by-parts-p (object)
  "Returns true if OBJECT is compared by its parts, and not by its identity."
  (and (not (obsolete-p object))
       (typep object '(or cons array hash-table condition structure-object standard-object))
       (not (typep object 'opaque))))

(defun standard-table-p (table)
  "Returns true if a look-up in TABLE runs no code of the user's."
  (member (hash-table-test table) '(eq eql equal equalp)))

(defun compare-parts (comparison path one other)
  "Compares ONE and OTHER, which are of one kind, by their parts."
  (multiple-value-bind (kind total parts note) (parts-of one 0 +compared-parts+)
    (multiple-value-bind (other-kind other-total other-parts other-note) (parts-of other 0 +compared-parts+)
      (when (or (> total +compared-parts+) (> other-total +compared-parts+))
        (setf (comparison-partial comparison) t))
      (if (or (string/= kind other-kind) (and (equal total other-total) (not (equal note other-note))))
          (add-difference comparison path (list one) (list other))
          (loop for rest = parts then (cdr rest)
                for others = other-parts then (cdr others)
                while (or rest others)
                do (let ((label (first (or (car rest) (car others)))))
                     (compare-values comparison (cons label path)
                                     (if rest (second (car rest)) "not there")
                                     (if others (second (car others)) "not there"))))))))

(defun compare-tables (comparison path one other)
  "Compares hash tables by their keys."
  (flet ((label (key) (present key (user-package) :case :upcase))
         (entries (table) (nth-value 2 (parts-of table 0 +compared-parts+))))
    (when (or (> (hash-table-count one) +compared-parts+) (> (hash-table-count other) +compared-parts+))
      (setf (comparison-partial comparison) t))
    (dolist (entry (entries one))
      (let ((key (first (third entry))))
        (multiple-value-bind (value there) (gethash key other)
          (compare-values comparison (cons (label key) path) (second entry) (if there (list value) "not there")))))
    (dolist (entry (entries other))
      (let ((key (first (third entry))))
        (unless (nth-value 1 (gethash key one))
          (add-difference comparison (cons (label key) path) "not there" (second entry)))))))

(defun compare-strings (comparison path one other)
  "Compares strings. For long strings, shows the text from the first difference on."
  (let ((at (mismatch one other)))
    (cond ((null at))
          ((<= (max (length one) (length other)) +piece-length+) (add-difference comparison path (list one) (list other)))
          (t (flet ((rest-of (string)
                      (if (< at (length string)) (list (subseq string at (min (length string) (+ at +piece-length+)))) "not there")))
               (add-difference comparison (cons (format nil "character ~D" at) path) (rest-of one) (rest-of other))
               (setf (comparison-partial comparison) t))))))

(defun compare-values (comparison path one other)
  "Compares ONE and OTHER, each (VALUE) or a string, at PATH."
  (cond ((<= (decf (comparison-left comparison)) 0) (setf (comparison-partial comparison) t))
        ((or (stringp one) (stringp other))
         (unless (equal one other) (add-difference comparison path one other)))
        (t (let ((first (first one)) (second (first other)))
             (cond ((eql first second))
                   ((and (stringp first) (stringp second))
                    (compare-strings comparison path first second))
                   ((not (and (compared-by-parts-p first) (compared-by-parts-p second)
                              (or (eq (class-of first) (class-of second)) (and (vectorp first) (vectorp second)))))
                    (add-difference comparison path one other))
                   ((seen-p comparison first second))
                   ((and (hash-table-p first) (standard-table-p first) (standard-table-p second))
                    (compare-tables comparison path first second))
                   (t (compare-parts comparison path first second)))))))

(defun comparison-json (one other stop other-stop)
  "The JSON of the differences between ONE, a value of STOP's stack, and OTHER, a value of
  OTHER-STOP's. Either stop may be NIL: that value is then referred to as one of the other stop."
  (let ((comparison (make-comparison)))
    (compare-values comparison '() (list one) (list other))
    (flet ((shown (value stop) (if (stringp value) (object "text" value "type" :null "reference" 0) (value-json (first value) stop))))
      (object "differences" (map 'vector (lambda (difference)
                                           (destructuring-bind (path one other) difference
                                             (object "path" (coerce (reverse path) 'vector) "one" (shown one (or stop other-stop)) "other" (shown other (or other-stop stop)))))
                                 (reverse (comparison-differences comparison)))
              "partial" (bool (comparison-partial comparison))))))
