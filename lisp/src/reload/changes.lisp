;;;; The difference between two snapshots: new, redefined and removed definitions.

(in-package :consort)

(defvar *variances* '() "The parts of packages that exist but are no longer in the definitions of
  the packages, as SBCL reports them.")

(defstruct (change (:constructor make-change (kind name status before after)))
  "A definition that has changed. KIND is a word or two. STATUS is :NEW, :REDEFINED or :REMOVED.
  BEFORE and AFTER are the old and new object: a function, value of the compiler's database, class
  record or method."
  kind name status before after)

(defstruct (symbol-difference (:constructor make-symbol-difference (symbol before after)))
  "A symbol, and its records before and after."
  symbol before after)

(defstruct (generic-difference (:constructor make-generic-difference (function before after)))
  "A generic function, and its records before and after."
  function before after)

(defun status-of-change (before after)
  (cond ((null before) :new) ((null after) :removed) (t :redefined)))

(defun note-difference (kind name before after collect)
  (unless (eq before after)
    (funcall collect (make-change kind name (status-of-change before after) before after))))

(defparameter *info-words*
  '((:function :macro-function "macro") (:function :compiler-macro-function "compiler macro") (:setf :expander "setf expander") (:type :expander "type")
    (:source-location :symbol-macro "symbol macro"))
  "The entries of the compiler's database that are definitions by themselves, each with a word for
  people.")

(defun function-word (name function)
  (cond ((typep function 'generic-function) "generic function")
        ((consp name) "setf function")
        (t "function")))

(defun variable-source (record symbol)
  (or (info-of record symbol :source-location :variable) (info-of record symbol :source-location :constant)))

(defun class-word (class)
  (typecase class (structure-class "structure") (sb-mop:standard-class "class") (t (if (subtypep class 'condition) "condition" "class"))))

(defun class-differs-p (before after)
  (not (and (eq (class-record-class before) (class-record-class after))
            (eq (class-record-layout before) (class-record-layout after))
            (equal (class-record-slots before) (class-record-slots after))
            (eq (class-record-report before) (class-record-report after))
            (eq (class-record-source before) (class-record-source after)))))

(defun symbol-changes (symbol before after collect)
  "Calls COLLECT with each definition of SYMBOL that differs between two records, either of which
  may be NIL."
  (dolist (name (list symbol `(setf ,symbol)))
    (let ((old (function-in before name)) (new (function-in after name)))
      (note-difference (function-word name (or new old)) name old new collect)))
  (loop for (category kind word) in *info-words*
        do (note-difference word symbol (info-of before symbol category kind) (info-of after symbol category kind) collect))
  (let ((old (variable-source before symbol)) (new (variable-source after symbol)))
    (unless (eq old new)
      (funcall collect (make-change (if (info-of after symbol :source-location :constant) "constant" "variable") symbol
                                    (cond ((null new) :removed)
                                          ((or old (and before (symbol-record-value before))) :redefined)
                                          (t :new))
                                    (and before (symbol-record-value before)) (and after (symbol-record-value after))))))
  (let ((old (and before (symbol-record-class before))) (new (and after (symbol-record-class after))))
    (when (and (or old new) (not (and old new (not (class-differs-p old new)))))
      (funcall collect (make-change (class-word (class-record-class (or new old))) symbol (status-of-change old new) old new)))))

(defun same-method-p (a b)
  (and (equal (method-qualifiers a) (method-qualifiers b))
       (equal (sb-mop:method-specializers a) (sb-mop:method-specializers b))))

(defun method-name (function method)
  "The name of METHOD as a list, such as (PRINT-OBJECT (POINT T)) or (RUN :AFTER (TASK))."
  `(,(sb-mop:generic-function-name function) ,@(method-qualifiers method)
    ,(mapcar (lambda (specializer)
               (typecase specializer
                 (class (class-name specializer))
                 (sb-mop:eql-specializer (list 'eql (sb-mop:eql-specializer-object specializer)))
                 (t specializer)))
             (sb-mop:method-specializers method))))

(defun written-method-p (method)
  "Returns true if a person wrote METHOD. The accessors of a class are made and removed with it."
  (not (typep method 'sb-mop:standard-accessor-method)))

(defun generic-changes (function before after collect)
  "Calls COLLECT with each method of FUNCTION that differs, and with FUNCTION itself if it was
  defined anew."
  (let ((old (and before (generic-record-methods before))) (new (and after (generic-record-methods after))))
    (when (and before after (not (eq (generic-record-source before) (generic-record-source after))))
      (funcall collect (make-change "generic function" (sb-mop:generic-function-name function) :redefined before after)))
    (unless (eq old new)
      (dolist (method new)
        (when (and (written-method-p method) (not (member method old :test #'eq)))
          (let ((previous (find method old :test #'same-method-p)))
            (funcall collect (make-change "method" (method-name function method) (if previous :redefined :new) previous method)))))
      (dolist (method old)
        (when (and (written-method-p method) (not (find method new :test #'same-method-p)))
          (funcall collect (make-change "method" (method-name function method) :removed method nil)))))))

(defun compare-snapshots (before after)
  "Four values: the CHANGEs from one snapshot to a later one; a SYMBOL-DIFFERENCE for each symbol
  that differs; a GENERIC-DIFFERENCE for each generic function that differs; and the packages that
  differ, as (OLD . NEW)."
  (let ((changes '()) (symbol-differences '()) (generic-differences '())
        (package-differences (compare-packages (snapshot-packages before) (snapshot-packages after)))
        (seen (make-hash-table :test #'eq)))
    (flet ((collect (change) (push change changes)))
      (flet ((look (symbol old new)
               (let ((count (length changes)))
                 (symbol-changes symbol old new #'collect)
                 (unless (and (= count (length changes)) (same-infos-p old new))
                   (push (make-symbol-difference symbol old new) symbol-differences))))
             (group (function old new)
               (unless (and old new (eq (generic-record-methods old) (generic-record-methods new))
                            (eq (generic-record-source old) (generic-record-source new)))
                 (generic-changes function old new #'collect)
                 (push (make-generic-difference function old new) generic-differences))))
        (maphash (lambda (symbol new)
                   (setf (gethash symbol seen) t)
                   (look symbol (gethash symbol (snapshot-symbols before)) new))
                 (snapshot-symbols after))
        (maphash (lambda (symbol old)
                   (unless (gethash symbol seen) (look symbol old nil)))
                 (snapshot-symbols before))
        (maphash (lambda (function new) (group function (gethash function (snapshot-generics before)) new))
                 (snapshot-generics after))))
    (loop for (old . new) in package-differences
          do (push (make-change "package" (package-record-name (or new old)) (status-of-change old new) old new) changes))
    (values (nreverse changes) symbol-differences generic-differences package-differences)))

(defun same-infos-p (before after)
  "Returns true if the compiler's entries in two records are the same."
  (let ((old (and before (symbol-record-infos before))) (new (and after (symbol-record-infos after))))
    (and (= (length old) (length new))
         (every (lambda (info)
                  (let ((other (find-if (lambda (other) (and (eql (second other) (second info)) (equal (first other) (first info)))) new)))
                    (and other (eq (fifth other) (fifth info)))))
                old))))
