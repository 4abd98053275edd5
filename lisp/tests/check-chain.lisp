;;;; Chains: records and digests, what grandchildren find against whole checks, what the key of
;;;; clone is worth, and that nothing is left behind.
;;;;
;;;;   sbcl --noinform --non-interactive --no-userinit --load lisp/tests/check-chain.lisp
;;;;
;;;; Needs the sources of Debian's package cl-ppcre for the random edits, which are otherwise left
;;;; out. CONSORT_EDITS says how many there are of each file (6 when it does not), CONSORT_SEED with
;;;; which random numbers, CONSORT_EDIT_FILES which files of Debian's sources: `make differential`
;;;; sets them.

(load (merge-pathnames "chain-edits.lisp" *load-truename*))
(load (merge-pathnames "chain-ways.lisp" *load-truename*))

(in-package :consort)

(defun chain-here-p ()
  "Returns true if there are chains on this system."
  (and (chain-internals-p) (can-copy-p) (seccomp-p) (plusp (landlock-abi))))

(unless (chain-here-p)
  (format t "~&SKIPPED: there are no chains here~%")
  (finish-tests "chains" :skipped t))

(defun process-there-p (pid)
  "Returns true if there is a process PID that has not ended."
  (handler-case (not (process-ended-p pid))
    (error () nil)))

;;; Digests

