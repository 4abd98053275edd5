(in-package :shop)

(list (char "a)(b" 1) #\) ; the ) of nobody
      |odd)name| #| ) |# :kept)

(list (first '(1)) "(" #\( :taken)
