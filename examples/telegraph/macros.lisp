(in-package :telegraph)

(defmacro define-code (name documentation &body pairs)
  "Define NAME as a code: a list of (CHARACTER . SIGNALS), made from PAIRS of a character and a string of dots and dashes.
That no two characters share their signals is found out while compiling, which is when the person who wrote them is looking."
  (let ((seen (make-hash-table :test 'equal)))
    (loop for (character signals) in pairs
          for other = (gethash signals seen)
          do (when other
               (error "~S and ~S are both ~A" other character signals))
             (setf (gethash signals seen) character)))
  `(defparameter ,name ',(loop for (character signals) in pairs collect (cons character signals))
     ,documentation))

(defmacro do-words ((word text &optional result) &body body)
  "Run BODY with WORD bound to each of the words of TEXT in turn; return RESULT."
  (let ((string (gensym "STRING")) (start (gensym "START")) (end (gensym "END")))
    `(loop with ,string = ,text
           for ,start = (position #\Space ,string :test-not #'char=)
             then (and ,end (position #\Space ,string :start ,end :test-not #'char=))
           for ,end = (and ,start (position #\Space ,string :start ,start))
           while ,start
           do (let ((,word (subseq ,string ,start ,end))) ,@body)
           finally (return ,result))))
