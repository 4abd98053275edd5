(defpackage :shop
  (:use :cl)
  (:export #:price #:discount))
(in-package :shop)

(defvar *rebate* 1/10
  "Taken off from ten copies on.")

(defun discount (copies)
  (if (>= copies 10) *rebate* 0))

(defun price (each copies)
  "What COPIES cost."
  (* each copies (- 1 (discount copies))))
