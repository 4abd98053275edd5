(defpackage :shop/tests
  (:use :cl :fiveam))
(in-package :shop/tests)

(def-suite :shop)
(in-suite :shop)

(test one-copy
  (is (= 20 (shop:price 20 1))))

(test many-copies
  (is (= 190 (shop:price 20 10))))
