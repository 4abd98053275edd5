(in-package :telegraph)

(defclass station ()
  ((call-sign :initarg :call-sign :reader call-sign :type string)
   (sent :initform 0 :accessor sent)))

(defgeneric send (station text)
  (:documentation "Send TEXT from STATION: the signals, and how many seconds they take."))

(defmethod send ((station station) text)
  (let ((signals (encode text)))
    (incf (sent station)
    (values signals (duration signals))))

(defun call-up (station other)
  "CQ, from STATION to OTHER."
  (send station (format nil "~A DE ~A K" (call-sign other) (call-sgn station))))

(defun roll-call (stations)
  (let ((signs (mapcar #'call-sign stations))
        (count 0))
    (format nil "~{~A~^, ~}" (sort signs #'string<))))
