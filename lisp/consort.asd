;;;; For people who read or work on the image's side with ASDF. The host does not use it: boot.lisp needs no ASDF configuration.

(asdf:defsystem "consort"
  :description "The image's side of Consort: evaluation, checking and what the image tells its host."
  :license "MIT OR Apache-2.0"
  :depends-on ("sb-posix" "sb-introspect" "sb-cltl2" "sb-sprof" "sb-bsd-sockets")
  :serial t
  :pathname "src/"
  :components ((:file "package") (:file "sbcl") (:file "sbcl/fingerprint") (:file "sbcl/check") (:file "sbcl/copy")
               (:file "sbcl/symbols") (:file "sbcl/reload") (:file "sbcl/profile") (:file "json") (:file "wire") (:file "timers") (:file "streams")
               (:file "backtrace") (:file "evaluation") (:file "workers") (:file "dispatch") (:file "user-package")
               (:file "ops/status") (:file "ops/interrupt") (:file "ops/eval") (:file "ops/load-file") (:file "ops/load-system")
               (:file "ops/fingerprint") (:file "ops/symbol-kinds") (:file "ops/names") (:file "profile/stacks")
               (:file "profile/sampler") (:file "ops/profile") (:file "testing/frameworks") (:file "testing/select")
               (:file "ops/run-tests") (:file "ops/tools") (:file "copy") (:file "confine") (:file "second-process") (:file "check/state")
               (:file "check/source") (:file "check/positions") (:file "check/message") (:file "check/kinds")
               (:file "check/narrow") (:file "check/observe") (:file "check/undefined") (:file "check/stale")
               (:file "check/reading") (:file "check/engine") (:file "check/report") (:file "check/system")
               (:file "check/parked") (:file "ops/check") (:file "symbols/names") (:file "symbols/kinds")
               (:file "symbols/complete") (:file "symbols/describe") (:file "symbols/definitions") (:file "symbols/classes") (:file "symbols/references")
               (:file "ops/symbols") (:file "reload/notes") (:file "reload/packages") (:file "reload/snapshot") (:file "reload/changes") (:file "reload/undo") (:file "reload/digest")
               (:file "reload/compile") (:file "reload/report") (:file "reload/sources") (:file "ops/reload")
               (:file "expand/environment") (:file "expand/walk") (:file "expand/text") (:file "expand/plain")
               (:file "ops/macroexpand") (:file "ops/find-name")
               (:file "ops/browse") (:file "ops/threads")))
