(in-package :shop)

(defun area (width height)
  "In 𝄞 a rectangle."
  (* width heigth))

(defun greet (name)
  (format t "Hello~%"))

(defun later (x)
  (list "é𝄞" (not-written-yet x)))
