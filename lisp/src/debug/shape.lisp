;;;; The shape of a form in a text: its lists and their places. Nothing is interned, and neither
;;;; reader macros of the user's nor #. are run, so any file may be read at any time. Only the
;;;; syntax on which the numbering of subforms depends is distinguished. Any other object is read as
;;;; its text.

(in-package :consort)

(defconstant +shape-depth+ 500 "The maximum depth of lists.")
(defconstant +shape-length+ 200000 "The maximum number of characters of a form that is read.")

(define-condition no-shape (error) ()
  (:documentation "Signalled for text with syntax that this reader does not know."))

(defstruct (shape-input (:conc-name shape-) (:constructor make-shape-input (text at end)))
  "TEXT is read from AT to END. PLACES has (START . END) of each list that was read, by EQ."
  (text "" :type simple-string)
  (at 0 :type fixnum)
  (end 0 :type fixnum)
  (places (make-hash-table :test #'eq)))

(defun shape-peek (input &optional (ahead 0))
  (let ((at (+ (shape-at input) ahead)))
    (and (< at (shape-end input)) (schar (shape-text input) at))))

(defun skip-shape-comment (input)
  "Skips a #| comment, whose first two characters are next."
  (let ((depth 0))
    (loop
      (let ((char (shape-peek input)) (next (shape-peek input 1)))
        (cond ((null char) (error 'no-shape))
              ((and (eql char #\#) (eql next #\|)) (incf depth) (incf (shape-at input) 2))
              ((and (eql char #\|) (eql next #\#))
               (incf (shape-at input) 2)
               (when (zerop (decf depth)) (return)))
              (t (incf (shape-at input))))))))

(defun skip-shape-blanks (input)
  (loop
    (let ((char (shape-peek input)))
      (cond ((null char) (return))
            ((member char '(#\Space #\Newline #\Tab #\Return #\Page)) (incf (shape-at input)))
            ((char= char #\;)
             (setf (shape-at input) (or (position #\Newline (shape-text input) :start (shape-at input) :end (shape-end input)) (shape-end input))))
            ((and (char= char #\#) (eql (shape-peek input 1) #\|)) (skip-shape-comment input))
            (t (return))))))

(defun skip-shape-quoted (input mark)
  "Skips a text that begins and ends with MARK. The first MARK is next."
  (incf (shape-at input))
  (loop
    (let ((char (or (shape-peek input) (error 'no-shape))))
      (incf (shape-at input) (if (char= char #\\) 2 1))
      (when (char= char mark) (return)))))

(defun read-shape-token (input)
  "The text of the token that is next; the symbol QUOTE for a token of that name."
  (let ((start (shape-at input)))
    (loop for char = (shape-peek input)
          while (and char (not (find char '(#\Space #\Newline #\Tab #\Return #\Page #\( #\) #\" #\' #\; #\` #\,))))
          do (case char
               (#\\ (incf (shape-at input) 2))
               (#\| (skip-shape-quoted input #\|))
               (t (incf (shape-at input)))))
    (when (or (= start (shape-at input)) (> (shape-at input) (shape-end input))) (error 'no-shape))
    (let ((token (subseq (shape-text input) start (shape-at input))))
      (if (member token '("quote" "cl:quote" "common-lisp:quote") :test #'string-equal) 'quote token))))

(defun feature-shape-p (shape)
  "Returns true if the feature expression SHAPE is true here."
  (cond ((stringp shape)
         (let ((name (string-upcase (string-left-trim ":" shape))))
           (find-if (lambda (feature) (and (symbolp feature) (string= feature name))) *features*)))
        ((not (and (consp shape) (stringp (first shape)))) (error 'no-shape))
        ((string-equal (string-left-trim ":" (first shape)) "and") (every #'feature-shape-p (rest shape)))
        ((string-equal (string-left-trim ":" (first shape)) "or") (some #'feature-shape-p (rest shape)))
        ((string-equal (string-left-trim ":" (first shape)) "not") (not (feature-shape-p (second shape))))
        (t (error 'no-shape))))

(defun read-shape-sharp (input depth)
  "Reads the object that begins with the # that is next. Second value: true if there is no object,
  as after #+ with a feature that is absent."
  (let ((start (shape-at input)))
    (incf (shape-at input))
    (loop while (and (shape-peek input) (digit-char-p (shape-peek input))) do (incf (shape-at input)))
    (let ((char (char-downcase (or (shape-peek input) (error 'no-shape)))))
      (flet ((next () (read-shape input depth))
             (text () (subseq (shape-text input) start (min (shape-at input) (shape-end input)))))
        (case char
          (#\' (incf (shape-at input))
           (list "function" (next)))
          ((#\+ #\-) (incf (shape-at input))
           (let ((present (feature-shape-p (next))))
             (cond ((eq (and present t) (char= char #\+)) (next))
                   (t (next) (values nil t)))))
          (#\\ (incf (shape-at input) 2)
           (loop for more = (shape-peek input) while (and more (or (alphanumericp more) (find more "_-+"))) do (incf (shape-at input)))
           (text))
          (#\( (next) (text))
          ((#\. #\s #\p #\c #\a) (incf (shape-at input)) (next) (text))
          ((#\: #\* #\x #\b #\o #\r) (incf (shape-at input)) (read-shape-token input) (text))
          (t (error 'no-shape)))))))

(defun read-shape (input depth)
  "The shape of the object that is next. Second value: true if there is none before a closing
  parenthesis or the end."
  (when (> depth +shape-depth+) (error 'no-shape))
  (loop
    (skip-shape-blanks input)
    (let ((start (shape-at input)) (char (shape-peek input)))
      (flet ((noted (list)
               (setf (gethash list (shape-places input)) (cons start (shape-at input)))
               (return list))
             (next () (multiple-value-bind (shape none) (read-shape input (1+ depth))
                        (when none (error 'no-shape))
                        shape)))
        (case char
          ((nil #\)) (return (values nil t)))
          (#\( (incf (shape-at input))
           (let ((list (read-shape-list input (1+ depth))))
             (if (consp list) (noted list) (return list))))
          (#\" (skip-shape-quoted input #\") (return (subseq (shape-text input) start (shape-at input))))
          (#\' (incf (shape-at input)) (let ((list (list 'quote (next)))) (noted list)))
          (#\` (incf (shape-at input)) (let ((list (list "quasiquote" (next)))) (noted list)))
          (#\, (incf (shape-at input))
           (when (member (shape-peek input) '(#\@ #\.)) (incf (shape-at input)))
           (return (make-comma (next))))
          (#\# (multiple-value-bind (shape none) (read-shape-sharp input (1+ depth))
                 (cond (none)
                       ((consp shape) (if (gethash shape (shape-places input)) (return shape) (noted shape)))
                       (t (return shape)))))
          (t (return (read-shape-token input))))))))

(defun read-shape-list (input depth)
  "The rest of a list whose opening parenthesis was read."
  (let ((items '()))
    (loop
      (multiple-value-bind (shape none) (read-shape input depth)
        (cond (none
               (unless (eql (shape-peek input) #\)) (error 'no-shape))
               (incf (shape-at input))
               (return (nreverse items)))
              ((and items (equal shape "."))
               (let ((tail (read-shape input depth)))
                 (skip-shape-blanks input)
                 (unless (eql (shape-peek input) #\)) (error 'no-shape))
                 (incf (shape-at input))
                 (return (nreconc items tail))))
              (t (push shape items)))))))

(defun shape-at-path (shape path places)
  "The part of SHAPE at PATH, or the innermost part around it that has a place, and the place, which
  is NIL if none of them has one."
  (let ((best shape))
    (dolist (step path)
      (unless (and (consp shape) (listp shape)) (return))
      (setf shape (let ((tail (ignore-errors (nthcdr step shape)))) (and (consp tail) (car tail))))
      (when (and (internal-p 'comma-p) (comma-p shape)) (setf shape (comma-expression shape)))
      (when (gethash shape places) (setf best shape)))
    (values best (gethash best places))))

(defun subform-span (text start number)
  "The span (START . END) in TEXT, and the shape, of the subform NUMBER, as the compiler counts
  subforms, of the form that begins at START or after white space there. NIL when that is unknown."
  (handler-case
      (let* ((input (make-shape-input (coerce text 'simple-string) start (min (length text) (+ start +shape-length+))))
             (shape (read-shape input 0))
             (path (if (consp shape) (form-path shape number) :none)))
        (unless (eq path :none)
          (multiple-value-bind (part place) (shape-at-path shape path (shape-places input))
            (and place (values place part)))))
    (error () nil)))

(defun form-start (text number)
  "Returns the start of the top-level form NUMBER of TEXT, counted from 0; NIL when it is unknown."
  (handler-case
      (let ((input (make-shape-input (coerce text 'simple-string) 0 (length text))))
        (loop repeat number
              do (multiple-value-bind (shape none) (read-shape input 0)
                   (declare (ignore shape))
                   (when none (return-from form-start nil))))
        (skip-shape-blanks input)
        (and (shape-peek input) (shape-at input)))
    (error () nil)))
