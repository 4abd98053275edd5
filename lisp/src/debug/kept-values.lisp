;;;; Kept values: copies of the values that a recorded program had at a moment. A copy is bounded,
;;;; keeps no list, array or instance of the program alive, and does not change when the program
;;;; changes the original. Copying and showing run no code of the user's.
;;;;
;;;; Numbers, characters, symbols and functions are kept as they are. Lists, strings and vectors are
;;;; kept as lists, strings and vectors, so that the code of a condition can inspect them. All other
;;;; objects are kept as OBJECT-SNAPSHOTs. For structures and standard objects, a condition gets
;;;; instances that are made from the snapshots.

(in-package :consort)

(defconstant +kept-parts+ 40 "The maximum number of parts of one value that are kept, at all depths
  together.")
(defconstant +kept-depth+ 5 "The maximum depth at which parts are kept.")
(defconstant +kept-string+ 200 "The maximum number of characters of a string that are kept.")
(defconstant +kept-number-bits+ 2048 "The maximum number of bits of an integer that is kept as it
  is.")
(defconstant +kept-text+ 300 "The maximum number of characters of a kept value that are shown.")

(defstruct (object-snapshot (:constructor make-object-snapshot (type labels parts note)))
  "An object as it was: the name of its TYPE, the LABELS of its PARTS, and a NOTE or NIL."
  (type nil :read-only t) (labels '() :type list :read-only t) (parts '() :type list :read-only t) (note nil :read-only t))

(defstruct (omitted (:constructor make-omitted ()))
  "Stands for the parts of a value that are not kept.")

(define-global *omitted* (make-omitted) "The one OMITTED.")

(define-global *parts-left* 0 "The number of parts of the current value that may still be kept.")
(define-global *kept-octets* 0 "The approximate number of octets that kept values have taken so
  far.")

(declaim (inline unchanging-p))
(defun unchanging-p (object)
  "Returns true if OBJECT cannot change, and is kept as it is."
  (typecase object
    ((or fixnum character symbol) t)
    (integer (<= (integer-length object) +kept-number-bits+))
    ((or float (complex float)) t)
    (t nil)))

(declaim (type fixnum *parts-left* *kept-octets*))

(defun note-octets (octets)
  (declare (type fixnum octets))
  (setf *kept-octets* (the fixnum (+ *kept-octets* octets))))

(define-global *slots-of-classes* (make-hash-table :test #'eq)
  "For each class whose instances were kept: the list of all of its slots, then the labels and the
  slots that are kept.")

(defun slots-kept (class)
  "A cons of the labels of the slots of CLASS that are kept, and these slots."
  (let ((slots (and (sb-mop:class-finalized-p class) (sb-mop:class-slots class)))
        (known (gethash class *slots-of-classes*)))
    (cdr (if (and known (eq (car known) slots)) ; the class was not redefined
             known
             (setf (gethash class *slots-of-classes*)
                   (let ((kept (loop for slot in slots repeat +kept-parts+ collect slot)))
                     (list* slots (mapcar #'sb-mop:slot-definition-name kept) kept)))))))

(defun snapshot-of-instance (object depth)
  (destructuring-bind (labels . slots) (slots-kept (class-of object))
    (let ((parts (loop for slot in slots
                       collect (multiple-value-bind (value bound) (stored-slot object slot)
                                 (if (eq bound t) (keep-part value (1+ depth)) *omitted*)))))
      (note-octets (+ 48 (* 16 (length parts))))
      (make-object-snapshot (class-name (class-of object)) labels parts nil))))

(defun keep-list (list depth)
  (note-octets 16)
  (let* ((first (list (keep-part (car list) (1+ depth)))) (last first))
    (loop for tail = (cdr list) then (cdr tail)
          while (consp tail)
          do (when (<= *parts-left* 0)
               (setf (cdr last) *omitted*)
               (return first))
             (note-octets 16)
             (setf last (setf (cdr last) (list (keep-part (car tail) (1+ depth)))))
          finally (setf (cdr last) (keep-part tail (1+ depth)))
                  (return first))))

(defun keep-vector (vector depth)
  (let ((kept (min (length vector) (max 0 *parts-left*))))
    (note-octets (+ 16 (* 8 kept)))
    (let ((parts (loop for index below kept collect (keep-part (aref vector index) (1+ depth)))))
      (if (= kept (length vector))
          (coerce parts 'simple-vector)
          (make-object-snapshot 'vector '() parts (format nil "~D elements" (length vector)))))))

(defun keep-object (object depth)
  "Keeps OBJECT, which may change."
  (cond ((obsolete-p object) (make-object-snapshot (class-name (class-of object)) '() '() "obsolete"))
        ((or (> depth +kept-depth+) (<= *parts-left* 0)) *omitted*)
        (t
         (typecase object
           ((or omitted function package) object)
           (object-snapshot object)
           (integer (make-object-snapshot 'integer '() '() (format nil "~D bits" (integer-length object))))
           (number object)
           (string (note-octets (+ 16 (* 4 (min +kept-string+ (length object)))))
            (if (<= (length object) +kept-string+)
                (copy-of-string object)
                (make-object-snapshot 'string '() (list (copy-of-string object +kept-string+))
                              (format nil "~D characters" (length object)))))
           (cons (keep-list object depth))
           (vector (keep-vector object depth))
           (array (make-object-snapshot 'array '() '() (format nil "~{~D~^x~}" (array-dimensions object))))
           (hash-table (let ((parts '()) (labels '()))
                         (block parts
                           (maphash (lambda (key value)
                                      (when (<= *parts-left* 0) (return-from parts))
                                      (push (keep-part key (1+ depth)) labels)
                                      (push (keep-part value (1+ depth)) parts))
                                    object))
                         (note-octets (+ 64 (* 32 (length parts))))
                         (make-object-snapshot 'hash-table (nreverse labels) (nreverse parts)
                                       (format nil "~D entr~:@P" (hash-table-count object)))))
           (pathname (make-object-snapshot 'pathname '() '() (let ((name (ignore-errors (sb-ext:native-namestring object)))) (and name (bounded-text name +kept-string+)))))
           ((or standard-object structure-object condition) (snapshot-of-instance object depth))
           (t (make-object-snapshot (class-name (class-of object)) '() '() nil))))))

(defun bounded-text (text limit)
  (if (<= (length text) limit) text (concatenate 'string (subseq text 0 (max 0 (- limit 3))) "...")))

(defun keep-part (object depth)
  (declare (type fixnum depth))
  (setf *parts-left* (the fixnum (1- *parts-left*)))
  (if (unchanging-p object) object (keep-object object depth)))

(declaim (inline keep))
(defun keep (object)
  "Returns the copy of OBJECT as it is now, or OBJECT itself if it cannot change."
  (cond ((unchanging-p object) object)
        (t (setf *parts-left* +kept-parts+)
           (keep-object object 0))))

(defun copy-of-string (string &optional (end (length string)))
  (replace (make-string end) string :end2 end))

;;; The same value again

(defun same-list-p (list kept depth)
  (loop
    (unless (and (consp kept) (same-kept-p (car list) (car kept) depth)) (return nil))
    (setf list (cdr list) kept (cdr kept))
    (cond ((consp list) (when (eq kept *omitted*) (return (<= *parts-left* 0))))
          (t (return (same-kept-p list kept depth))))))

(defun same-kept-p (object kept depth)
  "Returns true if KEEP-PART would make an equal of KEPT for OBJECT now. May return NIL in this
  case, too."
  (declare (type fixnum depth))
  (setf *parts-left* (the fixnum (1- *parts-left*)))
  (cond ((eql object kept) (or (unchanging-p object) (typep object '(or function package))))
        ((or (unchanging-p object) (unchanging-p kept) (obsolete-p object)) nil)
        ((eq kept *omitted*) (or (> depth +kept-depth+) (<= *parts-left* 0)))
        (t
         (typecase object
           (string (and (simple-string-p kept) (= (length object) (length kept)) (string= object kept)))
           (cons (and (consp kept) (same-list-p object kept (1+ depth))))
           (simple-vector (and (simple-vector-p kept) (= (length object) (length kept))
                               (loop for one across object for other across kept always (same-kept-p one other (1+ depth)))))
           (t nil)))))

(defun same-as-kept-p (object kept)
  "SAME-KEPT-P for a whole value."
  (cond ((eq object kept) (or (unchanging-p object) (typep object '(or function package))))
        ((or (unchanging-p object) (unchanging-p kept)) (and (numberp object) (eql object kept)))
        (t (setf *parts-left* +kept-parts+)
           (same-kept-p object kept 0))))

(defun keep-all (values old)
  "Returns the list of the kept copies of VALUES. OLD is the list that was kept before. Elements and
  tails that are the same are shared with OLD. The lists are matched from their ends."
  (labels ((keep-rest (values count old old-count)
             (declare (type fixnum count old-count))
             (cond ((null values) '())
                   ((> old-count count) (keep-rest values count (cdr old) (1- old-count)))
                   ((< old-count count)
                    (let ((rest (keep-rest (cdr values) (1- count) old old-count)))
                      (note-octets 16)
                      (cons (keep (car values)) rest)))
                   (t
                    (let ((rest (keep-rest (cdr values) (1- count) (cdr old) (1- old-count)))
                          (same (same-as-kept-p (car values) (car old))))
                      (cond ((and same (eq rest (cdr old))) old)
                            (t (note-octets 16)
                               (cons (if same (car old) (keep (car values))) rest))))))))
    (keep-rest values (length values) old (length old))))

;;; Instances again, for code that inspects a kept value

(defun instance-of-snapshot (snapshot)
  "An instance of the class of SNAPSHOT with the kept parts as its slots; NIL if that would differ
  from the original in other ways. Slots that were unbound, or are not kept, are unbound. Slots with
  class allocation are not set."
  (let* ((type (object-snapshot-type snapshot))
         (class (and type (symbolp type) (null (object-snapshot-note snapshot)) (find-class type nil)))
         (structure (typep class 'structure-class))
         (slots (and (or structure (typep class 'standard-class)) (sb-mop:class-finalized-p class) (sb-mop:class-slots class)))
         (labels (object-snapshot-labels snapshot))
         (parts (mapcar #'with-instances (object-snapshot-parts snapshot))))
    (when (and slots (or (= (length labels) (length slots)) (and (not structure) (= (length labels) +kept-parts+)))
               (loop for slot in slots for label in labels always (eq label (sb-mop:slot-definition-name slot))))
      (let ((settable (loop for slot in slots for part in parts
                            when (and (or structure (not (eq part *omitted*)))
                                      (eq :instance (sb-mop:slot-definition-allocation slot)))
                              collect (cons slot part))))
        ;; A structure's slots cannot be unbound.
        (when (loop for (slot . part) in settable always (typep part (sb-mop:slot-definition-type slot)))
          (let ((instance (allocate-instance class)))
            (loop for (slot . part) in settable
                  do (setf (slot-value instance (sb-mop:slot-definition-name slot)) part))
            instance))))))

(defun with-instances (kept)
  "KEPT with instances of structures and standard classes in place of their snapshots, where that is
  possible. Lists and vectors are copied."
  (typecase kept
    (object-snapshot (or (handler-case (instance-of-snapshot kept) (error () nil)) kept))
    (cons (let* ((first (list (with-instances (car kept)))) (last first))
            (loop for tail = (cdr kept) then (cdr tail)
                  while (consp tail)
                  do (setf last (setf (cdr last) (list (with-instances (car tail)))))
                  finally (setf (cdr last) (with-instances tail)))
            first))
    (simple-vector (map 'simple-vector #'with-instances kept))
    (t kept)))

;;; Showing

(defun revived (kept package)
  "Returns an object that prints as the original of KEPT did, with PACKAGE current."
  (typecase kept
    (omitted (make-placeholder "..."))
    (object-snapshot
     (make-placeholder
      (with-output-to-string (out)
        (format out "#<~A" (present (object-snapshot-type kept) package))
        (loop with labels = (object-snapshot-labels kept)
              for part in (object-snapshot-parts kept)
              do (when labels
                   (let ((label (pop labels)))
                     (format out " ~A" (if (and label (symbolp label) (not (eq (object-snapshot-type kept) 'hash-table)))
                                           (string-downcase label) ; a slot
                                           (present (revived label package) package)))))
                 (format out " ~A" (present (revived part package) package :length +kept-parts+ :depth +kept-depth+)))
        (when (object-snapshot-note kept) (format out " ~A" (object-snapshot-note kept)))
        (write-char #\> out))))
    (cons (let ((parts '()))
            (loop for tail = kept then (cdr tail)
                  while (consp tail)
                  do (push (revived (car tail) package) parts)
                  finally (return (nreconc parts (cond ((null tail) '())
                                                       ((omitted-p tail) (list (revived tail package)))
                                                       (t (revived tail package))))))))
    (simple-vector (map 'simple-vector (lambda (part) (revived part package)) kept))
    (t kept)))

(defun kept-text (kept package)
  "The text of KEPT, on one line and of bounded length."
  (bounded-text (present (revived kept package) package :length +kept-parts+ :depth +kept-depth+) +kept-text+))
