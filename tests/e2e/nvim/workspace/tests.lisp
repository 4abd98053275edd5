(defpackage :shop/tests
  (:use :cl :fiveam))
(in-package :shop/tests)

(def-suite shop)
(in-suite shop)

(test tea-is-cheap
  (is (= 3 (shop:price :tea))))

(test cake-is-dear
  (is (= 5 (shop:price :cake))))
