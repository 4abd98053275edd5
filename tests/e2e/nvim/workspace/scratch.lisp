(in-package :shop)

(total '(:tea :cake))

(total '(:tea :coffee))

(fib 38)

(progn (format t "one~%two~%") (values 1 :two))
