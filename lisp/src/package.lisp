;;;; The package of Consort's Lisp code, and the contribs that it requires (those of consort.asd).

(eval-when (:compile-toplevel :load-toplevel :execute)
  (require :asdf)
  (require :sb-posix)
  (require :sb-introspect)
  (require :sb-cltl2)
  (require :sb-sprof)
  (require :sb-bsd-sockets))

(defpackage :consort
  (:use :common-lisp)
  (:export #:main #:build                ; boot.lisp, and the core that it saves
           #:exit-refused #:image-id)    ; for user code and tests
  (:documentation "The image's side of Consort: it serves the host over the descriptor named in CONSORT_FD (docs/wire.md)."))
