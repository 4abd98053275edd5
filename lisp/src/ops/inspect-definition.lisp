;;;; `inspect-definition`, `inspect-describe`: the place where a value that was shown is defined,
;;;; and the output of DESCRIBE for it.

(in-package :consort)

(define-operation "inspect-definition" :query (id params)
  (let ((reference (referenced params "reference")))
    (reading-references (list reference)
                        (lambda ()
                          (object "definitions" (coerce (value-definitions (value-of-reference reference)) 'vector)
                                  "features" (feature-names))))))

(define-operation "inspect-describe" :thread (id params)
  (let* ((reference (referenced params "reference"))
         (stop (reference-stop reference))
         (*own-evaluation* (or *own-evaluation* (make-evaluation id nil))))
    (flet ((outcome ()
             (let ((object (value-of-reference reference)))
               (nth-value 1 (evaluate-alone id (lambda () (describe object) (values)))))))
      (if stop (call-describing stop #'outcome) (outcome)))))
