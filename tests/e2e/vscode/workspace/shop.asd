(defsystem "shop"
  :components ((:file "shop"))
  :in-order-to ((test-op (test-op "shop/tests"))))

(defsystem "shop/tests"
  :depends-on ("shop" "fiveam")
  :components ((:file "shop-tests"))
  :perform (test-op (o c) (symbol-call :fiveam :run! :shop)))
