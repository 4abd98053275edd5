;;;; The names that may be meant in place of an undefined function or an unbound variable, for the
;;;; message of the error. Runs no code of the user's. The editors' fixes find such names before
;;;; anything runs (server/src/ide/fixes/meant.rs).

(in-package :consort)

(defconstant +compared-name+ 60 "The maximum number of characters of a name that is compared with
  others.")
(defconstant +suggested-names+ 3 "The maximum number of names that are suggested.")

(defun spelling-distance (from to limit)
  "The number of characters that must be inserted, removed, replaced or exchanged with their
  neighbours to make TO from FROM. If it is greater than LIMIT, any number greater than LIMIT. Case
  does not count."
  (let* ((width (1+ (length to)))
         (row (let ((row (make-array width))) (dotimes (j width row) (setf (svref row j) j))))
         (above (make-array width))
         (next (make-array width)))
    (flet ((same (i j) (char-equal (char from i) (char to j))))
      (dotimes (i (length from) (svref row (1- width)))
        (setf (svref next 0) (1+ i))
        (dotimes (j (1- width))
          (setf (svref next (1+ j))
                (min (1+ (svref row (1+ j)))
                     (1+ (svref next j))
                     (+ (svref row j) (if (same i j) 0 1))
                     (if (and (plusp i) (plusp j) (same i (1- j)) (same (1- i) j))
                         (1+ (svref above (1- j)))
                         width))))
        (when (and (> (reduce #'min next) limit) (> (reduce #'min row) limit))
          (return (1+ limit)))
        (rotatef above row next)))))

(defun similar-symbols (symbol fits)
  "The symbols whose names are most similar to SYMBOL's, sorted by name. Only symbols count that can
  be written without a prefix in SYMBOL's home package, and for which FITS returns true."
  (let* ((name (symbol-name symbol))
         (package (symbol-package symbol))
         (least (if (< (length name) 4) 1 2))
         (found '()))
    (when (and package (<= 1 (length name) +compared-name+))
      (map-accessible-symbols
       (lambda (other)
         (let ((its (symbol-name other)))
           (when (and (plusp (length its))
                      (char-equal (char name 0) (char its 0))
                      (<= (abs (- (length name) (length its))) least)
                      (string/= name its)
                      (eq (find-symbol its package) other)
                      (funcall fits other))
             (let ((distance (spelling-distance name its least)))
               (when (< distance least)
                 (setf least distance
                       found '()))
               (when (= distance least)
                 (pushnew other found))))))
       package)
      (loop for other in (sort found #'string<)
            repeat +suggested-names+
            collect other))))

(defun suggestion (condition)
  "A sentence with the names that may be meant if CONDITION reports an undefined function or an
  unbound variable; otherwise an empty string."
  (handler-case
      (let* ((name (typecase condition ((or undefined-function unbound-variable) (cell-error-name condition))))
             (writer (typep name '(cons (eql setf) (cons symbol null))))
             (symbol (if writer (second name) name))
             (meant (and symbol
                         (symbolp symbol)
                         ;; A macro that is called as a function is not misspelt.
                         (or writer (typep condition 'unbound-variable) (not (function-kind symbol)))
                         (similar-symbols symbol (cond (writer (lambda (other) (fboundp (list 'setf other))))
                                                       ((typep condition 'unbound-variable) #'variable-kind-name)
                                                       (t #'function-kind))))))
        (format nil "~:[~; Did you mean ~{~A~^ or ~}?~]" meant
                (mapcar (lambda (other) (present (if writer (list 'setf other) other) (user-package) :case :upcase)) meant)))
    (error () "")))
