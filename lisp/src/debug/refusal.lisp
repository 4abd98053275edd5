;;;; Conditions for requests of the debugger that cannot be carried out, with the reason in words.

(in-package :consort)

(define-condition refusal (error)
  ((why :initarg :why :reader refusal-why))
  (:documentation "A request cannot be carried out; WHY is a sentence for people.")
  (:report (lambda (condition stream) (write-string (refusal-why condition) stream))))

(define-condition unsettable (refusal) ()
  (:documentation "A variable or a part of a value cannot be set."))

(define-condition unprobed (refusal) ()
  (:documentation "A place cannot have a probe."))

(define-condition not-yet-probed (unprobed) ()
  (:documentation "A place can have a probe only when its form is evaluated."))

(defun signal-refusal (kind control arguments)
  (error kind :why (with-terse-printing () (apply #'format nil control arguments))))

(defun refuse-setting (control &rest arguments)
  (signal-refusal 'unsettable control arguments))

(defun refuse-probe (control &rest arguments)
  (signal-refusal 'unprobed control arguments))
