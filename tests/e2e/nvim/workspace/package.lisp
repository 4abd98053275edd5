(defpackage :shop
  (:use :cl)
  (:export #:price #:total #:with-discount))
