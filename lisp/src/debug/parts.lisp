;;;; The parts of any value, a page at a time. Runs no code of the user: slots are read as they are
;;;; stored.

(in-package :consort)

(defconstant +list-count-limit+ 1000000 "The maximum number of conses of a list that are counted.")

(defun list-facts (list)
  "Returns the number of conses of LIST, each counted once, and the kind of its end: :PROPER,
  :DOTTED, :CIRCULAR, or :LONG if there are too many to count."
  (loop with slow = list
        for count from 0
        for tail = list then (cdr tail)
        do (cond ((null tail) (return (values count :proper)))
                 ((atom tail) (return (values count :dotted)))
                 ((= count +list-count-limit+) (return (values count :long))))
           (when (and (plusp count) (evenp count))
             (setf slow (cdr slow))
             (when (eq slow tail) (return (values (conses-of-circle list tail) :circular))))))

(defun conses-of-circle (list inside)
  "Returns the number of conses of LIST, a circular list. INSIDE is a cons in its circle."
  (let ((around (loop for tail = (cdr inside) then (cdr tail) for count from 1
                      when (eq tail inside) return count)))
    (+ around (loop for before = list then (cdr before)
                    for ahead = (nthcdr around list) then (cdr ahead)
                    for count from 0
                    when (eq before ahead) return count))))

