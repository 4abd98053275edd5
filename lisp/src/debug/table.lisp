;;;; Values as tables: rows that have named parts, such as a list of plists, an array of instances,
;;;; an array of two dimensions. Runs no code of the user's.

(in-package :consort)

(defconstant +table-columns+ 50 "The maximum number of columns of a table; further ones are left
  out.")

(defun plist-cells (list)
  "The cells of LIST if it is a plist with symbols as names: a list of (LABEL (VALUE))."
  (multiple-value-bind (count ending) (list-facts list)
    (and (eq ending :proper) (evenp count) (<= 2 count (* 2 +table-columns+))
         (loop for (name) on list by #'cddr always (and name (symbolp name)))
         (loop for (name value) on list by #'cddr collect (list (symbol-name name) (list value))))))

(defun alist-cells (list)
  "The cells of LIST if it is an alist with symbols or strings as names."
  (multiple-value-bind (count ending) (list-facts list)
    (and (eq ending :proper) (<= 1 count +table-columns+)
         (loop for entry in list always (and (consp entry) (typep (car entry) '(or (and symbol (not null)) string))))
         (loop for (name . value) in list collect (list (string name) (list value))))))

(defun table-cells (table)
  "The cells of a hash TABLE with symbols or strings as keys."
  (and (<= 1 (hash-table-count table) +table-columns+)
       (let ((entries (page-of-table table 0 +table-columns+)))
         (and (loop for entry in entries always (typep (first (third entry)) '(or symbol string)))
              (loop for entry in entries collect (list (string (first (third entry))) (second entry)))))))

(defun cells-of (object)
  "The named cells of OBJECT as a row, a list of (LABEL PART), PART as in parts; NIL where it has
  none."
  (cond ((obsolete-p object) '())
        ((consp object) (or (plist-cells object) (alist-cells object) (named-parts object)))
        ((hash-table-p object) (table-cells object))
        ((and (vectorp object) (not (stringp object))) (named-parts object))
        ((and (typep object '(or condition structure-object standard-object))
              (not (typep object 'opaque)))
         (named-parts object))
        (t '())))

(defun named-parts (object)
  (loop for (label value) in (nth-value 2 (parts-of object 0 +table-columns+)) collect (list label value)))

(defun table-rows (object start end)
  "The rows of OBJECT from START below END, each (LABEL . CELLS). Second value: the number of all
  rows, or NIL if OBJECT is no table."
  (flet ((of-elements (total parts)
           (values (loop for (label value key) in parts
                         collect (let* ((element (if (stringp value) value (first value)))
                                        (cells (if (stringp value) '() (cells-of element))))
                                   (cons (if key (present (first key) (user-package) :case :upcase) label)
                                         (or cells (list (list "value" value))))))
                   total)))
    (cond ((obsolete-p object) (values '() nil))
          ((and (arrayp object) (= 2 (array-rank object)))
           (destructuring-bind (rows columns) (array-dimensions object)
             (values (loop for row from start below (min end rows)
                           collect (cons (format nil "~D" row)
                                         (loop for column from 0 below (min columns +table-columns+)
                                               collect (list (format nil "~D" column) (list (aref object row column))))))
                     rows)))
          ((or (consp object) (hash-table-p object) (and (vectorp object) (not (stringp object))))
           (multiple-value-bind (kind total parts) (parts-of object start end)
             (declare (ignore kind))
             (of-elements total parts)))
          (t (values '() nil)))))

(defun table-json (object start end stop)
  "The JSON of the rows of OBJECT from START below END as a table. STOP is the stop to whose stack
  OBJECT belongs, if any. Refuses an OBJECT that is no table."
  (multiple-value-bind (rows total) (table-rows object start end)
    (unless total
      (refuse "no-table" "A table is shown of a list, a vector, a hash table, or an array of two dimensions"))
    (let ((columns '()))
      (dolist (row rows)
        (dolist (cell (rest row))
          (unless (or (member (first cell) columns :test #'string=) (>= (length columns) +table-columns+))
            (push (first cell) columns))))
      (setf columns (nreverse columns))
      (object "total" total
              "columns" (coerce columns 'vector)
              "rows" (map 'vector
                          (lambda (row)
                            (object "label" (first row)
                                    "cells" (map 'vector (lambda (column)
                                                           (let ((cell (find column (rest row) :key #'first :test #'string=)))
                                                             (cond ((null cell) :null)
                                                                   ((stringp (second cell)) (object "text" (second cell) "type" :null "reference" 0))
                                                                   (t (value-json (first (second cell)) stop)))))
                                                 columns)))
                          rows)))))
