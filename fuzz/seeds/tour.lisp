#!/usr/bin/sbcl --script
;;; Every construct of the standard syntax once.
(in-package #:cl-user)
(defun f (x &key (y '(1 . 2)) ((:z z) #(1 2)))
  "A doc string with \" and \\ and (parens
(defun not-a-definition ())
"
  `(list ,x ,@y ,.z #'car #.(+ 1 2) #+sbcl 1 #-(and sbcl (not x)) 2 #\( #\) #\; #\Space #\| #\\))
#| block #| nested |# ) " ; |#
(list '|a (b| 'c\(d \| #:g #*101 #b101 #o17 #xFF #36rZZ #c(1 2) #2a((1) (2)) #s(x :y 1) #p"/tmp/" #1=(a . #1#) a|b|c)
#+(or a b)
#-c (guarded)
'quoted `(back ,quoted) #'function :keyword "string" 12 #?"unknown ${syntax}" #@(other) #h
