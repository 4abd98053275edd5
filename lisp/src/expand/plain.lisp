;;;; Expansions that need no copy: those of standard macros over names that have no meaning. A copy
;;;; costs some milliseconds, and most requests are for LOOP, SETF and WITH-OPEN-FILE.
;;;;
;;;; Reasons why this runs no code of the user's and changes nothing in the image:
;;;; 1. The text is read by the reader below. It knows lists, integers, strings, quotes and symbols,
;;;;   and gives up at any other syntax. It is used only if the readtable in force reads each
;;;;   character of the text as the standard's does. It interns nothing: for a name of which the
;;;;   package has no symbol, it makes a symbol of no package, which is printed as it was written.
;;;; 2. An existing symbol must be of the standard, or inert: it is no macro, symbol macro, type or
;;;;   class, and has no way to be set. The standard's expanders may look up all of these, and then
;;;;   find nothing of the user's.
;;;; 3. Only macros in *PLAIN-MACROS* are expanded, whose expanders change nothing, and those macros
;;;;   of SBCL's own that they expand to. SBCL locks both, and the former are checked to be still
;;;;   SBCL's. A MACROLET would have to be compiled, so it is left to a copy, as is every request
;;;;   while there is a *MACROEXPAND-HOOK*.

(in-package :consort)

(define-global *plain-macros*
    (mapcar (lambda (name) (cons name (macro-function name)))
            '(and case ccase cond decf defun destructuring-bind do do* dolist dotimes ecase handler-bind handler-case ignore-errors incf lambda loop
              multiple-value-bind multiple-value-list multiple-value-setq nth-value or pop prog prog* prog1 prog2 psetf psetq push pushnew return
              rotatef setf shiftf unless when with-input-from-string with-open-file with-open-stream with-output-to-string with-slots))
  "Macros of the standard whose expansion reads and changes nothing, each with its original macro
  function.")

