;;;; The setting of a frame's variable, and of a part of a value.

(in-package :consort)

(defun set-frame-variable (frame name value)
  "Sets the variable of FRAME called NAME, as in VARIABLE-JSON, to VALUE."
  (let* ((labelled (label-variables (settable-variables frame) frame #'cdr))
         (named (remove name labelled :key #'first :test-not #'string=))
         (kept (remove-if-not #'cddr named))
         (found (rest (first (or kept named))))
         (several (loop for (label symbol) in labelled
                        when (and (string= name (variable-label symbol)) (string/= name label)) collect label)))
    (cond ((rest kept)
           (refuse-setting "There are several variables ~A in this frame, whose names are of different packages: ~{~A~^, ~}. Set one by code in the frame, with SETF"
                           name (mapcar (lambda (variable) (with-terse-printing () (prin1-to-string (second variable)))) kept)))
          (several (refuse-setting "There are several variables ~A in this frame. Say which: ~{~A~^, ~}" name several))
          ((and (null found) (find name (removed-variables frame) :key #'variable-label :test #'string=)) (refuse-removed name))
          ((null found) (refuse-setting "There is no variable ~A in this frame" name))
          ((and (null (cdr found)) (member (first found) (unbound-variables frame))) (refuse-unbound name))
          ((null (cdr found)) (refuse-setting "~A was not kept by the compiler, so it cannot be set: compile the function with (debug 2)" name))
          (t (funcall (cdr found) value)))))

(defun set-entry (table number value shown)
  "Sets the entry NUMBER of TABLE to VALUE. SHOWN is as from SHOWN-KEY."
  (let ((key (or shown (third (first (page-of-table table number (1+ number)))))))
    (unless (and (consp key) (or (null shown) (nth-value 1 (gethash (first key) table))))
      (refuse-setting "The entry ~D that was shown is no longer in the table. Inspect the table again" number))
    (setf (gethash (first key) table) value)))

(defun set-part (object number value &optional shown)
  "Sets the part NUMBER of OBJECT, as PARTS-OF counts them, to VALUE. SHOWN is as from SHOWN-KEY: the
  program may have changed a hash table or a class since its parts were shown."
  (when (obsolete-p object) (refuse-setting "The class of the instance was redefined: its slots cannot be set before the program uses the instance"))
  (when (parts-of-kind object) (refuse-setting "Parts of this kind of value cannot be set"))
  (typecase object
    (string (set-piece object number value))
    (cons (multiple-value-bind (count ending) (list-facts object)
            (cond ((< number count) (setf (car (nthcdr number object)) value))
                  ((and (= number count) (eq ending :dotted)) (setf (cdr (last object)) value))
                  (t (refuse-setting "The list has no part ~D (any more): it has ~D" number (if (eq ending :dotted) (1+ count) count))))))
    (array (unless (< number (array-total-size object)) (refuse-setting "The array has no element ~D (any more): it has ~D" number (array-total-size object)))
           (unless (typep value (array-element-type object))
             (refuse-setting "The elements are of type ~A" (present (array-element-type object) (user-package))))
           (setf (row-major-aref object number) value))
    (hash-table (set-entry object number value shown))
    (package (refuse-setting "Parts of a package cannot be set"))
    ((or standard-object condition structure-object)
     (let ((slot (let ((index (- number (facts-before-slots object)))) (and (not (minusp index)) (nth index (slots-of object))))))
       (unless slot (refuse-setting "There is no such slot"))
       (when (and (stringp shown) (string/= shown (symbol-name (sb-mop:slot-definition-name slot))))
         (refuse-setting "The class was redefined: the part ~D is no longer the slot ~A. Inspect the value again" number shown))
       (let ((type (sb-mop:slot-definition-type slot)))
         (unless (typep value type) (refuse-setting "The slot is of type ~A" (present type (user-package)))))
       (setf (slot-value object (sb-mop:slot-definition-name slot)) value)))
    (symbol (case number
              (2 (set object value))
              (t (refuse-setting "Only the value of a symbol can be set here"))))
    (t (refuse-setting "Parts of this kind of value cannot be set"))))
