(defun square (x)
  (* x x))

(square 12)

(progn (format t "counting~%") (loop for i below 5 collect (square i)))

(/ 1 0)
