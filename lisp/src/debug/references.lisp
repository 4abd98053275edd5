;;;; References: numbers by which a host names values of the image. A reference keeps its value
;;;; alive only if the value was shown for a stop, and only while the stop lasts.

(in-package :consort)

(defconstant +references-limit+ 5000 "The maximum number of references; the oldest are forgotten.")

(defstruct (reference (:constructor make-reference (number weak strong stop)))
  "WEAK points to the value. If the value belongs to STOP, whose stack may contain it, STRONG is a
  list of it instead. Such a reference is removed when the stop is left. KEYS is NIL, or a table of
  weak pointers to the keys of a hash table that were shown, by the number of the entry."
  (number 0 :type fixnum) weak (strong '() :type list) stop (keys nil))

(define-global *references* (make-hash-table) "The REFERENCE of each number.")
(define-global *last-reference* 0 "The number that was given last.")
(define-global *references-lock* (sb-thread:make-mutex :name "consort references")
  "Guards the two variables above.")

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

(defun note-shown-keys (number parts start)
  "Notes in the reference NUMBER the keys of PARTS, entries of a hash table from START that are shown
  under it. The table may change before an entry is set."
  (let ((reference (find-reference number)))
    (when reference
      (with-lock (*references-lock*)
        (loop for (nil nil key) in parts
              for entry from start
              when key
                do (setf (gethash entry (or (reference-keys reference) (setf (reference-keys reference) (make-hash-table))))
                         (sb-ext:make-weak-pointer (first key))))))))

(defun shown-key (reference number)
  "A list of the key of the entry NUMBER that was shown under REFERENCE, NIL if none was shown, or
  :GONE."
  (let ((pointer (with-lock (*references-lock*)
                   (and (reference-keys reference) (gethash number (reference-keys reference))))))
    (when pointer
      (multiple-value-bind (key there) (sb-ext:weak-pointer-value pointer)
        (if there (list key) :gone)))))

(defun drop-references (stop)
  "Removes the references that belong to STOP."
  (with-lock (*references-lock*)
    (loop for number being the hash-keys of *references* using (hash-value reference)
          when (eq (reference-stop reference) stop)
            do (remhash number *references*))))

(defun value-json (object &optional stop)
  "The JSON of OBJECT as it is first shown to people: one bounded line, the name of its class, and a
  reference by which it can be inspected. Runs no code of the user's."
  (object "text" (present object (user-package) :case :upcase)
          "type" (class-text object)
          "reference" (refer object stop)))

(defun gone-message (number)
  (format nil "The value ~D is no longer kept: nothing refers to it, its stop was left, or ~D values were shown since. Inspect it again from its origin"
          number +references-limit+))
