(defsystem "shop"
  :serial t
  :components ((:file "package")
               (:file "shop"))
  :in-order-to ((test-op (test-op "shop/tests"))))

(defsystem "shop/tests"
  :depends-on ("shop" "fiveam")
  :components ((:file "tests")))
