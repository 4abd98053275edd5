;;;; `inspect`: a page of the parts of a value that was shown.

(in-package :consort)

(defconstant +page-limit+ 1000 "Parts, frames or stops of one page.")

(defun inspected (reference start count)
  "The JSON of COUNT parts from START of the value of REFERENCE; refuses when it is gone."
  (multiple-value-bind (value there) (referent reference)
    (unless there (refuse "not-found" "~A" (gone-message (reference-number reference))))
    (multiple-value-bind (kind total parts note) (parts-of value start (+ start count))
      (object "value" (value-json value (reference-stop reference))
              "kind" kind
              "note" (or-null note)
              "total" total
              "parts" (map 'vector (lambda (part) (part-json part (reference-stop reference))) parts)))))

(define-operation "inspect" :query (id params)
  (let* ((number (param params "reference" '(integer 1)))
         (start (param params "start" '(integer 0) :default 0))
         (count (param params "count" `(integer 1 ,+page-limit+) :default 100))
         (reference (or (find-reference number)
                        (refuse "not-found" "~A" (gone-message number)))))
    (if (reference-stop reference)
        (reading-stack (reference-stop reference) (lambda () (inspected reference start count)))
        (inspected reference start count))))

(define-operation "inspect-set" :thread (id params)
  (let* ((number (param params "reference" '(integer 1)))
         (part (param params "part" '(integer 0)))
         (code (param params "code" 'string))
         (reference (or (find-reference number)
                        (refuse "not-found" "~A" (gone-message number))))
         (answer nil)
         (why nil))
    (multiple-value-bind (object there) (referent reference)
      (unless there (refuse "not-found" "~A" (gone-message number)))
      (multiple-value-bind (how outcome)
          (evaluate-alone id (lambda ()
                               (let* ((* object)
                                      (value (eval `(progn ,@(forms-of-text code (live-package *package*))))))
                                 (handler-case (set-part object part value)
                                   (unsettable (condition) (setf why (refusal-why condition)))
                                   (:no-error (&rest values)
                                     (declare (ignore values))
                                     (setf answer (values-json (list value))))))))
        (declare (ignore how))
        (when why (refuse "not-settable" "~A" why))
        (or answer outcome)))))