(defvar *homeless* '() "Symbols of no package for names that do not exist yet.")

(defun homeless-p (object)
  (and (symbolp object) (member object *homeless* :test #'eq) t))

(define-global *plain-dispatch*
    (let ((table (copy-pprint-dispatch nil)))
      (set-pprint-dispatch '(and symbol (satisfies homeless-p))
                           (lambda (stream symbol)
                             (write-string (if (eq *print-case* :downcase) (string-downcase (symbol-name symbol)) (symbol-name symbol)) stream))
                           0 table)
      table)
  "The standard's pprint dispatch table, in which homeless symbols are printed without a prefix.")

(defun give-up () (throw 'not-plain nil))

(defun standard-syntax-p (text)
  "Returns true if each character of TEXT is read as in standard syntax, as far as the reader below
  supports that."
  (let ((standard (load-time-value (copy-readtable nil))))
    (and (eq (readtable-case *readtable*) :upcase)
         (= *read-base* 10)
         (loop for char across (remove-duplicates text)
               always (and (eq (get-macro-character char) (get-macro-character char standard))
                           (or (member char '(#\Space #\Newline #\( #\) #\' #\"))
                               ;; A character that became white space would end the token.
                               (= 3 (nth-value 1 (let ((*read-suppress* t))
                                                   (read-from-string (coerce (list #\x char #\x) 'string)))))))))))

(defun inert-p (symbol)
  "Returns true if SYMBOL has no meaning for an expander."
  (not (or (macro-function symbol)
           (special-operator-p symbol)
           (info :type :kind symbol)    ; VALID-TYPE-SPECIFIER-P would run its expander
           (find-class symbol nil)
           (compiler-macro-function symbol)
           (fboundp `(setf ,symbol))
           (info :setf :expander symbol)
           (nth-value 1 (macroexpand-1 symbol))
           (info :function :inlining-data symbol))))

(defun plain-symbol (name package)
  "The symbol with the upper-case NAME in PACKAGE, or a homeless symbol."
  (multiple-value-bind (symbol status) (find-symbol name package)
    (cond ((null status)
           (or (find name *homeless* :key #'symbol-name :test #'string=)
               (let ((symbol (make-symbol name)))
                 (push symbol *homeless*)
                 symbol)))
          ((eq (symbol-package symbol) (load-time-value (find-package "COMMON-LISP"))) symbol)
          ((inert-p symbol) symbol)
          (t (give-up)))))

(defun plain-token (token package)
  "The object that TOKEN is read as."
  (cond ((and (every #'digit-char-p token) (< (length token) 100)) (parse-integer token))
        ((member token '("+" "-" "*" "/" "1+" "1-") :test #'string=) (plain-symbol token package))
        ;; A token that may be a number, or a name with a package.
        ((or (find (char token 0) "0123456789+-.") (find #\: token :start 1)) (give-up))
        ((char= (char token 0) #\:) (or (find-symbol (string-upcase (subseq token 1)) "KEYWORD") (give-up)))
        (t (plain-symbol (string-upcase token) package))))

(defun read-plain (text package)
  "The one form in TEXT."
  (let ((at 0) (depth 0))
    (declare (type fixnum at depth))
    (labels ((peek () (if (< at (length text)) (char text at) (give-up)))
             (skip () (loop while (and (< at (length text)) (member (char text at) '(#\Space #\Newline))) do (incf at)))
             (form ()
               (skip)
               (case (peek)
                 (#\( (incf at) (if (> (incf depth) 100) (give-up) (prog1 (elements) (decf depth))))
                 (#\' (incf at) (list 'quote (form)))
                 (#\" (let ((end (or (position #\" text :start (1+ at)) (give-up))))
                        (prog1 (subseq text (1+ at) end) (setf at (1+ end)))))
                 (#\) (give-up))
                 (t (let ((end (or (position-if (lambda (char) (find char " ()'\"
")) text :start at)
                                   (length text))))
                      (prog1 (plain-token (subseq text at end) package) (setf at end))))))
             (elements ()
               (loop do (skip)
                     until (char= (peek) #\))
                     collect (form)
                     finally (incf at))))
      (prog1 (form)
        (skip)
        (when (< at (length text)) (give-up))))))

(defun plain-macro-p (symbol)
  "Returns true if SYMBOL's macro may be expanded here."
  (let ((package (symbol-package symbol)))
    (if (eq package (load-time-value (find-package "COMMON-LISP")))
        (let ((known (assoc symbol *plain-macros* :test #'eq)))
          (and known (eq (cdr known) (macro-function symbol))))
        (and package
             (sb-ext:package-locked-p package)
             (eql 0 (search "SB-" (package-name package)))))))

(defun check-plain (form environment)
  "Gives up where the expansion of FORM would require more than expanding a plain macro."
  (let ((operator (and (consp form) (first form))))
    (when (or (eq operator 'macrolet)
              (and operator (symbolp operator) (macro-function operator environment) (not (plain-macro-p operator))))
      (give-up))))

(defun plain-expansion (params)
  "The JSON of the answer, as from EXPANSION-FACTS, made without a copy; NIL if it needs one."
  (let* ((text (field params "text"))
         (package (find-package-named (field params "package" "COMMON-LISP-USER")))
         (full (equal (field params "how") "full"))
         (*package* package)
         (*readtable* (setting *image-settings* '*readtable*))
         (*read-base* (setting *image-settings* '*read-base*))
         (*read-default-float-format* (setting *image-settings* '*read-default-float-format*))
         (*homeless* '())
         (*expansions* 0)
         (*gensym-counter* 1))
    (catch 'not-plain
      (handler-case
          (progn
            (unless (and (< (length text) 2000)
                         (every (lambda (char) (or (char= char #\Newline) (and (char<= #\Space char #\~) (not (find char "#;`,|\\"))))) text)
                         (eq *macroexpand-hook* 'funcall)
                         (standard-syntax-p text))
              (give-up))
            (let* ((form (read-plain text package))
                   (expansion (let ((*before-expansion* #'check-plain))
                                (expanded form nil full)))
                   (expanded (plusp *expansions*)))
              (with-standard-io-syntax
                (let ((*package* package)
                      (*print-pprint-dispatch* *plain-dispatch*))
                  (object "form" (abbreviate form)
                          "expansion" (code-text expansion :dispatch *plain-dispatch*)
                          "omitted" 0
                          "expanded" (bool expanded)
                          "writable" (bool t)
                          "span" (span-json 0 (length text))
                          "more" (bool nil))))))
        ;; A copy reports the error with its usual message.
        (error () nil)))))

(define-operation "macroexpand-plain" :query (id params)
  (param params "text" 'string)
  (object "answer" (or-null (plain-expansion params))))
