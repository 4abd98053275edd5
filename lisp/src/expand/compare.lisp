;;;; `compare-expansions`: determines whether two texts of a form mean the same except for the names
;;;; of local bindings, blocks and tags. Both texts are expanded in full. The expansions, which
;;;; contain only special operators and calls, are compared side by side. This proves a renaming
;;;; whatever macros are around it.

(in-package :consort)

(defvar *old-name* nil "The symbol that is renamed.")
(defvar *new-name* nil "The new name of that symbol.")
(defvar *data-differ* nil "True if constants differ, but only by the renaming.")
(defvar *free-pairs* nil "An EQ table from symbols of no package that nothing binds in the old text
  to those in the new one.")

(defun differ (reason &rest arguments)
  "Leaves the comparison, because the expansions differ for REASON."
  (throw 'different (apply #'format nil reason arguments)))

;;; Bindings are lists (KIND OLD NEW), innermost first. KIND is :VARIABLE, :FUNCTION, :BLOCK or
;;; :TAG.

(defun name-words (name)
  (let ((*package* (find-package "KEYWORD")) (*print-case* :downcase))
    (if (symbolp name) (string-downcase (symbol-name name)) (prin1-to-string name))))

(defun compare-names (old new kind bindings)
  "Leaves the comparison unless OLD and NEW mean the same binding of KIND, or are the same name and
  nothing binds it."
  (flet ((binding (name part)
           (find-if (lambda (binding) (and (eq (first binding) kind) (equal (funcall part binding) name))) bindings)))
    (let ((one (binding old #'second)) (other (binding new #'third)))
      (cond ((not (eq one other))
             (if (null one)
                 (differ "~A would then mean the local binding of that name" (name-words new))
                 (differ "~A would no longer mean its binding" (name-words old))))
            (one)
            ((equal old new))
            ((and (symbolp old) (symbolp new) (null (symbol-package old)) (null (symbol-package new)))
             (unless (eq new (or (gethash old *free-pairs*) (setf (gethash old *free-pairs*) new)))
               (differ "symbols that macros made differ")))
            (t (differ "~A would become ~A where nothing binds it" (name-words old) (name-words new)))))))

(defun global-variable-p (name)
  "Returns true if binding the symbol NAME does not make a lexical binding."
  (and (symbolp name) (symbol-package name)
       (member (sb-cltl2:variable-information name) '(:special :constant :global :symbol-macro))
       t))

(defun bind-compared (old new kind bindings &optional specials)
  "BINDINGS and the binding of OLD, which is NEW in the other text."
  (cond ((and (eq kind :variable)
              (or (global-variable-p old) (global-variable-p new) (member old specials) (member new specials)))
         (unless (eq old new)
           (differ "~A is a special variable or a constant" (name-words (if (or (global-variable-p new) (member new specials)) new old))))
         bindings)
        ((and (eq kind :function) (consp old) (consp new)) ; (setf name)
         (acons-binding kind old new bindings))
        ((and (symbolp old) (symbolp new))
         (when (and (not (eq old new)) (member kind '(:variable :function)) (symbol-package new) (sb-ext:package-locked-p (symbol-package new))
                    (not (eq (symbol-package new) *package*)) (or (eq kind :function) (global-variable-p new)))
           (differ "~A is a symbol of the locked package ~A" (name-words new) (package-name (symbol-package new))))
         (acons-binding kind old new bindings))
        ((equal old new) (acons-binding kind old new bindings))
        (t (differ "bindings differ"))))

(defun acons-binding (kind old new bindings)
  (cons (list kind old new) bindings))

;;; Constants

(defun compare-data (old new harmless)
  "Leaves the comparison unless the constants OLD and NEW are equal except for the renaming.
  HARMLESS is true if SBCL keeps them only to show them."
  (cond ((eql old new))
        ((and harmless (consp old) (consp new)))
        ((and (symbolp old) (symbolp new))
         (cond ((and (eq old *old-name*) (eq new *new-name*)) (unless harmless (setf *data-differ* t)))
               ((and (null (symbol-package old)) (null (symbol-package new))))
               (t (differ "a macro makes another name of it (~A, ~A)" (name-words old) (name-words new)))))
        ((and (consp old) (consp new))
         (loop (compare-data (pop old) (pop new) harmless)
               (unless (and (consp old) (consp new))
                 (return (compare-data old new harmless)))))
        ((and (stringp old) (stringp new))
         (unless (or (string= old new) harmless) (setf *data-differ* t)))
        ((and (comma-p old) (comma-p new)) (compare-data (comma-expression old) (comma-expression new) harmless))
        ((and (simple-vector-p old) (simple-vector-p new) (= (length old) (length new)))
         (map nil (lambda (one other) (compare-data one other harmless)) old new))
        ((equalp old new))
        ;; Objects that macros made. If the types are equal, they count as made in the same way.
        ((and (not (typep old '(or number character list symbol array))) (equal (type-of old) (type-of new))))
        (t (differ "constants differ"))))

;;; Code

(defun harmless-operator-p (operator)
  "Returns true if OPERATOR is one of SBCL's own, which is not for users. Such a function keeps
  names only to show them."
  (let ((package (and (symbolp operator) (symbol-package operator))))
    (and package
         (not (eq package (load-time-value (find-package "COMMON-LISP"))))
         (eql 0 (search "SB-" (package-name package))))))

(defun compare-all (old new bindings)
  (loop while (and (consp old) (consp new))
        do (compare-code (pop old) (pop new) bindings))
  (unless (and (null old) (null new)) (differ "the expansions are of different shapes")))

(defun compare-declared (old new bindings)
  "Leaves the comparison unless each name in the declarations OLD and NEW means the same binding, or
  is the same name."
  (cond ((and (consp old) (consp new))
         (loop (compare-declared (pop old) (pop new) bindings)
               (unless (and (consp old) (consp new))
                 (return (compare-declared old new bindings)))))
        ((eql old new))
        ((and (symbolp old) (symbolp new))
         (unless (or (find-if (lambda (binding) (and (eq (second binding) old) (eq (third binding) new))) bindings)
                     (and (null (symbol-package old)) (null (symbol-package new))))
           (differ "a declaration would name another variable")))
        ((equalp old new))
        (t (differ "declarations differ"))))

(defun compare-specifiers (old new bindings)
  "Compares the specifiers of two DECLAREs. Those of SBCL's own, which show how the code was
  written, are skipped."
  (unless (and (proper-list-p old) (proper-list-p new) (= (length old) (length new))) (differ "declarations differ"))
  (loop for one in old for other in new
        do (unless (and (consp one) (consp other) (eq (first one) (first other)) (harmless-operator-p (first one)))
             (compare-declared one other bindings))))

(defun compare-body (old new bindings &optional docstring)
  (multiple-value-bind (old-forms old-preamble) (split-body old docstring)
    (multiple-value-bind (new-forms new-preamble) (split-body new docstring)
      (unless (= (length old-preamble) (length new-preamble)) (differ "the expansions are of different shapes"))
      (loop for one in old-preamble for other in new-preamble
            do (unless (stringp one) (compare-specifiers (rest one) (rest other) bindings)))
      (compare-all old-forms new-forms bindings))))

(defun specials-of (body &optional docstring)
  "The names that the declarations of BODY make special."
  (loop for specifier in (nth-value 2 (split-body body docstring))
        when (and (eq (first specifier) 'special) (proper-list-p specifier))
          append (rest specifier)))

(defun compare-let (old new bindings sequential)
  (destructuring-bind (old-bindings &rest old-body) old
    (destructuring-bind (new-bindings &rest new-body) new
      (unless (= (length old-bindings) (length new-bindings)) (differ "the expansions are of different shapes"))
      (let ((inside bindings) (specials (append (specials-of old-body) (specials-of new-body))))
        (loop for one in old-bindings for other in new-bindings
              do (compare-all (if (consp one) (rest one) '()) (if (consp other) (rest other) '()) (if sequential inside bindings))
                 (setf inside (bind-compared (if (consp one) (first one) one) (if (consp other) (first other) other) :variable inside specials)))
        (compare-body old-body new-body inside)))))

(defun parameter-parts (parameter)
  "Four values of PARAMETER in a lambda list: the name that it binds, its keyword, its default, and
  the name of its supplied-p parameter. Each is NIL if there is none."
  (if (consp parameter)
      (destructuring-bind (name &optional default supplied &rest more) parameter
        (declare (ignore more))
        (if (consp name)
            (values (second name) (first name) default supplied)
            (values name nil default supplied)))
      (values parameter nil nil nil)))

(defun compare-lambda-lists (old new bindings specials)
  "Compares two lambda lists. Returns the bindings that are in force after them."
  (unless (and (proper-list-p old) (proper-list-p new) (= (length old) (length new))) (differ "lambda lists differ"))
  (let ((keys nil) (place nil))
    (loop for one in old for other in new
          do (if (or (member one lambda-list-keywords) (member other lambda-list-keywords))
                 (progn (unless (eq one other) (differ "lambda lists differ"))
                        (setf place one
                              keys (eq one '&key)))
                 (multiple-value-bind (name keyword default supplied) (parameter-parts one)
                   (multiple-value-bind (new-name new-keyword new-default new-supplied) (parameter-parts other)
                     (when (and keys (not (eq (or keyword (intern (symbol-name name) "KEYWORD"))
                                              (or new-keyword (intern (symbol-name new-name) "KEYWORD")))))
                       (differ "the keyword of a parameter would change"))
                     (when place (compare-code default new-default bindings))
                     (setf bindings (bind-compared name new-name :variable bindings specials))
                     (unless (and (null supplied) (null new-supplied))
                       (setf bindings (bind-compared supplied new-supplied :variable bindings specials)))))))
    bindings))

(defun compare-definitions (old new bindings &optional (block-name nil block-p) new-block-name)
  "Compares two (LAMBDA-LIST . BODY). The block names are those of the blocks around the bodies, if
  any."
  (let ((inside (compare-lambda-lists (first old) (first new) bindings (append (specials-of (rest old) t) (specials-of (rest new) t)))))
    (compare-body (rest old) (rest new)
                  (if block-p (bind-compared block-name new-block-name :block inside) inside)
                  t)))

(defun block-name-of (name)
  "The name of the block that the local function NAME has."
  (if (consp name) (second name) name))

(defun compare-functions (old new bindings recursive)
  (let ((inside bindings))
    (unless (= (length (first old)) (length (first new))) (differ "the expansions are of different shapes"))
    (loop for (one) in (first old) for (other) in (first new)
          do (setf inside (bind-compared one other :function inside)))
    (loop for (one . old-definition) in (first old) for (other . new-definition) in (first new)
          do (compare-definitions old-definition new-definition (if recursive inside bindings) (block-name-of one) (block-name-of other)))
    (compare-body (rest old) (rest new) inside)))

(defun compare-function-names (old new bindings)
  (cond ((and (consp old) (consp new) (eq (first old) (first new)) (member (first old) (list 'lambda named-lambda)))
         (compare-code old new bindings))
        ((and (consp old) (consp new)) (unless (equal old new) (compare-names old new :function bindings)))
        (t (compare-names old new :function bindings))))

(defun compare-tagbodies (old new bindings)
  (unless (= (length old) (length new)) (differ "the expansions are of different shapes"))
  (let ((inside bindings))
    (loop for one in old for other in new
          do (when (and (atom one) (atom other)) (setf inside (bind-compared one other :tag inside))))
    (loop for one in old for other in new
          do (when (or (consp one) (consp other)) (compare-code one other inside)))))

(defun compare-setqs (old new bindings)
  (unless (= (length old) (length new)) (differ "the expansions are of different shapes"))
  (loop for (one old-value) on old by #'cddr for (other new-value) on new by #'cddr
        do (compare-names one other :variable bindings)
           (compare-code old-value new-value bindings)))

(defun compare-code (old new bindings)
  "Leaves the comparison unless OLD and NEW, expanded and evaluated where BINDINGS are in force, are
  equal."
  (cond ((and (symbolp old) (symbolp new))
         (unless (and (eq old new) (or (null old) (keywordp old)))
           (compare-names old new :variable bindings)))
        ((and (consp old) (consp new) (proper-list-p old) (proper-list-p new))
         (let ((operator (first old)) (rest (rest old)) (new-rest (rest new)))
           (cond ((consp operator) (compare-code operator (first new) bindings) (compare-all rest new-rest bindings))
                 ((not (symbolp (first new))) (differ "the expansions are of different shapes"))
                 ((not (eq operator (first new)))
                  (compare-names operator (first new) :function bindings)
                  (compare-all rest new-rest bindings))
                 (t (case operator
                      (quote (compare-data rest new-rest nil))
                      ((let) (compare-let rest new-rest bindings nil))
                      (let* (compare-let rest new-rest bindings t))
                      (flet (compare-functions rest new-rest bindings nil))
                      (labels (compare-functions rest new-rest bindings t))
                      (lambda (compare-definitions rest new-rest bindings))
                      (function (compare-function-names (first rest) (first new-rest) bindings))
                      (block
                       (compare-all (rest rest) (rest new-rest) (bind-compared (first rest) (first new-rest) :block bindings)))
                      (return-from
                       (compare-names (first rest) (first new-rest) :block bindings)
                       (compare-all (rest rest) (rest new-rest) bindings))
                      (tagbody (compare-tagbodies rest new-rest bindings))
                      (go (compare-names (first rest) (first new-rest) :tag bindings))
                      (setq (compare-setqs rest new-rest bindings))
                      ((progn if catch throw unwind-protect multiple-value-call multiple-value-prog1 progv)
                       (compare-all rest new-rest bindings))
                      (locally (compare-body rest new-rest bindings))
                      ((eval-when the)
                       (compare-declared (first rest) (first new-rest) '())
                       (compare-all (rest rest) (rest new-rest) bindings))
                      (declare (compare-specifiers rest new-rest bindings))
                      (t (cond ((eq operator named-lambda)
                                (compare-data (first rest) (first new-rest) t)
                                (compare-definitions (rest rest) (rest new-rest) bindings))
                               ((member operator (list truly-the the* with-source-form))
                                ;; The type, and in the expansions of SBCL's macros also the form as
                                ;; it was written, come first and are not evaluated.
                                (compare-all (rest rest) (rest new-rest) bindings))
                               ((special-operator-p operator)
                                (if (equal rest new-rest) (compare-all rest new-rest bindings) (compare-special rest new-rest bindings)))
                               (t (compare-names operator operator :function bindings)
                                  (compare-arguments operator rest new-rest bindings)))))))))
        (t (compare-data old new nil))))

(defun compare-special (old new bindings)
  "Compares the arguments of an operator that is not known here. They are data or forms. Each that
  differs is compared as a form."
  (unless (= (length old) (length new)) (differ "the expansions are of different shapes"))
  (loop for one in old for other in new
        do (unless (equal one other) (compare-code one other bindings))))

(defun compare-arguments (operator old new bindings)
  (if (harmless-operator-p operator)
      (loop while (and (consp old) (consp new))
            do (let ((one (pop old)) (other (pop new)))
                 (if (and (consp one) (consp other) (eq (first one) 'quote) (eq (first other) 'quote))
                     (compare-data (rest one) (rest other) t)
                     (if (and (stringp one) (stringp other)) nil (compare-code one other bindings))))
            finally (unless (and (null old) (null new)) (differ "the expansions are of different shapes")))
      (compare-all old new bindings)))

;;; The operation

(defun expanded-text (text)
  "The first form of TEXT with all macros in it expanded."
  (let ((*gensym-counter* 1) (*expansions* 0))
    (walk (read-from-string text) nil)))

(defun compare-variant (old text)
  "The JSON about TEXT, another text of the form whose expansion is OLD."
  (let* ((*data-differ* nil)
         (*free-pairs* (make-hash-table :test #'eq))
         (why (catch 'different
                (handler-case (let ((new (expanded-text text)))
                                (compare-code old new '())
                                nil)
                  (error (condition) (format nil "it could not be expanded any more: ~A" (condition-message condition)))))))
    (object "same" (bool (null why)) "why" (or-null why) "data" (bool (and (null why) *data-differ*)))))

(defun compare-as-asked (evaluation params package timeout)
  "The JSON of the answer to PARAMS: whether each of `variants` means what `code` means. The macros
  of the program run as EVALUATION, which can be stopped."
  (multiple-value-bind (how answer)
      (call-evaluating (lambda () (with-own-settings () (comparison-of-expansions params package))) evaluation
                       :package package)
    (if (eq how :ok)
        answer
        (object "failure" :null "variants" #() "error" (field (outcome evaluation how :timeout timeout) "error")))))

(defun comparison-of-expansions (params package)
  "The JSON of the answer to PARAMS, as in COMPARE-AS-ASKED."
  (let* ((*package* (or package (find-package "COMMON-LISP-USER")))
         (*readtable* (copy-readtable *readtable*))
         (failure nil)
         (old (handler-case (expanded-text (field params "code"))
                (error (condition) (setf failure (condition-message condition)) nil))))
    (if failure
        (object "failure" failure "variants" #())
        (let ((*old-name* (ignore-errors (read-from-string (field params "old"))))
              (*new-name* (ignore-errors (read-from-string (field params "new")))))
          (object "failure" :null
                  "variants" (map 'vector (lambda (text) (compare-variant old text)) (field params "variants")))))))
