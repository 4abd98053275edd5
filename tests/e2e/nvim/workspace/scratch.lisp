(in-package :shop)

(total '(:tea :cake))

(total '(:tea :coffee))

(fib 34)

(progn (format t "one~%two~%") (values 1 :two))
