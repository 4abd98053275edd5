;;;; For people who read or work on the image's side with ASDF. The host does not use it: boot.lisp needs no ASDF configuration.

(asdf:defsystem "consort"
  :description "The image's side of Consort: evaluation, checking and what the image tells its host."
  :license "MIT OR Apache-2.0"
  :depends-on ("sb-posix" "sb-introspect" "sb-cltl2" "sb-sprof" "sb-bsd-sockets")
  :serial t
  :pathname "src/"
  :components ((:file "package") (:file "sbcl") (:file "json") (:file "wire") (:file "timers") (:file "streams") (:file "backtrace")
               (:file "evaluation") (:file "workers") (:file "dispatch") (:file "user-package")
               (:module "ops" :serial t
                :components ((:file "status") (:file "interrupt") (:file "eval") (:file "load-file") (:file "load-system")
                             (:file "fingerprint")))
               (:file "copy") (:file "confine")
               (:module "check" :serial t
                :components ((:file "state") (:file "source") (:file "positions") (:file "message") (:file "kinds") (:file "narrow")
                             (:file "observe") (:file "undefined") (:file "stale") (:file "reading") (:file "engine")
                             (:file "report") (:file "system") (:file "parked")))
               (:module "checking" :pathname "ops/" :serial t :components ((:file "check")))))
