;;;; Finds the definition of a system whose name no file has, among the files of the workspace.
;;;; Files whose text has the name are loaded first, then all others. A definition of another system
;;;; that fails, or does not end, is skipped.

(in-package :consort)

(defconstant +likely-definition-time+ 60 "The time in seconds that the load of a file may take if
  the file has the name of the system in it.")
(defconstant +other-definition-time+ 5 "The time in seconds that the load of any other file may
  take.")
(defconstant +late-definitions+ 2 "The number of files that take too long after which no other file
  is loaded.")
(defconstant +definition-octets+ 1000000 "The number of octets of a definition in which a name is
  searched.")
(defconstant +max-failures+ 5 "The maximum number of failures in a message.")

(define-condition system-not-found (asdf:missing-component)
  ((name :initarg :name :reader name-not-found)
   (failures :initarg :failures :reader failures-of-definitions))
  (:documentation "Signalled when no definition of the system NAME was found. FAILURES is a list of
  (FILE . WORDS) of the files that could not be loaded."))

;; ASDF's condition has a method and no report.
(defmethod print-object ((condition system-not-found) stream)
  (let ((failures (failures-of-definitions condition)))
    (format stream "There is no system ~S.~@[ It may be in one of these, which could not be loaded:~:{~%~A: ~A~}~]~@[~%and ~D more~]"
            (name-not-found condition)
            (loop for (file . words) in failures
                  repeat +max-failures+
                  collect (list (sb-ext:native-namestring file) words))
            (and (nthcdr +max-failures+ failures) (- (length failures) +max-failures+)))))

(defun text-of-definition (file)
  "The part of the text of FILE, a regular file, that is searched."
  (ensure-regular file)
  (with-open-file (in file :external-format :latin-1)
    (let ((text (make-string (min +definition-octets+ (file-length in)))))
      (subseq text 0 (read-sequence text in)))))

(defun defines-by-text-p (text name)
  "Returns true if TEXT has DEFSYSTEM followed by NAME. Nothing of it is read as Lisp."
  (flet ((before-name-p (char)
           (find char '(#\Space #\Tab #\Newline #\Return #\Page #\" #\# #\:)))
         (delimiter-p (end)
           (or (>= end (length text)) (not (or (alphanumericp (char text end)) (find (char text end) "-_./+*"))))))
    (loop with operator = "defsystem"
          for at = (search operator text :test #'char-equal) then (search operator text :test #'char-equal :start2 (1+ at))
          while at
            thereis (let ((start (position-if-not #'before-name-p text :start (+ at (length operator)))))
                      (and start
                           (let ((end (+ start (length name))))
                             (and (<= end (length text)) (string-equal name text :start2 start :end2 end) (delimiter-p end))))))))

(declaim (ftype function call-with-time-limit))

(defun failure-of-definition (file seconds)
  "Makes ASDF load the definitions in FILE. Two values: NIL, or the reason of the failure, in words;
  and true if it was left after SECONDS."
  (let ((late nil))
    (values (call-with-time-limit seconds
                                  (lambda ()
                                    (handler-case (progn (ensure-regular file) (asdf:load-asd file) nil)
                                      ((or error storage-condition) (condition) (condition-message condition))))
                                  (lambda (holder)
                                    (setf late t)
                                    (format nil "it was left after ~D s~@[, because ~A~]" seconds holder)))
            late)))

(defun find-among-definitions (system files tell)
  "The system called SYSTEM, whose definition is searched in FILES. TELL is called with each file
  before it is loaded. Signals an ASDF:MISSING-COMPONENT if there is none."
  (let* ((likely (remove-if-not (lambda (file) (let ((text (ignore-errors (text-of-definition file)))) (and text (defines-by-text-p text system)))) files))
         (failures '())
         (late 0))
    (loop for file in (append likely (remove-if (lambda (file) (member file likely)) files))
          for seconds = (if (member file likely) +likely-definition-time+ +other-definition-time+)
          do (if (< late +late-definitions+)
                 (multiple-value-bind (failure late-p) (progn (funcall tell file) (failure-of-definition file seconds))
                   (when failure (push (cons file failure) failures))
                   (when late-p (incf late)))
                 (push (cons file "it was not loaded: others did not end") failures))
          until (asdf:registered-system system))
    (or (asdf:find-system system nil)
        (error 'system-not-found :requires system :name system :failures (reverse failures)))))
