(defpackage :mistakes (:use :cl))
(in-package :mistakes)

(defun area (width height)
  "The area of a rectangle."
  (* width heigth))

(defun greet (name)
  (format t "Hello, ~A~%"))

(defun later (x)
  (not-written-yet x))
