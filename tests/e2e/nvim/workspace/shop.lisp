(in-package :shop)

(defun price (item)
  "What ITEM costs."
  (ecase item
    (:tea 3)
    (:cake 4)))

(defmacro with-discount ((percent) &body body)
  `(let ((sum (progn ,@body)))
     (when (plusp ,percent)
       (decf sum (* sum ,percent 1/100)))
     sum))

(defun total (items)
  (with-discount (10)
    (reduce #'+ items :key #'price)))

(defun fib (n)
  (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
