;;;; Digests of forms and of what the compiler knows about names. By them two processes can compare
;;;; forms and knowledge that only one of them has.

(in-package :consort)

(deftype digest () '(unsigned-byte 62))

(declaim (ftype function object-digest))

(declaim (inline mix-digest))
(defun mix-digest (digest more)
  "DIGEST with MORE, a number, mixed in."
  (ldb (byte 62 0) (* (logxor digest (ldb (byte 62 0) more)) 1099511628211)))

(defun string-digest (string)
  "A digest of STRING, by SXHASH, which depends on the whole string."
  (mix-digest (length string) (sxhash (coerce string 'simple-string))))

(defun symbol-digest (symbol)
  "A digest of the name and the package of SYMBOL; of the name alone if it has no package."
  (mix-digest (sxhash (symbol-name symbol))
              (let ((package (symbol-package symbol))) (if package (sxhash (package-name package)) 1))))

(define-global *digests-made* 0 "The number of digests that NEW-DIGEST has returned.")

(defun new-digest ()
  "A digest that nothing else has, in this process or in another one. Copies of one process have the
  same random state."
  (mix-digest (mix-digest (random (ash 1 62)) (sb-posix:getpid)) (incf *digests-made*)))

(defun cut-p (text)
  "Returns true if the printer may have left out a part of what TEXT shows, by *PRINT-LENGTH* or
  *PRINT-LEVEL*."
  (or (search "..." text)
      (loop for start = 0 then (1+ at)
            for at = (position #\# text :start start)
            while at
              thereis (let ((next (1+ at)))
                        (or (= next (length text)) (find (char text next) '(#\Space #\Newline #\) #\>)))))))

(defun printed-digest (object)
  "A digest of the printed text of OBJECT, which has no parts that could be compared. If the text
  contains an address or not all of OBJECT, or OBJECT cannot be printed, equal objects have different
  digests. Forms are then compiled again without need."
  (let ((text (handler-case (with-standard-io-syntax
                              (let ((*print-readably* nil) (*print-level* 4) (*print-length* 32) (*print-circle* nil) (*package* (find-package :keyword)))
                                (prin1-to-string object)))
                (error () nil))))
    (if (or (null text) (cut-p text)) (new-digest) (string-digest text))))

(defconstant +digest-limit+ 500000
  "The maximum number of conses and vector elements of a form that are digested. A limit is needed
  because a form may be circular.")

(defun object-digest (object)
  "A digest of OBJECT, a form as read or a value that the compiler keeps. EQUAL lists have the same
  digest, except where PRINTED-DIGEST applies or the list has more than +DIGEST-LIMIT+ elements: of
  two such lists each has a digest of its own. Uninterned symbols with the same name have the same
  digest."
  (let ((left +digest-limit+))
    (labels ((of (object)
               (typecase object
                 (symbol (symbol-digest object))
                 (cons (let ((digest 17))
                         (loop while (and (consp object) (plusp (decf left)))
                               do (setf digest (mix-digest digest (of (car object)))
                                        object (cdr object)))
                         (cond ((consp object) digest)
                               ((null object) (mix-digest digest 3))
                               (t (mix-digest (mix-digest digest 5) (of object))))))
                 (string (string-digest object))
                 (character (mix-digest 7 (char-code object)))
                 (integer (mix-digest 11 object))
                 (number (mix-digest 13 (sxhash (list (type-of object) object))))
                 (compiler-type (mix-digest 19 (of (compiler-type-specifier object))))
                 (simple-vector (let ((digest 23))
                                  (loop for element across object while (plusp (decf left)) do (setf digest (mix-digest digest (of element))))
                                  digest))
                 (package (mix-digest 29 (string-digest (or (package-name object) ""))))
                 (t (cond ((comma-p object) (mix-digest 31 (of (comma-expression object))))
                          ((assumed-type-p object) (mix-digest 37 (of (assumed-type-parts object))))
                          (t (printed-digest object)))))))
      (let ((digest (of object)))
        (if (plusp left) digest (new-digest))))))

(defun plain-object-p (object)
  "Returns true if OBJECT, a value that the compiler keeps, is of a type whose contents
  OBJECT-DIGEST compares. The elements of a list are not examined."
  (or (typep object '(or symbol number character string cons compiler-type))
      (assumed-type-p object)))
