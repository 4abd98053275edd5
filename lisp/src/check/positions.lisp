;;;; The exact positions of objects in the text: for an object of a form that the compiler names in
;;;; a condition, the span in which the reader read that same (EQ) object.
;;;;
;;;; The reader reports the start, the end and the object of everything that it reads, innermost
;;;; first, with any readtable. An index of the current top-level form is made from these reports
;;;; when a condition needs it. The index has the span of each list, and for each cons of a list the
;;;; span of its car. A span is a cons (START . END) of offsets in the text.

(in-package :consort)

(defstruct (form-index (:conc-name index-))
  "The places of one top-level form. OBJECTS maps conses, commas and vectors to their spans, by EQ;
  CARS maps a cons to the span of its car."
  (objects (make-hash-table :test 'eq))
  (cars (make-hash-table :test 'eq)))

(defstruct (node (:constructor make-node (start end object)))
  (start 0 :type fixnum) (end 0 :type fixnum) object)

(defun index-list (index list nodes)
  "Enters the span of the car of each cons of LIST in INDEX. NODES are the objects that were read
  directly within LIST, in order."
  (loop with missed fixnum = 0
        for cons = list then (cdr cons)
        while (and nodes (consp cons) (< missed 64)) ; ends on a circular list
        for place = (member (car cons) nodes :key #'node-object :test #'eql)
        do (cond (place
                  (unless (gethash cons (index-cars index))
                    (setf (gethash cons (index-cars index))
                          (cons (node-start (first place)) (node-end (first place)))))
                  (setf nodes (rest place) missed 0))
                 (t (incf missed)))))

(defun index-subforms (subforms)
  "A FORM-INDEX made from SUBFORMS, the reader's reports: a vector of start, end, object, start,
  ..., innermost objects first."
  (let ((index (make-form-index)) (stack '()))
    (loop for i from 0 below (length subforms) by 3
          for start of-type fixnum = (aref subforms i)
          for end of-type fixnum = (aref subforms (+ i 1))
          for object = (aref subforms (+ i 2))
          do (let ((children '()))
               (loop while (and stack (>= (node-start (first stack)) start))
                     do (push (pop stack) children))
               (let ((same (find object children :key #'node-object :test #'eq :from-end t)))
                 (cond (same (push same stack)) ; #+feature X, #1=X, #.X: keeps X's span
                       (t
                        (when (and (or (consp object) (vectorp object) (comma-p object))
                                   (not (gethash object (index-objects index))))
                          (setf (gethash object (index-objects index)) (cons start end)))
                        (when (consp object) (index-list index object children))
                        (let ((inner (and (comma-p object)
                                          (find (comma-expression object) children :key #'node-object :test #'eql))))
                          (push (if inner
                                    (make-node (node-start inner) (node-end inner) object)
                                    (make-node start end object))
                                stack)))))))
    index))

(defun current-index (check)
  "The index of the top-level form that is being compiled."
  (or (check-index check)
      (setf (check-index check) (index-subforms (check-subforms check)))))

(defun object-span (check object)
  "Returns the place where the cons, comma or vector OBJECT was read, or NIL."
  (values (gethash object (index-objects (current-index check)))))

(defun car-span (check cons)
  "Returns the place where the car of CONS was read, or NIL."
  (values (gethash cons (index-cars (current-index check)))))

(defun form-span (check)
  "The span of the top-level form."
  (cons (check-form-start check) (check-form-end check)))

(defun uncomma (object)
  "OBJECT; if OBJECT is a comma object of a backquote, the form after the comma or commas."
  (loop while (comma-p object) do (setf object (comma-expression object)))
  object)

;;; Walking the forms as they were read

(defun map-read (function form &key (skip (constantly nil)))
  "Calls FUNCTION with every cons of the lists in FORM, outer lists before inner ones, left to
  right. Leaves out the lists for which SKIP returns true. Visits each cons once, so circular
  structure is no problem."
  (let ((seen (make-hash-table :test 'eq)))
    (labels ((walk (object)
               (setf object (uncomma object))
               (when (and (consp object) (not (gethash object seen)) (not (funcall skip object)))
                 (loop for cons = object then (cdr cons)
                       while (and (consp cons) (not (gethash cons seen)))
                       do (setf (gethash cons seen) t)
                          (funcall function cons)
                          (let ((car (uncomma (car cons))))
                            (if (simple-vector-p car) (map nil #'walk car) (walk car)))
                       finally (when (comma-p cons) (walk cons))))))
      (walk form))))

(defun quotation-p (list)
  "Returns true if LIST is (quote X)."
  (and (eq (car list) 'quote) (consp (cdr list)) (null (cddr list))))

(defun declaration-p (list)
  "Returns true if LIST is a DECLARE."
  (eq (car list) 'declare))

(defun places (check form object &key (skip #'quotation-p) (test #'eql) (from form))
  "The spans in which an element of a list in FORM, as it was read, is OBJECT by TEST; in order. The
  search leaves out lists for which SKIP returns true, and begins at FROM, FORM or a tail of it."
  (let ((places '()))
    (flet ((look (cons)
             (when (funcall test (uncomma (car cons)) object)
               (let ((span (or (car-span check cons)
                               (and (consp (uncomma (car cons))) (object-span check (uncomma (car cons)))))))
                 (when span (push span places))))))
      (map-read #'look from :skip skip))
    (nreverse places)))

(defun unused-place (check places key)
  "The first of PLACES that no earlier call has returned for KEY, or the last of PLACES if all have
  been returned; NIL if PLACES is empty. Each finding with KEY so gets a place of its own."
  (or (loop for place in places
            for used = (list key place)
            unless (gethash used (check-used check))
              do (setf (gethash used (check-used check)) t)
                 (return place))
      (first (last places))))

;;; From the compiler's context to the forms as they were read

(defun path-trail (path)
  "The forms along PATH, a source path of the compiler, as they were read: the top-level form first,
  the innermost form last. PATH has the innermost step first. A form that is an atom is represented
  by a vector of one element, the cons whose car is the atom."
  (let* ((path (reverse path))
         (form (and path current-source-info (find-source-root (first path) current-source-info)))
         (trail (list (uncomma form))))
    (dolist (step (rest path))
      (setf form (uncomma form))
      (let ((cons (and (consp form) (typep step 'unsigned-byte)
                       (loop for tail = form then (cdr tail)
                             repeat step
                             while (consp tail)
                             finally (return (if (comma-p tail) (uncomma tail) tail))))))
        (unless (consp cons) (return))
        (setf form (uncomma (car cons)))
        (push (if (consp form) form (vector cons)) trail)))
    (nreverse trail)))

(defun context-trail ()
  "The PATH-TRAIL to the form that the compiler processes now, followed by the form that the
  compiler names as the original, if that is not on the path; NIL if the compiler has no error
  context."
  (let ((context (find-error-context nil)))
    (when context
      (let ((trail (path-trail (error-context-path context)))
            (original (error-context-form context)))
        (if (and (consp original) (not (member original trail :test #'eq)))
            (append trail (list original))
            trail)))))

(defun locate-trail (check trail)
  "Returns the innermost list of TRAIL that the reader read, and its span. If there is none, returns
  the top-level form and its span. The third value is the cons whose car is the atom at the end of
  TRAIL, or NIL if the end is no atom that was read."
  (let ((cons nil))
    (loop for form in (reverse trail)
          do (cond ((simple-vector-p form)
                    (when (car-span check (svref form 0)) (setf cons (svref form 0))))
                   ((and (consp form) (object-span check form))
                    (return-from locate-trail (values form (object-span check form) cons)))))
    (values (check-form check) (form-span check) nil)))

(defun locate-context (check)
  "Returns the three values of LOCATE-TRAIL for the form that the compiler processes now."
  (locate-trail check (context-trail)))
