;;;; The place of a frame: the exact form in the text that was evaluated, or in the file as it was
;;;; loaded, as far as that text is known. The host finds the present place of that form.

(in-package :consort)

(defstruct (evaluated-text (:conc-name evaluated-) (:constructor make-evaluated-text (id text start origin)))
  "The TEXT of the evaluation ID from which a form was read at START. ORIGIN is the place in a file
  where the text begins, or NIL. END is the end of the form, once it was requested."
  id (text "" :type simple-string) (start 0 :type index) origin (end nil :type (or null index)))

(defconstant +loaded-form+ 10000 "The maximum length of a form that is sent with the places in it.")

(defvar *loaded-forms* nil
  "A vector of the texts of top-level forms that contain frames of one answer; NIL if the texts are
  not requested.")

(defun loaded-fields (text start end offset)
  "The JSON fields of the top-level form from START to END of TEXT, from which code was made. OFFSET
  is its start in the file, counted as in places."
  (when (and *loaded-forms* (<= (- end start) +loaded-form+))
    (let ((form (subseq text start end)))
      (list "loaded" (object "text" (or (position form *loaded-forms* :test #'string=) (vector-push-extend form *loaded-forms*))
                             "start" offset)))))

(defun evaluated-file (known)
  "The file to which the text of KNOWN belongs, or NIL."
  (and (evaluated-origin known) (source-file (origin-source (evaluated-origin known)))))

(defun evaluated-offset (known)
  (if (evaluated-origin known) (origin-offset (evaluated-origin known)) 0))

(defun utf-16-length (text start end)
  (loop for index from start below end sum (if (> (char-code (char text index)) #xffff) 2 1)))

(defun evaluated-position (known index)
  "A list of the line and the column, in the file, of the character INDEX of the text of KNOWN. Both
  count from 1, columns in UTF-16 code units."
  (let* ((text (evaluated-text known))
         (line-start (position #\Newline text :end index :from-end t))
         (origin (evaluated-origin known)))
    (if line-start
        (list (+ (origin-line origin) (count #\Newline text :end index)) (1+ (utf-16-length text (1+ line-start) index)))
        (list (origin-line origin) (+ (origin-column origin) (utf-16-length text 0 index))))))

(defun evaluated-span-fields (known start end)
  "The JSON fields of the characters from START to END of the text of KNOWN."
  (let ((offset (evaluated-offset known)))
    (list* "evaluation" (evaluated-id known)
           "file" (or-null (evaluated-file known))
           (append (and (evaluated-origin known)
                        (list "position" (coerce (append (evaluated-position known start) (evaluated-position known end)) 'vector)))
                   (span-fields (+ offset start) (+ offset end))
                   ;; Also without a file: the host knows the texts of few evaluations, and a thread
                   ;; may run the code of any.
                   (loaded-fields (evaluated-text known) (evaluated-start known) (end-of-evaluated known) (+ offset (evaluated-start known)))))))

(defun end-of-evaluated (known)
  "The end of the form of KNOWN in its text."
  (or (evaluated-end known)
      (setf (evaluated-end known)
            (handler-case (let ((input (shape-input-of known)))
                            (read-shape input 0)
                            (min (shape-at input) (shape-end input)))
              (error () (length (evaluated-text known)))))))

(defconstant +placed-conses+ 50000 "The maximum number of lists of one form whose places are kept.")
(defconstant +recent-texts+ 100 "The maximum number of forms from files that were evaluated for
  debugging and are remembered, the newest.")

(define-global *evaluated-lists* (make-hash-table :test #'eq :weakness :key :synchronized t)
  "(EVALUATED-TEXT . PATH) of each list in a form that was evaluated for debugging, as long as the
  list is in use. PATH is the list of positions in the lists around it, innermost first.")
(define-global *recent-texts* '() "EVALUATED-TEXT of forms that came from files, newest first.")

(defun evaluated-text-from (text start origin)
  "The EVALUATED-TEXT of a form that the evaluation of this thread read from START of TEXT."
  (make-evaluated-text (evaluation-id *evaluation*) (coerce text 'simple-string) start origin))

(defun note-evaluated-form (form known)
  "Remembers where FORM, which is about to be evaluated, and each list in it was read. KNOWN is its
  EVALUATED-TEXT."
  (when (consp form)
    (let ((count 0))
      (when (evaluated-origin known)
        (setf *recent-texts* (cons known (loop for each in *recent-texts* repeat (1- +recent-texts+) collect each))))
      (labels ((note (list path depth)
                 (unless (or (> (incf count) +placed-conses+) (> depth +shape-depth+) (gethash list *evaluated-lists*))
                   (setf (gethash list *evaluated-lists*) (cons known path))
                   (loop for tail = list then (cdr tail)
                         for position from 0 below +placed-conses+
                         while (consp tail)
                         do (let ((part (without-comma (car tail))))
                              (when (consp part) (note part (cons position path) (1+ depth))))))))
        (note form '() 0)))))

(defun without-comma (part)
  (if (and (internal-p 'comma-p) (comma-p part)) (comma-expression part) part))

(defun lists-on-path (form number)
  "The lists around the subform NUMBER of FORM, as the compiler counts subforms, innermost first,
  beginning with the subform itself if it is a list; NIL when there is no such subform."
  (let ((path (form-path form number)) (lists (list form)))
    (unless (eq path :none)
      (dolist (step path lists)
        (setf form (without-comma (nth step form)))
        (unless (consp form) (return lists))
        (push form lists)))))

(defun shape-input-of (known)
  "A shape input of the text of KNOWN from where its form was read."
  (make-shape-input (evaluated-text known) (evaluated-start known) (length (evaluated-text known))))

(defun path-span (known path)
  "The span and the shape of the list at PATH, as in *EVALUATED-LISTS*, in the text of KNOWN; NIL
  when its form was not read from this text."
  (handler-case
      (let* ((input (shape-input-of known))
             (shape (read-shape input 0)))
        (dolist (step (reverse path))
          (setf shape (without-comma (nth step shape))))
        (values (gethash shape (shape-places input)) shape))
    (error () nil)))

(defun same-operator-p (form shape)
  "Returns true if SHAPE may be the shape of FORM: both begin with the same name, or FORM does not
  begin with a name."
  (let ((operator (and (consp form) (car form))))
    (or (not (symbolp operator))
        (and (consp shape)
             (or (eq (car shape) operator)
                 (and (stringp (car shape))
                      (let ((token (car shape)))
                        (string-equal (symbol-name operator) (subseq token (1+ (or (position #\: token :from-end t) -1)))))))))))

(defun span-fields (start end)
  (list "span" (vector start end)))

(defun evaluated-place (frame)
  "The JSON fields of the place of FRAME in a text that was evaluated for debugging, or of its form
  alone; NIL when its code is not from such a text."
  (let* ((form (frame-evaluated-form frame))
         (number (and form (frame-form-number frame)))
         (lists (and number (ignore-errors (lists-on-path form number)))))
    (when lists
      (append (list "form" (present (first lists) (user-package) :case :downcase))
              (loop for list in lists
                    for (known . path) = (gethash list *evaluated-lists*)
                    when known
                      return (multiple-value-bind (span shape) (path-span known path)
                               (when (and span (same-operator-p list shape))
                                 (evaluated-span-fields known (car span) (cdr span)))))))))

(defun definition-source-of-frame (frame)
  "SBCL's source of the definition to which FRAME's function belongs, or NIL."
  (let ((function (frame-function frame)))
    (and function (ignore-errors (sb-introspect:find-definition-source function)))))

(defun source-of-frame (frame)
  "The place of the definition to which FRAME's function belongs, as an object with the fields of
  SOURCE-PLACE."
  (let ((source (definition-source-of-frame frame)))
    (cons :object (and source (ignore-errors (source-place source))))))

(defun recent-text (source)
  "The EVALUATED-TEXT of the form at the place SOURCE, if a form from that file was evaluated
  there."
  (let ((file (field source "file")) (offset (field source "offset")))
    (and file offset
         (find-if (lambda (known) (and (string= (evaluated-file known) file)
                                       (eql (+ (evaluated-offset known) (evaluated-start known)) offset)))
                  *recent-texts*))))

(defun text-of-source (source)
  "The text of the file of SOURCE, if it has not changed since it was loaded; NIL otherwise."
  (let ((file (field source "file")))
    (and file (values (text-of-file file (field source "written"))))))

(defun start-of-source (source text)
  "The offset in TEXT of the form of SOURCE, or of the white space before it; NIL when it is
  unknown."
  (or (field source "offset")
      (and (field source "form") (form-start text (field source "form")))))

(defun kept-form (source place)
  "The text of the form at PLACE, the place of SOURCE, as it was reloaded or evaluated. Second
  value: true if SOURCE is of such a form, even if its text is not known."
  (let* ((plist (sb-introspect:definition-source-plist source))
         (text (or (getf plist :consort-text)
                   (and (getf plist :consort-position)
                        (evaluated-source-at (field place "file") (field place "offset"))))))
    (values text (or text (getf plist :consort-position)))))

(defun text-has-form-p (text form offset)
  "Returns true if TEXT has FORM at OFFSET."
  (let ((end (and offset (+ offset (length form)))))
    (and end (<= end (length text)) (string= form text :start2 offset :end2 end))))

(defun place-in-kept-form (form offset number file)
  "The JSON fields of the subform NUMBER of FORM, which was at OFFSET of FILE."
  (let ((span (and number (subform-span form 0 number)))
        (now (text-of-file file nil)))
    (append (cond (span (span-fields (+ offset (car span)) (+ offset (cdr span))))
                  (t (list "offset" offset)))
            (loaded-fields form 0 (length form) offset)
            (unless (and now (text-has-form-p now form offset)) (list "changed" :true)))))

(defun place-in-text (text place number)
  "The JSON fields of the subform NUMBER of the form of PLACE, a place in a file with the text TEXT,
  which has not changed since it was loaded."
  (let* ((start (start-of-source place text))
         (start (and start (skip-blanks text start)))
         (span (and start number (subform-span text start number)))
         (form (and start *loaded-forms* (subform-span text start 0))))
    (append (cond (span (span-fields (car span) (cdr span)))
                  (start (list "offset" start)))
            (and form (loaded-fields text (car form) (cdr form) (car form))))))

(defun file-place (frame)
  "The JSON fields of the place of FRAME in a file; NIL when its function does not come from a file.
  The field `changed` is present if the file is not the one that was loaded, or no longer has the
  form at that place."
  (let* ((source (definition-source-of-frame frame))
         (place (cons :object (and source (ignore-errors (source-place source)))))
         (file (field place "file"))
         (recent (recent-text place))
         (number (frame-form-number frame))
         (evaluated (and recent number (subform-span (evaluated-text recent) (evaluated-start recent) number))))
    (cond
      (evaluated (evaluated-span-fields recent (car evaluated) (cdr evaluated)))
      (file
       (multiple-value-bind (form kept) (kept-form source place)
         (let ((text (and (not kept) (text-of-source place))))
           (list* "file" file
                  (cond ((and form (integerp (field place "offset"))) (place-in-kept-form form (field place "offset") number file))
                        (text (place-in-text text place number))
                        (t (list "changed" :true))))))))))

(defun frame-place-fields (frame)
  "The JSON of the place of FRAME, or null: `file` or `evaluation` with `span`, as exact as it is
  known."
  (let ((fields (or (form-frame-place frame) (probed-place frame) (evaluated-place frame)
                    ;; SBCL treats code that runs at a stop as a part of the stopped form.
                    (and (not (form-at-stop-frame-p frame (frame-name frame))) (file-place frame)))))
    (if fields (cons :object fields) :null)))
