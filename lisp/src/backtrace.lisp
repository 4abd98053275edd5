;;;; Values, conditions and the stack as text for people: always bounded, and never failing.

(in-package :consort)

(defconstant +message-limit+ 10000 "Characters kept of a condition's text.")
(defconstant +frame-text-limit+ 1000 "Characters kept of a frame.")
(defconstant +frames+ 20 "Frames that are shown.")

(defun call-printing (function limit)
  "The JSON of what FUNCTION, called with a stream, writes: bounded by LIMIT and stopped when far
  beyond it."
  (let* ((stopped nil)
         (capture (make-capture :limit limit)))
    (block printing
      (setf (capture-on-excess capture) (lambda () (setf stopped t) (return-from printing)))
      (funcall function capture))
    (captured capture stopped)))

(defun class-text (object)
  "The name of OBJECT's class, without running code of the user's."
  (let ((name (class-name (class-of object))))
    (if (symbolp name) (symbol-name name) "object")))

(defun print-safely (object limit printer)
  "The JSON of OBJECT as PRINTER writes it; when that fails, of something that says so."
  (handler-case (call-printing (lambda (stream) (funcall printer object stream)) limit)
    ((and serious-condition (not storage-condition)) (condition)
      (clipped (format nil "#<~A that cannot be printed: ~A>" (class-text object) (class-text condition)) 0))))

(defun text-of (clipped)
  (field clipped "text"))

(defmacro with-terse-printing (() &body body)
  "Runs BODY with printing as seen from CL-USER, on one line where possible, whatever the user has
  set."
  `(with-standard-io-syntax
     (let ((*package* (user-package))
           (*print-readably* nil)
           (*print-circle* t)
           (*print-length* 10)
           (*print-level* 4))
       ,@body)))

(defun condition-message (condition)
  "The text of CONDITION, bounded, with the names that may be meant in place of an unknown one.
  Streams are named without their addresses."
  (let ((text (with-terse-printing ()
                (text-of (print-safely condition +message-limit+ #'print-condition)))))
    (if (typep condition 'stream-error)
        (let ((stream (ignore-errors (stream-error-stream condition))))
          (if (streamp stream) (without-address text stream) text))
        (concatenate 'string text (suggestion condition)))))

(defun without-address (text stream)
  "TEXT with what STREAM prints as replaced by #<CLASS>."
  (let* ((printed (with-terse-printing () (text-of (print-safely stream 1000 #'prin1))))
         (at (search printed text)))
    (if (and at (find #\{ printed))
        (concatenate 'string (subseq text 0 at)
                     (format nil "#<~A>" (class-text stream))
                     (without-address (subseq text (+ at (length printed))) stream))
        text)))

(defun condition-type (condition)
  "The type of CONDITION as seen from CL-USER."
  (with-terse-printing ()
    (text-of (print-safely (type-of condition) 1000 #'prin1))))

(defun warning-type (warning)
  "The type of WARNING as seen from CL-USER; of SBCL's own types only WARNING or STYLE-WARNING."
  (let* ((name (class-name (class-of warning)))
         (package (symbol-package name)))
    (if (or (eq name 'simple-warning)
            (and package (eql 0 (search "SB-" (package-name package)))))
        (if (typep warning 'style-warning) "STYLE-WARNING" "WARNING")
        (condition-type warning))))

;;; Frames are lists (NAME ARG ...), innermost first, as LIST-BACKTRACE gives them.

(defun frame-symbol (frame)
  "The symbol that tells whose FRAME is: the name, or what (FLET X :IN NAME), (LAMBDA () :IN NAME)
  and the like are in. NIL when there is none."
  (let ((name (first frame)))
    (cond ((symbolp name) name)
          ((and (consp name) (ignore-errors (list-length name)))
           (let ((in (second (member :in name))))
             (cond ((and in (symbolp in)) in)
                   ((and (eq (first name) 'setf) (symbolp (second name))) (second name))))))))

(defun internal-frame-p (frame)
  "Returns true if FRAME is of a function that a user would not know: of the system, of foreign
  code, of ours."
  (let* ((symbol (frame-symbol frame))
         (package (and symbol (symbol-package symbol))))
    (or (stringp (first frame))
        (and package
             (or (member package *internal-packages*)
                 (and (eql 0 (search "SB-" (package-name package)))
                      (not (eq (nth-value 1 (find-symbol (symbol-name symbol) package)) :external))))))))

(defun evaluator-frame-p (frame)
  (member (first frame) *evaluator-frames*))

(defun relevant-frames (frames)
  "Returns those of FRAMES that a user would know: neither what signals, nor the system's internals,
  nor what is beneath an evaluation."
  (let* ((debugger (position 'invoke-debugger frames :key #'first))
         (below (nthcdr (if debugger (1+ debugger) 0) frames))
         (start (loop for tail on below
                      for (frame caller) = tail
                      unless (or (internal-frame-p frame)
                                 (and (member (first frame) *signalling-frames*)
                                      (and (not (evaluator-frame-p caller)) (internal-frame-p caller))))
                        return tail)))
    (loop for (frame caller) on start
          until (eq (first frame) 'call-user-code)
          unless (or (evaluator-frame-p frame)
                     ;; The lambda that the evaluator made of the form.
                     (and (equal (first frame) '(lambda ())) (evaluator-frame-p caller))
                     (and (eq (first frame) 'read) (eq (first caller) 'evaluate-text))
                     (internal-frame-p frame))
            collect frame into relevant
          finally (return (or relevant (form-frames below))))))

(defun form-frames (frames)
  "Returns the place to show when none of FRAMES is of a function of the user's: what was being
  evaluated, or that the text was being read."
  (loop for (frame caller) on frames
        until (eq (first frame) 'call-user-code)
        when (and (evaluator-frame-p frame) (rest frame))
          return (list (list 'eval (second frame)))
        when (and (eq (first frame) 'read) (eq (first caller) 'evaluate-text))
          return '((read))))

(defun first-frames (frames)
  (subseq frames 0 (min +frames+ (length frames))))
