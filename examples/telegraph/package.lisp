(defpackage :telegraph
  (:use :common-lisp)
  (:documentation "Morse code, and how long it takes to send.")
  (:export #:define-code #:do-words #:encode #:decode #:*code*
           #:duration #:*words-per-minute*
           #:station #:call-sign #:send))
