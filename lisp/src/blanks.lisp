;;;; White space and comments between forms, and white space at the end of a text.

(in-package :consort)

(defun without-end-blanks (text)
  "TEXT without white space at its end."
  (string-right-trim '(#\Space #\Newline #\Tab #\Return) text))

(defun skip-blanks (text start)
  "The first position at or after START of TEXT that is neither white space nor in a comment that a
  semicolon begins, by the standard syntax. The length of TEXT when there is none."
  (declare (type string text))
  (let* ((end (length text)) (position (min start end)))
    (loop
      (setf position (or (position-if-not (lambda (char) (member char '(#\Space #\Newline #\Tab #\Return #\Page))) text :start position)
                         end))
      (unless (and (< position end) (char= (char text position) #\;)) (return position))
      (setf position (or (position #\Newline text :start position) end)))))