(defun stored-slot (object slot)
  "The value of SLOT of OBJECT as it is stored, and true if it is bound. The second value is
  :UNKNOWN if neither the instance nor the class stores the slot."
  (let* ((name (sb-mop:slot-definition-name slot))
         (location (and (typep object 'standard-object) (sb-mop:slot-definition-location slot)))
         (value (cond ((typep object '(or condition structure-object))
                       (if (slot-boundp object name) (slot-value object name) (return-from stored-slot (values nil nil))))
                      ((consp location) (cdr location)) ; class allocation
                      ((not (integerp location)) (return-from stored-slot (values nil :unknown)))
                      ((typep object 'sb-mop:funcallable-standard-object) (sb-mop:funcallable-standard-instance-access object location))
                      (t (sb-mop:standard-instance-access object location)))))
    (if (unbound-marker-p value) (values nil nil) (values value t))))

(defun slots-of (object)
  (let ((class (class-of object)))
    (and (sb-mop:class-finalized-p class) (sb-mop:class-slots class))))

(defun package-own-symbols (package)
  (let ((symbols '()))
    (do-symbols (symbol package) (when (eq (symbol-package symbol) package) (push symbol symbols)))
    (sort symbols #'string<)))

;;; A part is (LABEL VALUE &optional KEY): LABEL a string; VALUE a list of the value, or a string
;;; that says why there is none; KEY likewise.

(defun slot-part (object slot)
  (multiple-value-bind (value bound) (stored-slot object slot)
    (list (symbol-name (sb-mop:slot-definition-name slot))
          (case bound ((t) (list value)) ((nil) "unbound") (t "not stored in the instance")))))

(defun symbol-parts (symbol)
  (list (list "name" (list (symbol-name symbol)))
        (list "package" (list (symbol-package symbol)))
        (list "value" (if (boundp symbol) (list (symbol-value symbol)) "unbound"))
        (list "function" (cond ((special-operator-p symbol) "a special operator")
                               ((macro-function symbol) (list (macro-function symbol)))
                               ((fboundp symbol) (list (fdefinition symbol)))
                               (t "unbound")))
        (list "plist" (list (symbol-plist symbol)))))

(defun pathname-parts (pathname)
  (list (list "host" (list (pathname-host pathname)))
        (list "device" (list (pathname-device pathname)))
        (list "directory" (list (pathname-directory pathname)))
        (list "name" (list (pathname-name pathname)))
        (list "type" (list (pathname-type pathname)))
        (list "version" (list (pathname-version pathname)))))

(defun function-parts (function closed-over)
  "The parts of FUNCTION. The values that it CLOSED-OVER come first."
  (append (loop for value in closed-over for index from 0 collect (list (format nil "~D" index) (list value)))
          (list (list "name" (list (nth-value 2 (function-lambda-expression function))))
                (list "lambda list" (handler-case (multiple-value-bind (list unknown) (sb-introspect:function-lambda-list function)
                                                    (if unknown "unknown" (list list)))
                                      (error () "unknown"))))))

(defun array-index-label (array index)
  "Returns the subscripts of the element of ARRAY at the row-major INDEX."
  (if (= 1 (array-rank array))
      (format nil "~D" index)
      (let ((subscripts '()))
        (dolist (dimension (reverse (array-dimensions array)))
          (multiple-value-bind (rest subscript) (floor index dimension)
            (push subscript subscripts)
            (setf index rest)))
        (format nil "~{~D~^ ~}" subscripts))))

(defun page-of-list (list start end)
  (multiple-value-bind (count ending) (list-facts list)
    (let ((shown (loop for tail = (nthcdr (min start count) list) then (cdr tail)
                       for index from start below (min end count)
                       collect (list (format nil "~D" index) (list (car tail))))))
      (if (and (eq ending :dotted) (<= start count) (< count end))
          (append shown (list (list "tail" (list (cdr (last list))))))
          shown))))

(defun page-of-table (table start end)
  (let ((index 0) (found '()))
    (block page
      (maphash (lambda (key value)
                 (when (>= index end) (return-from page))
                 (when (>= index start) (push (list (format nil "~D" index) (list value) (list key)) found))
                 (incf index))
               table))
    (nreverse found)))

(defun page (parts start end)
  (loop for part in (nthcdr start parts) repeat (- end start) collect part))

(defun parts-of (object start end)
  "Returns the kind of OBJECT, the number of its parts, those from START below END, and a note about
  the object or NIL."
  (when (obsolete-p object)
    (return-from parts-of (values "obsolete instance" 0 '() "Its class was redefined, and it is not updated before its program uses it.")))
  (multiple-value-bind (kind parts) (parts-of-kind object)
    (when kind
      (return-from parts-of (values kind (length parts) (page parts start end) (present (class-name (class-of object)) (user-package))))))
  (typecase object
    (null (values "list" 0 '() nil))
    (cons (multiple-value-bind (count ending) (list-facts object)
            (values "list" (if (eq ending :dotted) (1+ count) count) (page-of-list object start end)
                    (ecase ending
                      ((:proper :dotted) nil)
                      (:circular "It is circular.")
                      (:long (format nil "It has more than ~D elements." count))))))
    (string (multiple-value-bind (total pieces) (page-of-string object start end)
              (values "string" total pieces (format nil "~D characters" (length object)))))
    (array (let ((count (array-total-size object)))
             (values (if (vectorp object) "vector" "array") count
                     (loop for index from start below (min end count)
                           collect (list (array-index-label object index) (list (row-major-aref object index))))
                     (format nil "~{~D~^x~} of ~A~@[, fill pointer ~D~]" (array-dimensions object) (present (array-element-type object) (user-package))
                             (and (array-has-fill-pointer-p object) (fill-pointer object))))))
    (hash-table (values "hash table" (hash-table-count object) (page-of-table object start end)
                        (format nil "~(~A~)" (present (hash-table-test object) (user-package)))))
    (symbol (values "symbol" 5 (page (symbol-parts object) start end) nil))
    (package (let* ((symbols (package-own-symbols object))
                    (parts (append (facts-of-package object) (mapcar (lambda (symbol) (list (symbol-name symbol) (list symbol))) symbols)))
                    (exported (loop for symbol in symbols count (eq :external (nth-value 1 (find-symbol (symbol-name symbol) object))))))
               (values "package" (length parts) (page parts start end)
                       (format nil "~D symbol~:P of its own, ~D of them exported" (length symbols) exported))))
    ((or number character) (values "value" 0 '() nil))
    (sb-ext:weak-pointer (multiple-value-bind (value there) (sb-ext:weak-pointer-value object)
                           (values "weak pointer" 1 (page (list (list "value" (if there (list value) "gone"))) start end) nil)))
    (sb-mop:funcallable-standard-object (instance-parts object (if (typep object 'generic-function) "generic function" "funcallable instance") start end))
    (function (let* ((values (closure-values object)) (parts (function-parts object values)))
                (values (if values "closure" "function") (length parts) (page parts start end) nil)))
    (pathname (values "pathname" 6 (page (pathname-parts object) start end) (present object (user-package))))
    (condition (instance-parts object "condition" start end (condition-facts object)))
    (structure-object (instance-parts object "structure" start end))
    (t (instance-parts object "instance" start end))))

(defun instance-parts (object kind start end &optional (facts '()))
  "PARTS-OF an instance: FACTS, which are parts, and its slots."
  (let ((parts (append facts (slots-of object))))
    (values kind (length parts)
            (mapcar (lambda (part) (if (consp part) part (slot-part object part))) (page parts start end))
            (present (class-name (class-of object)) (user-package)))))

(defun part-json (part stop)
  (destructuring-bind (label value &optional key) part
    (flet ((shown (value) (if (stringp value) (object "text" value "type" :null "reference" 0) (value-json (first value) stop))))
      (list* :object "label" label
                     "value" (shown value)
                     "missing" (bool (stringp value))
                     (and key (list "key" (shown key)))))))
