(in-package :telegraph)

(define-code *short-code*
    "Figures, the way they are sent in a hurry."
  (#\1 ".-") (#\5 ".") (#\9 "-.") (#\0 "-") (#\T "-"))

(defun check-round-trip (text)
  (assert (string-equal text (decode (encode text)))))

(defun run-tests ()
  (check-round-trip "the quick brown fox")
  (check-round-trip "sphinx of black quartz" "judge my vow"))

(defun check-duration ()
  (assert (= 1/5 (telegraf:duration "."))))
