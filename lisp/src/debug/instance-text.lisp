;;;; The text of an instance with its first slots, as a debugger shows a variable's value.

(in-package :consort)

(defconstant +shown-slots+ 4 "The maximum number of slots in the text of an instance.")
(defconstant +shown-slot-text+ 40 "The maximum number of characters of a slot's value in the text of an instance.")

(defun classes-are-free-p ()
  "Returns true if no other thread holds the lock that asking a class for its slots may take."
  (let ((owner (and (internal-p 'world-lock) (sb-thread:mutex-owner world-lock))))
    (or (null owner) (eq owner sb-thread:*current-thread*))))

(defun slots-to-show (object)
  "The slots of OBJECT if it is an instance of a user's class, and if neither its class nor reading a
  slot can run code of the user's."
  (and (not (obsolete-p object)) ; TYPEP would update such an instance
       (classes-are-free-p)
       (typep object '(or structure-object standard-object))
       (member (class-name (class-of (class-of object))) '(structure-class standard-class))
       (not (class-of-system-p object))
       (slots-of object)))

(defun slot-text (object slot package)
  "The name and the value of SLOT of OBJECT, as in `NAME \"pen\"`."
  (multiple-value-bind (value bound) (stored-slot object slot)
    (let ((text (case bound
                  ((t) (present value package :case :upcase :length 3 :depth 1))
                  ((nil) "unbound")
                  (t "?"))))
      (format nil "~A ~A" (clipped-text (symbol-name (sb-mop:slot-definition-name slot))) (clipped-text text)))))

(defun clipped-text (text)
  "TEXT on one line, with at most +SHOWN-SLOT-TEXT+ characters of it."
  (let ((line (substitute-if #\Space (lambda (char) (member char '(#\Newline #\Return))) text)))
    (if (> (length line) +shown-slot-text+)
        (concatenate 'string (subseq line 0 +shown-slot-text+) "...")
        line)))

(defun instance-text (object package)
  "The text of OBJECT with its first slots, as in `#<ITEM NAME \"pen\" PRICE 3>`; NIL if OBJECT is not
  shown so. Runs no code of the user's."
  (handler-case
      (let ((slots (slots-to-show object)))
        (when slots
          (format nil "#<~A ~{~A~^ ~}~:[~; ...~]>" (class-text object)
                  (loop for slot in slots repeat +shown-slots+ collect (slot-text object slot package))
                  (nthcdr +shown-slots+ slots))))
    ((and serious-condition (not storage-condition)) () nil)))
