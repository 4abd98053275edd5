(defpackage :till (:use :cl))
(in-package :till)

(defun tax (price)
  (let ((rate 1/10))
    (* price rate)))

(defun total (prices)
  (let ((sum 0))
    (dolist (price prices)
      (incf sum (+ price (tax price))))
    (list sum)))

(defun refund (n)
  (list (error "no refund of ~a" n)))

