;;;; `name-index`: the symbols of all packages with the facts about them that completion shows, for
;;;; the index that the host keeps. For a package that has not changed since the host's last
;;;; request, the answer has only its digest.

(in-package :consort)

(defconstant +most-indexed+ 200000 "The maximum number of symbols of a package in an answer.")
(defconstant +index-parts+ 40 "The maximum number of parameters, slots or initialization arguments
  of one symbol.")

(defun function-letter (symbol)
  (let ((kind (function-kind symbol)))
    (cond ((null kind) #\-) ((string= kind "special operator") #\o) (t (char kind 0)))))

(defun variable-letter (symbol)
  (let ((kind (variable-kind-name symbol)))
    (cond ((null kind) #\-) ((string= kind "symbol macro") #\s) (t (char kind 0)))))

(defun class-letter (symbol)
  (let ((kind (class-kind symbol)))
    (cond ((null kind) (if (type-expander-p symbol) #\t #\-))
          ((string= kind "condition") #\e)
          (t (char kind 0)))))

(defun lambda-list-outline (list)
  "Returns a line with the words of a lambda list: its lambda list keywords, each followed by the
  names of its parameters or keywords. A required parameter that is a list is ()."
  (let ((words '()) (section :required))
    (loop for rest = list then (cdr rest)
          while (consp rest)
          repeat +index-parts+
          do (let ((part (car rest)))
               (case part
                 ((&whole &environment) (setf rest (cdr rest)))
                 (&aux (setf section :other))
                 ((&optional &rest &body &key)
                  (push (string-downcase (symbol-name part)) words)
                  (setf section (if (eq part '&key) :key :optional)))
                 (&allow-other-keys)
                 (t (case section
                      (:required (push (if (symbolp part) (string-downcase (symbol-name part)) "()") words))
                      ((:optional :key)
                       (let* ((name (if (consp part) (car part) part))
                              (name (if (consp name) (car name) name)))
                         (when (symbolp name) (push (string-downcase (symbol-name name)) words)))))))))
    (format nil "~{~A~^ ~}" (remove-if (lambda (word) (find-if (lambda (char) (find char '(#\Tab #\Newline #\Space))) word)) (nreverse words)))))

(defun class-outline (symbol)
  "A line with the slots of the class SYMBOL, and after `&initargs` its initialization arguments."
  (handler-case
      (let ((slots '()))
        (dolist (one (classes-above (find-class symbol)))
          (dolist (slot (sb-mop:class-direct-slots one))
            (pushnew (string-downcase (symbol-name (sb-mop:slot-definition-name slot))) slots :test #'string=)))
        (format nil "~{~A~^ ~} &initargs~{ ~A~}" (first-parts (reverse slots)) (first-parts (initargs-of symbol (user-package)))))
    (error () "")))

(defun index-entry (symbol package external lists)
  "SYMBOL, present in PACKAGE, as a line: E or I, three letters for its kind as a function, a
  variable and a class, and its name. After tabs follow, as far as there are any, its home if that
  is another package, its lambda list and its slots."
  (let* ((function (function-letter symbol))
         (class (class-letter symbol))
         (home (symbol-package symbol))
         (home (if (or (null home) (eq home package)) "" (package-name home)))
         (parameters (if (and lists (char/= function #\-)) (lambda-list-outline (lambda-list-of symbol)) ""))
         (slots (if (and lists (find class "cse")) (class-outline symbol) "")))
    (format nil "~C~C~C~C~A~{~C~A~}" (if external #\E #\I) function (variable-letter symbol) class (symbol-name symbol)
            (loop for field in (cond ((string/= slots "") (list home parameters slots))
                                     ((string/= parameters "") (list home parameters))
                                     ((string/= home "") (list home)))
                  collect #\Tab collect field))))

(defun digest-of-package (package)
  "A text that changes when the package's symbols or their meanings change."
  (let ((sum (logxor (hash-string (format nil "~S ~S" (package-nicknames package) (mapcar #'package-name (package-use-list package))))
                     (hash-string (format nil "~{~S~}" (loop for (nickname . meant) in (sb-ext:package-local-nicknames package)
                                                             collect (string nickname) collect (package-name meant)))))))
    (declare (type (unsigned-byte 64) sum))
    (with-package-iterator (next package :internal :external)
      (loop (multiple-value-bind (more symbol status) (next)
              (unless more (return))
              (let ((kinds (logior (char-code (function-letter symbol))
                                   (ash (char-code (variable-letter symbol)) 8)
                                   (ash (char-code (class-letter symbol)) 16)
                                   (if (eq status :external) (ash 1 24) 0)))
                    (shape (if (fboundp symbol) (lambda-list-hash (lambda-list-of symbol)) 0))
                    (class (find-class symbol nil)))
                (setf sum (ldb (byte 64 0)
                               (+ sum (mix (hash-string (symbol-name symbol))
                                           (mix kinds (mix shape (if class (class-outline-hash class) 0)))))))))))
    (format nil "~36R" sum)))

;;; SXHASH of a list depends only on the first of its elements.

(defun names-hash (names)
  "A hash of the list NAMES, symbols, all of which count."
  (let ((hash 0))
    (dolist (name names hash)
      (setf hash (mix hash (if (symbolp name) (sxhash name) 0))))))

(defun lambda-list-hash (list)
  "A hash of the parts of a lambda list that LAMBDA-LIST-OUTLINE shows."
  (names-hash (loop for rest = list then (cdr rest)
                    while (consp rest)
                    repeat +index-parts+
                    collect (let* ((part (car rest)) (name (if (consp part) (car part) part)))
                              (if (consp name) (car name) name)))))

(defvar *class-hashes* nil "While packages are indexed: a table of the hashes of classes without
  those above them, by class.")
(defvar *initialization-hashes* nil "While packages are indexed: a table of the hashes of the methods
  that initialize instances, by the class for which they are.")

(defun initialization-hashes ()
  "A table for *INITIALIZATION-HASHES*."
  (let ((hashes (make-hash-table :test #'eq)))
    (dolist (name '(initialize-instance shared-initialize) hashes)
      (dolist (method (sb-mop:generic-function-methods (fdefinition name)))
        (let ((class (first (sb-mop:method-specializers method))))
          (setf (gethash class hashes)
                (logxor (gethash class hashes 0) (names-hash (keyword-parameters (sb-mop:method-lambda-list method))))))))))

(defun own-hash (class)
  "A hash of the slots of CLASS itself, and of the methods that initialize its instances."
  (or (gethash class *class-hashes*)
      (setf (gethash class *class-hashes*)
            (mix (gethash class *initialization-hashes* 0)
                 (names-hash (loop for slot in (sb-mop:class-direct-slots class)
                                   collect (sb-mop:slot-definition-name slot)
                                   append (sb-mop:slot-definition-initargs slot)))))))

(defun class-outline-hash (class)
  "A hash of what CLASS-OUTLINE shows of CLASS."
  (handler-case (let ((hash 0))
                  (dolist (one (classes-above class) hash)
                    (setf hash (mix hash (own-hash one)))))
    (error () 0)))

(defun index-of-package (package known)
  "Returns the index's entry of PACKAGE. KNOWN is the digest that the host has of it, or NIL."
  (let* ((system (own-package-p package))
         ;; A change of SBCL's packages after they were unlocked is missed.
         (digest (if system "system" (digest-of-package package))))
    (if (equal digest known)
        (object "name" (package-name package) "digest" digest)
        (let ((symbols '()) (count 0))
          (with-package-iterator (next package :internal :external)
            (loop (multiple-value-bind (more symbol status) (next)
                    (unless (and more (< count +most-indexed+)) (return))
                    (when (and (or (eq status :external) (not system))
                               (not (find-if (lambda (char) (find char '(#\Tab #\Newline))) (symbol-name symbol))))
                      (incf count)
                      (push (index-entry symbol package (eq status :external) t) symbols)))))
          (object "name" (package-name package)
                  "digest" digest
                  "system" (bool system)
                  "nicknames" (copy-list (package-nicknames package))
                  "local" (loop for (nickname . meant) in (sb-ext:package-local-nicknames package)
                                collect (list (string nickname) (package-name meant)))
                  "uses" (mapcar #'package-name (package-use-list package))
                  "symbols" (coerce symbols 'vector))))))

(define-operation "name-index" :query (id params)
  (let ((have (param params "have" t :default (object)))
        (*class-hashes* (make-hash-table :test #'eq))
        (*initialization-hashes* (initialization-hashes)))
    (object "packages" (loop for package in (list-all-packages)
                             when (and (package-name package)
                                       (not (eq package (load-time-value (find-package "CONSORT")))))
                               collect (index-of-package package (field have (package-name package)))))))
