;;;; References: numbers by which a host names values of the image. A reference keeps its value
;;;; alive only if the value was shown for a stop, and only while the stop lasts.

(in-package :consort)

(defconstant +references-limit+ 5000 "The maximum number of references; the oldest are forgotten.")

(defstruct (reference (:constructor make-reference (number weak strong stop)))
  "WEAK points to the value. If the value belongs to STOP, whose stack may contain it, STRONG is a
  list of it instead. Such a reference is removed when the stop is left. KEYS is NIL, or a table
  of what was shown, by the number of the part: weak pointers to the keys of a hash table, or the
  labels of an instance's slots."
  (number 0 :type fixnum) weak (strong '() :type list) stop (keys nil))

(define-global *references* (make-hash-table) "The REFERENCE of each number.")
(define-global *first-reference* 0 "The number below all that this image gives.")
(define-global *last-reference* 0 "The number that was given last.")
(define-global *references-lock* (sb-thread:make-mutex :name "consort references")
  "Guards the variables above.")

(defun begin-references ()
  "Lets the numbers begin at a random one, below 2^31. A client may show a value of an image that has
  ended, and the number of that value must not be one of another value here."
  (with-lock (*references-lock*)
    (setf *first-reference* (* 1024 (1+ (random (ash 1 20) (make-random-state t))))
          *last-reference* *first-reference*)))

(defun inspectable-p (object)
  "Returns true if OBJECT has parts that a person can inspect."
  (not (or (null object) (eq object t) (numberp object) (characterp object))))

(defun refer (object &optional stop)
  "A number for OBJECT; 0 if it has nothing to inspect. STOP is the stop to whose stack OBJECT
  belongs, or NIL."
  (cond ((and (not (obsolete-p object)) (not (inspectable-p object))) 0)
        (t (with-lock (*references-lock*)
             (let ((number (incf *last-reference*)))
               (setf (gethash number *references*)
                     (make-reference number (if stop nil (sb-ext:make-weak-pointer object)) (if stop (list object) '()) stop))
               (remhash (- number +references-limit+) *references*)
               number)))))

(defun find-reference (number)
  (with-lock (*references-lock*) (gethash number *references*)))

(defun referent (reference)
  "Two values: the value of REFERENCE, and true if it still exists."
  (if (reference-stop reference)
      (values (first (reference-strong reference)) t)
      (sb-ext:weak-pointer-value (reference-weak reference))))

(defun note-shown-keys (number object parts start)
  "Notes in the reference NUMBER the keys or slots of PARTS, those of OBJECT from START, that are
  shown under it. The table or the class may change before a part is set."
  (let ((reference (find-reference number)))
    ;; TYPEP would update an obsolete instance, which runs code of the user's.
    (when (and reference (not (obsolete-p object)) (typep object '(or hash-table standard-object condition structure-object)))
      (with-lock (*references-lock*)
        (let ((keys (or (reference-keys reference) (setf (reference-keys reference) (make-hash-table)))))
          (loop for (label nil key) in parts
                for part from start
                do (setf (gethash part keys) (if key (sb-ext:make-weak-pointer (first key)) label))))))))

(defun shown-key (reference number)
  "A list of the key, or the label of the slot, that was shown as the part NUMBER under REFERENCE.
  NIL if none was shown, :GONE if the key is gone."
  (let ((shown (with-lock (*references-lock*)
                 (and (reference-keys reference) (gethash number (reference-keys reference))))))
    (if (sb-ext:weak-pointer-p shown)
        (multiple-value-bind (key there) (sb-ext:weak-pointer-value shown)
          (if there (list key) :gone))
        shown)))

(defun drop-references (stop)
  "Removes the references that belong to STOP."
  (with-lock (*references-lock*)
    (loop for number being the hash-keys of *references* using (hash-value reference)
          when (eq (reference-stop reference) stop)
            do (remhash number *references*))))

(declaim (ftype function instance-text))
(defun value-json (object &optional stop)
  "The JSON of OBJECT as it is first shown to people: one bounded line, the name of its class, and a
  reference by which it can be inspected. Runs no code of the user's."
  (object "text" (or (instance-text object (user-package)) (present object (user-package) :case :upcase))
          "type" (class-text object)
          "reference" (refer object stop)))

(defun gone-message (number)
  "The reason why the value with this NUMBER cannot be shown."
  (cond ((not (< *first-reference* number (1+ *last-reference*)))
         (format nil "This image has not shown a value ~D: it belongs to an image that has ended. Evaluate the code again, and inspect the new value"
                 number))
        ((<= number (- *last-reference* +references-limit+))
         (format nil "The value ~D is no longer kept, since ~D values were shown after it. Inspect it again from its origin"
                 number +references-limit+))
        (t
         (format nil "The value ~D is no longer kept: nothing refers to it any more, or its stop was left. Inspect it again from its origin"
                 number))))