(test "digests"
  (flet ((same (a b) (= (object-digest a) (object-digest b))))
    (expect (same '(defun f (x) "a" #\b 1 1.5) (list 'defun 'f (list 'x) (copy-seq "a") #\b 1 1.5)) "equal forms have one digest")
    (expect (same (list (make-symbol "G1") 2) (list (make-symbol "G1") 2)) "made-up names count by their words")
    (loop for (a b) in '(((a b) (a . b)) ((a (b)) ((a) b)) ("a" a) (1 1.0) (1.0 1d0) ((1 2) (2 1)) (#\a "a") (nil (nil)) (#(1 2) (1 2)) (:a cl-user::a))
          do (expect (not (same a b)) (format nil "~S and ~S have two digests" a b)))
    ;; Objects that are compared by their text.
    (flet ((filled (last &aux (array (make-array '(1 200) :initial-element 1)))
             (setf (aref array 0 199) last)
             array)
           (deep (last) (loop repeat 20 for form = (vector last 2) then (make-array '(1 1) :initial-element form) finally (return form))))
      (expect (same (make-array '(1 20) :initial-element 1) (make-array '(1 20) :initial-element 1)) "equal arrays have one digest")
      (expect (not (same (filled 1) (filled 2))) "a part that is not printed because of its place makes a difference")
      (expect (not (same (deep 1) (deep 2))) "a part that is not printed because of its depth makes a difference"))
    (let ((long (make-list (+ 2 +digest-limit+))) (other (make-list (+ 2 +digest-limit+))))
      (setf (car (last other)) 'end)
      (expect (not (same long other)) "an element behind the last that is digested makes a difference"))
    (expect (integerp (object-digest (let ((list (list 1 2))) (setf (cdr (last list)) list)))) "a circular list has a digest")))

;;; Messages

(test "messages"
  (let ((pipe (new-pipe)))
    (flet ((put (text)
             (let ((octets (coerce (sb-ext:string-to-octets text :external-format :utf-8) 'octets)))
               (write-octets (pipe-writer pipe) octets 0 (length octets)))))
      (put (format nil "no JSON~%{\"a\": 1}~%"))
      (sb-posix:close (pipe-writer pipe))
      (let ((reader (make-line-reader (pipe-reader pipe))))
        (expect (eql 1 (field (next-message reader) "a")) "a line that is no JSON is not the end")
        (expect (null (next-message reader)) "the end of the pipe is")))))

(test "a-key-that-is-not-read-is-not-written"
  (let ((keys (new-pipe)) (other (new-pipe)))
    (sb-posix:close (pipe-writer keys))
    (expect (eql -1 (fork-with-key (pipe-reader keys) (pipe-writer other))) "without a key nothing is forked")
    (expect (not (wait-until-fd-usable (pipe-reader other) :input 0 nil)) "what is no key is not written")))

;;; Records

(test "records-between-processes"
  (let* ((finding (make-finding :start 3 :end 5 :severity :style-warning :code "style" :message "a" :toplevel '(1 . 9) :tags '(:unnecessary)
                                :related '((10 12 "here") (1 2 "there" "/x")) :data '("symbol" "F")))
         (record (make-form-record :start 1 :end 9 :span '(2 . 9) :findings (list finding) :uses (list (list "FUNCTION" "A:B" "B" finding))
                                   :keyword-uses (list (list "A:G" "K" finding)) :methods '(("A:G" 12 t) ("A:H" 13 ("X")))
                                   :defines '(("FUNCTION" "A:F" "A:F")) :effects '(("A:F" 1 2 3 4 t)) :mentions '("A:B") :global 7 :opaque t
                                   :read-eval t :name "A:F" :digest (1- (expt 2 62)) :unread-name "F" :compiled t :in-package nil :lost t))
         (again (record-of-json (multiple-value-bind (octets end) (json-octets (record-json record)) (parse-json octets 0 end)))))
    (expect (equalp record again) "a record goes from one process to another as it is")
    (let ((moved (moved-finding finding 4 100)))
      (expect (equal (list (finding-start moved) (finding-end moved) (finding-toplevel moved) (finding-related moved))
                     '(3 105 (1 . 109) ((110 112 "here") (1 2 "there" "/x"))))
              "a finding moves with what is behind an edit, and places in other files do not"))))

(test "dependents"
  (flet ((record (&rest more) (apply #'make-form-record more)))
    ;; F is 1, G is 2.
    (let* ((defines-f (record :effects '((1 0 0 10 0)) :digest 1 :name 1 :global 5))
           (uses-f (record :mentions '(1) :digest 2 :global 5))
           (other (record :mentions '(2) :digest 3 :global 5))
           (base (vector defines-f uses-f other))
           (users (let ((table (make-hash-table))) (setf (gethash 1 table) '(1) (gethash 2 table) '(2)) table)))
      (flet ((dependent (new) (last-dependent base users 0 1 0 0 (list new))))
        (expect (null (dependent (record :effects '((1 0 0 10 0)) :digest 9 :name 1 :global 5))) "the same effect by another form: no dependents")
        (expect (eql 1 (dependent (record :effects '((1 0 0 11 0)) :digest 9 :name 1 :global 5))) "another effect: who mentions the name")
        (expect (eql 1 (dependent (record :digest 9 :name 1 :global 5))) "no effect any more: who mentions the name")
        (expect (eql 2 (dependent (record :effects '((1 0 0 10 0)) :digest 9 :name 1 :global 6))) "another policy: all that follow")
        (expect (eql 2 (dependent (record :effects '((1 0 0 10 0)) :digest 9 :name 1 :global 5 :opaque t))) "code of the user's ran: all that follow")
        (expect (eql 2 (dependent (record :effects '((1 0 0 10 0)) :methods '((2 4 ())) :digest 9 :name 1 :global 5)))
                "another method: who mentions the generic function")))
    (let* ((use (list "FUNCTION" 1 "F" (make-finding :start 5 :end 6 :code "undefined-function" :message "F")))
           (uses (record :uses (list use))) (defines (record :defines '(("FUNCTION" 1 1)))))
      (expect (= 1 (length (findings-at-end (list uses) '()))) "a name that nothing defines")
      (expect (null (findings-at-end (list uses defines) '())) "a name that a later form defines")
      (expect (= 1 (length (findings-at-end (list defines uses) '()))) "a name that was defined and is not any more")
      (expect (null (findings-at-end (list uses) '("F"))) "a name that a withheld form defines")
      (expect (null (findings-at-end (list uses (record :unread-name "F")) '())) "a name that an unreadable form defines")
      (expect (null (findings-at-end (list uses (record :lost t)) '())) "names mean nothing"))))

;;; Edits of a small text

(defparameter *text*
  (coerce "(defpackage :chained (:use :cl))
(in-package :chained)
(defvar *registry* '())
(defun f (a) (g a))
(defmacro m (x) `(list ,x))
(eval-when (:compile-toplevel :load-toplevel :execute)
  (defparameter *table* '(1 2)))
(defmacro n () `(list ,@*table*))
(defun h (a b) (m a))
(defun g (x) (f x 2))
(defstruct point (x 0 :type fixnum) y)
(defun k () (m (undefined-thing (n))))
(defgeneric area (shape &key))
(defmethod area ((shape point) &key unit) (list unit (point-x shape)))
(defun big (p) (area p :scale 2))
(declaim (inline twice))
(defun twice (x) (* 2 x))
(defun four () (twice \"a\"))
; the end
" 'text))

(defparameter *edits*
  '(("(m a)" "(m a) b") ("`(list ,x)" "`(car ,x)") ("(x) `(list" "(x y) `(list") ("undefined-thing" "g") ("defun g" "defun gg") ("(f x 2)" "(f x)")
    ("'(1 2)))" "'(1 . 2)))") ("(x 0 :type fixnum)" "(z 0 :type fixnum)") ("&key unit" "&key scale") ("&key unit" "&key unit &allow-other-keys") ("(* 2 x)" "(car x)")
    ("\"a\"" "3") ("(defun k" "(declaim (optimize (debug 3)))
(defun k") ("(defvar *registry* '())" "") ("; the end" "(four 1)") ("; the end" "; no") ("(defun h (a b) (m a))" "(defun h (a b) (m a)") ("(g a)" "(g a) #|") ("(defmacro n ()" "(defmacro n (a)")
    ("(defun f (a) (g a))" "(defun f (a) (nowhere::g a))") ("(in-package :chained)" "(in-package :elsewhere)") ("'(1 2)))" "'(1 2)) (error \"no\"))")
    ("(defun g (x) (f x 2))" "(defun g (x) (f x 2)) (defun g (y) y)") ("(defgeneric area (shape &key))" "") ("(defun four" "(defun f") ("(defun four" "(defgeneric (setf size) (value shape))
(defmethod (setf size) (value (shape point)) value)
(defun four")))

(test "edits"
  (let ((chain (start-chain *text* :spacing 0)) (finals 0))
    (expect chain "a chain stands")
    (expect (equal (host-findings chain) (whole-facts *text*)) "it is a check")
    (loop for (old new) in *edits*
          for text = (text-with *text* old new)
          for whole = (whole-facts text)
          do (multiple-value-bind (final first answers) (ask-chain chain text)
               (declare (ignore first))
               (expect (or (eq final :whole) (equal final whole))
                       (format nil "~S for ~S: ~S, and whole ~S" new old (and (listp final) (set-difference final whole :test #'equal))
                               (and (listp final) (set-difference whole final :test #'equal))))
               (when (listp final) (incf finals))
               (when (equal old "(m a)") (expect (eql answers 1) "without dependents there is one answer"))
               (when (equal old "`(list ,x)") (expect (eql answers 2) "with dependents there are two"))))
    (expect (>= finals 20) (format nil "most edits take no whole check: ~D" finals))
    (expect (eq :whole (ask-chain chain (text-with *text* "(in-package :chained)" "(in-package :cl-user)"))) "an IN-PACKAGE takes a whole check")
    (expect (equal (ask-chain chain *text*) (host-findings chain)) "back to the base text")
    ;; A form that is withheld counts as defining its name.
    (let* ((text (text-with *text* "(defun g (x) (f x 2))" "(defun g (x) (f x 2)")) (start (search "(defun g" text)) (end (search "(defstruct" text)))
      (expect (notany (lambda (finding) (search "Undefined function: G" (fourth finding))) (ask-chain chain text :withheld (vector (vector start end))))
              "a withheld definition is no missing one"))
    (expect (equal (multiple-value-list (stop-chain chain)) '(0 nil)) "it ends in order")
    (expect (notany #'process-there-p (host-pids chain)) "and leaves no process behind")))

;;; Each way in which a form reaches others

(test "ways"
  (loop for (what text . edits) in *ways* do (test-way what text edits)))

;; A chain whose keeper is killed ends when the image says so, all of it.
(test "keeper-killed"
  (let ((chain (start-chain *text* :spacing 0)))
    (sb-posix:kill (first (host-pids chain)) sb-posix:sigkill)
    (expect (null (read-report-line (host-stream chain))) "the host sees that the keeper is gone")
    (setf (host-broken chain) t)
    (stop-chain chain)
    (expect (loop with end = (+ (get-universal-time) *patience*)
                  thereis (notany #'process-there-p (host-pids chain))
                  until (> (get-universal-time) end)
                  do (sleep 0.01))
            "nothing is left of a chain whose keeper was killed")))

;; A form that never ends does so for the grandchild alone.
(test "never-ends"
  (let ((chain (start-chain *text* :spacing 0 :deadline 10)))
    (let ((found (ask-chain chain (text-with *text* "(defun h (a b)" "(eval-when (:compile-toplevel) (loop (sleep 1)))
(defun h (a b)"))))
      (expect (and (listp found) (find "out-of-time" found :key #'third :test #'string=)) (format nil "a form that never ends is left: ~S" found)))
    (expect (equal (ask-chain chain *text*) (host-findings chain)) "and the chain still stands")
    (stop-chain chain)))

;; A file of a system that is not loaded: what is held back is settled as a whole check does.
(test "unloaded-system"
  (call-with-scratch
   (lambda (directory)
     (flet ((file (name) (concatenate 'string directory name))
            (put (name text) (with-open-file (out (concatenate 'string directory name) :direction :output) (write-string text out))))
       (put "unloaded.asd" "(asdf:defsystem \"unloaded\" :components ((:file \"one\") (:file \"two\" :depends-on (\"one\"))))")
       (put "one.lisp" "(defpackage :unloaded (:use :cl)) (in-package :unloaded) (defun one () 1)")
       (let* ((text (coerce "(in-package :cl-user)
(defun two (x y) (unloaded-one x))
(defun three (x) (two x))
" 'text))
              (path (file "two.lisp")) (asd-files (list (file "unloaded.asd")))
              (chain (progn (put "two.lisp" text) (start-chain text :path path :asd-files asd-files :spacing 0))))
         (expect (find "system-not-loaded" (host-findings chain) :key #'third :test #'string=) "a file of a system that is not loaded")
         (loop for (old new) in '(("(two x)" "(two x x)") ("(unloaded-one x)" "x") ("(defun three" "(defun other () (nothing))
(defun three"))
               for edited = (text-with text old new)
               do (expect (equal (ask-chain chain edited) (whole-facts edited :path path :asd-files asd-files)) (format nil "an edit of it: ~S" new)))
         (stop-chain chain))))))

;;; Random edits of real files

(defparameter *sources* "/usr/share/common-lisp/source/")

(defun load-for-edits (systems)
  "Load SYSTEMS, the names of directories of *SOURCES*, as far as there are systems of these names."
  (handler-bind ((warning #'muffle-warning))
    (let ((*standard-output* (make-broadcast-stream)) (*error-output* (make-broadcast-stream)))
      (dolist (system systems)
        (let ((name (find-if (lambda (name) (ignore-errors (asdf:find-system name nil)))
                             (list system (if (eql 0 (search "cl-" system)) (subseq system 3) system)))))
          (when name (asdf:load-system name)))))))

;; A name with `!` before it: its system is not loaded.
(test "real-files"
  (let* ((words (let ((names (sb-posix:getenv "CONSORT_EDIT_FILES"))) (if (plusp (length names)) (uiop:split-string names) '("cl-ppcre/util" "cl-ppcre/lexer" "!rfc2388/rfc2388"))))
         (count (parse-integer (or (sb-posix:getenv "CONSORT_EDITS") "6")))
         (files (loop for word in words collect (cons (string-left-trim "!" word) (char= #\! (char word 0)))))
         (present (remove-if-not (lambda (file) (probe-file (concatenate 'string *sources* (car file) ".lisp"))) files)))
    (setf *random* (sb-ext:seed-random-state (parse-integer (or (sb-posix:getenv "CONSORT_SEED") "7"))))
    (asdf:initialize-source-registry `(:source-registry (:tree ,*sources*) :ignore-inherited-configuration))
    (let ((fasls (sb-posix:getenv "CONSORT_TEST_FASLS")))
      (when fasls
        (asdf:initialize-output-translations `(:output-translations (t (,(concatenate 'string fasls "/") :implementation)) :ignore-inherited-configuration))))
    (flet ((directory-of (name) (subseq name 0 (position #\/ name))))
      (load-for-edits (remove-duplicates (loop for (name . unloaded) in present unless unloaded collect (directory-of name)) :test #'string=))
      (loop for (name . unloaded) in present
            do (test-file (parse-namestring (concatenate 'string *sources* name ".lisp")) count
                          :asd-files (and unloaded
                                          (mapcar #'uiop:native-namestring (directory (concatenate 'string *sources* (directory-of name) "/*.asd")))))))
    (when present (report-outcomes))
    (expect (null *differences*) (format nil "~D edits of real files differ from whole checks" (length *differences*)))))

(finish-tests "chains")
