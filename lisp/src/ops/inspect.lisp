;;;; `inspect`: a page of the parts of a value that was shown.

(in-package :consort)

(defconstant +page-limit+ 1000 "The maximum number of parts, rows, frames or variables of one
  page.")

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

(defun referenced (params key)
  "The reference that PARAMS name under KEY; refuses when it is forgotten."
  (let ((number (param params key '(integer 1))))
    (or (find-reference number) (refuse "not-found" "~A" (gone-message number)))))

(defun value-of-reference (reference)
  "The value of REFERENCE; refuses when it is gone."
  (multiple-value-bind (object there) (referent reference)
    (unless there (refuse "not-found" "~A" (gone-message (reference-number reference))))
    object))

(defun reading-references (references function)
  "Calls FUNCTION with the stop that one of REFERENCES belongs to, which is not left meanwhile, or
  NIL."
  (let ((stop (some #'reference-stop references)))
    (if stop
        (reading-stack stop (lambda () (funcall (the function function) stop)))
        (funcall (the function function) nil))))

(define-operation "inspect" :query (id params)
  (let* ((reference (referenced params "reference"))
         (start (param params "start" '(integer 0) :default 0))
         (count (param params "count" `(integer 1 ,+page-limit+) :default 100)))
    (reading-references (list reference) (lambda (stop) (declare (ignore stop)) (inspected reference start count)))))

(define-operation "inspect-table" :query (id params)
  (let* ((reference (referenced params "reference"))
         (start (param params "start" '(integer 0) :default 0))
         (count (param params "count" `(integer 1 ,+page-limit+) :default 100)))
    (reading-references (list reference) (lambda (stop) (table-json (value-of-reference reference) start (+ start count) stop)))))

(define-operation "inspect-compare" :query (id params)
  (let ((one (referenced params "reference")) (other (referenced params "other")))
    (reading-references (list one other)
                        (lambda (stop) (comparison-json (value-of-reference one) (value-of-reference other) stop)))))

(defun evaluate-on (id object code function)
  "The JSON that FUNCTION returns for the list of the values of CODE, in which * is OBJECT,
  evaluated for the request ID; that of the evaluation, where that failed."
  (let ((answer nil))
    (multiple-value-bind (how outcome)
        (evaluate-alone id (lambda ()
                             (let* ((* object)
                                    (values (multiple-value-list (eval `(progn ,@(forms-of-text code (live-package *package*)))))))
                               (setf answer (funcall (the function function) values)))))
      (declare (ignore how))
      (or answer outcome))))

(define-operation "inspect-eval" :thread (id params)
  (let ((code (param params "code" 'string)))
    (evaluate-on id (value-of-reference (referenced params "reference")) code #'values-json)))

(define-operation "inspect-set" :thread (id params)
  (let* ((part (param params "part" '(integer 0)))
         (code (param params "code" 'string))
         (object (value-of-reference (referenced params "reference")))
         (why nil))
    (let ((answer (evaluate-on id object code
                               (lambda (values)
                                 (handler-case (set-part object part (first values))
                                   (unsettable (condition) (setf why (refusal-why condition)))
                                   (:no-error (&rest ignored)
                                     (declare (ignore ignored))
                                     (values-json (list (first values)))))))))
      (when why (refuse "not-settable" "~A" why))
      answer)))
