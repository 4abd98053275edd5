(in-package :telegraph)

(define-code *code*
    "International Morse code."
  (#\A ".-") (#\B "-...") (#\C "-.-.") (#\D "-..") (#\E ".") (#\F "..-.") (#\G "--.") (#\H "....") (#\I "..")
  (#\J ".---") (#\K "-.-") (#\L ".-..") (#\M "--") (#\N "-.") (#\O "---") (#\P ".--.") (#\Q "--.-") (#\R ".-.")
  (#\S "...") (#\T "-") (#\U "..-") (#\V "...-") (#\W ".--") (#\X "-..-") (#\Y "-.--") (#\Z "--.."))

(defun encode-character (character)
  "The signals of CHARACTER; an error when there are none."
  (or (cdr (assoc character *code* :test #'char-equal))
      (error "There is no Morse code for ~S." character)))

(defun encode (text)
  "TEXT in Morse code: a space between letters, a slash between words."
  (let ((words '()))
    (do-words (word text)
      (push (format nil "~{~A~^ ~}" (map 'list #'encode-character word)) words))
    (format nil "~{~A~^ / ~}" (nreverse words))))

(defun decode (signals)
  "The letters of SIGNALS, which are what ENCODE returns."
  (with-output-to-string (out)
    (do-words (signal signals)
      (write-char (cond ((string= signal "/") #\Space)
                        ((car (rassoc signal *code* :test #'string=)))
                        (t #\?))
                  out))))
