;;;; The one package of all of Consort's Lisp, and the contribs it stands on.

(eval-when (:compile-toplevel :load-toplevel :execute)
  (require :asdf)
  (require :sb-posix)
  (require :sb-introspect)
  (require :sb-cltl2)
  (require :sb-sprof)
  (require :sb-bsd-sockets))

(defpackage :consort
  (:use :common-lisp)
  (:export #:main #:build #:exit-refused #:image-id)
  (:documentation "The image's side of Consort: it serves the host over the descriptor named in CONSORT_FD (docs/wire.md)."))
