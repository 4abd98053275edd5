(defun a (x)
  (let ((y 1)
    (list x y)))

(defun b ()
  "no end
  (f))

(defun c () "c" (g '))

(defun d ()))
#+
#| no end
