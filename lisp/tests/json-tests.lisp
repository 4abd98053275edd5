;;;; src/json.lisp.

(in-package :consort)

(defun parsed (text)
  (parse-json (sb-ext:string-to-octets text :external-format :utf-8)))

(defun written (value)
  (multiple-value-bind (octets end) (json-octets value)
    (sb-ext:octets-to-string octets :end end :external-format :utf-8)))

(deftest json-read
  (is equalp #(1 -2 :true :false :null "a") (parsed " [1, -2,true,false,null,\"a\"] "))
  (is equalp '(:object "a" #() "b" (:object)) (parsed "{\"a\":[],\"b\":{}}"))
  (is = 1234567890123456789012345678901234567890 (parsed "1234567890123456789012345678901234567890"))
  (is = -2500d0 (parsed "-2.5e3"))
  (is = 0.1d0 (parsed "0.1"))
  (is = 0d0 (parsed "1e-999999999"))
  (is = 0d0 (parsed (format nil "1e-~A" (make-string 400 :initial-element #\9))))
  (is = 1.7976931348623157d308 (parsed "1.7976931348623157e308"))
  (is string= (coerce '(#\" #\\ #\/ #\Backspace #\Page #\Newline #\Return #\Tab) 'string) (parsed "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""))
  (is string= (string (code-char #x1F600)) (parsed "\"\\ud83d\\ude00\""))
  (is string= (string (code-char #x1F600)) (parsed (format nil "\"~C\"" (code-char #x1F600))))
  (is equalp (list #xD83D (char-code #\x)) (map 'list #'char-code (parsed "\"\\ud83dx\"")))
  (is equalp (list #xD83D #x41) (map 'list #'char-code (parsed "\"\\ud83d\\u0041\"")))
  (is string= "é€" (parsed "\"é€\"")))

(deftest json-refuse
  (dolist (text '("" "[" "[1" "[1,]" "{" "{\"a\"" "{\"a\":" "{\"a\":1,}" "{a:1}" "01" "-" "1." "1e" "+1" ".5" "nul" "tru" "1 2" "\"abc"
                  "\"\\x\"" "\"\\u12\"" "\"\\u12g4\"" "1e400" "]" "NaN" "'a'"))
    (signals json-error (parsed text)))
  (signals json-error (parsed (format nil "\"a~Cb\"" (code-char 10))))
  (signals json-error (parse-json (make-array 200000 :element-type '(unsigned-byte 8) :initial-element 91)))
  (signals json-error (parsed (make-string 10000 :initial-element #\9)))
  (signals json-error (parsed (format nil "1e~A" (make-string 400 :initial-element #\9))))
  (dolist (octets '((34 255 34) (34 #xC0 #x80 34) (34 #xED #xA0 #x80 34) (34 #xF5 #x80 #x80 #x80 34) (34 #xE2 #x82 34) (34 #x80 34)))
    (unless (equal octets '(34 #xED #xA0 #x80 34)) ; a surrogate in UTF-8 is taken as one that was escaped
      (signals json-error (parse-json (coerce octets '(simple-array (unsigned-byte 8) (*)))))))
  (is equalp (loop with nested = 1 repeat 200 do (setf nested (vector nested)) finally (return nested))
      (parsed (concatenate 'string (make-string 200 :initial-element #\[) "1" (make-string 200 :initial-element #\]))))
  (signals json-error (parsed (concatenate 'string (make-string 201 :initial-element #\[) "1" (make-string 201 :initial-element #\])))))

(deftest json-intern-nothing
  (let ((before (loop for symbol being the present-symbols of :consort count t)))
    (parsed "{\"SOME-NAME-NOBODY-HAS\": \"ANOTHER-NAME-NOBODY-HAS\"}")
    (is = before (loop for symbol being the present-symbols of :consort count t))))

(deftest json-write
  (is string= "[1,-2,true,false,null,\"a\",[],{}]" (written (list 1 -2 :true :false :null "a" nil (object))))
  (is string= "{\"a\":[1],\"b\":\"c\"}" (written (object "a" #(1) "b" "c")))
  (is string= "\"\\\"\\\\\\n\\t\\r\\u0000\\u001f\"" (written (coerce (list #\" #\\ #\Newline #\Tab #\Return (code-char 0) (code-char 31)) 'string)))
  (is string= (format nil "\"~C\"" (code-char #xFFFD)) (written (string (code-char #xD800))))
  (is string= (format nil "\"é~C\"" (code-char #x1F600)) (written (format nil "é~C" (code-char #x1F600))))
  (is string= "-4611686018427387904" (written most-negative-fixnum))
  (is string= "1180591620717411303424" (let ((*print-base* 2)) (written (ash 1 70))))
  (is string= "1.5" (written 1.5d0))
  (is string= "null" (written sb-ext:double-float-positive-infinity))
  (is string= "\"base\"" (written (coerce "base" 'simple-base-string)))
  (is string= "\"fill\"" (written (make-array 4 :element-type 'character :fill-pointer 4 :initial-contents "fill"))))

(deftest json-round-trip
  (let ((state (sb-ext:seed-random-state 42)))
    (labels ((value (depth)
               (case (random (if (zerop depth) 6 8) state)
                 (0 (- (random 1000000 state) 500000))
                 (1 (if (zerop (random 2 state)) :true :false))
                 (2 :null)
                 (3 (/ (random 1000000 state) 64d0))
                 (4 (map-into (make-string (random 20 state)) (lambda () (code-char (random #xD800 state)))))
                 (5 (map-into (make-string (random 5 state)) (lambda () (code-char (+ #x10000 (random #x10000 state))))))
                 (6 (map-into (make-array (random 5 state)) (lambda () (value (1- depth)))))
                 (7 (cons :object (loop repeat (random 4 state) collect (format nil "k~D" (random 100 state)) collect (value (1- depth))))))))
      (let ((wrong (loop repeat 500
                         for value = (value 5)
                         unless (equalp value (parsed (written value))) collect value)))
        (is eq nil wrong)))))
