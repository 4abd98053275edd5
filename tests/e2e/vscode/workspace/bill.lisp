(defun share (total people)
  "What each of PEOPLE pays of TOTAL."
  (list total :each (/ total people)))

(defun split-bills (bills people)
  "The shares of all BILLS."
  (loop for bill in bills
        for tip = (* bill 1/10)
        collect (share (+ bill tip) people)))

(split-bills '(40 60) 0)
