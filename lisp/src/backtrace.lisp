;;;; Values, conditions and stack frames as text for the user. All texts have a maximum length. An
;;;; error while printing gives a text that describes the error.

(in-package :consort)

(defconstant +message-limit+ 10000 "The maximum length of a condition's text, in characters.")
(defconstant +frame-text-limit+ 1000 "The maximum length of a frame's text, in characters.")
(defconstant +frames+ 20 "The maximum number of frames that are shown.")

(defun call-printing (function limit)
  "The JSON of the text that FUNCTION writes to the stream that it is called with: at most LIMIT
  characters. FUNCTION is left when it has written far more than that."
  (let* ((stopped nil)
         (capture (make-capture :limit limit)))
    (block printing
      (setf (capture-on-excess capture) (lambda () (setf stopped t) (return-from printing)))
      (funcall function capture))
    (captured capture stopped)))

(defun class-text (object)
  "The name of OBJECT's class as a string, without running code of the user; \"object\" if the class
  has no symbol as its name."
  (let ((name (class-name (class-of object))))
    (if (symbolp name) (symbol-name name) "object")))

(defun print-safely (object limit printer)
  "The JSON of the text that PRINTER, called with OBJECT and a stream, writes. If PRINTER fails, the
  text names the class of OBJECT and the class of the condition. A STORAGE-CONDITION is not
  handled."
  (handler-case (call-printing (lambda (stream) (funcall printer object stream)) limit)
    ((and serious-condition (not storage-condition)) (condition)
      (clipped (format nil "#<~A that cannot be printed: ~A>" (class-text object) (class-text condition)) 0))))

(defun text-of (clipped)
  (field clipped "text"))

(defmacro with-terse-printing (() &body body)
  "Runs BODY with printer variables that do not depend on the user's settings: CL-USER as the
  current package, one line where possible, and a limit for the length of lists and for nesting."
  `(with-standard-io-syntax
     (let ((*package* (user-package))
           (*print-readably* nil)
           (*print-circle* t)
           (*print-length* 10)
           (*print-level* 4))
       ,@body)))

(defun condition-message (condition)
  "The text of CONDITION, at most +MESSAGE-LIMIT+ characters. For an unknown name, similar names are
  appended as a suggestion. The stream of a STREAM-ERROR is written without its address."
  (let ((text (with-terse-printing ()
                (text-of (print-safely condition +message-limit+ #'print-condition)))))
    (if (typep condition 'stream-error)
        (let ((stream (ignore-errors (stream-error-stream condition))))
          (if (streamp stream) (without-address text stream) text))
        (concatenate 'string text (suggestion condition)))))

(defun without-address (text stream)
  "TEXT with the printed representation of STREAM, wherever it occurs, replaced by #<CLASS>."
  (let* ((printed (with-terse-printing () (text-of (print-safely stream 1000 #'prin1))))
         (at (search printed text)))
    (if (and at (find #\{ printed))
        (concatenate 'string (subseq text 0 at)
                     (format nil "#<~A>" (class-text stream))
                     (without-address (subseq text (+ at (length printed))) stream))
        text)))

(defun condition-type (condition)
  "The type of CONDITION, printed with CL-USER as the current package."
  (with-terse-printing ()
    (text-of (print-safely (type-of condition) 1000 #'prin1))))

(defun warning-type (warning)
  "The type of WARNING, printed with CL-USER as the current package. For SIMPLE-WARNING and the
  types of SBCL's own packages, only STYLE-WARNING or WARNING."
  (let* ((name (class-name (class-of warning)))
         (package (symbol-package name)))
    (if (or (eq name 'simple-warning)
            (and package (eql 0 (search "SB-" (package-name package)))))
        (if (typep warning 'style-warning) "STYLE-WARNING" "WARNING")
        (condition-type warning))))

;;; Frames are lists (NAME ARG ...), innermost first, as LIST-BACKTRACE gives them.

(defun frame-symbol (frame)
  "The symbol whose package shows to whom the function of FRAME belongs: its name, or NAME for names
  like (FLET X :IN NAME), (LAMBDA () :IN NAME) and (SETF NAME). NIL when there is none."
  (let ((name (first frame)))
    (cond ((symbolp name) name)
          ((and (consp name) (ignore-errors (list-length name)))
           (let ((in (second (member :in name))))
             (cond ((and in (symbolp in)) in)
                   ((and (eq (first name) 'setf) (symbolp (second name))) (second name))))))))

(defun internal-frame-p (frame)
  "Returns true if the function of FRAME is one that a user would not know: an internal function of
  SBCL, a foreign function, or a function of Consort."
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
  "Returns those of FRAMES that a user would know. The frames that signal the condition, internal
  frames, and the callers of the evaluation are left out. If none is left, returns FORM-FRAMES."
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
                     ;; The function that the evaluator made from the form.
                     (and (equal (first frame) '(lambda ())) (evaluator-frame-p caller))
                     (and (eq (first frame) 'read) (eq (first caller) 'evaluate-text))
                     (internal-frame-p frame))
            collect frame into relevant
          finally (return (or relevant (form-frames below))))))

(defun form-frames (frames)
  "Returns a list of one frame to show when none of FRAMES belongs to a function of the user: (EVAL
  FORM) for the form that was being evaluated, or (READ) while the text was being read. NIL if
  neither was the case."
  (loop for (frame caller) on frames
        until (eq (first frame) 'call-user-code)
        when (and (evaluator-frame-p frame) (rest frame))
          return (list (list 'eval (second frame)))
        when (and (eq (first frame) 'read) (eq (first caller) 'evaluate-text))
          return '((read))))

(defun first-frames (frames)
  (subseq frames 0 (min +frames+ (length frames))))
