(defsystem "telegraph"
  :description "Morse code, and how long it takes to send."
  :license "MIT OR Apache-2.0"
  :serial t
  :components ((:file "package")
               (:file "macros")
               (:file "code"))
  :in-order-to ((test-op (test-op "telegraph/station"))))

(defsystem "telegraph/station"
  :description "What is still being written: the files that `consort check` has something to say about."
  :depends-on ("telegraph")
  :serial t
  :components ((:file "timing")
               (:file "station")
               (:file "tests")))
