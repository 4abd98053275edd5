;;;; Completion of a partial name, best candidate first.

(in-package :consort)

(deftype name-string () '(simple-array character (*)))

(defmacro with-characters ((name) &body body)
  "Runs BODY, which is compiled for each type of string that NAME, a symbol's name, may be."
  `(etypecase ,name
     ((simple-array character (*)) ,@body)
     (simple-base-string ,@body)))

(declaim (inline same-char))
(defun same-char (wanted char)
  "Returns true if CHAR of a symbol's name matches the typed character WANTED, which is upper-case."
  (or (char= wanted char)
      (let ((code (char-code char)))
        ;; Most names consist only of these characters, and CHAR-UPCASE is slow.
        (if (< code 128)
            (and (<= 97 code 122) (= (char-code wanted) (- code 32)))
            (char= wanted (char-upcase char))))))

(declaim (inline separator-p))
(defun separator-p (char)
  (or (char= char #\-) (char= char #\/) (char= char #\.) (char= char #\*) (char= char #\+) (char= char #\%)))

(defmacro define-matcher (name (pattern text) documentation &body body)
  `(defun ,name (,pattern ,text)
     ,documentation
     (declare (optimize (speed 1) (safety 0)) (type name-string ,pattern) (type simple-string ,text))
     (let ((size (length ,pattern)))
       (declare (ignorable size))
       (with-characters (,text) (let ((length (length ,text))) (declare (ignorable length)) ,@body)))))

(define-matcher prefix-p (pattern text)
    "Returns true if TEXT begins with PATTERN."
  (and (<= size length)
       (loop for i of-type index from 0 below size
             always (same-char (schar pattern i) (schar text i)))))

(define-matcher words-match-p (pattern text)
    "Returns true if each word of PATTERN, between hyphens, begins the word of TEXT at the same
    position, as in M-V-B or MULT-VAL-BI."
  (let ((at 0))
    (declare (type index at))
    (loop for i of-type index from 0 below size
          for wanted = (schar pattern i)
          do (if (char= wanted #\-)
                 (let ((next (loop for j of-type index from at below length
                                   when (char= (schar text j) #\-) return j)))
                   (if next (setf at (1+ next)) (return nil)))
                 (if (and (< at length) (same-char wanted (schar text at)))
                     (incf at)
                     (return nil)))
          finally (return t))))

(define-matcher initials-p (pattern text)
    "Returns true if the characters of PATTERN begin the words of TEXT in order, as in MVB."
  (let ((at 0) (start t))
    (declare (type index at))
    (loop for i of-type index from 0 below size
          for wanted = (schar pattern i)
          do (loop
               (when (>= at length) (return-from initials-p nil))
               (let* ((char (schar text at))
                      (here start))
                 (setf start (separator-p char))
                 (incf at)
                 (when (and here (not (separator-p char)))
                   (if (same-char wanted char)
                       (return)
                       (return-from initials-p nil)))))
          finally (return t))))

(define-matcher inside-position (pattern text)
    "Returns the position of PATTERN in TEXT, but not at its start. A position at the beginning of a
  word is preferred."
  (let ((found nil))
    (loop for at of-type index from 1 to (- length size)
          do (when (loop for i of-type index from 0 below size
                         always (same-char (schar pattern i) (schar text (+ at i))))
               (when (separator-p (schar text (1- at)))
                 (return-from inside-position at))
               (unless found (setf found at))))
    found))

(define-matcher scattered-p (pattern text)
    "Returns true if PATTERN's characters are in TEXT in this order. The first must be at the start
    of TEXT, or after a separator there, such as *, % or +."
  (let ((at (if (and (plusp length) (separator-p (schar text 0)) (not (separator-p (schar pattern 0)))) 1 0)))
    (declare (type index at))
    (and (< at length)
         (same-char (schar pattern 0) (schar text at))
         (loop for i of-type index from 1 below size
               for wanted = (schar pattern i)
               do (incf at)
                  (loop (when (>= at length) (return-from scattered-p nil))
                        (when (same-char wanted (schar text at)) (return))
                        (incf at))
               finally (return t)))))

(defun match-score (pattern text)
  "Returns the score of a symbol's name TEXT for PATTERN, upper-case. A greater score is better. NIL
  if TEXT does not fit."
  (declare (type name-string pattern) (type simple-string text))
  (let* ((size (length pattern))
         (over (min 80 (- (length text) size))))
    (cond ((zerop size) 500)
          ((minusp over) nil)
          ((prefix-p pattern text) (if (zerop over) 1000 (- 900 over)))
          ((and (several-words-p pattern) (words-match-p pattern text)) (- 800 over))
          ((< size 2) nil)
          ((initials-p pattern text) (- 700 over))
          (t (let ((inside (inside-position pattern text)))
               (cond (inside (- (if (separator-p (schar text (1- inside))) 600 450) over))
                     ((and (> size 2) (scattered-p pattern text)) (- 300 over))))))))

(defun several-words-p (pattern)
  (declare (type name-string pattern))
  (loop for index from 1 below (length pattern)
          thereis (char= (schar pattern index) #\-)))

(defun map-present-symbols (function package &optional external-only)
  "Calls FUNCTION with each symbol that is present in PACKAGE, including internal ones unless
  EXTERNAL-ONLY."
  (declare (type function function))
  (if external-only
      (do-external-symbols (symbol package) (funcall function symbol))
      (with-package-iterator (next package :internal :external)
        (loop (multiple-value-bind (more symbol) (next)
                (unless more (return))
                (funcall function symbol))))))

(defun map-accessible-symbols (function package)
  "Calls FUNCTION with each symbol that can be written without a prefix where PACKAGE is current.
  FUNCTION may also be called with shadowed symbols, and twice with one symbol. DO-SYMBOLS, which
  leaves these out, takes five times as long."
  (map-present-symbols function package)
  (dolist (used (package-use-list package))
    (map-present-symbols function used t)))

(defun collect-candidates (pattern package scope)
  "The symbols of PACKAGE that fit PATTERN, as (SCORE . SYMBOL). SCOPE is :EXTERNAL or :ACCESSIBLE."
  (let ((found '())
        (common-lisp (load-time-value (find-package "COMMON-LISP"))))
    (flet ((consider (symbol)
             (let ((score (match-score pattern (symbol-name symbol))))
               (when score
                 (let ((home (symbol-package symbol)))
                   (push (cons (+ score (cond ((eq home package) 40) ((eq home common-lisp) 30) (t 0))) symbol) found))))))
      (declare (dynamic-extent #'consider))
      (if (eq scope :external)
          (map-present-symbols #'consider package t)
          (map-accessible-symbols #'consider package)))
    (remove-duplicates-of-names (delete-if-not (lambda (candidate)
                                                 (let ((symbol (cdr candidate)))
                                                   (eq (find-symbol (symbol-name symbol) package) symbol)))
                                               found))))

(defun remove-duplicates-of-names (candidates)
  "CANDIDATES without duplicate symbols. A package may get a symbol from several packages that it
  uses."
  (if (null (cdr candidates))
      candidates
      (let ((seen (make-hash-table :test 'eq :size (length candidates))))
        (delete-if (lambda (candidate)
                     (or (gethash (cdr candidate) seen)
                         (progn (setf (gethash (cdr candidate) seen) t) nil)))
                   candidates))))

(defun meaning-score (symbol kind operator-wanted internal)
  "Returns the points that the meaning of SYMBOL adds to its score. A name that was only read has
  few."
  (declare (ignorable symbol))
  (+ (cond ((null kind) -250)
           ((and operator-wanted (member kind '("function" "macro" "generic function" "special operator") :test #'string=)) 15)
           (operator-wanted -15)
           (t 0))
     (if internal -20 0)))

(defun plain-name-p (name)
  "Returns true if NAME is ASCII, has no lower-case letters, and is read as a symbol without
  escapes."
  (declare (optimize speed) (type simple-string name))
  (with-characters (name)
    (loop for char across name
          always (and (char< #\Space char #\Rubout)
                      (not (char<= #\a char #\z))
                      (case char ((#\( #\) #\: #\| #\\ #\" #\' #\; #\, #\` #\#) nil) (t t))))))

(defun written-name (name typed)
  "Returns a symbol's NAME in the case in which a person writes who began with TYPED: upper-case if
  that is upper-case, and otherwise lower-case."
  (let ((plain (plain-name-p (coerce name 'simple-string))))
    (cond ((and (not plain) (string/= name (string-upcase name)))
           (with-standard-io-syntax (let ((*print-readably* nil)) (subseq (prin1-to-string (make-symbol name)) 2))))
          ((and (not plain) (some (lambda (char) (or (find char "():|\\\"';,`#") (char<= char #\Space))) name))
           (let ((printed (with-standard-io-syntax (subseq (prin1-to-string (make-symbol name)) 2))))
             (if (find #\| printed) printed (string-downcase printed))))
          ((and (some #'upper-case-p typed) (notany #'lower-case-p typed)) name)
          (t (string-downcase name)))))

(defun typed-prefix (text)
  "The package prefix of TEXT with its colons, as typed."
  (let ((colon (position #\: text :from-end t)))
    (if colon (subseq text 0 (1+ colon)) "")))

(defun best-candidates (candidates limit)
  "Two values: the best LIMIT of CANDIDATES, best first, and those with equal scores by name; and
  true if there were more."
  (let ((sorted (sort candidates (lambda (a b)
                                   (or (> (the fixnum (car a)) (the fixnum (car b)))
                                       (and (= (the fixnum (car a)) (the fixnum (car b)))
                                            (string< (symbol-name (cdr a)) (symbol-name (cdr b)))))))))
    (if (> (length sorted) limit)
        (values (subseq sorted 0 limit) t)
        (values sorted nil))))

(defun completions (text package limit operator-wanted)
  "The JSON of the completions of TEXT, which was typed where PACKAGE is current."
  (multiple-value-bind (prefix name internal) (parse-name text)
    (let* ((target (if prefix (package-named prefix package) package))
           (pattern (coerce name 'name-string))
           (candidates (and target
                            ;; Even where PKG itself is current, pkg:name can be read only if the
                            ;; symbol is external.
                            (collect-candidates pattern target (if (and prefix (not internal)) :external :accessible))))
           (typed (typed-prefix text)))
      ;; For pkg::name only symbols whose home is PKG count, because those that it merely uses have
      ;; names of their own.
      (when (and prefix internal)
        (setf candidates (delete-if-not (lambda (candidate) (eq (symbol-package (cdr candidate)) target)) candidates)))
      (multiple-value-bind (best more) (best-candidates candidates (* 2 limit))
        (let ((meant (loop for (score . symbol) in best
                           for kind = (main-kind symbol)
                           collect (list* (+ score (meaning-score symbol kind operator-wanted nil)) symbol kind))))
          (setf meant (stable-sort meant #'> :key #'first))
          (object "items" (loop for (nil symbol . kind) in meant
                                repeat limit
                                collect (object "label" (concatenate 'string typed (written-name (symbol-name symbol) text))
                                                "name" (symbol-name symbol)
                                                "package" (let ((home (symbol-package symbol)))
                                                            (if home (package-name home) ""))
                                                "kind" (or kind "symbol")))
                  "incomplete" (bool (or more (nthcdr limit meant)))))))))

(defun package-completions (text package limit)
  "The JSON of the packages whose names or nicknames, including local nicknames of PACKAGE, fit
  TEXT."
  (let* ((pattern (coerce (nth-value 1 (parse-name (string-left-trim "#:" text))) 'name-string))
         (found '()))
    (flet ((consider (name meant)
             (let ((score (match-score pattern (coerce name 'simple-string))))
               (when score (push (list score name meant) found)))))
      (loop for (nickname . meant) in (sb-ext:package-local-nicknames package)
            do (consider (string nickname) meant))
      (dolist (one (list-all-packages))
        (dolist (name (cons (package-name one) (package-nicknames one)))
          (when name (consider name one)))))
    (setf found (sort found (lambda (a b) (or (> (first a) (first b)) (and (= (first a) (first b)) (string< (second a) (second b)))))))
    (object "items" (loop for (nil name meant) in found
                          repeat limit
                          collect (object "label" (written-name name text)
                                          "name" name "package" (package-name meant) "kind" "package"))
            "incomplete" (bool (nthcdr limit found)))))
