;;;; The parts of classes, generic functions, methods, slots, threads, streams, packages and
;;;; conditions: their documented properties, in place of SBCL's internal slots. Runs no code of the
;;;; user.

(in-package :consort)

(deftype opaque ()
  "Values that have slots, but are compared, and shown in tables, as a whole."
  '(or package class method sb-mop:slot-definition sb-thread:thread sb-mop:funcallable-standard-object))

(defun class-of-system-p (object)
  "Returns true if OBJECT's class is one of SBCL's own, so that the meaning of its slots is known."
  (let ((name (class-name (class-of object))))
    (and name (symbolp name) (symbol-package name) (lisp-package-p (symbol-package name)))))

(defun stored (object &rest names)
  "A part's value: the value in OBJECT's first slot whose name is one of NAMES."
  (loop for slot in (slots-of object)
        when (member (symbol-name (sb-mop:slot-definition-name slot)) names :test #'string=)
          do (multiple-value-bind (value bound) (stored-slot object slot)
               (return (if (eq bound t) (list value) "unbound")))
        finally (return "unknown")))

(defun class-parts (class)
  (let* ((finalized (equal (stored class "FINALIZED-P") '(t)))
         (methods (stored class "DIRECT-METHODS"))
         (direct (and (consp methods) (consp (first methods)) (car (first methods)))))
    (flet ((when-finalized (name) (if (or finalized (not (typep class 'sb-mop:standard-class))) (stored class name) "not finalized yet")))
      (list (list "name" (stored class "NAME"))
            (list "direct superclasses" (stored class "DIRECT-SUPERCLASSES"))
            (list "direct subclasses" (stored class "DIRECT-SUBCLASSES"))
            (list "direct slots" (stored class "DIRECT-SLOTS"))
            (list "slots" (when-finalized "SLOTS"))
            (list "precedence list" (when-finalized "%CLASS-PRECEDENCE-LIST"))
            ;; A vector that is padded with zeros, or a list.
            (list "methods" (list (remove 0 (coerce direct 'list))))
            (list "documentation" (stored class "%DOCUMENTATION"))))))

(defun generic-function-parts (function)
  (list (list "name" (stored function "NAME"))
        (list "lambda list" (handler-case (list (sb-introspect:function-lambda-list function)) (error () "unknown")))
        (list "methods" (stored function "METHODS"))
        (list "method combination" (stored function "%METHOD-COMBINATION"))
        (list "method class" (stored function "METHOD-CLASS"))
        (list "declarations" (stored function "DECLARATIONS"))
        (list "documentation" (stored function "%DOCUMENTATION"))))

(defun method-parts-shown (method)
  (list (list "generic function" (stored method "%GENERIC-FUNCTION"))
        (list "qualifiers" (stored method "QUALIFIERS"))
        (list "specializers" (stored method "SPECIALIZERS"))
        (list "lambda list" (stored method "LAMBDA-LIST"))
        (list "function" (stored method "%FUNCTION"))
        (list "documentation" (stored method "%DOCUMENTATION"))))

(defun slot-definition-parts (slot)
  (list (list "name" (stored slot "NAME"))
        (list "type" (stored slot "%TYPE"))
        (list "initform" (if (equal (stored slot "INITFUNCTION") '(nil)) "none" (stored slot "INITFORM")))
        (list "initargs" (stored slot "INITARGS"))
        (list "readers" (stored slot "READERS"))
        (list "writers" (stored slot "WRITERS"))
        (list "allocation" (stored slot "ALLOCATION"))
        (list "documentation" (stored slot "%DOCUMENTATION"))))

(defun thread-parts (thread)
  (let* ((alive (sb-thread:thread-alive-p thread))
         (wanted (and (internal-p 'thread-waiting-for) (thread-waiting-for thread)))
         (stop (find thread *stops* :key #'stopped-thread :test #'eq)))
    (list (list "name" (list (sb-thread:thread-name thread)))
          (list "state" (list (cond ((not alive) :ended) (stop :stopped) (wanted :waiting) (t :running))))
          (list "waits for" (cond ((not alive) "it has ended") (wanted (list wanted)) (t "no lock"))))))

(defun known (function)
  "The value of FUNCTION as the value of a part, or a reason if it signals an error, as some
  functions do for closed streams."
  (handler-case (list (funcall (the function function)))
    (error () "unknown")))

(defun position-of-stream (stream)
  (let ((position (ignore-errors (file-position stream)))) ; not of a closed one, nor of a pipe
    (if position (list position) "none")))

(defun fd-stream-parts (stream)
  (list (list "direction" (known (lambda () (if (input-stream-p stream) (if (output-stream-p stream) :io :input) :output))))
        (list "open" (known (lambda () (open-stream-p stream))))
        (list "element type" (known (lambda () (stream-element-type stream))))
        (list "external format" (known (lambda () (stream-external-format stream))))
        (list "position" (position-of-stream stream))
        (list "file" (handler-case (list (pathname stream)) (error () "none")))))

(defun stream-parts (stream)
  "The parts of STREAM, as far as they are known without calling another stream's functions; NIL for
  a class of the user's."
  (typecase stream
    (synonym-stream (list (list "symbol" (list (synonym-stream-symbol stream)))))
    (echo-stream (list (list "input stream" (list (echo-stream-input-stream stream)))
                       (list "output stream" (list (echo-stream-output-stream stream)))))
    (two-way-stream (list (list "input stream" (list (two-way-stream-input-stream stream)))
                          (list "output stream" (list (two-way-stream-output-stream stream)))))
    (broadcast-stream (list (list "streams" (list (broadcast-stream-streams stream)))))
    (concatenated-stream (list (list "streams" (list (concatenated-stream-streams stream)))))
    (descriptor-stream (fd-stream-parts stream))
    (string-stream (list (list "direction" (known (lambda () (if (input-stream-p stream) :input :output))))
                         (list "open" (known (lambda () (open-stream-p stream))))
                         (list "element type" (known (lambda () (stream-element-type stream))))
                         (list "position" (position-of-stream stream))))))

(defun facts-of-package (package)
  "The parts of PACKAGE that come before its symbols."
  (list (list "nicknames" (list (package-nicknames package)))
        (list "uses" (list (package-use-list package)))
        (list "used by" (list (package-used-by-list package)))
        (list "local nicknames" (list (sb-ext:package-local-nicknames package)))
        (list "shadowing symbols" (list (package-shadowing-symbols package)))
        (list "exports" (list (sorted-exports package)))
        (list "locked" (list (and (sb-ext:package-locked-p package) t)))))

(defun calls-functions-p (control)
  "Returns true if the format string CONTROL may have a directive that calls a function, ~/name/."
  (loop for at = (position #\~ control) then (position #\~ control :start (1+ at))
        while at
        do (loop (incf at)
                 (when (>= at (length control)) (return-from calls-functions-p nil))
                 (let ((char (char control at)))
                   (cond ((char= char #\') (incf at))
                         ((char= char #\/) (return-from calls-functions-p t))
                         ((not (find char "0123456789,:@#vV+-")) (return)))))))

(defun report-part (condition)
  "The report of CONDITION, if its report function is the system's and is known to run no code."
  (let ((control (and (typep condition 'simple-condition) (simple-condition-format-control condition))))
    (cond ((not (stringp control)) "made by the program's code: evaluate (princ-to-string *)")
          ((calls-functions-p control) "its text may call functions: evaluate (princ-to-string *)")
          (t (handler-case (list (with-standard-io-syntax
                                   (let ((*print-readably* nil) (*package* (user-package)))
                                     (bounded-report (apply #'format nil control (mapcar #'presentable (simple-condition-format-arguments condition)))))))
               (error () "unknown"))))))

(defun bounded-report (text)
  (if (> (length text) 2000) (subseq text 0 2000) text))

(defun condition-facts (condition)
  "The parts of CONDITION that come before its slots."
  (list (list "type" (list (class-name (class-of condition))))
        (list "report" (report-part condition))))

(defun facts-before-slots (object)
  "The number of parts of OBJECT that come before its slots."
  (if (typep object 'condition) 2 0))

(defun parts-of-kind (object)
  "The kind and the parts of OBJECT if it is of one of the kinds of this file, and of a class that
  is SBCL's own; NIL otherwise."
  (flet ((own (kind parts) (and (class-of-system-p object) (values kind parts))))
    (typecase object
      (class (own "class" (class-parts object)))
      (generic-function (own "generic function" (generic-function-parts object)))
      (method (own "method" (method-parts-shown object)))
      (sb-mop:slot-definition (own "slot" (slot-definition-parts object)))
      (sb-thread:thread (own "thread" (thread-parts object)))
      ;; SBCL takes the types STREAM and STRUCTURE-OBJECT for disjoint if both are tested.
      (stream (let ((parts (and (class-of-system-p object) (stream-parts object)))) (and parts (own "stream" parts)))))))

;;; Strings

(defconstant +piece-length+ 100 "The maximum number of characters of a part of a string.")

(defun map-pieces (function string)
  "Calls FUNCTION with the start and the end of each piece of STRING. The pieces are its lines; long
  lines are divided."
  (loop with at = 0 and length = (length string)
        for newline = (or (position #\Newline string :start at) length)
        do (loop for end = (min newline (+ at +piece-length+))
                 do (funcall function at end)
                    (setf at end)
                 while (< at newline))
           (setf at (1+ newline))
        while (< at length)))

(defun page-of-string (string start end)
  "The number of pieces of STRING, 0 if there is only one, and the pieces from START below END as
  parts."
  (let ((count 0) (shown '()))
    (map-pieces (lambda (from to)
                  (when (and (<= start count) (< count end))
                    (push (list (format nil "~D" from) (list (subseq string from to))) shown))
                  (incf count))
                string)
    (if (= count 1) (values 0 '()) (values count (nreverse shown)))))

(defun set-piece (string number value)
  "Replaces the characters of the piece NUMBER of STRING by VALUE, a string that is as long."
  (let ((count 0))
    (block found
      (map-pieces (lambda (from to)
                    (when (= count number)
                      (unless (and (stringp value) (= (length value) (- to from)))
                        (refuse-setting "The piece has ~D characters: the new string must have as many" (- to from)))
                      (replace string value :start1 from)
                      (return-from found))
                    (incf count))
                  string)
      (refuse-setting "The string has no piece ~D (any more)" number))))
