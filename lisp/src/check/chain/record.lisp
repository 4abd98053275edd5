;;;; The record of a top-level form: its findings, its effects on the compiler's knowledge, and the
;;;; names and the knowledge that its compilation used. Only the record of a form is kept. It shows
;;;; whether an edit elsewhere changes the form's findings.
;;;;
;;;; In the records that the keeper of the chain has, names are keys: numbers that the keeper has
;;;; assigned to strings (`name-key`). Between processes the strings themselves are sent.

(in-package :consort)

(defstruct (form-record (:conc-name record-))
  (start 0 :type fixnum)                ; where reading began: after white space and comments
  (end 0 :type fixnum)
  (span '(0 . 0))                       ; the span of the form itself
  ;; In the order in which they were found, without those that are reported only at the end.
  (findings '())
  ;; ((kind name words finding) ...): names that were undefined at this form.
  (uses '())
  ;; ((name keyword finding) ...): keywords that no method had accepted at this form.
  (keyword-uses '())
  (methods '())                         ; ((name digest keywords) ...): T for all keywords
  (defines '())                         ; ((kind name root) ...)
  ;; ((name main-before assumed-before main-after assumed-after opaque) ...)
  (effects '())
  (mentions '())                        ; names
  (global 0)                            ; digest, after the form, of the state that has no names
  (opaque nil)                          ; code other than SBCL's own ran at compile time
  (read-eval nil)                       ; code may have run at read time
  (name nil)                            ; the defined name, printed
  (digest 0)                            ; digest of the form as read
  (unread-name nil)                     ; the name that the form, which cannot be read, would define
  (compiled nil)                        ; true if the form could be read
  (in-package nil)                      ; true for an IN-PACKAGE form
  (lost nil))                           ; true if later names cannot be judged

(defun words-of-symbol (symbol)
  "The string of the key of SYMBOL: its package's name, a colon, and its name."
  (let ((package (symbol-package symbol)))
    (concatenate 'string (if package (package-name package) "#") ":" (symbol-name symbol))))

(defun words-of-name (name)
  "The string of the key of NAME, a symbol or a list like (setf f)."
  (if (symbolp name)
      (words-of-symbol name)
      (with-standard-io-syntax
        (let ((*print-readably* nil) (*package* (find-package :keyword)))
          (prin1-to-string name)))))

(defun words-of-definition (form)
  "The name that FORM defines, as a string; NIL when it defines none."
  (multiple-value-bind (name named) (ignore-errors (defined-name form))
    (and named (ignore-errors (words-of-name name)))))

(defun method-keywords (lambda-list)
  "The names of the keywords that a method with LAMBDA-LIST accepts; T if it accepts all."
  (if (member '&allow-other-keys lambda-list)
      t
      (mapcar #'symbol-name (keyword-parameters lambda-list))))

(defun image-takes-keyword-p (name keyword)
  "Returns true if a method of NAME in the image accepts KEYWORD."
  (handler-case (method-takes-keyword-p name keyword)
    (error () nil)))

(defun make-record (check recorder start end state uses-before)
  "The record of the form from START to END. STATE says whether it was compiled or could not be
  read. USES-BEFORE are the uses of undefined names by earlier forms. Names in the record are
  strings."
  (let* ((form (and (eq state :form) (check-form check)))
         (digest (if (eq state :form) (object-digest form) (string-digest (subseq (check-text check) start end)))))
    (setf *form-recorder* nil)
    (make-form-record
     :start start :end end :span (form-span check)
     :findings (reverse (recording-findings recorder))
     :uses (reverse (loop for tail on (check-undefined check)
                          until (eq tail uses-before)
                          collect (let* ((use (first tail)) (name (undefined-use-name use)) (symbol (if (consp name) (car (last name)) name)))
                                    (list (symbol-name (undefined-use-kind use)) (words-of-name name) (if (symbolp symbol) (symbol-name symbol) "")
                                          (undefined-use-finding use)))))
     :keyword-uses (loop for (name keyword finding) in (reverse (recording-keyword-uses recorder))
                         unless (image-takes-keyword-p name keyword)
                           collect (list (words-of-name name) (symbol-name keyword) finding))
     :methods (loop for (name . more) in (recording-methods recorder)
                    collect (list (words-of-name name) (object-digest more) (method-keywords (third more))))
     :defines (loop for (kind . name) in (recording-defined recorder)
                    collect (list (symbol-name kind) (words-of-name name) (words-of-symbol (or (root-symbol name) kind))))
     :effects (loop for (symbol . digests) in (take-effects recorder digest) collect (cons (words-of-symbol symbol) digests))
     :mentions (loop for symbol being each hash-key of (recording-mentions recorder)
                     unless (system-owned-p symbol) collect (words-of-symbol symbol))
     :global (global-digest check)
     :opaque (recording-opaque recorder)
     :read-eval (and (search "#." (check-text check) :start2 start :end2 end) t)
     :name (words-of-definition form)
     :digest digest
     :unread-name (and (eq state :unreadable)
                       (let ((token (definition-name (check-text check) start))) (and token (plain-name token))))
     :compiled (eq state :form)
     :in-package (in-package-form-p form)
     :lost (and (check-lost-package check) t))))

;;; Between processes

(defun record-json (record)
  "RECORD, whose names are strings, as a value for JSON."
  (flet ((findings (list)
           (loop for finding in list
                 collect (append (finding-json finding) (and (finding-follows finding) (list "follows" :true))))))
    (vector (vector (record-start record) (record-end record) (car (record-span record)) (cdr (record-span record)))
            (findings (record-findings record))
            (loop for (kind name words finding) in (record-uses record) collect (list kind name words (finding-json finding)))
            (loop for (name keyword finding) in (record-keyword-uses record) collect (list name keyword (finding-json finding)))
            (loop for (name digest keywords) in (record-methods record) collect (list name digest (if (eq keywords t) :true keywords)))
            (record-defines record)
            (loop for (name a b c d opaque) in (record-effects record) collect (list name a b c d (bool opaque)))
            (record-mentions record)
            (record-global record)
            (bool (record-opaque record)) (bool (record-read-eval record))
            (or-null (record-name record))
            (record-digest record)
            (or-null (record-unread-name record))
            (bool (record-compiled record)) (bool (record-in-package record)) (bool (record-lost record)))))

(defun json-value (value)
  "VALUE, a value read from JSON, with NIL for null and false, and T for true."
  (case value ((:null :false) nil) (:true t) (t value)))

(defun json-list (value) (coerce value 'list))

(defun finding-of-json (json)
  "The finding that FINDING-JSON has converted to this JSON."
  (flet ((span (value) (and (vectorp value) (cons (aref value 0) (aref value 1))))
         (of (name) (json-value (field json name :null))))
    (make-finding :start (aref (field json "span") 0) :end (aref (field json "span") 1)
                  :severity (intern (string-upcase (field json "severity")) :keyword)
                  :code (field json "code") :message (field json "message")
                  :condition (of "condition") :form (of "form") :toplevel (span (field json "toplevel"))
                  :follows (of "follows")
                  :tags (loop for tag across (field json "tags") collect (intern (string-upcase tag) :keyword))
                  :related (loop for place across (field json "related")
                                 for span = (field place "span")
                                 collect (list* (aref span 0) (aref span 1) (field place "message")
                                                (let ((file (field place "file"))) (and file (list file)))))
                  :data (let ((data (field json "data")))
                          (and (object-p data) (loop for (key value) on (rest data) by #'cddr collect key collect (json-value value)))))))

(defun record-of-json (json)
  "The record that RECORD-JSON has converted to this JSON."
  (destructuring-bind (places findings uses keyword-uses methods defines effects mentions global opaque read-eval name digest unread-name compiled in-package lost)
      (json-list json)
    (make-form-record
     :start (aref places 0) :end (aref places 1) :span (cons (aref places 2) (aref places 3))
     :findings (map 'list #'finding-of-json findings)
     :uses (map 'list (lambda (use) (list (aref use 0) (aref use 1) (aref use 2) (finding-of-json (aref use 3)))) uses)
     :keyword-uses (map 'list (lambda (use) (list (aref use 0) (aref use 1) (finding-of-json (aref use 2)))) keyword-uses)
     :methods (map 'list (lambda (method) (list (aref method 0) (aref method 1) (if (eq (aref method 2) :true) t (json-list (aref method 2))))) methods)
     :defines (map 'list #'json-list defines)
     :effects (map 'list (lambda (effect) (let ((list (json-list effect))) (append (butlast list) (list (json-value (first (last list))))))) effects)
     :mentions (json-list mentions)
     :global global :opaque (json-value opaque) :read-eval (json-value read-eval) :name (json-value name) :digest digest :unread-name (json-value unread-name)
     :compiled (json-value compiled) :in-package (json-value in-package) :lost (json-value lost))))

;;; Moving

(defun moved-finding (finding edge distance)
  "A copy of FINDING in which the places at or after EDGE are moved by DISTANCE."
  (flet ((move (position) (if (>= position edge) (+ position distance) position)))
    (let ((copy (copy-finding finding)) (toplevel (finding-toplevel finding)))
      (setf (finding-start copy) (move (finding-start finding))
            (finding-end copy) (move (finding-end finding))
            (finding-toplevel copy) (and toplevel (cons (move (car toplevel)) (move (cdr toplevel))))
            (finding-related copy) (loop for (start end . more) in (finding-related finding)
                                         collect (if (second more) (list* start end more) (list* (move start) (move end) more))))
      copy)))
