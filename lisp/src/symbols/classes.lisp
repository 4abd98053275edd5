;;;; The description of a class: its slots, initialization arguments, super- and subclasses, and the
;;;; methods that specialize on it. No class is finalized here.

(in-package :consort)

(defconstant +class-parts+ 100 "The maximum number of entries of each list.")

(defun first-parts (list)
  "The first entries of LIST, +CLASS-PARTS+ at most."
  (subseq list 0 (min +class-parts+ (length list))))

(defun slot-object (slot class package)
  "The JSON of the direct SLOT of CLASS, with names as written where PACKAGE is current."
  (flet ((names (list) (mapcar (lambda (name) (present name package)) list)))
    (object "name" (present (sb-mop:slot-definition-name slot) package)
            "from" (present (class-name class) package)
            "initargs" (names (sb-mop:slot-definition-initargs slot))
            "accessors" (names (remove-duplicates (append (ignore-errors (sb-mop:slot-definition-readers slot))
                                                          (mapcar (lambda (writer) (if (consp writer) (second writer) writer))
                                                                  (ignore-errors (sb-mop:slot-definition-writers slot))))))
            "type" (let ((type (sb-mop:slot-definition-type slot))) (if (eq type t) :null (present type package)))
            "initform" (if (ignore-errors (sb-mop:slot-definition-initfunction slot))
                           (present (sb-mop:slot-definition-initform slot) package)
                           :null))))

(defun class-details (symbol package)
  "The JSON of the facts about the class SYMBOL, with names as written where PACKAGE is current; NIL
  if there is no such class."
  (let ((class (find-class symbol nil)))
    (when class
      (flet ((names (classes) (first-parts (mapcar (lambda (one) (present (class-name one) package)) classes))))
        (object "metaclass" (present (class-name (class-of class)) package)
                "supers" (names (ignore-errors (sb-mop:class-direct-superclasses class)))
                "subclasses" (names (ignore-errors (sb-mop:class-direct-subclasses class)))
                "slots" (let ((seen '()))
                          (first-parts
                           (loop for one in (ignore-errors (classes-above class))
                                 append (loop for slot in (ignore-errors (sb-mop:class-direct-slots one))
                                              for name = (sb-mop:slot-definition-name slot)
                                              unless (member name seen :test #'eq)
                                                collect (progn (push name seen) (slot-object slot one package))))))
                "initargs" (initargs-of symbol package)
                "methods" (first-parts
                           (sort (mapcar (lambda (method) (method-name-text method package))
                                         (remove-if (lambda (method) (typep method 'sb-mop:standard-accessor-method))
                                                    (ignore-errors (sb-mop:specializer-direct-methods class))))
                                 #'string<)))))))
