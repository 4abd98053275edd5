;;;; The frames of an error's backtrace, as data for the clients, and the JSON of errors.

(in-package :consort)

(defconstant +walked-frames+ 300 "The maximum number of frames of a stack that are read, because a
  stack that overflowed is deep.")
(defconstant +frame-arguments+ 10 "The maximum number of arguments of a frame that are sent.")
(defconstant +frame-argument-limit+ 200 "The maximum number of characters of one argument.")

(defstruct (stack-frame (:constructor make-stack-frame (call &optional file line)))
  "A frame that is shown to people. CALL is (NAME ARG ...). FILE is the native name of the file from
  which its function was loaded, or NIL. LINE is that of the form at which it is, or of the
  definition, from 1; NIL if it is not known."
  (call '() :type list :read-only t)
  (file nil :read-only t)
  (line nil :read-only t))

(defun frame-text (call)
  "The text of CALL, (NAME ARG ...)."
  (with-terse-printing ()
    (let ((*print-pretty* nil))
      (text-of (print-safely call +frame-text-limit+ #'prin1)))))

(defun frame-argument-text (argument)
  (with-terse-printing ()
    (let ((*print-pretty* nil))
      (text-of (print-safely argument +frame-argument-limit+ #'prin1)))))

(defun current-calls ()
  "The frames of this thread that are of interest, as lists (NAME ARG ...)."
  (handler-case
      (first-frames (relevant-frames (sb-debug:list-backtrace :count +walked-frames+ :from :current-frame)))
    (serious-condition () '())))

(defun walk-frames ()
  "Two values: the frames of this thread, as lists (NAME ARG ...), innermost first; and an alist
  from each list to SBCL's frame."
  (let ((calls '()) (frames '()) (count 0))
    (block walk
      (map-backtrace (lambda (frame)
                       (multiple-value-bind (name arguments) (%frame-call frame)
                         (let ((call (cons name arguments)))
                           (push call calls)
                           (push (cons call frame) frames)))
                       (when (>= (incf count) +walked-frames+)
                         (return-from walk)))
                     :from :current-frame))
    (values (nreverse calls) frames)))

(defun line-at (text offset)
  "The line, from 1, of the character of TEXT at OFFSET; NIL if TEXT is shorter."
  (when (<= 0 offset (length text))
    (1+ (count #\Newline text :end offset))))

(defun placed-frame (call frame)
  "The STACK-FRAME of CALL, with the place of SBCL's FRAME as far as it is known. FRAME may be NIL."
  (let* ((fields (and frame (handler-case (file-place frame) (serious-condition () nil))))
         (place (cons :object fields))
         (file (and fields (field place "file")))
         (offset (and file (let ((span (field place "span"))) (if span (aref span 0) (field place "offset")))))
         (text (and offset (not (field place "changed")) (handler-case (text-of-file file nil) (serious-condition () nil)))))
    (make-stack-frame call file (and text (line-at text offset)))))

(defun current-frames ()
  "The frames of this thread that are of interest."
  (handler-case
      (if (and (internal-p '%frame-call) (internal-p 'map-backtrace))
          (multiple-value-bind (calls frames) (walk-frames)
            (loop for call in (first-frames (relevant-frames calls))
                  collect (placed-frame call (cdr (assoc call frames :test #'eq)))))
          (mapcar #'make-stack-frame (current-calls)))
    (serious-condition () '())))

(defun current-frame-names ()
  "The frames of CURRENT-FRAMES, without arguments and places. Needs little stack and memory."
  (flet ((relevant (names) (mapcar #'make-stack-frame (first-frames (relevant-frames (nreverse names))))))
    (handler-case
        (let ((names '()) (count 0))
          (map-backtrace (lambda (frame)
                           (push (list (frame-function-name frame)) names)
                           (when (> (incf count) 60)
                             (return-from current-frame-names (relevant names))))
                         :from :current-frame)
          (relevant names))
      (serious-condition () '()))))

;;; Names

(defun named-function (name)
  "The name of the definition that contains a function called NAME: a symbol, (SETF SYMBOL) or NIL.
  For a method, the second value is the list of its qualifiers and its specializers. (FLET X :IN
  NAME) and (LAMBDA () :IN NAME) are parts of NAME."
  (cond ((symbolp name) name)
        ((not (and (consp name) (ignore-errors (list-length name)) (symbolp (first name)))) nil)
        ((member :in name) (named-function (second (member :in name))))
        ((eq (first name) 'lambda) nil)
        ((and (eq (first name) 'setf) (symbolp (second name))) name)
        ((member (symbol-name (first name)) '("METHOD" "FAST-METHOD" "SLOW-METHOD") :test #'string=)
         (values (named-function (second name)) (cddr name)))
        (t (named-function (second name))))) ; (MACRO-FUNCTION NAME) and similar names

(defun frame-role (call name)
  "Returns the role of the frame CALL of the function NAME: the `role` of docs/wire.md."
  (let* ((symbol (if (consp name) (second name) name))
         (package (and symbol (symbol-package symbol))))
    (cond ((member name *signalling-frames*) "signal")
          ((or (stringp (first call))
               (and package (or (member package *internal-packages*) (eql 0 (search "SB-" (package-name package))))))
           "internal")
          ((or (null symbol) (eq package (load-time-value (find-package "COMMON-LISP")))) "standard")
          (t "program"))))

(defun method-text (parts)
  "The text of PARTS, the qualifiers and specializers of a method, such as `:AROUND (CIRCLE T)`."
  (with-terse-printing ()
    (let ((*print-pretty* nil))
      (text-of (print-safely parts +frame-argument-limit+ (lambda (parts stream) (format stream "~{~S~^ ~}" parts)))))))

;;; JSON

(defun stack-frame-json (frame)
  "The JSON of StackFrame for FRAME."
  (let* ((call (stack-frame-call frame))
         (arguments (loop for tail = (rest call) then (cdr tail)
                          repeat +frame-arguments+
                          while (consp tail)
                          collect (frame-argument-text (car tail)))))
    (multiple-value-bind (name method) (named-function (first call))
      (object "text" (frame-text call)
              "name" (if name (frame-argument-text name) :null)
              "method" (if method (method-text method) :null)
              "role" (frame-role call name)
              "args" (coerce arguments 'vector)
              "file" (or-null (stack-frame-file frame))
              "line" (or-null (stack-frame-line frame))))))

(defun backtrace-of (frames)
  "The JSON of FRAMES."
  (map 'vector #'stack-frame-json frames))

(defun error-facts (kind message &optional frames operation)
  "The JSON of EvalError."
  (object "type" kind "message" message "operation" (or-null operation) "backtrace" (backtrace-of frames)))

(defun failed-operation (condition)
  "The name, as text, of the function whose call failed with CONDITION and left no frame of its own;
  or NIL."
  (let* ((operation (ignore-errors (typecase condition
                                     (arithmetic-error (arithmetic-error-operation condition))
                                     (undefined-function (cell-error-name condition)))))
         (name (named-function operation)))
    (and name (frame-argument-text name))))

(defun describe-error (condition &optional (frames (current-frames)))
  "The JSON of EvalError for CONDITION, which was signalled in the place that FRAMES show."
  (error-facts (condition-type condition) (condition-message condition) frames (failed-operation condition)))

(defun report-own-error (what condition)
  "Reports a failure of Consort's own for which there is no request to answer."
  (send-event "thread-error" "thread" (or (sb-thread:thread-name sb-thread:*current-thread*) "")
                             "type" (condition-type condition)
                             "message" (concatenate 'string what ": " (condition-message condition))
                             "backtrace" (backtrace-of (current-frames))))
