(in-package :telegraph)

(declaim (type (integer 5 60) *words-per-minute*))
(defvar *words-per-minute* 12
  "How fast we send. A word is fifty dots long: PARIS, and the pause after it.")

(declaim (ftype (function (string) rational) duration))
(defun duration (signals)
  "Seconds that SIGNALS take to send."
  (let ((dot (/ 60 50 *word-per-minute*))
        (dash (* 3 dot)))
    (loop for signal across signals
          sum (ecase signal
                (#\. (* 2 dot))
                (#\- (* 4 dot))
                (#\Space (* 2 dot))
                (#\/ 0)))))

(defun duration-of-text (text)
  (duration (encode text :separator "/")))

(defun hurry ()
  "Send as fast as the best of us."
  (setf *words-per-minute* "sixty"))
