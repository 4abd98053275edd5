;;;; For people who read or work on the image's side with ASDF. The host does not use it: boot.lisp needs no ASDF configuration.

(asdf:defsystem "consort"
  :description "The image's side of Consort: evaluation, checking and what the image tells its host."
  :license "MIT OR Apache-2.0"
  :depends-on ("sb-posix" "sb-introspect" "sb-cltl2" "sb-sprof" "sb-bsd-sockets")
  :serial t
  :pathname "src/"
  :components #.(mapcar (lambda (name) (list :file name))
                        (uiop:read-file-form (merge-pathnames "sources.sexp" (or *load-truename* *compile-file-truename*)))))
