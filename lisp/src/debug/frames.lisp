;;;; The frames of a stopped program that are shown to people, and their names.

(in-package :consort)

(defconstant +stopped-frames+ 1000 "The maximum number of frames of a stop that can be inspected.")

(defun user-frames ()
  "Returns the user's frames of this thread, from the failure to the start of the evaluation,
  innermost first. Frames of signalling and of the evaluator are left out; if none is of the
  program's code, the frame of the evaluated form is the last. Second value: true if there are
  more."
  (let ((frames '()) (names '()) (more nil))
    (loop with count = 0
          for frame = (top-frame) then (frame-below frame)
          while frame
          until (eq (frame-name frame) 'call-user-code)
          do (when (> (incf count) (+ +stopped-frames+ 60)) (setf more t) (return))
             (push frame frames)
             (push (list (frame-name frame)) names))
    (setf frames (nreverse frames) names (nreverse names))
    (let ((kept (without-signalling (mapcar #'cons frames names))))
      (setf frames (mapcar #'car kept) names (mapcar #'cdr kept)))
    (let ((form-alone (notany #'program-frame-p (mapcar #'first names))))
      (values (loop for frame in frames
                    for name in names
                    unless (or (evaluator-frame-p name)
                               (if (form-frame-named-p (first name)) (not form-alone) (own-frame-p name)))
                      collect frame)
              more))))

(defun signalling-frame-p (name)
  "Returns true if a frame called NAME is Consort's, the implementation's or of signalling."
  (and (not (form-frame-named-p (first name)))
       (or (own-frame-p name) (internal-frame-p name) (eq (first name) 'invoke-debugger)
           (member (first name) *signalling-frames*))))

(defun without-signalling (frames)
  "FRAMES, conses (FRAME . NAME) from the innermost on, without those of the signalling that led to
  the stop and to each stop around it."
  (loop while (and frames (signalling-frame-p (cdr (first frames))))
        do (pop frames))
  (let ((outer (position 'invoke-debugger frames :key #'cadr)))
    (if outer
        (let ((inner (loop for end downfrom outer above 0
                           while (signalling-frame-p (cdr (nth (1- end) frames)))
                           finally (return end))))
          (append (subseq frames 0 inner) (without-signalling (nthcdr (1+ outer) frames))))
        frames)))

(defun own-frame-p (name)
  "Returns true if a frame called NAME is Consort's."
  (let ((symbol (frame-symbol name)))
    (and symbol (eq (symbol-package symbol) (load-time-value (find-package "CONSORT"))))))

(defun readable-name (name)
  "NAME, of a frame's function, in the form in which people write it."
  (cond ((and (consp name) (ignore-errors (list-length name)) (symbolp (first name))
              (member (symbol-name (first name)) '("FAST-METHOD" "SLOW-METHOD") :test #'string=))
         (cons 'method (rest name)))
        (t name)))

(defun toplevel-frame-p (frame name)
  "Returns true if FRAME, called NAME, is of the function that the evaluator made of a form."
  (and (consp name) (eq (first name) 'lambda) (consp (rest name)) (null (second name))
       (let ((caller (frame-below frame)))
         (and caller (evaluator-frame-p (list (frame-name caller)))))))

(defun form-at-stop-frame-p (frame name)
  "Returns true if FRAME, called NAME, is of a form that Consort evaluates at a stop: a function of one
  nameless parameter, the frame there."
  (and (consp name) (eq (first name) 'lambda) (consp (rest name)) (consp (second name))
       (null (rest (second name))) (symbolp (first (second name))) (null (symbol-package (first (second name))))
       (let ((caller (frame-below frame)))
         (and caller (own-frame-p (list (frame-name caller)))))))

(defun frame-label (frame)
  "Returns the name of FRAME."
  (let ((name (frame-name frame)))
    (cond ((form-at-stop-frame-p frame name) "form at the stop")
          ((or (form-frame-named-p name) (toplevel-frame-p frame name)) "top-level form")
          ((stringp name) name)
          (t (present (readable-name name) (user-package) :case :upcase)))))

(defun package-of-name (frame)
  "Returns the package of the name of FRAME's function; NIL for functions without a name, and for
  those of the standard and of Consort."
  (let* ((name (frame-name frame))
         (symbol (or (frame-symbol (list name))
                     (and (consp name) (ignore-errors (list-length name))
                          (find-if (lambda (part) (and part (symbolp part))) (rest name))))))
    (and symbol
         (not (internal-frame-p (list symbol)))
         (not (eq (symbol-package symbol) (load-time-value (find-package "COMMON-LISP"))))
         (symbol-package symbol))))

(defun package-of-frame (frame)
  "Returns the package for reading a person's code at FRAME: its function name's, or the current
  one."
  (or (package-of-name frame) (live-package *package*)))
