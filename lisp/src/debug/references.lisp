;;;; References: numbers by which a host names values of the image. A reference keeps its value
;;;; alive only if the value was shown for a stop, and only while the stop lasts.

(in-package :consort)

(defconstant +references-limit+ 5000 "The maximum number of references; the oldest are forgotten.")

(defstruct (reference (:constructor make-reference (number weak strong stop)))
  "WEAK points to the value. If the value belongs to STOP, whose stack may contain it, STRONG is a
  list of it instead. Such a reference is removed when the stop is left."
  (number 0 :type fixnum) weak (strong '() :type list) stop)

(define-global *references* (make-hash-table) "The REFERENCE of each number.")
(define-global *last-reference* 0 "The number that was given last.")
(define-global *references-lock* (sb-thread:make-mutex :name "consort references") "Guards both.")

(defun inspectable-p (object)
  "Returns true if there is anything to see in OBJECT."
  (not (or (null object) (eq object t) (numberp object) (characterp object))))

(defun refer (object &optional stop)
  "A number for OBJECT, of STOP's stack if there is one; 0 when there is nothing to see in it."
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
  "The value of REFERENCE, and whether it is still there."
  (if (reference-stop reference)
      (values (first (reference-strong reference)) t)
      (sb-ext:weak-pointer-value (reference-weak reference))))

(defun drop-references (stop)
  "Removes the references that belong to STOP."
  (with-lock (*references-lock*)
    (loop for number being the hash-keys of *references* using (hash-value reference)
          when (eq (reference-stop reference) stop)
            do (remhash number *references*))))

(defun value-json (object &optional stop)
  "The JSON of OBJECT as people are first shown it: one bounded line, the name of its class, and a
  reference to look into it. Runs no code of the user's."
  (object "text" (present object (user-package) :case :upcase)
          "type" (class-text object)
          "reference" (refer object stop)))

(defun gone-message (number)
  (format nil "The value ~D is no longer kept: nothing refers to it, its stop was left, or ~D values were shown since. Inspect it again from its origin"
          number +references-limit+))
