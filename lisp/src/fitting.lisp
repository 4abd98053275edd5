;;;; Cuts JSON so that it fits a line of limited length: the longest texts lose their middle, and
;;;; the longest lists lose their end.

(in-package :consort)

(defun cut-text (text limit)
  "Two values: TEXT with its middle left out if it has more than LIMIT characters; and the number of
  omitted characters."
  (let ((omitted (- (length text) limit)) (half (ash limit -1)))
    (if (plusp omitted)
        (values (concatenate 'string (subseq text 0 half) (omission omitted) (subseq text (- (length text) (- limit half)))) omitted)
        (values text 0))))

(defun cut-list (values limit)
  "The first LIMIT of VALUES. If these are texts, or have texts, a last element tells how many were
  left out."
  (let* ((omitted (- (length values) limit))
         (kept (subseq (coerce values 'list) 0 (min limit (length values))))
         (words (and (plusp omitted) (format nil "...[~D more left out]..." omitted))))
    (append kept
            (cond ((null words) '())
                  ((every #'stringp kept) (list words))
                  ((every (lambda (value) (and (object-p value) (field value "omitted"))) kept) (list (clipped words 0)))))))

(defun cut-json (value limit)
  "VALUE, JSON to be written, in which each text of more than LIMIT characters and each list of more
  than LIMIT elements is cut."
  (cond ((stringp value) (values (cut-text value limit)))
        ((and (object-p value) (stringp (field value "text")) (integerp (field value "omitted")))
         (multiple-value-bind (text omitted) (cut-text (field value "text") limit)
           (apply #'object (loop for (key old) on (rest value) by #'cddr
                                 collect key
                                 collect (cond ((string= key "text") text)
                                               ((string= key "omitted") (+ old omitted))
                                               (t (cut-json old limit)))))))
        ((object-p value)
         (apply #'object (loop for (key old) on (rest value) by #'cddr collect key collect (cut-json old limit))))
        ((typep value '(and sequence (not null)))
         (mapcar (lambda (element) (cut-json element limit)) (cut-list value limit)))
        (t value)))

(defun fitting-line (value octets)
  "JSON-LINE of VALUE, which is cut further and further while the line has more than OCTETS."
  (loop for limit = 50000 then (ash limit -1)
        for fitting = value then (cut-json value limit)
        do (multiple-value-bind (line end) (json-line fitting)
             (when (or (<= end octets) (< limit 50))
               (return (values line end))))))
