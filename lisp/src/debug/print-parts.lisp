;;;; CL:INSPECT in an evaluation: prints the parts of a value. There is no prompt, which an agent, a
;;;; pipe and most editors could not answer.

(in-package :consort)

(defconstant +printed-parts+ 100 "The maximum number of parts that INSPECT prints.")

(defun part-line (part)
  "The line that shows PART, a part as in PARTS-OF."
  (destructuring-bind (label value &optional key) part
    (flet ((shown (value) (if (stringp value) value (present (first value) (user-package) :case :upcase))))
      (format nil "~A: ~:[~;~:*~A => ~]~A" label (and key (shown key)) (shown value)))))

(defun print-parts (object &optional (input *standard-input*) (output *standard-output*))
  "Prints OBJECT, its kind, where it is defined, and its first parts to OUTPUT."
  (declare (ignore input))
  (multiple-value-bind (kind total parts note) (parts-of object 0 +printed-parts+)
    (with-standard-io-syntax
      (format output "~&~A~%  ~A~@[, ~A~]~@[, ~D part~:P~]~%" (present object (user-package) :case :upcase)
              kind note (and (plusp total) total))
      (format output "~@[  defined: ~A~%~]" (defined-text object))
      (format output "~{  ~A~%~}" (mapcar #'part-line parts))
      (when (> total (length parts))
        (format output "  ... ~D more: inspect a part of it, such as (subseq list 100)~%" (- total (length parts)))))))

(defun print-parts-when-inspected ()
  "Makes INSPECT print parts from now on, unless a program sets an inspector of its own."
  (when (internal-p 'inspector)
    (setf inspector 'print-parts)))
