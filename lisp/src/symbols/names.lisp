;;;; Names as people write them, and the symbols that they mean. Nothing here interns a symbol.

(in-package :consort)

(defun parse-name (text)
  "The parts of TEXT, which is written or begun in a source. Three values: the package's name (NIL
  without a prefix, \"KEYWORD\" for a keyword), the symbol's name, and true if the prefix ends with
  two colons. The names are upper-case except for escaped characters."
  (let ((package nil) (internal nil) (in-bars nil)
        (part (make-string-output-stream))
        (position 0))
    (loop while (< position (length text))
          do (let ((char (char text position)))
               (incf position)
               (cond ((char= char #\\)
                      (when (< position (length text))
                        (write-char (char text position) part)
                        (incf position)))
                     ((char= char #\|) (setf in-bars (not in-bars)))
                     (in-bars (write-char char part))
                     ((and (char= char #\:) (null package))
                      (let ((name (get-output-stream-string part)))
                        (setf package (if (string= name "") "KEYWORD" name)))
                      (when (and (< position (length text)) (char= (char text position) #\:))
                        (setf internal t)
                        (incf position)))
                     (t (write-char (char-upcase char) part)))))
    (values package (get-output-stream-string part) internal)))

(defun package-named (name &optional (from (user-package)))
  "The package that NAME means where FROM is current, also by its local nicknames. NIL if there is
  none."
  (and name
       (let ((*package* from))
         (find-package name))))

(defun package-in-force (name)
  "The package of that NAME, a string as the reader has it; CL-USER if NAME is NIL or there is no
  such package."
  (or (and name (package-called name)) (user-package)))

(defun find-written (text package)
  "The symbol that TEXT names where PACKAGE is current, and true if there is one."
  (multiple-value-bind (prefix name) (parse-name text)
    (let ((home (if prefix (package-named prefix package) package)))
      (multiple-value-bind (symbol status) (if home (find-symbol name home) (values nil nil))
        (values symbol (and status t))))))

(defun printed-name (symbol package &optional (case :downcase))
  "Returns the text of SYMBOL as written where PACKAGE is current."
  (with-standard-io-syntax
    (let ((*package* package) (*print-case* case) (*print-readably* nil))
      (prin1-to-string symbol))))

;;; Values and lambda lists, shown without calling a PRINT-OBJECT method of the user's

(defconstant +shown-length+ 12 "The maximum number of elements that are shown of a list or vector.")
(defconstant +shown-depth+ 4 "The maximum depth of a value that is shown.")
(defconstant +shown-string+ 200 "The maximum number of characters that are shown of a string.")

(defstruct (placeholder (:constructor make-placeholder (text)))
  "Prints as TEXT, in place of an object whose printing may run user code."
  (text "" :type string :read-only t))

(defmethod print-object ((object placeholder) stream)
  (write-string (placeholder-text object) stream))

(defun presentable (object &optional (depth +shown-depth+) (length +shown-length+))
  "A copy of OBJECT that prints briefly and whose printing runs no code of the user's."
  (when (obsolete-p object)
    (return-from presentable (make-placeholder "#<instance of a redefined class>")))
  (flet ((inner (part) (presentable part (1- depth) length)))
    (typecase object
      (string (if (<= (length object) +shown-string+)
                  object
                  (concatenate 'string (subseq object 0 +shown-string+) "...")))
      ((or symbol number character package placeholder) object)
      (pathname (if (equal (class-name (class-of object)) 'pathname) object (make-placeholder "#<PATHNAME>")))
      (cons (if (zerop depth)
                (make-placeholder "#")
                (let ((parts '()))
                  (loop for count from 0
                        for rest = object then (cdr rest)
                        while (consp rest)
                        do (when (= count length)
                             (push (make-placeholder "...") parts)
                             (setf rest nil)
                             (return (nreverse parts)))
                           (push (inner (car rest)) parts)
                        finally (return (if rest (nreconc parts (inner rest)) (nreverse parts)))))))
      (simple-vector (if (zerop depth)
                         (make-placeholder "#")
                         (coerce (presentable (coerce (subseq object 0 (min (length object) (1+ length))) 'list) depth length) 'simple-vector)))
      (hash-table (make-placeholder (format nil "#<HASH-TABLE with ~D entr~:@P>" (hash-table-count object))))
      (array (make-placeholder (format nil "#<ARRAY ~{~D~^x~}>" (array-dimensions object))))
      (function (let ((name (nth-value 2 (function-lambda-expression object))))
                  (make-placeholder (if (and name (typep object '(not generic-function)))
                                     (format nil "#<FUNCTION ~A>" (present name *package*))
                                     "#<FUNCTION>"))))
      (t (if (backquoted-p object)
             (make-placeholder "`...")
             (make-placeholder (format nil "#<~A~@[ ~A~]>" (class-text object) (name-of-metaobject object))))))))

(declaim (ftype function class-of-system-p stored))
(defun name-of-metaobject (object)
  "The name of OBJECT, as text, if it is a class, slot definition, thread or method of a class of
  SBCL's own; otherwise NIL."
  (flet ((name (value) (and (consp value) (first value) (present (first value) *package* :case *print-case*))))
    (and (typep object '(or class method sb-mop:slot-definition sb-thread:thread))
         (class-of-system-p object)
         (typecase object
           (sb-thread:thread (sb-thread:thread-name object))
           (method (let ((generic (stored object "%GENERIC-FUNCTION")) (specializers (stored object "SPECIALIZERS")))
                     (and (consp generic) (first generic) (class-of-system-p (first generic))
                          (format nil "~A (~{~A~^ ~})" (name (stored (first generic) "NAME"))
                                  (and (consp specializers)
                                       (mapcar (lambda (each) (if (typep each 'class) (or (name (stored each "NAME")) "?") "EQL")) (first specializers)))))))
           (t (name (stored object "NAME")))))))

(defun backquoted-p (object)
  "Returns true if OBJECT is a part of a backquoted form."
  (and (internal-p 'comma-p) (comma-p object)))

(defun present (object package &key (case :downcase) (length +shown-length+) (depth +shown-depth+))
  "The text of OBJECT on one line, as seen from PACKAGE. Never runs user code."
  (handler-case
      (with-standard-io-syntax
        (let ((*package* package) (*print-case* case) (*print-readably* nil) (*print-circle* nil)
              (*print-pretty* t) (*print-right-margin* 10000) (*print-lines* 1))
          (text-of (call-printing (lambda (stream) (prin1 (presentable object depth length) stream)) 2000))))
    ((and serious-condition (not storage-condition)) () "#<cannot be printed>")))
