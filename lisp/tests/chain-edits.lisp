;;;; Random edits of real files, and what a chain says of each against a check of the whole text:
;;;; the differential test of chains.

(load (merge-pathnames "chain-support.lisp" *load-truename*))

(in-package :consort)

(defvar *random* (sb-ext:seed-random-state 42))

(defun pick (count) (random (max 1 count) *random*))
(defun one-of (list) (nth (pick (length list)) list))

(defun form-spans (text)
  "The spans of what looks like top-level forms of TEXT: from a parenthesis at the beginning of a
  line to the last one before the next such."
  (let ((starts (loop for at = (if (and (plusp (length text)) (char= #\( (char text 0))) 0 (next-toplevel text 0)) then (next-toplevel text at)
                      while at collect at)))
    (loop for (start next) on starts
          for end = (position #\) text :from-end t :start start :end next)
          when end collect (cons start (1+ end)))))

(defun splice-text (text from to with)
  (concatenate 'text (subseq text 0 from) with (subseq text to)))

(defun token-at-random (text start end)
  "The span of a token of letters between START and END, or NIL."
  (loop repeat 20
        do (let ((at (+ start (pick (- end start)))))
             (when (alpha-char-p (char text at))
               (let ((from (1+ (or (position-if #'delimiter-p text :end at :from-end t) -1)))
                     (to (or (position-if #'delimiter-p text :start at) (length text))))
                 (when (and (<= start from) (<= to end) (< from to)
                            (every (lambda (char) (or (alphanumericp char) (find char "-*+"))) (subseq text from to)))
                   (return (values from to))))))))

(defun name-in (text span)
  "The name that the form at SPAN defines, as written."
  (values (definition-name text (car span))))

(defparameter *kinds-of-edits*
  '(:insert-character :delete-character :insert-call :rename-token :use-other-name :rename-definition :lambda-list :delete-form
    :duplicate-form :move-form :new-form :return-other :macro-body :parenthesis :comment))

(defun random-edit (text kind)
  "TEXT with an edit of KIND somewhere, or NIL when there is no place for one."
  (let* ((spans (form-spans text)) (span (or (one-of spans) (return-from random-edit nil))) (start (car span)) (end (cdr span)))
    (flet ((within () (+ start 1 (pick (- end start 2))))
           (insert (position what) (splice-text text position position what)))
      (when (< (- end start) 15) (return-from random-edit nil))
      (ecase kind
        (:insert-character (insert (within) (string (char "abcxyz-*1" (pick 9)))))
        (:delete-character (let ((at (within))) (and (not (find (char text at) "()\"|#;")) (splice-text text at (1+ at) ""))))
        (:insert-call (let ((at (position #\( text :start (within) :end end)))
                        (and at (insert at (one-of '("(undefined-thing 1) " "(car 1) " "(list x y) " "(print :a) " "(length 'a) "))))))
        (:rename-token (multiple-value-bind (from to) (token-at-random text start end)
                         (and from (insert to "q"))))
        (:use-other-name (multiple-value-bind (from to) (token-at-random text start end)
                           (let ((name (name-in text (one-of spans)))) (and from name (splice-text text from to name)))))
        (:rename-definition (multiple-value-bind (token from to) (definition-name text start)
                              (declare (ignore from))
                              (and token (<= to end) (insert to "x"))))
        (:lambda-list (multiple-value-bind (token from to) (definition-name text start)
                        (declare (ignore from))
                        (let ((at (and token (position #\( text :start (min to end) :end end)))) (and at (insert (1+ at) "extra ")))))
        (:delete-form (splice-text text start end ""))
        (:duplicate-form (insert end (format nil "~%~%~A" (subseq text start end))))
        (:move-form (let ((other (car (one-of spans))))
                      (and (< other start)
                           (splice-text (splice-text text start end "") other other (format nil "~A~%~%" (subseq text start end))))))
        (:new-form (insert start (format nil "~A~%~%" (one-of '("(defun brand-new (a) (other-new a 2))" "(defmacro brand-new (a) `(list ,a))"
                                                                 "(defvar *brand-new* 1)" "(defstruct brand-new a b)" "(declaim (optimize (speed 1)))"
                                                                 "(defclass brand-new () ((a :accessor brand-a)))"
                                                                 "(defmethod brand-new ((a integer) &key b) (list a b))" "(defconstant +brand-new+ 1)"
                                                                 "(deftype brand-new () '(or integer string))" "(declaim (inline brand-new))" "(define-symbol-macro brand-new (car 1))"
                                                                 "(eval-when (:compile-toplevel :load-toplevel :execute) (defun brand-new (a) a))")))))
        (:return-other (insert (1- end) (one-of '(" 1" " \"a\"" " nil" " (list 1 2)"))))
        (:macro-body (let ((macros (remove-if-not (lambda (span) (eql 0 (search "(defmacro" text :start2 (car span) :end2 (min (length text) (+ 9 (car span))))))
                                                  spans)))
                       (and macros (insert (1- (cdr (one-of macros))) (one-of '(" " " 1" " nil"))))))
        (:parenthesis (let ((at (within))) (and (find (char text at) '(#\Space #\Newline)) (insert at (string (char "()" (pick 2)))))))
        (:comment (let ((at (position #\Newline text :start start :end end))) (and at (insert at " ; note"))))))))

(defun some-edit (text)
  "TEXT with a random edit, and its kind."
  (loop (let* ((kind (one-of *kinds-of-edits*)) (new (random-edit text kind)))
          (when (and new (not (equal new text)))
            (return (values new kind))))))

(defstruct outcome file kind (same nil) (first-same nil) (whole nil) (answers 0) first-ms final-ms whole-ms)

(defvar *outcomes* '())
(defvar *reasons* (make-hash-table :test 'equal) "How often a chain asked for a whole check for a reason.")
(defvar *differences* '() "(file kinds missing extra context), newest first.")

(defun milliseconds (since) (/ (- (get-internal-real-time) since) (/ internal-time-units-per-second 1000.0)))

(defun compare-edit (chain file kinds new asd-files)
  "Have CHAIN and a whole check look at NEW, the text after edits of KINDS, and keep the outcome."
  (let ((start (get-internal-real-time)))
    (multiple-value-bind (final first answers) (ask-chain chain new)
      (when (eq final :whole) (incf (gethash first *reasons* 0)))
      (let ((chain-ms (milliseconds start)) (start (get-internal-real-time)))
        (multiple-value-bind (missing extra complete) (compare-with-whole (if (listp final) final '()) new :path (host-path chain)
                                                                                                        :asd-files asd-files)
          (when complete
            (let ((outcome (make-outcome :file file :kind (first kinds) :whole (symbolp final) :answers answers :final-ms chain-ms
                                         :whole-ms (milliseconds start))))
              (when (listp final)
                (setf (outcome-same outcome) (not (or missing extra))
                      (outcome-first-same outcome) (equal first final))
                (unless (outcome-same outcome)
                  (let ((at (edit-span (host-text chain) new)))
                    (push (list file kinds missing extra (subseq new (max 0 (- at 80)) (min (length new) (+ 80 at)))) *differences*))))
              (push outcome *outcomes*))
            (expect (not (eq final :ended)) (format nil "~A: the chain stands after ~S" file kinds))
            (not (eq final :ended))))))))

(defun test-file (path count &key (session 4) (text (slurp path)) asd-files)
  "Compare COUNT random edits of the file PATH: at most SESSION successive ones upon one base text.
  ASD-FILES: the definitions of its system, if that is not loaded."
  (let ((file (file-namestring path)) (native (uiop:native-namestring path)) (done 0))
    (multiple-value-bind (chain why) (start-chain text :path native :asd-files asd-files)
      (cond ((null chain)
             (expect chain (format nil "~A: a chain stands: ~A" file why)))
            (t
             (unwind-protect
                  (progn
                    (expect (same-as-whole-p (host-findings chain) text :path native :asd-files asd-files) (format nil "~A: the chain's own check" file))
                    (loop while (< done count)
                          do (let ((current (coerce text 'text)) (kinds '()))
                               (loop repeat (1+ (pick session))
                                     while (< done count)
                                     do (multiple-value-bind (new kind) (some-edit current)
                                          (push kind kinds)
                                          (incf done)
                                          (unless (compare-edit chain file kinds new asd-files)
                                            (stop-chain chain)
                                            (setf chain (or (start-chain text :path native :asd-files asd-files) (return-from test-file nil))))
                                          (setf current new))))))
               (stop-chain chain)))))))

(defun report-outcomes ()
  "Print what came of all edits."
  (flet ((line (name outcomes)
           (let ((compared (remove-if #'outcome-whole outcomes)))
             (flet ((middle (key part)
                      (let ((values (sort (remove nil (mapcar key compared)) #'<))) (if values (nth (floor (* part (1- (length values)))) values) 0))))
               (format t "~&~20A ~5D edits, ~4D as a whole, ~3D differ, ~3D at first; ms ~6,1F ~6,1F, whole ~6,1F~%" name (length outcomes)
                       (- (length outcomes) (length compared)) (count nil compared :key #'outcome-same) (count nil compared :key #'outcome-first-same)
                       (middle #'outcome-final-ms 1/2) (middle #'outcome-final-ms 99/100) (middle #'outcome-whole-ms 1/2))))))
    (dolist (kind *kinds-of-edits*)
      (line (string-downcase kind) (remove kind *outcomes* :key #'outcome-kind :test-not #'eq)))
    (line "all" *outcomes*))
  (maphash (lambda (reason count) (format t "~&as a whole ~5D: ~A~%" count reason)) *reasons*)
  (loop for (file kinds missing extra context) in (reverse *differences*)
        do (format t "~&DIFFERENCE ~A ~S~%  missing ~S~%  extra ~S~%  at ~S~%" file kinds missing extra context))
  (finish-output))
